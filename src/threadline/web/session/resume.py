"""The command that resumes a session, to be copied and never run.

There is none if an id or directory in it cannot be trusted.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from markupsafe import Markup

from threadline.model.places import is_uuid
from threadline.render import visible
from threadline.render.html import el, icon

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.index import SessionBrief
    from threadline.model.session import Session

_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
_QUOTES = re.compile("['\u2018\u2019\u201a\u201b]")
"""The characters that end a single-quoted string in PowerShell unless they are doubled."""
_POWERSHELL_WILDCARD = re.compile(r"[\[\]*?`]")


def resume_line(command: str, name: str) -> Markup:
    """A button that copies the command; without scripts, the command. `name` is its id on the page."""
    hint = f"Copy the command: {visible(command)}"
    button = el("button", icon("resume"), "Resume", type="button", data_copy=name, title=hint, hidden=True)
    return el("p", el("code", visible(command), id=name), button, class_="resume")


def home_for_resume(transcript: Path) -> str | None:
    """The home of a transcript, if the command that resumes it has to name the home.

    None for the default home, for a transcript that is in no home, and for one that is only in the keep.
    """
    folder = transcript.parent.parent
    home = os.path.realpath(folder.parent)
    default = os.path.realpath(os.path.expanduser("~/.claude"))  # noqa: PTH111 - Path.expanduser raises if there is no such user
    return home if folder.name == "projects" and home != default and home.isprintable() else None


def resume_command(session: Session | SessionBrief, cwd: str | None, home: str | None = None) -> str | None:
    """The command that resumes a session in its directory; `home` is one that has to be named.

    None if Claude Code did not give the session its name, or if the directory cannot be trusted in a command line.
    """
    if session.id is None or not is_uuid(session.id):
        return None
    is_windows = cwd is not None and not cwd.startswith("/")
    variable = f"CLAUDE_CONFIG_DIR={shlex.quote(home)} " if home and not is_windows and not session.kept else ""
    steps = [f"{variable}claude --resume {session.id}"]
    if session.kept:  # Claude Code can only resume a session that is in a home
        steps.insert(0, f"threadline keep restore {session.id}")
    if cwd is None:
        return " && ".join(steps)
    if not cwd.isprintable():
        return None
    if cwd.startswith("/"):
        return " && ".join((f"cd {shlex.quote(cwd)}", *steps))
    # PowerShell, which every Windows has, does not support && before version 7.
    return "; ".join((_powershell_cd(cwd), *steps)) if _WINDOWS_PATH.match(cwd) else None


def _powershell_cd(cwd: str) -> str:
    r"""The PowerShell command that changes to a Windows directory; for a plain path, Git Bash accepts it, too.

    >>> _powershell_cd(r"C:\Users\Ann\my app")
    "cd 'C:\\Users\\Ann\\my app'"
    """
    quoted = "'" + _QUOTES.sub(lambda match: match[0] * 2, cwd) + "'"
    is_plain = not _POWERSHELL_WILDCARD.search(cwd) and not _QUOTES.search(cwd)
    return f"cd {quoted}" if is_plain else f"Set-Location -LiteralPath {quoted}"
