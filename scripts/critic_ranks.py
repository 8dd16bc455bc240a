"""Says how well critics rank actions: beside what the actions bring in copies of the worlds.

    python scripts/critic_ranks.py --checkpoint pretrained/ac_iqn_rules --json ranks.json

In each decision one robot of every world tries nine actions in copies of it, holds each until the
next decision, and then goes on with its policy. A critic whose values have the order of the returns
has a rank correlation (Spearman 1904) of 1; one that knows nothing of actions, 0. No critic can
reach 1: it does not see the goals of others. The worlds are those of the policy's training.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.stats import rankdata
from torch import Tensor

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.spec import tuple_like
from marinenav_env.fields import ConfigError, require
from marinenav_env.files import write_json
from marinenav_env.stepper import Stepper
from scripts.bench.machine import record_head
from train_RL_agents.agents.lookahead_settings import LookaheadConfig
from train_RL_agents.commands.options import (
    SETTINGS_HELP,
    split_settings,
    stage_of,
    with_world_options,
)
from train_RL_agents.commands.parser import Parser, tells
from train_RL_agents.config.build import Policy
from train_RL_agents.device.memory import keep_freed_memory
from train_RL_agents.evaluation.intervals import WorldBootstrap
from train_RL_agents.policies.load import read_policy
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.training.lookahead import Lookahead

SPREADS = (0.0, 1.0, 5.0)
"""Least differences between the best and the worst return [return]: whose states are told apart."""


class Judged(NamedTuple):
    """N states, in each of which a robot could take K actions.

    Attributes:
        world: [N] int64, whose state it is.
        own: [N], the return of the policy's own action.
        returns: [N, K], those of the actions.
        values: [N, K], what the critic takes the actions to be worth.
    """

    world: Tensor
    own: Tensor
    returns: Tensor
    values: Tensor


@torch.no_grad()
def judge(path: str, policy: Policy, options: argparse.Namespace) -> Judged:
    """Let a policy sail; its critic, and copies of the worlds, value what it could do.

    Raises:
        ConfigError: the policy has no critic of continuous actions, or was left without it; or its
            worlds cannot be copied.
    """
    agent, config = policy.agent, with_world_options(policy.config, options)
    kinds = "give AC-IQN, DDPG or SAC"
    require(not agent.discrete, "checkpoint", path, f"its actions are discrete; {kinds}")
    remedy = "only the network that acts is left of it; give a run, or a folder with networks.pt"
    require(policy.whole, "checkpoint", path, remedy)
    torch.manual_seed(options.seed)
    stages = config.evaluation.stages
    env = TASKS[config.task](
        options.worlds,
        stages=stages,
        config=config.collecting_env,
        discrete=False,
        seed=options.seed,
        stack_k=config.stack_k,
    )
    env.set_stage(torch.arange(env.worlds) % len(stages))
    vessel = config.env.vessel
    ahead = LookaheadConfig(
        horizon_s=options.horizon_s, hold_s=vessel.dt * vessel.substeps, goal_share=1.0, others=0.0
    )
    lookahead = Lookahead(env, lambda seen: agent.act(seen, mean=True), ahead)
    stepper = Stepper(env)
    stepper.reset()
    each, states = torch.arange(env.worlds), []
    for _ in range(options.decisions):
        now, alive = stepper.now, env.alive
        action = agent.act(now.obs, mean=True)
        drawn = torch.rand(alive.shape).masked_fill(~alive, -1.0).argmax(1)
        returns = lookahead.returns(now, action, drawn)
        world = each[alive[each, drawn]]
        seen: Any = tuple_like(now.obs, (part[world, drawn[world]] for part in now.obs))
        points = lookahead.points.expand(len(world), -1, -1)  # [N, K, A]
        repeated: Any = tuple_like(
            seen, (part.unsqueeze(1).expand(-1, points.shape[1], *part.shape[1:]) for part in seen)
        )
        values = agent.value_of(repeated, points)
        if values is None:
            raise ConfigError(f"checkpoint is {path!r}: {agent.name} has no critic; {kinds}")
        own, *tried = returns[:, world]
        states.append(Judged(world, own, torch.stack(tried, 1), values))
        stepper.step(action)
        stepper.advance()
    return Judged(*map(torch.cat, zip(*states, strict=True)))


def rank_correlation(first: Tensor, second: Tensor) -> Tensor:
    """Return Spearman's correlation [N] of the rows of [N, K]; NaN where all of a row are equal."""
    ranks = (torch.from_numpy(rankdata(rows.numpy(), axis=1)) for rows in (first, second))
    one, other = (rank - rank.mean(1, keepdim=True) for rank in ranks)
    return (one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1))


def rows_of(judged: Judged, worlds: int) -> list[dict[str, Any]]:
    """Return the figures of the states whose returns differ at least by each of `SPREADS`."""
    returns = judged.returns
    spread = returns.amax(1) - returns.amin(1)
    correlation = rank_correlation(judged.values, returns)
    chosen = returns.gather(1, judged.values.argmax(1, keepdim=True)).squeeze(1)
    bootstrap, rows = WorldBootstrap(worlds), []
    for least in SPREADS:
        kept = (spread >= least) & correlation.isfinite()
        figures = {
            "rank_correlation": correlation,
            "gain_of_the_critics_choice": chosen - judged.own,
            "gain_of_the_best": returns.amax(1) - judged.own,
        }
        means = {
            name: bootstrap.mean(judged.world[kept], values[kept]).as_json()
            for name, values in figures.items()
        }
        rows.append({"least_spread": least, "states": int(kept.sum()), **means})
    return rows


def table_of(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the rows as a table."""
    caption = "critic's choice and best: return beyond that of the policy's own action"
    table = Table(caption=caption, box=box.HORIZONTALS, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("policy", "differ by", "states", "rank correlation", "critic's choice", "best"):
        table.add_column(name, overflow="fold", no_wrap=name != "policy")
    for row in rows:
        correlation, choice, best = (
            row[name]
            for name in ("rank_correlation", "gain_of_the_critics_choice", "gain_of_the_best")
        )
        if not row["states"]:
            continue
        low, high = correlation["ci95"]
        table.add_row(
            row["policy"],
            f"{row['least_spread']:g}+",
            str(row["states"]),
            f"{correlation['value']:.3f} ({low:.3f} to {high:.3f})",
            f"{choice['value']:+.2f}",
            f"{best['value']:+.2f}",
        )
    return table


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    headline = __doc__.partition("\n")[0]
    parser = Parser(description=f"{headline} {SETTINGS_HELP}")
    parser.add_argument(
        "--checkpoint",
        nargs="+",
        required=True,
        metavar="PATH",
        help="judge the critics of these policies: runs, checkpoints, folders with networks.pt",
    )
    parser.add_argument(
        "--stage",
        type=stage_of,
        action="append",
        metavar="N",
        help="let it sail in this stage, as evaluate.py takes them (default: those of its "
        "evaluation); may be given several times",
    )
    for name, default, what in (
        ("worlds", 192, "let it sail in so many worlds"),
        ("decisions", 60, "look at so many decisions of each world"),
        ("seed", 0, "draw the worlds from this seed"),
    ):
        parser.add_argument(
            f"--{name}",
            type=int,
            default=default,
            metavar="N",
            help=f"{what} (default %(default)s)",
        )
    parser.add_argument(
        "--horizon-s",
        type=float,
        default=20.0,
        metavar="S",
        help="play the copies for so many seconds (default %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record to this file")
    rest, settings = split_settings(arguments)
    options = parser.parse_args(rest, argparse.Namespace(settings=settings))
    for name, least in (("worlds", 2), ("decisions", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} is {getattr(options, name)}: give {least} or more")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json is {str(options.json)!r}: its folder is missing, make it")
    return options


@tells(CheckpointError, ValueError, OSError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all critics and print the table. Return 1 where one cannot be judged."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    keep_freed_memory()
    rows: list[dict[str, Any]] = []
    for path in options.checkpoint:
        judged = judge(path, read_policy(path), options)
        rows += [{"policy": path, **row} for row in rows_of(judged, options.worlds)]
    if options.json:
        command = ["scripts/critic_ranks.py", *arguments]
        record = {**record_head(torch.device("cpu")), "command": command, "rows": rows}
        write_json(options.json, record)
    Console().print(table_of(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
