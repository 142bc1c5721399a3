"""Find secrets by what they are assigned to: variables, keys, options, headers, URL parameters, commands.

A name is found by one letter of the word that makes it one (`k` of key and token, `p` of password). That letter is
rare, so a search for it skips nearly everything else.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator

from threadline.redact import heuristics, prefilter
from threadline.redact.formats import Span
from threadline.redact.heuristics import is_env_key_name, is_password_name, is_secret_name, services_in_name, split_name
from threadline.redact.prefilter import MAX_SIGNS, RareMarks, match_at_places, match_at_sign

# How the rest of a name, and what stands between it and its value, may look; the value is what follows.
_REST = rb"[a-z0-9_.-]{0,24}"
_BREAK = rb"(?:\r?\n|\\+n)"
_ASSIGNMENT = (
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
    rb"k(?:en(?<=token)(?!s)" + _REST + _ASSIGNMENT + rb"|ey(?!s|w|b)" + _REST + _ASSIGNMENT + rb"|" + _K_WORDS + rb")"
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
    + (_REST + _ASSIGNMENT + rb"|wd?(?![a-z])" + _REST + _ASSIGNMENT + rb"|" + _P_WORDS + rb")")
)
_RARE_P_WORD = re.compile(rb"p" + _P_WORDS)
_SECRET_WORD = re.compile(rb"cre(?:t(?<=secret)|d(?:s|entials?)?(?![a-z]))" + _REST + _ASSIGNMENT)
ENV_WORDS = (b"pin", b"auth", b"jwt", b"salt", b"dsn", b"sid", b"pat", b"psk")
"""How the name of a variable that may hold a secret ends, behind its last underscore."""
_ENV_WORD = re.compile(rb"_(?:" + b"|".join(ENV_WORDS) + rb")" + _ASSIGNMENT)
_RARE_GROUP = 3
_MAX_RARE_WORD = 9
_NAME = re.compile(rb"[A-Za-z0-9_.-]+")
_NAME_BACKWARDS = re.compile(rb"[A-Za-z0-9_.-]{0,61}")
_BACKSLASH = 0x5C
_MAX_NAME = 60
_ESCAPES = ("n", "r", "t")
_OPENING_QUOTE = re.compile(rb"(?:b|r|f|rb|br|u|@)?(\\*)([\"'`])")
_BARE_VALUE = re.compile(rb"[^\s\"'`,;(){}\[\]<>\\&|]{1,1024}")
# A line of a shell that goes on in the next one.
_CONTINUATION_LINE = re.compile(rb"\\\r?\n([A-Za-z0-9+/=_.~!#%*^][^\s\"'`,;(){}\[\]<>\\&|]{3,1024})(?=\s|\Z)")
_YAML_BLOCK_LINE = re.compile(_BREAK + rb"[ \t]{1,40}([A-Za-z0-9+/=_-]{8,1024})(?=\r?\n|\\+n|\\*\"|\Z)")
_KEY_QUALIFIER = re.compile(rb"(?i)\b(api|access|secret|private|auth|encryption|signing)[ ]\Z")
_PASS_OPTION = re.compile(rb"-pass(?:in|out)?[ =]\Z")
_TIGHT_ASSIGNMENTS = frozenset((b"=", b":"))
_OPENING_BYTES = frozenset((b'"', b"'", b"\\"))
_VALUE_FIELD = re.compile(rb"value|default")
_CELL_END = re.compile(rb"\\*`?[ \t]*\|")
_URL_OR_FILE = re.compile(r"://|\(|\.[a-z]{2,5}\Z|/.*/.*/")
_ASSIGNMENT_BYTES = frozenset((b":", b"="))
_VALUE_TERMINATORS = frozenset((b"", b"\n", b"\r", b";", b"\\", b"&", b"<", b'"'))
_OPENING_BRACKETS = frozenset((b"(", b"[", b"{"))
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
    (prefilter.AUTHORIZATION, _AUTHORIZATION, "authorization-header"),
    (prefilter.BEARER, _BEARER, "bearer-token"),
    (prefilter.BASIC, _BASIC, "basic-authorization"),
    (prefilter.COOKIE, _COOKIE, "cookie"),
)
# A login before a host: a name and a password, or a token alone.
_URL_LOGIN = re.compile(rb"://([^\s/@\"'`<>\\]{1,400})@")
_MAX_LOGIN = 403
_URL_TOKEN = re.compile(r"[A-Za-z0-9_~.-]{16,255}\Z")
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
_COMMON_PASSWORDS = frozenset(("password", "secret", "admin", "test", "token"))
_RANDOM_ENTROPY, _LIKELY_RANDOM_ENTROPY = 3.5, 3  # bits a character
_AUTH_SCHEMES = frozenset((b"basic", b"bearer", b"token"))


_Names = Iterable[tuple[int, int, bytes | None]]


def find_named_values(view: bytes, low: bytes, seen: RareMarks) -> list[Span]:
    """All that is assigned to a name that says so; `low` is the view in lower case.

    What is rare and is found on the way is told to `seen`, so that this comes before other searches.
    """
    return [
        span
        for names in (
            _token_names(low, seen),
            _password_names(low, seen),
            _secret_names(low),
            _variable_names(low, seen),
        )
        for span in _values_of_names(view, names)
    ]


def _values_of_names(view: bytes, names: _Names) -> Iterator[Span]:
    done = 0
    for start, end, loose in names:
        # A name within a value is a part of it.
        span = _value_of_name(view, start, end, loose) if start >= done else None
        if span is not None:
            done = span.end
            yield span


def _token_names(low: bytes, seen: RareMarks) -> _Names:
    """Names of keys and tokens: where one begins, where its value does, and what stands instead of a sign."""
    return _names_and_rare_words(_TOKEN_WORD, _RARE_K_WORD, low, seen)


def _password_names(low: bytes, seen: RareMarks) -> _Names:
    """The same for passwords."""
    return _names_and_rare_words(_PASS_WORD, _RARE_P_WORD, low, seen)


def _names_and_rare_words(pattern: re.Pattern[bytes], rarely: re.Pattern[bytes], low: bytes, seen: RareMarks) -> _Names:
    for found in pattern.finditer(low):
        start, end = found.span()
        last = found.lastindex
        if last == _RARE_GROUP:
            seen.add(found)
            continue
        # A rare word may be the name itself, or a part of it or of what stands between it and its value.
        for word in rarely.finditer(low, start, end + _MAX_RARE_WORD):
            seen.add(word)
        yield start, end, found[last] if last else None


def _secret_names(low: bytes) -> _Names:
    """The same for secrets and credentials."""
    return ((found.start(), found.end(), found[1]) for found in _SECRET_WORD.finditer(low))


def _variable_names(low: bytes, seen: RareMarks) -> _Names:
    """The same for variables that are so called."""
    return ((found.start(), found.end(), found[1]) for found in match_at_places(_ENV_WORD, low, seen.underscores))


def find_assigned_values(view: bytes, low: bytes, seen: RareMarks) -> Iterator[Span]:
    """All that is given to options, headers, parameters of addresses and tools."""
    for found in match_at_places(_OPTION, low, seen.options):
        span = value_at(view, found[0].decode().strip("- \t").replace("-", "_"), found.end())
        if span is not None:
            yield span
    yield from _find_headers(view, low, seen)
    yield from _find_in_urls(view, low)
    yield from _find_tool_arguments(view, seen)


def _value_of_name(view: bytes, at: int, end: int, loose: bytes | None) -> Span | None:
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
    if name.lower() == "key" and (said := _KEY_QUALIFIER.search(view[max(0, begin - 12) : begin])):
        name = f"{said[1].decode()}_{name}"
    if not is_secret_name(name) and not is_env_key_name(name):
        return None
    if len(name) > _MAX_NAME:
        return None
    if loose is not None:
        return _loose_value(view, name.lstrip("-."), begin, end, loose)
    return _assigned_value(view, name, begin, stop, end)


def _assigned_value(view: bytes, name: str, begin: int, stop: int, end: int) -> Span | None:
    """The value that is assigned to a secret name, which stands from `begin` to `stop`."""
    quoted = view[begin - 1 : begin] in _QUOTES
    if not quoted and name.lower() in _SHORT_WORDS and view[stop:end] in _TIGHT_ASSIGNMENTS:
        return _short_assignment(view, name, begin, end)
    listed = b"," in view[stop:end]
    if (listed or name.lower() in _SHORT_WORDS) and (not quoted or (listed and name.lower() in _SHORT_WORDS)):
        return None
    # In `"outcome": "pass", "next": …` it is a value, and what follows is the next key.
    if listed and view[max(0, begin - 8) : begin - 1].rstrip(b" \t\\")[-1:] in _ASSIGNMENT_BYTES:
        return None
    span = value_at(view, name.lstrip("-."), end)
    if span is not None and b"n" in view[stop:end].lower().replace(b"\n", b"n"):
        span = _extend_yaml_block(view, span)
    # In a list of words, one follows the other and says nothing of it.
    return None if span is not None and listed and view[span.start : span.end].isalpha() else span


def _short_assignment(view: bytes, name: str, begin: int, end: int) -> Span | None:
    """The value of `pass=`, or of openssl's `pass:`, which stand in everyday text, too."""
    if view[end - 1 : end] == b":" and not _PASS_OPTION.search(view, max(0, begin - 10), begin):
        return None
    span = value_at(view, name, end)
    return span if span is not None and looks_like_secret(view[span.start : span.end].decode("latin-1")) else None


def _loose_value(view: bytes, name: str, begin: int, end: int, loose: bytes) -> Span | None:
    """The value behind a name where no sign of assignment stands between them: it must say more by itself."""
    span = value_at(view, name, end)
    if span is None or _VALUE_FIELD.search(loose):
        return span
    value = view[span.start : span.end].decode("latin-1")
    if " " in value:
        return None
    if loose.startswith(b"|"):
        is_cell = view[max(0, begin - 8) : begin].rstrip(b" \t`*\\")[-1:] == b"|"
        return span if is_cell and looks_like_secret(value) and _CELL_END.match(view, span.end) else None
    if not loose or loose.startswith(b"("):
        if view[end : end + 1] not in _OPENING_BYTES:
            return (
                span
                if heuristics.is_random(value) or (view[end - 2 : end].isspace() and looks_like_secret(value))
                else None
            )
        # A statement of SQL has it in capitals, and then any word can be one.
        is_sql = name == "PASSWORD" and not loose
        return (
            span
            if is_sql or (is_password_name(name) and any(map(str.isdigit, value))) or looks_like_secret(value)
            else None
        )
    return span if looks_like_secret(value) else None


def looks_like_secret(value: str) -> bool:
    """Whether a value says by itself that it is a password or a key: letters of both cases and digits, or many."""
    if not heuristics.can_be_key(value, quoted=True) or not any(map(str.isdigit, value)) or _URL_OR_FILE.search(value):
        return False
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return (mixed or len(value) >= 20) and heuristics.entropy(value) > _LIKELY_RANDOM_ENTROPY - 0.5  # noqa: PLR2004 - no word


def _extend_yaml_block(view: bytes, span: Span) -> Span:
    """A value of YAML's with the lines that it goes on in."""
    end, value = span.end, view[span.start : span.end]
    while (more := _YAML_BLOCK_LINE.match(view, end)) and any(0x30 <= one <= 0x39 for one in more[1]):  # noqa: PLR2004 - digits
        end, value = more.end(), value + more[1]
    return span if end == span.end else Span(span.start, end, span.kind, span.local_only, value.decode("latin-1"))


def value_at(view: bytes, name: str, at: int) -> Span | None:
    """The value at a place, for a name; quoted or bare."""
    opening = _OPENING_QUOTE.match(view, at)
    if opening:
        start = opening.end()
        stop = _closing_quote(view, start, opening[1] + opening[2])
        if stop < 0:
            return None
    else:
        bare = _BARE_VALUE.match(view, at)
        if bare is None:
            return None
        start = at
        stop = at + len(_UNQUOTED_END.sub(b"", bare[0]))
        if view[stop : stop + 1] in _OPENING_BRACKETS:
            return None
    value = view[start:stop].decode("latin-1")
    if not is_credible(name, value, quoted=opening is not None, last=view[stop : stop + 1] in _VALUE_TERMINATORS):
        return None
    more = _CONTINUATION_LINE.match(view, stop) if opening is None else None
    if more is not None:
        return Span(start, more.end(), kind_of(name, value), value=value + more[1].decode("latin-1"))
    return Span(start, stop, kind_of(name, value), local_only=not is_distinctive(value))


def is_credible(name: str, value: str, *, quoted: bool, last: bool = True) -> bool:
    """Whether the value can be the secret that its name says; `last` is whether nothing follows it on its line."""
    if any(re.fullmatch(service.pattern, value) for service in services_in_name(name)):
        return True
    if is_password_name(name):
        if name.lower().endswith("pwd") and not heuristics.can_be_key(value, quoted=quoted):  # the working directory
            return len(split_name(name)) > 1 and "." not in name and not heuristics.is_path(value)
        in_file = last and (name.isupper() or "_" in name)
        return heuristics.can_be_password(value, quoted=quoted or in_file) and (value.count(" ") < 4)  # noqa: PLR2004 - a sentence
    if " " in value:
        return False
    if not is_secret_name(name):
        return heuristics.can_be_key(value, quoted=quoted) and heuristics.entropy(value) > _LIKELY_RANDOM_ENTROPY
    return heuristics.can_be_key(value, quoted=quoted)


def is_distinctive(value: str) -> bool:
    """Whether a value is telling enough to be taken away wherever it stands, and not only behind its name."""
    if len(value) < 6:  # noqa: PLR2004 - shorter ones are in many words
        return False
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + (not value.isalnum())
    return kinds > 1 and heuristics.entropy(value) > 2  # noqa: PLR2004 - bits a character


def kind_of(name: str, value: str) -> str:
    """The kind of a value by its name: a service's own, or what it is in general."""
    for service in services_in_name(name):
        if re.fullmatch(service.pattern, value):
            return service.kind
    if is_password_name(name):
        return "password"
    return "assigned-secret"


def _closing_quote(view: bytes, start: int, quote: bytes) -> int:
    """Where the quoted value ends: at the same quote, on the same line."""
    limit = start + 4096
    end = view.find(quote, start, limit)
    while end > 0 and len(quote) == 1 and view[end - 1 : end] == b"\\" and view[end - 2 : end - 1] != b"\\":
        end = view.find(quote, end + 1, limit)
    line = view.find(b"\n", start, end if end >= 0 else limit)
    return -1 if line >= 0 else end


def _find_headers(view: bytes, low: bytes, seen: RareMarks) -> Iterator[Span]:
    for word, pattern, kind in _HEADERS:
        for found in pattern.finditer(low) if word in seen.words else ():
            start, end = found.span(1)
            value = view[start:end].rstrip()
            said = value.decode("latin-1")
            if value.lower() in _AUTH_SCHEMES or not heuristics.is_literal(said) or _is_prose(kind, said):
                continue
            yield Span(start, start + len(value), kind, local_only=kind == "cookie" or not is_distinctive(said))


def _is_prose(kind: str, value: str) -> bool:
    """Whether it is a sentence about headers, and no header."""
    if kind == "cookie":
        return False
    if kind == "basic-authorization":
        return not _is_basic_login(value)
    if kind == "authorization-header" and value.lower().startswith(("credential=", "username=")):
        return False
    return value.count(" ") > 1 or not (any(map(str.isdigit, value)) or heuristics.entropy(value) > _RANDOM_ENTROPY)


def _is_basic_login(value: str) -> bool:
    """Whether it is base64 of a name and a password."""
    try:
        return b":" in b64decode(value + "==", validate=False)
    except ValueError:
        return False


def _find_in_urls(view: bytes, low: bytes) -> Iterator[Span]:
    for found in _url_logins(view):
        span = _login_span(found)
        if span is not None:
            yield span
    for sign, pattern in _PARAMETERS:
        for found in match_at_sign(pattern, sign, low):
            value = found[1].decode("latin-1")
            if heuristics.is_literal(value) and (
                any(map(str.isdigit, value)) or heuristics.entropy(value) > _RANDOM_ENTROPY
            ):
                yield Span(*found.span(1), "url-parameter", local_only=not is_distinctive(value))


def _url_logins(view: bytes) -> Iterator[re.Match[bytes]]:
    """All logins, by the rare sign that ends them."""
    done = 0
    for _ in range(MAX_SIGNS):
        at = view.find(b"@", done)
        if at < 0:
            return
        start = view.rfind(b"://", max(done, at - _MAX_LOGIN), at)
        found = _URL_LOGIN.match(view, start) if start >= 0 else None
        if found is not None:
            yield found
        done = at + 1
    yield from _URL_LOGIN.finditer(view, done)


def _find_tool_arguments(view: bytes, seen: RareMarks) -> Iterator[Span]:
    """What tools are given: curl its user, netrc its passwords, webhooks their addresses."""
    for found in match_at_places(_CURL_USER, view, seen.options):
        if heuristics.is_literal(found[2].decode("latin-1")):
            yield Span(*found.span(2), "curl-password", local_only=not is_distinctive(found[2].decode("latin-1")))
    for found in _NETRC.finditer(view) if prefilter.NETRC in seen.words else ():
        if heuristics.is_literal(found[1].decode("latin-1")):
            yield Span(*found.span(1), "password", local_only=not is_distinctive(found[1].decode("latin-1")))
    for found in match_at_places(_WEBHOOK, view, seen.hooks):
        yield Span(*found.span(found.lastindex or 0), "webhook")


def _login_span(found: re.Match[bytes]) -> Span | None:
    """The password of a login, or the token that stands for one."""
    name, colon, password = found[1].decode("latin-1").partition(":")
    start = found.start(1)
    if colon and password != "x-oauth-basic":  # noqa: S105 - what stands there is no password
        if password and (heuristics.is_literal(password) or password in _COMMON_PASSWORDS):
            return Span(start + len(name) + 1, found.end(1), "url-password", local_only=not is_distinctive(password))
    elif _URL_TOKEN.match(name) and any(map(str.isdigit, name)) and heuristics.entropy(name) > _LIKELY_RANDOM_ENTROPY:
        return Span(start, start + len(name), "url-token")
    return None


# The options of a few commands that take a password; which command it is stands before it on the line.
_PASSWORD_OPTION = re.compile(rb"-(?<=[ \t]-)([paNP])([ =]?)(?:\\*[\"'])?([^\s\"'\\$<({-][^\s\"'\\]{3,128})")
_SAME_LINE = rb"[^\n|;&\\]*\Z"
_COMMANDS = {
    (b"p", True): re.compile(rb"\b(?:sshpass|useradd|usermod|mongo(?:sh|dump|restore)?|login)\b" + _SAME_LINE),
    (b"p", False): re.compile(rb"\b(?:sshpass|mysql(?:dump|admin|import)?|mariadb(?:-dump|-admin)?)\b" + _SAME_LINE),
    (b"a", True): re.compile(rb"\bredis-cli\b" + _SAME_LINE),
    (b"N", True): re.compile(rb"\bssh-keygen\b" + _SAME_LINE),
    (b"P", True): re.compile(rb"\b(?:un)?zip\b" + _SAME_LINE),
}
_COMMAND_REACH = 200
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
_MIN_HASH = 28
_WORD_PATTERNS = (
    (prefilter.IDENTIFIED_BY, _IDENTIFIED),
    (prefilter.SECURE_STRING, _SECURE_STRING),
    (prefilter.SUDO, _SUDO),
    (prefilter.CHPASSWD, _CHPASSWD),
)


def find_command_passwords(view: bytes, seen: RareMarks) -> Iterator[Span]:
    """All that commands are given; `seen` is what the view has of what is rare."""
    for found in match_at_places(_PASSWORD_OPTION, view, seen.options):
        command = _COMMANDS.get((found[1], bool(found[2])))
        start = found.start()
        if command is not None and command.search(view, max(0, start - _COMMAND_REACH), start) and _is_mixed(found[3]):
            yield _password_span(*found.span(3), found[3])
    patterns = [pattern for word, pattern in _WORD_PATTERNS if word in seen.words]
    patterns += [_PGPASS] if _PORT.search(view) else []
    for pattern in patterns:
        for found in pattern.finditer(view):
            if heuristics.is_literal(found[1].decode("latin-1")):
                yield _password_span(*found.span(1), found[1])
    for found in _HASH.finditer(view):
        if found.end() - found.start() >= _MIN_HASH:
            yield Span(*found.span(), "password-hash")


def _password_span(start: int, end: int, value: bytes) -> Span:
    return Span(start, end, "password", local_only=not is_distinctive(value.decode("latin-1")))


def _is_mixed(value: bytes) -> bool:
    """Whether it has letters and more than letters: a port or a path is no password."""
    said = value.decode("latin-1")
    letters = any(map(str.isalpha, said))
    return letters and any(map(str.isdigit, said)) and heuristics.is_literal(said) and not heuristics.is_path(said)
