"""Draw a receipt for a terminal: each message with its transcript lines and multiplication, then the total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

from threadline.model.receipts import LineCounts, Mention, PricedTokens, RateSum, Receipt, ReceiptGap, ReceiptItem
from threadline.model.text import count, format_amount, format_decimal, short_model_name
from threadline.model.times import in_zone, zone_name
from threadline.render.reconciliation import reported_session_lines
from threadline.render.text import (
    Role,
    Span,
    Spans,
    Style,
    cut_line,
    display_width,
    labelled_rule,
    line_width,
    plain,
    wrap,
)

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
    by_day: bool = True,
) -> Iterator[str]:
    """The receipt as lines of at most `width` columns, with at most `limit` messages. The sum always includes all.

    Messages are below the heading of their day unless `by_day` is false, for messages that are not in order of time.
    """
    style = Style(colour=colour)
    yield from map(style.line, _ReceiptRenderer(receipt, width, limit, path, zone).lines(by_day=by_day))


def short_names(transcripts: Iterable[str]) -> dict[str, str]:
    """The shortest unique start of each transcript's name, but never shorter than the ids in other output.

    >>> short_names(["/a/55604662-0c1d.jsonl", "/a/agent-acompact-77.jsonl", "/a/agent-acompact-78.jsonl"]).values()
    dict_values(['55604662', 'acompact-77', 'acompact-78'])
    """
    stems = {path: _transcript_stem(path) for path in dict.fromkeys(transcripts)}
    names = {path: stem[:_NAME_LENGTH] for path, stem in stems.items()}
    for size in _LONGER_NAMES:
        uses = Counter(names.values())
        names = {path: name if uses[name] == 1 else stems[path][:size] for path, name in names.items()}
    uses = Counter(names.values())
    duplicates = [path for path, name in names.items() if uses[name] > 1]
    return names | {path: f"{stems[path][:_NAME_LENGTH]}~{number}" for number, path in enumerate(duplicates, 1)}


def _transcript_stem(transcript: str) -> str:
    return transcript.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl").removeprefix("agent-")


class _ReceiptRenderer:
    """Renders one receipt as lines of spans."""

    def __init__(self, receipt: Receipt, width: int, limit: int | None, path: PathShortener, zone: tzinfo) -> None:
        self._receipt, self._width, self._path, self._zone = receipt, width, path, zone
        self._shown = receipt.items[:limit]
        mentions = [mention for item in self._shown for mention in item.mentions]
        self._names = short_names(mention.place.transcript for mention in mentions)
        self._rates = {id(rate_sum.rate): number for number, rate_sum in enumerate(receipt.rates, 1)}
        self._place_width = max([len("line"), *(display_width(self._where(mention)) for mention in mentions)])
        counts = [mention.counts for mention in mentions if mention.counts is not None]
        self._columns = [(name, title, _column_width(counts, name, title)) for name, title in _COLUMNS]
        # Cache writes are for five minutes or an hour, rarely both. A column of zeros is left out.
        self._columns = [column for column in self._columns if column[2] or column[0] in {"input", "output"}]

    def lines(self, *, by_day: bool) -> Iterator[Spans]:
        yield from wrap(self._title(), self._width)
        if self._shown:
            yield ()
            yield cut_line(self._header(), self._width)
        heading = ""
        for item in self._shown:
            when = self._local_time(item.charge.timestamp)
            day = when.date().isoformat() if when is not None else "no time"
            day_heading = day if item.here else f"{day}, copies counted elsewhere"
            if by_day and day_heading != heading:
                heading = day_heading
                yield labelled_rule((Span(heading, Role.HEADING),), self._width)
            clock = "%H:%M:%S" if by_day else "%Y-%m-%d %H:%M:%S"
            yield from self._item(item, f"{when:{clock}}" if when is not None else "(no time)")
        left = self._receipt.items[len(self._shown) :]
        if left:
            lines = sum(len(left_item.mentions) for left_item in left)
            more = count(len(left), "more message")
            note = f"… {more} ({count(lines, 'line')}): use --all or --limit N. The sum includes them."
            yield from wrap((Span(note, Role.NOTICE),), self._width)
            yield ()
        yield from self._sum()
        yield from self._missing()
        yield from self._reported()
        yield from self._files()

    def _local_time(self, when: datetime | None) -> datetime | None:
        return in_zone(when, self._zone) if when is not None else None

    def _title(self) -> Iterator[Span]:
        receipt = self._receipt
        here = sum(1 for item in receipt.items if item.here and not item.charge.part)
        name = self._path(receipt.name, max(20, self._width // 2)) if receipt.kind == "place" else receipt.name
        yield Span(f"Receipt of {receipt.kind} {name}", Role.TITLE)
        facts = [count(here, "message"), f"from {count(receipt.lines, 'line')}"]
        elsewhere = sum(1 for item in receipt.items if not item.here)
        if elsewhere:
            facts.append(f"and {count(elsewhere, 'message')} counted elsewhere")
        facts.append(f"times in {zone_name(self._zone)}, USD, prices {receipt.digest[:_NAME_LENGTH]}")
        yield Span(f"  {' · '.join(facts)}", Role.FAINT)

    def _header(self) -> Iterator[Span]:
        yield Span(f"    {'line':<{self._place_width}}", Role.FAINT)
        yield Span("".join(f"  {title:>{width}}" for _, title, width in self._columns), Role.FAINT)
        yield Span(f"  {'stopped by':<{_STOP_WIDTH}}  reason", Role.FAINT)

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
            sentence = f"{owner}{agent}, which began earlier. Not counted here."
            yield from wrap((Span(sentence, Role.FAINT),), self._width, first=(_INDENT,), rest=(_INDENT,))
        elif item.charge.rate is not None:
            yield from self._arithmetic(item)
        yield ()

    def _headline(self, item: ReceiptItem, when: str) -> Spans:
        charge = item.charge
        amount = charge.amount
        amount_text = (
            "elsewhere" if not item.here else "no price" if amount is None else format_amount(amount, exact=True)
        )
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
        left = cut_line(spans, max(20, self._width - len(amount_text) - 3))
        gap = max(2, self._width - line_width(left) - len(amount_text))
        return (
            *left,
            Span(" " * gap),
            Span(amount_text, Role.STRONG if item.here and amount is not None else Role.NOTICE),
        )

    def _where(self, mention: Mention) -> str:
        line = f":{mention.place.line}" if mention.place.line else f" at byte {mention.place.offset}"
        return plain(self._names[mention.place.transcript]) + line

    def _mention(self, mention: Mention) -> Iterator[Spans]:
        """A transcript line with its counts, and why it counted or not: on the same line if it fits, or below."""
        counts = mention.counts
        mark = _UNREADABLE_SIGN if counts is None else _COUNTED_SIGN if mention.counted else _UNCOUNTED_SIGN
        role = Role.BAD if counts is None else Role.GOOD if mention.counted else Role.FAINT
        body = Role.BODY if mention.counted else Role.FAINT
        where = self._where(mention)
        space = " " * max(0, self._place_width - display_width(where))
        spans = [Span(f"  {mark} ", role), Span(where + space, body)]
        if counts is not None:
            spans += [Span(f"  {getattr(counts, name):>{width},}", body) for name, _, width in self._columns]
            spans.append(Span(f"  {plain(counts.stop_reason or '-')[:_STOP_WIDTH]:<{_STOP_WIDTH}}", body))
        why = Span(mention.why, role if counts is None else Role.FAINT)
        if line_width(spans) + 2 + display_width(mention.why) <= self._width:
            yield (*spans, Span("  "), why)
            return
        yield cut_line(spans, self._width)
        if mention.counted and counts is not None:
            return  # its sign is enough
        indent = Span("      ")
        yield from wrap((why,), self._width, first=(indent,), rest=(indent,))

    def _arithmetic(self, item: ReceiptItem) -> Iterator[Spans]:
        """The products and their sum, as many per line as fit. A product is never split."""
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
        receipt, total = self._receipt, self._receipt.total
        yield labelled_rule((Span("sum", Role.HEADING),), self._width)
        for number, rate in enumerate(receipt.rates, 1):
            yield from self._rate(number, rate)
        tokens = f"{count(total.charges, 'charge')}, {count(total.tokens, 'token')}"
        if total.amount is None:
            priced = "no known price" if total.charges else "nothing is counted here"
            yield from wrap((Span(f"{tokens}: {priced}", Role.NOTICE),), self._width)
            return
        yield from wrap(
            (
                Span(f"{tokens}: "),
                Span(format_amount(total.amount, exact=True), Role.TITLE),
                Span(
                    f", rounded: {format_amount(total.amount)}"
                    + (", plus messages without a known price" if total.unpriced else "")
                ),
            ),
            self._width,
        )

    def _rate(self, number: int, rate_sum: RateSum) -> Iterator[Spans]:
        description = f"rate {number}: {rate_sum.rate.describe()}"
        rest = Span("  ")
        yield from wrap((Span(description, Role.FAINT),), self._width, rest=(rest,))
        numbers = [f"{product.number:,}" for product in rate_sum.products]
        prices = [format_decimal(product.price) for product in rate_sum.products]
        amounts = _align_amounts([*(product.amount for product in rate_sum.products), rate_sum.amount])
        number_width = max(map(len, numbers), default=1)
        price_width = max(map(len, prices), default=1)
        for product, tokens, price, amount in zip(rate_sum.products, numbers, prices, amounts, strict=False):
            yield (
                Span(f"    {tokens:>{number_width}} "),
                Span(f"{product.kind:<14}", Role.FAINT),
                Span(f" × {price:<{price_width}} = {amount}"),  # noqa: RUF001 - the sign for times
            )
        label = count(rate_sum.charges, "charge")
        room = number_width + price_width + 18
        yield (_INDENT, Span(f"{label:<{room}} "), Span(f"= {amounts[-1]}", Role.STRONG))
        yield ()

    def _missing(self) -> Iterator[Spans]:
        if not self._receipt.missing:
            return
        yield ()
        yield labelled_rule((Span("known to be missing", Role.HEADING),), self._width)
        for gap in self._receipt.missing:
            yield from self._gap(gap)

    def _gap(self, gap: ReceiptGap) -> Iterator[Spans]:
        sentence = gap.text[:1].upper() + gap.text[1:]
        yield from wrap((Span(sentence),), self._width, first=(Span("  - ", Role.NOTICE),), rest=(_INDENT,))
        for place in gap.places[:_MAX_PLACES]:
            shown = self._path(place.transcript, max(20, self._width - 16))
            yield (_INDENT, Span(f"{shown}:{place.line}" if place.line else shown, Role.FAINT))
        if len(gap.places) > _MAX_PLACES:
            yield (_INDENT, Span(f"and {len(gap.places) - _MAX_PLACES:,} more", Role.FAINT))

    def _reported(self) -> Iterator[Spans]:
        """The cost that Claude Code reports for the session, and every reason for a difference."""
        if self._receipt.reported is None:
            return
        yield ()
        yield labelled_rule((Span("reported by Claude Code", Role.HEADING),), self._width)
        head, *reasons = reported_session_lines(self._receipt.reported)
        yield from wrap((Span(head),), self._width, first=(Span("  "),), rest=(Span("  "),))
        for reason in reasons:
            yield from wrap((Span(reason),), self._width, first=(Span("  - ", Role.NOTICE),), rest=(_INDENT,))

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


def _product_spans(product: PricedTokens) -> Iterator[Span]:
    yield Span(f"{product.number:,} {product.kind} × {format_decimal(product.price)} = ", Role.FAINT)  # noqa: RUF001 - times
    yield Span(format_decimal(product.amount))


def _align_amounts(amounts: Sequence[Decimal]) -> list[str]:
    """Align amounts at their decimal points."""
    texts = [format_decimal(decimal) for decimal in amounts]
    width = max((len(text.partition(".")[0]) for text in texts), default=0)
    return [" " * (width - len(text.partition(".")[0])) + text for text in texts]


def _column_width(counts: list[LineCounts], name: str, title: str) -> int:
    """The width of a column; 0 if all its values are zero."""
    numbers = [getattr(line_counts, name) for line_counts in counts]
    most = max(numbers, default=0)
    return max(len(title), len(f"{most:,}")) if most or name in {"input", "output"} else 0
