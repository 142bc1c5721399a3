"""Group sightings of the same message into API calls and decide which copy counts.

A message can appear in many transcripts: streaming writes a row several times, forks and old resumes copy the
history, and a parent's transcript repeats the messages of its agents. Every call must be counted once, so the
sightings of all transcripts are collected before anything is grouped by session, day or model.

- Sightings of one key are one call if they share a row's uuid or agree on what was sent. Otherwise they are
several calls that happen to share an id.
- Rows whose counters are all zero belong to whatever call the key has.
- Ids that are only a time or a number collide between parallel agents. They identify a call only within one agent
of one session, unless a uuid proves more.
- What a parent's transcript repeats of an agent counts only if no other row with that id does.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from sys import intern

from msgspec import Struct

from threadline.model.homes import Transcript
from threadline.model.side_agents import side_agent_kind_by_id
from threadline.model.sightings import Origin, Sighting, TranscriptSightings
from threadline.model.times import parse_timestamp

_MIN_UNIQUE_LENGTH = 16
_MIN_DISTINCT_CHARACTERS = 8
_ID_PREFIX = re.compile(r"^[A-Za-z]{1,12}[_-](?:(?:bdrk|vrtx)_)?")
_TIME_PREFIX = re.compile(r"^20\d{12}(?:\d{3})?")
_NOTHING_SENT = (0, 0, 0)


class ApiCall(Struct, frozen=True, gc=False):
    """One call to the API: the sighting that tells it best, the one that owns it, and all of them."""

    counted: Sighting
    owner: Sighting
    sightings: tuple[Sighting, ...]


def resolve_calls(several: Mapping[str, list[Sighting]], alone: Iterable[Sighting] = ()) -> dict[str, list[ApiCall]]:
    """The calls that the sightings of each key tell of, each once. `alone` are all sightings of keys that have one."""
    parts = {key: group_by_call(key, group) for key, group in several.items()}
    own = (one for group in several.values() if len({one.origin.transcript for one in group}) == 1 for one in group)
    spread = _CollectedEvidence([part for some in parts.values() for part in some], chain(alone, own))
    return {key: [resolve_owner(part, spread) for part in some] for key, some in parts.items()}


def group_by_call(key: str, group: list[Sighting]) -> list[list[Sighting]]:
    """The sightings of one key, parted into calls."""
    return list(_group_with_repeats(group, random=is_unique_id(key)))


def resolve_owner(part: list[Sighting], spread: CopyEvidence) -> ApiCall:
    """The call that some sightings tell of."""
    return ApiCall(spread.first(most_complete(part)), spread.first(part), tuple(part))


def most_complete(part: list[Sighting]) -> list[Sighting]:
    """The sightings of a call of which none tells more."""
    worth = list(map(_completeness, part))
    most = max(worth)
    return [one for one, told in zip(part, worth, strict=True) if told == most]


class CopyEvidence(ABC):
    """Tells originals from copies that bear the same times, as those of a fork do.

    Of transcripts that share messages, the original has rows of its own among them (titles, bookkeeping), while a copy
    has the shared ones in one run: in the original they are spread further. And a copy goes on later than its original
    stood when it was copied: what is the original's own begins first, if it went on at all.
    """

    @abstractmethod
    def ends(self, shared: frozenset[str], transcript: str) -> tuple[int, int]:
        """The first and last offset of what exactly these transcripts share, in one of them."""

    @abstractmethod
    def own(self, transcript: str) -> str:
        """When what only this transcript tells began; empty where there is nothing."""

    def first(self, part: list[Sighting]) -> Sighting:
        """The earliest original."""
        found = earliest(part)
        if len(found) == 1:
            return found[0]
        shared = transcripts_of(found)
        ends = [self.ends(shared, sighting.origin.transcript) for sighting in found]
        widest = max(last - first for first, last in ends)
        left = [one for one, (first, last) in zip(found, ends, strict=True) if last - first == widest]
        return min(left, key=self._order) if len(left) > 1 else left[0]

    def _order(self, sighting: Sighting) -> tuple[object, ...]:
        transcript = sighting.origin.transcript
        return self.own(transcript), sighting.origin.rank, transcript, sighting.offsets[0]


class _CollectedEvidence(CopyEvidence):
    """The same, of all that was read."""

    def __init__(self, parts: list[list[Sighting]], own: Iterable[Sighting]) -> None:
        self._ends: dict[tuple[frozenset[str], str], tuple[int, int]] = {}
        self._wanted = {one.origin.transcript for part in parts for one in part}
        self._told = own
        for part in parts:
            found = earliest(part)
            shared = transcripts_of(found)
            if len(shared) > 1:
                for sighting in found:
                    self._widen((shared, sighting.origin.transcript), sighting.offsets[0])

    def _widen(self, key: tuple[frozenset[str], str], offset: int) -> None:
        first, last = self._ends.get(key, (offset, offset))
        self._ends[key] = min(first, offset), max(last, offset)

    def ends(self, shared: frozenset[str], transcript: str) -> tuple[int, int]:
        return self._ends.get((shared, transcript), (0, 0))

    def own(self, transcript: str) -> str:
        return self._own.get(transcript, "")

    @cached_property
    def _own(self) -> dict[str, str]:
        """Asked for only where the spread does not tell, which is seldom."""
        began: dict[str, str] = {}
        for one in self._told:
            transcript = one.origin.transcript
            if transcript in self._wanted:
                began[transcript] = min(began.get(transcript, one.time), one.time)
        return began


def transcripts_of(some: Iterable[Sighting]) -> frozenset[str]:
    """The transcripts that tell of a message."""
    return frozenset(sighting.origin.transcript for sighting in some)


def earliest(part: list[Sighting]) -> list[Sighting]:
    """The sightings of which none is plainly later, or more of a copy, than another."""
    before = min(map(_precedence, part))
    return [sighting for sighting in part if _precedence(sighting) == before]


def _completeness(sighting: Sighting) -> tuple[object, ...]:
    """Which sighting tells most; of those that tell as much, the earliest original counts."""
    return (
        not sighting.repeated,
        sighting.output,
        sighting.prompt_tokens,
        sighting.stopped,
        not sighting.origin.is_agent,
        sighting.tie_break_key,
        sighting.sent,
    )


def _precedence(sighting: Sighting) -> tuple[object, ...]:
    """Which sighting is the earliest original, as far as a sighting itself can tell."""
    origin = sighting.origin
    return sighting.repeated, origin.forked, origin.side, origin.began, sighting.time


def _stable_order(sighting: Sighting) -> tuple[object, ...]:
    """The same, and then some order that does not depend on which file was read first."""
    return *_precedence(sighting), sighting.offsets[0], sighting.origin.transcript


def _group_with_repeats(group: list[Sighting], *, random: bool) -> Iterator[list[Sighting]]:
    """Sightings of one key, parted into calls. What a parent repeats of an agent is a call where nothing else is."""
    own = [sighting for sighting in group if not sighting.repeated]
    if not own or len(own) == len(group):
        yield from _split_by_content(group, random=random)
        return
    parts = list(_split_by_content(own, random=random))
    near = RepeatMatcher(parts, _global_scope if random else _agent_scope)
    left = [sighting for sighting in group if sighting.repeated and not near.add_repeat(sighting)]
    yield from parts
    if left:
        yield from _split_by_content(left, random=random)


def _split_by_content(group: list[Sighting], *, random: bool) -> Iterator[list[Sighting]]:
    """Sightings of one key, parted by uuids and by what was sent."""
    if random and len({sighting.sent for sighting in group if any(sighting.sent)}) <= 1:
        yield group
        return
    parts = UnionFind(len(group))
    scope = _global_scope if random else _agent_scope
    known: dict[object, int] = {}
    for at, sighting in enumerate(group):
        if any(sighting.sent):
            parts.join(known.setdefault((scope(sighting), sighting.sent), at), at)
        for uuid in sighting.uuids:
            if uuid:
                parts.join(known.setdefault(uuid, at), at)
    _assign_empty_rows(group, parts, scope)
    yield from parts.lists(group)


def _assign_empty_rows(group: list[Sighting], parts: UnionFind, scope: Callable[[Sighting], object]) -> None:
    """Rows with nothing but zeros belong to a call that the same agent made under the id, if there is one."""
    order = sorted(range(len(group)), key=lambda at: _stable_order(group[at]))
    full = {parts.root(at) for at in order if any(group[at].sent)}
    homes: dict[object, int] = {}
    empty: dict[int, list[int]] = {}
    for at in order:
        if parts.root(at) in full:
            homes.setdefault(scope(group[at]), at)
        else:
            empty.setdefault(parts.root(at), []).append(at)
    for members in empty.values():
        # One home for all of them: copies that lie in several sessions must not tie their calls together.
        scopes = [scope(group[at]) for at in members]
        home = next((homes[one] for one in scopes if one in homes), members[0])
        parts.join(home, members[0])
        for one in scopes:
            homes.setdefault(one, home)


def _agent_scope(sighting: Sighting) -> object:
    origin = sighting.origin
    return origin.session, origin.agent


def _global_scope(sighting: Sighting) -> object:
    del sighting
    return None


class RepeatMatcher:
    """The calls of one id, by what they can be known by: their scope and the uuids of their rows."""

    def __init__(self, parts: list[list[Sighting]], scope: Callable[[Sighting], object]) -> None:
        self._scope = scope
        # By what was sent as well, and by None for anything: of those that are known by the same, the earliest.
        self._first: dict[tuple[object, object], tuple[tuple[object, ...], list[Sighting]]] = {}
        for part in parts:
            for one in part:
                self._add(one, part)

    def add_repeat(self, repeated: Sighting) -> bool:
        """Lay a repeated sighting to the call that it repeats: the one that agrees best with it, if any has its id."""
        for sent in (repeated.sent, None):
            near = [found for mark in self._marks(repeated) if (found := self._first.get((mark, sent))) is not None]
            if near:
                _, part = min(near, key=itemgetter(0))
                part.append(repeated)
                self._add(repeated, part)
                return True
        return False

    def _add(self, sighting: Sighting, part: list[Sighting]) -> None:
        order = _stable_order(sighting)
        for mark in self._marks(sighting):
            for sent in (sighting.sent, None):
                held = self._first.get((mark, sent))
                if held is None or order < held[0]:
                    self._first[mark, sent] = order, part

    def _marks(self, sighting: Sighting) -> list[object]:
        return [self._scope(sighting), *filter(None, sighting.uuids)]


class UnionFind:
    """Numbers that are joined step by step into parts."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def root(self, at: int) -> int:
        """Return the representative of a number's part."""
        while self._above[at] != at:
            self._above[at] = self._above[self._above[at]]
            at = self._above[at]
        return at

    def join(self, left: int, right: int) -> None:
        """Merge the parts of two numbers."""
        first, second = sorted((self.root(left), self.root(right)))
        self._above[second] = first

    def lists(self, group: list[Sighting]) -> Iterator[list[Sighting]]:
        """Yield the sightings of each part."""
        made: dict[int, list[Sighting]] = {}
        for at, sighting in enumerate(group):
            made.setdefault(self.root(at), []).append(sighting)
        yield from made.values()


@lru_cache(maxsize=1024)
def is_unique_id(key: str) -> bool:
    """Whether an id is random enough that no two messages share it by chance; times, counters and words are not.

    >>> is_unique_id("msg_01XFDUDYJgAACzvnptvVoYEL"), is_unique_id("msg_20251030084941"), is_unique_id("msg_1")
    (True, False, False)
    """
    told = _ID_PREFIX.sub("", key).replace("-", "").replace("_", "")
    told = _TIME_PREFIX.sub("", told)
    has_both = any(map(str.isdigit, told)) and any(map(str.isalpha, told))
    return has_both and len(told) >= _MIN_UNIQUE_LENGTH and len(set(told)) >= _MIN_DISTINCT_CHARACTERS


def with_origin(
    seen: TranscriptSightings, transcript: Transcript, project: str, lines: Callable[[int], int], rank: int = 0
) -> list[Sighting]:
    """The sightings of a transcript, each with its origin. `lines` numbers the line that begins at an offset."""
    path, home = os.fspath(transcript.path), os.fspath(transcript.home.path)
    began = seen.began or timestamp_from_mtime(transcript.mtime_ns)
    for origin in seen.origins:
        origin.lines, origin.rank = lines, rank
        origin.transcript, origin.project, origin.home, origin.began = path, project, home, began
        origin.side = _is_side_agent(origin)
    origins = seen.origins
    for sighting in seen.sightings:
        sighting.origin = origins[sighting.origin_number]
        if sighting.model is not None:
            sighting.model = intern(sighting.model)
        if not sighting.time:
            sighting.time = began
    return seen.sightings


def timestamp_from_mtime(mtime_ns: int) -> str:
    """When the file was written, for rows that say no time; file systems may say times that there are not."""
    moment = parse_timestamp(mtime_ns // 1_000_000)
    return (moment or datetime.min.replace(tzinfo=UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_side_agent(origin: Origin) -> bool:
    return origin.agent is not None and side_agent_kind_by_id(origin.agent) is not None
