"""The shield: what it leaves alone, what it changes, and what it takes when nothing is safe."""

import dataclasses
import itertools
import math

import pytest
import torch
from torch import nn

from marinenav_env.config import EnvConfig, PerceptionConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from marinenav_env.tracks import record_tracks
from scripts import episode
from tests.host_reads import no_host_reads
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents import evaluate
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.evaluation import figures
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.scenarios.schema import Buoy, Scenario, Vessel
from train_RL_agents.policies.interface import acting_network
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import ShieldedPolicy, settings_in, shield_agent
from train_RL_agents.policies.shield.core_rollout import CoreRollout
from train_RL_agents.policies.shield.scene import start
from train_RL_agents.policies.shield.shield import Shield
from train_RL_agents.policies.shield.torch_rollout import TorchRollout
from train_RL_agents.policies.shield.vessel_model import VesselModel

ENV = EnvConfig()
HULL = ENV.vessel.radius
STEADY_THRUST = 400.0
"""N, of each thruster: the drag at 2 m/s is 100 * 2 + 150 * 2^2 = 800 N."""


class Constant(nn.Module):
    """Always the same action; it keeps what it saw."""

    def __init__(self, action):
        super().__init__()
        self.action = torch.as_tensor(action)
        self.seen = []

    def forward(self, observation):
        self.seen.append(observation)
        action, lead = self.action, observation[2].shape[:-1]
        if action.is_floating_point():
            action = action.to(observation[0].dtype)
        return action.expand(*lead, *action.shape)


def seen(*objects, goal=(30.0, 0.0), dtype=torch.float64):
    """Return what a vessel observes [1, ...] that sails at 2 m/s among objects (x, y, v, w, r)."""
    ego = torch.tensor([[*goal, 2.0, 0.0, 0.0, STEADY_THRUST, STEADY_THRUST]], dtype=dtype)
    rows, mask = torch.zeros(1, 5, 5, dtype=dtype), torch.zeros(1, 5, dtype=dtype)
    for i, row in enumerate(objects):
        rows[0, i], mask[0, i] = torch.tensor(row, dtype=dtype), 1.0
    return Observation(ego, rows, mask)


def random_situations(count, dtype=torch.float64):
    generator = torch.Generator().manual_seed(4)

    def uniform(*shape, low, high):
        return low + (high - low) * torch.rand(*shape, generator=generator, dtype=dtype)

    ego = torch.cat(
        (
            uniform(count, 2, low=-30.0, high=30.0),
            uniform(count, 3, low=-1.0, high=1.0) * torch.tensor([3.0, 0.5, 0.8]),
            uniform(count, 2, low=-500.0, high=1000.0),
        ),
        1,
    ).to(dtype)
    radius = torch.where(uniform(count, 5, low=0.0, high=1.0) < 0.5, 0.9, 2.5)
    place = uniform(count, 5, 2, low=-15.0, high=15.0)
    speed = uniform(count, 5, 2, low=-2.0, high=2.0) * (radius > 1.0).unsqueeze(-1)
    order = (torch.linalg.vector_norm(place, dim=-1) - radius).argsort(dim=-1, stable=True)
    objects = torch.cat((place, speed, radius.unsqueeze(-1)), -1).to(dtype)
    objects = objects.gather(1, order.unsqueeze(-1).expand(-1, -1, 5))
    return Observation(ego, objects, torch.ones(count, 5, dtype=dtype))


def shield(policy=(0.0, 0.0), **settings):
    policy = policy if isinstance(policy, nn.Module) else Constant(policy)
    discrete = not policy.action.is_floating_point()
    return Shield(policy, ENV, ShieldConfig(**settings), discrete=discrete)


@pytest.mark.parametrize("gap", [0.2, 0.4])
def test_a_passed_buoy_by_hand(gap):
    """Sailing on at 2 m/s it is abeam after 1 s; 0.3 m of clearance are asked for."""
    guarded = shield()(seen((2.0, HULL + 1.0 + gap, 0.0, 0.0, 0.8)))
    torch.testing.assert_close(guarded.predicted.item(), gap)
    assert torch.equal(guarded.action, guarded.proposed) == (gap > 0.3)
    assert guarded.clearance.item() >= 0.3


@pytest.mark.parametrize("gap", [-1.0, 0.2, 0.4])
def test_a_met_vessel_by_hand(gap):
    """It comes at 1.5 m/s from 7 m ahead, and is abeam after the 2 s of the plan."""
    guarded = shield()(seen((7.0, -2.0 * HULL - gap, -1.5, 0.0, 0.7 * HULL)))
    torch.testing.assert_close(guarded.predicted.item(), gap)
    assert torch.equal(guarded.action, guarded.proposed) == (gap > 0.3)
    assert guarded.clearance.item() > guarded.predicted.item() - 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_clear_path_leaves_the_decisions_alone(dtype):
    observation = seen((0.0, 12.0, 0.0, 0.0, 1.0), (-9.0, 0.0, -1.0, 0.0, 2.5), dtype=dtype)
    guarded = shield((0.25, 0.125))(observation)
    assert torch.equal(guarded.action, guarded.proposed)
    assert guarded.action.tolist() == [[0.25, 0.125]]
    assert guarded.action.dtype == guarded.predicted.dtype == dtype


def test_a_buoy_ahead_stops_it():
    """Contact cannot be avoided from 0.2 m at 2 m/s: of all plans full astern is the clearest."""
    guarded = shield()(seen((HULL + 1.0 + 0.2, 0.0, 0.0, 0.0, 0.8)))
    assert guarded.predicted.item() < guarded.clearance.item() < 0.0
    assert guarded.action.tolist() == [[-1.0, -1.0]]


@pytest.mark.parametrize(
    ("starboard_m", "goal", "to_starboard"),
    [(1.0, (30.0, 0.0), True), (0.0, (30.0, 0.0), False), (0.01, (8.0, 8.0), False)],
)
def test_on_which_side_a_vessel_ahead_is_passed(starboard_m, goal, to_starboard):
    """Both sides are safe: to starboard, unless port ends so much nearer to the goal."""
    guarded = shield(starboard_m=starboard_m)(seen((12.0, 0.0, -1.5, 0.0, 2.0), goal=goal))
    assert guarded.predicted.item() < 0.3 < guarded.clearance.item()
    left, right = guarded.action[0].tolist()
    assert left != right
    assert (left > right) == to_starboard


def test_a_buoy_is_passed_on_either_side():
    observation = seen((7.0, 0.0, 0.0, 0.0, 0.8))
    sides = [shield(starboard_m=m)(observation).action.tolist() for m in (0.0, 100.0)]
    assert sides[0] == sides[1]
    assert sides[0][0][0] < sides[0][0][1]  # the first of two that end equally near


def test_discrete_actions():
    guarded = shield(0)(seen((HULL + 1.0 + 0.2, 0.0, 0.0, 0.0, 0.8)))
    assert guarded.proposed.tolist() == [0]
    assert guarded.action.tolist() == [12]  # (-1000, -1000) N/s: third choice of five on each side


def simulated_choice(observation, action):
    """Return action and clearance by simulating one situation [1, ...] plan by plan."""
    model, found = VesselModel(ENV.vessel), []
    goal = observation.ego[0, :2].tolist()
    for candidate in (action, *itertools.product((-1.0, 0.0, 1.0), repeat=2)):
        motion, gaps, rest = start(observation.ego, 1), [(math.inf, False)], math.hypot(*goal)
        for step in range(4):
            chosen = action if step >= (1 if candidate is action else 2) else candidate
            rates = 1000.0 * torch.tensor(chosen, dtype=torch.float64).view(2, 1, 1)
            motion, path = model.decide(motion, rates)
            if rest <= 2.0:
                rest = 0.0
                break
            for i, (own_x, own_y) in enumerate(path[1:, :, 0, 0].tolist()):
                time = 0.5 * step + 0.05 * (i + 2)
                for x, y, vx, vy, radius in observation.objects[0].tolist():
                    vessel = radius > 1.0
                    x, y = x + vx * time * vessel, y + vy * time * vessel
                    gap = math.hypot(x - own_x, y - own_y) - HULL
                    gaps.append((gap - (HULL if vessel else 1.0), vessel))
            rest = math.hypot(goal[0] - motion.x.item(), goal[1] - motion.y.item())
        least, from_vessel = min(gaps)
        if candidate is action:
            starboard_m = 1.0 if from_vessel else 0.0
        dearer = starboard_m if candidate is not action and candidate[0] < candidate[1] else 0.0
        found.append((candidate, least, dearer + (rest if rest > 2.0 else 0.0)))
    if found[0][1] >= 0.3:
        return found[0][:2]
    safe = [plan for plan in found if plan[1] >= 0.3]
    best = min(safe, key=lambda plan: plan[2]) if safe else max(found, key=lambda plan: plan[1])
    return best[:2]


def test_choices_are_those_of_a_plan_by_plan_simulation():
    observation, action = random_situations(40), (0.3, -0.2)
    policy = Constant(torch.tensor(action, dtype=torch.float64))
    guarded = shield(policy)(observation)
    kinds = set()
    for i in range(40):
        chosen, clearance = simulated_choice(
            Observation(*(part[i : i + 1] for part in observation)), action
        )
        assert guarded.action[i].tolist() == list(chosen), i
        torch.testing.assert_close(guarded.clearance[i].item(), clearance)
        kinds.add((chosen == action, clearance >= 0.3))
    assert len(kinds) == 4  # own and other plans, safe and not


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_promises_in_random_situations(share):
    """Safe proposals stay, and no plan taken is predicted to be worse than the proposed one."""
    policy = Constant(torch.tensor((0.3, -0.2)))
    guarded = shield(policy, planned_share=share)(random_situations(10_000, torch.float32))
    changed = (guarded.action != guarded.proposed).any(-1)
    safe = guarded.predicted >= 0.3
    assert not (changed & safe).any()
    assert (changed & ~safe).sum() > 500
    assert ((guarded.clearance >= 0.3) | (guarded.clearance >= guarded.predicted)).all()
    assert changed.sum() <= 10_000 * share


def test_with_a_share_the_least_clear_are_planned_for():
    observation = random_situations(200)
    every, some = shield()(observation), shield(planned_share=0.1)(observation)
    planned = every.predicted <= every.predicted.sort().values[19]
    assert torch.equal(some.action[planned], every.action[planned])
    assert torch.equal(some.action[~planned], every.proposed[~planned])
    assert (every.action[~planned] != every.proposed[~planned]).any()


def test_at_its_goal_it_leaves_the_policy_alone():
    guarded = shield()(seen((HULL + 1.0, 0.0, 0.0, 0.0, 0.8), goal=(1.0, 1.0)))
    assert torch.equal(guarded.action, guarded.proposed)


def test_objects_seem_closer():
    """3 m and 4 m away make 5 m: 0.5 m closer leaves nine tenths of each."""
    policy = Constant((0.0, 0.0))
    shield(policy, closer_m=0.5)(seen((3.0, 4.0, 0.1, 0.2, 2.0)))
    first = policy.seen[0][1][0, 0]
    torch.testing.assert_close(first, first.new_tensor([2.7, 3.6, 0.1, 0.2, 2.0]))


@pytest.mark.parametrize("gap", [0.6, 0.8])
def test_a_buoy_that_the_plan_clears_is_hidden(gap):
    policy = Constant((0.0, 0.0))
    observation = seen((2.0, HULL + 1.0 + gap, 0.0, 0.0, 0.8), (0.0, -8.0, 0.0, 0.0, 2.0))
    shield(policy, hidden_buoy_m=0.7, hidden_horizon_s=1.5)(observation)
    acted_on = policy.seen[3]  # after the three decisions of the plan without buoys
    shown = [0.8, 2.0] if gap < 0.7 else [2.0]
    assert acted_on[1][0, :, 4].tolist() == [*shown, *[0.0] * (5 - len(shown))]
    assert acted_on[2][0].sum() == len(shown)
    assert policy.seen[0][2].sum() == 1  # the plan itself sees the vessel only


def test_predictions_are_observations_to_come():
    """What the policy sees in its plan is what the vessel observes then, nearest first."""
    policy = Constant((0.0, 0.0))
    shield(policy)(seen((1.0, 7.0, 0.0, 0.0, 0.8), (0.0, -8.0, 3.0, 0.0, 2.0)))
    ego, objects, mask = policy.seen[2]  # after 1 s
    torch.testing.assert_close(ego[0, 0, :2], ego.new_tensor([28.0, 0.0]))
    expected = objects.new_tensor([[1.0, -8.0, 3.0, 0.0, 2.0], [-1.0, 7.0, 0.0, 0.0, 0.8]])
    torch.testing.assert_close(objects[0, 0, :2], expected)
    assert mask[0, 0].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("action", [(0.0, 0.0), 7])
def test_nothing_reads_the_device(action):
    guard = shield(action, closer_m=0.5, hidden_buoy_m=0.7, planned_share=0.5)
    observation = random_situations(64)
    with no_host_reads():
        guard(observation)


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


def test_policies_with_a_memory_are_refused(tmp_path):
    agent, config = load_policy(save_policy(tmp_path / "policy.pt", "DQN", stack_k=2))
    with pytest.raises(ConfigError, match="stack_k"):
        shield_agent(agent, config, ShieldConfig(), agent.act)


@pytest.mark.parametrize("action", [(0.3, -0.2), 7])
def test_scripted_plans_are_the_cores(action):
    """Different actions held in every plan, then the policy, which sees all but one object."""
    policy, discrete = Constant(action), isinstance(action, int)
    sight = tuple(random_situations(200))
    generator = torch.Generator().manual_seed(1)
    held = torch.randint(25, (3, 200, 1), generator=generator)
    if not discrete:
        held = (held.double() / 12.0 - 1.0).repeat(1, 1, 2)
    shown = sight[2] > 0.5
    shown[:, 2] = False
    kinds = [
        kind(policy, ENV, discrete=discrete, closer=0.3) for kind in (CoreRollout, TorchRollout)
    ]
    found, expected = (kind.roll(sight, shown, held, 2, 4) for kind in kinds)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    assert (found[1] == 0.0).any()
    seen = policy.seen
    for ours, theirs in ((seen[0], seen[2]), (seen[1], seen[3])):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    now, torch_now = (kind.seen(sight, shown) for kind in kinds)
    torch.testing.assert_close(now, torch_now, rtol=1e-9, atol=1e-9)


def test_a_scripted_shield_decides_alike(tmp_path):
    agent, config = load_policy(save_policy(tmp_path / "policy.pt", "AC-IQN"))
    settings = ShieldConfig(closer_m=0.5, hidden_buoy_m=0.7, planned_share=0.5)
    network = acting_network(agent, torch.float64)
    guard = Shield(network, config.env, settings, discrete=False)
    copy = Shield(network, config.env, settings, discrete=False, rollout=TorchRollout)
    observation = tuple(random_situations(64))
    scripted = torch.jit.script(copy)(observation)
    for found, expected in zip(scripted, guard(observation), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
