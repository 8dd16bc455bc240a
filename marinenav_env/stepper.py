"""Stepper: a loop over persistent buffers whose order of step, reset and swap cannot be wrong."""

from __future__ import annotations

from torch import Tensor

from marinenav_env.envs.base import KernelEnv
from marinenav_env.kernel.state import StepBuffers


class Stepper:
    """Steps an environment in two buffers of its own; nothing is allocated after the constructor.

    One decision is `step`, which gives the true next observation, and then `advance`, which begins
    finished worlds anew and makes that observation the present one::

        stepper = Stepper(env)
        stepper.reset()
        while True:
            following = stepper.step(policy(stepper.now.obs))
            store(stepper.now, following)
            stepper.advance()

    Args:
        env: the environment.
        restarts: begin finished worlds anew; False leaves them as they are, as evaluations do.

    Attributes:
        parity: index of the present one of the two buffers. A captured graph replays without
            Python: who replays one sets it to what the graph has left.
    """

    def __init__(self, env: KernelEnv, *, restarts: bool = True) -> None:
        self.env, self.restarts, self.parity = env, restarts, 0
        self._buffers = (env.make_buffers(), env.make_buffers())
        self._stepped = False

    @property
    def now(self) -> StepBuffers:
        """What was written last: the observation to act on."""
        return self._buffers[self.parity]

    @property
    def following(self) -> StepBuffers:
        """What the next `step` writes, or the last one has written, until `advance`."""
        return self._buffers[1 - self.parity]

    def reset(self) -> StepBuffers:
        """Place all worlds anew and return what they observe."""
        self._stepped = False
        self.env.reset_into(self.now)
        return self.now

    def observe(self) -> StepBuffers:
        """Observe all worlds as they stand, for instance after a scenario was loaded."""
        self._stepped = False
        self.env.observe_into(self.now)
        return self.now

    def step(self, action: Tensor) -> StepBuffers:
        """Take one decision in every world.

        Args:
            action: as in `KernelEnv.step_into`.

        Returns:
            What the decision brought, with the true next observation.

        Raises:
            RuntimeError: the decision before awaits `advance`.
        """
        if self._stepped:
            raise RuntimeError("a decision awaits advance: call advance once after every step")
        self.env.step_into(action, self.now, self.following)
        self._stepped = True
        return self.following

    def advance(self, worlds: Tensor | None = None) -> StepBuffers:
        """Make the next observation the present one.

        Args:
            worlds: [W] bool, the worlds to begin anew; None takes the finished ones.

        Returns:
            The buffers to act on.

        Raises:
            RuntimeError: no decision was taken since the last call.
        """
        if not self._stepped:
            raise RuntimeError("no decision was taken: call step before advance")
        if self.restarts:
            self.env.reset_into(self.following, self.following.done if worlds is None else worlds)
        self._stepped = False
        self.parity = 1 - self.parity
        return self.now
