"""The `threadline` command.

`commands` has the table of commands and the entry point. Each command is a module of its own with the same name and is
imported when it runs. Commands share `options` (click options), `resolve` (archives, sessions, places and times that a
command line names), `filters`, `rows` (turns, calls and entries for programs) and `output` (tables, JSON, CSV, colours,
pager, progress bars, messages).
"""

import sys
from typing import TYPE_CHECKING

from threadline.errors import NotFound
from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.cli.commands import main, run

EXIT_OK, EXIT_NOTHING, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130
"""Exit codes: results found, nothing found, an error, Ctrl-C."""


class NoHome(NotFound):
    """There is no Claude home to read. Exits with `EXIT_NOTHING`."""


def is_sqlite_error(error: Exception) -> bool:
    """Whether SQLite raised an exception; most commands never load SQLite."""
    sqlite3 = sys.modules.get("sqlite3")
    return sqlite3 is not None and isinstance(error, sqlite3.Error)


__getattr__ = lazy_exports(
    __name__,
    {
        "commands": ["main", "run"],
    },
)
