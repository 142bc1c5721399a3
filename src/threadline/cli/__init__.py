"""The `threadline` command: entry point, exit codes and the last resort for errors.

Command modules are imported when they are run. Nothing here imports click, so that a missing click is reported in one
sentence.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import TypeVar

from threadline.errors import Error, Missing

_Value = TypeVar("_Value")
_KEPT_ALIVE: list[object] = []
# Commands make objects by the hundred thousand and no rings of them: looking for rings often is time lost.
_GC_THRESHOLD = 100_000

EXIT_OK, EXIT_NOTHING, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130
"""Exit codes: found, nothing found, an error, Ctrl-C."""


def main() -> None:
    """Run the command and leave with its exit code; every failure is one sentence, never a traceback."""
    gc.set_threshold(_GC_THRESHOLD)
    _prepare_streams()
    code = run(sys.argv[1:])
    with suppress(OSError):  # what could not be written has been said
        _flush_streams(code)
    # Not `sys.exit`: all is written, and taking objects apart one by one would be the last thing to wait for.
    os._exit(code)


def _flush_streams(code: int) -> int:
    """The exit code, when all that was said has been written."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return code


def keep_alive(value: _Value) -> _Value:
    """The value, which will be there until the process ends: something big that need not be taken apart before."""
    _KEPT_ALIVE.append(value)
    return value


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; give its exit code."""
    try:
        from threadline.cli.commands import run_command_line

        return _flush_streams(run_command_line(arguments))
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        return _print_error(
            Missing("The command needs click, which is not installed; run: pip install 'threadline[all]'")
        )
    except Error as error:
        return _print_escaped_error(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        return _report_os_error(error)
    except Exception as error:
        if not _is_sqlite_error(error):
            raise
        return _print_escaped_error(Error(f"The index is damaged ({error}); run `threadline index rebuild`."))


def _is_sqlite_error(error: Exception) -> bool:
    """Whether SQLite raised it; most commands never load that."""
    loaded = sys.modules.get("sqlite3")
    return loaded is not None and isinstance(error, loaded.Error)


def _prepare_streams() -> None:
    """A closed stream swallows what is written to it; what a stream's encoding lacks is written as an escape."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
        else:
            stream.reconfigure(errors="backslashreplace")


def _report_os_error(error: OSError) -> int:
    """What the machine refused: a file that was named, or to take more of the answer."""
    if error.filename is not None:
        return _print_error(Error(f"{error.strerror or error}: {error.filename!r}."))
    sys.stdout = None  # nothing more may be written, not even by the interpreter at its end
    if isinstance(error, BrokenPipeError):
        return EXIT_OK  # whoever was reading has seen enough
    return _print_error(Error(f"{error.strerror or error}, while the answer was written."))


def _print_error(error: Error) -> int:
    sys.stderr.write(f"threadline: {error}\n")
    return EXIT_FAILED


def _print_escaped_error(error: Error) -> int:
    """The same for a sentence that may name a file: names hold what files hold, and may try to steer a terminal."""
    from threadline.render import plain

    return _print_error(Error("\n".join(map(plain, str(error).split("\n")))))
