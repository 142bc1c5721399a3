"""The `threadline` command: entry point, exit codes, and errors as one-line messages.

`commands` has the table of commands; each is a module of its own with the same name and is imported when it runs.
Commands share `options` (click options), `resolve` (archives, sessions, places and times that a command line names),
`filters`, `rows` (turns, calls and entries for programs), `output` (tables, JSON, CSV) and `screen` (colours, pager,
progress bars, messages).

This module does not import click, so that a missing click is reported in one sentence.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import TypeVar

from threadline.errors import Error, Missing, NotFound

_Value = TypeVar("_Value")
_KEPT_ALIVE: list[object] = []
# Commands create objects by the hundred thousand and no cycles; frequent collections only cost time.
_GC_THRESHOLD = 100_000

EXIT_OK, EXIT_NOTHING, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130
"""Exit codes: results found, nothing found, an error, Ctrl-C."""


class NoHome(NotFound):
    """There is no Claude home to read. Exits with `EXIT_NOTHING`."""


def main() -> None:
    """Run the command and exit with its code. Errors are printed as one sentence, never as a traceback."""
    gc.set_threshold(_GC_THRESHOLD)
    _prepare_streams()
    code = run(sys.argv[1:])
    with suppress(OSError):  # a failed write has been reported
        _flush_streams(code)
    # Not `sys.exit`: everything is written, and destroying objects one by one would only take time.
    os._exit(code)


def _flush_streams(code: int) -> int:
    """Flush both streams; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return code


def keep_alive(value: _Value) -> _Value:
    """Keep a large value until the process ends, since destroying it would take time."""
    _KEPT_ALIVE.append(value)
    return value


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; return its exit code."""
    try:
        from threadline.cli.commands import run_command_line  # noqa: PLC0415 - click may be missing

        return _flush_streams(run_command_line(arguments))
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        return _print_error(Missing("click is not installed. Run: pip install 'threadline[all]'"))
    except Error as error:
        _print_escaped_error(error)
        return EXIT_NOTHING if isinstance(error, NoHome) else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        return _report_os_error(error)
    except Exception as error:
        if not _is_sqlite_error(error):
            raise
        return _print_escaped_error(Error(f"The index is damaged ({error}). Run `threadline index rebuild`."))


def _is_sqlite_error(error: Exception) -> bool:
    """Whether SQLite raised it; most commands never load SQLite."""
    sqlite3 = sys.modules.get("sqlite3")
    return sqlite3 is not None and isinstance(error, sqlite3.Error)


def _prepare_streams() -> None:
    """Make writing safe: a closed stream discards text, and characters that an encoding lacks are escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
        else:
            stream.reconfigure(errors="backslashreplace")


def _report_os_error(error: OSError) -> int:
    """Report a system error, about a file or about standard output."""
    if error.filename is not None:
        return _print_error(Error(f"{error.strerror or error}: {error.filename!r}."))
    sys.stdout = None  # nothing more may be written, not even by the interpreter as it exits
    if isinstance(error, BrokenPipeError):
        return EXIT_OK  # the reader closed the pipe
    return _print_error(Error(f"Cannot write to standard output: {error.strerror or error}."))


def _print_error(error: Error) -> int:
    sys.stderr.write(f"threadline: {error}\n")
    return EXIT_FAILED


def _print_escaped_error(error: Error) -> int:
    """Print an error whose message may quote a file name or other text that could control a terminal."""
    from threadline.render import plain  # noqa: PLC0415 - only errors need it

    return _print_error(Error("\n".join(map(plain, str(error).split("\n")))))
