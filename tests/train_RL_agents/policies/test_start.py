"""A training begins with the networks of another one, or says why it cannot."""

from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from marinenav_env.fields import ConfigError
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents import train
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import preset_settings, presets
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.policies.pretrained import NETWORKS, write_pretrained
from train_RL_agents.policies.start import PLACEHOLDER, begin_with, grown
from train_RL_agents.run.checkpoint import CheckpointError

ALONE = [name for name, agent in AGENTS.items() if agent.learns_from != "replay"]
WITH_REPLAY = [name for name in AGENTS if name not in ALONE]
WITH_CRITICS = [name for name in WITH_REPLAY if not AGENTS[name].discrete]


def begun(name: str, path: Path, **settings: object) -> Agent:
    """Return an agent of other fresh weights that has begun with a policy."""
    torch.manual_seed(1)
    algorithm = {"start": str(path), **settings.pop("algorithm", {})}
    config = config_from_plain({"agent": name, "algorithm": algorithm, **settings})
    agent = build_agent(config, "cpu")
    begin_with(agent, config)
    return agent


def shipped(path: Path, name: str, *, whole: bool) -> Path:
    """Make a folder like those of pretrained/ of an untrained agent."""
    policy = read_policy(save_policy(path.with_suffix(".pt"), name))
    write_pretrained(path, policy, {}, {"step": 5, "commit": "abc"}, whole=whole)
    return path


def assert_same(agent: Agent, other: Agent) -> None:
    expected = other.state_dict()
    assert agent.state_dict().keys() == expected.keys()
    for name, value in agent.state_dict().items():
        assert torch.equal(value, expected[name]), name


@pytest.mark.parametrize("name", WITH_REPLAY)
def test_a_checkpoint_gives_all_networks(name, tmp_path):
    path = save_policy(tmp_path / "policy.pt", name)
    assert_same(begun(name, path), load_policy(path)[0])


@pytest.mark.parametrize("name", WITH_CRITICS)
def test_a_shipped_policy_gives_all_networks_where_it_has_them(name, tmp_path):
    path = shipped(tmp_path / "policy", name, whole=True)
    assert_same(begun(name, path), load_policy(tmp_path / "policy.pt")[0])
    write_pretrained(path, read_policy(path), {}, {"step": 6, "commit": "abc"})
    assert not (path / NETWORKS).exists()
    with pytest.raises(ConfigError, match=rf"only the network that acts is left .*has {NETWORKS}"):
        begun(name, path)


@pytest.mark.parametrize("name", [name for name in WITH_REPLAY if name not in WITH_CRITICS])
def test_action_values_are_all_that_a_shipped_policy_needs(name, tmp_path):
    agent = begun(name, shipped(tmp_path / "policy", name, whole=False))
    acting = load_policy(tmp_path / "policy.pt")[0].actor.state_dict()
    for network in ("policy_network", "actor"):
        for key, value in getattr(agent, network).state_dict().items():
            assert torch.equal(value, acting[key]), (network, key)
    targets = [other for other, _ in agent.descent.followers]
    assert len(targets) == 2
    for target in targets:
        assert all(torch.equal(value, acting[key]) for key, value in target.state_dict().items())


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("start", ["AC-IQN", "DDPG", "SAC", "DAgger", "PPO"])
def test_an_actor_alone_begins_with_any_actor(name, start, tmp_path):
    path = shipped(tmp_path / "policy", start, whole=False)
    agent, (other, _) = begun(name, path), load_policy(path)
    observation = tuple(torch.rand(4, *shape) for shape in agent.spec.observation.shapes)
    expected = other.act(observation, mean=True)
    assert torch.equal(agent.act(observation), expected)
    torch.testing.assert_close(agent.explore(observation), expected, rtol=0.0, atol=0.05)


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("encoder", ["published", "relative_motion"])
@pytest.mark.parametrize(
    ("theirs", "own"),
    [((1, 1), (2, 1)), ((2, 1), (3, 1)), ((1, 1), (1, 2)), ((1, 2), (1, 5)), ((2, 1), (3, 2))],
)
def test_an_actor_alone_begins_with_a_smaller_one(name, encoder, theirs, own, tmp_path):
    """Of (frames, widening): it acts alike, and what is new learns."""
    (frames, width), (own_frames, own_width) = theirs, own
    smaller, larger = ({"encoder": encoder, "widening": w} for w in (width, own_width))
    path = save_policy(tmp_path / "policy.pt", "SAC", algorithm=smaller, stack_k=frames)
    agent = begun(name, path, algorithm=larger, stack_k=own_frames)
    seen = agent.spec.observation.draw(16, torch.Generator().manual_seed(0))
    newest = type(seen)(*(part[:, : part.shape[1] * frames // own_frames] for part in seen))
    expected = load_policy(path)[0].act(newest, mean=True)
    torch.testing.assert_close(agent.act(seen), expected, rtol=0.0, atol=1e-4)
    torch.testing.assert_close(agent.explore(seen), expected, rtol=0.0, atol=0.05)
    agent.policy(seen).sum().backward()
    layers = agent.policy.output_layer, agent.policy.encoder.self_encoder[0]
    for layer, in_smaller in zip(layers, (128 * width, inputs_of(path)), strict=True):
        new = layer.weight.grad[:, in_smaller:]
        assert new.numel() == 0 or (new != 0.0).float().mean() > 0.1


def inputs_of(path: Path) -> int:
    """Return how many features of the robot itself a policy's network takes."""
    return load_policy(path)[0].actor.encoder.self_encoder[0].in_features


def test_it_grows_on_its_own_device():
    """Tensors of another device that hold nothing refuse what comes from the CPU."""
    weight, places = torch.rand(4, 3), torch.tensor([0, 1, 4])
    with FakeTensorMode(allow_non_fake_inputs=True):
        fresh = torch.empty(8, 6, device="meta")
        for name in ("policy.hidden_layer.weight", "policy.hidden_layer_2.weight"):
            assert grown(name, weight, fresh, places).shape == fresh.shape
        for name in ("policy.hidden_layer.bias", "policy.self_input_scale"):
            assert grown(name, weight[:, 0], fresh[:, 0], places).shape == (8,)


def test_the_policy_of_another_task_is_named_first(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "SAC", task="pendulum")
    with pytest.raises(ConfigError, match=r"give its settings, task=pendulum, or"):
        begun("PPO", path, task="mountain_car_continuous", algorithm={"widening": 2})


def test_where_an_observation_is_flat_too(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "SAC", task="pendulum")
    agent = begun("PPO", path, task="pendulum", stack_k=2, algorithm={"widening": 2})
    (state,) = agent.spec.observation.draw(16, torch.Generator().manual_seed(0))
    expected = load_policy(path)[0].act((state[..., : state.shape[-1] // 2],), mean=True)
    torch.testing.assert_close(agent.act((state,)), expected, rtol=0.0, atol=1e-4)


def test_wider_layers_for_fewer_frames_are_refused(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "SAC", stack_k=2)
    with pytest.raises(ConfigError, match=r"give its settings, stack_k=2, or"):
        begun("DPI", path, algorithm={"widening": 2})


@pytest.mark.parametrize("name", WITH_CRITICS)
def test_what_learns_values_does_not_grow(name, tmp_path):
    path = save_policy(tmp_path / "policy.pt", name)
    with pytest.raises(ConfigError, match=r"give its settings, algorithm.widening=1, or"):
        begun(name, path, algorithm={"widening": 2})


def test_fewer_frames_than_the_start_are_refused(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "SAC", stack_k=2)
    with pytest.raises(ConfigError, match=r"give its settings, stack_k=2, or"):
        begun("DPI", path, stack_k=1)


def test_where_old_and_new_features_mix_more_frames_are_refused(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "SAC", task="icra2024", stack_k=1)
    with pytest.raises(ConfigError, match=r"give its settings, stack_k=1, or"):
        begun("PPO", path, task="icra2024", stack_k=2)


@pytest.mark.parametrize("shares", [(0.0, 0.1), (0.1, 0.0)])
def test_the_average_for_acting_follows_where_only_one_has_it(shares, tmp_path):
    theirs, own = shares
    path = save_policy(tmp_path / "policy.pt", "SAC", algorithm={"acting_average": theirs})
    agent, (other, _) = begun("SAC", path, algorithm={"acting_average": own}), load_policy(path)
    learned = other.policy_network.state_dict()
    for network in filter(None, (agent.policy_network, agent.average)):
        assert all(torch.equal(v, learned[n]) for n, v in network.state_dict().items())


def test_a_fixed_temperature_stays(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "SAC", algorithm={"alpha": 0.5})
    assert begun("SAC", path).log_alpha.exp().item() == pytest.approx(0.5)
    fixed = begun("SAC", path, algorithm={"alpha": 0.01, "tune_alpha": False})
    assert fixed.log_alpha.exp().item() == pytest.approx(0.01)


def test_networks_that_do_not_fit_are_named(tmp_path):
    path = shipped(tmp_path / "policy", "SAC", whole=True)
    state = torch.load(path / NETWORKS, weights_only=True)
    del state["networks"]["log_alpha"]
    torch.save(state, path / NETWORKS)
    with pytest.raises(CheckpointError, match=rf"(?s)^\S*{NETWORKS} does not fit .*log_alpha"):
        load_policy(path)
    state["networks"]["log_alpha"] = torch.zeros(())
    state["networks"]["average.output_layer_mu.bias"] += 1.0
    torch.save(state, path / NETWORKS)
    with pytest.raises(CheckpointError, match=rf"{NETWORKS} is of another policy than weights.pt"):
        load_policy(path)
    (path / NETWORKS).write_bytes(b"none")
    with pytest.raises(CheckpointError, match=NETWORKS):
        load_policy(path)


def test_a_start_that_is_missing_is_named_with_its_setting(tmp_path, refused):
    arguments = ["--preset", "rules_finish", "--output", str(tmp_path / "run")]
    refused(train.main, arguments, "algorithm.start is 'RUN', which stands for the run")
    message = "algorithm.start is 'runs/none': no checkpoint 'runs/none': check the name"
    refused(train.main, [*arguments, "algorithm.start=runs/none"], message)


def test_presets_that_go_on_leave_room_for_a_run():
    begun_by = [preset_settings(name).get("algorithm", {}).get("start") for name in presets()]
    assert set(begun_by) == {None, PLACEHOLDER}


def test_other_networks_are_refused(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "SAC")
    with pytest.raises(ConfigError, match=r"the SAC of which DDPG cannot begin with"):
        begun("DDPG", path)
    with pytest.raises(ConfigError, match=r"give its settings, stack_k=1 algorithm.widening=1, or"):
        begun("SAC", path, algorithm={"widening": 2}, stack_k=2)
    rainbow = save_policy(tmp_path / "rainbow.pt", "Rainbow")
    with pytest.raises(ConfigError, match=r"give its settings, algorithm.v_min=\S+, or"):
        begun("Rainbow", rainbow, algorithm={"v_min": -99.0})
    with pytest.raises(ConfigError, match=r"'baseline:orca', which has no one network"):
        begun("SAC", "baseline:orca")
