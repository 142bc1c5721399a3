"""Token formats and named services, as data.

`token_formats.txt` has a line for each kind that is recognized by its own format: prefix, alphabets and lengths,
checksum, and where the format is published. `service_values.txt` has a line for each service whose credentials have no
distinctive format, but are assigned to a name that contains the service. Patterns are derived from these tables.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from threadline.redact.rules.patterns import compile_lazily

ALPHABETS = {
    "digit": "0-9",
    "hex": "0-9a-f",
    "HEX": "0-9A-F",
    "Hex": "0-9a-fA-F",
    "lower": "a-z",
    "upper": "A-Z",
    "low": "a-z0-9",
    "up": "A-Z0-9",
    "alnum": "A-Za-z0-9",
    "word": "A-Za-z0-9_",
    "url": "A-Za-z0-9_-",
    "dotted": "A-Za-z0-9_.-",
    "b64": "A-Za-z0-9+/",
    "any64": "A-Za-z0-9+/_-",
    "base32": "A-Z2-7",
    "base58": "1-9A-HJ-NP-Za-km-z",
    "bech32": "02-9ac-hj-np-z",
    "BECH32": "02-9AC-HJ-NP-Z",
    "padded": "A-Za-z0-9+/=_-",
    "visible": "!-~",
}
"""Alphabets of tokens, as the inside of a character class."""

_RUN_ALPHABETS = (frozenset(ALPHABETS) | {"uuid"}) - {"padded", "visible"}
_WORD_ALPHABETS = _RUN_ALPHABETS - {"dotted", "b64", "any64", "uuid"}
_RUN_CHARACTERS = compile_lazily(r"[A-Za-z0-9_+/.~-]+")
_WORD_CHARACTERS = compile_lazily(r"[A-Za-z0-9_-]+")
_SHAPES = {"uuid": "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", "pad": "={0,2}"}
_SHAPE_LENGTHS = {"uuid": (36, 36), "pad": (0, 2)}
_UNBOUNDED = 4096
_PART = compile_lazily(r"\{(\w+)(?::([0-9]+)(?:-([0-9]+)|(\+))?)?\}|\\(.)|([()|?])|([^{}()|?\\]+)")
_ANCHOR_SIGNS = "_.~:|$-"
_JOINING_SIGNS = frozenset((":", "|", "$", "!", ""))
_MIN_PREFIX = 2
_DISTINCTIVE_PREFIX = 3
_MIN_WORD = 24
_MIN_INNER_ANCHOR = 5
# Words that also begin names in code. A prefix of these does not show what a token is.
_COMMON_WORDS = compile_lazily(
    "access|act|agent|api|app|auto|cal|console|dev|ext|key|link|live|mat|mob|pat|pre|preview|prod|project|pub|public"
    "|sat|sc|sdk|secret|ser|sess|sig|ss|test|token|user|web"
)


# Prefixes of ids, of which only some forms are secret.
_ID_PREFIXES = frozenset(
    ("pi_", "seti_", "p.", "s.", "t1.", "st.", "sl.", "v1.0-", "as-", "al-", "pa-", "web_", "pk_", "pk.")
)


class Part(NamedTuple):
    """A part of a token: a literal, characters of an alphabet, a named shape, or alternatives."""

    literal: str = ""
    alphabet: str = ""
    least: int = 1
    most: int = 1
    options: tuple[tuple[Part, ...], ...] = ()
    is_optional: bool = False

    @property
    def pattern(self) -> str:
        """A regular expression for the part."""
        if self.options:
            body = "(?:" + "|".join("".join(part.pattern for part in option) for option in self.options) + ")"
        elif self.alphabet in _SHAPES:
            body = _SHAPES[self.alphabet]
        elif self.alphabet:
            most = "" if self.most >= _UNBOUNDED else str(self.most)
            bounds = str(self.least) if self.least == self.most else f"{self.least},{most}"
            body = f"[{ALPHABETS[self.alphabet]}]{{{bounds}}}"
        else:
            body = re.escape(self.literal)
        return f"(?:{body})?" if self.is_optional else body

    @property
    def length(self) -> tuple[int, int]:
        """The least and greatest length."""
        if self.options:
            lengths = [_length_of(option) for option in self.options]
            least, most = min(least for least, _ in lengths), max(most for _, most in lengths)
        elif self.alphabet in _SHAPE_LENGTHS:
            least, most = _SHAPE_LENGTHS[self.alphabet]
        else:
            least, most = (self.least, self.most) if self.alphabet else (len(self.literal), len(self.literal))
        return (0 if self.is_optional else least), most


@lru_cache(maxsize=2048)
def parse_token(text: str) -> tuple[Part, ...]:
    """Parse a token of the table.

    Raises:
        ValueError: the text is not in the notation of the table.

    >>> [part.pattern for part in parse_token("ab_{hex:8-12}(x{digit:2})?")]
    ['ab_', '[0-9a-f]{8,12}', '(?:(?:x[0-9]{2}))?']
    """
    stack: list[list[list[Part]]] = [[[]]]
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or (match[1] and match[1] not in ALPHABETS and match[1] not in _SHAPES):
            raise ValueError(f"unknown notation at character {at + 1} of {text!r}")
        at = match.end()
        parts = stack[-1][-1]
        if match[1]:
            least = int(match[2] or 1)
            most = _UNBOUNDED if match[4] else int(match[3] or least)
            parts.append(Part(alphabet=match[1], least=least, most=most))
        elif match[6] == "(":
            stack.append([[]])
        elif match[6] == ")" and len(stack) > 1:
            options = stack.pop()
            stack[-1][-1].append(Part(options=tuple(map(tuple, options))))
        elif match[6] == "|" and len(stack) > 1:
            stack[-1].append([])
        elif match[6] == "?" and parts and not parts[-1].literal:
            parts[-1] = parts[-1]._replace(is_optional=True)
        elif match[6] in {")", "?"}:
            raise ValueError(f"unexpected {match[6]!r} at character {at} of {text!r}")
        else:
            parts.append(Part(literal=match[5] or match[6] or match[7]))
    if len(stack) > 1:
        raise ValueError(f"no closing bracket in {text!r}")
    return tuple(stack[0][0])


def token_pattern(text: str) -> str:
    """A regular expression for a token in the notation of the table."""
    return "".join(part.pattern for part in parse_token(text.removeprefix("~")))


def _length_of(parts: tuple[Part, ...]) -> tuple[int, int]:
    lengths = [part.length for part in parts]
    return sum(least for least, _ in lengths), sum(most for _, most in lengths)


def _prefixes_of(parts: tuple[Part, ...]) -> list[str]:
    """The literals that a token can start with."""
    prefixes = [""]
    for part in parts:
        if part.is_optional or (part.alphabet and not part.options):
            break
        if part.literal:
            prefixes = [prefix + part.literal for prefix in prefixes]
            continue
        prefixes = [prefix + end for prefix in prefixes for option in part.options for end in _prefixes_of(option)]
        if not all(piece.literal for option in part.options for piece in option):
            break
    return prefixes


class Stretch(NamedTuple):
    """A stretch of a token without certain signs: its length range, the most characters before it, and the sign."""

    least: int
    most: int
    before: int
    sign: str


def _has_only(parts: tuple[Part, ...], alphabets: frozenset[str], characters: re.Pattern[str]) -> bool:
    """Whether all parts are of these alphabets and characters."""
    return all(
        part.alphabet in alphabets
        or (part.literal and characters.fullmatch(part.literal) is not None)
        or (part.options and all(_has_only(option, alphabets, characters) for option in part.options))
        for part in parts
    )


def _split_stretches(parts: tuple[Part, ...], alphabets: frozenset[str], characters: re.Pattern[str]) -> list[Stretch]:
    """Split a token at all signs that are not of these alphabets and characters."""
    stretches: list[Stretch] = []
    least = most = before = position = 0
    sign = ""
    pieces = [
        Part(literal=character) if part.literal else part for part in parts for character in (part.literal or " ")
    ]
    for part in pieces:
        low, high = part.length
        position += high
        if _has_only((part,), alphabets, characters):
            least, most = least + low, most + high
        else:
            stretches.append(Stretch(least, most, before, sign))
            least = most = 0
            before = position
            sign = part.literal
    return [*stretches, Stretch(least, most, before, sign)]


class TokenFormat(Struct, frozen=True, dict=True):
    """A kind of credential that is recognized by its format.

    `token` spells the prefix, the alphabets and the lengths. `checksum` is the name of a check of the whole token.
    """

    kind: str
    what: str
    token: str
    checksum: str = ""
    source: str = ""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the token."""
        return parse_token(self.token.removeprefix("~"))

    @cached_property
    def pattern(self) -> str:
        """A regular expression for the whole token."""
        return "".join(part.pattern for part in self.parts)

    @cached_property
    def anchors(self) -> tuple[str, ...]:
        """The literals at the start of the token, up to their last sign. Empty if there are none."""
        anchors = []
        for prefix in _prefixes_of(self.parts):
            cut = max(map(prefix.rfind, _ANCHOR_SIGNS)) + 1
            anchors.append(prefix[:cut] if cut > _MIN_INNER_ANCHOR else prefix)
        is_before_run = self.run.sign not in _JOINING_SIGNS
        return () if is_before_run or min(map(len, anchors)) < _MIN_PREFIX else tuple(dict.fromkeys(anchors))

    @cached_property
    def inner_anchor(self) -> tuple[str, int]:
        """A literal inside the token that is as good as a prefix, and the most characters before it."""
        before = 0
        for part in self.parts:
            if before and len(part.literal) >= _MIN_INNER_ANCHOR and part.literal[-1] in _ANCHOR_SIGNS:
                return part.literal, before
            before += part.length[1]
        return "", 0

    @property
    def anchor(self) -> str:
        """The first anchor, or an empty text."""
        return self.anchors[0] if self.anchors else ""

    @cached_property
    def is_distinctive(self) -> bool:
        """Whether the prefix alone shows what the token is. Otherwise the token must not be part of a longer word."""
        if self.token.startswith("~"):
            return True
        return bool(self.anchors) and all(
            sum(map(str.isalnum, prefix)) >= _DISTINCTIVE_PREFIX + 2 * (prefix[-1:] not in _ANCHOR_SIGNS)
            and _COMMON_WORDS.fullmatch(prefix.strip(_ANCHOR_SIGNS).lower()) is None
            for prefix in _prefixes_of(self.parts)
        )

    @cached_property
    def has_own_prefix(self) -> bool:
        """Whether no anchor is a common word or the prefix of public ids."""
        return not any(
            _COMMON_WORDS.fullmatch(anchor.strip(_ANCHOR_SIGNS).lower()) or anchor in _ID_PREFIXES
            for anchor in self.anchors
        )

    @cached_property
    def length(self) -> tuple[int, int]:
        """The least and greatest length of a token."""
        return _length_of(self.parts)

    @cached_property
    def run(self) -> Stretch:
        """The longest stretch of letters, digits and signs of base64."""
        return max(_split_stretches(self.parts, _RUN_ALPHABETS, _RUN_CHARACTERS))

    @cached_property
    def word(self) -> Stretch | None:
        """The word whose length is most certain, if it is long and its start can be recognized."""
        words = [
            word
            for word in _split_stretches(self.parts, _WORD_ALPHABETS, _WORD_CHARACTERS)
            if word.least >= _MIN_WORD and word.sign in _JOINING_SIGNS
        ]
        return max(words, key=lambda word: (word.least - word.most, word.least)) if words else None


class Service(Struct, frozen=True):
    """A service whose credentials have no distinctive format, but are assigned to names that contain the service.

    `names` are spellings of the service in such names, in lower case and without separators. `pattern` matches the
    whole value.
    """

    kind: str
    what: str
    names: tuple[str, ...]
    pattern: str
    source: str = ""


class Span(NamedTuple):
    """Something of a kind that was found from `start` to `end`.

    A `local_only` span is replaced only at this position. `value` is the secret, if it differs from the span's text.
    """

    start: int
    end: int
    kind: str
    local_only: bool = False
    value: str = ""


def _read_table(name: str, columns: int) -> list[list[str]]:
    rows = []
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            row = [cell.strip() for cell in line.replace(" | | ", " |  | ").split(" | ")]
            if len(row) != columns:
                raise ValueError(f"{name}: {len(row)} columns instead of {columns}: {line}")
            rows.append(row)
    return rows


FORMATS: tuple[TokenFormat, ...] = tuple(TokenFormat(*row) for row in _read_table("token_formats.txt", 5))
"""All kinds that are recognized by their format, except private keys."""

SERVICES: tuple[Service, ...] = tuple(
    Service(kind, what, tuple(names.split()), "|".join(map(token_pattern, values.split())), source)
    for kind, what, names, values, source in _read_table("service_values.txt", 5)
)
"""All services whose credentials are recognized by the name they are assigned to."""

_ANY_SERVICE = compile_lazily("|".join(sorted({re.escape(name) for service in SERVICES for name in service.names})))


def find_services(joined_name: str) -> tuple[Service, ...]:
    """The services that a name contains. The name is in lower case and without separators."""
    if _ANY_SERVICE.search(joined_name) is None:
        return ()
    return tuple(service for service in SERVICES if any(word in joined_name for word in service.names))
