"""The checksum that an exported file carries, against damage on its way to the vessel.

Behind its last mark a file has 64 hexadecimal digits: the SHA-256 of itself, with zeros in their
place. One rule for every format, which any language checks in a few lines.
"""

from __future__ import annotations

import hashlib

MARK = b"marinenav-sha256:"
DIGITS = 64
UNSEALED = MARK.decode() + "0" * DIGITS
"""What a format writes into its file for `sealed` to fill in."""


def sealed(content: bytes) -> bytes:
    """Return a file's content with its checksum in the place of the zeros."""
    head, digest, tail = _parted(content)
    return head + _expected(head, tail) + tail if digest else content


def checksum(content: bytes) -> str | None:
    """Return the checksum that a file carries; None if it carries none.

    Raises:
        ValueError: it is that of another content.
    """
    head, digest, tail = _parted(content)
    if digest and digest != _expected(head, tail):
        raise ValueError(f"its checksum is {digest!r}, not {_expected(head, tail)!r}")
    return digest.decode() or None


def _parted(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what stands before the digits, the digits, and what stands behind them."""
    before, mark, behind = content.rpartition(MARK)
    return before + mark, behind[:DIGITS] if mark else b"", behind[DIGITS:]


def _expected(head: bytes, tail: bytes) -> bytes:
    return hashlib.sha256(head + b"0" * DIGITS + tail).hexdigest().encode()
