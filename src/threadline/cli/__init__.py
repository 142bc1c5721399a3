"""The command `threadline`: one file a command, each imported when it is asked for."""

from __future__ import annotations

import sys

from threadline.errors import Error, Missing

FOUND, NOTHING, FAILED, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: found, nothing found, an error, Ctrl-C."""


def main() -> None:
    """Run the command and leave with its exit code; every failure is one sentence, never a traceback."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; give its exit code."""
    try:
        from threadline.cli.start import start
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        return _say(Missing("The command needs click, which is not installed; run: pip install 'threadline[all]'"))
    try:
        return start(arguments)
    except Error as error:
        return _say(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever was reading has seen enough. Nothing more may be written, not even by the interpreter at its end.
        sys.stdout = None
        return FOUND


def _say(error: Error) -> int:
    sys.stderr.write(f"threadline: {error}\n")
    return FAILED
