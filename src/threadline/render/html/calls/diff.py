"""Compute and render line diffs, with changed words marked, in bounded time.

Lines that occur once in both texts and in the same order are anchors (patience diff). Only the gaps between them are
compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, pairwise

from markupsafe import Markup, escape
from msgspec import Struct

from threadline.model.results import Hunk
from threadline.model.text import count
from threadline.render import visible
from threadline.render.html.element import EMPTY, el, join

_CONTEXT_LINES = 3
_HUNK_HEADER = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@")


class DiffRow(Struct, frozen=True):
    """A line of a diff: `mark` is `+`, `-` or a space. Line numbers are None if they are not known."""

    mark: str
    old: int | None
    new: int | None
    text: str


DiffRows = list[DiffRow]


def hunks_of_patch(hunks: Iterable[Hunk]) -> list[DiffRows]:
    """The hunks in a tool's result."""
    return [rows for hunk in hunks if (rows := list(_number_lines(hunk.lines or (), hunk.old_start, hunk.new_start)))]


def _number_lines(lines: Iterable[str], old: int | None, new: int | None) -> Iterator[DiffRow]:
    """Rows with the line numbers before and after the change."""
    before, after = old or 1, new or 1
    for line in lines:
        if line.startswith("\\"):  # "\ No newline at end of file"
            continue
        mark, text = (line[0], line[1:]) if line[:1] in ("+", "-", " ") else (" ", line)
        yield DiffRow(mark, before if mark != "+" else None, after if mark != "-" else None, _replace_newlines(text))
        before += mark != "+"
        after += mark != "-"


def _replace_newlines(text: str) -> str:
    """Replace newlines inside a line, which would misalign the line numbers."""
    return text.replace("\n", "⏎")


def hunks_of_unified_diff(text: str) -> list[DiffRows]:
    """The hunks of a unified diff."""
    hunks: list[DiffRows] = []
    lines: list[str] = []
    start: re.Match[str] | None = None
    for line in [*text.split("\n"), "@@"]:
        header = _HUNK_HEADER.match(line)
        if header is None and line != "@@":
            lines.append(line)
            continue
        if start is not None:
            content = lines if not lines or lines[-1] else lines[:-1]
            hunks.append(list(_number_lines(content, int(start[1]), int(start[2]))))
        start, lines = header, []
    return [rows for rows in hunks if rows]


def hunks_of_new_text(text: str) -> list[DiffRows]:
    """A new text as one hunk."""
    return [[DiffRow("+", None, number, line) for number, line in enumerate(split_lines(text), 1)]] if text else []


def hunks_of_deleted_text(text: str) -> list[DiffRows]:
    """A deleted text as one hunk."""
    return [[DiffRow("-", number, None, line) for number, line in enumerate(split_lines(text), 1)]] if text else []


def hunks_of_texts(old: str, new: str, *, numbered: bool = True) -> list[DiffRows]:
    """The differences between two texts. Not `numbered` if they are parts of a file at an unknown position."""
    before, after = split_lines(old), split_lines(new)
    hunks = [_hunk_rows(group, before, after) for group in _group_changes(compare_lines(before, after))]
    if numbered:
        return hunks
    return [[DiffRow(row.mark, None, None, row.text) for row in rows] for rows in hunks]


def split_lines(text: str) -> list[str]:
    """Split lines like an editor: a newline at the end does not start another line."""
    return text.removesuffix("\n").split("\n") if text else []


def _group_changes(codes: list[Opcode]) -> Iterator[list[Opcode]]:
    """Group changes that are close to each other, with a few lines of context."""
    group: list[Opcode] = []
    for at, (tag, i, j, k, m) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        size = j - i
        first, last = at == 0, at == len(codes) - 1
        if group and not last and size <= 2 * _CONTEXT_LINES:
            group.append((tag, i, j, k, m))
            continue
        if group:
            group.append((tag, i, min(j, i + _CONTEXT_LINES), k, min(m, k + _CONTEXT_LINES)))
            yield group
        group = [] if last else [(tag, max(i, j - _CONTEXT_LINES), j, max(k, m - _CONTEXT_LINES), m)]
        if first and last:
            return
    if any(tag != "equal" for tag, *_ in group):
        yield group


def _hunk_rows(group: list[Opcode], before: list[str], after: list[str]) -> DiffRows:
    rows: DiffRows = []
    for tag, i, j, k, m in group:
        if tag == "equal":
            rows += [DiffRow(" ", at + 1, at - i + k + 1, before[at]) for at in range(i, j)]
            continue
        rows += [DiffRow("-", at + 1, None, before[at]) for at in range(i, j)]
        rows += [DiffRow("+", None, at + 1, after[at]) for at in range(k, m)]
    return rows


_MAX_COMPARED_PAIRS = 20_000
"""The maximum number of pairs of equal lines to compare. Beyond it, lines are shown as deleted and added."""
_MAX_COMPARED_LINES = 50_000

Opcode = tuple[str, int, int, int, int]
"""A tag and ranges of lines in the old and the new text, as in `difflib`."""
Lines = Sequence[str]


def compare_lines(old: Lines, new: Lines) -> list[Opcode]:
    """The equal, deleted, inserted and replaced ranges of lines."""
    if len(old) + len(new) > _MAX_COMPARED_LINES:
        return [("replace", 0, len(old), 0, len(new))]
    return list(_merge_opcodes(_compare_gaps(old, new)))


def _compare_gaps(old: Lines, new: Lines) -> Iterator[Opcode]:
    left = _MAX_COMPARED_PAIRS
    for (i, k), (j, m) in pairwise([(0, 0), *_unique_common_lines(old, new), (len(old), len(new))]):
        for code in _compare_gap(old[i:j], new[k:m], left):
            tag, a, b, c, d = code
            yield tag, a + i, b + i, c + k, d + k
        left -= _count_pairs(old[i:j], new[k:m])


def _compare_gap(old: Lines, new: Lines, left: int) -> list[Opcode]:
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    codes: list[Opcode] = [("equal", 0, start, 0, start)] if start else []
    before, after = old[start:], new[start:]
    if not before and not after:
        return codes
    if _count_pairs(before, after) > left:
        return [*codes, ("replace", start, len(old), start, len(new))]
    opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [*codes, *((tag, i + start, j + start, k + start, m + start) for tag, i, j, k, m in opcodes)]


def _count_pairs(old: Lines, new: Lines) -> int:
    old_counts, new_counts = Counter(old), Counter(new)
    return sum(number * new_counts[line] for line, number in old_counts.items())


def _unique_common_lines(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """The longest sequence of lines that occur once in each text, in the same order."""
    old_counts, new_counts = Counter(old), Counter(new)
    new_index = {line: at for at, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, new_index[line]) for at, line in enumerate(old) if old_counts[line] == 1 and line in new_index]
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(ends, at)
        before.append(last[length - 1] if length else None)
        ends[length : length + 1] = [at]
        last[length : length + 1] = [number]
    sequence: list[tuple[int, int]] = []
    step = last[-1] if last else None
    while step is not None:
        sequence.append(pairs[step])
        step = before[step]
    return sequence[::-1]


def _merge_opcodes(codes: Iterator[Opcode]) -> Iterator[Opcode]:
    """Merge adjacent opcodes of one kind. Adjacent deletions and insertions become one replacement."""
    merged: Opcode | None = None
    for code in codes:
        if merged is None or (merged[0] == "equal") != (code[0] == "equal"):
            if merged is not None:
                yield merged
            merged = code
        else:
            tag = merged[0] if merged[0] == code[0] else "replace"
            merged = (tag, merged[1], code[2], merged[3], code[4])
    if merged is not None:
        yield merged


_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_MAX_MARKED_LINE, _MAX_WORDS = 240, 100
_MIN_SIMILARITY = 0.4
"""In lines less similar than this, words are not marked: nearly all of them would be."""
_MAX_MARKS_PER_LINE = 4

CharacterRange = tuple[int, int]
"""The start and end of a changed range of characters."""


def changed_words(old: str, new: str) -> tuple[list[CharacterRange], list[CharacterRange]] | None:
    """The ranges where two lines differ, in each line. None if they are long, not similar or differ in many places.

    >>> changed_words("a = 1", "a = 10")
    ([(4, 5)], [(4, 6)])
    """
    if len(old) > _MAX_MARKED_LINE or len(new) > _MAX_MARKED_LINE:
        return None
    before, after = _WORD.findall(old), _WORD.findall(new)
    if len(before) > _MAX_WORDS or len(after) > _MAX_WORDS:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _MIN_SIMILARITY:
        return None
    changes = [(i, j, k, m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
    if len(changes) > _MAX_MARKS_PER_LINE:
        return None
    deleted = [_character_range(before, i, j) for i, j, _, _ in changes if j > i]
    inserted = [_character_range(after, k, m) for _, _, k, m in changes if m > k]
    return deleted, inserted


def _character_range(words: list[str], start: int, stop: int) -> CharacterRange:
    first = sum(map(len, words[:start]))
    return first, first + sum(map(len, words[start:stop]))


_MAX_MARKED_PAIRS, _MAX_RUN, _MAX_MARKS = 24, 12, 60
_MAX_LINE = 2000
_GAP = "⋯"
_MARK_CLASSES = {"+": "add", "-": "del"}

WordMarks = dict[int, list[CharacterRange]]
"""The ranges to mark, by the index of their row."""


def render_diff(hunks: Sequence[DiffRows], *, uncut: bool = True) -> Markup:
    """Render hunks. Very long lines are cut, unless `uncut`."""
    rows = list(_join_hunks(hunks))
    if not rows:
        return EMPTY
    columns = ([row.old for row in rows], [row.new for row in rows])
    return el(
        "div",
        *map(line_numbers, columns),
        el("pre", _render_lines(rows, None if uncut else _MAX_LINE), class_="lines"),
        class_="diff",
        tabindex=0,  # an element that scrolls sideways must be reachable without a mouse
    )


def render_unified_diff(text: str, max_lines: int, max_characters: int) -> Markup:
    """Render a unified diff of one file. If it is too long, a note says how many lines are left out."""
    shown, left = first_rows(hunks_of_unified_diff(text), max_lines, max_characters)
    return join((render_diff(shown, uncut=False), el("p", more_lines(left), class_="more") if left else EMPTY))


def first_rows(hunks: Sequence[DiffRows], limit: int, characters: int) -> tuple[list[DiffRows], int]:
    """The first rows of hunks, and the number of remaining rows."""
    first: list[DiffRows] = []
    room, left = limit, sum(map(len, hunks))
    for hunk in hunks:
        rows: DiffRows = []
        for row in hunk[: max(0, room)]:
            characters -= len(row.text)
            if characters < 0 and (first or rows):
                room = 0
                break
            rows.append(row)
        room -= len(rows)
        left -= len(rows)
        if rows:
            first.append(rows)
        if room <= 0:
            break
    return first, left


def more_lines(left: int) -> str:
    """A label with the number of hidden lines."""
    return count(left, "more line")


def _join_hunks(hunks: Iterable[DiffRows]) -> Iterator[DiffRow]:
    """All rows, with a separator row between hunks."""
    for at, rows in enumerate(hunks):
        if at:
            yield DiffRow("", None, None, _GAP)
        yield from rows


def line_numbers(column: Sequence[int | None]) -> Markup:
    """A column of line numbers; empty if none is known."""
    if all(number is None for number in column):
        return EMPTY
    text = "\n".join("" if number is None else str(number) for number in column)
    return el("pre", keep_first_newline(text), class_="numbers", aria_hidden="true")


def keep_first_newline(text: str) -> str:
    """Protect a leading newline in a `<pre>`: browsers drop a newline right after the start tag."""
    return f"\n{text}" if text.startswith("\n") else text


def _render_lines(rows: Sequence[DiffRow], longest: int | None) -> Markup:
    marks = _find_marks(rows)
    html: list[Markup] = []
    for mark, run in groupby(range(len(rows)), key=lambda at: rows[at].mark):
        text = _render_run(mark, list(run), rows, marks, longest)
        name = "gap" if not mark else _MARK_CLASSES.get(mark)
        html.append(el("span", text, class_=name) if name else text)
    return join(html)


def _render_run(
    mark: str, run: Sequence[int], rows: Sequence[DiffRow], marks: WordMarks, longest: int | None
) -> Markup:
    """Lines of one kind. Most have no marks and are escaped all at once."""
    texts = [_shorten_line(rows[at].text, longest) for at in run]
    if not any(marks.get(at) for at in run):
        return escape(visible("".join(f"{mark}{text}\n" for text in texts)))
    return join(_render_line(mark, text, marks.get(at, [])) for at, text in zip(run, texts, strict=True))


def _shorten_line(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[:longest] + "…"


def _render_line(mark: str, text: str, marks: Sequence[CharacterRange]) -> Markup:
    pieces: list[Markup] = [escape(mark)]
    at = 0
    for start, stop in marks:
        pieces += [escape(visible(text[at:start])), el("mark", visible(text[start:stop]))]
        at = stop
    return join([*pieces, escape(visible(text[at:])), escape("\n")])


def _find_marks(rows: Sequence[DiffRow]) -> WordMarks:
    """The changed words, for runs where as many lines were added as deleted."""
    word_marks: WordMarks = {}
    pairs, marks = _MAX_MARKED_PAIRS, _MAX_MARKS
    for old, new in _replaced_pairs(rows):
        if pairs <= 0 or marks <= 0:
            break
        pairs -= 1
        changed = changed_words(rows[old].text, rows[new].text)
        if changed is not None:
            word_marks[old], word_marks[new] = changed
            marks -= len(changed[0]) + len(changed[1])
    return word_marks


def _replaced_pairs(rows: Sequence[DiffRow]) -> Iterator[tuple[int, int]]:
    runs = [(mark, list(run)) for mark, run in groupby(range(len(rows)), key=lambda at: rows[at].mark)]
    for (mark, deleted), (next_mark, inserted) in pairwise(runs):
        if (mark, next_mark) == ("-", "+") and len(deleted) == len(inserted) <= _MAX_RUN:
            yield from zip(deleted, inserted, strict=True)
