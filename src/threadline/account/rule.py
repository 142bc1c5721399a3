"""The rule: from sightings in all transcripts to calls, each counted once.

Global before any grouping. Sightings of one key are one call where they share a row's uuid or agree on what was sent;
otherwise they are several under one id. Rows whose counters are all zero belong to whatever call the key has. Ids that
are no more than a time or a number collide between parallel agents, so those hold within one agent of one session only,
unless a uuid proves more. What a parent's transcript repeats of an agent's counts only where no row of that id does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
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


def calls(key: str, group: list[Sighting]) -> Iterator[Call]:
    """The calls that the sightings of one key tell of, each once."""
    for part in _same_call(group, random=is_random(key)):
        yield _call(part)


def _call(group: list[Sighting]) -> Call:
    worth = list(map(_worth, group))
    most = max(worth)
    best = [one for one, told in zip(group, worth, strict=True) if told == most]
    return Call(min(best, key=_precedence), min(group, key=_precedence), tuple(group))


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
    """Which sighting is the earliest original."""
    origin = one.origin
    return one.repeated, origin.forked, origin.side, origin.began, one.time, one.offsets[0], origin.transcript


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
    order = sorted(range(len(group)), key=lambda at: _precedence(group[at]))
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
        order = _precedence(one)
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
