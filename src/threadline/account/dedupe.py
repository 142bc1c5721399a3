"""Group sightings of the same message into API calls and decide which copy counts.

A message can appear in many transcripts: streaming writes a row several times, forks and old resumes copy the
history, and a parent's transcript repeats the messages of its agents. Every call must be counted once, so the
sightings of all transcripts are collected before anything is grouped by session, day or model.

- Sightings of one key are one call if they share a row's uuid or agree on what was sent. Otherwise they are several
  calls that happen to share an id.
- Rows whose counters are all zero belong to whatever call the key has.
- Ids that are only a time or a number collide between parallel agents. They identify a call only within one agent of
  one session, unless a uuid proves more.
- What a parent's transcript repeats of an agent counts only if no other row with that id does.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from sys import intern

from msgspec import Struct

from threadline.model.homes import Transcript, side_agent_kind_by_id
from threadline.model.times import timestamp_from_mtime
from threadline.model.usage import Sighting, TranscriptSightings
from threadline.union_find import UnionFind

_MIN_UNIQUE_LENGTH = 16
_MIN_DISTINCT_CHARACTERS = 8
_ID_PREFIX = re.compile(r"^[A-Za-z]{1,12}[_-](?:(?:bdrk|vrtx)_)?")
_TIME_PREFIX = re.compile(r"^20\d{12}(?:\d{3})?")


class ApiCall(Struct, frozen=True, gc=False):
    """One call to the API: the sighting whose counts are taken, the one that owns it, and all of them."""

    counted: Sighting
    owner: Sighting
    sightings: tuple[Sighting, ...]


def resolve_calls(shared: Mapping[str, list[Sighting]], single: Iterable[Sighting] = ()) -> dict[str, list[ApiCall]]:
    """Return the API calls behind the sightings of each key.

    `shared` are the sightings of keys that have several, `single` the sightings of all other keys.
    """
    calls = {key: group_by_call(key, sightings) for key, sightings in shared.items()}
    unshared = (
        sighting
        for sightings in shared.values()
        if len({sighting.origin.transcript for sighting in sightings}) == 1
        for sighting in sightings
    )
    evidence = _CollectedEvidence([call for groups in calls.values() for call in groups], chain(single, unshared))
    return {key: [resolve_owner(call, evidence) for call in groups] for key, groups in calls.items()}


def group_by_call(key: str, sightings: list[Sighting]) -> list[list[Sighting]]:
    """Group the sightings of one key into API calls.

    A parent's transcript may repeat an agent's messages. A repeat joins the call it repeats; it forms a call of its own
    only if no transcript has the original.
    """
    unique_id = is_unique_id(key)
    originals = [sighting for sighting in sightings if not sighting.is_repeat]
    if not originals or len(originals) == len(sightings):
        return list(_split_by_content(sightings, unique_id=unique_id))
    calls = list(_split_by_content(originals, unique_id=unique_id))
    matcher = RepeatMatcher(calls, _global_scope if unique_id else _agent_scope)
    unmatched = [sighting for sighting in sightings if sighting.is_repeat and not matcher.add_repeat(sighting)]
    return [*calls, *(_split_by_content(unmatched, unique_id=unique_id) if unmatched else ())]


def resolve_owner(sightings: list[Sighting], evidence: CopyEvidence) -> ApiCall:
    """Return the API call of these sightings, owned by the earliest original."""
    return ApiCall(evidence.original(most_complete(sightings)), evidence.original(sightings), tuple(sightings))


def most_complete(sightings: list[Sighting]) -> list[Sighting]:
    """Return the sightings of a call that are at least as complete as all others."""
    keys = list(map(_completeness, sightings))
    best = max(keys)
    return [sighting for sighting, key in zip(sightings, keys, strict=True) if key == best]


class CopyEvidence(ABC):
    """Distinguishes originals from copies with the same times, such as a fork's.

    Of transcripts that share messages, the original has rows of its own among them (titles, bookkeeping), while a copy
    has the shared ones in one run: in the original they span more bytes. And a copy continues later than its original
    was when it was copied: the rows that only the original has begin first, if it continued at all.
    """

    @abstractmethod
    def offset_range(self, shared: frozenset[str], transcript: str) -> tuple[int, int]:
        """Return the first and last offset, in one transcript, of what exactly these transcripts share."""

    @abstractmethod
    def own_start(self, transcript: str) -> str:
        """Return when the rows that only this transcript has begin; empty if there are none."""

    def original(self, sightings: list[Sighting]) -> Sighting:
        """Return the earliest original."""
        first = earliest(sightings)
        if len(first) == 1:
            return first[0]
        shared = transcripts_of(first)
        ranges = [self.offset_range(shared, sighting.origin.transcript) for sighting in first]
        widest = max(end - start for start, end in ranges)
        candidates = [sighting for sighting, (start, end) in zip(first, ranges, strict=True) if end - start == widest]
        return min(candidates, key=self._order) if len(candidates) > 1 else candidates[0]

    def _order(self, sighting: Sighting) -> tuple[object, ...]:
        transcript = sighting.origin.transcript
        return self.own_start(transcript), sighting.origin.rank, transcript, sighting.offsets[0]


class _CollectedEvidence(CopyEvidence):
    """Evidence from sightings in memory: `calls` that several transcripts share, and each transcript's own rows."""

    def __init__(self, calls: list[list[Sighting]], own: Iterable[Sighting]) -> None:
        self._ranges: dict[tuple[frozenset[str], str], tuple[int, int]] = {}
        self._transcripts = {sighting.origin.transcript for call in calls for sighting in call}
        self._own_sightings = own
        for call in calls:
            first = earliest(call)
            shared = transcripts_of(first)
            if len(shared) > 1:
                for sighting in first:
                    self._widen((shared, sighting.origin.transcript), sighting.offsets[0])

    def _widen(self, key: tuple[frozenset[str], str], offset: int) -> None:
        start, end = self._ranges.get(key, (offset, offset))
        self._ranges[key] = min(start, offset), max(end, offset)

    def offset_range(self, shared: frozenset[str], transcript: str) -> tuple[int, int]:
        return self._ranges.get((shared, transcript), (0, 0))

    def own_start(self, transcript: str) -> str:
        return self._own_starts.get(transcript, "")

    @cached_property
    def _own_starts(self) -> dict[str, str]:
        """Computed only if the offsets do not decide, which is rare."""
        starts: dict[str, str] = {}
        for sighting in self._own_sightings:
            transcript = sighting.origin.transcript
            if transcript in self._transcripts:
                starts[transcript] = min(starts.get(transcript, sighting.time), sighting.time)
        return starts


def transcripts_of(sightings: Iterable[Sighting]) -> frozenset[str]:
    """Return the transcripts that contain these sightings."""
    return frozenset(sighting.origin.transcript for sighting in sightings)


def earliest(sightings: list[Sighting]) -> list[Sighting]:
    """Return the sightings that no other one precedes: none is earlier, or less of a copy."""
    first = min(map(_precedence, sightings))
    return [sighting for sighting in sightings if _precedence(sighting) == first]


def _completeness(sighting: Sighting) -> tuple[object, ...]:
    """Sort key: the greatest says most about the call. Of several that say as much, the earliest original counts."""
    return (
        not sighting.is_repeat,
        sighting.output,
        sighting.prompt_tokens,
        sighting.stopped,
        not sighting.origin.is_agent,
        sighting.tie_break_key,
        sighting.sent,
    )


def _precedence(sighting: Sighting) -> tuple[object, ...]:
    """Sort key: the least is the earliest original, judging by the sighting alone.

    An agent that was forked begins with copies of the main thread's rows, and so at the same time.
    """
    origin = sighting.origin
    return sighting.is_repeat, origin.forked, origin.side, origin.began, sighting.time, origin.agent is not None


def _stable_order(sighting: Sighting) -> tuple[object, ...]:
    """Sort key: precedence, then an order that does not depend on which file was read first."""
    return *_precedence(sighting), sighting.offsets[0], sighting.origin.transcript


def _split_by_content(sightings: list[Sighting], *, unique_id: bool) -> Iterator[list[Sighting]]:
    """Split the sightings of one key by the uuids of their rows and by what was sent."""
    if unique_id and len({sighting.sent for sighting in sightings if any(sighting.sent)}) <= 1:
        yield sightings
        return
    calls = UnionFind(len(sightings))
    scope = _global_scope if unique_id else _agent_scope
    first_with: dict[object, int] = {}
    for number, sighting in enumerate(sightings):
        if any(sighting.sent):
            calls.union(first_with.setdefault((scope(sighting), sighting.sent), number), number)
        for uuid in sighting.uuids:
            if uuid:
                calls.union(first_with.setdefault(uuid, number), number)
    _assign_empty_rows(sightings, calls, scope)
    yield from calls.groups(sightings)


def _assign_empty_rows(sightings: list[Sighting], calls: UnionFind, scope: Callable[[Sighting], object]) -> None:
    """Assign rows with nothing but zeros to a call that the same agent made under the id, if there is one."""
    order = sorted(range(len(sightings)), key=lambda number: _stable_order(sightings[number]))
    full = {calls.find(number) for number in order if any(sightings[number].sent)}
    call_in_scope: dict[object, int] = {}
    empty: dict[int, list[int]] = {}
    for number in order:
        if calls.find(number) in full:
            call_in_scope.setdefault(scope(sightings[number]), number)
        else:
            empty.setdefault(calls.find(number), []).append(number)
    for members in empty.values():
        # One call for all of them: copies in several sessions must not tie their calls together.
        scopes = [scope(sightings[number]) for number in members]
        call = next((call_in_scope[each] for each in scopes if each in call_in_scope), members[0])
        calls.union(call, members[0])
        for each in scopes:
            call_in_scope.setdefault(each, call)


def _agent_scope(sighting: Sighting) -> object:
    origin = sighting.origin
    return origin.session, origin.agent


def _global_scope(sighting: Sighting) -> object:
    del sighting
    return None


class RepeatMatcher:
    """Finds the call that a repeat belongs to, by its scope and the uuids of its rows."""

    def __init__(self, calls: list[list[Sighting]], scope: Callable[[Sighting], object]) -> None:
        self._scope = scope
        # The earliest call by mark and what was sent, and by mark only (None).
        self._earliest: dict[tuple[object, object], tuple[tuple[object, ...], list[Sighting]]] = {}
        for call in calls:
            for sighting in call:
                self._add(sighting, call)

    def add_repeat(self, repeat: Sighting) -> bool:
        """Add a repeat to the call it agrees with best; return False if there is none."""
        for sent in (repeat.sent, None):
            matches = [match for mark in self._marks(repeat) if (match := self._earliest.get((mark, sent))) is not None]
            if matches:
                _, call = min(matches, key=itemgetter(0))
                call.append(repeat)
                self._add(repeat, call)
                return True
        return False

    def _add(self, sighting: Sighting, call: list[Sighting]) -> None:
        order = _stable_order(sighting)
        for mark in self._marks(sighting):
            for sent in (sighting.sent, None):
                match = self._earliest.get((mark, sent))
                if match is None or order < match[0]:
                    self._earliest[mark, sent] = order, call

    def _marks(self, sighting: Sighting) -> list[object]:
        return [self._scope(sighting), *filter(None, sighting.uuids)]


@lru_cache(maxsize=1024)
def is_unique_id(key: str) -> bool:
    """Whether an id is random enough that no two messages share it by chance. Times, counters and words are not.

    >>> is_unique_id("msg_01XFDUDYJgAACzvnptvVoYEL"), is_unique_id("msg_20251030084941"), is_unique_id("msg_1")
    (True, False, False)
    """
    text = _ID_PREFIX.sub("", key).replace("-", "").replace("_", "")
    text = _TIME_PREFIX.sub("", text)
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return has_both and len(text) >= _MIN_UNIQUE_LENGTH and len(set(text)) >= _MIN_DISTINCT_CHARACTERS


def with_origin(
    read: TranscriptSightings, transcript: Transcript, project: str, lines: Callable[[int], int], rank: int = 0
) -> list[Sighting]:
    """Return the sightings of a transcript with their origins completed.

    `lines` returns the number of the line that begins at an offset.
    """
    path, home = os.fspath(transcript.path), os.fspath(transcript.home.path)
    home_name, machine = transcript.home.name, transcript.home.machine
    began = read.began or timestamp_from_mtime(transcript.mtime_ns)
    for origin in read.origins:
        origin.lines, origin.rank = lines, rank
        origin.transcript, origin.project, origin.home, origin.began = path, project, home, began
        origin.home_name, origin.machine = home_name, machine
        origin.side = origin.agent is not None and side_agent_kind_by_id(origin.agent) is not None
    origins = read.origins
    for sighting in read.sightings:
        sighting.origin = origins[sighting.origin_number]
        if sighting.model is not None:
            sighting.model = intern(sighting.model)
        if not sighting.time:
            sighting.time = began
    return read.sightings
