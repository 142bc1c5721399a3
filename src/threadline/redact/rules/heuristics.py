"""Decide whether a name denotes a secret, and whether a value can be one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from threadline.redact.rules.formats import Service, find_services
from threadline.redact.rules.patterns import compile_lazily


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_NAME_PART = compile_lazily(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD_WORDS = word_set(
    "password passwd passwort pwd passphrase passcode pass pw pin psk kennwort wachtwoord senha contrasena contrasenya"
    " clave haslo heslo losenord parola sifre salasana adgangskode jelszo motdepasse mdp passe passord sandi"
    " passwords passphrases"
    " rootpw bindpw dbpw userpw adminpw olcrootpw userpwd dbpwd keymaterial"
)
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passwort")
_FOREIGN_FIRST_WORDS = word_set(
    "senha contrasena contrasenya wachtwoord heslo haslo salasana sifre losenord kennwort passwort parola motdepasse"
    " mdp adgangskode jelszo passord"
)
# `clave` is also the key of a table.
_CLAVE_QUALIFIERS = word_set("api db bd secreta acceso privada usuario admin smtp correo servidor app")
_FOREIGN_METADATA = word_set(
    "incorreta incorrecta invalida valida errada olvidada esquecida vergeten vergessen laenge lange lengte longitud"
    " tamanho tamano minima maxima falsch feld campo regel aendern alterar cambiar wijzigen label test is not must"
    " atual obrigatoria requerida requise invalide ungueltig onjuist"
)
# Other words that end with `pass` are not passwords: compass, bypass.
_PASS_PREFIXES = word_set(
    "db user admin root smtp mail email ssh sql mysql pg redis require store key trust my login ftp imap wifi http"
    " proxy"
    " auth srcstore deststore srckey destkey keystore truststore master sudo become vault ldap bind rabbit mongo app"
    " svc"
    " service client server api enable ansible ks stdin sftp smb vpn vnc rdp su mqtt basic host net new old pg"
)
# Words after the one that decides. The name denotes the same kind of value without them.
_NAME_SUFFIXES = word_set(
    "plain value again old new confirm confirmation confirmed current crypted encrypted raw clear cleartext plaintext"
    " repeat verify prod dev staging live backup v string hex test sandbox txt"
)
_SECRET_WORDS = word_set(
    "secret secrets token credential credentials creds cred jwt bearer apikey secretkey accesskey privatekey accountkey"
    " authkey authtoken sharedaccesskey auth authorization cookie"
)
# Words that make `key` a credential and not the key of a row.
_KEY_QUALIFIERS = word_set(
    "api access secret private auth account subscription encryption signing master shared storage license"
    " licence service app application client consumer session admin deploy webhook ssh gpg hmac aes rsa"
    " server project integration ingest instrumentation primary secondary stream push root jwt cipher"
    " crypto anthropic openai isakmp host digest"
)
# A name that ends with one of these words is about a secret and does not contain it.
_METADATA_WORDS = word_set(
    "timeout days attempts interval iterations rounds minutes seconds hours retries history minlen maxlen minimum"
    " maximum"
    " id ids name names type types file files path paths url uri urls source length len size count counts"
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
    parts = _main_words(name)
    if not parts:
        return False
    last = parts[-1]
    if last in _PASSWORD_WORDS or last.endswith(_PASSWORD_ENDS):
        return True
    # In other languages, the word may come first: `SENHA_BANCO`, `wachtwoordDb`.
    if parts[0] in _FOREIGN_FIRST_WORDS and 1 < len(parts) < 4:  # noqa: PLR2004 - a sentence
        return not any(part in _METADATA_WORDS or part in _FOREIGN_METADATA for part in parts[1:])
    if parts[0] == "clave" and last in _CLAVE_QUALIFIERS:
        return True
    return last.endswith("pass") and last[:-4] in _PASS_PREFIXES


def _main_words(name: str) -> tuple[str, ...]:
    """The words of a name without a number or qualifier at its end: `password_old`, `API_KEY_2`, `tokenProd`."""
    parts = split_name(name)
    end = len(parts) - 2 * (len(parts) > 2 and parts[-2:] in _ENCODINGS)  # noqa: PLR2004 - a word before the encoding
    while end > 1 and (parts[end - 1] in _NAME_SUFFIXES or parts[end - 1].isdigit()):
        end -= 1
    return parts if parts[-2:] in _NAMES_WITH_SUFFIX else parts[:end]


_ENCODINGS = {("b", "64"), ("base", "64"), ("base", "32")}
_NAMES_WITH_SUFFIX = {("connection", "string"), ("public", "key")}


@lru_cache(maxsize=4096)
def has_password_word(name: str) -> bool:
    """Whether a word of the name means password or credentials."""
    return any(part in _PASSWORD_WORDS or part in {"credentials", "credential"} for part in split_name(name))


@lru_cache(maxsize=4096)
def is_getter(name: str) -> bool:
    """Whether a name is that of a function that reads, checks or asks."""
    return bool(_GETTER_WORDS & set(split_name(name)))


_GETTER_WORDS = word_set(
    "get read load ask prompt find fetch input field is has test by query select resolve lookup label"
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the name denotes a secret.

    >>> [is_secret_name(name) for name in ("DB_PASSWORD", "apiKey", "input_tokens", "primary_key")]
    [True, True, False, False]
    """
    parts = _main_words(name)
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
        last in _SECRET_WORDS
        or last.endswith("secret")
        or parts[-2:] in {("connection", "string"), ("set", "cookie"), ("key", "material")}
    )


@lru_cache(maxsize=4096)
def is_env_key_name(name: str) -> bool:
    """Whether the name is that of an environment variable that may contain a key: `STRIPE_KEY`, `FOO_SALT`."""
    parts = split_name(name)
    return bool(parts) and name.upper() == name and parts[-1] in _ENV_KEY_WORDS


_ENV_KEY_WORDS = word_set("key salt pepper dsn sid auth secret hash pat seed")


@lru_cache(maxsize=4096)
def services_in_name(name: str) -> tuple[Service, ...]:
    """The services whose names occur in a name."""
    return find_services("".join(split_name(name)))


PLACEHOLDER = compile_lazily(r"<(?:[a-z][a-z0-9_]*-[0-9]+|home)>")
"""Matches a placeholder that replaced something."""

# A value that is a reference as a whole: to a variable, a template field, a store of secrets, or a part of a program.
_REFERENCE = compile_lazily(
    r"\$\{.*\}\Z|\$\(.*\)?\Z|\{\{.*\}\}\Z|(?!\{(?=\w*[0-9][A-Za-z])(?=\w*[A-Z])\w*[a-z]\w*\})\{[\w.\[\]:!>'-]*\}\Z|[#%@]\{.*\}\Z|%\w+%\Z|%\(\w+\)s\Z|%[srdvq]\Z|@\w+@\Z"
    r"|<[^<>]*>?\Z|\[[^\[\]]*\]\Z|__\w+__\Z|[A-Za-z_][\w.]*\([^()]*\)?\Z|\$[0-9@*#?!$-]\Z"
    r"|(?:process|os|import\.meta|self|this|config|settings|env|req|request|args|options|ctx|context|props|data|secrets"
    r"|vars|var|local|module|params|credentials|response|res|user|each|steps|inputs|github|values|builtins)"
    r"(?:\.[A-Za-z_][\w-]*|\[[^\]]*\]|\([^)]*\))+\Z"
    r"|(?:vault|ref\+\w+|arn|ssm|env|file|awssm|keyvault|keyring|keychain|secretsmanager|projects)[:/]\S*[a-z/]\S*\Z"
    r"|(?:ENC|DEC)\[.*\]\Z|--?[A-Za-z][A-Za-z-]*\Z|![A-Za-z]+\Z"
)
_VARIABLE = compile_lazily(r"\$\$?([A-Za-z_]\w*)\Z")
_EMBEDDED_REFERENCE = compile_lazily(
    # A word with digits among letters of both cases is not a name.
    r"\$\{[^{}]*\}|\$\([^()]*\)|\{\{[^{}]*\}\}|\{(?!(?=\w*[0-9][A-Za-z])(?=\w*[A-Z])\w*[a-z]\w*\})[\w.!:]*\}|\$[A-Z_][A-Z0-9_]*\b|<[a-z_-]+>|%s|%\(\w+\)s"
)
# Characters that stand for others: a value of only these, or masked except for a few characters at its ends.
_FILLER = compile_lazily(
    r"(.)\1*\Z|[*.xX#?_\u2022-]+\Z|.{0,12}[*\u2022]{3,}.{0,8}\Z|[\w-]{0,12}(?:\.{3,}|\u2026|\\u2026)[\w-]{0,6}\Z"
    r"|(?:[A-Za-z]{1,8}[_-]){0,3}[xX]{3,}(?:[._-]?[xX]{2,})*(?:[._-]?[A-Za-z0-9]{0,4})\Z"
)
_PLACEHOLDER_WORDS = word_set(
    "true false null none nil undefined string str int integer bool boolean number object array any"
    " unknown void bytes optional required default example sample test changeme change-me secret password"
    " passwd token key value your yours here redacted hidden masked empty todo tbd foo bar baz foobar"
    " dummy fake placeholder username user admin name id type auto yes no on off self this new return"
    " await async function const let var public private static final if else in is not and or with from"
    " import as for while hash plain plaintext basic bearer digest cookie session varchar text char"
    " n/a missing invalid incorrect expired prompt stdin env file encrypted asplaintext"
)
_EXAMPLE_MARKS = word_set(
    "your my the our some example placeholder changeme change insert replace redacted dummy fake sample here enter put"
    " paste todo add fill xxx mock foo bar baz foobar any hidden masked removed deleted omitted whatever goes actual"
)
_EXAMPLE_WORDS = _EXAMPLE_MARKS | word_set(
    "a an api key keys password passwd pass pw token tokens secret secrets access private public client auth bearer id"
    " name user username admin root db database app application service server account email login credential"
    " credentials value string text with this that is in to of for me it strong secure super very long random real new"
    " old test testing dev prod production staging local development only not used set sk pk pat jwt ssh aws azure gcp"
    " google github gitlab openai anthropic slack stripe redis mysql postgres postgresql mongo mongodb smtp mail"
    " project"
    " org host url uri please provide use must be generate generated hash salt signing encryption passphrase session"
    " cookie webhook default empty null none personal oauth refresh one two unsafe insecure demo fixture base"
    " minimum bytes enough"
)
_EXAMPLE_ENDS = word_set(
    "here key password passwd token secret id name value username user string credential credentials"
)
_SMALL_NUMBERS = word_set("0 1 2 3 00 01 12 123 1234 12345 123456 42 16 32 64 128 256")
_NOT_WORD = compile_lazily(r"[^A-Za-z0-9]+")
_MAX_EXAMPLE = 80


def is_example(value: str) -> bool:
    """Whether the whole value is words that say that a real value belongs here.

    >>> [is_example(value) for value in ("your-api-key-here", "my_secret_token", "my-dog-Rex-2019", "password77")]
    [True, True, False, False]
    """
    if len(value) > _MAX_EXAMPLE:
        return False
    lower = value.lower()
    if lower.endswith(("example", "examplekey")):
        return True
    words = [word for word in _NOT_WORD.split(lower) if word]
    words = words if len(words) > 1 else list(split_name(value))
    if not words:
        return False
    if words[0] in {"your", "my", "insert", "replace", "enter"} and words[-1] in _EXAMPLE_ENDS:
        return all(map(str.isalpha, words))
    return any(word in _EXAMPLE_MARKS for word in words) and all(
        word in _EXAMPLE_WORDS or word in _SMALL_NUMBERS for word in words
    )


def _is_variable(value: str) -> bool:
    """Whether the value is the name of a variable after a dollar sign, and not a password that starts with one."""
    match = _VARIABLE.match(value)
    if match is None:
        return False
    name = match[1]
    if name.isupper() or not any(map(str.isdigit, name)):
        return True
    words = split_name(name)
    # In a name, numbers come last. In a password they replace letters, or follow something that is not a word.
    return all(map(str.isalpha, words[:-1])) and bool(_EXAMPLE_WORDS & set(words))


# A letter that is not ASCII, also in a text of bytes, between other letters.
_FOREIGN_LETTER = compile_lazily(r"(?<=[A-Za-z])[^\0->@-\x7f]{1,2}(?=[A-Za-z])")
_IDENTIFIER = compile_lazily(r"[A-Za-z_][A-Za-z_]*(?:[.:/-][A-Za-z_]+)*\Z")
_DOTTED = compile_lazily(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")
_CODE = compile_lazily(r"[A-Za-z_][\w.]*(?:\(|\[|\)|;|\Z)")
_UUID = compile_lazily(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
_DIGEST = compile_lazily(
    r"(?:sha(?:1|256|384|512)[-:])?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{7,12})\Z|sha(?:1|256|384|512)-"
)
_OWN_ID = compile_lazily(
    r"(?:toolu|srvtoolu|msg|req|agent|chatcmpl|call|task|run|file|batch|org|proj|user|asst|thread|session|cse)_"
)
_PATH = compile_lazily(r"(?:~|\.{0,2}|<home(?:-[0-9]+)?>)?/|<home(?:-[0-9]+)?>\\|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://")
_DATE = compile_lazily(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MIN_ENTROPY = 3.4
_MIN_ENTROPY_LONG = 4.0
_LONG_VALUE = 24
_SYMBOLS = frozenset("!@#$%^&*+=~?")
_VERSION_RANGE = compile_lazily(r"[~^<>=v ]*[0-9]+(?:\.[0-9x*]+)+(?:[-+.][\w.]+)?\Z")
_LETTERS = compile_lazily(r"[A-Za-z_-]+\Z")
_SNAKE_CASE = compile_lazily(r"[a-z]+[0-9]{0,2}(?:_[a-z]+[0-9]{0,2})+\Z|[A-Z]+[0-9]{0,2}(?:_[A-Z]+[0-9]{0,2})+\Z")
_MIN_TEMPLATE_REST = 4
_MIN_WORD_LENGTH = 3.5  # on average, in a name of several words


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
    """Whether a value can be real, and not a placeholder, reference, filler or type.

    The whole value decides: a password may contain the signs and words of placeholders.

    >>> [is_literal(value) for value in ("$DB_PASSWORD", "<your-password>", "${X}", "$uperS3cret!9", "pa<ss>w0rd77")]
    [False, False, False, True, True]
    """
    bare = PLACEHOLDER.sub("", value)
    if bare != value and not any(map(str.isalnum, bare)):
        return False
    if value.lower() in _PLACEHOLDER_WORDS or _REFERENCE.match(value) or _is_variable(value) or _FILLER.match(value):
        return False
    rest = _EMBEDDED_REFERENCE.sub("", value) if "$" in value or "{" in value or "<" in value or "%" in value else value
    return rest == value or sum(map(str.isalnum, rest)) >= _MIN_TEMPLATE_REST


def can_be_password(value: str, *, quoted: bool) -> bool:
    """Whether the value of a password name can be a password. If it is not quoted, it needs more than letters."""
    if len(value) < 4 or not is_literal(value) or is_example(value):  # noqa: PLR2004 - nobody's password is shorter
        return False
    if _VERSION_RANGE.match(value) or (_LETTERS.match(value) and len(split_name(value)) > 1 and is_secret_name(value)):
        return False
    if quoted or _has(value, str.isdigit) or (not _CODE.match(value) and any(sign in value for sign in _SYMBOLS)):
        return True
    return _is_random_letters(value) or _is_hyphenated(value)


def _is_hyphenated(value: str) -> bool:
    """Whether a value is a passphrase with hyphens, or four groups of letters such as Apple generates.

    >>> [_is_hyphenated(value) for value in ("walnut-lantern-copper-heron", "fqnd-pvhw-fggb-kxtf", "read-it-from-env")]
    [True, True, False]
    """
    words = value.split("-")
    return (
        len(words) > 3  # noqa: PLR2004 - fewer are a name
        and all(len(word) > 2 and word.isalpha() and word.islower() for word in words)  # noqa: PLR2004 - words
        and is_passphrase(" ".join(words))
    )


# Words of a text for people. In bytes, a letter that is not ASCII is a question mark or two other characters.
_LABEL_WORD = r"[^\0->@\[-`{-\x7f]+(?:['-][^\0->@\[-`{-\x7f]+){0,4}"
_LABEL = compile_lazily(rf"{_LABEL_WORD}(?:,? {_LABEL_WORD}){{0,11}}[ ]?[?!.:*]{{0,3}}\Z")
_LABEL_SIGNS = " '-,?!.:*"
_MAX_LABEL = 128
_PASSWORD_PHRASES = ("mot de passe", "motdepasse", "palavra-passe", "kata sandi", "contrase")
_LABEL_WORDS = _PASSWORD_WORDS - {"pass", "pin", "pw", "psk", "clave", "sandi", "passe", "mdp"}


def is_label(name: str, value: str) -> bool:
    """Whether the value of a password name is a text for people: a translation of the name, or words of a dotted key.

    >>> is_label("password", "Mot de passe"), is_label("login.password", "Eingeben"), is_label("password", "Eingeben")
    (True, True, False)
    """
    if len(value) > _MAX_LABEL or not _LABEL.match(value):
        return False
    lower = value.lower()
    words = [word.strip(_LABEL_SIGNS) for word in lower.split()]
    if not _LABEL_WORDS.isdisjoint(words) or any(phrase in lower for phrase in _PASSWORD_PHRASES):
        return True
    # In a program or a file of settings, dots separate the parts of a property.
    is_key = "." in name.strip(".") and not name.lower().startswith(_PROPERTY_PREFIXES)
    return is_key and (len(words) > 1 or value[:1].isupper())


@lru_cache(maxsize=4096)
def is_variable_name(name: str) -> bool:
    """Whether a name is that of a variable or property in a file of settings, and not an attribute in a program."""
    if name.isupper() or name.startswith(_PROPERTY_PREFIXES):
        return True
    return "_" in name and "." not in name


_PROPERTY_PREFIXES = (
    "spring.", "javax.", "hibernate.", "mail.", "db.", "jdbc.", "quarkus.", "ldap.", "redis.", "smtp.", "datasource.",
    "ssl.",
)  # fmt: skip


_NOT_IN_PROSE = compile_lazily(
    r"v?[0-9]+(?:[._:/-][0-9]+)*[A-Za-z]{0,3}\Z|[a-z]+(?:[-_/.][a-z]+)+\Z|\w+\.[a-z]{2,5}\Z|[a-z]+[A-Z][a-z]+(?:[A-Z]"
    r"[a-z]+)*\Z"
    r"|(?!(?=\w*[0-9][A-Za-z])(?=\w*[A-Z])\w*[a-z]\w*=)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[\(=]|[A-Z_]+[0-9]?\Z|.*(?:://|\\[nrt])|[a-z]+='|--?[A-Za-z]|[\w.+-]+@[\w-]+\.\w|[\w.-]+/"
    r"[\w.-]+/|[a-z0-9.-]+/[a-z][a-z0-9./-]*\Z|[a-z]{3,}/[a-z0-9./-]*\Z|[A-Za-z_-]+\.[a-z0-9]{1,5}\Z|#[0-9]+\Z"
)
_TECHNICAL_WORDS = word_set(
    "sha1 sha224 sha256 sha384 sha512 md5 base64 base32 oauth2 oauth1 utf8 utf16 utf-8 utf-16 http2 http3 ipv4 ipv6"
    " x509"
    " argon2 argon2id argon2i bcrypt2 pbkdf2 python2 python3 pkcs8 pkcs12 pkcs1 s3 ec2 k8s win32 win64 x64 x86 2fa mfa2"
    " totp2 log4j ed25519 p12 p256 secp256k1 aes128 aes256 aes-128 aes-256 hs256 rs256 es256 i18n l10n web3 neo4j"
    " psycopg2"
    " mp3 mp4 h264 h265 ext4 ntfs3 fat32 crc32 iso8601 ss7 wpa2 wpa3 wpa2-psk a11y e2e sql2 db2 o365 m365 auth0 d-i u2f"
)


def is_password_in_prose(value: str) -> bool:
    """Whether a word of a sentence or an unquoted argument looks like a password: letters with digits or symbols."""
    if not 5 <= len(value) <= 128 or not is_literal(value) or is_example(value) or is_path(value):  # noqa: PLR2004 - a word
        return False
    if value.lower() in _TECHNICAL_WORDS or _NOT_IN_PROSE.match(value) or _UUID.match(value) or _DATE.match(value):
        return False
    letters = _has(value, str.isalpha)
    if letters and _has(value, str.isdigit):
        return True
    inside = value[1:-1]
    if letters and len(value) >= 8 and any(symbol in inside for symbol in _SYMBOLS):  # noqa: PLR2004 - longer than a word with a sign
        return True
    return _is_random_letters(value)


def can_be_key(value: str, *, quoted: bool) -> bool:
    """Whether the value of a key or token name can be one: at least eight characters, not only letters."""
    if len(value) < 8 or not is_literal(value) or _PATH.match(value):  # noqa: PLR2004 - shorter ones are examples
        return False
    # First because it is cheap: without a digit, only a random value can be a key.
    if not _has(value, str.isdigit) and entropy(value) <= _MIN_ENTROPY:
        return False
    if is_example(value) or is_test_name(value) or _OBJECT_ID.match(value):
        return False
    if not quoted and (_is_dotted_reference(value.lstrip("*&")) or _SNAKE_CASE.match(value)):
        return False
    if _IDENTIFIER.match(_FOREIGN_LETTER.sub("a", value)):
        # Only letters: random if upper and lower case are mixed as in no name.
        return quoted and len(value) >= 16 and entropy(value) > _MIN_ENTROPY and _is_mixed_case(value)  # noqa: PLR2004 - a short token
    return any(map(str.isdigit, value)) or entropy(value) > _MIN_ENTROPY


_OBJECT_ID = compile_lazily(r"[0-9]{1,5}(?:\.[0-9]{1,6}){4,}\Z")


def is_secret_of_words(name: str, value: str) -> bool:
    """Whether the value of a name that can only denote a secret is words that nobody would use for anything else.

    >>> [is_secret_of_words("JWT_SECRET", value) for value in ("walnutlantern", "walnut-lantern", "required", "a-key")]
    [True, True, False, False]
    """
    if not _WORDS.match(value) or not _is_name_of_secret_alone(name) or value in name.lower():
        return False
    words = _NOT_WORD.split(value)
    if len(words) == 1:
        return len(value) > 10 and not _INFLECTED.search(value) and not _DEFAULT_WORD.search(value)  # noqa: PLR2004 - longer than most words
    return len(value) > 9 and _EXAMPLE_WORDS.isdisjoint(words) and _REFERENCE_WORDS.isdisjoint(words)  # noqa: PLR2004 - two words


_WORDS = compile_lazily(r"[a-z]{3,}(?:[-_.][a-z]{2,})*\Z")
# Endings of words that say something about a value: `configured`, `unavailable`, `authentication`.
_INFLECTED = compile_lazily(r"(?:ed|ing|ion|ions|able|ible|ment|ity|ness|ive|ally)\Z")
_DEFAULT_WORD = compile_lazily(r"secret|token|passw|apikey|example|change|default|test|string|value|key\Z")
# Words in the names of secrets, stores and variables.
_REFERENCE_WORDS = word_set(
    "env config configuration settings store vault manager ref tls ssl cert certificate creds store file path header"
    " provider kubernetes docker registry namespace cluster web http https bot cli sdk lambda rotation rotated found"
)


@lru_cache(maxsize=4096)
def _is_name_of_secret_alone(name: str) -> bool:
    """Whether a name can denote nothing but a secret, as `SESSION_KEY` and `token` can."""
    parts = _main_words(name)
    if not parts:
        return False
    return parts[-1] in {"apikey", "secretkey"} or parts[-1].endswith("secret") or parts[-2:] in _SECRET_PAIRS


_SECRET_PAIRS = frozenset(
    (first, last)
    for last, firsts in (("key", "api secret encryption signing jwt"), ("token", "api auth access"))
    for first in firsts.split()
)


def is_passphrase(value: str) -> bool:
    """Whether several words are a passphrase, and not a sentence or a command.

    >>> [is_passphrase(value) for value in ("walnut lantern copper 77", "walnut docker compose up", "enter it again")]
    [True, False, False]
    """
    words = value.lower().split()
    return words[1] not in _COMMANDS and _EXAMPLE_WORDS.isdisjoint(words) and _SENTENCE_WORDS.isdisjoint(words)


_COMMANDS = word_set(
    "docker podman psql createdb dropdb mysql mysqladmin mysqldump mariadb npm npx yarn pnpm bun deno node python"
    " python3 uv"
    " pytest tox make cargo go bash sh zsh fish sudo java mvn gradle dotnet ruby rails rake bundle php composer"
    " terraform tofu ansible kubectl helm curl wget ssh scp rsync git env exec nohup time mongosh vault restic borg"
    " gpg openssl flask django poetry pip task just echo printf cat run start"
)
_SENTENCE_WORDS = word_set(
    "a an the and or but nor so if then else when while until because as at by from into onto on off over under after"
    " before than be been being am is are was were has have had do does did can could may might will would shall should"
    " must not no yes its it he she they we you i his her their our your mine this these that those there here what"
    " which who whom whose why how all each every both few more most other some such only own same too very just"
    " again least minimum maximum min max characters chars letters digits symbols field fields input required optional"
    " wrong correct incorrect invalid valid empty missing stored read reads asked entered contains encrypted hashed"
    " rejected accepted expired changed reset forgotten check checks hashing manager prompt policy strength"
)


def _is_dotted_reference(value: str) -> bool:
    """Whether a value is a dotted name of a program, and not a password of words with a number at its end."""
    if not _DOTTED.match(value):
        return False
    words = _NUMBERED_WORDS.match(value)
    return words is None or words[1].lower() in _NUMBERED_TYPES


# Words such as in `river.stone.lamp47`, and the last words of types and functions that also end with a number.
_NUMBERED_WORDS = compile_lazily(r"(?:[A-Za-z][a-z]{2,}\.){1,5}([A-Za-z][a-z]{2,})[0-9]{2,4}\Z")
_NUMBERED_TYPES = word_set(
    "int uint float double bfloat complex sha base utf aes crc uuid log exp rand fnv murmur xxh blake win md mp"
    " simd vec"
)


def is_symbol_name(value: str) -> bool:
    """Whether a value is the name of a function or constant: words with underscores.

    >>> [is_symbol_name(value) for value in ("XXH3_128bits_withSecret", "q5tNzCiJVIdqaU_Z2")]
    [True, False]
    """
    words = [word for word in split_name(value) if word.isalpha()]
    return "_" in value and bool(words) and sum(map(len, words)) >= _MIN_WORD_LENGTH * len(words)


def is_salt(value: str) -> bool:
    """Whether a value with blanks is random characters, as WordPress generates, and no text or program.

    >>> is_salt("|I^}6#Kw|r uf[`00}%Mddx[[?K_ v$]-7)T7CehK*3NUU"), is_salt("see section 4 (page 12) of the manual")
    (True, False)
    """
    signs = sum(not character.isalnum() and character != " " for character in value)
    return (
        len(value) >= 32  # noqa: PLR2004 - shorter ones may be words
        and signs >= len(value) * 0.2
        and not _WORD_OF_TEXT.search(value)
        and _has(value, str.isdigit)
        and _is_mixed_case(value)
    )


_WORD_OF_TEXT = compile_lazily(r"[a-z]{6}|[A-Z]{6}|[A-Za-z][a-z]{2,} [a-z]{3}")


def is_test_name(value: str) -> bool:
    """Whether a key is words of tests and examples with a small number, such as `test-token-1`, or a sentence."""
    words = [word for word in _NOT_WORD.split(value.lower()) if word]
    if len(words) > 4 and words[0] in _TEST_WORDS:  # noqa: PLR2004 - a sentence
        return all(word.isalpha() or word in _SMALL_NUMBERS for word in words)
    return len(words) > 1 and all(word in _EXAMPLE_WORDS or word in _SMALL_NUMBERS for word in words)


_TEST_WORDS = word_set("test dummy fake example insecure unsafe dev local not only")


def is_distinctive(value: str) -> bool:
    """Whether a value is distinctive enough to be replaced everywhere, and not only after its name."""
    if len(value) < 6:  # noqa: PLR2004 - shorter ones are in many words
        return False
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + (not value.isalnum())
    return kinds > 1 and entropy(value) > 2  # noqa: PLR2004 - bits a character


def kind_of(name: str, value: str) -> str:
    """The kind of a value by its name: that of a service, or a general one."""
    for service in services_in_name(name):
        if re.fullmatch(service.pattern, value):
            return service.kind
    if is_password_name(name):
        return "password"
    return "assigned-secret"


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


def _is_random_letters(value: str) -> bool:
    """Whether a word of letters has capitals where names do not have them.

    >>> [_is_random_letters(value) for value in ("xhVpyzMydtFW", "getUserPwFromDb", "PostgreSQL")]
    [True, False, False]
    """
    if len(value) < 10 or not value.isalpha() or value.islower():  # noqa: PLR2004 - longer than brand names
        return False
    capitals = list(map(str.isupper, value))
    changes = sum(a != b for a, b in pairwise(capitals))
    return 0.3 <= sum(capitals) / len(value) <= 0.75 and changes >= len(value) * 0.3  # noqa: PLR2004 - shares


def _is_mixed_case(value: str) -> bool:
    return _has(value, str.isupper) and _has(value, str.islower) and _changes_class_often(value)


def _has(value: str, is_it: Callable[[str], bool]) -> bool:
    return any(map(is_it, value))


# Words for passwords in other languages, in lower case, each with a letter that is not ASCII.
_FOREIGN_NAMES = word_set(
    "contraseña hasło lösenord şifre jelszó lykilorð slaptažodis parolă пароль парола гасло κωδικός συνθηματικό"
    " סיסמה סיסמא"
    " المرور السر عبور पासवर्ड รหัสผ่าน khẩu 密码 密碼 口令 パスワード 暗証番号 비밀번호 암호 løsenord"
)
_FOREIGN_FORMS = tuple(
    (form, next(letter for letter in form if not letter.isascii()))
    for name in sorted(_FOREIGN_NAMES)
    for form in dict.fromkeys((name, name.capitalize(), name.upper()))
    if not form.isascii()
)
_FOREIGN_SIGNS = {
    "\uff1a": ":",
    "\uff1d": "=",
    "\u2502": "|",
    "\u2503": "|",
    "\u2551": "|",
    "\u201c": '"',
    "\u201d": '"',
    "\uff0c": ",",
    "\u3001": ",",
    "\u3002": ".",
    "\uff1b": ";",
    "\u300c": '"',
    "\u300d": '"',
}
# `is` in languages without blanks.
_PARTICLES = frozenset("\u662f\u4e3a\u70ba\u306f\u304c")
_ASCII_NAMES = {2: "pw", 3: "pwd", 4: "pass", 5: "_pass", 6: "passwd", 7: "_passwd"}


def translate_names(text: str, foreign: str) -> str:
    """Replace words for passwords in other languages by English ones of the same length, and their signs by ASCII.

    `foreign` are the characters of the text that are not ASCII.

    >>> translate_names("пароль=x", "пароль")
    'passwd=x'
    """
    letters = set(foreign)
    for form, letter in _FOREIGN_FORMS:
        if letter in letters and form in text:
            name = _ASCII_NAMES.get(len(form)) or "password".rjust(len(form), "_")
            for particle in _PARTICLES & letters:
                text = text.replace(form + particle, name + ":")
            text = text.replace(form, name)
    for sign, ascii_sign in _FOREIGN_SIGNS.items():
        if sign in letters:
            text = text.replace(sign, ascii_sign)
    return text
