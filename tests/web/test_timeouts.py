"""A connection that does not ask is closed; one that asks is answered, however often."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from threadline.web import timeouts

_LONG = 60
_ASKED = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await asyncio.sleep(0.3)  # longer than the patience: an answer may take its time
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _answers(*sent: bytes) -> list[bytes]:
    """What comes back for each text that is sent; nothing where the connection is closed."""
    settings = uvicorn.Config(_app, log_level="error", lifespan="off", http=timeouts.HeaderTimeout)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: timeouts.HeaderTimeout(settings, ServerState(), {}), "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(server.close)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        stack.callback(writer.close)
        found = []
        for text in sent:
            writer.write(text)
            await writer.drain()
            found.append(await asyncio.wait_for(reader.read(65536), _LONG))
        return found


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "HEADER_SECONDS", 0.1)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: he"])
def test_half_a_request_is_not_waited_for_for_good(sent: bytes) -> None:
    """A connection on which nothing is asked, or the half of it, is closed."""
    assert asyncio.run(_answers(sent)) == [b""]


def test_half_a_second_request_is_not_either() -> None:
    """A connection that was answered once may be asked again, and is not waited for longer than a new one."""
    first, second, third = asyncio.run(_answers(_ASKED, _ASKED, b"GET / HT"))
    assert (first.endswith(b"ok"), second.endswith(b"ok"), third) == (True, True, b"")
