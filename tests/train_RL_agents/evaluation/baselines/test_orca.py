"""ORCA beside the authors' library, through its Python binding."""

import pytest
import torch

from marinenav_env.envs.observation import Observation
from tests.train_RL_agents.evaluation.baselines.test_baselines import CHOSEN_ON, WAMV16
from train_RL_agents.evaluation.baselines import orca
from train_RL_agents.evaluation.baselines.observed import objects_of

pyrvo = pytest.importorskip(
    "pyrvo", reason="compares with RVO2: pip install --no-deps pyrvo==0.4.3"
)
SETTINGS = orca.Settings(speed=1.2, horizon_s=8.0, margin_m=0.0)
MOST_SPEED = 1.25 * SETTINGS.speed


def library_velocity(preferred, own, others) -> tuple[float, float]:
    """Return what RVO2 chooses for a vessel at the origin among others (x, y, vx, vy)."""
    horizon, radius = SETTINGS.horizon_s, CHOSEN_ON.radius
    world = pyrvo.RVOSimulator(0.5, 100.0, 5, horizon, horizon, radius, MOST_SPEED)
    for x, y, vx, vy in ((0.0, 0.0, *own), *others):
        agent = world.add_agent((x, y))
        world.set_agent_velocity(agent, (vx, vy))
        world.set_agent_pref_velocity(agent, (vx, vy))
    world.set_agent_pref_velocity(0, tuple(preferred))
    world.do_step()
    velocity = world.get_agent_velocity(0)
    return velocity.x, velocity.y


def test_velocities_are_those_of_the_library():
    """Wherever some velocity is allowed; where none is, RVO2 solves a third program instead."""
    generator, compared = torch.Generator().manual_seed(3), 0

    def uniform(*shape):
        return 2.0 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1.0

    for _ in range(300):
        place = uniform(4, 2) * 16.0
        place = place[place.norm(dim=-1) > 2.0 * CHOSEN_ON.radius + 0.1]
        velocity, own = uniform(len(place), 2), uniform(2)
        preferred = uniform(2)
        rows, mask = torch.zeros(1, 5, 5).double(), torch.zeros(1, 5).double()
        rows[0, : len(place)] = torch.cat((place, velocity, torch.full((len(place), 1), 2.5)), -1)
        mask[0, : len(place)] = 1.0
        objects = objects_of(Observation(torch.zeros(1, 7).double(), rows, mask), CHOSEN_ON.radius)
        lines = orca.lines_of(objects, own.unsqueeze(0), WAMV16, SETTINGS)
        found = orca.nearest_allowed(lines, preferred.unsqueeze(0), MOST_SPEED)
        if orca._violation(lines, found.unsqueeze(-2)).item() > orca.TOLERANCE:
            continue
        others = torch.cat((place, velocity), -1).tolist()
        known = library_velocity(preferred.tolist(), own.tolist(), others)
        assert found[0].tolist() == pytest.approx(known, abs=1e-3)
        compared += 1
    assert compared > 200
