"""Format a usage report as a table with subtotals and bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.account import TIME_KEYS
from threadline.cli.output import shorten_path
from threadline.model.text import short_model_name
from threadline.model.times import in_zone
from threadline.model.totals import Row, Sum
from threadline.render import (
    Role,
    Span,
    Spans,
    Style,
    bar,
    clip,
    clip_left,
    cut_line,
    display_width,
    format_amount,
    one_line,
    plain,
    short_number,
    sparkline,
    wrap,
)
from threadline.reports import usage_notes

if TYPE_CHECKING:
    from threadline.reports import UsageReport

_GAP = "  "
_MIN_LABEL = 28
_MIN_BAR, _MAX_BAR = 10, 30
_MIN_WIDTH_FOR_WEEKDAYS = 100
_ID_LENGTH = 8
_MAX_LABEL = 400
_DIGEST_LENGTH = 12
_MAX_POINTS_WITHOUT_SPARKLINE = 2
_RESOLUTION = timedelta(microseconds=1)
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC) - _RESOLUTION

# In the order of the table; the number says which goes first where the page is narrow: the greatest.
_COLUMNS: tuple[tuple[str, int, Callable[[Sum], int]], ...] = (
    ("charges", 2, lambda one: one.charges),
    ("input", 5, lambda one: one.input),
    ("output", 3, lambda one: one.output),
    ("cache write", 4, lambda one: one.cache_write),
    ("cache read", 1, lambda one: one.cache_read),
)


class _TableLine(Struct, frozen=True):
    """A line of the table, before it is laid out.

    `ends`: the label's end tells more than its beginning. `rest`: it is what a limit leaves out.
    """

    label: str
    depth: int
    sum: Sum
    role: Role = Role.BODY
    ends: bool = False
    rest: bool = False


def usage_page(
    usage_report: UsageReport,
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
    lines = list(_table_lines(usage_report, width, titles or {}))
    table = _Table(usage_report, lines, width, exact=exact, bars=bars and len(lines) > 1, ascii_only=ascii_only)
    curve = _sparkline(usage_report, width, ascii_only=ascii_only) if bars and not table.has_bars else ()
    for line in (
        *_header(usage_report, width, ascii_only=ascii_only),
        *curve,
        (),
        *table.lines(),
        (),
        *_footer(usage_report, width),
    ):
        yield style.line(line)


def _table_lines(usage_report: UsageReport, width: int, titles: Mapping[str, str]) -> Iterator[_TableLine]:
    """The rows, each below the subtotals of the values that it is part of, and the rest in one."""
    labels = _LabelFormatter(usage_report, width, titles)
    last = len(usage_report.by) - 1
    sums = [{tuple(row.keys.values()): row for row in usage_report.rows.subtotals(depth + 1)} for depth in range(last)]
    before: tuple[str, ...] = ()
    for row in usage_report.rows:
        path = tuple(row.keys[name] for name in usage_report.by)
        same = next((at for at, value in enumerate(path) if before[at : at + 1] != (value,)), last)
        for depth in range(same, last):
            yield labels.line(sums[depth][path[: depth + 1]], depth, Role.TITLE if not depth else Role.BODY)
        yield labels.line(row, last, Role.BODY if not last else Role.FAINT)
        before = path
    if usage_report.left_out:
        yield _TableLine(f"{usage_report.left_out:,} more: see --limit", 0, usage_report.rest, Role.FAINT, rest=True)


class _LabelFormatter:
    """What stands in the first column."""

    def __init__(self, usage_report: UsageReport, width: int, titles: Mapping[str, str]) -> None:
        self._by = usage_report.by
        self._titles = titles
        self._weekdays = width >= _MIN_WIDTH_FOR_WEEKDAYS
        models = {row.keys["model"] for row in usage_report.rows} if "model" in usage_report.by else set()
        short_names = {name: short_model_name(name) for name in models}
        # Two ids of one name are told apart by their dates.
        self._models = short_names if len(set(short_names.values())) == len(models) else {}

    def line(self, row: Row, depth: int, role: Role) -> _TableLine:
        name = self._by[depth]
        return _TableLine(self._label(name, row.keys[name]), depth, row, role, ends=name in {"project", "home"})

    def _label(self, name: str, value: str) -> str:
        if name == "session":
            titled = self._titles.get(value, "")
            return f"{plain(value)[:_ID_LENGTH]}{_GAP if titled else ''}{one_line(titled, _MAX_LABEL)}"
        if name in {"project", "home"}:
            return shorten_path(value, _MAX_LABEL)
        if name == "day" and self._weekdays:
            return f"{value}{_weekday_suffix(value)}"
        return one_line(self._models.get(value, value) if name == "model" else value, _MAX_LABEL)


def _weekday_suffix(day: str) -> str:
    try:
        return f" {date.fromisoformat(day):%a}"
    except ValueError:  # what says no time, or one that no calendar has
        return ""


class _Table:
    """Lines in columns that fit the page: columns go, labels shrink, and bars take what is left."""

    def __init__(
        self,
        usage_report: UsageReport,
        lines: list[_TableLine],
        width: int,
        *,
        exact: bool,
        bars: bool,
        ascii_only: bool,
    ) -> None:
        self._lines = lines
        self._total = _TableLine("total", 0, usage_report.total, Role.TITLE)
        self._heading = " / ".join(usage_report.by)
        self._exact = exact
        self._ascii = ascii_only
        every = [*lines, self._total]
        labels = [display_width(self._heading), *(2 * line.depth + display_width(line.label) for line in every)]
        self._amounts = max(len("amount"), *(len(format_amount(line.sum.amount, exact=exact)) for line in every))
        self._columns = self._fitting(every, width, least=min(max(labels), _MIN_LABEL))
        room = width - self._taken(self._columns)
        least = min(max(labels), _MIN_LABEL)
        self._label = max(1, min(max(labels), room))
        self._bar = 0
        if bars and room - least >= len(_GAP) + _MIN_BAR:
            self._label = max(least, min(max(labels), room - len(_GAP) - _MIN_BAR))
            self._bar = min(_MAX_BAR, room - self._label - len(_GAP))
        self._most = max((line.sum.amount or Decimal(0) for line in lines if not line.rest), default=Decimal(0))

    @property
    def has_bars(self) -> bool:
        """Whether there is room for bars, and something to show."""
        return self._bar > 0 and self._most > 0

    def _fitting(self, every: list[_TableLine], width: int, least: int) -> dict[str, tuple[int, Callable[[Sum], int]]]:
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
        return f"{number:,}" if self._exact or name == "charges" else short_number(number)

    def lines(self) -> Iterator[Spans]:
        """The heading, a line a row, a rule, and the total."""
        headings = "".join(f"{_GAP}{name:>{wide}}" for name, (wide, _) in self._columns.items())
        heading = clip(self._heading, self._label)
        yield (Span(f"{_GAP}{heading:<{self._label}}{headings}{_GAP}{'amount':>{self._amounts}}", Role.FAINT),)
        yield from map(self._row, self._lines)
        wide = self._label + self._taken(self._columns) - len(_GAP)
        yield (Span(f"{_GAP}{('-' if self._ascii else '─') * wide}", Role.FAINT),)
        yield self._row(self._total)

    def _row(self, line: _TableLine) -> Spans:
        room = max(1, self._label - 2 * line.depth)
        label = (clip_left if line.ends else clip)(line.label, room)
        label = f"{_GAP}{_GAP * line.depth}{label}{' ' * (room - display_width(label))}"
        figures = "".join(
            f"{_GAP}{self._number(name, get(line.sum)):>{wide}}" for name, (wide, get) in self._columns.items()
        )
        money = f"{_GAP}{format_amount(line.sum.amount, exact=self._exact):>{self._amounts}}"
        draws = self.has_bars and line is not self._total and not line.rest
        drawn = bar(line.sum.amount, self._most, self._bar, ascii_only=self._ascii) if draws else ""
        figures_role = Role.TITLE if line is self._total else Role.FAINT if line.role is Role.FAINT else Role.BODY
        return (
            Span(label, line.role),
            Span(figures, figures_role),
            Span(money, figures_role),
            Span(f"{_GAP}{drawn}" if drawn else "", Role.CODE),
        )


def _header(usage_report: UsageReport, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """What the report is about, in one line."""
    parts = [usage_report.zone if any(name in TIME_KEYS for name in usage_report.by) else "", _time_span(usage_report)]
    said = (" - " if ascii_only else " · ").join(filter(None, parts))
    yield cut_line(
        (Span(f"{_GAP}Usage by {', '.join(usage_report.by)}", Role.TITLE), Span(f"{_GAP}{said}", Role.FAINT)), width
    )


def _sparkline(usage_report: UsageReport, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """How it went, in one line: for a page that is too narrow for bars."""
    values = [row.amount for row in usage_report.rows.subtotals(1)]
    drawn = sparkline(values[-max(1, width - len(_GAP)) :], ascii_only=ascii_only)
    if usage_report.by[0] in TIME_KEYS and len(values) > _MAX_POINTS_WITHOUT_SPARKLINE and drawn.strip():
        yield (Span(f"{_GAP}{drawn}", Role.CODE),)


def _time_span(usage_report: UsageReport) -> str:
    """The time that was asked for; the minute only where it does not begin or end with a day."""
    told = []
    if usage_report.since is not None:
        told.append(f"from {_format_minute(in_zone(usage_report.since, usage_report.place))}")
    if usage_report.until is not None:
        local = in_zone(usage_report.until, usage_report.place)
        ends_a_day = usage_report.until > _LAST_MOMENT or not _has_time_of_day(
            in_zone(usage_report.until + _RESOLUTION, usage_report.place)
        )
        told.append(f"to {local.date().isoformat() if ends_a_day else _format_minute(local)}")
    return " ".join(told)


def _format_minute(local: datetime) -> str:
    return f"{local.date().isoformat()}{f' {local:%H:%M}' if _has_time_of_day(local) else ''}"


def _has_time_of_day(local: datetime) -> bool:
    return (local.hour, local.minute) != (0, 0)


def _footer(usage_report: UsageReport, width: int) -> Iterator[Spans]:
    """What has to be known about the figures."""
    for note in usage_notes(usage_report):
        yield from _wrapped_note(note, width, Role.NOTICE)
    files = usage_report.ledger.rates.digests
    more = f" with {', '.join(name for name, _ in files[1:])}" if len(files) > 1 else ""
    yield from _wrapped_note(
        f"Prices {usage_report.ledger.rates.digest[:_DIGEST_LENGTH]}{more}: see threadline prices.", width, Role.FAINT
    )
    if usage_report.reported is not None:
        from threadline.cli.usage_reported import reported_notes

        yield ()
        yield from reported_notes(usage_report.reported, width)


def _wrapped_note(text: str, width: int, role: Role) -> Iterator[Spans]:
    return wrap((Span(text, role),), width, first=(Span(_GAP),), rest=(Span(_GAP),))
