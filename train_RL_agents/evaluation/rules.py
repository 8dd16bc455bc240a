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
    score_encounters,
)
from train_RL_agents.evaluation.intervals import Estimate, bootstrap_of
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.meetings import AHEAD, ASTERN, NOT_PASSED, PORT, STARBOARD
from train_RL_agents.evaluation.score import V1

SHOWN = ("S_r", "A8", "P_d", "R8", "rule", "total", "pose")
"""Scores whose means are given for every class."""


def rule_table(measures: Measures) -> dict[str, Any]:
    """Return mean scores of each class of encounters, and the sides of meetings, as JSON values.

    Meant for scenarios in which the goals lie straight ahead: elsewhere vessels also turn for their
    goals, a turn says nothing about a rule, and the first heading is no planned course.
    """
    scored = score_encounters(measures.encounters, measures.hull_radius)
    world, kind = measures.encounters["world"], scored["class"]
    bootstrap = bootstrap_of(measures.worlds)

    def share(flags: Tensor, among: Tensor, world: Tensor) -> dict[str, Any]:
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
    met = measures.meetings
    contact = met["gap"] <= 0.0

    def sides(index: int, names: dict[str, int]) -> dict[str, Any]:
        of_class = met["class"] == index
        flags = {name: ~contact & (met["side"] == side) for name, side in names.items()}
        flags["contact"] = contact
        shares = {name: share(flag, of_class, met["world"]) for name, flag in flags.items()}
        return {"meetings": int(of_class.sum()), **shares}

    ways = {"not_passed": NOT_PASSED}
    return {
        "score": V1.version,
        "encounters": len(kind),
        "ambiguous": share(kind == AMB, torch.ones_like(kind, dtype=torch.bool), world),
        "classes": classes,
        "head_on": sides(HO, {"port_to_port": PORT, "starboard_to_starboard": STARBOARD, **ways}),
        "give_way": sides(GW, {"astern": ASTERN, "ahead": AHEAD, **ways}),
    }
