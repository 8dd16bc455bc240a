"""The captured iteration, on a CPU: graphs are recorded operators, other processes are equals."""

import gc

import pytest
import torch

from tests.recorded_graphs import recorded_graphs
from tests.train_RL_agents.short_runs import assert_same
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS, CapturedStep
from train_RL_agents.device.distributed import Processes
from train_RL_agents.training.learner import Learner

SMALL = ["worlds=6", "updates.batch_size=32", "replay.capacity=3000", "env.episode.max_steps=15"]
SMALL += ["updates.warmup_transitions=0"]


class Twins(Processes):
    """Two processes that always have the same tensors."""

    def broadcast(self, tensors):
        """Leave the tensors alone."""

    def wait(self):
        pass

    def sum(self, tensor):
        tensor.mul_(2.0)


def trained(agent, processes, compiled):
    config, _, _ = load_config(
        agent=agent, overrides=[*SMALL, f"compile={str(compiled).lower()}", "seed=3"]
    )
    learner = Learner(config, torch.device("cpu"), processes)
    learner.start(torch.arange(6))
    for _ in range(2 * WARM_UP_CALLS + 6):
        learner.collect()
        learner.learn()
    return learner


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("processes", [Processes(), Twins(size=2)], ids=["alone", "two"])
def test_captured_steps_do_what_eager_ones_do(agent, processes):
    """To the bit; the update of several processes is two graphs, the transfer between them."""
    eager = trained(agent, processes, compiled=False)
    with recorded_graphs() as graphs:
        captured = trained(agent, processes, compiled=True)
    assert len(graphs) == 2 + processes.size  # two orders of buffers, and the update
    assert all(len(graph.calls) > 10 for graph in graphs)
    assert_same(captured.agent.training_state(), eager.agent.training_state())
    assert_same(captured.state_dict(with_replay=True), eager.state_dict(with_replay=True))


def test_graphs_of_a_device_share_one_pool():
    gc.collect()
    with recorded_graphs() as graphs:
        learner = trained("DQN", Twins(size=2), compiled=True)
        assert len({id(graph.pool()) for graph in graphs}) == 1
        first = graphs[0].pool()
        graphs.clear()
        del learner
        gc.collect()  # a learner and its steps refer to each other
        step = CapturedStep(lambda: torch.zeros(2).add_(1), torch.device("cpu"))
        for _ in range(WARM_UP_CALLS + 1):
            step()
        assert graphs[0].pool() is not first, "the pool of graphs that are gone"


def test_a_capture_that_fails_leaves_the_step_as_it_was():
    """So that the next call captures again, and no half of a function is replayed."""
    total, failures = torch.zeros(()), [MemoryError()]

    def add():
        total.add_(1)
        step.between_graphs(lambda: None)
        if step._capturing is not None and failures:
            raise failures.pop()
        total.add_(1)

    with recorded_graphs():
        step = CapturedStep(add, torch.device("cpu"))
        for _ in range(WARM_UP_CALLS):
            step()
        with pytest.raises(MemoryError):
            step()
        step()
    assert float(total) == 2 * (WARM_UP_CALLS + 1)
