"""Figures of what a policy does."""

from __future__ import annotations

from pathlib import Path

from marinenav_env.envs.scenarios import labels_of
from marinenav_env.render.geometry import scenes_of
from marinenav_env.tracks import Policy, record_tracks
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.baselines.registry import Actor
from train_RL_agents.evaluation.episodes import LOOK_INTERVAL, Evaluation

TRAJECTORIES = "trajectories.png"


def draw_trajectories(
    agent: Actor, config: TrainConfig, seed: int, path: Path, *, act: Policy | None = None
) -> None:
    """Draw one episode of every evaluation stage, steered as deployed.

    Args:
        agent: the policy.
        config: of its training; the episode's ends are those of evaluation.
        seed: of the scenarios.
        path: the image file.
        act: how it acts, where something guards it; None takes its own way.
    """
    # Here, because the plotting library takes a tenth of every command's start.
    from marinenav_env.render.figures import plot_scenes, save_figure

    stages = config.evaluation.stages
    env = Evaluation.of_agent(agent, config, (1,) * len(stages), seed=seed).env
    limit = env.config.episode.max_steps
    tracks = record_tracks(env, act or agent.act, limit, look_interval=LOOK_INTERVAL)
    figure = plot_scenes(scenes_of(tracks, env.config), labels_of(stages))
    save_figure(figure, path, dpi=110)
