"""Evaluation: fixed episodes of every stage as one batch of worlds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from marinenav_env.config import TaskConfig
from marinenav_env.envs.make import task_of
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.spec import tuple_like
from marinenav_env.stepper import Stepper
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.baselines.registry import Actor
from train_RL_agents.evaluation.recording import BatchRecording, Recording
from train_RL_agents.evaluation.steering import Policy, traffic_in, with_actions_of
from train_RL_agents.evaluation.watches import Watch, watch_of

DECISION_LIMIT = 1_000
"""Most decisions of an episode in evaluation, as published; a task may have fewer."""
CHUNK_WORLDS = 1_024
"""Worlds in one forward pass of the policy, which bounds the memory it takes."""
FIRST_WORLD = 2**31
"""Global index of the first world of an evaluation. Trainings count theirs from 0, so that even
with the seed of its training a policy meets episodes that it has not learned from."""
LOOK_INTERVAL = 25
"""Decisions between two looks at which worlds still run."""


OneConfig = TypeVar("OneConfig", bound=TaskConfig)
Progress = Callable[[int], object]
"""Called now and then with how many episodes have ended since."""


class Batch:
    """Plays one episode in every world of an environment, the same each time.

    Args:
        env: the environment, as its episodes are to begin.
        seed: of the draws of a stochastic policy.
        placed: whether its worlds stand ready; else they are reset first.
        steering: [W, R] bool and the policy that steers those robots instead of the one evaluated.
            They are not judged: an episode is that of the others, and over when theirs are.
    """

    def __init__(
        self,
        env: Any,
        *,
        seed: int,
        placed: bool = False,
        steering: Sequence[tuple[Tensor, Policy]] = (),
    ) -> None:
        self._env, self._seed, self._placed = env, seed, placed
        self._steering = tuple(steering)
        masks = [robots for robots, _ in steering]
        self._own = ~torch.stack(masks).any(0) if masks else None  # [W, R]
        self._start = env.state_dict()

    @torch.no_grad()
    def play(
        self, act: Policy, recording: BatchRecording | None = None, progress: Progress | None = None
    ) -> Any:
        """Play all episodes to their end.

        Args:
            act: the policy, for observations with leading dimensions [W, R].
            recording: keeps the episodes, if wanted.
            progress: learns of progress, if wanted.

        Returns:
            What the rows of this kind of task are made of, `watches.Watch.parts`; for navigation
            `Outcomes` and `Measures`.

        Raises:
            ConfigError: the vessels, or what disturbs them, are beyond what can be stepped.
            ValueError: the policy gave actions that are not finite, or of no such number.
        """
        env = self._env
        with torch.random.fork_rng([env.device] if env.device.type == "cuda" else []):
            torch.manual_seed(self._seed)
            watch = self._run_episodes(act, recording, progress or (lambda _: None))
        env.check_finite()
        env.check_actions()
        return watch.parts(self._own)

    def _run_episodes(
        self, act: Policy, recording: BatchRecording | None, progress: Progress
    ) -> Watch:
        env = self._env
        env.load_state_dict(self._start)
        stepper = Stepper(env, restarts=False)
        if self._placed:
            stepper.observe()
        else:
            stepper.reset()
        watch: Watch = watch_of(env.kernel_spec)(env)
        if recording:
            recording.begin(env, stepper.now, self._own)
        action = env.make_action()
        left = env.worlds
        for decision in range(env.config.episode.max_steps):
            if decision % LOOK_INTERVAL == 0:
                judged = env.alive if self._own is None else env.alive & self._own
                running = judged.any(1).nonzero().squeeze(1)
                progress(left - len(running))
                left = len(running)
                if not left:
                    break
                watch.follow(running)
                if recording:
                    recording.follow(running)
            for worlds in running.split(CHUNK_WORLDS):
                now = stepper.now.obs
                seen = tuple_like(now, (field.index_select(0, worlds) for field in now))
                action.index_copy_(0, worlds, self._steer(act, worlds, seen))
            following = stepper.step(action)
            watch.note(following.acted)
            if recording:
                recording.note(following, action)
            stepper.advance()
        progress(left)
        return watch

    def _steer(self, act: Policy, worlds: Tensor, seen: Observation) -> Tensor:
        chosen = [(robots.index_select(0, worlds), policy) for robots, policy in self._steering]
        return steered(act, chosen, seen, self._env.alive.index_select(0, worlds))


def steered(
    act: Policy, others: Sequence[tuple[Tensor, Policy]], seen: Observation, alive: Tensor
) -> Tensor:
    """Return actions of a policy, and of others for the robots that they steer.

    Args:
        act: the policy; one that ``counts`` its decisions learns whose they are.
        others: robots [W, R] bool, and what steers them.
        seen: what all robots see.
        alive: [W, R] bool, the robots that act.
    """
    own = functools.reduce(lambda left, other: left & ~other[0], others, alive)
    action = act(seen, own) if getattr(act, "counts", False) else act(seen)
    for robots, policy in others:
        action = with_actions_of(policy, robots, action, seen)
    return action


class Evaluation:
    """The same episodes each time: world w draws from (seed, `FIRST_WORLD` + w) alone.

    Args:
        stages: the stages.
        episodes: number of episodes of each.
        seed: of the scenarios, the perception noise and the draws of a stochastic policy.
        config: of the environment; its limit and its stop at a collision are replaced.
        discrete: whether the policy gives action indices.
        device: of the environment and the policy.
        stack_k: decisions in an observation.
        traffic: steers every other vessel instead of the policy evaluated, if given.

    Attributes:
        env: the environment, a world for each episode.

    Raises:
        ConfigError: there is traffic, and a stage has one robot.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        episodes: Sequence[int],
        *,
        seed: int,
        config: TaskConfig,
        discrete: bool,
        device: torch.device | str = "cpu",
        stack_k: int = 1,
        traffic: Policy | None = None,
    ) -> None:
        self.stages, self.episodes = tuple(stages), tuple(episodes)
        self.stage_of_world = torch.repeat_interleave(
            torch.arange(len(self.stages)), torch.tensor(self.episodes)
        )
        self.env = task_of(config)(
            len(self.stage_of_world),
            stages=self.stages,
            config=evaluation_config(config, among_others=traffic is not None),
            discrete=discrete,
            device=device,
            seed=seed,
            first_world=FIRST_WORLD,
            stack_k=stack_k,
        )
        self.env.set_stage(self.stage_of_world.to(self.env.device))
        steering = []
        if traffic is not None:
            steering = traffic_in(self.env, traffic)
        self._batch = Batch(self.env, seed=seed, steering=steering)
        self._row = watch_of(self.env.kernel_spec).row

    @property
    def worlds(self) -> int:
        """Number of all episodes."""
        return len(self.stage_of_world)

    @classmethod
    def of_agent(
        cls,
        agent: Actor,
        config: TrainConfig,
        episodes: Sequence[int],
        *,
        seed: int,
        traffic: Policy | None = None,
    ) -> Evaluation:
        """Return the evaluation of ``agent`` on the stages that its settings name for it."""
        return cls(
            config.evaluation.stages,
            episodes,
            seed=seed,
            config=config.env,
            discrete=agent.discrete,
            device=agent.device,
            stack_k=config.stack_k,
            traffic=traffic,
        )

    def run(
        self, act: Policy, recording: Recording | None = None, progress: Progress | None = None
    ) -> list[Any]:
        """Run all episodes to their end.

        Args:
            act: the policy, for observations with leading dimensions [W, R].
            recording: keeps the episodes, if wanted, in the order of the rows.
            progress: learns of progress, if wanted.

        Returns:
            One row per stage that has episodes, of the kind that the task has.
        """
        every_world = range(len(self.stage_of_world))
        kept = recording.batch(list(every_world)) if recording else None
        parts = self._batch.play(act, kept, progress)
        rows = []
        for index, stage in enumerate(self.stages):
            chosen = self.stage_of_world == index
            if self.episodes[index]:
                happened = (part.of_worlds(chosen) for part in parts)
                rows.append(self._row(*happened, stage))
        return rows


def evaluation_config(config: OneConfig, *, among_others: bool = False) -> OneConfig:
    """Return ``config`` with the episode's ends as its task's evaluation has them.

    Args:
        config: of the environment.
        among_others: whether the policy steers some vessels only: then no collision ends the
            episode, which might be that of others.
    """
    episode = task_of(config).evaluation_episode
    limit = min(episode.max_steps, DECISION_LIMIT)
    stops = episode.stop_on_collision and not among_others
    ended = dataclasses.replace(episode, max_steps=limit, stop_on_collision=stops)
    changes: dict[str, Any] = {"episode": ended}
    return dataclasses.replace(config, **changes)
