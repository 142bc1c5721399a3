"""How long Claude Code keeps a home's files (`cleanupPeriodDays`), and which files it deletes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.files import read_whole
from threadline.find import decode_or_none, homes

DEFAULT_DAYS = 30
"""How long Claude Code leaves a file unless its settings say otherwise, in days."""
_NEVER_DAYS = 36_500
_MAX_SETTINGS_SIZE = 16 << 20
# What Claude Code deletes when it is old, by the first part of its path; below `projects/`, but for these names.
_CLEANED_UP_FOLDERS = frozenset({"projects", "file-history", "plans", "paste-cache", "image-cache", "tasks"})
_EXEMPT_NAMES = frozenset({"memory", "sessions-index.json", ".session-aliases"})
_PROJECT_DEPTH = 2


class RetentionPeriod(Struct, frozen=True):
    """How long a home's files live: so many days after they were last written; `said` is whether its settings say so.

    `strange` is what they say where that is no number of days: then it is as if they said nothing.
    """

    days: int = DEFAULT_DAYS
    said: bool = False
    strange: str | None = None

    @property
    def forever(self) -> bool:
        """Whether nothing is deleted in anybody's time."""
        return self.days >= _NEVER_DAYS

    def ends(self, mtime_ns: int) -> datetime | None:
        """When a file that was last written then is deleted, by the next start of Claude Code; None is never."""
        if self.forever:
            return None
        try:
            return datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC) + timedelta(days=self.days)
        except (OverflowError, ValueError, OSError):
            return None


class _Settings(Struct, rename="camel"):
    # Only this is looked at: settings can hold what is nobody's business.
    cleanup_period_days: Any = None


def own_homes(named: Sequence[str] = ()) -> set[str]:
    """The homes that are the user's by their own word: found, named, or told by the environment, even if not there."""
    told = [one for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS") if (one := os.environ.get(name))]
    parts = [part.strip() for one in told for part in (one, *re.split(rf"[,{os.pathsep}]", one)) if part.strip()]
    # Those of Path raise where there is no such user.
    paths = (os.path.expanduser(one) for one in ("~/.claude", *parts, *named))  # noqa: PTH111
    return {os.path.realpath(path) for path in paths} | {os.fspath(home.path) for home in homes()}


def is_cleaned_up(path: str) -> bool:
    """Whether Claude Code deletes the file at this path below a home when it is old; histories and memories stay."""
    parts = path.split("/")
    return parts[0] in _CLEANED_UP_FOLDERS and not (
        parts[0] == "projects" and _EXEMPT_NAMES.intersection(parts[_PROJECT_DEPTH : _PROJECT_DEPTH + 1])
    )


def read_retention_period(home: Path) -> RetentionPeriod:
    """How long a home's files live, by the `cleanupPeriodDays` of its `settings.json`."""
    try:
        told = decode_or_none(read_whole(home / "settings.json", _MAX_SETTINGS_SIZE), _Settings)
    except OSError:
        return RetentionPeriod()
    days = told.cleanup_period_days if told is not None else None
    if days is None:
        return RetentionPeriod()
    # A bool is an int, and says nothing about days.
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days < float("inf"):
        return RetentionPeriod(strange=str(days)[:40])
    return RetentionPeriod(min(int(days), 10 * _NEVER_DAYS), said=True)
