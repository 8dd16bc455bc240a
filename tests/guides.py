"""Follows a guide of `docs/` in a copy of the project."""

import re
import shutil
from pathlib import Path

from tests.conftest import ROOT

BLOCK = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def copy_folders(project: Path, *names: str) -> None:
    """Copy folders of the project into another."""
    for name in names:
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, project / name, ignore=unwanted)


def apply_diff(text: str, diff: str) -> str:
    """Return `text` after a diff whose hunks `@@` separates; every hunk must fit exactly once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(old) == 1, f"the guide's diff does not fit the file: {old}"
        text = text.replace(old, new)
    return text


def follow(project: Path, guide: str) -> set[str]:
    """Make the changes that a guide shows, and return the files that it names."""
    blocks = BLOCK.findall((ROOT / "docs" / guide).read_text())
    for name, content in blocks:
        path = project / name
        path.write_text(apply_diff(path.read_text(), content) if path.exists() else content)
    return {name for name, _ in blocks}
