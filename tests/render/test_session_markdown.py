"""Exported Markdown renders the same everywhere, and no text escapes its place."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.render.sessions import session
from tests.transcripts import Pen, call, prompt, reply, transcript, write

from threadline.load import read
from threadline.render import Detail, View, session_to_markdown
from threadline.render.session_markdown import code_block, code_span, contained_markdown, escape_markdown

RENDERER = MarkdownIt("commonmark", {"html": True})
TEXT = st.text(alphabet="ab `~\n-*#<>!/[]()\\&;|_\"'=", max_size=120)


@given(TEXT)
def test_a_fence_contains_any_text(text: str) -> None:
    """A text in a fence is one code block with that text."""
    tokens = RENDERER.parse("\n".join(code_block(text)))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content.rstrip("\n") == text.strip("\n").rstrip("\n")


@given(TEXT)
def test_escaped_text_has_no_markup(text: str) -> None:
    """Escaped text renders as that text, without emphasis, code, links or tags."""
    html = RENDERER.renderInline(escape_markdown(f"x{text}"))
    assert not any(tag in html for tag in ("<em", "<strong", "<code", "<a ", "<img", "<b>"))


@given(st.text(alphabet="ab `", min_size=1, max_size=30))
def test_code_is_one_span(text: str) -> None:
    """A text as code renders as one code span and nothing else."""
    if text.strip():
        html = RENDERER.renderInline(code_span(text))
        assert html.startswith("<code>")
        assert html.endswith("</code>")
        assert html.count("<code>") == 1


@given(TEXT)
def test_contained_markdown_has_no_tags_and_leaves_nothing_open(text: str) -> None:
    """Whatever a reply contains, the text after it renders as usual: no fence is open, and there are no tags."""
    html = RENDERER.render("\n".join([*contained_markdown(f"{text}<img src=x><div>"), "", "END"]))
    assert "END" in html
    assert "<img" not in html
    assert "<div>" not in html


def test_exports_a_session(tmp_path: Path) -> None:
    """Turns are headings, prompts are quotations, replies are unchanged, and calls fold with their output inside."""
    pen = Pen(cwd="/w")
    path = write(
        tmp_path / f"{pen.session}.jsonl",
        *transcript(
            prompt("Why?\nTell me."),
            reply("**Because**\n\n```py\nx = '<b>'\n```"),
            call("Bash", "ls ```", result="a\n```\nb"),
            pen=pen,
        ),
    )
    text = "\n".join(session_to_markdown(read(path)))
    assert "## Turn 1 · 2026-01-05 09:00" in text
    assert "> Why?\n> Tell me." in text
    assert "\n**Because**\n" in text
    assert "x = '<b>'" in text
    assert "<details><summary><b>Bash</b> <code>ls ```</code></summary>" in text
    assert "````\na\n```\nb\n````" in text
    assert "Bash" not in "\n".join(session_to_markdown(read(path), View(calls=Detail.NONE)))


def test_changes_are_a_patch(tmp_path: Path) -> None:
    """Every line of a change has its mark in the first column, also if it begins with a digit or has no number."""
    patch = {"oldStart": 9, "newStart": 9, "lines": [" 42 apples", "-7 pears", "+8 pears", " plums"]}
    sample = session(
        tmp_path,
        prompt("go"),
        call("Edit", {"file_path": "a"}, result="ok", details={"filePath": "a", "structuredPatch": [patch]}),
        call("Edit", {"file_path": "b", "old_string": "1 fig", "new_string": "2 figs"}, result="ok"),
    )
    text = "\n".join(session_to_markdown(sample))
    assert "```diff\n 42 apples\n-7 pears\n+8 pears\n plums\n```" in text
    assert "```diff\n-1 fig\n+2 figs\n```" in text
