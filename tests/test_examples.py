"""The trainings among `docs/examples` run, with budgets of seconds, and are short."""

import re

import pytest

from tests.conftest import ROOT, run_python

FOLDER = ROOT / "docs" / "examples"
TINY = {
    "sb3_ppo.py": ["--steps=512", "--worlds=4", "--episodes=2"],
    "torchrl_mappo.py": ["--iterations=2", "--worlds=8", "--decisions=8"],
    "cleanrl_dqn.py": ["--steps=1280"],
    "benchmarl_mappo.py": ["--iterations=2", "--worlds=8", "--decisions=16"],
}
LIBRARY = {"sb3_ppo.py": "stable_baselines3", "benchmarl_mappo.py": "benchmarl"}
SAYS = {
    "sb3_ppo.py": r"512 steps, [\d,]+ steps per CPU second.*\nsuccess [01]\.\d\d in 2 episodes",
    "torchrl_mappo.py": r"^1: [\d,]+ robot-steps per CPU second, success .*\n2: ",
    "cleanrl_dqn.py": r"1,280 steps, [\d,]+ steps per CPU second.*\nmean return .*: \d+",
    "benchmarl_mappo.py": r"128 decisions, [\d,]+ robot-steps per CPU second, success 0\.00\n",
}


@pytest.mark.parametrize("name", TINY)
def test_an_example_runs(name):
    if name in LIBRARY:
        pytest.importorskip(LIBRARY[name], reason="an extra: pip install '.[adapters]'")
    assert len((FOLDER / name).read_text().splitlines()) < 80
    said = run_python(ROOT, FOLDER / name, *TINY[name])
    assert re.search(SAYS[name], said, re.MULTILINE), said
