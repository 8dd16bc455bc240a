"""What surrounds the training loop, on a GPU that is not there: its tensors are of one device.

`training/test_fake_gpu.py` has the loop itself.
"""

import dataclasses

import pytest
import torch

from tests.computing_gpu import computing_gpu
from tests.fake_gpu import FAKE_GPU, OtherDeviceError, load_guard
from tests.train_RL_agents.short_runs import CPU, ONE_STAGE, assert_same, trainer
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.figures import draw_trajectories
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.files import find_scenarios
from train_RL_agents.evaluation.steering import traffic_policy
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import shield_agent
from train_RL_agents.run import checkpoint

pytestmark = pytest.mark.skipif(
    torch.version.cuda is not None, reason="this torch asks a GPU that is there"
)
POLICY = "pretrained/sac_rules"
RUN = ["total_steps=48", "log.interval_steps=24", "checkpoint.interval_steps=24", ONE_STAGE]
RUN += ["evaluation.interval_steps=24", "updates.warmup_transitions=20", "compile=false"]


@pytest.fixture(scope="module", autouse=True)
def guard(tmp_path_factory):
    """Let torch follow tensors on a GPU."""
    load_guard(tmp_path_factory.mktemp("guard"))


@pytest.fixture(autouse=True)
def few_decisions(monkeypatch):
    """End the episodes of evaluations very early."""
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 6)


def outcomes_of(rows):
    """Return how the episodes of an evaluation ended, as numbers."""
    return [[part.tolist() for part in row.outcomes] for row in rows]


def evaluated(agent, config, act=None, recording=None):
    """Return how three episodes ended."""
    evaluation = Evaluation.of_agent(agent, config, (2, 0, 0, 0, 0, 1), seed=1)
    return outcomes_of(evaluation.run(act or agent.act, recording))


@pytest.mark.parametrize("name", AGENTS)
def test_an_evaluation_ends_as_on_the_cpu(name):
    config, _, _ = load_config(agent=name)
    torch.manual_seed(0)
    with computing_gpu():
        there = evaluated(build_agent(config, FAKE_GPU), config)
    torch.manual_seed(0)
    assert there == evaluated(build_agent(config, CPU), config)


@pytest.mark.parametrize("name", ["baseline:orca", "baseline:sb-mpc"])
def test_a_baseline_ends_as_on_the_cpu(name):
    with computing_gpu():
        there = evaluated(*load_policy(name, FAKE_GPU))
    assert there == evaluated(*load_policy(name, CPU))


def test_a_shield_and_a_recording():
    with computing_gpu():
        agent, config = load_policy(POLICY, FAKE_GPU)
        guarded, recording = shield_agent(agent, config, ShieldConfig(), agent.act), Recording()
        evaluated(agent, config, guarded, recording)
        assert guarded.report()["decisions"] > 0
        assert recording.tracks(0).robot.device == CPU


def test_a_guarded_policy_among_traffic_ends_as_on_the_cpu():
    def played(device):
        agent, config = load_policy(POLICY, device)
        shield = ShieldConfig(planned_share=0.5)
        steer = traffic_policy("orca", config.env, discrete=agent.discrete, device=device)
        guarded, recording = shield_agent(agent, config, shield, agent.act), Recording()
        counts = (2, 0, 0, 0, 0, 1)
        evaluation = Evaluation.of_agent(agent, config, counts, seed=1, traffic=steer)
        ends = outcomes_of(evaluation.run(guarded, recording))
        return ends, recording.tracks(0).own.tolist(), guarded.report()

    with computing_gpu():
        there = played(FAKE_GPU)
    assert there == played(CPU)


def test_a_figure(tmp_path):
    with computing_gpu():
        agent, config = load_policy(POLICY, FAKE_GPU)
        one = dataclasses.replace(config.evaluation, stages=config.evaluation.stages[-1:])
        short = dataclasses.replace(config, evaluation=one)
        draw_trajectories(agent, short, 1, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_named_scenarios_end_as_on_the_cpu():
    """One of the two vessels is steered by another policy."""
    scenarios = find_scenarios("singles-scripted")

    def played(device):
        agent, config = load_policy(POLICY, device)
        evaluation = ScenarioEvaluation.of_agent(agent, config, scenarios, 1, seed=1)
        return outcomes_of(evaluation.run(agent.act).rows)

    with computing_gpu():
        there = played(FAKE_GPU)
    assert there == played(CPU)


@pytest.mark.parametrize("agent", ["SAC", "PPO"])
def test_a_run_learns_logs_evaluates_saves_and_goes_on(tmp_path, agent):
    own = [*RUN, "algorithm.turns=2"] if AGENTS[agent].learns_from == "rounds" else RUN
    with computing_gpu():
        run = trainer(tmp_path, *own, agent=agent, device=FAKE_GPU)
        (row,) = run.train()
        assert all(p.device == FAKE_GPU for p in run.learner.agent.parameters())
        assert run.counters.updates > 2
    whole = checkpoint.load(checkpoint.newest(tmp_path))
    with computing_gpu():
        resumed = trainer(tmp_path, *own, agent=agent, device=FAKE_GPU)
        resumed.resume(tmp_path / "checkpoints" / "step_000000000024.pt")
        (again,) = resumed.train()
    assert_same(checkpoint.load(checkpoint.newest(tmp_path)), whole)
    assert again.as_json() == row.as_json()


def test_tensors_of_two_devices_are_seen():
    there, here = torch.zeros(3, device=CPU), torch.zeros(3)
    with computing_gpu():
        there = there.to(FAKE_GPU)
        refused = {
            "a sum": lambda: there + here,
            "a change of the CPU's": lambda: here.sum().add_(there.sum()),
            "an index of the CPU's": lambda: here[there.long()],
            "a list": lambda: torch.stack([there, here]),
            "the default GPU": lambda: torch.zeros(3, device="cuda"),
        }
        for what, operation in refused.items():
            with pytest.raises(OtherDeviceError, match="cuda:1"):
                pytest.fail(f"{what} is taken: {operation()}")
        with pytest.raises((TypeError, RuntimeError), match="numpy"):
            there.numpy()
        taken = there + here.sum(), there[here.long()], there.where(there > 0, here.sum())
        assert all(tensor.device == FAKE_GPU for tensor in taken)
        assert here.copy_(there).device == CPU


def test_a_policy_that_adds_a_tensor_on_the_cpu_is_seen():
    with computing_gpu():
        agent, config = load_policy(POLICY, FAKE_GPU)
        with pytest.raises(OtherDeviceError, match=r"cuda:1 with tensors \[\[2\]\] on cpu"):
            evaluated(agent, config, lambda seen: agent.act(seen) + torch.zeros(2))
