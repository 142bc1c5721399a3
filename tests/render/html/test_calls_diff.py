"""Diffs show what changed, with line numbers, in bounded time."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.html.calls_and_pages import Page

from threadline.model.results import Hunk
from threadline.render.html.calls import diff
from threadline.render.html.calls.diff import (
    DiffRow,
    changed_words,
    compare_lines,
    hunks_of_deleted_text,
    hunks_of_new_text,
    hunks_of_patch,
    hunks_of_texts,
    hunks_of_unified_diff,
    render_diff,
)

LINES = st.lists(st.sampled_from("abcdefg"), max_size=30)


@given(LINES, LINES)
def test_compared_ranges_cover_both_texts(old: list[str], new: list[str]) -> None:
    """The ranges cover both texts in order, and ranges marked as equal are equal."""
    old_position = new_position = 0
    for tag, start, stop, first, last in compare_lines(old, new):
        assert (start, first) == (old_position, new_position)
        assert tag != "equal" or old[start:stop] == new[first:last]
        old_position, new_position = stop, last
    assert (old_position, new_position) == (len(old), len(new))


@given(LINES, LINES)
def test_hunks_have_the_line_numbers_of_the_texts(old: list[str], new: list[str]) -> None:
    """Each line has its numbers in the texts, and every line outside the hunks is in both."""
    rows = [row for hunk in hunks_of_texts("\n".join(old), "\n".join(new)) for row in hunk]
    assert all(old[row.old - 1] == row.text for row in rows if row.old is not None)
    assert all(new[row.new - 1] == row.text for row in rows if row.new is not None)
    removed, added = {row.old for row in rows if row.mark == "-"}, {row.new for row in rows if row.mark == "+"}
    unchanged = [line for number, line in enumerate(old, 1) if number not in removed]
    assert unchanged == [line for number, line in enumerate(new, 1) if number not in added]


@given(LINES, LINES)
def test_parses_a_unified_diff(old: list[str], new: list[str]) -> None:
    """Marks, numbers and texts of a unified diff are preserved."""
    diff_lines = difflib.unified_diff([f"{line}\n" for line in old], [f"{line}\n" for line in new], "a", "b")
    rows = [row for hunk in hunks_of_unified_diff("".join(diff_lines)) for row in hunk]
    assert all(old[row.old - 1] == row.text for row in rows if row.old is not None)
    assert all(new[row.new - 1] == row.text for row in rows if row.new is not None)
    assert bool(rows) == (old != new)


def test_renders_a_patch_with_both_line_numbers() -> None:
    """Old numbers, new numbers, lines with their signs, and a sign for the gap between two hunks."""
    hunks = [
        Hunk(old_start=3, new_start=3, lines=[" a", "-b", "+c", "\\ No newline at end of file"]),
        Hunk(old_start=90, new_start=91, lines=["+d"]),
    ]
    assert render_diff(hunks_of_patch(hunks)) == (
        '<div class="diff" tabindex="0"><pre class="numbers" aria-hidden="true">3\n4\n\n\n</pre>'
        '<pre class="numbers" aria-hidden="true">3\n\n4\n\n91</pre>'
        '<pre class="lines"> a\n<span class="del">-b\n</span><span class="add">+c\n</span>'
        '<span class="gap">⋯\n</span><span class="add">+d\n</span></pre></div>'
    )


def test_line_numbers_are_aligned_with_lines() -> None:
    """A browser drops the first newline of a `<pre>`, so there are two if the first number is missing."""
    rows = [DiffRow("+", None, 1, "new"), DiffRow(" ", 1, 2, "same")]
    assert '<pre class="numbers" aria-hidden="true">\n\n1</pre>' in render_diff([rows])


def test_a_new_or_deleted_file_has_one_column_of_numbers() -> None:
    """All lines of a new file are added, all lines of a deleted one are removed."""
    assert Page(render_diff(hunks_of_new_text("a\nb\n"))).text == "1\n2+a\n+b\n"
    assert Page(render_diff(hunks_of_deleted_text("a\n"))).text == "1-a\n"
    assert render_diff(hunks_of_new_text("")) == ""


def test_marks_changed_words() -> None:
    """If a line replaces another one, the differing words are marked in both."""
    html = render_diff(hunks_of_texts("total = price * count\n", "total = price * number\n"))
    assert "-total = price * <mark>count</mark>" in html
    assert "+total = price * <mark>number</mark>" in html


@pytest.mark.parametrize(
    ("old", "new"),
    [("a" * 241, "a" * 240), ("x ", "entirely other words"), (". " * 60, ". " * 61), ("abcdefgh", "a1b2c3d4")],
    ids=["long", "unlike", "many-words", "other"],
)
def test_does_not_mark_words_of_long_or_unlike_lines(old: str, new: str) -> None:
    """Long lines, and lines that have little in common, have no marked words."""
    assert changed_words(old, new) is None


def test_comparing_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lines changed, only a limited number of pairs is compared and of words marked."""
    sizes: list[int] = []

    def record_size(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]] | None:
        sizes.append(len(old) + len(new))
        return changed_words(old, new)

    monkeypatch.setattr(diff, "changed_words", record_size)
    lines = [line for number in range(2000) for line in (f"-a = call({number})", f"+a = called({number})")]
    html = render_diff(hunks_of_patch([Hunk(old_start=1, new_start=1, lines=lines)]))
    assert len(sizes) <= 24
    assert html.count("<mark>") <= 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["a"] * 20_000, ["a"] * 9000 + ["b"] * 9000),
        ([str(n % 300) for n in range(9000)], [str(n % 301) for n in range(9000)]),
    ],
    ids=["one-line", "few-lines"],
)
def test_comparing_lines_is_bounded(old: list[str], new: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts with many equal lines, which are slow to compare, are shown as removed and added."""
    sizes: list[int] = []

    def record_size(junk: None, before: list[str], after: list[str], *, autojunk: bool) -> difflib.SequenceMatcher[str]:
        sizes.append(diff._count_pairs(before, after))
        return difflib.SequenceMatcher(junk, before, after, autojunk=autojunk)

    monkeypatch.setattr(diff, "SequenceMatcher", record_size)
    assert compare_lines(old, new)
    assert sum(sizes) <= 20_000
