"""Living homes: what Claude Code still has, and when it deletes it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.find import homes
from threadline.find.reading import decoded, whole
from threadline.model.found import Home

DAYS = 30
"""How long Claude Code leaves a file unless its settings say otherwise, in days."""
_NEVER = 36_500
_LARGEST = 16 << 20
# What Claude Code deletes when it is old, by the first part of its path; below `projects/`, but for these names.
_SWEPT = frozenset({"projects", "file-history", "plans", "paste-cache", "image-cache", "tasks"})
_LEFT = frozenset({"memory", "sessions-index.json", ".session-aliases"})
_BELOW = 2


class Period(Struct, frozen=True):
    """How long a home's files live: so many days after they were last written; `said` is whether its settings say so.

    `strange` is what they say where that is no number of days: then it is as if they said nothing.
    """

    days: int = DAYS
    said: bool = False
    strange: str | None = None

    @property
    def forever(self) -> bool:
        """Whether nothing is deleted in anybody's time."""
        return self.days >= _NEVER

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


def living(named: Sequence[str] = ()) -> list[Home]:
    """The homes that were named, or else those that are found.

    Raises:
        NotFound: one that was named is not there.
    """
    return homes(*named)


def own_homes(named: Sequence[str] = ()) -> set[str]:
    """The homes that are the user's by their own word: found, named, or told by the environment, even if not there."""
    told = [one for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS") if (one := os.environ.get(name))]
    parts = [part.strip() for one in told for part in (one, *re.split(rf"[,{os.pathsep}]", one)) if part.strip()]
    # Those of Path raise where there is no such user.
    paths = (os.path.expanduser(one) for one in ("~/.claude", *parts, *named))  # noqa: PTH111
    return {os.path.realpath(one) for one in paths} | {os.fspath(home.path) for home in homes()}


def is_swept(path: str) -> bool:
    """Whether Claude Code deletes the file at this path below a home when it is old; histories and memories stay."""
    parts = path.split("/")
    return parts[0] in _SWEPT and not (parts[0] == "projects" and _LEFT.intersection(parts[_BELOW : _BELOW + 1]))


def period(home: Path) -> Period:
    """How long a home's files live, by the `cleanupPeriodDays` of its `settings.json`."""
    try:
        told = decoded(whole(home / "settings.json", _LARGEST), _Settings)
    except OSError:
        return Period()
    days = told.cleanup_period_days if told is not None else None
    if days is None:
        return Period()
    # A bool is an int, and says nothing about days.
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days < float("inf"):
        return Period(strange=str(days)[:40])
    return Period(min(int(days), 10 * _NEVER), said=True)
