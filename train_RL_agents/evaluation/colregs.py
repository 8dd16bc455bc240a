"""Scores of closed encounters under the collision regulations (COLREGs, rules 8 and 13 to 17).

Plain functions of tensors of any one shape; angles in degrees, gaps in metres, scores in [0, 1].
The score is the project's own "v1", after Woerner et al. 2019 and Hagen et al. 2023; its items are
those of docs/evaluation.md.
"""

from __future__ import annotations

import torch
from torch import Tensor

from train_RL_agents.evaluation.encounters import NEVER, Columns
from train_RL_agents.evaluation.score import V1

CLASSES = ("OT", "OD", "HO", "GW", "SO", "AMB")
"""Overtaking, overtaken, head-on, crossing give-way, crossing stand-on, ambiguous."""
OT, OD, HO, GW, SO, AMB = range(len(CLASSES))
RULES = {OT: "R13", OD: "R17", HO: "R14", GW: "R15", SO: "R17"}
"""The rule that a class is judged by."""


def classify(beta: Tensor, alpha: Tensor) -> Tensor:
    """Return the class, an index of `CLASSES` (item 2).

    Args:
        beta: bearing of the other from the own course.
        alpha: bearing of the own vessel from the other's course.
    """
    own_abaft, other_abaft = alpha.abs() > V1.abaft_beam, beta.abs() > V1.abaft_beam
    size = torch.maximum(alpha.abs(), beta.abs())
    same_side = torch.sin(torch.deg2rad(alpha)) * torch.sin(torch.deg2rad(beta)) >= 0.0
    head_on = (size <= V1.head_on) | ((size <= V1.head_on_same_side) & same_side)
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


def separation_score(gap: Tensor) -> Tensor:
    """Return S_r of a least gap [m] (item 3)."""
    x = gap / V1.length_m
    total = torch.zeros_like(x)
    gaps, scores = V1.separation_gaps, V1.separation_scores
    for i in range(len(gaps) - 1):
        share = ((x - gaps[i]) / (gaps[i + 1] - gaps[i])).clamp(0.0, 1.0)
        total = total + share * (scores[i + 1] - scores[i])
    return total


def course_score(turn: Tensor) -> Tensor:
    """Return c, how apparent a change of heading is (item 4)."""
    span = V1.turn_apparent - V1.turn_noticed
    return ((turn.abs() - V1.turn_noticed) / span).clamp(0.0, 1.0)


def speed_score(loss: Tensor) -> Tensor:
    """Return s, how apparent a loss of speed is, a share of the speed at the start (item 4)."""
    return ((loss - V1.loss_noticed) / (V1.loss_apparent - V1.loss_noticed)).clamp(0.0, 1.0)


def action_score(turn: Tensor, loss: Tensor) -> Tensor:
    """Return A8, whether the action was large enough to be seen (rule 8b, item 4)."""
    return torch.maximum(course_score(turn), speed_score(loss))


def passing_penalty(alpha: Tensor, beta: Tensor) -> Tensor:
    """Return P_sts, 0 for passing port to port and 1 for starboard to starboard (item 5)."""
    own, other = torch.sin(torch.deg2rad(alpha)), torch.sin(torch.deg2rad(beta))
    return 1.0 - ((own - 1.0) / 2.0) ** 2 * ((other - 1.0) / 2.0) ** 2


def rule14(r8: Tensor, turn: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Return R14, head-on; ``turn`` is the largest change of heading, positive to starboard."""
    not_starboard = (turn < V1.turn_noticed).to(r8.dtype)
    penalty = V1.starboard_penalty * not_starboard
    return r8 * (1.0 - penalty - V1.passing_penalty * passing_penalty(alpha, beta))


def crossed_ahead(alpha: Tensor) -> Tensor:
    """Return whether the give-way vessel was ahead of the other at the closest point (rule 15)."""
    return (alpha > V1.ahead_from) & (alpha < V1.ahead_to)


def rule15(r8: Tensor, alpha: Tensor) -> Tensor:
    """Return R15, crossing, of the vessel that gives way."""
    ahead = crossed_ahead(alpha).to(r8.dtype)
    return (r8 - V1.ahead_penalty * ahead).clamp(min=0.0)


def rule13(r8: Tensor, alpha: Tensor) -> Tensor:
    """Return R13, overtaking."""
    ahead = (alpha.abs() < V1.overtaking_ahead).to(r8.dtype)
    return (r8 - V1.overtaking_penalty * ahead).clamp(min=0.0)


def rule17(turn: Tensor, loss: Tensor, port: Tensor, idle: Tensor) -> Tensor:
    """Return R17, of the vessel that stands on.

    Args:
        turn: its largest change of heading while TCPA > 4 s.
        loss: its largest loss of speed then.
        port: bool, it then turned to port for a crossing vessel.
        idle: bool, it did nothing until contact.
    """
    held = (1.0 - course_score(turn)) * (1.0 - speed_score(loss))
    allowed = 1.0 - V1.port_penalty * port.to(held.dtype)
    return held * allowed * (1.0 - V1.idle_penalty * idle.to(held.dtype))


def pose_score(alpha: Tensor, beta: Tensor) -> Tensor:
    """Return S_Theta, Hagen's score of the bearings at the closest point (item 6)."""
    of_own, of_other = V1.pose_weights
    own = (1.0 - torch.cos(torch.deg2rad(alpha))).clamp(0.0, 1.0)
    other = (1.0 - torch.cos(torch.deg2rad(beta))).clamp(0.0, 1.0)
    return of_own * own + of_other * other


def score_encounters(rows: Columns, hull_radius: float) -> Columns:
    """Return the scores of encounters (items 2 to 6).

    Returns:
        ``class``, ``gap`` (m), ``S_r``, ``A8``, ``P_d``, ``R8``, ``pose``, ``rule`` (that of the
        class; NaN for an ambiguous encounter, to which none is applied) and ``total``.
    """
    alpha, beta = rows["alpha_closest"], rows["beta_closest"]
    kind = classify(rows["beta0"], rows["alpha0"])
    gap = rows["least_distance"] - 2.0 * hull_radius
    turn, loss = rows["turn"], rows["loss"]
    a8 = action_score(turn, loss)
    acted = (rows["action"] != NEVER) & (rows["action"] <= rows["closest"])
    gap0 = rows["distance0"] - 2.0 * hull_radius
    spent = (rows["distance0"] - rows["action_distance"]) / gap0
    delay = torch.where(acted, spent.clamp(0.0, 1.0), 1.0)
    r8 = a8 * (1.0 - delay)
    port = (kind == SO) & (rows["late_turn"] <= -V1.turn_noticed)
    idle = (gap <= 0.0) & (rows["action"] == NEVER)
    early = rows["early_turn"], rows["early_loss"]
    rules = {
        "R13": rule13(r8, alpha),
        "R14": rule14(r8, turn, alpha, beta),
        "R15": rule15(r8, alpha),
        "R17": rule17(*early, port, idle),
    }
    rule = torch.full_like(r8, torch.nan)
    for index, name in RULES.items():
        rule = torch.where(kind == index, rules[name], rule)
    separation = separation_score(gap)
    return {
        "class": kind,
        "gap": gap,
        "S_r": separation,
        "A8": a8,
        "P_d": delay,
        "R8": r8,
        "pose": pose_score(alpha, beta),
        "rule": rule,
        "total": separation * rule,
    }
