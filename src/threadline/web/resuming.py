"""Resuming: the command that takes a session up again, to be copied by a person; it is shown and never run."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.model.session import Session

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
_QUOTES = re.compile("['\u2018\u2019\u201a\u201b]")
"""What ends a text in single quotes for PowerShell, unless it is doubled."""
_PATTERN = re.compile(r"[\[\]*?`]")


def home_to_name(transcript: Path) -> str | None:
    """The home that a transcript lies in, where Claude Code would not look unless it is told to; None of the usual one.

    None, too, of a transcript that lies in no home, and of one that is only kept.
    """
    folder = transcript.parent.parent
    home = os.path.realpath(folder.parent)
    usual = os.path.realpath(os.path.expanduser("~/.claude"))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    return home if folder.name == "projects" and home != usual and home.isprintable() else None


def resume_command(session: Session, cwd: str | None, home: str | None = None) -> str | None:
    """What a person may run to go on with a session that belongs to a directory; `home` is one that must be named.

    None where what it would name is not to be trusted.
    """
    if session.id is None or not _ID.fullmatch(str(session.id)):
        return None
    is_of_windows = cwd is not None and not cwd.startswith("/")
    named = f"CLAUDE_CONFIG_DIR={shlex.quote(home)} " if home and not is_of_windows and not session.kept else ""
    steps = [f"{named}claude --resume {session.id}"]
    if session.kept:  # it must be in a home before it can go on
        steps.insert(0, f"threadline keep restore {session.id}")
    if cwd is None:
        return " && ".join(steps)
    if not cwd.isprintable():
        return None
    if cwd.startswith("/"):
        return " && ".join((f"cd {shlex.quote(cwd)}", *steps))
    # PowerShell, which every Windows has, knows no && before its seventh version.
    return "; ".join((_going(cwd), *steps)) if _WINDOWS.match(cwd) else None


def _going(cwd: str) -> str:
    r"""Go to a directory of Windows, in PowerShell; a plain one in words that Git's Bash understands as well.

    >>> _going(r"C:\Users\Ann\my app")
    "cd 'C:\\Users\\Ann\\my app'"
    """
    quoted = "'" + _QUOTES.sub(lambda found: found[0] * 2, cwd) + "'"
    return f"Set-Location -LiteralPath {quoted}" if _PATTERN.search(cwd) or _QUOTES.search(cwd) else f"cd {quoted}"
