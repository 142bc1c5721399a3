"""Scene: what every part of a page may need to know while it is drawn."""

from __future__ import annotations

from msgspec import Struct

from threadline.render.html.links import Links
from threadline.render.html.view import View


class Scene(Struct, frozen=True):
    """How things are shown and where links lead.

    `whole`: nothing is cut, as on a call's own page and in files. `cwd` is the directory the session worked in, from
    which files are named.
    """

    view: View
    links: Links
    whole: bool = False
    cwd: str = ""

    def near(self, path: str) -> str:
        """A path as seen from where the session worked."""
        below = self.cwd and path.startswith(self.cwd) and path[len(self.cwd) : len(self.cwd) + 1] in ("/", "\\")
        return path[len(self.cwd) + 1 :] if below else path
