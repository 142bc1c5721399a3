r"""Match the lines of two versions of a file, and say where several matches are possible.

Lines that occur once in both versions anchor the match (patience diff), so the time grows with the size of the files,
not with its square. A diff is a guess where lines repeat: if a blank line and a function are inserted before another
blank line, no diff can tell which blank line is the new one. Here, such lines have several possible sources:

>>> align(["a", "", "b"], ["a", "", "x", "", "b"]).sources
[(0,), (1,), (), (1,), (2,)]
>>> align(["a", "", "b"], ["a", "", "x", "", "b"]).may_be_new
[False, True, True, True, False]
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

_MIN_LETTERS = 3
# A limit for hostile input: how often a line may be looked at, on average.
_MAX_VISITS = 60


class Alignment(Struct):
    """Where each line of the new version may come from.

    `sources` are the old lines that it may be; a line that is certainly kept or moved has one. `may_be_new` says
    whether it may have been inserted. `gaps` are the ranges of old and new lines without a match, in order.
    """

    sources: list[tuple[int, ...]]
    may_be_new: list[bool]
    gaps: list[tuple[range, range]]


def align(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match the lines of two versions."""
    match = _match_lines(old, new)
    gaps = list(_gaps(match, len(old)))
    sources: list[tuple[int, ...]] = [(at,) if at >= 0 else () for at in match]
    may_be_new = [at < 0 for at in match]
    if gaps:
        counts = _Frequencies(old, new)
        for old_range, new_range in _extend_gaps(match, gaps, old, new, counts):
            _mark_ambiguous(old, new, old_range, new_range, counts, sources, may_be_new)
        _find_moves(old, new, counts, sources, may_be_new)
    return Alignment(sources, may_be_new, gaps)


def is_trivial(line: str) -> bool:
    """Whether a line has too little text to be recognised, such as a blank line or a brace."""
    letters = 0
    for character in line:
        letters += character.isalnum()
        if letters >= _MIN_LETTERS:
            return False
    return True


class _Frequencies:
    """How often each line occurs in the old and in the new version."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.old, self.new = Counter(old), Counter(new)

    def is_distinctive(self, line: str) -> bool:
        """Whether a line occurs once in both versions, and can be recognised."""
        return self.old[line] == 1 and self.new[line] == 1 and not is_trivial(line)


def _match_lines(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Return for each new line the old line that it is, or -1. Matches never cross."""
    match = [-1] * len(new)
    visits = _MAX_VISITS * (len(old) + len(new) + 1)
    regions = [(0, len(old), 0, len(new))]
    while regions:
        low, high, start, end = regions.pop()
        while low < high and start < end and old[low] == new[start]:
            match[start] = low
            low, start = low + 1, start + 1
        while low < high and start < end and old[high - 1] == new[end - 1]:
            high, end = high - 1, end - 1
            match[end] = high
        visits -= high - low + end - start
        if low == high or start == end or visits < 0:
            continue
        anchors = _unique_matches(old, new, low, high, start, end)
        for at, position in anchors:
            match[position] = at
        bounds = [(low - 1, start - 1), *anchors, (high, end)]
        for (at, position), (next_at, next_position) in zip(bounds, bounds[1:], strict=False):
            if anchors and next_at - at > 1 and next_position - position > 1:
                regions.append((at + 1, next_at, position + 1, next_position))
    return match


def _unique_matches(
    old: Sequence[str], new: Sequence[str], low: int, high: int, start: int, end: int
) -> list[tuple[int, int]]:
    """Return the longest ascending sequence of lines that occur once in both regions."""
    old_at, new_at = _unique_lines(old, low, high), _unique_lines(new, start, end)
    pairs = [(old_at[line], position) for line, position in new_at.items() if line in old_at]
    pairs.sort(key=lambda pair: pair[1])
    return _longest_ascending(pairs)


def _unique_lines(lines: Sequence[str], low: int, high: int) -> dict[str, int]:
    positions: dict[str, int] = {}
    repeated: set[str] = set()
    for at in range(low, high):
        line = lines[at]
        if line in positions:
            repeated.add(line)
        positions[line] = at
    return {line: at for line, at in positions.items() if line not in repeated}


def _longest_ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence whose first numbers increase."""
    ends: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for number, (at, _) in enumerate(pairs):
        length = bisect_left(ends, at)
        previous.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [at]
        last[length : length + 1] = [number]
    result: list[tuple[int, int]] = []
    step = last[-1] if last else -1
    while step >= 0:
        result.append(pairs[step])
        step = previous[step]
    return result[::-1]


def _gaps(match: list[int], old_length: int) -> Iterator[tuple[range, range]]:
    """Yield the old and new lines without a match between two matched ones."""
    at = start = 0
    for position, source in enumerate([*match, old_length]):
        if source < 0:
            continue
        if source > at or position > start:
            yield range(at, source), range(start, position)
        at, start = source + 1, position + 1


def _extend_gaps(
    match: list[int],
    gaps: list[tuple[range, range]],
    old: Sequence[str],
    new: Sequence[str],
    counts: _Frequencies,
) -> Iterator[tuple[range, range]]:
    """Yield the gaps with the matched lines around them that might as well be part of them.

    These are lines that also occur in the gap, and lines between two gaps that cannot be told from others.
    """
    limits = [(gap[0].start, gap[1].start) for gap in gaps[1:]]
    merged: tuple[range, range] | None = None
    for (old_gap, new_gap), (_, end) in zip(gaps, [*limits, (len(old), len(new))], strict=True):
        texts = {*(old[at] for at in old_gap), *(new[at] for at in new_gap)}
        before = 0
        floor = merged[1].stop if merged is not None else 0
        while new_gap.start - before > floor and new[new_gap.start - before - 1] in texts:
            before += 1
        after = 0
        while new_gap.stop + after < end and new[new_gap.stop + after] in texts:
            after += 1
        extended = (
            range(old_gap.start - before, old_gap.stop + after),
            range(new_gap.start - before, new_gap.stop + after),
        )
        if merged is not None and not any(
            counts.is_distinctive(new[at]) for at in range(merged[1].stop, extended[1].start)
        ):
            extended = range(merged[0].start, extended[0].stop), range(merged[1].start, extended[1].stop)
        elif merged is not None:
            yield merged
        merged = extended
    if merged is not None:
        yield merged


def _mark_ambiguous(
    old: Sequence[str],
    new: Sequence[str],
    old_range: range,
    new_range: range,
    counts: _Frequencies,
    sources: list[tuple[int, ...]],
    may_be_new: list[bool],
) -> None:
    """Note every possible source of the lines in a gap that are not distinctive."""
    candidates: dict[str, list[int]] = {}
    for at in old_range:
        candidates.setdefault(old[at], []).append(at)
    inserted = Counter(new[position] for position in new_range)
    has_insertions = any(not sources[position] for position in new_range)
    for position in new_range:
        line = new[position]
        if line in candidates and not counts.is_distinctive(line):
            may_be_new[position] = has_insertions
            sources[position] = tuple(candidates[line])
            if inserted[line] > len(candidates[line]):
                may_be_new[position] = True


def _find_moves(
    old: Sequence[str],
    new: Sequence[str],
    counts: _Frequencies,
    sources: list[tuple[int, ...]],
    may_be_new: list[bool],
) -> None:
    """Match distinctive lines that are elsewhere in the other version, with the lines around them."""
    kept = {source[0] for source, new_line in zip(sources, may_be_new, strict=True) if source and not new_line}
    inserted = [position for position, source in enumerate(sources) if not source]
    distinctive = {new[position] for position in inserted if counts.is_distinctive(new[position])}
    if not distinctive:
        return
    old_at = {line: at for at, line in enumerate(old) if line in distinctive}
    for position in inserted:
        at = old_at.get(new[position])
        if at is None or at in kept:
            continue
        sources[position], may_be_new[position] = (at,), False
        for step in (1, -1):
            near, to = at + step, position + step
            while (
                0 <= near < len(old)
                and 0 <= to < len(new)
                and near not in kept
                and old[near] == new[to]
                and may_be_new[to]
            ):
                sources[to], may_be_new[to] = (near,), False
                near, to = near + step, to + step
