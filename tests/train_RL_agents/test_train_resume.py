"""A run goes on by --resume, longer too, and no other run takes its folder."""

import dataclasses
import shutil

import pytest

from tests.train_RL_agents.short_runs import TINY, assert_same
from train_RL_agents import train
from train_RL_agents.commands import training
from train_RL_agents.run import checkpoint
from train_RL_agents.training.trainer import TorchRLTrainer

pytestmark = pytest.mark.usefixtures("short_evaluations")


def test_a_folder_with_checkpoints_of_another_run_is_refused(tmp_path, finished, refused):
    shutil.copytree(finished / "checkpoints", tmp_path / "checkpoints")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    refused(train.main, ["--output", str(tmp_path), *TINY], "which holds a run")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "option",
    [["--seed", "9"], ["--output", "other"], ["--agent", "DQN"], ["worlds=5", "threads=1"]],
)
def test_resume_refuses_options_by_name(refused, option):
    refused(train.parse, ["--resume", "run", *option], f"--resume takes no {option[0]}:", status=2)


def test_resume_takes_the_threads_of_the_machine(tmp_path, finished, monkeypatch, refused):
    folder, taken = shutil.copytree(finished, tmp_path / "run"), []
    (folder / "evaluation.json").unlink()
    monkeypatch.setattr(training, "train_one", lambda config, *_: taken.append(config))
    assert train.main(["--resume", str(folder), "threads=1"]) == 0
    assert (taken[0].threads, taken[0].worlds) == (1, 6)
    refused(train.main, ["--resume", str(folder), "threads=few"], "threads is 'few'")


@pytest.mark.parametrize("sweep", [False, True])
def test_a_finished_run_is_trained_longer(tmp_path, sweep, capsys):
    """On request only, and once."""
    start = ["--output", str(tmp_path), *TINY, *(["--seed", "4", "5"] if sweep else [])]
    folders = [tmp_path / "seed_4", tmp_path / "seed_5"] if sweep else [tmp_path]

    def trained():
        files = [(folder / "metrics.jsonl", folder / "evaluation.json") for folder in folders]
        steps = {checkpoint.load(checkpoint.newest(folder))["step"] for folder in folders}
        return steps, [file.stat().st_mtime_ns for pair in files for file in pair]

    assert train.main(start) == 0
    steps, before = trained()
    assert steps == {12}
    assert train.main(["--resume", str(tmp_path)]) == 0
    assert trained() == ({12}, before)
    for _ in range(2):
        assert train.main(["--resume", str(tmp_path), "total_steps=36"]) == 0
    steps, after = trained()
    assert steps == {36}
    assert len({*before, *after}) == 4 * len(folders)
    assert train.main(["--resume", str(tmp_path), "total_steps=36"]) == 0
    assert trained() == ({36}, after)
    assert capsys.readouterr().out.count("complete already") == (0 if sweep else 3)


def test_a_sweep_keeps_what_it_was_given_last(tmp_path, monkeypatch):
    """Also where it is interrupted before a seed has saved at the new one."""
    assert train.main(["--output", str(tmp_path), *TINY, "--seed", "4", "5"]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(TorchRLTrainer, "train", lambda *_: 1 / 0)
        given = ["total_steps=36", "threads=1", "checkpoint.with_replay=false"]
        with pytest.raises(ZeroDivisionError):
            train.main(["--resume", str(tmp_path), *given])
    assert train.main(["--resume", str(tmp_path)]) == 0
    states = [checkpoint.load(checkpoint.newest(tmp_path / f"seed_{n}")) for n in (4, 5)]
    assert [state["step"] for state in states] == [36, 36]
    assert [state["learner"]["replay"] for state in states] == [None, None]


def test_a_run_is_as_long_as_was_asked_last(tmp_path, monkeypatch):
    """Also where it is killed before its next checkpoint; its file keeps the replay till then."""
    assert train.main(["--output", str(tmp_path), *TINY, "curriculum.mode=sequential"]) == 0
    before = checkpoint.load(checkpoint.newest(tmp_path))
    for given, asked in (
        (["total_steps=36", "checkpoint.with_replay=false"], (36, False)),
        (["checkpoint.with_replay=true"], (36, True)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(TorchRLTrainer, "train", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                train.main(["--resume", str(tmp_path), *given])
        killed = checkpoint.load(checkpoint.newest(tmp_path))
        assert_same(before, killed, ignored=("config.",))
        assert killed["learner"]["replay"] is not None
        settings = killed["config"]
        assert (settings["total_steps"], settings["checkpoint"]["with_replay"]) == asked
    assert train.main(["--resume", str(tmp_path)]) == 0
    assert checkpoint.load(checkpoint.newest(tmp_path))["step"] == 36


def test_a_longer_run_takes_the_stages_of_its_length(tmp_path, monkeypatch):
    start = ["--output", str(tmp_path), *TINY, "curriculum.mode=sequential"]
    assert train.main(start) == 0
    found = []
    monkeypatch.setattr(
        TorchRLTrainer,
        "train",
        lambda run, *_: found.append(run.learner.env.state.world_field("next_stage")[:6].unique()),
    )
    assert train.main(["--resume", str(tmp_path), "total_steps=72"]) == 0
    assert [stages.tolist() for stages in found] == [[1]]


def test_a_run_under_way_is_not_made_shorter_than_it_is(tmp_path, finished, capsys, refused):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "evaluation.json").unlink()
    command = ["--resume", str(folder), "total_steps=300"]
    refused(train.main, command, "total_steps is 300: the run has 600 already; give more")


def test_no_seed_of_a_sweep_is_made_shorter_than_it_is(tmp_path, refused):
    assert train.main(["--output", str(tmp_path), *TINY, "--seed", "4", "5"]) == 0
    before = (tmp_path / "sweep.json").read_bytes()
    command = ["--resume", str(tmp_path), "total_steps=6"]
    refused(train.main, command, "total_steps is 6: seed 4 has 12 already; give more")
    assert (tmp_path / "sweep.json").read_bytes() == before


def test_a_seed_of_a_sweep_has_the_settings_of_the_sweep(tmp_path, refused):
    assert train.main(["--output", str(tmp_path / "sweep"), *TINY, "--seed", "4", "5"]) == 0
    seed = tmp_path / "sweep" / "seed_4"
    for given in ("total_steps=36", "checkpoint.with_replay=false"):
        told = f"{given}: {seed} is a seed of a sweep", f"--resume {tmp_path / 'sweep'}, or move"
        refused(train.main, ["--resume", str(seed), given, "threads=1"], *told)
        refused(train.main, ["--resume", str(seed / "checkpoints"), given], *told)
    assert train.main(["--resume", str(seed), "threads=1"]) == 0
    (tmp_path / "sweep" / "sweep.json").write_text("{")  # nobody has its settings any more
    assert train.main(["--resume", str(seed.with_name("seed_5")), "total_steps=24"]) == 0
    alone = seed.rename(tmp_path / "alone")
    assert train.main(["--resume", str(alone), "total_steps=36"]) == 0
    assert checkpoint.load(checkpoint.newest(alone))["step"] == 36


def test_resuming_without_the_replay_keeps_the_other_settings_of_checkpoints(
    tmp_path, finished, monkeypatch
):
    folder, taken = shutil.copytree(finished, tmp_path / "run"), []
    (folder / "evaluation.json").unlink()
    monkeypatch.setattr(training, "train_one", lambda config, *_: taken.append(config.checkpoint))
    for more in ([], ["checkpoint.with_replay=false"]):
        assert train.main(["--resume", str(folder), *more]) == 0
    before, after = taken
    assert before.with_replay
    assert before != type(before)(with_replay=True)
    assert after == dataclasses.replace(before, with_replay=False)


@pytest.mark.parametrize("begun", [False, True])
def test_no_compile_turns_the_graphs_off(tmp_path, finished, monkeypatch, begun):
    folder, taken = shutil.copytree(finished, tmp_path / "run"), []
    (folder / "evaluation.json").unlink()
    monkeypatch.setattr(training, "train_one", lambda config, *_: taken.append(config.compile))
    where = ["--resume", str(folder)] if begun else ["--output", str(tmp_path / "new")]
    assert train.main(where) == 0
    assert train.main([*where, "--no-compile"]) == 0
    assert taken == [True, False]
