"""What ran: the commit of the source, its changes, the versions and the device.

Imports nothing that needs the compiled operators: a machine is described before they are built.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from marinenav_env.build_record import BUILD_RECORD, PACKAGE, read_record
from train_RL_agents.config.shipped import INSTALLED

SOURCES = ("*.py", "*.yaml", "*.h", "*.cuh", "*.cpp", "*.cu")
PLAIN = (
    *("--binary", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
"""Options of `git diff` for a patch that can be applied, whatever the user has configured."""
COMMIT_VARIABLE = "MARINENAV_COMMIT"
PACKAGES = ("marinenav", "torchrl", "tensordict", "numpy")
ROOT = Path(__file__).resolve().parents[2]


def source_commit() -> str | None:
    """Return the commit of this source tree.

    Outside a repository that of the environment variable `MARINENAV_COMMIT`, for copies that travel
    without their history, or the one that a wheel was built from, or None.
    """
    answer = _git("rev-parse", "HEAD")
    if answer is not None:
        return answer.strip()
    built = read_record(PACKAGE / BUILD_RECORD) if INSTALLED else {}
    return os.environ.get(COMMIT_VARIABLE) or built.get("commit")


def source_diff() -> str | None:
    """Return what to `git apply` to the commit for this source tree, new source files included.

    None outside a repository. Bytes that are no UTF-8 are replaced.
    """
    listed = _git("ls-files", "-z", "--others", "--exclude-standard", "--", *SOURCES)
    if listed is None:
        return None
    new = [name for name in listed.split("\0") if name]
    with tempfile.TemporaryDirectory() as folder:
        # A copy of the index, in which the new files are announced: git's own stays as it is.
        index = Path(folder) / "index"
        own = _git("rev-parse", "--path-format=absolute", "--git-path", "index")
        if new and own is not None:
            shutil.copy(own.strip(), index)
            _git("add", "--intent-to-add", "--", *new, index=index)
        return _git("diff", *PLAIN, "HEAD", index=index if index.exists() else None)


def device_name(device: torch.device) -> str:
    """Return the device in words, for example ``cuda: NVIDIA H200``."""
    if device.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(device)}"
    return f"cpu: {platform.processor() or platform.machine()}"


def versions() -> dict[str, str | None]:
    """Return versions of Python, CUDA and the packages that matter; None for what is not there."""
    found = {
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,  # names the build too, as the installed package may not
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _git(*arguments: str, index: Path | None = None) -> str | None:
    """Return git's answer about this source tree, or None outside a repository.

    The tree may be another user's, of whose repositories git is wary; its code runs already. Before
    version 2.38 git takes no word for that from the command line.
    """
    if INSTALLED:  # in an environment that may lie in another project's repository
        return None
    try:
        answer = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments],
            env={**os.environ, **({"GIT_INDEX_FILE": str(index)} if index else {})},
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.decode(errors="replace")
