"""Refuses settings of a command line that have no effect."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marinenav_env.fields import require
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import read_overrides
from train_RL_agents.config.schema import TrainConfig

SWITCHES = {
    "scenarios.": "scenarios.share",
    "traffic.": "traffic.share",
    "replay.alpha": "algorithm.prioritized",
    "replay.beta_": "algorithm.prioritized",
    "algorithm.shield": "algorithm.guarded",
    "algorithm.target_entropy": "algorithm.tune_alpha",
}
"""Beginnings of settings, and the setting without which they have no effect."""


def check_effect(overrides: Sequence[str], config: TrainConfig) -> None:
    """Check that each setting of the command line has an effect with the others.

    Args:
        overrides: of the command line, ``key=value``.
        config: of the training, `overrides` included.

    Raises:
        ConfigError: one is switched off by another, or the algorithm has no use for it; names both.
    """
    kind = AGENTS[config.agent]
    idle = (*kind.idle_settings, *(["exploration.action_noise"] if kind.discrete else []))
    for key in leaves(read_overrides(overrides)):
        remedy = f"{key} has no effect with it; leave it out"
        require(not key.startswith(idle), "agent", config.agent, remedy)
        for part, switch in SWITCHES.items():
            if key != switch and key.startswith(part):
                given = operator.attrgetter(switch)(config)
                remedy = f"{key} has no effect then; give {switch} too, or leave {key} out"
                require(bool(given), switch, given, remedy)


def leaves(values: Mapping[str, Any], below: str = "") -> Iterator[str]:
    """Return the dotted keys of nested settings that have a value."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{below}{name}.")
        else:
            yield f"{below}{name}"
