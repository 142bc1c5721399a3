"""Words that few texts have and some searches need: all that share a letter are looked for at once."""

from __future__ import annotations

import re

_BY_LETTER = (
    re.compile(rb"k(?:(?<=cook)ie|(?<=link)edin|(?<=hook)[sb])"),
    re.compile(rb"b(?:earer|asic|(?<=airtab)le|(?<=contrib)sys|(?<=dropb)ox|(?<=identified b)y )"),
    re.compile(rb"u(?:(?<=au)thoriz|(?<=clou)dant|(?<=conflu)ent|(?<=su)mo|(?<=su)do -s|(?<=secu)restring)"),
)
COOKIE, LINKEDIN, HOOKS, HOOK_B = b"kie", b"kedin", b"ks", b"kb"
BEARER, BASIC, AIRTABLE, CONTRIBSYS, DROPBOX = b"bearer", b"basic", b"ble", b"bsys", b"box"
AUTHORIZATION, CLOUDANT, CONFLUENT, SUMO = b"uthoriz", b"udant", b"uent", b"umo"
IDENTIFIED_BY, SUDO, SECURE_STRING = b"by ", b"udo -s", b"urestring"


def rare_words(low: bytes) -> frozenset[bytes]:
    """Which of them a text in lower case has: each by its letters from the shared one on."""
    return frozenset(word for pattern in _BY_LETTER for word in pattern.findall(low))
