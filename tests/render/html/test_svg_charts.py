"""Charts show exactly the given values, as shapes, in words and in a table."""

from __future__ import annotations

import re
from datetime import date, timedelta
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from threadline.render.html import (
    Bar,
    Column,
    DayActivity,
    TableRow,
    activity_calendar,
    bar_chart,
    render_table,
    weekday_hour_map,
)
from threadline.render.html.svg_charts import ShadeScale, ticks

_LAST = date(2026, 11, 15)
_HOSTILE = '"><script>x</script>'


class _ParsedChart(HTMLParser):
    """Parses a chart and checks that every element is closed."""

    def __init__(self, page: Markup) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.names.append(tag)
        self.attributes.append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _calendar(days: dict[date, DayActivity]) -> Markup:
    return activity_calendar(days, _LAST, link_of=lambda day: f"/sessions?since={day}&until={day}")


def _bars(columns: list[Bar]) -> Markup:
    return bar_chart("spent", "Cost by day", ("opus", "sonnet"), columns, lambda value: f"${value:,.2f}")


_ALL = {
    "calendar": _calendar(
        {_LAST: DayActivity(3, f"3 replies {_HOSTILE}"), _LAST - timedelta(days=40): DayActivity(1, "1")}
    ),
    "bars": _bars([Bar("2026-11-14", (1, 2), "/x"), Bar(_HOSTILE, (0, 3))]),
    "day-hour": weekday_hour_map({(0, 9): 5, (6, 23): 1}, unit="charge", zone=_HOSTILE),
}


@pytest.mark.parametrize("name", _ALL)
def test_a_chart_is_well_formed_inert_and_labelled(name: str) -> None:
    """Every element is closed, there are no inline styles or scripts, and the drawing has a name and a role."""
    chart = _ParsedChart(_ALL[name])
    assert "script" not in chart.names
    assert not any(
        "style" in attribute or any(key.startswith("on") for key in attribute) for attribute in chart.attributes
    )
    drawings = [attributes for tag, attributes in zip(chart.names, chart.attributes, strict=True) if tag == "svg"]
    assert len(drawings) == (2 if name == "bars" else 1)
    for drawing in drawings:
        assert drawing["role"] in {"img", "group"}
        assert drawing.get("aria-labelledby") or drawing.get("aria-label")
    ids = [attributes["id"] for attributes in chart.attributes if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_a_calendar_has_every_day_of_a_year_once() -> None:
    """The last day is the last cell, each day with activity is a link, and the table has the same days."""
    days = {_LAST - timedelta(days=back): DayActivity(back + 1, f"{back + 1} replies") for back in (0, 1, 200)}
    page = _calendar(
        {
            **days,
            _LAST - timedelta(days=900): DayActivity(9, "too old"),
            _LAST + timedelta(days=1): DayActivity(9, "later"),
        }
    )
    assert page.count("<rect") - 5 == 52 * 7 + _LAST.weekday() + 1  # five are the legend's
    assert re.findall(r"<title>(.*?)</title>", page)[-1] == "Sun 15 Nov 2026: 1 replies"
    assert page.count("/sessions?since=2026-11-15&amp;until=2026-11-15") == 2
    assert "too old" not in page
    assert "later" not in page


@given(st.dictionaries(st.integers(0, 800), st.integers(0, 10**6), max_size=40))
def test_a_calendar_shades_exactly_the_active_days(counts: dict[int, int]) -> None:
    """As many cells are shaded as days of the year have activity."""
    page = _calendar({_LAST - timedelta(days=back): DayActivity(count, "done") for back, count in counts.items()})
    first = 52 * 7 + _LAST.weekday()
    shaded = len(re.findall(r'class="shade-[1-4]"', page)) - 4
    assert shaded == sum(count > 0 and back <= first for back, count in counts.items())


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=60))
def test_bars_stay_inside_their_drawing(values: list[tuple[float, float]]) -> None:
    """No column is higher than the drawing, and its parts are stacked."""
    page = _bars([Bar(f"day {at}", pair) for at, pair in enumerate(values)])
    for drawing in _drawings(page):
        size = int(re.findall(r'viewBox="0 0 \d+ (\d+)"', drawing)[0])
        for y, height in re.findall(r'y="([-0-9.]+)" width="[0-9.]+" height="([-0-9.]+)" class="part', drawing):
            assert float(y) >= 7.9
            assert float(y) + float(height) <= size - 22 + 0.1


def _drawings(page: Markup) -> list[str]:
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 2
    return drawings


@pytest.mark.parametrize("days", [1, 7, 30, 61, 200])
def test_labels_of_bars_fit_on_wide_and_narrow_screens(days: int) -> None:
    """In both sizes, labels below the bars neither overlap nor leave the drawing, and there are several if they fit."""
    page = _bars([Bar(f"{day:02} Nov 2026", (1, 2)) for day in range(days)])
    for drawing in _drawings(page):
        width = int(re.findall(r'viewBox="0 0 (\d+)', drawing)[0])
        spans = []
        for x, kind, text in re.findall(r'<text x="([-0-9.]+)"[^>]* class="label (middle|end)"[^>]*>([^<]*)', drawing):
            if "Nov" in text:  # not on the other axis
                length = 6 * len(text)
                start = float(x) - (length if kind == "end" else length / 2)
                spans.append((start, start + length))
        assert len(spans) >= min(days, 3)
        assert all(start >= 0 and end <= width for start, end in spans)
        assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_bars_have_tooltips_and_a_table() -> None:
    """The tooltip and the table have the given values."""
    page = _bars([Bar("2026-11-14", (1, 2), "/usage?x"), Bar("2026-11-15", (0, 3))])
    assert "<title>2026-11-14: $3.00 (opus $1.00, sonnet $2.00)</title>" in page
    assert '<th scope="row"><a href="/usage?x">2026-11-14</a></th><td class="number">$1.00</td>' in page


def test_an_hour_map_has_a_cell_per_hour() -> None:
    """Seven days of 24 hours, each with its number. The table leaves out hours without activity."""
    page = weekday_hour_map({(0, 9): 5, (6, 23): 1}, unit="charge", zone="UTC")
    assert page.count("<rect") == 7 * 24
    assert "<title>Monday 09:00: 5 charges</title>" in page
    assert "<title>Sunday 23:00: 1 charge</title>" in page
    assert ">Charges by weekday and hour (UTC)<" in page
    assert re.findall(r'<th scope="row">(.*?)</th>', page) == ["09:00", "23:00"]


@given(st.floats(0, 1e12))
def test_ticks_cover_the_maximum(maximum: float) -> None:
    """The last tick is not below the maximum, and there are few of them."""
    values = ticks(maximum)
    assert values[0] == 0
    assert values[-1] >= maximum
    assert 2 <= len(values) <= 7


@given(st.lists(st.integers(0, 1000), max_size=50), st.integers(0, 1000), st.integers(0, 1000))
def test_greater_values_are_never_lighter(values: list[int], first: int, second: int) -> None:
    """A greater value has the same shade or a darker one, and only zero has none."""
    shades = ShadeScale(values)
    low, high = sorted((first, second))
    assert shades.of(low) <= shades.of(high) <= 4
    assert (shades.of(first) == 0) == (first == 0)


def test_tables_have_a_caption_and_scoped_headings() -> None:
    """Rows that keys can select are marked."""
    page = render_table(
        "Sessions", (Column("When"), Column("Cost", "number")), [TableRow(("now", "$1"), item=True)], foot=("all", "$1")
    )
    assert "<caption>Sessions</caption>" in page
    assert page.count('scope="col"') == 2
    assert page.count('scope="row"') == 2
    assert "<tr data-item>" in page
