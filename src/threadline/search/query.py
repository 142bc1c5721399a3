"""Query: what is asked for, as a tree; its text form, `str(query)`, reads back as the same tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from msgspec import Struct

TEXTS = {
    "title": "title",
    "prompt": "prompt",
    "reply": "reply",
    "thinking": "thinking",
    "command": "command",
    "file": "path",
    "input": "input",
    "result": "result",
    "injected": "injected",
}
"""The fields that hold words, each with the column of full text that has them."""

VALUES = ("tool", "project", "branch", "model", "agent", "session", "kind", "version")
"""The fields that hold one value or a few, which are compared as they stand."""

FIELDS = (*TEXTS, "error", *VALUES, "since", "until", "cost")
"""All fields, as they are typed before a colon."""

Operator: TypeAlias = Literal[">=", "<=", ">", "<", "="]
FLAGS = {"agent": {"sub": True, "main": False}, "error": {"true": True, "yes": True, "false": False, "no": False}}
"""Words that say, for a field, whether there is one at all."""

NAMED = re.compile(r"([A-Za-z][A-Za-z_-]+):(?!//|:)")
"""What looks like a field's name before a colon; `http://` and `std::` do not."""

SIGN = re.compile(r"(OR|AND|NOT)(?=[\s()]|$)")
"""Words that are no words."""

_MARKS = frozenset('"()\\*')
_STARTS_ELSE = frozenset("-/:!")


class Text(Struct, frozen=True):
    """Words to be found next to each other: a word that may fall apart into several, or a phrase in quotes.

    `field` is one of `TEXTS`, or `error`; without one, any text counts. `prefix`: the last word may go on.
    """

    text: str
    field: str | None = None
    phrase: bool = False
    prefix: bool = False

    def __str__(self) -> str:
        star = "*" if self.prefix else ""
        return f"{_named(self.field)}{_quoted(self.text) if self.phrase else _bare(self.text, self.field)}{star}"


class Regex(Struct, frozen=True):
    """A regular expression to be found in some line of a text, or in a value."""

    pattern: str
    field: str | None = None
    exact_case: bool = False

    def __str__(self) -> str:
        escaped = "".join(part if part != "/" else "\\/" for part in pairs(self.pattern))
        return f"{_named(self.field)}/{escaped}/{'c' if self.exact_case else ''}"


class Is(Struct, frozen=True):
    """A field of `VALUES` that is such; with `prefix`, that begins so."""

    field: str
    value: str
    prefix: bool = False

    def __str__(self) -> str:
        return f"{self.field}:{_bare(self.value, self.field)}{'*' if self.prefix else ''}"


class Has(Struct, frozen=True):
    """A field of `VALUES` that has any value; `error`: something failed; `agent`: a subagent wrote it."""

    field: str

    def __str__(self) -> str:
        return f"{self.field}:*"


class When(Struct, frozen=True):
    """Not before a moment (`since`), or not after it (`until`)."""

    field: Literal["since", "until"]
    moment: datetime

    def __str__(self) -> str:
        moment = self.moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return f"{self.field}:{moment}"


class Cost(Struct, frozen=True):
    """What the session cost, in USD, compared with an amount."""

    operator: Operator
    amount: Decimal

    def __str__(self) -> str:
        return f"cost:{self.operator}{self.amount:f}"


class Not(Struct, frozen=True):
    """All but what is asked for inside. Made by `negated`."""

    of: Query

    def __str__(self) -> str:
        return f"-{_inside(self.of)}"


class And(Struct, frozen=True):
    """All at once, in the same entry. Made by `all_of`."""

    of: tuple[Query, ...]

    def __str__(self) -> str:
        return " ".join(f"({one})" if isinstance(one, Or) else str(one) for one in self.of)


class Or(Struct, frozen=True):
    """Any of them. Made by `any_of`."""

    of: tuple[Query, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.of))


class Phrase(Struct, frozen=True):
    """Tokens that stand next to each other in one column, or in any: what becomes of a `Text`."""

    tokens: tuple[str, ...]
    column: str | None = None
    prefix: bool = False


class Match(Struct, frozen=True):
    """Phrases, as an expression that FTS5 takes: what becomes of phrases."""

    expression: str


Query: TypeAlias = Text | Regex | Is | Has | When | Cost | Not | And | Or | Phrase | Match


def all_of(queries: Iterable[Query]) -> Query:
    """All at once, as flat as can be; one by itself stays as it is."""
    found = tuple(inner for one in queries for inner in (one.of if isinstance(one, And) else (one,)))
    return found[0] if len(found) == 1 else And(found)


def any_of(queries: Iterable[Query]) -> Query:
    """Any of them, as flat as can be; one by itself stays as it is."""
    found = tuple(inner for one in queries for inner in (one.of if isinstance(one, Or) else (one,)))
    return found[0] if len(found) == 1 else Or(found)


def negated(query: Query) -> Query:
    """All but it; twice is once more the same."""
    return query.of if isinstance(query, Not) else Not(query)


def leaves(query: Query) -> Iterator[Query]:
    """Everything in a query that is asked for by itself, from left to right."""
    if isinstance(query, And | Or):
        for one in query.of:
            yield from leaves(one)
    elif isinstance(query, Not):
        yield from leaves(query.of)
    else:
        yield query


def pairs(text: str) -> Iterator[str]:
    r"""The characters of a text, a backslash together with the one after it."""
    at = 0
    while at < len(text):
        step = 2 if text[at] == "\\" else 1
        yield text[at : at + step]
        at += step


def _named(field: str | None) -> str:
    return f"{field}:" if field is not None else ""


def _inside(query: Query) -> str:
    return f"({query})" if isinstance(query, And | Or) else str(query)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _bare(text: str, field: str | None) -> str:
    """A text without quotes: whatever would mean something else has a backslash."""
    escaped = "".join(f"\\{one}" if one in _MARKS or one.isspace() else one for one in text)
    if field is None and NAMED.match(escaped):
        return escaped.replace(":", "\\:", 1)
    is_sign = SIGN.fullmatch(text) if field is None else text.lower() in FLAGS.get(field, ())
    return f"\\{escaped}" if is_sign or escaped[:1] in _STARTS_ELSE else escaped
