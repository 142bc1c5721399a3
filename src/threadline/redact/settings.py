"""The user's own patterns, words and exceptions for redaction, checked so that no pattern can run forever."""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.redact.rules.formats import token_pattern
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
PIECE_LENGTH = 1000
"""How many characters of a line a pattern of the user is searched in at once."""
_MAX_PATHS = 100_000
_RESERVED_NAMES = frozenset(
    ("secret", "email", "user", "host", "ip", "home", "word", "name", "path", "url", "mac", "phone")
)


class Level(StrEnum):
    """How much is removed."""

    STANDARD = "standard"
    """Secrets, names, addresses and home directories."""
    STRICT = "strict"
    """Also every random-looking value, path, URL and address, even those of examples and public sites."""
    METRICS = "metrics"
    """All text: only times, kinds, models, tool names, counts and sizes remain."""


class Settings(Struct, frozen=True):
    """What to redact in addition to the rules, and what to keep.

    `patterns` are regular expressions by name: their matches become `<name-1>`. `formats` are the same in the
    notation of the table of formats: `acme_{alnum:32}`. `words` are hidden everywhere, in any case.
    `keep` are exact texts that are not hidden even if a rule matches them. `users` and `hosts` are
    additional names of users and machines. `level` is how much the rules remove.
    """

    patterns: dict[str, str] = {}
    formats: dict[str, str] = {}
    words: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    level: Level = Level.STANDARD

    def compile_patterns(self) -> dict[str, re.Pattern[str]]:
        """Compile the patterns.

        Raises:
            BadQuery: a pattern or format is not valid, or its search could take too long.
        """
        patterns = {name: _compile_pattern(name, pattern) for name, pattern in self.patterns.items()}
        return patterns | {
            name: _compile_pattern(name, _format_pattern(name, text)) for name, text in self.formats.items()
        }


def _format_pattern(name: str, text: str) -> str:
    try:
        return token_pattern(text)
    except ValueError as error:
        raise BadQuery(f"The format {name!r} is invalid: {error}. Example: acme_{{alnum:32}}.") from None


def _compile_pattern(name: str, pattern: str) -> re.Pattern[str]:
    if not _PATTERN_NAME.match(name) or name in _RESERVED_NAMES:
        raise BadQuery(
            f"Invalid pattern name {name!r}. Use lower-case letters, but none of {', '.join(sorted(_RESERVED_NAMES))}."
        )
    if len(pattern) > _MAX_PATTERN:
        raise BadQuery(
            f"The pattern {name!r} has more than {_MAX_PATTERN:,} characters. Split it into several patterns."
        )
    try:
        compiled = re.compile(pattern)
        tree = parse_regex(compiled)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadQuery(f"The pattern {name!r} is not a valid regular expression: {error}.") from None
    if compiled.match("") or compiled.fullmatch(" "):
        raise BadQuery(f"The pattern {name!r} matches an empty text or a space. Make it more specific.")
    if _count_unbounded(tree, name) > 1:
        raise BadQuery(
            f"The pattern {name!r} has several unbounded repeats (`*`, `+` or `{{n,}}`). "
            f"Limit all but one, for example with {{0,{_MAX_BOUNDED_REPEAT}}}."
        )
    if _count_paths(tree) > _MAX_PATHS:
        raise BadQuery(
            f"The pattern {name!r} can match in more than {_MAX_PATHS:,} ways, which can take too long."
            " Use fewer `?`, `{0,n}` and `|`."
        )
    return compiled


def _count_paths(tree: Sequence) -> int:
    """How many paths a backtracking search may try at one position: the product over all repeats and alternatives."""
    paths = 1
    for node in tree:
        match node:
            case Repeat(body, least, most):
                upper = PIECE_LENGTH if most is None else min(most, PIECE_LENGTH)
                paths *= (upper - min(least, PIECE_LENGTH) + 1) * _count_paths(body)
            case Branch(options):
                paths *= sum(map(_count_paths, options))
            case Group(body) | Look(body) | Atomic(body):
                paths *= _count_paths(body)
        paths = min(paths, _MAX_PATHS + 1)
    return paths


def _count_unbounded(tree: Sequence, name: str) -> int:
    """How many repeats have no small bound. Nested repeats and back references are refused."""
    count = 0
    for node in tree:
        match node:
            case Repeat(body, _least, most):
                is_single = len(body) == 1 and isinstance(body[0], SINGLE_CHARACTER)
                if not is_single and most != 1 and _has_repeat(body):
                    raise BadQuery(
                        f"The pattern {name!r} contains a nested repeat, which can take too long. Flatten it."
                    )
                count += _count_unbounded(body, name) + (most is None or most > _MAX_BOUNDED_REPEAT)
            case Branch(options):
                count += max(_count_unbounded(option, name) for option in options)
            case Group(body) | Look(body) | Atomic(body):
                count += _count_unbounded(body, name)
            case BackReference() | Conditional():
                raise BadQuery(f"The pattern {name!r} contains a back reference, which can take too long. Remove it.")
    return count


def _has_repeat(tree: Sequence) -> bool:
    """Whether there is a repeat or an alternative inside."""
    return any(
        isinstance(node, Repeat | Branch) or (isinstance(node, Group) and _has_repeat(node.body)) for node in tree
    )
