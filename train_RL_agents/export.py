"""Exports a policy: ``python train_RL_agents/export.py --checkpoint PATH --format torchscript``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.fields import ConfigError, plain
from marinenav_env.files import write_atomically
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.commands.options import (
    SETTINGS_HELP,
    add_config_option,
    env_given,
    read_shield,
    split_settings,
    with_true_hulls,
)
from train_RL_agents.commands.parser import Parser, tells
from train_RL_agents.commands.vessel_notes import tell_of_vessel
from train_RL_agents.config.build import LoadedPolicy, spec_of
from train_RL_agents.config.shipped import find_shipped
from train_RL_agents.policies.formats import FORMATS, Format
from train_RL_agents.policies.interface import (
    acting_network,
    call,
    call_inputs,
    describe,
    joined,
    simulated_observation,
)
from train_RL_agents.policies.load import read_policy
from train_RL_agents.policies.seal import checksum
from train_RL_agents.policies.shield.core_rollout import CoreRollout
from train_RL_agents.policies.shield.deployed import shielded_network
from train_RL_agents.policies.shield.torch_rollout import TorchRollout
from train_RL_agents.policies.torchscript import ScriptedNetwork
from train_RL_agents.run.checkpoint import CheckpointError

RANDOM_OBSERVATIONS = 256
VESSEL_HELP = (
    "With env.vessel=NAME the file tells the rates of that vessel, and a shield inside knows it."
)
EITHER_WAY = 0.01
"""Share of the observations in which a float32 file with a shield may act otherwise than float64:
where two plans are as good as each other, or one is safe by less than the rounding."""


class ExportError(RuntimeError):
    """A policy cannot be exported; the message says why and what to do."""


class Deviation(NamedTuple):
    """How a file differs from the checkpoint.

    Attributes:
        largest: of an output, divided by max(1, |x|), but for `otherwise`.
        otherwise: observations in which a shield in float32 takes another plan.
        observations: that were compared.
    """

    largest: float
    otherwise: int
    observations: int


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(description=f"Export a policy for use outside. {SETTINGS_HELP} {VESSEL_HELP}")
    parser.add_argument(
        "--checkpoint",
        required=True,
        metavar="PATH",
        type=Path,
        help="export this policy: a run's folder, a checkpoint, a folder of pretrained/, or "
        "published weights",
    )
    parser.add_argument("--format", required=True, choices=FORMATS, help="write this format")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="missing folders are made; left out: "
        + " or ".join(f"policy{form.suffix}" for form in FORMATS.values())
        + " inside a folder given as --checkpoint, and beside a file, under its name; in the "
        "present folder for a policy that comes with an installation",
    )
    parser.add_argument(
        "--shield",
        nargs="*",
        metavar="KEY=VALUE",
        help="put a shield inside, with these settings where given (docs/shield.md); the file is "
        "called as without",
    )
    add_config_option(parser, "env")
    rest, settings = split_settings(arguments)
    namespace = parser.parse_args(rest)
    namespace.settings = settings
    return namespace


def export(
    checkpoint: Path,
    form: Format,
    output: Path,
    shield: ShieldConfig | None = None,
    settings: Sequence[str] = (),
    config: str | None = None,
) -> tuple[LoadedPolicy, Deviation]:
    """Export a policy, after a check against the checkpoint on random and simulated observations.

    Args:
        checkpoint: what `read_policy` takes.
        form: format of the file.
        output: the file; it is replaced in one step, or not touched. Missing folders are made.
        shield: of a shield inside the file; None puts none there.
        settings: ``env.KEY=VALUE``, of the vessel that the policy is to steer.
        config: a file of settings whose ``env`` comes before them.

    Returns:
        The policy, and how the file differs from the checkpoint in float64.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
        ExportError: the policy is an export already, or the format cannot hold it, or the file is
            named as one of another format or cannot be written, or its network does not give what
            the checkpoint gives.
        ConfigError: the shield cannot guard the policy, or a share of a batch in this format; or a
            setting is unknown or wrong.
    """
    if output.is_dir():
        raise ExportError(f"--output {str(output)!r} is a folder: give the name of a file")
    policy = read_policy(checkpoint)
    if isinstance(policy.agent.actor, ScriptedNetwork):
        raise ExportError(f"{checkpoint} is an export already: give the checkpoint it was made of")
    if settings or config:
        policy = for_vessel(policy, settings, config)
    keys = policy.agent.spec.observation.keys
    if form.parts not in (None, len(keys)):
        raise ExportError(
            f"{checkpoint} observes {', '.join(keys)}: --format torchscript is for the planners of "
            f"vessels, which observe {form.parts} tensors; give --format onnx"
        )
    check_ending(output, form)
    if shield is not None and form.traced and shield.planned_share < 1.0:
        raise ConfigError(
            f"planned_share is {shield.planned_share}: in such a file as many vessels would be "
            "planned for, whatever the batch; give planned_share=1, or --format torchscript"
        )
    content, deviation = exported(policy, form, shield)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(output, lambda file: file.write(content))
    except OSError as error:
        raise ExportError(f"--output {str(output)!r} cannot be written: {error}") from error
    return policy, deviation


def for_vessel(
    policy: LoadedPolicy, settings: Sequence[str], file: str | None = None
) -> LoadedPolicy:
    """Return a policy that steers another vessel, or knows other waters, with its networks.

    Its file says what actions mean there, and a shield inside plans with that vessel.

    Raises:
        ConfigError: a setting is unknown or wrong.
    """
    config = with_true_hulls(policy.config)
    env = env_given(config, settings, file)
    config = dataclasses.replace(config, env=env)
    tell_of_vessel(env)
    policy.agent.spec = spec_of(config)
    return policy._replace(config=config)


def check_ending(output: Path, form: Format) -> None:
    """Check that a file is not named as one of another format.

    Raises:
        ExportError: it is.
    """
    ending = output.suffix.lower()
    for name, other in FORMATS.items():
        if ending and other is not form and other.suffix.endswith(ending):
            raise ExportError(
                f"--output {str(output)!r} ends as --format {name} does: give {form.suffix}, or "
                f"--format {name}"
            )


@torch.no_grad()
def exported(
    policy: LoadedPolicy, form: Format, shield: ShieldConfig | None = None
) -> tuple[bytes, Deviation]:
    """Return the content of the file and how it differs, as `export` does.

    The file's shield looks ahead with torch, the one it is compared with in the core.

    Raises:
        ConfigError: the shield cannot guard the policy.
        ExportError: the file's network does not give what the checkpoint gives.
    """
    agent = policy.agent
    generator = torch.Generator().manual_seed(0)
    drawn = agent.spec.observation.draw(RANDOM_OBSERVATIONS, generator)
    observation = joined([drawn, simulated_observation(policy)])
    exact, parts = call_inputs(agent, observation, torch.float64), len(observation)
    known, network = (acting_network(agent, dtype) for dtype in (torch.float64, form.dtype))
    if shield is not None:
        known = shielded_network(policy, known, shield, CoreRollout)
        network = shielded_network(policy, network, shield, TorchRollout)
    expected = call(known, exact, parts)
    inputs = [part.to(form.dtype) for part in exact]
    description = describe(policy, [part[:1] for part in expected], form.dtype)
    example = [part[:2].contiguous() for part in inputs]
    if shield is not None:
        description["shield"] = plain(shield)
    content = form.write(network, example, parts, description)
    model = form.read(content, parts)
    found = model(inputs)
    alone = deviations(model([part[:1] for part in inputs]), [part[:1] for part in found])
    rounded = shield is not None and form.dtype == torch.float32
    either_way = EITHER_WAY if rounded else 0.0
    deviation = judged(torch.cat((deviations(found, expected), alone)), form.tolerance, either_way)
    if not deviation.largest <= form.tolerance:
        raise ExportError(
            f"the exported {agent.name} is off by {deviation.largest:.1e} times max(1, |x|), more "
            f"than {form.tolerance:.0e}: look for weights that are not finite"
            + (f", or in more than {EITHER_WAY:.0%} of the decisions plans tie" if rounded else "")
        )
    return content, deviation


def deviations(found: Sequence[Tensor], expected: Sequence[Tensor]) -> Tensor:
    """Return the largest |found - expected| / max(1, |expected|) of each row."""
    shares = [
        ((a.double() - b.double()).abs() / b.double().abs().clamp(min=1.0)).flatten(1).amax(1)
        for a, b in zip(found, expected, strict=True)
    ]
    return torch.stack(shares).amax(0)


def judged(rows: Tensor, tolerance: float, either_way: float) -> Deviation:
    """Return how a file differs, by the deviations of rows; a share of them may be any number."""
    within = rows <= tolerance
    otherwise = len(rows) - int(within.sum())
    if otherwise > either_way * len(rows) or not rows.isfinite().all():
        within = torch.ones_like(within)
    return Deviation(rows[within].max().item(), otherwise, len(rows))


def default_output(checkpoint: Path, form: Format) -> Path:
    """Return the place beside a file, under its name, or inside a folder.

    For a policy that is not there, but comes with the packages, a file in the present folder.
    """
    if find_shipped(checkpoint) != checkpoint:
        return Path(f"policy{form.suffix}")
    if checkpoint.is_dir():
        return checkpoint / f"policy{form.suffix}"
    return checkpoint.with_name(checkpoint.stem + form.suffix)


@tells(CheckpointError, ExportError, ConfigError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    form = FORMATS[parsed.format]
    output = parsed.output or default_output(parsed.checkpoint, form)
    shield = read_shield(parsed.shield)
    policy, deviation = export(
        parsed.checkpoint, form, output, shield, parsed.settings, parsed.config
    )
    digest = checksum(output.read_bytes())
    others = ""
    if deviation.otherwise:
        others = f", but for {deviation.otherwise} of {deviation.observations} decisions"
    print(
        f"{output}: {policy.agent.name}, {'' if shield is None else 'shielded, '}"
        f"{parsed.format}, off by at most {deviation.largest:.1e} from {policy.origin['file']}"
        f"{others}, sha256 {digest}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
