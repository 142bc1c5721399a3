"""The ASGI application: the table of routes, and the way of a request from the guard to a page function and back.

A request passes `Guard` (access control) and Starlette's router, and moves to a worker thread. There `App._respond`
takes an archive from the pool, calls the page function with a `PageRequest`, and builds the response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote

from anyio import CancelScope, CapacityLimiter, to_thread
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from threadline.errors import BadQuery, Error, NotFound
from threadline.model.times import parse_zone, zone_name
from threadline.web import urls
from threadline.web.access import LINK_SECONDS
from threadline.web.background_process import BackgroundProcess
from threadline.web.errors import add_notice, error_response, gone_page, orphan_page
from threadline.web.guard import BROWSER_KEY, Guard, cookie_name
from threadline.web.live import Live
from threadline.web.pages.access import access_page, link_page, logged_out_page
from threadline.web.pages.annotations import apply_annotation, apply_search
from threadline.web.request import PageFunction, PageRequest, PageResult
from threadline.web.response import JSON_SUFFIX, asset_response, build_response, json_response
from threadline.web.session_cache import SessionCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from threadline.web.access import Access, Browser
    from threadline.web.archive_pool import ArchivePool, ReservedFigure
    from threadline.web.session.shared_file import SharedFile, SharePlan

_MAX_CONCURRENT = 6
"""How many requests are answered at the same time; more would only compete for the same cores."""
_MAX_FORM_BYTES = 256 * 1024
_MAX_FORM_VALUES = 50
_ZONE_COOKIE = "threadline-zone"
_MAX_ZONE_NAME = 80
_T = TypeVar("_T")
_Endpoint = Callable[[Request], Awaitable[Response]]


class PageRoute(Struct, frozen=True):
    """A path, without `.json`, and the function that computes its page: `module:function` in `threadline.web`.

    The module is imported when the page is first requested, so a server that only shows sessions does not load what
    exports and reports need.

    `on_missing` may answer a `NotFound` with a page. `needs_homes` is set for pages about all sessions, which say so if
    a home has disappeared.
    """

    path: str
    function: str
    on_missing: Callable[[PageRequest, NotFound], PageResult | None] | None = None
    needs_homes: bool = False

    @property
    def page(self) -> PageFunction:
        """The function."""
        module, _, name = self.function.partition(":")
        function: PageFunction = getattr(import_module(f"threadline.web.{module}"), name)
        return function


_SESSION = f"{urls.SESSION}/{{session}}"
ROUTES: tuple[PageRoute, ...] = (
    PageRoute(urls.HOME, "pages.home:home_page", needs_homes=True),
    PageRoute(urls.SESSIONS, "pages.sessions:sessions_page", needs_homes=True),
    PageRoute(urls.SEARCH, "pages.search:search_page", needs_homes=True),
    PageRoute(urls.USAGE, "pages.usage:usage_page", needs_homes=True),
    PageRoute(urls.CALLS, "pages.lists:calls_page", needs_homes=True),
    PageRoute(urls.FILES, "pages.lists:files_page", needs_homes=True),
    PageRoute(urls.FILE_LOG, "pages.file_log:file_log_page", needs_homes=True),
    PageRoute(urls.BLAME, "insight.blame:blame_page", needs_homes=True),
    PageRoute(urls.WHY, "insight.why:why_page", needs_homes=True),
    PageRoute(urls.WASTE, "insight.waste:waste_page", needs_homes=True),
    PageRoute(urls.OUTCOMES, "insight.outcomes:outcomes_page", needs_homes=True),
    PageRoute(urls.TOOLS, "insight.tools:tools_page", needs_homes=True),
    PageRoute(urls.DIGEST, "insight.digest:digest_page", needs_homes=True),
    PageRoute(urls.COMPARE, "pages.compare:compare_page", needs_homes=True),
    PageRoute(urls.ERRORS, "pages.reports:errors_page", needs_homes=True),
    PageRoute(urls.BLOCKS, "pages.reports:blocks_page", needs_homes=True),
    PageRoute(urls.HISTORY, "pages.reports:history_page", needs_homes=True),
    PageRoute(urls.RECEIPT, "pages.receipt:receipt_page", needs_homes=True),
    PageRoute(urls.DOCTOR, "pages.doctor:doctor_page"),
    PageRoute(urls.KEYS, "pages.keys:keys_page"),
    PageRoute(urls.TIME_ZONE, "pages.time_zone:time_zone_page"),
    PageRoute(urls.PALETTE, "pages.palette:palette_page", needs_homes=True),
    PageRoute(_SESSION, "session.page:session_page", on_missing=orphan_page),
    PageRoute(f"{_SESSION}/agent/{{agent}}", "session.page:session_page", on_missing=orphan_page),
    PageRoute(f"{_SESSION}/agent/{{agent}}/entries", "session.page:agent_entries_page"),
    PageRoute(f"{_SESSION}/part/{{number}}", "session.parts:section_page"),
    PageRoute(f"{_SESSION}/about", "session.page:session_frame_page"),
    PageRoute(f"{_SESSION}/shape", "session.parts:sections_page", on_missing=gone_page),
    PageRoute(f"{_SESSION}/where", "session.parts:position_page"),
    PageRoute(f"{_SESSION}/turns", "session.parts:turns_page"),
    PageRoute(f"{_SESSION}/entry/{{anchor}}", "session.parts:entry_page"),
    PageRoute(f"{_SESSION}/call/{{call:path}}", "session.parts:call_page"),
    PageRoute(f"{_SESSION}/state/{{anchor}}", "session.parts:state_page"),
    PageRoute(f"{_SESSION}/image/{{anchor}}/{{number}}", "session.parts:image_page"),
    PageRoute(f"{_SESSION}/find", "session.parts:find_page"),
    PageRoute(f"{_SESSION}/markdown", "session.share:markdown_page"),
    PageRoute(f"{_SESSION}/along", "session.parts:session_usage_page"),
    PageRoute(f"{_SESSION}/agents", "session.agents:agents_page"),
    PageRoute(f"{_SESSION}/changes", "session.changes:changes_page"),
    PageRoute(f"{_SESSION}/cost", "session.cost:session_cost_page"),
    PageRoute(f"{_SESSION}/timeline", "session.timeline:timeline_page"),
    PageRoute(f"{_SESSION}/context/{{anchor}}", "session.cost:context_page"),
    PageRoute(f"{_SESSION}/related", "session.parts:related_page"),
    PageRoute(f"{_SESSION}/notes", "pages.annotations:notes_page"),
    PageRoute(f"{_SESSION}/todos", "pages.reports:todos_page"),
    PageRoute(f"{_SESSION}/share", "session.share:share_page"),
    PageRoute(f"{_SESSION}/share/file", "session.share:share_file_page"),
    PageRoute(f"{_SESSION}/why", "session.insight:session_why_page"),
    PageRoute(f"{_SESSION}/waste", "session.insight:session_waste_page"),
    PageRoute(f"{_SESSION}/outcomes", "session.insight:session_outcomes_page"),
)
"""All pages. Each also has a `.json` twin."""
LAKE_ROUTES: tuple[PageRoute, ...] = (
    PageRoute(urls.HOME, "pages.lake:lake_home_page"),
    PageRoute(urls.SESSIONS, "pages.lake:lake_sessions_page"),
    PageRoute(urls.SEARCH, "pages.lake:lake_search_page"),
    PageRoute(urls.USAGE, "pages.lake:lake_usage_page"),
    PageRoute(urls.PALETTE, "pages.palette:palette_page"),
    *(route for route in ROUTES if route.path in {urls.KEYS, urls.TIME_ZONE} or route.path.startswith(_SESSION)),
)
"""The pages of a lake. A session is downloaded before its page is computed."""


class App:
    """The application. `asgi` is what a server runs; `live` sends events to open pages.

    `host` and `port` are those that it is reached at. The host gives the page cookies of its own.
    """

    def __init__(self, pool: ArchivePool, access: Access, *, host: str, port: int) -> None:
        self.live = Live(pool.homes, on_change=pool.expire)
        self._pool = pool
        self._access = access
        self._routes = ROUTES if pool.lake is None else LAKE_ROUTES
        self._pages = frozenset((urls.ACCESS, *(route.path for route in self._routes)))
        self._cookie = cookie_name(port)
        self._session_cache = SessionCache(on_reread=self.live.notify)
        self._limiter = CapacityLimiter(_MAX_CONCURRENT)
        self._background = BackgroundProcess()
        router = Starlette(routes=list(self._list_routes()), lifespan=self._lifespan)

        async def route(scope: Scope, receive: Receive, send: Send) -> None:
            with urls.offer_pages(self._pages):
                await router(scope, receive, send)

        self.asgi = Guard(route, access, host=host, port=port)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.live.stop()
            self._pool.close()
            self._access.log_out_all()

    def _list_routes(self) -> Iterator[Route]:
        yield Route(urls.LIVE, self._stream_events)
        for suffix in ("", JSON_SUFFIX):
            yield Route(urls.ACCESS + suffix, self._show_access)
            yield Route(urls.NEW_LINK + suffix, self._issue_link, methods=["POST"])
            yield Route(urls.ANNOTATE + suffix, self._annotate, methods=["POST"])
        yield Route(urls.SAVED_SEARCHES, self._save_search, methods=["POST"])
        for path in (urls.LOG_OUT, urls.LOG_OUT_ALL):
            yield Route(path, self._log_out, methods=["POST"])
        for path in ("{name}", "{version}/{name}"):
            yield Route(f"{urls.ASSETS}/{path}", _asset)
        yield Route("/favicon.ico", _no_icon)
        yield Route(f"{_SESSION}/share/prepare", self._prepare_share)
        for route in self._routes:
            endpoint = self._endpoint(route)
            # The twin first: a name in a path may contain a dot, so the page's own path would match it, too.
            yield Route(urls.json_path(route.path), endpoint)
            yield Route(route.path, endpoint)
        yield Route("/{rest:path}", _unknown_path)

    async def _stream_events(self, request: Request) -> Response:
        browser = _browser_of(request)
        return await self.live.respond(request, lambda: browser is None or self._access.is_allowed(browser))

    async def _show_access(self, request: Request) -> Response:
        zone = parse_zone(_default_zone(request))
        page = access_page(self._access, _browser_of(request), zone)
        return build_response(page, request.url.path, default_zone=zone_name(zone))

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
        return await self._change(request, lambda values: apply_annotation(values, self._has_session))

    def _has_session(self, id_: str) -> bool:
        """Whether a session has this id. A prefix or a path is not an id."""
        if self._pool.lake is not None:
            return id_ in self._pool.lake.state.known_sessions((id_,))
        return self._pool.run(lambda archive: self._session_cache.has_session(id_, archive))

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

        def compute(page_request: PageRequest) -> PageResult:
            try:
                return route.page(page_request)
            except NotFound as error:
                page = route.on_missing(page_request, error) if route.on_missing is not None else None
                if page is None:
                    raise
                return page

        carried = _carried_zone(request)
        with urls.carry_query(*carried):
            try:
                notice = self._pool.missing_homes_notice() if route.needs_homes else None
                result = self._compute(compute, request)
                return build_response(
                    add_notice(result, notice) if notice else result,
                    path,
                    bare=is_bare,
                    default_zone=None if carried else zone_name(parse_zone(_default_zone(request))),
                )
            except Exception as error:  # noqa: BLE001 - no error may stop the server
                return error_response(error, path)

    def _compute(self, compute: Callable[[PageRequest], _T], request: Request) -> _T:
        """What a function makes of a request, for which it gets an archive."""
        path = request.url.path
        path_values = {name: urls.unescape_segment(part) for name, part in request.path_params.items()}
        if self._pool.lake is not None and "session" in path_values:
            path_values["session"] = self._pool.lake.fetch(path_values["session"])
        return self._pool.run(
            lambda archive: compute(
                PageRequest(
                    path=urls.HOME if path == urls.json_path(urls.HOME) else path.removesuffix(JSON_SUFFIX),
                    query=request.query_params.multi_items(),
                    archive=archive,
                    pool=self._pool,
                    session_cache=self._session_cache,
                    path_values=path_values,
                    now=datetime.now(UTC),
                    wants_data=path.endswith(JSON_SUFFIX),
                    default_zone=_default_zone(request),
                )
            )
        )

    async def _prepare_share(self, request: Request) -> Response:
        """Export a session before the reader asks for it, as long as the request stays open.

        If the reader opens the page of the file meanwhile, that waits for it, and the export goes on.
        """
        try:
            with CancelScope(shield=True):  # what was reserved must reach the block that ends it
                prepared = await to_thread.run_sync(self._compute, _plan_preparation, request, limiter=self._limiter)
            if prepared is not None:
                plan, reserved = prepared
                with reserved:
                    file = await self._background.call(plan.export, request, lambda: reserved.is_awaited)
                    if file is not None:
                        reserved.set(file)
        except Exception as error:  # noqa: BLE001 - no error may stop the server
            return error_response(error, request.url.path)
        return Response(status_code=HTTPStatus.NO_CONTENT)


def _plan_preparation(request: PageRequest) -> tuple[SharePlan, ReservedFigure[SharedFile]] | None:
    from threadline.web.session.share import plan_preparation  # noqa: PLC0415 - loads all that exports need

    return plan_preparation(request)


async def _read_form(request: Request) -> dict[str, str]:
    """The values of a form that a browser or script sends; of a repeated one, the last.

    Raises:
        BadQuery: it is too long, or has too many values.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            raise BadQuery("This form is too long.")
    text = body.decode("utf-8", errors="replace")
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FORM_VALUES))
    except ValueError:
        raise BadQuery(f"This form has more than {_MAX_FORM_VALUES} values.") from None


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


def _default_zone(request: Request) -> str | None:
    """The browser's time zone, which a script stores in a cookie; None if there is none, or the zone is unknown.

    JSON for programs does not depend on it: only our own scripts, which send `X-Fragment`, get JSON in this zone.
    """
    if request.url.path.endswith(JSON_SUFFIX) and "x-fragment" not in request.headers:
        return None
    name = unquote(request.cookies.get(_ZONE_COOKIE, ""))[:_MAX_ZONE_NAME]
    try:
        parse_zone(name or None)
    except BadQuery:
        return None
    return name or None


async def _asset(request: Request) -> Response:
    try:
        return asset_response(**request.path_params)
    except Error as error:
        return error_response(error, request.url.path)


async def _no_icon(_request: Request) -> Response:
    return Response(status_code=204)


async def _unknown_path(request: Request) -> Response:
    return error_response(NotFound("There is no page at this URL."), request.url.path)
