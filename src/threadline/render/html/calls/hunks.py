"""Hunks: changed lines with some unchanged ones around them, from a patch, a unified diff or two texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from threadline.model.results.files import Hunk
from threadline.render.html.calls.compared import Code, compared

_AROUND = 3
_HEADER = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@")


class Row(Struct, frozen=True):
    """A line of a diff: `mark` is `+`, `-` or a space; numbers are None where they are not known."""

    mark: str
    old: int | None
    new: int | None
    text: str


Rows = list[Row]


def of_patch(hunks: Iterable[Hunk]) -> list[Rows]:
    """The hunks that a tool's result holds."""
    return [rows for hunk in hunks if (rows := list(_counted(hunk.lines or (), hunk.old_start, hunk.new_start)))]


def _counted(lines: Iterable[str], old: int | None, new: int | None) -> Iterator[Row]:
    """Lines with the numbers they have before and after."""
    before, after = old or 1, new or 1
    for line in lines:
        mark, text = (line[0], line[1:]) if line[:1] in ("+", "-", " ", "\\") else (" ", line)
        if mark == "\\":  # "\ No newline at end of file"
            continue
        yield Row(mark, before if mark != "+" else None, after if mark != "-" else None, _flat(text))
        before += mark != "+"
        after += mark != "-"


def _flat(text: str) -> str:
    """A line that is one line: a newline inside it would put the numbers beside it wrong."""
    return text.replace("\n", "⏎")


def of_unified(text: str) -> list[Rows]:
    """The hunks of a unified diff."""
    found: list[Rows] = []
    lines: list[str] = []
    start: re.Match[str] | None = None
    for line in [*text.split("\n"), "@@"]:
        header = _HEADER.match(line)
        if header is None and line != "@@":
            lines.append(line)
            continue
        if start is not None:
            kept = lines if not lines or lines[-1] else lines[:-1]
            found.append(list(_counted(kept, int(start[1]), int(start[2]))))
        start, lines = header, []
    return [rows for rows in found if rows]


def of_new(text: str) -> list[Rows]:
    """A text that was not there before."""
    return [[Row("+", None, number, line) for number, line in enumerate(lines_of(text), 1)]] if text else []


def of_old(text: str) -> list[Rows]:
    """A text that is there no more."""
    return [[Row("-", number, None, line) for number, line in enumerate(lines_of(text), 1)]] if text else []


def of_texts(old: str, new: str, *, numbered: bool = True) -> list[Rows]:
    """What changed between two texts; not `numbered` where they are pieces of a file, and no one knows from where."""
    before, after = lines_of(old), lines_of(new)
    found = [_rows(group, before, after) for group in _grouped(compared(before, after))]
    if numbered:
        return found
    return [[Row(row.mark, None, None, row.text) for row in rows] for rows in found]


def lines_of(text: str) -> list[str]:
    """Lines as an editor counts them: a newline at the end begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def _grouped(codes: list[Code]) -> Iterator[list[Code]]:
    """Changes that stand near each other, with a few equal lines around."""
    group: list[Code] = []
    for at, (tag, i, j, k, m) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        size = j - i
        first, last = at == 0, at == len(codes) - 1
        if group and not last and size <= 2 * _AROUND:
            group.append((tag, i, j, k, m))
            continue
        if group:
            group.append((tag, i, min(j, i + _AROUND), k, min(m, k + _AROUND)))
            yield group
        group = [] if last else [(tag, max(i, j - _AROUND), j, max(k, m - _AROUND), m)]
        if first and last:
            return
    if any(tag != "equal" for tag, *_ in group):
        yield group


def _rows(group: list[Code], before: list[str], after: list[str]) -> Rows:
    rows: Rows = []
    for tag, i, j, k, m in group:
        if tag == "equal":
            rows += [Row(" ", at + 1, at - i + k + 1, before[at]) for at in range(i, j)]
            continue
        rows += [Row("-", at + 1, None, before[at]) for at in range(i, j)]
        rows += [Row("+", None, at + 1, after[at]) for at in range(k, m)]
    return rows
