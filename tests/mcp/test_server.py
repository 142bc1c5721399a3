"""The MCP server: its tools, parameters and errors, asked in the same process."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import SESSION, prompt, reply, transcript, write

import threadline
from threadline.mcp import Answers, build_server
from threadline.redact import Settings

TOOLS = ["blame", "file_history", "recall", "search", "session", "sql", "usage", "why"]


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """A server with one session."""
    write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *transcript(prompt("A heron"), reply("Yes.")))
    return build_server(Answers(partial(threadline.open, tmp_path), None, Settings()), "1.0")


def test_tools(server: Any) -> None:
    """Every tool is offered as read-only, with a description of itself and of its parameters."""
    tools = asyncio.run(server.list_tools())
    assert sorted(tool.name for tool in tools) == TOOLS
    for tool in tools:
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        assert tool.description
        assert tool.input_schema["properties"]["max_tokens"]["maximum"] == 20_000


def test_fields_of_queries_exist(server: Any) -> None:
    """Each field that the description of `search` names can be used."""
    (search,) = (tool for tool in asyncio.run(server.list_tools()) if tool.name == "search")
    fields = re.findall(r"[a-z-]+", search.input_schema["properties"]["query"]["description"].partition("Fields: ")[2])
    assert len(fields) > 5
    values = {"since": "7d", "until": "today", "cost": ">1"}
    for field in fields:
        asyncio.run(server.call_tool("search", {"query": f"{field}:{values.get(field, 'x')}"}))


def test_calls(server: Any) -> None:
    """Answers are text; errors say what to do; wrong parameters are refused."""
    answer = asyncio.run(server.call_tool("search", {"query": "heron"}))
    assert "1 session for this query" in str(answer)
    for name, arguments, message in (
        ("session", {"session": "none"}, "There is no session"),
        ("search", {"query": "heron", "limit": 1000}, "less than or equal to 50"),
        ("sql", {"query": "DROP TABLE sessions"}, "SELECT"),
    ):
        with pytest.raises(Exception, match=message):
            asyncio.run(server.call_tool(name, arguments))


def test_resources_and_prompts(server: Any) -> None:
    """A session by its address, and the two prompts."""
    (content,) = asyncio.run(server.read_resource(f"session://{SESSION}"))
    assert f"Session {SESSION}: 1 turn" in content.content
    names = [prompt.name for prompt in asyncio.run(server.list_prompts())]
    assert names == ["recall", "cost"]
