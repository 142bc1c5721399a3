"""Parts of made-up transcripts, of every kind that the index stores, and the pens that write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tests.transcripts import START, Part, Pen, Row, Writer, call, chain, meta, prompt, reply

PROJECTS = {"-work-app": "/work/app", "-work-lib": "/work/lib", "-home-u-notes-": "/home/u/notes."}
"""Folders and the paths of their projects."""
_SESSIONS = 4
_AGENTS = ("a11", "a22")
names = st.sampled_from(
    [
        *(str(number) for number in range(1, _SESSIONS + 1)),
        *(f"{number}/{agent}" for number in (1, 2) for agent in _AGENTS),
        "beside/a11",
        "other",
    ]
)
"""Names of transcripts: a session, an agent of a session, an agent beside the sessions, any other."""


def session(number: str) -> str:
    """The id of a session."""
    return f"5e551011-0000-4000-8000-{int(number):012d}"


class Pens:
    """One pen per transcript. Its ids and times continue, whatever happens to the file."""

    def __init__(self) -> None:
        self._pens: dict[str, Pen] = {}
        self.open: list[str] = []
        self.results: dict[str, Row] = {}
        self._count = 0

    def place(self, home: Path, folder: str, name: str) -> Path:
        """The path of a transcript with that name."""
        project = home / "projects" / folder
        number, _, agent = name.partition("/")
        if number == "other":
            return project / "notes.jsonl"
        if number == "beside":
            return project / f"agent-{agent}.jsonl"
        if agent:
            return project / session(number) / "subagents" / f"agent-{agent}.jsonl"
        return project / f"{session(number)}.jsonl"

    def of(self, path: Path) -> Pen:
        """The pen of a transcript, by its name and folder."""
        folder = next((part for part in path.parts if part in PROJECTS), "")
        key = f"{folder} {path.name} {path.parent.parent.name}"
        if key not in self._pens:
            self._count += 1
            fields: Row = {"cwd": PROJECTS.get(folder, "/elsewhere")}
            owner = next((part for part in path.parts if part.startswith("5e55")), session("1")).removesuffix(".jsonl")
            if path.name.startswith("agent-"):
                fields |= {"isSidechain": True, "agentId": path.name[6:-6]}
            self._pens[key] = Pen(owner, START + timedelta(minutes=7 * self._count), **fields)
        return self._pens[key]

    def number(self) -> int:
        """A new number on each call."""
        self._count += 1
        return self._count


_TEXTS = (
    "Bitte prüfe snake_case",
    "日本語のテスト 🎈 ok",
    "look at src/app/main.py",
    "the camelCaseName --flag",
    "naïve café",
)


def _text(pens: Pens) -> str:
    number = pens.number()
    return f"{_TEXTS[number % len(_TEXTS)]} n{number}"


def _use(tool: str, arguments: Any) -> Callable[[Pens], Writer]:
    """A call whose result comes later, perhaps in another part or file, or never."""

    def make_part(pens: Pens) -> Writer:
        def part(pen: Pen) -> Iterator[Row]:
            id_ = pen.id("toolu_01", pen.number())
            pens.open.append(id_)
            yield from reply({"type": "tool_use", "id": id_, "name": tool, "input": arguments}, output=9)(pen)

        return part

    return make_part


def _result(details: Any, *, error: bool = False, first: bool = False) -> Callable[[Pens], Writer]:
    """The result of an earlier call: the last one, or the first of all. If it is repeated, the row is the same."""

    def make_part(pens: Pens) -> Writer:
        def part(pen: Pen) -> Iterator[Row]:
            if pens.open:
                use = pens.open[0 if first else -1]
                if use not in pens.results:
                    block: Row = {"tool_use_id": use, "type": "tool_result", "content": "Exit code 2"}
                    block |= {"is_error": True} if error else {}
                    fields = {"toolUseResult": details} if details is not None else {}
                    pens.results[use] = pen.chain("user", message={"role": "user", "content": [block]}, **fields)
                yield pens.results[use]

        return part

    return make_part


def _model(pens: Pens) -> str:
    return ("claude-sonnet-4-5-20250929", "claude-opus-4-1-20250805", "some-model")[pens.number() % 3]


def _shared(pens: Pens) -> Writer:
    """A message that several transcripts contain, each in its own rows."""
    number = pens.number() % 5

    def part(pen: Pen) -> Iterator[Row]:
        message = {"id": f"msg_01shared{number:014d}"}
        yield from reply(f"shared {number}", message=message, output=5 + number, requestId=f"req_01{number:022d}")(pen)

    return part


def _growing_message(pens: Pens) -> Writer:
    """A message that grows with each row."""
    number = pens.number() // 3

    def part(pen: Pen) -> Iterator[Row]:
        message = {"id": f"msg_01grows{pen.session[-3:]}{number:012d}", "stop_reason": None}
        yield from reply("more", message=message, output=1 + pens.number(), requestId=f"req_01{number:022d}")(pen)

    return part


def _bare(**fields: Any) -> Callable[[Pens], Writer]:
    def make_part(pens: Pens) -> Writer:
        def part(pen: Pen) -> Iterator[Row]:
            row = {**pen.chain("user", message={"role": "user", "content": _text(pens)}), **fields}
            yield {name: value for name, value in row.items() if value != "left out"}

        return part

    return make_part


_TODOS = {
    "todos": [{"content": "do it", "status": "pending", "activeForm": "doing"}, {"content": "b", "status": "done"}]
}
PARTS: dict[str, Callable[[Pens], Part]] = {
    "prompt": lambda pens: prompt(_text(pens)),
    "command": lambda _pens: prompt("<command-name>/compact</command-name><command-args></command-args>"),
    "interrupt": lambda _pens: prompt("[Request interrupted by user]"),
    "reply": lambda pens: reply(
        _text(pens), {"type": "thinking", "thinking": _text(pens)}, message={"model": _model(pens)}
    ),
    "cached": lambda pens: reply(_text(pens), input=3, output=pens.number(), read=900, written=70),
    "shared": _shared,
    "growing": _growing_message,
    "long": lambda pens: reply(_text(pens) * 120),
    "Bash": lambda _pens: call("Bash", "make test", "ok", details={"stdout": "ok", "stderr": "", "interrupted": False}),
    "Read": lambda pens: call("Read", f"/work/app/a{pens.number() % 4}.py", "     1→x", details={"type": "text"}),
    "Edit": lambda _pens: call("Edit", {"file_path": "b.py", "old_string": "a", "new_string": "b"}, "done"),
    "Bash to come": _use("Bash", {"command": "ls"}),
    "Agent to come": _use("Agent", {"subagent_type": "Explore", "prompt": "look"}),
    "TaskCreate to come": _use("TaskCreate", {"subject": "a task"}),
    "WebSearch to come": _use("WebSearch", {"query": "x"}),
    "result": _result(None),
    "first result": _result({"stdout": "a", "stderr": "", "interrupted": True}, first=True),
    "failed": _result("Error: Exit code 2", error=True),
    "agent done": _result({"agentId": "a11", "status": "completed"}),
    "task made": _result({"task": {"id": "1", "subject": "a task"}}),
    "searched": _result({"query": "x", "searchCount": 2}),
    "TodoWrite": lambda _pens: call("TodoWrite", _TODOS, "ok", details=_TODOS),
    "title": lambda pens: meta("custom-title", customTitle=f"Title {pens.number()}"),
    "ai title": lambda pens: meta("ai-title", aiTitle=f"Named {pens.number()}"),
    "summary": lambda pens: meta(
        "summary", summary=f"Summary {pens.number()}", leafUuid="00000001-0000-4000-8000-000000000001"
    ),
    "last prompt": lambda pens: meta("last-prompt", lastPrompt=_text(pens)),
    "compaction": lambda pens: chain(
        "system",
        subtype="compact_boundary",
        content="",
        compactMetadata={"trigger": "auto", "preTokens": pens.number()},
    ),
    "compact summary": lambda _pens: prompt("so far", isCompactSummary=True),
    "attached": lambda _pens: chain(
        "attachment", attachment={"type": "edited_text_file", "filename": "/d", "snippet": ""}
    ),
    "sidechain": lambda pens: prompt(_text(pens), isSidechain=True),
    "sidechain reply": lambda pens: reply(_text(pens), isSidechain=True, agentId="a33"),
    "elsewhere": _bare(cwd="/elsewhere/deep"),
    "fork": _bare(forkedFrom={"sessionId": "5e551011-0000-4000-8000-000000000001", "messageUuid": "x"}),
    "timeless": _bare(timestamp="left out"),
    "odd time": _bare(timestamp="2026-01-05T09:00+02:00"),
    "other session": _bare(sessionId="5e551011-0000-4000-8000-000000000003"),
    "half a character": lambda pens: (
        b'{"type":"user","uuid":"h%d","message":{"role":"user","content":"\\ud83d x"}}\n' % pens.number()
    ),
    "garbage": lambda pens: b"\xff\xfe not json %d\n" % pens.number(),
    "empty": lambda _pens: b"\n",
    "two in one": lambda pens: b'{"type":"summary","summary":"a%d"}{"type":"summary","summary":"b"}\n' % pens.number(),
}
"""What may be written next, by name."""
