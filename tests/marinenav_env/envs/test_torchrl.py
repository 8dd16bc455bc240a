"""The TorchRL face: specs, rollouts and collectors against cloned single steps, partial resets."""

import dataclasses
import functools
import logging

import pytest
import torch
import torchrl
from tensordict import TensorDictBase
from torchrl.collectors import Collector
from torchrl.envs import CatTensors, EnvCreator, ObservationNorm, TransformedEnv
from torchrl.envs.utils import check_env_specs
from torchrl.objectives.value import GAE

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper
from tests.marinenav_env.rollouts import CROWDED, SPARSE, eventful

WORLDS = 6
STEPS = 40
ALONE = Stage(robots=1, vortices=0, buoys=0, min_distance_m=9.5)


@pytest.fixture(autouse=True)
def quiet_torchrl():
    """TorchRL reports every successful check otherwise."""
    level = torchrl.logger.level
    torchrl.logger.setLevel(logging.WARNING)
    yield
    torchrl.logger.setLevel(level)


def make_env(device: str, worlds: int = WORLDS, **options) -> MarineNavEnv:
    """Worlds of two stages whose episodes are short."""
    options = {"config": eventful(11), "seed": 7, "stages": (CROWDED, SPARSE), **options}
    env = MarineNavEnv(worlds, device=device, **options)
    env.set_stage(torch.arange(worlds, device=device) % 2)
    return env


class ErraticPolicy:
    """Actions that look random but are a function of the observation, whoever asks how often."""

    def __init__(self, env: MarineNavEnv) -> None:
        self.env = env

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        ego = tensordict["robots", "self"].double()
        phase = (1e4 * ego).sin().sum(-1, keepdim=True) * torch.tensor([7.0, 11.0]).to(ego)
        if self.env.discrete:
            action = (phase[..., 0].abs() * 100.0).long() % 25
        else:
            action = (phase.sin() + 0.2).clamp(-1.0, 1.0).to(self.env.real_dtype)
        tensordict["robots", "action"] = action
        return tensordict


def single_steps(env: MarineNavEnv, steps: int) -> TensorDictBase:
    """What `steps` decisions give, [W, T], each of them cloned, done worlds reset by hand."""
    policy = ErraticPolicy(env)
    current, rows = env.reset(), []
    for _ in range(steps):
        row = env.step(policy(current.clone())).clone()
        rows.append(row)
        current = env.step_mdp(row)
        done = row["next", "done"]
        if done.any():
            current = env.reset(current.update({"_reset": done})).exclude("_reset")
    return torch.stack(rows, -1)


def assert_same(a: TensorDictBase, b: TensorDictBase) -> None:
    """Same keys, shapes and numbers.

    Not bits: TensorDict clones by adding 0, which turns -0 into 0.
    """
    keys = set(a.keys(include_nested=True, leaves_only=True))
    assert keys == set(b.keys(include_nested=True, leaves_only=True))
    for key in keys:
        assert torch.equal(a[key], b[key]), key


OPTIONS = {
    "continuous": {},
    "discrete": {"discrete": True},
    "full info": {"info_mode": "full"},
    "history": {"stack_k": 3},
    "float64": {"dtype": torch.float64},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_specs_hold_before_and_after_rollouts(options, device):
    env = make_env(device, **options)
    check_env_specs(env, seed=0)
    env.rollout(30, break_when_any_done=False)
    check_env_specs(env, seed=1)


def test_keys_and_shapes(device):
    env = make_env(device)
    rollout = env.rollout(3)
    shapes = {
        k if isinstance(k, str) else "/".join(k): tuple(rollout[k].shape[2:])
        for k in rollout.keys(include_nested=True, leaves_only=True)
    }
    world = dict.fromkeys(("done", "terminated", "truncated"), (1,))
    robots = {
        "robots/self": (5, 7),
        "robots/objects": (5, 5, 5),
        "robots/mask": (5, 5),
        "robots/alive": (5,),
        **{f"robots/{name}": (5, 1) for name in world},
    }
    step = {f"next/{k}": v for k, v in (world | robots).items()}
    extra = {"robots/action": (5, 2), "next/robots/reward": (5, 1)}
    assert shapes == world | robots | step | extra
    assert rollout.batch_size == (WORLDS, 3)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_rollout_gives_what_single_steps_give(options, device):
    env = make_env(device, **options)
    rollout = env.rollout(STEPS, ErraticPolicy(env), break_when_any_done=False)
    expected = single_steps(make_env(device, **options), STEPS)
    assert expected["next", "done"].sum() > WORLDS
    assert_same(rollout, expected)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_collector_gives_what_single_steps_give(options, device):
    env = make_env(device, **options)
    collector = Collector(
        env,
        ErraticPolicy(env),
        frames_per_batch=WORLDS * STEPS // 2,
        total_frames=WORLDS * STEPS,
        track_traj_ids=False,
        no_cuda_sync=True,
    )
    try:
        batches = [batch.clone().exclude("collector") for batch in collector]
    finally:
        collector.shutdown()
    expected = single_steps(make_env(device, **options), STEPS)
    assert_same(torch.cat(batches, -1), expected)


def test_training_path_gives_what_single_steps_give(device):
    """Both faces of the same simulator, and the true terminal observation before the reset."""
    steps = single_steps(make_env(device), STEPS)
    env = make_env(device)
    stepper = Stepper(env)
    stepper.reset()
    for t in range(STEPS):
        now = steps[:, t]
        assert torch.equal(stepper.now.obs.ego, now["robots", "self"])
        assert torch.equal(env.alive, now["robots", "alive"])
        out = stepper.step(now["robots", "action"].contiguous())
        after = now["next"]
        for name, mine in zip(("self", "objects", "mask"), out.obs, strict=True):
            assert torch.equal(mine, after["robots", name])
        assert torch.equal(out.reward, after["robots", "reward"].squeeze(-1))
        ended = now["robots", "alive"] & after["robots", "terminated"].squeeze(-1)
        assert torch.equal(out.terminated, ended)
        assert torch.equal(out.truncated, after["robots", "truncated"].squeeze(-1))
        assert torch.equal(out.done, after["done"].squeeze(-1))
        stepper.advance()


def test_terminal_observation_is_the_true_one(device):
    """At done, `next` shows the moved vessel; the root of the following step a new episode."""
    steps = single_steps(make_env(device), 12)
    done = steps["next", "done"][:, 10, 0]
    assert done.any()
    before, terminal = steps["robots", "self"][:, 10], steps["next", "robots", "self"][:, 10]
    fresh = steps["robots", "self"][:, 11]
    ran = done[:, None] & steps["robots", "alive"][:, 10]
    moved = (terminal[..., :2].norm(dim=-1) - before[..., :2].norm(dim=-1))[ran].abs()
    assert (moved < 4.0).all()
    assert (moved > 0.0).all()
    assert ((fresh[..., :2] - terminal[..., :2]).norm(dim=-1)[ran] > 4.0).any()
    assert (fresh[done][..., 5:] == 0).all(), "a new vessel's thrusters stand still"
    assert not steps["done"].any(), "no step starts from a finished world"
    assert torch.isfinite(terminal).all()


def test_ends_of_robots_and_worlds_are_apart(device):
    """A world is done if terminated or truncated, and so is a robot; one that ends stays so."""
    torch.manual_seed(0)  # of the actions
    env = MarineNavEnv(40, stages=(CROWDED, ALONE), config=eventful(16), device=device, seed=2)
    env.set_stage(torch.arange(40, device=device) % 2)
    rollout = env.rollout(80, break_when_any_done=False)
    after = rollout["next"]
    assert (after["done"] == (after["terminated"] | after["truncated"])).all()
    assert not (after["terminated"] & after["truncated"]).any()
    assert after["terminated"].any()
    assert after["truncated"].any()
    own = after["robots"]
    assert torch.equal(own["done"], own["terminated"] | own["truncated"])
    assert not (own["terminated"] & own["truncated"]).any()
    assert (own["done"] | ~after["done"].unsqueeze(-2)).all(), "its world's end ends a robot"
    acted, alive = rollout["robots", "alive"], own["alive"]
    assert torch.equal(own["done"].squeeze(-1), ~alive)
    assert own["terminated"].squeeze(-1)[~acted].all(), "what ended, or never was, stays ended"
    assert not (alive & ~acted).any()
    assert own["truncated"].any()
    terminated = own["terminated"].squeeze(-1) & acted
    everyone_ended = ~(acted & ~terminated).any(-1, keepdim=True)
    assert (after["terminated"] == everyone_ended).all()
    some = terminated.any(-1) & ~after["done"].squeeze(-1)
    assert some.any(), "a robot ends, its world runs on"


def test_partial_reset_touches_only_its_rows(device):
    env = make_env(device, stack_k=2)
    row = env.rollout(5, ErraticPolicy(env))[:, -1]
    current = env.step_mdp(row)
    before = current.clone()
    reset = torch.tensor([True, False, False, True, False, False], device=device)[:, None]
    current["_reset"] = reset
    after = env.reset(current)
    for key in (("robots", n) for n in ("self", "objects", "mask", "alive", "terminated")):
        kept = ~reset[:, 0]
        assert torch.equal(after[key][kept], before[key][kept]), key
    assert not torch.equal(after["robots", "self"][reset[:, 0]], before["robots", "self"][::3])
    # The others continue where they were.
    after = after.exclude("_reset")
    moved = env.step(ErraticPolicy(env)(after.clone()))["next", "robots", "self"]
    distances = [td[..., :2].norm(dim=-1) for td in (moved, before["robots", "self"])]
    both = (before["robots", "alive"] & ~reset)[..., :2]
    assert ((distances[0] - distances[1])[:, :2][both].abs() < 4.0).all()


def test_seed_decides_the_rollout(device):
    def rollout(seed: int) -> TensorDictBase:
        env = make_env(device, seed=0)
        env.set_seed(seed)
        return env.rollout(25, ErraticPolicy(env), break_when_any_done=False)

    first = rollout(5)
    assert_same(first, rollout(5))
    assert not torch.equal(first["robots", "self"], rollout(6)["robots", "self"])
    env = make_env(device, seed=0)
    env.rollout(17)
    env.set_seed(5)
    again = env.rollout(25, ErraticPolicy(env), break_when_any_done=False)
    assert_same(first, again)


def test_results_own_their_memory(device):
    """A step's tensors do not change when the environment continues."""
    env = make_env(device)
    policy = ErraticPolicy(env)
    reset = env.reset()
    kept_reset = reset.clone()
    step = env.step(policy(reset))
    kept = step.clone()
    env.rollout(20, policy, break_when_any_done=False)
    assert_same(kept, step)
    assert_same(kept_reset, reset.exclude(("robots", "action"), "next"))


def test_torchrl_makes_copies_of_it():
    """As `ParallelEnv` makes its workers of a function."""
    made = EnvCreator(functools.partial(MarineNavEnv, worlds=3, seed=5))()
    assert made.rollout(4).shape == (3, 4)
    state = made.state_dict()
    alive = state.pop("alive")
    with pytest.raises(ValueError, match="simulator state 'alive' is missing"):
        made.load_state_dict(state)
    made.load_state_dict(state, strict=False)
    assert torch.equal(made.alive, alive)


def test_a_lone_robots_info_is_a_copy(device):
    """Transposed fields of one robot are in order as they are, and were the state itself."""
    env = make_env(device, info_mode="full", stages=(ALONE,))
    before = env.reset()
    step = env.step(ErraticPolicy(env)(before))["next", "robots", "info"]
    kept = step.clone()
    env.rollout(5, ErraticPolicy(env), break_when_any_done=False)
    assert_same(step, kept)


def test_older_frames_are_what_was_shown_whatever_a_transform_made_of_it(device):
    scale = ObservationNorm(0.0, 10.0, in_keys=[("robots", "self")], standard_normal=True)
    own_ends = dataclasses.replace(eventful().episode, stop_on_end=True)
    options = {"stack_k": 3, "config": dataclasses.replace(eventful(), episode=own_ends)}
    env = make_env(device, **options)
    scaled = TransformedEnv(make_env(device, **options), scale)
    torch.manual_seed(0)
    plain = env.rollout(STEPS, break_when_any_done=False)
    torch.manual_seed(0)
    other = scaled.rollout(STEPS, break_when_any_done=False)
    done = other["next", "done"].squeeze(-1)
    assert (done.any(0) & ~done.all(0)).any(), "some worlds begin anew while others go on"
    before, after = (td["robots", "self"].unflatten(-1, (3, 7)) for td in (plain, plain["next"]))
    acted = plain["robots", "alive"]
    assert torch.equal(after[..., 1:, :][acted], before[..., :2, :][acted])
    for row, expected in ((other, plain), (other["next"], plain["next"])):
        shown, meant = (td["robots", "self"] for td in (row, expected))
        torch.testing.assert_close(shown * 10.0, meant, rtol=1e-5, atol=1e-4)
    joined = CatTensors([("robots", "self"), ("robots", "mask")], ("robots", "observation"))
    assert TransformedEnv(make_env(device, stack_k=2), joined).rollout(3).shape == (WORLDS, 3)


def test_a_restored_environment_goes_on_as_the_other(device):
    """With the seed that a caller set, and the frames that it had shown."""
    env, other = (make_env(device, stack_k=2) for _ in range(2))
    env.set_seed(11)
    policy = ErraticPolicy(env)
    start = env.step_mdp(env.rollout(9, policy, break_when_any_done=False)[:, -1])
    start = env.maybe_reset(start)
    other.rollout(3)
    state = env.state_dict()
    other.load_state_dict(state)
    rollouts = [
        e.rollout(STEPS, policy, break_when_any_done=False, auto_reset=False, tensordict=td)
        for e, td in ((env, start.clone()), (other, start.clone()))
    ]
    assert rollouts[0]["next", "done"].any()
    assert_same(*rollouts)
    older = {k: v for k, v in state.items() if not k.startswith(("seen", "was", "seed"))}
    other.load_state_dict(older)
    assert other.rollout(2).shape == (WORLDS, 2)
    with pytest.raises(ValueError, match="simulator state 'seed' is"):
        other.load_state_dict({**state, "seed": torch.tensor([1.0])})


def test_a_reset_takes_a_seed_and_nothing_unknown(device):
    env = make_env(device)
    first = env.reset(seed=3)
    assert not torch.equal(first["robots", "self"], env.reset(seed=4)["robots", "self"])
    assert_same(first, env.reset(seed=3))
    with pytest.raises(TypeError, match="unexpected keyword argument 'stage'"):
        env.reset(stage=1)


def test_an_action_of_the_other_kind_is_refused(device):
    for discrete in (False, True):
        env, other = (make_env(device, discrete=d) for d in (discrete, not discrete))
        start = env.reset()
        start["robots", "action"] = other.rand_action()["robots", "action"]
        with pytest.raises(ConfigError, match=f"or make it with discrete={not discrete}"):
            env.step(start)


def test_it_stays_on_its_device(device):
    env = make_env(device)
    assert env.to(env.device) is env
    with pytest.raises(ConfigError, match="make it with device='meta'"):
        env.to("meta")


def test_default_keys_of_value_estimators_are_a_robots_own(device):
    """A robot that its world's end has truncated bootstraps; one that has ended does not."""
    config = {"episode": {"max_steps": 60, "stop_on_end": True}}
    env = make_env(device, config=config, worlds=40)
    rollout = env.rollout(60, ErraticPolicy(env), break_when_any_done=False)
    end, own = rollout["next"], rollout["next", "robots"]
    cut = end["terminated"].unsqueeze(-2) & own["truncated"]
    assert cut.any()
    assert not (own["terminated"] & cut).any()
    rollout["robots", "value"] = rollout["next", "robots", "value"] = torch.ones_like(own["reward"])
    estimator = GAE(gamma=0.9, lmbda=0.0, value_network=None)
    keys = {name: ("robots", name) for name in ("value", "advantage", "value_target")}
    ends = {name: ("robots", name) for name in ("reward", "done", "terminated")}
    estimator.set_keys(**keys, **ends)
    advantage = estimator(rollout)["robots", "advantage"]
    bootstrapped = own["reward"] + 0.9 - 1.0
    torch.testing.assert_close(advantage[cut], bootstrapped[cut])
    over = own["terminated"] & rollout["robots", "alive"].unsqueeze(-1)
    torch.testing.assert_close(advantage[over], own["reward"][over] - 1.0)


def test_a_reset_of_single_robots_is_refused(device):
    env = make_env(device)
    some = env.reset()
    some["robots", "_reset"] = torch.zeros(WORLDS, 5, 1, dtype=torch.bool, device=device)
    with pytest.raises(ConfigError, match=r"worlds are reset, not single robots"):
        env.reset(some)
