"""What the Gymnasium faces hand out is finite, or an error says so."""

import numpy as np
import pytest

from marinenav_env.adapters import convert
from marinenav_env.adapters.gymnasium import GymEnv, GymVectorEnv
from marinenav_env.fields import ConfigError
from tests.marinenav_env.adapters.tasks import TWO

STORM = {"config": {"wind": {"speed": [5.0, 5.0], "surge": 1e5}}}
UNSTABLE = r"of \d+ robots is not finite \(first in world 0, robot 0\): a setting below env"


def is_finite(step):
    """Refuse numbers that are not, of one robot or of several."""
    obs, reward, *_ = step
    for part in (*obs.values(), reward):
        np.testing.assert_array_equal(np.isfinite(part), True)
    return True


@pytest.mark.parametrize("vector", [False, True])
def test_numbers_that_are_not_finite_are_told(vector):
    env = GymVectorEnv(2, **TWO, **STORM) if vector else GymEnv(**STORM)
    env.reset(seed=0)
    action = np.ones(env.action_space.shape, np.float32)
    steps = (env.step(action) for _ in range(40))
    with pytest.raises(ConfigError, match="^the observation or reward " + UNSTABLE):
        all(map(is_finite, steps))


@pytest.mark.parametrize(
    ("physics", "decisions"),
    [
        ({"turn_cost": 1e39}, 200),  # the reward alone
        ({"dt": 1e39}, 1),  # the last observation alone, of which the next tells nothing
        ({"start_angle": 1e39}, 0),  # the first observation
    ],
)
@pytest.mark.parametrize("face", [GymEnv, lambda task, **options: GymVectorEnv(1, task, **options)])
def test_whatever_a_face_hands_out_is_finite(face, physics, decisions):
    env = face("pendulum", config={"physics": physics, "episode": {"max_steps": decisions or 1}})
    if decisions:
        env.reset(seed=0)
    with pytest.raises(ConfigError, match=UNSTABLE):
        env.step(np.zeros(env.action_space.shape)) if decisions else env.reset(seed=0)


def test_large_numbers_are_finite():
    env = GymEnv("pendulum").env
    convert.check_handed_out(env, {"state": np.full((1, 3), 1e30, np.float32)}, np.ones(1))
