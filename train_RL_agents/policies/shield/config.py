"""Reads the shield's settings from a command line."""

from __future__ import annotations

from collections.abc import Sequence

from marinenav_env.fields import build
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.files import read_overrides


def read_shield(overrides: Sequence[str] | None) -> ShieldConfig | None:
    """Return the settings that a command line gives as ``KEY=VALUE``; None for no shield.

    Raises:
        ConfigError: a setting is unknown or wrong.
    """
    if overrides is None:
        return None
    return build(ShieldConfig, read_overrides(list(overrides)), where="shield")
