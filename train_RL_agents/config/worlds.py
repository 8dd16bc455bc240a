"""The settings of a training run that say which worlds it meets: `schema` gathers them."""

from __future__ import annotations

from dataclasses import dataclass

from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.fields import Settings, setting
from train_RL_agents.agents.settings import CHOICE, MEASURED, PUBLISHED


@dataclass(frozen=True)
class CurriculumConfig(Settings):
    """Which scenarios the worlds draw, and when."""

    mode: str = setting("mixed", unit="-", source=CHOICE, choices=("sequential", "mixed"))
    """sequential: all worlds in one stage after another. mixed: worlds spread over all stages."""
    stages: tuple[Stage, ...] = setting(PUBLISHED_STAGES, unit="-", source=PUBLISHED)
    """Each is [robots, vortices, buoys, least distance from a start to its goal in m]."""
    starts: tuple[int, ...] = setting((), unit="steps", source=PUBLISHED, low=0)
    """sequential: the step at which each stage begins; empty divides the run evenly."""
    hull_margin: float = setting(0.0, unit="m", source=MEASURED, low=0.0)
    """How much larger hulls are while collecting than in evaluations: a policy keeps clear of
    contact by as much."""
    fringe: float = setting(0.0, unit="m", source=MEASURED, low=0.0)
    """Of a hull while collecting: every decision draws a share of it anew by which the hull is
    larger, so that a robot in the fringe collides the more likely the closer it is."""

    def check(self) -> None:
        """Refuse stages that would not be trained, and starts that the mode has no use for."""
        self.require(bool(self.stages), "stages", "give at least one stage")
        if not self.starts:
            return
        count = len(self.stages)
        self.require(len(self.starts) == count, "starts", f"give {count}, one per stage, or none")
        ascend = self.starts[0] == 0 and list(self.starts) == sorted(self.starts)
        self.require(ascend, "starts", "begin at 0 and do not descend")
        self.require(
            self.mode == "sequential",
            "starts",
            f"mode {self.mode!r} has no use for it; give mode=sequential, or no starts",
        )


@dataclass(frozen=True)
class ScenariosConfig(Settings):
    """Worlds that begin with named scenarios, instead of the curriculum's random maps.

    Every episode there draws one scenario of the set, and what follows; all vessels are the
    policy's. Evaluations are not affected.
    """

    share: float = setting(0.0, unit="share of the worlds", source=CHOICE, low=0.0, high=1.0)
    """How many worlds begin so; below 1."""
    set: str = setting("encounters", unit="-", source=CHOICE)
    """What ``evaluate.py --scenario`` takes: a set, one of its cases, or a file."""
    offset_m: float = setting(2.0, unit="m", source=CHOICE, low=0.0)
    """Every start is moved by up to this, north and east, instead of by the scenario's own."""
    offset_deg: float = setting(10.0, unit="deg", source=CHOICE, low=0.0, high=180.0)
    """Every heading is turned by up to this, instead of by the scenario's own."""

    def check(self) -> None:
        """Refuse a run without a random map, by which the best weights are chosen."""
        remedy = "leave worlds to the stages of the curriculum, give less than 1"
        self.require(self.share < 1.0, "share", remedy)


@dataclass(frozen=True)
class TrafficConfig(Settings):
    """Vessels that a controller steers while collecting, so that not all do as the policy does.

    They are not learned from, but count where success, returns and robot-steps are counted while
    collecting. Evaluations are not affected.
    """

    share: float = setting(0.0, unit="share of the worlds", source=MEASURED, low=0.0, high=1.0)
    """How many worlds have such vessels: every other one of theirs, by a fixed random choice."""
    steer: str = setting("goal-straight", unit="-", source=CHOICE)
    """What steers them: a classical controller by its name, or `straight`, which changes no thrust;
    `goal-straight` turns to its goal and minds nobody."""

    @property
    def own_share(self) -> float:
        """Share of the robots that the policy steers, by estimate: a world may have an odd one."""
        return 1.0 - 0.5 * self.share
