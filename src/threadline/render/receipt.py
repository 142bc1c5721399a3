"""Draw a receipt for a terminal: each message with its transcript lines and multiplication, then the total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

from threadline.model.charges import format_decimal
from threadline.model.receipts import LineCounts, Mention, PricedTokens, RateSum, Receipt, ReceiptGap, ReceiptItem
from threadline.model.text import count, short_model_name
from threadline.render.reconciliation import reported_session_lines
from threadline.render.safe_text import display_width, plain
from threadline.render.terminal import Role, Span, Spans, Style, cut_line, labelled_rule, line_width, wrap

_NAME_LENGTH = 8
_LONGER_NAMES = (11, 13, 18)
_STOP_WIDTH = 10
_INDENT = Span("    ")
_COUNTED_SIGN, _UNCOUNTED_SIGN, _UNREADABLE_SIGN = "✓", "·", "?"
_COLUMNS = (
    ("input", "input"),
    ("output", "output"),
    ("cache_write_5m", "write 5m"),
    ("cache_write_1h", "write 1h"),
    ("cache_read", "read"),
)
_MAX_PLACES = 3
PathShortener = Callable[[str, int], str]


def draw_receipt(
    receipt: Receipt,
    width: int,
    *,
    colour: bool = False,
    limit: int | None = None,
    path: PathShortener,
    zone: tzinfo = UTC,
) -> Iterator[str]:
    """The receipt as lines that fit a page, with no more than `limit` messages; the sum is always of all."""
    style = Style(colour=colour)
    yield from map(style.line, _ReceiptRenderer(receipt, width, limit, path, zone).lines())


def short_names(transcripts: Iterable[str]) -> dict[str, str]:
    """The start of each transcript's name, as short as tells them apart, and never shorter than ids are shown.

    >>> short_names(["/a/55604662-0c1d.jsonl", "/a/agent-acompact-77.jsonl", "/a/agent-acompact-78.jsonl"]).values()
    dict_values(['55604662', 'acompact-77', 'acompact-78'])
    """
    stems = {fromkey: _transcript_stem(fromkey) for fromkey in dict.fromkeys(transcripts)}
    names = {one: stem[:_NAME_LENGTH] for one, stem in stems.items()}
    for size in _LONGER_NAMES:
        taken = Counter(names.values())
        names = {one: name if taken[name] == 1 else stems[one][:size] for one, name in names.items()}
    taken = Counter(names.values())
    alike = [one for one, name in names.items() if taken[name] > 1]
    return names | {one: f"{stems[one][:_NAME_LENGTH]}~{number}" for number, one in enumerate(alike, 1)}


def _transcript_stem(transcript: str) -> str:
    return transcript.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl").removeprefix("agent-")


class _ReceiptRenderer:
    """Draws one receipt."""

    def __init__(self, receipt: Receipt, width: int, limit: int | None, path: PathShortener, zone: tzinfo) -> None:
        self._receipt, self._width, self._path, self._zone = receipt, width, path, zone
        self._shown = receipt.items[:limit]
        told = [mention for item in self._shown for mention in item.mentions]
        self._names = short_names(mention.place.transcript for mention in told)
        self._rates = {id(one.rate): number for number, one in enumerate(receipt.rates, 1)}
        self._place = max([len("line"), *(display_width(self._where(mention)) for mention in told)])
        counts = [mention.counts for mention in told if mention.counts is not None]
        self._columns = [(name, title, _column_width(counts, name, title)) for name, title in _COLUMNS]
        # Caches are written for five minutes or for an hour, seldom for both: no column of zeros.
        self._columns = [column for column in self._columns if column[2] or column[0] in {"input", "output"}]

    def lines(self) -> Iterator[Spans]:
        yield from wrap(self._title(), self._width)
        if self._shown:
            yield ()
            yield cut_line(self._header(), self._width)
        heading = ""
        for item in self._shown:
            when = self._moment(item.charge.timestamp)
            day = when.date().isoformat() if when is not None else "no time"
            wanted = day if item.here else f"{day}, copies of what others own"
            if wanted != heading:
                heading = wanted
                yield labelled_rule((Span(heading, Role.HEADING),), self._width)
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
        facts.append(f"times in {zone}, USD, prices {one.digest[:_NAME_LENGTH]}")
        yield Span(f"  {' · '.join(facts)}", Role.FAINT)

    def _header(self) -> Iterator[Span]:
        yield Span(f"    {'line':<{self._place}}", Role.FAINT)
        yield Span("".join(f"  {title:>{width}}" for _, title, width in self._columns), Role.FAINT)
        yield Span(f"  {'stopped by':<{_STOP_WIDTH}}  why", Role.FAINT)

    def _item(self, item: ReceiptItem, when: str) -> Iterator[Spans]:
        yield self._headline(item, when)
        for mention in item.mentions:
            yield from self._mention(mention)
        for note in item.notes:
            yield from wrap(
                (Span(note, Role.NOTICE),), self._width, first=(Span("  ! ", Role.NOTICE),), rest=(_INDENT,)
            )
        if not item.here:
            owner = f"Owned by session {str(item.charge.session or '(none)')[:_NAME_LENGTH]}"
            agent = f", agent {item.charge.agent}" if item.charge.agent else ""
            told = f"{owner}{agent}, which began before: not counted here."
            yield from wrap((Span(told, Role.FAINT),), self._width, first=(_INDENT,), rest=(_INDENT,))
        elif item.charge.rate is not None:
            yield from self._arithmetic(item)
        yield ()

    def _headline(self, item: ReceiptItem, when: str) -> Spans:
        charge = item.charge
        amount = charge.amount
        told = "not here" if not item.here else "no price" if amount is None else format_decimal(amount)
        who = Span(charge.agent, Role.AGENT) if charge.agent else Span("main", Role.FAINT)
        part = Span(f" ({charge.part})" if charge.part else "", Role.NOTICE)
        spans = (
            Span(f"{when}  ", Role.FAINT),
            Span(charge.message, Role.CODE),
            Span(f"  {short_model_name(charge.model) or '(no model)'}"),
            part,
            Span("  "),
            who,
        )
        left = cut_line(spans, max(20, self._width - len(told) - 3))
        gap = max(2, self._width - line_width(left) - len(told))
        return (*left, Span(" " * gap), Span(told, Role.STRONG if item.here and amount is not None else Role.NOTICE))

    def _where(self, mention: Mention) -> str:
        line = f":{mention.place.line}" if mention.place.line else f" at byte {mention.place.offset}"
        return plain(self._names[mention.place.transcript]) + line

    def _mention(self, mention: Mention) -> Iterator[Spans]:
        """A line with its counts; why it counted or not stands behind, or below where there is no room."""
        counts = mention.counts
        mark = _UNREADABLE_SIGN if counts is None else _COUNTED_SIGN if mention.counted else _UNCOUNTED_SIGN
        role = Role.BAD if counts is None else Role.GOOD if mention.counted else Role.FAINT
        body = Role.BODY if mention.counted else Role.FAINT
        where = self._where(mention)
        space = " " * max(0, self._place - display_width(where))
        told = [Span(f"  {mark} ", role), Span(where + space, body)]
        if counts is not None:
            told += [Span(f"  {getattr(counts, name):>{width},}", body) for name, _, width in self._columns]
            told.append(Span(f"  {plain(counts.stop_reason or '-')[:_STOP_WIDTH]:<{_STOP_WIDTH}}", body))
        why = Span(mention.why, role if counts is None else Role.FAINT)
        if line_width(told) + 2 + display_width(mention.why) <= self._width:
            yield (*told, Span("  "), why)
            return
        yield cut_line(told, self._width)
        if mention.counted and counts is not None:
            return  # its mark says enough
        indent = Span("      ")
        yield from wrap((why,), self._width, first=(indent,), rest=(indent,))

    def _arithmetic(self, item: ReceiptItem) -> Iterator[Spans]:
        """The products and their sum, as many to a line as fit; none is broken."""
        pieces = [list(_product_spans(product)) for product in item.products] or [[Span("no tokens = 0")]]
        for piece in pieces[1:]:
            piece.insert(0, Span("+ ", Role.FAINT))
        number = self._rates.get(id(item.charge.rate), 0)
        ending = [Span(f"(rate {number})", Role.FAINT)]
        if len(pieces) > 1:
            ending = [
                Span("= "),
                Span(format_decimal(item.charge.amount or Decimal(0)), Role.STRONG),
                Span(" "),
                *ending,
            ]
        line: list[Span] = [_INDENT]
        for piece in [*pieces, ending]:
            if len(line) > 1 and line_width(line) + 1 + line_width(piece) > self._width:
                yield cut_line(line, self._width)
                line = [_INDENT]
            line += [Span(" " if len(line) > 1 else ""), *piece]
        yield cut_line(line, self._width)

    def _sum(self) -> Iterator[Spans]:
        one, total = self._receipt, self._receipt.total
        yield labelled_rule((Span("sum", Role.HEADING),), self._width)
        for number, rate in enumerate(one.rates, 1):
            yield from self._rate(number, rate)
        tokens = f"{count(total.charges, 'message')}, {count(total.tokens, 'token')}"
        if total.amount is None:
            priced = "no price is known for any of them" if total.charges else "nothing is counted here"
            yield from wrap((Span(f"{tokens}: {priced}", Role.NOTICE),), self._width)
            return
        exact = format_decimal(total.amount)
        yield from wrap(
            (
                Span(f"{tokens}: "),
                Span(f"{exact} USD", Role.TITLE),
                Span(f", to the cent {total.amount:,.2f}" + (", and more" if total.unpriced else "")),
            ),
            self._width,
        )

    def _rate(self, number: int, rate_sum: RateSum) -> Iterator[Spans]:
        told = f"rate {number}: {rate_sum.rate.describe()}"
        rest = Span("  ")
        yield from wrap((Span(told, Role.FAINT),), self._width, rest=(rest,))
        numbers = [f"{product.number:,}" for product in rate_sum.products]
        prices = [format_decimal(product.price) for product in rate_sum.products]
        amounts = _align_amounts([*(product.amount for product in rate_sum.products), rate_sum.amount])
        wide = max(map(len, numbers), default=1)
        dear = max(map(len, prices), default=1)
        for product, tokens, price, amount in zip(rate_sum.products, numbers, prices, amounts, strict=False):
            yield (
                Span(f"    {tokens:>{wide}} "),
                Span(f"{product.kind:<14}", Role.FAINT),
                Span(f" × {price:<{dear}} = {amount}"),  # noqa: RUF001 - the sign for times
            )
        label = count(rate_sum.charges, "charge")
        room = wide + dear + 18
        yield (_INDENT, Span(f"{label:<{room}} "), Span(f"= {amounts[-1]}", Role.STRONG))
        yield ()

    def _missing(self) -> Iterator[Spans]:
        if not self._receipt.missing:
            return
        yield ()
        yield labelled_rule((Span("known to be missing", Role.HEADING),), self._width)
        for one in self._receipt.missing:
            yield from self._absence(one)

    def _absence(self, receipt_gap: ReceiptGap) -> Iterator[Spans]:
        told = receipt_gap.text[:1].upper() + receipt_gap.text[1:]
        yield from wrap((Span(told),), self._width, first=(Span("  - ", Role.NOTICE),), rest=(_INDENT,))
        for place in receipt_gap.places[:_MAX_PLACES]:
            shown = self._path(place.transcript, max(20, self._width - 16))
            yield (_INDENT, Span(f"{shown}:{place.line}" if place.line else shown, Role.FAINT))
        if len(receipt_gap.places) > _MAX_PLACES:
            yield (_INDENT, Span(f"and {len(receipt_gap.places) - _MAX_PLACES:,} more", Role.FAINT))

    def _reported(self) -> Iterator[Spans]:
        """What Claude Code itself says the session cost, and every reason why that is another amount."""
        if self._receipt.reported is None:
            return
        yield ()
        yield labelled_rule((Span("reported by Claude Code", Role.HEADING),), self._width)
        head, *reasons = reported_session_lines(self._receipt.reported)
        yield from wrap((Span(head),), self._width, first=(Span("  "),), rest=(Span("  "),))
        for told in reasons:
            yield from wrap((Span(told),), self._width, first=(Span("  - ", Role.NOTICE),), rest=(_INDENT,))

    def _files(self) -> Iterator[Spans]:
        if not self._names:
            return
        yield ()
        yield labelled_rule((Span("transcripts", Role.HEADING),), self._width)
        wide = max(map(display_width, self._names.values()))
        for transcript, name in self._names.items():
            shown = plain(name)
            room = max(20, self._width - wide - 4)
            yield (
                Span(f"  {shown}{' ' * (wide - display_width(shown))}  ", Role.CODE),
                Span(self._path(transcript, room), Role.FAINT),
            )


def _product_spans(priced_tokens: PricedTokens) -> Iterator[Span]:
    yield Span(f"{priced_tokens.number:,} {priced_tokens.kind} × {format_decimal(priced_tokens.price)} = ", Role.FAINT)  # noqa: RUF001 - times
    yield Span(format_decimal(priced_tokens.amount))


def _align_amounts(amounts: Sequence[Decimal]) -> list[str]:
    """Amounts with their points under each other."""
    texts = [format_decimal(decimal) for decimal in amounts]
    whole = max((len(text.partition(".")[0]) for text in texts), default=0)
    return [" " * (whole - len(text.partition(".")[0])) + text for text in texts]


def _column_width(counts: list[LineCounts], name: str, title: str) -> int:
    """How wide a column is; 0 where all of it is zero."""
    numbers = [getattr(line_counts, name) for line_counts in counts]
    most = max(numbers, default=0)
    return max(len(title), len(f"{most:,}")) if most or name in {"input", "output"} else 0
