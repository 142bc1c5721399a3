"""One compact line for each thing that happens, as it happens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.model.act import ActKind
from threadline.model.call import Outcome
from threadline.model.thread import CompactionKind
from threadline.render.call_text import OUTCOMES, headline
from threadline.render.layout import cut, width_of
from threadline.render.outline import (
    Called,
    Compacted,
    Ended,
    Failed,
    Item,
    Notice,
    Output,
    Reply,
    Said,
    Thought,
    Told,
)
from threadline.render.style import ASKS, Role, Span, Spans, act_sign
from threadline.render.terminal_text import clip_left, columns, one_line, plain

_PROJECT = 14
_ID = 8
_LEAST = 20


class Source(Struct, frozen=True):
    """Where something happened: empty where it need not be told."""

    session: str = ""
    project: str = ""
    agent: str | None = None


def live_line(item: Item, source: Source, when: datetime | None, width: int) -> Spans:
    """`09:14:03  55604662  app  ✓ Bash  npm test  3.2s`, on one line and harmless."""
    before = _before(source, when)
    return (*before, *_DRAW[type(item)](item, max(_LEAST, width - width_of(before))))


def _before(source: Source, when: datetime | None) -> Spans:
    clock = f"{when.hour:02}:{when.minute:02}:{when.second:02}  " if when is not None else " " * 10
    spans = [Span(clock, Role.FAINT)]
    if source.session:
        spans.append(Span(f"{_padded(plain(source.session[:_ID]), _ID)}  ", Role.CODE))
    if source.project:
        spans.append(Span(f"{_padded(clip_left(plain(source.project), _PROJECT), _PROJECT)}  ", Role.FAINT))
    if source.agent is not None:
        spans.append(Span(f"⎇ {plain(source.agent[:_ID])}  ", Role.AGENT))
    return tuple(spans)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def _signed(sign: str, text: str, role: Role, width: int) -> Spans:
    return (Span(f"{sign} {one_line(text, max(_LEAST, width - columns(sign) - 1))}", role),)


def _said(item: Said, width: int) -> Spans:
    act = item.act
    if act.kind is ActKind.INTERRUPT:
        return (Span("■ interrupted by the person", Role.NOTICE),)
    images = f"  +{act.images} pictures" if act.images > 1 else "  +1 picture" if act.images else ""
    return (*_signed(act_sign(act.kind), act.text, Role.PROMPT, width - len(images)), Span(images, Role.FAINT))


def _told(item: Told, width: int) -> Spans:
    return _signed(ASKS, item.text, Role.PROMPT, width)


def _reply(item: Reply, width: int) -> Spans:
    return _signed("●", item.text, Role.BODY, width)


def _thought(item: Thought, width: int) -> Spans:
    return _signed("✻", item.text.strip() or "thinking, of which only the signature was kept", Role.FAINT, width)


def _called(item: Called, width: int) -> Spans:
    """A call as it is made, or how it ended: of an error how it begins to say what, of a refusal the person's words."""
    if item.call.outcome is Outcome.PENDING:
        # That it is pending need not be said in words: it has just been made.
        mark = OUTCOMES[Outcome.PENDING]
        return (Span(mark.sign, mark.role), *headline(replace(item.call, outcome=Outcome.OK), width)[1:])
    line = headline(item.call, width)
    room = width - width_of(line) - 5
    if room < _LEAST:
        return line
    if item.call.feedback:
        return (*line, Span(f" · {ASKS} {one_line(item.call.feedback, room)}", Role.PROMPT))
    said = one_line(item.call.output, room) if item.call.outcome is Outcome.ERROR else ""
    return (*line, Span(f" · {said}" if said else "", Role.FAINT))


def _output(item: Output, width: int) -> Spans:
    return _signed("⎿", item.text, Role.FAINT, width)


def _failed(item: Failed, width: int) -> Spans:
    return _signed("✗", f"API error: {item.text}", Role.BAD, width)


def _notice(item: Notice, width: int) -> Spans:
    text = one_line(item.text, max(_LEAST, width - len(item.what) - 4))
    return cut((Span(f"◦ {item.what}{': ' if text else ''}{text}", Role.FAINT),), width)


def _ended(item: Ended, width: int) -> Spans:
    news = item.news
    told = news.summary or " ".join(filter(None, (news.task, news.status))) or "ended"
    return _signed("◦", f"background task: {told}", Role.FAINT, width)


def _compacted(item: Compacted, width: int) -> Spans:
    one = item.compaction
    what = "old results cleared" if one.kind is CompactionKind.MICRO else "compacted"
    how = f" ({one.trigger})" if one.trigger else ""
    sizes = [f"{size:,}" for size in (one.tokens_before, one.tokens_after) if size is not None]
    tokens = f" · {' → '.join(sizes)} tokens" if sizes else ""
    return _signed("═", what + how + tokens, Role.NOTICE, width)


_DRAW: dict[type[Item], Callable[[Any, int], Spans]] = {
    Said: _said,
    Told: _told,
    Reply: _reply,
    Thought: _thought,
    Called: _called,
    Output: _output,
    Failed: _failed,
    Notice: _notice,
    Ended: _ended,
    Compacted: _compacted,
}
