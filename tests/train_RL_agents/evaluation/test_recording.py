"""Evaluated episodes as Tracks."""

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.tracks import record_tracks
from train_RL_agents.evaluation.baselines.registry import Baseline
from train_RL_agents.evaluation.episodes import (
    DECISION_LIMIT,
    FIRST_WORLD,
    LOOK_INTERVAL,
    Evaluation,
    evaluation_config,
)
from train_RL_agents.evaluation.recording import Recording

goal_straight = Baseline("goal-straight").act
STAGE = Stage(robots=3, vortices=2, buoys=2, min_distance_m=30.0)


def steer(observation):
    """Of a history of two, the present."""
    ego, objects, mask = observation
    return goal_straight(Observation(ego[..., :7], objects[..., :5, :], mask[..., :5]))


def test_a_recording_holds_what_tracks_of_the_same_worlds_do():
    settings = {"seed": 3, "config": EnvConfig(), "discrete": False, "stack_k": 2}
    recording = Recording()
    (row,) = Evaluation((STAGE,), (4,), **settings).run(steer, recording)
    settings["config"] = evaluation_config(EnvConfig())
    env = MarineNavEnv(4, stages=(STAGE,), first_world=FIRST_WORLD, **settings)
    expected = record_tracks(
        env, steer, DECISION_LIMIT, observations=True, look_interval=LOOK_INTERVAL
    )
    assert len(set(expected.length.tolist())) > 1
    assert expected.length.max() > LOOK_INTERVAL
    for world in range(4):
        found, one = recording.tracks(world), expected.worlds([world])
        decisions = int(one.length)
        assert len(found.acted) == decisions
        for name in found.fields:
            assert torch.equal(found.field(name), one.field(name)[: decisions + 1]), name
        for name in ("acted", "action", "reward", "terminated", "truncated"):
            assert torch.equal(getattr(found, name), getattr(one, name)[:decisions]), name
        assert torch.equal(found.buoys, one.buoys)
        assert torch.equal(found.vortices, one.vortices)
        assert torch.equal(
            found.observation.objects, one.observation.objects[: decisions + 1, ..., :5, :]
        )
        assert torch.equal(found.success, row.outcomes.success[world : world + 1])
