"""What every part of a page needs to know while it is rendered: the view, where links lead, the time zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Protocol

from msgspec import Struct

from threadline.model.places import AgentId, CallId, SessionId
from threadline.model.text import format_time
from threadline.model.times import in_zone, zone_name
from threadline.render import View


class Links(Protocol):
    """Builds URLs of pages; None if there is no such page."""

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session."""

    def agent(self, agent: AgentId | str) -> str | None:
        """The page of an agent of this session."""

    def entry(self, anchor: str) -> str:
        """An entry of this page or another of this session, by its anchor."""

    def raw(self, anchor: str) -> str | None:
        """The page that shows an entry's JSON."""

    def call(self, call: CallId) -> str | None:
        """The page that shows a call in full."""

    def state(self, anchor: str) -> str | None:
        """The page that shows the state at an entry."""

    def file(self, path: str) -> str | None:
        """The page of a file: which sessions touched it."""

    def branch(self, number: int | None) -> str | None:
        """The page of a branch; None is the conversation itself."""

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:
        """The image with this number among the images of an entry; `data` is its base64."""


class Scene(Struct, frozen=True):
    """What to show and how to link.

    `whole`: nothing is cut, as on a call's own page and in exported files. Paths are shown relative to `cwd`, the
    session's working directory. Times are shown in `zone`. The default is UTC, so that an exported file is the same
    wherever it is created.
    """

    view: View
    links: Links
    whole: bool = False
    cwd: str = ""
    zone: tzinfo = UTC

    def relative_path(self, path: str) -> str:
        """A path relative to the session's working directory, if it is inside it."""
        below = self.cwd and path.startswith(self.cwd) and path[len(self.cwd) : len(self.cwd) + 1] in ("/", "\\")
        return path[len(self.cwd) + 1 :] if below else path

    def clock(self, when: datetime) -> str:
        """The time of day: `09:00`."""
        return in_zone(when, self.zone).strftime("%H:%M")

    def format_time(self, when: datetime) -> str:
        """Date, time and time zone: `2026-01-05 09:00 UTC`."""
        return f"{format_time(in_zone(when, self.zone))} {zone_name(self.zone)}"
