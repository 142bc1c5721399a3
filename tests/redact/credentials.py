"""Made-up credentials of every kind, built at run time so that no file contains one."""

from __future__ import annotations

import re
import string
from importlib import import_module
from random import Random
from typing import Any

from threadline.redact.formats import SERVICES, Service, TokenFormat
from threadline.redact.tokens import FORMATS

_parser: Any = import_module("re._parser")
_codes: Any = import_module("re._constants")
_WORD = string.ascii_letters + string.digits + "_"
_MORE = 6


def seeded(seed: int) -> Random:
    """A random generator that gives the same values in every run."""
    return Random(seed)  # noqa: S311 - made-up credentials


def token_value(rule: TokenFormat, random: Random) -> str:
    """A random value that matches the rule's pattern."""
    return _matching_text(rule.pattern, random)


def service_value(service: Service, random: Random) -> str:
    """A random value that matches the service's pattern."""
    return _matching_text(service.pattern, random)


def all_kinds() -> list[str]:
    """Every kind that a value can be generated for."""
    return [rule.kind for rule in FORMATS] + [service.kind for service in SERVICES]


def private_key(random: Random, *, label: str = "RSA PRIVATE KEY", lines: int = 12, end: str = "\n") -> str:
    """An armoured private key with a random body."""
    dashes = "-" * 5
    letters = string.ascii_letters + string.digits + "+/"
    body = ["".join(random.choices(letters, k=64)) for _ in range(lines)]
    return end.join([f"{dashes}BEGIN {label}{dashes}", *body, f"{dashes}END {label}{dashes}"])


def password(random: Random) -> str:
    """A password such as a person might choose."""
    letters = string.ascii_letters + string.digits + "!#%*+-=?@^_~"
    middle = "".join(random.choices(letters, k=random.randint(6, 18)))
    return f"q{random.choice(string.digits)}{middle}Z{random.choice(string.digits)}"


def _matching_text(pattern: str, random: Random) -> str:
    """Random text that matches the whole pattern. Lookaheads are ignored, so several attempts may be needed."""
    tree = _parser.parse(pattern)
    for _ in range(1000):
        text = "".join(_random_parts(tree, random))
        if re.fullmatch(pattern, text):
            return text
    raise AssertionError(pattern)


def _random_parts(tree: Any, random: Random) -> list[str]:
    parts: list[str] = []
    for code, argument in tree:
        if code is _codes.LITERAL:
            parts.append(chr(argument))
        elif code is _codes.IN:
            parts.append(random.choice(_characters(argument)))
        elif code in {_codes.MAX_REPEAT, _codes.POSSESSIVE_REPEAT}:
            least, most, inner = argument
            for _ in range(random.randint(least, min(int(most), least + _MORE))):
                parts += _random_parts(inner, random)
        elif code is _codes.SUBPATTERN:
            parts += _random_parts(argument[3], random)
        elif code is _codes.BRANCH:
            parts += _random_parts(random.choice(argument[1]), random)
    return parts


def _characters(classes: Any) -> str:
    characters = ""
    for code, argument in classes:
        if code is _codes.RANGE:
            characters += "".join(map(chr, range(argument[0], argument[1] + 1)))
        elif code is _codes.LITERAL:
            characters += chr(argument)
        elif code is _codes.CATEGORY:
            characters += _WORD if argument is _codes.CATEGORY_WORD else string.digits
    return characters
