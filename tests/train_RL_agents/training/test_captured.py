"""The captured iteration, on a CPU: graphs are recorded operators, other processes are equals."""

import functools
import gc

import pytest
import torch

from marinenav_env.stepper import Stepper
from tests.recorded_graphs import recorded_graphs
from tests.train_RL_agents.short_runs import SMALL, Twins, assert_same, every_decision
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schedules import Curriculum
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS, CapturedStep
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.training import replay_learner
from train_RL_agents.training.run_state import make_learner


def fresh(agent, processes=None, *overrides, compiled=False):
    settings = [*SMALL, *every_decision(agent), "env.episode.max_steps=3", "seed=3", *overrides]
    settings += [f"compile={str(compiled).lower()}"]
    config, _, _ = load_config(agent=agent, overrides=settings)
    learner = make_learner(config, torch.device("cpu"), processes or Processes())
    for group in learner.agent.descent.optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"])  # as on a GPU
    learner.start(torch.arange(6))
    return learner


RATES = {"epsilon": 0.9, "learning_rate_scale": 1.0, "beta": 0.4}
OTHERS = {"epsilon": 0.5, "learning_rate_scale": 0.3, "beta": 1.0}
ALL = (*RATES, "stages")


def change(learner, names):
    """Set what the schedules give to something else."""
    learner.set_rates(**{name: (OTHERS if name in names else RATES)[name] for name in RATES})
    if "stages" in names:
        learner.set_stages(torch.arange(6).flip(0))


def trained(agent, processes, *overrides, compiled, updates=1, changed=()):
    learner = fresh(agent, processes, *overrides, compiled=compiled)
    learner.set_rates(**RATES)
    every = round(1.0 / learner.config.algorithm.stored_share)
    for iteration in range((2 * WARM_UP_CALLS + 6) * every):
        if iteration == (2 * WARM_UP_CALLS + 2) * every:  # all is captured by now
            change(learner, changed)
        learner.collect()
        learner.learn(updates)
    return learner


@pytest.mark.parametrize(
    ("settings", "processes"),
    [
        *((agent, Processes()) for agent in AGENTS),
        *((agent, Twins(size=2)) for agent in AGENTS),
        ("DDPG stack_k=2 exploration.action_noise=0.2", Processes()),
        ("DQN stack_k=2", Processes()),
        ("DQN traffic.share=0.5", Processes()),
        ("DPI traffic.share=0.5", Twins(size=2)),
        ("PPO traffic.share=0.5 traffic.steer=orca", Processes()),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.size} processes",
)
def test_captured_steps_do_what_eager_ones_do(settings, processes):
    """To the bit, and whatever changes between replays.

    The update of several processes is two graphs, the transfer between them.
    """
    agent, *overrides = settings.split()
    eager = trained(agent, processes, *overrides, compiled=False, changed=ALL)
    with recorded_graphs() as graphs:
        captured = trained(agent, processes, *overrides, compiled=True, changed=ALL)
    # In two orders of buffers: what was collected, and decisions that are not looked ahead at.
    others = 2 if AGENTS[agent].learns_from in ("rounds", "lookahead") else 0
    assert len(graphs) == 2 + processes.size + others  # two orders of buffers, and the update
    assert all(len(graph.calls) > 10 for graph in graphs)
    assert_same(captured.agent.training_state(), eager.agent.training_state())
    assert_same(captured.state_dict(with_replay=True), eager.state_dict(with_replay=True))


@pytest.mark.parametrize("name", ALL)
def test_what_changes_between_replays_makes_another_run(name):
    """So that the comparison above sees what a graph has frozen."""
    run = functools.partial(trained, "DQN", Processes(), "algorithm.prioritized=true")
    kept, changed = run(compiled=False), run(compiled=False, changed=(name,))
    weights = (made.agent.state_dict().values() for made in (kept, changed))
    assert any(not torch.equal(*pair) for pair in zip(*weights, strict=True))


OPERATORS = {"AC-IQN": 570, "IQN": 380, "DQN": 285, "Rainbow": 750, "DDPG": 445, "SAC": 730}
OPERATORS |= {"PPO": 320, "DAgger": 1120, "DPI": 930}
"""Most operators of an update, its backward passes and optimizers included, in float32; of DAgger
and DPI those of a decision are more, since a shield or rollouts look ahead."""


@pytest.mark.parametrize("agent", OPERATORS)
def test_an_update_keeps_to_its_operators(agent):
    """`test_fake_gpu.py` has launches and memory, which a backward pass there lacks."""
    with recorded_graphs() as graphs:
        trained(agent, Processes(), "algorithm.autocast=false", compiled=True)
    most = max(len(graph.calls) for graph in graphs)
    assert 0.9 * OPERATORS[agent] < most <= OPERATORS[agent]


def test_several_updates_are_one_graph_and_do_what_single_ones_do():
    most = replay_learner.UPDATES_IN_A_GRAPH
    eager = trained("DQN", Processes(), compiled=False, updates=most + 2)
    with recorded_graphs() as graphs:
        captured = trained("DQN", Processes(), compiled=True, updates=most + 2)
    assert len(graphs) == 2 + 2  # two orders of buffers, most updates and the two beside them
    (eight,) = (graph for graph in graphs if len(graph.calls) == max(len(g.calls) for g in graphs))
    (two,) = (graph for graph in graphs if len(graph.calls) == len(eight.calls) * 2 // most)
    assert two is not eight
    assert_same(captured.agent.training_state(), eager.agent.training_state())
    assert_same(captured.state_dict(with_replay=True), eager.state_dict(with_replay=True))
    singly = fresh("DQN")
    singly.set_rates(**RATES)
    for _ in range(2 * WARM_UP_CALLS + 6):
        singly.collect()
        for _ in range(most + 2):
            singly.learn()
    assert_same(singly.agent.training_state(), eager.agent.training_state())


def test_rates_are_written_only_when_they_change(monkeypatch):
    made, written = fresh("DQN"), []
    for owner, name in (
        (made.policy, "set_epsilon"),
        (made.agent, "set_learning_rate_scale"),
        (made.replay, "set_beta"),
    ):
        monkeypatch.setattr(owner, name, lambda rate, name=name: written.append((name, rate)))
    made.set_rates(epsilon=0.3, learning_rate_scale=1.0, beta=0.6)
    assert written == [("set_epsilon", 0.3), ("set_learning_rate_scale", 1.0), ("set_beta", 0.6)]
    written.clear()
    made.set_rates(epsilon=0.3, learning_rate_scale=1.0, beta=0.6)
    assert not written
    made.set_rates(epsilon=0.2, learning_rate_scale=1.0, beta=0.6)
    assert written == [("set_epsilon", 0.2)]
    written.clear()
    made.load_state_dict(fresh("DQN").state_dict(with_replay=True))  # brings a beta of its own
    made.set_rates(epsilon=0.2, learning_rate_scale=1.0, beta=0.6)
    assert len(written) == 3


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


def tensors_of(thing, name="learner", seen=None):
    """Yield name and tensor of everything that an object leads to within this project."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        yield name, thing
        if thing.grad is not None:
            yield f"{name}.grad", thing.grad
        return
    if isinstance(thing, dict):
        parts = thing.items()
    elif isinstance(thing, (list, tuple)):
        parts = enumerate(thing)
    elif type(thing).__module__.startswith(("train_RL_agents", "marinenav_env", "torch")):
        slots = [s for kind in type(thing).__mro__ for s in getattr(kind, "__slots__", ())]
        named = {slot: getattr(thing, slot) for slot in slots if hasattr(thing, slot)}
        parts = {**named, **getattr(thing, "__dict__", {})}.items()
    else:
        return
    for key, part in parts:
        label = id(key) if isinstance(key, torch.Tensor) else key  # of an optimizer's state
        yield from tensors_of(part, f"{name}.{label}", seen)


@pytest.mark.parametrize("agent", AGENTS)
def test_every_tensor_stays_where_the_graphs_look_for_it(agent):
    """What a graph has recorded is read and written by address."""
    made = trained(agent, Twins(size=2), compiled=False)
    before = {name: tensor.data_ptr() for name, tensor in tensors_of(made)}
    assert len(before) > 60
    curriculum = Curriculum(made.config.curriculum, 1000)
    evaluation = Evaluation.of_agent(made.agent, made.config, (1, 0, 0, 0, 0, 0), seed=0)
    evaluated = Stepper(evaluation.env, restarts=False)
    evaluated.reset()
    for step in (100, 900):
        made.set_rates(epsilon=0.3, learning_rate_scale=0.5, beta=0.6)
        made.set_stages(curriculum.stages(step, 6))
        made.collect()
        made.collect()
        made.learn()
        made.statistics.gather(Processes(), updates=1)
        made.statistics.clear()
        for _ in range(5):  # an evaluation under way
            evaluated.step(made.agent.act(evaluated.now.obs))
            evaluated.advance()
    states = [made.state_dict(with_replay=True), fresh(agent).state_dict(with_replay=True)]
    for state in states:  # the second one is of a run without an update
        made.load_state_dict(state)
        made.agent.load_training_state(made.agent.training_state())
    after = {name: tensor.data_ptr() for name, tensor in tensors_of(made)}
    moved = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    assert not moved


@pytest.mark.parametrize("autocast", ["false", "true"])
@pytest.mark.parametrize("agent", AGENTS)
def test_gradients_lie_in_memory_as_their_parameters(agent, autocast):
    """Adam's fused kernel on a GPU refuses others; the one on a CPU takes them."""
    made = trained(agent, Processes(), f"algorithm.autocast={autocast}", compiled=False)
    given = []
    made.agent.gradient_sync = given.extend
    made.learn()
    parameters = [p for group in made.agent.descent.optimizer.param_groups for p in group["params"]]
    assert [g.stride() for g in given] == [p.stride() for p in parameters]
