"""What a person wants hidden beyond the rules, and what kept."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery

# How Python itself reads an expression; private, but the same since 3.11.
parser: Any = import_module("re._parser")
codes: Any = import_module("re._constants")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
_LONGEST_PATTERN = 1000
_FEW = 64
_PIECE = 1000
_MOST_WAYS = 100_000
_TAKEN = frozenset(("secret", "email", "user", "host", "ip", "home", "word"))
_REPEATS = frozenset((codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT))
_SINGLE = frozenset((codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY, codes.CATEGORY))


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

    def compiled(self) -> dict[str, re.Pattern[str]]:
        """The patterns, ready for use.

        Raises:
            BadQuery: one of them is no expression, or one whose search could take forever.
        """
        return {name: _compiled(name, pattern) for name, pattern in self.patterns.items()}


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    if not _NAME.match(name) or name in _TAKEN:
        raise BadQuery(
            f"{name!r} cannot be a pattern's name; use small letters, and none of {', '.join(sorted(_TAKEN))}."
        )
    if len(pattern) > _LONGEST_PATTERN:
        raise BadQuery(f"The pattern {name!r} has more than {_LONGEST_PATTERN:,} characters; make several of it.")
    try:
        ready = re.compile(pattern)
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadQuery(f"The pattern {name!r} is no regular expression: {error}.") from None
    if ready.match("") or ready.fullmatch(" "):
        raise BadQuery(f"The pattern {name!r} fits nothing or a space, and so everything; say what must be there.")
    if _unbounded(tree, name) > 1:
        raise BadQuery(
            f"The pattern {name!r} has several of `*`, `+` or `{{n,}}`; give all but one a bound: {{0,{_FEW}}}."
        )
    if _ways(tree) > _MOST_WAYS:
        raise BadQuery(
            f"The pattern {name!r} can be read in more than {_MOST_WAYS:,} ways, which can take forever;"
            " take out some of its `?`, `{0,n}` and `|`."
        )
    return ready


def _ways(tree: Any) -> int:
    """In how many ways one place of a text may have to be tried: as many as its repeats and choices have together."""
    ways = 1
    for code, argument in tree:
        if code in _REPEATS:
            least, most, inner = argument
            ways *= (min(int(most), _PIECE) - min(int(least), _PIECE) + 1) * _ways(inner)
        elif code is codes.SUBPATTERN:
            ways *= _ways(argument[3])
        elif code is codes.BRANCH:
            ways *= sum(map(_ways, argument[1]))
        elif code in {codes.ASSERT, codes.ASSERT_NOT}:
            ways *= _ways(argument[1])
        elif code is codes.ATOMIC_GROUP:
            ways *= _ways(argument)
        ways = min(ways, _MOST_WAYS + 1)
    return ways


def _unbounded(tree: Any, name: str) -> int:
    """How many repeats without a small bound it has; a repeat of a repeat, and a backreference, are refused."""
    count = 0
    for code, argument in tree:
        if code in _REPEATS:
            _least, most, inner = argument
            single = len(inner) == 1 and inner[0][0] in _SINGLE
            if not single and most > 1 and _repeats(inner):
                raise BadQuery(f"The pattern {name!r} repeats a repeat, which can take forever; write it flat.")
            count += _unbounded(inner, name) + (most > _FEW)
        elif code is codes.SUBPATTERN:
            count += _unbounded(argument[3], name)
        elif code is codes.BRANCH:
            count += max((_unbounded(branch, name) for branch in argument[1]), default=0)
        elif code in {codes.ASSERT, codes.ASSERT_NOT}:
            count += _unbounded(argument[1], name)
        elif code is codes.ATOMIC_GROUP:
            count += _unbounded(argument, name)
        elif code in {codes.GROUPREF, codes.GROUPREF_EXISTS}:
            raise BadQuery(f"The pattern {name!r} refers back to a group, which can take forever; leave that out.")
    return count


def _repeats(tree: Any) -> bool:
    """Whether anything within repeats, or could be read in several ways."""
    for code, argument in tree:
        if code in _REPEATS or code is codes.BRANCH:
            return True
        if code is codes.SUBPATTERN and _repeats(argument[3]):
            return True
    return False
