"""Text for a terminal: safe, measured, cut and wrapped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.runner import control_characters

from threadline.render import (
    Role,
    Span,
    Style,
    clip,
    clip_left,
    cut_line,
    display_width,
    one_line,
    plain,
    should_use_colour,
    wrap,
)
from threadline.render.text import labelled_rule, line_width, plain_lines, wrap_hard


@given(st.text())
def test_plain_text_steers_nothing(text: str) -> None:
    """Whatever goes in, no control or format character comes out, and what is plain stays as it is."""
    shown = plain(text)
    assert not control_characters(shown)
    assert "\n" not in shown
    assert plain(shown) == shown


@given(st.text())
def test_lines_are_plain_and_all_there(text: str) -> None:
    """A text has as many lines as it has newlines and one; none can steer."""
    lines = list(plain_lines(text))
    assert len(lines) == text.count("\n") + 1
    assert not any(control_characters(line) for line in lines)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;32mgreen\x1b[0m", "green"),
        ("\x9b31mred", "red"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x1b]52;c;eA==\x07", "\\x1b]52;c;eA==\\x07"),
        ("a\tb", "a   b"),
        ("50 %\r100 %", "50 %\\r100 %"),
        ("line\r", "line"),
        ("x\U000e0100y", "x\\U000e0100y"),
    ],
)
def test_colours_are_left_out_and_every_other_sequence_is_seen(raw: str, shown: str) -> None:
    """Colour says nothing; whatever moves, clears, copies or hides stays visible as an escape."""
    assert list(plain_lines(raw)) == [shown]


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本語", 6), ("é", 1), ("e\u0301", 1), ("❤\ufe0f", 1), ("", 0)]
)
def test_columns_are_those_of_a_terminal(text: str, width: int) -> None:
    """Wide characters take two columns, marks on other characters none."""
    assert display_width(text) == width


def test_wide_characters_are_cut_whole() -> None:
    """A character of two columns is never cut in half."""
    assert clip("日本語日本語", 6) == "日本…"
    assert display_width(clip("日本語日本語", 6)) <= 6
    assert clip_left("/work/日本語/app", 8) == "…語/app"
    assert one_line("a\n\n  b", 10) == "a b"


@given(st.text(max_size=300), st.integers(min_value=10, max_value=60))
def test_wrapped_lines_fit_and_lose_no_word(text: str, width: int) -> None:
    """Lines are no wider than asked for, and hold every character that is not white space, in order."""
    lines = list(wrap((Span(text),), width))
    assert all(line_width(line) <= width for line in lines)
    told = "".join(span.text for line in lines for span in line)
    assert "".join(told.split()) == "".join(plain(text.replace("\n", " ").replace("\t", " ")).split())


def test_words_of_several_spans_stay_whole() -> None:
    """No line breaks between a bracket and the code in it."""
    lines = list(wrap((Span("see the file ("), Span("engine.go", Role.CODE), Span(") now")), 20))
    assert ["".join(span.text for span in line) for line in lines] == ["see the file", "(engine.go) now"]


def test_what_stands_before_lines_is_kept() -> None:
    """A hanging indent stands before the first line and before the others."""
    lines = list(wrap((Span("one two three"),), 12, first=(Span("- "),), rest=(Span("  "),)))
    assert ["".join(span.text for span in line) for line in lines] == ["- one two", "  three"]


def test_code_is_broken_where_it_must_be() -> None:
    """White space of code is part of it."""
    assert list(wrap_hard("    x = 日本", 10)) == ["    x = 日", "本"]
    assert list(wrap_hard("", 10)) == [""]


def test_a_cut_line_fits() -> None:
    """A line of several spans is cut in the span that does not fit."""
    line = cut_line((Span("one "), Span("two three", Role.CODE)), 8)
    assert "".join(span.text for span in line) == "one two…"
    assert line_width(labelled_rule((Span("turn 1"),), 40)) == 40


def test_style_makes_the_only_escapes() -> None:
    """Colours are codes around safe text; without them there is just the text."""
    spans = (Span("a\x1b[31m", Role.BAD), Span("b", Role.BAD), Span("c"), Span("   ", Role.FAINT))
    assert Style(colour=False).line(spans) == "a\\x1b[31mbc"
    assert Style(colour=True).line(spans) == "\x1b[31ma\\x1b[31mb\x1b[0mc"


@pytest.mark.parametrize(
    ("environment", "terminal", "wanted"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
    ],
)
def test_colours_are_for_terminals_that_want_them(environment: dict[str, str], *, terminal: bool, wanted: bool) -> None:
    """NO_COLOR, a dumb terminal and a pipe each mean none."""
    assert should_use_colour(environment, terminal=terminal) is wanted


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\ufe00\ufe0fb", "a\\ufe00\\ufe0fb"),
        ("a\u034fb", "a\\u034fb"),
        ("\u115f\u1160\u3164\uffa0", "\\u115f\\u1160\\u3164\\uffa0"),
        ("\u180b\u17b4", "\\u180b\\u17b4"),
        ("❤\ufe0f ☎\ufe0e 1\ufe0f\u20e3", "❤\ufe0f ☎\ufe0e 1\ufe0f\u20e3"),
        ("❤\ufe0f\ufe0f\ufe01", "❤\ufe0f\\ufe0f\\ufe01"),
        ("1\ufe0f", "1\\ufe0f"),
        ("e\u0301 日本 한국", "e\u0301 日本 한국"),
    ],
    ids=ascii,
)
def test_nothing_hides_in_what_no_font_shows(raw: str, shown: str) -> None:
    """Selectors, joiners and fillers are told by their numbers; the one selector that an emoji has stays."""
    assert plain(raw) == shown
    assert plain(shown) == shown
