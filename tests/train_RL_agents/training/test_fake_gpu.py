"""Every agent's whole iteration on a GPU that is not there: one device throughout, nothing read."""

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException

from tests.fake_gpu import FAKE_GPU, AllOnGpu, CpuTensorError, fake_gpu, load_guard
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schedules import Curriculum
from train_RL_agents.device.distributed import Processes
from train_RL_agents.metrics.reductions import reduce
from train_RL_agents.training.learner import Learner

WORLDS = 6
SMALL = [f"worlds={WORLDS}", "updates.batch_size=8", "replay.capacity=3000"]
SMALL += ["updates.warmup_transitions=0", "compile=false"]


@pytest.fixture(scope="module", autouse=True)
def guard(tmp_path_factory):
    """Let torch follow tensors on a GPU."""
    load_guard(tmp_path_factory.mktemp("guard"))


@pytest.mark.parametrize("prioritized", ["true", "false"])
@pytest.mark.parametrize("agent", AGENTS)
def test_an_iteration_and_its_log_stay_on_one_device(agent, prioritized):
    overrides = [*SMALL, f"algorithm.prioritized={prioritized}"]
    config, _, _ = load_config(agent=agent, overrides=overrides)
    curriculum = Curriculum(config.curriculum, 1000)
    with fake_gpu():
        made = Learner(config, FAKE_GPU, Processes())
        made.start(curriculum.stages(0, WORLDS, device=FAKE_GPU))
        made.collect()
        made.learn()  # the first one of each may make what stays
        with AllOnGpu():
            made.set_rates(epsilon=0.3, learning_rate_scale=0.5, beta=0.6)
            for _ in range(2):
                made.collect()
                made.learn()
            gathered = made.statistics.gather(Processes(), updates=2)
            records = [gathered.train(), *(record for _, record in gathered.by_stage())]
            reduced = [reduce(value) for record in records for value in record.values()]
            packed = torch.cat([entry.values for entry in reduced if entry.values is not None])
            made.statistics.clear()
        assert made.agent.uses_bfloat16
        assert all(p.device == FAKE_GPU for p in made.agent.parameters())
        assert packed.device == FAKE_GPU


def test_a_tensor_on_the_cpu_is_seen():
    with fake_gpu():
        there = torch.zeros(3, device=FAKE_GPU)
        with AllOnGpu(), pytest.raises(CpuTensorError, match="on cpu"):
            there + torch.zeros(())


def test_a_read_is_seen():
    with fake_gpu():
        there = torch.zeros(3, device=FAKE_GPU)
        with pytest.raises(DataDependentOutputException):
            bool(there.sum() > 0)
