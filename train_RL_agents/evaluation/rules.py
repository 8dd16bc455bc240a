"""Rule scores of many encounters, by class, with intervals over worlds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from train_RL_agents.evaluation.colregs import (
    AMB,
    CLASSES,
    GW,
    HO,
    RULES,
    crossed_ahead,
    score_encounters,
)
from train_RL_agents.evaluation.intervals import Estimate, bootstrap_of
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.score import V1

SHOWN = ("S_r", "A8", "P_d", "R8", "rule", "total", "pose")
"""Scores whose means are given for every class."""


def rule_table(measures: Measures) -> dict[str, Any]:
    """Return the mean scores of each class, and plain shares beside them, as JSON values.

    Meant for scenarios in which the goals lie straight ahead: elsewhere vessels also turn for their
    goals, and a turn says nothing about a rule.
    """
    scored = score_encounters(measures.encounters, measures.hull_radius)
    world, kind = measures.encounters["world"], scored["class"]
    bootstrap = bootstrap_of(measures.worlds)

    def share(flags: Tensor, among: Tensor) -> dict[str, Any]:
        parts = (bootstrap.sums(world, flags & among), bootstrap.sums(world, among))
        estimate = bootstrap.share(*parts) if among.any() else Estimate(*(torch.nan,) * 3)
        return estimate.as_json()

    classes = {}
    for index, rule in RULES.items():
        chosen = kind == index
        means = {name: bootstrap.mean(world[chosen], scored[name][chosen]) for name in SHOWN}
        numbers = {name: mean.as_json() for name, mean in means.items()}
        numbers[rule] = numbers.pop("rule")
        classes[CLASSES[index]] = {"encounters": int(chosen.sum()), **numbers}
    alpha, beta = measures.encounters["alpha_closest"], measures.encounters["beta_closest"]
    contact = scored["gap"] <= 0.0
    ahead = crossed_ahead(alpha)
    sides = {"port_to_port": ~contact & (beta < 0.0), "contact": contact}
    ways = {"astern": ~contact & ~ahead, "ahead": ~contact & ahead, "contact": contact}
    return {
        "score": V1.version,
        "encounters": len(kind),
        "ambiguous": share(kind == AMB, torch.ones_like(contact)),
        "classes": classes,
        "head_on": {name: share(flags, kind == HO) for name, flags in sides.items()},
        "give_way": {name: share(flags, kind == GW) for name, flags in ways.items()},
    }
