"""The figure of rules over time: what it reads, which policies are not beaten, what it refuses."""

import json
from pathlib import Path

import imageio.v3 as imageio
import pytest

from scripts import plot_trade
from scripts.plot_trade import Point, frontier, point_of
from tests.conftest import ROOT


def write_policy(folder: Path, time_s: float | None, totals: tuple[float | None, ...]) -> Path:
    classes = {
        name: {"total": {"value": total}}
        for name, total in zip(plot_trade.CLASSES, totals, strict=True)
    }
    stages = [
        {"mean_time_s": 1.0, "success": 0.1},
        {"mean_time_s": time_s, "success": 0.9},
    ]
    folder.mkdir()
    table = {"stages": stages, "encounters": {"rules": {"classes": classes}}}
    (folder / "evaluation.json").write_text(json.dumps(table))
    return folder


def test_a_point_is_the_last_stage_and_the_mean_of_the_classes(tmp_path):
    point = point_of(write_policy(tmp_path / "a", 20.0, (0.1, 0.2, 0.6)))
    assert point == ("a", 20.0, pytest.approx(0.3), 0.9, True)


def test_without_head_on_encounters_it_is_the_mean_of_the_others_and_hollow(tmp_path):
    early = point_of(write_policy(tmp_path / "a", 20.0, (None, 0.2, 0.6)))
    assert early == ("a", 20.0, pytest.approx(0.4), 0.9, False)
    full = Point("b", 21.0, 0.3, 0.9)
    assert frontier([early, full]) == [full]
    fills = [line.get_fillstyle() for line in plot_trade.plot([early, full]).axes[0].lines]
    assert fills == ["full", "none", "full", "none"]  # the frontier, two points, and the legend
    assert len(plot_trade.plot([full]).axes[0].lines) == 2


def test_the_frontier_holds_what_nothing_beats_in_both():
    quick, beaten, between = (Point(*p, 1.0) for p in (("q", 1, 0.2), ("b", 3, 0.1), ("m", 2, 0.5)))
    slow, late = Point("s", 4, 0.9, 1.0), Point("l", 4, 0.5, 1.0)
    assert frontier([slow, beaten, quick, late, between]) == [quick, between, slow]


def test_no_name_covers_another_or_a_point():
    near = [Point(f"name {k}", 25.0 + 0.3 * k, 0.2 + 0.002 * k, 0.9) for k in range(3)]
    (axes,) = plot_trade.plot([*near, Point("far", 29.0, 0.7, 1.0)]).axes
    names = [name.get_window_extent() for name in axes.texts]
    assert len(names) == 4
    assert all(box.count_overlaps(names) == 1 for box in names)  # itself
    spots = axes.transData.transform([(point.time_s, point.rules) for point in near])
    assert not any(box.contains(*spot) for box in names for spot in spots)


def test_no_name_leaves_the_axes():
    """Two points at the left edge, and names that do not fit there."""
    edge = [Point("a name of some length", 22.4 + 0.1 * k, 0.5, 0.99) for k in range(2)]
    (axes,) = plot_trade.plot([*edge, Point("far", 26.0, 0.1, 1.0)]).axes
    boxes = [name.get_window_extent() for name in axes.texts]
    assert all(axes.bbox.x0 < box.x0 and box.x1 < axes.figure.bbox.x1 for box in boxes)
    assert all(box.count_overlaps(boxes) == 1 for box in boxes)


def test_the_shipped_policies_are_drawn(tmp_path, capsys):
    files = (ROOT / "pretrained").glob("*/evaluation.json")
    met = [str(path.parent) for path in files if "encounters" in json.loads(path.read_text())]
    assert len(met) > 12
    output = tmp_path / "trade.png"
    assert plot_trade.main([*met, "--output", str(output)]) == 0
    assert imageio.imread(output).std() > 0
    assert str(output) in capsys.readouterr().out


def test_what_cannot_be_drawn_is_named(tmp_path, refused):
    bare = write_policy(tmp_path / "bare", 20.0, (0.1, None, 0.6))  # no give-way encounter
    figure = ["--output", str(tmp_path / "trade.png")]
    refused(plot_trade.main, [str(bare), *figure], "has no rule score", status=2)
    failing = write_policy(tmp_path / "failing", None, (0.1, 0.5, 0.6))
    refused(plot_trade.main, [str(failing), *figure], "has no success in the last stage", status=2)
    refused(plot_trade.main, [str(tmp_path), *figure], "has no evaluation.json", status=2)
    refused(plot_trade.main, [str(bare), "--output", "trade.bmp"], "ends in '.bmp'", status=2)
