"""Secrets that are told by what they are assigned to: keys, variables, options, headers, parameters, addresses.

A name is found by one letter of the word that makes it one (`k` of key and token, `p` of password): that letter is
rare, and a search for it passes over everything else.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator

from threadline.render.redaction import plausible, rare
from threadline.render.redaction.naming import is_env_key, is_password, is_secret, services_named, words_of
from threadline.render.redaction.rare import Rare
from threadline.render.redaction.signs import MOST, at_places, by_sign
from threadline.render.redaction.span import Span

# How the rest of a name, and what stands between it and its value, may look; the value is what follows.
_REST = rb"[a-z0-9_.-]{0,24}"
_BREAK = rb"(?:\r?\n|\\+n)"
_ASSIGNS = (
    rb"(?:\\*[\"'`\])]|&quot;|%22|\*\*){0,3}[ \t]{0,8}"
    rb"(?:(?:=>|:=|\?=|\+=|={1,3}|:{1,2}|,(?=[ \t]*\\*[\"'])|%3[ad]|>)(?:\*\*)?[ \t]{0,8}"
    # YAML's blocks: the value is the next line.
    rb"(?:[|>][+-]?[ \t]{0,4}" + _BREAK + rb"[ \t]{1,40})?"
    # No number, list, object or call.
    rb"(?![0-9]{1,12}(?:[,}\]\s]|\Z)|[{(\[]|true|false|null|none)"
    # Or the name is a value itself, of `name`, a variable's block, a cell, a sentence, a call or a statement.
    rb"|((?:[\s,;]|\\+[nrt]){1,48}(?:\\*[\"'])?(?:value|default)(?:\\*[\"'])?[ \t]{0,8}[:=][ \t]{0,8}"
    rb"|\{(?:\s|\\+n){0,40}(?:(?:type|description|sensitive)[ \t]*=[^\n\\]{0,80}(?:\s|\\+n){1,40}){0,3}"
    rb"default[ \t]*=[ \t]*"
    rb"|\|[ \t]{0,40}(?=\\*`?[^\s|]{8})"
    rb"|(?:is|was):?[ \t]{1,2}(?=\\*[`\"']?[^\s`]{8})"
    rb"|(?:->|\?|\xe2\x86\x92)[ \t]{1,4}(?=\\*[`\"']?[^\s]{8})"
    rb"|\((?=\\*[\"'])|(?<=[ \t])(?=\\*[\"'][^\s]{4})|(?<=[ \t])(?=[a-z0-9+/_.!#-]{12})))"
)
# With each letter, rare words that have it are found on the way: that is the last group. The one before is what stands
# between a name and its value instead of a sign. Literals come first, as they tell at once that it is none of them.
_K_WORDS = rb"(ie(?<=cookie)|edin(?<=linkedin)|[sb](?<=hook.))"
_TOKEN_WORD = re.compile(
    rb"k(?:en(?<=token)(?!s)" + _REST + _ASSIGNS + rb"|ey(?!s|w|b)" + _REST + _ASSIGNS + rb"|" + _K_WORDS + rb")"
)
_RARE_K_WORD = re.compile(rb"k" + _K_WORDS)
LONG_OPTION = (
    rb"(?:[a-z0-9]+-){0,4}(?:token|password|passwd|pass|secret|key|apikey|credentials?|passphrase)[ \t]{1,4}(?=[^\s-])"
)
"""The rest of an option that takes a secret, behind its two dashes."""
_OPTION = re.compile(rb"--" + LONG_OPTION)
# The words of `… | chpasswd` and of a line of netrc.
_P_WORDS = rb"(asswd(?<=chpasswd)|assword(?<=[\sn]password)(?=[ \t]))"
_PASS_WORD = re.compile(
    rb"p(?:ass(?:w(?:or[dt]|d)|phrase|code)?(?![a-z])"
    + (_REST + _ASSIGNS + rb"|wd?(?![a-z])" + _REST + _ASSIGNS + rb"|" + _P_WORDS + rb")")
)
_RARE_P_WORD = re.compile(rb"p" + _P_WORDS)
_SECRET_WORD = re.compile(rb"cre(?:t(?<=secret)|d(?:s|entials?)?(?![a-z]))" + _REST + _ASSIGNS)
ENV_WORDS = (b"pin", b"auth", b"jwt", b"salt", b"dsn", b"sid", b"pat", b"psk")
"""How the name of a variable that may hold a secret ends, behind its last underscore."""
_ENV_WORD = re.compile(rb"_(?:" + b"|".join(ENV_WORDS) + rb")" + _ASSIGNS)
_RARE = 3
_LONGEST_RARE = 9
_NAME = re.compile(rb"[A-Za-z0-9_.-]+")
_NAME_BACKWARDS = re.compile(rb"[A-Za-z0-9_.-]{0,61}")
_BACKSLASH = 0x5C
_LONGEST_NAME = 60
_ESCAPES = ("n", "r", "t")
_QUOTED = re.compile(rb"(?:b|r|f|rb|br|u|@)?(\\*)([\"'`])")
_BARE = re.compile(rb"[^\s\"'`,;(){}\[\]<>\\&|]{1,1024}")
# A line of a shell that goes on in the next one.
_CONTINUED = re.compile(rb"\\\r?\n([A-Za-z0-9+/=_.~!#%*^][^\s\"'`,;(){}\[\]<>\\&|]{3,1024})(?=\s|\Z)")
_BLOCK_LINE = re.compile(_BREAK + rb"[ \t]{1,40}([A-Za-z0-9+/=_-]{8,1024})(?=\r?\n|\\+n|\\*\"|\Z)")
_OF_KEY = re.compile(rb"(?i)\b(api|access|secret|private|auth|encryption|signing)[ ]\Z")
_PASS_OPTION = re.compile(rb"-pass(?:in|out)?[ =]\Z")
_TIGHT = frozenset((b"=", b":"))
_OPENS = frozenset((b'"', b"'", b"\\"))
_APART = re.compile(rb"value|default")
_CELL_END = re.compile(rb"\\*`?[ \t]*\|")
_URL_OR_FILE = re.compile(r"://|\(|\.[a-z]{2,5}\Z|/.*/.*/")
_ASSIGNED = frozenset((b":", b"="))
_LAST = frozenset((b"", b"\n", b"\r", b";", b"\\", b"&", b"<", b'"'))
_CALLS = frozenset((b"(", b"[", b"{"))
_UNQUOTED_END = re.compile(rb"[.:!?]+\Z")

_AUTHORIZATION = re.compile(
    rb"z(?<=authoriz)ation(?:\\*[\"'][ \t]{0,4},|(?:\\*[\"'])?[ \t]{0,4}[:=])[ \t]{0,4}(?:\\*[\"'])?[ \t]*"
    rb"(?:(?:basic|bearer|token|digest|negotiate|apikey|api-key|bot|aws4-hmac-sha256|oauth|hmac|signature)[ \t]+)?"
    rb"((?:[^\"'`\\\r\n<>]|\\[^\"'`nr\\]){6,4096})"
)
_BEARER = re.compile(rb"b(?:earer)(?: |%20|\+)([a-z0-9._~+/=-]{12,4096})")
_BASIC = re.compile(rb"b(?:asic) ([a-z0-9+/=_-]{8,1024})(?![a-z0-9+/=_-])")
_COOKIE = re.compile(
    rb"k(?<=cook)ie2?(?:\\*[\"'][ \t]{0,4},|(?:\\*[\"'])?[ \t]{0,4}[:=])[ \t]{0,4}(?:\\*[\"'])?[ \t]*"
    rb"([^\s=;,\"'\\:]{1,64}=[^\"'`\\\r\n]{4,8192})"
)
_HEADERS = (
    (rare.AUTHORIZATION, _AUTHORIZATION, "authorization-header"),
    (rare.BEARER, _BEARER, "bearer-token"),
    (rare.BASIC, _BASIC, "basic-authorization"),
    (rare.COOKIE, _COOKIE, "cookie"),
)
# A login before a host: a name and a password, or a token alone.
_LOGIN = re.compile(rb"://([^\s/@\"'`<>\\]{1,400})@")
_LONGEST_LOGIN = 403
_TOKEN = re.compile(r"[A-Za-z0-9_~.-]{16,255}\Z")
_PARAMETER = (
    rb"(?:amp;)?(?:sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature|x-goog-credential"
    rb"|auth|authkey|session|sessionid|session_id|sid|jwt|hmac|hash|otp|pat|pass|pwd|code|ticket|assertion|code_verifier)="
    rb"([^&\s\"'`<>\\#]{8,4096})"
)
# Two searches for one sign are faster than one for either.
_PARAMETERS = tuple((sign, re.compile(re.escape(sign) + _PARAMETER)) for sign in (b"&", b"?"))
_CURL_USER = re.compile(
    rb"-(?<= -)(?:u|-user|-proxy-user)[ =]?(?:\\*[\"'])?([^\s:\"'\\+%$-][^\s:\"'\\]{0,128}):([^\s\"'\\]{3,256})"
)
_NETRC = re.compile(rb"g(?<=log)in[ \t]+\S{1,128}(?:\s|\\n)+password[ \t]+([^\s\"'\\]{4,256})")
# Addresses to which anybody may post who knows them: of Slack, Zapier, Teams and Discord.
_WEBHOOK = re.compile(
    rb"hook(?:s\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})|s\.zapier\.com/hooks/catch/([A-Za-z0-9/]{8,})"
    rb"|b2/([A-Za-z0-9@/-]{60,})|s/([0-9]{15,20}/[A-Za-z0-9_-]{40,}))"
)
_QUOTES = frozenset((b'"', b"'", b"`"))
# Words of everyday: names of something only where they are quoted, or a part of a name.
_SHORT_WORDS = frozenset(("pass", "pw", "pin", "pwd", "oldpwd", "cred", "token.", "pass."))
_PASSWORDS = frozenset(("password", "secret", "admin", "test", "token"))
_RANDOM, _RATHER_RANDOM = 3.5, 3  # bits a character
_SCHEMES = frozenset((b"basic", b"bearer", b"token"))


_Names = Iterable[tuple[int, int, bytes | None]]


def named(view: bytes, low: bytes, seen: Rare) -> list[Span]:
    """All that is assigned to a name that says so; `low` is the view in lower case.

    What is rare and is found on the way is told to `seen`, so that this comes before other searches.
    """
    return [
        span
        for names in (_tokens(low, seen), _passwords(low, seen), _secrets(low), _variables(low, seen))
        for span in _values(view, names)
    ]


def _values(view: bytes, names: _Names) -> Iterator[Span]:
    done = 0
    for start, end, loose in names:
        # A name within a value is a part of it.
        span = _value(view, start, end, loose) if start >= done else None
        if span is not None:
            done = span.end
            yield span


def _tokens(low: bytes, seen: Rare) -> _Names:
    """Names of keys and tokens: where one begins, where its value does, and what stands instead of a sign."""
    return _with_rare(_TOKEN_WORD, _RARE_K_WORD, low, seen)


def _passwords(low: bytes, seen: Rare) -> _Names:
    """The same for passwords."""
    return _with_rare(_PASS_WORD, _RARE_P_WORD, low, seen)


def _with_rare(pattern: re.Pattern[bytes], rarely: re.Pattern[bytes], low: bytes, seen: Rare) -> _Names:
    for found in pattern.finditer(low):
        start, end = found.span()
        last = found.lastindex
        if last == _RARE:
            seen.add(found)
            continue
        # A rare word may be the name itself, or a part of it or of what stands between it and its value.
        for word in rarely.finditer(low, start, end + _LONGEST_RARE):
            seen.add(word)
        yield start, end, found[last] if last else None


def _secrets(low: bytes) -> _Names:
    """The same for secrets and credentials."""
    return ((found.start(), found.end(), found[1]) for found in _SECRET_WORD.finditer(low))


def _variables(low: bytes, seen: Rare) -> _Names:
    """The same for variables that are so called."""
    return ((found.start(), found.end(), found[1]) for found in at_places(_ENV_WORD, low, seen.underscores))


def assigned(view: bytes, low: bytes, seen: Rare) -> Iterator[Span]:
    """All that is given to options, headers, parameters of addresses and tools."""
    for found in at_places(_OPTION, low, seen.options):
        span = value_at(view, found[0].decode().strip("- \t").replace("-", "_"), found.end())
        if span is not None:
            yield span
    yield from _headers(view, low, seen)
    yield from _addresses(view, low)
    yield from _tools(view, seen)


def _value(view: bytes, at: int, end: int, loose: bytes | None) -> Span | None:
    """The value behind a name, if the name says that it is secret and the value can be.

    `loose` is what stands between them where that is no sign of assignment.
    """
    before = _NAME_BACKWARDS.match(view[max(0, at - 61) : at][::-1])
    begin = at - (before.end() if before else 0)
    after = _NAME.match(view, at)
    stop = after.end() if after else end
    name = view[begin:stop].decode()
    # An escape that ends just before the name is no part of it.
    if begin and view[begin - 1] == _BACKSLASH and name[:1] in _ESCAPES:
        name = name[1:]
    if name.lower() == "key" and (said := _OF_KEY.search(view[max(0, begin - 12) : begin])):
        name = f"{said[1].decode()}_{name}"
    if not is_secret(name) and not is_env_key(name):
        return None
    if len(name) > _LONGEST_NAME:
        return None
    if loose is not None:
        return _loosely(view, name.lstrip("-."), begin, end, loose)
    return _assigned(view, name, begin, stop, end)


def _assigned(view: bytes, name: str, begin: int, stop: int, end: int) -> Span | None:
    """The value that is assigned to a secret name, which stands from `begin` to `stop`."""
    quoted = view[begin - 1 : begin] in _QUOTES
    if not quoted and name.lower() in _SHORT_WORDS and view[stop:end] in _TIGHT:
        return _short(view, name, begin, end)
    listed = b"," in view[stop:end]
    if (listed or name.lower() in _SHORT_WORDS) and (not quoted or (listed and name.lower() in _SHORT_WORDS)):
        return None
    # In `"outcome": "pass", "next": …` it is a value, and what follows is the next key.
    if listed and view[max(0, begin - 8) : begin - 1].rstrip(b" \t\\")[-1:] in _ASSIGNED:
        return None
    span = value_at(view, name.lstrip("-."), end)
    if span is not None and b"n" in view[stop:end].lower().replace(b"\n", b"n"):
        span = _block(view, span)
    # In a list of words, one follows the other and says nothing of it.
    return None if span is not None and listed and view[span.start : span.end].isalpha() else span


def _short(view: bytes, name: str, begin: int, end: int) -> Span | None:
    """The value of `pass=`, or of openssl's `pass:`, which stand in everyday text, too."""
    if view[end - 1 : end] == b":" and not _PASS_OPTION.search(view, max(0, begin - 10), begin):
        return None
    span = value_at(view, name, end)
    return span if span is not None and is_told(view[span.start : span.end].decode("latin-1")) else None


def _loosely(view: bytes, name: str, begin: int, end: int, loose: bytes) -> Span | None:
    """The value behind a name where no sign of assignment stands between them: it must say more by itself."""
    span = value_at(view, name, end)
    if span is None or _APART.search(loose):
        return span
    value = view[span.start : span.end].decode("latin-1")
    if " " in value:
        return None
    if loose.startswith(b"|"):
        is_cell = view[max(0, begin - 8) : begin].rstrip(b" \t`*\\")[-1:] == b"|"
        return span if is_cell and is_told(value) and _CELL_END.match(view, span.end) else None
    if not loose or loose.startswith(b"("):
        if view[end : end + 1] not in _OPENS:
            return span if plausible.is_random(value) or (view[end - 2 : end].isspace() and is_told(value)) else None
        # A statement of SQL has it in capitals, and then any word can be one.
        is_sql = name == "PASSWORD" and not loose
        return span if is_sql or (is_password(name) and any(map(str.isdigit, value))) or is_told(value) else None
    return span if is_told(value) else None


def is_told(value: str) -> bool:
    """Whether a value says by itself that it is a password or a key: letters of both cases and digits, or many."""
    if not plausible.is_key(value, quoted=True) or not any(map(str.isdigit, value)) or _URL_OR_FILE.search(value):
        return False
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return (mixed or len(value) >= 20) and plausible.entropy(value) > _RATHER_RANDOM - 0.5  # noqa: PLR2004 - no word


def _block(view: bytes, span: Span) -> Span:
    """A value of YAML's with the lines that it goes on in."""
    end, value = span.end, view[span.start : span.end]
    while (more := _BLOCK_LINE.match(view, end)) and any(0x30 <= one <= 0x39 for one in more[1]):  # noqa: PLR2004 - digits
        end, value = more.end(), value + more[1]
    return span if end == span.end else Span(span.start, end, span.kind, span.weak, value.decode("latin-1"))


def value_at(view: bytes, name: str, at: int) -> Span | None:
    """The value at a place, for a name; quoted or bare."""
    opening = _QUOTED.match(view, at)
    if opening:
        start = opening.end()
        stop = _closing(view, start, opening[1] + opening[2])
        if stop < 0:
            return None
    else:
        bare = _BARE.match(view, at)
        if bare is None:
            return None
        start = at
        stop = at + len(_UNQUOTED_END.sub(b"", bare[0]))
        if view[stop : stop + 1] in _CALLS:
            return None
    value = view[start:stop].decode("latin-1")
    if not is_credible(name, value, quoted=opening is not None, last=view[stop : stop + 1] in _LAST):
        return None
    more = _CONTINUED.match(view, stop) if opening is None else None
    if more is not None:
        return Span(start, more.end(), kind_of(name, value), value=value + more[1].decode("latin-1"))
    return Span(start, stop, kind_of(name, value), weak=not is_everywhere(value))


def is_credible(name: str, value: str, *, quoted: bool, last: bool = True) -> bool:
    """Whether the value can be the secret that its name says; `last` is whether nothing follows it on its line."""
    if any(re.fullmatch(service.pattern, value) for service in services_named(name)):
        return True
    if is_password(name):
        if name.lower().endswith("pwd") and not plausible.is_key(value, quoted=quoted):  # the working directory
            return len(words_of(name)) > 1 and "." not in name and not plausible.is_path(value)
        in_file = last and (name.isupper() or "_" in name)
        return plausible.is_password(value, quoted=quoted or in_file) and (value.count(" ") < 4)  # noqa: PLR2004 - a sentence
    if " " in value:
        return False
    if not is_secret(name):
        return plausible.is_key(value, quoted=quoted) and plausible.entropy(value) > _RATHER_RANDOM
    return plausible.is_key(value, quoted=quoted)


def is_everywhere(value: str) -> bool:
    """Whether a value is telling enough to be taken away wherever it stands, and not only behind its name."""
    if len(value) < 6:  # noqa: PLR2004 - shorter ones are in many words
        return False
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + (not value.isalnum())
    return kinds > 1 and plausible.entropy(value) > 2  # noqa: PLR2004 - bits a character


def kind_of(name: str, value: str) -> str:
    """The kind of a value by its name: a service's own, or what it is in general."""
    for service in services_named(name):
        if re.fullmatch(service.pattern, value):
            return service.kind
    if is_password(name):
        return "password"
    return "assigned-secret"


def _closing(view: bytes, start: int, quote: bytes) -> int:
    """Where the quoted value ends: at the same quote, on the same line."""
    limit = start + 4096
    end = view.find(quote, start, limit)
    while end > 0 and len(quote) == 1 and view[end - 1 : end] == b"\\" and view[end - 2 : end - 1] != b"\\":
        end = view.find(quote, end + 1, limit)
    line = view.find(b"\n", start, end if end >= 0 else limit)
    return -1 if line >= 0 else end


def _headers(view: bytes, low: bytes, seen: Rare) -> Iterator[Span]:
    for word, pattern, kind in _HEADERS:
        for found in pattern.finditer(low) if word in seen.words else ():
            start, end = found.span(1)
            value = view[start:end].rstrip()
            said = value.decode("latin-1")
            if value.lower() in _SCHEMES or not plausible.is_literal(said) or _is_talk(kind, said):
                continue
            yield Span(start, start + len(value), kind, weak=kind == "cookie" or not is_everywhere(said))


def _is_talk(kind: str, value: str) -> bool:
    """Whether it is a sentence about headers, and no header."""
    if kind == "cookie":
        return False
    if kind == "basic-authorization":
        return not _is_login(value)
    if kind == "authorization-header" and value.lower().startswith(("credential=", "username=")):
        return False
    return value.count(" ") > 1 or not (any(map(str.isdigit, value)) or plausible.entropy(value) > _RANDOM)


def _is_login(value: str) -> bool:
    """Whether it is base64 of a name and a password."""
    try:
        return b":" in b64decode(value + "==", validate=False)
    except ValueError:
        return False


def _addresses(view: bytes, low: bytes) -> Iterator[Span]:
    for found in _logins(view):
        span = _login(found)
        if span is not None:
            yield span
    for sign, pattern in _PARAMETERS:
        for found in by_sign(pattern, sign, low):
            value = found[1].decode("latin-1")
            if plausible.is_literal(value) and (any(map(str.isdigit, value)) or plausible.entropy(value) > _RANDOM):
                yield Span(*found.span(1), "url-parameter", weak=not is_everywhere(value))


def _logins(view: bytes) -> Iterator[re.Match[bytes]]:
    """All logins, by the rare sign that ends them."""
    done = 0
    for _ in range(MOST):
        at = view.find(b"@", done)
        if at < 0:
            return
        start = view.rfind(b"://", max(done, at - _LONGEST_LOGIN), at)
        found = _LOGIN.match(view, start) if start >= 0 else None
        if found is not None:
            yield found
        done = at + 1
    yield from _LOGIN.finditer(view, done)


def _tools(view: bytes, seen: Rare) -> Iterator[Span]:
    """What tools are given: curl its user, netrc its passwords, webhooks their addresses."""
    for found in at_places(_CURL_USER, view, seen.options):
        if plausible.is_literal(found[2].decode("latin-1")):
            yield Span(*found.span(2), "curl-password", weak=not is_everywhere(found[2].decode("latin-1")))
    for found in _NETRC.finditer(view) if rare.NETRC in seen.words else ():
        if plausible.is_literal(found[1].decode("latin-1")):
            yield Span(*found.span(1), "password", weak=not is_everywhere(found[1].decode("latin-1")))
    for found in at_places(_WEBHOOK, view, seen.hooks):
        yield Span(*found.span(found.lastindex or 0), "webhook")


def _login(found: re.Match[bytes]) -> Span | None:
    """The password of a login, or the token that stands for one."""
    name, colon, password = found[1].decode("latin-1").partition(":")
    start = found.start(1)
    if colon and password != "x-oauth-basic":  # noqa: S105 - what stands there is no password
        if password and (plausible.is_literal(password) or password in _PASSWORDS):
            return Span(start + len(name) + 1, found.end(1), "url-password", weak=not is_everywhere(password))
    elif _TOKEN.match(name) and any(map(str.isdigit, name)) and plausible.entropy(name) > _RATHER_RANDOM:
        return Span(start, start + len(name), "url-token")
    return None
