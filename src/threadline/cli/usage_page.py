"""A usage report as a person reads it: a row a value, subtotals above what they sum, bars where there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.account.keys import TIMES
from threadline.cli.places import short_path
from threadline.model.sum import Row, Sum
from threadline.model.zone import in_zone
from threadline.render.amounts import amount, short
from threadline.render.bars import bar, sparkline
from threadline.render.figures import model_name
from threadline.render.layout import cut, wrap
from threadline.render.style import Role, Span, Spans, Style
from threadline.render.terminal_text import clip, clip_left, columns, one_line, plain
from threadline.survey.usage_report import notes

if TYPE_CHECKING:
    from threadline.survey.usage_report import Report

_GAP = "  "
_LEAST_LABEL = 28
_LEAST_BAR, _MOST_BAR = 10, 30
_WEEKDAYS_FROM = 100
_ID = 8
_LONGEST = 400
_DIGEST = 12
_NO_CURVE = 2
_MOMENT = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC) - _MOMENT

# In the order of the table; the number says which goes first where the page is narrow: the greatest.
_COLUMNS: tuple[tuple[str, int, Callable[[Sum], int]], ...] = (
    ("charges", 2, lambda one: one.charges),
    ("input", 5, lambda one: one.input),
    ("output", 3, lambda one: one.output),
    ("cache write", 4, lambda one: one.cache_write),
    ("cache read", 1, lambda one: one.cache_read),
)


class _Line(Struct, frozen=True):
    """A line of the table, before it is laid out.

    `ends`: the label's end tells more than its beginning. `rest`: it is what a limit leaves out.
    """

    label: str
    depth: int
    sum: Sum
    role: Role = Role.BODY
    ends: bool = False
    rest: bool = False


def page(
    one: Report,
    *,
    width: int,
    coloured: bool = False,
    titles: Mapping[str, str] | None = None,
    exact: bool = False,
    bars: bool = False,
    ascii_only: bool = False,
) -> Iterator[str]:
    """The whole page. `titles` are those of sessions; `bars` asks for bars where there is room."""
    style = Style(colour=coloured)
    lines = list(_lines(one, width, titles or {}))
    table = _Table(one, lines, width, exact=exact, bars=bars and len(lines) > 1, ascii_only=ascii_only)
    curve = _curve(one, width, ascii_only=ascii_only) if bars and not table.has_bars else ()
    for line in (*_head(one, width, ascii_only=ascii_only), *curve, (), *table.lines(), (), *_foot(one, width)):
        yield style.line(line)


def _lines(one: Report, width: int, titles: Mapping[str, str]) -> Iterator[_Line]:
    """The rows, each below the subtotals of the values that it is part of, and the rest in one."""
    labels = _Labels(one, width, titles)
    last = len(one.by) - 1
    sums = [{tuple(row.keys.values()): row for row in one.rows.subtotals(depth + 1)} for depth in range(last)]
    before: tuple[str, ...] = ()
    for row in one.rows:
        path = tuple(row.keys[name] for name in one.by)
        same = next((at for at, value in enumerate(path) if before[at : at + 1] != (value,)), last)
        for depth in range(same, last):
            yield labels.line(sums[depth][path[: depth + 1]], depth, Role.TITLE if not depth else Role.BODY)
        yield labels.line(row, last, Role.BODY if not last else Role.FAINT)
        before = path
    if one.left_out:
        yield _Line(f"{one.left_out:,} more: see --limit", 0, one.rest, Role.FAINT, rest=True)


class _Labels:
    """What stands in the first column."""

    def __init__(self, one: Report, width: int, titles: Mapping[str, str]) -> None:
        self._by = one.by
        self._titles = titles
        self._weekdays = width >= _WEEKDAYS_FROM
        models = {row.keys["model"] for row in one.rows} if "model" in one.by else set()
        short_names = {name: model_name(name) for name in models}
        # Two ids of one name are told apart by their dates.
        self._models = short_names if len(set(short_names.values())) == len(models) else {}

    def line(self, row: Row, depth: int, role: Role) -> _Line:
        name = self._by[depth]
        return _Line(self._label(name, row.keys[name]), depth, row, role, ends=name in {"project", "home"})

    def _label(self, name: str, value: str) -> str:
        if name == "session":
            titled = self._titles.get(value, "")
            return f"{plain(value)[:_ID]}{_GAP if titled else ''}{one_line(titled, _LONGEST)}"
        if name in {"project", "home"}:
            return short_path(value, _LONGEST)
        if name == "day" and self._weekdays:
            return f"{value}{_weekday(value)}"
        return one_line(self._models.get(value, value) if name == "model" else value, _LONGEST)


def _weekday(day: str) -> str:
    try:
        return f" {date.fromisoformat(day):%a}"
    except ValueError:  # what says no time, or one that no calendar has
        return ""


class _Table:
    """Lines in columns that fit the page: columns go, labels shrink, and bars take what is left."""

    def __init__(
        self, one: Report, lines: list[_Line], width: int, *, exact: bool, bars: bool, ascii_only: bool
    ) -> None:
        self._lines = lines
        self._total = _Line("total", 0, one.total, Role.TITLE)
        self._heading = " / ".join(one.by)
        self._exact = exact
        self._ascii = ascii_only
        every = [*lines, self._total]
        labels = [columns(self._heading), *(2 * line.depth + columns(line.label) for line in every)]
        self._amounts = max(len("amount"), *(len(amount(line.sum.amount, exact=exact)) for line in every))
        self._columns = self._fitting(every, width, least=min(max(labels), _LEAST_LABEL))
        room = width - self._taken(self._columns)
        least = min(max(labels), _LEAST_LABEL)
        self._label = max(1, min(max(labels), room))
        self._bar = 0
        if bars and room - least >= len(_GAP) + _LEAST_BAR:
            self._label = max(least, min(max(labels), room - len(_GAP) - _LEAST_BAR))
            self._bar = min(_MOST_BAR, room - self._label - len(_GAP))
        self._most = max((line.sum.amount or Decimal(0) for line in lines if not line.rest), default=Decimal(0))

    @property
    def has_bars(self) -> bool:
        """Whether there is room for bars, and something to show."""
        return self._bar > 0 and self._most > 0

    def _fitting(self, every: list[_Line], width: int, least: int) -> dict[str, tuple[int, Callable[[Sum], int]]]:
        """The columns that fit, each with its width."""
        made = {
            name: (max(len(name), *(len(self._number(name, get(line.sum))) for line in every)), get)
            for name, _, get in _COLUMNS
        }
        for name, _, _ in sorted(_COLUMNS, key=lambda column: -column[1]):
            if width - self._taken(made) >= least:
                break
            del made[name]
        return made

    def _taken(self, made: Mapping[str, tuple[int, object]]) -> int:
        return len(_GAP) + sum(len(_GAP) + wide for wide, _ in made.values()) + len(_GAP) + self._amounts

    def _number(self, name: str, number: int) -> str:
        return f"{number:,}" if self._exact or name == "charges" else short(number)

    def lines(self) -> Iterator[Spans]:
        """The heading, a line a row, a rule, and the total."""
        headings = "".join(f"{_GAP}{name:>{wide}}" for name, (wide, _) in self._columns.items())
        heading = clip(self._heading, self._label)
        yield (Span(f"{_GAP}{heading:<{self._label}}{headings}{_GAP}{'amount':>{self._amounts}}", Role.FAINT),)
        yield from map(self._row, self._lines)
        wide = self._label + self._taken(self._columns) - len(_GAP)
        yield (Span(f"{_GAP}{('-' if self._ascii else '─') * wide}", Role.FAINT),)
        yield self._row(self._total)

    def _row(self, line: _Line) -> Spans:
        room = max(1, self._label - 2 * line.depth)
        label = (clip_left if line.ends else clip)(line.label, room)
        label = f"{_GAP}{_GAP * line.depth}{label}{' ' * (room - columns(label))}"
        figures = "".join(
            f"{_GAP}{self._number(name, get(line.sum)):>{wide}}" for name, (wide, get) in self._columns.items()
        )
        money = f"{_GAP}{amount(line.sum.amount, exact=self._exact):>{self._amounts}}"
        draws = self.has_bars and line is not self._total and not line.rest
        drawn = bar(line.sum.amount, self._most, self._bar, ascii_only=self._ascii) if draws else ""
        figures_role = Role.TITLE if line is self._total else Role.FAINT if line.role is Role.FAINT else Role.BODY
        return (
            Span(label, line.role),
            Span(figures, figures_role),
            Span(money, figures_role),
            Span(f"{_GAP}{drawn}" if drawn else "", Role.CODE),
        )


def _head(one: Report, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """What the report is about, in one line."""
    parts = [one.zone if any(name in TIMES for name in one.by) else "", _span(one)]
    said = (" - " if ascii_only else " · ").join(filter(None, parts))
    yield cut((Span(f"{_GAP}Usage by {', '.join(one.by)}", Role.TITLE), Span(f"{_GAP}{said}", Role.FAINT)), width)


def _curve(one: Report, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """How it went, in one line: for a page that is too narrow for bars."""
    values = [row.amount for row in one.rows.subtotals(1)]
    drawn = sparkline(values[-max(1, width - len(_GAP)) :], ascii_only=ascii_only)
    if one.by[0] in TIMES and len(values) > _NO_CURVE and drawn.strip():
        yield (Span(f"{_GAP}{drawn}", Role.CODE),)


def _span(one: Report) -> str:
    """The time that was asked for; the minute only where it does not begin or end with a day."""
    told = []
    if one.since is not None:
        told.append(f"from {_minute(in_zone(one.since, one.place))}")
    if one.until is not None:
        local = in_zone(one.until, one.place)
        ends_a_day = one.until > _LAST or not _is_minute(in_zone(one.until + _MOMENT, one.place))
        told.append(f"to {local.date().isoformat() if ends_a_day else _minute(local)}")
    return " ".join(told)


def _minute(local: datetime) -> str:
    return f"{local.date().isoformat()}{f' {local:%H:%M}' if _is_minute(local) else ''}"


def _is_minute(local: datetime) -> bool:
    return (local.hour, local.minute) != (0, 0)


def _foot(one: Report, width: int) -> Iterator[Spans]:
    """What has to be known about the figures."""
    for note in notes(one):
        yield from _told(note, width, Role.NOTICE)
    files = one.ledger.rates.digests
    more = f" with {', '.join(name for name, _ in files[1:])}" if len(files) > 1 else ""
    yield from _told(f"Prices {one.ledger.rates.digest[:_DIGEST]}{more}: see threadline prices.", width, Role.FAINT)
    if one.reported is not None:
        from threadline.cli.usage_reported import below

        yield ()
        yield from below(one.reported, width)


def _told(text: str, width: int, role: Role) -> Iterator[Spans]:
    return wrap((Span(text, role),), width, first=(Span(_GAP),), rest=(Span(_GAP),))
