"""The user's own patterns, words and exceptions for redaction, checked so that no pattern can run forever."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery

# How Python itself reads an expression; private, but the same since 3.11.
_re_parser: Any = import_module("re._parser")
_re_constants: Any = import_module("re._constants")
_PATTERN_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
_MAX_PATTERN = 1000
_MAX_BOUNDED_REPEAT = 64
_PIECE_LENGTH = 1000
_MAX_WAYS = 100_000
_RESERVED_NAMES = frozenset(("secret", "email", "user", "host", "ip", "home", "word"))
_REPEATS = frozenset((_re_constants.MAX_REPEAT, _re_constants.MIN_REPEAT, _re_constants.POSSESSIVE_REPEAT))
_SINGLE_CHARACTER = frozenset(
    (_re_constants.LITERAL, _re_constants.NOT_LITERAL, _re_constants.IN, _re_constants.ANY, _re_constants.CATEGORY)
)


class Settings(Struct, frozen=True):
    """What to hide beyond the rules, and what to keep.

    `patterns` are regular expressions by name: what they find becomes `<name-1>`. `words` are hidden wherever they
    stand, in whatever case. `keep` are exact texts that stay though a rule would take them. `users` and `hosts` are
    names that are known from elsewhere.
    """

    patterns: dict[str, str] = {}
    words: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def compile_patterns(self) -> dict[str, re.Pattern[str]]:
        """The patterns, ready for use.

        Raises:
            BadQuery: one of them is no expression, or one whose search could take forever.
        """
        return {name: _compile_pattern(name, pattern) for name, pattern in self.patterns.items()}


def _compile_pattern(name: str, pattern: str) -> re.Pattern[str]:
    if not _PATTERN_NAME.match(name) or name in _RESERVED_NAMES:
        raise BadQuery(
            f"{name!r} cannot be a pattern's name; use small letters, and none of {', '.join(sorted(_RESERVED_NAMES))}."
        )
    if len(pattern) > _MAX_PATTERN:
        raise BadQuery(f"The pattern {name!r} has more than {_MAX_PATTERN:,} characters; make several of it.")
    try:
        ready = re.compile(pattern)
        tree = _re_parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadQuery(f"The pattern {name!r} is no regular expression: {error}.") from None
    if ready.match("") or ready.fullmatch(" "):
        raise BadQuery(f"The pattern {name!r} fits nothing or a space, and so everything; say what must be there.")
    if _count_unbounded(tree, name) > 1:
        raise BadQuery(
            f"The pattern {name!r} has several of `*`, `+` or `{{n,}}`; "
            f"give all but one a bound: {{0,{_MAX_BOUNDED_REPEAT}}}."
        )
    if _count_ways(tree) > _MAX_WAYS:
        raise BadQuery(
            f"The pattern {name!r} can be read in more than {_MAX_WAYS:,} ways, which can take forever;"
            " take out some of its `?`, `{0,n}` and `|`."
        )
    return ready


def _count_ways(tree: Any) -> int:
    """In how many ways one place of a text may have to be tried: as many as its repeats and choices have together."""
    ways = 1
    for code, argument in tree:
        if code in _REPEATS:
            least, most, inner = argument
            ways *= (min(int(most), _PIECE_LENGTH) - min(int(least), _PIECE_LENGTH) + 1) * _count_ways(inner)
        elif code is _re_constants.SUBPATTERN:
            ways *= _count_ways(argument[3])
        elif code is _re_constants.BRANCH:
            ways *= sum(map(_count_ways, argument[1]))
        elif code in {_re_constants.ASSERT, _re_constants.ASSERT_NOT}:
            ways *= _count_ways(argument[1])
        elif code is _re_constants.ATOMIC_GROUP:
            ways *= _count_ways(argument)
        ways = min(ways, _MAX_WAYS + 1)
    return ways


def _count_unbounded(tree: Any, name: str) -> int:
    """How many repeats without a small bound it has; a repeat of a repeat, and a backreference, are refused."""
    count = 0
    for code, argument in tree:
        if code in _REPEATS:
            _least, most, inner = argument
            single = len(inner) == 1 and inner[0][0] in _SINGLE_CHARACTER
            if not single and most > 1 and _has_repeat(inner):
                raise BadQuery(f"The pattern {name!r} repeats a repeat, which can take forever; write it flat.")
            count += _count_unbounded(inner, name) + (most > _MAX_BOUNDED_REPEAT)
        elif code is _re_constants.SUBPATTERN:
            count += _count_unbounded(argument[3], name)
        elif code is _re_constants.BRANCH:
            count += max((_count_unbounded(branch, name) for branch in argument[1]), default=0)
        elif code in {_re_constants.ASSERT, _re_constants.ASSERT_NOT}:
            count += _count_unbounded(argument[1], name)
        elif code is _re_constants.ATOMIC_GROUP:
            count += _count_unbounded(argument, name)
        elif code in {_re_constants.GROUPREF, _re_constants.GROUPREF_EXISTS}:
            raise BadQuery(f"The pattern {name!r} refers back to a group, which can take forever; leave that out.")
    return count


def _has_repeat(tree: Any) -> bool:
    """Whether anything within repeats, or could be read in several ways."""
    for code, argument in tree:
        if code in _REPEATS or code is _re_constants.BRANCH:
            return True
        if code is _re_constants.SUBPATTERN and _has_repeat(argument[3]):
            return True
    return False
