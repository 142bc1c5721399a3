"""Diffs say what changed, with the numbers that lines have, in a time that is bounded."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.render.html.calling import Page

from threadline.model.results import Hunk
from threadline.render.html.calls import diff as comparing
from threadline.render.html.calls import diff as drawing
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
def test_what_is_compared_makes_the_new_text_of_the_old_one(old: list[str], new: list[str]) -> None:
    """The stretches tile both texts, in order, and what is told as equal is."""
    here = there = 0
    for tag, start, stop, first, last in compare_lines(old, new):
        assert (start, first) == (here, there)
        assert tag != "equal" or old[start:stop] == new[first:last]
        here, there = stop, last
    assert (here, there) == (len(old), len(new))


@given(LINES, LINES)
def test_hunks_name_the_lines_that_they_show(old: list[str], new: list[str]) -> None:
    """Each line stands at its numbers in the texts, and every line outside the hunks is in both."""
    rows = [row for hunk in hunks_of_texts("\n".join(old), "\n".join(new)) for row in hunk]
    assert all(old[row.old - 1] == row.text for row in rows if row.old is not None)
    assert all(new[row.new - 1] == row.text for row in rows if row.new is not None)
    gone, come = {row.old for row in rows if row.mark == "-"}, {row.new for row in rows if row.mark == "+"}
    kept = [line for number, line in enumerate(old, 1) if number not in gone]
    assert kept == [line for number, line in enumerate(new, 1) if number not in come]


@given(LINES, LINES)
def test_a_unified_diff_is_read_as_it_was_meant(old: list[str], new: list[str]) -> None:
    """Marks, numbers and texts come out of a unified diff as they went in."""
    made = difflib.unified_diff([f"{line}\n" for line in old], [f"{line}\n" for line in new], "a", "b")
    rows = [row for hunk in hunks_of_unified_diff("".join(made)) for row in hunk]
    assert all(old[row.old - 1] == row.text for row in rows if row.old is not None)
    assert all(new[row.new - 1] == row.text for row in rows if row.new is not None)
    assert bool(rows) == (old != new)


def test_a_patch_is_shown_with_both_numbers() -> None:
    """Old numbers, new numbers, lines with their signs, and a sign for what is left out between two hunks."""
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


def test_numbers_stand_beside_their_lines() -> None:
    """A browser drops a newline that a `<pre>` begins with: where the first number is missing there are two."""
    rows = [DiffRow("+", None, 1, "new"), DiffRow(" ", 1, 2, "same")]
    assert '<pre class="numbers" aria-hidden="true">\n\n1</pre>' in render_diff([rows])


def test_a_file_that_came_or_went_has_one_column() -> None:
    """All lines of a new file are added, all of one that is gone removed, with the numbers that there are."""
    assert Page(render_diff(hunks_of_new_text("a\nb\n"))).text == "1\n2+a\n+b\n"
    assert Page(render_diff(hunks_of_deleted_text("a\n"))).text == "1-a\n"
    assert render_diff(hunks_of_new_text("")) == ""


def test_changed_words_are_marked() -> None:
    """In two lines of which one took the other's place, what differs is marked in each."""
    drawn = render_diff(hunks_of_texts("total = price * count\n", "total = price * number\n"))
    assert "-total = price * <mark>count</mark>" in drawn
    assert "+total = price * <mark>number</mark>" in drawn


@pytest.mark.parametrize(
    ("old", "new"),
    [("a" * 241, "a" * 240), ("x ", "entirely other words"), (". " * 60, ". " * 61), ("abcdefgh", "a1b2c3d4")],
    ids=["long", "unlike", "many-words", "other"],
)
def test_words_are_not_marked_where_that_says_nothing(old: str, new: str) -> None:
    """Long lines, and lines that have little in common, are told as lines."""
    assert changed_words(old, new) is None


def test_looking_for_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lines changed, only so many pairs of them are compared, and so many words marked."""
    seen: list[int] = []

    def counted(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]] | None:
        seen.append(len(old) + len(new))
        return changed_words(old, new)

    monkeypatch.setattr(drawing, "changed_words", counted)
    lines = [line for number in range(2000) for line in (f"-a = call({number})", f"+a = called({number})")]
    drawn = render_diff(hunks_of_patch([Hunk(old_start=1, new_start=1, lines=lines)]))
    assert len(seen) <= 24
    assert drawn.count("<mark>") <= 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["a"] * 20_000, ["a"] * 9000 + ["b"] * 9000),
        ([str(n % 300) for n in range(9000)], [str(n % 301) for n in range(9000)]),
    ],
    ids=["one-line", "few-lines"],
)
def test_comparing_is_bounded(old: list[str], new: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of many like lines, which make comparing slow, are not searched: what differs is told as gone and come."""
    sizes: list[int] = []

    def counted(junk: None, before: list[str], after: list[str], *, autojunk: bool) -> difflib.SequenceMatcher[str]:
        sizes.append(comparing._count_pairs(before, after))
        return difflib.SequenceMatcher(junk, before, after, autojunk=autojunk)

    monkeypatch.setattr(comparing, "SequenceMatcher", counted)
    assert compare_lines(old, new)
    assert sum(sizes) <= 20_000
