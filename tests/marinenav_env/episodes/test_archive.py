"""Archives hold what Tracks do, whatever disturbs, and say what their columns are."""

import re

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig, EpisodeConfig
from marinenav_env.envs.icra2024 import Icra2024Config, Icra2024Env
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.episodes.archive import archive_of, write_archive
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.record import record_episodes
from marinenav_env.episodes.schema import STEER
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.fields import ConfigError, build
from marinenav_env.tracks import Tracks, record_tracks
from tests.conftest import ROOT
from tests.marinenav_env.episodes.test_record import STAGES, make_env, steer
from tests.marinenav_env.rollouts import EPISODES

ROUGH = {
    "wind": {"speed": [4.0, 4.0]},
    "stream": {"speed": [0.3, 0.3]},
    "waves": {"height": 0.2},
    "thrusters": {"loss_probability": 1.0},
    "episode": {"max_steps": 40},
}


def kept(tracks: Tracks, path, **named):
    worlds = len(tracks.buoys)
    names = {"labels": ["a stage"] * worlds, "steer": [["policy"] * 5] * worlds, "seed": 3}
    write_archive(archive_of(tracks, **(names | named)), path)
    return np.load(path, allow_pickle=False)


def test_an_archive_has_the_numbers_of_the_tracks(tmp_path):
    """Of worlds with three and five robots, of which some end before others."""
    tracks = record_tracks(make_env(noise=True, discrete=False), steer, 60)
    data = kept(tracks, tmp_path / "x.npz")
    steps = int(tracks.length.max())
    present = tracks.present[: steps + 1].transpose(0, 1)
    assert torch.equal(torch.from_numpy(data["present"]), present)
    assert not present.all()
    columns = {"position": ("x", "y"), "velocity": ("vx", "vy"), "thrust": ("left_thrust",)}
    for name, fields in columns.items():
        for column, field in enumerate(fields):
            known = tracks.field(field)[: steps + 1].transpose(0, 1).numpy()
            np.testing.assert_array_equal(data[name][present.numpy(), column], known[present])
        assert np.isnan(data[name][~present.numpy()]).all()
    acted = tracks.acted[:steps].transpose(0, 1).numpy()
    for name in ("action", "reward"):
        known = getattr(tracks, name)[:steps].transpose(0, 1).numpy()
        np.testing.assert_array_equal(data[name][acted], known[acted])
        assert np.isnan(data[name][~acted]).all()
    for name, ends in (("reached", tracks.reached), ("collision", tracks.collided)):
        np.testing.assert_array_equal(data[name].any(axis=1), ends)
    np.testing.assert_array_equal(data["truncated"].any(axis=1), tracks.truncated.any(0))
    np.testing.assert_array_equal(data["time"], 0.5 * np.arange(steps + 1))
    goals = torch.stack([tracks.field(f"goal_{axis}")[0] for axis in "xy"], dim=-1).numpy()
    placed = present[:, 0].numpy()
    np.testing.assert_array_equal(data["goal"][placed], goals[placed])
    assert np.isnan(data["goal"][~placed]).all()
    for name in ("buoys", "vortices"):
        there = data[name][np.isfinite(data[name][..., 2])]
        full = getattr(tracks, name)
        np.testing.assert_array_equal(there, full[full[..., 2] != 0.0])
    assert (data["decision_time"], data["hull_radius"]) == (0.5, EnvConfig().vessel.radius)
    assert data["label"].tolist() == ["a stage"] * 4
    assert data["steer"].tolist() == [["policy"] * 3 + [""] * 2, ["policy"] * 5] * 2
    assert data["seed"] == 3


def rough(discrete: bool) -> Tracks:
    config = build(EnvConfig, ROUGH)
    env = MarineNavEnv(
        2, stages=STAGES[1:], config=config, discrete=discrete, dtype=torch.float64, seed=3
    )
    return record_tracks(env, lambda seen: env.make_action(), 40)


def of_icra2024() -> Tracks:
    stages, config = (Stage(5, 2, 2, 30.0),), Icra2024Config(episode=EpisodeConfig(max_steps=9))
    env = Icra2024Env(2, stages=stages, config=config, dtype=torch.float64)
    return record_tracks(env, lambda seen: env.make_action(), 9)


KINDS = {
    "disturbed": lambda: rough(discrete=False),
    "discrete": lambda: rough(discrete=True),
    "icra2024": of_icra2024,
    "from a file": lambda: tracks_of(read_episode(EPISODES / "calm_policy_5r_4o_b.json")),
}


@pytest.mark.parametrize("tracks", KINDS.values(), ids=KINDS)
def test_every_array_says_its_columns_and_units(tracks, tmp_path):
    tracks = tracks()
    data = kept(tracks, tmp_path / "x.npz")
    assert {data[name].dtype.kind for name in data} <= set("fibU")
    described = [name for name, _, _ in data["columns"].tolist()]
    texts = {"columns", "label", "steer", "seed"}
    assert set(described) == set(data.files) - texts
    for name in set(described):
        count = described.count(name)
        assert count == 1 or data[name].shape[-1] == count, name
    assert ["position", "x", "m"] in data["columns"].tolist()
    discrete = tracks.action.dim() == 3
    assert (data["action"].dtype.kind == "i") == discrete
    if discrete:
        assert (data["action"][~data["present"][:, 1:]] == -1).all()
    known = {name for name in ("stream", "wind", "waves") if getattr(tracks, name) is not None}
    for name in known:
        np.testing.assert_array_equal(data[name], getattr(tracks, name))
    assert known == set(data.files) & {"stream", "wind", "waves"}
    assert ("thrust" in data) == ("left_thrust" in tracks.fields)


def test_a_refused_archive_leaves_the_old_one_alone(tmp_path, monkeypatch):
    arrays = archive_of(rough(discrete=False), ["a"] * 2, [["policy"] * 5] * 2, seed=0)
    path = tmp_path / "x.npz"
    path.write_bytes(b"old")

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fails)
    with pytest.raises(ConfigError, match=r"x\.npz' cannot be written \(No space left on device\)"):
        write_archive(arrays, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_judged_robots_are_named(tmp_path):
    tracks = rough(discrete=False)
    names = [["policy", "orca", "policy", "straight", "policy"], ["policy"] * 5]
    assert kept(tracks, tmp_path / "x.npz", steer=names)["steer"].tolist() == names


TABLE = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| \[.*$", re.MULTILINE)
PAGE = (ROOT / "docs" / "episodes.md").read_text()


def test_the_page_s_example_finds_the_least_gaps(tmp_path, monkeypatch, capsys):
    """Worlds 0 and 2 have three robots and no buoy; not all robots go on to the end."""
    tracks = record_tracks(make_env(noise=True, discrete=False), steer, 60)
    kept(tracks, tmp_path / "episodes.npz")
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(example)
    printed = [float(line.split()[-2]) for line in capsys.readouterr().out.splitlines()]
    expected = []
    for world in range(4):
        places = tracks.robot[:, world, :, :2][tracks.present[:, world]]
        buoys = [buoy for buoy in tracks.buoys[world] if buoy[2] > 0.0]
        gaps = [(places - x[:2]).norm(dim=-1).min() - x[2] - tracks.hull_radius for x in buoys]
        expected.append(float(min(gaps, default=torch.inf)))
    assert printed == pytest.approx(expected, abs=0.006)
    assert np.isinf(printed).tolist() == [True, False, True, False]


def test_the_page_names_every_array_and_key(tmp_path):
    arrays = set(kept(KINDS["disturbed"](), tmp_path / "x.npz").files)
    first, published = PAGE.partition("## The published format")[::2]
    named = {name for row in TABLE.findall(first) for name in re.findall(r"`(\w+)`", row)}
    assert arrays == named
    data = record_episodes(
        MarineNavEnv(1, config=build(EnvConfig, {"vessel": "otter"}), dtype=torch.float64),
        steer,
        seed=0,
    )[0].data
    sections = (data["env"], data["robots"], data["recorded"], STEER)
    inner = (data["env"]["cores"], data["env"]["obstacles"], data["robots"]["perception"])
    for key in {key for section in (*sections, *inner) for key in section}:
        assert f"`{key}`" in published, key
