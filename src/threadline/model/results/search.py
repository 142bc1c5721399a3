"""Results of tools that look things up."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.results.result import ToolResult


class GlobResult(ToolResult, frozen=True):
    """`Glob`: the files whose names fit."""

    filenames: list[str] | None = None
    duration_ms: float | None = None
    num_files: int | None = None
    truncated: bool | None = None
    total_matches: int | None = None
    count_is_complete: bool | None = None


class GrepResult(ToolResult, frozen=True):
    """`Grep`: the lines, files or counts that fit."""

    mode: str | None = None
    num_files: int | None = None
    filenames: list[str] | None = None
    content: str | None = None
    num_lines: int | None = None
    num_matches: int | None = None
    applied_limit: int | None = None
    applied_offset: int | None = None
    total_files: int | None = None
    total_lines: int | None = None


class WebFetchResult(ToolResult, frozen=True):
    """`WebFetch`: what a page says."""

    url: str | None = None
    code: int | None = None
    code_text: str | None = None
    bytes: int | None = None
    result: str | None = None
    duration_ms: float | None = None


class WebSearchResult(ToolResult, frozen=True):
    """`WebSearch`: what a search found."""

    query: str | None = None
    results: list[Any] | None = None
    duration_seconds: float | None = None
    search_count: int | None = None


class McpResourceResult(ToolResult, frozen=True):
    """`ReadMcpResourceTool`: what a resource of an MCP server holds."""

    contents: list[Any] | None = None


class ToolSearchResult(ToolResult, frozen=True):
    """`ToolSearch`: the tools that fit."""

    matches: list[Any] | None = None
    query: str | None = None
    total_deferred_tools: int | None = field(default=None, name="total_deferred_tools")
    pending_mcp_servers: list[Any] | None = field(default=None, name="pending_mcp_servers")
