"""Decide whether a name denotes a secret, and whether a value can be one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from threadline.redact.formats import Service, find_services


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD_WORDS = frozenset(("password", "passwd", "passwort", "pwd", "passphrase", "passcode", "pass", "pw", "pin"))
_SECRET_WORDS = word_set(
    "secret secrets token credential credentials creds cred jwt bearer apikey secretkey accesskey privatekey accountkey"
    " authkey authtoken sharedaccesskey auth authorization cookie"
)
# Words that make `key` a credential and not the key of a row.
_KEY_QUALIFIERS = word_set(
    "api access secret private auth account subscription encryption signing master shared storage license"
    " licence service app application client consumer session admin deploy webhook ssh gpg hmac aes rsa"
    " server project integration ingest instrumentation primary secondary stream push root jwt cipher"
    " crypto anthropic openai"
)
# A name that ends with one of these words is about a secret and does not contain it.
_METADATA_WORDS = word_set(
    "id ids name names type types file files path paths url uri urls source length len size count counts"
    " limit limits prefix suffix pattern regex env var field fields format kind label title description"
    " hint version expiry expires expired expiration ttl at age policy strength rule rules manager"
    " provider store class index lookup helper usage budget used total max min rate price prices cost"
    " required valid enabled disabled set exists present placeholder header param parameter hash algorithm"
    " algo schema color status state error message text code page form input output cache window position"
    " start end span offset endpoint server host port dir directory folder public arn alias ref reference"
    " scope scopes audience issuer mode method role reset change confirm validator binding"
)
_HARMLESS_TOKEN_QUALIFIERS = word_set(
    "input output max min total cache read creation count num max used per next page sync continuation"
    " design css csrf syntax lexer parser eos bos pad mask unk end stop start special budget context"
    " prompt completion thinking sub word public"
)
_HARMLESS_KEY_QUALIFIERS = frozenset(
    ("public", "primary", "foreign", "partition", "sort", "hash", "row", "cache", "json", "map", "object")
)


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[str, ...]:
    """Split a name into words in lower case.

    >>> split_name("AWS_secretAccessKey")
    ('aws', 'secret', 'access', 'key')
    """
    return tuple(word.lower() for word in _NAME_PART.findall(name))


@lru_cache(maxsize=4096)
def is_password_name(name: str) -> bool:
    """Whether the name denotes a password, which may be short and a plain word."""
    parts = split_name(name)
    return bool(parts) and (parts[-1] in _PASSWORD_WORDS or parts[-1].endswith(("password", "passwd", "passphrase")))


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the name denotes a secret.

    >>> [is_secret_name(name) for name in ("DB_PASSWORD", "apiKey", "input_tokens", "primary_key")]
    [True, True, False, False]
    """
    parts = split_name(name)
    if parts[-2:] == ("key", "base"):  # Rails derives all other keys from this one
        parts = parts[:-1]
    if not parts or parts[-1] in _METADATA_WORDS:
        return False
    last = parts[-1]
    if is_password_name(name):
        return True
    if last == "token" or last.endswith("token"):
        return not (len(parts) > 1 and parts[-2] in _HARMLESS_TOKEN_QUALIFIERS)
    if last in {"key", "keys"}:
        return len(parts) > 1 and parts[-2] in _KEY_QUALIFIERS and not (set(parts) & _HARMLESS_KEY_QUALIFIERS)
    return (
        last in _SECRET_WORDS or last.endswith("secret") or parts[-2:] in {("connection", "string"), ("set", "cookie")}
    )


@lru_cache(maxsize=4096)
def is_env_key_name(name: str) -> bool:
    """Whether the name is that of an environment variable that may contain a key: `STRIPE_KEY`, `FOO_SALT`."""
    parts = split_name(name)
    return bool(parts) and name.upper() == name and parts[-1] in {"key", "salt", "dsn", "sid", "auth", "secret", "hash"}


@lru_cache(maxsize=4096)
def services_in_name(name: str) -> tuple[Service, ...]:
    """The services whose names occur in a name."""
    return find_services("".join(split_name(name)))


PLACEHOLDER = re.compile(r"<(?:[a-z][a-z0-9_]*-[0-9]+|home)>")
"""Matches a placeholder that replaced something."""

_REFERENCE = re.compile(
    r"\$[\w{(]|%\w+%\Z|\{\{|\{[\w.]*\}|@\w+@\Z|<[^>]*>?\Z|\[[^\]]*\]\Z|\w+\(|(?:process|os|import\.meta|self|this|config|settings"
    r"|env|req|request|args|options|ctx|context|props|data|secrets|vars|var|local|module|params|credentials|response|res|user)\."
)
_FILLER = re.compile(r"(.)\1*\Z|[*.xX#?_-]+\Z|[xX*.]{4,}|\.\.\.|…|\\u2026")
_PLACEHOLDER_WORDS = word_set(
    "true false null none nil undefined string str int integer bool boolean number object array any"
    " unknown void bytes optional required default example sample test changeme change-me secret password"
    " passwd token key value your yours here redacted hidden masked empty todo tbd foo bar baz foobar"
    " dummy fake placeholder username user admin name id type auto yes no on off self this new return"
    " await async function const let var public private static final if else in is not and or with from"
    " import as for while hash plain plaintext basic bearer digest cookie session"
)
_EXAMPLE_TEXT = re.compile(
    r"(?i)your|my[-_]|example|placeholder|changeme|change[-_]me|insert|replace|redacted|dummy|<|>|\bxxx"
)
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
_MIN_ENTROPY = 3.4
_MIN_ENTROPY_LONG = 4.0
_LONG_VALUE = 24


def entropy(value: str) -> float:
    """The entropy of a value in bits per character.

    >>> entropy("aabb"), entropy("abcdefgh")
    (1.0, 3.0)
    """
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values()) if size else 0.0


def is_path(value: str) -> bool:
    """Whether the value is a path."""
    return bool(_PATH.match(value)) or value.startswith("\\")


def is_literal(value: str) -> bool:
    """Whether a value can be real, and not a placeholder, reference, filler or type."""
    bare = PLACEHOLDER.sub("", value)
    if bare != value and not any(map(str.isalnum, bare)):
        return False
    if value.lower() in _PLACEHOLDER_WORDS or _REFERENCE.match(value):
        return False
    return not _FILLER.match(value)


def can_be_password(value: str, *, quoted: bool) -> bool:
    """Whether the value of a password name can be a password. If it is not quoted, it needs more than letters."""
    if len(value) < 4 or not is_literal(value) or _EXAMPLE_TEXT.search(value):  # noqa: PLR2004 - nobody's password is shorter
        return False
    return quoted or not _CODE.match(value) or any(map(str.isdigit, value))


def can_be_key(value: str, *, quoted: bool) -> bool:
    """Whether the value of a key or token name can be one: at least eight characters, not only letters."""
    if len(value) < 8 or not is_literal(value) or _PATH.match(value):  # noqa: PLR2004 - shorter ones are examples
        return False
    # First because it is cheap: without a digit, only a random value can be a key.
    if not _has(value, str.isdigit) and entropy(value) <= _MIN_ENTROPY:
        return False
    if _EXAMPLE_TEXT.search(value) and entropy(value) < _MIN_ENTROPY_LONG:
        return False
    if not quoted and _DOTTED.match(value.lstrip("*&")):
        return False
    if _IDENTIFIER.match(value):
        # Only letters: random if upper and lower case are mixed as in no name.
        return quoted and len(value) >= 16 and entropy(value) > _MIN_ENTROPY and _is_mixed_case(value)  # noqa: PLR2004 - a short token
    return any(map(str.isdigit, value)) or entropy(value) > _MIN_ENTROPY


def is_random(value: str) -> bool:
    """Whether a value is random enough to be a secret under any name: not an id, digest, path, date or name."""
    if len(value) < _LONG_VALUE - 4 or not is_literal(value):
        return False
    if _UUID.match(value) or _DIGEST.match(value) or _OWN_ID.match(value) or _PATH.match(value) or _DATE.match(value):
        return False
    if not (_has(value, str.isdigit) and _has(value, str.isupper) and _has(value, str.islower)):
        return False
    digits = sum(map(str.isdigit, value))
    return (
        entropy(value) > (_MIN_ENTROPY_LONG if len(value) > _LONG_VALUE else _MIN_ENTROPY + 0.3)
        and digits >= len(value) // 16 + 1
        and _changes_class_often(value)
    )


def _changes_class_often(value: str) -> bool:
    """Whether the character class changes more often than in a name made of words."""
    kinds = [
        "u" if character.isupper() else "l" if character.islower() else "d" if character.isdigit() else "o"
        for character in value
    ]
    changes = sum(a != b for a, b in pairwise(kinds))
    return changes >= len(value) * 0.4


def _is_mixed_case(value: str) -> bool:
    return _has(value, str.isupper) and _has(value, str.islower) and _changes_class_often(value)


def _has(value: str, is_it: Callable[[str], bool]) -> bool:
    return any(map(is_it, value))
