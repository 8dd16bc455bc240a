"""DAgger: whom it asks, what its replay keeps, that it learns it, and which teachers it refuses."""

from unittest import mock

import pytest
import torch

from marinenav_env import MarineNavEnv
from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper
from marinenav_env.vessels import VESSELS
from tests.train_RL_agents.policy_samples import export_policy, save_policy
from tests.train_RL_agents.short_runs import SMALL
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import Processes
from train_RL_agents.policies.load import load_policy
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.training.imitation import continuous_actions, teacher_of
from train_RL_agents.training.run_state import make_learner

CPU = torch.device("cpu")
WORLDS, ROBOTS = 6, 5
PLAIN = ["algorithm.guarded=false", "algorithm.autocast=false"]
"""No shield, and exploring has the precision of acting on a processor with bfloat16 too."""
OF_ITSELF = ["exploration.epsilon_start=0", "exploration.epsilon_end=0"]


def settings(*overrides):
    return load_config(agent="DAgger", overrides=[*SMALL, *overrides])[0]


def learner(*overrides):
    made = make_learner(settings(*overrides), CPU, Processes())
    made.start(torch.full((WORLDS,), 5))  # five robots, four buoys
    return made


def kept_and_taken(made):
    """Collect once; return the observation, the actions kept and those taken."""
    with (
        mock.patch.object(made.replay, "store", wraps=made.replay.store) as store,
        mock.patch.object(made.stepper, "step", wraps=made.stepper.step) as step,
    ):
        observation = Observation(*(part.clone() for part in made.stepper.now.obs))
        made.collect()
    return observation, store.call_args.args[1], step.call_args.args[0]


def test_the_actor_leads_and_the_teacher_is_kept():
    made = learner(*PLAIN, *OF_ITSELF, "exploration.action_noise=0")
    seen, kept, taken = kept_and_taken(made)
    teacher, _ = load_policy("pretrained/sac_rules")
    torch.testing.assert_close(kept, teacher.act(seen, mean=True))
    torch.testing.assert_close(taken, made.agent.act(seen))
    assert (kept - taken).abs().max() > 0.1


def test_the_teacher_leads_for_the_share_that_epsilon_says():
    made = learner(*PLAIN, "exploration.epsilon_start=1", "exploration.action_noise=0")
    _, kept, taken = kept_and_taken(made)
    assert torch.equal(kept, taken)
    made.set_rates(0.5, 1.0, 1.0)
    same = 0
    for _ in range(20):
        _, kept, taken = kept_and_taken(made)
        same += (kept == taken).all(-1).float().mean().item()
    assert 0.4 < same / 20 < 0.6


def test_a_guarded_teacher_teaches_what_its_shield_does():
    guarded = settings("algorithm.shield={margin_m: 3.0, horizon_s: 4.0}")
    made = make_learner(guarded, CPU, Processes())
    made.start(torch.full((WORLDS,), 5))
    bare = teacher_of(settings(*PLAIN), CPU)
    changed = 0
    for _ in range(20):
        seen, kept, _ = kept_and_taken(made)
        changed += int((kept != bare(seen)).any())
    assert changed > 0


def test_it_learns_what_the_teacher_does():
    rates = ["algorithm.learning_rate=2e-3", "updates.batch_size=256", "algorithm.autocast=false"]
    made = learner(*PLAIN, *OF_ITSELF, *rates, "algorithm.acting_average=0")

    def difference():
        batch = made.replay.sample(500)
        return (made.agent.act(batch.obs) - batch.action).abs().mean().item()

    torch.manual_seed(0)
    for _ in range(60):
        made.collect()
    before = difference()
    made.learn(300)
    assert difference() < 0.4 * before


@pytest.mark.parametrize("name", ["wamv16", "otter"])
def test_a_discrete_action_as_a_continuous_one_moves_a_vessel_alike(name):
    config = EnvConfig(vessel=VESSELS[name])
    rates = continuous_actions(config.vessel)
    after = []
    for discrete in (True, False):
        env = MarineNavEnv(5, config=config, discrete=discrete, seed=3, dtype=torch.float64)
        stepper = Stepper(env, restarts=False)
        stepper.reset()
        index = torch.arange(5 * env.robots).view(5, env.robots) % len(rates)
        after.append(stepper.step(index if discrete else rates[index].double()).obs.ego)
    torch.testing.assert_close(*after, rtol=1e-6, atol=1e-6)


def test_a_discrete_teacher_gives_its_indices_as_rates():
    teacher = teacher_of(settings("algorithm.teacher=pretrained/dqn", *PLAIN), CPU)
    made = learner(*PLAIN)
    seen = made.stepper.now.obs
    index = load_policy("pretrained/dqn")[0].act(seen)
    assert torch.equal(teacher(seen), continuous_actions(made.config.env.vessel)[index])


def test_a_baseline_can_teach():
    made = learner("algorithm.teacher=baseline:orca", "algorithm.guarded=false")
    seen, kept, _ = kept_and_taken(made)
    assert torch.equal(kept, load_policy("baseline:orca")[0].act(seen))
    assert kept.std() > 0.1


def test_teachers_that_cannot_teach_here_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="teacher is '': name the policy to imitate"):
        teacher_of(settings("algorithm.teacher=''"), CPU)
    with pytest.raises(CheckpointError, match="teacher is 'nobody': no checkpoint"):
        teacher_of(settings("algorithm.teacher=nobody"), CPU)
    with pytest.raises(ConfigError, match="of task 'icra2024' with stack_k 8: give one of task"):
        teacher_of(settings("algorithm.teacher=pretrained/icra2024_dqn"), CPU)
    path = save_policy(tmp_path / "two.pt", "DQN", stack_k=2)
    with pytest.raises(ConfigError, match="stack_k 2: give one of task 'marine' with stack_k 1"):
        teacher_of(settings(f"algorithm.teacher={path}"), CPU)
    discrete = ("algorithm.teacher=pretrained/dqn", *PLAIN)
    teacher_of(settings(*discrete, "env.vessel=otter"), CPU)  # whose rates are in proportion
    with pytest.raises(ConfigError, match="other shares of the largest rate"):
        teacher_of(settings(*discrete, "env.vessel.max_thrust_rate=2000"), CPU)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["stack_k=2"],
            "of task 'marine' with stack_k 1: give one of task 'marine' with stack_k 2",
        ),
        (["task=marine_sectors"], "of task 'marine' .* give one of task 'marine_sectors'"),
        (["env.vessel={x_u: 0, x_uu: 0}"], "baseline is 'orca': env.vessel has no top speed"),
    ],
)
def test_a_baseline_teaches_damped_vessels_and_its_own_observation(overrides, message):
    orca = ["algorithm.teacher=baseline:orca", "algorithm.guarded=false"]
    with pytest.raises(ConfigError, match=message):
        teacher_of(settings(*orca, *overrides), CPU)


@pytest.mark.parametrize("guarded", ["true", "false"])
def test_a_teacher_of_choices_that_are_no_thrust_rates_is_refused(guarded):
    config, _, _ = load_config(
        task="icra2024",
        agent="DAgger",
        overrides=[f"algorithm.guarded={guarded}", "algorithm.teacher=pretrained/icra2024_dqn"],
    )
    with pytest.raises(ConfigError, match="give a teacher with continuous actions"):
        teacher_of(config, CPU)


def test_a_teacher_that_no_shield_can_guard_is_named_with_the_remedy(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "AC-IQN")
    file = export_policy(path, "torchscript", "--shield", "horizon_s=0.5", "hold_s=0.5")
    with pytest.raises(ConfigError, match=r"which cannot be guarded .*inside.*guarded=false"):
        teacher_of(settings(f"algorithm.teacher={file}"), CPU)


def test_a_guarded_teacher_may_observe_several_decisions():
    config = settings("algorithm.teacher=pretrained/randomised", "stack_k=2")
    assert teacher_of(config, CPU).shield.frames == 2


def test_a_guarded_teacher_knows_the_buoys_of_the_scenarios(tmp_path):
    def guarded(radius):
        path = tmp_path / f"{radius}.yaml"
        path.write_text(
            "name: large\nvessels: [{start: [0, 0], goal: [30, 0]}]\n"
            f"buoys: [{{position: [15, 0], radius: {radius}}}]\n"
        )
        return teacher_of(settings("scenarios.share=0.2", f"scenarios.set={path}"), CPU)

    assert guarded(1.5).shield.buoy_radius == 1.5
    with pytest.raises(ConfigError, match=r"cannot be guarded \(scenario 'large': .*guarded=false"):
        guarded(5.0)
