"""Draw a usage report for a terminal: a table with subtotals and bars, and notes below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from threadline.account import TIME_KEYS
from threadline.cli.output import GAP, shorten_path, wrap_note
from threadline.model.budgets import NEARLY_USED
from threadline.model.ledger import Row, Sum
from threadline.model.text import format_amount, format_tokens, short_id, short_model_name
from threadline.model.times import in_zone
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
    dropped_note,
    fit_columns,
    one_line,
    plain,
    sparkline,
)
from threadline.reports import UsageReport, usage_notes

# What tables show for a value of the key `thread`. Output for programs has the value itself.
_THREAD_LABELS = {"left branch": "abandoned branch"}
_MIN_LABEL = 28
_MIN_BAR, _MAX_BAR = 10, 30
_MIN_WIDTH_FOR_WEEKDAYS = 100
_MAX_LABEL = 400
_DIGEST_LENGTH = 12
_MAX_POINTS_WITHOUT_SPARKLINE = 2
_RESOLUTION = timedelta(microseconds=1)
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC) - _RESOLUTION

# Columns in order. On a narrow page, the one with the highest number is dropped first.
_COLUMNS: tuple[tuple[str, int, Callable[[Sum], int]], ...] = (
    ("charges", 2, lambda total: total.charges),
    ("input", 5, lambda total: total.input),
    ("output", 3, lambda total: total.output),
    ("cache write", 4, lambda total: total.cache_write),
    ("cache read", 1, lambda total: total.cache_read),
)


class _TableLine(Struct, frozen=True):
    """A line of the table before layout.

    `ends`: cut the label at its start, as for paths. `rest`: the line sums what a limit leaves out.
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
    colour: bool = False,
    titles: Mapping[str, str] | None = None,
    exact: bool = False,
    bars: bool = False,
    ascii_only: bool = False,
) -> Iterator[str]:
    """The lines of the report. `titles` are the sessions' titles; `bars` draws bars if there is room."""
    style = Style(colour=colour)
    lines = list(_table_lines(usage_report, width, titles or {}))
    table = _Table(usage_report, lines, width, exact=exact, bars=bars and len(lines) > 1, ascii_only=ascii_only)
    curve = _sparkline(usage_report, width, ascii_only=ascii_only) if bars and not table.has_bars else ()
    for line in (
        *_header(usage_report, width, ascii_only=ascii_only),
        *curve,
        (),
        *table.lines(),
        (),
        *_footer(usage_report, width, table.dropped),
    ):
        yield style.line(line)


def _table_lines(usage_report: UsageReport, width: int, titles: Mapping[str, str]) -> Iterator[_TableLine]:
    """The rows, each below the subtotals it belongs to, and one line for the rest."""
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
        yield _TableLine(f"{usage_report.left_out:,} more: use --limit N", 0, usage_report.rest, Role.FAINT, rest=True)


class _LabelFormatter:
    """Formats the first column."""

    def __init__(self, usage_report: UsageReport, width: int, titles: Mapping[str, str]) -> None:
        self._by = usage_report.by
        self._titles = titles
        self._prompts = usage_report.prompts
        self._turn_width = max((len(row.keys.get("turn", "")) for row in usage_report.rows), default=0)
        self._weekdays = width >= _MIN_WIDTH_FOR_WEEKDAYS
        models = {row.keys["model"] for row in usage_report.rows} if "model" in usage_report.by else set()
        short_names = {name: short_model_name(name) for name in models}
        # Two ids with the same short name keep their dates.
        self._models = short_names if len(set(short_names.values())) == len(models) else {}

    def line(self, row: Row, depth: int, role: Role) -> _TableLine:
        name = self._by[depth]
        label = self._turn_label(row.keys) if name == "turn" else self._label(name, row.keys[name])
        return _TableLine(label, depth, row, role, ends=name in {"project", "home", "transcript"})

    def _turn_label(self, keys: Mapping[str, str]) -> str:
        if not keys["turn"].isdecimal():
            return keys["turn"]
        prompt = self._prompts.get((keys.get("session", ""), keys["turn"]), "(before the first prompt)")
        return f"{keys['turn']:>{self._turn_width}}{GAP}{one_line(prompt, _MAX_LABEL)}"

    def _label(self, name: str, value: str) -> str:
        if name == "session":
            title = self._titles.get(value, "")
            return f"{short_id(plain(value))}{GAP if title else ''}{one_line(title, _MAX_LABEL)}"
        if name in {"project", "home", "transcript"}:
            return shorten_path(value, _MAX_LABEL)
        if name == "day" and self._weekdays:
            return f"{value}{_weekday_suffix(value)}"
        if name == "thread":
            return _THREAD_LABELS.get(value, value)
        return one_line(self._models.get(value, value) if name == "model" else value, _MAX_LABEL)


def _weekday_suffix(day: str) -> str:
    try:
        return f" {date.fromisoformat(day):%a}"
    except ValueError:  # no time, or an invalid one
        return ""


class _Table:
    """Lays out lines in columns: columns are dropped, labels shrink, and bars take the remaining space."""

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
        all_lines = [*lines, self._total]
        labels = [display_width(self._heading), *(2 * line.depth + display_width(line.label) for line in all_lines)]
        self._amounts = max(len("amount"), *(len(format_amount(line.sum.amount, exact=exact)) for line in all_lines))
        self._columns = self._fit_columns(all_lines, width, least=min(max(labels), _MIN_LABEL))
        room = width - self._fixed_width(self._columns)
        least = min(max(labels), _MIN_LABEL)
        self._label = max(1, min(max(labels), room))
        self._bar = 0
        if bars and room - least >= len(GAP) + _MIN_BAR:
            self._label = max(least, min(max(labels), room - len(GAP) - _MIN_BAR))
            self._bar = min(_MAX_BAR, room - self._label - len(GAP))
        self._most = max((line.sum.amount or Decimal(0) for line in lines if not line.rest), default=Decimal(0))

    @property
    def dropped(self) -> list[str]:
        """The columns for which there is no room."""
        return [name for name, _, _ in _COLUMNS if name not in self._columns]

    @property
    def has_bars(self) -> bool:
        """Whether there is room for bars, and any amount to show."""
        return self._bar > 0 and self._most > 0

    def _fit_columns(
        self, lines: list[_TableLine], width: int, least: int
    ) -> dict[str, tuple[int, Callable[[Sum], int]]]:
        """The columns that fit, each with its width."""
        columns = {
            name: (max(len(name), *(len(self._number(name, get(line.sum))) for line in lines)), get)
            for name, _, get in _COLUMNS
        }
        drop = [name for name, _, _ in sorted(_COLUMNS, key=lambda column: -column[1])]
        room = width - self._fixed_width({}) - least
        fitting = fit_columns({name: wide for name, (wide, _) in columns.items()}, drop, room, gap=len(GAP))
        return {name: columns[name] for name in fitting}

    def _fixed_width(self, columns: Mapping[str, tuple[int, object]]) -> int:
        return len(GAP) + sum(len(GAP) + wide for wide, _ in columns.values()) + len(GAP) + self._amounts

    def _number(self, name: str, number: int) -> str:
        return format_tokens(number, exact=self._exact or name == "charges")

    def lines(self) -> Iterator[Spans]:
        """The heading, one line per row, a rule, and the total."""
        headings = "".join(f"{GAP}{name:>{wide}}" for name, (wide, _) in self._columns.items())
        heading = clip(self._heading, self._label)
        yield (Span(f"{GAP}{heading:<{self._label}}{headings}{GAP}{'amount':>{self._amounts}}", Role.FAINT),)
        yield from map(self._row, self._lines)
        wide = self._label + self._fixed_width(self._columns) - len(GAP)
        yield (Span(f"{GAP}{('-' if self._ascii else '─') * wide}", Role.FAINT),)
        yield self._row(self._total)

    def _row(self, line: _TableLine) -> Spans:
        room = max(1, self._label - 2 * line.depth)
        label = (clip_left if line.ends else clip)(line.label, room)
        label = f"{GAP}{GAP * line.depth}{label}{' ' * (room - display_width(label))}"
        figures = "".join(
            f"{GAP}{self._number(name, get(line.sum)):>{wide}}" for name, (wide, get) in self._columns.items()
        )
        money = f"{GAP}{format_amount(line.sum.amount, exact=self._exact):>{self._amounts}}"
        draws = self.has_bars and line is not self._total and not line.rest
        bar_text = bar(line.sum.amount, self._most, self._bar, ascii_only=self._ascii) if draws else ""
        figures_role = Role.TITLE if line is self._total else Role.FAINT if line.role is Role.FAINT else Role.BODY
        return (
            Span(label, line.role),
            Span(figures, figures_role),
            Span(money, figures_role),
            Span(f"{GAP}{bar_text}" if bar_text else "", Role.CODE),
        )


def _header(usage_report: UsageReport, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """The keys, time zone and time range of the report."""
    has_times = usage_report.since or usage_report.until or any(name in TIME_KEYS for name in usage_report.by)
    parts = [usage_report.zone if has_times else "", _time_span(usage_report)]
    details = (" - " if ascii_only else " · ").join(filter(None, parts))
    title = Span(f"{GAP}Usage by {', '.join(usage_report.by)}", Role.TITLE)
    yield cut_line((title, Span(f"{GAP}{details}", Role.FAINT)), width)


def _sparkline(usage_report: UsageReport, width: int, *, ascii_only: bool) -> Iterator[Spans]:
    """Amounts over time in one line, for a page too narrow for bars."""
    values = [row.amount for row in usage_report.rows.subtotals(1)]
    curve = sparkline(values[-max(1, width - len(GAP)) :], ascii_only=ascii_only)
    if usage_report.by[0] in TIME_KEYS and len(values) > _MAX_POINTS_WITHOUT_SPARKLINE and curve.strip():
        yield (Span(f"{GAP}{curve}", Role.CODE),)


def _time_span(usage_report: UsageReport) -> str:
    """The time range, with minutes only if it does not start or end with a day."""
    parts = []
    if usage_report.since is not None:
        parts.append(f"from {_format_minute(in_zone(usage_report.since, usage_report.tz))}")
    if usage_report.until is not None:
        local = in_zone(usage_report.until, usage_report.tz)
        ends_a_day = usage_report.until > _LAST_MOMENT or not _has_time_of_day(
            in_zone(usage_report.until + _RESOLUTION, usage_report.tz)
        )
        parts.append(f"to {local.date().isoformat() if ends_a_day else _format_minute(local)}")
    return " ".join(parts)


def _format_minute(local: datetime) -> str:
    return f"{local.date().isoformat()}{f' {local:%H:%M}' if _has_time_of_day(local) else ''}"


def _has_time_of_day(local: datetime) -> bool:
    return (local.hour, local.minute) != (0, 0)


def _footer(usage_report: UsageReport, width: int, dropped: Sequence[str]) -> Iterator[Spans]:
    """Notes on the figures and the columns that do not fit, and the prices used."""
    if dropped:
        yield from wrap_note(dropped_note(dropped), width)
    for note in usage_notes(usage_report):
        yield from wrap_note(note, width, Role.NOTICE)
    for use in usage_report.budgets:
        role = Role.BAD if use.is_over else Role.NOTICE if use.is_near(NEARLY_USED) else Role.FAINT
        yield from wrap_note(f"Budget {use.budget}: {use.describe()}.", width, role)
    files = usage_report.ledger.price_files
    more = f" with {', '.join(name for name, _ in files[1:])}" if len(files) > 1 else ""
    digest = usage_report.ledger.price_digest[:_DIGEST_LENGTH]
    yield from wrap_note(f"Prices {digest}{more}: see threadline prices.", width)
    if usage_report.reported is not None:
        from threadline.cli.cost.usage_reported import reported_notes  # noqa: PLC0415 - only --mode needs it

        yield ()
        yield from reported_notes(usage_report.reported, width)
