"""Python programs that tests start, forked from a process that has imported the libraries already.

`import torch` and `import torchrl` take 4 s of a core, and the tests start some sixty programs. So
one process imports the libraries, none of this project's packages, and waits. Whoever would start
Python sends it the arguments, the environment and the standard files, and it forks. The child runs
the program as a new Python would. With `MARINENAV_ALONE` in its environment it gets a new one.
"""

import atexit
import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from unittest import mock

ADDRESS = "MARINENAV_PRELOADED"
"""The environment variable that holds the path of the waiting process's socket."""
ALONE = "MARINENAV_ALONE"
LIBRARIES = (
    *("torch._dynamo", "torch.distributed.run", "torch.utils.tensorboard", "torchrl.envs"),
    *("matplotlib.pyplot", "omegaconf", "rich.table", "scipy.stats", "imageio"),
)
NUMBER = struct.Struct("i")
GPU = Path("/dev/nvidiactl")
"""There where a GPU is. A fork of a process that has asked for GPUs cannot use them."""


class Popen(subprocess.Popen):
    """A program; one in Python begins as a fork of the waiting process."""

    _ending: socket.socket | None = None
    """From a fork: says its number, and once it has ended its status."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest):
        given = os.environ if env is None else env
        environment = {name: os.fspath(value) for name, value in given.items()}
        command = [args] if isinstance(args, str) else [os.fspath(part) for part in args]
        _, _, shell, *pipes, _, gid, gids, uid, _, new_session, _ = rest
        usual = not (preexec_fn or pass_fds or shell or executable or gid or gids or uid)
        if not (usual and command[0] == sys.executable and understood(command[1:], environment)):
            super()._execute_child(
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest
            )
            return
        own_in, _, _, own_out, _, own_error = pipes
        wanted = enumerate((own_in, own_out, own_error))
        files = [inherited if own == -1 else own for inherited, own in wanted]
        program = {
            "arguments": command[1:],
            "environment": environment,
            "folder": os.path.abspath(cwd or "."),
            "new_session": bool(new_session),
        }
        self._ending = socket.socket(socket.AF_UNIX)
        self._ending.connect(os.environ[ADDRESS])
        with self._ending.makefile("wb") as stream:
            socket.send_fds(self._ending, [b"f"], files)
            stream.write(json.dumps(program).encode() + b"\n")
        self.pid = self._receive()
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _receive(self) -> int:
        return NUMBER.unpack(self._ending.recv(NUMBER.size, socket.MSG_WAITALL))[0]

    def _internal_poll(self, *args, **kwargs):
        if self._ending is None:
            return super()._internal_poll(*args, **kwargs)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0.0)
        return self.returncode

    def _wait(self, timeout):
        if self._ending is None:
            return super()._wait(timeout)
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._ending, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = self._receive()
            self._ending.close()
        return self.returncode


def understood(arguments: list[str], environment: dict[str, str]) -> bool:
    """Whether a fork can run Python with these arguments."""
    start = 1 if arguments[:1] == ["-u"] else 0
    first = arguments[start : start + 1]
    return (
        ADDRESS in os.environ
        and not GPU.exists()
        and ALONE not in environment
        and bool(first)
        and (first[0] in ("-c", "-m") or not first[0].startswith("-"))
    )


@contextlib.contextmanager
def preloaded() -> Iterator[None]:
    """Let `subprocess` use the waiting process; start it, if none that started this one has."""
    start = contextlib.nullcontext() if ADDRESS in os.environ else waiting_process()
    with start, mock.patch.object(subprocess, "Popen", Popen):
        yield


@contextlib.contextmanager
def waiting_process() -> Iterator[None]:
    """Start the process, and kill it in the end."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
        )
        listener.close()  # so that, once the process has died, programs are refused
        with process, mock.patch.dict(os.environ, {ADDRESS: f"{folder}/socket"}):
            yield
            process.kill()


def wait_for_programs(listener: socket.socket) -> dict:
    """Fork for each program; return only in a fork, which has the program's files already."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries those that it forks
    subprocess.Popen = Popen  # before torchrun's module takes the class by its name
    with listener:
        for name in LIBRARIES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(sys.stdin, selectors.EVENT_READ)
            while sys.stdin not in [key.fileobj for key, _ in selector.select()]:
                connection, _ = listener.accept()
                if not os.fork():
                    break
                connection.close()
            else:
                sys.exit()  # the tests have ended
    # One fork waits for the program and says how it ended, the other one is the program.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection:
        _, files, *_ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as stream:
            program = json.loads(stream.readline())
        child = os.fork()
        if child:
            for file in (*files, 0, 1, 2):
                os.close(file)
            with contextlib.suppress(BrokenPipeError):
                connection.send(NUMBER.pack(child))
                _, status = os.waitpid(child, 0)
                connection.send(NUMBER.pack(os.waitstatus_to_exitcode(status)))
            os._exit(0)
    for usual, file in enumerate(files):
        os.dup2(file, usual)
        os.close(file)
    return program


def run(program: dict) -> None:
    """Run a program as a new Python would."""
    import torch

    environment, arguments = program["environment"], program["arguments"]
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(program["folder"])
    if program["new_session"]:
        os.setsid()
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    if threads := environment.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))
    if arguments[0] == "-u":
        arguments.pop(0)
        sys.stdout.reconfigure(line_buffering=True)
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    first, *others = arguments
    own = {"-c": "", "-m": program["folder"]}.get(first, str(Path(first).resolve().parent))
    sys.path[:1] = [own, *paths]
    if first == "-c":
        sys.argv = ["-c", *others[1:]]
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(others[0], "<string>", "exec"), sys.modules["__main__"].__dict__)
    elif first == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(first, run_name="__main__")


def end(ending: BaseException | None) -> NoReturn:
    """End as Python does, but let the kernel free the memory: object by object takes a second."""
    if isinstance(ending, SystemExit):
        told = isinstance(ending.code, int | None)
        status = ending.code or 0 if told else 1
        if not told:
            print(ending.code, file=sys.stderr)
    elif ending:
        sys.excepthook(type(ending), ending, ending.__traceback__)
        status = 1
    else:
        status = 0
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if isinstance(ending, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status & 0xFF)


if __name__ == "__main__":
    asked = wait_for_programs(socket.socket(fileno=int(sys.argv[1])))
    how = None
    try:
        run(asked)
    except BaseException as raised:  # noqa: BLE001 - whatever it is, it is told as Python does
        how = raised
    end(how)
