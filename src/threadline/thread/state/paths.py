"""Names of files, made comparable: the machine a transcript was written on need not be this one."""

from __future__ import annotations

import ntpath
import posixpath
import re

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
# What a shell command is cut into: its words, without quotes and the signs that shells give a meaning.
_WORDS = re.compile(r"[^\s\"'`;|&<>()={},]+")


def full_path(path: str, cwd: str | None) -> str:
    r"""A path as one name: relative to `cwd` where it is not absolute, without detours.

    >>> full_path("src/../a.py", "/work")
    '/work/a.py'
    >>> full_path("src\\a.py", "D:\\work")
    'D:\\work\\src\\a.py'
    """
    if _WINDOWS.match(path) or (cwd and _WINDOWS.match(cwd)):
        return ntpath.normpath(ntpath.join(cwd or "", path))
    return posixpath.normpath(posixpath.join(cwd or "", path))


def base_name(path: str) -> str:
    """The last part of a path."""
    return re.split(r"[\\/]", path)[-1]


def named_files(command: str) -> set[str]:
    """The last parts of all words of a command that could be a file's name."""
    return {base_name(word) for word in _WORDS.findall(command)}
