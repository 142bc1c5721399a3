"""Entry points of threadline that tests of all interfaces share.

Only this module names internals: a rename inside threadline changes one line here, and no golden file.
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
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from shutil import which
from typing import Any
from unittest.mock import patch

from tests.web.client import Client
from tools.demo import write as write_demo

import threadline
from threadline.cli import run
from threadline.web import ROUTES

__all__ = ["NOW", "CommandResult", "WebClient", "isolated", "page_routes", "run_command", "write_demo"]

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
"""The present while time is frozen: a day after the demo home ends."""
MACHINE = "machine"
_UNSET_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CONFIG_DIRS",
    "APPDATA",
    "LOCALAPPDATA",
    "COLUMNS",
    "NO_COLOR",
    "PAGER",
)


@dataclass(frozen=True)
class CommandResult:
    """The exit code and output of a command."""

    code: int
    out: bytes
    err: bytes

    @property
    def json(self) -> Any:
        """The JSON output, or None if there is none."""
        try:
            return json.loads(self.out, parse_float=Decimal) if self.out.strip() else None
        except ValueError as error:
            raise AssertionError(f"not JSON: {self.out[:300]!r} {self.err[:300]!r}") from error


def run_command(
    *arguments: str | Path, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> CommandResult:
    """Run `threadline ARGUMENTS` in this process."""
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
        return CommandResult(code, *(file.read() for file in files))


class WebClient:
    """A client of the web server for some homes, which requests the data of pages."""

    def __init__(self, *home: Path) -> None:
        self._client = Client(*home)

    def json(self, address: str) -> Any:
        """Request an address: the data of its JSON twin, or the status and message of an error."""
        response = self._client.get(address)
        content_type = response.headers["content-type"].partition(";")[0]
        if content_type != "application/json":
            return {
                "type": content_type,
                "text": response.text if content_type.startswith("text/") else response.content.hex(),
            }
        data = response.json(parse_float=Decimal)
        return data if response.is_success else {"status": response.status_code, **data}

    def close(self) -> None:
        """Close the index."""
        self._client.pool.close()


def page_routes() -> list[str]:
    """Return the paths of every page, as the server defines them: `/usage`, `/session/{session}/turns`."""
    return [route.path for route in ROUTES]


@contextmanager
def isolated(folder: Path, *, frozen: bool = True) -> Iterator[None]:
    """Set an environment without homes, index, keep or installed threadline, with a fixed machine name, in UTC.

    `frozen` stops time at `NOW`.
    """
    (folder / "nobody").mkdir(parents=True, exist_ok=True)
    folders = {
        "HOME": "nobody",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "THREADLINE_CACHE": "cache",
        "THREADLINE_KEEP": "keep",
    }
    before = Path.cwd()
    with patch.dict(os.environ, {name: str(folder / subfolder) for name, subfolder in folders.items()} | {"TZ": "UTC"}):
        for name in _UNSET_VARIABLES:
            os.environ.pop(name, None)
        os.environ["PATH"] = _path_without("threadline")
        time.tzset()
        os.chdir(folder / "nobody")
        try:
            with patch.object(platform, "node", lambda: MACHINE), _freeze_time() if frozen else nullcontext():
                yield
        finally:
            os.chdir(before)
    time.tzset()


def _path_without(program: str) -> str:
    """The directories in which programs are searched, except those that contain this program.

    Instructions name the program where it is installed, which depends on the machine.
    """
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    # `which` looks over directories that this user may not enter.
    return os.pathsep.join(directory for directory in directories if which(program, path=directory) is None)


class _IsDatetime(type):
    """Treats every datetime as an instance of its class."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class _FrozenDatetime(datetime, metaclass=_IsDatetime):
    """A datetime whose present is always `NOW`. Its methods return plain datetimes."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return datetime(*arguments, **named)  # noqa: DTZ001 - as it was called

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        """The frozen present."""
        return NOW.astimezone(tz) if tz is not None else NOW.replace(tzinfo=None)


for _name in ("fromisoformat", "fromtimestamp", "strptime", "combine", "min", "max"):
    setattr(_FrozenDatetime, _name, getattr(datetime, _name))


@contextmanager
def _freeze_time() -> Iterator[None]:
    """Let every module of threadline use `NOW` as the present. Clocks that only measure durations continue."""
    # This includes functions that import it themselves. All modules are loaded first, so that types use the real class.
    modules = [
        import_module(info.name) for info in walk_packages(threadline.__path__, "threadline.") if _can_import(info)
    ]
    with ExitStack() as stack:
        for module in (*modules, sys.modules["datetime"]):
            if getattr(module, "datetime", None) is datetime:
                stack.enter_context(patch.object(module, "datetime", _FrozenDatetime))
        yield


def _can_import(info: Any) -> bool:
    return not info.name.endswith("__main__")
