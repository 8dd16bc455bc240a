"""Forks of the process with the libraries: they run and end as a new Python does."""

import os
import signal
import subprocess
import sys

import pytest

from tests.preloaded import ADDRESS, ALONE, GPU

pytestmark = pytest.mark.skipif(GPU.exists(), reason="no forks where a GPU is")

SAYS = """
import os, sys
loaded = "torch" in sys.modules
own = [name for name in sys.modules if name.split(".")[0] in ("marinenav_env", "train_RL_agents")]
print(loaded, own, __name__, sys.argv, os.getcwd(), os.environ.get("TOLD"), sys.path[:2], sep="|")
print(sys.stdin.read(), os.getpid(), file=sys.stderr)
sys.exit(7)
"""


def kinds(tmp_path, text):
    """Return the three ways to name a program, and the first entry of the path that each has."""
    (tmp_path / "program.py").write_text(text)
    return {
        "text": (["-c", text], ["-c"], ""),
        "module": (["-m", "program"], [str(tmp_path / "program.py")], str(tmp_path)),
        "file": (["program.py"], ["program.py"], str(tmp_path)),
    }


@pytest.mark.parametrize("kind", ["text", "module", "file"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_program_finds_what_a_new_python_finds(tmp_path, kind, alone):
    arguments, named, first = kinds(tmp_path, SAYS)[kind]
    environment = {"TOLD": "so", "PYTHONPATH": "/somewhere"} | ({ALONE: "1"} if alone else {})
    process = subprocess.Popen(
        [sys.executable, *arguments, "a b"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said, told = process.communicate("asked")
    loaded, own, name, *rest = said.rstrip().split("|")
    assert loaded == str(not alone)
    assert (own, name) == ("[]", "__main__")
    assert rest == [str([*named, "a b"]), str(tmp_path), "so", str([first, "/somewhere"])]
    assert told == f"asked {process.pid}\n"
    assert process.returncode == 7


def test_what_fails_says_so():
    done = subprocess.run([sys.executable, "-c", "1 / 0"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_program(number):
    handled = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # in the background, too
    waits = f"import signal, time; {handled}; print(); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-u", "-c", waits], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(60) == process.poll() == -number
    process.stdout.close()


def test_programs_of_programs_are_forks_too():
    inner = "import sys; print('torch' in sys.modules)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    done = subprocess.run([sys.executable, "-c", outer], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert ADDRESS in os.environ


def test_a_module_that_took_the_class_before_starts_forks_too():
    """As torchrun's does, whose workers are most of the programs of programs."""
    handler = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"
    inner = "import sys; print('torch' in sys.modules)"
    outer = (
        f"import sys; from {handler} import Popen; Popen([sys.executable, '-c', {inner!r}]).wait()"
    )
    done = subprocess.run([sys.executable, "-c", outer], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
