"""What agents with quantile networks share: quantile fractions, risk levels, deployed networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from marinenav_env.envs.spec import (
    EntitySpec,
    FlatSpec,
    ObservationSpec,
    ObservationTensors,
    RaySpec,
    TwoListSpec,
)
from marinenav_env.fields import ConfigError, setting
from train_RL_agents.agents.settings import CHOICE, PUBLISHED, ReplayAgentConfig

CALM_DISTANCE = 10.0  # m, published surface distance from which the adaptive risk level is 1


@dataclass(frozen=True)
class QuantileConfig(ReplayAgentConfig):
    """Settings of an agent that learns quantiles of the return."""

    n_taus: int = setting(8, unit="-", source=PUBLISHED, low=1, high=4096)
    """Quantile fractions of the learned distribution in a loss."""
    n_target_taus: int = setting(8, unit="-", source=PUBLISHED, low=1, high=4096)
    """Quantile fractions of the target distribution in a loss."""
    kappa: float = setting(1.0, unit="return", source=PUBLISHED, low=1e-6)
    """Where the Huber loss turns linear."""
    shared_taus: bool = setting(True, unit="-", source=CHOICE)
    """Draw one set of fractions per batch, one in each n-th of [0, 1], not one per sample."""
    cvar: float = setting(1.0, unit="-", source="Dabney et al. 2018, sec. 3.2", low=0.0, high=1.0)
    """Risk level: act for the mean of the worst share `cvar` of returns; 1 is neutral."""
    adaptive_cvar: bool = setting(False, unit="-", source=PUBLISHED)
    """Multiply the risk level by the closest surface distance / 10 m, at most 1."""

    def check_observation(self, spec: ObservationSpec) -> None:
        """As the base class, and that there are objects to adapt the risk level to."""
        super().check_observation(spec)
        if self.adaptive_cvar and isinstance(spec, FlatSpec | RaySpec):
            raise ConfigError(
                "adaptive_cvar is True, but the environment shows no objects whose distance could "
                "set the risk level: leave it out"
            )


def draw_taus(samples: int, n: int, device: torch.device, *, shared: bool) -> Tensor:
    """Draw quantile fractions in [0, 1).

    Args:
        samples: B.
        n: fractions N.
        device: where to draw.
        shared: one set for all samples, stratified: the i-th is uniform in [i/N, (i+1)/N).

    Returns:
        `[N]` if shared, else `[B, N]` independent and uniform.
    """
    if not shared:
        return torch.rand(samples, n, device=device)
    return (torch.arange(n, device=device) + torch.rand(n, device=device)) / n


def midpoints(n: int) -> Tensor:
    """Return the fixed fractions (i + 1/2) / n `[n]`, whose quantiles average to the mean."""
    return (torch.arange(n) + 0.5) / n


def risk_level(observation: ObservationTensors, spec: EntitySpec | TwoListSpec) -> Tensor:
    """Return the adaptive risk level `[...]`: closest surface distance / 10 m, within [0, 1].

    The surface distance of an object is |p| - r_obj - own radius; without objects the level is 1.
    """
    _, first, second = observation
    first = first[..., : spec.rows, :]
    if isinstance(spec, TwoListSpec):
        second = second[..., : spec.rows, :]
        return calmness_of_lists(first, second, spec.own_radius, CALM_DISTANCE)
    return calmness(first, second[..., : spec.rows], spec.own_radius, CALM_DISTANCE)


def calmness(objects: Tensor, mask: Tensor, own_radius: float, calm_distance: float) -> Tensor:
    """Return `[...]`: the closest surface distance as a share of the calm one, within [0, 1].

    It can be scripted.

    Args:
        objects: `[..., K, 5]`.
        mask: `[..., K]`.
        own_radius: m.
        calm_distance: m.
    """
    centre = torch.linalg.vector_norm(objects[..., :2], dim=-1)  # [..., K]
    distance = centre - objects[..., 4] - own_radius  # [..., K]
    level = (distance / calm_distance).clamp(0.0, 1.0)  # [..., K]
    return torch.where(mask > 0.5, level, torch.ones_like(level)).amin(-1)  # [...]


def calmness_of_lists(
    static: Tensor, dynamic: Tensor, own_radius: float, calm_distance: float
) -> Tensor:
    """As `calmness`, of a list of buoys `[..., K, 3]` and one of robots `[..., K, 4]`.

    As published, what is nearer than 1 mm is padding.
    """
    position = torch.cat((static[..., :2], dynamic[..., :2]), dim=-2)  # [..., 2K, 2]
    others = torch.full_like(dynamic[..., 0], own_radius)
    radius = torch.cat((static[..., 2], others), dim=-1)  # [..., 2K]
    objects = torch.cat((position, torch.zeros_like(position), radius.unsqueeze(-1)), dim=-1)
    there = (position.abs() >= 1e-3).any(-1).to(position.dtype)  # [..., 2K]
    return calmness(objects, there, own_radius, calm_distance)


class RiskAdjusted(nn.Module):
    """A quantile network as deployed: its caller knows nothing of the risk level.

    Args:
        network: called with an observation and fractions.
        config: `cvar` and `adaptive_cvar`.
        spec: of the observation.
    """

    def __init__(self, network: nn.Module, config: QuantileConfig, spec: ObservationSpec) -> None:
        super().__init__()
        self.network = network
        self.cvar = config.cvar
        self.adaptive = config.adaptive_cvar
        self.rows, self.own_radius = 0, 0.0
        if not isinstance(spec, FlatSpec | RaySpec):
            self.rows, self.own_radius = spec.rows, spec.own_radius
        self.two_lists = isinstance(spec, TwoListSpec)
        self.calm_distance = CALM_DISTANCE

    def forward(self, observation: tuple[Tensor, Tensor, Tensor], taus: Tensor) -> Tensor:
        """Return the network's quantiles at fractions scaled by the risk level.

        Args:
            observation: `[...]` leading dimensions.
            taus: `[..., N]` or `[N]`, in [0, 1).
        """
        taus = self.cvar * taus
        if self.adaptive:
            _, first, second = observation
            first = first[..., : self.rows, :]
            if self.two_lists:
                second = second[..., : self.rows, :]
                level = calmness_of_lists(first, second, self.own_radius, self.calm_distance)
            else:
                second = second[..., : self.rows]
                level = calmness(first, second, self.own_radius, self.calm_distance)  # [...]
            taus = level.unsqueeze(-1) * taus  # [..., N]
        return self.network(observation, taus)


def distort(
    taus: Tensor, observation: ObservationTensors, config: QuantileConfig, spec: ObservationSpec
) -> Tensor:
    """Scale fractions by the risk level of the settings: the mean over them becomes the CVaR.

    Args:
        taus: `[N]` shared, or `[..., N]`.
        observation: `[...]` leading dimensions; read if the level adapts.
        config: `cvar` and `adaptive_cvar`.
        spec: of the observation.

    Returns:
        As `taus`, or `[..., N]` if the level adapts.
    """
    if not isinstance(spec, FlatSpec | RaySpec) and config.adaptive_cvar:
        return config.cvar * risk_level(observation, spec).unsqueeze(-1) * taus
    return config.cvar * taus


def describe_risk(config: QuantileConfig, spec: ObservationSpec) -> dict[str, Any]:
    """Return what an exported quantile network does with its fractions, as JSON values."""
    adaptive = None
    if not isinstance(spec, FlatSpec | RaySpec) and config.adaptive_cvar:
        adaptive = {
            "rule": "the network multiplies each robot's fractions by the least, over the objects "
            "of the newest decision whose mask is 1, of clamp((hypot(p_x, p_y) - radius - "
            "own_radius_m) / calm_distance_m, 0, 1); by 1 without such objects",
            "own_radius_m": spec.own_radius,
            "calm_distance_m": CALM_DISTANCE,
        }
    return {
        "cvar": config.cvar,
        "unit": "share of the worst returns",
        "fractions": "uniform in [0, 1), or (i + 1/2) / N; the network multiplies them by cvar",
        "adaptive": adaptive,
    }
