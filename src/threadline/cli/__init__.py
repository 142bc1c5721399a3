"""The command `threadline`: one file a command, each imported when it is asked for."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import TypeVar

from threadline.errors import Error, Missing

_Value = TypeVar("_Value")
_HELD: list[object] = []
# Commands make objects by the hundred thousand and no rings of them: looking for rings often is time lost.
_OBJECTS = 100_000

FOUND, NOTHING, FAILED, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: found, nothing found, an error, Ctrl-C."""


def main() -> None:
    """Run the command and leave with its exit code; every failure is one sentence, never a traceback."""
    gc.set_threshold(_OBJECTS)
    _open_streams()
    code = run(sys.argv[1:])
    with suppress(OSError):  # what could not be written has been said
        _flushed(code)
    # Not `sys.exit`: all is written, and taking objects apart one by one would be the last thing to wait for.
    os._exit(code)


def _flushed(code: int) -> int:
    """The exit code, when all that was said has been written."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return code


def held(value: _Value) -> _Value:
    """The value, which will be there until the process ends: something big that need not be taken apart before."""
    _HELD.append(value)
    return value


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; give its exit code."""
    try:
        from threadline.cli.start import start

        return _flushed(start(arguments))
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        return _say(Missing("The command needs click, which is not installed; run: pip install 'threadline[all]'"))
    except Error as error:
        return _say_plainly(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return _refused(error)
    except Exception as error:
        if not _is_of_database(error):
            raise
        return _say_plainly(Error(f"The index is damaged ({error}); run `threadline index rebuild`."))


def _is_of_database(error: Exception) -> bool:
    """Whether SQLite raised it; most commands never load that."""
    loaded = sys.modules.get("sqlite3")
    return loaded is not None and isinstance(error, loaded.Error)


def _open_streams() -> None:
    """A closed stream swallows what is written to it; what a stream's encoding lacks is written as an escape."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
        else:
            stream.reconfigure(errors="backslashreplace")


def _refused(error: OSError) -> int:
    """What the machine refused: a file that was named, or to take more of the answer."""
    if error.filename is not None:
        return _say(Error(f"{error.strerror or error}: {error.filename!r}."))
    sys.stdout = None  # nothing more may be written, not even by the interpreter at its end
    if isinstance(error, BrokenPipeError):
        return FOUND  # whoever was reading has seen enough
    return _say(Error(f"{error.strerror or error}, while the answer was written."))


def _say(error: Error) -> int:
    sys.stderr.write(f"threadline: {error}\n")
    return FAILED


def _say_plainly(error: Error) -> int:
    """The same for a sentence that may name a file: names hold what files hold, and may try to steer a terminal."""
    from threadline.cli.output import plain

    return _say(Error("\n".join(map(plain, str(error).split("\n")))))
