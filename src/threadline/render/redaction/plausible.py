"""Whether a value can be a secret: literal, no reference, no filler, and random where its name does not say enough."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from threadline.render.redaction.wordlist import words

PLACEHOLDER = re.compile(r"<(?:[a-z][a-z0-9_]*-[0-9]+|home)>")
"""What stands where something was taken away."""

_REFERENCE = re.compile(
    r"\$[\w{(]|%\w+%\Z|\{\{|\{[\w.]*\}|@\w+@\Z|<[^>]*>?\Z|\[[^\]]*\]\Z|\w+\(|(?:process|os|import\.meta|self|this|config|settings"
    r"|env|req|request|args|options|ctx|context|props|data|secrets|vars|var|local|module|params|credentials|response|res|user)\."
)
_FILLER = re.compile(r"(.)\1*\Z|[*.xX#?_-]+\Z|[xX*.]{4,}|\.\.\.|…|\\u2026")
_WORDS = words(
    "true false null none nil undefined string str int integer bool boolean number object array any"
    " unknown void bytes optional required default example sample test changeme change-me secret password"
    " passwd token key value your yours here redacted hidden masked empty todo tbd foo bar baz foobar"
    " dummy fake placeholder username user admin name id type auto yes no on off self this new return"
    " await async function const let var public private static final if else in is not and or with from"
    " import as for while hash plain plaintext basic bearer digest cookie session"
)
_TALK = re.compile(r"(?i)your|my[-_]|example|placeholder|changeme|change[-_]me|insert|replace|redacted|dummy|<|>|\bxxx")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*(?:[.:/-][A-Za-z_]+)*\Z")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")
_CODE = re.compile(r"[A-Za-z_][\w.]*(?:\(|\[|\)|;|\Z)")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
_DIGEST = re.compile(
    r"(?:sha(?:1|256|384|512)[-:])?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{7,12})\Z|sha(?:1|256|384|512)-"
)
_OWN_ID = re.compile(
    r"(?:toolu|srvtoolu|msg|req|agent|chatcmpl|call|task|run|file|batch|org|proj|user|asst|thread|session|cse)_"
)
_PATH = re.compile(r"(?:~|\.{0,2})?/|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RANDOM = 3.4
_RANDOM_LONG = 4.0
_LONG = 24


def entropy(value: str) -> float:
    """Bits a character.

    >>> entropy("aabb"), entropy("abcdefgh")
    (1.0, 3.0)
    """
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values()) if size else 0.0


def is_path(value: str) -> bool:
    """Whether it is where something lies, and not what it is."""
    return bool(_PATH.match(value)) or value.startswith("\\")


def is_literal(value: str) -> bool:
    """Whether it can be a value at all: no placeholder, reference, filler, type or word that stands for one."""
    bare = PLACEHOLDER.sub("", value)
    if bare != value and not any(map(str.isalnum, bare)):
        return False
    if value.lower() in _WORDS or _REFERENCE.match(value):
        return False
    return not _FILLER.match(value)


def is_password(value: str, *, quoted: bool) -> bool:
    """Whether a value that is called a password can be one: in quotes a word will do, bare it has more than letters."""
    if len(value) < 4 or not is_literal(value) or _TALK.search(value):  # noqa: PLR2004 - nobody's password is shorter
        return False
    return quoted or not _CODE.match(value) or any(map(str.isdigit, value))


def is_key(value: str, *, quoted: bool) -> bool:
    """Whether a value that is called a key or a token can be one: eight characters or more, not only letters."""
    if len(value) < 8 or not is_literal(value) or _PATH.match(value):  # noqa: PLR2004 - shorter ones are examples
        return False
    # Asked first since it is cheap: neither letters alone nor anything else without a digit is one that is not random.
    if not _has(value, str.isdigit) and entropy(value) <= _RANDOM:
        return False
    if _TALK.search(value) and entropy(value) < _RANDOM_LONG:
        return False
    if not quoted and _DOTTED.match(value.lstrip("*&")):
        return False
    if _IDENTIFIER.match(value):
        # Letters alone: random where cases are mixed in a way that no name has.
        return quoted and len(value) >= 16 and entropy(value) > _RANDOM and _mixed(value)  # noqa: PLR2004 - a short token
    return any(map(str.isdigit, value)) or entropy(value) > _RANDOM


def is_random(value: str) -> bool:
    """Whether a value is random enough to be a secret whatever it is called: no id, digest, path, date or name."""
    if len(value) < _LONG - 4 or not is_literal(value):
        return False
    if _UUID.match(value) or _DIGEST.match(value) or _OWN_ID.match(value) or _PATH.match(value) or _DATE.match(value):
        return False
    if not (_has(value, str.isdigit) and _has(value, str.isupper) and _has(value, str.islower)):
        return False
    digits = sum(map(str.isdigit, value))
    return (
        entropy(value) > (_RANDOM_LONG if len(value) > _LONG else _RANDOM + 0.3)
        and digits >= len(value) // 16 + 1
        and _restless(value)
    )


def _restless(value: str) -> bool:
    """Whether kinds of letters change often, as in no name made of words."""
    kinds = ["u" if one.isupper() else "l" if one.islower() else "d" if one.isdigit() else "o" for one in value]
    changes = sum(a != b for a, b in pairwise(kinds))
    return changes >= len(value) * 0.4


def _mixed(value: str) -> bool:
    return _has(value, str.isupper) and _has(value, str.islower) and _restless(value)


def _has(value: str, is_it: Callable[[str], bool]) -> bool:
    return any(map(is_it, value))
