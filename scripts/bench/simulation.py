"""The simulator as the benchmark runs it: with random actions, or with a policy."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from marinenav_env.config import TaskConfig, ThrustTaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.make import TASKS
from marinenav_env.fields import require
from marinenav_env.kernel import ops
from marinenav_env.stepper import Stepper
from scripts.bench.case import Case
from scripts.bench.machine import timed
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.build import build_agent
from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.evaluation.baselines.registry import Actor, let_steer
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import shield_agent

PREPARED_ACTIONS = 8
# Without resets, worlds are placed anew before a repeat that lasts no longer, so that most robots
# are still on their way at its end.
NO_RESET_DECISIONS = 32


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


def check_vessel(case: Case, agent: Actor, own: TaskConfig) -> None:
    """Check that the vessels of a case are those that a policy's actions are for.

    Args:
        case: what is measured.
        agent: the policy.
        own: the environment that it was trained in.

    Raises:
        ConfigError: a baseline cannot steer the vessel, or discrete actions are other thrust rates.
    """
    if not isinstance(case.env, ThrustTaskConfig):
        return
    vessel = case.env.vessel
    let_steer(agent, vessel)
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
            return [partial(self._take, action) for action in actions]
        several = [random_actions(self.env, turns) for _ in range(2)]
        out = self.env.make_buffers(turns)
        return [partial(self._unroll, actions, out) for actions in several]

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
        self._take(choose(self._stepper.now.obs))

    def _take(self, action: torch.Tensor) -> None:
        self._stepper.step(action)
        self._stepper.advance(self._renewed)

    def _unroll(self, actions: torch.Tensor, out: Any) -> None:
        self.env.unroll_into(actions, self._stepper.now, out)
