"""How well critics rank actions: the figures, what is refused, and the record."""

import json
import math

import pytest
import torch
from scipy.stats import spearmanr

from scripts import critic_ranks
from tests.conftest import ROOT
from train_RL_agents.policies.load import read_policy
from train_RL_agents.training.lookahead import Lookahead

POLICY = ROOT / "pretrained" / "ac_iqn_rules"
FEW = ["--worlds", "3", "--decisions", "2", "--horizon-s", "1"]


def test_rank_correlation_is_spearmans():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randint(5, (20, 9), generator=generator).double() for _ in range(2))
    found = critic_ranks.rank_correlation(first, second)
    expected = [spearmanr(*rows).statistic for rows in zip(first, second, strict=True)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    assert math.isnan(critic_ranks.rank_correlation(torch.ones(1, 9), second[:1]).item())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_critic_that_is_right_has_the_order_of_the_returns(sign, monkeypatch):
    """Of one that has the opposite order the choice is the worst action."""
    policy = read_policy(POLICY)
    options = critic_ranks.parse(["--checkpoint", str(POLICY), *FEW])
    seen = []

    def value_of(observation, action):
        assert observation[1].shape[:2] == action.shape[:2]
        seen.append(observation[0])
        return sign * action.sum(-1)

    def returns(self, now, action, robots):
        each = torch.arange(len(robots))
        seen.append((now.obs.ego[each, robots], self._env.alive[each, robots]))
        return torch.cat([torch.zeros(1), self.points.sum(-1)]).unsqueeze(1).repeat(1, len(robots))

    monkeypatch.setattr(policy.agent, "value_of", value_of)
    monkeypatch.setattr(Lookahead, "returns", returns)
    judged = critic_ranks.judge(str(POLICY), policy, options)
    for (ego, alive), of_critic in zip(seen[::2], seen[1::2], strict=True):
        assert torch.equal(of_critic, ego[alive].unsqueeze(1).expand(-1, 9, -1))
    row = critic_ranks.rows_of(judged, options.worlds)[0]
    assert row["states"] == len(judged.world) == 6
    assert row["rank_correlation"] == {"value": sign, "ci95": [sign, sign]}
    assert row["gain_of_the_best"]["value"] == 2.0
    assert row["gain_of_the_critics_choice"]["value"] == sign * 2.0


def test_what_differs_little_is_left_out_of_the_rows_of_what_differs_more():
    returns = torch.tensor([[0.0, 0.5], [0.0, 2.0], [7.0, 0.0]])
    values = torch.tensor([[0.0, 1.0]]).repeat(3, 1)
    judged = critic_ranks.Judged(torch.arange(3), torch.zeros(3), returns, values)
    rows = critic_ranks.rows_of(judged, 3)
    assert [row["states"] for row in rows] == [3, 2, 1]
    assert [row["rank_correlation"]["value"] for row in rows] == [0.33333, 0.0, -1.0]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("sac", "only the network that acts is left of it; give a run"),
        ("dqn", "its actions are discrete; give AC-IQN, DDPG or SAC"),
        ("lookahead", "DPI has no critic"),
    ],
)
def test_who_has_no_critic_is_told(policy, message, capsys):
    path = str(ROOT / "pretrained" / policy)
    assert critic_ranks.main(["--checkpoint", path, *FEW]) == 1
    assert message in capsys.readouterr().err


def test_the_record_has_the_figures_of_every_policy(tmp_path, capsys):
    file = tmp_path / "ranks.json"
    paths = [str(POLICY), str(ROOT / "pretrained" / "sac_rules")]
    command = ["--checkpoint", *paths, *FEW, "--stage", "3,0,0,30", "env.wind.speed=[3,3]"]
    assert critic_ranks.main([*command, "--json", str(file)]) == 0
    record = json.loads(file.read_text())
    assert record["command"][1:] == [*command, "--json", str(file)]
    spreads = list(critic_ranks.SPREADS)
    rows = [(row["policy"], row["least_spread"]) for row in record["rows"]]
    assert rows == [(path, spread) for path in paths for spread in spreads]
    assert record["rows"][0]["states"] == 6
    assert abs(record["rows"][0]["rank_correlation"]["value"]) < 1.0
    assert "rank correlation" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["--worlds 1", "--decisions 0", "--json nowhere/x.json"])
def test_a_wrong_command_line_is_told(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        critic_ranks.parse(["--checkpoint", "x", *words.split()])
    assert words.split()[0] in capsys.readouterr().err
