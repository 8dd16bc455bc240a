"""Policies that act by exported networks: this project's files, and published ones."""

import copy
import functools
import json

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from tests.train_RL_agents.agent_samples import names_by_weights, random_observation
from tests.train_RL_agents.policy_samples import export_policy, save_policy
from train_RL_agents import evaluate
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.evaluation import episodes as evaluation_episodes
from train_RL_agents.policies.interface import acting_network
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.policies.published import published_config
from train_RL_agents.policies.seal import checksum
from train_RL_agents.policies.torchscript import METADATA
from train_RL_agents.run.checkpoint import CheckpointError


@pytest.fixture(params=list(REPLAY_AGENTS), scope="module")
def files(request, tmp_path_factory):
    """A checkpoint of an untrained agent, and its export."""
    path = save_policy(tmp_path_factory.mktemp("policy") / "policy.pt", request.param)
    return path, export_policy(path)


def acting_alike(first, second):
    """Whether two agents act alike on observations [W, R, ...], drawing the same numbers."""
    observation = random_observation(20, 5)
    actions = []
    for agent in (first, second):
        torch.manual_seed(1)
        actions.append(agent.act(observation))
    assert actions[0].shape == actions[1].shape
    assert actions[0].dtype == actions[1].dtype
    if not first.discrete:
        return torch.allclose(*actions, atol=1e-5)
    return torch.equal(*actions)


def test_an_export_acts_as_its_checkpoint(files):
    (own, settings), (deployed, said) = map(load_policy, files)
    assert (deployed.name, deployed.stochastic) == (own.name, own.stochastic)
    assert said == settings
    assert acting_alike(own, deployed)
    known = {**read_policy(files[0]).origin, "sha256": checksum(files[1].read_bytes())}
    assert read_policy(files[1]).origin == known


RISK = {"cvar": 0.2, "adaptive_cvar": True}


@pytest.mark.parametrize("average", [0.0, 1e-3])
@pytest.mark.parametrize("fractions", [False, True])
def test_the_risk_level_inside_an_export_is_applied_once(tmp_path, average, fractions):
    settings = {**RISK, "acting_average": average, "random_acting_taus": fractions}
    path = save_policy(tmp_path / "policy.pt", "IQN", algorithm=settings)
    (own, _), (deployed, _) = map(load_policy, (path, export_policy(path)))
    assert acting_alike(own, deployed)
    own.act_under(cvar=0.2**2)
    assert not acting_alike(own, deployed)


def test_a_risk_level_inside_an_export_stays(tmp_path, refused):
    stages = {"stages": [[1, 0, 0, 30.0]]}
    path = save_policy(tmp_path / "policy.pt", "IQN", algorithm=RISK, evaluation=stages)
    arguments = ["--checkpoint", str(export_policy(path)), "--episodes", "1"]
    assert evaluate.main([*arguments, "--cvar", "0.2", "--adaptive-cvar"]) == 0
    for option, message in (
        (["--cvar", "0.5"], "cvar is 0.5: the exported network acts under 0.2"),
        (["--no-adaptive-cvar"], "adaptive_cvar is False: the exported network acts under True"),
    ):
        refused(evaluate.main, [*arguments, *option], message)


def test_an_export_without_the_level_inside_acts_as_before(tmp_path):
    """Earlier versions exported the bare network, and the caller scaled the fractions."""
    path = save_policy(tmp_path / "policy.pt", "IQN", algorithm=RISK)
    files = {METADATA: ""}
    torch.jit.load(str(export_policy(path)), _extra_files=files)
    said = json.loads(files[METADATA])
    del said["applied_settings"]
    own, _ = load_policy(path)
    bare = torch.jit.script(copy.deepcopy(own.actor).double())
    earlier = tmp_path / "earlier.pt"
    torch.jit.save(bare, str(earlier), _extra_files={METADATA: json.dumps(said)})
    deployed, _ = load_policy(earlier)
    assert acting_alike(own, deployed)
    for agent in (own, deployed):
        agent.act_under(cvar=1.0, adaptive_cvar=False)
    assert acting_alike(own, deployed)


def test_it_is_the_network_of_the_file_that_acts(files):
    path, exported = files
    agent, _ = load_policy(path)
    with torch.no_grad():
        for parameter in agent.actor.parameters():
            parameter.neg_()
    assert not acting_alike(agent, load_policy(exported)[0])


def test_published_files_are_recognised_by_what_they_return(files, tmp_path):
    own, _ = load_policy(files[0])
    torch.jit.script(acting_network(own, torch.float64)).save(str(tmp_path / "published.pt"))
    deployed, config = load_policy(tmp_path / "published.pt")
    assert deployed.name == names_by_weights(own.name)
    assert config.algorithm == published_config(config.agent).algorithm
    assert deployed.discrete == own.discrete
    if config.algorithm == own.config:
        assert acting_alike(own, deployed)


def test_a_description_of_another_agent_is_refused(tmp_path):
    save_policy(tmp_path / "policy.pt", "DQN")
    save_policy(tmp_path / "other.pt", "SAC")
    said = {METADATA: ""}
    torch.jit.load(str(export_policy(tmp_path / "other.pt")), _extra_files=said)
    module = torch.jit.load(str(export_policy(tmp_path / "policy.pt")))
    torch.jit.save(module, str(tmp_path / "mixed.pt"), _extra_files=said)
    with pytest.raises(CheckpointError, match="does not act as SAC: export it again"):
        load_policy(tmp_path / "mixed.pt")
    torch.jit.save(module, str(tmp_path / "odd.pt"), _extra_files={METADATA: "{}"})
    with pytest.raises(CheckpointError, match="does not say rightly what it is"):
        load_policy(tmp_path / "odd.pt")


def test_other_networks_and_damaged_files_are_refused(tmp_path, refused):
    other = tmp_path / "other.pt"
    torch.jit.script(torch.nn.Linear(7, 2)).save(str(other))
    with pytest.raises(CheckpointError, match="acts like no agent"):
        load_policy(other)
    content = bytearray(other.read_bytes())
    place = content.index(b"code/__torch__") + 200
    content[place : place + 400] = bytes(400)
    other.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        load_policy(other)
    arguments = ["--checkpoint", str(other), "--episodes", "1"]
    assert refused(evaluate.main, arguments).startswith("error: ")


@pytest.mark.parametrize("name", ["AC-IQN", "SAC", "IQN"])
def test_the_table_of_an_export_is_that_of_its_weights(tmp_path, name, monkeypatch):
    """In float64: rounding the network to float32 would change a close encounter now and then.

    Cut short, since an untrained policy goes nowhere: returns and energies are compared.
    """
    path = save_policy(tmp_path / "policy.pt", name)
    monkeypatch.setattr(evaluation_episodes, "DECISION_LIMIT", 40)
    (own, _), (deployed, _) = map(load_policy, (path, export_policy(path)))
    own.double()

    def in_float64(observation):
        action = own.act(Observation(*(part.double() for part in observation)), mean=True)
        return action if own.discrete else action.float()

    stages = (Stage(robots=3, vortices=1, buoys=2, min_distance_m=30.0),)
    episodes = evaluation_episodes.Evaluation(
        stages, (4,), seed=1, config=EnvConfig(), discrete=own.discrete
    )
    (exact,), (found,) = map(episodes.run, (in_float64, functools.partial(deployed.act, mean=True)))
    for quantity in ("energy", "episode_return"):
        values = getattr(exact.outcomes, quantity)
        torch.testing.assert_close(getattr(found.outcomes, quantity), values, rtol=1e-5, atol=1e-5)
    assert exact.outcomes.episode_return.unique().numel() == 4


def test_the_command_evaluates_an_export(tmp_path, capsys):
    path = save_policy(tmp_path / "policy.pt", "SAC", evaluation={"stages": [[1, 0, 0, 30.0]]})
    assert evaluate.main(["--checkpoint", str(export_policy(path)), "--episodes", "1"]) == 0
    assert "SAC" in capsys.readouterr().out
