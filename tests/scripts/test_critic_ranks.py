"""How well critics rank actions: the figures, what is refused, and the record."""

import json
from pathlib import Path

import pytest
import torch
from scipy.stats import spearmanr

from marinenav_env import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.stepper import Stepper
from scripts import critic_ranks
from tests.conftest import ROOT
from train_RL_agents.config.build import LoadedPolicy, build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.policies.load import read_policy
from train_RL_agents.training.lookahead import Lookahead

PRETRAINED = ROOT / "pretrained"
POLICY = str(PRETRAINED / "ac_iqn_rules")
FEW = ["--worlds", "6", "--decisions", "2", "--horizon-s", "1"]


def options_of(*words):
    return critic_ranks.parse(["--checkpoint", POLICY, *FEW, *words])


def test_rank_correlation_is_spearmans_and_0_where_nothing_is_told_apart():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randint(5, (20, 9), generator=generator).double() for _ in range(2))
    found = critic_ranks.rank_correlation(first, second)
    expected = [spearmanr(*rows).statistic for rows in zip(first, second, strict=True)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    assert critic_ranks.rank_correlation(torch.ones(1, 9), second[:1]).item() == 0.0


class Watched:
    """Returns that are 0.5 for the policy's own action, else the sum of the action's coordinates.

    Attributes:
        calls: of each, the lookahead, what the robots saw, their actions, and who tries.
    """

    def __init__(self):
        self.calls = []

    def __call__(self, lookahead, now, action, tried):
        tries = (tried < len(lookahead.points)).any(0)
        assert (tries.sum(1) == 1).all(), "one robot of each world"
        assert torch.equal(tried[:, tries].T, torch.arange(10).expand(len(tries), -1))
        robots = tries.long().argmax(1)
        assert lookahead._env.alive[torch.arange(len(robots)), robots].all()
        self.calls.append((lookahead, [part.clone() for part in now.obs], action, robots))
        return torch.cat([lookahead.points.sum(-1), torch.full((1,), 0.5)])[tried]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_critic_that_is_right_has_the_order_of_the_returns(sign, monkeypatch):
    """Of one that has the opposite order the choice is the worst action."""
    policy, watched, asked = critic_ranks.critic_of(POLICY), Watched(), []

    def value_of(observation, action):
        asked.append(observation)
        return sign * action.sum(-1)

    monkeypatch.setattr(policy.agent, "value_of", value_of)
    monkeypatch.setattr(Lookahead, "returns", lambda *given: watched(*given))
    judged = critic_ranks.judge(policy, options_of())
    world = torch.arange(6)
    for (_, seen, _, robots), parts in zip(watched.calls[::2], asked, strict=True):
        for whole, part in zip(seen, parts, strict=True):
            expected = whole[world, robots].unsqueeze(1).expand(part.shape)
            assert torch.equal(part, expected)
            assert part.shape[:2] == (6, 9)
    row = critic_ranks.rows_of(judged, 6)[0]
    assert row["states"] == 12
    assert row["rank_correlation"] == {"value": sign, "ci95": [sign, sign]}
    assert row["rank_correlation_again"]["value"] == 1.0
    assert row["gain_of_the_best"]["value"] == 1.5
    assert row["gain_of_the_critics_choice"]["value"] == 2.0 * sign - 0.5


def test_the_worlds_are_those_of_the_command_with_the_hulls_of_the_training(monkeypatch):
    policy, watched = critic_ranks.critic_of(POLICY), Watched()
    monkeypatch.setattr(Lookahead, "returns", lambda *given: watched(*given))
    words = [
        "--seed",
        "5",
        "--horizon-s",
        "3",
        "--stage",
        "4,0,1,30",
        "--stage",
        "3",
        "env.wind.speed=[3,3]",
    ]
    critic_ranks.judge(policy, options_of(*words))
    ahead = watched.calls[0][0]
    env = ahead._env
    margin = policy.config.curriculum.hull_margin
    assert margin > 0.0
    assert env.config.vessel.radius == pytest.approx(policy.config.env.vessel.radius + margin)
    assert tuple(env.config.wind.speed) == (3.0, 3.0)
    assert list(env.stages) == [Stage(4, 0, 1, 30.0), Stage(5, 0, 0, 40.0)]
    robots = env.alive.sum(1)
    assert (robots[::2] <= 4).all()
    assert (robots[1::2] > 4).any()
    assert (ahead.turns, ahead.held_turns) == (6, 1)
    assert ahead._others == 0.0
    assert ahead._goal == env.config.reward.goal
    (_, first, action, drawn), (_, same, nudged, again), (_, later, *_) = watched.calls[:3]
    others = {"seed": 5, "first_world": critic_ranks.JUDGED_FROM}
    twin = MarineNavEnv(6, stages=env.stages, config=env.config, discrete=False, **others)
    twin.set_stage(torch.arange(6) % 2)
    begun = Stepper(twin).reset().obs
    for parts in zip(first, same, begun, strict=True):
        assert torch.equal(parts[0], parts[1])
        assert torch.equal(parts[0], parts[2])
    assert torch.equal(drawn, again)
    assert 0.0 < (nudged - action).abs().max() < 0.1
    assert nudged.abs().max() <= 1.0
    assert not torch.equal(first[0], later[0])


@pytest.mark.parametrize("name", ["SAC", "AC-IQN", "DDPG"])
def test_a_seed_repeats_and_another_draws_other_worlds(name):
    """Also with two frames, of any algorithm with such a critic."""
    config, _, _ = load_config(agent=name, overrides=["stack_k=2"])
    torch.manual_seed(0)
    policy = LoadedPolicy(build_agent(config, "cpu"), config, {}, whole=True)
    first, same, other = (
        critic_ranks.judge(policy, options_of("--seed", seed)) for seed in ("1", "1", "2")
    )
    assert all(torch.equal(*parts) for parts in zip(first, same, strict=True))
    assert not torch.equal(first.values, other.values)
    assert not torch.equal(first.returns, first.again)


def test_states_are_told_apart_by_what_is_at_stake():
    returns = torch.tensor([[0.0, 0.0], [0.0, 0.5], [0.0, 2.0], [7.0, 0.0], [0.0, 9.0]])
    values = torch.tensor([[0.0, 1.0]] * 4 + [[3.0, 3.0]])
    none = torch.zeros(5)
    judged = critic_ranks.Judged(torch.arange(5), none, returns, values, returns, none)
    rows = critic_ranks.rows_of(judged, 5)
    assert [row["states"] for row in rows] == [4, 3, 2]
    assert [row["rank_correlation"]["value"] for row in rows] == [0.25, 0.0, -0.5]


def test_the_best_of_nine_is_not_judged_by_the_returns_that_chose_it():
    """Actions that differ by chance alone gain nothing, however large the largest return is."""
    returns, again = torch.randn(2, 4_000, 9, generator=torch.Generator().manual_seed(0))
    own, own_again = torch.zeros(4_000), torch.ones(4_000)
    judged = critic_ranks.Judged(torch.arange(4_000), own, returns, returns, again, own_again)
    gain = critic_ranks.rows_of(judged, 4_000)[0]["gain_of_the_best"]
    assert gain["value"] == pytest.approx(-1.0, abs=0.1)


def test_a_table_has_what_is_known_of_few_states():
    judged = critic_ranks.Judged(
        torch.zeros(1, dtype=torch.int64),
        torch.zeros(1),
        torch.tensor([[1.0, 3.0]]),
        torch.tensor([[1.0, 3.0]]),
        torch.tensor([[1.0, 3.0]]),
        torch.zeros(1),
    )
    rows = [{"policy": "a[b]", **row} for row in critic_ranks.rows_of(judged, 6)]
    cells = [list(column.cells) for column in critic_ranks.table_of(rows).columns]
    assert cells[0] == ["a\\[b]"] * 3
    assert cells[2] == ["1", "1", "0"]
    assert cells[3] == ["1.000 (- to -)", "1.000 (- to -)", "- (- to -)"]
    assert cells[4:6] == [["3.000", "3.000", "-"]] * 2


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("sac", "only the network that acts is left of it; give a run"),
        ("dqn", "its actions are discrete; give AC-IQN, DDPG or SAC"),
        ("lookahead", "DPI has no critic of actions"),
        ("icra2024_ac_iqn", "its task is 'icra2024'"),
    ],
)
def test_who_has_no_critic_is_told_before_any_work(policy, message, capsys, monkeypatch):
    monkeypatch.delattr(critic_ranks, "judge")
    paths = [POLICY, str(PRETRAINED / policy)]
    assert critic_ranks.main(["--checkpoint", *paths, *FEW]) == 1
    assert f"checkpoint is {paths[1]!r}" in (told := capsys.readouterr().err)
    assert message in told


def test_too_few_worlds_for_the_stages_are_told(capsys):
    assert critic_ranks.main(["--checkpoint", POLICY, "--worlds", "5"]) == 1
    assert "worlds is 5: give at least one for each of 6 stages" in capsys.readouterr().err


def test_the_record_has_the_figures_of_every_policy(tmp_path, capsys):
    file = tmp_path / "ranks.json"
    paths = [POLICY, str(PRETRAINED / "sac_rules")]
    command = ["--checkpoint", *paths, *FEW, "--json", str(file)]
    assert critic_ranks.main(command) == 0
    record = json.loads(file.read_text())
    assert record["command"] == ["scripts/critic_ranks.py", *command]
    rows = [(row["policy"], row["least_spread"]) for row in record["rows"]]
    assert rows == [(path, spread) for path in paths for spread in critic_ranks.SPREADS]
    judged = critic_ranks.judge(read_policy(paths[1]), options_of())
    expected = critic_ranks.rows_of(judged, 6)
    assert record["rows"][3:] == [{"policy": paths[1], **row} for row in expected]
    assert all(Path(path).name in capsys.readouterr().out for path in paths[:1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--worlds 0", "--worlds is 0: give 1 or more"),
        ("--decisions 0", "--decisions is 0: give 1 or more"),
        ("--horizon-s 0.1", "--horizon-s is 0.1: give 0.5 to 60"),
        ("--horizon-s 61", "--horizon-s is 61: give 0.5 to 60"),
        ("--horizon-s nan", "--horizon-s is nan: give 0.5 to 60"),
        ("--json nowhere/x.json", "its folder is missing, make it"),
    ],
)
def test_a_wrong_command_line_is_told(words, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        critic_ranks.parse(["--checkpoint", "x", *words.split()])
    assert message in capsys.readouterr().err
