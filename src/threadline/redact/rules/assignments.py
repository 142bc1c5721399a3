"""Find secrets by what they are assigned to: variables, keys, options, headers, URL parameters, commands.

A name is found by one letter of the word that makes it one (`k` of key and token, `p` of password). That letter is
rare, so a search for it skips nearly everything else.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator

from threadline.redact.rules import heuristics, prefilter
from threadline.redact.rules.contexts import Mention, find_values_near_names, literal_span, word_span
from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import (
    has_password_word,
    is_distinctive,
    is_env_key_name,
    is_getter,
    is_password_in_prose,
    is_password_name,
    is_secret_name,
    kind_of,
    services_in_name,
    split_name,
)
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.rules.prefilter import MAX_SIGNS, RareMarks, gate, match_at_places, match_at_sign

# The rest of a name, and what may separate it from its value, which follows.
_REST = rb"[a-z0-9_.-]{0,24}+"
_BREAK = rb"(?:\r?\n|\\+n)"
_QUOTE_FOLLOWS = rb"(?=(?:[brnufl$@]|rb|br)?\\*[\"'`])"
_ASSIGNMENT = (
    rb"(?:(?:\\*[\"'`\])]|&quot;|%22|\*\*){0,3}[ \t]{0,8}(?:" + _BREAK + rb"[ \t]{0,40}(?=:))?"
    rb"(?:(?:=>|:=|:-|\?=|\+=|!=|={1,3}|:{1,2}|,(?=[ \t]*\\*[\"'])|%3[ad]"
    rb"|(?:[a-z]{2,16}=\\*[\"'][\w-]{1,20}\\*[\"'])?>|(?:\|\||\?\?)[ \t]{0,2}"
    + (_QUOTE_FOLLOWS + rb")(?:\*\*)?[ \t]{0,20}")
    # A type before the value, or the anchor and tag of a YAML value.
    + (rb"(?:&?[a-z_][a-z0-9_\[\]|.]{0,30}[ \t]{0,2}=[ \t]{0,2}" + _QUOTE_FOLLOWS)
    + (rb"|(?:[&!](?!(?:secret|ref|sub|env|getatt|include|vault)[ \t])[a-z0-9!_.:/-]{1,40}[ \t]{1,4}){1,3})?")
    # A function around the value.
    + rb"(?:(?:new )?(?:[a-z0-9_]{1,24}(?:\.|::)){0,2}(?:md5|sha[0-9]{1,3}|crypt|password|string|str|bytes|bytestring"
    rb"|secretstr"
    rb"|secret|securestring|sensitive|hash|hashpw|text|literal|quote|of|from|buffer)\((?=[bn]?\\*[\"']))?"
    # YAML's blocks, and JSON whose value is on the next line.
    rb"(?:[|>][+-]?[0-9]?[+-]?[ \t]{0,4}"
    + (_BREAK + rb"[ \t]{1,40}|" + _BREAK + rb"[ \t]{0,40}(?=\\*[\"']))?")
    # A short number is not a secret.
    + rb"(?:[\[(][ \t]{0,2}(?=\\*[\"']))?(?![0-9]{1,3}(?:[,}\]\s]|\Z))()"
    # Or the name is itself a value: of `name`, in a variable's block, a table cell, a sentence, a call or a statement.
    rb"|((?:[\s,;]|\\+[nrt]){1,48}(?:\\*[\"'])?(?:value|default)(?:\\*[\"'])?[ \t]{0,8}[:=][ \t]{0,8}"
    rb"|\{(?:\s|\\+n){0,40}(?:(?:type|description|sensitive|nullable)[ \t]*=[^\n\\]{0,80}(?:\s|\\+n){1,40}){0,3}"
    rb"default[ \t]*=[ \t]*"
    rb"|\{[ \t]{0,4}get;[^{}\n\\]{0,40}\}[ \t]{0,4}=[ \t]{0,4}(?=\\*[\"'])"
    rb"|\|[ \t]{0,40}(?=\\*`?[^\s|]{8})"
    rb"|(?:is|was):?[ \t]{1,2}(?=\\*[`\"']?[^\s`]{8})"
    rb"|(?:->|\?|\xe2\x86\x92)[ \t]{1,4}(?=\\*[`\"']?[^\s]{8})"
    rb"|\.[ \t]{1,4}(?=\\*[\"'])|(?:string|str|char)[ \t]{1,4}=[ \t]{0,4}(?=\\*[\"'`])"
    rb"|\((?=\\*[\"'])|(?<=[ \t])(?=\\*[\"'][^\s]{4})|(?<=[ \t])(?=[a-z0-9+/_.!#-]{12}))))"
)
# Each pattern matches a name. Its odd groups are empty, and match if the name is assigned a value. The even ones are
# the text between the name and its value if there is no assignment sign. The last is a rare word with the same letter.
# Literals come first because they fail fastest.
_K_WORDS = rb"(ie(?<=cookie)|edin(?<=linkedin)|[sb](?<=hook.)(?=[./2])|ty\\?\"(?<=\"kty.)|init(?<=kinit))"
_TOKEN_WORD = re.compile(
    rb"k(?=e[nyd]|ode|ie|[sb]|ty|init)(?:(?:en(?<=token)(?!s)|ey(?!w|b)|ennwort|ode(?<=adgangskode))(?:"
    + (_REST + _ASSIGNMENT + rb"|(?:(?<=[a-z0-9_ -]k..)|(?<=kennwort))(?![a-z])" + _REST + rb")|" + _K_WORDS + rb")")
)
_RARE_K_WORD = compile_lazily(rb"k" + _K_WORDS)
LONG_OPTION = (
    rb"(?:[a-z0-9]+-){0,4}(?:token|password|passwd|pass|secret|key|apikey|credentials?|passphrase)[ \t]{1,4}(?=[^\s-])"
)
"""The rest of an option that takes a secret, after its two dashes."""
_OPTION = compile_lazily(rb"--" + LONG_OPTION)
# The words of `… | chpasswd`, of a line of netrc and of programs, and of a wallet's seed phrase.
_P_WORDS = (
    rb"(asswd(?<=chpasswd)|assword(?<=[\sn]password)(?=[ \t])|hrase(?:(?<=(?:ic|ed|ry|et|up|39)[ _-]phrase)"
    rb"|(?<=(?:ic|ed|ry|et|up|39)phrase))|lus(?<=sqlplus)|dp (?<=[mx]pdp )"
    rb"|lain\}(?<=\{plain\})|ect[ (](?<=expect.)|:(?<=/p:)|only(?<=httponly)|tsetup(?<=cryptsetup)"
    rb"|gp_sym(?<=pgp_sym)|ragma (?<=pragma ))"
)
# Without an assignment sign, an everyday word is a name only if it is quoted or part of a longer name.
_PASS_WORD = re.compile(
    # Few letters `p` start one of the words below, and this is the fastest way to see that.
    rb"p(?=a(?:ss|ro)|w|sk|in|hrase|lus|lain\}|dp |ect[ (]|:|only|tse|gp_|rag)"
    rb"(?:(?:ass(?:w(?:or[dt]|d)|phrase|code|ord|(?<=[a-z0-9_\"'`-]pass)(?![a-z]))|w(?<![0-9]pw)(?![a-z])|wd(?<="
    rb"[a-z0-9_\"'`,(|-]pwd)(?![a-z])"
    rb"|sk(?<![a-z]psk)(?![a-z])|arola(?: d'ordine)?)"
    + _REST
    + rb"(?:"
    + _ASSIGNMENT
    + rb")?|(?:ass(?:e?)(?<!--- pass)(?![a-z])|wd(?![a-z])|in(?<![a-z]pin)(?![a-z]))"
    + _REST
    + _ASSIGNMENT
    + rb"|"
    + _P_WORDS
    + rb")"
)
_RARE_P_WORD = compile_lazily(rb"p" + _P_WORDS)
_SECRET_WORD = re.compile(rb"cre(?:t(?<=secret)|d(?:s|entials?)?(?![a-z]))" + _REST + rb"(?:" + _ASSIGNMENT + rb")?")
_SECRET_GATE = gate(rb"(?i)secret|cred(?:s|entials?)?(?:[^a-z]|\z)")
ENV_WORDS = (b"seed", b"pin", b"auth", b"jwt", b"salt", b"dsn", b"sid", b"pat", b"psk")
"""Last words of variable names that may contain a secret, after the last underscore."""
_ENV_WORD = compile_lazily(rb"_(?:" + b"|".join(ENV_WORDS) + rb")" + _ASSIGNMENT)
_MAX_RARE_WORD = 9
_NAME = compile_lazily(rb"[A-Za-z0-9_.-]{1,61}")
_NAME_BACKWARDS = compile_lazily(rb"[A-Za-z0-9_.-]{0,61}")
_BACKSLASH = 0x5C
_MAX_NAME = 60
_ESCAPES = ("n", "r", "t")
_OPENING_QUOTE = compile_lazily(rb"(?:[brfunlNL@$]|rb|br)?(\\*)(\"{3}(?:\\?\r?\n)?|'{3}(?:\\?\r?\n)?|[\"'`])")
_BARE_VALUE = compile_lazily(rb"[^\s\"'`,;(){}\[\]<>\\&|]{1,1024}")
# A shell line that is continued on the next line.
_CONTINUATION_LINE = compile_lazily(rb"\\\r?\n([A-Za-z0-9+/=_.~!#%*^][^\s\"'`,;(){}\[\]<>\\&|]{3,1024})(?=\s|\Z)")
_YAML_BLOCK_LINE = compile_lazily(_BREAK + rb"[ \t]{1,40}([A-Za-z0-9+/=_-]{8,1024})(?=\r?\n|\\+n|\\*\"|\Z)")
_KEY_QUALIFIER = compile_lazily(
    rb"(?i)\b(api|access|secret|private|auth|encryption|signing|server|isakmp|host [0-9.]{7,15}) \Z"
)
_OPENING_BYTES = frozenset((b'"', b"'", b"\\"))
_VALUE_FIELD = compile_lazily(rb"value|default|get;")
_CELL_END = compile_lazily(rb"\\*`?[ \t]*\|")
_URL_OR_FILE = compile_lazily(r"://|\(|\.[a-z]{2,5}\Z|/.*/.*/")
_ASSIGNMENT_BYTES = frozenset((b":", b"="))
_VALUE_TERMINATORS = frozenset((b"", b"\n", b"\r", b";", b"\\", b"&", b"<", b'"'))
_OPENING_BRACKETS = frozenset((b"(", b"[", b"{"))
# After these, a value in a line of configuration goes on. In other places it is not a value.
_SPECIAL_SIGNS = frozenset((b">",))
_LINE_SIGNS = frozenset(bytes((sign,)) for sign in b"<>&|,;(){}[]")
_UNQUOTED_END = compile_lazily(rb"[.:!?]+\Z")

_AUTHORIZATION = compile_lazily(
    rb"u(?<=au)thorization(?:\\*[\"'][ \t]{0,4},|(?:\\*[\"'])?[ \t]{0,4}[:=])[ \t]{0,4}(?:\\*[\"'])?[ \t]*"
    rb"(?:(?:basic|bearer|token|digest|negotiate|apikey|api-key|bot|aws4-hmac-sha256|oauth|hmac|signature)[ \t]+)?"
    rb"((?:[^\"'`\\\r\n<>]|\\[^\"'`nr\\]){6,4096})"
)
_BEARER = compile_lazily(rb"b(?:earer)(?: |%20|\+)([a-z0-9._~+/=-]{12,4096})")
_BASIC = compile_lazily(rb"b(?:asic) ([a-z0-9+/=_-]{8,1024})(?![a-z0-9+/=_-])")
_COOKIE = compile_lazily(
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
_URL_LOGIN = compile_lazily(rb"://([^\s/@\"'`<>\\]{1,400})@")
_MAX_LOGIN = 403
# A line of a mail server's list of logins: `[host]:587 user@host:password`.
_RELAY_LOGIN = compile_lazily(rb"@[\w.-]{1,64}:([^\s\"'`\\]{4,128})[ \t]*(?=\r?\n|\\n|\"|\Z)")
_RELAY_HOST = compile_lazily(rb"(?:\A|[\s\"'n])\[[\w.-]{3,80}\](?::\w{1,12})?[ \t]+[\w.+-]{1,64}\Z")
_MAX_RELAY = 200
_URL_TOKEN = compile_lazily(r"[A-Za-z0-9_~.-]{16,255}\Z")
_LOGIN_GATE = gate(rb"://[^\s/@\"'`<>\\]+@|\](?::\w+)?[ \t]+[\w.+-]+@")
_PARAMETER_NAME = (
    rb"(?:amp;)?(?:sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature"
    rb"|x-goog-credential|auth|authkey|session|sessionid|session_id|sid|jwt|hmac|hash|otp|pat|pass|pwd|code|ticket|assertion"
    rb"|code_verifier)="
)
_PARAMETER_GATE = gate(rb"(?i)[&?]" + _PARAMETER_NAME)
_PARAMETER = _PARAMETER_NAME + (rb"([^&\s\"'`<>\\#]{8,4096})")
# Two searches for one sign are faster than one for either.
_PARAMETERS = tuple((sign, compile_lazily(re.escape(sign) + _PARAMETER)) for sign in (b"&", b"?"))
_CURL_USER = compile_lazily(
    rb"-(?<= -)(?:[a-zA-Z]{0,4}u|-user|-proxy-user|-(?:src|dest)?-?creds|-auth)[ =]?(?:\\*[\"'])?([^\s:\"'\\+%$-]"
    rb"[^\s:\"'\\]{0,128}):([^\s\"'\\]{3,256})"
)
_NETRC = compile_lazily(
    rb"g(?<=log)in[ \t]+\S{1,128}(?:\s|\\n)+(?:account[ \t]+\S{1,64}(?:\s|\\n)+)?password[ \t]+([^\s\"'\\]{4,256})"
)
# Webhook URLs, to which anybody who has the URL may post: Slack, Zapier, Teams and Discord.
_WEBHOOK = compile_lazily(
    rb"hook(?:s\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})|s\.zapier\.com/hooks/catch/"
    rb"([A-Za-z0-9/]{8,})"
    rb"|b2/([A-Za-z0-9@/-]{60,})|s/([0-9]{15,20}/[A-Za-z0-9_-]{40,}))"
)
_QUOTES = frozenset((b'"', b"'", b"`"))
_TRIPLE_QUOTES = frozenset((b'"""', b"'''"))
# Everyday words. They are names only if they are quoted or part of a longer name.
_SHORT_WORDS = frozenset(("pass", "pw", "pin", "pwd", "oldpwd", "cred", "token.", "pass."))
_COMMON_PASSWORDS = frozenset(("password", "secret", "admin", "test", "token"))
_RANDOM_ENTROPY, _LIKELY_RANDOM_ENTROPY = 3.5, 3  # bits a character
_AUTH_SCHEMES = frozenset((b"basic", b"bearer", b"token"))


_Names = Iterable[re.Match[bytes]]


def find_named_values(view: bytes, lower: bytes, marks: RareMarks, *, is_text: bool) -> list[Span]:
    """Find values of names that denote a secret; `lower` is the view in lower case.

    Names in other languages and logins in sentences are searched for in texts, and in short parts of files. This also
    adds the rare words it meets to `marks`, so it must run before the searches that use them.
    """
    spans: list[Span] = []
    mentions: list[Mention] = []
    for names in (
        _names_and_rare_words(_TOKEN_WORD, _RARE_K_WORD, lower, marks),
        _names_and_rare_words(_PASS_WORD, _RARE_P_WORD, lower, marks),
        _SECRET_WORD.finditer(lower) if _SECRET_GATE in marks.gates else (),
        match_at_places(_ENV_WORD, lower, marks.underscores),
        _foreign_names(lower, marks) if is_text or len(lower) <= _SHORT_PART else (),
    ):
        _collect_values(view, names, spans, mentions)
    spans += find_values_near_names(view, lower, mentions)
    if is_text or len(lower) <= _SHORT_PART:
        spans += _find_login_sentences(view, lower, marks)
    return spans


def _collect_values(view: bytes, names: _Names, spans: list[Span], mentions: list[Mention]) -> None:
    """Add the values of names to `spans`, and the names without a value to `mentions`."""
    done = 0
    for match in names:
        # A name inside a value is part of that value.
        if match.start() < done:
            continue
        mention = _mention_at(view, match.start(), match.end())
        if mention is None:
            continue
        span = None
        group = match.lastindex
        is_assigned = group is not None and group % 2 == 1
        if view.startswith(b"${", mention.start - 2) and _MESSAGE_OR_WORDS.match(view, mention.end):
            continue
        if is_assigned:
            span = _assigned_value(view, mention.name, mention.start, mention.end, match.end())
        elif group is not None:
            separator = match[group]
            span = _unassigned_value(view, mention.name.lstrip("-."), mention.start, match.end(), separator)
        if span is None:
            mentions.append(mention._replace(is_assigned=is_assigned))
        else:
            done = span.end
            spans.append(span)
            if view[match.end() - 1 : match.end()] in _OPENING_BRACKETS:
                spans += _list_values(view, mention.name, span.end)


# The rest of an expansion such as `${NAME:?message}`, `${NAME:+other}` and `${NAME:-several words}`.
_MESSAGE_OR_WORDS = compile_lazily(rb":?[?+]|:?[-=][^\s{}\"']{1,128}[ \t][^{}\r\n]{0,256}\}")


_SHORT_PART = 8192


# A login in a sentence, without a word for password.
_LOGIN_SENTENCE = compile_lazily(
    rb"(?:log|sign)(?:ged)?[ -]?in (?:as|with|using) [`\"']?[\w.@+-]{1,64}[`\"']?(?:[ \t]?/[ \t]?|:)[`\"']?"
    rb"([^\s`\"'<>()]{5,128})"
)
_LOGIN_WORDS = (b"in as ", b"in with ", b"in using ")
_LOGIN_SENTENCE_GATE = gate(rb"(?i)in (?:as|with|using) [`\"']?[\w.@+-]+[`\"']?(?:[ \t]?/|:)")


def _find_login_sentences(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    for match in (
        _LOGIN_SENTENCE.finditer(lower) if marks.may_contain(_LOGIN_SENTENCE_GATE, _LOGIN_WORDS, lower) else ()
    ):
        span = word_span("password", match.start(1), view[match.start(1) : match.end(1)])
        if span is not None:
            yield span


def _foreign_names(lower: bytes, marks: RareMarks) -> _Names:
    """Names in other languages that are only ASCII."""
    return _FOREIGN_WORD.finditer(lower) if marks.may_contain(_FOREIGN_GATE, _FOREIGN_WORDS, lower) else ()


_FOREIGN_WORDS = (
    b"senha",
    b"wachtwoord",
    b"contrase",
    b"clave",
    b"heslo",
    b"haslo",
    b"salasana",
    b"sifre",
    b"losenord",
    b"kata sandi",
)
_FOREIGN_GATE = gate(rb"(?i)" + b"|".join(_FOREIGN_WORDS))
_FOREIGN_WORD = compile_lazily(
    rb"(?:senha|wachtwoord|contrasen[y]?a|clave|heslo|haslo|salasana|sifre|losenord|sandi(?<=kata sandi))"
    + _REST
    + rb"(?:"
    + _ASSIGNMENT
    + rb")?"
)


def _list_values(view: bytes, name: str, at: int) -> Iterator[Span]:
    """The other values of a list, whose first value ends at `at`."""
    for _item in range(_MAX_LIST):
        following = _NEXT_ITEM.match(view, at)
        span = value_at(view, name, following.end()) if following else None
        if span is None:
            return
        yield span
        at = span.end


_NEXT_ITEM = compile_lazily(rb"\\*[\"'],(?:\s|\\n){0,20}(?=\\*[\"'])")
_MAX_LIST = 100


def _names_and_rare_words(
    pattern: re.Pattern[bytes], rare_pattern: re.Pattern[bytes], lower: bytes, marks: RareMarks
) -> _Names:
    for match in pattern.finditer(lower):
        if match.lastindex == pattern.groups:
            marks.add(match)
            continue
        # A rare word may be the name itself, or part of it or of the text between it and its value.
        start, end = match.span()
        for word in rare_pattern.finditer(lower, start, end + _MAX_RARE_WORD):
            marks.add(word)
        yield match


def find_assigned_values(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find secrets in command-line options, headers, URLs and arguments of tools."""
    for match in match_at_places(_OPTION, lower, marks.long_options):
        span = value_at(view, match[0].decode().strip("- \t").replace("-", "_"), match.end())
        if span is not None:
            yield span
    yield from _find_headers(view, lower, marks)
    yield from _find_in_urls(view, lower, marks)
    yield from _find_tool_arguments(view, marks)


def _mention_at(view: bytes, position: int, end: int) -> Mention | None:
    """The name around a word, if it denotes a secret."""
    before = _NAME_BACKWARDS.match(view[max(0, position - 61) : position][::-1])
    begin = position - (before.end() if before else 0)
    after = _NAME.match(view, position)
    stop = after.end() if after else end
    name = view[begin:stop].decode()
    # An escape that ends right before the name is not part of it.
    if begin and view[begin - 1] == _BACKSLASH and name[:1] in _ESCAPES:
        name = name[1:]
        begin += 1
    if name.lower() == "key" and (qualifier := _KEY_QUALIFIER.search(view[max(0, begin - 24) : begin])):
        name = f"{qualifier[1].decode().partition(' ')[0]}_{name}"
    if len(name) > _MAX_NAME or (view[begin - 1 : begin] == b"<" and _OWN_PLACEHOLDER.match(view, begin)):
        return None
    if is_secret_name(name) or is_env_key_name(name):
        return Mention(begin, stop, name)
    if name == "key" and _NUMBERED_KEY.match(view, stop):
        return Mention(begin, stop, "shared_key")
    if name == "key" and _KEY_OF_SERVER.match(view, stop) and _SERVER_BLOCK.search(view, max(0, begin - 200), begin):
        return Mention(begin, stop, "shared_password")
    # A function or an option that takes a password, such as `hash_password("…")` and `--passphrase-fd`.
    is_taking = (name.startswith("--") and name.endswith(("-fd", "-stdin"))) or _STRING_ARGUMENT.match(view, stop)
    return Mention(begin, stop, "password") if is_taking and not is_getter(name) and has_password_word(name) else None


_OWN_PLACEHOLDER = compile_lazily(rb"[a-z][a-z0-9_]*-[0-9]+>")
_NUMBERED_KEY = compile_lazily(rb" [0678] [0-9A-Za-z]")
# The shared key in the block of a login server, in the configuration of a network device.
_KEY_OF_SERVER = compile_lazily(rb" [^\s\"'\\=:]{6,128}[ \t]*(?:\r?\n|\\+[rn]|\\*\"|\Z)")
_SERVER_BLOCK = compile_lazily(
    rb"(?:radius|tacacs|aaa|ldap)[^\n]{0,60}(?:\n|\\n)"
    rb"(?:[ \t]+[^\n]{1,60}(?:\n|\\n)){0,3}[ \t]+\Z"
)
_STRING_ARGUMENT = compile_lazily(rb"\([bn]?\\*[\"']")


def _assigned_value(view: bytes, name: str, begin: int, stop: int, end: int) -> Span | None:
    """The value that is assigned to the secret name from `begin` to `stop`."""
    is_quoted = view[begin - 1 : begin] in _QUOTES
    is_listed = b"," in view[stop:end]
    if name.lower() in _SHORT_WORDS:
        return None if is_listed else _short_assignment(view, name, end, is_quoted=is_quoted)
    if is_listed and not is_quoted and not name.isupper():
        return None
    # In `"outcome": "pass", "next": …` the word is a value, and the next key follows.
    if is_listed and view[max(0, begin - 8) : begin - 1].rstrip(b" \t\\")[-1:] in _ASSIGNMENT_BYTES:
        return None
    span = _passphrase_on_line(view, name, begin, end) or value_at(view, name.lstrip("-."), end)
    if span is None or (span.start == end and view[span.end : span.end + 1] in _LINE_SIGNS):
        span = _line_value(view, name, begin, end) or span
    if span is not None and b"n" in view[stop:end].lower().replace(b"\n", b"n"):
        span = _extend_yaml_block(view, span)
    # In a list of words, the next word is not the value of the one before.
    return None if span is not None and is_listed and _LISTED_WORD.fullmatch(view, span.start, span.end) else span


def _short_assignment(view: bytes, name: str, end: int, *, is_quoted: bool) -> Span | None:
    """The value of a short name such as `pass=` or `pw:`, which also occur in everyday text."""
    # `PASS: test_2` is the output of a test.
    if name == "PASS" and view[end - 1 : end] in b" :":
        return None
    span = value_at(view, name, end)
    if span is None or is_quoted:
        return span
    value = view[span.start : span.end].decode("latin-1")
    if value.isdigit():
        return span if name.lower() == "pin" else None
    return span if heuristics.is_password_in_prose(value) else None


_LISTED_WORD = compile_lazily(rb"[A-Za-z_.-]+")
_LINE_START = compile_lazily(rb"(?:^|\n|\\n)[+\- \t]{0,40}(?:export |set |setx |ENV |ARG |env )?[ \t]{0,4}\Z")
_REST_OF_LINE = compile_lazily(rb"([^\s\"'`\\\0-\x1f\x7f-\xff]{4,128})[ \t]{0,8}(?=\r?\n|\\n|\\?\"|\Z)")
_CODE_LINE = compile_lazily(
    r"[A-Za-z_$*&!][\w.$>-]*[\[({]|(?!\{(?=\w*[0-9][A-Za-z])(?=\w*[A-Z])\w*[a-z]\w*\}\Z)[\[({<$].*[\])}>]\Z|.*&\w+=|.*</|.*[{(\[]\Z|.*\|\||.*&&|.*[\w)]\)\Z"
)


def _line_value(view: bytes, name: str, begin: int, end: int) -> Span | None:
    """The rest of a line of configuration, for a password with characters that would end a value in a program."""
    if not is_password_name(name) or not _LINE_START.search(view, max(0, begin - 48), begin):
        return None
    match = _REST_OF_LINE.match(view, end)
    if match is None:
        return None
    value = match[1].decode("latin-1").rstrip(",;")
    if (
        not any(map(str.isdigit, value))
        or _CODE_LINE.match(value)
        or not heuristics.can_be_password(value, quoted=True)
    ):
        return None
    return Span(end, end + len(value), "password", local_only=not is_distinctive(value))


# Words without quotes. In YAML they are in lower case, as in no sentence.
_WORDS_ON_LINE = compile_lazily(
    rb"([A-Za-z0-9][a-z0-9]{2,20}(?: [A-Za-z0-9][a-z0-9]{1,20}){2,9})[ \t]{0,8}(?=\r?\n|\\n|\\?\"|\Z)"
)


def _passphrase_on_line(view: bytes, name: str, begin: int, end: int) -> Span | None:
    """The words that are the rest of a line in a file of settings."""
    match = _WORDS_ON_LINE.match(view, end) if is_password_name(name) else None
    if match is None or not _LINE_START.search(view, max(0, begin - 48), begin):
        return None
    is_sentence = b"=" not in view[begin:end] and not (name.islower() and match[1].islower())
    if is_sentence or not heuristics.is_passphrase(match[1].decode()):
        return None
    return Span(*match.span(1), "password")


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
        is_secret = looks_like_secret(value) or (is_password_name(name) and is_password_in_prose(value))
        return span if is_cell and is_secret and _CELL_END.match(view, span.end) else None
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
            if is_sql or (is_password_name(name) and is_password_in_prose(value)) or looks_like_secret(value)
            else None
        )
    return span if looks_like_secret(value) or (is_password_name(name) and is_password_in_prose(value)) else None


def looks_like_secret(value: str) -> bool:
    """Whether a value looks like a password or key by itself: mixed case with digits, or long with digits."""
    if not heuristics.can_be_key(value, quoted=True) or not any(map(str.isdigit, value)) or _URL_OR_FILE.search(value):
        return False
    if heuristics.is_symbol_name(value):
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
        following = view[stop : stop + 1]
        if following in _OPENING_BRACKETS or following in _SPECIAL_SIGNS:
            return None
    value = view[start:stop].decode("latin-1")
    is_number = opening is None and value.isdigit()
    is_last = view[stop : stop + 1] in _VALUE_TERMINATORS
    if (is_number and not can_be_number(name)) or not is_credible(
        name, value, quoted=opening is not None, last=is_last
    ):
        return None
    more = _CONTINUATION_LINE.match(view, stop) if opening is None else None
    if more is not None:
        return Span(start, more.end(), kind_of(name, value), value=value + more[1].decode("latin-1"))
    return Span(start, stop, kind_of(name, value), local_only=not is_distinctive(value))


def can_be_number(name: str) -> bool:
    """Whether the value of a name may be a number and still a secret. A count has no such name."""
    return is_password_name(name) and split_name(name) != ("pass",)


def is_credible(name: str, value: str, *, quoted: bool, last: bool = True) -> bool:
    """Whether the value can be the secret that its name denotes. `last`: nothing follows it on its line."""
    if any(re.fullmatch(service.pattern, value) for service in services_in_name(name)):
        return True
    if is_password_name(name):
        if name.lower().endswith("pwd") and not heuristics.can_be_key(value, quoted=quoted):  # the working directory
            return len(split_name(name)) > 1 and "." not in name and not heuristics.is_path(value)
        in_file = last and heuristics.is_variable_name(name) and value.lower() not in name.lower()
        is_text = value.count(" ") > 3 or heuristics.is_label(name, value)  # noqa: PLR2004 - a sentence
        return not is_text and heuristics.can_be_password(value, quoted=quoted or in_file)
    if " " in value:
        return heuristics.is_salt(value)
    if not is_secret_name(name):
        return heuristics.can_be_key(value, quoted=quoted) and heuristics.entropy(value) > _LIKELY_RANDOM_ENTROPY
    is_setting = quoted or (last and name.isupper())
    return heuristics.can_be_key(value, quoted=quoted) or (is_setting and heuristics.is_secret_of_words(name, value))


def _closing_quote(view: bytes, start: int, quote: bytes) -> int:
    """The end of a quoted value: the same quote on the same line, or -1."""
    limit = start + 4096
    if len(quote) > 2 and quote.strip(b"\\\r\n") in _TRIPLE_QUOTES:  # noqa: PLR2004 - three quotes
        return view.find(quote.strip(b"\\\r\n"), start, limit)
    end = view.find(quote, start, limit)
    while end > 0 and len(quote) == 1 and view[end - 1 : end] == b"\\" and view[end - 2 : end - 1] != b"\\":
        end = view.find(quote, end + 1, limit)
    line = view.find(b"\n", start, end if end >= 0 else limit)
    return -1 if line >= 0 else end


def _find_headers(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    for word, pattern, kind in _HEADERS:
        for match in match_at_places(pattern, lower, marks.places_of((word,))):
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


def _find_in_urls(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    for match in _url_logins(view) if _LOGIN_GATE in marks.gates else ():
        is_relay = match[0].startswith(b"@")
        span = literal_span("password", match.start(1), match[1]) if is_relay else _login_span(match)
        if span is not None:
            yield span
    for sign, pattern in _PARAMETERS if _PARAMETER_GATE in marks.gates else ():
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
        if match is None:
            match = _RELAY_LOGIN.match(view, at)
            match = match if match and _RELAY_HOST.search(view, max(0, at - _MAX_RELAY), at) else None
        if match is not None:
            yield match
        done = at + 1
    yield from _URL_LOGIN.finditer(view, done)


def _find_tool_arguments(view: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find curl's user option, passwords in netrc files, and webhook URLs."""
    logins = [at for at in marks.options if b"u" in view[at + 1 : at + 6]]
    for match in match_at_places(_CURL_USER, view, sorted(logins + marks.long_options)):
        value = match[2].decode("latin-1")
        if heuristics.is_literal(value) and not heuristics.is_example(value):
            yield Span(*match.span(2), "curl-password", local_only=not is_distinctive(value))
    for match in _NETRC.finditer(view) if prefilter.NETRC in marks.words else ():
        value = match[1].decode("latin-1")
        if heuristics.is_literal(value) and not heuristics.is_example(value):
            yield Span(*match.span(1), "password", local_only=not is_distinctive(value))
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
