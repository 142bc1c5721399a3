"""Passwords that commands and statements are given, by what the command is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.render.redaction import plausible, rare
from threadline.render.redaction.assigned import is_everywhere
from threadline.render.redaction.rare import Rare
from threadline.render.redaction.signs import at_places
from threadline.render.redaction.span import Span

# The options of a few commands that take a password; which command it is stands before it on the line.
_OPTION = re.compile(rb"-(?<=[ \t]-)([paNP])([ =]?)(?:\\*[\"'])?([^\s\"'\\$<({-][^\s\"'\\]{3,128})")
_LINE = rb"[^\n|;&\\]*\Z"
_COMMANDS = {
    (b"p", True): re.compile(rb"\b(?:sshpass|useradd|usermod|mongo(?:sh|dump|restore)?|login)\b" + _LINE),
    (b"p", False): re.compile(rb"\b(?:sshpass|mysql(?:dump|admin|import)?|mariadb(?:-dump|-admin)?)\b" + _LINE),
    (b"a", True): re.compile(rb"\bredis-cli\b" + _LINE),
    (b"N", True): re.compile(rb"\bssh-keygen\b" + _LINE),
    (b"P", True): re.compile(rb"\b(?:un)?zip\b" + _LINE),
}
_FAR = 200
_IDENTIFIED = re.compile(rb"(?i)\bidentified by (?:password )?\\*['\"]([^\s'\"\\]{4,128})\\*['\"]")
_SECURE_STRING = re.compile(
    rb"(?i)\bconvertto-securestring (?:-string )?(?:-asplaintext )?\\*['\"]([^\s'\"\\]{4,128})\\*['\"]"
)
_SUDO = re.compile(rb"\becho (?:-n )?\\*[\"']?([^\s'\"\\$|]{4,128})\\*[\"']?[ \t]*\|[ \t]*sudo -S\b")
_CHPASSWD = re.compile(rb"[\w.-]{1,32}:([^\s'\"\\$|:]{4,128})\\*[\"']?[ \t]*\|[ \t]*(?:sudo )?chpasswd\b")
_PGPASS = re.compile(rb"(?<![\w.*-])[\w.*-]{1,253}:5432:[\w*-]{1,64}:[\w.*-]{1,64}:([^\s'\"\\:]{4,128})")
# A search for one digit is faster than one for a word.
_PORT = re.compile(rb"5(?:432:)(?<=:5432:)")
_HASH = re.compile(rb"\$(?:apr1|1|5|6|y|2[abxy]|argon2(?:id|i|d))\$(?:[\w=,./+]{1,64}\$){0,3}[\w./+]{16,128}")
_LEAST_HASH = 28
_WORDS = (
    (rare.IDENTIFIED_BY, _IDENTIFIED),
    (rare.SECURE_STRING, _SECURE_STRING),
    (rare.SUDO, _SUDO),
    (rare.CHPASSWD, _CHPASSWD),
)


def commanded(view: bytes, seen: Rare) -> Iterator[Span]:
    """All that commands are given; `seen` is what the view has of what is rare."""
    for found in at_places(_OPTION, view, seen.options):
        command = _COMMANDS.get((found[1], bool(found[2])))
        start = found.start()
        if command is not None and command.search(view, max(0, start - _FAR), start) and _is_mixed(found[3]):
            yield _span(*found.span(3), found[3])
    patterns = [pattern for word, pattern in _WORDS if word in seen.words]
    patterns += [_PGPASS] if _PORT.search(view) else []
    for pattern in patterns:
        for found in pattern.finditer(view):
            if plausible.is_literal(found[1].decode("latin-1")):
                yield _span(*found.span(1), found[1])
    for found in _HASH.finditer(view):
        if found.end() - found.start() >= _LEAST_HASH:
            yield Span(*found.span(), "password-hash")


def _span(start: int, end: int, value: bytes) -> Span:
    return Span(start, end, "password", weak=not is_everywhere(value.decode("latin-1")))


def _is_mixed(value: bytes) -> bool:
    """Whether it has letters and more than letters: a port or a path is no password."""
    said = value.decode("latin-1")
    letters = any(map(str.isalpha, said))
    return letters and any(map(str.isdigit, said)) and plausible.is_literal(said) and not plausible.is_path(said)
