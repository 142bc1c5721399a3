"""The `threadline` command.

`commands` has the table of commands and the entry point. Each command is a module or package with the same name, and is
imported when it runs. Three sections of `threadline --help` have a folder each: `session`, `cost` and `insight`.

Commands share `options` (click options), `resolve` (archives, sessions, places and times that a command line names),
`filters`, `rows` (turns, calls and entries for programs) and `output` (tables, JSON, CSV, colours, pager, progress
bars, messages).
"""

import gc
import sys
from typing import TYPE_CHECKING

from threadline.errors import NotFound
from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.cli.commands import run

EXIT_OK, EXIT_NOTHING, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130
"""Exit codes: results found, nothing found, an error, Ctrl-C."""


# Commands create objects by the hundred thousand and no cycles; frequent collections only cost time.
_GC_THRESHOLD = 100_000


class NoHome(NotFound):
    """There is no Claude home to read. Exits with `EXIT_NOTHING`."""


def is_sqlite_error(error: Exception) -> bool:
    """Whether SQLite raised an exception; most commands never load SQLite."""
    sqlite3 = sys.modules.get("sqlite3")
    return sqlite3 is not None and isinstance(error, sqlite3.Error)


def main() -> None:
    """Run the command and exit with its code. Errors are printed as one sentence, never as a traceback."""
    gc.set_threshold(_GC_THRESHOLD)  # first of all: importing creates many objects, too
    from threadline.cli.commands import run_and_exit  # noqa: PLC0415 - after that

    run_and_exit(sys.argv[1:])


export_lazily(
    __name__,
    {
        "commands": ["run"],
    },
)
