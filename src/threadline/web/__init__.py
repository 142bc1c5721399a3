"""The local web page: a read-only server for one person on one machine. It needs the extra `web`.

`serve` runs it: an `App` behind access control (`guard`, `Access`), for the homes of an `ArchivePool`. A page is a
function from a `PageRequest` to a `Page`, and has a `.json` twin; `app.ROUTES` lists them all. `pages/` has the pages
about all sessions, `session/` those of one session. `serve_app` runs another application, behind a `Guard` of its own.

`ArchivePool` keeps archives open between requests, `SessionCache` keeps sessions in memory. Each documents in one place
how long its values are valid. `Live` tells open pages about changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.web.access import IDLE_SECONDS, MAX_SECONDS, Access
    from threadline.web.app import ROUTES, App
    from threadline.web.archive_pool import ArchivePool
    from threadline.web.guard import Guard, cookie_name
    from threadline.web.live import Live
    from threadline.web.pages.keys import KEYS, keys_markdown_table
    from threadline.web.request import Page, PageRequest
    from threadline.web.server import RunningServer, choose_host_name, serve, serve_app
    from threadline.web.session_cache import CachedSession, SessionCache

export_lazily(
    __name__,
    {
        "access": ["Access", "IDLE_SECONDS", "MAX_SECONDS"],
        "app": ["App", "ROUTES"],
        "archive_pool": ["ArchivePool"],
        "guard": ["Guard", "cookie_name"],
        "live": ["Live"],
        "pages.keys": ["KEYS", "keys_markdown_table"],
        "request": ["Page", "PageRequest"],
        "server": ["RunningServer", "choose_host_name", "serve", "serve_app"],
        "session_cache": ["CachedSession", "SessionCache"],
    },
)
