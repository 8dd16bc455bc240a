"""Scores of closed encounters under the collision regulations (COLREGs, rules 8 and 13 to 17).

Plain functions of tensors of any one shape; angles in degrees, gaps in metres, scores in [0, 1].
The score is the project's own "v1", after Woerner et al. 2019 and Hagen et al. 2023; its items are
those of docs/evaluation.md.
"""

from __future__ import annotations

import torch
from torch import Tensor

from train_RL_agents.evaluation.encounters import NEVER, Columns
from train_RL_agents.evaluation.score import V1, Score

CLASSES = ("OT", "OD", "HO", "GW", "SO", "AMB")
"""Overtaking, overtaken, head-on, crossing give-way, crossing stand-on, ambiguous."""
OT, OD, HO, GW, SO, AMB = range(len(CLASSES))
RULES = {OT: "R13", OD: "R17", HO: "R14", GW: "R15", SO: "R17"}
"""The rule that a class is judged by."""


def classify(beta: Tensor, alpha: Tensor, score: Score = V1) -> Tensor:
    """Return the class, an index of `CLASSES` (item 2).

    Args:
        beta: bearing of the other from the own course.
        alpha: bearing of the own vessel from the other's course.
        score: the constants.
    """
    own_abaft, other_abaft = alpha.abs() > score.abaft_beam, beta.abs() > score.abaft_beam
    size = torch.maximum(alpha.abs(), beta.abs())
    same_side = torch.sin(torch.deg2rad(alpha)) * torch.sin(torch.deg2rad(beta)) >= 0.0
    head_on = (size <= score.head_on) | ((size <= score.head_on_same_side) & same_side)
    conditions = (
        (own_abaft & ~other_abaft, OT),
        (other_abaft & ~own_abaft, OD),
        (own_abaft & other_abaft, AMB),
        (head_on, HO),
        ((beta > 0.0) & (alpha < 0.0), GW),
        ((beta < 0.0) & (alpha > 0.0), SO),
    )
    kind = torch.full_like(beta, AMB, dtype=torch.int64)
    for condition, index in reversed(conditions):
        kind = torch.where(condition, index, kind)
    return kind


def separation_score(gap: Tensor, score: Score = V1) -> Tensor:
    """Return S_r of a least gap [m] (item 3)."""
    x = gap / score.length_m
    total = torch.zeros_like(x)
    gaps, scores = score.separation_gaps, score.separation_scores
    for i in range(len(gaps) - 1):
        share = ((x - gaps[i]) / (gaps[i + 1] - gaps[i])).clamp(0.0, 1.0)
        total = total + share * (scores[i + 1] - scores[i])
    return total


def course_score(turn: Tensor, score: Score = V1) -> Tensor:
    """Return c, how apparent a change of heading is (item 4)."""
    span = score.turn_apparent - score.turn_noticed
    return ((turn.abs() - score.turn_noticed) / span).clamp(0.0, 1.0)


def speed_score(loss: Tensor, score: Score = V1) -> Tensor:
    """Return s, how apparent a loss of speed is, a share of the speed at the start (item 4)."""
    return ((loss - score.loss_noticed) / (score.loss_apparent - score.loss_noticed)).clamp(
        0.0, 1.0
    )


def action_score(turn: Tensor, loss: Tensor, score: Score = V1) -> Tensor:
    """Return A8, whether the action was large enough to be seen (rule 8b, item 4)."""
    return torch.maximum(course_score(turn, score), speed_score(loss, score))


def passing_penalty(alpha: Tensor, beta: Tensor) -> Tensor:
    """Return P_sts, 0 for passing port to port and 1 for starboard to starboard (item 5)."""
    own, other = torch.sin(torch.deg2rad(alpha)), torch.sin(torch.deg2rad(beta))
    return 1.0 - ((own - 1.0) / 2.0) ** 2 * ((other - 1.0) / 2.0) ** 2


def rule14(r8: Tensor, turn: Tensor, alpha: Tensor, beta: Tensor, score: Score = V1) -> Tensor:
    """Return R14, head-on; ``turn`` is the largest change of heading, positive to starboard."""
    not_starboard = (turn < score.turn_noticed).to(r8.dtype)
    penalty = score.starboard_penalty * not_starboard
    return r8 * (1.0 - penalty - score.passing_penalty * passing_penalty(alpha, beta))


def crossed_ahead(alpha: Tensor, score: Score = V1) -> Tensor:
    """Return whether the give-way vessel was ahead of the other at the closest point (rule 15)."""
    return (alpha > score.ahead_from) & (alpha < score.ahead_to)


def rule15(r8: Tensor, alpha: Tensor, score: Score = V1) -> Tensor:
    """Return R15, crossing, of the vessel that gives way."""
    ahead = crossed_ahead(alpha, score).to(r8.dtype)
    return (r8 - score.ahead_penalty * ahead).clamp(min=0.0)


def rule13(r8: Tensor, alpha: Tensor, score: Score = V1) -> Tensor:
    """Return R13, overtaking."""
    ahead = (alpha.abs() < score.overtaking_ahead).to(r8.dtype)
    return (r8 - score.overtaking_penalty * ahead).clamp(min=0.0)


def rule17(turn: Tensor, loss: Tensor, port: Tensor, idle: Tensor, score: Score = V1) -> Tensor:
    """Return R17, of the vessel that stands on.

    Args:
        turn: its largest change of heading while TCPA > 4 s.
        loss: its largest loss of speed then.
        port: bool, it then turned to port for a crossing vessel.
        idle: bool, it did nothing until contact.
        score: the constants.
    """
    held = (1.0 - course_score(turn, score)) * (1.0 - speed_score(loss, score))
    allowed = 1.0 - score.port_penalty * port.to(held.dtype)
    return held * allowed * (1.0 - score.idle_penalty * idle.to(held.dtype))


def pose_score(alpha: Tensor, beta: Tensor, score: Score = V1) -> Tensor:
    """Return S_Theta, Hagen's score of the bearings at the closest point (item 6)."""
    of_own, of_other = score.pose_weights
    own = (1.0 - torch.cos(torch.deg2rad(alpha))).clamp(0.0, 1.0)
    other = (1.0 - torch.cos(torch.deg2rad(beta))).clamp(0.0, 1.0)
    return of_own * own + of_other * other


def score_encounters(rows: Columns, hull_radius: float, score: Score = V1) -> Columns:
    """Return the scores of encounters (items 2 to 6).

    Returns:
        ``class``, ``gap`` (m), ``S_r``, ``A8``, ``P_d``, ``R8``, ``pose``, ``rule`` (that of the
        class; NaN for an ambiguous encounter, to which none is applied) and ``total``.
    """
    alpha, beta = rows["alpha_closest"], rows["beta_closest"]
    kind = classify(rows["beta0"], rows["alpha0"], score)
    gap = rows["least_distance"] - 2.0 * hull_radius
    turn, loss = rows["turn"], rows["loss"]
    a8 = action_score(turn, loss, score)
    acted = (rows["action"] != NEVER) & (rows["action"] <= rows["closest"])
    gap0 = rows["distance0"] - 2.0 * hull_radius
    spent = (rows["distance0"] - rows["action_distance"]) / gap0
    delay = torch.where(acted, spent.clamp(0.0, 1.0), 1.0)
    r8 = a8 * (1.0 - delay)
    port = (kind == SO) & (rows["late_turn"] <= -score.turn_noticed)
    idle = (gap <= 0.0) & (rows["action"] == NEVER)
    early = rows["early_turn"], rows["early_loss"]
    rules = {
        "R13": rule13(r8, alpha, score),
        "R14": rule14(r8, turn, alpha, beta, score),
        "R15": rule15(r8, alpha, score),
        "R17": rule17(*early, port, idle, score),
    }
    rule = torch.full_like(r8, torch.nan)
    for index, name in RULES.items():
        rule = torch.where(kind == index, rules[name], rule)
    separation = separation_score(gap, score)
    return {
        "class": kind,
        "gap": gap,
        "S_r": separation,
        "A8": a8,
        "P_d": delay,
        "R8": r8,
        "pose": pose_score(alpha, beta, score),
        "rule": rule,
        "total": separation * rule,
    }
