"""Markdown as HTML: what people write is rendered, and nothing else."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.html.calls_and_pages import Page

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
def test_any_markdown_renders_inert_html(text: str) -> None:
    """Elements, attributes and addresses are from a short list, and nothing is fetched."""
    page = Page(markdown_to_html(text))
    assert page.is_inert()
    assert "img" not in page.tags


@pytest.mark.parametrize(
    ("source", "html"),
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
def test_renders_common_markdown(source: str, html: str) -> None:
    """Emphasis, links, tables and code, as in replies."""
    assert html in markdown_to_html(source)


def test_headings_are_below_those_of_the_page() -> None:
    """The highest level of a text is h3, and no level is skipped."""
    tags = [tag for tag in Page(markdown_to_html("## a\n\n#### b\n\n## c")).tags if tag.startswith("h")]
    assert tags == ["h3", "h4", "h3"]


def test_does_not_parse_a_very_long_text() -> None:
    """Parsing would take too long. Nothing is lost."""
    text = "word *x* " * 20_000
    page = Page(markdown_to_html(text))
    assert page.tags == ["pre"]
    assert page.text == text


@pytest.mark.sample(6)
@pytest.mark.parametrize("piece", ["[", "*a ", "`", "![", "> ", "- ", "_a__", "<a", "|", "[a](", "&#"])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    """Four times the text takes about four times the time, not sixteen."""

    def seconds(count: int) -> float:
        start = process_time()
        markdown_to_html(piece * count)
        return process_time() - start

    seconds(100)
    small, large = (min(seconds(count) for _ in range(3)) for count in (2_000, 8_000))
    assert large < 12 * small + 0.05
