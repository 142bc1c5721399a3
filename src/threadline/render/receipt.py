"""A receipt for a terminal: a message a paragraph, with its lines and its multiplication; then the sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

from threadline.model.rate import plain_number
from threadline.model.receipt import Item, LineCounts, Mention, Missing, Product, RateSum, Receipt
from threadline.render.figures import count, model_name
from threadline.render.layout import cut, rule, width_of, wrap
from threadline.render.reconciliation import session_lines
from threadline.render.style import Role, Span, Spans, Style
from threadline.render.terminal_text import columns, plain

_SHORT = 8
_LONGER = (11, 13, 18)
_STOP = 10
_INDENT = Span("    ")
_COUNTED, _ASIDE, _LOST = "✓", "·", "?"
_COLUMNS = (
    ("input", "input"),
    ("output", "output"),
    ("cache_write_5m", "write 5m"),
    ("cache_write_1h", "write 1h"),
    ("cache_read", "read"),
)
_FEW_PLACES = 3
ShortPath = Callable[[str, int], str]


def draw(
    receipt: Receipt, width: int, *, colour: bool = False, limit: int | None = None, path: ShortPath, zone: tzinfo = UTC
) -> Iterator[str]:
    """The receipt as lines that fit a page, with no more than `limit` messages; the sum is always of all."""
    style = Style(colour=colour)
    yield from map(style.line, _Drawing(receipt, width, limit, path, zone).lines())


def short_names(transcripts: Iterable[str]) -> dict[str, str]:
    """The start of each transcript's name, as short as tells them apart, and never shorter than ids are shown.

    >>> short_names(["/a/55604662-0c1d.jsonl", "/a/agent-acompact-77.jsonl", "/a/agent-acompact-78.jsonl"]).values()
    dict_values(['55604662', 'acompact-77', 'acompact-78'])
    """
    stems = {one: _stem(one) for one in dict.fromkeys(transcripts)}
    names = {one: stem[:_SHORT] for one, stem in stems.items()}
    for size in _LONGER:
        taken = Counter(names.values())
        names = {one: name if taken[name] == 1 else stems[one][:size] for one, name in names.items()}
    taken = Counter(names.values())
    alike = [one for one, name in names.items() if taken[name] > 1]
    return names | {one: f"{stems[one][:_SHORT]}~{number}" for number, one in enumerate(alike, 1)}


def _stem(transcript: str) -> str:
    return transcript.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl").removeprefix("agent-")


class _Drawing:
    """Draws one receipt."""

    def __init__(self, receipt: Receipt, width: int, limit: int | None, path: ShortPath, zone: tzinfo) -> None:
        self._receipt, self._width, self._path, self._zone = receipt, width, path, zone
        self._shown = receipt.items[:limit]
        told = [mention for item in self._shown for mention in item.mentions]
        self._names = short_names(mention.place.transcript for mention in told)
        self._rates = {id(one.rate): number for number, one in enumerate(receipt.rates, 1)}
        self._place = max([len("line"), *(columns(self._where(mention)) for mention in told)])
        counts = [mention.counts for mention in told if mention.counts is not None]
        self._columns = [(name, title, _widest(counts, name, title)) for name, title in _COLUMNS]
        # Caches are written for five minutes or for an hour, seldom for both: no column of zeros.
        self._columns = [one for one in self._columns if one[2] or one[0] in {"input", "output"}]

    def lines(self) -> Iterator[Spans]:
        yield from wrap(self._title(), self._width)
        if self._shown:
            yield ()
            yield cut(self._header(), self._width)
        heading = ""
        for item in self._shown:
            when = self._moment(item.charge.timestamp)
            day = when.date().isoformat() if when is not None else "no time"
            wanted = day if item.here else f"{day}, copies of what others own"
            if wanted != heading:
                heading = wanted
                yield rule((Span(heading, Role.HEADING),), self._width)
            yield from self._item(item, f"{when:%H:%M:%S}" if when is not None else "(no time)")
        left = self._receipt.items[len(self._shown) :]
        if left:
            lines = sum(len(one.mentions) for one in left)
            more = count(len(left), "message")
            told = f"… and {more} more in {count(lines, 'line')}: --all shows them, --limit N some. The sum is of all."
            yield from wrap((Span(told, Role.NOTICE),), self._width)
            yield ()
        yield from self._sum()
        yield from self._missing()
        yield from self._reported()
        yield from self._files()

    def _moment(self, when: datetime | None) -> datetime | None:
        try:
            return when.astimezone(self._zone) if when is not None else None
        except OverflowError:  # the first and last day of all time
            return when

    def _title(self) -> Iterator[Span]:
        one = self._receipt
        here = sum(1 for item in one.items if item.here and not item.charge.part)
        name = self._path(one.name, max(20, self._width // 2)) if one.kind == "place" else one.name
        yield Span(f"Receipt of {one.kind} {name}", Role.TITLE)
        facts = [count(here, "message"), f"told by {count(one.lines, 'line')}"]
        apart = sum(1 for item in one.items if not item.here)
        if apart:
            facts.append(f"and {count(apart, 'message')} that others own")
        zone = "UTC" if self._zone is UTC else str(getattr(self._zone, "key", self._zone))
        facts.append(f"times in {zone}, USD, prices {one.digest[:_SHORT]}")
        yield Span(f"  {' · '.join(facts)}", Role.FAINT)

    def _header(self) -> Iterator[Span]:
        yield Span(f"    {'line':<{self._place}}", Role.FAINT)
        yield Span("".join(f"  {title:>{width}}" for _, title, width in self._columns), Role.FAINT)
        yield Span(f"  {'stopped by':<{_STOP}}  why", Role.FAINT)

    def _item(self, item: Item, when: str) -> Iterator[Spans]:
        yield self._headline(item, when)
        for mention in item.mentions:
            yield from self._mention(mention)
        for note in item.notes:
            yield from wrap(
                (Span(note, Role.NOTICE),), self._width, first=(Span("  ! ", Role.NOTICE),), rest=(_INDENT,)
            )
        if not item.here:
            owner = f"Owned by session {str(item.charge.session or '(none)')[:_SHORT]}"
            agent = f", agent {item.charge.agent}" if item.charge.agent else ""
            told = f"{owner}{agent}, which began before: not counted here."
            yield from wrap((Span(told, Role.FAINT),), self._width, first=(_INDENT,), rest=(_INDENT,))
        elif item.charge.rate is not None:
            yield from self._arithmetic(item)
        yield ()

    def _headline(self, item: Item, when: str) -> Spans:
        charge = item.charge
        amount = charge.amount
        told = "not here" if not item.here else "no price" if amount is None else plain_number(amount)
        who = Span(charge.agent, Role.AGENT) if charge.agent else Span("main", Role.FAINT)
        part = Span(f" ({charge.part})" if charge.part else "", Role.NOTICE)
        spans = (
            Span(f"{when}  ", Role.FAINT),
            Span(charge.message, Role.CODE),
            Span(f"  {model_name(charge.model) or '(no model)'}"),
            part,
            Span("  "),
            who,
        )
        left = cut(spans, max(20, self._width - len(told) - 3))
        gap = max(2, self._width - width_of(left) - len(told))
        return (*left, Span(" " * gap), Span(told, Role.STRONG if item.here and amount is not None else Role.NOTICE))

    def _where(self, mention: Mention) -> str:
        line = f":{mention.place.line}" if mention.place.line else f" at byte {mention.place.offset}"
        return plain(self._names[mention.place.transcript]) + line

    def _mention(self, mention: Mention) -> Iterator[Spans]:
        """A line with its counts; why it counted or not stands behind, or below where there is no room."""
        counts = mention.counts
        mark = _LOST if counts is None else _COUNTED if mention.counted else _ASIDE
        role = Role.BAD if counts is None else Role.GOOD if mention.counted else Role.FAINT
        body = Role.BODY if mention.counted else Role.FAINT
        where = self._where(mention)
        space = " " * max(0, self._place - columns(where))
        told = [Span(f"  {mark} ", role), Span(where + space, body)]
        if counts is not None:
            told += [Span(f"  {getattr(counts, name):>{width},}", body) for name, _, width in self._columns]
            told.append(Span(f"  {plain(counts.stop_reason or '-')[:_STOP]:<{_STOP}}", body))
        why = Span(mention.why, role if counts is None else Role.FAINT)
        if width_of(told) + 2 + columns(mention.why) <= self._width:
            yield (*told, Span("  "), why)
            return
        yield cut(told, self._width)
        if mention.counted and counts is not None:
            return  # its mark says enough
        indent = Span("      ")
        yield from wrap((why,), self._width, first=(indent,), rest=(indent,))

    def _arithmetic(self, item: Item) -> Iterator[Spans]:
        """The products and their sum, as many to a line as fit; none is broken."""
        pieces = [list(_multiplied(one)) for one in item.products] or [[Span("no tokens = 0")]]
        for piece in pieces[1:]:
            piece.insert(0, Span("+ ", Role.FAINT))
        number = self._rates.get(id(item.charge.rate), 0)
        ending = [Span(f"(rate {number})", Role.FAINT)]
        if len(pieces) > 1:
            ending = [Span("= "), Span(plain_number(item.charge.amount or Decimal(0)), Role.STRONG), Span(" "), *ending]
        line: list[Span] = [_INDENT]
        for piece in [*pieces, ending]:
            if len(line) > 1 and width_of(line) + 1 + width_of(piece) > self._width:
                yield cut(line, self._width)
                line = [_INDENT]
            line += [Span(" " if len(line) > 1 else ""), *piece]
        yield cut(line, self._width)

    def _sum(self) -> Iterator[Spans]:
        one, total = self._receipt, self._receipt.total
        yield rule((Span("sum", Role.HEADING),), self._width)
        for number, rate in enumerate(one.rates, 1):
            yield from self._rate(number, rate)
        tokens = f"{count(total.charges, 'message')}, {count(total.tokens, 'token')}"
        if total.amount is None:
            priced = "no price is known for any of them" if total.charges else "nothing is counted here"
            yield from wrap((Span(f"{tokens}: {priced}", Role.NOTICE),), self._width)
            return
        exact = plain_number(total.amount)
        yield from wrap(
            (
                Span(f"{tokens}: "),
                Span(f"{exact} USD", Role.TITLE),
                Span(f", to the cent {total.amount:,.2f}" + (", and more" if total.unpriced else "")),
            ),
            self._width,
        )

    def _rate(self, number: int, one: RateSum) -> Iterator[Spans]:
        told = f"rate {number}: {one.rate.describe()}"
        rest = Span("  ")
        yield from wrap((Span(told, Role.FAINT),), self._width, rest=(rest,))
        numbers = [f"{product.number:,}" for product in one.products]
        prices = [plain_number(product.price) for product in one.products]
        amounts = _aligned([*(product.amount for product in one.products), one.amount])
        wide = max(map(len, numbers), default=1)
        dear = max(map(len, prices), default=1)
        for product, tokens, price, amount in zip(one.products, numbers, prices, amounts, strict=False):
            yield (
                Span(f"    {tokens:>{wide}} "),
                Span(f"{product.kind:<14}", Role.FAINT),
                Span(f" × {price:<{dear}} = {amount}"),  # noqa: RUF001 - the sign for times
            )
        label = count(one.charges, "charge")
        room = wide + dear + 18
        yield (_INDENT, Span(f"{label:<{room}} "), Span(f"= {amounts[-1]}", Role.STRONG))
        yield ()

    def _missing(self) -> Iterator[Spans]:
        if not self._receipt.missing:
            return
        yield ()
        yield rule((Span("known to be missing", Role.HEADING),), self._width)
        for one in self._receipt.missing:
            yield from self._absence(one)

    def _absence(self, one: Missing) -> Iterator[Spans]:
        told = one.text[:1].upper() + one.text[1:]
        yield from wrap((Span(told),), self._width, first=(Span("  - ", Role.NOTICE),), rest=(_INDENT,))
        for place in one.places[:_FEW_PLACES]:
            shown = self._path(place.transcript, max(20, self._width - 16))
            yield (_INDENT, Span(f"{shown}:{place.line}" if place.line else shown, Role.FAINT))
        if len(one.places) > _FEW_PLACES:
            yield (_INDENT, Span(f"and {len(one.places) - _FEW_PLACES:,} more", Role.FAINT))

    def _reported(self) -> Iterator[Spans]:
        """What Claude Code itself says the session cost, and every reason why that is another amount."""
        if self._receipt.reported is None:
            return
        yield ()
        yield rule((Span("reported by Claude Code", Role.HEADING),), self._width)
        head, *reasons = session_lines(self._receipt.reported)
        yield from wrap((Span(head),), self._width, first=(Span("  "),), rest=(Span("  "),))
        for told in reasons:
            yield from wrap((Span(told),), self._width, first=(Span("  - ", Role.NOTICE),), rest=(_INDENT,))

    def _files(self) -> Iterator[Spans]:
        if not self._names:
            return
        yield ()
        yield rule((Span("transcripts", Role.HEADING),), self._width)
        wide = max(map(columns, self._names.values()))
        for transcript, name in self._names.items():
            shown = plain(name)
            room = max(20, self._width - wide - 4)
            yield (
                Span(f"  {shown}{' ' * (wide - columns(shown))}  ", Role.CODE),
                Span(self._path(transcript, room), Role.FAINT),
            )


def _multiplied(one: Product) -> Iterator[Span]:
    yield Span(f"{one.number:,} {one.kind} × {plain_number(one.price)} = ", Role.FAINT)  # noqa: RUF001 - times
    yield Span(plain_number(one.amount))


def _aligned(amounts: Sequence[Decimal]) -> list[str]:
    """Amounts with their points under each other."""
    texts = [plain_number(one) for one in amounts]
    whole = max((len(text.partition(".")[0]) for text in texts), default=0)
    return [" " * (whole - len(text.partition(".")[0])) + text for text in texts]


def _widest(counts: list[LineCounts], name: str, title: str) -> int:
    """How wide a column is; 0 where all of it is zero."""
    numbers = [getattr(one, name) for one in counts]
    most = max(numbers, default=0)
    return max(len(title), len(f"{most:,}")) if most or name in {"input", "output"} else 0
