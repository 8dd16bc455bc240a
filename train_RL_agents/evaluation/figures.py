"""Pictures of what a policy does."""

from __future__ import annotations

from pathlib import Path

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage, labels_of
from marinenav_env.episodes.record import follow_episodes
from marinenav_env.render.figures import plot_episodes, save_figure
from train_RL_agents.agents.base import Agent
from train_RL_agents.evaluation.episodes import FIRST_WORLD, evaluation_config

TRAJECTORIES = "trajectories.png"


def draw_trajectories(
    agent: Agent, config: EnvConfig, stages: tuple[Stage, ...], seed: int, path: Path
) -> None:
    """Draw one episode of every stage, steered as deployed.

    Args:
        agent: of one observation frame.
        config: of the simulator; the episode's ends are those of evaluation.
        stages: one picture each.
        seed: of the scenarios.
        path: the image file.
    """
    env = MarineNavEnv(
        len(stages),
        stages=stages,
        config=evaluation_config(config),
        discrete=agent.discrete,
        device=agent.device,
        dtype=torch.float64,
        seed=seed,
        first_world=FIRST_WORLD,
    )
    env.set_stage(torch.arange(len(stages), device=agent.device))
    episodes = follow_episodes(env, agent.act, seed=seed)
    figure = plot_episodes(episodes, labels_of(stages))
    save_figure(figure, path, dpi=110)
