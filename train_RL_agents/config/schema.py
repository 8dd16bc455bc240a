"""The settings of a training run, as frozen dataclasses; `files` reads them from files.

A step is one decision (0.5 s) of one world, summed over all worlds and processes; every budget and
schedule counts in steps, none in wall-clock time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from marinenav_env.config import EnvConfig, TaskConfig
from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.fields import Settings, build, require, setting
from marinenav_env.kernel import ops
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.agents.settings import CHOICE, MEASURED, PUBLISHED, AgentConfig
from train_RL_agents.config.checks import check_larger_hulls, check_replay, check_rounds
from train_RL_agents.config.worlds import CurriculumConfig, ScenariosConfig, TrafficConfig


@dataclass(frozen=True)
class ExplorationConfig(Settings):
    """Share of random actions: a linear ramp, then constant."""

    epsilon_start: float = setting(0.6, unit="-", source=CHOICE, low=0.0, high=1.0)
    """Share of random actions at the start."""
    epsilon_end: float = setting(0.05, unit="-", source=PUBLISHED, low=0.0, high=1.0)
    """Share of random actions after the ramp."""
    ramp_share: float = setting(0.4, unit="share of the run", source=CHOICE, low=0.0, high=1.0)
    """Length of the ramp."""
    spread: float = setting(3.0, unit="-", source=CHOICE, low=0.0)
    """Exponent by which robots, over all worlds, explore differently: from epsilon to
    epsilon ** (1 + spread) (Horgan et al. 2018)."""
    action_noise: float = setting(0.0, unit="share of half the range", source=CHOICE, low=0.0)
    """Standard deviation of Gaussian noise on continuous actions; discrete ones have none."""


@dataclass(frozen=True)
class UpdateConfig(Settings):
    """How much is learned from what was collected."""

    batch_size: int = setting(256, unit="samples", source=MEASURED, low=1)
    """Of an update, in every process."""
    samples_per_insert: float = setting(
        1.0, unit="gradient samples per stored robot transition", source=MEASURED, low=0.0
    )
    """How many updates there are: as many as draw this."""
    warmup_transitions: int = setting(5_000, unit="robot transitions", source=CHOICE, low=0)
    """Stored before the first update."""
    rate_factor: float = setting(1.0, unit="-", source=CHOICE, low=1e-3, high=1e3)
    """Factor of all learning rates of the algorithm: a larger batch allows larger ones."""
    decay_from: float = setting(0.6, unit="share of the run", source=CHOICE, low=0.0, high=1.0)
    """Where the learning rates begin their linear way down."""
    decay_to: float = setting(0.1, unit="-", source=CHOICE, low=0.0, high=1.0)
    """Learning rates at the end, as a share of those at the start."""


@dataclass(frozen=True)
class ReplayOptions(Settings):
    """The replay buffer; what an algorithm asks of it (n-step, priorities) is in ``algorithm``.

    ``alpha`` and ``beta_*`` shape priorities: without ``algorithm.prioritized`` they do nothing.
    """

    capacity: int = setting(1_000_000, unit="robot transitions", source=PUBLISHED, low=1)
    """Of every process; the oldest make room."""
    alpha: float = setting(0.5, unit="-", source="Hessel et al. 2018, table 1", low=0.0, high=1.0)
    """Exponent of the priorities; 0 samples uniformly."""
    beta_start: float = setting(
        0.4, unit="-", source="Hessel et al. 2018, table 1", low=0.0, high=1.0
    )
    """Exponent of the importance weights at the start; it grows over the run."""
    beta_end: float = setting(
        1.0, unit="-", source="Hessel et al. 2018, table 1", low=0.0, high=1.0
    )
    """Exponent of the importance weights at the end; 1 undoes the priorities' bias."""


@dataclass(frozen=True)
class EvaluationConfig(Settings):
    """Fixed episodes, the same at every evaluation, run as one batch of worlds."""

    interval_steps: int = setting(1_000_000, unit="steps", source=CHOICE, low=1)
    """Between two evaluations; there is one at the end, too."""
    stages: tuple[Stage, ...] = setting(PUBLISHED_STAGES, unit="-", source=PUBLISHED)
    """As `curriculum.stages`."""
    episodes: tuple[int, ...] = setting((10,), unit="episodes", source=PUBLISHED, low=0)
    """Per stage: one number for all, or one for each."""
    final_episodes: int = setting(100, unit="episodes per stage", source=CHOICE, low=1)
    """Per stage in the table at the end of the run."""
    seed: int = setting(253, unit="-", source=PUBLISHED, low=0)
    """Of the episodes; the same for all trainings, whatever theirs is."""

    def check(self) -> None:
        """Refuse numbers of episodes that do not go with the stages."""
        count = len(self.stages)
        self.require(bool(self.stages), "stages", "give at least one stage")
        self.require(
            len(self.episodes) in (1, count) and any(self.episodes),
            "episodes",
            f"give one positive number for all {count} stages, or one for each",
        )

    @property
    def episodes_per_stage(self) -> tuple[int, ...]:
        """Number of episodes of every stage."""
        if len(self.episodes) == 1:
            return self.episodes * len(self.stages)
        return self.episodes


@dataclass(frozen=True)
class CheckpointConfig(Settings):
    """When the run is saved, and what of it."""

    interval_steps: int = setting(1_000_000, unit="steps", source=CHOICE, low=1)
    """Between two checkpoints; there is one at the start and one at the end, too."""
    keep: int = setting(2, unit="files", source=CHOICE, low=1)
    """The newest, beside the best by evaluation."""
    with_replay: bool = setting(True, unit="-", source=CHOICE)
    """Without it a file is small, and a resumed run collects anew before it learns."""


@dataclass(frozen=True)
class LogConfig(Settings):
    """When the statistics on the device are read, the only such moment in the loop.

    Evaluations and checkpoints at other steps read them too, and leave a record.
    """

    interval_steps: int = setting(100_000, unit="steps", source=CHOICE, low=1)
    """Between two records."""
    tensorboard: str = setting("headline", unit="-", source=CHOICE, choices=("headline", "all"))
    """What TensorBoard shows of it: the few numbers of metrics/headline.py, or all."""


def training_env(task: str = "marine") -> TaskConfig:
    """Return the published configuration of a task, as changed for training.

    Vessels have shorter episodes: an untrained robot drifts away, and would fill the batch with a
    world that nothing happens in. The first task's collisions cost twice the published price, which
    is measured: docs/diary.md.
    """
    kind = TASKS[task]
    return kind.config_type(**kind.training_changes)


def fitting_agents(task: str) -> list[str]:
    """Return the names of the agents whose kind of actions a task takes, and that know it."""
    kernel = ops.describe(TASKS[task].kernel)
    sizes = {True: kernel.discrete, False: kernel.continuous}
    foreseen = issubclass(TASKS[task].config_type, EnvConfig)
    return [
        name
        for name, kind in AGENTS.items()
        if sizes[kind.discrete] > 0 and (foreseen or kind.learns_from != "lookahead")
    ]


@dataclass(frozen=True)
class TrainConfig(Settings):
    """Everything that decides a training run."""

    task: str = setting("marine", unit="-", source=CHOICE, choices=TASKS)
    """The environment: that of the RA-L paper, with its sensor or a range finder, that of ICRA
    2024, or a classic one of Gymnasium."""
    agent: str = setting("AC-IQN", unit="-", source=PUBLISHED, choices=AGENTS)
    """The algorithm."""
    seed: int = setting(0, unit="-", source=CHOICE, low=0)
    """Of weights, worlds and actions."""
    device: str = setting("auto", unit="-", source=CHOICE, choices=("auto", "cpu", "cuda"))
    """auto: a GPU where torch sees one."""
    compile: bool = setting(True, unit="-", source=CHOICE)
    """On a GPU: run collection and updates as captured CUDA graphs."""
    threads: int = setting(0, unit="CPU threads", source=CHOICE, low=0, high=1024)
    """0: as many as torch chooses."""
    total_steps: int = setting(20_000_000, unit="steps", source=CHOICE, low=1)
    """Length of the run in decisions, summed over worlds and processes."""
    worlds: int = setting(512, unit="worlds per process", source=MEASURED, low=1)
    """Simulated side by side."""
    stack_k: int = setting(
        1, unit="decisions in an observation", source=PUBLISHED, low=1, high=1000
    )
    """The latest, which networks see at once."""
    env: TaskConfig = setting(None, unit="-", source="the task's own defaults")
    curriculum: CurriculumConfig = setting(None, unit="-", source="the task's own stages")
    scenarios: ScenariosConfig = field(default_factory=ScenariosConfig)
    traffic: TrafficConfig = field(default_factory=TrafficConfig)
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    updates: UpdateConfig = field(default_factory=UpdateConfig)
    replay: ReplayOptions = field(default_factory=ReplayOptions)
    algorithm: AgentConfig = setting(None, unit="-", source="the agent's own defaults")
    evaluation: EvaluationConfig = setting(None, unit="-", source="the task's own stages")
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    log: LogConfig = field(default_factory=LogConfig)

    def __post_init__(self) -> None:
        """Take the task's and the algorithm's defaults where none are given, then check."""
        defaults: dict[str, Any] = {}
        if self.task in TASKS:
            task = TASKS[self.task]
            if self.agent in AGENTS:
                kind = AGENTS[self.agent].Config
                defaults["algorithm"] = kind.for_values(*task.value_range)
            defaults["env"] = training_env(self.task)
            defaults["curriculum"] = CurriculumConfig(stages=task.default_stages)
            defaults["evaluation"] = EvaluationConfig(stages=task.evaluation_stages)
        for name, default in defaults.items():
            value = getattr(self, name)
            if value is None:
                value = default
            elif not isinstance(value, Settings):
                value = build(type(default), value, where=f"TrainConfig.{name}", base=default)
            object.__setattr__(self, name, value)
        super().__post_init__()

    @property
    def stored_share(self) -> float:
        """Share of the robots' decisions that are kept to learn from, by estimate."""
        return self.algorithm.stored_share * self.traffic.own_share

    @property
    def collecting_env(self) -> TaskConfig:
        """`env` with the hulls that it has while collecting."""
        margin, fringe = self.curriculum.hull_margin, self.curriculum.fringe
        changed: dict[str, Any] = {}
        if margin:
            vessel = self.env.vessel
            changed["vessel"] = replace(vessel, radius=vessel.radius + margin)
        if fringe:
            changed["reward"] = replace(self.env.reward, fringe=fringe)
        return replace(self.env, **changed)

    def check(self) -> None:
        """Refuse another algorithm's settings, and sizes that leave nothing to learn."""
        kind: type = AGENTS[self.agent].Config
        given, remedy = type(self.algorithm).__name__, f"give a {kind.__name__} to {self.agent}"
        require(isinstance(self.algorithm, kind), "TrainConfig.algorithm", given, remedy)
        kind = TASKS[self.task].config_type
        given, remedy = type(self.env).__name__, f"give a {kind.__name__} to {self.task}"
        require(isinstance(self.env, kind), "TrainConfig.env", given, remedy)
        self._check_actions()
        check_larger_hulls(self)
        if AGENTS[self.agent].learns_from == "rounds":
            check_rounds(self)
        else:
            check_replay(self)
        self.require(
            self.total_steps >= self.worlds,
            "total_steps",
            f"one decision of {self.worlds} worlds takes more; raise total_steps or lower worlds",
        )

    def _check_actions(self) -> None:
        """Refuse an agent whose kind of actions the task does not take."""
        fitting = fitting_agents(self.task)
        self.require(
            self.agent in fitting or AGENTS[self.agent].learns_from != "lookahead",
            "agent",
            f"it looks ahead in the task 'marine', and not in {self.task!r}; choose one of "
            f"{', '.join(fitting)}",
        )
        given, kinds = AGENTS[self.agent].discrete, ("continuous", "discrete")
        self.require(
            self.agent in fitting,
            "agent",
            f"its actions are {kinds[given]}, and {self.task} takes {kinds[not given]} ones; "
            f"choose one of {', '.join(fitting)}",
        )
