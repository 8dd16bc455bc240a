"""The few numbers of a run that TensorBoard shows by default; ``metrics.jsonl`` has all."""

from __future__ import annotations

from fnmatch import fnmatchcase

HEADLINE = (
    "evaluation/success",
    "evaluation, */success",
    "evaluation/near_miss_vessel",
    "final evaluation/success",
    "train/success",
    "train/collision",
    "train/timeout",
    "train/episode_return",
    "train/robot_steps_per_s",
    "train/samples_per_insert",
    "train/epsilon",
    "train/learning_rate_scale",
    "train/q_mean",
    "train/*_loss",
)
"""Patterns of ``label/name``. With the six published stages they and what `train.py` adds, two
texts and a figure, make at most 25 tags for any algorithm."""


def is_headline(mode: str, name: str) -> bool:
    """Whether TensorBoard shows the quantity ``name`` of the label ``mode`` by default."""
    return any(fnmatchcase(f"{mode}/{name}", pattern) for pattern in HEADLINE)
