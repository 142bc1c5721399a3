"""The team lake: the sessions of many machines in a folder or bucket, as tables that any engine can query.

`create_lake` creates a lake with a `Policy`, in a `Bucket` of `threadline.storage`, and `push_sessions` uploads a
machine's sessions by it (bronze). `build_lake` turns what was pushed into Iceberg tables (silver), on this machine or
on Spark. `read_usage` returns the ledger of all machines, in which every message is counted once, and `table_files` the
tables for DuckDB. `forget_sources` erases sessions and proves it.

Nothing here runs unless a `threadline lake` command asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.lake.bronze import (
        POLICIES,
        FileVersion,
        LakeInfo,
        Policy,
        SegmentReader,
        change_policy,
        create_lake,
        list_batches,
        read_batch,
        read_lake,
        read_machines,
    )
    from threadline.lake.build import BuildResult, build_lake, compact_lake, remove_orphans
    from threadline.lake.clickhouse import ChdbStore, LoadResult, clickhouse_ddl, load_script, search_statement
    from threadline.lake.erase import ForgetResult, all_sources, forget_sources, select_sources
    from threadline.lake.iceberg import Catalogue, read_commit, register_tables
    from threadline.lake.push import PolicyNotAccepted, PushOptions, PushResult, default_person, push_sessions
    from threadline.lake.queries import (
        LakeUsage,
        TextSearch,
        check_encoding,
        check_keys,
        parse_words,
        query_on_engine,
        read_teams,
        read_usage,
        table_files,
        write_teams,
    )
    from threadline.lake.reader import (
        SESSION_ORDERS,
        LakeHit,
        LakeOrigin,
        LakeReader,
        LakeSession,
        LakeSessionFilter,
        LakeState,
        search_lake,
    )
    from threadline.lake.tables import TABLES, table_columns

export_lazily(
    __name__,
    {
        "bronze": [
            "FileVersion",
            "LakeInfo",
            "POLICIES",
            "Policy",
            "SegmentReader",
            "change_policy",
            "create_lake",
            "list_batches",
            "read_batch",
            "read_lake",
            "read_machines",
        ],
        "build": ["BuildResult", "build_lake", "compact_lake", "remove_orphans"],
        "iceberg": ["Catalogue", "read_commit", "register_tables"],
        "clickhouse": ["ChdbStore", "LoadResult", "clickhouse_ddl", "load_script", "search_statement"],
        "erase": ["ForgetResult", "all_sources", "forget_sources", "select_sources"],
        "push": ["PolicyNotAccepted", "PushOptions", "PushResult", "default_person", "push_sessions"],
        "queries": [
            "LakeUsage",
            "TextSearch",
            "check_encoding",
            "check_keys",
            "parse_words",
            "query_on_engine",
            "read_teams",
            "read_usage",
            "table_files",
            "write_teams",
        ],
        "reader": [
            "LakeHit",
            "LakeOrigin",
            "LakeReader",
            "LakeSession",
            "LakeState",
            "SESSION_ORDERS",
            "LakeSessionFilter",
            "search_lake",
        ],
        "tables": ["TABLES", "table_columns"],
    },
)
