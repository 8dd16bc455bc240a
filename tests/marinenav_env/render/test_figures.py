"""Figures of episodes: right way round, in the right place, with the right end."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from matplotlib.text import Annotation

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.episodes.config import config_of
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.faults import ThrusterConfig, VariationConfig
from marinenav_env.render.chart import draw_map, map_extent
from marinenav_env.render.figures import _robot_handles, plot_scene, plot_scenes
from marinenav_env.render.geometry import (
    End,
    Scene,
    hull_polygons,
    place_body,
    scenes_of,
    to_map,
    water_velocity,
)
from marinenav_env.render.marks import Hull, add_hulls, hull_steps
from marinenav_env.render.video import _moving, video_frames
from marinenav_env.tracks import record_tracks
from marinenav_env.water import StreamConfig, WavesConfig, WindConfig
from tests.marinenav_env.rollouts import CROWDED, EPISODES, FILES, SPARSE, eventful


def read_scene(path: Path) -> Scene:
    episode = read_episode(path)
    (scene,) = scenes_of(tracks_of(episode), config_of(episode))
    return scene


@pytest.fixture(scope="module")
def scene() -> Scene:
    return read_scene(EPISODES / "calm_policy_5r_4o_b.json")


def rendered(figure: Figure) -> np.ndarray:
    figure.set_dpi(50)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def test_ends_as_recorded(scene):
    ends = (End.GOAL, End.GOAL, End.COLLISION, End.COLLISION, End.GOAL)
    assert scene.ends == ends
    assert [scene.time_of_end(robot) for robot in range(5)] == [17.0, 18.0, 8.5, 8.5, 26.0]
    assert scene.decisions == 52


def test_scenes_of_an_environment_in_single_precision():
    """Two worlds, of which one has fewer robots, no buoy and no vortex; time runs out."""
    stages = (CROWDED, Stage(robots=2, vortices=0, buoys=0, min_distance_m=20.0))
    env = MarineNavEnv(2, stages=stages, config=eventful(max_steps=4), seed=4, stack_k=2)
    env.set_stage(torch.arange(2))
    tracks = record_tracks(env, lambda seen: torch.zeros(*seen.ego.shape[:2], 2), 6)
    first, second = scenes_of(tracks, env.config)
    assert [len(path) for path in (*first.paths, *second.paths)] == [5] * 7
    assert (len(first.buoys), len(first.vortices)) == (3, 2)
    assert (len(second.buoys), len(second.vortices)) == (0, 0)
    assert (*first.ends, *second.ends) == (End.UNDERWAY,) * 7
    np.testing.assert_array_equal(second.paths[1][4], tracks.robot[4, 1, 1, :3].double())
    np.testing.assert_array_equal(first.goals[:, 1], tracks.field("goal_y")[0, 0].double())


def test_a_world_without_a_robot_can_be_drawn():
    empty = Scene(EnvConfig(), (), np.zeros((0, 2)), (), np.zeros((0, 3)), np.zeros((0, 3)), 0.5)
    figure = plot_scene(empty, "nobody")
    assert [text.get_text() for text in figure.legends[0].texts] == ["start", "goal area"]
    assert len(list(video_frames(empty, [0], "nobody"))) == 1
    assert empty.decisions == 0


def test_hull_has_the_vessel_s_size_and_points_forward():
    parts = hull_polygons(5.0, 2.5)
    points = np.concatenate(parts)
    np.testing.assert_allclose(np.ptp(points, axis=0), [5.0, 2.5])
    assert np.abs(points.sum(axis=0)[1]) < 1e-9
    for part in parts:
        bow = part[part[:, 0] == part[:, 0].max()]
        stern = part[part[:, 0] == part[:, 0].min()]
        assert len(bow) == 1
        assert len(stern) == 2


@pytest.mark.parametrize(
    ("heading", "ahead", "starboard"),
    [
        (0.0, (0.0, 1.0), (1.0, 0.0)),  # north: up; starboard is to the right
        (0.5 * np.pi, (1.0, 0.0), (0.0, -1.0)),  # east: right; starboard is down
        (np.pi, (0.0, -1.0), (-1.0, 0.0)),
    ],
)
def test_yaw_turns_clockwise_on_the_page(heading, ahead, starboard):
    pose = np.array([10.0, 20.0, heading])
    body = np.array([[1.0, 0.0], [0.0, 1.0]])
    drawn = to_map(place_body(body, pose)) - np.array([20.0, 10.0])
    np.testing.assert_allclose(drawn, [ahead, starboard], atol=1e-12)


def test_a_drawn_hull_covers_its_place_on_the_page(scene):
    figure = Figure(figsize=(6.0, 6.0))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, 55.0), ylim=(0.0, 55.0))
    axes.set_axis_off()
    pose = np.array([40.0, 10.0, 0.3])  # north 40, east 10
    hull = add_hulls(axes, scene, [Hull(0, pose, 1.0)])
    assert isinstance(hull, PolyCollection)
    image = rendered(figure)
    rows, columns = np.nonzero(image.sum(axis=-1) < 700)
    scale = 55.0 / image.shape[0]
    assert columns.mean() * scale == pytest.approx(10.0, abs=0.4)
    assert 55.0 - rows.mean() * scale == pytest.approx(40.0, abs=0.4)


def test_vessels_under_way_cover_those_that_have_ended(scene):
    ended = 1 + min(map(len, scene.paths))
    moving = _moving(Figure().add_subplot(), scene, ended)
    (hulls,) = [artist for artist in moving if isinstance(artist, PolyCollection)]
    strengths = hulls.get_facecolor()[:, 3]
    assert (np.diff(strengths) >= 0.0).all()
    assert set(strengths) == {0.3, 1.0}


@pytest.mark.parametrize("name", ["vortex_policy_4r_2o_4c", "vortex_random_5r_4o_8c"])
def test_currents_are_those_of_the_recording(name):
    """At rest in the water, the recorded velocity over ground is the current at the start."""
    episode = read_episode(EPISODES / f"{name}.json")
    starts = np.array([states[0] for states in episode.robots["trajectory"]])
    vortices = tracks_of(episode).vortices[0].numpy()
    drawn = water_velocity(vortices, config_of(episode), starts[:, :2])
    np.testing.assert_allclose(drawn, starts[:, 6:8] - starts[:, 3:5], atol=1e-9)


def test_current_inside_a_core_grows_with_the_distance():
    scene = read_scene(EPISODES / "vortex_discrete_3r_1c.json")
    points = scene.vortices[0, :2] + np.array([[0.0, 0.0], [0.25, 0.0], [0.5, 0.0], [1.0, 0.0]])
    speed = np.linalg.norm(water_velocity(scene.vortices, scene.config, points), axis=-1)
    np.testing.assert_allclose(speed, [0.0, 1.5, 3.0, 1.5], atol=1e-6)


@pytest.fixture(scope="module")
def rough_scene() -> Scene:
    """Wind of 5 m/s to the east, current of 0.3 m/s to the north, waves of 0.2 m to the south.

    Both vessels lose a thruster after a second.
    """
    config = replace(
        eventful(),
        wind=WindConfig(speed=(5.0, 5.0), direction=(0.5 * np.pi, 0.5 * np.pi)),
        stream=StreamConfig(speed=(0.3, 0.3), direction=(0.0, 0.0)),
        waves=WavesConfig(height=0.2, direction=(np.pi, np.pi)),
        thrusters=ThrusterConfig(loss_probability=1.0, loss_time=(1.0, 1.0)),
    )
    env = MarineNavEnv(2, stages=(SPARSE,), config=config)
    tracks = record_tracks(env, lambda seen: torch.zeros(*seen.mask.shape[:2], 2), 5)
    return scenes_of(tracks.worlds([1]), config)[0]


def test_a_uniform_current_is_drawn_as_it_flows(rough_scene):
    points = np.array([[1.0, 2.0], [30.0, 40.0]])
    drawn = water_velocity(np.zeros((0, 3)), rough_scene.config, points, rough_scene.stream)
    np.testing.assert_allclose(drawn, [[0.3, 0.0]] * 2, atol=1e-7)
    axes = Figure().add_subplot()
    draw_map(axes, rough_scene)
    assert any(isinstance(part, QuadMesh) for part in axes.collections)  # the water's speed


def test_arrows_show_where_wind_blows_and_waves_run(rough_scene):
    axes = Figure().add_subplot()
    draw_map(axes, rough_scene)
    wind, waves = (text for text in axes.texts if isinstance(text, Annotation))
    np.testing.assert_allclose(np.subtract(wind.xy, wind.xyann), [0.1, 0.0], atol=1e-7)
    np.testing.assert_allclose(np.subtract(waves.xy, waves.xyann), [0.0, -0.1], atol=1e-7)
    said = {text.get_text() for text in axes.texts}
    assert {"wind 5.0 m/s", "waves 0.2 m"} <= said


def test_what_has_no_place_on_the_map_is_named(rough_scene):
    def written(config) -> list[str]:
        axes = Figure().add_subplot()
        draw_map(axes, replace(rough_scene, config=config))
        lines = "\n".join(text.get_text() for text in axes.texts).splitlines()
        return [line for line in lines if line]

    usual = rough_scene.config
    assert written(usual) == ["wind 5.0 m/s", "waves 0.2 m"]
    disturbed = replace(
        usual,
        wind=replace(usual.wind, gust_std=1.5),
        thrusters=replace(usual.thrusters, lag=0.3),
        variation=VariationConfig(mass=(0.8, 1.2)),
        perception=replace(usual.perception, miss=0.1, range_factor=(0.5, 1.0)),
    )
    assert written(disturbed)[2:] == [
        "wind.gust_std 1.5 m/s",
        "thrusters.lag 0.3 s",
        "variation.mass 0.8 to 1.2",
        "perception.miss 0.1",
        "perception.range_factor 0.5 to 1",
    ]


def test_the_legend_has_the_current_that_is_drawn(rough_scene):
    still = replace(rough_scene, vortices=np.zeros((0, 3)), stream=np.zeros(2))
    for scene, named in ((replace(still, stream=rough_scene.stream), True), (still, False)):
        for figure in (plot_scene(scene, "one"), plot_scenes([scene], ["one"])):
            texts = [text.get_text() for text in figure.legends[0].texts]
            assert ("current" in texts) == named


def test_the_legend_says_which_thruster_is_lost(rough_scene):
    said = [handle.get_label() for handle in _robot_handles(rough_scene)]
    sides = {-1.0: "port", 1.0: "starboard"}
    lost = [f"\n{sides[side]} thrust lost, 1 s" for _, side in rough_scene.losses]
    assert [label.endswith(words) for label, words in zip(said, lost, strict=True)] == [True, True]
    late = np.array([[99.0, 1.0], [1.0, 0.0]])  # after the episode, and none
    said = [handle.get_label() for handle in _robot_handles(replace(rough_scene, losses=late))]
    assert not any("lost" in label for label in said)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_map_is_square_and_holds_everything(path):
    scene = read_scene(path)
    low, high = map_extent(scene)
    assert np.ptp(high - low) < 1e-9
    points = to_map(np.concatenate([poses[:, :2] for poses in scene.paths]))
    assert (points - 2.5 >= low).all()
    assert (points + 2.5 <= high).all()
    assert (low <= 0.0).all()
    assert (high >= 55.0).all()


def test_a_vessel_that_sails_away_leaves_the_map(rough_scene):
    near, far = (
        map_extent(replace(rough_scene, paths=[np.array([[27.0, 27.0, 0.0], [27.0, end, 0.0]])]))
        for end in (80.0, 900.0)
    )
    assert np.ptp(near, axis=0).max() == pytest.approx(80.0 + 3.5 + 1.0)
    assert np.ptp(far, axis=0).max() == pytest.approx(1.5 * 55.0 + 3.5 + 1.0)


def borders(scene):
    axes = Figure().add_subplot()
    draw_map(axes, scene)
    return [patch for patch in axes.patches if type(patch) is Rectangle]


def test_an_encounter_away_from_the_map_is_shown_whole_and_without_it(scene):
    (border,) = borders(scene)
    assert (*border.get_xy(), border.get_width(), border.get_height()) == (0.0, 0.0, 55.0, 55.0)
    moved, sailed = np.array([-70.0, 30.0, 0.0]), np.array([900.0, 30.0, 0.0])
    away = replace(
        scene,
        paths=(scene.paths[0] + moved, *(np.array([path[0], sailed]) for path in scene.paths[1:])),
        goals=scene.goals + moved[:2],
        buoys=np.array([[-100.0, 40.0, 1.0]]),
    )
    assert borders(away) == []
    assert borders(replace(scene, goals=scene.goals * 0.0 + 55.0 + 1e-6)), "rounded to float32"
    assert borders(replace(scene, buoys=away.buoys)) == [], "a buoy alone"
    low, high = map_extent(away)
    places = np.vstack([path[0, :2] for path in away.paths] + [away.goals, away.buoys[:, :2]])
    assert (to_map(places) - 2.5 >= low).all()
    assert (to_map(places) + 2.5 <= high).all()
    side = np.ptp(places, axis=0).max()
    assert high[1] - low[1] == pytest.approx(1.5 * side + 12.0), "the one that sails away leaves it"


def test_hulls_along_a_track_do_not_cover_each_other():
    path = np.zeros((31, 3))
    path[:, 0] = [*range(10), *[10.0] * 11, *range(11, 21)]  # waits between steps 10 and 20
    assert hull_steps(path, 5, 3.0) == [0, 5, 10, 25]
    assert hull_steps(path[:23], 5, 3.0) == [0, 5]
    assert hull_steps(path[:1], 5, 3.0) == []


def test_buoys_and_goals_stand_where_they_are(scene):
    axes = Figure().add_subplot()
    draw_map(axes, scene)
    circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
    drawn = {(*np.round(circle.center, 6), round(circle.radius, 6)) for circle in circles}
    assert len(scene.buoys) == 4
    for x, y, radius in scene.buoys:
        assert (*np.round((y, x), 6), radius) in drawn
    for goal in scene.goals:
        assert (*np.round(goal[::-1], 6), 2.0) in drawn
    assert axes.get_aspect() == 1.0
    assert axes.get_xlabel().startswith("east y [m]")
    assert axes.get_ylabel() == "north x [m]"


def test_figure_says_how_every_robot_ended(scene):
    figure = plot_scene(scene, "a title")
    texts = [text.get_text() for text in figure.legends[0].texts]
    assert texts[0] == "robot 1: goal at 17 s"
    assert texts[2] == "robot 3: collision at 8.5 s"
    assert texts[5:] == ["start", "goal area", "buoy", "collision"]
    assert figure.axes[0].get_title(loc="left") == "a title"
    image = rendered(figure)
    assert image.shape[:2] == (355, 460)
    assert image.std() > 5.0


def test_panels_of_several_episodes(scene):
    figure = plot_scenes([scene] * 4, list("abcd"), columns=3)
    assert [axes.get_title(loc="left") for axes in figure.axes[:4]] == list("abcd")
    image = rendered(figure)
    assert image.shape[1] == round(3 * 3.6 * 50)
    assert image.std() > 5.0


def test_panels_want_episodes_and_as_many_titles(scene):
    with pytest.raises(ValueError, match="scenes is empty: give at least one"):
        plot_scenes([], [])
    with pytest.raises(ValueError, match="titles has 1 entries for 2 scenes"):
        plot_scenes([scene] * 2, ["one"])


def test_video_shows_collisions_when_they_happen(scene):
    frames = list(video_frames(scene, [0, 16, 17, 52], "a title"))
    red = [((frame[:, :560, 0] > 170) & (frame[:, :560, 1] < 40)).sum() for frame in frames]
    assert red[0] == red[1] == 0
    assert red[2] > 50
    assert red[3] == pytest.approx(red[2], rel=0.1)
    changed = [(frame != frames[0]).any(axis=-1).mean() for frame in frames]
    assert 0.0 == changed[0] < changed[1] < changed[3] < 0.2
