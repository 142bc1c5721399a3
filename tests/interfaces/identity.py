"""Asks each interface for a session's id, tokens and calls, by its id and by its path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.interfaces import entry_points

import threadline

UUID = "5eed0000-0000-4000-8000-000000000001"
NAMES = (UUID, "Session 1")
"""The file names that every transcript is tested under: as Claude Code names sessions, and another."""


Row = dict[str, Any]


class Facts(NamedTuple):
    """What an interface says about a session; None if it does not say it."""

    session: str
    tokens: int | None = None
    calls: int | None = None


def ask_about_session(home: Path, path: Path) -> dict[str, Facts]:
    """Ask every interface about a session in a home, by its id and by its path."""
    name = path.stem
    return {
        **dict(_ask_commands(home, path, "path")),
        **dict(_ask_commands(home, name, "id")),
        **dict(_ask_lists(home, name)),
        **dict(_ask_pages(home, name)),
        **dict(_ask_library(home, path)),
    }


def ask_about_file(home: Path, path: Path) -> dict[str, Facts]:
    """Ask every interface that reads transcripts outside of homes."""
    session = threadline.read(path)
    return {
        **dict(_ask_commands(home, path, "path outside")),
        "read outside": Facts(str(session.id), session.ledger.total.tokens, len(session.calls)),
    }


def _ask_commands(home: Path, name: str | Path, label: str) -> Iterator[tuple[str, Facts]]:
    shown = _run(home, "show", name)
    calls = sum(len(turn["calls"]) for turn in shown["turns"])
    yield f"show by {label}", Facts(shown["session"], _tokens(shown.get("spent")), calls)
    tree = _run(home, "tree", name)
    yield f"tree by {label}", Facts(tree["session"], tree.get("tokens"), tree["calls"])
    receipt = _run(home, "explain", name)
    yield f"explain by {label}", Facts(receipt["name"], _tokens(receipt["total"]))
    file = home.parent / "exports" / "session.json"
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    _run(home, "export", name, "--format", "json", "--out", file)
    exported = json.loads(file.read_text())
    calls = sum(item["kind"] == "call" for item in exported["items"])
    yield f"export by {label}", Facts(exported["session"], _tokens(exported["spent"]), calls)


def _ask_lists(home: Path, name: str) -> Iterator[tuple[str, Facts]]:
    for index in ("on", "off"):
        (listed,) = _run(home, "list", index=index)
        yield f"list, index {index}", Facts(str(_session_of(listed)), listed.get("tokens"))
        rows = _run(home, "usage", "--by", "session", index=index).get("rows", [])
        assert {row["session"] for row in rows} <= {name}
        yield f"usage, index {index}", Facts(name, sum(map(_tokens_of, rows)))
    calls = _run(home, "calls", "--limit", "1000")
    assert {call["session"] for call in calls} <= {name}
    yield "calls", Facts(name, None, len(calls))


def _ask_pages(home: Path, name: str) -> Iterator[tuple[str, Facts]]:
    server = entry_points.WebClient(home)
    try:
        (row,) = server.json("/sessions.json")["sessions"]
        yield "page of sessions", Facts(str(_session_of(row)), row["tokens"], row["calls"])
        page = server.json(f"{row['address']}/about.json")
        yield "page", Facts(str(_session_of(page)), page["tokens"], page["calls"])
        assert page["resume"] is None or page["resume"].endswith(f"claude --resume {name}")
    finally:
        server.close()


def _ask_library(home: Path, path: Path) -> Iterator[tuple[str, Facts]]:
    name = path.stem
    for index in (True, False):
        with threadline.open(home, index=index) as archive:
            for session in (archive.session(name), threadline.read(path)):
                yield (
                    f"library, index {index}",
                    Facts(str(session.id), session.ledger.total.tokens, len(session.calls)),
                )
            (row,) = archive.sessions().sessions
            ledger = archive.ledger()
            assert {charge.session for charge in ledger} <= {name}
            yield f"ledger, index {index}", Facts(str(row.id), ledger.total.tokens)


def _run(home: Path, *arguments: str | Path, index: str = "on") -> Any:
    command = [*arguments, "--json", "--home", home]
    return entry_points.run_command(*command, environment={"THREADLINE_INDEX": index}).json or {}


def _session_of(row: Mapping[str, Any]) -> Any:
    return row["session"] if "session" in row else row["id"]


def _tokens(spent: Mapping[str, Any] | None) -> int | None:
    return None if spent is None else _tokens_of(spent)


def _tokens_of(row: Mapping[str, Any]) -> int:
    return int(row["input"] + row["output"] + row["cache_write"] + row["cache_read"])


def make_prompt(text: str, **fields: Any) -> Row:
    """Make a row with a prompt."""
    message = {"role": "user", "content": text}
    return {"type": "user", "timestamp": "2025-01-15T10:00:00.000Z", "message": message, **fields}


def make_reply(text: str, *blocks: Row, tokens: tuple[int, int], **fields: Any) -> Row:
    """Make a row with a reply; `tokens` are its input and output."""
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    content = [{"type": "text", "text": text}, *blocks]
    message = {"role": "assistant", "model": "claude-3-opus", "content": content, "usage": usage}
    return {"type": "assistant", "timestamp": "2025-01-15T10:00:02.000Z", "message": message, **fields}


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "notes.md"}}
RESULT = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a note"}]


def write_rows(path: Path, rows: list[Row]) -> Path:
    """Write a transcript."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
