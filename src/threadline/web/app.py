"""The ASGI application: routes, page functions and the guard in front of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threadline.errors import BadQuery, Error, NotFound
from threadline.model.times import parse_zone
from threadline.web.assets import find_asset
from threadline.web.errors import gone_as_page, needs_homes, with_notice, with_orphan_links
from threadline.web.guard import Guard
from threadline.web.live import Live
from threadline.web.pages import PAGES
from threadline.web.request import PageFunction, PageRequest
from threadline.web.response import JSON_SUFFIX, build_response, error_response
from threadline.web.session.page import session_page, session_surroundings
from threadline.web.session.parts import (
    call_page,
    entry_page,
    find_page,
    image_page,
    markdown_page,
    position_page,
    related_page,
    section_page,
    sections_page,
    state_page,
    turns_page,
    usage_page,
)
from threadline.web.session_cache import SessionCache
from threadline.web.urls import ASSETS, HOME, LIVE, SESSION, carry_query, json_path, unescape_segment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from threadline.web.archive_pool import ArchivePool
    from threadline.web.guard import Ticket
    from threadline.web.request import PageResult

_MAX_CONCURRENT = 6
"""How many answers are made at the same time: more would only share the same cores."""
_Endpoint = Callable[[Request], Awaitable[Response]]


class App:
    """The server's application: for the homes that are held, whoever has the token, and the port it is reached at."""

    def __init__(self, holding: ArchivePool, *, token: str, port: int, ticket: Ticket | None = None) -> None:
        self._holding = holding
        self._ticket = ticket
        self.live = Live(holding.homes)
        self._shelf = SessionCache(changed=self.live.tell)
        self._limiter: CapacityLimiter | None = None
        made = Starlette(routes=list(self._routes()), lifespan=self._lifespan)
        self._guard = Guard(made, token=token, port=port, ticket=ticket)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guard(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.live.stop()
            self._holding.close()
            if self._ticket is not None:
                self._ticket.spend()

    def _routes(self) -> Iterator[Route]:
        yield Route(LIVE, self.live.answer)
        yield Route(f"{ASSETS}/{{name}}", _asset)
        yield Route("/favicon.ico", _no_icon)
        for path, make in (
            *PAGES.items(),
            *((f"{SESSION}/{{session}}{below}", make) for below, make in SESSION_PAGES.items()),
        ):
            endpoint = self._answering(make)
            # The twin first: a name in a path may hold a dot, so that it would fit the other, too.
            yield Route(json_path(path), endpoint)
            yield Route(path, endpoint)
        yield Route("/{rest:path}", _not_found)

    def _answering(self, make: PageFunction) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            if self._limiter is None:  # it belongs to the loop that runs
                self._limiter = CapacityLimiter(_MAX_CONCURRENT)
            work = partial(self._answered, make, request)
            return await to_thread.run_sync(work, limiter=self._limiter, abandon_on_cancel=True)

        return endpoint

    def _answered(self, make: PageFunction, request: Request) -> Response:
        is_bare = "x-fragment" in request.headers or request.headers.get("sec-fetch-dest") == "empty"
        with carry_query(*_carried_zone(request)):
            return build_response(partial(self._made, make, request), request.url.path, bare=is_bare)

    def _made(self, make: PageFunction, request: Request) -> PageResult:
        path = request.url.path
        page = HOME if path == json_path(HOME) else path.removesuffix(JSON_SUFFIX)
        lost = self._holding.lost() if needs_homes(page) else None
        made = self._holding.ask(
            lambda archive: make(
                PageRequest(
                    path=page,
                    query=request.query_params.multi_items(),
                    archive=archive,
                    session_cache=self._shelf,
                    named={name: unescape_segment(part) for name, part in request.path_params.items()},
                    now=datetime.now(UTC),
                    wants_data=path.endswith(JSON_SUFFIX),
                )
            )
        )
        return with_notice(made, lost) if lost is not None else made


def _carried_zone(request: Request) -> list[tuple[str, str]]:
    """The zone that was asked for goes along from page to page; what is none would only lead to errors."""
    name = (request.query_params.get("tz") or "").strip()
    try:
        parse_zone(name or None)
    except BadQuery:
        return []
    return [("tz", name)] if name else []


async def _asset(request: Request) -> Response:
    try:
        found = find_asset(request.path_params["name"])
    except Error as error:
        return error_response(error, request.url.path)
    return Response(found.data, media_type=found.media_type)


async def _no_icon(_request: Request) -> Response:
    return Response(status_code=204)


async def _not_found(request: Request) -> Response:
    return error_response(NotFound("There is no page at this address."), request.url.path)


SESSION_PAGES: Mapping[str, PageFunction] = {
    "": with_orphan_links(session_page),
    "/agent/{agent}": with_orphan_links(session_page),
    "/part/{number}": section_page,
    "/about": session_surroundings,
    "/shape": gone_as_page(sections_page),
    "/where": position_page,
    "/turns": turns_page,
    "/entry/{anchor}": entry_page,
    "/call/{call:path}": call_page,
    "/state/{anchor}": state_page,
    "/image/{anchor}/{number}": image_page,
    "/find": find_page,
    "/markdown": markdown_page,
    "/along": usage_page,
    "/related": related_page,
}
"""Paths below a session's, and who makes what is shown there."""
