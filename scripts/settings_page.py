"""Writes docs/settings.md: every setting of a training, from the code that defines them.

A setting's unit, source and bounds are those of its field, its meaning the string below it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import math
import sys
import textwrap
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from marinenav_env.envs.make import VESSEL_TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import Settings
from train_RL_agents.agents.lookahead_settings import LookaheadConfig
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.agents.settings import AgentConfig
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.commands.parser import Parser
from train_RL_agents.config.files import CONFIGS
from train_RL_agents.config.schema import TrainConfig

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
HEAD = """# Settings

Every setting of a training, written by `python scripts/settings_page.py` from the code.

All are `key=value` on the command line of `train.py`, and keys of the YAML files for `--config` and
of those in `configs/`. The defaults here come first. [The files of the task and of the
algorithm](#tasks-and-algorithms) in `configs/`, a preset, a file and the command line follow, and
later ones win. `run.json` in a run's folder has what came of it. A source says where a value comes
from: *this project* is a choice, a page of `docs/` a measurement.

The simulator's settings, `env`, are with what they do: those of [marine](physics.md#parameters),
[ICRA 2024](icra2024.md) and the [classic tasks](classic.md).
"""


def meanings_of(kind: type) -> dict[str, str]:
    """Return the strings below the fields of a dataclass and of its bases, on one line each."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(body, ast.ClassDef)
        for line, following in zip(body.body, body.body[1:], strict=False):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                text = following.value if isinstance(following, ast.Expr) else None
                if isinstance(text, ast.Constant):
                    words = str(text.value).replace("``", "`").split()
                    meanings[line.target.id] = " ".join(words)
    return meanings


def shown(value: Any) -> str:
    """Return a value as a setting's text."""
    if isinstance(value, Stage):
        return shown(dataclasses.astuple(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def allowed(metadata: Mapping[str, Any]) -> str:
    """Return what a field may hold, in words."""
    if metadata["choices"]:
        return ", ".join(map(shown, metadata["choices"]))
    low, high, above = metadata["low"], metadata["high"], metadata["above"]
    if math.isfinite(low) and math.isfinite(high):
        return f"{low:g} to {high:g}"
    least = f"at least {low:g}" if math.isfinite(low) else ""
    least = f"above {above:g}" if math.isfinite(above) else least
    most = f"at most {high:g}" if math.isfinite(high) else ""
    return ", ".join(filter(None, (least, most)))


def table(kind: type, prefix: str, names: Collection[str]) -> str:
    """Return the table of some settings of a section."""
    meanings = meanings_of(kind)
    rows = ["| setting | default | values | unit | what it is | source |", "|" + "---|" * 6]
    for field in dataclasses.fields(kind):
        if field.metadata and field.name in names:
            cells = (
                f"`{prefix}{field.name}`",
                "" if field.default == "" else f"`{shown(field.default)}`",
                allowed(field.metadata),
                field.metadata["unit"],
                meanings.get(field.name, ""),
                field.metadata["source"],
            )
            rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(rows)


def own(kind: type) -> Collection[str]:
    """Return the names of the fields that a dataclass itself declares."""
    return inspect.get_annotations(kind)


def section(title: str, kind: type, prefix: str, names: Collection[str]) -> str:
    """Return a section of the page; empty if it has no setting."""
    rows = table(kind, prefix, names)
    text = inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:")[0].replace("``", "`")
    return f"## {title}\n\n{text}\n\n{rows}" if "`" in rows else ""


def algorithm_sections() -> list[str]:
    """Return the sections of `algorithm`: what algorithms share, then what each has alone."""
    users: dict[type[Settings], list[str]] = {}
    for name, agent in AGENTS.items():
        for base in reversed(agent.Config.__mro__):
            if issubclass(base, AgentConfig):
                users.setdefault(base, []).append(name)

    def of(names: list[str]) -> str:
        return "whichever it is" if len(names) == len(AGENTS) else f"of {', '.join(names)}"

    shared = sorted(users, key=lambda kind: -len(users[kind]))
    return [
        section(f"`algorithm`, {of(users[kind])}", kind, "algorithm.", own(kind)) for kind in shared
    ]


def files_section() -> str:
    """Return the section of what the files of tasks and algorithms change without being named."""
    rows = ["| of | settings |", "|---|---|"]
    for name in (*VESSEL_TASKS, *AGENTS):
        path = CONFIGS / f"{name.lower().replace('-', '_')}.yaml"
        values = yaml.safe_load(path.read_text()) if path.is_file() else {}
        changed = flattened({key: value for key, value in values.items() if key != "agent"})
        if changed:
            cells = ", ".join(f"`{key}={shown(value)}`" for key, value in changed.items())
            rows.append(f"| {name} | {cells} |")
    text = textwrap.dedent("""\
        What these files of `configs/` say holds wherever a training names nothing else: the first
        rows for the task, the others for the algorithm. So a plain AC-IQN of the task `marine` acts
        for the worse half of the returns, on features of relative motion, and trains with larger
        hulls. Each of the classic tasks has such a file, too.""")
    return "\n\n".join(["## Tasks and algorithms", text, "\n".join(rows)])


def flattened(values: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{within}{key}.")
        else:
            flat[f"{within}{key}"] = tuple(value) if isinstance(value, list) else value
    return flat


def page() -> str:
    """Return the page."""
    kinds = typing.get_type_hints(TrainConfig)
    nested = {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, Settings)
    }
    sections = [
        files_section(),
        section("The run", TrainConfig, "", own(TrainConfig) - nested.keys()),
    ]
    for name, kind in nested.items():
        if name == "algorithm":
            sections += algorithm_sections()
            sections.append(
                section(
                    "`algorithm.shield` of DAgger",
                    ShieldConfig,
                    "algorithm.shield.",
                    own(ShieldConfig),
                )
            )
            sections.append(
                section(
                    "`algorithm.lookahead` of DPI",
                    LookaheadConfig,
                    "algorithm.lookahead.",
                    own(LookaheadConfig),
                )
            )
        elif name != "env":
            sections.append(section(f"`{name}`", kind, f"{name}.", own(kind)))
    return "\n\n".join([HEAD.strip(), *filter(None, sections)]) + "\n"


def main() -> int:
    """Write the page."""
    Parser(description=__doc__.splitlines()[0]).parse_args()
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
