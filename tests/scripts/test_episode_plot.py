"""The drawing command: figures and videos of an episode file."""

import json
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from marinenav_env.render import video
from scripts import episode as program
from scripts.episodes import plot
from tests.marinenav_env.rollouts import EPISODES


@pytest.fixture
def short(tmp_path) -> Path:
    """The first four decisions of an episode with currents and buoys."""
    data = json.loads((EPISODES / "vortex_policy_4r_2o_4c.json").read_text())
    del data["recorded"]
    for key, length in (("action_history", 4), ("trajectory", 5)):
        data["robots"][key] = [rows[:length] for rows in data["robots"][key]]
    path = tmp_path / "short.json"
    path.write_text(json.dumps(data))
    return path


def test_figure_of_the_expected_size(short, tmp_path, capsys):
    output = tmp_path / "short.png"
    assert program.main(["plot", str(short), "--output", str(output), "--dpi", "50"]) == 0
    assert capsys.readouterr().out.strip() == str(output)
    image = imageio.imread(output)
    assert image.shape[:2] == (355, 460)
    assert image[..., :3].std() > 5.0


def test_figure_is_named_after_the_episode(short, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert program.main(["plot", str(short), "--dpi", "20"]) == 0
    assert (tmp_path / "short.png").is_file()


@pytest.mark.parametrize("kind", ["gif", "mp4"])
def test_video_moves(kind, short, tmp_path):
    output = tmp_path / f"short.{kind}"
    assert program.main(["plot", str(short), "--output", str(output), "--fps", "4"]) == 0
    frames = imageio.imread(output)
    assert frames.shape[1:] == (568, 736, 3)
    assert frames.shape[0] >= 5
    first, last = frames[0].astype(int), frames[-1].astype(int)
    assert (abs(last - first).max(axis=-1) > 60).sum() > 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "x.bmp"], "'x.bmp' ends in '.bmp': use one of .png .pdf .svg .gif .mp4"),
        (["--output", "missing/x.png"], "'missing/x.png': its folder is missing, make it"),
        (["--output", "x.gif", "--fps", "0"], "fps is 0.0: give a finite number above 0"),
        (["--output", "x.png", "--dpi", "0"], "--dpi is 0: give 1 or more"),
        (["--output", "x.png", "--fps", "5"], "--fps is 5, which is for videos"),
        (["--output", "x.gif", "--dpi", "99"], "--dpi is 99, which is for figures"),
    ],
)
def test_unusable_options_are_named(options, message, short, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(program.main, ["plot", str(short), *options], message, status=2)
    assert not list(tmp_path.glob("x.*"))


def test_a_damaged_episode_is_named(tmp_path, refused):
    path = tmp_path / "damaged.json"
    path.write_text('{"env": {}}')
    command = ["plot", str(path), "--output", str(tmp_path / "x.png")]
    refused(program.main, command, "key 'robots' is missing", status=2)


class Unfinished(Artist):
    """What breaks a drawing in its midst."""

    def draw(self, renderer):
        raise RuntimeError("broken on purpose")


def test_a_failed_figure_leaves_the_old_one(short, tmp_path, monkeypatch):
    figure = Figure()
    figure.add_artist(Unfinished())
    monkeypatch.setattr(plot, "plot_scene", lambda *_: figure)
    output = tmp_path / "drawing.svg"  # a kind that is written while it is drawn
    output.write_text("old")
    with pytest.raises(RuntimeError, match="on purpose"):
        program.main(["plot", str(short), "--output", str(output)])
    assert output.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == sorted([short, output])


def test_a_failed_video_leaves_the_old_one(short, tmp_path, monkeypatch):
    def frames(*_):
        yield np.zeros((64, 64, 3), dtype=np.uint8)
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(video, "video_frames", frames)
    output = tmp_path / "video.mp4"
    output.write_text("old")
    with pytest.raises(RuntimeError, match="on purpose"):
        program.main(["plot", str(short), "--output", str(output)])
    assert output.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == sorted([short, output])


def test_what_a_policy_does_in_worlds_that_no_file_holds(tmp_path, refused):
    common = ["plot", "--checkpoint", "baseline:goal-straight", "--limit", "30"]

    def drawn(*options):
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.png"
        assert program.main([*common, "--dpi", "30", "--output", str(output), *options]) == 0
        return imageio.imread(output)

    crowded = ("--stage", "5,0,6,40")
    assert not np.array_equal(drawn(*crowded), drawn(*crowded, "--shield", "margin_m=1"))
    calm = drawn("--stage", "2,1,2,30")
    assert not np.array_equal(calm, drawn("--stage", "2,1,2,30", "env.wind.speed=[15,15]"))
    several = drawn("--stage", "1", "--stage", "2,0,0,20", "env.waves.height=0.2")
    assert several.shape != calm.shape
    assert drawn("--scenario", "singles").shape[0] > several.shape[0]
    refused(program.main, common[:1], "give either an episode file or --checkpoint", status=2)
    of_file = ["plot", "x.json", "--stage", "1"]
    refused(program.main, of_file, "the worlds of an episode file are its own", status=2)
    guarded = ["plot", "x.json", "--shield"]
    refused(program.main, guarded, "--shield guards a policy, not an episode file", status=2)
    refused(program.main, [*common, "--shield", "margin_m=-1"], "margin_m", status=2)
    video = [*common, "--output", str(tmp_path / "x.gif"), "--scenario", "singles"]
    refused(program.main, video, "a video shows one episode, not 9", status=2)
