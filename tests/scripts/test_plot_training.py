"""Training curves: what is drawn is what the metrics say."""

import json
from pathlib import Path

import imageio.v3 as imageio
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from scripts import plot_training
from train_RL_agents.metrics import curves
from train_RL_agents.metrics.writer import AnalysisReceiver

STAGES = ("3 robots, 0 buoys", "5 robots, 4 buoys")


def write_run(
    folder: Path,
    successes: dict[int, tuple[int, int]],
    episodes: int = 20,
    stages: tuple[str, str] = STAGES,
) -> None:
    """Write the metrics of a run as the trainer does: a log every 10 steps, evaluations at some."""
    receiver = AnalysisReceiver(folder)
    for step in range(10, 51, 10):
        receiver.receive(
            "train",
            step=step,
            episode_return=-step,
            robot_steps=30.0,
            robot_steps_per_s=15.0,
            elapsed_s=6.0 * step,
        )
        if step in successes:
            receiver.receive("evaluation", step=step, success=0.5, elapsed_s=6.0 * step)
            for stage, share in zip(stages, successes[step], strict=True):
                receiver.receive(
                    f"evaluation, {stage}", step=step, episodes=episodes, success=share / episodes
                )
    receiver.close()


@pytest.fixture
def run_dir(tmp_path) -> Path:
    write_run(tmp_path / "one", {20: (10, 4), 50: (20, 12)})
    return tmp_path / "one"


def test_success_of_a_run_with_its_wilson_interval(run_dir):
    run = curves.read_run(run_dir, "one")
    curve = curves.success_curve(run, STAGES, "steps")
    assert curve.x.tolist() == [20, 50]
    assert curve.y == pytest.approx([14 / 40, 32 / 40])
    # Wilson (1927) with z = 1.959964: centre (k + z^2/2)/(n + z^2).
    assert curve.low == pytest.approx([0.2213, 0.6524], abs=1e-4)
    assert curve.high == pytest.approx([0.5049, 0.8950], abs=1e-4)
    first = curves.success_curve(run, STAGES[:1], "steps")
    assert first.y == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize(
    ("axis", "expected"), [("steps", [20, 50]), ("robot-steps", [60, 150]), ("minutes", [2, 5])]
)
def test_course(axis, expected, run_dir):
    run = curves.read_run(run_dir, "one")
    assert curves.success_curve(run, STAGES, axis).x == pytest.approx(expected)


def test_seeds_of_a_sweep_are_joined_where_all_were_evaluated(tmp_path):
    write_run(tmp_path / "sweep" / "seed_0", {20: (10, 4), 50: (20, 12)})
    write_run(tmp_path / "sweep" / "seed_1", {20: (12, 8), 40: (1, 1)})
    run = curves.read_run(tmp_path / "sweep", "sweep")
    curve = curves.success_curve(run, STAGES, "steps")
    assert len(run.seeds) == 2
    assert curve.x.tolist() == [20]
    assert (curve.low[0], curve.y[0], curve.high[0]) == pytest.approx((14 / 40, 17 / 40, 20 / 40))


def test_the_joint_curve_is_of_the_given_runs_alone(tmp_path):
    for seed, shares in enumerate([(10, 4), (12, 8), (0, 0)]):
        write_run(tmp_path / f"seed_{seed}", {20: shares})
    run = curves.read_runs([tmp_path / "seed_0", tmp_path / "seed_1"], "SAC")
    (line,) = curves.plot_runs([run]).axes[0].lines
    assert line.get_label() == "SAC (2 seeds, lowest to highest)"
    assert line.get_xydata().tolist() == [[20, pytest.approx(17 / 40)]]


@pytest.mark.parametrize(
    ("begin", "title"), [(0, "success, all stages"), (1, "success, stages of all runs: 1")]
)
def test_runs_are_compared_in_the_stages_of_all(run_dir, tmp_path, begin, title):
    """One that has not been evaluated yet has no say in it."""
    stages = (*STAGES, "9 robots, 9 buoys")[begin : begin + 2]
    write_run(tmp_path / "two", {50: (20, 12)}, stages=stages)
    write_run(tmp_path / "young", {})
    folders = (run_dir, tmp_path / "two", tmp_path / "young")
    axes = curves.plot_runs([curves.read_run(folder, "x") for folder in folders]).axes[0]
    assert axes.get_title(loc="left") == title
    expected = [[14 / 40, 32 / 40], [32 / 40], []] if begin == 0 else [[0.2, 0.6], [1.0], []]
    assert [line.get_ydata().tolist() for line in axes.lines] == [
        pytest.approx(found) for found in expected
    ]


def test_figure_has_a_panel_per_stage_and_a_curve_per_run(run_dir, tmp_path):
    write_run(tmp_path / "two", {50: (20, 12)})
    runs = [curves.read_run(folder, folder.name) for folder in (run_dir, tmp_path / "two")]
    figure = curves.plot_runs(runs)
    assert isinstance(figure, Figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[3:] == [f"success, {stage}" for stage in STAGES]
    assert [line.get_ydata().tolist() for line in figure.axes[3].lines] == [[0.5, 1.0], [1.0]]
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "one (95% interval)",
        "two (95% interval)",
    ]


def test_interval_of_a_single_evaluation_is_seen(tmp_path):
    write_run(tmp_path / "one", {50: (20, 12)})
    figure = curves.plot_runs([curves.read_run(tmp_path / "one", "one")])
    (segment,) = [
        path.vertices.tolist()
        for drawn in figure.axes[0].collections
        if isinstance(drawn, LineCollection)
        for path in drawn.get_paths()
    ]
    assert segment == [[50, pytest.approx(0.6524, abs=1e-4)], [50, pytest.approx(0.895, abs=1e-4)]]


def test_command_writes_the_figure(run_dir, tmp_path, capsys):
    output = tmp_path / "curves.png"
    status = plot_training.main([str(run_dir), "--output", str(output), "--dpi", "60"])
    assert status == 0
    assert capsys.readouterr().out.strip() == str(output)
    image = imageio.imread(output)
    assert image.shape[:2] == (354, 660)
    assert image[..., :3].std() > 5.0


def test_a_run_that_has_not_been_evaluated_is_drawn(tmp_path):
    write_run(tmp_path / "young", {})
    figure = curves.plot_runs([curves.read_run(tmp_path / "young", "young")])
    assert len(figure.axes) == 3
    assert figure.axes[1].lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "has no metrics.jsonl, nor has a folder in it: give a run's folder"),
        ("", "hold no record: wait for the run's first one"),
        ('{"mode": "train"\n{}\n', "hold no record: wait for the run's first one"),
    ],
)
def test_unusable_runs_are_named(content, message, tmp_path, capsys):
    if content is not None:
        (tmp_path / "metrics.jsonl").write_text(content)
    status = plot_training.main([str(tmp_path), "--output", str(tmp_path / "x.png")])
    error = capsys.readouterr().err
    assert status == 2
    assert str(tmp_path) in error
    assert "error: " in error
    with pytest.raises(ValueError, match=message):
        curves.read_run(tmp_path, "x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "x.bmp"], "use one of .png"),
        (["--output", "missing/x.png"], "'missing/x.png': its folder is missing, make it"),
        (["--output", "x.png", "--labels", "a", "b"], "--labels has 2 names for 1 runs"),
    ],
)
def test_unusable_options_are_named(options, message, run_dir, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(plot_training.main, [str(run_dir), *options], message, status=2)


def test_metrics_are_read_as_they_are_written(run_dir):
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    (records,) = curves.read_run(run_dir, "one").seeds
    assert list(records) == [json.loads(line) for line in lines]
