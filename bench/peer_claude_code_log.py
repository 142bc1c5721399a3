"""What claude-code-log does when it indexes and searches, by its own functions; runs in an environment that has it.

Its command makes pages of all sessions when it reads them, and has no option to leave them out. Here only what its
`serve` needs to search is made: the cache of every project, then full text, as its command makes them. Pages would come
on top.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from pathlib import Path


def index(projects: Path, database: Path) -> None:
    """Bring cache and full text up to date; print what that took."""
    from claude_code_log.cache import CacheManager, get_library_version
    from claude_code_log.cli import apply_write_pragmas
    from claude_code_log.converter import ensure_fresh_cache
    from claude_code_log.search import ensure_index

    start = time.perf_counter()
    for project in sorted(projects.iterdir()):
        if project.is_dir():
            ensure_fresh_cache(project, CacheManager(project, get_library_version()), silent=True)
    cached = time.perf_counter()
    connection = sqlite3.connect(database)
    apply_write_pragmas(connection)
    status = ensure_index(connection)
    connection.close()
    end = time.perf_counter()
    told = {"seconds": end - start, "cache_seconds": cached - start, "messages": status.indexed_messages}
    print(json.dumps(told), flush=True)


def answer(database: Path) -> None:
    """Answer queries from standard input, one a line: how long each took, and how many it found."""
    from claude_code_log.search import SEARCH_FIELDS, search

    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
    for line in sys.stdin:
        start = time.perf_counter()
        found = search(connection, json.loads(line), fields=SEARCH_FIELDS, limit=20)
        print(json.dumps({"seconds": time.perf_counter() - start, "hits": len(found)}), flush=True)


if __name__ == "__main__":
    os.environ["CLAUDE_CODE_LOG_CACHE_PATH"] = sys.argv[2]
    if sys.argv[1] == "answer":
        answer(Path(sys.argv[2]))
    else:
        index(Path(sys.argv[3]), Path(sys.argv[2]))
