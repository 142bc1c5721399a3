"""Computes something in another process, at low priority, as long as somebody waits for it.

What takes seconds would slow down all pages in a thread of the server. A process does not, and its memory is free again
when it ends.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

import anyio
from starlette.requests import Request

_T = TypeVar("_T")
# -P: modules of the current directory are not imported, which may be anybody's.
_COMMAND = (
    sys.executable,
    "-P",
    "-c",
    "from threadline.web.background_process import answer_parent; answer_parent()",
)

_NICENESS = 5
"""With 10 or more, it would hardly end on a machine that is busy."""
_GRACE_SECONDS = 1.0
"""A browser that leaves a page for another one closes the connection before the other page has asked for the value."""


class BackgroundProcess:
    """Runs at most one process: a new one replaces the one that is running."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None

    async def call(
        self, function: Callable[[], _T], request: Request, is_awaited: Callable[[], bool] = lambda: False
    ) -> _T | None:
        """Return what a picklable function returns; None if it failed, was replaced, or the browser has left.

        A browser that leaves a page, or aborts the request, closes the connection. If another request waits for the
        value by then, the process goes on.
        """
        if self._scope is not None:
            self._scope.cancel()
        async with anyio.create_task_group() as tasks:
            self._scope = tasks.cancel_scope
            tasks.start_soon(_cancel_when_closed, request, is_awaited, tasks.cancel_scope)
            process = await anyio.run_process(
                _COMMAND, input=pickle.dumps(function), stderr=subprocess.DEVNULL, check=False
            )
            tasks.cancel_scope.cancel()
            if process.returncode == 0:
                value: _T = pickle.loads(process.stdout)  # noqa: S301 - of our own process
                return value
        return None


async def _cancel_when_closed(request: Request, is_awaited: Callable[[], bool], scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    await anyio.sleep(_GRACE_SECONDS)
    if not is_awaited():
        scope.cancel()


def answer_parent() -> None:
    """What the other process does: read the function from standard input, and write what it returns."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(_NICENESS)
    function = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - of our own server
    sys.stdout.buffer.write(pickle.dumps(function()))
