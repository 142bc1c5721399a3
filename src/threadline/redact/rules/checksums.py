"""Checks of tokens that contain a checksum or a structure that random text does not have."""

from __future__ import annotations

from base64 import b32decode, urlsafe_b64decode
from binascii import crc32, crc_hqx
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise

from threadline.redact.rules.patterns import compile_lazily

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
RIPPLE58 = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_CONSTANTS = frozenset((1, 0x2BC830A3))
_CHECKSUM_SIZE = 4
_GITHUB_BODY, _GITHUB_CHECKSUM = 30, 6
_GITLAB_OLD_BODY = 20
_GITLAB_CHECKSUM = 7
_MIN_CHANGES = 0.2
_MIN_CASE_CHANGES = 0.4
_MIN_DISTINCT = 5
_FILLED = 10
_MAX_SHARE = 0.6
_NUMBER_LENGTH = range(15, 22)
_BOOTSTRAP = compile_lazily(
    r"(?=[a-z]*[0-9])(?=[0-9]*[a-z])[a-z0-9]{6}\.(?=(?:[a-z]*[0-9]){2})(?=(?:[0-9]*[a-z]){2})[a-z0-9]{16}"
)


def to_base(number: int, alphabet: str, length: int) -> str:
    """A number in the digits of an alphabet, padded to a length."""
    digits = ""
    while number:
        number, digit = divmod(number, len(alphabet))
        digits = alphabet[digit] + digits
    return digits.rjust(length, alphabet[0])


def decode_base58(text: str, alphabet: str = BASE58) -> bytes:
    """The bytes of a base58 text."""
    number = 0
    for character in text:
        number = number * 58 + alphabet.index(character)
    zeros = len(text) - len(text.lstrip(alphabet[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def bech32_polymod(values: list[int]) -> int:
    """The checksum of five-bit values."""
    checksum = 1
    for value in values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATOR):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum


def bech32_values(text: str) -> list[int]:
    """The five-bit values of a bech32 text, with those of its human-readable part."""
    name, _, data = text.lower().rpartition("1")
    letters = [ord(letter) for letter in name]
    return [letter >> 5 for letter in letters] + [0] + [letter & 31 for letter in letters] + [*map(BECH32.index, data)]


def is_random(body: str) -> bool:
    """Whether the body of a token looks random: digits and cases change more often than in names."""
    body = "".join(filter(str.isalnum, body))
    classes = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in body]
    changes = sum(a != b for a, b in pairwise(classes)) / max(1, len(body))
    has_case = "u" in classes and "l" in classes
    return (
        len(set(body)) > _MIN_DISTINCT
        and (has_case or "d" in classes)
        and changes >= (_MIN_CASE_CHANGES if has_case else _MIN_CHANGES)
    )


def is_filler(body: str) -> bool:
    """Whether a body consists mostly of one character, as in `xxxx…` and `0000…`."""
    return len(body) >= _FILLED and Counter(body).most_common(1)[0][1] > len(body) * _MAX_SHARE


def _is_github(token: str) -> bool:
    body = token.partition("_")[2]
    return len(body) == _GITHUB_BODY + _GITHUB_CHECKSUM and body[_GITHUB_BODY:] == to_base(
        crc32(body[:_GITHUB_BODY].encode()), BASE62, _GITHUB_CHECKSUM
    )


def _is_gitlab(token: str) -> bool:
    """Whether the checksum of a routable token is right. Older tokens have neither a dot nor a checksum."""
    if "." not in token:
        return len(token.partition("-")[2]) == _GITLAB_OLD_BODY and any(map(str.isdigit, token))
    return token[-_GITLAB_CHECKSUM:] == to_base(crc32(token[:-_GITLAB_CHECKSUM].encode()), BASE36, _GITLAB_CHECKSUM)


def _is_macaroon(token: str) -> bool:
    """Whether it is a macaroon of version 2 that starts with the location of the index."""
    return b"pypi.org" in urlsafe_b64decode(token.partition("-")[2][:40])


def _is_base58check(token: str, alphabet: str = BASE58) -> bool:
    data = decode_base58(token.rpartition("_")[2], alphabet)
    body, checksum = data[:-_CHECKSUM_SIZE], data[-_CHECKSUM_SIZE:]
    return sha256(sha256(body).digest()).digest()[:_CHECKSUM_SIZE] == checksum


def _is_bech32(token: str) -> bool:
    return bech32_polymod(bech32_values(token)) in _BECH32_CONSTANTS


def _is_strkey(token: str) -> bool:
    """Whether the last two bytes are the CRC-16 of the others, as in keys of Stellar and NATS."""
    data = b32decode(token + "=" * (-len(token) % 8))
    return crc_hqx(data[:-2], 0) == int.from_bytes(data[-2:], "little")


def _is_nkey(token: str) -> bool:
    return token[0] == "S" and token[1] in "UAONCX" and _is_strkey(token)


def _is_discord(token: str) -> bool:
    """Whether the first part is the number of an account in base64."""
    number = token.partition(".")[0]
    digits = urlsafe_b64decode(number + "=" * (-len(number) % 4))
    return digits.isdigit() and len(digits) in _NUMBER_LENGTH


CHECKSUMS: dict[str, Callable[[str], bool]] = {
    "crc32-base62": _is_github,
    "gitlab-routable": _is_gitlab,
    "macaroon": _is_macaroon,
    "base58check": _is_base58check,
    "ripple": lambda token: _is_base58check(token, RIPPLE58),
    "bech32": _is_bech32,
    "strkey": _is_strkey,
    "nkey": _is_nkey,
    "discord": _is_discord,
    "bootstrap": lambda token: _BOOTSTRAP.fullmatch(token) is not None,
}
"""Checks by name. `random` is not among them: it is what any token without a right checksum must be."""


def has_checksum(name: str, token: str) -> bool:
    """Whether a token passes a check."""
    try:
        return CHECKSUMS[name](token)
    except ValueError:
        return False
