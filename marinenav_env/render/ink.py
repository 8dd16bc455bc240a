"""Colours of an episode's figure."""

from __future__ import annotations

from matplotlib.colors import LinearSegmentedColormap, to_rgba

ROBOT_COLOURS = (
    "#0077BB",
    "#EE7733",
    "#009988",
    "#CC3377",
    "#5B3FA0",
    "#8C5A2B",
    "#33A5CC",
    "#7F8F18",
    "#222222",
    "#4466FF",
    "#6B0F2A",
    "#C77DFF",
)
"""Colours of robots in order. The number at its start tells a robot apart, too."""

WATER, TEXT_INK, GRID = "#F3F8FB", "#22313A", "#D5E1E8"
CURRENT_INK, VORTEX_INK = "#7FAECB", "#2F6E97"
WIND_INK = "#4A5A66"
BUOY_FILL, BUOY_EDGE = "#F2C230", "#4A3B00"
COLLISION_INK = "#C00020"
WATER_SPEED = LinearSegmentedColormap.from_list("water", ["#F3F8FB", "#C4DDEC", "#7FB2D3"])
FASTEST_SHADE = 1.5
"""Water speed [m/s] from which the shade grows no darker; only the vortices' cores are faster."""


def colour_of(robot: int) -> str:
    """Return the colour of a robot, by its index."""
    return ROBOT_COLOURS[robot % len(ROBOT_COLOURS)]


def darker(ink: str) -> tuple[float, float, float]:
    """Return the colour of edges and text on a colour."""
    red, green, blue, _ = to_rgba(ink)
    return 0.6 * red, 0.6 * green, 0.6 * blue
