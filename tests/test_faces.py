"""What both packages offer at their top."""

import pytest

import marinenav_env
import train_RL_agents
from marinenav_env import MarineNavEnv, make
from marinenav_env.fields import ConfigError
from tests.conftest import ROOT, run_python
from tests.preloaded import ALONE
from train_RL_agents import load_policy
from train_RL_agents.policies import load


def test_environments_are_made_by_name():
    for env in (make(worlds=2), make("marine", worlds=2, discrete=True)):
        assert isinstance(env, MarineNavEnv)
        assert env.worlds == 2
    assert env.discrete


def test_unknown_environments_are_told_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown environment 'marin'.*'marine'"):
        make("marin")


def test_faces_are_the_ones_inside():
    assert load_policy is load.load_policy
    assert train_RL_agents.__version__ == marinenav_env.__version__
    for package in (marinenav_env, train_RL_agents):
        assert all(hasattr(package, name) for name in package.__all__)
        with pytest.raises(AttributeError, match="no attribute 'warp'"):
            package.warp  # noqa: B018 - the access is what is tested


def test_packages_alone_are_cheap_to_import():
    program = "import sys, marinenav_env.fields, train_RL_agents; sys.exit('torch' in sys.modules)"
    run_python(ROOT, "-c", program, **{ALONE: "1"})
