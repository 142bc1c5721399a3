"""Markdown as HTML: what people write comes out, and nothing else does."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.html.calling import Page

from threadline.render.html.markdown import markdown_to_html

_PARTS = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](http://one.example/?q=1&r=2)",
        "![p](http://one.example/beacon.png)",
        "![p](data:image/svg+xml,<svg/>)",
        "[r]: javascript:alert(1)\n\n[r]",
        "<javascript:alert(1)>",
        "<http://one.example>",
        "| a | b |\n|--:|:-:|\n| 1 | <b>2</b> |",
        "```html\n<script>1</script>\n```",
        "    <script>2</script>",
        "# h1\n### h3",
        "- a\n  - b",
        "> q",
        "`<i>`",
        "**b** _i_ ~~s~~",
        "\u202e\x1b[31m\x00",
        "\n\n",
        " text ",
    ]
)


@given(st.lists(_PARTS, max_size=12).map("".join))
def test_whatever_is_written_the_page_stays_inert(text: str) -> None:
    """Elements, attributes and addresses are those of a short list; nothing is fetched."""
    page = Page(markdown_to_html(text))
    assert page.is_inert()
    assert "img" not in page.tags


@pytest.mark.parametrize(
    ("written", "drawn"),
    [
        ("a **b**", "<p>a <strong>b</strong></p>"),
        ("[a](b.md)", '<span class="link" title="b.md">a</span>'),
        ("[a](http://x.example)", 'href="http://x.example" target="_blank" rel="noopener noreferrer nofollow">a</a>'),
        ("![a plan](/tmp/x.png)", '<span class="picture">[a plan]</span>'),
        ("| a |\n|--:|\n| 1 |", '<th class="right">a</th>'),
        ("```py\nx = 1\n```", '<pre data-language="py"><code>x = <span class="n">1</span>\n</code></pre>'),
        ("a <b>c</b>", "a &lt;b&gt;c&lt;/b&gt;"),
    ],
)
def test_what_people_write_comes_out(written: str, drawn: str) -> None:
    """Emphasis, links, tables and code, as a reply has them."""
    assert drawn in markdown_to_html(written)


def test_headings_stand_below_those_of_the_page() -> None:
    """The highest level of a text is the third, and no level is passed over."""
    tags = [tag for tag in Page(markdown_to_html("## a\n\n#### b\n\n## c")).tags if tag.startswith("h")]
    assert tags == ["h3", "h4", "h3"]


def test_a_very_long_text_is_shown_as_it_was_written() -> None:
    """Parsing is not worth its time there; nothing is lost."""
    text = "word *x* " * 20_000
    page = Page(markdown_to_html(text))
    assert page.tags == ["pre"]
    assert page.text == text


@pytest.mark.sample(4)
@pytest.mark.parametrize("piece", ["[", "*a ", "`", "![", "> ", "- ", "_a__", "<a", "|", "[a](", "&#"])
def test_text_made_to_cost_time_costs_in_proportion(piece: str) -> None:
    """Four times the text takes about four times the time, not sixteen."""

    def spent(count: int) -> float:
        start = process_time()
        markdown_to_html(piece * count)
        return process_time() - start

    spent(100)
    small, large = min(spent(2_000) for _ in range(3)), spent(8_000)
    assert large < 12 * small + 0.05
