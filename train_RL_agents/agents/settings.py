"""Settings that the algorithms share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from marinenav_env.envs.spec import EntitySpec, ObservationSpec, TwoListSpec
from marinenav_env.fields import ConfigError, Settings, setting
from train_RL_agents.agents.encoders import KINDS

PROTOTYPE = "vectorised prototype of AC-IQN on this task"
PUBLISHED = "published training code"
CHOICE = "this project"
MEASURED = "docs/diary.md"


@dataclass(frozen=True)
class AgentConfig(Settings):
    """Settings of every algorithm; each adds its own."""

    start: str = setting("", unit="-", source=MEASURED)
    """The policy to begin with, for fresh weights empty: a run, a checkpoint or a folder of
    pretrained/. It is of the same algorithm, with all that learns in it; DAgger, DPI and PPO take
    the actor alone, of AC-IQN, DDPG, SAC (its mean action) or any of these, which in `marine` and
    the classic tasks may have a smaller `stack_k` and a smaller `widening`."""
    learning_rate: float = setting(3e-4, unit="-", source=PROTOTYPE, low=0.0)
    """Adam's rate for the value networks."""
    gamma: float = setting(0.99, unit="1/decision", source=PUBLISHED, low=0.0, high=1.0)
    """Discount of a decision; a replay turns it into the batch's `discount`."""
    acting_average: float = setting(1e-3, unit="1/update", source=MEASURED, low=0.0, high=1.0)
    """Act as deployed with an exponential average of the acting network, which takes this share of
    the learned one at every update; 0 acts with the learned network itself."""
    max_grad_norm: float | None = setting(10.0, unit="-", source=CHOICE, low=1e-9)
    """Gradients of a network are scaled down to this Euclidean norm; null leaves them alone."""
    autocast: bool | None = setting(None, unit="-", source="docs/scaling.md")
    """Learn and explore with bfloat16 products; losses and `act` stay in float32. null does so
    where the device has instructions for them (GPUs from compute capability 8.0, CPUs with AMX
    or AVX-512 BF16)."""
    encoder: str = setting("published", unit="-", source=PUBLISHED, choices=KINDS)
    """published: raw features. relative_motion: features worked out of them, such as the time to
    the closest point of approach (agents/relative_motion.py)."""
    widening: int = setting(1, unit="-", source=PUBLISHED, low=1, high=64)
    """Factor of the published widths of the networks' layers."""
    ego_magnitude: tuple[float, ...] | None = setting(
        None, unit="units of the features", source=CHOICE, low=1e-6
    )
    """Divisors of the robot's own features inside the network; null takes the environment's."""
    object_magnitude: tuple[float, ...] | None = setting(
        None, unit="units of the features", source=CHOICE, low=1e-6
    )
    """Divisors of an object's features inside the network; null takes the environment's."""

    @property
    def stored_share(self) -> float:
        """Share of the decisions that are kept to learn from."""
        return 1.0

    @classmethod
    def for_values(cls, low: float, high: float) -> Self:
        """Return the defaults for a task whose discounted returns lie within a range."""
        return cls()

    def check_observation(self, spec: ObservationSpec) -> None:
        """Check that the settings fit what the agent observes.

        Raises:
            ConfigError: a setting is for objects, and there are none in an observation, or for the
                raw features that the encoder does not take.
        """
        relative = self.encoder == "relative_motion"
        if relative and not isinstance(spec, EntitySpec | TwoListSpec):
            raise ConfigError(
                "encoder is 'relative_motion', but the environment shows no list of objects with "
                "their velocities: leave it out"
            )
        for name in ("ego_magnitude", "object_magnitude"):
            if relative and getattr(self, name) is not None:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}, but encoder 'relative_motion' scales its "
                    "features itself: give algorithm.encoder=published, or leave it out"
                )
        if not isinstance(spec, EntitySpec) and self.object_magnitude is not None:
            raise ConfigError(
                f"object_magnitude is {self.object_magnitude}, but the environment shows no "
                "objects of one kind: leave it out"
            )


@dataclass(frozen=True)
class ReplayAgentConfig(AgentConfig):
    """Settings of an algorithm that learns from a replay of transitions."""

    n_step: int = setting(5, unit="decisions", source=MEASURED, low=1)
    """Length of the return; the replay computes it."""
    prioritized: bool = setting(False, unit="-", source=PUBLISHED)
    """Sample by priority; `update` then returns the new priorities."""
    polyak: float = setting(0.01, unit="1/update", source=PROTOTYPE, low=0.0, high=1.0)
    """Share of the networks that enters their targets at every update."""
