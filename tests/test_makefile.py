"""The Makefile: what it was told is what it does, once, and a second run repeats nothing.

Python is played by a script that notes what it is asked to do.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOG = "log"

PRETENDER = f"""#!/bin/sh
[ -z "$PYTHONDONTWRITEBYTECODE" ] || echo "forgets bytecode" >>{LOG}
if [ "$1 $2" = "-m venv" ]; then
  rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python
  echo "venv by $(basename "$0")" >>{LOG}
elif [ "$1 $2 $3" = "-m pip show" ]; then
  [ -e .venv/torch ] || {{ echo "WARNING: not found" >&2; exit 1; }}
elif [ "$1 $2" = "-m pip" ]; then
  shift 2
  case "$*" in *install*torch==*) touch .venv/torch ;; esac
  echo "pip $*" >>{LOG}
elif [ "$1" = "-m" ]; then
  echo "$2" >>{LOG}
elif [ "$1" = "setup.py" ]; then
  mkdir -p marinenav_env && touch marinenav_env/_ops.so && echo "$1" >>{LOG}
fi
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """A checkout of the Makefile with two interpreters."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "marinenav_env").mkdir()
    for name in ("setup.py", "marinenav_env/build_record.py"):
        (tmp_path / name).touch()
    (tmp_path / "requirements.txt").write_text("torch==2.13.0\nnumpy==2.4.6\nsetuptools==84.2.1\n")
    for name in ("one", "two"):
        (tmp_path / name).write_text(PRETENDER)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run_make(folder: Path, *variables: str, target: str = ".venv/.dependencies") -> str:
    """Set up the environment; return what was printed."""
    command = ["make", target, *variables]
    result = run(command, folder)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    """Run make, which knows nothing of another make that runs these tests."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    environment.pop("TORCH_INDEX", None)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


def make(folder: Path, *variables: str, target: str = ".venv/.dependencies") -> list[str]:
    """Set up the environment; return what was done for it."""
    run_make(folder, *variables, target=target)
    log = folder / LOG
    done = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return done


def installs(done: list[str]) -> list[str]:
    """The lines that install or remove torch."""
    return [line for line in done if "torch" in line]


def test_bytecode_is_kept_where_the_environment_says_otherwise(folder, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    done = make(folder, "PYTHON=./one", target="lint")
    assert done[-1] == "mypy"
    assert "forgets bytecode" not in done


def test_a_second_run_repeats_nothing(folder):
    done = make(folder, "PYTHON=./one")
    assert done[0] == "venv by one"
    assert not any("--index-url" in line for line in done)
    assert make(folder, "PYTHON=./one") == []


def test_the_first_run_says_what_it_does_and_removes_nothing(folder):
    printed = run_make(folder, "PYTHON=./one")
    assert printed.index("1/3 environment\n") < printed.index("2/3 packages (some minutes)\n")
    assert "uninstall" not in printed + (folder / LOG).read_text()
    assert "WARNING" not in printed


def test_another_index_replaces_torch(folder):
    make(folder, "PYTHON=./one")
    uninstall, install = installs(make(folder, "PYTHON=./one", "TORCH_INDEX=https://index"))
    assert "uninstall" in uninstall
    assert "--index-url https://index torch==2.13.0" in install


def test_another_interpreter_makes_the_environment_anew(folder):
    make(folder, "PYTHON=./one")
    done = make(folder, "PYTHON=./two")
    assert done[0] == "venv by two"
    assert any("torch==2.13.0" in line for line in done)


def test_what_is_not_given_stays_as_it_was(folder):
    make(folder, "PYTHON=./one", "TORCH_INDEX=https://index")
    assert make(folder) == []
    (folder / "requirements.txt").write_text("torch==2.13.1\n")
    (install,) = installs(make(folder))
    assert "--index-url https://index torch==2.13.1" in install


def test_a_compiler_that_is_missing_is_told_before_anything_is_fetched(folder):
    command = ["make", "setup", "PYTHON=./one", "CXX=nowhere-g++"]
    result = run(command, folder)
    assert result.returncode == 2
    assert "nowhere-g++ not found: install g++" in result.stderr
    assert not (folder / LOG).exists()


def test_a_compiler_that_is_too_old_is_told_before_anything_is_fetched(folder):
    """g++ 8 calls it c++2a."""
    old = folder / "g++-8"
    old.write_text('#!/bin/sh\ncase "$*" in *std=c++20*) exit 1;; esac\n')
    old.chmod(0o755)
    result = run(["make", "setup", "PYTHON=./one", f"CXX={old}"], folder)
    assert result.returncode == 2
    assert f"{old} knows no C++20: install g++ 11 or later" in result.stderr
    assert not (folder / LOG).exists()


def test_the_simulator_is_compiled_once_the_build_has_what_it_needs(folder):
    """Beside the other packages, which lint needs."""
    done = make(folder, "PYTHON=./one", target="check")
    compiled = next(n for n, line in enumerate(done) if line == "setup.py")
    needed = [n for n, line in enumerate(done) if "torch==" in line or "setuptools==" in line]
    assert len(needed) == 2
    assert compiled > max(needed)
    rest = next(n for n, line in enumerate(done) if "--requirement" in line)
    assert max(needed) < rest < done.index("ruff") < done.index("mypy") < done.index("pytest")
    assert compiled < done.index("pytest")


def test_the_simulator_is_compiled_beside_the_packages(folder):
    """Each waits for the other here: one after the other they would never end."""
    meets = "while [ ! -e .venv/{other} ]; do sleep 0.05; done"
    text = PRETENDER.replace(
        "  shift 2\n",
        f"""  shift 2
  case "$*" in *--requirement*) touch .venv/pip; {meets.format(other="built")} ;; esac
""",
    ).replace(
        "  mkdir -p marinenav_env",
        f"  touch .venv/built; {meets.format(other='pip')}; mkdir -p marinenav_env",
    )
    (folder / "one").write_text(text)
    done = make(folder, "PYTHON=./one", target="setup")
    assert "setup.py" in done
    assert any("--requirement" in line for line in done)


def test_an_environment_keeps_its_torch_where_nothing_says_whence_it_is(folder):
    """As one does that an older Makefile made."""
    make(folder, "PYTHON=./one")
    (folder / ".venv" / ".torch").unlink()
    assert not any("uninstall" in line for line in make(folder, "PYTHON=./one"))
