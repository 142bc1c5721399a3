"""Regular expressions in queries: matched line by line in bounded time, and the literal text every match must contain.

An expression that Python's engine could take exponential time for runs on an automaton (a lazily built DFA), whose
time grows linearly with the text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from math import prod
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from threadline.errors import BadQuery
from threadline.index import strip_escapes
from threadline.search.query import Regex

MAX_PATTERN_CHARS = 1_000
"""The characters that an expression may have."""
CHUNK_CHARS = 2_048
"""The characters of a long line that are looked at in one go."""
CHUNK_OVERLAP = 512
"""How much of one piece the next one sees again: a match of a long line may be that long."""

_CHUNK_EDGE = 64
# What sees more than it matches, or keeps what it has taken.
_CONTEXT_NODES = frozenset({"AT", "ASSERT", "ASSERT_NOT", "ATOMIC_GROUP", "POSSESSIVE_REPEAT", "GROUPREF_EXISTS"})
_MAX_PARTS = 64
# How many steps at one position are left to Python's own engine, which tries one way of matching after the other.
_MAX_PATHS = CHUNK_CHARS * 32
_TOO_MANY_PATHS = _MAX_PATHS + 1
# Python takes a dotless i for one with a dot when case does not count; full text does not, and both have to agree.
_DOTLESS_I, _DOTLESS_SUBSTITUTE = "\u0131", "\u0269"
# The parser of Python's own engine has no public name; what it makes of an expression is the same in every version.
_parser: Any = import_module("re._parser")


class BadRegex(ValueError):
    """An expression that is none, or could take too long; `at` is the character where that shows."""

    def __init__(self, sentence: str, at: int = 0) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.at = at


class SearchTimeout(BadQuery):
    """What a query asks for was not found in the time that there was."""


class TimeBudget:
    """How long reading may take, all in all, from when it begins; after `soon`, what was found by then is enough."""

    def __init__(self, seconds: float = 10, soon: float | None = None) -> None:
        self.seconds = seconds
        self.soon = seconds if soon is None else min(soon, seconds)
        self._began: float | None = None

    @property
    def is_soft_limit_reached(self) -> bool:
        """Whether what was found by now is enough."""
        return self.elapsed() > self.soon

    def elapsed(self) -> float:
        """How many seconds it has taken by now."""
        now = monotonic()
        if self._began is None:
            self._began = now
        return now - self._began

    def check(self) -> None:
        """Go on, or give up.

        Raises:
            TookTooLong: the time is over.
        """
        if self.elapsed() > self.seconds:
            raise SearchTimeout(
                f"The search was not through after {self.seconds:g} seconds; "
                "make it more exact, or add a word or a field such as project: or since:7d."
            )


class RegexFinder:
    """Finds an expression. `^` and `$` are the ends of a line, and no match goes beyond one."""

    def __init__(self, regex: Regex) -> None:
        self._is_dotless = _DOTLESS_I in regex.pattern
        self._compiled, self.tree = _compile(regex)
        # Python finds what is spelt out many times as fast as it finds, or rules out, the rest.
        longest = max((part for run in _literal_runs(self.tree) for part in run.split("\n")), key=len, default="")
        self._spelt_out = re.compile(re.escape(longest), re.IGNORECASE)
        self._is_hard = _count_paths(self.tree) * max(1, min(CHUNK_CHARS, self.tree.getwidth()[0])) > _MAX_PATHS
        # Where nothing is spelt out, nor depends on what stands around a match, many lines are ruled out at once.
        self._is_free = not longest and not self._is_hard and _CONTEXT_NODES.isdisjoint(_node_kinds(self.tree))
        self._automaton: Automaton | None = None
        # Where it asks what follows, the end of a piece could be taken for the end of a line.
        if self._is_hard or "AT" in _node_kinds(self.tree):
            try:
                self._automaton = Automaton(self.tree, self._compiled.flags)
            except TooComplex:
                if self._is_hard:
                    raise BadRegex(
                        "This regular expression could take for ever; write it with fewer repetitions, "
                        "and without looking ahead, behind or back at a group."
                    ) from None

    def first(self, text: str, patience: TimeBudget | None = None) -> tuple[int, int] | None:
        """From where to where the first match goes; from the beginning of its line where only its end is known.

        Raises:
            TookTooLong: patience is over.
        """
        check = patience.check if patience is not None else _no_check
        if not self._is_dotless and _DOTLESS_I in text:
            text = text.replace(_DOTLESS_I, _DOTLESS_SUBSTITUTE)
        at = 0
        while at <= len(text) and (near := self._near(text, at, check)) is not None:
            start = text.rfind("\n", 0, near) + 1
            end = text.find("\n", near)
            line = text[start : end if end >= 0 else len(text)]
            found = self._in_line(line, check)
            if found is not None:
                return start + found[0], start + found[1]
            at = start + len(line) + 1
        return None

    def _near(self, text: str, at: int, check: Callable[[], None]) -> int | None:
        """Somewhere in the next line that may match, from the beginning of a line on: the others cannot."""
        if not self._is_free:
            spelt = self._spelt_out.search(text, at)
            return spelt.start() if spelt is not None else None
        while at <= len(text):
            # As many whole lines as are no longer than a piece; a match of one of them is a match of them all.
            end = text.rfind("\n", at, at + CHUNK_CHARS) if at + CHUNK_CHARS < len(text) else len(text)
            if end < 0:
                return at
            check()
            found = self._compiled.search(text, at, end)
            if found is not None:
                return found.start()
            at = end + 1
        return None

    def _in_line(self, line: str, check: Callable[[], None]) -> tuple[int, int] | None:
        if self._automaton is not None and (self._is_hard or len(line) > CHUNK_CHARS):
            end = self._automaton.end(line, check)
            return None if end is None else (0, end)
        start, length = 0, len(line)
        while True:
            check()
            end = min(start + CHUNK_CHARS, length)
            found = self._compiled.search(line, start, end)
            # What touches the end of a piece might not match if it saw what follows: look again from there.
            if found is not None and (end == length or found.end() < end - _CHUNK_EDGE or found.start() == start):
                return found.span()
            if end == length:
                return None
            start = found.start() if found is not None else end - CHUNK_OVERLAP


def _no_check() -> None:
    """Time is of no matter."""


@lru_cache(maxsize=16)
def get_finder(regex: Regex) -> RegexFinder:
    """What finds an expression.

    Raises:
        BadRegex: it is no expression, or one that cannot be held to a time that grows with the text.
    """
    return RegexFinder(regex)


def regex_matches(regex: Regex, text: str, patience: TimeBudget | None = None) -> bool:
    """Whether an expression is found in a text, as a person saw it."""
    return get_finder(regex).first(strip_escapes(text), patience) is not None


Requirement: TypeAlias = "str | tuple[list[Requirement], ...]"
"""What a match has in it: a string, or all that one of several lists says."""
_Part: TypeAlias = "str | tuple[list[_Part], ...] | None"


def required_text(regex: Regex) -> list[Requirement]:
    r"""What every match has in it; strings may overlap, and a line's beginning is a newline.

    >>> required_text(Regex(r"^import (os|sys) +# fine"))
    [(['\nimport os'], ['\nimport sys']), ' ', ' # fine']
    """
    return list(_requirements(get_finder(regex).tree))


def required_literals(regex: Regex) -> Iterator[str]:
    r"""The strings that every match has in it.

    >>> list(required_literals(Regex(r"^import (os|sys) +# fine")))
    ['\nimport ', ' ', ' # fine']
    """
    yield from _literal_runs(get_finder(regex).tree)


def _literal_runs(items: Iterable[Any]) -> Iterator[str]:
    parts = (None if isinstance(part, tuple) else part for part in _literal_parts(items))
    yield from (requirement for requirement in _join_literals(parts) if isinstance(requirement, str))


def _requirements(items: Iterable[Any]) -> Iterator[Requirement]:
    yield from _join_literals(list(_literal_parts(items)))


def _join_literals(parts: Iterable[_Part]) -> Iterator[Requirement]:
    """Characters as strings; what stands before a branch is taken as a part of each way it can go."""
    run: list[str] = []
    for part in (*parts, None):
        if isinstance(part, str):
            run.append(part)
            continue
        if part is not None:
            yield tuple(list(_join_literals([*run, *way])) for way in part)
        elif run:
            yield "".join(run)
        run = []


def _literal_parts(items: Iterable[Any]) -> Iterator[_Part]:
    """The characters that every match has, None where anything may stand between, and the ways a branch can go."""
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL":
            yield chr(value)
        elif name == "AT" and str(value) in {"AT_BEGINNING", "AT_BEGINNING_STRING"}:
            yield "\n"
        elif name == "SUBPATTERN":
            yield from _literal_parts(value[3])
        elif name == "BRANCH":
            yield tuple(list(_literal_parts(inner)) for inner in value[1])
        elif name in {"MAX_REPEAT", "MIN_REPEAT"} and value[0]:
            inner = list(_literal_parts(value[2]))
            yield from inner
            yield None
            if _count_parts(inner) <= _MAX_PARTS:  # twice of twice of twice has no end
                yield from inner
        elif name not in {"AT", "ASSERT", "ASSERT_NOT"}:
            yield None


def _count_parts(parts: Iterable[_Part]) -> int:
    return sum(sum(map(_count_parts, part)) if isinstance(part, tuple) else 1 for part in parts)


def _compile(regex: Regex) -> tuple[re.Pattern[str], Any]:
    if len(regex.pattern) > MAX_PATTERN_CHARS:
        raise BadRegex(f"A regular expression has at most {MAX_PATTERN_CHARS:,} characters.")
    flags = re.NOFLAG if regex.exact_case else re.IGNORECASE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = re.compile(regex.pattern, flags)
            return compiled, _parser.parse(regex.pattern, flags)
    except re.error as error:
        raise BadRegex(f"This is no regular expression: {error.msg}.", error.pos or 0) from None
    except (RecursionError, OverflowError) as error:
        raise BadRegex("This regular expression is nested too deep, or counts too far.") from error


def _node_kinds(part: Any) -> Iterator[str]:
    """The kinds of all that an expression is made of."""
    if hasattr(part, "getwidth"):
        for kind, inner in part:
            yield str(kind)
            yield from _node_kinds(inner)
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _node_kinds(one)


def _count_paths(items: Iterable[Any]) -> int:
    """At most how many ways there are to match at one position; `_MANY` where that is hard to say."""
    return min(_TOO_MANY_PATHS, prod(map(_count_item_paths, items)))


def _count_item_paths(item: tuple[Any, Any]) -> int:
    name, value = str(item[0]), item[1]
    if name == "BRANCH":
        return min(_TOO_MANY_PATHS, sum(_count_paths(inner) for inner in value[1]))
    if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        return _count_repeat_paths(int(value[0]), int(value[1]), value[2])
    inner = {"SUBPATTERN": 3, "ASSERT": 1, "ASSERT_NOT": 1}
    if name in inner or name == "ATOMIC_GROUP":
        return _count_paths(value[inner[name]] if name in inner else value)
    return {"GROUPREF": CHUNK_CHARS, "GROUPREF_EXISTS": _TOO_MANY_PATHS}.get(name, 1)


def _count_repeat_paths(least: int, most: int, inner: Any) -> int:
    once = _count_paths(inner)
    if most > 1 and inner.getwidth()[0] == 0:  # rounds that take nothing have no end in sight
        return _TOO_MANY_PATHS
    counts = min(most, CHUNK_CHARS) - min(least, CHUNK_CHARS) + 1
    # Each round may go each of the ways.
    return min(_TOO_MANY_PATHS, counts * int(once ** min(most, _MAX_PATHS.bit_length())))


MAX_STEPS = 500
"""How long an expression may be, its counted repetitions written out."""
_MAX_STATES = 1_000
_CHECK_EVERY = 512
_LINE_STARTS = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING"})
_LINE_ENDS = frozenset({"AT_END", "AT_END_STRING"})
_CHARACTER_CLASSES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_KEPT_FLAGS = re.IGNORECASE | re.ASCII | re.DOTALL


class TooComplex(Exception):
    """An expression that is too long when it is written out, or has what no automaton can do."""


class _CharacterStep(NamedTuple):
    """One character that passes a test."""

    passes: Callable[[str], object]
    then: int


class _ForkStep(NamedTuple):
    """Two ways to go on."""

    then: int
    other: int


class _PositionStep(NamedTuple):
    """Nothing but a position: the beginning, the end, the edge of a word."""

    where: str
    then: int


_Step = _CharacterStep | _ForkStep | _PositionStep
_DONE = -1


class Automaton:
    """Says whether a line has a match anywhere. All ways are followed at once, and each set of ways is met once."""

    def __init__(self, tree: Iterable[Any], flags: int) -> None:
        self._steps: list[_Step] = []
        self._sequences = 0
        self._tests: dict[tuple[str, int], Callable[[str], object]] = {}
        self._is_word = re.compile(r"\w", flags & re.ASCII).match
        self._start = self._compiled(list(tree), flags & _KEPT_FLAGS, _DONE)
        self._states: dict[tuple[frozenset[int], bool], _State] = {}
        self._accepted = _State(self, frozenset(), after_word=False)
        self._first = _State(self, frozenset({self._start}), after_word=False, begins=True)

    def end(self, line: str, check: Callable[[], None]) -> int | None:
        """Where the match that ends first ends; None where there is none. `check` is called every now and then."""
        state, accepted = self._first, self._accepted
        for start in range(0, len(line), _CHECK_EVERY):
            check()
            for at, one in enumerate(line[start : start + _CHECK_EVERY], start):
                state = state[one]
                if state is accepted:
                    return at
        return len(line) if state[""] is accepted else None

    def after(self, state: _State, text: str) -> _State:
        """The state that follows a state by a character, or by the end of the line, which is empty."""
        ways = self._ways(state, text)
        if _DONE in ways:
            return self._accepted
        passed = (
            step.then
            for way in ways
            if isinstance(step := self._steps[way], _CharacterStep) and text and step.passes(text)
        )
        key = frozenset({self._start, *passed}), bool(text and self._is_word(text))
        if len(self._states) > _MAX_STATES:
            self._states.clear()
            self._first.clear()  # it leads to all the others, which would stay
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = _State(self, key[0], after_word=key[1])
        return found

    def _ways(self, state: _State, text: str) -> set[int]:
        """All steps that can be taken before the next character without taking it."""
        seen: set[int] = set()
        open_ways = list(state.ways)
        is_edge = state.after_word != bool(text and self._is_word(text))
        while open_ways:
            way = open_ways.pop()
            if way in seen:
                continue
            seen.add(way)
            step = self._steps[way] if way != _DONE else None
            if isinstance(step, _ForkStep):
                open_ways += step.then, step.other
            elif isinstance(step, _PositionStep) and _position_holds(
                step.where, begins=state.begins, ends=not text, is_edge=is_edge
            ):
                open_ways.append(step.then)
        return seen

    def _added(self, step: _Step) -> int:
        if len(self._steps) >= MAX_STEPS:
            raise TooComplex
        self._steps.append(step)
        return len(self._steps) - 1

    def _compiled(self, items: list[Any], flags: int, then: int) -> int:
        """The first step of a sequence, whose last one leads on to `then`. So it is made from its end."""
        self._sequences += 1
        if self._sequences > MAX_STEPS:  # nothing, repeated, makes no steps and takes its time all the same
            raise TooComplex
        for name, value in reversed([(str(name), value) for name, value in items]):
            if name == "SUBPATTERN":
                _group, added, removed, inner = value
                then = self._compiled(list(inner), (flags | added) & ~removed & _KEPT_FLAGS, then)
            elif name == "BRANCH":
                ways = [self._compiled(list(inner), flags, then) for inner in value[1]]
                then = ways.pop()
                while ways:
                    then = self._added(_ForkStep(ways.pop(), then))
            elif name in {"MAX_REPEAT", "MIN_REPEAT"}:
                least, most, inner = value
                then = self._repeated(list(inner), flags, then, least, None if str(most) == "MAXREPEAT" else most)
            elif name == "AT":
                then = self._added(_PositionStep(str(value), then))
            else:
                then = self._added(_CharacterStep(self._test(name, value, flags), then))
        return then

    def _repeated(self, inner: list[Any], flags: int, then: int, least: int, most: int | None) -> int:
        if least > MAX_STEPS or (most or 0) > MAX_STEPS:
            raise TooComplex
        if most is None:
            back = self._added(_ForkStep(then, then))
            self._steps[back] = _ForkStep(self._compiled(inner, flags, back), then)
            then = back
        after = then
        for _ in range((most or least) - least):
            then = self._added(_ForkStep(self._compiled(inner, flags, then), after))
        for _ in range(least):
            then = self._compiled(inner, flags, then)
        return then

    def _test(self, name: str, value: Any, flags: int) -> Callable[[str], object]:
        source = _character_pattern(name, value)
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

    def __missing__(self, text: str) -> _State:
        found = self[text] = self.automaton.after(self, text)
        return found


def _position_holds(where: str, *, begins: bool, ends: bool, is_edge: bool) -> bool:
    if where in _LINE_STARTS:
        return begins
    if where in _LINE_ENDS:
        return ends
    return is_edge == (where == "AT_BOUNDARY")


def _character_pattern(name: str, value: Any) -> str:
    """One character's test, written as an expression once more."""
    if name == "ANY":
        return "."
    if name == "LITERAL":
        return _escape_character(value)
    if name == "NOT_LITERAL":
        return f"[^{_escape_character(value)}]"
    if name != "IN":
        raise TooComplex
    parts = [_class_member(str(kind), one) for kind, one in value]
    return f"[{''.join(parts)}]"


def _class_member(kind: str, value: Any) -> str:
    if kind == "NEGATE":
        return "^"
    if kind == "LITERAL":
        return _escape_character(value)
    if kind == "RANGE":
        return f"{_escape_character(value[0])}-{_escape_character(value[1])}"
    return _CHARACTER_CLASSES[str(value)]


def _escape_character(code: int) -> str:
    return f"\\U{code:08x}"
