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
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

_MIN_LETTERS = 5
# Lines with fewer letters are too common to be recognised elsewhere in the file, or in another form.
_MIN_MOVED_LETTERS = 8
# A limit for hostile input: how often a line may be looked at, on average.
_MAX_VISITS = 60


class Alignment(Struct):
    """Where each line of the new version may come from.

    `sources` are the old lines that it may be; a line that is certainly kept or moved has one. Lines with the same
    sources share a tuple. `may_be_new` says whether it may have been inserted. `gaps` are the ranges of old and new
    lines without a match, in order.
    """

    sources: list[tuple[int, ...]]
    may_be_new: list[bool]
    gaps: list[tuple[range, range]]


def align(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match the lines of two versions."""
    match, crossing = _match_lines(old, new)
    gaps = list(_gaps(match, len(old)))
    alignment = Alignment([(at,) if at >= 0 else () for at in match], [at < 0 for at in match], gaps)
    if gaps:
        doubts = _Doubts(old, new, alignment)
        for old_range, new_range in doubts.extend_gaps():
            doubts.mark_ambiguous(old_range, new_range)
        doubts.find_moves()
        for at, position in crossing:
            if not alignment.sources[position]:
                alignment.sources[position] = (at,)
    return alignment


def is_trivial(line: str) -> bool:
    """Whether a line has too little text to be recognised, such as a blank line or a brace."""
    return _has_fewer_letters(line, _MIN_LETTERS)


def is_recognizable(line: str) -> bool:
    """Whether a line has enough text to be recognised elsewhere, or in another form."""
    return not _has_fewer_letters(line, _MIN_MOVED_LETTERS)


@lru_cache(1 << 17)
def squeeze(line: str) -> str:
    """A line without spaces."""
    return "".join(line.split())


def _has_fewer_letters(line: str, number: int) -> bool:
    letters = 0
    for character in line:
        letters += character.isalnum()
        if letters >= number:
            return False
    return True


def _match_lines(old: Sequence[str], new: Sequence[str]) -> tuple[list[int], list[tuple[int, int]]]:
    """Return for each new line the old line that it is, or -1, and the matches that would cross these."""
    match = [-1] * len(new)
    crossing: list[tuple[int, int]] = []
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
        pairs = _unique_matches(_unique_lines(old, low, high), _unique_lines(new, start, end))
        anchors = _longest_ascending(pairs)
        if len(anchors) < len(pairs):
            crossing += set(pairs).difference(anchors)
        for at, position in anchors:
            match[position] = at
        bounds = [(low - 1, start - 1), *anchors, (high, end)]
        for (at, position), (next_at, next_position) in pairwise(bounds):
            if anchors and next_at - at > 1 and next_position - position > 1:
                regions.append((at + 1, next_at, position + 1, next_position))
    return match, crossing


def _unique_matches(old: dict[str, int], new: dict[str, int]) -> list[tuple[int, int]]:
    """Return the positions of the lines that occur once in both regions."""
    return sorted(((old[line], at) for line, at in new.items() if line in old), key=lambda pair: pair[1])


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


class _Region(Struct):
    """A range of old and of new lines, with their texts without spaces."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    texts: set[str]


class _Doubts:
    """Finds the lines of an alignment that may have another source."""

    def __init__(self, old: Sequence[str], new: Sequence[str], alignment: Alignment) -> None:
        self._old, self._new = old, new
        self._alignment = alignment
        self._old_forms, self._new_forms = list(map(squeeze, old)), list(map(squeeze, new))
        self._old_counts, self._new_counts = Counter(self._old_forms), Counter(self._new_forms)

    def _is_distinctive(self, position: int) -> bool:
        """Whether a new line occurs once in both versions, whatever its indentation, and can be recognised."""
        form = self._new_forms[position]
        return self._old_counts[form] == 1 and self._new_counts[form] == 1 and not is_trivial(form)

    def extend_gaps(self) -> Iterator[tuple[range, range]]:
        """Yield the gaps with the matched lines around them that might as well be part of them.

        These are lines that also occur in the gap, and lines between two gaps that cannot be told from others.
        """
        gaps = self._alignment.gaps
        ends = [*(gap[1].start for gap in gaps[1:]), len(self._new)]
        regions: list[_Region] = []
        for (old_gap, new_gap), end in zip(gaps, ends, strict=True):
            texts = {*(self._old_forms[at] for at in old_gap), *(self._new_forms[at] for at in new_gap)}
            region = _Region(old_gap.start, old_gap.stop, new_gap.start, new_gap.stop, texts)
            self._extend(region, regions[-1].new_end if regions else 0, end)
            while regions and not any(self._is_distinctive(at) for at in range(regions[-1].new_end, region.new_start)):
                region = self._join(regions.pop(), region)
                self._extend(region, regions[-1].new_end if regions else 0, end)
            regions.append(region)
        for region in regions:
            yield range(region.old_start, region.old_end), range(region.new_start, region.new_end)

    def _extend(self, region: _Region, floor: int, end: int) -> None:
        """Add the lines before and after a region that also occur in it, from `floor` to `end`."""
        while region.new_start > floor and self._new_forms[region.new_start - 1] in region.texts:
            region.new_start -= 1
            region.old_start -= 1
        while region.new_end < end and self._new_forms[region.new_end] in region.texts:
            region.new_end += 1
            region.old_end += 1

    def _join(self, first: _Region, second: _Region) -> _Region:
        """Join two regions, with the lines between them."""
        larger, smaller = sorted((first.texts, second.texts), key=len, reverse=True)
        larger |= smaller
        larger.update(self._new_forms[at] for at in range(first.new_end, second.new_start))
        return _Region(first.old_start, second.old_end, first.new_start, second.new_end, larger)

    def mark_ambiguous(self, old_range: range, new_range: range) -> None:
        """Note every possible source of the lines in a gap that are not distinctive, whatever their indentation."""
        sources, may_be_new = self._alignment.sources, self._alignment.may_be_new
        texts = {self._old[at] for at in old_range}
        positions: dict[str, list[int]] = {}
        for at in old_range:
            positions.setdefault(self._old_forms[at], []).append(at)
        candidates = {form: tuple(numbers) for form, numbers in positions.items()}
        counts = Counter(self._new_forms[position] for position in new_range)
        # A line that is only indented is not inserted.
        has_insertions = any(not sources[at] and self._new_forms[at] not in candidates for at in new_range)
        for position in new_range:
            form = self._new_forms[position]
            if self._new[position] in texts and not self._is_distinctive(position):
                sources[position] = candidates[form]
                may_be_new[position] = has_insertions or counts[form] > len(candidates[form])

    def find_moves(self) -> None:
        """Match distinctive lines that are elsewhere in the other version, with the lines around them.

        Short ones may as well be new.
        """
        old, new = self._old, self._new
        sources, may_be_new = self._alignment.sources, self._alignment.may_be_new
        inserted = [position for position, source in enumerate(sources) if not source]
        distinctive = {new[position] for position in inserted if self._is_distinctive(position)}
        if not distinctive:
            return
        removed = [at for gap, _ in self._alignment.gaps for at in gap]
        old_counts = Counter(self._old_forms[at] for at in removed)
        new_counts = Counter(self._new_forms[at] for at in inserted)
        old_at = {old[at]: at for at in removed if old[at] in distinctive}
        is_removed = set(removed)
        for position in inserted:
            at = old_at.get(new[position])
            if at is None:
                continue
            sources[position], may_be_new[position] = (at,), not is_recognizable(new[position])
            for step in (1, -1) if is_recognizable(new[position]) else ():
                near, to = at + step, position + step
                while near in is_removed and 0 <= to < len(new) and old[near] == new[to] and not sources[to]:
                    form = self._new_forms[to]
                    if old_counts[form] != 1 or new_counts[form] != 1:
                        break
                    sources[to], may_be_new[to] = (near,), False
                    near, to = near + step, to + step
