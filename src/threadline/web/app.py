"""The ASGI application: the table of routes, and the way of a request from the guard to a page function and back.

A request passes `Guard` (access control) and Starlette's router, and moves to a worker thread. There `App._respond`
takes an archive from the pool, calls the page function with a `PageRequest`, and builds the response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from threadline.errors import BadQuery, Error, NotFound
from threadline.model.times import parse_zone
from threadline.web import urls
from threadline.web.access import LINK_SECONDS
from threadline.web.errors import add_notice, error_response, gone_page, orphan_page
from threadline.web.guard import BROWSER_KEY, Guard, cookie_name
from threadline.web.live import Live
from threadline.web.pages.access import access_page, link_page, logged_out_page
from threadline.web.pages.annotations import apply_annotation, apply_search, notes_page
from threadline.web.pages.blame import blame_page
from threadline.web.pages.compare import compare_page
from threadline.web.pages.digest import digest_page
from threadline.web.pages.doctor import doctor_page
from threadline.web.pages.file_log import file_log_page
from threadline.web.pages.home import home_page
from threadline.web.pages.insight import waste_page, why_page
from threadline.web.pages.keys import keys_page
from threadline.web.pages.lists import calls_page, files_page
from threadline.web.pages.outcomes import outcomes_page
from threadline.web.pages.palette import palette_page
from threadline.web.pages.reports import blocks_page, errors_page, history_page, todos_page
from threadline.web.pages.search import search_page
from threadline.web.pages.sessions import sessions_page
from threadline.web.pages.time_zone import time_zone_page
from threadline.web.pages.tools import tools_page
from threadline.web.pages.usage import usage_page
from threadline.web.request import PageFunction, PageRequest, PageResult
from threadline.web.response import JSON_SUFFIX, build_response, find_asset, json_response
from threadline.web.session.agents import agents_page
from threadline.web.session.changes import changes_page
from threadline.web.session.cost import context_page, session_cost_page
from threadline.web.session.insight import session_outcomes_page, session_waste_page, session_why_page
from threadline.web.session.page import agent_entries_page, session_frame_page, session_page
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
    session_usage_page,
    state_page,
    turns_page,
)
from threadline.web.session.share import share_file_page, share_page
from threadline.web.session.timeline import timeline_page
from threadline.web.session_cache import SessionCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from threadline.archive import Archive
    from threadline.web.access import Access, Browser
    from threadline.web.archive_pool import ArchivePool

_MAX_CONCURRENT = 6
"""How many requests are answered at the same time; more would only compete for the same cores."""
_MAX_FORM_BYTES = 256 * 1024
_Endpoint = Callable[[Request], Awaitable[Response]]


class PageRoute(Struct, frozen=True):
    """A path, without `.json`, and the function that computes its page.

    `on_missing` may answer a `NotFound` with a page. `needs_homes` is set for pages about all sessions, which say so if
    a home has disappeared.
    """

    path: str
    page: PageFunction
    on_missing: Callable[[PageRequest, NotFound], PageResult | None] | None = None
    needs_homes: bool = False


_SESSION = f"{urls.SESSION}/{{session}}"
ROUTES: tuple[PageRoute, ...] = (
    PageRoute(urls.HOME, home_page, needs_homes=True),
    PageRoute(urls.SESSIONS, sessions_page, needs_homes=True),
    PageRoute(urls.SEARCH, search_page, needs_homes=True),
    PageRoute(urls.USAGE, usage_page, needs_homes=True),
    PageRoute(urls.CALLS, calls_page, needs_homes=True),
    PageRoute(urls.FILES, files_page, needs_homes=True),
    PageRoute(urls.FILE_LOG, file_log_page, needs_homes=True),
    PageRoute(urls.BLAME, blame_page, needs_homes=True),
    PageRoute(urls.WHY, why_page, needs_homes=True),
    PageRoute(urls.WASTE, waste_page, needs_homes=True),
    PageRoute(urls.OUTCOMES, outcomes_page, needs_homes=True),
    PageRoute(urls.TOOLS, tools_page, needs_homes=True),
    PageRoute(urls.DIGEST, digest_page, needs_homes=True),
    PageRoute(urls.COMPARE, compare_page, needs_homes=True),
    PageRoute(urls.ERRORS, errors_page, needs_homes=True),
    PageRoute(urls.BLOCKS, blocks_page, needs_homes=True),
    PageRoute(urls.HISTORY, history_page, needs_homes=True),
    PageRoute(urls.DOCTOR, doctor_page),
    PageRoute(urls.KEYS, keys_page),
    PageRoute(urls.TIME_ZONE, time_zone_page),
    PageRoute(urls.PALETTE, palette_page, needs_homes=True),
    PageRoute(_SESSION, session_page, on_missing=orphan_page),
    PageRoute(f"{_SESSION}/agent/{{agent}}", session_page, on_missing=orphan_page),
    PageRoute(f"{_SESSION}/agent/{{agent}}/entries", agent_entries_page),
    PageRoute(f"{_SESSION}/part/{{number}}", section_page),
    PageRoute(f"{_SESSION}/about", session_frame_page),
    PageRoute(f"{_SESSION}/shape", sections_page, on_missing=gone_page),
    PageRoute(f"{_SESSION}/where", position_page),
    PageRoute(f"{_SESSION}/turns", turns_page),
    PageRoute(f"{_SESSION}/entry/{{anchor}}", entry_page),
    PageRoute(f"{_SESSION}/call/{{call:path}}", call_page),
    PageRoute(f"{_SESSION}/state/{{anchor}}", state_page),
    PageRoute(f"{_SESSION}/image/{{anchor}}/{{number}}", image_page),
    PageRoute(f"{_SESSION}/find", find_page),
    PageRoute(f"{_SESSION}/markdown", markdown_page),
    PageRoute(f"{_SESSION}/along", session_usage_page),
    PageRoute(f"{_SESSION}/agents", agents_page),
    PageRoute(f"{_SESSION}/changes", changes_page),
    PageRoute(f"{_SESSION}/cost", session_cost_page),
    PageRoute(f"{_SESSION}/timeline", timeline_page),
    PageRoute(f"{_SESSION}/context/{{anchor}}", context_page),
    PageRoute(f"{_SESSION}/related", related_page),
    PageRoute(f"{_SESSION}/notes", notes_page),
    PageRoute(f"{_SESSION}/todos", todos_page),
    PageRoute(f"{_SESSION}/share", share_page),
    PageRoute(f"{_SESSION}/share/file", share_file_page),
    PageRoute(f"{_SESSION}/why", session_why_page),
    PageRoute(f"{_SESSION}/waste", session_waste_page),
    PageRoute(f"{_SESSION}/outcomes", session_outcomes_page),
)
"""All pages. Each also has a `.json` twin."""


class App:
    """The application. `asgi` is what a server runs; `live` sends events to open pages.

    `host` and `port` are those that it is reached at. The host gives the page cookies of its own.
    """

    def __init__(self, pool: ArchivePool, access: Access, *, host: str, port: int) -> None:
        self.live = Live(pool.homes)
        self._pool = pool
        self._access = access
        self._cookie = cookie_name(port)
        self._session_cache = SessionCache(on_reread=self.live.notify)
        self._limiter = CapacityLimiter(_MAX_CONCURRENT)
        router = Starlette(routes=list(self._routes()), lifespan=self._lifespan)
        self.asgi = Guard(router, access, host=host, port=port)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.live.stop()
            self._pool.close()
            self._access.log_out_all()

    def _routes(self) -> Iterator[Route]:
        yield Route(urls.LIVE, self._stream_events)
        for suffix in ("", JSON_SUFFIX):
            yield Route(urls.ACCESS + suffix, self._show_access)
            yield Route(urls.NEW_LINK + suffix, self._issue_link, methods=["POST"])
            yield Route(urls.ANNOTATE + suffix, self._annotate, methods=["POST"])
        yield Route(urls.SAVED_SEARCHES, self._save_search, methods=["POST"])
        for path in (urls.LOG_OUT, urls.LOG_OUT_ALL):
            yield Route(path, self._log_out, methods=["POST"])
        yield Route(f"{urls.ASSETS}/{{name}}", _asset)
        yield Route("/favicon.ico", _no_icon)
        for route in ROUTES:
            endpoint = self._endpoint(route)
            # The twin first: a name in a path may contain a dot, so the page's own path would match it, too.
            yield Route(urls.json_path(route.path), endpoint)
            yield Route(route.path, endpoint)
        yield Route("/{rest:path}", _unknown_path)

    async def _stream_events(self, request: Request) -> Response:
        browser = _browser_of(request)
        return await self.live.respond(request, lambda: browser is None or self._access.is_allowed(browser))

    async def _show_access(self, request: Request) -> Response:
        return build_response(access_page(self._access, _browser_of(request)), request.url.path)

    async def _issue_link(self, request: Request) -> Response:
        """Issue a link to the address that the browser uses, whose port may be forwarded."""
        browser = _browser_of(request)
        origin = None if browser is None else f"http://{request.headers['host'].lower()}"
        url = self._access.new_url(origin=origin, seconds=LINK_SECONDS)
        return build_response(link_page(url), request.url.path)

    async def _log_out(self, request: Request) -> Response:
        browser = _browser_of(request)
        if request.url.path == urls.LOG_OUT_ALL:
            self._access.log_out_all()
        elif browser is not None:
            self._access.log_out(browser)
        response = logged_out_page()
        response.delete_cookie(self._cookie, path="/", httponly=True, samesite="strict")
        return response

    async def _annotate(self, request: Request) -> Response:
        return await self._change(request, apply_annotation)

    async def _save_search(self, request: Request) -> Response:
        return await self._change(request, lambda values: (None, apply_search(values)))

    async def _change(self, request: Request, apply: Callable[[dict[str, str]], tuple[Any, str]]) -> Response:
        """Apply the values of a form, and go back to the page that it came from."""
        path = request.url.path
        try:
            values = await _read_form(request)
            value, back = await to_thread.run_sync(apply, values, limiter=self._limiter)
        except Exception as error:  # noqa: BLE001 - no error may stop the server
            return error_response(error, path)
        if path.endswith(JSON_SUFFIX):
            return json_response(value)
        return RedirectResponse(back, HTTPStatus.SEE_OTHER)

    def _endpoint(self, route: PageRoute) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            return await to_thread.run_sync(
                self._respond, route, request, limiter=self._limiter, abandon_on_cancel=True
            )

        return endpoint

    def _respond(self, route: PageRoute, request: Request) -> Response:
        """Answer a request in a worker thread."""
        path = request.url.path
        is_bare = "x-fragment" in request.headers or request.headers.get("sec-fetch-dest") == "empty"

        def compute(archive: Archive) -> PageResult:
            page_request = PageRequest(
                path=urls.HOME if path == urls.json_path(urls.HOME) else path.removesuffix(JSON_SUFFIX),
                query=request.query_params.multi_items(),
                archive=archive,
                pool=self._pool,
                session_cache=self._session_cache,
                path_values={name: urls.unescape_segment(part) for name, part in request.path_params.items()},
                now=datetime.now(UTC),
                wants_data=path.endswith(JSON_SUFFIX),
            )
            try:
                return route.page(page_request)
            except NotFound as error:
                page = route.on_missing(page_request, error) if route.on_missing is not None else None
                if page is None:
                    raise
                return page

        with urls.carry_query(*_carried_zone(request)):
            try:
                notice = self._pool.missing_homes_notice() if route.needs_homes else None
                result = self._pool.run(compute)
                return build_response(add_notice(result, notice) if notice else result, path, bare=is_bare)
            except Exception as error:  # noqa: BLE001 - no error may stop the server
                return error_response(error, path)


async def _read_form(request: Request) -> dict[str, str]:
    """The values of a form that a browser or script sends; of a repeated one, the last.

    Raises:
        BadQuery: it is too long.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            raise BadQuery("This form is too long.")
    return dict(parse_qsl(body.decode("utf-8", errors="replace"), keep_blank_values=True, max_num_fields=50))


def _browser_of(request: Request) -> Browser | None:
    browser: Browser | None = request.scope[BROWSER_KEY]
    return browser


def _carried_zone(request: Request) -> list[tuple[str, str]]:
    """The time zone of the request, which links carry over; an unknown one is dropped, or every link would fail."""
    name = (request.query_params.get("tz") or "").strip()
    try:
        parse_zone(name or None)
    except BadQuery:
        return []
    return [("tz", name)] if name else []


async def _asset(request: Request) -> Response:
    try:
        asset = find_asset(request.path_params["name"])
    except Error as error:
        return error_response(error, request.url.path)
    return Response(asset.data, media_type=asset.media_type)


async def _no_icon(_request: Request) -> Response:
    return Response(status_code=204)


async def _unknown_path(request: Request) -> Response:
    return error_response(NotFound("There is no page at this URL."), request.url.path)
