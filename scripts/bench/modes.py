"""Measures one row of the benchmark: the simulator alone, or with a policy.

A row is measured after a warm-up, in several repeats, whose median counts. Robot-steps are those of
active robots only, as the simulator itself counts them.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from marinenav_env.config import TaskConfig, ThrustTaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import plain, require
from marinenav_env.kernel import ops
from marinenav_env.stepper import Stepper
from scripts.bench.disturbances import env_of
from scripts.bench.machine import Memory, release_memory, timed
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.commands.options import env_with
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import CurriculumConfig, TrainConfig
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS, CapturedStep
from train_RL_agents.evaluation.baselines.registry import Baseline, check_hull
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import shield_agent

RESETS = ("none", "natural", "every")
PREPARED_ACTIONS = 8
# Without resets, worlds are placed anew before a repeat that lasts no longer, so that most robots
# are still on their way at its end.
NO_RESET_DECISIONS = 32


class Effort(NamedTuple):
    """How long to measure: repeats of a row, and the length of one [s]."""

    repeats: int
    seconds: float


@dataclass(frozen=True)
class Case:
    """What a row measures.

    Attributes:
        mode: step, inference or train.
        device: where.
        worlds: W.
        robots: of every world.
        buoys: of every world.
        vortices: of every world.
        min_distance_m: from start to goal [m].
        settings: ``env.KEY=VALUE`` of the worlds.
        disturbances: on top of them, one of `scripts.bench.disturbances.DISTURBANCES`.
        resets: none, natural (worlds whose episode has ended) or every (all worlds, every step).
        agent: of inference and training; of inference also what `load_policy` takes.
        shield: settings of the shield around a loaded policy, None for no shield.
        task: the environment.
        samples_per_insert: gradient samples per stored robot transition.
        batch_size: of an update.
        skip_reset_if_empty: as in `MarineNavEnv`.
        turns: decisions in one launch.
    """

    mode: str
    device: torch.device
    worlds: int
    robots: int = 5
    buoys: int = 4
    vortices: int = 0
    min_distance_m: float = 40.0
    settings: tuple[str, ...] = ()
    disturbances: str = "off"
    resets: str = "natural"
    agent: str | None = None
    shield: ShieldConfig | None = None
    task: str = "marine"
    samples_per_insert: float | None = None
    batch_size: int | None = None
    skip_reset_if_empty: bool = True
    turns: int = 1

    @property
    def stage(self) -> Stage:
        """The scenario of every world."""
        return Stage(self.robots, self.vortices, self.buoys, self.min_distance_m)

    @property
    def env(self) -> TaskConfig:
        """The environment of the simulator alone and of policies."""
        return env_of(self.task, self.settings, self.disturbances)

    def agent_config(self, overrides: Sequence[str] = ()) -> TrainConfig:
        """Return the agent's own settings, with overrides, in the worlds of the case."""
        config, _, _ = load_config(task=self.task, agent=self.agent, overrides=overrides)
        return dataclasses.replace(
            config,
            env=env_with(self.settings, self.task, config.env),
            curriculum=CurriculumConfig(stages=(self.stage,)),
        )


class Repeat(NamedTuple):
    """One timed stretch."""

    seconds: float
    cpu_seconds: float  # of all threads of this process
    robot_steps: int
    decisions: int  # of each world


def stagger(env: KernelEnv) -> None:
    """Count the episodes as begun at different times, so that their limits fall apart."""
    step = env.state.world_field("step")
    step.copy_(torch.randint_like(step, env.config.episode.max_steps))


def fixed_kind(task: str) -> bool:
    """Whether random actions are indices: only where a task takes no numbers."""
    return ops.describe(task).continuous == 0


def random_actions(env: KernelEnv, count: int) -> torch.Tensor:
    """Return so many sets of actions of all robots, [count, W, R] or [count, W, R, n]."""
    like = env.make_action()
    shape = (count, *like.shape)
    if env.discrete:
        return torch.randint(env.kernel_spec.discrete, shape, device=env.device)
    return 2 * torch.rand(shape, device=env.device) - 1


class Chooser(NamedTuple):
    """A policy: whether its actions are indices, the frames it observes, and what acts."""

    discrete: bool
    stack_k: int
    act: Callable[[Any], torch.Tensor]


def chooser_of(case: Case) -> Chooser | None:
    """Return the policy of a case, if it has one.

    Raises:
        CheckpointError: there is no such policy.
        ConfigError: there is no such baseline, the policy is of another task or vessel, or the
            shield cannot guard it.
    """
    if case.agent is None:
        return None
    if case.agent in AGENTS:
        config = case.agent_config()
        built = build_agent(config, case.device)
        return Chooser(built.discrete, config.stack_k, PolicyWrapper(built).act)
    agent, config = load_policy(case.agent, case.device)
    require(config.task == case.task, "policies", case.agent, f"it is of the task {config.task!r}")
    check_vessel(case, agent, config.env)
    act: Callable[[Any], torch.Tensor] = torch.no_grad()(agent.act)
    if case.shield is not None:
        met = dataclasses.replace(config, env=case.env)
        act = shield_agent(agent, met, case.shield, act)
    return Chooser(agent.discrete, config.stack_k, act)


def check_vessel(case: Case, agent: Agent | Baseline, own: TaskConfig) -> None:
    """Check that the vessels of a case are those that a policy's actions are for.

    Args:
        case: what is measured.
        agent: the policy.
        own: the environment that it was trained in.

    Raises:
        ConfigError: a baseline knows another vessel, or discrete actions are other thrust rates.
    """
    if not isinstance(case.env, ThrustTaskConfig):
        return
    vessel = case.env.vessel
    check_hull(agent, vessel)
    same = own.vessel.discrete_thrust_rates == vessel.discrete_thrust_rates
    remedy = f"its discrete actions are not the thrust rates of the vessel {vessel.name!r} here"
    remedy += "; give env.vessel as it was trained, or a policy with continuous actions"
    require(same or not agent.discrete, "policies", case.agent, remedy)


class Simulation:
    """The simulator with two buffers in turn, acting at random or with a policy.

    On a GPU the decisions are captured in graphs, as in training.
    """

    def __init__(self, case: Case) -> None:
        """Build the worlds; nothing is placed yet."""
        config = case.env
        if case.resets == "none":
            ends = {"episode": dataclasses.replace(config.episode, max_steps=10**6)}
            config = dataclasses.replace(config, **ends)
        self.case = case
        chooser = chooser_of(case)
        self.env = TASKS[case.task](
            case.worlds,
            stages=(case.stage,),
            config=config,
            discrete=chooser.discrete if chooser else fixed_kind(case.task),
            device=case.device,
            stack_k=chooser.stack_k if chooser else 1,
            skip_reset_if_empty=case.skip_reset_if_empty,
        )
        self._stepper = Stepper(self.env, restarts=case.resets != "none")
        every = torch.ones(case.worlds, dtype=torch.bool, device=case.device)
        self._renewed = every if case.resets == "every" else None
        self._launches = [CapturedStep(launch, case.device) for launch in self._choices(chooser)]

    def _choices(self, chooser: Chooser | None) -> list[Callable[[], None]]:
        """Return what takes the turns of one launch, to be called in turn."""
        if chooser is not None:
            return [lambda: self._decide(chooser.act)] * 2
        turns = self.case.turns
        if turns == 1:
            actions = random_actions(self.env, PREPARED_ACTIONS)
            return [lambda action=action: self._decide(lambda _: action) for action in actions]
        several = [random_actions(self.env, turns) for _ in range(2)]
        out = self.env.make_buffers(turns)
        return [
            lambda actions=actions: self.env.unroll_into(actions, self._stepper.now, out)
            for actions in several
        ]

    @property
    def observed(self) -> Any:
        """What the policy acts on next."""
        return self._stepper.now.obs

    @property
    def cycle(self) -> int:
        """Decisions after which everything is used in the same order again."""
        return len(self._launches) * self.case.turns

    def place(self) -> None:
        """Begin an episode in every world; with natural resets, as if at different times."""
        self._stepper.parity = 0
        self._stepper.reset()
        if self.case.resets == "natural":
            stagger(self.env)

    def run(self, decisions: int) -> None:
        """Take a number of decisions in every world, a multiple of `cycle`."""
        for i in range(decisions // self.case.turns):
            self._stepper.parity = i % 2
            self._launches[i % len(self._launches)]()

    def repeat(self, decisions: int) -> Repeat:
        """Time a number of decisions."""
        if self.case.resets == "none":
            self.place()
        self.env.clear_stats()
        begun = time.process_time()
        seconds = timed(self.case.device, lambda: self.run(decisions))
        cpu_seconds = time.process_time() - begun
        return Repeat(seconds, cpu_seconds, int(self.env.robot_steps()), decisions)

    def _decide(self, choose: Callable[[Any], torch.Tensor]) -> None:
        self._stepper.step(choose(self._stepper.now.obs))
        self._stepper.advance(self._renewed)


def measure_simulator(case: Case, effort: Effort) -> dict[str, Any]:
    """Return the row of a `step` or `inference` case."""
    release_memory(case.device)
    simulation = Simulation(case)
    decisions = warm_up(simulation, effort)
    before = Memory.now(case.device)
    repeats = [simulation.repeat(decisions) for _ in range(effort.repeats)]
    after = Memory.now(case.device)
    acted = sum(repeat.robot_steps for repeat in repeats)
    possible = case.worlds * case.robots * decisions * effort.repeats
    return {
        **row_of(case, repeats, before, after),
        "active_fraction": acted / possible,
        "decisions_per_repeat": decisions,
    }


def warm_up(simulation: Simulation, effort: Effort) -> int:
    """Place the worlds, capture and fill what is allocated lazily; return a repeat's decisions."""
    cycle = simulation.cycle
    simulation.place()
    simulation.run(cycle * (WARM_UP_CALLS + 1))
    seconds = simulation.repeat(cycle).seconds / cycle
    fitting = max(1, round(effort.seconds / seconds / cycle)) * cycle
    if simulation.case.resets == "none":
        return min(fitting, NO_RESET_DECISIONS)
    simulation.run(fitting)
    return fitting


def describe(case: Case) -> dict[str, Any]:
    """Return what a row says of its case."""
    return {
        "mode": case.mode,
        "task": case.task,
        "agent": case.agent,
        "shield": None if case.shield is None else plain(case.shield),
        "device": case.device.type,
        "worlds": case.worlds,
        "robots": case.robots,
        "buoys": case.buoys,
        "vortices": case.vortices,
        "settings": list(case.settings),
        "disturbances": case.disturbances,
        "resets": case.resets,
        "turns": case.turns,
    }


def row_of(case: Case, repeats: Sequence[Repeat], before: Memory, after: Memory) -> dict[str, Any]:
    """Return what every row holds; the rates are medians over the repeats."""
    rates = [repeat.robot_steps / repeat.seconds for repeat in repeats]
    worlds = [case.worlds * repeat.decisions / repeat.seconds for repeat in repeats]
    return {
        **describe(case),
        "robot_steps_per_s": statistics.median(rates),
        "world_steps_per_s": statistics.median(worlds),
        "robot_steps_per_cpu_s": statistics.median(
            repeat.robot_steps / repeat.cpu_seconds for repeat in repeats
        ),
        "samples_per_insert": None,
        "memory_bytes": before.held,
        "memory_growth_bytes": after.growth_since(before),
        "slowest_repeat_robot_steps_per_s": min(rates),
        "fastest_repeat_robot_steps_per_s": max(rates),
        "repeats": len(rates),
    }


def compare_reset_skipping(device: torch.device, worlds: int, effort: Effort) -> dict[str, Any]:
    """Time a decision and its natural resets with `skip_reset_if_empty` and without, in turn."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    cases = {skip: Case("step", device, worlds, skip_reset_if_empty=skip) for skip in seconds}
    simulations = {skip: Simulation(case) for skip, case in cases.items()}
    lengths = [warm_up(simulation, effort) for simulation in simulations.values()]
    for _ in range(effort.repeats):
        for skip, simulation in simulations.items():
            seconds[skip].append(simulation.repeat(min(lengths)).seconds / min(lengths))
    skipping, launching = statistics.median(seconds[True]), statistics.median(seconds[False])
    return {
        "device": device.type,
        "worlds": worlds,
        "skipping_decision_s": skipping,
        "always_launching_decision_s": launching,
        "skipping_over_launching": skipping / launching,
    }
