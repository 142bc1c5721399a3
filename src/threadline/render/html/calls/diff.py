"""A diff as HTML: two columns of numbers and one of lines, in which a run of changed lines is one element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from markupsafe import Markup, escape

from threadline.render.figures import count
from threadline.render.html.calls.changed_words import Span, changed_words
from threadline.render.html.calls.hunks import Row, Rows
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.words import shown

_MOST_PAIRS, _LONGEST_RUN, _MOST_MARKS = 24, 12, 60
_LONGEST_LINE = 2000
_GAP = "⋯"
_CLASSES = {"+": "add", "-": "del"}

Marks = dict[int, list[Span]]
"""The words to mark, by the place of their line."""


def diff(hunks: Sequence[Rows], *, whole: bool = True) -> Markup:
    """Hunks one below the other; where they are not shown whole, very long lines are cut."""
    rows = list(_joined(hunks))
    if not rows:
        return EMPTY
    columns = ([row.old for row in rows], [row.new for row in rows])
    return el(
        "div",
        *map(numbers, columns),
        el("pre", _lines(rows, None if whole else _LONGEST_LINE), class_="lines"),
        class_="diff",
        tabindex=0,  # what scrolls sideways must be reached without a mouse
    )


def first(hunks: Sequence[Rows], most: int, characters: int) -> tuple[list[Rows], int]:
    """The first lines of hunks, and how many are left."""
    kept: list[Rows] = []
    room, left = most, sum(map(len, hunks))
    for rows in hunks:
        some: Rows = []
        for row in rows[: max(0, room)]:
            characters -= len(row.text)
            if characters < 0 and (kept or some):
                room = 0
                break
            some.append(row)
        room -= len(some)
        left -= len(some)
        if some:
            kept.append(some)
        if room <= 0:
            break
    return kept, left


def more_lines(left: int) -> str:
    """How many lines of a diff are not shown."""
    return count(left, "more line")


def _joined(hunks: Iterable[Rows]) -> Iterator[Row]:
    """All rows; between two hunks a line that stands for what is left out."""
    for at, rows in enumerate(hunks):
        if at:
            yield Row("", None, None, _GAP)
        yield from rows


def numbers(column: Sequence[int | None]) -> Markup:
    """Numbers of lines, one below the other; nothing where none is known."""
    if all(number is None for number in column):
        return EMPTY
    said = "\n".join("" if number is None else str(number) for number in column)
    return el("pre", whole_pre(said), class_="numbers", aria_hidden="true")


def whole_pre(text: str) -> str:
    """A text whose first line may be blank, for a `<pre>`: a browser drops a newline that one begins with."""
    return f"\n{text}" if text.startswith("\n") else text


def _lines(rows: Sequence[Row], longest: int | None) -> Markup:
    marks = _marks(rows)
    drawn: list[Markup] = []
    for mark, run in groupby(range(len(rows)), key=lambda at: rows[at].mark):
        text = _run(mark, list(run), rows, marks, longest)
        name = "gap" if not mark else _CLASSES.get(mark)
        drawn.append(el("span", text, class_=name) if name else text)
    return join(drawn)


def _run(mark: str, run: Sequence[int], rows: Sequence[Row], marks: Marks, longest: int | None) -> Markup:
    """Lines of one kind; as a rule without marks, and then escaped in one go."""
    texts = [_short(rows[at].text, longest) for at in run]
    if not any(marks.get(at) for at in run):
        return escape(shown("".join(f"{mark}{text}\n" for text in texts)))
    return join(_line(mark, text, marks.get(at, [])) for at, text in zip(run, texts, strict=True))


def _short(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[:longest] + "…"


def _line(mark: str, text: str, marks: Sequence[Span]) -> Markup:
    pieces: list[Markup] = [escape(mark)]
    at = 0
    for start, stop in marks:
        pieces += [escape(shown(text[at:start])), el("mark", shown(text[start:stop]))]
        at = stop
    return join([*pieces, escape(shown(text[at:])), escape("\n")])


def _marks(rows: Sequence[Row]) -> Marks:
    """The words that changed, where as many lines came as went, each in the place of one."""
    found: Marks = {}
    pairs, marks = _MOST_PAIRS, _MOST_MARKS
    for old, new in _pairs(rows):
        if pairs <= 0 or marks <= 0:
            break
        pairs -= 1
        changed = changed_words(rows[old].text, rows[new].text)
        if changed is not None:
            found[old], found[new] = changed
            marks -= len(changed[0]) + len(changed[1])
    return found


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    runs = [(mark, list(run)) for mark, run in groupby(range(len(rows)), key=lambda at: rows[at].mark)]
    for (mark, gone), (next_mark, come) in pairwise(runs):
        if (mark, next_mark) == ("-", "+") and len(gone) == len(come) <= _LONGEST_RUN:
            yield from zip(gone, come, strict=True)
