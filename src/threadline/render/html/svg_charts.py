"""Charts as SVG without scripts, each with a table of the same data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from math import ceil, floor, log10, sqrt

from markupsafe import Markup
from msgspec import Struct

from threadline.model.text import count
from threadline.render.html.element import Child, el, join
from threadline.render.html.tables import Column, folded_table, render_table

_BARS_LEFT, _BARS_RIGHT, _BARS_TOP, _BARS_BOTTOM = 58, 8, 8, 22
_MAX_BAR_WIDTH = 44
_LABEL_CHARACTER, _LABEL_GAP = 6.2, 14  # the width of a character below a bar, and the least space between labels
MAX_PARTS = 8
"""The number of parts with a colour of their own. Callers with more parts must combine the rest."""


class Frame(Struct, frozen=True):
    """The size of a drawing. A drawing cannot reflow, so there are two of each chart. The style sheet shows one."""

    name: str
    width: int
    height: int

    @property
    def plot_width(self) -> float:
        """The width between the axis and the right edge."""
        return self.width - _BARS_LEFT - _BARS_RIGHT

    @property
    def plot_height(self) -> float:
        """The height above the labels."""
        return self.height - _BARS_TOP - _BARS_BOTTOM


_FRAMES = (Frame("wide", 1200, 270), Frame("narrow", 400, 210))


class Bar(Struct, frozen=True):
    """A column: its name, the values of its parts in order, and its link. `label` is its name on the axis."""

    name: str
    parts: Sequence[float]
    href: str | None = None
    label: str = ""

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return sum(self.parts)


def bar_chart(
    name: str,
    title: str,
    parts: Sequence[str],
    columns: Sequence[Bar],
    format_value: Callable[[float], str],
    *,
    key: str = "When",
    is_reversed: bool = True,
) -> Markup:
    """A stacked bar chart with a legend and a table.

    `format_value` formats a value. `key` is the heading of the columns' names in the table, which begins with the last
    column if it `is_reversed`.
    """
    marks = ticks(max((bar.total for bar in columns), default=0))
    html = join(
        chart(
            name,
            title,
            _describe_bars(columns, format_value),
            [_grid_line(frame, mark, marks[-1], format_value) for mark in marks],
            join(_render_bars(frame, parts, columns, marks[-1], format_value)),
            join(_bar_labels(frame, columns)),
            width=frame.width,
            height=frame.height,
            size=frame.name,
            linked=any(bar.href for bar in columns),
        )
        for frame in _FRAMES
    )
    rows = columns[::-1] if is_reversed else columns
    return join(
        (
            html,
            _bar_legend(parts),
            folded_table("View as table", _bar_table(title, parts, rows, format_value, key)),
        )
    )


def _bar_pitch(frame: Frame, columns: Sequence[Bar]) -> float:
    return frame.plot_width / max(1, len(columns))


def _grid_line(frame: Frame, mark: float, most: float, format_value: Callable[[float], str]) -> Child:
    y = _BARS_TOP + frame.plot_height * (1 - mark / most)
    label = format_value(mark).removesuffix(".00")
    return svg_line(_BARS_LEFT, y, frame.width - _BARS_RIGHT, y, "grid"), svg_text(
        _BARS_LEFT - 6, y + 4, label, "label end"
    )


def _render_bars(
    frame: Frame, parts: Sequence[str], columns: Sequence[Bar], most: float, format_value: Callable[[float], str]
) -> Iterator[Markup]:
    pitch, high = _bar_pitch(frame, columns), frame.plot_height
    wide = min(_MAX_BAR_WIDTH, max(1.0, pitch - max(1.0, pitch * 0.2)))
    for index, bar in enumerate(columns):
        if bar.total <= 0:
            continue
        x, y = _BARS_LEFT + index * pitch + (pitch - wide) / 2, _BARS_TOP + high
        shapes = []
        for number, value in enumerate(bar.parts):
            tall = high * value / most
            y -= tall
            if value > 0:
                shapes.append(svg_rect(x, y, wide, tall, f"part-{number + 1}"))
        largest = [f"{part} {format_value(value)}" for part, value in zip(parts, bar.parts, strict=True) if value > 0]
        more = f" ({', '.join(largest)})" if len(parts) > 1 else ""
        # The whole height reacts to the pointer, because a short column is hard to hit.
        area = svg_rect(_BARS_LEFT + index * pitch, _BARS_TOP, pitch, high, "area")
        yield svg_link(bar.href, f"{bar.name}: {format_value(bar.total)}{more}", area, shapes)


def _bar_labels(frame: Frame, columns: Sequence[Bar]) -> Iterator[Markup]:
    """Labels below the columns, as many as fit."""
    pitch = _bar_pitch(frame, columns)
    longest = max((len(bar.label or bar.name) for bar in columns), default=0)
    every = max(1, ceil((_LABEL_GAP + _LABEL_CHARACTER * longest) / pitch))
    for at in range(0, len(columns), every):
        x = _BARS_LEFT + at * pitch + pitch / 2
        text = columns[at].label or columns[at].name
        # A long label below the last column ends at the right edge.
        is_cut = x + _LABEL_CHARACTER * len(text) / 2 > frame.width
        yield svg_text(frame.width if is_cut else x, frame.height - 6, text, "label end" if is_cut else "label middle")


def _bar_legend(parts: Sequence[str]) -> Markup:
    if len(parts) <= 1:
        return Markup()
    return el("ul", [el("li", part, class_=f"part-{at + 1}") for at, part in enumerate(parts)], class_="legend")


def _bar_table(
    title: str, parts: Sequence[str], rows: Sequence[Bar], format_value: Callable[[float], str], key: str
) -> Markup:
    several = len(parts) > 1
    heads = (
        Column(key),
        *(Column(part, "number") for part in (parts if several else ())),
        Column("Total", "number"),
    )
    cells = [
        [
            el("a", bar.name, href=bar.href) if bar.href else bar.name,
            *(format_value(value) for value in (bar.parts if several else ())),
            format_value(bar.total),
        ]
        for bar in rows
        if bar.total > 0
    ]
    return render_table(title, heads, cells)


def _describe_bars(columns: Sequence[Bar], format_value: Callable[[float], str]) -> str:
    most = max(columns, key=lambda bar: bar.total, default=None)
    if most is None or most.total <= 0:
        return "No data."
    return f"From {columns[0].name} to {columns[-1].name}; the maximum is {format_value(most.total)} on {most.name}."


class Curve(Struct, frozen=True):
    """A line of a chart: its name, and its values in order."""

    name: str
    values: Sequence[int]


def curve_chart(name: str, title: str, curves: Sequence[Curve], format_value: Callable[[int], str]) -> Markup:
    """Lines on the same scale, with a legend and a table."""
    marks = ticks(float(max((value for curve in curves for value in curve.values), default=0)))
    longest = max((len(curve.values) for curve in curves), default=1)
    most = "; ".join(f"{curve.name}: up to {format_value(max(curve.values, default=0))}" for curve in curves)
    html = join(
        chart(
            name,
            title,
            f"{most}.",
            [_grid_line(frame, mark, marks[-1], lambda value: format_value(round(value))) for mark in marks],
            [_curve_line(frame, curve, number, longest, marks[-1]) for number, curve in enumerate(curves, 1)],
            width=frame.width,
            height=frame.height,
            size=frame.name,
        )
        for frame in _FRAMES
    )
    rows = [
        [f"{at + 1:,}", *(format_value(curve.values[at]) if at < len(curve.values) else "" for curve in curves)]
        for at in range(0, longest, max(1, longest // _MAX_CURVE_ROWS))
    ]
    columns = (Column("Request", "number"), *(Column(curve.name, "number") for curve in curves))
    table = render_table(title, columns, rows)
    return join((html, _bar_legend([curve.name for curve in curves]), folded_table("View as table", table)))


def _curve_line(frame: Frame, curve: Curve, number: int, longest: int, most: float) -> Markup:
    step = frame.plot_width / max(1, longest - 1)
    points = (
        f"{svg_number(_BARS_LEFT + at * step)},{svg_number(_BARS_TOP + frame.plot_height * (1 - value / most))}"
        for at, value in enumerate(curve.values)
    )
    return el("polyline", el("title", curve.name), points=" ".join(points), class_=f"curve line-{number}")


_MAX_CURVE_ROWS = 200
_STRIP_FRAMES = (Frame("wide", 1200, 84), Frame("narrow", 400, 84))
_STRIP_BOTTOM = 20


def short_day(text: str) -> str:
    """A day on an axis: `21 Jul` for `2026-07-21`. Other texts are returned unchanged."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return text
    return f"{day.day} {day:%b}"


def daily_strip(
    name: str, title: str, days: Sequence[tuple[str, float]], format_value: Callable[[float], str]
) -> Markup:
    """A small bar for each day, with a table. For use beside a figure, to show its trend."""
    total = format_value(sum(value for _day, value in days))
    description = f"{count(len(days), 'day')} from {days[0][0]} to {days[-1][0]}: {total}." if days else "No data."
    html = join(
        chart(
            name,
            title,
            description,
            join(_strip_shapes(frame, days, format_value)),
            width=frame.width,
            height=frame.height,
            size=frame.name,
        )
        for frame in _STRIP_FRAMES
    )
    rows = [[day, format_value(value)] for day, value in reversed(days) if value > 0]
    twin = render_table(title, (Column("Day", "when"), Column("Value", "number")), rows)
    return join((html, folded_table("View as table", twin)))


def _strip_shapes(
    frame: Frame, days: Sequence[tuple[str, float]], format_value: Callable[[float], str]
) -> Iterator[Markup]:
    most = max((value for _day, value in days), default=0.0) or 1.0
    high, pitch = frame.height - _STRIP_BOTTOM, frame.width / max(1, len(days))
    yield svg_line(0, high, frame.width, high, "grid")
    for at, (day, value) in enumerate(days):
        if value > 0:
            tall, title = high * value / most, el("title", f"{day}: {format_value(value)}")
            yield svg_rect(at * pitch + 0.5, high - tall, max(1.0, pitch - 1.5), tall, "part-1", title)
    if days:
        yield svg_text(0, frame.height - 4, short_day(days[0][0]), "label")
        yield svg_text(frame.width, frame.height - 4, short_day(days[-1][0]), "label end")


_WEEKS = 53
_ONE_DAY = timedelta(days=1)
_CALENDAR_CELL, _CALENDAR_PITCH = 11, 14
_CALENDAR_LEFT, _CALENDAR_TOP = 32, 18
_DAYS_PER_WEEK = 7
_MONTH_LABEL_WEEKS = 3  # weeks that the name of a month takes
_NAMED_DAYS = (0, 2, 4)


class DayActivity(Struct, frozen=True):
    """The activity of a day: a value, which determines the shade, and a description."""

    value: float
    description: str


def activity_calendar(days: Mapping[date, DayActivity], last: date, *, link_of: Callable[[date], str | None]) -> Markup:
    """A calendar of the year up to a day, with a table. Days with activity are links."""
    monday = last - timedelta(days=last.weekday()) - timedelta(weeks=_WEEKS - 1)
    shown = {day: activity for day, activity in days.items() if monday <= day <= last and activity.value > 0}
    shades = ShadeScale(activity.value for activity in shown.values())
    cells = join(_calendar_cells(monday, last, shown, shades, link_of))
    labels = [
        *_month_labels(monday),
        *(svg_text(0, _CALENDAR_TOP + row * _CALENDAR_PITCH + 9, WEEKDAYS[row], "label") for row in _NAMED_DAYS),
    ]
    description = f"{count(len(shown), 'active day')} in the {(last - monday).days + 1} days up to {last.isoformat()}."
    html = chart(
        "calendar",
        "Activity by day",
        description,
        labels,
        cells,
        _calendar_legend(),
        width=_CALENDAR_LEFT + _WEEKS * _CALENDAR_PITCH,
        height=_CALENDAR_TOP + 7 * _CALENDAR_PITCH + 18,
        linked=True,
    )
    rows = [[_day_link(day, link_of), activity.description] for day, activity in sorted(shown.items(), reverse=True)]
    twin = render_table("Activity by day", (Column("Day", "when"), Column("Activity")), rows)
    return join((html, folded_table("View as table", twin)))


def _calendar_cells(
    monday: date,
    last: date,
    shown: Mapping[date, DayActivity],
    shades: ShadeScale,
    link_of: Callable[[date], str | None],
) -> Iterator[Markup]:
    for number in range((last - monday).days + 1):
        day = monday + number * _ONE_DAY
        week, row = divmod(number, 7)
        x, y = _CALENDAR_LEFT + week * _CALENDAR_PITCH, _CALENDAR_TOP + row * _CALENDAR_PITCH
        activity = shown.get(day)
        if activity is None:
            yield svg_rect(x, y, _CALENDAR_CELL, _CALENDAR_CELL, "shade-0")
        else:
            cell = svg_rect(x, y, _CALENDAR_CELL, _CALENDAR_CELL, f"shade-{shades.of(activity.value)}")
            yield svg_link(link_of(day), f"{_format_day(day)}: {activity.description}", cell)


def _month_labels(monday: date) -> Iterator[Markup]:
    """The name of each month above its first week. The first month may begin before, and yields to the second."""
    sundays = [monday + timedelta(days=7 * week + 6) for week in range(_WEEKS)]
    starts = [week for week, sunday in enumerate(sundays) if sunday.day <= _DAYS_PER_WEEK]
    first = [0] if starts[0] >= _MONTH_LABEL_WEEKS else []
    for week in (*first, *starts):
        if week <= _WEEKS - _MONTH_LABEL_WEEKS + 1:
            yield svg_text(_CALENDAR_LEFT + week * _CALENDAR_PITCH, 10, f"{sundays[week]:%b}", "label")


def _calendar_legend() -> Child:
    y = _CALENDAR_TOP + 7 * _CALENDAR_PITCH + 6
    x = _CALENDAR_LEFT + (_WEEKS - 11) * _CALENDAR_PITCH
    cells = [
        svg_rect(x + 30 + shade * _CALENDAR_PITCH, y, _CALENDAR_CELL, _CALENDAR_CELL, f"shade-{shade}")
        for shade in range(5)
    ]
    return el(
        "g", svg_text(x, y + 9, "less", "label"), cells, svg_text(x + 34 + 5 * _CALENDAR_PITCH, y + 9, "more", "label")
    )


def _day_link(day: date, link_of: Callable[[date], str | None]) -> Child:
    href = link_of(day)
    return el("a", day.isoformat(), href=href) if href is not None else day.isoformat()


def _format_day(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONG_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOURS = 24
_HOUR_CELL, _HOUR_PITCH, _HOUR_HEIGHT = 21, 24, 18
_HOUR_LEFT, _HOUR_TOP = 36, 18
_HOUR_LABELS = range(0, _HOURS, 3)


def weekday_hour_map(counts: Mapping[tuple[int, int], int], *, unit: str, zone: str) -> Markup:
    """A heat map by weekday (0 is Monday) and hour, with a table. `unit` is what is counted, in the singular."""
    shades = ShadeScale(counts.values())
    cells = [
        svg_rect(
            _HOUR_LEFT + hour * _HOUR_PITCH,
            _HOUR_TOP + day * _HOUR_HEIGHT,
            _HOUR_CELL,
            _HOUR_HEIGHT - 3,
            f"shade-{shades.of(counts.get((day, hour), 0))}",
            el("title", f"{_LONG_WEEKDAYS[day]} {hour:02}:00: {count(counts.get((day, hour), 0), unit)}"),
        )
        for day in range(7)
        for hour in range(_HOURS)
    ]
    labels = [
        *(svg_text(0, _HOUR_TOP + day * _HOUR_HEIGHT + 12, name, "label") for day, name in enumerate(WEEKDAYS)),
        *(svg_text(_HOUR_LEFT + hour * _HOUR_PITCH, 11, f"{hour:02}", "label") for hour in _HOUR_LABELS),
    ]
    title = f"{unit.capitalize()}s by weekday and hour ({zone})"
    html = chart(
        "day-hour",
        title,
        _describe_hours(counts, unit),
        labels,
        cells,
        width=_HOUR_LEFT + _HOURS * _HOUR_PITCH,
        height=_HOUR_TOP + 7 * _HOUR_HEIGHT,
    )
    columns = (Column("Hour"), *(Column(name, "number") for name in WEEKDAYS))
    rows = [
        [f"{hour:02}:00", *(f"{counts.get((day, hour), 0):,}" for day in range(7))]
        for hour in range(_HOURS)
        if any(counts.get((day, hour)) for day in range(7))
    ]
    return join((html, folded_table("View as table", render_table(title, columns, rows))))


def _describe_hours(counts: Mapping[tuple[int, int], int], unit: str) -> str:
    busiest = max(counts, key=lambda key: (counts[key], key), default=None)
    if busiest is None or not counts[busiest]:
        return "No data yet."
    return f"Busiest: {_LONG_WEEKDAYS[busiest[0]]} {busiest[1]:02}:00, {count(counts[busiest], unit)}."


_STEP_COUNT = 4
_STEPS = (1, 2, 2.5, 5, 10)
_NEARLY_ZERO = 1e-9
_NEARLY_ONE = 1 - 1e-9
SHADES = 4
"""The number of shades, not counting the one for zero."""


def ticks(most: float) -> list[float]:
    """Round numbers from 0 to at least `most`, in about four steps.

    >>> ticks(37), ticks(0)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.0, 1.0])
    """
    if most < _NEARLY_ZERO:
        return [0.0, 1.0]
    rough = most / _STEP_COUNT
    power = 10.0 ** floor(log10(rough))
    step = next(step_size * power for step_size in _STEPS if step_size * power >= rough * _NEARLY_ONE)
    number = 1
    while step * number < most:
        number += 1
    return [float(f"{step * at:.10g}") for at in range(number)] + [max(most, float(f"{step * number:.10g}"))]


class ShadeScale:
    """Assigns shades to values by their square root, so that a shade says how large a value is.

    Small values still differ from zero and from each other, and only values near the largest have the darkest shade.
    """

    def __init__(self, values: Iterable[float]) -> None:
        self._most = max((value for value in values if value > 0), default=1.0)

    def of(self, value: float) -> int:
        """The shade of a value, from 0 (for zero) to 4.

        >>> shades = ShadeScale([5, 40, 85, 232])
        >>> [shades.of(value) for value in (0, 5, 40, 85, 232)]
        [0, 1, 2, 3, 4]
        """
        return 0 if value <= 0 else min(SHADES, ceil(SHADES * sqrt(value / self._most)))


def chart(
    name: str,
    title: str,
    description: str,
    *shapes: Child,
    width: int,
    height: int,
    size: str = "",
    linked: bool = False,
) -> Markup:
    """A chart. Its ids start with `name`. Screen readers read `title` and `description`.

    `size` is the name of its frame, if it is drawn in several sizes. A chart whose shapes are links (`linked`) has the
    role of a group, because parts of an image cannot be focused.
    """
    prefix = f"{name}-{size}" if size else name
    svg = el(
        "svg",
        el("title", title, id=f"{prefix}-title"),
        el("desc", description, id=f"{prefix}-description"),
        *shapes,
        class_=f"drawing {name}",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="group" if linked else "img",
        aria_labelledby=f"{prefix}-title {prefix}-description",
    )
    return el("div", svg, class_=f"chart {size}".rstrip())


def svg_rect(x: float, y: float, width: float, height: float, kind: str, *inside: Child) -> Markup:
    """A rectangle."""
    return el(
        "rect",
        *inside,
        x=svg_number(x),
        y=svg_number(y),
        width=svg_number(width),
        height=svg_number(height),
        class_=kind,
    )


def svg_text(x: float, y: float, text: str, kind: str) -> Markup:
    """Text in a chart, hidden from screen readers because the table repeats it."""
    return el("text", text, x=svg_number(x), y=svg_number(y), class_=kind, aria_hidden="true")


def svg_line(x: float, y: float, to_x: float, to_y: float, kind: str) -> Markup:
    """A line."""
    return el("line", x1=svg_number(x), y1=svg_number(y), x2=svg_number(to_x), y2=svg_number(to_y), class_=kind)


def svg_link(href: str | None, label: str, *shapes: Child) -> Markup:
    """Shapes with a title, as a link or, without `href`, as a group.

    They are not in the tab order: a year would have hundreds of stops, and the table below has the same links.
    """
    title = el("title", label)
    return el("a", title, *shapes, href=href, tabindex=-1) if href is not None else el("g", title, *shapes)


def svg_number(value: float) -> str:
    """A number with at most two decimals, the same on every machine.

    >>> svg_number(3.0), svg_number(0.1 + 0.2), svg_number(12.345)
    ('3', '0.3', '12.35')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")
