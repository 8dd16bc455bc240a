"""Schedules, by numbers that can be checked in the head."""

import pytest

from train_RL_agents.config import CurriculumConfig
from train_RL_agents.schedules import Curriculum, Ramp


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
