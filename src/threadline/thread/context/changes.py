"""What changed between two requests that makes a cache useless, where the transcript tells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from threadline.model.attachments.hooks import HookAttachment
from threadline.model.attachments.listings import Delta
from threadline.model.attachments.modes import OutputStyle
from threadline.model.entries import (
    ApiRequestEntry,
    ApiRequestShapeEntry,
    AttachmentEntry,
    Entry,
    HookProgress,
    ProgressEntry,
    UserEntry,
)
from threadline.thread.context.windows import Sent

_RESUMED = frozenset({"SessionStart:resume", "SessionStart:startup"})
_SEVERAL = 4
_LONGEST = 60
# The parameters of a request that are part of what a cache is found by, beside model, system prompt and tools.
_PARAMETERS = ("thinking", "output_config", "tool_choice", "speed", "betas")
_Pair = tuple[str, str, str]


class Changes:
    """What an agent's entries tell of how each request was made; each answer is a sentence, or None for no change."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._requests: dict[str, ApiRequestEntry] = {}
        self._shapes: dict[str, Any] = {}
        self._asked: list[int] = []
        for at, entry in enumerate(entries):
            match entry:
                case ApiRequestEntry(id=str(name)):
                    self._requests[name] = entry
                case ApiRequestShapeEntry(shape_hash=str(name)):
                    self._shapes[name] = entry.shape
                case UserEntry() if entry.thinking_metadata is not None:
                    self._asked.append(at)

    def tools(self, before: Sent, one: Sent) -> str | None:
        """That system prompt or tools are others: by the requests as they were sent, else by rows that say so."""
        old, new = self._request(before), self._request(one)
        if old is not None and new is not None:
            return self._other_shape(old.shape_hash, new.shape_hash) if old.shape_hash != new.shape_hash else None
        between = self._entries[before.first : one.first]
        return next((told for entry in between if (told := _tool_row(entry)) is not None), None)

    def settings(self, before: Sent, one: Sent) -> str | None:
        """That effort, speed, thinking or another parameter is another."""
        pairs = [*self._parameters(before, one), *_told(before, one), *self._prompted(before, one)]
        return next((f"{name} was {old}, and is {new} now" for name, old, new in pairs if old != new), None)

    def restart(self, before: Sent, one: Sent) -> str | None:
        """That another version wrote it, or that the session was taken up again: the program began anew."""
        old, new = before.rows[-1].version, one.rows[0].version
        if old and new and old != new:
            return f"Claude Code {_short(old)} sent the request before, {_short(new)} this one"
        between = self._entries[before.first : one.first]
        at = next((entry.line.number for entry in between if _is_resumed(entry)), None)
        return f"the session was taken up again at line {at}" if at is not None else None

    def _request(self, sent: Sent) -> ApiRequestEntry | None:
        """The row that holds the request as it was sent."""
        name = next((row.request_ref for row in sent.rows if row.request_ref), None)
        return self._requests.get(name) if name is not None else None

    def _other_shape(self, old: str | None, new: str | None) -> str:
        had, has = _tool_names(self._shapes.get(old or "")), _tool_names(self._shapes.get(new or ""))
        if had == has:
            return "the system prompt or a tool's description is another than in the request before"
        came, went = [one for one in has if one not in had], [one for one in had if one not in has]
        return f"the tools are others than in the request before{_listed('came', came)}{_listed('went', went)}"

    def _parameters(self, before: Sent, one: Sent) -> Iterator[_Pair]:
        old, new = self._request(before), self._request(one)
        if old is None or new is None or not isinstance(old.params, dict) or not isinstance(new.params, dict):
            return
        for name in _PARAMETERS:
            yield name, _short(old.params.get(name)), _short(new.params.get(name))

    def _prompted(self, before: Sent, one: Sent) -> Iterator[_Pair]:
        """What the prompts before the two requests asked for."""
        old, new = self._prompt_before(before.first), self._prompt_before(one.first)
        if old is None or new is None or old is new:
            return
        if old.thinking_metadata is not None and new.thinking_metadata is not None:
            yield "thinking", _thinking(old), _thinking(new)

    def _prompt_before(self, at: int) -> UserEntry | None:
        """The nearest row before that says how it was sent."""
        here = bisect_left(self._asked, at)
        entry = self._entries[self._asked[here - 1]] if here else None
        return entry if isinstance(entry, UserEntry) else None


def _tool_names(shape: Any) -> list[str]:
    tools = shape.get("tools") if isinstance(shape, dict) else None
    return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _listed(verb: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _SEVERAL} more" if len(names) > _SEVERAL else ""
    return f"; {verb}: {', '.join(map(_short, names[:_SEVERAL]))}{more}"


def _tool_row(entry: Entry) -> str | None:
    """What a row says of tools, agents, servers or the style that came or went; a first list is no change."""
    told = entry.attachment if isinstance(entry, AttachmentEntry) else None
    if isinstance(told, OutputStyle):
        return f"the output style was set at line {entry.line.number}"
    if not isinstance(told, Delta) or told.is_initial:
        return None
    came = told.added_names or told.added_types or []
    went = told.removed_names or told.removed_types or []
    if not came and not went:
        return None
    what = told.type.removesuffix("_delta").replace("_", " ")
    return f"{what} changed at line {entry.line.number}{_listed('came', came)}{_listed('went', went)}"


def _short(value: Any) -> str:
    text = str(value) if value is not None else "not set"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _told(before: Sent, one: Sent) -> Iterator[tuple[str, str, str]]:
    """What the rows of both replies say of how they were asked for; what one does not say is no change."""
    for name, of in (("effort", _effort), ("speed", _speed)):
        old, new = of(before), of(one)
        if old and new:
            yield name, old, new


def _effort(sent: Sent) -> str | None:
    return next((row.effort for row in sent.rows if row.effort), None)


def _speed(sent: Sent) -> str | None:
    usages = (row.message.usage for row in sent.rows if row.message is not None)
    return next((usage.speed for usage in usages if usage is not None and usage.speed), None)


def _thinking(prompt: UserEntry) -> str:
    told = prompt.thinking_metadata
    if told is None:
        return "not told"
    level = told.level or ("off" if told.disabled else "on")
    return f"{level}, at most {told.max_thinking_tokens} tokens" if told.max_thinking_tokens is not None else level


def _is_resumed(entry: Entry) -> bool:
    told = entry.attachment if isinstance(entry, AttachmentEntry) else None
    if isinstance(entry, ProgressEntry):
        return isinstance(entry.progress, HookProgress) and entry.progress.hook_name in _RESUMED
    return isinstance(told, HookAttachment) and told.hook_name in _RESUMED
