"""Carry the writers of a file's lines from one version of it to the next.

An origin is a `BlamedLine` without a number and a text: an edit of a session, a commit, or the reason why nobody is
known. There is one object for each edit and each commit, so origins are compared by identity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from msgspec import Struct

from threadline.insight.blame.alignment import Alignment, align, is_recognizable, is_trivial, squeeze
from threadline.model.insight.blame import BlamedLine

Origin = BlamedLine
Origins = list[Origin]


def unknown(reason: str, commit: str | None = None) -> Origin:
    """An origin that is not known."""
    return BlamedLine(0, "", known=False, reason=reason, commit=commit)


BEFORE = unknown("It was there before the first recorded edit.")
OUTSIDE = unknown("It was changed outside the recorded edits.")
AMBIGUOUS = unknown("Several writers are possible: the line occurs more than once.")
PERSON = unknown("A person changed the edit before it was made.")
NEW = unknown("It is not in the version before.")


class Windows:
    """When lines that no recorded edit wrote can have been written: after the first time, up to the second."""

    def __init__(self) -> None:
        self._windows: dict[int, tuple[Origin, float, float]] = {}

    def make_origin(self, template: Origin, after: float, until: float) -> Origin:
        """A copy of an unknown origin, with its window."""
        origin = unknown(template.reason)
        self._windows[id(origin)] = origin, after, until
        return origin

    def get(self, origin: Origin) -> tuple[float, float] | None:
        """The window of an origin."""
        known = self._windows.get(id(origin))
        return known[1:] if known is not None else None


class Version(Struct):
    """A text with the origin of each line."""

    lines: list[str]
    origins: Origins


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines without their ends. Windows line ends and a byte order mark are ignored.

    >>> split_lines("a\r\n\nb")
    ['a', '', 'b']
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def carry(
    before: Version, lines: Sequence[str], inserted: Callable[[str], Origin], *, is_outside: bool = False
) -> Origins:
    """Return the origins of the lines of the next version.

    `inserted` returns the origin of a line that is not in the version before. If the change was made outside the
    recorded edits (`is_outside`), a line of which only the spaces and line breaks changed keeps its origin, and a line
    that was removed elsewhere may have been moved.
    """
    alignment = align(before.lines, lines)
    common: dict[int, Origin] = {}  # many lines may have the same many sources
    origins: Origins = []
    for line, sources, may_be_new in zip(lines, alignment.sources, alignment.may_be_new, strict=True):
        if not sources:
            origins.append(inserted(line))
            continue
        if len(sources) == 1:
            source = before.origins[sources[0]]
        elif id(sources) in common:
            source = common[id(sources)]
        else:
            source = common[id(sources)] = _single([before.origins[at] for at in sources])
        origins.append(_single([source, inserted(line)]) if may_be_new else source)
    if alignment.gaps:
        _doubt_moves(before, lines, alignment, origins, is_outside=is_outside)
    if alignment.gaps and is_outside:
        _follow_format(before, lines, alignment, origins)
    return origins


def _doubt_moves(
    before: Version, lines: Sequence[str], alignment: Alignment, origins: Origins, *, is_outside: bool
) -> None:
    """Make the origins of inserted lines ambiguous if an equal line was removed elsewhere: it may have been moved.

    Lines with enough text are followed when they are moved; if an edit inserts one several times, it wrote it.
    """
    kept = {
        sources[0]
        for sources, may_be_new in zip(alignment.sources, alignment.may_be_new, strict=True)
        if len(sources) == 1 and not may_be_new
    }
    removed = {squeeze(before.lines[at]) for gap, _ in alignment.gaps for at in gap if at not in kept}
    for _, gap in alignment.gaps:
        for position in gap:
            form = squeeze(lines[position])
            if not alignment.sources[position] and form in removed and (is_outside or not is_recognizable(form)):
                origins[position] = AMBIGUOUS


def _single(candidates: list[Origin]) -> Origin:
    """The origin that all candidates have in common."""
    first = candidates[0]
    return first if all(origin is first for origin in candidates) else AMBIGUOUS


def combine(first: Sequence[Origin], second: Sequence[Origin]) -> Origins:
    """Return what two derivations of the same lines agree on. A known origin is preferred to an unknown one."""
    return [_agree(a, b) for a, b in zip(first, second, strict=True)]


def _agree(first: Origin, second: Origin) -> Origin:
    if first.known and second.known:
        return first if first is second else AMBIGUOUS
    if first.known or second.known:
        return first if first.known else second
    return second if first is NEW else first


def restore(lines: Sequence[str], origins: Sequence[Origin], restored: Sequence[Origin]) -> Origins:
    """Return the origins of a text that equals an earlier one, which was either restored or written again.

    It was certainly restored if one of the lines that came back can be recognised.
    """
    is_certain = any(
        then.known and not now.known and is_recognizable(line)
        for line, now, then in zip(lines, origins, restored, strict=True)
    )
    return [_came_back(now, then, is_certain=is_certain) for now, then in zip(origins, restored, strict=True)]


def _came_back(now: Origin, then: Origin, *, is_certain: bool) -> Origin:
    if now is then:
        return now
    if not (now.known or then.known):
        return then if then is AMBIGUOUS else now
    if is_certain and not (now.known and then.known):
        return then
    return AMBIGUOUS


def _follow_format(before: Version, lines: Sequence[str], alignment: Alignment, origins: Origins) -> None:
    """Give lines the origins of old lines from which they differ only in spaces and line breaks."""
    for old_range, new_range in alignment.gaps:
        old, new = [squeeze(before.lines[at]) for at in old_range], [squeeze(lines[at]) for at in new_range]
        if not any(old) or not any(new):
            continue
        sources = _overlaps(old, new) if "".join(old) == "".join(new) else _equal_lines(old, new)
        for at, position in enumerate(new_range):
            if sources[at] and not alignment.sources[position]:
                origins[position] = _single([before.origins[old_range[source]] for source in sources[at]])


def _overlaps(old: list[str], new: list[str]) -> list[list[int]]:
    """Return for each new line the old lines that its characters are from. Both have the same characters."""
    old_ends, new_ends = list(accumulate(map(len, old))), list(accumulate(map(len, new)))
    sources: list[list[int]] = []
    at = 0
    for text, end in zip(new, new_ends, strict=True):
        start = end - len(text)
        while at < len(old) and old_ends[at] <= start:
            at += 1
        last = at
        positions: list[int] = []
        while text and last < len(old) and old_ends[last] - len(old[last]) < end:
            if old[last]:
                positions.append(last)
            last += 1
        sources.append(positions)
    return sources


def _equal_lines(old: list[str], new: list[str]) -> list[list[int]]:
    """Return for each new line the only old line that is equal, if it can be recognised."""
    old_counts, new_counts = Counter(old), Counter(new)
    positions = {text: at for at, text in enumerate(old)}
    return [
        [positions[text]] if old_counts[text] == 1 and new_counts[text] == 1 and is_recognizable(text) else []
        for text in new
    ]


class VersionStore:
    """Origins by text. If the same text had different writers at different times, those lines are ambiguous."""

    def __init__(self) -> None:
        self._origins: dict[tuple[str, ...], Origins] = {}

    def add(self, version: Version) -> None:
        """Remember a version."""
        key = tuple(version.lines)
        known = self._origins.get(key)
        self._origins[key] = (
            version.origins
            if known is None or known is version.origins
            else [
                AMBIGUOUS if before is not now and (before.known or now.known or before is AMBIGUOUS) else now
                for before, now in zip(known, version.origins, strict=True)
            ]
        )

    def get(self, lines: Sequence[str]) -> Origins | None:
        """The origins of an equal text."""
        return self._origins.get(tuple(lines)) if lines else None


class Claim(Struct):
    """Lines that a call wrote to the file, at a time when the complete text was not known. Runs are contiguous."""

    origin: Origin
    runs: list[list[str]]


def apply_claims(lines: Sequence[str], origins: Origins, claims: Iterable[Claim]) -> Origins:
    """Return the origins with the claims for lines that nobody else is known for.

    A run that occurs once is the claim's. Of other runs, only the lines that occur once, and in one claim only.
    """
    pending = [claim for claim in claims if claim.runs]
    if not pending or all(origin.known for origin in origins):
        return origins
    result = list(origins)
    positions: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        positions.setdefault(line, []).append(at)
    claimants: dict[int, set[int]] = {}
    by_id: dict[int, Origin] = {}
    for claim in pending:
        by_id[id(claim.origin)] = claim.origin
        for run in claim.runs:
            for at in _claimed_positions(run, lines, positions):
                claimants.setdefault(at, set()).add(id(claim.origin))
    for at, writers in claimants.items():
        if not origins[at].known and origins[at] is not AMBIGUOUS and len(writers) == 1:
            result[at] = by_id[next(iter(writers))]
    return result


def _claimed_positions(run: list[str], lines: Sequence[str], positions: dict[str, list[int]]) -> Iterable[int]:
    rarest = min(run, key=lambda line: len(positions.get(line, ())))
    offset = run.index(rarest)
    starts = [
        at - offset
        for at in positions.get(rarest, ())
        if at >= offset and list(lines[at - offset : at - offset + len(run)]) == run
    ]
    if len(starts) == 1 and not all(map(is_trivial, run)):
        return range(starts[0], starts[0] + len(run))
    counts = Counter(run)
    return [
        positions[line][0]
        for line in run
        if counts[line] == 1 and len(positions.get(line, ())) == 1 and not is_trivial(line)
    ]
