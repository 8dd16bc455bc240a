"""Range finders beside NumPy models of rays and circles, and what they are refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from marinenav_env.envs.make import make
from marinenav_env.envs.ranging import BeamsConfig, BeamsEnv, SectorsConfig, SectorsEnv, sector_rays
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError, build
from marinenav_env.vessels import VESSELS
from tests.marinenav_env.rollouts import actions, assert_same_worlds, record, roll, rough

STAGE = Stage(robots=5, vortices=2, buoys=6, min_distance_m=12.0)
ENVIRONMENTS = (SectorsEnv, BeamsEnv)


def crowded(config):
    """A narrow map, where rays meet much."""
    scenario = replace(config.scenario, width=40.0, height=40.0, clear_radius=6.0)
    return replace(config, scenario=scenario, episode=replace(config.episode, max_steps=25))


def under_way(kind, config, decisions=12, **options):
    """Return an environment in float64 and its observation in the midst of an episode."""
    env = kind(16, stages=(STAGE,), config=config, dtype=torch.float64, seed=3, **options)
    *_, out = roll(env, decisions)
    return env, out


def circles_around(env, out, world, robot):
    """Body-frame centres [n, 2], radii [n] and velocities [n, 2] that robot's rays may meet.

    A robot that ended in the last decision is still seen.
    """
    state = env.state

    def of(name):
        return state.robot_field(name)[:, world].numpy()

    others = [i for i in range(env.robots) if i != robot and out.acted[world, i]]
    buoys = state.buoy[:, : int(state.world_field("buoys")[world]), world].numpy()
    places = np.concatenate((buoys[:2].T, np.stack((of("x"), of("y")), -1)[others]))
    moves = np.concatenate((0 * buoys[:2].T, np.stack((of("vx"), of("vy")), -1)[others]))
    radii = np.concatenate((buoys[2], [env.config.vessel.radius] * len(others)))
    c, s = math.cos(of("heading")[robot]), math.sin(of("heading")[robot])
    into_body = np.array([[c, s], [-s, c]])
    own = np.array([of("x")[robot], of("y")[robot]])
    return (places - own) @ into_body.T, radii, moves @ into_body.T


def cast(angle, centres, radii, farthest):
    """Distance along a ray, and the index of the circle that it meets first, or None.

    The circle |t d - c| = r in t: roots of t^2 - 2 (d c) t + c c - r^2.
    """
    best, met = farthest, None
    direction = np.array([math.cos(angle), math.sin(angle)])
    near = np.flatnonzero(np.abs(centres @ [-direction[1], direction[0]]) <= radii)
    for i, centre, radius in zip(near, centres[near], radii[near], strict=True):
        roots = np.roots([1.0, -2.0 * direction @ centre, centre @ centre - radius**2])
        if 0.0 < roots.real.min() < best:
            best, met = roots.real.min(), i
    return best, met


def feasible(distances, wide, angle, farthest):
    """How far a vessel fits through (Meyer et al. 2020, algorithm 1, as gym-auv has it)."""
    for reach in sorted(distances):
        width, fits = angle * reach / 2, False
        for distance in distances:
            width += angle * reach / (1 if distance > reach else 2)
            if width > wide:
                fits = True
                break
            if not distance > reach:
                width = 0.0
        if not fits:
            return max(0.0, reach)
    return farthest


def rows_of(env, rays, hits):
    """(world, robot, rays, hits) of robots under way."""
    for world, robot in env.alive.nonzero().tolist():
        yield world, robot, rays[world, robot].numpy(), hits[world, robot].numpy()


@pytest.mark.parametrize("pooling", ["nearest", "feasible"])
@pytest.mark.parametrize("closeness", ["log", "linear"])
def test_sectors_are_those_of_gym_auv(pooling, closeness):
    config = crowded(SectorsConfig())
    config = replace(config, perception=replace(
        config.perception, pooling=pooling, closeness=closeness, passage_margin=0.0, rays=90
    ), vessel=VESSELS["otter"])  # fmt: skip
    env, out = under_way(SectorsEnv, config)
    farthest, seen = config.perception.range, 0
    angles = [-math.pi + (i + 1) * 2 * math.pi / 90 for i in range(90)]
    sector = sector_rays(90)[2, :90].astype(int)
    pooled_farther = 0
    for world, robot, rays, hits in rows_of(env, out.obs.rays, out.obs.hits):
        centres, radii, moves = circles_around(env, out, world, robot)
        measured = [cast(angle, centres, radii, farthest) for angle in angles]
        for k in range(9):
            own = [measured[i] for i in np.flatnonzero(sector == k)]
            distances = [distance for distance, _ in own]
            nearest, met = min(own, key=lambda pair: pair[0])
            pooled = nearest
            if pooling == "feasible":
                wide = 2 * config.vessel.radius
                pooled = feasible(distances, wide, 2 * math.pi / 90, farthest)
            share = pooled / farthest
            if closeness == "log":
                share = math.log(1 + pooled) / math.log(1 + farthest)
            velocity = [0.0, 0.0] if met is None else moves[met]
            expected = [1.0 - min(max(share, 0.0), 1.0), *velocity]
            np.testing.assert_allclose(rays[k], expected, rtol=0, atol=1e-9)
            assert hits[k] == (met is not None)
            seen += met is not None
            pooled_farther += pooled > nearest
    assert seen > 50
    assert (pooled_farther > 5) == (pooling == "feasible")


def test_beams_are_those_of_iros_2023():
    config = crowded(BeamsConfig())
    env, out = under_way(BeamsEnv, config)
    met_by_beams = 0
    for world, robot, rays, hits in rows_of(env, out.obs.rays, out.obs.hits):
        centres, radii, _ = circles_around(env, out, world, robot)
        for i, angle in enumerate(np.radians(np.arange(-60, 61, 12))):
            distance, met = cast(angle, centres, radii, config.perception.range)
            point = distance * np.array([math.cos(angle), math.sin(angle)])
            expected = point if met is not None else np.zeros(2)
            np.testing.assert_allclose(rays[i], expected, rtol=0, atol=1e-9)
            assert hits[i] == (met is not None)
            met_by_beams += met is not None
    assert met_by_beams > 20


def test_rays_belong_to_nine_sectors_narrow_ahead():
    sector = sector_rays(180)[2].astype(int)
    assert list(np.unique(sector)) == list(range(9))
    assert (np.diff(sector) >= 0).all()
    counts = np.bincount(sector)
    assert counts[4] == counts.min() < 10
    assert counts[0] > 30
    assert sector[89] == 4  # the ray straight ahead


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_contact_is_that_of_hull_circles(kind):
    config = crowded(kind.config_type())
    env = kind(60, stages=(STAGE,), config=config, dtype=torch.float64, seed=5)
    buffers = env.make_buffers(), env.make_buffers()
    env.reset_into(buffers[1])
    collisions = 0
    for t in range(25):
        alive = env.alive.clone()
        out = buffers[t % 2]
        env.step_into(actions(env, t), buffers[(t + 1) % 2], out)
        place = torch.stack([env.state.robot_field(n)[:, :60].T for n in ("x", "y")], -1)
        apart = torch.cdist(place, place) - 2 * config.vessel.radius
        pairs = alive[:, :, None] & alive[:, None] & ~torch.eye(env.robots, dtype=torch.bool)
        buoys = env.state.buoy[:, :, :60].permute(2, 1, 0)
        gaps = torch.cdist(place, buoys[..., :2]) - buoys[:, None, :, 2] - config.vessel.radius
        there = (buoys[..., 2] > 0)[:, None] & alive[..., None]
        touched = ((apart <= 0) & pairs).any(-1) | ((gaps <= 0) & there).any(-1)
        contact = env.state.robot_field("contact")[:, :60].T > 0
        assert torch.equal(contact & alive, touched)
        collisions += int(touched.sum())
    assert collisions > 5


@pytest.mark.parametrize("change", [lambda config: config, rough], ids=["calm", "rough"])
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_lanes_and_batches_leave_the_bits_alone(kind, change):
    config = change(crowded(kind.config_type()))
    many = record(kind(19, stages=(STAGE,), config=config, seed=4), 12)
    one = record(kind(1, stages=(STAGE,), config=config, seed=4, first_world=17), 12)
    assert_same_worlds(many, one, 17, 18)


@pytest.mark.parametrize("name", ["marine_sectors", "marine_beams"])
def test_the_face_and_the_description_agree(name):
    env = make(name, worlds=3, stack_k=2)
    spec = env.describe(env.config, discrete=False, stack_k=2).observation
    data = env.rollout(4, break_when_any_done=False)
    for key, shape in zip(spec.keys, spec.shapes, strict=True):
        assert data["robots", key].shape[3:] == shape
    drawn = spec.draw(5, torch.Generator().manual_seed(0))
    assert [tuple(part.shape[1:]) for part in drawn] == list(spec.shapes)
    assert [entry["name"] for entry in spec.describe()] == ["self", "rays", "hits"]


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (SectorsConfig, {"rays": 181}, r"rays is 181: give 180 or less \[rays\]"),
        (SectorsConfig, {"rays": 3}, r"rays is 3: give 20 or more"),
        (SectorsConfig, {"pooling": "mean"}, "pooling is 'mean': choose one of nearest, feasible"),
        (
            SectorsConfig,
            {"closeness": "square"},
            "closeness is 'square': choose one of log, linear",
        ),
        (SectorsConfig, {"passage_margin": -1.0}, r"passage_margin is -1\.0: give 0\.0 or more"),
        (SectorsConfig, {"range": 0.0}, r"range is 0\.0: give more than 0\.0 \[m\]"),
        (BeamsConfig, {"range": math.inf}, "range is inf: give a finite number"),
        (BeamsConfig, {"angle": 7.0}, r"angle is 7\.0: give 6\.28.* or less \[rad\]"),
        (BeamsConfig, {"rays": 12}, "unknown setting 'perception.rays'"),
        (BeamsConfig, {"miss": 1.5}, r"perception\.miss is 1\.5: give 1\.0 or less"),
        (SectorsConfig, {"dropout": "often"}, r"dropout is 'often' \(str\): give a number"),
        (
            SectorsConfig,
            {"range_factor": 0.5},
            r"range_factor is 0\.5: give 2 values, such as \[0\.5, 0\.5\]",
        ),
        (BeamsConfig, {"noise_factor": [2, 1]}, r"noise_factor is .*: give the lower end first"),
        (BeamsConfig, {"range_std": -1.0}, r"range_std is -1\.0: give 0\.0 or more \[m\]"),
        (SectorsConfig, {"position_std": 0.1}, "unknown setting 'perception.position_std'"),
    ],
)
def test_bad_range_finders_are_refused(kind, values, message):
    with pytest.raises(ConfigError, match=message):
        build(kind, {"perception": values})
