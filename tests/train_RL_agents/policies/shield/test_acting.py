"""The shield around a policy: in evaluations, figures and scenarios, and what is refused."""

import dataclasses

import pytest
import torch

from marinenav_env.config import PerceptionConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from marinenav_env.tracks import record_tracks
from scripts import episode
from tests.train_RL_agents.policies.shield.situations import ENV, Constant
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents import evaluate
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.evaluation import figures
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.schema import Buoy, Scenario, Vessel
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import ShieldedPolicy, settings_in, shield_agent
from train_RL_agents.policies.shield.shield import Shield


def full_ahead(observation):
    """Steer to the goal without a look at what is around."""
    bearing = torch.atan2(observation[0][..., 1], observation[0][..., 0])
    turn = (bearing - observation[0][..., 4]).clamp(-0.5, 0.5)
    wanted = torch.stack((0.5 + turn, 0.5 - turn), -1) * 500.0
    return ((wanted - observation[0][..., 5:7]) / 500.0).clamp(-1.0, 1.0)


def test_a_blind_policy_stops_hitting_buoys(short_evaluations):
    noiseless = dataclasses.replace(ENV, perception=ENV.perception.noiseless())
    stage = Stage(robots=1, vortices=0, buoys=8, min_distance_m=30.0)
    make = Evaluation((stage,), (40,), seed=2, config=noiseless, discrete=False)
    guarded = ShieldedPolicy(full_ahead, noiseless, ShieldConfig(), discrete=False)
    (blind,), (kept,) = make.run(full_ahead), make.run(guarded)
    report = guarded.report()
    assert blind.outcomes.collision.sum() > 8
    assert kept.outcomes.collision.sum() == 0
    assert 0.0 <= report["no_safe_plan"] <= report["changed"] <= report["unsafe"] < 0.5
    assert report["decisions"] == kept.measures.vessels["time"].sum() / 0.5


def test_what_a_shield_counts_are_decisions_of_the_vessels_that_it_steers():
    """Not those of vessels that something else steers, nor of those that have ended."""
    own = Vessel(start=(0.0, 0.0), goal=(30.0, 0.0))
    other = Vessel(start=(15.0, 9.0), goal=(15.0, -30.0), heading_deg=-90.0, steer="straight")
    buoys = (Buoy(position=(15.0, 0.0), radius=1.0),)
    scenario = Scenario(name="crossing", vessels=(own, other), buoys=buoys, repeats=3)
    blind = ShieldConfig(margin_m=0.0, horizon_s=0.5, hold_s=0.5)
    guarded = ShieldedPolicy(full_ahead, ENV, blind, discrete=False)
    results = ScenarioEvaluation([scenario], seed=1, config=ENV, discrete=False).run(guarded)
    vessels = results.rows[0].measures.vessels
    assert results.rows[0].outcomes.collision.any()
    assert guarded.report()["decisions"] == vessels["time"].sum() / 0.5


def test_a_share_of_plans_is_for_the_vessels_that_it_steers():
    """Of four in danger the first two come nearer; something else steers them, or does not."""
    ego, objects, mask = torch.zeros(4, 7), torch.zeros(4, 5, 5), torch.zeros(4, 5)
    ego[:, 0], ego[:, 2] = 20.0, 2.0
    objects[:, 0] = torch.tensor([7.0, 0.0, 0.0, 0.0, 1.0])
    objects[:2, 0, 0] = 6.0
    mask[:, 0] = 1.0
    sight = Observation(ego, objects, mask)
    act = ShieldedPolicy(full_ahead, ENV, ShieldConfig(planned_share=0.5), discrete=False)
    for acting, planned in (
        (None, [True, True, False, False]),
        (torch.tensor([True, True, True, True]), [True, True, False, False]),
        (torch.tensor([False, False, True, True]), [False, False, True, True]),
    ):
        assert (act(sight, acting) != full_ahead(sight)).any(-1).tolist() == planned


def test_evaluate_takes_a_shield(tmp_path, capsys, refused, short_evaluations):
    path = save_policy(tmp_path / "policy.pt", "DQN")
    arguments = ["--checkpoint", str(path), "--episodes", "1", "--shield"]
    assert evaluate.main([*arguments, "margin_m=0.4", "--json", str(tmp_path / "out.json")]) == 0
    assert '"margin_m": 0.4' in (tmp_path / "out.json").read_text()
    assert "without a safe plan" in capsys.readouterr().out
    for setting in ("margin=1", "margin_m=-1", "hold_s=3"):
        refused(evaluate.main, [*arguments, setting], setting.split("=")[0])


def test_the_figure_shows_the_guarded_policy(tmp_path, monkeypatch, short_evaluations):
    path, drawn = save_policy(tmp_path / "policy.pt", "DQN"), []

    def recording(env, act, *others, **options):
        drawn.append(act)
        return record_tracks(env, act, *others, **options)

    monkeypatch.setattr(figures, "record_tracks", recording)
    figure = ["--picture", str(tmp_path / "a.png")]  # the older name of --figure
    arguments = ["--checkpoint", str(path), "--episodes", "1", "--stage", "2,0,0,20", *figure]
    assert evaluate.main([*arguments, "--shield", "margin_m=0.4"]) == 0
    assert evaluate.main(arguments) == 0
    guarded, free = drawn
    assert guarded.config.margin_m == 0.4
    assert not isinstance(free, ShieldedPolicy)
    assert (tmp_path / "a.png").stat().st_size > 0


def scene(name, **settings):
    """A scenario of one vessel and a buoy."""
    return Scenario(
        name=name,
        vessels=(Vessel(start=(0.0, 0.0), goal=(30.0, 0.0)),),
        buoys=(Buoy(position=(15.0, 0.0), radius=settings.pop("radius", 1.0)),),
        **settings,
    )


def test_it_knows_the_largest_buoy_of_scenarios(tmp_path):
    _, config = load_policy(save_policy(tmp_path / "policy.pt", "DQN"))
    assert settings_in(config, [scene("plain")]) == config
    followed = settings_in(config, [scene("plain"), scene("large", radius=1.5)])
    assert Shield(Constant(7), followed.env, ShieldConfig(), discrete=True).buoy_radius == 1.5


@pytest.mark.parametrize(
    "settings", [{"radius": 2.0}, {"perception": PerceptionConfig(radius_mean_ratio=0.6)}]
)
def test_a_scenario_in_which_vessels_look_like_buoys_is_refused(tmp_path, settings):
    _, config = load_policy(save_policy(tmp_path / "policy.pt", "DQN"))
    with pytest.raises(ConfigError, match=r"scenario 'odd': .*radius_mean_ratio.*smaller buoys"):
        settings_in(config, [scene("odd", **settings)])


@pytest.mark.parametrize("command", [evaluate.main, episode.main])
def test_commands_refuse_such_a_scenario(tmp_path, refused, command):
    save_policy(tmp_path / "policy.pt", "DQN")
    path = tmp_path / "odd.yaml"
    path.write_text(
        "name: odd\nvessels: [{start: [0, 0], goal: [30, 0]}]\n"
        "perception: {radius_mean_ratio: 0.6}\n"
    )
    before = ["record", "--output", str(tmp_path)] if command is episode.main else []
    policy = ["--checkpoint", str(tmp_path / "policy.pt"), "--scenario", str(path)]
    refused(command, [*before, *policy, "--episodes", "1", "--shield"], "scenario 'odd'")


def test_buoys_cannot_be_hidden_from_a_policy_with_a_memory(tmp_path):
    agent, config = load_policy(save_policy(tmp_path / "policy.pt", "DQN", stack_k=2))
    with pytest.raises(ConfigError, match=r"hidden_buoy_m is 0\.7: leave it out: .*stack_k"):
        shield_agent(agent, config, ShieldConfig(hidden_buoy_m=0.7), agent.act)
