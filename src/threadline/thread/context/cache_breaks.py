"""Find requests that read much less from the prompt cache than they could have, and why."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from threadline.model.attachments import Delta, HookAttachment, OutputStyle
from threadline.model.blocks import ToolReferenceBlock, ToolResultBlock
from threadline.model.context import BreakCause, CacheBreak, ContextWindow
from threadline.model.entries import (
    ApiRequestEntry,
    ApiRequestShapeEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    HookProgress,
    ProgressEntry,
    UserEntry,
)
from threadline.model.places import EntryId
from threadline.model.program_texts import RESUME_HOOKS
from threadline.model.session import Agent, CompactionKind
from threadline.model.text import format_tokens
from threadline.thread.context.windows import SentRequest

# Less than this is the ordinary loss at the end of a prompt: the last blocks came after the last cache mark.
MIN_SHORTFALL = 2_000
MIN_READ_SHARE = 0.9
_MINUTE, _FIVE_MINUTES, _HOUR = timedelta(minutes=1), timedelta(minutes=5), timedelta(hours=1)
_SHOW_HOURS_FROM = timedelta(hours=3)


def find_cache_breaks(agent: Agent, sent: Sequence[SentRequest]) -> list[CacheBreak]:
    """Return every cache break of an agent, in order.

    What a request could have read is what the previous one read and wrote. The first request is skipped, and so are
    requests of unknown size.
    """
    sized = [request for request in sent if request.window.has_usage]
    causes = _BreakCauses(agent, sent)
    breaks = []
    lifetime = _FIVE_MINUTES
    for before, request in pairwise(sized):
        lifetime = _cache_lifetime(before) or lifetime
        expected, read = before.window.cached, request.window.cache_read
        shortfall = expected - read
        if shortfall < MIN_SHORTFALL or read >= MIN_READ_SHARE * expected:
            continue
        gap = _gap(before.window, request.window)
        cause, evidence = causes.of(before, request, gap, lifetime)
        breaks.append(
            CacheBreak(
                request=request.window.number,
                turn=request.window.turn,
                place=request.window.place,
                time=request.window.time,
                cause=cause,
                evidence=evidence,
                expected=expected,
                cache_read=read,
                shortfall=shortfall,
                rewritten=min(shortfall, request.window.prompt - read),
                gap=gap,
            )
        )
    return breaks


def _gap(before: ContextWindow, after: ContextWindow) -> timedelta | None:
    """Return the time between the first rows of two requests, which is about when they were sent."""
    if before.time is None or after.time is None or after.time < before.time:
        return None
    return after.time - before.time


def _cache_lifetime(sent: SentRequest) -> timedelta | None:
    """Return how long what a request wrote is kept: as requested, or as counted; None if it wrote nothing."""
    requested = next((row.prompt_cache_requested for row in sent.rows if row.prompt_cache_requested), None)
    if requested is not None:
        return _HOUR if requested == "1h" else _FIVE_MINUTES
    if not sent.window.cache_write:
        return None
    return _HOUR if sent.window.cache_write_1h >= sent.window.cache_write_5m else _FIVE_MINUTES


class _BreakCauses:
    """Looks for the cause of a break in the transcript, one possible cause after the other."""

    def __init__(self, agent: Agent, sent: Sequence[SentRequest]) -> None:
        self._parents = RequestParents(agent.entries, sent)
        self._changes = RequestChanges(agent.entries)
        rows = {id(compaction.boundary or compaction.summary): compaction for compaction in agent.compactions}
        at = [(at, rows[id(entry)]) for at, entry in enumerate(agent.entries) if id(entry) in rows]
        self._compacted, self._compactions = [pair[0] for pair in at], [pair[1] for pair in at]

    def of(
        self, before: SentRequest, request: SentRequest, gap: timedelta | None, lifetime: timedelta
    ) -> tuple[BreakCause, str]:
        """Return the likely cause and its evidence: the first that applies."""
        questions: tuple[tuple[BreakCause, Callable[[], str | None]], ...] = (
            (BreakCause.MODEL, lambda: _model_change(before.window, request.window)),
            (BreakCause.COMPACTION, lambda: self._compaction(before, request)),
            (BreakCause.BRANCH, lambda: self._branch(before, request)),
            (BreakCause.IDLE, lambda: _idle_time(gap, lifetime)),
            (BreakCause.TOOLS, lambda: self._changes.tools(before, request)),
            (BreakCause.SETTINGS, lambda: self._changes.settings(before, request)),
            (BreakCause.RESTART, lambda: self._changes.restart(before, request)),
        )
        answers = ((cause, answer) for cause, ask in questions if (answer := ask()) is not None)
        return next(answers, (BreakCause.UNKNOWN, _unknown_cause(request.window)))

    def _compaction(self, before: SentRequest, request: SentRequest) -> str | None:
        """A compaction between the two requests."""
        at = bisect_right(self._compacted, before.first)
        if at == len(self._compacted) or self._compacted[at] >= request.first:
            return None
        compaction = self._compactions[at]
        blanked = compaction.kind is CompactionKind.MICRO
        what = "old results were blanked" if blanked else "the conversation was replaced by a summary"
        return f"{what} at line {compaction.place.line}"

    def _branch(self, before: SentRequest, request: SentRequest) -> str | None:
        """The conversation went back: the request continues an earlier one than the previous one."""
        above = self._parents.request_before(request)
        if above is None or above >= before.window.number:
            return None
        back = before.window.number - above
        return f"the conversation went back by {back} request{'s' if back > 1 else ''}"


def _model_change(before: ContextWindow, after: ContextWindow) -> str | None:
    if not before.model or not after.model or before.model == after.model:
        return None
    return f"{before.model} answered before, {after.model} now; each model has its own cache"


def _idle_time(gap: timedelta | None, lifetime: timedelta) -> str | None:
    if gap is None or gap <= lifetime:
        return None
    kept = "an hour" if lifetime == _HOUR else "5 minutes"
    elapsed = f"{gap // _MINUTE} minutes" if gap < _SHOW_HOURS_FROM else f"{gap // _HOUR} hours"
    return f"{elapsed} since the previous request, whose cache lives for {kept}"


def _unknown_cause(after: ContextWindow) -> str:
    if not after.cache_read:
        return "nothing was read from the cache, and the transcript does not show why"
    return f"only the first {format_tokens(after.cache_read)} tokens were read, and the transcript does not show why"


_MAX_NAMES = 4
_MAX_LENGTH = 60
# The parameters of a request that are part of the cache key, besides model, system prompt and tools.
_CACHE_PARAMETERS = ("thinking", "output_config", "tool_choice", "speed", "betas")
_SettingChange = tuple[str, str, str]


class RequestChanges:
    """Compares how requests were made, from an agent's entries. Each answer is a sentence, or None for no change."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._requests: dict[str, ApiRequestEntry] = {}
        self._shapes: dict[str, Any] = {}
        self._prompts: list[int] = []
        for at, entry in enumerate(entries):
            match entry:
                case ApiRequestEntry(id=str(name)):
                    self._requests[name] = entry
                case ApiRequestShapeEntry(shape_hash=str(name)):
                    self._shapes[name] = entry.shape
                case UserEntry() if entry.thinking_metadata is not None:
                    self._prompts.append(at)

    def tools(self, before: SentRequest, request: SentRequest) -> str | None:
        """The system prompt or the tools changed: by the requests as they were sent, else by rows that say so."""
        old, new = self._request(before), self._request(request)
        if old is not None and new is not None:
            return self._other_shape(old.shape_hash, new.shape_hash) if old.shape_hash != new.shape_hash else None
        between = self._entries[before.first : request.first]
        return next((change for entry in between if (change := _tool_change(entry)) is not None), None)

    def settings(self, before: SentRequest, request: SentRequest) -> str | None:
        """Effort, speed, thinking or another parameter changed."""
        pairs = [
            *self._parameters(before, request),
            *_reply_settings(before, request),
            *self._prompt_settings(before, request),
        ]
        return next((f"{name} was {old}, now {new}" for name, old, new in pairs if old != new), None)

    def restart(self, before: SentRequest, request: SentRequest) -> str | None:
        """Another version wrote it, or the session was resumed: Claude Code was restarted."""
        old, new = before.rows[-1].version, request.rows[0].version
        if old and new and old != new:
            return f"Claude Code {_shorten(old)} sent the previous request, {_shorten(new)} this one"
        between = self._entries[before.first : request.first]
        at = next((entry.line.number for entry in between if _is_resume_hook(entry)), None)
        return f"the session was resumed at line {at}" if at is not None else None

    def _request(self, sent: SentRequest) -> ApiRequestEntry | None:
        """Return the row with the request as it was sent."""
        name = next((row.request_ref for row in sent.rows if row.request_ref), None)
        return self._requests.get(name) if name is not None else None

    def _other_shape(self, old: str | None, new: str | None) -> str:
        old_tools, new_tools = _tool_names(self._shapes.get(old or "")), _tool_names(self._shapes.get(new or ""))
        if old_tools == new_tools:
            return "the system prompt or a tool's description differs from the previous request"
        added = [tool for tool in new_tools if tool not in old_tools]
        removed = [tool for tool in old_tools if tool not in new_tools]
        names = f"{_list_names('added', added)}{_list_names('removed', removed)}"
        return f"the tools differ from the previous request{names}"

    def _parameters(self, before: SentRequest, request: SentRequest) -> Iterator[_SettingChange]:
        old, new = self._request(before), self._request(request)
        if old is None or new is None or not isinstance(old.params, dict) or not isinstance(new.params, dict):
            return
        for name in _CACHE_PARAMETERS:
            yield name, _shorten(old.params.get(name)), _shorten(new.params.get(name))

    def _prompt_settings(self, before: SentRequest, request: SentRequest) -> Iterator[_SettingChange]:
        """Compare the settings of the prompts before the two requests."""
        old, new = self._prompt_before(before.first), self._prompt_before(request.first)
        if old is None or new is None or old is new:
            return
        if old.thinking_metadata is not None and new.thinking_metadata is not None:
            yield "thinking", _thinking_of(old), _thinking_of(new)

    def _prompt_before(self, at: int) -> UserEntry | None:
        """Return the nearest row before that has settings."""
        here = bisect_left(self._prompts, at)
        entry = self._entries[self._prompts[here - 1]] if here else None
        return entry if isinstance(entry, UserEntry) else None


def _tool_names(shape: Any) -> list[str]:
    tools = shape.get("tools") if isinstance(shape, dict) else None
    return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _list_names(verb: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"; {verb}: {', '.join(map(_shorten, names[:_MAX_NAMES]))}{more}"


def _tool_change(entry: Entry) -> str | None:
    """Describe the tools, agents, servers or output style that a row adds or removes. A first list is not a change."""
    loaded = _loaded_tools(entry) if isinstance(entry, UserEntry) else []
    if loaded:
        return f"tools were loaded at line {entry.line.number}{_list_names('added', loaded)}"
    attachment = entry.attachment if isinstance(entry, AttachmentEntry) else None
    if isinstance(attachment, OutputStyle):
        return f"the output style was set at line {entry.line.number}"
    if not isinstance(attachment, Delta) or attachment.is_initial:
        return None
    added = attachment.added_names or attachment.added_types or []
    removed = attachment.removed_names or attachment.removed_types or []
    if not added and not removed:
        return None
    what = attachment.type.removesuffix("_delta").replace("_", " ")
    return f"{what} changed at line {entry.line.number}{_list_names('added', added)}{_list_names('removed', removed)}"


def _loaded_tools(entry: UserEntry) -> list[str]:
    """The names of tools whose definitions a tool search added."""
    blocks = entry.message.blocks if entry.message is not None else ()
    contents = (block.content for block in blocks if isinstance(block, ToolResultBlock))
    items = (item for content in contents if isinstance(content, list) for item in content)
    return [item.tool_name for item in items if isinstance(item, ToolReferenceBlock) and item.tool_name]


def _shorten(value: Any) -> str:
    text = str(value) if value is not None else "not set"
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def _reply_settings(before: SentRequest, request: SentRequest) -> Iterator[tuple[str, str, str]]:
    """Compare the settings in the rows of both replies. A setting that one of them lacks is not a change."""
    for name, of in (("effort", _effort_of), ("speed", _speed_of)):
        old, new = of(before), of(request)
        if old and new:
            yield name, old, new


def _effort_of(sent: SentRequest) -> str | None:
    return next((row.effort for row in sent.rows if row.effort), None)


def _speed_of(sent: SentRequest) -> str | None:
    usages = (row.message.usage for row in sent.rows if row.message is not None)
    return next((usage.speed for usage in usages if usage is not None and usage.speed), None)


def _thinking_of(prompt: UserEntry) -> str:
    metadata = prompt.thinking_metadata
    if metadata is None:
        return "unknown"
    level = metadata.level or ("off" if metadata.disabled else "on")
    return (
        f"{level}, at most {metadata.max_thinking_tokens} tokens" if metadata.max_thinking_tokens is not None else level
    )


def _is_resume_hook(entry: Entry) -> bool:
    attachment = entry.attachment if isinstance(entry, AttachmentEntry) else None
    if isinstance(entry, ProgressEntry):
        return isinstance(entry.progress, HookProgress) and entry.progress.hook_name in RESUME_HOOKS
    return isinstance(attachment, HookAttachment) and attachment.hook_name in RESUME_HOOKS


class RequestParents:
    """The nearest request above any entry. Each entry is visited once, whatever the number of queries."""

    def __init__(self, entries: Sequence[Entry], sent: Sequence[SentRequest]) -> None:
        self._above: dict[EntryId, EntryId | None] = {}
        for entry in entries:
            if isinstance(entry, ChainEntry) and entry.uuid is not None:
                self._above.setdefault(entry.uuid, entry.parent_uuid or None)
        self._number: dict[EntryId, int | None] = {}
        for request in reversed(sent):
            self._number.update((row.uuid, request.window.number) for row in request.rows if row.uuid is not None)

    def request_before(self, request: SentRequest) -> int | None:
        """Return the number of the request whose reply an entry continues; None if the rows lead nowhere."""
        return self._nearest(request.rows[0].parent_uuid or None)

    def _nearest(self, uuid: EntryId | None) -> int | None:
        path: list[EntryId] = []
        visited: set[EntryId] = set()
        while uuid is not None and uuid not in self._number and uuid not in visited:
            visited.add(uuid)
            path.append(uuid)
            uuid = self._above.get(uuid)
        number = self._number.get(uuid) if uuid is not None else None
        self._number.update(dict.fromkeys(path, number))
        return number
