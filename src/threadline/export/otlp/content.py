"""The text in spans: names, always redacted, and the content of messages and calls, only on request.

Content has the JSON form of the GenAI conventions: messages with a role and parts. A `chat` span has the messages that
were added since the previous request of the agent, not the whole history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from threadline.export.otlp import conventions as names
from threadline.export.otlp.message_rows import TurnRange
from threadline.json_values import encode_json
from threadline.model.blocks import (
    McpToolUseBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.session import ActKind, Agent, Session
from threadline.model.text import extract_text
from threadline.redact import Level, SessionRedactor

_MAX_TEXT = 32_768
"""Longer texts are cut: a result may have megabytes, and consumers limit the size of a request."""
_MAX_DEPTH = 100
_MAX_BITS = 63
_GENERATED_ID = re.compile(
    r"(?:msg|toolu|srvtoolu|req)_(?:[a-z]{3,5}_)?[0-9A-Za-z]{20,40}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
_PROMPT_KINDS = frozenset((ActKind.PROMPT, ActKind.COMMAND, ActKind.STEERING, ActKind.PROGRAMMATIC, ActKind.PLAN))
_TOOL_USES = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)


class NameRedactor:
    """Redacts names: of tools, models and agents, ids, and paths. Without a redactor, they stay as they are."""

    def __init__(self, redactor: SessionRedactor | None) -> None:
        self._redactor = redactor
        self._cache: dict[tuple[str, str], str] = {}

    def field(self, key: str, text: str) -> str:
        """Redact the value of a field that transcripts have. The level `metrics` keeps kinds and ids."""
        return self._redact(key, text, {key: text})

    def id(self, key: str, text: str) -> str:
        """Redact an id, unless it is one that the API or Claude Code made: those say nothing."""
        return text if _GENERATED_ID.fullmatch(text) else self.field(key, text)

    def tool(self, name: str) -> str:
        """Redact the name of a tool."""
        return self._redact("name", name, {"type": "tool_use", "name": name})

    def text(self, key: str, text: str | None) -> str | None:
        """Redact the value of a field that is not a name; None with the level `metrics`."""
        if text is None or (self._redactor is not None and self._redactor.level is Level.METRICS):
            return None
        return self.field(key, text)

    def _redact(self, key: str, text: str, record: dict[str, str]) -> str:
        if self._redactor is None:
            return text
        known = self._cache.get((key, text))
        if known is None:
            self._redactor.learn(record)
            known = self._cache[key, text] = str(self._redactor.redact(record, "name").get(key, ""))
        return known


class Content:
    """The content of a session's spans, read from the session itself or from a redacted copy of it.

    `paths` maps the transcripts of the copy to the originals. With `thinking` False, thinking is left out.
    """

    def __init__(self, session: Session, paths: Mapping[str, str] | None = None, *, thinking: bool = True) -> None:
        self._session = session
        self._paths = paths or {}
        self._thinking = thinking
        self._rows: dict[str, AssistantEntry] = {}
        self._inputs: dict[str, list[UserEntry]] = {}
        self._calls = session.calls_by_id
        for agent in (session.main, *session.agents):
            self._add_rows(agent)

    def of_session(self, turns: TurnRange) -> dict[str, Any]:
        """The title, the prompts and the last reply of a session; of some turns, only their prompts and last reply."""
        session = self._session
        chosen = [turn for turn in session.main.turns if turns.contains(turn.number)]
        acts = [turn.act for turn in chosen if turn.act is not None]
        prompts = [act.text for act in acts if act.kind in _PROMPT_KINDS and act.text]
        if turns != TurnRange():
            return _messages(prompts, chosen[-1].reply if chosen else "")
        attributes = _messages(prompts, session.main.result)
        if session.title.text:
            attributes[names.TITLE] = _cut(session.title.text)
        return attributes

    def of_agent(self, agent: Agent) -> dict[str, Any]:
        """The prompt and the result of a subagent."""
        copy = self._session.agent(agent.id)
        return _messages([copy.prompt] if copy.prompt else [], copy.result) if copy is not None else {}

    def of_message(self, rows: Sequence[AssistantEntry]) -> dict[str, Any]:
        """What the model was sent since its last reply, and its reply."""
        copies = [copy for row in rows if (copy := self._rows.get(self._key(row))) is not None]
        parts = [part for copy in copies for part in self._reply_parts(copy)]
        attributes = {}
        inputs = self._inputs.get(self._key(rows[0]), ()) if rows else ()
        messages = [message for entry in inputs for message in _input_messages(entry)]
        if messages:
            attributes[names.INPUT_MESSAGES] = _json(messages)
        if parts:
            reason = next((row.stop_reason for row in reversed(copies) if row.stop_reason), None) or "unknown"
            reply = {"role": "assistant", "parts": parts, "finish_reason": reason}
            attributes[names.OUTPUT_MESSAGES] = _json([reply])
        return attributes

    def of_call(self, call: Call) -> dict[str, Any]:
        """The arguments and the result of a call."""
        copy = self._calls.get(call.id)
        if copy is None:
            return {}
        attributes = {names.TOOL_ARGUMENTS: _json(_cut_all(copy.input))}
        if copy.block is not None:
            attributes[names.TOOL_RESULT] = _cut(copy.output)
        return attributes

    def _add_rows(self, agent: Agent) -> None:
        """Remember the rows of an agent, and what was written before each message."""
        pending: list[UserEntry] = []
        last_message: str | None = None
        for entry in agent.entries:
            if isinstance(entry, UserEntry):
                pending.append(entry)
            elif isinstance(entry, AssistantEntry):
                key = self._key(entry)
                self._rows.setdefault(key, entry)
                message = entry.message.id if entry.message is not None else None
                if message is None or message != last_message:
                    self._inputs.setdefault(key, pending)
                    pending, last_message = [], message

    def _key(self, entry: Entry) -> str:
        path = entry.line.transcript
        return entry.uuid or f"{self._paths.get(path, path)}:{entry.line.number}"

    def _reply_parts(self, row: AssistantEntry) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for block in row.message.blocks if row.message is not None else ():
            if isinstance(block, TextBlock) and block.text:
                parts.append({"type": "text", "content": _cut(block.text)})
            elif isinstance(block, ThinkingBlock) and block.thinking and self._thinking:
                parts.append({"type": "reasoning", "content": _cut(block.thinking)})
            elif isinstance(block, _TOOL_USES):
                arguments = _cut_all(block.input)
                parts.append({"type": "tool_call", "id": block.id, "name": block.name, "arguments": arguments})
        return parts


def _input_messages(entry: UserEntry) -> list[dict[str, Any]]:
    """A user entry as messages: each tool's result is one of its own, and the rest is what the user wrote."""
    content = entry.message.content if entry.message is not None else None
    if not isinstance(content, list):
        text = extract_text(content)
        return [_user_message(text)] if text else []
    results = [
        {"role": "tool", "parts": [_result_part(block)]} for block in content if isinstance(block, ToolResultBlock)
    ]
    text = "\n".join(extract_text([block]) for block in content if not isinstance(block, ToolResultBlock))
    return [*results, _user_message(text)] if text.strip() else results


def _result_part(block: ToolResultBlock) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": block.tool_use_id, "response": _cut(extract_text(block.content))}


def _user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": _cut(text)}]}


def _messages(prompts: Sequence[str], reply: str) -> dict[str, Any]:
    attributes = {}
    if prompts:
        attributes[names.INPUT_MESSAGES] = _json([_user_message(prompt) for prompt in prompts])
    if reply:
        part = {"type": "text", "content": _cut(reply)}
        attributes[names.OUTPUT_MESSAGES] = _json([{"role": "assistant", "parts": [part], "finish_reason": "stop"}])
    return attributes


def _cut(text: str) -> str:
    """Cut a text that is too long, and say how long it was."""
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}… ({len(text):,} characters)"


def _cut_all(value: Any, depth: int = 0) -> Any:
    """Cut all texts in a JSON value, and what cannot be encoded: deep nesting and huge integers."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return str(value)
    if not isinstance(value, dict | list):
        return value
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {key: _cut_all(item, depth + 1) for key, item in value.items()}
    return [_cut_all(item, depth + 1) for item in value]


def _json(value: Any) -> str:
    return encode_json(value).decode()
