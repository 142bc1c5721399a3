"""What filled a window: measured sizes of prompts, shared out over what was added between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from threadline.model.context import Category, Filling, Window
from threadline.thread.context.pieces import Piece

Key = tuple[Category, str | None]
_SYSTEM: Key = (Category.SYSTEM, None)
_UNSEEN: Key = (Category.UNSEEN, None)
# An estimate is trusted to be right within a factor of two, and within as much as a short reminder takes.
_MOST, _SLACK = 2, 200
# Less than this is too little to tell how a model counts.
_ENOUGH = 1_000
# What leaves a window without a compaction, in the order in which it is known to: thinking of earlier turns first, then
# old results; only then anything else.
_LEAVING = (Category.THINKING, Category.RESULT, Category.IMAGE)


class Step(Struct, frozen=True):
    """One request on the way to a place: the window it found, and the pieces that came after the request before."""

    window: Window
    pieces: Sequence[Piece]


def scale_of(steps: Sequence[Step]) -> float:
    """How much larger things are than they are estimated to be, by all that was added along the way.

    Models count differently, and the first prompt, where most is not seen, cannot be set right by itself.
    """
    measured = expected = 0
    for before, step in pairwise(steps):
        more, weight = step.window.prompt - before.window.prompt, sum(_weights(step.pieces).values())
        if weight < more * _MOST and more < weight * _MOST:
            measured, expected = measured + more, expected + weight
    return measured / expected if expected >= _ENOUGH else 1.0


class _Amount(Struct):
    tokens: int = 0
    measured: int = 0


class Filler:
    """Fills a window request by request, so that the amounts always sum to the size that was measured."""

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale
        self._amounts: dict[Key, _Amount] = {}
        self._size = 0
        self._output = 0
        self.dropped = 0

    def filling(self) -> tuple[Filling, ...]:
        """What fills the window, the largest first."""
        found = [Filling(*key, one.tokens, one.measured) for key, one in self._amounts.items() if one.tokens]
        return tuple(sorted(found, key=lambda one: (-one.tokens, one.category, one.name or "")))

    def guess(self, pieces: Iterable[Piece]) -> None:
        """Pieces of which no usage tells the size: each is as large as it is estimated."""
        for key, weight in self._weights(pieces).items():
            self._add(key, weight)

    def step(self, step: Step) -> None:
        """The next request: what its prompt is larger by is what was added since the one before."""
        size = step.window.prompt
        if not self._size:
            self._begin(size, step.pieces)
        else:
            self._grow(size - self._size, step.pieces)
        self._size, self._output = size, step.window.output

    def _begin(self, size: int, pieces: Sequence[Piece]) -> None:
        """The first request: what is not seen of it is the system prompt and the tools."""
        weights = self._weights(pieces)
        seen = min(size, sum(weights.values()))
        self._share(weights, seen)
        self._add(_SYSTEM, size - seen, measured=not seen)

    def _grow(self, more: int, pieces: Sequence[Piece]) -> None:
        said = self._weights(one for one in pieces if one.reply)
        given = self._weights(one for one in pieces if not one.reply)
        expected = sum(said.values()) + sum(given.values())
        if more * _MOST < expected:
            more += self._leave(expected - more, at_least=-more)
            self._share(self._weights(pieces), more)
            return
        reply = self._reply(sum(said.values()), more)
        if reply is None:
            self._shared_or_unseen(self._weights(pieces), more)
        else:
            self._share(said, reply, measured=len(said) == 1)
            self._shared_or_unseen(given, more - reply)

    def _weights(self, pieces: Iterable[Piece]) -> dict[Key, int]:
        return {key: max(1, round(weight * self._scale)) for key, weight in _weights(pieces).items()}

    def _reply(self, weight: int, more: int) -> int | None:
        """The size of the reply before, as its usage tells; None where that is a placeholder or does not fit."""
        told = self._output
        return told if weight and weight <= told * _MOST and told <= more else None

    def _shared_or_unseen(self, weights: dict[Key, int], more: int) -> None:
        """Share out what came, but no more than the estimates bear: the rest the transcript does not show."""
        expected = sum(weights.values())
        seen = min(more, expected * _MOST + _SLACK) if weights else 0
        self._share(weights, seen, measured=len(weights) == 1 and seen == more)
        self._add(_UNSEEN, more - seen)

    def _leave(self, wanted: int, at_least: int) -> int:
        """Take away what must have left the window for it to have grown so little, or to have shrunk.

        Thinking may have gone unnoticed, as much as is wanted; of anything else only what is missing for certain.
        """
        taken = 0
        for category in _LEAVING:
            most = wanted if category is Category.THINKING else at_least
            taken += self._take([key for key in self._amounts if key[0] is category], most - taken)
        inner = [key for key in self._amounts if key != _SYSTEM]
        taken += self._take(inner, at_least - taken)
        taken += self._take([_SYSTEM], at_least - taken)
        self.dropped += taken
        return taken

    def _take(self, keys: Sequence[Key], wanted: int) -> int:
        held = {key: self._amounts[key].tokens for key in keys if key in self._amounts}
        taken = max(0, min(wanted, sum(held.values())))
        for key, part in shares(held, taken).items():
            amount = self._amounts[key]
            amount.tokens -= part
            amount.measured = 0 if part else amount.measured
        return taken

    def _share(self, weights: dict[Key, int], tokens: int, *, measured: bool = False) -> None:
        for key, part in shares(weights, tokens).items():
            self._add(key, part, measured=measured)

    def _add(self, key: Key, tokens: int, *, measured: bool = False) -> None:
        amount = self._amounts.setdefault(key, _Amount())
        amount.tokens += tokens
        amount.measured += tokens if measured else 0


def _weights(pieces: Iterable[Piece]) -> dict[Key, int]:
    """The weight of each category, in the order of appearance; none is nothing."""
    found: dict[Key, int] = {}
    for one in pieces:
        key = one.category, one.name
        found[key] = found.get(key, 0) + max(1, one.weight)
    return found


def shares(weights: dict[Key, int], tokens: int) -> dict[Key, int]:
    """Share out a number in proportion to weights, in whole tokens whose sum is that number: by largest remainder.

    >>> shares({("reply", None): 2, ("call", None): 1}, 10)
    {('reply', None): 7, ('call', None): 3}
    """
    total = sum(weights.values())
    if not total:
        return {}
    parts = {key: divmod(tokens * weight, total) for key, weight in weights.items()}
    given = {key: whole for key, (whole, _) in parts.items()}
    left = tokens - sum(given.values())
    for key in sorted(parts, key=lambda key: -parts[key][1])[:left]:
        given[key] += 1
    return given
