"""The rule: from sightings in all transcripts to calls, each counted once.

Global before any grouping. Sightings of one key are one call where they share a row's uuid or agree on what was sent;
otherwise they are several under one id. Rows whose counters are all zero belong to whatever call the key has. Ids that
are no more than a time or a number collide between parallel agents, so those hold within one agent of one session only,
unless a uuid proves more. What a parent's transcript repeats of an agent's counts only where no row of that id does.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter

from msgspec import Struct

from threadline.model.sighting import Sighting

_RANDOM = 16
_DISTINCT = 8
_PREFIX = re.compile(r"^[A-Za-z]{1,12}[_-](?:(?:bdrk|vrtx)_)?")
_TIME = re.compile(r"^20\d{12}(?:\d{3})?")
_NOTHING_SENT = (0, 0, 0)


class Call(Struct, frozen=True, gc=False):
    """One call to the API: the sighting that tells it best, the one that owns it, and all of them."""

    counted: Sighting
    owner: Sighting
    sightings: tuple[Sighting, ...]


def calls(several: Mapping[str, list[Sighting]], alone: Iterable[Sighting] = ()) -> dict[str, list[Call]]:
    """The calls that the sightings of each key tell of, each once. `alone` are all sightings of keys that have one."""
    parts = {key: parted(key, group) for key, group in several.items()}
    own = (one for group in several.values() if len({one.origin.transcript for one in group}) == 1 for one in group)
    spread = _Gathered([part for some in parts.values() for part in some], chain(alone, own))
    return {key: [settled(part, spread) for part in some] for key, some in parts.items()}


def parted(key: str, group: list[Sighting]) -> list[list[Sighting]]:
    """The sightings of one key, parted into calls."""
    return list(_same_call(group, random=is_random(key)))


def settled(part: list[Sighting], spread: Spread) -> Call:
    """The call that some sightings tell of."""
    return Call(spread.first(best(part)), spread.first(part), tuple(part))


def best(part: list[Sighting]) -> list[Sighting]:
    """The sightings of a call of which none tells more."""
    worth = list(map(_worth, part))
    most = max(worth)
    return [one for one, told in zip(part, worth, strict=True) if told == most]


class Spread(ABC):
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
        found = tied(part)
        if len(found) == 1:
            return found[0]
        shared = transcripts(found)
        ends = [self.ends(shared, one.origin.transcript) for one in found]
        widest = max(last - first for first, last in ends)
        left = [one for one, (first, last) in zip(found, ends, strict=True) if last - first == widest]
        return min(left, key=self._order) if len(left) > 1 else left[0]

    def _order(self, one: Sighting) -> tuple[object, ...]:
        transcript = one.origin.transcript
        return self.own(transcript), one.origin.rank, transcript, one.offsets[0]


class _Gathered(Spread):
    """The same, of all that was read."""

    def __init__(self, parts: list[list[Sighting]], own: Iterable[Sighting]) -> None:
        self._ends: dict[tuple[frozenset[str], str], tuple[int, int]] = {}
        self._wanted = {one.origin.transcript for part in parts for one in part}
        self._told = own
        for part in parts:
            found = tied(part)
            shared = transcripts(found)
            if len(shared) > 1:
                for one in found:
                    self._widen((shared, one.origin.transcript), one.offsets[0])

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


def transcripts(some: Iterable[Sighting]) -> frozenset[str]:
    """The transcripts that tell of a message."""
    return frozenset(one.origin.transcript for one in some)


def tied(part: list[Sighting]) -> list[Sighting]:
    """The sightings of which none is plainly later, or more of a copy, than another."""
    before = min(map(_precedence, part))
    return [one for one in part if _precedence(one) == before]


def _worth(one: Sighting) -> tuple[object, ...]:
    """Which sighting tells most; of those that tell as much, the earliest original counts."""
    return (
        not one.repeated,
        one.output,
        one.prompt_tokens,
        one.stopped,
        not one.origin.is_agent,
        one.tie,
        one.sent,
    )


def _precedence(one: Sighting) -> tuple[object, ...]:
    """Which sighting is the earliest original, as far as a sighting itself can tell."""
    origin = one.origin
    return one.repeated, origin.forked, origin.side, origin.began, one.time


def _order(one: Sighting) -> tuple[object, ...]:
    """The same, and then some order that does not depend on which file was read first."""
    return *_precedence(one), one.offsets[0], one.origin.transcript


def _same_call(group: list[Sighting], *, random: bool) -> Iterator[list[Sighting]]:
    """Sightings of one key, parted into calls. What a parent repeats of an agent is a call where nothing else is."""
    own = [one for one in group if not one.repeated]
    if not own or len(own) == len(group):
        yield from _parted(group, random=random)
        return
    parts = list(_parted(own, random=random))
    near = _Near(parts, _anywhere if random else _scope)
    left = [one for one in group if one.repeated and not near.joins(one)]
    yield from parts
    if left:
        yield from _parted(left, random=random)


def _parted(group: list[Sighting], *, random: bool) -> Iterator[list[Sighting]]:
    """Sightings of one key, parted by uuids and by what was sent."""
    if random and len({one.sent for one in group if any(one.sent)}) <= 1:
        yield group
        return
    parts = _Parts(len(group))
    scope = _anywhere if random else _scope
    known: dict[object, int] = {}
    for at, one in enumerate(group):
        if any(one.sent):
            parts.join(known.setdefault((scope(one), one.sent), at), at)
        for uuid in one.uuids:
            if uuid:
                parts.join(known.setdefault(uuid, at), at)
    _place_empty(group, parts, scope)
    yield from parts.lists(group)


def _place_empty(group: list[Sighting], parts: _Parts, scope: Callable[[Sighting], object]) -> None:
    """Rows with nothing but zeros belong to a call that the same agent made under the id, if there is one."""
    order = sorted(range(len(group)), key=lambda at: _order(group[at]))
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


def _scope(one: Sighting) -> object:
    origin = one.origin
    return origin.session, origin.agent


def _anywhere(one: Sighting) -> object:
    del one
    return None


class _Near:
    """The calls of one id, by what they can be known by: their scope and the uuids of their rows."""

    def __init__(self, parts: list[list[Sighting]], scope: Callable[[Sighting], object]) -> None:
        self._scope = scope
        # By what was sent as well, and by None for anything: of those that are known by the same, the earliest.
        self._first: dict[tuple[object, object], tuple[tuple[object, ...], list[Sighting]]] = {}
        for part in parts:
            for one in part:
                self._add(one, part)

    def joins(self, repeated: Sighting) -> bool:
        """Lay a repeated sighting to the call that it repeats: the one that agrees best with it, if any has its id."""
        for sent in (repeated.sent, None):
            near = [found for mark in self._marks(repeated) if (found := self._first.get((mark, sent))) is not None]
            if near:
                _, part = min(near, key=itemgetter(0))
                part.append(repeated)
                self._add(repeated, part)
                return True
        return False

    def _add(self, one: Sighting, part: list[Sighting]) -> None:
        order = _order(one)
        for mark in self._marks(one):
            for sent in (one.sent, None):
                held = self._first.get((mark, sent))
                if held is None or order < held[0]:
                    self._first[mark, sent] = order, part

    def _marks(self, one: Sighting) -> list[object]:
        return [self._scope(one), *filter(None, one.uuids)]


class _Parts:
    """Numbers that are joined step by step into parts."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def root(self, at: int) -> int:
        while self._above[at] != at:
            self._above[at] = self._above[self._above[at]]
            at = self._above[at]
        return at

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.root(one), self.root(other)))
        self._above[second] = first

    def lists(self, group: list[Sighting]) -> Iterator[list[Sighting]]:
        made: dict[int, list[Sighting]] = {}
        for at, one in enumerate(group):
            made.setdefault(self.root(at), []).append(one)
        yield from made.values()


@lru_cache(maxsize=1024)
def is_random(key: str) -> bool:
    """Whether an id is random enough that no two messages share it by chance; times, counters and words are not.

    >>> is_random("msg_01XFDUDYJgAACzvnptvVoYEL"), is_random("msg_20251030084941"), is_random("msg_1")
    (True, False, False)
    """
    told = _PREFIX.sub("", key).replace("-", "").replace("_", "")
    told = _TIME.sub("", told)
    has_both = any(map(str.isdigit, told)) and any(map(str.isalpha, told))
    return has_both and len(told) >= _RANDOM and len(set(told)) >= _DISTINCT
