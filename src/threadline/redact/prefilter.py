"""Cheap byte searches that decide which rules a window needs.

Words and signs that few texts contain are located once for all rules that need them. A search for one rare byte lets
the processor skip many bytes at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# The letters after the shared one come first, because they fail fastest.
_WORDS_BY_LETTER = (
    re.compile(
        rb"b(?:earer|asic|ackup[ _-]codes|le(?<=airtable)|sys(?<=contribsys)|ox(?<=dropbox)|y (?<=identified by )"
        rb"|bitmqctl|a-tool(?<=samba-tool)|scure (?<=obscure )|c:oracle(?<=dbc:oracle)|crypt)"
    ),
    re.compile(
        rb"u(?:thoriz(?<=authoriz)|dant(?<=cloudant)|ent(?<=confluent)|mo(?<=sumo)|s(?<=net us)er? "
        rb"|th(?<=auth)(?=[a-z_]{0,24}[\"' \\]{0,3}[=(:])|th (?<=auth )|lt (?=login |encrypt_string |kv put |write )|"
        rb"e\t(?<=true\t)"
        rb"|e\\t(?<=true\\t)|nity (?<=community ))"
    ),
)
COOKIE, LINKEDIN = b"ie", b"edin"
BEARER, BASIC, AIRTABLE, CONTRIBSYS, DROPBOX = b"bearer", b"basic", b"ble", b"bsys", b"box"
AUTHORIZATION, CLOUDANT, CONFLUENT, SUMO = b"uthoriz", b"udant", b"uent", b"umo"
IDENTIFIED_BY, SUDO, SECURE_STRING = b"by ", b"-s", b"-securestring"
BEGIN, END, PRIVATE_LINES = b"-begin", b"-end", b"-lines: "
SSH2_BEGIN, SSH2_END = b"- begin", b"- end"
CHPASSWD, NETRC, PHRASE = b"asswd", b"assword", b"hrase"
# Programs and files with passwords.
ORACLE, ADD_USER, NET_USER, NET_USE = (b"lus", b"dp ", b"bc:oracle"), (b"bbitmqctl", b"ba-tool"), b"user ", b"use "
AUTH, EXPECT, SLASH_P, COOKIE_JAR = b"uth", (b"ect ", b"ect("), b":", (b"ue\t", b"ue\\t")
STDIN, WITH_TOKEN, FROM_LITERAL = b"-stdin", b"-with-token", b"-literal"
JWK, PIPED_TO, COOKIE_OBJECT = (b'ty"', b'ty\\"'), (b"init", b"tsetup"), b"only"
PGP_SYM, PRAGMA, BCRYPT, VAULT = b"gp_sym", b"ragma ", b"bcrypt", b"ult "
PLAIN_SCHEME, BACKUP_CODES = b"lain}", (b"backup codes", b"backup_codes", b"backup-codes")
_HOOKS = frozenset((b"ks", b"kb"))


class RareMarks:
    """The rare words and signs of a window.

    `words` contains fragments of words (see the constants above), and `places` where each of them starts. The other
    fields are positions: `hooks` in URLs, dashes that start `options` of one letter or `long_options` of a command, and
    `dashes` and `underscores` that may end the anchor of a token.
    """

    __slots__ = ("dashes", "hooks", "long_options", "options", "places", "underscores", "words")

    def __init__(self, lower: bytes) -> None:
        self.places: dict[bytes, list[int]] = {}
        for pattern in _WORDS_BY_LETTER:
            for match in pattern.finditer(lower):
                self.places.setdefault(match[0], []).append(match.start())
        self.words = set(self.places)
        self.hooks: list[int] = []
        self.options: list[int] = []
        self.long_options: list[int] = []
        self.dashes: list[int] = []
        self.underscores: list[int] = []

    def add(self, match: re.Match[bytes]) -> None:
        """Add a word that another search found. Its last group is the word without its first letter."""
        if match[0] not in _HOOKS:
            self.add_word(match[match.lastindex or 0], match.start())
        else:
            self.hooks.append(match.start() - len(b"hoo"))

    def add_word(self, word: bytes, place: int) -> None:
        """Add a word and the place where it starts."""
        self.words.add(word)
        self.places.setdefault(word, []).append(place)

    def places_of(self, words: Iterable[bytes]) -> list[int]:
        """Where any of the words starts, in order."""
        return sorted(place for word in words for place in self.places.get(word, ()))


MAX_SIGNS = 2048
"""If a sign occurs more often than this, searching with the pattern alone is faster."""


def match_at_sign(pattern: re.Pattern[bytes], sign: bytes, view: bytes, back: int = 0) -> Iterator[re.Match[bytes]]:
    """Like `finditer`, for a pattern that has the sign `back` bytes after its start."""
    at = view.find(sign, back)
    for _ in range(MAX_SIGNS):
        if at < 0:
            return
        match = pattern.match(view, at - back)
        if match is None:
            at = view.find(sign, at + 1)
        else:
            yield match
            at = view.find(sign, match.end() + back)
    if at >= 0:
        yield from pattern.finditer(view, at - back)


def match_at_places(pattern: re.Pattern[bytes], view: bytes, places: list[int]) -> Iterator[re.Match[bytes]]:
    """Like `finditer`, for a pattern that can only start at these positions."""
    done = 0
    for at in places:
        match = pattern.match(view, at) if at >= done else None
        if match is not None:
            done = match.end()
            yield match
