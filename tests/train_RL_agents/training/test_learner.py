"""The device's half of a run: no host read in an iteration, and books that can be checked."""

import pytest
import torch

from tests.host_reads import HostReadError, no_host_reads
from tests.train_RL_agents.short_runs import SMALL, Silent, Twins, every_decision, packed_log
from train_RL_agents.agents.quantiles import draw_taus
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schedules import Curriculum
from train_RL_agents.config.worlds import CurriculumConfig
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS, CapturedStep
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.episodes import evaluation_config
from train_RL_agents.metrics import accumulators
from train_RL_agents.metrics.reductions import reduce
from train_RL_agents.training.run_state import make_learner


def learner(device="cpu", agent="AC-IQN", *overrides, processes=None):
    settings = [*SMALL, *every_decision(agent), "compile=false", *overrides]
    config, _, _ = load_config(agent=agent, overrides=settings)
    made = make_learner(config, torch.device(device), processes or Processes())
    made.start(torch.arange(6, device=device))
    return made


@pytest.mark.parametrize("agent", AGENTS)
def test_an_iteration_and_its_log_read_nothing_on_the_host(device, agent):
    made = learner(device, agent)
    curriculum = Curriculum(made.config.curriculum, 1000)
    for _ in range(20):
        made.collect()
    made.learn()
    with no_host_reads():
        for step in range(3):
            made.set_rates(epsilon=0.3, learning_rate_scale=0.5, beta=0.6)
            made.set_stages(curriculum.stages(step, 6, device=device))
            made.collect()
            made.learn()
        packed = packed_log(made, updates=4)
    assert torch.isfinite(packed).all()
    with pytest.raises(HostReadError), no_host_reads():
        packed.tolist()


@pytest.mark.parametrize(
    ("encoder", "lists"), [("published", (20, 20)), ("relative_motion", (5, 5))]
)
def test_a_replay_keeps_what_the_networks_read(encoder, lists):
    overrides = [*SMALL, "stack_k=4", f"algorithm.encoder={encoder}"]
    config, _, _ = load_config(task="icra2024", agent="DQN", overrides=overrides)
    made = make_learner(config, torch.device("cpu"), Processes())
    made.start(torch.arange(6))
    made.collect()
    assert made.replay.layout.observation == ((16,), (lists[0], 3), (lists[1], 4))
    obs = made.replay.sample(8).obs
    assert [part.shape[1:] for part in obs] == [*made.replay.layout.observation]
    assert made.agent.update(made.replay.sample(8))["critic_loss"].isfinite()


def test_statistics_agree_with_what_was_stored():
    made = learner("cpu", "AC-IQN", "env.episode.max_steps=15")
    actions, finished, returns = [], 0, []
    for _ in range(40):
        made.collect()
        following = made.stepper.now
        row = (made.replay.position - 1) % made.replay.rows
        actions.append(made.replay._ring["action"][row][0][following.acted])
        done = following.done
        finished += int(done.sum())
        returns += made.env.outcome["mean_return"][done].tolist()
    gathered = made.statistics.gather(Processes(), updates=0)
    record = gathered.train()
    action = torch.cat(actions)
    assert record["episodes"] == finished > 6
    assert gathered.robot_steps == gathered.stored == len(action)
    for axis in (0, 1):
        counts = record[f"action_{axis}"].counts
        expected = torch.histc(action[:, axis], 20, -1.0, 1.0)
        assert torch.equal(counts, expected.double())
    assert float(record["episode_return"].total) == pytest.approx(sum(returns), rel=1e-4)
    expected = torch.histc(torch.tensor(returns), 80, -100.0, 60.0)
    assert torch.equal(record["return_distribution"].counts, expected.double())
    stages = [float(stage["episodes"]) for _, stage in gathered.by_stage()]
    assert sum(stages) == finished


@pytest.mark.parametrize("worlds", [6, 1024, 1500, 4096, 65536])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.25])
def test_the_observed_worlds_are_all_kinds_of_worlds(worlds, share):
    observed = accumulators.observed_worlds(worlds)
    assert len(observed.unique()) == len(observed) == min(worlds, 1024)
    assert observed[-1] > 0.98 * worlds - 2
    if worlds < 1024:
        return
    stages = Curriculum(CurriculumConfig(), 1000, share).stages(0, worlds)[observed]
    counts = stages.bincount(minlength=7)
    expected = torch.tensor([(1.0 - share) / 6] * 6 + [share]) * 1024
    assert ((counts - expected).abs() < 50).all()


def test_actions_of_late_worlds_are_counted(monkeypatch):
    monkeypatch.setattr(accumulators, "OBSERVED_WORLDS", 2)
    made = learner("cpu", "DQN")
    actions = torch.arange(6).unsqueeze(1).expand(-1, made.env.robots).contiguous()
    step = made.stepper.now
    step.acted.fill_(True)
    made.statistics.add_decision(actions, step, step.acted)
    counts = made.statistics.gather(Processes(), updates=0).train()["action"].counts
    assert counts.nonzero().flatten().tolist() == accumulators.observed_worlds(6).tolist()


def test_processes_share_one_spread_of_exploration():
    overrides = ["exploration.spread=3", "exploration.epsilon_start=0.5"]

    def epsilon(worlds, rank, size):
        config, _, _ = load_config(agent="DQN", overrides=[*SMALL, *overrides, f"worlds={worlds}"])
        made = make_learner(config, torch.device("cpu"), Silent(rank=rank, size=size))
        return made.policy.epsilon

    parts = torch.cat([epsilon(6, rank, 2) for rank in (0, 1)])
    torch.testing.assert_close(parts, epsilon(12, 0, 1))


def test_n_step_windows_end_with_an_episode_that_a_collision_stopped():
    """Robots still under way when another collides are cut off with it, and bootstrap."""
    stop = ["env.episode.stop_on_collision=true", "env.episode.max_steps=300"]
    close = ["curriculum.stages=[[5,0,8,20]]", "curriculum.mode=sequential"]
    made = learner("cpu", "AC-IQN", *stop, *close, "algorithm.n_step=4")
    replay, cut = made.replay, 0
    for _ in range(80):
        made.collect()
        following = made.stepper.now
        row = int(replay.position - 1) % replay.rows
        acted, terminated, truncated = replay._ring["flags"][row].unbind(-1)
        over = acted & following.done.unsqueeze(1)
        assert torch.equal(over, (terminated | truncated) & following.done.unsqueeze(1))
        assert not (terminated & truncated).any()
        cut += int((truncated & following.world_terminated.unsqueeze(1)).sum())
        left = (truncated & following.world_terminated.unsqueeze(1)).flatten().nonzero()[:, 0]
        slots = replay.layout.slots_per_row
        cut_off = row * slots + left
        assert torch.equal(replay.window(cut_off).last, cut_off)
    assert cut > 0
    last = replay._ring["flags"].flatten(0, 2)[:, 2].nonzero()[:, 0]
    before = last[last >= slots] - slots  # one decision earlier; the ring is not full yet
    assert (replay.window(before).last <= before + slots).all()


def test_metrics_of_updates_are_means():
    made = learner()
    values = [
        {"loss": torch.tensor(1.0), "priority": torch.ones(4)},
        {"loss": torch.tensor(4.0), "priority": torch.ones(4)},
    ]
    for metrics in values:
        made.statistics.add_update(metrics)
    record = made.statistics.gather(Processes(), updates=2).train()
    entry = reduce(record["loss"])
    assert entry.decode(entry.values.tolist()) == 2.5
    assert "priority" not in record


def test_hulls_are_larger_while_collecting_only():
    larger = ("curriculum.hull_margin=0.5", "curriculum.fringe=1.5")
    collecting = learner("cpu", "AC-IQN", *larger)
    true = collecting.config.env.vessel.radius
    assert collecting.env.config.vessel.radius == true + 0.5
    assert collecting.env.config.reward.fringe == 1.5
    assert collecting.agent.spec.observation.own_radius == true
    evaluated = evaluation_config(collecting.config.env)
    assert (evaluated.vessel.radius, evaluated.reward.fringe) == (true, 0.0)


def test_stages_take_effect_at_the_next_reset():
    made = learner()
    made.set_stages(torch.full((6,), 3))
    assert made.env.stage_of_worlds().tolist() == [0, 1, 2, 3, 4, 5]
    for _ in range(15):
        made.collect()
    assert made.env.stage_of_worlds().tolist() == [3] * 6


def draws_of(draw, device):
    """Return what each call of a captured draw gives; all but the first few are replays."""
    out = torch.zeros_like(draw())
    step = CapturedStep(lambda: out.copy_(draw()), torch.device(device))
    draws = []
    for _ in range(WARM_UP_CALLS + 4):
        step()
        draws.append(tuple(out.flatten().tolist()))
    assert step.captures == (device == "cuda")
    return draws


def all_differ(draws):
    return len(set(draws)) == len(draws)


@pytest.mark.parametrize(
    ("agent", "epsilon"),
    [*((agent, 0.5) for agent in REPLAY_AGENTS), ("SAC", 0.0), ("Rainbow", 0.0)],
)
def test_exploring_draws_new_numbers_at_every_replay(device, agent, epsilon):
    """At the same observation, so that only the draws can differ."""
    made = learner(device, agent)
    made.set_rates(epsilon=epsilon, learning_rate_scale=1.0, beta=0.5)
    seen = made.stepper.now.obs
    assert all_differ(draws_of(lambda: made.policy.explore(seen), device))


@pytest.mark.parametrize(("agent", "noise"), [("AC-IQN", 0.1), ("IQN", 0.0)])
def test_noise_of_a_preset_is_on_continuous_actions_alone(agent, noise):
    assert learner("cpu", agent, "exploration.action_noise=0.1").policy.action_noise == noise


def test_drawing_draws_new_numbers_at_every_replay(device):
    made = learner(device, "PPO")
    inputs = made.agent.policy.encoder.inputs(tuple(made.stepper.now.obs))
    assert all_differ(draws_of(lambda: made.agent.draw(inputs)[0], device))


@pytest.mark.parametrize("prioritized", ["true", "false"])
def test_sampling_draws_new_numbers_at_every_replay(device, prioritized):
    made = learner(device, "AC-IQN", f"algorithm.prioritized={prioritized}")
    for _ in range(20):
        made.collect()
    assert all_differ(draws_of(lambda: made.replay.sample(32).index, device))


@pytest.mark.parametrize("shared", [True, False])
def test_fractions_are_new_numbers_at_every_replay(device, shared):
    place = torch.device(device)
    assert all_differ(draws_of(lambda: draw_taus(4, 8, place, shared=shared), device))


def captured_steps(made):
    """Yield the captured steps of a learner; how many it has depends on the algorithm."""
    for value in vars(made).values():
        for step in value if isinstance(value, list | tuple) else [value]:
            if isinstance(step, CapturedStep):
                yield step


@pytest.mark.skipif(not torch.cuda.is_available(), reason="test_captured.py has the CPU")
@pytest.mark.parametrize(
    ("settings", "processes"),
    [
        *((agent, Processes()) for agent in AGENTS),
        ("DDPG stack_k=2 exploration.action_noise=0.2", Processes()),
        ("DQN stack_k=2", Processes()),
        ("AC-IQN", Twins(size=2)),
        ("PPO", Twins(size=2)),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.size} processes",
)
def test_captured_steps_on_cuda_do_what_eager_ones_do(settings, processes):
    """From the same seed; both orders of the two step buffers are captured and replayed.

    Rates that change between replays take effect. The update of several processes is two graphs,
    the transfer between them.
    """
    agent, *overrides = settings.split()
    learners = {}
    for compiled in (False, True):
        how = f"compile={str(compiled).lower()}"
        made = learner("cuda", agent, *overrides, how, processes=processes)
        before = [parameter.clone() for parameter in made.agent.policy_network.parameters()]
        rounds = round(1 / made.config.algorithm.stored_share)
        for iteration in range(rounds * (2 * WARM_UP_CALLS + 6)):
            if iteration == rounds * (2 * WARM_UP_CALLS + 2):  # all is captured by now
                epsilon = made.config.exploration.epsilon_start
                made.set_rates(epsilon=epsilon, learning_rate_scale=0.3, beta=1.0)
            made.collect()
            made.learn()
        called = [step for step in captured_steps(made) if step._calls]
        assert len(called) >= 3  # two orders of buffers, and the update
        assert all(bool(step._parts) == compiled for step in called)
        split = [step for step in called if len(step._parts) == 3]  # a graph, the transfer, a graph
        assert len(split) == (compiled and processes.size > 1)
        after = list(made.agent.policy_network.parameters())
        assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
        learners[compiled] = made
    eager, captured = learners[False], learners[True]
    if AGENTS[agent].learns_from != "rounds":
        assert torch.equal(captured.replay.position, eager.replay.position)
    torch.testing.assert_close(
        captured.env.state.robot, eager.env.state.robot, rtol=1e-3, atol=1e-2
    )
    for name, value in eager.agent.state_dict().items():
        torch.testing.assert_close(
            captured.agent.state_dict()[name], value, rtol=1e-2, atol=1e-4, msg=name
        )
