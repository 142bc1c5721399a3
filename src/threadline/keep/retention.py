"""How long Claude Code keeps a home's files (`cleanupPeriodDays`), and which files it deletes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.find import decode_or_none, homes
from threadline.home_files import OutsideHomeError, read_in_home

DEFAULT_DAYS = 30
"""After how many days Claude Code deletes a file, unless its settings say otherwise."""
LINKED_SETTINGS = "settings.json is a link out of the home"
"""The value of `RetentionPeriod.invalid_setting` for settings that are not read."""
_NEVER_DAYS = 36_500
_MAX_SETTINGS_SIZE = 16 << 20
# The folders in which Claude Code deletes old files; below `projects/`, except these names.
_CLEANED_UP_FOLDERS = frozenset({"projects", "file-history", "plans", "paste-cache", "image-cache", "tasks"})
_EXEMPT_NAMES = frozenset({"memory", "sessions-index.json", ".session-aliases"})
_PROJECT_DEPTH = 2


class RetentionPeriod(Struct, frozen=True, rename={"is_set": "said", "invalid_setting": "strange"}):
    """After how many days without changes a home's files are deleted; `is_set` is whether its settings say so.

    `invalid_setting` is the setting if it is not a number of days, or `LINKED_SETTINGS`; then the default applies.
    """

    days: int = DEFAULT_DAYS
    is_set: bool = False
    invalid_setting: str | None = None

    @property
    def is_forever(self) -> bool:
        """Whether nothing is deleted in a lifetime."""
        return self.days >= _NEVER_DAYS

    def ends(self, mtime_ns: int) -> datetime | None:
        """When a file with this mtime is deleted, by the next start of Claude Code; None means never."""
        if self.is_forever:
            return None
        try:
            return datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC) + timedelta(days=self.days)
        except (OverflowError, ValueError, OSError):
            return None


class _Settings(Struct, rename="camel"):
    # Nothing else is read: settings may contain secrets.
    cleanup_period_days: Any = None


def own_homes(named: Sequence[str] = ()) -> set[str]:
    """The user's own homes: those found, named, or configured in the environment, even if they do not exist."""
    values = [value for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS") if (value := os.environ.get(name))]
    parts = [part for value in values for part in (value, *re.split(rf"[,{os.pathsep}]", value))]
    configured = [part.strip() for part in parts if part.strip()]
    # Path.expanduser raises if there is no such user.
    paths = (os.path.expanduser(path) for path in ("~/.claude", *configured, *named))  # noqa: PTH111
    return {os.path.realpath(path) for path in paths} | {os.fspath(home.path) for home in homes()}


def is_cleaned_up(path: str) -> bool:
    """Whether Claude Code deletes the file at this path when it is old. History and memory files stay."""
    parts = path.split("/")
    return parts[0] in _CLEANED_UP_FOLDERS and not (
        parts[0] == "projects" and _EXEMPT_NAMES.intersection(parts[_PROJECT_DEPTH : _PROJECT_DEPTH + 1])
    )


def read_retention_period(home: Path) -> RetentionPeriod:
    """The retention period of a home, from `cleanupPeriodDays` in its `settings.json`."""
    try:
        settings = decode_or_none(read_in_home(home / "settings.json", limit=_MAX_SETTINGS_SIZE, home=home), _Settings)
    except OutsideHomeError:
        return RetentionPeriod(invalid_setting=LINKED_SETTINGS)
    except OSError:
        return RetentionPeriod()
    days = settings.cleanup_period_days if settings is not None else None
    if days is None:
        return RetentionPeriod()
    # A bool is an int, but not a number of days.
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days < float("inf"):
        return RetentionPeriod(invalid_setting=str(days)[:40])
    return RetentionPeriod(min(int(days), 10 * _NEVER_DAYS), is_set=True)
