"""Two texts compared line by line, in a time that their length bounds and not what they hold."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

_MOST_PAIRS = 20_000
"""How many pairs of like lines are looked at in all; what lies beyond is told as gone and come."""
_MOST_LINES = 50_000

Code = tuple[str, int, int, int, int]
"""What became of a stretch of lines, and where it stands in the old text and in the new: as `difflib` tells it."""
Lines = Sequence[str]


def compared(old: Lines, new: Lines) -> list[Code]:
    """What is equal, what went and what came.

    Lines that each text has once, in the same order, hold the two together; only what lies between them is searched.
    """
    if len(old) + len(new) > _MOST_LINES:
        return [("replace", 0, len(old), 0, len(new))]
    return list(_joined(_gaps(old, new)))


def _gaps(old: Lines, new: Lines) -> Iterator[Code]:
    left = _MOST_PAIRS
    for (i, k), (j, m) in pairwise([(0, 0), *_held(old, new), (len(old), len(new))]):
        for code in _gap(old[i:j], new[k:m], left):
            tag, a, b, c, d = code
            yield tag, a + i, b + i, c + k, d + k
        left -= _pairs(old[i:j], new[k:m])


def _gap(old: Lines, new: Lines, left: int) -> list[Code]:
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    codes: list[Code] = [("equal", 0, start, 0, start)] if start else []
    before, after = old[start:], new[start:]
    if not before and not after:
        return codes
    if _pairs(before, after) > left:
        return [*codes, ("replace", start, len(old), start, len(new))]
    found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [*codes, *((tag, i + start, j + start, k + start, m + start) for tag, i, j, k, m in found)]


def _pairs(old: Lines, new: Lines) -> int:
    here, there = Counter(old), Counter(new)
    return sum(number * there[line] for line, number in here.items())


def _held(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """The longest run of lines that each text has once and that stand in the same order in both."""
    here, there = Counter(old), Counter(new)
    where = {line: at for at, line in enumerate(new) if there[line] == 1}
    both = [(at, where[line]) for at, line in enumerate(old) if here[line] == 1 and line in where]
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for number, (_, at) in enumerate(both):
        length = bisect_left(ends, at)
        before.append(last[length - 1] if length else None)
        ends[length : length + 1] = [at]
        last[length : length + 1] = [number]
    held: list[tuple[int, int]] = []
    step = last[-1] if last else None
    while step is not None:
        held.append(both[step])
        step = before[step]
    return held[::-1]


def _joined(codes: Iterator[Code]) -> Iterator[Code]:
    """Neighbours of one kind as one; what went and what came beside it is one change."""
    kept: Code | None = None
    for code in codes:
        if kept is None or (kept[0] == "equal") != (code[0] == "equal"):
            if kept is not None:
                yield kept
            kept = code
        else:
            tag = kept[0] if kept[0] == code[0] else "replace"
            kept = (tag, kept[1], code[2], kept[3], code[4])
    if kept is not None:
        yield kept
