r"""Regular expressions in queries: matched line by line in linear time, and the literal text every match must contain.

RE2 matches in time that grows linearly with the text, whatever the expression. It has no lookaround, back references
and possessive or atomic groups, and its `\b` knows ASCII letters only. For those Python's engine is used, but only if
it cannot take long: otherwise the expression is refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from threadline.errors import Missing
from threadline.index import strip_escapes
from threadline.regex_syntax import (
    Anchor,
    AnyChar,
    Atomic,
    BackReference,
    Branch,
    Category,
    CharSet,
    Conditional,
    Group,
    Literal,
    Look,
    Node,
    Repeat,
    Sequence,
    min_width,
    parse_regex,
    walk,
)

if TYPE_CHECKING:
    from threadline.search.match import TimeBudget
    from threadline.search.query import Regex

MAX_PATTERN_CHARS = 1_000
"""How many characters an expression may have."""
CHUNK_CHARS = 2_048
"""How many characters of a long line Python's engine searches at once."""
CHUNK_OVERLAP = 512
"""How many characters of a chunk the next one includes: the longest match it finds for sure in a long line."""

_CHUNK_EDGE = 64
_MAX_PARTS = 64
# Python's engine tries one way to match after another. It is used if a position has at most this many.
_MAX_PATHS = CHUNK_CHARS * 32
_TOO_MANY_PATHS = _MAX_PATHS + 1
# Ignoring case, Python treats a dotless i as an i. Full text does not, and both have to agree.
_DOTLESS_I, _DOTLESS_SUBSTITUTE = "\u0131", "\u0269"
# Ignoring case, Python and full text treat a capital I with a dot as an i. RE2 does not.
_DOTTED_I = "\u0130"
_SURROGATE = re.compile("[\ud800-\udfff]")
_RE2_MEMORY = 64 * 1024 * 1024
_MAX_RE2_REPEAT = 1_000


class BadRegex(ValueError):
    """An expression that is invalid or could take too long; `at` is the position of the error."""

    def __init__(self, sentence: str, at: int = 0) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.at = at


class RegexFinder:
    """Finds the first match of an expression. `^` and `$` are the ends of a line, and no match extends beyond it."""

    def __init__(self, regex: Regex) -> None:
        self._compiled, self.tree = _compile(regex)
        self._ignores_case = bool(self._compiled.flags & re.IGNORECASE)
        self._has_dotless = _DOTLESS_I in regex.pattern
        self._has_boundary = any(isinstance(node, Anchor) and node.name in "bB" for node in walk(self.tree))
        paths = _count_paths(self.tree) * max(1, min(CHUNK_CHARS, min_width(self.tree)))
        self._is_slow = paths > _MAX_PATHS
        self._linear = _compile_re2(self.tree, self._compiled.flags, is_required=self._is_slow)
        if self._linear is None and self._is_slow:
            raise BadRegex(
                "This regular expression could take forever. Write it with fewer repetitions, "
                "and without lookahead, lookbehind or back references."
            )
        # A search for the longest literal skips most lines many times faster than the expression itself.
        longest = max((part for run in _literal_runs(self.tree) for part in run.split("\n")), key=len, default="")
        self._literal = re.compile(re.escape(longest), re.IGNORECASE)

    def first(self, text: str, budget: TimeBudget | None = None) -> tuple[int, int] | None:
        """Where the first match starts and ends.

        Raises:
            SearchTimeout: the time is over.
        """
        check = budget.check if budget is not None else _no_check
        check()
        if self._linear is not None and (self._is_slow or not self._has_boundary or text.isascii()):
            match = self._linear.search(_for_re2(text, ignores_case=self._ignores_case))
            check()
            return match.span() if match is not None else None
        if not self._has_dotless and _DOTLESS_I in text:
            text = text.replace(_DOTLESS_I, _DOTLESS_SUBSTITUTE)
        return self._first_by_line(text, check)

    def _first_by_line(self, text: str, check: Callable[[], None]) -> tuple[int, int] | None:
        at = 0
        while at <= len(text) and (literal := self._literal.search(text, at)) is not None:
            start = text.rfind("\n", 0, literal.start()) + 1
            end = text.find("\n", literal.start())
            line = text[start : end if end >= 0 else len(text)]
            span = self._first_in_line(line, check)
            if span is not None:
                return start + span[0], start + span[1]
            at = start + len(line) + 1
        return None

    def _first_in_line(self, line: str, check: Callable[[], None]) -> tuple[int, int] | None:
        if self._linear is not None and len(line) > CHUNK_CHARS:
            match = self._linear.search(_for_re2(line, ignores_case=self._ignores_case))
            return match.span() if match is not None else None
        start, length = 0, len(line)
        while True:
            check()
            end = min(start + CHUNK_CHARS, length)
            match = self._compiled.search(line, start, end)
            # A match at the end of a chunk might be none if it saw what follows: search again from there.
            if match is not None and (end == length or match.end() < end - _CHUNK_EDGE or match.start() == start):
                return match.span()
            if end == length:
                return None
            start = match.start() if match is not None else end - CHUNK_OVERLAP


def _no_check() -> None:
    """Without a time budget."""


@lru_cache(maxsize=16)
def get_finder(regex: Regex) -> RegexFinder:
    """The finder of an expression.

    Raises:
        BadRegex: it is invalid, or its time cannot be bounded.
        Missing: only RE2 can bound its time, and google-re2 is not installed.
    """
    return RegexFinder(regex)


def regex_matches(regex: Regex, text: str, budget: TimeBudget | None = None) -> bool:
    """Whether an expression matches anywhere in a text, without the escape sequences that colour it."""
    return get_finder(regex).first(strip_escapes(text), budget) is not None


def _compile(regex: Regex) -> tuple[re.Pattern[str], Sequence]:
    if len(regex.pattern) > MAX_PATTERN_CHARS:
        raise BadRegex(f"A regular expression may have at most {MAX_PATTERN_CHARS:,} characters.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = re.compile(regex.pattern, re.NOFLAG if regex.exact_case else re.IGNORECASE)
            return compiled, parse_regex(compiled)
    except re.error as error:
        raise BadRegex(f"Invalid regular expression: {error.msg}.", error.pos or 0) from None
    except (RecursionError, OverflowError) as error:
        raise BadRegex("This regular expression is nested too deeply, or its counts are too large.") from error


# --- RE2


class _NotInRe2(Exception):
    """RE2 has no equivalent."""


# Python's classes, as RE2 writes them inside brackets.
_CLASSES = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": r"\p{L}\p{N}_",
    "s": r" \t\n\r\f\v\x1c-\x1f\x{85}\p{Z}",
}
_ASCII_CLASSES = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": r"\s\v\x1c-\x1f"}
_NEGATED_WORD_SETS = {
    frozenset({Category("W"), "_"}): r"[\p{L}\p{N}]",
    frozenset({Category("W"), Category("d")}): r"[\p{L}\p{Nl}\p{No}_]",
    frozenset({Category("W"), Category("d"), "_"}): r"[\p{L}\p{Nl}\p{No}]",
    frozenset({Category("W")}): r"[\p{L}\p{N}_]",
    frozenset({Category("S")}): rf"[{_CLASSES['s']}]",
}
_LINE_ANCHORS = {"^": "^", "A": "^", "$": "$", "Z": "$", "b": r"\b", "B": r"\B"}


def _compile_re2(tree: Sequence, flags: int, *, is_required: bool) -> Any:
    """The expression for RE2; None if RE2 cannot do it, or is not installed although it is not required."""
    try:
        import re2  # noqa: PLC0415 - an extra, and only for regular expressions
    except ImportError:
        if not is_required:
            return None
        raise Missing(
            "This regular expression needs google-re2 to finish in bounded time: pip install 'threadline[search]'"
        ) from None
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    options.max_mem = _RE2_MEMORY
    inline = "i" if flags & re.IGNORECASE else ""
    inline += "s" if flags & re.DOTALL else ""
    try:
        return re2.compile(f"(?m{inline})" + _Re2Writer(flags).sequence(tree), options)
    except (_NotInRe2, re2.error, RecursionError):
        return None


def _for_re2(text: str, *, ignores_case: bool) -> str:
    """A text of the same length that RE2 takes: without half surrogates, which JSON may contain."""
    if text.isascii():
        return text
    if ignores_case and _DOTTED_I in text:
        text = text.replace(_DOTTED_I, "I")
    return _SURROGATE.sub("\ufffd", text)


class _Re2Writer:
    """Writes a tree in RE2's syntax."""

    def __init__(self, flags: int) -> None:
        self._is_ascii = bool(flags & re.ASCII)
        if self._is_ascii and flags & re.IGNORECASE:  # Python then ignores the case of ASCII letters only
            raise _NotInRe2

    def sequence(self, nodes: Sequence) -> str:
        return "".join(map(self._node, nodes))

    def _node(self, node: Node) -> str:  # noqa: PLR0911 - one for each kind of node
        match node:
            case Literal(char):
                return _re2_char(char)
            case AnyChar():
                return "."
            case Category(letter):
                return self._set((node,), is_negated=False) if letter in "dDws" else self._negated(letter)
            case CharSet(members, is_negated):
                return self._set(members, is_negated=is_negated)
            case Anchor(name):
                return _LINE_ANCHORS[name]
            case Group(body, flags_on, flags_off):
                return self._group(body, flags_on, flags_off)
            case Branch(options):
                return f"(?:{'|'.join(map(self.sequence, options))})"
            case Repeat(body, least, most, mode):
                return self._repeat(self.sequence(body), least, most, mode)
        raise _NotInRe2

    def _group(self, body: Sequence, flags_on: str, flags_off: str) -> str:
        if set(flags_on) - set("isxmu"):
            raise _NotInRe2
        on, off = ("".join(flag for flag in flags if flag in "is") for flags in (flags_on, flags_off))
        return f"(?{on}{f'-{off}' if off else ''}:{self.sequence(body)})"

    @staticmethod
    def _repeat(body: str, least: int, most: int | None, mode: str) -> str:
        if mode == "+" or max(least, most or 0) > _MAX_RE2_REPEAT:
            raise _NotInRe2
        return f"(?:{body}){{{least},{'' if most is None else most}}}{mode}"

    def _negated(self, letter: str) -> str:
        return f"(?-i:[^{(_ASCII_CLASSES if self._is_ascii else _CLASSES)[letter.lower()]}])"

    def _set(self, members: tuple[str | tuple[str, str] | Category, ...], *, is_negated: bool) -> str:
        classes = _ASCII_CLASSES if self._is_ascii else _CLASSES
        if all(isinstance(member, Category) and member.letter in classes for member in members):
            parts = "".join(classes[member.letter] for member in members if isinstance(member, Category))
            return f"(?-i:[{'^' if is_negated else ''}{parts}])"  # these classes contain both cases
        negative = [member for member in members if isinstance(member, Category) and member.letter not in classes]
        if negative and is_negated:
            negated_set = _NEGATED_WORD_SETS.get(frozenset(members)) if not self._is_ascii else None
            if negated_set is None:
                raise _NotInRe2
            return f"(?-i:{negated_set})"
        positive = [_re2_member(member, classes) for member in members if member not in negative]
        options = [f"[{'^' if is_negated else ''}{''.join(positive)}]"] if positive else []
        options += [self._negated(member.letter) for member in negative]
        return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"


def _re2_member(member: str | tuple[str, str] | Category, classes: dict[str, str]) -> str:
    if isinstance(member, Category):
        return classes[member.letter]
    if isinstance(member, str):
        return _re2_char(member)
    return f"{_re2_char(member[0])}-{_re2_char(member[1])}"


def _re2_char(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    if _SURROGATE.match(char):
        raise _NotInRe2
    return f"\\x{{{ord(char):x}}}"


# --- the cost of Python's engine


def _count_paths(nodes: Sequence) -> int:
    """At most how many ways there are to match at one position, counted up to `_TOO_MANY_PATHS`."""
    return min(_TOO_MANY_PATHS, prod(map(_count_node_paths, nodes)))


def _count_node_paths(node: Node) -> int:
    match node:
        case Branch(options):
            return min(_TOO_MANY_PATHS, sum(map(_count_paths, options)))
        case Repeat(body, least, most):
            return _count_repeat_paths(body, least, most)
        case Group(body) | Look(body) | Atomic(body):
            return _count_paths(body)
        case BackReference():
            return CHUNK_CHARS
        case Conditional():
            return _TOO_MANY_PATHS
    return 1


def _count_repeat_paths(body: Sequence, least: int, most: int | None) -> int:
    upper = CHUNK_CHARS if most is None else most
    if upper > 1 and min_width(body) == 0:  # it may repeat without consuming anything
        return _TOO_MANY_PATHS
    counts = min(upper, CHUNK_CHARS) - min(least, CHUNK_CHARS) + 1
    # Each repetition can match in each of the ways.
    return min(_TOO_MANY_PATHS, counts * int(_count_paths(body) ** min(upper, _MAX_PATHS.bit_length())))


# --- literals


Requirement: TypeAlias = "str | tuple[list[Requirement], ...]"
"""What a match contains: a string, or everything in one of several lists."""
_Part: TypeAlias = "str | tuple[list[_Part], ...] | None"


def required_text(regex: Regex) -> list[Requirement]:
    r"""What every match contains. Strings may overlap; the beginning of a line is a newline.

    >>> from threadline.search.query import Regex
    >>> required_text(Regex(r"^import (os|sys) +# fine"))
    [(['\nimport os'], ['\nimport sys']), ' ', ' # fine']
    """
    return list(_join_literals(list(_literal_parts(get_finder(regex).tree))))


def required_literals(regex: Regex) -> Iterator[str]:
    r"""The strings that every match contains.

    >>> from threadline.search.query import Regex
    >>> list(required_literals(Regex(r"^import (os|sys) +# fine")))
    ['\nimport ', ' ', ' # fine']
    """
    yield from _literal_runs(get_finder(regex).tree)


def _literal_runs(nodes: Sequence) -> Iterator[str]:
    parts = (None if isinstance(part, tuple) else part for part in _literal_parts(nodes))
    yield from (requirement for requirement in _join_literals(parts) if isinstance(requirement, str))


def _join_literals(parts: Iterable[_Part]) -> Iterator[Requirement]:
    """Join characters to strings. Characters before a branch become part of each of its options."""
    run: list[str] = []
    for part in (*parts, None):
        if isinstance(part, str):
            run.append(part)
            continue
        if part is not None:
            yield tuple(list(_join_literals([*run, *option])) for option in part)
        elif run:
            yield "".join(run)
        run = []


def _literal_parts(nodes: Sequence) -> Iterator[_Part]:
    """The characters that every match contains, None where anything may come between, and the options of branches."""
    for node in nodes:
        match node:
            case Literal(char):
                yield char
            case Anchor(name):
                yield from ("\n",) if name in "^A" else ()
            case Group(body):
                yield from _literal_parts(body)
            case Branch(options):
                yield tuple(list(_literal_parts(option)) for option in options)
            case Repeat(body, least) if least and node.mode != "+":
                inner = list(_literal_parts(body))
                yield from inner
                yield None
                if _count_parts(inner) <= _MAX_PARTS:  # nested repetitions would double it each time
                    yield from inner
            case Look():
                pass
            case _:
                yield None


def _count_parts(parts: Iterable[_Part]) -> int:
    return sum(sum(map(_count_parts, part)) if isinstance(part, tuple) else 1 for part in parts)
