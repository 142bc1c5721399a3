"""The user's own patterns, words and exceptions for redaction, checked so that no pattern can run forever."""

from __future__ import annotations

import re

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.regex_syntax import (
    SINGLE_CHARACTER,
    Atomic,
    BackReference,
    Branch,
    Conditional,
    Group,
    Look,
    Repeat,
    Sequence,
    parse_regex,
)

_PATTERN_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
_MAX_PATTERN = 1000
_MAX_BOUNDED_REPEAT = 64
_PIECE_LENGTH = 1000
_MAX_WAYS = 100_000
_RESERVED_NAMES = frozenset(("secret", "email", "user", "host", "ip", "home", "word"))


class Settings(Struct, frozen=True):
    """What to redact in addition to the rules, and what to keep.

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
        """Compile the patterns.

        Raises:
            BadQuery: a pattern is not a valid regular expression, or its search could take too long.
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
        tree = parse_regex(ready)
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


def _count_ways(tree: Sequence) -> int:
    """In how many ways one position of a text may have to be tried: the product over all repeats and choices."""
    ways = 1
    for node in tree:
        match node:
            case Repeat(body, least, most):
                upper = _PIECE_LENGTH if most is None else min(most, _PIECE_LENGTH)
                ways *= (upper - min(least, _PIECE_LENGTH) + 1) * _count_ways(body)
            case Branch(options):
                ways *= sum(map(_count_ways, options))
            case Group(body) | Look(body) | Atomic(body):
                ways *= _count_ways(body)
        ways = min(ways, _MAX_WAYS + 1)
    return ways


def _count_unbounded(tree: Sequence, name: str) -> int:
    """How many repeats have no small bound. A repeat of a repeat, and a back reference, are refused."""
    count = 0
    for node in tree:
        match node:
            case Repeat(body, _least, most):
                is_single = len(body) == 1 and isinstance(body[0], SINGLE_CHARACTER)
                if not is_single and most != 1 and _has_repeat(body):
                    raise BadQuery(f"The pattern {name!r} repeats a repeat, which can take forever; write it flat.")
                count += _count_unbounded(body, name) + (most is None or most > _MAX_BOUNDED_REPEAT)
            case Branch(options):
                count += max(_count_unbounded(option, name) for option in options)
            case Group(body) | Look(body) | Atomic(body):
                count += _count_unbounded(body, name)
            case BackReference() | Conditional():
                raise BadQuery(f"The pattern {name!r} refers back to a group, which can take forever; leave that out.")
    return count


def _has_repeat(tree: Sequence) -> bool:
    """Whether anything inside repeats, or has alternatives."""
    return any(
        isinstance(node, Repeat | Branch) or (isinstance(node, Group) and _has_repeat(node.body)) for node in tree
    )
