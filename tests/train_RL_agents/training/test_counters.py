"""Which policy of a run is its best."""

import math

import pytest

from marinenav_env.fields import build
from train_RL_agents.evaluation.results import Standing
from train_RL_agents.training.counters import Counters


@pytest.mark.parametrize(
    ("standings", "kept"),
    [
        pytest.param([(0.5,), (0.9,), (0.3,), (0.9,)], [0, 1], id="the highest return, the first"),
        pytest.param(
            [(0.90, 0.02, 30.0), (0.98, 0.01, 25.0), (0.975, 0.01, 24.0), (0.96, 0.01, 20.0)],
            [0, 1, 2],
            id="the quickest of what success cannot tell apart",
        ),
        pytest.param(
            [(0.98, 0.01, 25.0), (0.985, 0.01, 25.5), (0.98, 0.01, 25.2)],
            [0],
            id="a slower one does not replace its equal",
        ),
        pytest.param(
            [(0.980, 0.01, 20.0), (0.985, 0.01, 22.0), (0.995, 0.01, 24.0), (0.994, 0.01, 23.0)],
            [0, 2, 3],
            id="the highest may be another than the kept one",
        ),
        pytest.param(
            [(0.0, 0.01, math.inf), (0.0, 0.01, math.inf), (0.002, 0.01, 60.0)],
            [0, 2],
            id="nothing succeeds yet",
        ),
        pytest.param(
            [(0.40, 0.064, math.inf), (0.44, 0.064, math.inf), (0.43, 0.064, math.inf)],
            [0, 1],
            id="one stage never succeeds, so times do not tell",
        ),
    ],
)
def test_the_best_is_the_quickest_within_a_standard_error(standings, kept):
    counters = Counters()
    assert [k for k, s in enumerate(standings) if counters.becomes_best(Standing(*s))] == kept
    best = Standing(*standings[kept[-1]])
    assert (counters.kept_success, counters.kept_error, counters.kept_time_s) == best
    assert counters.best_success == max(score for score, *_ in standings)
    counters.forget_best()
    assert counters == Counters()


@pytest.mark.parametrize(
    ("score", "error", "best"),
    [(0.99, 0.004, True), (0.971, 0.004, True), (0.96, 0.004, False), (1.0, 0.0, True)],
)
def test_the_end_is_kept_unless_an_evaluation_was_clearly_better(score, error, best):
    counters = Counters()
    counters.becomes_best(Standing(0.99, 0.01, 20.0))
    assert counters.ends_best(Standing(score, error, 25.0)) == best


def test_where_episodes_tell_no_error_the_end_has_to_be_as_good():
    counters = Counters()
    counters.becomes_best(Standing(-100.0))
    assert counters.ends_best(Standing(-100.0))
    assert not counters.ends_best(Standing(-100.1))


def test_a_run_of_before_the_times_were_kept_goes_on():
    older = build(Counters, {"step": 200, "iteration": 100, "best_success": 0.98}, where="counters")
    assert not older.becomes_best(Standing(0.97, 0.01, 20.0))
    assert older.becomes_best(Standing(0.98, 0.01, 30.0))
