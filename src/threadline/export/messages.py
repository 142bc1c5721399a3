"""Write conversations as JSON lines of messages, in the shape of OpenAI's or of Anthropic's API.

A line has the messages of one conversation and the tools that it calls. The messages are what the API would accept:
roles alternate as it demands, the first is the user's, and each call is followed by its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from threadline.export.conversations import (
    NO_RESULT,
    Conversation,
    ExportedSession,
    Step,
    StepCall,
    StepKind,
    without_none,
)
from threadline.export.leak_check import RecordChecker
from threadline.export.output import StagedFile
from threadline.json_values import encode_json
from threadline.model.blocks import RedactedThinkingBlock, TextBlock, ThinkingBlock

NO_PROMPT = "(no prompt)"
"""The first message of a conversation whose transcript begins with a reply."""
_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class MessageShape(StrEnum):
    """The API whose messages are written."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class MessagesWriter:
    """Writes a line for each conversation in which the model said something."""

    def __init__(self, folder: Path, checker: RecordChecker, name: str, shape: MessageShape, *, thinking: bool) -> None:
        self._name = name
        self._check = checker.check
        self._shape = shape
        self._thinking = thinking
        self._path = folder / name
        self._file = self._path.open("wb")

    def add(self, exported: ExportedSession) -> None:
        """Write the conversations of a session."""
        for conversation in exported.conversations:
            messages = build_messages(conversation, self._shape, thinking=self._thinking)
            if not any(message["role"] == "assistant" for message in messages):
                continue
            line = {
                "messages": [self._check(message, self._name) for message in messages],
                "tools": self._check(describe_tools(conversation, self._shape), self._name),
                "metadata": {"session_id": conversation.session, "conversation": conversation.id},
            }
            self._file.write(encode_json(line) + b"\n")

    def finish(self) -> list[StagedFile]:
        """Close the file."""
        self._file.close()
        return [StagedFile(self._path, self._name)]


def build_messages(conversation: Conversation, shape: MessageShape, *, thinking: bool) -> list[dict[str, Any]]:
    """The messages of a conversation. Replies that Claude Code wrote itself are left out, and so is blank text."""
    steps = [
        step
        for step in conversation.steps
        if not step.is_synthetic and (step.kind is StepKind.REPLY or step.text.strip())
    ]
    if steps and steps[0].kind is StepKind.REPLY:  # the prompt was lost, and the API needs one
        steps.insert(0, Step(StepKind.INJECTED, None, None, NO_PROMPT))
    if shape is MessageShape.OPENAI:
        return list(_join_texts(_openai_messages(steps, thinking=thinking)))
    return list(_join_roles(_anthropic_messages(steps, thinking=thinking)))


def _openai_messages(steps: Iterable[Step], *, thinking: bool) -> Iterator[dict[str, Any]]:
    for step in steps:
        if step.kind is not StepKind.REPLY:
            yield {"role": "user", "content": step.text}
            continue
        calls = step.calls
        reasoning = step.thinking if thinking else ""
        if not (step.text.strip() or calls or reasoning):
            continue
        yield without_none(
            {
                "role": "assistant",
                "content": step.text,
                "reasoning_content": reasoning or None,
                "tool_calls": [_openai_call(call) for call in calls] or None,
            }
        )
        for call in calls:
            yield {"role": "tool", "tool_call_id": call.id, "content": _output(call)}


def _join_texts(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Join messages of the same role that follow each other, unless they call tools or are results."""
    last: dict[str, Any] | None = None
    for message in messages:
        if last is None or message["role"] == "tool" or last["role"] != message["role"]:
            if last is not None:
                yield last
            last = message
            continue
        texts = {
            key: "\n\n".join(filter(None, (last.get(key), message.get(key))))
            for key in ("content", "reasoning_content")
        }
        last = {**last, **message, "content": texts["content"]}
        if texts["reasoning_content"]:
            last["reasoning_content"] = texts["reasoning_content"]
    if last is not None:
        yield last


def _openai_call(call: StepCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": encode_json(call.input).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _anthropic_messages(steps: Iterable[Step], *, thinking: bool) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for step in steps:
        if step.kind is not StepKind.REPLY:
            yield "user", [{"type": "text", "text": step.text}]
            continue
        blocks = [block for part in step.parts for block in _anthropic_blocks(part, thinking=thinking)]
        if not blocks:
            continue
        # The API demands that calls are last.
        yield "assistant", sorted(blocks, key=lambda block: block["type"] == "tool_use")
        if step.calls:
            yield "user", [_anthropic_result(call) for call in step.calls]


def _anthropic_blocks(part: Any, *, thinking: bool) -> Iterator[dict[str, Any]]:
    if isinstance(part, TextBlock) and part.text.strip():  # the API refuses blank text
        yield {"type": "text", "text": part.text}
    elif isinstance(part, ThinkingBlock) and thinking:
        yield {"type": "thinking", "thinking": part.thinking, "signature": part.signature or ""}
    elif isinstance(part, RedactedThinkingBlock) and thinking:
        yield {"type": "redacted_thinking", "data": part.data or ""}
    elif isinstance(part, StepCall):
        yield {"type": "tool_use", "id": part.id, "name": part.tool, "input": part.input}


def _anthropic_result(call: StepCall) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": call.id, "content": _output(call)}
    return {**result, "is_error": True} if call.is_error else result


def _join_roles(messages: Iterable[tuple[str, list[dict[str, Any]]]]) -> Iterator[dict[str, Any]]:
    """Join messages of the same role that follow each other."""
    role, blocks = "", list[dict[str, Any]]()
    for next_role, more in messages:
        if next_role != role and blocks:
            yield {"role": role, "content": blocks}
            blocks = []
        role = next_role
        blocks += more
    if blocks:
        yield {"role": role, "content": blocks}


def _output(call: StepCall) -> str:
    return call.output if call.output is not None else NO_RESULT


def describe_tools(conversation: Conversation, shape: MessageShape) -> list[dict[str, Any]]:
    """The tools that a conversation calls, with the parameters that occur in its calls.

    Transcripts do not contain the tools' own descriptions.
    """
    parameters: dict[str, dict[str, set[str]]] = {}
    for step in conversation.steps:
        for call in step.calls if not step.is_synthetic else ():
            known = parameters.setdefault(call.tool, {})
            for name, value in call.input.items():
                known.setdefault(name, set()).update({_JSON_TYPES[type(value)]} if type(value) in _JSON_TYPES else ())
    tools = []
    for tool, known in sorted(parameters.items()):
        properties = {name: _property(types) for name, types in sorted(known.items())}
        schema = {"type": "object", "properties": properties}
        if shape is MessageShape.OPENAI:
            tools.append({"type": "function", "function": {"name": tool, "parameters": schema}})
        else:
            tools.append({"name": tool, "input_schema": schema})
    return tools


def _property(types: set[str]) -> dict[str, Any]:
    if len(types) == 1:
        return {"type": next(iter(types))}
    return {"type": sorted(types)} if types else {}
