"""One program at a time works in a run's folder."""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from marinenav_env.fields import ConfigError
from train_RL_agents.device.distributed import Processes

LOCK = ".lock"


@contextmanager
def sole_use(folder: Path, processes: Processes, *, new: bool = False) -> Iterator[Path]:
    """While entered, no other program enters this folder; its death gives it free.

    The first process takes the lock for all. On a file system without locks it warns and continues.
    A folder that was made here and in which nothing is left is removed.

    Args:
        folder: of a run or a sweep; made if missing.
        processes: the processes that train together.
        new: take another name, with a number behind it, if the folder is there. To make a folder
            tells programs apart also on hosts that do not see each other's locks.

    Yields:
        The folder.

    Raises:
        ConfigError: another program is in it, or the folder cannot be written to.
    """
    file, made, place = None, False, folder

    def take() -> Path:
        nonlocal file, made, place
        try:
            place, made = _made(folder, new=new)
            file = _taken(place)
        except OSError as error:
            raise ConfigError(
                f"output is {str(place)!r}, and it is no folder to write to ({error}): give "
                "another one with --output"
            ) from error
        return place

    try:
        yield processes.tell(take)
    finally:
        if file is not None:
            (place / LOCK).unlink(missing_ok=True)
            file.close()
        if made:
            with suppress(OSError):  # it holds something, or was not made
                place.rmdir()


def _made(folder: Path, *, new: bool) -> tuple[Path, bool]:
    """Return the folder, or the first free one of its name, and whether it was made here."""
    if not new and folder.is_dir():
        return folder, False
    folder.parent.mkdir(parents=True, exist_ok=True)
    others = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    for place in itertools.chain([folder], others if new else []):
        with suppress(FileExistsError):
            place.mkdir()
            return place, True
    return folder, False


def _taken(folder: Path) -> IO[str]:
    """Return the file whose lock is ours."""
    path = folder / LOCK
    folder.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    _lock(file, folder)
    if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
        file.close()  # the holder before has removed it meanwhile
        return _taken(folder)
    file.truncate(0)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    file.write(f"process {os.getpid()} on {socket.gethostname()}, since {now}")
    file.flush()
    return file


def _lock(file: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read() or "another process"
        file.close()
        raise ConfigError(
            f"{str(folder)!r} is in use by {holder}: wait for it, or stop it"
        ) from error
    except OSError as error:
        print(
            f"warning: {str(folder)!r} cannot be locked ({error}): start no second run in it",
            file=sys.stderr,
        )
