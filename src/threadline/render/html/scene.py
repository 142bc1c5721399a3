"""Scene: what every part of a page may need to know while it is drawn."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from msgspec import Struct

from threadline.model.zone import in_zone, zone_name
from threadline.render.figures import moment
from threadline.render.html.links import Links
from threadline.render.html.view import View


class Scene(Struct, frozen=True):
    """How things are shown and where links lead.

    `whole`: nothing is cut, as on a call's own page and in files. `cwd` is the directory the session worked in, from
    which files are named. `zone` is the one whose clocks tell the times: UTC unless somebody says otherwise, so
    that a file is the same wherever it is made.
    """

    view: View
    links: Links
    whole: bool = False
    cwd: str = ""
    zone: tzinfo = UTC

    def near(self, path: str) -> str:
        """A path as seen from where the session worked."""
        below = self.cwd and path.startswith(self.cwd) and path[len(self.cwd) : len(self.cwd) + 1] in ("/", "\\")
        return path[len(self.cwd) + 1 :] if below else path

    def clock(self, when: datetime) -> str:
        """A moment as a clock shows it: `09:00`."""
        return in_zone(when, self.zone).strftime("%H:%M")

    def told(self, when: datetime) -> str:
        """A moment whole, and where: `2026-01-05 09:00 UTC`."""
        return f"{moment(in_zone(when, self.zone))} {zone_name(self.zone)}"
