"""`run.json` holds what brings back the source that a run was trained with."""

import os
import re
import subprocess

import pytest

from train_RL_agents.run import source


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one file, which the record takes for the project's."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.setattr(source, "ROOT", folder)
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "somebody")
        monkeypatch.setenv(f"{name}_EMAIL", "somebody@example.org")
    (folder / "old.py").write_text("a = 1\nb = 2\n")
    (folder / "picture.png").write_bytes(bytes(range(256)))
    git(folder, "init", "--quiet")
    git(folder, "config", "diff.noprefix", "true")
    git(folder, "add", "old.py", "picture.png")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def git(folder, *arguments, **options):
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def test_an_unchanged_tree_has_an_empty_diff(repository):
    assert source.source_diff() == ""
    assert source.source_commit() == git(repository, "rev-parse", "HEAD").strip()


def test_a_tree_of_another_user_has_its_commit_too(repository, monkeypatch):
    """As a shared installation by an administrator, of which git is wary."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    refused = subprocess.run(["git", "-C", str(repository), "status"], capture_output=True)
    assert refused.returncode != 0
    version = re.findall(r"\d+", subprocess.check_output(["git", "--version"], text=True))[:2]
    if tuple(map(int, version)) < (2, 38):
        pytest.skip("this git takes no safe.directory from the command line")
    assert len(source.source_commit() or "") == 40
    assert source.source_diff() == ""


def test_a_wheel_knows_the_commit_it_was_built_from(tmp_path, monkeypatch):
    monkeypatch.delenv(source.COMMIT_VARIABLE, raising=False)
    monkeypatch.setattr(source, "PACKAGE", tmp_path)
    (tmp_path / source.BUILD_RECORD).write_text('{"commit": "1234abcd-dirty"}')
    monkeypatch.setattr(source, "INSTALLED", True)
    assert source.source_commit() == "1234abcd-dirty"
    (tmp_path / source.BUILD_RECORD).unlink()
    assert source.source_commit() is None


def test_the_diff_brings_back_changed_and_new_sources(repository, tmp_path):
    (repository / "old.py").write_text("a = 1\nb = 3\n")
    (repository / "picture.png").write_bytes(bytes(range(255, -1, -1)))
    (repository / "agents").mkdir()
    (repository / "agents" / "new.py").write_text("c = 4\n")
    (repository / "results.bin").write_bytes(b"\0" * 10)
    before = git(repository, "status", "--porcelain")
    diff = source.source_diff()
    assert git(repository, "status", "--porcelain") == before

    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(repository), str(other))
    git(other, "apply", "-", input=diff)
    assert (other / "old.py").read_text() == "a = 1\nb = 3\n"
    assert (other / "agents" / "new.py").read_text() == "c = 4\n"
    assert (other / "picture.png").read_bytes() == bytes(range(255, -1, -1))
    assert not (other / "results.bin").exists()


def test_bytes_that_are_no_text_do_no_harm(repository):
    (repository / "old.py").write_bytes(b"a = 1  # \xe9\n")
    assert "+a = 1" in source.source_diff()


def test_outside_a_repository_the_environment_may_name_the_commit(tmp_path, monkeypatch):
    monkeypatch.delenv(source.COMMIT_VARIABLE, raising=False)
    monkeypatch.setattr(source, "ROOT", tmp_path)
    assert source.source_diff() is None
    assert source.source_commit() is None
    monkeypatch.setenv(source.COMMIT_VARIABLE, "1234abcd")
    assert source.source_commit() == "1234abcd"
