"""Draws what keeping the rules costs in time: the rule score of policies over their travel time.

    python scripts/plot_trade.py pretrained/iqn pretrained/iqn_rules --output trade.png

A FOLDER is one that make_pretrained.py wrote: its `evaluation.json` holds stages and encounters.
Each point is a policy: the mean travel time of its last stage, and the mean total of the rule score
v1 over head-on, give-way and stand-on encounters. The line joins the policies that no other beats
in both. Where vessels turn so early that no encounter counts as head-on, a hollow point shows the
mean of the other two, beside the line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from marinenav_env.render.figures import save_figure
from marinenav_env.render.ink import colour_of
from train_RL_agents.commands.parser import FIGURES, Parser, output_file, tells

CLASSES = ("HO", "GW", "SO")
PLACES = (
    ((6, -3), "left"),
    ((-6, -3), "right"),
    ((0, 7), "center"),
    ((0, 14), "center"),
    ((0, -13), "center"),
)
"""Of a name beside its point: offset in points and alignment, the first that is free."""


class Point(NamedTuple):
    """A policy in the figure.

    Attributes:
        name: of its folder.
        time_s: mean travel time of the episodes of the last stage that succeed [s].
        rules: mean over `CLASSES` of the rule score's total, 0 to 1.
        success: in the last stage, 0 to 1.
        head_on: whether encounters count as head-on; else the mean is that of the other classes.
    """

    name: str
    time_s: float
    rules: float
    success: float
    head_on: bool = True


def point_of(folder: Path) -> Point:
    """Read a policy's evaluation.

    Raises:
        ValueError: there is none, or it has no encounters, or none of a class but head-on, or no
            success in the last stage.
    """
    file = folder / "evaluation.json"
    if not file.is_file():
        raise ValueError(f"{folder} has no evaluation.json: name a folder of make_pretrained.py")
    table = json.loads(file.read_text())
    classes = table.get("encounters", {}).get("rules", {}).get("classes", {})
    head_on, *others = (classes.get(name, {}).get("total", {}).get("value") for name in CLASSES)
    if None in others:
        raise ValueError(
            f"{file} has no rule score of {', '.join(CLASSES[1:])}: leave {folder} out"
        )
    known = others if head_on is None else [head_on, *others]
    time_s, success = (table["stages"][-1][key] for key in ("mean_time_s", "success"))
    if time_s is None:
        raise ValueError(f"{file} has no success in the last stage: leave {folder} out")
    return Point(folder.name, time_s, statistics.mean(known), success, head_on is not None)


def frontier(points: Sequence[Point]) -> list[Point]:
    """Return the points of all classes that no other such beats in both, quickest first."""
    best: list[Point] = []
    full = [point for point in points if point.head_on]
    for point in sorted(full, key=lambda point: (point.time_s, -point.rules)):
        if not best or point.rules > best[-1].rules:
            best.append(point)
    return best


def write_names(figure: Figure, axes: Axes, points: Sequence[Point]) -> None:
    """Write each point's name at the first place where it covers nothing, else at the last.

    Left of the axes it would cover the scale.
    """
    figure.draw_without_rendering()  # the layout says where points lie
    spots = axes.transData.transform([(point.time_s, point.rules) for point in points])
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in spots]
    for point in points:
        for offset, side in PLACES:
            name = axes.annotate(
                f"{point.name}, {point.success:.3f}",
                (point.time_s, point.rules),
                offset,
                textcoords="offset points",
                ha=side,
                fontsize=8,
            )
            box = name.get_window_extent()
            inside = axes.bbox.x0 < box.x0 and box.x1 < figure.bbox.x1
            free = inside and box.count_overlaps(taken) == 0
            if free or (offset, side) == PLACES[-1]:
                taken.append(box)
                break
            name.remove()


def plot(points: Sequence[Point]) -> Figure:
    """Draw the points and their frontier."""
    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    best = frontier(points)
    line = ([point.time_s for point in best], [point.rules for point in best])
    axes.plot(*line, color=colour_of(0), linewidth=1.2, label="not beaten in both")
    for point in points:
        ink = colour_of(0 if point in best else 1)
        fill = "full" if point.head_on else "none"
        axes.plot(point.time_s, point.rules, "o", color=ink, markersize=5, fillstyle=fill)
    if not all(point.head_on for point in points):
        hollow = "none counts as head-on: mean of the other two"
        axes.plot([], [], "o", color=colour_of(1), markersize=5, fillstyle="none", label=hollow)
    axes.set_xlabel("mean travel time, last stage [s]")
    axes.set_ylabel("rule score, mean of head-on, give-way, stand-on")
    title = "what the rules cost (beside a name: success, last stage)"
    axes.set_title(title, loc="left", fontsize=10)
    axes.margins(x=0.28, y=0.08)
    axes.grid(color="#D5E1E8", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, loc="upper left", frameon=False)
    write_names(figure, axes, points)
    return figure


@tells(ValueError, status=2)
def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the policies named on the command line; return the exit status: 0, or 2 for no use."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="policies to draw, a folder each"
    )
    parser.add_argument(
        "--output",
        type=output_file(*FIGURES),
        required=True,
        help=f"write this figure: {' '.join(FIGURES)}",
    )
    options = parser.parse_args(arguments)
    points = [point_of(folder) for folder in options.folders]
    save_figure(plot(points), options.output, dpi=150)
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
