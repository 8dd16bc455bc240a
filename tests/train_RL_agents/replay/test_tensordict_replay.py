"""The TensorDict face of the replay against TorchRL's own buffer, transform and loss."""

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import Categorical, LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.postprocs import MultiStep
from torchrl.modules import QValueActor
from torchrl.objectives import DQNLoss

from marinenav_env.envs.observation import Observation
from train_RL_agents.replay.buffer import DeviceReplay, ReplayConfig, TransitionLayout
from train_RL_agents.replay.tensordict_replay import TensorDictReplay

WORLDS, GAMMA = 4, 0.9


def make_buffer(rows: int, robots: int, **config: object) -> TensorDictReplay:
    layout = TransitionLayout(WORLDS, robots, Observation((3,), (2, 5), (2,)), (), torch.int64)
    options = {"capacity": rows * WORLDS * robots, "gamma": GAMMA} | config
    generator = torch.Generator().manual_seed(0)
    replay = DeviceReplay(ReplayConfig(**options), layout, "cpu", generator)
    return TensorDictReplay(replay, batch_size=32)


def make_rollout(steps: int, robots: int, seed: int = 0) -> TensorDict:
    """Return a rollout [W, T] in the keys of the environment; each number of it is unique."""
    generator = torch.Generator().manual_seed(seed)
    grid = (WORLDS, steps, robots)

    def observation() -> dict[str, torch.Tensor]:
        return {
            "self": torch.rand(*grid, 3, generator=generator),
            "objects": torch.rand(*grid, 2, 5, generator=generator),
            "mask": torch.rand(*grid, 2, generator=generator),
        }

    active = torch.rand(grid, generator=generator) < 0.8
    terminated = active & (torch.rand(grid, generator=generator) < 0.1)
    limit = torch.rand(WORLDS, steps, 1, generator=generator) < 0.1
    done = limit | (terminated | ~active).all(2, keepdim=True)
    robots_now = observation() | {
        "alive": active,
        "action": torch.randint(0, 25, grid, generator=generator),
    }
    robots_next = observation() | {
        "robot_terminated": terminated,
        "reward": torch.rand(grid, generator=generator),
    }
    following = {"robots": robots_next, "done": done, "terminated": done & ~limit}
    return TensorDict({"robots": robots_now, "next": following}, batch_size=[WORLDS, steps])


def test_what_is_extended_is_what_is_sampled() -> None:
    buffer, data = make_buffer(20, 3), make_rollout(12, 3)
    index = buffer.extend(data)
    assert index.shape == (WORLDS, 12, 3)
    assert len(buffer) == int(data["robots", "alive"].sum())
    sample = buffer.sample()
    assert sample.batch_size == (32,)
    for row in sample:
        world, step, robot = (index == row["index"]).nonzero()[0].tolist()
        source = data[world, step]
        assert source["robots", "alive"][robot]
        for key in ("self", "objects", "mask", "action"):
            assert torch.equal(row["robots", key], source["robots", key][robot])
        for key in ("self", "objects", "mask"):
            assert torch.equal(row["next", "robots", key], source["next", "robots", key][robot])
        terminated = bool(source["next", "robots", "robot_terminated"][robot])
        done = bool(source["next", "done"])
        following = row["next", "robots"]
        assert following["reward"].item() == source["next", "robots", "reward"][robot].item()
        assert following["terminated"].item() == terminated
        assert following["truncated"].item() == (done and not terminated)
        assert following["done"].item() == (done or terminated)
        assert row["steps_to_next_obs"].item() == 1


def test_rollouts_and_single_steps_are_stored_alike() -> None:
    data = make_rollout(12, 3)
    whole, stepwise = make_buffer(8, 3), make_buffer(8, 3)  # wraps around
    index = whole.extend(data)
    for t in range(12):
        assert torch.equal(stepwise.extend(data[:, t]), index[:, t])
    states = whole.state_dict(), stepwise.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("n_step", [1, 3])
def test_windows_agree_with_torchrl_multistep(n_step: int) -> None:
    steps = 40
    data = make_rollout(steps, 1)
    data["robots", "alive"].fill_(True)  # one robot that always acts: what MultiStep handles
    terminated = data["next", "robots", "robot_terminated"]
    done = data["next", "done"].clone() | terminated
    data["next", "done"] = done
    flat = TensorDict(
        {
            "observation": data["robots", "self"].squeeze(2),
            "action": data["robots", "action"],
            "next": {
                "observation": data["next", "robots", "self"].squeeze(2),
                "reward": data["next", "robots", "reward"],
                "done": done,
                "terminated": terminated.clone(),
            },
        },
        batch_size=[WORLDS, steps],
    )
    expected = MultiStep(GAMMA, n_step)(flat)
    buffer = make_buffer(steps, 1, n_step=n_step)
    index = buffer.extend(data).flatten()
    batch = buffer.replay.gather(index, torch.ones_like(index))
    window = buffer.replay.window(index)
    torch.testing.assert_close(window.reward, expected["next", "reward"].flatten())
    assert torch.equal(window.steps, expected["steps_to_next_obs"].flatten())
    assert torch.equal(batch.next_obs.ego, expected["next", "observation"].flatten(0, 1))
    # MultiStep leaves "terminated" as in the first decision; what counts is the window's last.
    last = torch.arange(steps) + expected["steps_to_next_obs"] - 1
    terminated = terminated.squeeze(2).gather(1, last).flatten()
    torch.testing.assert_close(batch.discount, GAMMA**window.steps * ~terminated)


def test_torchrl_loss_reads_the_sample_with_the_right_discount() -> None:
    buffer = make_buffer(20, 3, n_step=3, prioritized=True)
    buffer.extend(make_rollout(15, 3))
    torch.manual_seed(0)
    stored = buffer.replay.sample(500).index
    buffer.replay.update_priorities(stored, torch.rand(500))
    value = nn.Linear(3, 25)
    actor = QValueActor(
        TensorDictModule(value, in_keys=[("robots", "self")], out_keys=["action_value"]),
        spec=Categorical(25),
        action_space="categorical",
        in_keys=[("robots", "self")],
    )
    loss = DQNLoss(
        actor, action_space="categorical", delay_value=False, loss_function="l2", reduction="sum"
    )
    loss.set_keys(
        action=("robots", "action"),
        reward=("robots", "reward"),
        done=("robots", "done"),
        terminated=("robots", "terminated"),
    )
    loss.make_value_estimator(gamma=GAMMA)
    sample = buffer.sample(64)
    got = loss(sample)["loss"]

    index = sample["index"]
    batch = buffer.replay.gather(index, buffer.replay.tree.weights[index])
    chosen = value(batch.obs.ego).gather(1, batch.action.unsqueeze(1)).squeeze(1)
    target = batch.reward + batch.discount * value(batch.next_obs.ego).max(1).values
    expected = (batch.weight * (chosen - target.detach()) ** 2).sum()
    torch.testing.assert_close(got, expected)

    buffer.update_tensordict_priority(sample)  # the loss wrote its "td_error", a square, there
    weights = buffer.replay.tree.weights
    error = ((chosen - target) ** 2).detach()
    torch.testing.assert_close(
        weights[index].double() / weights[index[0]],
        (error / error[0]).double() ** buffer.replay.config.alpha,
        rtol=1e-3,
        atol=0,
    )


def test_the_same_calls_run_on_a_torchrl_buffer() -> None:
    data = make_rollout(12, 3)
    torchrl_buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(1000), batch_size=32)
    for buffer in (make_buffer(20, 3), torchrl_buffer):
        buffer.extend(data if buffer is not torchrl_buffer else data.flatten())
        sample = buffer.sample()
        for key in ("self", "objects", "mask", "action"):
            assert ("robots", key) in sample.keys(include_nested=True)
        sample["td_error"] = torch.ones(32)
        buffer.update_tensordict_priority(sample)
        buffer.load_state_dict(buffer.state_dict())
        assert len(buffer) > 0


def test_a_missing_batch_size_is_refused() -> None:
    buffer = TensorDictReplay(make_buffer(20, 3).replay)
    buffer.extend(make_rollout(2, 3))
    with pytest.raises(ValueError, match="batch_size is not set"):
        buffer.sample()
    assert buffer.sample(3).batch_size == (3,)
