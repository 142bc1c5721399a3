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

# The rest of a name, and what may separate it from its value, which follows.
_REST = rb"[a-z0-9_.-]{0,24}"
_BREAK = rb"(?:\r?\n|\\+n)"
_ASSIGNMENT = (
    rb"(?:\\*[\"'`\])]|&quot;|%22|\*\*){0,3}[ \t]{0,8}"
    rb"(?:(?:=>|:=|\?=|\+=|={1,3}|:{1,2}|,(?=[ \t]*\\*[\"'])|%3[ad]|>)(?:\*\*)?[ \t]{0,8}"
    # YAML's blocks: the value is the next line.
    rb"(?:[|>][+-]?[ \t]{0,4}" + _BREAK + rb"[ \t]{1,40})?"
    # The value is not a number, list, object or call.
    rb"(?![0-9]{1,12}(?:[,}\]\s]|\Z)|[{(\[]|true|false|null|none)"
    # Or the name is itself a value: of `name`, in a variable's block, a table cell, a sentence, a call or a statement.
    rb"|((?:[\s,;]|\\+[nrt]){1,48}(?:\\*[\"'])?(?:value|default)(?:\\*[\"'])?[ \t]{0,8}[:=][ \t]{0,8}"
    rb"|\{(?:\s|\\+n){0,40}(?:(?:type|description|sensitive)[ \t]*=[^\n\\]{0,80}(?:\s|\\+n){1,40}){0,3}"
    rb"default[ \t]*=[ \t]*"
    rb"|\|[ \t]{0,40}(?=\\*`?[^\s|]{8})"
    rb"|(?:is|was):?[ \t]{1,2}(?=\\*[`\"']?[^\s`]{8})"
    rb"|(?:->|\?|\xe2\x86\x92)[ \t]{1,4}(?=\\*[`\"']?[^\s]{8})"
    rb"|\((?=\\*[\"'])|(?<=[ \t])(?=\\*[\"'][^\s]{4})|(?<=[ \t])(?=[a-z0-9+/_.!#-]{12})))"
)
# Each pattern also matches rare words with the same letter, in its last group. The group before it is the text between
# a name and its value if there is no assignment sign. Literals come first because they fail fastest.
_K_WORDS = rb"(ie(?<=cookie)|edin(?<=linkedin)|[sb](?<=hook.))"
_TOKEN_WORD = re.compile(
    rb"k(?:en(?<=token)(?!s)" + _REST + _ASSIGNMENT + rb"|ey(?!s|w|b)" + _REST + _ASSIGNMENT + rb"|" + _K_WORDS + rb")"
)
_RARE_K_WORD = re.compile(rb"k" + _K_WORDS)
LONG_OPTION = (
    rb"(?:[a-z0-9]+-){0,4}(?:token|password|passwd|pass|secret|key|apikey|credentials?|passphrase)[ \t]{1,4}(?=[^\s-])"
)
"""The rest of an option that takes a secret, after its two dashes."""
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
"""Last words of variable names that may contain a secret, after the last underscore."""
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
# A shell line that is continued on the next line.
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
# A login before a host: a name and a password, or only a token.
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
# Webhook URLs, to which anybody who has the URL may post: Slack, Zapier, Teams and Discord.
_WEBHOOK = re.compile(
    rb"hook(?:s\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})|s\.zapier\.com/hooks/catch/([A-Za-z0-9/]{8,})"
    rb"|b2/([A-Za-z0-9@/-]{60,})|s/([0-9]{15,20}/[A-Za-z0-9_-]{40,}))"
)
_QUOTES = frozenset((b'"', b"'", b"`"))
# Everyday words. They are names only if they are quoted or part of a longer name.
_SHORT_WORDS = frozenset(("pass", "pw", "pin", "pwd", "oldpwd", "cred", "token.", "pass."))
_COMMON_PASSWORDS = frozenset(("password", "secret", "admin", "test", "token"))
_RANDOM_ENTROPY, _LIKELY_RANDOM_ENTROPY = 3.5, 3  # bits a character
_AUTH_SCHEMES = frozenset((b"basic", b"bearer", b"token"))


_Names = Iterable[tuple[int, int, bytes | None]]


def find_named_values(view: bytes, lower: bytes, marks: RareMarks) -> list[Span]:
    """Find values that are assigned to a name that denotes a secret; `lower` is the view in lower case.

    This also adds the rare words it meets to `marks`, so it must run before the searches that use them.
    """
    return [
        span
        for names in (
            _token_names(lower, marks),
            _password_names(lower, marks),
            _secret_names(lower),
            _variable_names(lower, marks),
        )
        for span in _values_of_names(view, names)
    ]


def _values_of_names(view: bytes, names: _Names) -> Iterator[Span]:
    done = 0
    for start, end, separator in names:
        # A name inside a value is part of that value.
        span = _value_of_name(view, start, end, separator) if start >= done else None
        if span is not None:
            done = span.end
            yield span


def _token_names(lower: bytes, marks: RareMarks) -> _Names:
    """Names of keys and tokens, as (start, start of the value, text in place of an assignment sign)."""
    return _names_and_rare_words(_TOKEN_WORD, _RARE_K_WORD, lower, marks)


def _password_names(lower: bytes, marks: RareMarks) -> _Names:
    """The same for passwords."""
    return _names_and_rare_words(_PASS_WORD, _RARE_P_WORD, lower, marks)


def _names_and_rare_words(
    pattern: re.Pattern[bytes], rare_pattern: re.Pattern[bytes], lower: bytes, marks: RareMarks
) -> _Names:
    for match in pattern.finditer(lower):
        start, end = match.span()
        last = match.lastindex
        if last == _RARE_GROUP:
            marks.add(match)
            continue
        # A rare word may be the name itself, or part of it or of the text between it and its value.
        for word in rare_pattern.finditer(lower, start, end + _MAX_RARE_WORD):
            marks.add(word)
        yield start, end, match[last] if last else None


def _secret_names(lower: bytes) -> _Names:
    """The same for secrets and credentials."""
    return ((match.start(), match.end(), match[1]) for match in _SECRET_WORD.finditer(lower))


def _variable_names(lower: bytes, marks: RareMarks) -> _Names:
    """The same for environment variables."""
    return ((match.start(), match.end(), match[1]) for match in match_at_places(_ENV_WORD, lower, marks.underscores))


def find_assigned_values(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find secrets in command-line options, headers, URLs and arguments of tools."""
    for match in match_at_places(_OPTION, lower, marks.options):
        span = value_at(view, match[0].decode().strip("- \t").replace("-", "_"), match.end())
        if span is not None:
            yield span
    yield from _find_headers(view, lower, marks)
    yield from _find_in_urls(view, lower)
    yield from _find_tool_arguments(view, marks)


def _value_of_name(view: bytes, position: int, end: int, separator: bytes | None) -> Span | None:
    """The value of a name, if the name denotes a secret and the value can be one.

    `separator` is the text between them if it is not an assignment sign.
    """
    before = _NAME_BACKWARDS.match(view[max(0, position - 61) : position][::-1])
    begin = position - (before.end() if before else 0)
    after = _NAME.match(view, position)
    stop = after.end() if after else end
    name = view[begin:stop].decode()
    # An escape that ends right before the name is not part of it.
    if begin and view[begin - 1] == _BACKSLASH and name[:1] in _ESCAPES:
        name = name[1:]
    if name.lower() == "key" and (qualifier := _KEY_QUALIFIER.search(view[max(0, begin - 12) : begin])):
        name = f"{qualifier[1].decode()}_{name}"
    if not is_secret_name(name) and not is_env_key_name(name):
        return None
    if len(name) > _MAX_NAME:
        return None
    if separator is not None:
        return _unassigned_value(view, name.lstrip("-."), begin, end, separator)
    return _assigned_value(view, name, begin, stop, end)


def _assigned_value(view: bytes, name: str, begin: int, stop: int, end: int) -> Span | None:
    """The value that is assigned to the secret name from `begin` to `stop`."""
    is_quoted = view[begin - 1 : begin] in _QUOTES
    if not is_quoted and name.lower() in _SHORT_WORDS and view[stop:end] in _TIGHT_ASSIGNMENTS:
        return _short_assignment(view, name, begin, end)
    is_listed = b"," in view[stop:end]
    if (is_listed or name.lower() in _SHORT_WORDS) and (not is_quoted or (is_listed and name.lower() in _SHORT_WORDS)):
        return None
    # In `"outcome": "pass", "next": …` the word is a value, and the next key follows.
    if is_listed and view[max(0, begin - 8) : begin - 1].rstrip(b" \t\\")[-1:] in _ASSIGNMENT_BYTES:
        return None
    span = value_at(view, name.lstrip("-."), end)
    if span is not None and b"n" in view[stop:end].lower().replace(b"\n", b"n"):
        span = _extend_yaml_block(view, span)
    # In a list of words, the next word is not the value of the one before.
    return None if span is not None and is_listed and view[span.start : span.end].isalpha() else span


def _short_assignment(view: bytes, name: str, begin: int, end: int) -> Span | None:
    """The value of `pass=`, or of openssl's `pass:`. Both also occur in everyday text."""
    if view[end - 1 : end] == b":" and not _PASS_OPTION.search(view, max(0, begin - 10), begin):
        return None
    span = value_at(view, name, end)
    return span if span is not None and looks_like_secret(view[span.start : span.end].decode("latin-1")) else None


def _unassigned_value(view: bytes, name: str, begin: int, end: int, separator: bytes) -> Span | None:
    """The value after a name without an assignment sign. Such a value must look like a secret by itself."""
    span = value_at(view, name, end)
    if span is None or _VALUE_FIELD.search(separator):
        return span
    value = view[span.start : span.end].decode("latin-1")
    if " " in value:
        return None
    if separator.startswith(b"|"):
        is_cell = view[max(0, begin - 8) : begin].rstrip(b" \t`*\\")[-1:] == b"|"
        return span if is_cell and looks_like_secret(value) and _CELL_END.match(view, span.end) else None
    if not separator or separator.startswith(b"("):
        if view[end : end + 1] not in _OPENING_BYTES:
            return (
                span
                if heuristics.is_random(value) or (view[end - 2 : end].isspace() and looks_like_secret(value))
                else None
            )
        # In SQL statements PASSWORD is in capitals, and any word can be the password.
        is_sql = name == "PASSWORD" and not separator
        return (
            span
            if is_sql or (is_password_name(name) and any(map(str.isdigit, value))) or looks_like_secret(value)
            else None
        )
    return span if looks_like_secret(value) else None


def looks_like_secret(value: str) -> bool:
    """Whether a value looks like a password or key by itself: mixed case with digits, or long with digits."""
    if not heuristics.can_be_key(value, quoted=True) or not any(map(str.isdigit, value)) or _URL_OR_FILE.search(value):
        return False
    is_mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return (is_mixed or len(value) >= 20) and heuristics.entropy(value) > _LIKELY_RANDOM_ENTROPY - 0.5  # noqa: PLR2004 - no word


def _extend_yaml_block(view: bytes, span: Span) -> Span:
    """Extend a YAML value by its continuation lines."""
    end, value = span.end, view[span.start : span.end]
    while (more := _YAML_BLOCK_LINE.match(view, end)) and any(0x30 <= byte <= 0x39 for byte in more[1]):  # noqa: PLR2004 - digits
        end, value = more.end(), value + more[1]
    return span if end == span.end else Span(span.start, end, span.kind, span.local_only, value.decode("latin-1"))


def value_at(view: bytes, name: str, at: int) -> Span | None:
    """The value of a name at a position, quoted or bare."""
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
    """Whether the value can be the secret that its name denotes. `last`: nothing follows it on its line."""
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
    """Whether a value is distinctive enough to be replaced everywhere, and not only after its name."""
    if len(value) < 6:  # noqa: PLR2004 - shorter ones are in many words
        return False
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + (not value.isalnum())
    return kinds > 1 and heuristics.entropy(value) > 2  # noqa: PLR2004 - bits a character


def kind_of(name: str, value: str) -> str:
    """The kind of a value by its name: that of a service, or a general one."""
    for service in services_in_name(name):
        if re.fullmatch(service.pattern, value):
            return service.kind
    if is_password_name(name):
        return "password"
    return "assigned-secret"


def _closing_quote(view: bytes, start: int, quote: bytes) -> int:
    """The end of a quoted value: the same quote on the same line, or -1."""
    limit = start + 4096
    end = view.find(quote, start, limit)
    while end > 0 and len(quote) == 1 and view[end - 1 : end] == b"\\" and view[end - 2 : end - 1] != b"\\":
        end = view.find(quote, end + 1, limit)
    line = view.find(b"\n", start, end if end >= 0 else limit)
    return -1 if line >= 0 else end


def _find_headers(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    for word, pattern, kind in _HEADERS:
        for match in pattern.finditer(lower) if word in marks.words else ():
            start, end = match.span(1)
            value = view[start:end].rstrip()
            text = value.decode("latin-1")
            if value.lower() in _AUTH_SCHEMES or not heuristics.is_literal(text) or _is_prose(kind, text):
                continue
            yield Span(start, start + len(value), kind, local_only=kind == "cookie" or not is_distinctive(text))


def _is_prose(kind: str, value: str) -> bool:
    """Whether the value is part of a sentence about headers."""
    if kind == "cookie":
        return False
    if kind == "basic-authorization":
        return not _is_basic_login(value)
    if kind == "authorization-header" and value.lower().startswith(("credential=", "username=")):
        return False
    return value.count(" ") > 1 or not (any(map(str.isdigit, value)) or heuristics.entropy(value) > _RANDOM_ENTROPY)


def _is_basic_login(value: str) -> bool:
    """Whether the value is base64 of a name and a password."""
    try:
        return b":" in b64decode(value + "==", validate=False)
    except ValueError:
        return False


def _find_in_urls(view: bytes, lower: bytes) -> Iterator[Span]:
    for match in _url_logins(view):
        span = _login_span(match)
        if span is not None:
            yield span
    for sign, pattern in _PARAMETERS:
        for match in match_at_sign(pattern, sign, lower):
            value = match[1].decode("latin-1")
            if heuristics.is_literal(value) and (
                any(map(str.isdigit, value)) or heuristics.entropy(value) > _RANDOM_ENTROPY
            ):
                yield Span(*match.span(1), "url-parameter", local_only=not is_distinctive(value))


def _url_logins(view: bytes) -> Iterator[re.Match[bytes]]:
    """All logins in URLs, found by the rare sign that ends them."""
    done = 0
    for _ in range(MAX_SIGNS):
        at = view.find(b"@", done)
        if at < 0:
            return
        start = view.rfind(b"://", max(done, at - _MAX_LOGIN), at)
        match = _URL_LOGIN.match(view, start) if start >= 0 else None
        if match is not None:
            yield match
        done = at + 1
    yield from _URL_LOGIN.finditer(view, done)


def _find_tool_arguments(view: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find curl's user option, passwords in netrc files, and webhook URLs."""
    for match in match_at_places(_CURL_USER, view, marks.options):
        if heuristics.is_literal(match[2].decode("latin-1")):
            yield Span(*match.span(2), "curl-password", local_only=not is_distinctive(match[2].decode("latin-1")))
    for match in _NETRC.finditer(view) if prefilter.NETRC in marks.words else ():
        if heuristics.is_literal(match[1].decode("latin-1")):
            yield Span(*match.span(1), "password", local_only=not is_distinctive(match[1].decode("latin-1")))
    for match in match_at_places(_WEBHOOK, view, marks.hooks):
        yield Span(*match.span(match.lastindex or 0), "webhook")


def _login_span(match: re.Match[bytes]) -> Span | None:
    """The password of a login, or the token that is used as one."""
    name, colon, password = match[1].decode("latin-1").partition(":")
    start = match.start(1)
    if colon and password != "x-oauth-basic":  # noqa: S105 - this value is not a password
        if password and (heuristics.is_literal(password) or password in _COMMON_PASSWORDS):
            return Span(start + len(name) + 1, match.end(1), "url-password", local_only=not is_distinctive(password))
    elif _URL_TOKEN.match(name) and any(map(str.isdigit, name)) and heuristics.entropy(name) > _LIKELY_RANDOM_ENTROPY:
        return Span(start, start + len(name), "url-token")
    return None


# Password options of a few commands. The command precedes the option on the same line.
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


def find_command_passwords(view: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find passwords that are passed to commands; `marks` are the rare marks of the view."""
    for match in match_at_places(_PASSWORD_OPTION, view, marks.options):
        command = _COMMANDS.get((match[1], bool(match[2])))
        start = match.start()
        if command is not None and command.search(view, max(0, start - _COMMAND_REACH), start) and _is_mixed(match[3]):
            yield _password_span(*match.span(3), match[3])
    patterns = [pattern for word, pattern in _WORD_PATTERNS if word in marks.words]
    patterns += [_PGPASS] if _PORT.search(view) else []
    for pattern in patterns:
        for match in pattern.finditer(view):
            if heuristics.is_literal(match[1].decode("latin-1")):
                yield _password_span(*match.span(1), match[1])
    for match in _HASH.finditer(view):
        if match.end() - match.start() >= _MIN_HASH:
            yield Span(*match.span(), "password-hash")


def _password_span(start: int, end: int, value: bytes) -> Span:
    return Span(start, end, "password", local_only=not is_distinctive(value.decode("latin-1")))


def _is_mixed(value: bytes) -> bool:
    """Whether the value has letters and digits. A port or a path is not a password."""
    text = value.decode("latin-1")
    letters = any(map(str.isalpha, text))
    return letters and any(map(str.isdigit, text)) and heuristics.is_literal(text) and not heuristics.is_path(text)
