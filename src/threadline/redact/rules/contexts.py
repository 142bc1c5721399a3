"""Find the value of a name that has no assignment sign: in records, tables, statements, sentences and command lines.

Every search starts at a mention, the name of a secret that was found before. A text without such names costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from threadline.redact.rules import heuristics
from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import is_password_name, kind_of
from threadline.redact.rules.patterns import compile_lazily


class Mention(NamedTuple):
    """The name of a secret at a position of a text."""

    start: int
    end: int
    name: str
    is_assigned: bool = False
    """An assignment sign follows, but what comes after it is not a value by itself."""


def find_values_near_names(view: bytes, lower: bytes, mentions: list[Mention]) -> Iterator[Span]:
    """Find the values of mentioned names; `lower` is the view in lower case."""
    tables = _Tables(view, lower)
    for mention in mentions:
        # Words of everyday text are names only if they are quoted.
        if mention.name.lower() in _VERBS and view[mention.start - 1 : mention.start] not in _QUOTES:
            if not mention.is_assigned:
                tables.add(mention)
            continue
        for find in _FINDERS_AFTER_SIGN if mention.is_assigned else _FINDERS:
            span = find(view, lower, mention)
            if span is not None:
                yield span
                break
        else:
            if not mention.is_assigned or _QUOTED_CELL_END.match(view, mention.end):
                tables.add(mention)
    yield from tables.find_values()


def literal_span(name: str, start: int, value: bytes) -> Span | None:
    """The span of a value that is quoted or in a field of its own, if it can be the secret that its name denotes."""
    text = value.decode("latin-1")
    if is_password_name(name):
        if not heuristics.can_be_password(text, quoted=True) or _is_label(text) or heuristics.is_path(text):
            return None
    elif " " in text or not (
        heuristics.can_be_key(text, quoted=True) or (name.isupper() and heuristics.is_secret_of_words(name, text))
    ):
        return None
    return Span(start, start + len(value), kind_of(name, text), local_only=not heuristics.is_distinctive(text))


def word_span(name: str, start: int, value: bytes) -> Span | None:
    """The same for a word of a sentence or a command, which must look like a password by itself."""
    value = value.rstrip(_SENTENCE_ENDS)
    text = value.decode("latin-1")
    if not heuristics.is_password_in_prose(text):
        return None
    if not is_password_name(name) and (
        not heuristics.can_be_key(text, quoted=False) or heuristics.is_symbol_name(text)
    ):
        return None
    return Span(start, start + len(value), kind_of(name, text), local_only=not heuristics.is_distinctive(text))


_SENTENCE_ENDS = b".,;:!?)]}>\"'`*\\|"


def _is_label(value: str) -> bool:
    """Whether a value is a word or sentence for people, such as the translation of `Password`."""
    return (value.isalpha() and value.istitle()) or (" " in value and not any(map(str.isdigit, value)))


# Records: one field names, and another contains.

_NAME_FIELDS = (
    b"name", b"key", b"label", b"header", b"field", b"variable", b"var", b"title", b"property", b"parameter", b"param",
    b"setting", b"option", b"attribute", b"env", b"id", b"item", b"subject", b"element", b'"k', b'"n', b"'k", b"'n",
)  # fmt: skip
_NAME_OPTIONS = (b"--name", b"--key", b"--field", b"--item", b"--label")
_PATH_PREFIX = compile_lazily(rb"[\w./:-]*\Z")
_VALUE_FIELDS = (
    rb"(?:(?:[a-z0-9]{1,24}_?)?value|val|content|contents|data|default|string|secret|text|v|plaintext|body"
    rb"|(?:secret|default|new|current|plain)_?(?:string|text))"
)
_VALUE_KEY = compile_lazily(
    rb"(?:\A|[\s,;{\"'\\(-]|\\n)"
    + _VALUE_FIELDS
    + rb"(?:\\*[\"'])?(?:(?:\s|\\n){0,20}(?:=>|[:=])(?:\s|\\n){0,20}|[ \t]{1,2}(?=\\*[\"']|\S{6}))"
)
# The next item of a list also where its line is joined to the one before.
_NEXT_RECORD = compile_lazily(
    rb"[{}]|(?:\n|\\n)[ \t]{0,40}-[ \t]|(?:\n|\\n)[ \t]{0,40}(?:\n|\\n)"
    rb"|[ \t]-[ \t]{1,4}(?=[\"']?[a-z][\w.-]{0,40}[\"']?:[ \t])"
)
_RECORD_REACH = 400
_LITERAL = compile_lazily(rb"(?:[bnNrf@$]?(\\*[\"'`])([^\r\n]{4,512}?)\1|([^\s\"'`,;(){}\[\]<>\\|]{4,512}))")


_WORDS_OF_TITLE = compile_lazily(rb"(?<=[\"'])(?:[\w-]{1,24} ){1,3}\Z")


def _is_in_name_field(lower: bytes, start: int) -> bool:
    """Whether what starts here is the value of a field such as `name`, or of the option `--name`."""
    head = lower[max(0, start - 80) : start]
    if head.endswith(b" "):
        head = _WORDS_OF_TITLE.sub(b"", head)
    if head.endswith((b"/", b":")):
        head = head[: _PATH_PREFIX.search(head).start()]  # type: ignore[union-attr]
    head = head.rstrip(b"\\\"'` \t")
    if head.endswith((b":", b"=", b"=>")):
        head = head.rstrip(b">=: \t")
        is_type = head.rstrip(b"\\\"'").endswith(b"type") and lower.startswith(b"password", start)
        return is_type or head.endswith(_NAME_FIELDS) or head.rstrip(b"\\\"'").endswith(_NAME_FIELDS)
    return head.endswith(_NAME_OPTIONS)


def _find_in_record(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    """The value in another field of the record in which a field contains the name."""
    start, end, name, _ = mention
    if not _is_in_name_field(lower, start):
        return None
    # A title of several words may also be a label or a question. What it names must look like a password.
    literal_at = _word_at if lower[start - 1 : start] == b" " or _INPUT_FIELD.match(lower, end) else _literal_at
    stop = _NEXT_RECORD.search(lower, end, end + _RECORD_REACH)
    for key in _VALUE_KEY.finditer(lower, end, stop.start() if stop else min(len(lower), end + _RECORD_REACH)):
        span = literal_at(view, name, key.end())
        if span is not None:
            return span
    begin = max(0, start - _RECORD_REACH)
    for separator in _NEXT_RECORD.finditer(lower, begin, start):
        begin = separator.end()
    for key in reversed(list(_VALUE_KEY.finditer(lower, max(0, begin - 1), start))):
        span = literal_at(view, name, key.end())
        if span is not None and span.end <= start:
            return span
    return None


def _literal_at(view: bytes, name: str, at: int) -> Span | None:
    match = _LITERAL.match(view, at)
    if match is None:
        return None
    group = 2 if match[2] is not None else 3
    return literal_span(name, match.start(group), match[group])


def _word_at(view: bytes, name: str, at: int) -> Span | None:
    match = _LITERAL.match(view, at)
    group = 2 if match is not None and match[2] is not None else 3
    if match is None or b" " in match[group]:
        return None
    return word_span(name, match.start(group), match[group])


_INPUT_FIELD = compile_lazily(rb" (?:input|field|textbox|text box|box|textfield)\b")


# The value in a block of the name: `"admin_password": {"value": "…"}`, and a parameter of CloudFormation.
_BLOCK = compile_lazily(
    rb"\\*[\"']?(?:\s|\\n){0,4}:(?:(?:\s|\\n){0,40}\{|(?=[ \t]{0,4}(?:\r?\n|\\n)[ \t]{2,40}[a-z]))[^{}]{0,300}?"
    rb"(?:[\s,{\"'\\]|\\n)(?:value|default|plaintext)\\*[\"']?(?:\s|\\n){0,8}:[ \t]{0,8}"
)
_MARGIN = compile_lazily(rb"(?:\A|\n|\\n)([ \t]{0,40})(?=[^\s\\])")


def _find_in_block(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    match = _BLOCK.match(lower, mention.end) if view.find(b":", mention.end, mention.end + 6) >= 0 else None
    if match is None:
        return None
    if b"{" not in match[0]:
        # In YAML, the lines of the block are indented more than its name.
        margins = [margin[1] for margin in _MARGIN.finditer(view, max(0, mention.start - 60), match.end())]
        inner = sum(1 for _ in _MARGIN.finditer(view, mention.end, match.end()))
        outer = margins[-inner - 1] if inner < len(margins) else b""
        if any(len(margin) <= len(outer) for margin in margins[-inner:]):
            return None
    return _literal_at(view, mention.name, match.end())


# A part of a form: a header names it, and the value follows an empty line.
_FORM_PART = compile_lazily(rb"\\*\"(?:\r?\n|(?:\\+r)?\\+n){2}([^\s\"\\]{4,128})(?=\s|\\|\Z)")


def _find_in_form_part(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    match = _FORM_PART.match(view, mention.end) if lower.endswith((b'name="', b'name=\\"'), 0, mention.start) else None
    return literal_span(mention.name, match.start(1), match[1]) if match else None


# Elements: `<key>Password</key><string>value</string>`.
_NEXT_ELEMENT = compile_lazily(
    rb"[^<>\n]{0,20}</[\w:.-]{1,40}>(?:\s|\\n){0,40}<[\w:.-]{1,40}[^<>]{0,80}>(?:\s|\\n){0,20}([^<>\s]{4,256})(?:\s|"
    rb"\\n){0,20}</"
)


def _find_in_next_element(view: bytes, _lower: bytes, mention: Mention) -> Span | None:
    match = _NEXT_ELEMENT.match(view, mention.end) if view.find(b"</", mention.end, mention.end + 24) >= 0 else None
    return literal_span(mention.name, match.start(1), match[1]) if match else None


_ELEMENT = compile_lazily(
    rb"(?:[ \t][^<>\n]{0,200})?>(?:\s|\\n){0,20}(?:<!\[cdata\[)?([^<>\s\]]{4,256})(?:\]\]>)?(?:\s|\\n){0,20}</"
)


def _find_in_element(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    """The text of an element with attributes, or in a CDATA section: `<wsse:Password Type="…#PasswordText">…`."""
    if (
        view[mention.start - 1 : mention.start] not in (b"<", b":")
        or view[mention.end : mention.end + 1] not in _AFTER_TAG
    ):
        return None
    match = _ELEMENT.match(lower, mention.end)
    return literal_span(mention.name, *_view_group(view, match, 1)) if match else None


_AFTER_TAG = (b" ", b">", b"\t")
_NAMED_ELEMENT = compile_lazily(rb"<[\w:.-]{1,40} (?:name|key|id)=\\*[\"'][\w.-]{0,40}\Z")
_INNER_ELEMENT = compile_lazily(
    rb"(?:\\*[\"'])?>(?:\s|\\n){0,40}<(?:[\w-]{1,20}:)?(?:value|plaintext|string|text|data|content)"
    rb"(?: [^<>]{0,80})?>(?:\s|\\n){0,20}"
    rb"([^<>\s]{4,256})(?:\s|\\n){0,20}</"
)


def _find_in_inner_element(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    """`<AdminPassword><Value>…` and `<property name="password"><value>…`: the value in an element of its own."""
    if view[mention.start - 1 : mention.start] != b"<" and not _NAMED_ELEMENT.search(
        lower, max(0, mention.start - 60), mention.start
    ):
        return None
    match = _INNER_ELEMENT.match(lower, mention.end)
    return literal_span(mention.name, *_view_group(view, match, 1)) if match else None


# The lines of a here-document: `db_password = <<EOT`.
_HERE_DOCUMENT = compile_lazily(
    rb"[ \t]{0,20}=[ \t]{0,20}<<[-~]?\\*[\"']?([A-Za-z_]{1,20})\\*[\"']?[ \t]{0,4}(?:\r?\n|\\n)[ \t]{0,40}"
    rb"([^\s\"\\]{4,256})[ \t]{0,4}(?:\r?\n|\\n)[ \t]{0,40}\1"
)


def _find_in_here_document(view: bytes, _lower: bytes, mention: Mention) -> Span | None:
    match = _HERE_DOCUMENT.match(view, mention.end) if view.find(b"<<", mention.end, mention.end + 44) >= 0 else None
    return literal_span(mention.name, match.start(2), match[2]) if match else None


# The value of a template if the variable is not set: `{{ db_password | default('…') }}`.
_DEFAULT_FILTER = compile_lazily(
    rb"[ \t]{0,4}\|[ \t]{0,4}(?:default|d)[ \t]{0,2}[(:][ \t]{0,4}(\\*[\"'])([^\s\"'\\]{4,128})\1"
)


def _find_template_default(view: bytes, _lower: bytes, mention: Mention) -> Span | None:
    match = _DEFAULT_FILTER.match(view, mention.end) if view.find(b"|", mention.end, mention.end + 5) >= 0 else None
    return literal_span(mention.name, match.start(2), match[2]) if match else None


# Tuples of Erlang and Elixir: `{default_pass, <<"…">>}`, `{:password, "…"}`.
_TUPLE = compile_lazily(rb"[ \t]{0,4},[ \t]{0,4}(<<)?\\*\"([^\s\"\\]{4,128})\\*\"(?:>>)?[ \t]{0,4}\}")
_TUPLE_START = compile_lazily(rb"\{[ \t]{0,2}:?\Z")


def _find_in_tuple(view: bytes, _lower: bytes, mention: Mention) -> Span | None:
    match = _TUPLE.match(view, mention.end) if view[mention.end : mention.end + 1] in _AFTER_ATOM else None
    if match is None or not _TUPLE_START.search(view, max(0, mention.start - 4), mention.start):
        return None
    return (literal_span if match[1] else word_span)(mention.name, match.start(2), match[2])


_AFTER_ATOM = frozenset((b",", b" "))


# Terraform's state: the resource says what its result is.
_RESULT = compile_lazily(rb"result\\*\"(?:\s|\\n){0,8}:(?:\s|\\n){0,8}\\*\"([^\s\"]{4,256}?)\\*\"")
_RESOURCE_REACH = 2500
_RANDOM_STRING = compile_lazily(rb"\"random_string\\*\",(?:\s|\\n){0,40}\\*\"name\\*\":[ \t]{0,4}\\*\"\Z")


def _find_random_resource(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    start, end, name, _ = mention
    if name != "random_password" and not _RANDOM_STRING.search(lower, max(0, start - 100), start):
        return None
    following = lower.find(b"random_", end, end + _RESOURCE_REACH)
    at = lower.find(b"result", end, following if following >= 0 else end + _RESOURCE_REACH)
    match = _RESULT.match(view, at) if at >= 0 else None
    return literal_span(name, match.start(1), match[1]) if match else None


# Statements that have the value before the name: `UPDATE settings SET v = '…' WHERE k = 'smtp_password'`.
_CONDITION = compile_lazily(rb"(?:where|and)[ \t]+[\w.`\"\[\]\\]{1,60}[ \t]{0,4}(?:=|like)[ \t]{0,4}n?\\*'%?\Z")
_SET_COLUMN = compile_lazily(
    rb"\bset(?:\s|\\n){1,8}[\w.`\"\[\]\\]{1,60}[ \t]{0,4}=[ \t]{0,4}"
    rb"(?:n?\\*'([^'\r\n\\]{4,256})\\*'|0x((?:[0-9a-f]{2}){4,256}))"
)


def _find_before_condition(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    if view[mention.start - 1 : mention.start] not in (b"'", b"%"):
        return None
    condition = _CONDITION.search(lower, max(0, mention.start - 90), mention.start)
    if condition is None:
        return None
    begin = lower.rfind(b"update", max(0, condition.start() - _LINE_REACH), condition.start())
    match = _SET_COLUMN.search(lower, begin, condition.start()) if begin >= 0 else None
    if match is None:
        return None
    if match[1] is not None:
        return literal_span(mention.name, *_view_group(view, match, 1))
    return _encoded_span(mention.name, match.start(2), match.end(2), bytes.fromhex(match[2].decode()))


# A value of the Windows registry as bytes.
_REGISTRY_BYTES = compile_lazily(
    rb"\\*\"=hex(?:\([0-9a-f]\))?:([0-9a-f]{2}(?:,(?:\\+(?:\r?\n|\\*n)[ \t]{0,8})?[0-9a-f]{2}){3,1023})"
)
_TWO_DIGITS = compile_lazily(rb"[0-9a-f]{2}")


def _find_registry_bytes(_view: bytes, lower: bytes, mention: Mention) -> Span | None:
    match = _REGISTRY_BYTES.match(lower, mention.end)
    if match is None:
        return None
    value = bytes(int(digits, 16) for digits in _TWO_DIGITS.findall(match[1]))
    return _encoded_span(mention.name, *match.span(1), value)


def _encoded_span(name: str, start: int, end: int, value: bytes) -> Span | None:
    """The span of an encoded value, if the decoded one can be the secret that its name denotes."""
    text = value.replace(b"\0", b"").decode("latin-1")
    if not text.isprintable() or literal_span(name, start, text.encode("latin-1")) is None:
        return None
    return Span(start, end, kind_of(name, text), value=text)


# A password that a service shows as four groups of four letters.
_APP_PASSWORD = compile_lazily(
    rb"[*`\"']{0,3}(?:[ \t]{0,4}(?::|=|-|->|is|was)){1,2}[ \t]{0,4}[*`\"']{0,3}([a-z]{4}(?:[ -][a-z]{4}){3})"
    rb"(?=[*`\"'.,;)]|[ \t]*(?:\r?\n|\\n|\Z))"
)


def _find_app_password(_view: bytes, lower: bytes, mention: Mention) -> Span | None:
    if lower[max(0, mention.start - 4) : mention.start] not in (b"app ", b"app-"):
        return None
    match = _APP_PASSWORD.match(lower, mention.end)
    return Span(*match.span(1), "password") if match else None


# Calls: the name is the function, or selects a field that is then filled.
_FILLED = compile_lazily(
    rb"\\*[\"']?\]?\\*[\"'`]?(?:(?:,[ \t]{0,4}exact:[ \t]{0,2}\w{4,5})?[ \t]{0,4}\})?"
    rb"(?:,[ \t]{0,4}|\){1,2}(?:\.(?:first|last|clear|click|focus)\([^()]{0,20}\)){0,2}"
    rb"\.(?:fill|type|send_?keys|press_?sequentially|set_?value|val|input|value|enter_?text|type_?text)\([ \t]{0,2})"
    rb"[bnr]?(\\*[\"'`])([^\s\"'`\\]{4,128})\1"
)
_CALL = compile_lazily(
    rb"\\*[\"']?\([ \t]{0,4}((?:[\w.$:]{1,40}[ \t]{0,2},[ \t]{0,4}){0,3}[bnr]?\\*[\"'][^()\r\n]{0,400})"
)
_STRING = compile_lazily(rb"\\*([\"'`])([^\"'`\\\r\n]{0,128})\\*\1")


def _find_filled(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    """The text that a program types into the field that the name selects."""
    match = _FILLED.match(lower, mention.end) if view[mention.end : mention.end + 1] in _AFTER_SELECTOR else None
    if match is None:
        return None
    # In a list, the name is a word. In a selector, a sign comes before it.
    is_selector = _SELECTOR.search(view, max(0, mention.start - 3), mention.start) is not None
    is_filled = b")." in lower[match.start() : match.start(1)]
    return literal_span(mention.name, *_view_group(view, match, 2)) if is_selector or is_filled else None


def _find_in_call(view: bytes, _lower: bytes, mention: Mention) -> Span | None:
    match = _CALL.match(view, mention.end) if view.find(b"(", mention.end, mention.end + 3) >= 0 else None
    if match is None:
        return None
    strings = list(_STRING.finditer(view, match.start(1), match.end(1)))[:4]
    if len(strings) == 1 and mention.name.rpartition(".")[2][:3].lower() == "set":
        return literal_span(mention.name, strings[0].start(2), strings[0][2])
    for text in reversed(strings):
        span = word_span(mention.name, text.start(2), text[2]) if b" " not in text[2] else None
        if span is not None:
            return span
    return None


_AFTER_SELECTOR = frozenset((b'"', b"'", b"]", b"`", b"\\", b")"))
_SELECTOR = compile_lazily(rb"[#.]\Z|=\\*[\"']?\Z")


def _view_group(view: bytes, match: re.Match[bytes], group: int) -> tuple[int, bytes]:
    return match.start(group), view[match.start(group) : match.end(group)]


# Command lines: the name is that of an option, a variable or a program that reads or stores a password.
_ARGUMENT = rb"(?:(\\*[\"'])([^\r\n\"'\\]{4,256})(?:\\+[nr]){0,2}[^\r\n\"']{0,256}?\1|([^\s\"'`|;&<>\\]{4,256}))"
_PIPED = compile_lazily(
    rb"(?:\A|[\s;&(\"'`$])(?:echo|printf|print|write-output)[ \t]+(?:-[a-z]{1,3}[ \t]+"
    rb"|(?:\\*[\"'])?(?:%s(?:\\+n)?){1,3}(?:\\*[\"'])?[ \t]+){0,3}"
    + (_ARGUMENT + rb"(?:[ \t]+[^\s|;&<>]{4,256})?[ \t]*(\||>{1,2})[ \t]*([^|\r\n;]{0,240})\Z")
)
_HERE_STRING = compile_lazily(rb"[^\r\n|;<]{0,200}<<<[ \t]*" + _ARGUMENT)
_OPTION_VALUE = compile_lazily(
    rb"[\"']?(?:[ \t]+[^\s|;]{1,60}){0,4}?[ \t]+(?:-b|--body|--value|--text|--string-value|--plaintext"
    rb"|--secret-string|--data)(?:[ \t]+|=|(?=[\"']))" + _ARGUMENT
)
_FILTERS = compile_lazily(
    rb"(?:sudo )?(?:e?grep|rg|ag|jq|yq|sed|awk|cut|tr|head|tail|sort|uniq|less|wc|xargs|fold|column)\b"
)
_REDIRECTED_PATH = compile_lazily(rb"\\*[\"']?[\w./~$\{\}-]{0,120}\Z")
_LINE_REACH = 400
_LOGIN_PREFIX = compile_lazily(rb"[\w.@-]{1,64}:(?=[^\s:]{4})")


def _find_in_command_line(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    """A value that is piped to a program, stored in a file, or passed by a here-string or an option after the name."""
    match = _OPTION_VALUE.match(view, mention.end) if view.find(b" -", mention.end, mention.end + 240) >= 0 else None
    if match is not None:
        return _argument_span(view, mention.name, match)
    return find_piped_value(view, lower, mention.start, mention.name)


def find_piped_value(view: bytes, lower: bytes, at: int, name: str) -> Span | None:
    """The value that a command line gives to the program or the option at `at`, by a here-string or a pipe."""
    # Whatever these options read is a password, even if it looks like a name.
    is_certain = view.startswith((b"-S", b"-stdin"), at) and lower.endswith((b"sudo ", b"-password"), 0, at)
    here = _HERE_STRING.match(view, at) if view.find(b"<<<", at, at + 240) >= 0 else None
    if here is not None:
        return _argument_span(view, name, here, is_certain=is_certain)
    begin = max(view.rfind(b"\n", max(0, at - _LINE_REACH), at) + 1, at - _LINE_REACH, 0)
    if view.find(b"|", begin, at) < 0 and view.find(b">", begin, at) < 0:
        return None
    match = _PIPED.search(lower, max(0, begin - 1), at)
    if match is None or _FILTERS.match(match[5]) or (match[4] != b"|" and not _REDIRECTED_PATH.match(match[5])):
        return None
    return _argument_span(view, name, match, is_certain=is_certain)


def _argument_span(view: bytes, name: str, match: re.Match[bytes], *, is_certain: bool = False) -> Span | None:
    group = 2 if match[2] is not None else 3
    start, value = _view_group(view, match, group)
    login = _LOGIN_PREFIX.match(value)
    if login is not None:
        start, value = start + login.end(), value[login.end() :]
    if b" " in value:
        return None
    is_literal = is_certain or group == 2  # noqa: PLR2004 - the quoted one
    return (literal_span if is_literal else word_span)(name, start, value)


# Positions after a program: `htpasswd -b FILE USER PASSWORD`, `wpa_passphrase SSID PASSWORD`.
_POSITIONAL = {
    "htpasswd": compile_lazily(
        rb"[ \t]+-[a-z]*b[a-z]*(?:[ \t]+-\S+)*(?:[ \t]+[^\s-]\S*){1,2}?[ \t]+\\*[\"']?([^\s\"'\\|;&>]{4,128})\\*"
        rb"[\"']?(?:[ \t]*(?:$|[\n|;&>)\"'`]|\\n)|\Z)",
        re.IGNORECASE,
    ),
    "wpa_passphrase": compile_lazily(
        rb"[ \t]+(?:\\*[\"'][^\"'\n]{1,32}\\*[\"']|\S{1,32})[ \t]+\\*[\"']?([^\s\"'\\|;&>]{8,63})"
    ),
    "-passwd": compile_lazily(rb"[ \t]+/\S{1,60}[ \t]+\\*[\"']?([^\s\"'\\|;&>]{4,128})"),
    "change_password": compile_lazily(rb"[ \t]+[\w.@-]{1,64}[ \t]+\\*[\"']?([^\s\"'\\|;&>]{4,128})"),
}
_POSITIONAL["mosquitto_passwd"] = _POSITIONAL["htpasswd"]
# Configuration of devices and installers: a type or number may come before the value.
_LINE_QUALIFIERS = (
    rb"(?:[0-9]|1[0-5]|ascii|hex|text|md5|sha|sha-?[0-9]{1,3}|encrypted|encryption|string|password|secret|plaintext"
    rb"|plain-text|clear|cipher|simple|irreversible-cipher|hash|type|level [0-9]{1,2}"
    rb"|--[a-z]+|-[0-9a-z]|(?:by|as)(?=[ \t]+\\*[\"']))"
)
_CONFIG_LINE = compile_lazily(rb"(?:[ \t]+" + _LINE_QUALIFIERS + rb"){0,3}[ \t]+\\*[\"'`(]{0,2}([^\s\"'`<>]{4,256})")
_LAST_ON_LINE = compile_lazily(
    rb"[\"'`)]{0,2}[ \t]{0,8}(?:\r?\n|\\+n|\\*\"|[;,|&#!]|\Z|address\b|ro\b|rw\b|group\b|role\b|to\b|encrypted\b)"
)


def _find_after_name(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    """A value after the name and blanks, in a command or in a line of configuration."""
    name = mention.name
    if view[mention.end : mention.end + 1] not in (b" ", b"\t"):
        return None
    pattern = _POSITIONAL.get(name)
    match = pattern.match(view, mention.end) if pattern else None
    if match is not None:
        return literal_span(name, match.start(1), match[1])
    match = _CONFIG_LINE.match(lower, mention.end)
    if match is None:
        return None
    start, value = _view_group(view, match, 1)
    span = word_span(name, start, value)
    if span is None or is_password_name(name):
        return span
    return span if _LAST_ON_LINE.match(lower, span.end) else None


# Sentences.
_SENTENCE = compile_lazily(
    rb"(?:[ \t]+(?:for|of|to|on|in|at|do|da|de|del|von|f.{1,2}r|para|pour|du|van|\?{2,4})[ \t]+(?:the[ \t]+)?"
    rb"[\w@.'/`?-]{1,40}(?:[ \t][\w@.'`-]{1,30}){0,3})??(?:[ \t]+\([^()\n]{0,40}\))?[*`\"']{0,3}[ \t]*"
    rb"(?:(?:is|was|has been|be) (?:now )?(?:set|changed|updated|reset) to|:|=|->|-{1,2}|\?|\.{3,40}"
    rb"|(?:is|was|ist|lautet|es|est)(?: now| still| just| simply)?|(?:will|should|must|can) be|to|as):?[ \t]+"
    rb"[`\"'*(]{0,3}([^\s`\"'<>]{4,128})"
)
_AS_PASSWORD = compile_lazily(
    rb"(?:\A|[\s`\"'(])([^\s`\"'()]{5,128})[`\"')]{0,2}[ \t]+(?:as|for)[ \t]+(?:(?:the|your|a|an|my|its|his|her|their"
    rb"|our|root|admin|user|db"
    rb"|database|default|initial|new|login|sudo|master)[ \t]+){0,3}\Z"
)
_LOGIN_PAIR = compile_lazily(
    rb"[`\"'*]{0,3}(?:[ \t]+(?:for|of|to|on)[ \t]+[\w.-]{1,40}(?:[ \t][\w.-]{1,30}){0,3}?)?"
    rb"(?:[ \t]*(?::|=|->)|[ \t]+(?:are|is|with|as))?[ \t]+"
    rb"[`\"'(*]{0,3}[\w.@+-]{1,64}[`\"']?"
    rb"(?:[ \t]*/[ \t]*|:[ \t]?|[ \t]+and[ \t]+|,[ \t]?)[`\"']?([^\s`\"'<>()]{5,128})"
)
_NEXT_LINE = compile_lazily(
    rb"[\"'`*]{0,3}(?P<colon>:)?[\"'`*]{0,3}[ \t]{0,4}(?:\r?\n|\\n)[ \t]{0,40}(?P<item>[-*+][ \t]{1,4})?"
    rb"[\"'`]?(?P<value>[^\s\"'`,:;(){}\[\]<>\\"
    rb"]{5,128})[\"'`]?[ \t]{0,4}(?=\r?\n|\\n|\Z|\")"
)
_KEY_VALUE_LINE = compile_lazily(rb"[ \t]{0,40}\|[ \t]{0,40}(?P<value>[^\s|]{4,128})[ \t]{0,40}(?=\r?\n|\\n|\Z|\|)")
_ITEM_BEGIN = compile_lazily(rb"(?:\A|\n|\\n)[ \t]{0,40}(?:[-*+]|[0-9]{1,3}[.)])[ \t]")
_LINE_BEGIN = compile_lazily(
    rb"(?:\A|\n|\\n)(?:[^\s:\\]{1,60}:[0-9]{1,6}:)?[#>*|+\- \t]{0,12}(?:[\w-]{1,24}[ \t]){0,3}\Z"
)


_SENTENCE_SIGNS = frozenset((b" ", b"\t", b":", b"=", b"*", b"`", b'"', b"'", b".", b"?", b"-"))


def _find_in_sentence(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    start, end, name, _ = mention
    match = _SENTENCE.match(lower, end) if view[end : end + 1] in _SENTENCE_SIGNS else None
    if match is not None:
        span = word_span(name, *_view_group(view, match, 1))
        if span is not None:
            return span
    if not is_password_name(name):
        return None
    match = _QUOTED_PHRASE.match(view, end)
    if match is not None and any(map(_has_digit_in_word, match[2].split())):
        return literal_span(name, match.start(2), match[2])
    match = _NUMBER.match(lower, end)
    if match is not None:
        return literal_span(name, match.start(1), match[1])
    if view[start - 1 : start] == b" ":
        match = _AS_PASSWORD.search(lower, max(0, start - 180), start)
        if match is not None:
            return word_span(name, *_view_group(view, match, 1))
    return None


# A phrase of several words in quotes, and a password of digits, after a verb.
_QUOTED_PHRASE = compile_lazily(
    rb"[ \t]+(?:is|was|to|as)[ \t]+(\\*[\"'`])([^\s\"'`\\]{2,20}(?: [^\s\"'`\\]{2,20}){1,7})\1"
)
_NUMBER = compile_lazily(rb"[ \t]+(?:is|was)(?: now)?:?[ \t]+[`\"'*]{0,2}([0-9]{6,12})(?![\w.,:%-]\w|\w)")


def _has_digit_in_word(word: bytes) -> bool:
    return heuristics.is_password_in_prose(word.decode("latin-1"))


def _find_login_pair(view: bytes, _lower: bytes, mention: Mention) -> Span | None:
    """A name and a password after the word credentials."""
    match = _LOGIN_PAIR.match(view, mention.end) if mention.name.lower().startswith("cred") else None
    return word_span("password", match.start(1), match[1]) if match else None


def _find_on_next_line(view: bytes, lower: bytes, mention: Mention) -> Span | None:
    """A value on a line of its own below its name, or in the next column of a narrow table."""
    is_password = is_password_name(mention.name)
    if not is_password and mention.name.endswith("-"):  # the first line of a public key
        return None
    for pattern in (_NEXT_LINE, _KEY_VALUE_LINE):
        match = pattern.match(view, mention.end)
        begin = _LINE_BEGIN.search(lower, max(0, mention.start - 60), mention.start) if match else None
        if match is None or begin is None:
            continue
        # The next item of a list is a value only below a heading that ends with a colon.
        if pattern is _NEXT_LINE and match["item"] and (not match["colon"] or _ITEM_BEGIN.match(lower, begin.start())):
            return None
        if not is_password and not _is_key_line(match["value"].decode("latin-1")):
            return None
        return word_span(mention.name, match.start("value"), match["value"])
    return None


def _is_key_line(value: str) -> bool:
    """Whether a line below the name of a key or token can only be that key."""
    is_mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return len(value) >= 12 and (is_mixed or len(value) >= 20) and heuristics.entropy(value) > 3  # noqa: PLR2004 - no word


# Words that are rather verbs or nouns of everyday text.
_VERBS = frozenset(("pass", "pin", "passe", "pwd"))
_QUOTES = frozenset((b'"', b"'", b"`"))
_Finder = Callable[[bytes, bytes, Mention], Span | None]
_FINDERS_AFTER_SIGN: tuple[_Finder, ...] = (
    _find_in_record,
    _find_in_block,
    _find_in_element,
    _find_in_next_element,
    _find_in_inner_element,
    _find_in_here_document,
    _find_random_resource,
    _find_in_tuple,
    _find_registry_bytes,
    _find_app_password,
    _find_filled,
    _find_login_pair,
    _find_on_next_line,
)
_FINDERS: tuple[_Finder, ...] = (
    _find_random_resource,
    _find_in_record,
    _find_in_form_part,
    _find_in_block,
    _find_in_element,
    _find_in_next_element,
    _find_in_inner_element,
    _find_template_default,
    _find_in_tuple,
    _find_before_condition,
    _find_app_password,
    _find_filled,
    _find_in_call,
    _find_in_command_line,
    _find_after_name,
    _find_in_sentence,
    _find_login_pair,
    _find_on_next_line,
)


# Tables and column lists: the name is that of a column.

_MAX_LINE = 1000
_MAX_ROWS = 1000
_LINE_BREAK = compile_lazily(rb"\r?\n|(?:\\+r)?\\+n")
_INTO = compile_lazily(rb"(?:into|copy|table)[ \t]+(?:if not exists )?[\w.`\"\[\]\\-]{1,80}(?:\s|\\n){0,8}\Z")
_VALUES = compile_lazily(rb"\)(?:\s|\\n){0,20}(?:[a-z ]{0,40}(?:\s|\\n){1,20})?values?(?:\s|\\n){0,20}")
_COPY = compile_lazily(rb"\)[ \t]+from[ \t]+stdin[^\n\\]{0,60}(?:;|\n|\\n)(?:\r?\n|\\n)?")
_ROW_START = compile_lazily(rb"(?:\s|\\n|,){0,40}\(")
_ROW_ITEM = compile_lazily(
    rb"(?:\s|\\n){0,20}(?:[\w.]{1,40}\(\s{0,4}'([^'\\]*+)'(?:[^()']|'[^'\\]{0,80}'|\([^()]{0,80}\)){0,80}\)"
    rb"|[nbexNBEX]?'((?:[^'\\]|''|\\[^n\"])*+)'|[nN]?\\*\"([^\"\\\r\n]*+)\\*\"|[^,()'\"]{0,200}(?:\([^()]{0,80}\))?)"
    rb"(?:\s|\\n){0,20}([,)]|\Z)?"
)
_RULE_LINE = compile_lazily(rb"[-+|:=_ \t?\\]*\Z")
_QUOTED_CELL_END = compile_lazily(rb"\\*[\"'][,;\t|]")
_COLUMN_NAME = compile_lazily(rb"[ \t]*\\*[\"'`*]{0,2}(?:[A-Za-z_#][\w .()/#-]{0,40})?\\*[\"'`*]{0,2}[ \t]*\Z")
_ALIGNED_HEADER = compile_lazily(
    rb"[ \t]*[A-Za-z][\w.()/#-]*(?: [\w.()/#-]+){0,2}(?: {2,}[A-Za-z][\w.()/#-]*(?: [\w.()/#-]+){0,2})+[ \t]*\Z"
)
_SQL_SIGNS_BEFORE, _SQL_SIGNS_AFTER = b' \t\r\n`"[\\n', b'`"] \t\r\n\\n'
_CELL_SIGNS = b" \t\"'`*\\"
_COLUMN_LIST_REACH = 800


class _Tables:
    """The columns that mentions name, each table read once."""

    def __init__(self, view: bytes, lower: bytes) -> None:
        self._view = view
        self._lower = lower
        self._column_lists: dict[int, list[Mention]] = {}
        self._header_lines: dict[int, list[Mention]] = {}

    def add(self, mention: Mention) -> None:
        """Add a mention that may be the name of a column."""
        view, start, end = self._view, mention.start, mention.end
        before = view[max(0, start - 8) : start].rstrip(_SQL_SIGNS_BEFORE)[-1:]
        after = view[end : end + 8].lstrip(_SQL_SIGNS_AFTER)[:1]
        if before in (b",", b"(") and after in (b",", b")"):
            opening = view.rfind(b"(", max(0, start - _COLUMN_LIST_REACH), start)
            if opening >= 0 and _INTO.search(self._lower, max(0, opening - 120), opening):
                self._column_lists.setdefault(opening, []).append(mention)
                return
        begin = self._line_begin(start)
        if begin is not None:
            self._header_lines.setdefault(begin, []).append(mention)

    def find_values(self) -> Iterator[Span]:
        """Find the cells of all columns."""
        for opening, mentions in self._column_lists.items():
            yield from self._find_in_rows(opening, mentions)
        done = 0
        for begin in sorted(self._header_lines):
            if begin >= done:
                spans, done = self._find_in_table(begin, self._header_lines[begin])
                yield from spans

    def _line_begin(self, at: int) -> int | None:
        floor = max(0, at - _MAX_LINE)
        line, escaped = self._view.rfind(b"\n", floor, at), self._view.rfind(b"\\n", floor, at)
        if line < 0 and escaped < 0:
            return None if floor else 0
        return max(line + 1, escaped + 2 if escaped >= 0 else 0)

    def _find_in_rows(self, opening: int, mentions: list[Mention]) -> Iterator[Span]:
        """The values of an INSERT statement or a COPY block whose column list starts at `opening`."""
        view = self._view
        closing = view.find(b")", mentions[-1].end, mentions[-1].end + _COLUMN_LIST_REACH)
        if closing < 0:
            return
        columns = {view.count(b",", opening, mention.start): mention.name for mention in mentions}
        copy = _COPY.match(self._lower, closing)
        if copy is not None:
            yield from self._find_in_lines(copy.end(), b"\t", view.count(b",", opening, closing) + 1, columns)[0]
            return
        values = _VALUES.match(self._lower, closing)
        at = values.end() if values else -1
        for _row in range(_MAX_ROWS):
            row = _ROW_START.match(view, at) if at >= 0 else None
            if row is None:
                return
            at, column = row.end(), 0
            while item := _ROW_ITEM.match(view, at):
                group = next((group for group in (1, 2, 3) if item[group]), 0)
                if column in columns and group:
                    span = literal_span(columns[column], item.start(group), item[group])
                    if span is not None:
                        yield span
                at, column = item.end(), column + 1
                if item[4] != b",":
                    break

    def _find_in_table(self, begin: int, mentions: list[Mention]) -> tuple[list[Span], int]:
        """The cells below the names in the header line at `begin`, and where the table ends."""
        line_break = _LINE_BREAK.search(self._view, mentions[-1].end, mentions[-1].end + _MAX_LINE)
        if line_break is None:
            return [], begin
        header = self._view[begin : line_break.start()]
        for delimiter in (b"|", b"\t", b"\\t", b",", b";"):
            if delimiter not in header or (delimiter in b",;" and delimiter + b" " in header):
                continue
            cells = header.split(delimiter)
            # In a program, such a line is part of a list.
            is_list = delimiter in b",;" and (not all(map(bytes.strip, cells)) or header[:1].isspace())
            if is_list or not all(map(_COLUMN_NAME.match, cells)):
                return [], begin
            columns = {header.count(delimiter, 0, mention.start - begin): mention.name for mention in mentions}
            return self._find_in_lines(line_break.end(), delimiter, len(cells), columns)
        return self._find_in_aligned_columns(begin, header, line_break.end(), mentions)

    def _find_in_lines(self, at: int, delimiter: bytes, width: int, columns: dict[int, str]) -> tuple[list[Span], int]:
        spans: list[Span] = []
        end = at
        for start, line in self._lines(at):
            is_rule = _RULE_LINE.match(line) is not None
            cells = line.split(delimiter)
            if (is_rule and not line.strip()) or (not is_rule and len(cells) != width):
                break
            end = start + len(line)
            for column, name in () if is_rule else columns.items():
                cell = cells[column]
                value = cell.strip(_CELL_SIGNS)
                offset = sum(map(len, cells[:column])) + column * len(delimiter) + cell.find(value)
                span = literal_span(name, start + offset, value) if value and b" " not in value else None
                if span is not None:
                    spans.append(span)
        return spans, end

    def _find_in_aligned_columns(
        self, begin: int, header: bytes, at: int, mentions: list[Mention]
    ) -> tuple[list[Span], int]:
        """The same for columns that blanks align."""
        spans: list[Span] = []
        if not _ALIGNED_HEADER.match(header):
            return spans, begin
        end = at
        for start, line in self._lines(at):
            if not line.strip():
                break
            end = start + len(line)
            for mention in mentions:
                column = mention.start - begin
                if not is_password_name(mention.name) or header[max(0, column - 2) : column].strip():
                    continue
                if line[column - 1 : column] not in (b"", b" ") or line[column : column + 1] in (b"", b" "):
                    continue
                value = line[column:].split(b" ", 1)[0]
                span = word_span(mention.name, start + column, value)
                if span is not None:
                    spans.append(span)
        return spans, end

    def _lines(self, at: int) -> Iterator[tuple[int, bytes]]:
        for _row in range(_MAX_ROWS):
            if at >= len(self._view):
                return
            line_break = _LINE_BREAK.search(self._view, at, at + _MAX_LINE)
            end = line_break.start() if line_break else min(len(self._view), at + _MAX_LINE)
            yield at, self._view[at:end]
            if line_break is None:
                return
            at = line_break.end()
