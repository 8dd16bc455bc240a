"""Checkpoints: plain dictionaries of tensors and JSON values, which no kill can damage."""

from __future__ import annotations

import difflib
import pickle
import re
import reprlib
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from marinenav_env.files import set_aside, write_atomically

FORMAT = 1
"""Version of the layout of the dictionary; a file of another version is refused."""

BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, UnicodeDecodeError, EOFError)
"""What reading a damaged archive raises."""

FOREIGN = (TypeError, AttributeError, LookupError, ArithmeticError, ValueError, RuntimeError)
"""What taking over a whole archive raises that holds something else than it should."""

RUN_STATE = {
    **dict.fromkeys(("step", "processes"), int),
    **dict.fromkeys(("config", "model", "counters", "files", "learner"), dict),
}
"""Parts of a run's state."""

CHECKPOINTS, BEST, EARLIER_BEST = "checkpoints", "best.pt", "best_earlier.pt"
_NAME = re.compile(r"step_(\d{12})(?:\.rank(\d+))?\.pt")


class CheckpointError(RuntimeError):
    """A checkpoint is missing, damaged or of another kind; the message says what to do."""


def save(path: Path, state: dict[str, Any]) -> None:
    """Save ``state`` atomically; it must hold only tensors, dictionaries, lists and JSON scalars.

    Raises:
        OSError: the file, or its folder, could not be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: torch.save({"format": FORMAT, **state}, file))


def load(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Load and check a file that :func:`save` wrote, its tensors placed on ``device``.

    Raises:
        CheckpointError: the file is missing, damaged, or no checkpoint of this version.
    """
    state = load_archive(path, device)
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise CheckpointError(
            f"{path} has format {found!r}, not {FORMAT}: use the program version that wrote it"
        )
    return state


def name_to_give(path: Path) -> str:
    """Return what helps where a path does not exist: the most similar one beside it, if any."""
    try:
        beside = [found.name for found in path.parent.iterdir()]
    except OSError:
        return "check the name"
    similar = difflib.get_close_matches(path.name, beside, n=1)
    return f"did you mean {str(path.with_name(similar[0]))!r}?" if similar else "check the name"


def load_archive(path: Path, device: torch.device | str = "cpu") -> Any:
    """Load a file of ``torch.save`` that holds only tensors and plain values.

    Raises:
        CheckpointError: the file is missing or damaged, or holds something else.
    """
    if not path.is_file():
        raise CheckpointError(f"no checkpoint {str(path)!r}: {name_to_give(path)}")
    try:
        check_archive(path)
        # Mapped, not read: a replay that is taken over from the file is not twice in memory.
        return torch.load(path, map_location=device, weights_only=True, mmap=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, *BAD_ARCHIVE) as error:
        raise CheckpointError(
            f"{path} is damaged or no checkpoint ({error}): {instead_of(path)}"
        ) from error


def check_archive(file: Path | BinaryIO) -> None:
    """Check every part of an archive against its checksum; torch checks none.

    Raises:
        BadZipFile: one is damaged, or another of `BAD_ARCHIVE`.
        RuntimeError: a part claims to be encrypted, or packed in a way unknown here.
    """
    with zipfile.ZipFile(file) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"bad checksum of {damaged}")


def load_run(path: Path) -> dict[str, Any]:
    """Load a checkpoint that a run can resume from.

    Raises:
        CheckpointError: as `load`, or a part of a run's state is missing or of a wrong kind.
    """
    state = load(path)
    for key, kind in RUN_STATE.items():
        if not isinstance(state.get(key), kind):
            raise CheckpointError(
                f"{path}: {key!r} is {reprlib.repr(state.get(key))}, so it is no checkpoint to go "
                f"on from: {instead_of(path)}"
            )
    for name, size in state["files"].items():
        if not isinstance(name, str) or type(size) is not int or size < 0:
            raise CheckpointError(
                f"{path}: 'files' has {reprlib.repr(name)}: {reprlib.repr(size)}, which is no size "
                f"of a file: {instead_of(path)}"
            )
    return state


def instead_of(path: Path) -> str:
    """Return what to use instead of a damaged file: the newest intact checkpoint beside it."""
    folder, name = CheckpointFolder(path.parent), _NAME.fullmatch(path.name)
    for step in reversed(folder.steps()):
        if name is None or int(name[1]) != step:
            try:
                for part in folder.parts(step):
                    check_archive(part)
            except (OSError, RuntimeError, *BAD_ARCHIVE):
                continue
            return f"use {str(folder.path(step))!r}, the newest intact one beside it"
    return "there is no intact checkpoint beside it"


class CheckpointFolder:
    """The checkpoints of one run: the newest few, and the best one by evaluation.

    With several processes each writes what only it knows into a file of its own, the first
    process last: a checkpoint exists once the first process's file does.

    Args:
        directory: folder of the files; the first one makes it.
        keep: how many of the newest stay.
        rank: number of this process.
    """

    def __init__(self, directory: Path, keep: int = 2, rank: int = 0) -> None:
        self.directory, self.keep, self.rank = directory, keep, rank

    def path(self, step: int, rank: int = 0) -> Path:
        """Return the name of the file of one process at ``step``."""
        suffix = f".rank{rank}" if rank else ""
        return self.directory / f"step_{step:012d}{suffix}.pt"

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, ascending."""
        return saved_steps(self.directory)

    def parts(self, step: int) -> list[Path]:
        """Return the files of all processes at ``step``."""
        names = ((path, _NAME.fullmatch(path.name)) for path in self.directory.glob("step_*.pt"))
        return [path for path, name in names if name and int(name[1]) == step]

    def save(self, step: int, state: dict[str, Any], wait: Callable[[], None]) -> Path:
        """Save this process's part of the checkpoint of ``step`` and drop the oldest ones.

        Args:
            step: steps done.
            state: what to save.
            wait: returns when every process has called it.

        Returns:
            The file written.
        """
        path = self.path(step, self.rank)
        wait()  # no part is written while another process is still evaluating
        if self.rank:
            save(path, state)
        wait()
        if not self.rank:
            save(path, state)
            self._prune()
        return path

    def save_best(self, state: dict[str, Any]) -> None:
        """Replace the best checkpoint; a run that resumes from the newest one finds it again.

        It stays in its place until the new one is whole.
        """
        best, steps = self.directory / BEST, self.steps()
        before = _step_of(best)
        if before is not None and steps and before <= steps[-1]:
            copy = best.with_suffix(".tmp")  # what a kill leaves is dropped by `drop_after`
            shutil.copyfile(best, copy)
            copy.replace(self.directory / EARLIER_BEST)
        save(best, state)

    def drop_after(self, step: int) -> None:
        """Remove checkpoints of later steps, and what a kill left half written."""
        for path in sorted(self.directory.glob("*")):  # the first process's part before the others
            name = _NAME.fullmatch(path.name)
            if (name and int(name[1]) > step) or path.suffix == ".tmp":
                path.unlink()

    def restore_best(self, step: int) -> dict[str, Any] | None:
        """Go back to the best checkpoint as of a step, and return it, if there is one."""
        best, earlier = self.directory / BEST, self.directory / EARLIER_BEST
        for path in (best, earlier):
            saved = _step_of(path)
            if saved is not None and saved > step:
                path.unlink()
        if earlier.exists() and not best.exists():
            earlier.replace(best)
        return load(best) if best.exists() else None

    def _prune(self) -> None:
        kept = self.steps()[-self.keep :]
        for path in self.directory.iterdir():
            name = _NAME.fullmatch(path.name)
            if name and int(name[1]) < kept[0]:
                path.unlink()


def _step_of(best: Path) -> int | None:
    """Return the step of a best checkpoint; None if there is none, or it had to be set aside."""
    if not best.exists():
        return None
    try:
        return int(load(best)["step"])
    except (CheckpointError, KeyError, TypeError, ValueError) as error:
        print(f"warning: {best} is damaged ({error}); it is now {set_aside(best)}", file=sys.stderr)
        return None


def saved_steps(directory: Path) -> list[int]:
    """Return the steps that have a checkpoint in a folder, ascending."""
    names = (_NAME.fullmatch(path.name) for path in directory.glob("step_*.pt"))
    return sorted(int(name[1]) for name in names if name and name[2] is None)


def run_folder(path: Path) -> Path:
    """Return the folder of the run that resumes from a checkpoint file.

    Raises:
        CheckpointError: the file holds no whole state, or lies in no run.
    """
    remedy = f"give --resume a run's folder, or a file {CHECKPOINTS}/step_*.pt in it"
    name, folder = _NAME.fullmatch(path.name), path.absolute().parent
    if name is None or name[2] is not None:
        raise CheckpointError(f"{path} is no checkpoint to resume from: {remedy}")
    if folder.name != CHECKPOINTS:
        raise CheckpointError(f"{path} lies in no folder {CHECKPOINTS!r} of a run: {remedy}")
    return folder.parent


def newest(path: Path) -> Path:
    """Return the newest checkpoint of a run.

    Args:
        path: a run's folder, its folder of checkpoints, or one checkpoint file.

    Raises:
        CheckpointError: there is none.
    """
    if path.is_file():
        return path
    for directory in (path / CHECKPOINTS, path):
        steps = saved_steps(directory)
        if steps:
            return CheckpointFolder(directory).path(steps[-1])
    seeds = sorted({file.parent.parent.name for file in path.glob(f"*/{CHECKPOINTS}/*.pt")})
    found = f", which holds the runs {', '.join(seeds)}: give one of them" if seeds else ""
    raise CheckpointError(
        f"no checkpoint under {str(path)!r}{found or ': give a run folder or a file'}"
    )
