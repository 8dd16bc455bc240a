"""Rule scores by class."""

import pytest

from tests.train_RL_agents.evaluation.test_colregs import X1, X2, X3
from tests.train_RL_agents.evaluation.trajectories import measured, vessel
from train_RL_agents.evaluation.recorded import join
from train_RL_agents.evaluation.rules import rule_table

TO_PORT = [
    vessel((0, 0), 0, 2.5, changes={1: (-30, 2.5)}),
    vessel((22.5, 0), 180, 2.5, changes={1: (150, 2.5)}),
]


def shares(rules, name):
    return {side: entry["value"] for side, entry in rules[name].items() if side != "meetings"}


def test_means_and_shares_by_hand():
    rules = rule_table(join([measured(ships) for ships in (X1, X1, TO_PORT, X2, X3)]))
    assert rules["score"] == "v1"
    assert rules["encounters"] == 10
    assert rules["ambiguous"]["value"] == 0.0
    thirds = {"port_to_port": pytest.approx(2 / 3, abs=1e-4), "contact": 0.0, "not_passed": 0.0}
    thirds["starboard_to_starboard"] = pytest.approx(1 / 3, abs=1e-4)
    assert (rules["head_on"]["meetings"], shares(rules, "head_on")) == (6, thirds)
    halves = {"astern": 0.5, "ahead": 0.0, "not_passed": 0.0, "contact": 0.5}
    assert (rules["give_way"]["meetings"], shares(rules, "give_way")) == (2, halves)
    give_way, stand_on = rules["classes"]["GW"], rules["classes"]["SO"]
    assert (give_way["encounters"], stand_on["encounters"]) == (2, 2)
    assert give_way["R15"]["value"] == pytest.approx(0.8287 / 2, abs=1e-4)
    assert give_way["total"]["value"] == pytest.approx(0.3068 / 2, abs=1e-4)
    assert stand_on["R17"]["value"] == pytest.approx(0.75, abs=1e-4)
    assert rules["classes"]["OT"]["R13"]["value"] is None


def test_crossing_ahead():
    faster = [vessel((-8.0, 0), 0, 2.5, changes={1: (0, 5.0)}), X2[1]]
    rules = rule_table(measured(faster))
    assert shares(rules, "give_way")["ahead"] == 1.0
