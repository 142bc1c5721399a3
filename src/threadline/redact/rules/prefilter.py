"""Cheap byte searches that decide which rules a window needs.

Most rules need something that few texts contain. RE2 searches a window for all of it at once (see `gate`). Without
RE2, which is an extra, every rule searches for itself: the result is the same, and the scan is slower. Words that
several rules need are located once for all of them. A search for one rare byte lets the processor skip many bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any

_gates: list[bytes] = []


def gate(pattern: bytes) -> int:
    """Register what a window must contain for a rule to match, and return the number of this gate.

    The pattern must be valid in RE2, and must match wherever the rule can. Call this only when a module is imported.
    """
    _gates.append(pattern)
    return len(_gates) - 1


def open_gates(view: bytes) -> Collection[int]:
    """The gates whose patterns the view contains."""
    match = _gate_matcher()
    # The last pattern matches everything. If RE2 runs out of memory, it reports nothing, and every rule must search.
    numbers = match(view) if match is not None else None
    return numbers if numbers and len(_gates) in numbers else range(len(_gates))


@cache
def _gate_matcher() -> Callable[[bytes], Any] | None:
    try:
        import re2  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _GATE_MEMORY
    patterns = re2.Set.SearchSet(options)
    for pattern in (*_gates, rb"\A"):
        patterns.Add(pattern)
    patterns.Compile()
    match: Callable[[bytes], Any] = patterns.Match
    return match


_GATE_MEMORY = 64 << 20
# The letters after the shared one come first, because they fail fastest.
_WORDS_BY_LETTER = (
    (
        gate(
            rb"(?i)bearer(?: |%20|\+)[a-z0-9._~+/=-]{12}|basic(?: [a-z0-9+/=_-]{8}|auth |\.)|backup[ _-]codes|airtable"
            rb"|contribsys|dropbox|identified by |bbitmqctl|ba-tool|bscure |bc:oracle|bcrypt"
        ),
        re.compile(
            rb"b(?:earer|asic|ackup[ _-]codes|le(?<=airtable)|sys(?<=contribsys)|ox(?<=dropbox)|y (?<=identified by )"
            rb"|bitmqctl|a-tool(?<=samba-tool)|scure (?<=obscure )|c:oracle(?<=dbc:oracle)|crypt)"
        ),
    ),
    (
        gate(
            rb"(?i)uthoriz|cloudant|confluent|sumo|net user? "
            rb"|auth(?: |[a-z_]*[ \t]*(?:\(|[=:][ \t]*[\w.]*[\[(])[ \t]*[bru]?\\*[\"']"
            rb"|(?:entication)?(?:_users?)?\\*[\"']?[ \t]*[:=])"
            rb"|ult (?:login |encrypt_string |operator unseal |kv put |write )|true\\?\t|true\\t|unity "
        ),
        re.compile(
            rb"u(?:thoriz(?<=authoriz)|dant(?<=cloudant)|ent(?<=confluent)|mo(?<=sumo)|s(?<=net us)er? "
            rb"|th(?<=auth)(?=[a-z_]{0,24}[ \t]{0,2}(?:\(|[=:][ \t]{0,2}[\w.]{0,40}[\[(])[ \t]{0,2}[bru]?\\*[\"']"
            rb"|(?:entication)?(?:_users?)?\\*[\"']?[ \t]{0,4}[:=])|th (?<=auth )"
            rb"|lt (?=login |encrypt_string |operator unseal |kv put |write )"
            rb"|e\t(?<=true\t)|e\\t(?<=true\\t)|nity (?<=community ))"
        ),
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

    `gates` are the open gates of the window. `words` contains fragments of words (see the constants above), and
    `places` where each of them starts. The other fields are positions: `hooks` in URLs, dashes that start `options` of
    one letter or `long_options` of a command, and `dashes` and `underscores` that may end the anchor of a token.
    """

    __slots__ = ("dashes", "gates", "hooks", "long_options", "options", "places", "underscores", "words")

    def __init__(self, view: bytes, lower: bytes) -> None:
        self.gates = open_gates(view)
        self.places: dict[bytes, list[int]] = {}
        for words, pattern in _WORDS_BY_LETTER:
            for match in pattern.finditer(lower) if words in self.gates else ():
                self.places.setdefault(match[0], []).append(match.start())
        self.words = set(self.places)
        self.hooks: list[int] = []
        self.options: list[int] = []
        self.long_options: list[int] = []
        self.dashes: list[int] = []
        self.underscores: list[int] = []

    def may_contain(self, words_gate: int, words: Iterable[bytes], lower: bytes) -> bool:
        """Whether a gate is open, and if RE2 did not open it, whether the window contains one of its words."""
        return words_gate in self.gates and (not isinstance(self.gates, range) or any(word in lower for word in words))

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
