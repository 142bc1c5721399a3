"""The ways into threadline that tests of all its interfaces share.

Only this module names internals: a rename inside threadline touches one line here, and no golden file.
"""

from __future__ import annotations

import io
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from unittest.mock import patch

from tests.web.client import Client
from tools.demo import write as write_demo

import threadline
from threadline.cli import run
from threadline.web import ROUTES

__all__ = ["NOW", "Answer", "Web", "alone", "command", "page_routes", "write_demo"]

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
"""The present, wherever time is frozen: a day after the demo home ends."""
MACHINE = "machine"
_OTHERS = ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS", "APPDATA", "LOCALAPPDATA", "COLUMNS", "NO_COLOR", "PAGER")


@dataclass(frozen=True)
class Answer:
    """What a command gave: its exit code and both streams."""

    code: int
    out: bytes
    err: bytes

    @property
    def json(self) -> Any:
        """Its JSON; None where it printed nothing, which goes with an exit code of its own."""
        try:
            return json.loads(self.out) if self.out.strip() else None
        except ValueError as error:
            raise AssertionError(f"not JSON: {self.out[:300]!r} {self.err[:300]!r}") from error


def command(*arguments: str | Path, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> Answer:
    """The answer of `threadline ARGUMENTS`, asked in this process."""
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        streams = [io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace") for file in files]
        stack.enter_context(redirect_stdout(streams[0]))
        stack.enter_context(redirect_stderr(streams[1]))
        stack.enter_context(patch.dict(os.environ, environment or {}))
        stack.enter_context(patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))))
        code = run([str(argument) for argument in arguments])
        for stream, file in zip(streams, files, strict=True):
            stream.flush()
            file.seek(0)
        return Answer(code, *(file.read() for file in files))


class Web:
    """The page's server for some homes, asked for the data of its pages."""

    def __init__(self, *home: Path) -> None:
        self._client = Client(*home)

    def json(self, address: str) -> Any:
        """What an address answers: the data of its twin, or the status and the sentence of a refusal."""
        answer = self._client.get(address)
        type_ = answer.headers["content-type"].partition(";")[0]
        if type_ != "application/json":
            return {"type": type_, "text": answer.text if type_.startswith("text/") else answer.content.hex()}
        data = answer.json()
        return data if answer.is_success else {"status": answer.status_code, **data}

    def close(self) -> None:
        """Let go of the index."""
        self._client.pool.close()


def page_routes() -> list[str]:
    """The paths of every page, as the server knows them: `/usage`, `/session/{session}/turns`."""
    return [route.path for route in ROUTES]


@contextmanager
def alone(folder: Path, *, frozen: bool = True) -> Iterator[None]:
    """Somebody without homes, index or keep of their own, on a machine of a known name, in UTC; `frozen` at `NOW`."""
    (folder / "nobody").mkdir(parents=True, exist_ok=True)
    places = {
        "HOME": "nobody",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "THREADLINE_CACHE": "cache",
        "THREADLINE_KEEP": "keep",
    }
    before = Path.cwd()
    with patch.dict(os.environ, {name: str(folder / below) for name, below in places.items()} | {"TZ": "UTC"}):
        for name in _OTHERS:
            os.environ.pop(name, None)
        time.tzset()
        os.chdir(folder / "nobody")
        try:
            with patch.object(platform, "node", lambda: MACHINE), _frozen() if frozen else nullcontext():
                yield
        finally:
            os.chdir(before)
    time.tzset()


class _IsDatetime(type):
    """Takes every datetime for one of its class."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class _Frozen(datetime, metaclass=_IsDatetime):
    """A datetime whose present is always `NOW`; what it gives out are plain datetimes."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return datetime(*arguments, **named)  # noqa: DTZ001 - as it was called

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        """The frozen present."""
        return NOW.astimezone(tz) if tz is not None else NOW.replace(tzinfo=None)


for _name in ("fromisoformat", "fromtimestamp", "strptime", "combine", "min", "max"):
    setattr(_Frozen, _name, getattr(datetime, _name))


@contextmanager
def _frozen() -> Iterator[None]:
    """Every module of threadline takes `NOW` for the present. Clocks that only measure go on."""
    # Also where a function imports it by itself. All modules are there by then: types are made of the true class.
    modules = [import_module(found.name) for found in walk_packages(threadline.__path__, "threadline.") if _may(found)]
    with ExitStack() as stack:
        for module in (*modules, sys.modules["datetime"]):
            if getattr(module, "datetime", None) is datetime:
                stack.enter_context(patch.object(module, "datetime", _Frozen))
        yield


def _may(found: Any) -> bool:
    return not found.name.endswith("__main__")
