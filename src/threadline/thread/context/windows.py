"""The requests of an agent in order, each with the window that its message reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from threadline.model.act import Turn
from threadline.model.context import Window
from threadline.model.entries import AssistantEntry, Entry
from threadline.model.usage import Usage

_Triple = tuple[int, int, int]
_NOTHING: _Triple = (0, 0, 0)


class Sent(Struct, frozen=True):
    """One request: its window, the rows of its message, and where the first of them stands in the agent's entries."""

    window: Window
    rows: list[AssistantEntry]
    first: int


class _Growing(Struct):
    """A request while its rows are gathered."""

    first: int
    rows: list[AssistantEntry]
    triple: _Triple = _NOTHING


def requests(entries: Sequence[Entry], turns: Iterable[Turn]) -> list[Sent]:
    """Every request of an agent, in the order of their first rows, with its window.

    Rows that share a message id are one request, unless neither an id nor the counts of the prompt agree: gateways give
    the same id twice. What the program wrote itself is none.
    """
    turn_of = {id(entry): turn.number for turn in turns for entry in turn.entries}
    found: dict[object, list[_Growing]] = {}
    order: list[_Growing] = []
    for at, entry in enumerate(entries):
        if not isinstance(entry, AssistantEntry) or entry.message is None or not is_said(entry):
            continue
        same = found.setdefault(_key(entry), [])
        triple = _triple(entry.message.usage)
        one = next((one for one in same if _agrees(one, entry, triple)), None)
        if one is None:
            one = _Growing(at, [])
            same.append(one)
            order.append(one)
        one.rows.append(entry)
        one.triple = one.triple if triple == _NOTHING else triple
    return [
        Sent(_window(number, one.rows, turn_of.get(id(one.rows[0]), 0)), one.rows, one.first)
        for number, one in enumerate(order, 1)
    ]


def is_said(entry: AssistantEntry) -> bool:
    """Whether a model said it: not the program itself, and not a notice that the request failed."""
    return not entry.is_made_up and not entry.is_api_error_message


def _key(entry: AssistantEntry) -> object:
    message = entry.message.id if entry.message is not None else None
    return message or entry.request_id or entry.uuid or id(entry)


def _agrees(one: _Growing, entry: AssistantEntry, triple: _Triple) -> bool:
    if _NOTHING in (triple, one.triple) or triple == one.triple:
        return True
    return entry.uuid is not None and any(row.uuid == entry.uuid for row in one.rows)


def _triple(usage: Usage | None) -> _Triple:
    if usage is None:
        return _NOTHING
    return usage.input_tokens or 0, sum(_written(usage)), usage.cache_read_input_tokens or 0


def _written(usage: Usage) -> tuple[int, int]:
    """Cache writes for five minutes and for an hour; what the split does not tell is for five minutes."""
    flat = usage.cache_creation_input_tokens or 0
    split = usage.cache_creation
    hour = (split.ephemeral_1h_input_tokens or 0) if split is not None else 0
    minutes = (split.ephemeral_5m_input_tokens or 0) if split is not None else 0
    return minutes + max(0, flat - minutes - hour), hour


def _rank(entry: AssistantEntry) -> tuple[bool, int, int, bool]:
    """Early rows have placeholders: the row that tells a prompt and the greatest output counts, the last of equals."""
    message = entry.message
    usage = message.usage if message is not None else None
    if message is None or usage is None:
        return False, -1, -1, False
    sent = sum(_triple(usage))
    return sent > 0, usage.output_tokens or 0, sent, message.stop_reason is not None


def _window(number: int, rows: list[AssistantEntry], turn: int) -> Window:
    first, best = rows[0], max(reversed(rows), key=_rank)
    message = best.message
    usage = (message.usage if message is not None else None) or Usage()
    minutes, hour = _written(usage)
    return Window(
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
