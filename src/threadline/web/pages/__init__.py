"""The pages but the session's: which function makes which."""

from __future__ import annotations

from collections.abc import Mapping

from threadline.web import addresses
from threadline.web.page import Make
from threadline.web.pages.calls import calls
from threadline.web.pages.doctor import doctor
from threadline.web.pages.files import files
from threadline.web.pages.home import home
from threadline.web.pages.keys import keys
from threadline.web.pages.palette import palette
from threadline.web.pages.search import search
from threadline.web.pages.sessions import sessions
from threadline.web.pages.usage import usage

PAGES: Mapping[str, Make] = {
    addresses.HOME: home,
    addresses.SESSIONS: sessions,
    addresses.SEARCH: search,
    addresses.USAGE: usage,
    addresses.CALLS: calls,
    addresses.FILES: files,
    addresses.DOCTOR: doctor,
    addresses.KEYS: keys,
    addresses.PALETTE: palette,
}
"""Paths without `.json`, and who makes what is shown there. Paths are those of `web/addresses.py`."""
