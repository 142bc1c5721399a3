"""The application: addresses, who answers them, and the guard before all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
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
from threadline.model.zone import zone
from threadline.web.addresses import ASSETS, HOME, LIVE, SESSION, carrying, twin, unescaped
from threadline.web.answer import SUFFIX, answer, refused
from threadline.web.asked import Asked
from threadline.web.asset import asset
from threadline.web.guard import Guard
from threadline.web.live import Live
from threadline.web.lost import concerns, with_word
from threadline.web.pages import PAGES
from threadline.web.session import BELOW
from threadline.web.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from threadline.web.holding import Holding
    from threadline.web.page import Made, Make
    from threadline.web.ticket import Ticket

_AT_ONCE = 6
"""How many answers are made at the same time: more would only share the same cores."""
_Endpoint = Callable[[Request], Awaitable[Response]]


class App:
    """The server's application: for the homes that are held, whoever has the token, and the port it is reached at."""

    def __init__(self, holding: Holding, *, token: str, port: int, ticket: Ticket | None = None) -> None:
        self._holding = holding
        self._ticket = ticket
        self.live = Live(holding.homes)
        self._shelf = Shelf(changed=self.live.tell)
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
        for path, make in (*PAGES.items(), *((f"{SESSION}/{{session}}{below}", make) for below, make in BELOW.items())):
            endpoint = self._answering(make)
            # The twin first: a name in a path may hold a dot, so that it would fit the other, too.
            yield Route(twin(path), endpoint)
            yield Route(path, endpoint)
        yield Route("/{rest:path}", _nowhere)

    def _answering(self, make: Make) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            if self._limiter is None:  # it belongs to the loop that runs
                self._limiter = CapacityLimiter(_AT_ONCE)
            work = partial(self._answered, make, request)
            return await to_thread.run_sync(work, limiter=self._limiter, abandon_on_cancel=True)

        return endpoint

    def _answered(self, make: Make, request: Request) -> Response:
        is_bare = "x-fragment" in request.headers or request.headers.get("sec-fetch-dest") == "empty"
        with carrying(*_carried(request)):
            return answer(partial(self._made, make, request), request.url.path, bare=is_bare)

    def _made(self, make: Make, request: Request) -> Made:
        path = request.url.path
        page = HOME if path == twin(HOME) else path.removesuffix(SUFFIX)
        lost = self._holding.lost() if concerns(page) else None
        made = self._holding.ask(
            lambda archive: make(
                Asked(
                    path=page,
                    query=request.query_params.multi_items(),
                    archive=archive,
                    shelf=self._shelf,
                    named={name: unescaped(part) for name, part in request.path_params.items()},
                    now=datetime.now(UTC),
                    wants_data=path.endswith(SUFFIX),
                )
            )
        )
        return with_word(made, lost) if lost is not None else made


def _carried(request: Request) -> list[tuple[str, str]]:
    """The zone that was asked for goes along from page to page; what is none would only lead to errors."""
    name = (request.query_params.get("tz") or "").strip()
    try:
        zone(name or None)
    except BadQuery:
        return []
    return [("tz", name)] if name else []


async def _asset(request: Request) -> Response:
    try:
        found = asset(request.path_params["name"])
    except Error as error:
        return refused(error, request.url.path)
    return Response(found.data, media_type=found.media_type)


async def _no_icon(_request: Request) -> Response:
    return Response(status_code=204)


async def _nowhere(request: Request) -> Response:
    return refused(NotFound("There is no page at this address."), request.url.path)
