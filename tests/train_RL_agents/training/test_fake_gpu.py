"""Every agent's whole iteration on a GPU that is not there: one device throughout, nothing read."""

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException

from tests.fake_gpu import FAKE_GPU, AllOnGpu, Operators, OtherDeviceError, fake_gpu, load_guard
from tests.train_RL_agents.short_runs import every_decision, packed_log
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schedules import Curriculum
from train_RL_agents.device.distributed import Processes
from train_RL_agents.training import imitation
from train_RL_agents.training.run_state import make_learner

WORLDS = 6
SMALL = [f"worlds={WORLDS}", "updates.batch_size=8", "replay.capacity=3000"]
SMALL += ["updates.warmup_transitions=0", "compile=false"]
# Launches of a decision and of an update, and most temporary memory in GB: a tenth above what is.
BUDGETS = {
    "AC-IQN": (175, 315, 1.0),
    "IQN": (175, 225, 2.6),
    "DQN": (160, 185, 0.5),
    "Rainbow": (240, 585, 7.6),
    "DDPG": (175, 260, 0.5),
    "SAC": (180, 395, 0.5),
    "PPO": (170, 265, 0.9),
    "DAgger": (900, 195, 1.1),
    "DPI": (700, 210, 4.9),
}


def prioritized(agent, wanted="true"):
    """Return settings that ask for priorities, of an agent that can have them."""
    if agent not in REPLAY_AGENTS:
        return every_decision(agent)
    return [f"algorithm.prioritized={wanted}"]


@pytest.fixture(scope="module", autouse=True)
def guard(tmp_path_factory):
    """Let torch follow tensors on a GPU."""
    load_guard(tmp_path_factory.mktemp("guard"))


@pytest.fixture(autouse=True)
def teacher_of_no_file(monkeypatch):
    """Let DAgger imitate fresh weights: those of a file are looked at on the host."""
    config, _, _ = load_config(agent="SAC")
    fresh = lambda path, device: (build_agent(config, device), config)  # noqa: E731
    monkeypatch.setattr(imitation, "load_policy", fresh)


@pytest.mark.parametrize(
    ("agent", "wanted"),
    [*((agent, "true") for agent in AGENTS), *((agent, "false") for agent in REPLAY_AGENTS)],
)
def test_an_iteration_and_its_log_stay_on_one_device(agent, wanted):
    overrides = [*SMALL, *prioritized(agent, wanted), "algorithm.autocast=true"]
    config, _, _ = load_config(agent=agent, overrides=overrides)
    curriculum = Curriculum(config.curriculum, 1000)
    with fake_gpu():
        made = make_learner(config, FAKE_GPU, Processes())
        made.start(curriculum.stages(0, WORLDS, device=FAKE_GPU))
        made.collect()
        made.learn()  # the first one of each may make what stays
        with AllOnGpu():
            made.set_rates(epsilon=0.3, learning_rate_scale=0.5, beta=0.6)
            for _ in range(2):
                made.collect()
                made.learn()
            packed = packed_log(made, updates=2)
        assert made.agent.uses_bfloat16
        assert all(p.device == FAKE_GPU for p in made.agent.parameters())
        assert packed.device == FAKE_GPU


@pytest.mark.parametrize("agent", AGENTS)
def test_a_graph_would_freeze_nothing_that_changes(agent):
    """Whatever the schedules, the ring and the stages are, the same operators run."""
    config, _, _ = load_config(agent=agent, overrides=[*SMALL, *prioritized(agent)])
    with fake_gpu():
        made = make_learner(config, FAKE_GPU, Processes())
        made.start(torch.zeros(WORLDS, dtype=torch.int64, device=FAKE_GPU))
        for _ in range(6):
            made.collect()
        made.learn()
        sequences = []
        for rate in (0.9, 0.1):
            made.set_rates(epsilon=rate, learning_rate_scale=rate, beta=rate)
            made.set_stages(torch.full((WORLDS,), int(10 * rate) % 6, device=FAKE_GPU))
            with Operators() as operators:
                for _ in range(6):  # of both buffers, which have graphs of their own
                    made.collect()
                made.learn()
            sequences.append(operators.calls)
    assert sequences[0] == sequences[1]


def test_a_number_that_changes_is_seen():
    with fake_gpu():
        sequences = []
        for rate in (0.9, 0.1):
            with Operators() as operators:
                torch.zeros(3, device=FAKE_GPU).mul_(rate)
            sequences.append(operators.calls)
    assert sequences[0] != sequences[1]


@pytest.mark.parametrize("agent", BUDGETS)
def test_launches_and_temporary_memory_stay_within_a_budget(agent):
    """Of a decision and of an update's forward pass, with the preset `scale`.

    DPI looks four decisions ahead, so most of its launches come again in each of them.
    Rainbow's peak is in the output of 1,275 numbers for each of 327,680 robots.
    """
    decision, update, gigabytes = BUDGETS[agent]
    own = ["compile=false", *every_decision(agent)]
    own += ["algorithm.look_every=1"] if AGENTS[agent].learns_from == "lookahead" else []
    config, _, _ = load_config(agent=agent, preset="scale", overrides=own)
    with fake_gpu():
        made = make_learner(config, FAKE_GPU, Processes())
        made.start(torch.zeros(config.worlds, dtype=torch.int64, device=FAKE_GPU))
        made.collect()
        made.learn()
        with Operators() as collecting:
            made.collect()
        with Operators() as learning:
            made.learn()
    assert 0.8 * decision < collecting.launches <= decision
    assert 0.8 * update < learning.launches <= update
    peak = max(collecting.peak_bytes, learning.peak_bytes) / 1e9
    assert 0.8 * gigabytes < peak <= gigabytes


def test_a_tensor_on_the_cpu_is_seen():
    with fake_gpu():
        there = torch.zeros(3, device=FAKE_GPU)
        with AllOnGpu(), pytest.raises(OtherDeviceError, match="on cpu"):
            there + torch.zeros(())


def test_a_tensor_on_another_gpu_is_seen():
    with fake_gpu():
        other = torch.zeros(3, device="cuda:0")
        with AllOnGpu(), pytest.raises(OtherDeviceError, match="on cuda:0"):
            other.neg()


def test_a_read_is_seen():
    with fake_gpu():
        there = torch.zeros(3, device=FAKE_GPU)
        with pytest.raises(DataDependentOutputException):
            bool(there.sum() > 0)
