"""The learner without a replay: what it stores, how it is judged, drawn from and begun with."""

import re

import pytest
import torch

from marinenav_env.fields import ConfigError
from marinenav_env.kernel import memory
from tests.train_RL_agents.policy_samples import export_policy, save_policy
from tests.train_RL_agents.short_runs import SMALL, Silent
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import Processes
from train_RL_agents.policies.load import load_policy
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.training.rollout import Rollout
from train_RL_agents.training.run_state import make_learner

TURNS, WORLDS, ROBOTS = 40, 6, 5
GAMMA, TRACE = 0.9, 0.8


def learner(*overrides):
    settings = [*SMALL, f"algorithm.turns={TURNS}", *overrides]
    config, _, _ = load_config(agent="PPO", overrides=settings)
    made = make_learner(config, torch.device("cpu"), Processes())
    made.start(torch.arange(WORLDS))
    return made


def collected(made, rounds=1):
    for _ in range(rounds):
        for _ in range(made.rollout.turns):
            made.collect()
            done = made.learn(1)
    return done


def advantages(rollout, last):
    """Equation 16 of Schulman et al. 2016 for every robot by itself, in float64; not normalised."""
    result = torch.zeros(TURNS, WORLDS, ROBOTS, dtype=torch.float64)
    for world in range(WORLDS):
        for robot in range(ROBOTS):
            errors, ended = [], []
            for turn in range(TURNS):
                at = (turn, world, robot)
                value = rollout.value[at].item()
                after = rollout.value[turn + 1, world, robot] if turn + 1 < TURNS else last[at[1:]]
                if rollout.truncated[at]:
                    after = rollout.value[at]
                after = 0.0 if rollout.terminated[at] else after.item()
                errors.append(rollout.reward[at].item() + GAMMA * after - value)
                ended.append(bool(rollout.terminated[at] or rollout.truncated[at]))
            for turn in range(TURNS):
                if not rollout.acted[turn, world, robot]:
                    continue
                weight = 1.0
                for later in range(turn, TURNS):
                    result[turn, world, robot] += weight * errors[later]
                    weight *= GAMMA * TRACE
                    if ended[later]:
                        break
    return result


def test_advantages_are_those_of_the_equation():
    made = learner("env.episode.max_steps=12", "curriculum.stages=[[3,0,0,20],[5,0,8,20]]")
    for _ in range(TURNS):
        made.collect()
    rollout = made.rollout
    torch.manual_seed(1)
    rollout.value.normal_()
    last = torch.randn(WORLDS, ROBOTS)
    assert rollout.terminated.any()
    assert rollout.truncated.any()
    assert not rollout.acted.all()
    rollout.judge(last, GAMMA, TRACE)
    expected = advantages(rollout, last)
    torch.testing.assert_close(
        (rollout.target - rollout.value)[rollout.acted].double(),
        expected[rollout.acted],
        rtol=1e-4,
        atol=1e-4,
    )
    chosen = expected[rollout.acted]
    normal = (chosen - chosen.mean()) / chosen.std(correction=0)
    torch.testing.assert_close(
        rollout.advantage[rollout.acted].double(), normal, rtol=1e-3, atol=1e-3
    )


def test_robots_that_acted_are_drawn_alike_and_others_never():
    rollout = Rollout(4, [torch.zeros(3, 2, 7)], 2)
    rollout.acted.copy_(torch.rand(4, 3, 2) < 0.5)
    names = torch.arange(24.0).view(4, 3, 2)
    rollout.log_probability.copy_(names)
    rollout.judge(torch.zeros(3, 2), GAMMA, TRACE)
    drawn = rollout.sample(24_000).log_probability.long().bincount(minlength=24)
    share = 24_000 / rollout.acted.sum()
    assert ((drawn > 0) == rollout.acted.flatten()).all()
    assert ((drawn - share).abs()[rollout.acted.flatten()] < 6 * share.sqrt()).all()


def test_rounds_are_learned_from_once_and_the_first_leave_the_actor_alone():
    made = learner("algorithm.settling_rounds=2", "updates.batch_size=64")
    before = [p.detach().clone() for p in made.agent.policy.parameters()]
    made.agent.update(made.rollout.sample(4))  # as while it settles: the actor's gradient is 0
    for number in (1, 2, 3):
        for _ in range(TURNS):  # rounds without updates do not count
            made.collect()
            assert made.learn(0) == 0
        for turn in range(TURNS):
            made.collect()
            assert made.learn(2) == (2 * TURNS if turn == TURNS - 1 else 0)
        values = [p.detach() for p in made.agent.policy.parameters()]
        assert all(map(torch.equal, before, values)) is (number < 3)
        first = next(iter(made.agent.policy.parameters()))
        steps = made.agent.descent.optimizer.state[first]["step"]
        assert int(steps) == (2 * TURNS if number == 3 else 1 + 2 * TURNS * number)


def test_without_the_decisions_a_resumed_round_begins_anew():
    made, other = learner("updates.batch_size=64"), learner()
    collected(made)
    for _ in range(5):
        made.collect()
        made.learn(1)
    whole, small = (made.state_dict(with_replay=kept) for kept in (True, False))
    assert small["replay"] is None
    assert len(whole["replay"]["rollout"]["reward"]) == 5
    for state, stored in ((whole, 5), (small, 0)):
        other.load_state_dict(state)
        assert (other._stored, int(other.rollout.row)) == (stored, stored)
        assert other._rounds == 1


def test_what_is_stored_is_what_was_acted_on():
    made = learner()
    ego = []
    for _ in range(TURNS):
        ego.append(made.stepper.now.obs.ego.clone())
        made.collect()
    encoder = made.agent.policy.encoder
    again = encoder.own_motion(torch.stack(ego))
    torch.testing.assert_close(made.rollout.inputs[0], again)
    mean = made.agent.policy.act(encoder.layers(tuple(made.rollout.inputs)))
    apart = ((made.rollout.drawn - mean) / made.agent.log_deviation.exp()).detach()
    torch.testing.assert_close(apart.std(), torch.tensor(1.0), rtol=0.1, atol=0.0)
    density = -0.5 * apart.square().sum(-1) - made.agent.log_deviation.sum().detach()
    torch.testing.assert_close(made.rollout.log_probability, density, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["AC-IQN", "DDPG", "PPO", "SAC"])
def test_it_begins_with_the_actor_of_another_policy(name, tmp_path):
    path = save_policy(tmp_path / "policy.pt", name, algorithm={"encoder": "relative_motion"})
    made = learner(f"algorithm.start={path}")
    start, _ = load_policy(path)
    observation = made.stepper.now.obs
    expected = start.act(observation, mean=True)
    assert torch.equal(made.agent.act(observation), expected)
    assert torch.equal(made.agent.explore(observation), expected)


def test_magnitudes_may_be_listed_or_left_to_the_observation(tmp_path):
    own = list(learner().agent.spec.observation.ego.magnitudes)
    listed = {"encoder": "published", "ego_magnitude": own}
    path = save_policy(tmp_path / "policy.pt", "DDPG", algorithm=listed)
    start, _ = load_policy(path)
    made = learner("algorithm.encoder=published", f"algorithm.start={path}")
    seen = made.stepper.now.obs
    assert torch.equal(made.agent.act(seen), start.act(seen))
    own[0] *= 2
    path = save_policy(tmp_path / "other.pt", "DDPG", algorithm=listed)
    with pytest.raises(
        ConfigError, match=r"give its settings, algorithm.ego_magnitude="
    ) as refusal:
        learner("algorithm.encoder=published", f"algorithm.start={path}")
    told = re.search(r"algorithm\.ego_magnitude=\S+(?=,)", str(refusal.value))
    learner("algorithm.encoder=published", f"algorithm.start={path}", told[0])


def test_what_it_cannot_begin_with_is_refused(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "AC-IQN")  # on raw features
    with pytest.raises(ConfigError, match=r"algorithm.start is .*settings, algorithm.encoder=publ"):
        learner(f"algorithm.start={path}")
    relative = {"encoder": "relative_motion"}
    path = save_policy(tmp_path / "policy.pt", "AC-IQN", algorithm=relative, stack_k=2)
    with pytest.raises(ConfigError, match=r"algorithm.start is .*give its settings, stack_k=2, or"):
        learner(f"algorithm.start={path}")
    path = save_policy(tmp_path / "policy.pt", "DQN", algorithm=relative)
    with pytest.raises(ConfigError, match=r"algorithm.start is .*DQN of which PPO cannot begin"):
        learner(f"algorithm.start={path}")
    path = export_policy(save_policy(tmp_path / "ddpg.pt", "DDPG", algorithm=relative))
    with pytest.raises(ConfigError, match=r"algorithm.start is .*and no export"):
        learner(f"algorithm.start={path}")
    with pytest.raises(ConfigError, match=r"algorithm.start is 'baseline:orca'.*no one network"):
        learner("algorithm.start=baseline:orca")
    with pytest.raises(ConfigError, match=r"total_steps is .*4 rounds of 40 decisions of 6 worlds"):
        learner("total_steps=900")
    with pytest.raises(ConfigError, match=r"total_steps is .*10 rounds .*warmup_transitions"):
        learner("total_steps=2000", "updates.warmup_transitions=4800")
    config, _, _ = load_config(
        agent="PPO", overrides=[*SMALL, "algorithm.turns=40", "total_steps=1000"]
    )
    with pytest.raises(ConfigError, match=r"total_steps is .*decisions of 12 worlds"):
        make_learner(config, torch.device("cpu"), Silent(size=2))
    with pytest.raises(CheckpointError, match="nowhere"):
        learner("algorithm.start=nowhere")


def test_decisions_that_do_not_fit_the_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1e5)
    with pytest.raises(ConfigError, match=r"algorithm.turns is 40.*lower it or worlds"):
        learner()


def test_a_state_of_other_turns_is_refused():
    made = learner()
    for _ in range(5):
        made.collect()
        made.learn(1)
    state = made.state_dict(with_replay=True)
    with pytest.raises(ValueError, match="rollout"):
        learner("algorithm.turns=3").load_state_dict(state)
