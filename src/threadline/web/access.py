"""Who may use the page: links that work once, the browsers that they let in, and the token for scripts.

A link contains a token that works once, so nothing in a browser's history, in a terminal or in a chat lets anyone in
again. The browser that opens it gets a cookie with another random value. Everything is kept in memory, and is invalid
as soon as the server stops.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from msgspec import Struct

from threadline.render.html import el, join, render_page

IDLE_SECONDS = 12 * 3600.0
"""How long a browser may stay away before it has to open a new link."""
MAX_SECONDS = 7 * 86400.0
"""How long a browser may use the page in total."""
LINK_SECONDS = 600.0
"""How long a link that was created on the page is valid. The printed one is valid as long as an idle browser."""
_MAX_BROWSERS, _MAX_LINKS, _MAX_SPENT = 64, 64, 1024
_FILE_NAME = "open.html"


class Browser(Struct):
    """A browser that was let in. `cookie` is the value of its cookie; times are in seconds since 1970."""

    cookie: str
    started: float
    last_request: float


class Link(Struct, frozen=True):
    """A link that works once. `folder` contains the file that leads a browser to it, if there is one."""

    token: str
    expires: float
    folder: Path | None = None

    @property
    def is_from_file(self) -> bool:
        """Whether a browser comes to it from a file. For the browser, that is another site."""
        return self.folder is not None


class Access:
    """Issues links, lets browsers in, and forgets them when they log out or expire.

    `origin` is the address of the server without a path. `idle_seconds` is how long a browser may stay away.
    """

    def __init__(
        self,
        origin: str,
        *,
        idle_seconds: float = IDLE_SECONDS,
        api_token: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.origin = origin
        self.idle_seconds = idle_seconds
        self._api_token = api_token
        self._clock = clock
        self._lock = threading.Lock()  # the terminal issues links from a thread of its own
        self._links: list[Link] = []
        self._browsers: list[Browser] = []
        self._spent_tokens: deque[str] = deque(maxlen=_MAX_SPENT)

    def new_url(self, *, origin: str | None = None, seconds: float | None = None) -> str:
        """Issue a link. By default it is valid for as long as a browser may stay away."""
        return f"{origin or self.origin}/?token={self._issue(seconds, None).token}"

    def write_file(self) -> Path:
        """Write a private file that leads a browser to the server by a link of its own.

        A browser's command line can be read by every user of the machine, so it must not contain a link. The file is
        in a folder of its own; no other user may read either. It is removed when the link was used.

        Raises:
            OSError: it cannot be written.
        """
        folder = Path(mkdtemp(prefix="threadline-"))  # private, whatever the umask is
        link = self._issue(None, folder)
        page = folder / _FILE_NAME
        page.touch(mode=0o600)
        page.write_text(redirect_page(f"{self.origin}/?token={link.token}"), encoding="utf-8")
        return page

    def find_link(self, token: str) -> Link | None:
        """The link with a token, if it is still valid."""
        with self._lock:
            self._remove_expired()
            return next((link for link in self._links if _is_equal(link.token, token)), None)

    def is_spent(self, token: str) -> bool:
        """Whether a token belonged to a link that was used or has expired."""
        with self._lock:
            self._remove_expired()
            return any(_is_equal(spent, token) for spent in self._spent_tokens)

    def redeem(self, link: Link, browser: Browser | None = None) -> Browser | None:
        """Use up a link and let a browser in; None if the link was used before. `browser` was let in before."""
        with self._lock:
            if link not in self._links:
                return None
            self._drop(link)
            if browser is not None:
                return browser
            now = self._clock()
            browser = Browser(secrets.token_urlsafe(32), now, now)
            self._browsers.append(browser)
            self._browsers.sort(key=lambda browser: browser.last_request)
            del self._browsers[:-_MAX_BROWSERS]
            return browser

    def find_browser(self, cookie: str) -> Browser | None:
        """The browser with a cookie. This counts as a request of it."""
        with self._lock:
            self._remove_expired()
            browser = next((browser for browser in self._browsers if _is_equal(browser.cookie, cookie)), None)
            if browser is not None:
                browser.last_request = self._clock()
            return browser

    def is_allowed(self, browser: Browser) -> bool:
        """Whether a browser is still let in. This does not count as a request."""
        with self._lock:
            self._remove_expired()
            return any(known is browser for known in self._browsers)

    def is_api_token(self, token: str) -> bool:
        """Whether a text is the token for scripts."""
        return self._api_token is not None and _is_equal(self._api_token, token)

    def count_browsers(self) -> int:
        """How many browsers are let in."""
        with self._lock:
            self._remove_expired()
            return len(self._browsers)

    def expiry(self, browser: Browser) -> float:
        """When a browser will have to open a new link, if it sends no further request."""
        return min(browser.last_request + self.idle_seconds, browser.started + MAX_SECONDS)

    def log_out(self, browser: Browser) -> None:
        """Forget a browser. A link that it asked for stays valid: people create one and then log out here."""
        with self._lock:
            self._browsers = [known for known in self._browsers if known is not browser]

    def log_out_all(self) -> None:
        """Forget all browsers and all links."""
        with self._lock:
            self._browsers.clear()
            for link in list(self._links):
                self._drop(link)

    def _issue(self, seconds: float | None, folder: Path | None) -> Link:
        expires = self._clock() + (self.idle_seconds if seconds is None else seconds)
        link = Link(secrets.token_urlsafe(24), expires, folder)
        with self._lock:
            self._remove_expired()
            if len(self._links) >= _MAX_LINKS:
                self._drop(self._links[0])
            self._links.append(link)
        return link

    def _drop(self, link: Link) -> None:
        """Make a link invalid and remove its file."""
        self._links.remove(link)
        self._spent_tokens.append(link.token)
        if link.folder is not None:
            with suppress(OSError):
                rmtree(link.folder)

    def _remove_expired(self) -> None:
        now = self._clock()
        for link in [link for link in self._links if link.expires <= now]:
            self._drop(link)
        if any(self.expiry(browser) <= now for browser in self._browsers):
            self._browsers = [browser for browser in self._browsers if self.expiry(browser) > now]


def redirect_page(url: str) -> str:
    """A page that redirects to a URL without a script. It has a link for browsers that do not follow the redirect."""
    refresh = el("meta", http_equiv="refresh", content=f"0; url={url}")
    main = join((el("p", "threadline is at this address."), el("p", el("a", "Continue", href=url))))
    return str(render_page("threadline", main, kind="way", head=refresh))


def _is_equal(secret: str, text: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(text.encode(errors="replace"), secret.encode())
