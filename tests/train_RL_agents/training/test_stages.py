"""Trainings among named scenarios."""

import json

import pytest
import torch

from marinenav_env.fields import ConfigError
from tests.train_RL_agents.short_runs import SHORT, TINY, assert_same, trainer
from train_RL_agents import train
from train_RL_agents.config.files import load_config
from train_RL_agents.run import checkpoint
from train_RL_agents.training.stages import training_stages

QUARTER = ["worlds=8", "scenarios.share=0.25"]


def stages(*overrides):
    config, _, _ = load_config(overrides=[*SHORT, *overrides])
    return training_stages(config)


def test_a_share_of_the_worlds_begins_with_scenarios(tmp_path):
    run = trainer(tmp_path, *QUARTER, "scenarios.set=singles", "scenarios.offset_m=0.5")
    run.start()
    env = run.learner.env
    placed = env.state.world_field("robots")[:8].tolist()
    assert placed[3::4] == [2, 2]
    assert min(placed[i] for i in (0, 1, 2, 4, 5, 6)) >= 3
    x, y, goal_x = (env.state.robot_field(name)[0, 3:8:4] for name in ("x", "y", "goal_x"))
    assert y.abs().max() <= 0.5
    assert torch.minimum((x + 20).abs(), (x + 32.66).abs()).max() <= 0.51
    assert goal_x.min() >= 19.9
    assert run.counters.robot_rate == pytest.approx(sum((3, 4, 5, 5, 5, 5)) + 2 * 2)


def test_a_run_among_scenarios_records_them_and_goes_on_as_if_never_stopped(tmp_path):
    options = [*QUARTER, "scenarios.offset_deg=5", "scenarios.set=encounters"]
    whole = trainer(tmp_path, *options)
    whole.train()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    modes = {record["mode"] for record in records if record.get("episodes")}
    assert "scenarios encounters" in modes
    assert "stage 7" not in {record["mode"] for record in records}
    path = whole.saved.checkpoints.path
    known = checkpoint.load(path(600))
    again = trainer(tmp_path, *options)
    again.resume(path(400))
    again.train()
    assert_same(known, checkpoint.load(path(600)))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["scenarios.set=singels"], "scenario is 'singels', .* nearest name is 'singles'"),
        (["scenarios.set=OT67-scripted"], "something else steers a vessel: give scenarios whose"),
        (["scenarios.set=imazu"], "which touches"),
        (["scenarios.share=1"], "scenarios.share is 1.0: leave worlds to the stages"),
        (["scenarios.share=-0.1"], "scenarios.share is -0.1: give 0.0 or more"),
        (["scenarios.offset_deg=200"], "scenarios.offset_deg is 200.0: give 180.0 or less"),
        (["scenarios.offset=2"], "unknown setting 'scenarios.offset'"),
        (["task=icra2024", "agent=IQN"], "scenarios.share is 0.25: .* not of 'icra2024'"),
    ],
)
def test_what_is_refused_before_any_work(overrides, message):
    with pytest.raises(ConfigError, match=message):
        stages(*QUARTER, *overrides)


def test_the_command_refuses_too(tmp_path, refused):
    arguments = ["--output", str(tmp_path / "run"), *TINY, "worlds=12", "scenarios.share=0.25"]
    refused(train.main, [*arguments, "scenarios.set=nowhere"], "scenario is 'nowhere'")
    assert not (tmp_path / "run" / "checkpoints").exists()
