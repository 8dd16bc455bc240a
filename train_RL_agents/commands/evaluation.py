"""What ``evaluate.py`` does with one policy."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from rich.console import Console

from marinenav_env.envs.make import VESSEL_TASKS
from marinenav_env.fields import ConfigError
from train_RL_agents.commands.options import (
    groups_in,
    read_shield,
    scenarios_given,
    with_true_hulls,
    with_world_options,
)
from train_RL_agents.commands.traffic import traffic_for
from train_RL_agents.commands.vessel_notes import as_setting, tell_of_vessel
from train_RL_agents.config.build import spec_of
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.placement import choose_device
from train_RL_agents.evaluation.against import compare, print_comparison
from train_RL_agents.evaluation.baselines.registry import Actor, Baseline, let_steer
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.report.evaluated import Evaluated
from train_RL_agents.evaluation.results import table_as_json
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation, ScenarioResults
from train_RL_agents.evaluation.steering import Policy
from train_RL_agents.evaluation.table import print_scenarios, print_table
from train_RL_agents.metrics.progress import bar
from train_RL_agents.policies.load import NAMED, load_policy, read_policy
from train_RL_agents.policies.shield.acting import (
    ShieldedPolicy,
    describe_report,
    has_shield_inside,
    settings_in,
    shield_agent,
)

EPISODES = 100
"""Episodes of each stage where the command line names no number."""

Results = list[Any] | ScenarioResults


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluatedPolicy(Evaluated):
    """One policy of the command line after its evaluation as deployed.

    Attributes:
        agent: the policy.
        act: how it acted, its shield included.
        by_mean: the results and what its shield did with its mean actions, if it samples them.
    """

    agent: Actor
    act: Policy
    by_mean: tuple[Results, dict[str, Any] | None] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the tables as other programs read them."""
        by_mean = as_json(*self.by_mean) if self.by_mean else {}
        named = {f"{key}_mean_actions": value for key, value in by_mean.items()}
        return as_json(self.results, self.shield) | named


def as_json(results: Results, shield: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the tables, and what a shield did, as other programs read them."""
    guarded = {"shield": shield} if shield else {}
    if isinstance(results, ScenarioResults):
        return results.as_json() | guarded
    return table_as_json(results) | guarded


def print_results(results: Results, title: str, console: Console) -> None:
    """Print the tables of stages or scenarios."""
    if isinstance(results, ScenarioResults):
        print_scenarios(results, title, console)
    else:
        print_table(results, title, console)


def evaluation_for(
    arguments: argparse.Namespace, agent: Actor, config: TrainConfig
) -> Evaluation | ScenarioEvaluation:
    """Return the evaluation that the command line asks for.

    Args:
        arguments: the command line.
        agent: what is evaluated.
        config: gives the stages, the environment and the observation's frames.

    Raises:
        ConfigError: there is no such scenario, or it cannot be played.
        ConfigError: a classical controller cannot steer the vessel.
        ConfigError: the traffic cannot be steered.
    """
    if config.task in VESSEL_TASKS:
        let_steer(agent, config.env.vessel)
    count, seed = arguments.episodes, arguments.seed
    if not arguments.scenario:
        episodes = (count or EPISODES,) * len(config.evaluation.stages)
        traffic = traffic_for(arguments, agent, config) if arguments.traffic else None
        return Evaluation.of_agent(agent, config, episodes, seed=seed, traffic=traffic)
    scenarios = scenarios_given(arguments)
    return ScenarioEvaluation.of_agent(agent, config, scenarios, count, seed=seed)


def check_together(arguments: argparse.Namespace) -> None:
    """Check, before any work, that all policies can act in the worlds of the first.

    Raises:
        CheckpointError: a policy is missing, damaged or of an unknown kind.
        ConfigError: a policy is of another task than the first, its actions mean something else
            there, or it is a classical controller that cannot steer the vessel.
        ConfigError: an option knows the task not, or the traffic cannot be steered.
        ConfigError: a policy does not act by the risk level, or the shield cannot guard it.
    """
    paths = [*arguments.checkpoint, *([arguments.against] if arguments.against else [])]
    read = {path: _read(path, arguments)[:2] for path in paths}
    first = paths[0]
    worlds = read[first][1]
    task = worlds.task
    tell_of_vessel(worlds.env)
    remedy = "policies that are compared meet the same worlds; evaluate them apart"
    for path, (agent, config) in read.items():
        if config.task != task:
            raise ConfigError(
                f"task of {path} is {config.task!r}, that of {first} {task!r}: {remedy}"
            )
        met = in_worlds_of(config, worlds)
        if not isinstance(agent, Baseline) and spec_of(config).action != spec_of(met).action:
            raise ConfigError(
                f"{path} steers otherwise than {first}, whose actions mean something else: {remedy}"
                f", or give all one vessel, as that of {first}: {as_setting(worlds.env.vessel)}"
            )
        if task in VESSEL_TASKS:
            let_steer(agent, worlds.env.vessel)
        if arguments.traffic:
            traffic_for(arguments, agent, met)
        if path in arguments.checkpoint:  # that of --against acts as it is
            agent.act_under(**risk_given(arguments))
            guard_for(arguments, agent, met)(agent.act)
    if arguments.report and task != "marine":
        raise ConfigError(f"task is {task!r}: --report knows the vessels of 'marine' only")
    for option in ("figure", "against"):
        if getattr(arguments, option) and task not in VESSEL_TASKS:
            raise ConfigError(f"task is {task!r}, which has no vessels: leave --{option} out")


def risk_given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the risk level of the command line, as `act_under` takes it."""
    given = {"cvar": arguments.cvar, "adaptive_cvar": arguments.adaptive_cvar}
    return {name: value for name, value in given.items() if value is not None}


def guard_for(
    arguments: argparse.Namespace, agent: Actor, config: TrainConfig
) -> Callable[[Policy], Policy]:
    """Return what puts a way of acting of an agent behind the shield of the command line, if any.

    Raises:
        ConfigError: a setting of the shield is unknown or wrong, or, once called, it cannot guard
            the policy.
    """
    shield = read_shield(arguments.shield)
    if shield is None:
        return lambda act: act
    if arguments.scenario:
        config = settings_in(config, scenarios_given(arguments))
    return lambda act: shield_agent(agent, config, shield, act)


def in_worlds_of(config: TrainConfig, other: TrainConfig) -> TrainConfig:
    """Return the settings of a policy in the environment and the stages of another one."""
    true = with_true_hulls(config)
    return dataclasses.replace(true, env=other.env, evaluation=other.evaluation)


def played(
    evaluation: Evaluation | ScenarioEvaluation,
    act: Policy,
    title: str,
    recording: Recording | None = None,
) -> Results:
    """Run an evaluation with a bar of the episodes that have ended."""
    with bar(
        total=evaluation.worlds, desc=title, unit="episode", leave=False, delay=5.0
    ) as progress:
        return evaluation.run(act, recording, progress.update)


def evaluate(
    arguments: argparse.Namespace,
    path: str,
    console: Console,
    worlds: TrainConfig | None = None,
) -> EvaluatedPolicy:
    """Evaluate the policy at ``path`` as deployed, and print the table.

    A policy that samples its actions is evaluated with its mean actions too, in a second table.

    Args:
        arguments: the command line.
        path: of the policy.
        console: takes the tables.
        worlds: of the policy whose worlds it meets; None for its own.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
        ConfigError: the device is not there.
        ConfigError: a risk level is out of its bounds, or does not enter when the agent acts.
        ConfigError: a setting of the shield is unknown or wrong, or it cannot guard the policy.
        ConfigError: there is no such scenario, or it cannot be played.
    """
    agent, config, origin = _read(path, arguments)
    if worlds is not None:
        config = in_worlds_of(config, worlds)
    risk = risk_given(arguments)
    agent.act_under(**risk)
    evaluation = evaluation_for(arguments, agent, config)
    guarded = guard_for(arguments, agent, config)
    known = [f"{key} {value}" for key, value in origin.items() if value is not None]
    known += ["in the worlds of the first"] if worlds else []
    described = f"{path}: {', '.join([agent.name, *known])}"
    console.print(described, markup=False, highlight=False, soft_wrap=True)

    def run(
        act: Policy, title: str, recording: Recording | None = None
    ) -> tuple[Results, dict[str, Any] | None]:
        results = played(evaluation, act, title, recording)
        print_results(results, title, console)
        if not isinstance(act, ShieldedPolicy):
            return results, None
        report = act.report()
        console.print(describe_report(report))
        return results, report

    title = f"{agent.name}, episodes of seed {arguments.seed}"
    title += "".join(f", {name} {value}" for name, value in risk.items())
    title += f", every other vessel by {arguments.traffic}" if arguments.traffic else ""
    title += f", {arguments.config}" if arguments.config else ""
    title += "".join(f", {setting}" for setting in arguments.settings)
    recording = Recording()
    act = guarded(agent.act)
    results, shielded = run(act, title, recording if arguments.report else None)
    by_mean = None
    if agent.stochastic and not has_shield_inside(agent):  # such a file acts by its mean
        by_mean = run(guarded(functools.partial(agent.act, mean=True)), f"{title}, mean actions")
    name = f"{path}, shielded" if arguments.shield is not None else path
    return EvaluatedPolicy(
        name=name,
        config=config,
        results=results,
        recording=recording,
        shield=shielded,
        agent=agent,
        act=act,
        by_mean=by_mean,
    )


def _read(path: str, arguments: argparse.Namespace) -> tuple[Actor, TrainConfig, dict[str, Any]]:
    """Return a policy, its settings with what the command line changes, and its known origin.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
        ConfigError: a setting is unknown or wrong, or one that evaluations have their own value of.
    """
    if "episode" in groups_in(arguments.settings):
        raise ConfigError(
            f"env.episode is given in {' '.join(arguments.settings)!r}: evaluations end episodes "
            "as their task has it (docs/evaluation.md); leave it out"
        )
    device = choose_device(arguments.device)
    origin: dict[str, Any] = {}
    agent: Actor
    if path.startswith(NAMED):
        agent, config = load_policy(path, device)
    else:
        agent, config, origin, _ = read_policy(path, device)
    return agent, with_world_options(with_true_hulls(config), arguments), origin


def evaluate_against(
    arguments: argparse.Namespace, first: EvaluatedPolicy, console: Console
) -> dict[str, Any]:
    """Evaluate another policy in the worlds of the first; print and return the differences.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
    """
    other, other_config = load_policy(arguments.against, choose_device(arguments.device))
    config = in_worlds_of(other_config, first.config)
    others = played(evaluation_for(arguments, other, config), other.act, arguments.against)
    print_results(others, f"{other.name}, the same episodes", console)
    rows, other_rows = (
        part.rows if isinstance(part, ScenarioResults) else part for part in (first.results, others)
    )
    compared = [compare(one, another) for one, another in zip(rows, other_rows, strict=True)]
    print_comparison(rows, compared, arguments.against, console)
    return {"checkpoint": arguments.against, "paired": compared, **as_json(others)}
