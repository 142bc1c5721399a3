r"""Parse a regular expression that Python accepts into a small tree.

Search and redaction need to know what an expression contains: which literal text every match has, and whether matching
could take exponential time. Python's own parser is private, so this one reads the documented syntax. It assumes that
`re.compile` accepted the expression, and reports no errors of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias
from unicodedata import lookup


class Literal(NamedTuple):
    """One character."""

    char: str


class Category(NamedTuple):
    r"""A class of characters: `\d`, `\D`, `\w`, `\W`, `\s` or `\S`, named by its letter."""

    letter: str


class AnyChar(NamedTuple):
    """A dot."""


class CharSet(NamedTuple):
    """Characters in brackets: single ones, ranges (first and last) and categories."""

    members: tuple[str | tuple[str, str] | Category, ...]
    is_negated: bool = False


class Anchor(NamedTuple):
    r"""A position: `^`, `$`, `\A`, `\Z`, `\b` or `\B`, named by its last character. `\z` (Python 3.14) is `\Z`."""

    name: str


class Group(NamedTuple):
    """A group, with the flags that it switches on and off inside."""

    body: Sequence
    flags_on: str = ""
    flags_off: str = ""


class Branch(NamedTuple):
    """Alternatives."""

    options: tuple[Sequence, ...]


class Repeat(NamedTuple):
    """A repetition; `most` is None without an upper bound. `mode` is empty, `?` (lazy) or `+` (possessive)."""

    body: Sequence
    least: int
    most: int | None
    mode: str = ""


class Look(NamedTuple):
    """A lookahead or lookbehind assertion."""

    body: Sequence


class Atomic(NamedTuple):
    """An atomic group."""

    body: Sequence


class BackReference(NamedTuple):
    """A reference to what a group matched."""


class Conditional(NamedTuple):
    """A choice that depends on whether a group matched."""

    options: tuple[Sequence, ...]


Node: TypeAlias = (
    Literal
    | Category
    | AnyChar
    | CharSet
    | Anchor
    | Group
    | Branch
    | Repeat
    | Look
    | Atomic
    | BackReference
    | Conditional
)
Sequence: TypeAlias = tuple[Node, ...]
"""Nodes that match one after the other."""

SINGLE_CHARACTER = (Literal, Category, AnyChar, CharSet)
"""The nodes that match exactly one character."""

_REPEAT = re.compile(r"(?:(\*)|(\+)|(\?)|\{(?!\})(\d*)(,?)(\d*)\})([?+]?)", re.ASCII)
_FLAGS = re.compile(r"\?([aiLmsux]*)(?:-([imsx]+))?([:)])")
_HEX_ESCAPE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]+)\}")
_OCTAL_ESCAPE = re.compile(r"0[0-7]{0,2}|[0-3][0-7]{2}")
_GROUP_NUMBER = re.compile("[1-9][0-9]?")
_OCTAL_IN_SET = re.compile(r"[0-7]{1,3}")
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_COMMENTS = re.compile(r"(?:\(\?#[^)]*\))+")
_VERBOSE_GAP = re.compile(r"(?:[ \t\n\r\f\v]+|#[^\n]*\n?|\(\?#[^)]*\))+")


def parse_regex(pattern: re.Pattern[str]) -> Sequence:
    """The tree of a compiled expression."""
    return _Parser(pattern.pattern, is_verbose=bool(pattern.flags & re.VERBOSE)).sequence()


def walk(nodes: Sequence) -> Iterator[Node]:
    """All nodes of a tree, each before its children."""
    for node in nodes:
        yield node
        for children in _children(node):
            yield from walk(children)


def _children(node: Node) -> tuple[Sequence, ...]:
    match node:
        case Group(body) | Repeat(body) | Look(body) | Atomic(body):
            return (body,)
        case Branch(options) | Conditional(options):
            return options
    return ()


def min_width(nodes: Sequence) -> int:
    """The fewest characters that a match has; back references count as none."""
    return sum(map(_min_width, nodes))


def _min_width(node: Node) -> int:
    match node:
        case Group(body) | Atomic(body):
            return min_width(body)
        case Repeat(body, least):
            return least * min_width(body)
        case Branch(options) | Conditional(options):
            return min(map(min_width, options))
        case Anchor() | Look() | BackReference():
            return 0
    return 1


class _Parser:
    def __init__(self, pattern: str, *, is_verbose: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._is_verbose = is_verbose

    def sequence(self) -> Sequence:
        """Alternatives up to a closing parenthesis or the end."""
        options = [self._terms()]
        while self._skips("|"):
            options.append(self._terms())
        if len(options) == 1:
            return options[0]
        prefix = _common_prefix(options)
        rests = tuple(option[len(prefix) :] for option in options)
        members = _set_members(rests)
        return (*prefix, CharSet(members) if members else Branch(rests))

    def _terms(self) -> Sequence:
        nodes: list[Node] = []
        while True:
            self._skip_gap()
            if self._at >= len(self._pattern) or self._pattern[self._at] in "|)":
                return tuple(nodes)
            atom = self._atom()
            if atom is not None:
                nodes.append(self._repeated(atom))

    def _repeated(self, atom: Node) -> Node:
        self._skip_gap()
        repeat = _REPEAT.match(self._pattern, self._at)
        if repeat is None:
            return atom
        self._at = repeat.end()
        star, plus, question, least, comma, most, mode = repeat.groups()
        body = (atom,)
        if star or plus or question:
            return Repeat(body, 1 if plus else 0, 1 if question else None, mode)
        upper = int(most) if most else None if comma else int(least)
        return Repeat(body, int(least or 0), upper, mode)

    def _atom(self) -> Node | None:
        char = self._pattern[self._at]
        self._at += 1
        if char == "\\":
            return self._escape()
        if char == "[":
            return self._set()
        if char == "(":
            return self._group()
        if char == ".":
            return AnyChar()
        return Anchor(char) if char in "^$" else Literal(char)

    def _escape(self) -> Node:
        char = self._pattern[self._at]
        if char in "dDwWsS":
            self._at += 1
            return Category(char)
        if char in "AZzbB":
            self._at += 1
            return Anchor("Z" if char == "z" else char)
        group = _GROUP_NUMBER.match(self._pattern, self._at)
        if group is not None and _OCTAL_ESCAPE.match(self._pattern, self._at) is None:
            self._at = group.end()
            return BackReference()
        return Literal(self._escaped_char(_OCTAL_ESCAPE))

    def _escaped_char(self, octal: re.Pattern[str]) -> str:
        code = _HEX_ESCAPE.match(self._pattern, self._at)
        if code is not None:
            self._at = code.end()
            return lookup(code[4]) if code[4] else chr(int(code[1] or code[2] or code[3], 16))
        digits = octal.match(self._pattern, self._at)
        if digits is not None:
            self._at = digits.end()
            return chr(int(digits[0], 8))
        self._at += 1
        char = self._pattern[self._at - 1]
        return _CONTROL.get(char, char)

    def _set(self) -> Node:
        is_negated = self._skips("^")
        members: list[str | tuple[str, str] | Category] = []
        while not members or self._pattern[self._at] != "]":
            first = self._member()
            is_range = self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at)
            if isinstance(first, str) and is_range:
                self._at += 1
                last = self._member()
                if isinstance(last, str):
                    members.append((first, last))
                    continue
                members += first, "-", last
                continue
            members.append(first)
        self._at += 1
        if len(members) == 1 and isinstance(members[0], str) and not is_negated:
            return Literal(members[0])
        return CharSet(tuple(members), is_negated)

    def _member(self) -> str | Category:
        char = self._pattern[self._at]
        self._at += 1
        if char != "\\":
            return char
        if self._pattern[self._at] in "dDwWsS":
            self._at += 1
            return Category(self._pattern[self._at - 1])
        return self._escaped_char(_OCTAL_IN_SET)

    def _group(self) -> Node | None:  # noqa: PLR0911 - one for each kind of group
        start = self._pattern[self._at : self._at + 3]
        if not start.startswith("?"):
            return Group(self._body())
        if start == "?P=":
            self._at = self._pattern.index(")", self._at) + 1
            return BackReference()
        if start.startswith("?("):
            self._at = self._pattern.index(")", self._at) + 1
            return Conditional(self._sides())
        if start == "?P<":
            self._at = self._pattern.index(">", self._at) + 1
            return Group(self._body())
        if start.startswith("?>"):
            self._at += 2
            return Atomic(self._body())
        for prefix in ("?=", "?!", "?<=", "?<!"):
            if self._skips(prefix):
                return Look(self._body())
        return self._flag_group()

    def _flag_group(self) -> Node | None:
        flags = _FLAGS.match(self._pattern, self._at)
        if flags is None:
            raise ValueError(f"unknown syntax at {self._at}")
        self._at = flags.end()
        if flags[3] == ")":  # global flags, at the beginning of the expression: `re.Pattern.flags` has them
            return None
        outer = self._is_verbose
        self._is_verbose = (outer or "x" in flags[1]) and "x" not in (flags[2] or "")
        body = self._body()
        self._is_verbose = outer
        return Group(body, flags[1], flags[2] or "")

    def _sides(self) -> tuple[Sequence, Sequence]:
        """The two sides of a conditional; the second is empty if it is left out."""
        first = self._terms()
        second = self._terms() if self._skips("|") else ()
        self._at += 1  # the closing parenthesis
        return first, second

    def _body(self) -> Sequence:
        nodes = self.sequence()
        self._at += 1  # the closing parenthesis
        return nodes

    def _skips(self, text: str) -> bool:
        is_here = self._pattern.startswith(text, self._at)
        self._at += len(text) if is_here else 0
        return is_here

    def _skip_gap(self) -> None:
        """Skip comments and, in a verbose expression, white space. A repetition may follow them."""
        gap = (_VERBOSE_GAP if self._is_verbose else _COMMENTS).match(self._pattern, self._at)
        self._at = gap.end() if gap is not None else self._at


def _common_prefix(options: list[Sequence]) -> Sequence:
    """The characters that all alternatives begin with."""
    prefix: list[Node] = []
    for nodes in zip(*options, strict=False):
        if not isinstance(nodes[0], SINGLE_CHARACTER) or any(node != nodes[0] for node in nodes):
            break
        prefix.append(nodes[0])
    return tuple(prefix)


def _set_members(options: tuple[Sequence, ...]) -> tuple[str | tuple[str, str] | Category, ...]:
    """The members of a set that is the same as these alternatives; none if one of them is not a single character."""
    members: list[str | tuple[str, str] | Category] = []
    for option in options:
        match option:
            case (Literal(char),):
                members.append(char)
            case (Category() as category,):
                members.append(category)
            case (CharSet(inner, False),):
                members += inner
            case _:
                return ()
    return tuple(members)
