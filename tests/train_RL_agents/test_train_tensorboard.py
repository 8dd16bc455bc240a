"""What a training shows in TensorBoard and in its figure."""

import re

import pytest
from matplotlib.image import imsave
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.train_RL_agents.short_runs import ONE_STAGE, SHORT, TINY, every_decision
from train_RL_agents import train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.commands import one_run

LEARNS = [*SHORT, "total_steps=60", "updates.warmup_transitions=16", "env.episode.max_steps=5"]
"""The shortest run in which episodes end and updates are done."""

pytestmark = pytest.mark.usefixtures("short_evaluations")


@pytest.mark.parametrize("agent", AGENTS)
def test_tensorboard_shows_at_most_25_tags(tmp_path, monkeypatch, agent):
    """With updates, the evaluations of six stages, and the texts and the figure of the run."""
    settings = [*LEARNS, *every_decision(agent)]
    settings = [one for one in settings if not one.startswith(AGENTS[agent].idle_settings)]
    if agent != "AC-IQN":  # a figure of six stages takes longer than the training
        monkeypatch.setattr(one_run, "draw_trajectories", lambda *given: imsave(given[-1], [[0.0]]))
    assert train.main(["--output", str(tmp_path), "--agent", agent, *settings]) == 0
    events = EventAccumulator(str(tmp_path))
    tags = events.Reload().Tags()
    assert tags["images"] == ["trajectories"]
    assert sorted(tags["tensors"]) == ["command/text_summary", "configuration/text_summary"]
    losses = [tag for tag in tags["scalars"] if tag.endswith("_loss")]
    stages = [tag for tag in tags["scalars"] if re.match(r"evaluation_.*/success", tag)]
    assert losses
    assert len(stages) == 6
    assert {"train/success", "train/episode_return", "evaluation/success"} < set(tags["scalars"])
    assert sum(len(tags[kind]) for kind in ("scalars", "histograms", "images", "tensors")) <= 25
    (shown,) = events.Tensors("configuration/text_summary")[0].tensor_proto.string_val
    assert f"agent: {agent}".encode() in shown


def test_a_resumed_run_shows_its_figure_once(tmp_path):
    assert train.main(["--output", str(tmp_path), *LEARNS, ONE_STAGE]) == 0
    start = tmp_path / "checkpoints" / "step_000000000000.pt"
    assert train.main(["--resume", str(start)]) == 0
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [image.step for image in events.Images("trajectories")] == [60]
    assert [scalar.step for scalar in events.Scalars("train/epsilon")] == [60]


def test_tensorboard_shows_all_that_is_asked_for(tmp_path):
    assert train.main(["--output", str(tmp_path), *LEARNS, "log.tensorboard=all"]) == 0
    tags = EventAccumulator(str(tmp_path)).Reload().Tags()
    assert len(tags["scalars"]) > 200
    assert "train/return_distribution/histogram" in tags["histograms"]


@pytest.mark.parametrize(
    "override", ["env.colregs.margin=2", "env.vessel.max_thrust_rate=500", "stack_k=2"]
)
def test_a_setting_that_episode_files_lack_has_its_figure(tmp_path, override):
    assert train.main(["--output", str(tmp_path), *TINY, override]) == 0
    assert (tmp_path / "trajectories.png").stat().st_size > 0
