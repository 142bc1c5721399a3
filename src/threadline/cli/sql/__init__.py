"""The `threadline sql` command: `answers` prints and writes results, `duckdb_query` runs a query in DuckDB."""

from threadline.cli.sql.command import sql

__all__ = ["sql"]
