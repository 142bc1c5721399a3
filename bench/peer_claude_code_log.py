"""Index and search with the functions of claude-code-log, in an environment that has it installed.

Its command also writes pages of all sessions, and has no option to skip them. This script only creates what its `serve`
needs to search: the cache of every project, then the full-text index. Writing pages would take additional time.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from pathlib import Path


def index(projects: Path, database: Path) -> None:
    """Update cache and full text, and print how long that took."""
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
    figures = {"seconds": end - start, "cache_seconds": cached - start, "messages": status.indexed_messages}
    print(json.dumps(figures), flush=True)


def answer(database: Path) -> None:
    """Run queries from standard input, one per line, and print the time and the number of hits of each."""
    from claude_code_log.search import SEARCH_FIELDS, search

    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
    for line in sys.stdin:
        start = time.perf_counter()
        hits = search(connection, json.loads(line), fields=SEARCH_FIELDS, limit=20)
        print(json.dumps({"seconds": time.perf_counter() - start, "hits": len(hits)}), flush=True)


if __name__ == "__main__":
    os.environ["CLAUDE_CODE_LOG_CACHE_PATH"] = sys.argv[2]
    if sys.argv[1] == "answer":
        answer(Path(sys.argv[2]))
    else:
        index(Path(sys.argv[3]), Path(sys.argv[2]))
