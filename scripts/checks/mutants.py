"""Tries whether the tests see a wrong program: mutation testing.

    python scripts/checks/mutants.py [--only TEXT] [--json FILE]

Works in a copy of the sources. The core is compiled once, with every mutant in it, and the one to
run is chosen by an environment variable. A mutant of a Python file is written into the copy. Each
runs its own tests only (`mutant_list.py`), in a process forked from one that has loaded the
libraries. A mutant is killed if one of them fails. Exit status 1 if more than three survive.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

# and nothing else of the project
from scripts.checks.mutant_list import CORE, MUTANTS, Mutant
from scripts.checks.sources import copy_sources

ROOT = Path(__file__).resolve().parents[2]
CHOSEN = "MARINENAV_MUTANT"
SELECTOR = f"""
#include <cstdlib>
/// Number of the mutant that runs; none by default.
inline int chosen_mutant() {{
  static const int number = [] {{
    const char* text = std::getenv("{CHOSEN}");
    return text == nullptr ? -1 : std::atoi(text);
  }}();
  return number;
}}
"""
LIBRARIES = ("torchrl.envs", "scipy.stats", "matplotlib.pyplot", "onnx", "onnxruntime", "omegaconf")
"""Loaded before the processes are forked, which then load the copy of the project themselves."""
HEAD = """
import json, torch
from scripts.bench.machine import record_head
print(json.dumps(record_head(torch.device("cpu"))))
"""
MOST_SURVIVORS = 3
PATIENCE_S = 600.0
KILLED, SURVIVED, ENDLESS = "killed", "survived", "killed by time"


def stale(mutants: Iterable[Mutant] = MUTANTS) -> list[str]:
    """Return the mutants whose text does not stand once in its file any more."""
    return [
        f"{mutant.file}: {mutant.before!r}"
        for mutant in mutants
        if (ROOT / mutant.file).read_text().count(mutant.before) != 1
    ]


def put_into_core(folder: Path, mutants: Sequence[Mutant]) -> None:
    """Write all mutants of the core into its files, each behind a question for its number."""
    for number, mutant in enumerate(mutants):
        if mutant.file.startswith(CORE):
            path = folder / mutant.file
            choice = f"(chosen_mutant() == {number} ? ({mutant.after}) : ({mutant.before}))"
            path.write_text(path.read_text().replace(mutant.before, choice))
    lane = folder / CORE / "kernel" / "lane.h"
    lane.write_text(lane.read_text().replace("#pragma once", f"#pragma once\n{SELECTOR}", 1))


def build(folder: Path) -> None:
    """Compile the core of the copy, for the CPU, with few optimisations."""
    setup = folder / "setup.py"
    setup.write_text(setup.read_text().replace('"-O3"', '"-O1"'))
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "NO_CUDA": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def passes(folder: Path, tests: Iterable[str], number: int = -1) -> bool | None:
    """Run tests of the copy in a process of their own; None if they do not come to an end."""
    process = os.fork()
    if not process:
        status = 3
        try:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            os.chdir(folder)
            os.environ[CHOSEN] = str(number)
            sys.dont_write_bytecode = True  # a mutant may be as long and as old as its original
            for name in [name for name in sys.modules if name.partition(".")[0] == "scripts"]:
                del sys.modules[name]
            sys.path[:] = [str(folder), *(place for place in sys.path if place != str(ROOT))]
            os.environ["PYTHONPATH"] = str(folder)
            options = ["-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
            status = int(pytest.main([*options, *(f"tests/{name}" for name in tests)]))
        finally:
            os._exit(status)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code not in (0, 1, 2) and code >= 0:
                raise RuntimeError(f"pytest ended with status {code} on {tests}")
            return code == 0
        time.sleep(0.02)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return None


def outcome(folder: Path, mutant: Mutant, number: int) -> str:
    """Run the tests of a mutant."""
    path, whole = folder / mutant.file, (folder / mutant.file).read_text()
    if not mutant.file.startswith(CORE):
        path.write_text(whole.replace(mutant.before, mutant.after))
    try:
        passed = passes(folder, mutant.tests, number)
    finally:
        path.write_text(whole)
    return {True: SURVIVED, False: KILLED, None: ENDLESS}[passed]


def write(path: Path, value: Any) -> None:
    """Write JSON in one step; the project's own function would load the project."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=1) + "\n")
    temporary.replace(path)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="try the mutants of these files alone"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants; return 1 if more survive than may."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    if gone := stale():
        print("error: these mutants apply no more:", *gone, sep="\n  ", file=sys.stderr)
        return 1
    torch.set_num_threads(1)  # a forked process must not inherit a pool of threads
    for library in LIBRARIES:
        importlib.import_module(library)
    chosen = [(n, m) for n, m in enumerate(MUTANTS) if re.search(options.only, m.file)]
    head = subprocess.run([sys.executable, "-c", HEAD], cwd=ROOT, capture_output=True, check=True)
    record = json.loads(head.stdout) | {"command": ["scripts/checks/mutants.py", *arguments]}
    tried: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_sources(folder)
        if any(mutant.file.startswith(CORE) for _, mutant in chosen):
            put_into_core(folder, MUTANTS)
            build(folder)
        else:
            for built in (ROOT / "marinenav_env").glob("_[ob]*"):  # the library and its record
                shutil.copy(built, folder / "marinenav_env")
        tests = dict.fromkeys(name for _, mutant in chosen for name in mutant.tests)
        if not passes(folder, tests):
            print("error: the tests fail without a mutant", file=sys.stderr)
            return 1
        print(f"{len(tests)} files of tests pass without a mutant", flush=True)
        for number, mutant in chosen:
            begun = time.monotonic()
            result = outcome(folder, mutant, number)
            seconds = time.monotonic() - begun
            print(
                f"{result} ({seconds:.1f} s): {mutant.file}: {mutant.before} -> {mutant.after}",
                flush=True,
            )
            tried.append(mutant._asdict() | {"outcome": result})
            if options.json:
                write(options.json, {**record, "mutants": tried})
    survivors = sum(entry["outcome"] == SURVIVED for entry in tried)
    print(f"{len(tried)} mutants, {survivors} survive")
    return int(survivors > MOST_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
