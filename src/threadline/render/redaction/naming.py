"""What the name of a key, variable, header or parameter says of its value."""

from __future__ import annotations

import re
from functools import lru_cache

from threadline.render.redaction.rule import Service
from threadline.render.redaction.services import SERVICES
from threadline.render.redaction.wordlist import words

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD = frozenset(("password", "passwd", "passwort", "pwd", "passphrase", "passcode", "pass", "pw", "pin"))
_ALONE = words(
    "secret secrets token credential credentials creds cred jwt bearer apikey secretkey accesskey privatekey accountkey"
    " authkey authtoken sharedaccesskey auth authorization cookie"
)
# Words that make `key` the key to something, and not the key of a row.
_BEFORE_KEY = words(
    "api access secret private auth account subscription encryption signing master shared storage license"
    " licence service app application client consumer session admin deploy webhook ssh gpg hmac aes rsa"
    " server project integration ingest instrumentation primary secondary stream push root jwt cipher"
    " crypto anthropic openai"
)
# A name that ends so speaks of the secret, and does not hold it.
_ABOUT = words(
    "id ids name names type types file files path paths url uri urls source length len size count counts"
    " limit limits prefix suffix pattern regex env var field fields format kind label title description"
    " hint version expiry expires expired expiration ttl at age policy strength rule rules manager"
    " provider store class index lookup helper usage budget used total max min rate price prices cost"
    " required valid enabled disabled set exists present placeholder header param parameter hash algorithm"
    " algo schema color status state error message text code page form input output cache window position"
    " start end span offset endpoint server host port dir directory folder public arn alias ref reference"
    " scope scopes audience issuer mode method role reset change confirm validator binding"
)
_NOT_BEFORE_TOKEN = words(
    "input output max min total cache read creation count num max used per next page sync continuation"
    " design css csrf syntax lexer parser eos bos pad mask unk end stop start special budget context"
    " prompt completion thinking sub word public"
)
_PUBLIC = frozenset(
    ("public", "primary", "foreign", "partition", "sort", "hash", "row", "cache", "json", "map", "object")
)


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """A name's words in lower case.

    >>> words_of("AWS_secretAccessKey")
    ('aws', 'secret', 'access', 'key')
    """
    return tuple(word.lower() for word in _PARTS.findall(name))


@lru_cache(maxsize=4096)
def is_password(name: str) -> bool:
    """Whether a value of this name is a password: it may then be short, and a word."""
    parts = words_of(name)
    return bool(parts) and (parts[-1] in _PASSWORD or parts[-1].endswith(("password", "passwd", "passphrase")))


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a value of this name is to be kept secret.

    >>> is_secret("DB_PASSWORD"), is_secret("apiKey"), is_secret("input_tokens"), is_secret("primary_key")
    (True, True, False, False)
    """
    parts = words_of(name)
    if parts[-2:] == ("key", "base"):  # what Rails calls the key that all others are made of
        parts = parts[:-1]
    if not parts or parts[-1] in _ABOUT:
        return False
    last = parts[-1]
    if is_password(name):
        return True
    if last == "token" or last.endswith("token"):
        return not (len(parts) > 1 and parts[-2] in _NOT_BEFORE_TOKEN)
    if last in {"key", "keys"}:
        return len(parts) > 1 and parts[-2] in _BEFORE_KEY and not (set(parts) & _PUBLIC)
    return last in _ALONE or last.endswith("secret") or parts[-2:] in {("connection", "string"), ("set", "cookie")}


@lru_cache(maxsize=4096)
def is_env_key(name: str) -> bool:
    """Whether it is the name of a variable that by its end may hold a key: `STRIPE_KEY`, `FOO_SALT`."""
    parts = words_of(name)
    return bool(parts) and name.upper() == name and parts[-1] in {"key", "salt", "dsn", "sid", "auth", "secret", "hash"}


@lru_cache(maxsize=4096)
def services_named(name: str) -> tuple[Service, ...]:
    """The services that a name mentions."""
    said = "".join(words_of(name))
    return tuple(service for service in SERVICES if any(word in said for word in service.names))
