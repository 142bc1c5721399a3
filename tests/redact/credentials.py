"""Made-up credentials of every kind, put together when a test runs, so that none stands in a file."""

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
    """Chance that is the same in every run."""
    return Random(seed)  # noqa: S311 - made-up credentials


def formed_value(rule: TokenFormat, random: Random) -> str:
    """A value that has the rule's form."""
    return _fitting(rule.pattern, random)


def service_value(service: Service, random: Random) -> str:
    """A value of the service's length and letters."""
    return _fitting(service.pattern, random)


def all_kinds() -> list[str]:
    """Every kind that a value can be made of."""
    return [rule.kind for rule in FORMATS] + [service.kind for service in SERVICES]


def private_key(random: Random, *, label: str = "RSA PRIVATE KEY", lines: int = 12, end: str = "\n") -> str:
    """A private key in armour; the body is noise."""
    dashes = "-" * 5
    letters = string.ascii_letters + string.digits + "+/"
    body = ["".join(random.choices(letters, k=64)) for _ in range(lines)]
    return end.join([f"{dashes}BEGIN {label}{dashes}", *body, f"{dashes}END {label}{dashes}"])


def password(random: Random) -> str:
    """A password as a person may have it."""
    letters = string.ascii_letters + string.digits + "!#%*+-=?@^_~"
    middle = "".join(random.choices(letters, k=random.randint(6, 18)))
    return f"q{random.choice(string.digits)}{middle}Z{random.choice(string.digits)}"


def _fitting(pattern: str, random: Random) -> str:
    """Text that the whole pattern fits. Looking ahead is not followed, so some tries may not do."""
    tree = _parser.parse(pattern)
    for _ in range(1000):
        made = "".join(_made(tree, random))
        if re.fullmatch(pattern, made):
            return made
    raise AssertionError(pattern)


def _made(tree: Any, random: Random) -> list[str]:
    parts: list[str] = []
    for code, argument in tree:
        if code is _codes.LITERAL:
            parts.append(chr(argument))
        elif code is _codes.IN:
            parts.append(random.choice(_letters(argument)))
        elif code in {_codes.MAX_REPEAT, _codes.POSSESSIVE_REPEAT}:
            least, most, inner = argument
            for _ in range(random.randint(least, min(int(most), least + _MORE))):
                parts += _made(inner, random)
        elif code is _codes.SUBPATTERN:
            parts += _made(argument[3], random)
        elif code is _codes.BRANCH:
            parts += _made(random.choice(argument[1]), random)
    return parts


def _letters(classes: Any) -> str:
    found = ""
    for code, argument in classes:
        if code is _codes.RANGE:
            found += "".join(map(chr, range(argument[0], argument[1] + 1)))
        elif code is _codes.LITERAL:
            found += chr(argument)
        elif code is _codes.CATEGORY:
            found += _WORD if argument is _codes.CATEGORY_WORD else string.digits
    return found
