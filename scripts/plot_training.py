"""Draw the curves of training runs, with intervals, from their metrics.

A RUN_DIR is the folder of one run, or of a sweep over seeds. Bands: of a run, the 95% Wilson
interval of its evaluation's episodes; of a sweep, the span from the lowest to the highest seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from marinenav_env.render.figures import save_figure
from train_RL_agents.commands.parser import FIGURES, Parser, output_file, tells
from train_RL_agents.metrics.curves import AXES, plot_runs, read_run


@tells(ValueError, status=2)
def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the runs named on the command line, and say where the figure is.

    Args:
        arguments: command line; the process's own if None.

    Returns:
        Exit status: 0, or 2 if a run or the output is of no use.
    """
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN_DIR", help="folder of a run or of a sweep"
    )
    parser.add_argument(
        "--output",
        type=output_file(*FIGURES),
        required=True,
        help=f"write this figure: {' '.join(FIGURES)}",
    )
    parser.add_argument(
        "--x", choices=AXES, default="steps", help="draw over this course of the runs"
    )
    parser.add_argument("--labels", nargs="+", help="name the runs so in the legend, one name each")
    parser.add_argument("--dpi", type=int, default=150, help="draw so many pixels per inch")
    options = parser.parse_args(arguments)
    if options.labels and len(options.labels) != len(options.runs):
        raise ValueError(
            f"--labels has {len(options.labels)} names for {len(options.runs)} runs: give one each"
        )
    labels = options.labels or [folder.name for folder in options.runs]
    runs = [read_run(folder, label) for folder, label in zip(options.runs, labels, strict=True)]
    save_figure(plot_runs(runs, options.x), options.output, options.dpi)
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
