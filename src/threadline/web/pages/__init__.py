"""The pages but the session's: which function makes which."""

from __future__ import annotations

from collections.abc import Mapping

from threadline.web import urls
from threadline.web.pages.doctor import doctor
from threadline.web.pages.home import home
from threadline.web.pages.lists import calls, files, keys_page
from threadline.web.pages.search import search
from threadline.web.pages.sessions import palette, sessions
from threadline.web.pages.usage import usage
from threadline.web.request import PageFunction

PAGES: Mapping[str, PageFunction] = {
    urls.HOME: home,
    urls.SESSIONS: sessions,
    urls.SEARCH: search,
    urls.USAGE: usage,
    urls.CALLS: calls,
    urls.FILES: files,
    urls.DOCTOR: doctor,
    urls.KEYS: keys_page,
    urls.PALETTE: palette,
}
"""Paths without `.json`, and who makes what is shown there. Paths are those of `web/addresses.py`."""
