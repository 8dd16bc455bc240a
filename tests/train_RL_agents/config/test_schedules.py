"""Schedules, by numbers that can be checked in the head."""

import pytest
import torch

from marinenav_env.fields import ConfigError
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schedules import Curriculum, Ramp, Schedules
from train_RL_agents.config.schema import TrainConfig, UpdateConfig
from train_RL_agents.config.worlds import CurriculumConfig
from train_RL_agents.training.counters import Counters


@pytest.mark.parametrize(
    ("step", "value"), [(0, 1.0), (10, 1.0), (15, 0.75), (20, 0.5), (30, 0.0), (99, 0.0)]
)
def test_ramp(step, value):
    assert Ramp(1.0, 0.0, begin=10, finish=30)(step) == pytest.approx(value)


def test_ramp_without_length():
    assert Ramp(1.0, 0.2, begin=0, finish=0)(0) == 0.2


def test_sequential_curriculum_is_one_stage_per_sixth():
    curriculum = Curriculum(CurriculumConfig(mode="sequential"), total_steps=600)
    steps = [0, 99, 100, 299, 300, 599, 700]
    assert [curriculum.stage_at(step) for step in steps] == [0, 0, 1, 2, 3, 5, 5]
    assert curriculum.stages(250, worlds=3).tolist() == [2, 2, 2]


def test_sequential_curriculum_with_given_starts():
    starts = (0, 5, 6, 7, 8, 100)
    curriculum = Curriculum(CurriculumConfig(mode="sequential", starts=starts), total_steps=600)
    assert [curriculum.stage_at(step) for step in (4, 5, 99, 100)] == [0, 1, 4, 5]


def test_mixed_curriculum_goes_by_the_global_number_of_a_world():
    curriculum = Curriculum(CurriculumConfig(mode="mixed"), total_steps=600)
    assert curriculum.stages(0, worlds=8).tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
    assert curriculum.stages(500, worlds=4, first_world=8).tolist() == [2, 3, 4, 5]


def test_updates_follow_the_samples_per_insert_and_make_up_for_estimates():
    settings = UpdateConfig(batch_size=10, samples_per_insert=5.0, warmup_transitions=0)
    counters = Counters(robot_rate=4.0)
    assert [counters.advance(2, settings) for _ in range(4)] == [2, 2, 2, 2]
    # 16 transitions were counted, 8 were stored: 2 an iteration, less 8 counted too many over 4.
    counters.close_interval(8.0, 8.0, processes=1, coming=4.0)
    assert counters.robot_rate == 0.0
    counters.advance(2, settings)
    counters.close_interval(3.0, 3.0, processes=1, coming=1.0)
    assert counters.robot_rate == 0.0
    counters.advance(2, settings)
    counters.close_interval(11.0, 11.0, processes=1, coming=3.0)
    # 22 were stored by now and 16 counted: 11 an iteration, and the 6 missed over 3.
    assert counters.robot_rate == 13.0


def test_a_short_log_interval_does_not_upset_the_samples_per_insert():
    settings = UpdateConfig(batch_size=10, samples_per_insert=5.0, warmup_transitions=0)
    counters = Counters(robot_rate=20.0)  # twice the truth
    rates = []
    for iterations in (100, 10, 100, 10, 100):
        for _ in range(iterations):
            counters.advance(1, settings)
        counters.close_interval(10.0 * iterations, 10.0 * iterations, processes=1, coming=100.0)
        rates.append(counters.robot_rate)
    assert rates == pytest.approx([0.0, 1.0, 10.0, 10.0, 10.0])


def test_only_what_is_stored_asks_for_updates():
    """A third of the transitions; all are robot-steps."""
    settings = UpdateConfig(batch_size=10, samples_per_insert=5.0, warmup_transitions=0)
    counters = Counters(robot_rate=4.0)
    counters.advance(8, settings)
    counters.close_interval(18.0, 6.0, processes=1, coming=2.0)
    assert counters.robot_rate == pytest.approx(6.0 + 1.0)
    assert counters.robot_steps == 18.0


def test_updates_share_the_transitions_of_all_processes():
    settings = UpdateConfig(batch_size=10, samples_per_insert=5.0, warmup_transitions=0)
    counters = Counters(robot_rate=4.0)
    counters.advance(8, settings)
    counters.close_interval(16.0, 16.0, processes=4, coming=1.0)
    assert counters.robot_rate == 4.0


def test_fractions_of_updates_add_up():
    settings = UpdateConfig(batch_size=16, samples_per_insert=1.0, warmup_transitions=8)
    counters = Counters(robot_rate=4.0)
    assert [counters.advance(1, settings) for _ in range(9)] == [0, 0, 0, 0, 1, 0, 0, 0, 1]


def test_rates_of_a_run():
    config = TrainConfig(total_steps=1000)
    start, end = Schedules(config).rates(0), Schedules(config).rates(1000)
    assert start == (config.exploration.epsilon_start, 1.0, config.replay.beta_start)
    assert end == (
        config.exploration.epsilon_end,
        config.updates.decay_to,
        config.replay.beta_end,
    )


def test_rates_change_only_where_their_settings_say():
    overrides = ["total_steps=1000", "worlds=6", "updates.decay_from=0.7", "updates.decay_to=0.2"]
    overrides += ["exploration.epsilon_start=0.9", "exploration.epsilon_end=0.1"]
    overrides += ["exploration.ramp_share=0.3", "updates.rate_factor=3"]
    config, _, _ = load_config(overrides=overrides)
    rates = [Schedules(config).rates(step) for step in range(1001)]
    for step, (epsilon, scale, _) in enumerate(rates):
        assert epsilon == pytest.approx(0.9 - 0.8 * min(step / 300, 1.0))
        assert scale == pytest.approx(3.0 * (1.0 - 0.8 * max(step - 700, 0) / 300))


@pytest.mark.parametrize("mode", ["mixed", "sequential"])
def test_worlds_of_scenarios_lie_evenly_among_the_others(mode):
    settings = CurriculumConfig(mode=mode)
    curriculum = Curriculum(settings, 600, scenarios=0.25)
    whole = curriculum.stages(150, 48)
    assert (whole == 6).sum() == 12
    assert (whole == 6).view(12, 4).sum(1).tolist() == [1] * 12
    others = whole[whole != 6]
    plain = Curriculum(settings, 600).stages(150, 36)
    assert others.tolist() == plain.tolist()
    parts = [curriculum.stages(150, 24, first_world) for first_world in (0, 24)]
    assert torch.cat(parts).tolist() == whole.tolist()  # over processes
    uneven = Curriculum(settings, 600, scenarios=0.3).stages(0, 1000)
    assert (uneven == 6).sum() == 300


def test_worlds_have_to_suffice_for_scenarios_and_stages():
    curriculum = Curriculum(CurriculumConfig(), 600, scenarios=0.25)
    curriculum.check_worlds(8)
    with pytest.raises(ConfigError, match="6 stages for 5 worlds"):
        curriculum.check_worlds(6)
    with pytest.raises(ConfigError, match=r"scenarios.share is 0.25 of 3 worlds, which is none"):
        curriculum.check_worlds(3)
