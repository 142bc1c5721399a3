"""Text for a terminal: escaped, measured, truncated and wrapped."""

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
def test_plain_text_has_no_control_characters(text: str) -> None:
    """For any input, the output has no control or format characters, and plain text is unchanged."""
    output = plain(text)
    assert not control_characters(output)
    assert "\n" not in output
    assert plain(output) == output


@given(st.text())
def test_plain_lines_are_complete(text: str) -> None:
    """A text has one more line than newlines, and none has control characters."""
    lines = list(plain_lines(text))
    assert len(lines) == text.count("\n") + 1
    assert not any(control_characters(line) for line in lines)


@pytest.mark.parametrize(
    ("raw", "expected"),
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
def test_removes_colours_and_shows_other_sequences(raw: str, expected: str) -> None:
    """Colours are removed. Sequences that move, clear, copy or hide are shown as escapes."""
    assert list(plain_lines(raw)) == [expected]


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本語", 6), ("é", 1), ("e\u0301", 1), ("❤\ufe0f", 1), ("", 0)]
)
def test_display_width_counts_terminal_columns(text: str, width: int) -> None:
    """Wide characters take two columns, combining characters none."""
    assert display_width(text) == width


def test_never_cuts_a_wide_character_in_half() -> None:
    """A character of two columns is kept or removed completely."""
    assert clip("日本語日本語", 6) == "日本…"
    assert display_width(clip("日本語日本語", 6)) <= 6
    assert clip_left("/work/日本語/app", 8) == "…語/app"
    assert one_line("a\n\n  b", 10) == "a b"


@given(st.text(max_size=300), st.integers(min_value=10, max_value=60))
def test_wrapped_lines_fit_and_lose_no_word(text: str, width: int) -> None:
    """Lines are not wider than requested, and contain every character that is not white space, in order."""
    lines = list(wrap((Span(text),), width))
    assert all(line_width(line) <= width for line in lines)
    output = "".join(span.text for line in lines for span in line)
    assert "".join(output.split()) == "".join(plain(text.replace("\n", " ").replace("\t", " ")).split())


def test_words_of_several_spans_are_not_broken() -> None:
    """No line breaks between a bracket and the code in it."""
    lines = list(wrap((Span("see the file ("), Span("engine.go", Role.CODE), Span(") now")), 20))
    assert ["".join(span.text for span in line) for line in lines] == ["see the file", "(engine.go) now"]


def test_wraps_with_a_hanging_indent() -> None:
    """The first line and the others have their own prefixes."""
    lines = list(wrap((Span("one two three"),), 12, first=(Span("- "),), rest=(Span("  "),)))
    assert ["".join(span.text for span in line) for line in lines] == ["- one two", "  three"]


def test_wraps_code_at_any_character() -> None:
    """White space in code is kept."""
    assert list(wrap_hard("    x = 日本", 10)) == ["    x = 日", "本"]
    assert list(wrap_hard("", 10)) == [""]


def test_truncates_a_line_of_several_spans() -> None:
    """The span that does not fit is truncated."""
    line = cut_line((Span("one "), Span("two three", Role.CODE)), 8)
    assert "".join(span.text for span in line) == "one two…"
    assert line_width(labelled_rule((Span("turn 1"),), 40)) == 40


def test_only_styles_produce_escapes() -> None:
    """Colours are codes around escaped text. Without them there is only the text."""
    spans = (Span("a\x1b[31m", Role.BAD), Span("b", Role.BAD), Span("c"), Span("   ", Role.FAINT))
    assert Style(colour=False).line(spans) == "a\\x1b[31mbc"
    assert Style(colour=True).line(spans) == "\x1b[31ma\\x1b[31mb\x1b[0mc"


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
    ],
)
def test_detects_whether_to_use_colours(environment: dict[str, str], *, terminal: bool, expected: bool) -> None:
    """NO_COLOR, a dumb terminal and a pipe each turn colours off."""
    assert should_use_colour(environment, terminal=terminal) is expected


@pytest.mark.parametrize(
    ("raw", "expected"),
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
def test_shows_invisible_characters_as_escapes(raw: str, expected: str) -> None:
    """Selectors, joiners and fillers are shown as escapes. The one selector of an emoji stays."""
    assert plain(raw) == expected
    assert plain(expected) == expected
