"""The programs among `docs/examples` run, with budgets of seconds, and are short."""

import re
import sys
from types import ModuleType
from typing import Any

import pytest
from torchrl.envs import Compose, TransformedEnv

from tests.conftest import ROOT, load_file, run_python

FOLDER = ROOT / "docs" / "examples"
TINY = {
    "sb3_ppo.py": ["--steps=512", "--worlds=4", "--episodes=2"],
    "torchrl_mappo.py": ["--iterations=2", "--worlds=8", "--decisions=8"],
    "cleanrl_dqn.py": ["--steps=1280"],
    "own_controller.py": ["--robots=2", "--episodes=10"],
    "benchmarl_mappo.py": ["--iterations=2", "--worlds=8", "--decisions=16"],
}
LIBRARY = {
    "sb3_ppo.py": ("stable_baselines3", "an extra: pip install '.[adapters]'"),
    "benchmarl_mappo.py": (
        "benchmarl",
        "it needs torchrl<0.12, so an environment of its own: docs/other_libraries.md",
    ),
}
SAYS = {
    "sb3_ppo.py": r"512 steps, [\d,]+ steps per CPU second.*\nsuccess [01]\.\d\d in 2 episodes",
    "torchrl_mappo.py": r"^1: [\d,]+ robot-steps per CPU second, \d+ of \d+ episodes .*\n2: ",
    "cleanrl_dqn.py": r"1,280 steps, [\d,]+ steps per CPU second.*\nmean return .*: \d+",
    "own_controller.py": r"2 robots, 0 buoys: 0\.\d\d and [01]\.\d\d, difference -?0\.\d\d \[",
    "benchmarl_mappo.py": r"128 decisions, [\d,]+ robot-steps per CPU second, success 0\.00\n",
}


@pytest.mark.parametrize("name", TINY)
def test_an_example_runs(name, tmp_path):
    if name in LIBRARY:
        library, reason = LIBRARY[name]
        pytest.importorskip(library, reason=reason)
    assert len((FOLDER / name).read_text().splitlines()) < 80
    drawn = [f"--output={tmp_path / 'drawn.png'}"] if name == "own_controller.py" else []
    said = run_python(ROOT, FOLDER / name, *TINY[name], *drawn)
    assert re.search(SAYS[name], said, re.MULTILINE), said


def test_benchmarl_gets_what_it_asks_of_a_task(monkeypatch):
    """Its questions (1.5.2), as its own classes put them; the library itself needs torchrl<0.12."""
    for module, names in {
        "algorithms": ["MappoConfig"],
        "environments.common": ["TaskClass"],
        "experiment": ["Callback", "Experiment", "ExperimentConfig"],
        "models.mlp": ["MlpConfig"],
    }.items():
        stub: Any = ModuleType(f"benchmarl.{module}")
        for name in names:
            setattr(stub, name, type(name, (), {}))
        monkeypatch.setitem(sys.modules, stub.__name__, stub)
    task = load_file(FOLDER / "benchmarl_mappo.py").Vessels()
    assert task.supports_continuous_actions()
    assert task.supports_discrete_actions()
    for continuous, actions in ((True, (3, 2)), (False, (3,))):
        made = task.get_env_fun(4, continuous, 7, "cpu")()
        env = TransformedEnv(made, Compose(*task.get_env_transforms(made)))
        rollout, (group,) = env.rollout(3), task.group_map(env)
        seen, done = (group, "observation"), (group, "action")
        assert rollout[seen].shape[2:] == task.observation_spec(env)[seen].shape == (3, 37)
        assert rollout[done].shape[2:] == task.action_spec(env)[done].shape == actions
        assert task.max_steps(env) == 300
        assert not task.has_render(env)
        assert task.info_spec(env) is task.state_spec(env) is task.action_mask_spec(env) is None
    assert task.env_name() == "marinenav"
