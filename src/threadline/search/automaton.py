"""Regular expressions in time that grows with the text and nothing worse, for those that could take for ever."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

MOST_STEPS = 500
"""How long an expression may be, its counted repetitions written out."""
_MOST_STATES = 1_000
_OFTEN = 512
_BEGINS = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING"})
_ENDS = frozenset({"AT_END", "AT_END_STRING"})
_CLASSES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_KEPT = re.IGNORECASE | re.ASCII | re.DOTALL


class TooMuch(Exception):
    """An expression that is too long when it is written out, or has what no automaton can do."""


class _One(NamedTuple):
    """One character that passes a test."""

    passes: Callable[[str], object]
    then: int


class _Fork(NamedTuple):
    """Two ways to go on."""

    then: int
    other: int


class _At(NamedTuple):
    """Nothing but a position: the beginning, the end, the edge of a word."""

    where: str
    then: int


_Step = _One | _Fork | _At
_DONE = -1


class Automaton:
    """Says whether a line has a match anywhere. All ways are followed at once, and each set of ways is met once."""

    def __init__(self, tree: Iterable[Any], flags: int) -> None:
        self._steps: list[_Step] = []
        self._sequences = 0
        self._tests: dict[tuple[str, int], Callable[[str], object]] = {}
        self._is_word = re.compile(r"\w", flags & re.ASCII).match
        self._start = self._compiled(list(tree), flags & _KEPT, _DONE)
        self._states: dict[tuple[frozenset[int], bool], _State] = {}
        self._accepted = _State(self, frozenset(), after_word=False)
        self._first = _State(self, frozenset({self._start}), after_word=False, begins=True)

    def end(self, line: str, check: Callable[[], None]) -> int | None:
        """Where the match that ends first ends; None where there is none. `check` is called every now and then."""
        state, accepted = self._first, self._accepted
        for start in range(0, len(line), _OFTEN):
            check()
            for at, one in enumerate(line[start : start + _OFTEN], start):
                state = state[one]
                if state is accepted:
                    return at
        return len(line) if state[""] is accepted else None

    def after(self, state: _State, one: str) -> _State:
        """The state that follows a state by a character, or by the end of the line, which is empty."""
        ways = self._ways(state, one)
        if _DONE in ways:
            return self._accepted
        passed = (step.then for way in ways if isinstance(step := self._steps[way], _One) and one and step.passes(one))
        key = frozenset({self._start, *passed}), bool(one and self._is_word(one))
        if len(self._states) > _MOST_STATES:
            self._states.clear()
            self._first.clear()  # it leads to all the others, which would stay
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = _State(self, key[0], after_word=key[1])
        return found

    def _ways(self, state: _State, one: str) -> set[int]:
        """All steps that can be taken before the next character without taking it."""
        seen: set[int] = set()
        open_ways = list(state.ways)
        is_edge = state.after_word != bool(one and self._is_word(one))
        while open_ways:
            way = open_ways.pop()
            if way in seen:
                continue
            seen.add(way)
            step = self._steps[way] if way != _DONE else None
            if isinstance(step, _Fork):
                open_ways += step.then, step.other
            elif isinstance(step, _At) and _holds(step.where, begins=state.begins, ends=not one, is_edge=is_edge):
                open_ways.append(step.then)
        return seen

    def _added(self, step: _Step) -> int:
        if len(self._steps) >= MOST_STEPS:
            raise TooMuch
        self._steps.append(step)
        return len(self._steps) - 1

    def _compiled(self, items: list[Any], flags: int, then: int) -> int:
        """The first step of a sequence, whose last one leads on to `then`. So it is made from its end."""
        self._sequences += 1
        if self._sequences > MOST_STEPS:  # nothing, repeated, makes no steps and takes its time all the same
            raise TooMuch
        for name, value in reversed([(str(name), value) for name, value in items]):
            if name == "SUBPATTERN":
                _group, added, removed, inner = value
                then = self._compiled(list(inner), (flags | added) & ~removed & _KEPT, then)
            elif name == "BRANCH":
                ways = [self._compiled(list(inner), flags, then) for inner in value[1]]
                then = ways.pop()
                while ways:
                    then = self._added(_Fork(ways.pop(), then))
            elif name in {"MAX_REPEAT", "MIN_REPEAT"}:
                least, most, inner = value
                then = self._repeated(list(inner), flags, then, least, None if str(most) == "MAXREPEAT" else most)
            elif name == "AT":
                then = self._added(_At(str(value), then))
            else:
                then = self._added(_One(self._test(name, value, flags), then))
        return then

    def _repeated(self, inner: list[Any], flags: int, then: int, least: int, most: int | None) -> int:
        if least > MOST_STEPS or (most or 0) > MOST_STEPS:
            raise TooMuch
        if most is None:
            back = self._added(_Fork(then, then))
            self._steps[back] = _Fork(self._compiled(inner, flags, back), then)
            then = back
        after = then
        for _ in range((most or least) - least):
            then = self._added(_Fork(self._compiled(inner, flags, then), after))
        for _ in range(least):
            then = self._compiled(inner, flags, then)
        return then

    def _test(self, name: str, value: Any, flags: int) -> Callable[[str], object]:
        source = _source(name, value)
        known = self._tests.get((source, flags))
        if known is None:
            known = self._tests[source, flags] = re.compile(source, flags).match
        return known


class _State(dict[str, "_State"]):
    """A set of ways, and where each character leads from it, as far as that has been asked."""

    def __init__(self, automaton: Automaton, ways: frozenset[int], *, after_word: bool, begins: bool = False) -> None:
        super().__init__()
        self.automaton = automaton
        self.ways = ways
        self.after_word = after_word
        self.begins = begins

    def __missing__(self, one: str) -> _State:
        found = self[one] = self.automaton.after(self, one)
        return found


def _holds(where: str, *, begins: bool, ends: bool, is_edge: bool) -> bool:
    if where in _BEGINS:
        return begins
    if where in _ENDS:
        return ends
    return is_edge == (where == "AT_BOUNDARY")


def _source(name: str, value: Any) -> str:
    """One character's test, written as an expression once more."""
    if name == "ANY":
        return "."
    if name == "LITERAL":
        return _literal(value)
    if name == "NOT_LITERAL":
        return f"[^{_literal(value)}]"
    if name != "IN":
        raise TooMuch
    parts = [_member(str(kind), one) for kind, one in value]
    return f"[{''.join(parts)}]"


def _member(kind: str, value: Any) -> str:
    if kind == "NEGATE":
        return "^"
    if kind == "LITERAL":
        return _literal(value)
    if kind == "RANGE":
        return f"{_literal(value[0])}-{_literal(value[1])}"
    return _CLASSES[str(value)]


def _literal(code: int) -> str:
    return f"\\U{code:08x}"
