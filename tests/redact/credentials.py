"""Made-up credentials of every kind, built at run time so that no file contains one."""

from __future__ import annotations

import re
import string
from base64 import b32encode, urlsafe_b64encode
from binascii import crc32, crc_hqx
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from random import Random
from typing import Any

from threadline.redact.rules.checksums import (
    BASE36,
    BASE58,
    BASE62,
    BECH32,
    RIPPLE58,
    bech32_polymod,
    bech32_values,
    to_base,
)
from threadline.redact.rules.formats import Service, TokenFormat

_parser: Any = import_module("re._parser")
_codes: Any = import_module("re._constants")
_WORD = string.ascii_letters + string.digits + "_"
_MORE = 6


def seeded(seed: int) -> Random:
    """A random generator that gives the same values in every run."""
    return Random(seed)  # noqa: S311 - made-up credentials


def token_value(rule: TokenFormat, random: Random) -> str:
    """A random value of a format, with a right checksum."""
    text = _matching_text(rule.pattern, random)
    seal = _SEALS.get(rule.checksum.rstrip("!"), _leave)
    for _ in range(1000):
        sealed = seal(text, random)
        if re.fullmatch(rule.pattern, sealed):
            return sealed
    raise AssertionError(rule.kind)


def _leave(text: str, _random: Random) -> str:
    return text


def _seal_github(text: str, _random: Random) -> str:
    return text[:34] + to_base(crc32(text[4:34].encode()), BASE62, 6)


def _seal_gitlab(text: str, _random: Random) -> str:
    """A routable token ends with a checksum. Others have none."""
    return text if "." not in text else text[:-7] + to_base(crc32(text[:-7].encode()), BASE36, 7)


def _seal_macaroon(text: str, _random: Random) -> str:
    start = urlsafe_b64encode(b"\2\1\x08pypi.org").decode().rstrip("=")
    return f"pypi-{start}{text[5 + len(start) :]}"


# Version bytes and the length of what follows, by how the text starts.
_BASE58_BODIES = {
    "5": (b"\x80", 32, b""),
    "K": (b"\x80", 32, b"\1"),
    "L": (b"\x80", 32, b"\1"),
    "c": (b"\xef", 32, b"\1"),
    "9": (b"\xef", 32, b""),
    "6P": (b"\1\x42", 37, b""),
    "xprv": (b"\x04\x88\xad\xe4", 74, b""),
    "yprv": (b"\x04\x9d\x78\x78", 74, b""),
    "zprv": (b"\x04\xb2\x43\x0c", 74, b""),
    "tprv": (b"\x04\x35\x83\x94", 74, b""),
    "uprv": (b"\x04\x4a\x4e\x28", 74, b""),
    "vprv": (b"\x04\x5f\x18\xbc", 74, b""),
    "Yprv": (b"\x02\x95\xb0\x05", 74, b""),
    "Zprv": (b"\x02\xaa\x7a\x99", 74, b""),
    "Uprv": (b"\x02\x42\x85\xb5", 74, b""),
    "Vprv": (b"\x02\x57\x50\x48", 74, b""),
    "edsk": (b"\x0d\x0f\x3a\x07", 32, b""),
    "spsk": (b"\x11\xa2\xe0\xc9", 32, b""),
    "p2sk": (b"\x10\x51\xee\xbd", 32, b""),
}
_LONG_EDSK = 98


def _seal_base58(text: str, random: Random) -> str:
    prefix = next(start for start in (text[:4], text[:2], text[:1]) if start in _BASE58_BODIES)
    version, size, end = (b"\x2b\xf6\x4e\x07", 64, b"") if len(text) == _LONG_EDSK else _BASE58_BODIES[prefix]
    return _base58check(version + random.randbytes(size) + end, BASE58)


def _base58check(data: bytes, alphabet: str) -> str:
    whole = data + sha256(sha256(data).digest()).digest()[:4]
    zeros = len(whole) - len(whole.lstrip(b"\0"))
    return alphabet[0] * zeros + to_base(int.from_bytes(whole, "big"), alphabet, 0)


def _seal_ripple(text: str, random: Random) -> str:
    version = b"\x01\xe1\x4b" if text.startswith("sEd") else b"\x21"
    return _base58check(version + random.randbytes(16), RIPPLE58)


def _seal_bech32(text: str, _random: Random) -> str:
    checksum = bech32_polymod(bech32_values(text[:-6] + "q" * 6)) ^ 1
    sealed = text[:-6].lower() + "".join(BECH32[checksum >> 5 * (5 - at) & 31] for at in range(6))
    return sealed.upper() if text.isupper() else sealed


def _seal_strkey(data: bytes) -> str:
    return b32encode(data + crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")


def _seal_discord(text: str, random: Random) -> str:
    number = urlsafe_b64encode(str(random.randrange(10**17, 10**18)).encode()).decode().rstrip("=")
    return number + text[text.index(".") :]


def _seal_bootstrap(_text: str, random: Random) -> str:
    letters = string.ascii_lowercase + string.digits
    head, tail = ("".join(random.choices(letters, k=size)) for size in (4, 12))
    return f"a7{head}.b8c9{tail}"


_SEALS: dict[str, Callable[[str, Random], str]] = {
    "crc32-base62": _seal_github,
    "gitlab-routable": _seal_gitlab,
    "macaroon": _seal_macaroon,
    "base58check": _seal_base58,
    "ripple": _seal_ripple,
    "bech32": _seal_bech32,
    "strkey": lambda _text, random: _seal_strkey(b"\x90" + random.randbytes(32)),
    "nkey": lambda _text, random: _seal_strkey(b"\x95\0" + random.randbytes(32)),
    "discord": _seal_discord,
    "bootstrap": _seal_bootstrap,
}


def service_value(service: Service, random: Random) -> str:
    """A random value that matches the service's pattern."""
    return _matching_text(service.pattern, random)


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
