"""Programs answer an unknown option with the nearest one."""

import pytest

from scripts import episode, replay_episode, robustness
from scripts.bench import main as bench
from train_RL_agents import evaluate, export, train


@pytest.mark.parametrize(
    ("program", "arguments", "nearest"),
    [
        (train.main, ["--sede", "3"], "--seed"),
        (train.main, ["--outptu=runs/x"], "--output"),
        (evaluate.main, ["--checkpoint", "x", "--episode-count", "3"], "--episodes"),
        (export.main, ["--checkpoint", "x", "--format", "onnx", "--outptu", "y"], "--output"),
        (bench.main, ["--quikc"], "--quick"),
        (episode.main, ["plot", "file.json", "--outptu", "x"], "--output"),
        (replay_episode.main, ["file.json", "--dytpe", "float32"], "--dtype"),
        (robustness.main, ["--checkpoint", "x", "--json", "y", "--epsiodes", "3"], "--episodes"),
    ],
)
def test_an_unknown_option_is_answered_with_the_nearest(program, arguments, nearest, refused):
    unknown = next(a for a in reversed(arguments) if a.startswith("--")).partition("=")[0]
    message = refused(program, arguments, status=2).splitlines()[-1]
    assert f"unrecognized arguments: {unknown}" in message
    assert f"nearest to {unknown} is {nearest}" in message
