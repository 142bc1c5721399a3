"""Words and signs that few texts have and some searches need: where they are is found out once for all of them."""

from __future__ import annotations

import re

# The letters behind the shared one come first: they tell at once that it is none of the words.
_BY_LETTER = (
    re.compile(rb"b(?:earer|asic|le(?<=airtable)|sys(?<=contribsys)|ox(?<=dropbox)|y (?<=identified by ))"),
    re.compile(rb"u(?:thoriz(?<=authoriz)|dant(?<=cloudant)|ent(?<=confluent)|mo(?<=sumo))"),
)
COOKIE, LINKEDIN = b"ie", b"edin"
BEARER, BASIC, AIRTABLE, CONTRIBSYS, DROPBOX = b"bearer", b"basic", b"ble", b"bsys", b"box"
AUTHORIZATION, CLOUDANT, CONFLUENT, SUMO = b"uthoriz", b"udant", b"uent", b"umo"
IDENTIFIED_BY, SUDO, SECURE_STRING = b"by ", b"-s", b"-securestring"
BEGIN, END, PRIVATE_LINES = b"-begin", b"-end", b"-lines: "
CHPASSWD, NETRC = b"asswd", b"assword"


class Rare:
    """What a window has of them.

    `words` are the words, each by some of its letters; the rest are places: of `hooks` in an address, of the dashes
    that may begin the `options` of a command, and of dashes and underscores that may end the beginning of a form.
    """

    __slots__ = ("dashes", "hooks", "options", "underscores", "words")

    def __init__(self, low: bytes) -> None:
        self.words = {word for pattern in _BY_LETTER for word in pattern.findall(low)}
        self.hooks: list[int] = []
        self.options: list[int] = []
        self.dashes: list[int] = []
        self.underscores: list[int] = []

    def add(self, found: re.Match[bytes]) -> None:
        """Notes a word that another search has found; its last group is the word without its first letter."""
        if found.end() - found.start() > len(b"ks"):
            self.words.add(found[found.lastindex or 0])
        else:
            self.hooks.append(found.start() - len(b"hoo"))
