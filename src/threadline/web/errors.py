"""What pages show if something is missing or fails: errors, sessions that are gone, homes that have disappeared."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING

from msgspec.structs import replace
from starlette.responses import Response

from threadline.errors import Ambiguous, BadQuery, Error, IndexBusy, NotFound, Unreadable
from threadline.files import escape_path
from threadline.model.homes import TranscriptKind
from threadline.render import agent_slug, shorten, visible
from threadline.render.html import el, join, with_code
from threadline.web import urls
from threadline.web.request import Page, PageResult, Redirect
from threadline.web.response import JSON_SUFFIX, build_response, json_response

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

_LOG = logging.getLogger("threadline")
_STATUS_OF_ERROR: dict[type[Exception], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    BadQuery: HTTPStatus.BAD_REQUEST,
    Unreadable: HTTPStatus.SERVICE_UNAVAILABLE,
    IndexBusy: HTTPStatus.SERVICE_UNAVAILABLE,
}


def error_response(error: Exception, path: str) -> Response:
    """Build the response for an error, as a page or as data.

    It shows the text of threadline's own errors. Other errors are only logged, on the terminal of the server.
    """
    status = next((status for kind, status in _STATUS_OF_ERROR.items() if isinstance(error, kind)), None)
    if isinstance(error, Error):
        message = str(error)
    else:
        _LOG.error("threadline: cannot show %s.", path, exc_info=error)
        message = "This page failed. The terminal in which `threadline serve` runs shows the reason."
    status = status or HTTPStatus.INTERNAL_SERVER_ERROR
    if path.endswith(JSON_SUFFIX):
        return json_response({"error": message}, status)
    lines = [el("p", with_code(visible(line))) for line in message.split("\n")]
    main = join((el("h1", status.phrase), *lines, el("p", el("a", "Home", href=urls.build_url(urls.HOME)))))
    return build_response(Page(status.phrase, "error", main, status=status), path)


def add_notice(result: PageResult, notice: str) -> PageResult:
    """Put a notice at the top of a page."""
    if not isinstance(result, Page):
        return result
    return replace(result, main=join((el("p", visible(notice), class_="problem", role="status"), result.main)))


def gone_page(request: PageRequest, error: NotFound) -> PageResult | None:
    """Answer an open page (`seen=1`) whose session has been deleted: for its script, that is not an error."""
    if not request.flag("seen"):
        return None
    message = "This session no longer exists. This page shows what was loaded before."
    return Page("Gone", "gone", el("p", visible(str(error))), {"gone": message})


def orphan_page(request: PageRequest, error: NotFound) -> PageResult | None:
    """For a session whose main transcript is gone, list its agents; with one agent, redirect to it.

    For an id that several sessions have, list them.
    """
    if isinstance(error, Ambiguous):
        return _choice_page(request)
    session, agent = request.path_values["session"].lower(), request.path_values.get("agent")
    transcripts = [
        transcript
        for home in request.archive.found
        for transcript in home.transcripts
        if (transcript.session or "").lower() == session
    ]
    if any(transcript.kind is TranscriptKind.MAIN for transcript in transcripts):  # something else is missing
        return None
    agents = sorted({str(transcript.agent) for transcript in transcripts if transcript.agent is not None})
    if agent is not None:
        agents = [id_ for id_ in agents if agent_slug(id_) == agent]
    if not agents:
        return None
    if len(agents) == 1:
        at = request.text("at")
        line = at.removeprefix(f"{agent_slug(agents[0])}.") if at is not None else None
        return Redirect(urls.session_url(f"agent-{agents[0]}", at=line))
    links = [el("a", shorten(id_, 80), href=urls.session_url(f"agent-{id_}")) for id_ in agents]
    note = el("p", "The transcript of this session no longer exists, but those of its agents do.")
    title = f"Session {shorten(session, 80)}"
    main = join((el("h1", title), note, el("ul", *(el("li", link) for link in links))))
    return Page(title, "left", main, {"session": session, "agents": agents})


def _choice_page(request: PageRequest) -> PageResult | None:
    """List the sessions that have the requested id, in several folders or homes."""
    name = request.path_values["session"]
    briefs = [brief for brief in request.archive.open_index().sessions() if brief.id == name]
    if not briefs:
        return None
    at = request.text("at")
    items = [
        el("li", el("a", shorten(escape_path(brief.path), 300), href=urls.session_url(brief.name, at=at)))
        for brief in briefs
    ]
    title = f"{len(briefs):,} sessions have the id {shorten(name, 80)}"
    choices = [{"address": urls.session_url(brief.name), "path": escape_path(brief.path)} for brief in briefs]
    main = join((el("h1", title), el("ul", *items)))
    return Page(title, "left", main, {"session": name, "choices": choices}, status=HTTPStatus.MULTIPLE_CHOICES)
