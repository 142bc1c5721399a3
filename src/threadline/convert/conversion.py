"""Build transcripts from source rows, and report what the source did not have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from msgspec import Struct

from threadline.convert.source_rows import CHAIN_KINDS, SourceRow, read_source
from threadline.errors import BadQuery, Unreadable
from threadline.files import write_file
from threadline.find import folder_name
from threadline.model.times import parse_timestamp
from threadline.store import encode_entry

_NAMESPACE = uuid5(NAMESPACE_URL, "threadline convert")
UNKNOWN_VERSION = "unknown"
"""The version of rows whose writer is not known. It is not a number, so no rule for a version applies."""
UNKNOWN_MODEL = "unknown"
"""The model of replies that name none."""
UNKNOWN_TOOL = "unknown"
"""The tool of calls that name none."""
NO_PROMPT = "(The prompt is not part of the converted output.)"
"""The text in place of a prompt that the source does not have."""
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}
_LAST_TIME = datetime(9999, 1, 1, tzinfo=UTC)
_CALL_FIELDS = frozenset({"tool", "tool_use_id", "id", "name", "input"})
_RESULT_FIELDS = frozenset({"result", "tool_use_id", "content", "is_error"})
_RENAMED_CALL = "its call has another id in the transcript"
_ID_FIELDS = ("leafUuid", "messageId", "logicalParentUuid", "sourceToolAssistantUUID", "snapshotMessageId")
_AGENT_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.@-]{0,127}")
"""An id that can be part of a file name. A source may come from anywhere."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
Row = dict[str, Any]


class Finding(Struct, frozen=True):
    """Something that only the converted session has, or only its source.

    `what` is `invented`, `changed`, `merged` or `dropped`. `example` is the first value, `place` the first place in the
    source.
    """

    session: str
    what: str
    field: str
    count: int
    example: str
    reason: str
    place: str


class ConvertedSession(Struct, frozen=True):
    """A session as transcripts: `files` maps paths below a project's folder to rows, or to an agent's metadata."""

    session: str
    sources: tuple[str, ...]
    cwd: str
    files: dict[str, list[Row] | Row]
    findings: tuple[Finding, ...]

    @property
    def rows(self) -> int:
        """The number of rows in all transcripts."""
        return sum(len(rows) for rows in self.files.values() if isinstance(rows, list))

    @property
    def agents(self) -> int:
        """The number of agents with a transcript."""
        return sum(name.endswith(".jsonl") for name in self.files) - 1


class Conversion(Struct, frozen=True):
    """The sessions of all sources, and what could not be used of those without a session."""

    sessions: tuple[ConvertedSession, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def all_findings(self) -> Iterator[Finding]:
        """The findings of all sessions."""
        yield from self.findings
        for session in self.sessions:
            yield from session.findings


def convert_files(paths: Sequence[Path], *, cwd: str, prompt: str | None = None) -> Conversion:
    """Convert files to sessions. Rows of one session may be in several files, in order.

    Args:
        paths: the files.
        cwd: the working directory of sessions that name none.
        prompt: the text of the first prompt of sessions that do not have it, as `claude -p` does not print it.

    Raises:
        NotFound: a file does not exist.
        Unreadable: a file cannot be read.
    """
    builders: dict[str, _SessionBuilder] = {}
    unused: _Findings = _Findings("")
    for path in paths:
        rows = read_source(path)
        if not any(row.kind in _CONTENT_KINDS for row in rows):
            for row in rows:
                unused.add("dropped", row.name, "", _DROPPED, row)
            continue
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        for id_, own in _group_by_session(path, rows):
            builder = builders.setdefault(id_, _SessionBuilder(id_, cwd, prompt))
            builder.add_file(path, modified, own)
    return Conversion(tuple(builder.finish() for builder in builders.values()), unused.all())


_CONTENT_KINDS = CHAIN_KINDS - {"system", "progress"} | {"tool_use", "tool_result"}
_DROPPED = "a transcript has no such row"


def _group_by_session(path: Path, rows: list[SourceRow]) -> Iterator[tuple[str, list[SourceRow]]]:
    """Yield the rows of each session. The file's name is the id if it is a UUID, otherwise what the rows say.

    Claude Code only resumes a UUID, so each other id gets one that depends on it and on the file's content.
    """
    if _UUID.fullmatch(path.stem):
        yield path.stem, rows
        return
    named = [row.fields.get("sessionId") for row in rows]
    names = list(dict.fromkeys(name for name in named if isinstance(name, str) and name))
    content = [row.fields for row in rows]
    ids = {name: name if _is_uuid(name) else _make_uuid("session", name, content) for name in names}
    if len(names) == 1 and not _is_uuid(names[0]):
        ids[names[0]] = _make_uuid("session", content)
    current = ids[names[0]] if names else _make_uuid("session", content)
    groups: dict[str, list[SourceRow]] = {}
    for row, name in zip(rows, named, strict=True):
        current = ids.get(name, current) if isinstance(name, str) else current
        groups.setdefault(current, []).append(row)
    yield from groups.items()


def _is_uuid(value: Any) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def _make_uuid(*parts: Any) -> str:
    """Return an id that depends only on the content."""
    return str(uuid5(_NAMESPACE, json.dumps(parts, sort_keys=True, ensure_ascii=True)))


def _make_id(prefix: str, *parts: Any) -> str:
    """Return an id that looks like the API's, and depends only on the content."""
    return f"{prefix}{UUID(_make_uuid(prefix, *parts)).hex[:24]}"


class _Findings:
    """Counts findings of the same kind."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._findings: dict[tuple[str, str, str], Finding] = {}

    def add(self, what: str, field: str, example: object, reason: str, row: SourceRow) -> None:
        """Count a finding."""
        key = (what, field, reason)
        first = self._findings.get(key) or Finding(
            self._session, what, field, 0, _shorten(example), reason, str(row.place)
        )
        self._findings[key] = Finding(self._session, what, field, first.count + 1, first.example, reason, first.place)

    def all(self) -> tuple[Finding, ...]:
        """Return the findings: invented ones first."""
        order = ("invented", "changed", "merged", "dropped")
        return tuple(sorted(self._findings.values(), key=lambda finding: (order.index(finding.what), finding.field)))


_MAX_EXAMPLE = 60


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_EXAMPLE else f"{text[:_MAX_EXAMPLE]}…"


class _Call(Struct):
    """A call without a result. `has_row` says that a row of its own repeats it."""

    id: str
    name: Any
    input: Any
    uuid: str
    has_row: bool = False


class _RowCall(Struct):
    """A call that is a row of its own. `id` is the id that it has besides the row's `uuid`, if any."""

    id: Any
    name: Any
    input: Any


class _Thread:
    """The rows of one conversation: the main one, or an agent's."""

    def __init__(self, agent: str | None = None) -> None:
        self.agent = agent
        self.rows: list[Row] = []
        self.last_uuid: str | None = None
        self.needs_prompt = agent is None
        self.message: Row | None = None  # the last reply, until a prompt follows
        self.calls: dict[str, _Call] = {}


class _SessionBuilder:
    """Builds the transcripts of one session."""

    def __init__(self, session: str, cwd: str, prompt: str | None) -> None:
        self._session = session
        self._default_cwd = cwd
        self._prompt = prompt
        self._findings = _Findings(session)
        self._sources: list[str] = []
        self._facts: dict[str, str] = {}
        self._agent_ids: dict[str, str] = {}  # by the call that started the agent
        self._main = _Thread()
        self._agents: dict[str, _Thread] = {}  # by the agent's id; an agent that is resumed has several calls
        self._agent_calls: dict[str, str] = {}  # the first call of each agent, by the agent's id
        self._agent_meta: dict[str, Row] = {}
        self._next_time: datetime | None = None
        self._call_ids: set[str] = set()
        self._renamed_calls: dict[str, str] = {}
        self._model = UNKNOWN_MODEL
        self._number = 0

    def add_file(self, path: Path, modified: datetime, rows: list[SourceRow]) -> None:
        """Add the rows of a file, in order."""
        self._sources.append(str(path))
        for name, source in (("cwd", "cwd"), ("version", "version"), ("version", "claude_code_version")):
            known = (row.fields.get(source) for row in rows)
            value = next((text for text in known if isinstance(text, str) and text), None)
            if value is not None:
                self._facts.setdefault(name, value)
        times = (parse_timestamp(row.fields.get("timestamp")) for row in rows)
        self._next_time = self._next_time or next(filter(None, times), modified)
        if not _UUID.fullmatch(path.stem) and not any(_is_uuid(row.fields.get("sessionId")) for row in rows):
            names = (row.fields.get("sessionId") for row in rows)
            own_id = next((id_ for id_ in names if isinstance(id_, str) and id_), None)
            reason = f"{own_id!r} is not a UUID" if own_id is not None else "the source names no session"
            self._findings.add("invented", "session", self._session, reason, rows[0])
        for row in rows:
            self._note_agent_id(row)
        for row in rows:
            self._number += 1
            self._add(row)

    def finish(self) -> ConvertedSession:
        """Return the session."""
        files: dict[str, list[Row] | Row] = {f"{self._session}.jsonl": self._main.rows}
        for agent, thread in self._agents.items():
            folder = f"{self._session}/subagents/agent-{agent}"
            call = self._agent_calls[agent]
            files[f"{folder}.jsonl"] = thread.rows
            files[f"{folder}.meta.json"] = {**self._agent_meta.get(call, {}), "toolUseId": call}
        cwd = self._facts.get("cwd", self._default_cwd)
        return ConvertedSession(self._session, tuple(self._sources), cwd, files, self._findings.all())

    def _note_agent_id(self, row: SourceRow) -> None:
        """Remember the id of an agent that the result of its call names."""
        result = row.fields.get("toolUseResult")
        if row.agent_call is None and isinstance(result, dict) and isinstance(result.get("agentId"), str):
            for block in _blocks(row.fields.get("message")):
                if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
                    if _AGENT_ID.fullmatch(result["agentId"]):
                        self._agent_ids.setdefault(block["tool_use_id"], result["agentId"])
                    else:
                        reason = "it cannot be part of a file name"
                        self._findings.add("dropped", "agentId", result["agentId"], reason, row)

    def _add(self, row: SourceRow) -> None:
        thread = self._main if row.agent_call is None else self._agent_thread(row)
        match row.kind:
            case "init":
                thread.needs_prompt = thread.needs_prompt or not thread.rows
                self._findings.add("dropped", row.name, "", "its working directory and version are used", row)
            case "result":
                self._add_cost(row)
            case "dropped":
                self._findings.add("dropped", row.name, "", _DROPPED, row)
            case "user":
                self._add_user(thread, row, self._message(row, "user"), row.fields)
            case "assistant":
                self._add_reply(thread, row, self._message(row, "assistant"), row.fields)
            case "tool_use":
                self._add_call_row(thread, row)
            case "tool_result":
                self._add_result_row(thread, row)
            case kind if kind in CHAIN_KINDS:
                self._append(thread, row, row.fields)
            case _:
                self._add_state(row)

    def _agent_thread(self, row: SourceRow) -> _Thread:
        call = self._renamed_calls.get(row.agent_call or "", row.agent_call or "")
        agent = self._agent_ids.get(call) or self._agent_ids.get(row.agent_call or "")
        if agent is None:
            agent = self._agent_ids[call] = _make_id("a", self._session, call)[:17]
            self._findings.add("invented", "agentId", agent, "the rows name only the call that started it", row)
        self._agent_calls.setdefault(agent, call)
        return self._agents.setdefault(agent, _Thread(agent))

    def _message(self, row: SourceRow, role: str) -> Row:
        """Return the message of a row, with the fields that every message has."""
        source = row.fields.get("message")
        message: Row = dict(source) if isinstance(source, dict) else {"content": source if source is not None else ""}
        if message.get("role") != role:
            message["role"] = role
            self._findings.add("invented", "message.role", role, "the message has none", row)
        if "content" not in message:
            message["content"] = ""
            self._findings.add("invented", "message.content", "", "the message has none", row)
        return message

    def _add_user(self, thread: _Thread, row: SourceRow, message: Row, fields: Row) -> None:
        message = self._rename_answered_calls(row, message)
        results = [block for block in _blocks(message) if block.get("type") == "tool_result"]
        extra: Row = {}
        for block in results:
            call = thread.calls.pop(str(block.get("tool_use_id")), None)
            if call is not None and "sourceToolAssistantUUID" not in fields:
                extra["sourceToolAssistantUUID"] = call.uuid
        if not results and not fields.get("isMeta"):
            thread.message = None
            thread.calls.clear()
        thread.needs_prompt = False
        self._append(thread, row, {**fields, "type": "user", "message": message, **extra})

    def _rename_answered_calls(self, row: SourceRow, message: Row) -> Row:
        """Return a message whose results name their calls by the ids that these got."""
        if not self._renamed_calls or not any("tool_use_id" in block for block in _blocks(message)):
            return message
        content = []
        for block in message["content"]:
            renamed = self._renamed_calls.get(str(block.get("tool_use_id"))) if isinstance(block, dict) else None
            if renamed is not None:
                self._findings.add("changed", "tool_use_id", renamed, _RENAMED_CALL, row)
            content.append(block if renamed is None else {**block, "tool_use_id": renamed})
        return {**message, "content": content}

    def _add_reply(self, thread: _Thread, row: SourceRow, message: Row, fields: Row) -> None:
        if thread.needs_prompt and "parentUuid" not in fields:
            self._add_missing_prompt(thread, row)
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
            self._findings.add("changed", "message.content", "", "the text of a reply is a block", row)
        missing = {
            "id": _make_id("msg_", self._session, self._number, row.fields),
            "type": "message",
            "model": UNKNOWN_MODEL,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": dict(_NO_USAGE),
        }
        for name, value in missing.items():
            if message.get(name) is None:
                is_known = name in message and value is None
                message[name] = value
                if not is_known:
                    self._findings.add("invented", f"message.{name}", value, "the reply has none", row)
        self._model = str(message["model"])
        ordered: Row = {name: message[name] for name in ("model", "id", "type", "role", "content")}
        message = {**ordered, **message}
        if thread.message is not None and thread.message["id"] != message["id"]:
            thread.calls.clear()  # the conversation went on without their results
        thread.message = message
        extra: Row = {"isApiErrorMessage": True} if fields.get("error") and "isApiErrorMessage" not in fields else {}
        uuid = self._append(thread, row, {**fields, "type": "assistant", "message": message, **extra})
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                self._note_call(thread, _Call(str(block.get("id")), block.get("name"), block.get("input"), uuid))

    def _note_call(self, thread: _Thread, call: _Call) -> None:
        thread.calls[call.id] = call
        self._call_ids.add(call.id)
        self._renamed_calls.pop(call.id, None)
        if isinstance(call.input, dict):
            known = {"agentType": call.input.get("subagent_type"), "description": call.input.get("description")}
            self._agent_meta[call.id] = {key: value for key, value in known.items() if isinstance(value, str)}

    def _add_missing_prompt(self, thread: _Thread, row: SourceRow) -> None:
        """Add a prompt: Claude Code cannot resume a session that begins with a reply."""
        content, self._prompt = self._prompt, None
        fields: Row = {"type": "user", "message": {"role": "user", "content": content or NO_PROMPT}}
        self._findings.add("invented", "prompt", content or NO_PROMPT, "the output of a run does not contain it", row)
        thread.needs_prompt = False
        self._number += 1
        self._append(thread, row, fields, silent=True)

    def _add_call_row(self, thread: _Thread, row: SourceRow) -> None:
        """Add a call that is a row of its own, unless a reply already makes it."""
        tool = _call_of_row(row)
        named = tool.id or row.fields.get("uuid")
        id_ = named if isinstance(named, str) and named else _make_id("toolu_", self._session, self._number, row.fields)
        for call in thread.calls.values():
            is_same = call.id == id_ or (not tool.id and call.name == tool.name and call.input == tool.input)
            if is_same and not call.has_row:
                call.has_row = True
                self._note_renamed_call(named, call.id)
                self._findings.add(
                    "merged", "tool_use", id_, "the row repeats a call that the reply before it makes", row
                )
                return
        if id_ != named:
            self._note_renamed_call(named, id_)
            reason = "its id is not text" if named else "the call has none"
            self._findings.add("changed" if named else "invented", "tool_use.id", id_, reason, row)
        if not isinstance(tool.name, str):
            tool.name = UNKNOWN_TOOL
            self._findings.add("invented", "tool_use.name", UNKNOWN_TOOL, "the call has none", row)
        if tool.input is None:
            tool.input = {}
            self._findings.add("invented", "tool_use.input", {}, "the call has none", row)
        if thread.needs_prompt:
            self._add_missing_prompt(thread, row)
        message = thread.message
        if message is None:
            message = {
                "model": self._model,
                "id": _make_id("msg_", self._session, self._number, row.fields),
                "type": "message",
                "role": "assistant",
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": dict(_NO_USAGE),
            }
            self._findings.add("invented", "message", message["id"], "no reply makes this call", row)
        block = {"type": "tool_use", "id": id_, "name": tool.name, "input": tool.input}
        self._findings.add("changed", "tool_use", id_, "the row of a call becomes a block of the reply", row)
        message = {**message, "content": [block]}
        thread.message = message
        fields = {name: value for name, value in row.fields.items() if name not in _CALL_FIELDS}
        if row.fields.get("uuid") == id_:
            fields.pop("uuid")  # it becomes the call's id
        uuid = self._append(thread, row, {**fields, "type": "assistant", "message": message})
        self._note_call(thread, _Call(id_, tool.name, tool.input, uuid, has_row=True))

    def _note_renamed_call(self, named: Any, id_: str) -> None:
        """Remember the id of a call that its source names otherwise, for its results and its agent."""
        if named and str(named) not in self._call_ids:
            self._renamed_calls[str(named)] = id_

    def _add_result_row(self, thread: _Thread, row: SourceRow) -> None:
        """Add a result that is a row of its own. One that names no call answers the oldest one without a result."""
        content, is_error = self._result_of_row(row)
        named = row.fields.get("tool_use_id")
        id_ = str(named) if named else next(iter(thread.calls), None)
        if id_ is None:
            self._findings.add("dropped", "tool_result", content, "no call is without a result", row)
            return
        if not named:
            self._findings.add("invented", "tool_result.tool_use_id", id_, "the result does not name its call", row)
        block = {"type": "tool_result", "tool_use_id": id_, "content": content, "is_error": is_error}
        self._findings.add("changed", "tool_result", id_, "the row of a result becomes a block of a user row", row)
        fields = {name: value for name, value in row.fields.items() if name not in _RESULT_FIELDS}
        error = _as_dict(row.fields.get("result")).get("error")
        if error:
            fields["toolUseResult"] = f"Error: {_as_text(error)}"
        self._add_user(thread, row, {"role": "user", "content": [block]}, fields)

    def _result_of_row(self, row: SourceRow) -> tuple[str | list[Any], bool]:
        """Return the content of a result that is a row of its own, and whether it is an error."""
        fields = row.fields
        result = fields.get("result")
        result = result if isinstance(result, dict) else {"output": result}
        is_error = fields.get("is_error") is True or bool(result.get("error"))
        content = fields.get("content")
        if isinstance(content, str | list) and content:
            return content, is_error
        parts = [part for part in (content, result.get("output"), result.get("error")) if part not in (None, "")]
        if not parts and "result" not in fields and content is None:
            self._findings.add("invented", "tool_result.content", "", "the result has none", row)
        return "\n".join(map(_as_text, parts)), is_error

    def _add_cost(self, row: SourceRow) -> None:
        """Add the total of a run as Claude Code writes it when a session closes."""
        fields = row.fields
        self._main.needs_prompt = True
        cost = fields.get("total_cost_usd")
        if not isinstance(cost, int | float) or isinstance(cost, bool):
            self._findings.add("dropped", row.name, "", "it has no cost", row)
            return
        models = fields.get("modelUsage")
        if not isinstance(models, dict):
            models = {}
            self._findings.add("invented", "cost-state.modelUsage", {}, "the result has none", row)
        total: Row = {"type": "cost-state", "sessionId": self._session, "totalCostUSD": cost}
        names = {"totalAPIDuration": "duration_api_ms", "totalDuration": "duration_ms"}
        total.update((name, fields[source]) for name, source in names.items() if fields.get(source) is not None)
        self._main.rows.append({**total, "modelUsage": models})
        self._findings.add("changed", row.name, cost, "it becomes a `cost-state` row; the rest of it is left out", row)

    def _add_state(self, row: SourceRow) -> None:
        """Add a row outside the conversation unchanged, except for ids."""
        fields = self._map_ids(row.fields)
        if "sessionId" in fields:
            fields["sessionId"] = self._session
        self._main.rows.append(fields)

    def _append(self, thread: _Thread, row: SourceRow, fields: Row, *, silent: bool = False) -> str:
        """Append a row of the conversation, with every field that Claude Code writes; return its id."""
        fields = self._map_ids(fields)
        uuid = self._uuid(row, fields, silent=silent)
        parent = self._parent(thread, row, fields, silent=silent)
        timestamp = self._timestamp(row, fields, silent=silent)
        if fields.get("sessionId") not in (None, self._session):
            self._findings.add("changed", "sessionId", fields["sessionId"], f"the session is {self._session}", row)
        elif "sessionId" not in fields and not silent:
            self._findings.add("invented", "sessionId", self._session, "the row has none", row)
        facts = {
            "isSidechain": thread.agent is not None,
            "userType": "external",
            "cwd": self._facts.get("cwd", self._default_cwd),
            "version": self._facts.get("version", UNKNOWN_VERSION),
            "gitBranch": "",
        }
        for name, value in facts.items():
            if fields.get(name) is None or (name == "isSidechain" and fields[name] != value):
                fields[name] = value
                if not silent:
                    reason = "taken from another row" if name in self._facts else "the row has none"
                    self._findings.add("invented", name, value, reason, row)
        agent = {"agentId": thread.agent} if thread.agent is not None else {}
        ids = {"sessionId": self._session, "parentUuid": parent, "uuid": uuid, "timestamp": timestamp, **agent}
        complete = {**fields, **ids}
        order = ("parentUuid", "isSidechain", "agentId", "userType", "cwd", "sessionId", "version", "gitBranch", "type")
        first = {name: complete.pop(name) for name in order if name in complete}
        last = {name: complete.pop(name) for name in ("uuid", "timestamp")}
        thread.rows.append({**first, **complete, **last})
        thread.last_uuid = uuid
        return uuid

    def _map_ids(self, fields: Row) -> Row:
        """Replace the ids of other rows by those that these rows get."""
        return {
            name: self._known_id(value) if name in _ID_FIELDS and isinstance(value, str) else value
            for name, value in fields.items()
        }

    def _known_id(self, text: str) -> str:
        return text if _is_uuid(text) else _make_uuid(self._session, "uuid", text)

    def _uuid(self, row: SourceRow, fields: Row, *, silent: bool) -> str:
        source = fields.get("uuid")
        if isinstance(source, str) and source:
            uuid = self._known_id(source)
            if uuid != source:
                self._findings.add("changed", "uuid", source, "it is not a UUID", row)
            return uuid
        uuid = _make_uuid(self._session, self._number, fields)
        if not silent:
            self._findings.add("invented", "uuid", uuid, "the row has none", row)
        return uuid

    def _parent(self, thread: _Thread, row: SourceRow, fields: Row, *, silent: bool) -> str | None:
        if "parentUuid" in fields:
            parent = fields["parentUuid"]
            return self._known_id(parent) if isinstance(parent, str) else None
        if not silent and thread.last_uuid is not None:
            self._findings.add("invented", "parentUuid", thread.last_uuid, "the row before it in the source", row)
        return thread.last_uuid

    def _timestamp(self, row: SourceRow, fields: Row, *, silent: bool) -> Any:
        source = fields.get("timestamp")
        moment = parse_timestamp(source)
        is_known = moment is not None
        moment = moment or self._next_time or datetime.fromtimestamp(0, UTC)
        self._next_time = moment + timedelta(milliseconds=1) if moment < _LAST_TIME else moment
        if is_known and isinstance(source, str) and "T" in source:
            return source
        text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if source is not None:
            self._findings.add("changed", "timestamp", source, "it is not in ISO 8601", row)
        elif not silent:
            self._findings.add("invented", "timestamp", text, "1 ms after the row before it, or the file's time", row)
        return text


def _call_of_row(row: SourceRow) -> _RowCall:
    """Return the call of a row: its name and input are in `tool`, or the row has the fields of an API block."""
    fields, tool = row.fields, _as_dict(row.fields.get("tool"))
    id_ = fields.get("id") or tool.get("id") or fields.get("tool_use_id")
    tool_input = fields.get("input")
    return _RowCall(
        id_, fields.get("name") or tool.get("name"), tool.get("input") if tool_input is None else tool_input
    )


def _as_dict(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


def _blocks(message: Any) -> list[Row]:
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def target_paths(conversion: Conversion, folder: Path) -> dict[str, Path]:
    """Return the folder of each session's files: `folder`, or the project's folder if `folder` is a Claude home."""
    is_home = (folder / "projects").is_dir()
    return {
        session.session: folder / "projects" / folder_name(session.cwd) if is_home else folder
        for session in conversion.sessions
    }


def write_conversion(conversion: Conversion, folder: Path) -> list[Path]:
    """Write all transcripts, and return the main one of each session. Nothing is written if a file exists.

    Raises:
        BadQuery: a file exists.
        Unreadable: a file cannot be written.
    """
    folders = target_paths(conversion, folder)
    files = {
        folders[session.session] / name: _encode(content)
        for session in conversion.sessions
        for name, content in session.files.items()
    }
    for path in files:
        if path.exists():
            raise BadQuery(f"{str(path)!r} exists. Choose another --out folder, or remove the file.")
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, data, overwrite=False)
    except OSError as error:
        raise Unreadable(f"Cannot write to {str(folder)!r}: {error.strerror or error}.") from error
    return [folders[session.session] / f"{session.session}.jsonl" for session in conversion.sessions]


def _encode(content: list[Row] | Row) -> bytes:
    rows: Iterable[Row] = content if isinstance(content, list) else [content]
    return b"".join(map(encode_entry, rows))
