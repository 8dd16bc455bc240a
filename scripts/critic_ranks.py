"""Says how well critics rank actions: beside what the actions bring in copies of the worlds.

    python scripts/critic_ranks.py --checkpoint pretrained/ac_iqn_rules --json ranks.json

In each decision one robot of every world tries nine actions in copies of it, holds each until the
next decision, and then goes on with its policy. A critic whose values have the order of the returns
has a rank correlation (Spearman 1904) of 1; one that knows nothing of actions, 0. The hulls are
those that the policy was trained with.

No critic can reach 1. It does not see all, such as the goals of others; it discounts, and these
returns do not; and a course of 20 s can hang on a trifle. So the copies are played again, with the
first actions of all robots nudged: how well the returns agree with those is the last column, and
by those the best is judged, since the best of nine by the returns that chose it gains by chance
alone.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from rich import box
from rich.markup import escape
from rich.table import Table
from scipy.stats import rankdata
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.make import TASKS
from marinenav_env.envs.spec import tuple_like
from marinenav_env.fields import require
from marinenav_env.files import write_json
from marinenav_env.stepper import Stepper
from scripts.bench.machine import record_head
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.lookahead_settings import LookaheadConfig
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.options import (
    SETTINGS_HELP,
    add_config_option,
    split_settings,
    stage_of,
    with_world_options,
)
from train_RL_agents.commands.parser import Parser, output_file, tells
from train_RL_agents.config.build import LoadedPolicy
from train_RL_agents.device.memory import keep_freed_memory
from train_RL_agents.evaluation.intervals import bootstrap_of
from train_RL_agents.policies.load import read_policy
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.training.lookahead import Lookahead

SPREADS = (0.0, 1.0, 5.0)
"""Differences between the best and the worst return [return]: states with more are told apart."""
ONE_DECISION_S = 1e-3
"""A rollout holds an action for this time, rounded up to a decision [s]."""
JUDGED_FROM = 2**26
"""The first world: no training has so many, and their copies have numbers, too."""
NUDGE = 0.01
"""Standard deviation of what is added to actions [share of the largest thrust rate]."""
COLUMNS = {
    "rank_correlation": "rank correlation (95% CI)",
    "gain_of_the_critics_choice": "critic's choice",
    "gain_of_the_best": "best",
    "rank_correlation_again": "returns again (95% CI)",
}


class Judged(NamedTuple):
    """N states, in each of which a robot could take K actions.

    Attributes:
        world: [N] int64, whose state it is.
        own: [N], the return of the policy's own action.
        returns: [N, K], those of the actions.
        values: [N, K], what the critic takes the actions to be worth.
        again: [N, K], their returns where all robots were nudged.
        own_again: [N], that of the policy's own action there.
    """

    world: Tensor
    own: Tensor
    returns: Tensor
    values: Tensor
    again: Tensor
    own_again: Tensor


def critic_of(path: str) -> LoadedPolicy:
    """Load a policy whose critic values continuous actions.

    Raises:
        CheckpointError: there is no such policy.
        ConfigError: it has no such critic, or not with it; or it is of another task.
    """
    policy = read_policy(path)
    knowing = [name for name, kind in AGENTS.items() if kind.value_of is not Agent.value_of]
    agent, kinds = policy.agent, f"give {', '.join(knowing[:-1])} or {knowing[-1]}"
    require(
        isinstance(policy.config.env, EnvConfig),
        "checkpoint",
        path,
        f"its task is {policy.config.task!r}, and copies look ahead in 'marine' only",
    )
    require(not agent.discrete, "checkpoint", path, f"its actions are discrete; {kinds}")
    knows_actions = type(agent).value_of is not Agent.value_of
    remedy = f"{agent.name} has no critic of actions; {kinds}"
    require(knows_actions, "checkpoint", path, remedy)
    remedy = "only the network that acts is left of it; give a run, or a folder with networks.pt"
    require(policy.whole, "checkpoint", path, remedy)
    return policy


@torch.no_grad()
def judge(policy: LoadedPolicy, options: argparse.Namespace) -> Judged:
    """Let a policy sail; its critic, and copies of the worlds, value what it could do.

    Raises:
        ConfigError: a setting of the worlds is wrong, or they are too many or too few.
    """
    agent, config = policy.agent, with_world_options(policy.config, options)
    stages = config.evaluation.stages
    require(
        options.worlds >= len(stages),
        "worlds",
        options.worlds,
        f"give at least one for each of {len(stages)} stages",
    )
    env = TASKS[config.task](
        options.worlds,
        stages=stages,
        config=config.collecting_env,
        discrete=False,
        seed=options.seed,
        first_world=JUDGED_FROM,
        stack_k=config.stack_k,
    )
    env.set_stage(torch.arange(env.worlds) % len(stages))
    torch.manual_seed(options.seed)
    act = functools.partial(agent.act, mean=True)
    ahead = LookaheadConfig(
        horizon_s=options.horizon_s, hold_s=ONE_DECISION_S, goal_share=1.0, others=0.0
    )
    lookahead = Lookahead(env, act, ahead)
    stepper = Stepper(env)
    stepper.reset()
    world, states = torch.arange(env.worlds), []
    points = lookahead.points
    tried = torch.empty(lookahead.copies, env.worlds, env.robots, dtype=torch.int64)
    for _ in range(options.decisions):
        now, alive = stepper.now, env.alive
        robot = torch.rand(alive.shape).masked_fill(~alive, -1.0).argmax(1)
        tried[:] = len(points)
        tried[:-1, world, robot] = torch.arange(len(points)).unsqueeze(1)
        action = act(now.obs)
        *returns, own = lookahead.returns(now, action, tried)[:, world, robot]
        nudged = action + NUDGE * torch.randn_like(action)
        nudged = nudged.clamp(-1.0, 1.0)
        *again, own_again = lookahead.returns(now, nudged, tried)[:, world, robot]
        seen: Any = tuple_like(
            now.obs,
            (
                part[world, robot].unsqueeze(1).expand(-1, len(returns), *part.shape[2:])
                for part in now.obs
            ),
        )
        values = cast("Tensor", agent.value_of(seen, points.expand(env.worlds, -1, -1)))
        both = torch.stack(returns, 1), values, torch.stack(again, 1)
        states.append(Judged(world, own, *both, own_again))
        stepper.step(action)
        stepper.advance()
    return Judged(*map(torch.cat, zip(*states, strict=True)))


def rank_correlation(first: Tensor, second: Tensor) -> Tensor:
    """Return Spearman's correlation [N] of the rows of [N, K]; 0 where all of a row are equal."""
    ranks = (torch.from_numpy(rankdata(rows.numpy(), axis=1)) for rows in (first, second))
    one, other = (rank - rank.mean(1, keepdim=True) for rank in ranks)
    return ((one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1))).nan_to_num()


def rows_of(judged: Judged, worlds: int) -> list[dict[str, Any]]:
    """Return the figures of the states whose returns differ by more than each of `SPREADS`."""
    returns = judged.returns
    spread = returns.amax(1) - returns.amin(1)
    chosen = returns.gather(1, judged.values.argmax(1, keepdim=True)).squeeze(1)
    best = judged.again.gather(1, returns.argmax(1, keepdim=True)).squeeze(1)
    figures = {
        "rank_correlation": rank_correlation(judged.values, returns),
        "rank_correlation_again": rank_correlation(judged.again, returns),
        "gain_of_the_critics_choice": chosen - judged.own,
        "gain_of_the_best": best - judged.own_again,
    }
    bootstrap, rows = bootstrap_of(worlds), []
    for least in SPREADS:
        kept = spread > least
        means = {
            name: bootstrap.mean(judged.world[kept], values[kept]).as_json()
            for name, values in figures.items()
        }
        rows.append({"least_spread": least, "states": int(kept.sum()), **means})
    return rows


def table_of(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the rows as a table."""
    caption = (
        "critic's choice and best: return beyond that of the policy's own action; the best is "
        "chosen by the returns and judged by those again"
    )
    table = Table(caption=caption, box=box.HORIZONTALS, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("policy", "differ by", "states", *COLUMNS.values()):
        table.add_column(name)
    for row in rows:
        cells = (_cell(row[name], "rank" in name) for name in COLUMNS)
        spread = f"more than {row['least_spread']:g}"
        table.add_row(escape(row["policy"]), spread, str(row["states"]), *cells)
    return table


def _cell(figure: dict[str, Any], with_interval: bool) -> str:
    value, low, high = (
        "-" if number is None else f"{number:.3f}" for number in (figure["value"], *figure["ci95"])
    )
    return f"{value} ({low} to {high})" if with_interval else value


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
    add_config_option(parser, "env and evaluation.stages")
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
    parser.add_argument(
        "--json", type=output_file(), metavar="FILE", help="write the record to this file"
    )
    rest, settings = split_settings(arguments)
    options = parser.parse_args(rest, argparse.Namespace(settings=settings))
    for name, least in (("worlds", 1), ("decisions", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} is {getattr(options, name)}: give {least} or more")
    if not 0.5 <= options.horizon_s <= 60.0:
        parser.error(f"--horizon-s is {options.horizon_s:g}: give 0.5 to 60")
    return options


@tells(CheckpointError, ValueError, OSError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all critics and print the table. Return 1 where one cannot be judged."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    keep_freed_memory()
    rows: list[dict[str, Any]] = []
    policies = {path: critic_of(path) for path in options.checkpoint}
    for path, policy in policies.items():
        judged = judge(policy, options)
        rows += [{"policy": path, **row} for row in rows_of(judged, options.worlds)]
    if options.json:
        command = ["scripts/critic_ranks.py", *arguments]
        record = {**record_head(torch.device("cpu")), "command": command, "rows": rows}
        write_json(options.json, record)
    open_console().print(table_of(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
