"""A session's addresses: what lies at and below `/session/ID`, and who makes it."""

from __future__ import annotations

from collections.abc import Mapping

from threadline.web.lost import unless_gone
from threadline.web.orphan import or_orphans
from threadline.web.page import Make
from threadline.web.session_page import about, session_page
from threadline.web.session_parts import (
    along_page,
    as_markdown,
    call,
    entry,
    found_in,
    image,
    listed_turns,
    part,
    related,
    shaped,
    stated,
    where,
)

BELOW: Mapping[str, Make] = {
    "": or_orphans(session_page),
    "/agent/{agent}": or_orphans(session_page),
    "/part/{number}": part,
    "/about": about,
    "/shape": unless_gone(shaped),
    "/where": where,
    "/turns": listed_turns,
    "/entry/{anchor}": entry,
    "/call/{call:path}": call,
    "/state/{anchor}": stated,
    "/image/{anchor}/{number}": image,
    "/find": found_in,
    "/markdown": as_markdown,
    "/along": along_page,
    "/related": related,
}
"""Paths below a session's, and who makes what is shown there."""
