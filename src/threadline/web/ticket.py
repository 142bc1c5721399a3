"""Ticket: the way in for the browser that is opened for a person: a token that is good once, on no command line.

The command line of a browser can be read by every user of the machine. So it names a file that only its owner may read,
and that file leads to the server. Whoever comes that way is let in, and the file and its token are worth nothing after.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from threadline.render.html.element import Child, el, join
from threadline.render.html.frame import frame

_NAME = "open.html"


class Ticket:
    """Lets somebody in at an address, once."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._token: str | None = secrets.token_urlsafe(24)
        self._folder: Path | None = None

    def page(self) -> Path:
        """The file that leads to the server, in a folder of its own; nobody else may read either.

        Raises:
            OSError: it cannot be written.
        """
        self._folder = Path(mkdtemp(prefix="threadline-"))  # for its owner alone, whatever the mask is
        page = self._folder / _NAME
        page.touch(mode=0o600)
        page.write_text(leading_to(f"{self._address}?token={self._token}"), encoding="utf-8")
        return page

    def fits(self, given: str) -> bool:
        """Whether this is the token, and it is still worth something."""
        return self._token is not None and hmac.compare_digest(given.encode(errors="replace"), self._token.encode())

    def spend(self) -> None:
        """From now on it is worth nothing, and what was written is gone."""
        self._token = None
        if self._folder is not None:
            with suppress(OSError):
                rmtree(self._folder)
            self._folder = None


def leading_to(address: str, words: Child = "threadline is at this address.") -> str:
    """A page that goes on to an address by itself, without a script; and by hand where a browser does not."""
    onward = el("meta", http_equiv="refresh", content=f"0; url={address}")
    return str(
        frame("threadline", join((el("p", words), el("p", el("a", "Go on", href=address)))), kind="way", head=onward)
    )
