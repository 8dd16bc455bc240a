"""Where the files lie that come with the packages: ``configs/`` and ``pretrained/``.

An installation has them inside this package, where setup.py put them; a source tree beside it.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = (PACKAGE / "configs").is_dir()


def shipped_folder(name: str) -> Path:
    """Return the place of a folder that comes with the packages, whether it exists or not."""
    # Beside an installed package lie other projects' packages, which may have any name.
    return (PACKAGE if INSTALLED else PACKAGE.parent) / name


def find_shipped(path: Path) -> Path:
    """Return a path as it is, or the shipped one of a ``pretrained/NAME`` that is not there.

    Args:
        path: as the user gave it, relative to the present folder or absolute.
    """
    if path.exists() or path.is_absolute() or path.parts[:1] != ("pretrained",):
        return path
    found = shipped_folder("pretrained").joinpath(*path.parts[1:])
    return found if found.exists() else path
