"""The gradient step of an agent: Adam, the limit on gradients, and the networks that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm


class Descent:
    """Adam on groups of parameters, each of which descends a loss of its own.

    Nothing here reads the device, and all that it keeps stays where it is: `step` can be captured
    in a CUDA graph.

    Args:
        groups: by the name of its loss, the parameters that descend it and their Adam rate.
        followers: (network, follower, share): at every step the follower, which starts as a copy,
            takes this share of the network.
        max_grad_norm: a group's gradients are scaled down to this Euclidean norm; None leaves them.
        device: where the networks are already.

    Attributes:
        followers: pairs (follower, network).
    """

    def __init__(
        self,
        groups: Mapping[str, tuple[Iterable[nn.Parameter], float]],
        followers: Sequence[tuple[nn.Module, nn.Module, float]],
        max_grad_norm: float | None,
        device: torch.device,
    ) -> None:
        self._limit = max_grad_norm
        self._rates = {name: rate for name, (_, rate) in groups.items()}
        self._rate_scale: Tensor | float = 1.0
        on_gpu = device.type == "cuda"
        parameter_groups = [
            {
                "name": name,
                "params": list(parameters),
                "lr": torch.tensor(rate, device=device) if on_gpu else rate,
            }
            for name, (parameters, rate) in groups.items()
        ]
        self.optimizer = torch.optim.Adam(parameter_groups, fused=True, capturable=on_gpu)
        self._followed: dict[float, tuple[list[Tensor], list[Tensor]]] = {}
        self.followers = [(follower, network) for network, follower, _ in followers]
        self.follow()
        for network, follower, share in followers:
            follower.requires_grad_(False)
            follow, lead = self._followed.setdefault(share, ([], []))
            follow += follower.parameters()
            lead += network.parameters()
        self._allocate_moments()

    def _allocate_moments(self) -> None:
        """Create Adam's moments now, so that a captured graph and a checkpoint find them in place.

        A step with zero gradients changes no parameter; only its count has to be undone.
        """
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for name in self._rates:
            self.restart(name)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All that are descended, group by group."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def step(
        self, losses: Mapping[str, Tensor], sync: Callable[[list[Tensor]], None] | None = None
    ) -> dict[str, Tensor]:
        """Do one step on all groups, and let the followers follow.

        Args:
            losses: `[]` by the name of the group.
            sync: called in place on the list of all gradients; None does nothing.

        Returns:
            Detached on the device, `[]` each: by group `NAME_loss`, and `NAME_grad_norm` before the
            limit.
        """
        groups = self.optimizer.param_groups
        gradients = [torch.autograd.grad(losses[g["name"]], g["params"]) for g in groups]
        if sync is not None:
            sync([gradient for group in gradients for gradient in group])
        metrics = {}
        for group, values in zip(groups, gradients, strict=True):
            metrics[f"{group['name']}_loss"] = losses[group["name"]].detach()
            for parameter, gradient in zip(group["params"], values, strict=True):
                parameter.grad = gradient
            norm = metrics[f"{group['name']}_grad_norm"] = get_total_norm(values)
            if self._limit is not None:
                clip_grads_with_norm_(group["params"], self._limit, norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for share, (follow, lead) in self._followed.items():
                torch._foreach_lerp_(follow, lead, share)
        return metrics

    def follow(self) -> None:
        """Make all followers copies of what they follow."""
        for follower, network in self.followers:
            follower.load_state_dict(network.state_dict())

    def scale_rates(self, scale: Tensor | float) -> None:
        """Multiply the learning rates of all groups by `scale`, from the next step on.

        Args:
            scale: a float, or a 0-d tensor on the device: inside a captured graph it has to be a
                tensor, on the CPU a float spares a read.
        """
        self._rate_scale = scale
        for group in self.optimizer.param_groups:
            rate = self._rates[group["name"]] * scale
            if not isinstance(group["lr"], Tensor):
                group["lr"] = float(rate)
            elif isinstance(rate, Tensor):
                group["lr"].copy_(rate)
            else:
                group["lr"].fill_(rate)

    def restart(self, name: str) -> None:
        """Let Adam take a group's next step for its first, in place."""
        (group,) = (g for g in self.optimizer.param_groups if g["name"] == name)
        for parameter in group["params"]:
            self.optimizer.state[parameter]["step"].zero_()

    def state(self) -> dict[str, Any]:
        """Return Adam's moments and the scale of the rates, as copied tensors."""
        moments = [
            {key: value.detach().clone() for key, value in self.optimizer.state[p].items()}
            for p in self.parameters
        ]
        return {
            "optimizer": dict(enumerate(moments)),
            "learning_rate_scale": torch.as_tensor(self._rate_scale, dtype=torch.float64).clone(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, in place, from any device."""
        for parameter, moments in zip(self.parameters, state["optimizer"].values(), strict=True):
            for key, value in self.optimizer.state[parameter].items():
                value.copy_(moments[key])
        self.scale_rates(float(state["learning_rate_scale"]))
