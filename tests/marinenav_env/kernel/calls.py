"""Calls of the operators, whose arguments tests change."""

import torch

from marinenav_env.envs.marine import MarineNavEnv
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful, rough

OPS = torch.ops.marinenav
TENSOR_OPS = ("step", "reset", "observe")


class Call:
    """Arguments of an operator; a tensor of a list is known by its own name."""

    def __init__(self, op: str, device: str, stack_k: int = 1, discrete: bool = False) -> None:
        self.op = getattr(OPS, op).default
        self.env = MarineNavEnv(
            5,
            stages=(CROWDED, SPARSE),
            config=rough(eventful(4)),
            device=device,
            stack_k=stack_k,
            discrete=discrete,
        )
        self.previous, self.out = self.env.make_buffers(), self.env.make_buffers()
        if op != "reset":
            self.env.reset_into(self.previous)
        state, spec = self.env.state, self.env.kernel_spec
        results = {t.name: getattr(self.out, t.name) for t in spec.results}
        known = {
            **state.context._asdict(),
            "env": state.env,
            "state": state.named(),
            "tables": {t.name: getattr(state, t.name) for t in spec.tables},
            "previous": {f"previous {k}": v for k, v in self.previous.frames._asdict().items()},
            "observation": self.out.frames._asdict(),
            "results": results,
            "action": actions(self.env, 0),
            "only": torch.tensor([True, False, True, True, True], device=device),
            "alive": self.env.alive,
            "skip_if_empty": False,
        }
        self.args = {a.name: known[a.name] for a in self.op._schema.arguments}

    def values(self, **changed: object) -> list:
        """The operator's arguments, some of them or of their tensors changed."""
        return [
            [changed.get(k, v) for k, v in value.items()]
            if isinstance(value, dict)
            else changed.get(name, value)
            for name, value in self.args.items()
        ]

    def run(self, **changed: object) -> None:
        """Calls the operator."""
        self.op(*self.values(**changed))

    def tensors(self) -> dict[str, dict[str, torch.Tensor]]:
        """Tensors of every argument that is one or a list of them."""
        lists = {
            name: value if isinstance(value, dict) else {name: value}
            for name, value in self.args.items()
        }
        return {
            name: value
            for name, value in lists.items()
            if all(isinstance(t, torch.Tensor) for t in value.values())
        }

    def named(self, name: str) -> object:
        """An argument, or a tensor of one of the lists."""
        lists = (value for value in self.args.values() if isinstance(value, dict))
        return next((entries[name] for entries in lists if name in entries), self.args.get(name))

    def written(self) -> set[str]:
        """Names of the arguments that the schema marks as written."""
        marked = (a for a in self.op._schema.arguments if a.alias_info is not None)
        return {a.name for a in marked if a.alias_info.is_write}


def turned(t: torch.Tensor) -> torch.Tensor:
    """The same values, not contiguous."""
    return t.transpose(0, 1).contiguous().transpose(0, 1)
