"""Tools for agents over MCP: search, read and query the archive.

`Answers` answers questions as compact, redacted text with places, within a token limit. Text from transcripts is
between markers that nothing in it can imitate (`quoting`). `SecretSearch` finds the secrets to remove from it, in
bounded time. `build_server` offers the answers as tools, resources and prompts of an MCP server; it needs the extra
`threadline[mcp]`. Nothing here writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.mcp.answers import Answers
    from threadline.mcp.quoting import Answer
    from threadline.mcp.secret_search import SecretSearch, list_words, surroundings
    from threadline.mcp.server import build_server

export_lazily(
    __name__,
    {
        "answers": ["Answers"],
        "quoting": ["Answer"],
        "secret_search": ["SecretSearch", "list_words", "surroundings"],
        "server": ["build_server"],
    },
)
