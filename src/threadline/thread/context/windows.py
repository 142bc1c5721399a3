"""The context window at each request of an agent, and how large it may grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from threadline.model.context import ContextLimit, ContextWindow
from threadline.model.entries import ApiRequestEntry, AssistantEntry, CostStateEntry, Entry, ToolUseEntry
from threadline.model.places import EntryId
from threadline.model.session import Agent, Turn
from threadline.model.usage import Usage, cache_writes

_PromptCounts = tuple[int, int, int]
_NO_COUNTS: _PromptCounts = (0, 0, 0)


class SentRequest(Struct, frozen=True):
    """One request: its window, the rows of its message, and the position of the first in the agent's entries."""

    window: ContextWindow
    rows: list[AssistantEntry]
    first: int


class _RequestRows(Struct):
    """A request while its rows are collected."""

    first: int
    rows: list[AssistantEntry]
    counts: _PromptCounts = _NO_COUNTS


class _RequestsOfKey:
    """The requests with the same id, which are distinguished by the uuids of their rows and by what was sent.

    If a row fits several of them, the earliest one counts. Only the first one can have no counts: a row without counts
    fits any request.
    """

    def __init__(self) -> None:
        self._requests: list[_RequestRows] = []
        self._by_uuid: dict[EntryId, int] = {}
        self._by_counts: dict[_PromptCounts, list[int]] = {}

    def add(self, entry: AssistantEntry, counts: _PromptCounts, at: int) -> _RequestRows | None:
        """Add a row to the request that it is part of. Returns the request if this is its first row."""
        known = self._find(entry.uuid, counts)
        number = len(self._requests) if known is None else known
        if known is None:
            self._requests.append(_RequestRows(at, []))
        request = self._requests[number]
        request.rows.append(entry)
        if counts not in (_NO_COUNTS, request.counts):
            request.counts = counts
            heappush(self._by_counts.setdefault(counts, []), number)
        if entry.uuid is not None:
            self._by_uuid[entry.uuid] = number
        return request if known is None else None

    def _find(self, uuid: EntryId | None, counts: _PromptCounts) -> int | None:
        if self._requests and _NO_COUNTS in (counts, self._requests[0].counts):
            return 0
        same = self._by_counts.get(counts, [])
        while same and self._requests[same[0]].counts != counts:  # another row has changed its counts
            heappop(same)
        matches = same[:1] if uuid not in self._by_uuid else [*same[:1], self._by_uuid[uuid]]
        return min(matches, default=None)


def find_requests(entries: Sequence[Entry], turns: Iterable[Turn]) -> list[SentRequest]:
    """Return every request of an agent with its window, in the order of their first rows.

    Rows that share a message id are one request, unless neither a uuid nor the prompt's counts agree: gateways use the
    same id twice. What Claude Code wrote itself is not a request.
    """
    turn_of = {id(entry): turn.number for turn in turns for entry in turn.entries}
    by_key: dict[object, _RequestsOfKey] = {}
    requests: list[_RequestRows] = []
    for at, entry in enumerate(entries):
        if isinstance(entry, AssistantEntry) and entry.message is not None and is_model_reply(entry):
            same = by_key.setdefault(_request_key(entry), _RequestsOfKey())
            request = same.add(entry, _prompt_counts(entry.message.usage), at)
            if request is not None:
                requests.append(request)
    return [
        SentRequest(
            _make_window(number, request.rows, turn_of.get(id(request.rows[0]), 0)), request.rows, request.first
        )
        for number, request in enumerate(requests, 1)
    ]


def is_model_reply(entry: AssistantEntry) -> bool:
    """Whether a model wrote it: not Claude Code itself, not a notice that the request failed, not the row of a call."""
    return not entry.is_synthetic and not entry.is_api_error_message and not isinstance(entry, ToolUseEntry)


def _request_key(entry: AssistantEntry) -> object:
    message = entry.message.id if entry.message is not None else None
    return message or entry.request_id or entry.uuid or id(entry)


def _prompt_counts(usage: Usage | None) -> _PromptCounts:
    if usage is None:
        return _NO_COUNTS
    return usage.input_tokens or 0, sum(cache_writes(usage)), usage.cache_read_input_tokens or 0


def _completeness(entry: AssistantEntry) -> tuple[bool, int, int, bool]:
    """Sort key: the row with a prompt and the greatest output counts, the last of equals.

    Early rows have placeholders.
    """
    message = entry.message
    usage = message.usage if message is not None else None
    if message is None or usage is None:
        return False, -1, -1, False
    sent = sum(_prompt_counts(usage))
    return sent > 0, usage.output_tokens or 0, sent, message.stop_reason is not None


def _make_window(number: int, rows: list[AssistantEntry], turn: int) -> ContextWindow:
    first, best = rows[0], max(reversed(rows), key=_completeness)
    message = best.message
    usage = (message.usage if message is not None else None) or Usage()
    minutes, hour = cache_writes(usage)
    return ContextWindow(
        number=number,
        message=message.id if message is not None else None,
        place=first.place,
        counted=best.place,
        turn=turn,
        time=next((moment for row in rows if (moment := row.timestamp)), None),
        model=message.model if message is not None else None,
        version=first.version,
        uncached=usage.input_tokens or 0,
        cache_read=usage.cache_read_input_tokens or 0,
        cache_write_5m=minutes,
        cache_write_1h=hour,
        output=usage.output_tokens or 0,
    )


DEFAULT_LIMIT, LONG_LIMIT = 200_000, 1_000_000
_LONG_SUFFIX, _LONG_BETA = "[1m]", "context-1m"


class ContextLimits:
    """The context limits of one agent's models. Other agents of the session may show a model's limit, too."""

    def __init__(self, agent: Agent, transcripts: Iterable[Sequence[Entry]], windows: Sequence[ContextWindow]) -> None:
        self._limits: dict[str, ContextLimit] = {}
        for entries in transcripts:
            for entry in entries:
                self._add_entry(entry)
        for window in windows:
            self._raise_to(window.model, window.prompt, f"request {window.number} was larger than {{}}")
        last = windows[-1].model if windows else None
        for compaction in agent.compactions:
            self._raise_to(last, compaction.tokens_before or 0, "a compaction began at more than {}")

    def of(self, model: str | None) -> ContextLimit:
        """Return the limit of a model."""
        return self._limits.get(_without_suffix(model)) or ContextLimit(
            DEFAULT_LIMIT, "no evidence of more than 200,000 tokens"
        )

    def _add_entry(self, entry: Entry) -> None:
        match entry:
            case CostStateEntry():
                for name, used in (entry.model_usage or {}).items():
                    window = used.context_window or 0
                    if window > 0:
                        self._set(name, window, "the session's own totals contain the window's size")
                    elif _LONG_SUFFIX in name:
                        self._set(name, LONG_LIMIT, f"the session's own totals contain {name}")
            case ApiRequestEntry(params=dict(params)):
                betas, model = params.get("betas"), params.get("model")
                if (
                    isinstance(model, str)
                    and isinstance(betas, list)
                    and any(_LONG_BETA in str(beta) for beta in betas)
                ):
                    self._set(model, LONG_LIMIT, "the request asked for it")
            case AssistantEntry() if entry.message is not None:
                names = (entry.message.model or "", entry.requested_model or "")
                if any(_LONG_SUFFIX in name for name in names):
                    self._set(entry.message.model, LONG_LIMIT, f"the model is named {_LONG_SUFFIX}")

    def _raise_to(self, model: str | None, tokens: int, why: str) -> None:
        """Note that a prompt of that size was sent, so the limit is not smaller."""
        limit = self.of(model).tokens
        if tokens <= limit:
            return
        above = next((step for step in (LONG_LIMIT,) if tokens <= step), tokens)
        self._set(model, above, why.format(f"{limit:,} tokens"))

    def _set(self, model: str | None, tokens: int, why: str) -> None:
        name = _without_suffix(model)
        if name not in self._limits or tokens > self._limits[name].tokens:
            self._limits[name] = ContextLimit(tokens, why)


def _without_suffix(model: str | None) -> str:
    return (model or "").replace(_LONG_SUFFIX, "")
