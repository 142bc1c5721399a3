"""Regular expressions as queries have them: found line by line, in bounded time, and narrowed by words."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from math import prod
from time import monotonic
from typing import Any, TypeAlias

from threadline.errors import BadQuery
from threadline.index.words import visible
from threadline.search.automaton import Automaton, TooMuch
from threadline.search.query import Regex

LONGEST = 1_000
"""The characters that an expression may have."""
PIECE = 2_048
"""The characters of a long line that are looked at in one go."""
OVERLAP = 512
"""How much of one piece the next one sees again: a match of a long line may be that long."""

_EDGE = 64
# What sees more than it matches, or keeps what it has taken.
_BOUND = frozenset({"AT", "ASSERT", "ASSERT_NOT", "ATOMIC_GROUP", "POSSESSIVE_REPEAT", "GROUPREF_EXISTS"})
_MOST_PARTS = 64
# How many steps at one position are left to Python's own engine, which tries one way of matching after the other.
_FEW = PIECE * 32
_MANY = _FEW + 1
# Python takes a dotless i for one with a dot when case does not count; full text does not, and both have to agree.
_DOTLESS, _OTHER = "\u0131", "\u0269"
# The parser of Python's own engine has no public name; what it makes of an expression is the same in every version.
_parser: Any = import_module("re._parser")


class BadRegex(ValueError):
    """An expression that is none, or could take too long; `at` is the character where that shows."""

    def __init__(self, sentence: str, at: int = 0) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.at = at


class TookTooLong(BadQuery):
    """What a query asks for was not found in the time that there was."""


class Patience:
    """How long reading may take, all in all, from when it begins; after `soon`, what was found by then is enough."""

    def __init__(self, seconds: float = 10, soon: float | None = None) -> None:
        self.seconds = seconds
        self.soon = seconds if soon is None else min(soon, seconds)
        self._began: float | None = None

    @property
    def is_soon_over(self) -> bool:
        """Whether what was found by now is enough."""
        return self.taken() > self.soon

    def taken(self) -> float:
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
        if self.taken() > self.seconds:
            raise TookTooLong(
                f"The search was not through after {self.seconds:g} seconds; "
                "make it more exact, or add a word or a field such as project: or since:7d."
            )


class Finder:
    """Finds an expression. `^` and `$` are the ends of a line, and no match goes beyond one."""

    def __init__(self, regex: Regex) -> None:
        self._is_dotless = _DOTLESS in regex.pattern
        self._compiled, self.tree = _understood(regex)
        # Python finds what is spelt out many times as fast as it finds, or rules out, the rest.
        longest = max((part for run in _runs(self.tree) for part in run.split("\n")), key=len, default="")
        self._spelt_out = re.compile(re.escape(longest), re.IGNORECASE)
        self._is_hard = _ways(self.tree) * max(1, min(PIECE, self.tree.getwidth()[0])) > _FEW
        # Where nothing is spelt out, nor depends on what stands around a match, many lines are ruled out at once.
        self._is_free = not longest and not self._is_hard and _BOUND.isdisjoint(_kinds(self.tree))
        self._automaton: Automaton | None = None
        # Where it asks what follows, the end of a piece could be taken for the end of a line.
        if self._is_hard or "AT" in _kinds(self.tree):
            try:
                self._automaton = Automaton(self.tree, self._compiled.flags)
            except TooMuch:
                if self._is_hard:
                    raise BadRegex(
                        "This regular expression could take for ever; write it with fewer repetitions, "
                        "and without looking ahead, behind or back at a group."
                    ) from None

    def first(self, text: str, patience: Patience | None = None) -> tuple[int, int] | None:
        """From where to where the first match goes; from the beginning of its line where only its end is known.

        Raises:
            TookTooLong: patience is over.
        """
        check = patience.check if patience is not None else _unhurried
        if not self._is_dotless and _DOTLESS in text:
            text = text.replace(_DOTLESS, _OTHER)
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
            end = text.rfind("\n", at, at + PIECE) if at + PIECE < len(text) else len(text)
            if end < 0:
                return at
            check()
            found = self._compiled.search(text, at, end)
            if found is not None:
                return found.start()
            at = end + 1
        return None

    def _in_line(self, line: str, check: Callable[[], None]) -> tuple[int, int] | None:
        if self._automaton is not None and (self._is_hard or len(line) > PIECE):
            end = self._automaton.end(line, check)
            return None if end is None else (0, end)
        start, length = 0, len(line)
        while True:
            check()
            end = min(start + PIECE, length)
            found = self._compiled.search(line, start, end)
            # What touches the end of a piece might not match if it saw what follows: look again from there.
            if found is not None and (end == length or found.end() < end - _EDGE or found.start() == start):
                return found.span()
            if end == length:
                return None
            start = found.start() if found is not None else end - OVERLAP


def _unhurried() -> None:
    """Time is of no matter."""


@lru_cache(maxsize=16)
def finder(regex: Regex) -> Finder:
    """What finds an expression.

    Raises:
        BadRegex: it is no expression, or one that cannot be held to a time that grows with the text.
    """
    return Finder(regex)


def found(regex: Regex, text: str, patience: Patience | None = None) -> bool:
    """Whether an expression is found in a text, as a person saw it."""
    return finder(regex).first(visible(text), patience) is not None


Need: TypeAlias = "str | tuple[list[Need], ...]"
"""What a match has in it: a string, or all that one of several lists says."""
_Part: TypeAlias = "str | tuple[list[_Part], ...] | None"


def needs(regex: Regex) -> list[Need]:
    r"""What every match has in it; strings may overlap, and a line's beginning is a newline.

    >>> needs(Regex(r"^import (os|sys) +# fine"))
    [(['\nimport os'], ['\nimport sys']), ' ', ' # fine']
    """
    return list(_needs(finder(regex).tree))


def literals(regex: Regex) -> Iterator[str]:
    r"""The strings that every match has in it.

    >>> list(literals(Regex(r"^import (os|sys) +# fine")))
    ['\nimport ', ' ', ' # fine']
    """
    yield from _runs(finder(regex).tree)


def _runs(items: Iterable[Any]) -> Iterator[str]:
    parts = (None if isinstance(one, tuple) else one for one in _parts(items))
    yield from (one for one in _joined(parts) if isinstance(one, str))


def _needs(items: Iterable[Any]) -> Iterator[Need]:
    yield from _joined(list(_parts(items)))


def _joined(parts: Iterable[_Part]) -> Iterator[Need]:
    """Characters as strings; what stands before a branch is taken as a part of each way it can go."""
    run: list[str] = []
    for one in (*parts, None):
        if isinstance(one, str):
            run.append(one)
            continue
        if one is not None:
            yield tuple(list(_joined([*run, *way])) for way in one)
        elif run:
            yield "".join(run)
        run = []


def _parts(items: Iterable[Any]) -> Iterator[_Part]:
    """The characters that every match has, None where anything may stand between, and the ways a branch can go."""
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL":
            yield chr(value)
        elif name == "AT" and str(value) in {"AT_BEGINNING", "AT_BEGINNING_STRING"}:
            yield "\n"
        elif name == "SUBPATTERN":
            yield from _parts(value[3])
        elif name == "BRANCH":
            yield tuple(list(_parts(inner)) for inner in value[1])
        elif name in {"MAX_REPEAT", "MIN_REPEAT"} and value[0]:
            inner = list(_parts(value[2]))
            yield from inner
            yield None
            if _count(inner) <= _MOST_PARTS:  # twice of twice of twice has no end
                yield from inner
        elif name not in {"AT", "ASSERT", "ASSERT_NOT"}:
            yield None


def _count(parts: Iterable[_Part]) -> int:
    return sum(sum(map(_count, one)) if isinstance(one, tuple) else 1 for one in parts)


def _understood(regex: Regex) -> tuple[re.Pattern[str], Any]:
    if len(regex.pattern) > LONGEST:
        raise BadRegex(f"A regular expression has at most {LONGEST:,} characters.")
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


def _kinds(part: Any) -> Iterator[str]:
    """The kinds of all that an expression is made of."""
    if hasattr(part, "getwidth"):
        for kind, inner in part:
            yield str(kind)
            yield from _kinds(inner)
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _kinds(one)


def _ways(items: Iterable[Any]) -> int:
    """At most how many ways there are to match at one position; `_MANY` where that is hard to say."""
    return min(_MANY, prod(map(_ways_of_one, items)))


def _ways_of_one(item: tuple[Any, Any]) -> int:
    name, value = str(item[0]), item[1]
    if name == "BRANCH":
        return min(_MANY, sum(_ways(inner) for inner in value[1]))
    if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        return _ways_of_rounds(int(value[0]), int(value[1]), value[2])
    inner = {"SUBPATTERN": 3, "ASSERT": 1, "ASSERT_NOT": 1}
    if name in inner or name == "ATOMIC_GROUP":
        return _ways(value[inner[name]] if name in inner else value)
    return {"GROUPREF": PIECE, "GROUPREF_EXISTS": _MANY}.get(name, 1)


def _ways_of_rounds(least: int, most: int, inner: Any) -> int:
    once = _ways(inner)
    if most > 1 and inner.getwidth()[0] == 0:  # rounds that take nothing have no end in sight
        return _MANY
    counts = min(most, PIECE) - min(least, PIECE) + 1
    # Each round may go each of the ways.
    return min(_MANY, counts * int(once ** min(most, _FEW.bit_length())))
