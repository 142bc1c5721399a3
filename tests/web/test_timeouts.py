"""Connections without a complete request are closed. Complete requests are answered, however many."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from threadline.web import timeouts

_MAX_SECONDS = 60
_REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await asyncio.sleep(0.3)  # longer than the timeout, which does not limit answers
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _answers(*sent: bytes) -> list[bytes]:
    """The answer to each text that is sent, empty if the connection is closed."""
    settings = uvicorn.Config(_app, log_level="error", lifespan="off", http=timeouts.HeaderTimeout)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: timeouts.HeaderTimeout(settings, ServerState(), {}), "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(server.close)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        stack.callback(writer.close)
        answers = []
        for text in sent:
            writer.write(text)
            await writer.drain()
            answers.append(await asyncio.wait_for(reader.read(65536), _MAX_SECONDS))
        return answers


@pytest.fixture(autouse=True)
def _short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "HEADER_SECONDS", 0.1)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: he"])
def test_closes_a_connection_without_a_complete_request(sent: bytes) -> None:
    """A connection that sends nothing, or half a request, is closed."""
    assert asyncio.run(_answers(sent)) == [b""]


def test_closes_an_answered_connection_that_sends_half_a_request() -> None:
    """An answered connection may send another request, and has the same time for it as a new connection."""
    first, second, third = asyncio.run(_answers(_REQUEST, _REQUEST, b"GET / HT"))
    assert (first.endswith(b"ok"), second.endswith(b"ok"), third) == (True, True, b"")
