"""The name of a project's folder, as Claude Code makes it from the project's path.

The rule loses information (`/a/b`, `/a-b` and `/a_b` all give `-a-b`), so there is no function back: a
folder's true path is found by evidence, in `project_path`.
"""

from __future__ import annotations

import os
import re
import struct
import unicodedata

LONGEST = 200
"""Names longer than this are cut here, and a hash of the path is added."""

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_FOREIGN = re.compile("[^A-Za-z0-9]")
_WINDOWS = re.compile(r"[A-Za-z]:|\\\\")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def folder_name(path: str | os.PathLike[str]) -> str:
    """Name the folder under `projects/` for a project at this path (which is taken as it is, not resolved).

    For paths longer than 200 characters the suffix is that of the Node builds. The native builds hash
    differently, so compare with `folder_matches`, never with `==`.

    >>> folder_name("/Users/me/my_proj.v2")
    '-Users-me-my-proj-v2'
    """
    normal = unicodedata.normalize("NFC", os.fspath(path))
    name = dashed(normal)
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}-{_node_hash(normal)}"


def folder_matches(folder: str, path: str | os.PathLike[str]) -> bool:
    r"""Say whether a project at this path can have this folder.

    Long names are compared by their first 200 characters; paths on a Windows drive without regard to case.

    >>> folder_matches("c--Users-Ann-x", "C:\\Users\\Ann\\x")
    True
    """
    written = os.fspath(path)
    wanted = stem(folder)
    if is_windows(written):
        return wanted.lower() in {name.lower() for name in stems(written)}
    return wanted in stems(written)


def dashed(path: str) -> str:
    """Put a dash for every character but ASCII letters and digits.

    Claude Code counts UTF-16 code units, so a character beyond the first plane gives two dashes (seen in
    1.0.100 and 2.1.325: `a😀b` becomes `a--b`).
    """
    return _FOREIGN.sub("-", _ASTRAL.sub("--", path))


def stem(folder: str) -> str:
    """Give the part of a folder's name that follows from the path by one rule in all builds."""
    return folder[: LONGEST + 1] if len(folder) > LONGEST else folder


def stems(path: str) -> set[str]:
    """Give the stems a folder for this path can have: composed as newer builds do it, or as written."""
    names = {dashed(unicodedata.normalize("NFC", path)), dashed(path)}
    return {name if len(name) <= LONGEST else f"{name[:LONGEST]}-" for name in names}


def is_windows(path: str) -> bool:
    """Say whether this is a path on a Windows drive or share, where case does not tell names apart."""
    return _WINDOWS.match(path) is not None


def _node_hash(path: str) -> str:
    data = path.encode("utf-16-le", "surrogatepass")
    value = 0
    for unit in struct.unpack(f"<{len(data) // 2}H", data):
        value = (value * 31 + unit) & 0xFFFFFFFF
    number = abs(value - 0x100000000 if value & 0x80000000 else value)
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"
