"""Random configurations, by every way in: file, command line, Python, published JSON.

A case changes a few settings of one algorithm and task. Each value is one that the field's bounds
allow, one at or beyond them, or something else. What is accepted has to hold what was given, and to
read back from what a checkpoint holds of it; every so many-th is trained with for a moment.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError, plain
from scripts.checks.fuzzing.commands import RefusedError, call
from scripts.checks.fuzzing.outcomes import ACCEPTED, ERROR, SILENT, UNCLEAR, Outcome, Player
from scripts.checks.fuzzing.values import JUNK, SCALAR, TEXT, leaves, settings_of, value_for
from train_RL_agents import train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.config.published import PUBLISHED_KEYS
from train_RL_agents.config.schema import TrainConfig

BATCH = 250
"""Cases of one worker; the same seed and batch give the same cases."""

EFFORT = {
    "total_steps": 24,
    "worlds": 2,
    "threads": 1,
    "device": "cpu",
    "updates.batch_size": 4,
    "updates.samples_per_insert": 1.0,
    "updates.warmup_transitions": 8,
    "replay.capacity": 3000,
    "log.interval_steps": 12,
    "checkpoint.interval_steps": 12,
    "evaluation.interval_steps": 24,
    "evaluation.episodes": 1,
    "evaluation.final_episodes": 1,
    "evaluation.stages": "[[1,0,0,30]]",
    "curriculum.stages": "[[2,0,1,30]]",
    "curriculum.starts": "[]",
    "env.episode.max_steps": 6,
    "env.vessel.substeps": 3,
}
"""What a moment of training takes instead: settings that decide how long it lasts."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A configuration: what it changes of the defaults, and how it comes in."""

    route: str
    agent: str
    task: str
    changes: dict[str, Any]

    def __str__(self) -> str:
        """Return the case in words."""
        return f"{self.route}, {self.agent}, {self.task}: {self.changes!r}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return configurations."""
    route = draw(st.sampled_from(("file", "file", "command line", "Python", "published JSON")))
    if route == "published JSON":
        keys = draw(st.lists(st.sampled_from(PUBLISHED_KEYS), min_size=1, max_size=3, unique=True))
        return Case(route, "DQN", "marine", {key: draw(JUNK) for key in keys})
    together = [pair for pair in itertools.product(AGENTS, TASKS) if settings_of(*pair)]
    agent, task = draw(st.sampled_from(together))
    names = st.sampled_from(sorted(settings_of(agent, task)))
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    changes = {key: draw(value_for(agent, task, key)) for key in chosen}
    if draw(st.integers(0, 30)) == 0:
        changes[draw(st.one_of(TEXT, names.map(lambda name: name[:-1])))] = draw(SCALAR)
    return Case(route, agent, task, changes)


class Section(dict):
    """A section that dotted keys make, unlike a dictionary that is a value."""


def nested(changes: Mapping[str, Any]) -> Section:
    """Return dotted keys as nested sections; a key below one that has a value is left out."""
    tree = Section()
    for key in sorted(changes):
        *sections, name = key.split(".")
        place: Any = tree
        for section in sections:
            place = place.setdefault(section, Section()) if isinstance(place, Section) else None
        if isinstance(place, Section):
            place[name] = changes[key]
    return tree


def construct(kind: type, values: Section, default: Any) -> Any:
    """Build a dataclass as a Python program does, sections by their own classes."""
    arguments = {}
    for name, value in values.items():
        part = getattr(default, name)
        arguments[name] = (
            construct(type(part), value, part) if isinstance(value, Section) else value
        )
    return kind(**arguments)


def configuration(case: Case, folder: Path) -> TrainConfig:
    """Return the settings of a case.

    Raises:
        ConfigError: they are refused.
    """
    if case.route == "Python":
        default = config_from_plain({"agent": case.agent, "task": case.task})
        known = {k: v for k, v in case.changes.items() if k in leaves(default)}
        values = nested({"agent": case.agent, "task": case.task} | known)
        return construct(TrainConfig, values, default)
    if case.route == "command line":
        given = [f"{key}={as_text(value)}" for key, value in case.changes.items()]
        config, _, _ = load_config(agent=case.agent, task=case.task, overrides=given)
        return config
    file = folder / "settings.yaml"
    if case.route == "published JSON":
        whole = {"agent_type": "DQN", "total_timesteps": 1000, "training_schedule": {}}
        file.write_text(json.dumps({**whole, **case.changes}, default=str))
    else:
        head = {"agent": case.agent, "task": case.task}
        file.write_text(yaml.dump(head | nested(case.changes), Dumper=Dumper, allow_unicode=True))
    config, _, _ = load_config(path=file)
    return config


class Dumper(yaml.SafeDumper):
    """Writes sections as the mappings they are."""


Dumper.add_representer(Section, yaml.SafeDumper.represent_dict)


def as_text(value: Any) -> str:
    """Return a value as one writes it on a command line."""
    if isinstance(value, str):
        return value
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()


def same(given: Any, held: Any) -> bool:
    """Whether a setting holds what it was given."""
    if dataclasses.is_dataclass(held):
        if isinstance(given, Mapping):
            return all(same(value, getattr(held, key)) for key, value in given.items())
        if not isinstance(given, list | tuple):
            return False
        given, held = list(given), [getattr(held, f.name) for f in dataclasses.fields(held)]
    if isinstance(held, tuple | list):
        entries = given if isinstance(given, tuple | list) else [given]
        return len(entries) == len(held) and all(map(same, entries, held))
    if isinstance(given, bool) or isinstance(held, bool) or not isinstance(given, int | float):
        return type(given) is type(held) and given == held
    return isinstance(held, int | float) and given == held


def held(config: Any, key: str) -> Any:
    """Return the setting of a dotted name."""
    return functools.reduce(getattr, key.split("."), config)


def changed_silently(case: Case, config: TrainConfig) -> str | None:
    """Return what an accepted configuration holds other than given; None if nothing."""
    if config_from_plain(plain(config)) != config:
        return "another configuration when read back"
    if case.route == "published JSON":
        return None
    known = leaves(config)
    for key, value in case.changes.items():
        # Text is YAML there; in a file what PyYAML writes bare (1e3) may read as a number.
        parsed = case.route == "command line" and isinstance(value, dict | list)
        parsed |= case.route in ("command line", "file") and isinstance(value, str)
        default = value is None and dataclasses.is_dataclass(known.get(key, (None,) * 3)[2])
        within = any(key.startswith(f"{other}.") for other in case.changes)
        if key not in known or parsed or default or within or "${" in str(value):
            continue
        first = value[0] if key == "seed" and isinstance(value, list) and value else value
        if not same(first, held(config, key)):
            return f"{key} is {held(config, key)!r}"
    return None


def is_clear(message: str, case: Case) -> bool:
    """Whether a message names a setting, and what to do about it."""
    names = {key.rpartition(".")[2] for key in settings_of(case.agent, case.task)}
    names |= {*PUBLISHED_KEYS, *case.changes, "settings.yaml", "output", "no setting"}
    return ":" in message and any(name in message for name in names if name)


def judge(case: Case, folder: Path, trains: bool) -> Outcome:
    """Try a configuration."""
    try:
        config = configuration(case, folder)
        wrong = changed_silently(case, config)
        if wrong:
            return Outcome(SILENT, wrong)
        if trains:
            train_a_moment(config, folder)
    except (ConfigError, RefusedError) as error:
        return Outcome(ERROR if is_clear(str(error), case) else UNCLEAR, str(error))
    return Outcome(ACCEPTED)


def train_a_moment(config: TrainConfig, folder: Path) -> None:
    """Train with a configuration that was accepted.

    Raises:
        RefusedError: it is refused after all.
    """
    file = folder / "accepted.yaml"
    file.write_text(yaml.safe_dump(plain(config)))
    with tempfile.TemporaryDirectory(dir=folder) as output:
        overrides = [f"{key}={value}" for key, value in EFFORT.items()]
        call(train.main, "--config", str(file), "--output", f"{output}/run", *overrides)


def play(player: Player, seed: int, batch: int, count: int, train_every: int, folder: Path) -> None:
    """Play a batch of configurations.

    Args:
        player: plays them.
        seed: of all batches.
        batch: number of this one.
        count: cases in it.
        train_every: one in so many of those accepted is trained with.
        folder: for files.
    """
    number = itertools.count()

    @seeded(hash((seed, batch)))
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def one(case: Case) -> None:
        trains = next(number) % train_every == 0 and case.route == "file"
        player.play(str(case), lambda: judge(case, folder, trains))

    one()


def prepare() -> None:
    """Look up all settings, once for all workers."""
    for pair in itertools.product(AGENTS, TASKS):
        for key in settings_of(*pair):
            value_for(*pair, key)
