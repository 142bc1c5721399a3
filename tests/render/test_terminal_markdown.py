"""Markdown for the terminal: the forms that replies use. HTML is plain text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.runner import control_characters

from threadline.render import Role, Span, Style
from threadline.render.terminal_markdown import inline_spans, markdown_lines
from threadline.render.text import line_width


def plain_text_lines(text: str, width: int = 60) -> list[str]:
    """The lines without colours."""
    style = Style(colour=False)
    return [style.line(line) for line in markdown_lines(text, width)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title", ["Title"]),
        ("a\n\n\n\nb\n", ["a", "", "b"]),
        ("- one\n- two\n  - three", ["• one", "• two", "  • three"]),
        ("1. one\n2) two", ["1. one", "2) two"]),
        ("- [ ] open\n- [x] done", ["☐ open", "☒ done"]),
        ("> said", ["│ said"]),
        ("---", ["─" * 40]),
        ("```python\nx = 1\n\n    y\n```\nafter", ["  x = 1", "", "      y", "after"]),
        ("```\nnever closed", ["  never closed"]),
        ("~~~\n```\n~~~", ["  ```"]),
        ("````md\n```python\nx\n```\n````\nafter", ["  ```python", "  x", "  ```", "after"]),
        ("```md\n```python\nx\n```\nafter", ["  ```python", "  x", "after"]),
        ("## Notes on C#", ["Notes on C#"]),
        ("## Closed ##  ", ["Closed"]),
        ("run `make test` **now**", ["run make test now"]),
        ("see [the docs](https://example.org/x)", ["see the docs (https://example.org/x)"]),
        ("![](http://example.invalid/beacon)", ["![](http://example.invalid/beacon)"]),
        ("<script>alert(1)</script>", ["<script>alert(1)</script>"]),
        ("2 * 3 * 4 and a_b_c and **", ["2 * 3 * 4 and a_b_c and **"]),
        ("| a | b |\n|---|---|\n| 日本 | 1 |", ["a    │ b", "─────┼──", "日本 │ 1"]),
        ("| a | b |\n|---|---|\n| - | - |", ["a │ b", "──┼──", "- │ -"]),
        ("", []),
    ],
)
def test_renders_each_form(text: str, lines: list[str]) -> None:
    """Headings, lists, code, quotes, rules, links and tables. HTML is text."""
    assert plain_text_lines(text) == lines


def test_wraps_a_table_that_does_not_fit() -> None:
    """Its rows are wrapped, and nothing is lost."""
    lines = plain_text_lines("| one | two |\n|---|---|\n| " + "word " * 10 + "| x |", 20)
    assert "".join("".join(lines).split()).count("word") == 10


@pytest.mark.parametrize(
    ("text", "role"), [("`x`", Role.CODE), ("**x**", Role.STRONG), ("*x*", Role.EMPHASIS), ("``x``", Role.CODE)]
)
def test_inline_spans_have_their_roles(text: str, role: Role) -> None:
    """Code, strong text and emphasis."""
    assert list(inline_spans(f"a {text} b")) == [Span("a "), Span("x", role), Span(" b")]


def test_a_link_shows_its_address() -> None:
    """The label may lie, so the address is shown."""
    assert Span(" (http://example.invalid)", Role.FAINT) in list(inline_spans("[bank](http://example.invalid)"))


@given(st.text(alphabet=st.sampled_from("ab `*_[]()|#->\n1.~日\x1b\u202e\t"), max_size=400))
def test_any_text_fits_and_has_no_control_characters(text: str) -> None:
    """For any text and markup."""
    lines = list(markdown_lines(text, 40))
    assert all(line_width(line) <= 40 for line in lines)
    assert not any(control_characters(span.text) for line in lines for span in line)


@pytest.mark.sample(3)
@pytest.mark.parametrize("mark", ["*a ", "```", "[[[", "**a", "| a", "[a]("])
def test_unclosed_marks_take_linear_time(mark: str) -> None:
    """Marks that are never closed take time that grows with the text, not with its square."""

    def seconds(count: int) -> float:
        start = time.process_time()
        list(markdown_lines(mark * count, 80))
        return time.process_time() - start

    small = min(seconds(1500) for _ in range(3))
    assert min(seconds(6000) for _ in range(3)) < 10 * max(small, 0.002)
