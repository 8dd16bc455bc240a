"""``--traffic``: what steers the vessels that the policy of the command line does not."""

from __future__ import annotations

import argparse
from pathlib import Path

from marinenav_env.episodes.schema import POLICY
from marinenav_env.fields import ConfigError
from train_RL_agents.commands.options import with_true_hulls, with_world_options
from train_RL_agents.config.build import spec_of
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.baselines.registry import Actor
from train_RL_agents.evaluation.steering import CONTROLLERS, Policy, traffic_policy
from train_RL_agents.policies.load import load_policy


def add_traffic_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--traffic``."""
    parser.add_argument(
        "--traffic",
        metavar="CONTROLLER",
        help="let a controller steer every other vessel of the stages: goal-straight, which minds "
        "nobody, another one as `steer` of a scenario, or another policy by its path "
        "(docs/evaluation.md)",
    )


def check_traffic_option(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Refuse ``--traffic`` beside ``--scenario``; a wrong command line ends the program."""
    if given.traffic and given.scenario:
        parser.error("--traffic goes with stages: a scenario says itself what steers its vessels")


def traffic_name(arguments: argparse.Namespace) -> str:
    """Return what steers the traffic as episode files say it: a controller, or which policy."""
    name = arguments.traffic
    return name if name in CONTROLLERS else f"{POLICY} {name}"


def traffic_for(arguments: argparse.Namespace, agent: Actor, config: TrainConfig) -> Policy:
    """Return what steers the vessels that the evaluated policy does not.

    Args:
        arguments: ``traffic`` is a controller, as a vessel of a scenario has it under ``steer``, or
            the path of another policy, which acts as deployed; and the world options.
        agent: what is evaluated.
        config: of its worlds.

    Raises:
        CheckpointError: the policy is damaged or of an unknown kind.
        ConfigError: the task has no vessels to steer, the controller cannot steer this one, or
            the policy sees or steers otherwise.
    """
    name = arguments.traffic
    if name not in CONTROLLERS and not Path(name).exists():
        raise ConfigError(
            f"traffic is {name!r}, which is no file: choose one of {', '.join(CONTROLLERS)}, or "
            "give the path of a policy"
        )
    if name in CONTROLLERS:
        return traffic_policy(name, config.env, discrete=agent.discrete, device=agent.device)
    other, own = load_policy(name, agent.device)
    own = with_world_options(with_true_hulls(own), arguments)
    seen = (own.task, own.stack_k, spec_of(own).action)
    if seen != (config.task, config.stack_k, spec_of(config).action):
        raise ConfigError(
            f"traffic is {name!r}, a policy of another task, number of frames or meaning of actions"
            " than the one evaluated: give one that sees and steers alike"
        )
    return other.act
