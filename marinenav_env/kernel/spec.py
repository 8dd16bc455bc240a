"""What the operators say of an environment: its parameters, tensors, fields and actions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of an environment.

    Attributes:
        name: by which the core finds it.
        number: "real" (float32 or float64), "int" (int32) or "bool".
        shape: extents; a name stands for one that the environment chooses.
        fields: names of the rows of a table, or of the last extent of an observation.
    """

    name: str
    number: str
    shape: tuple[int | str, ...]
    fields: tuple[str, ...]

    def sized(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape, its names replaced."""
        return tuple(sizes[extent] if isinstance(extent, str) else extent for extent in self.shape)


@dataclass(frozen=True)
class KernelSpec:
    """An environment of the core; `csrc/envs.h` lists them.

    Attributes:
        name: of the environment.
        params: names of its parameters, in the operators' order.
        state: tensors that change.
        tables: tensors that only the configuration changes.
        observation: entries [worlds, robots, frames, ...].
        results: of a step.
        continuous: numbers of an action in [-1, 1]; 0 if it takes none.
        discrete: number of actions to choose from; 0 if it takes none.
        unrolls: whether it takes several decisions in one launch.
    """

    name: str
    params: tuple[str, ...]
    state: tuple[TensorSpec, ...]
    tables: tuple[TensorSpec, ...]
    observation: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...]
    continuous: int
    discrete: int
    unrolls: bool

    @staticmethod
    def parse(name: str, text: str) -> KernelSpec:
        """Return the specification that the operator `describe` gives as JSON."""
        read = json.loads(text)

        def specs(key: str) -> tuple[TensorSpec, ...]:
            return tuple(
                TensorSpec(row["name"], row["number"], tuple(row["shape"]), tuple(row["fields"]))
                for row in read[key]
            )

        return KernelSpec(
            name=name,
            params=tuple(read["params"]),
            state=specs("state"),
            tables=specs("tables"),
            observation=specs("observation"),
            results=specs("results"),
            continuous=read["continuous"],
            discrete=read["discrete"],
            unrolls=read["unrolls"],
        )

    def tensor(self, name: str) -> TensorSpec:
        """Return the state tensor, table or observation entry of that name."""
        return next(t for t in (*self.state, *self.tables, *self.observation) if t.name == name)

    def fields(self, name: str) -> tuple[str, ...]:
        """Return the names of a tensor's fields."""
        return self.tensor(name).fields

    def pack(self, named: Iterable[tuple[str, float]]) -> Tensor:
        """Return parameters as the operators take them.

        Args:
            named: name and value of every parameter, in any order.

        Returns:
            Their values on the host, in the operators' order, float64.

        Raises:
            ImportError: the operators know other parameters.
        """
        values = dict(named)
        strange = sorted(set(values).symmetric_difference(self.params))
        if strange:
            raise ImportError(
                "marinenav's operators were built from another version of the parameters of"
                f" '{self.name}' (only one side knows {strange[:3]}): rebuild them by `make setup`"
            )
        packed = [values[name] for name in self.params]
        return torch.tensor(packed, dtype=torch.float64, device="cpu")
