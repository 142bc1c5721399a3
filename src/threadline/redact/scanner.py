"""Apply all rules to a text of any length, window by window.

A window stays in the processor's cache, and memory does not grow with the text. Each text is searched as it is and
again without the characters that can hide a word (see `views`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from threadline.redact.decoding import decode_run, foreign_characters
from threadline.redact.rules import prefilter
from threadline.redact.rules.arguments import (
    PAIRED_KINDS,
    find_call_passwords,
    find_command_passwords,
    find_paired_secrets,
)
from threadline.redact.rules.assignments import ENV_WORDS, LONG_OPTION, find_assigned_values, find_named_values
from threadline.redact.rules.formats import FORMATS, SERVICES, Span
from threadline.redact.rules.heuristics import translate_names
from threadline.redact.rules.multiline import (
    BrokenTokenFinder,
    broken_anchor_gate,
    broken_anchor_pattern,
    find_private_keys,
)
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.rules.personal import find_personal_data
from threadline.redact.rules.prefilter import RareMarks, gate
from threadline.redact.rules.tokens import (
    find_azure_secrets,
    find_wallet_keys,
)
from threadline.redact.rules.variables import find_joined_variables
from threadline.redact.runs import classify_name, find_in_runs
from threadline.redact.views import TextView, text_views

WINDOW = 512 * 1024
"""Bytes per window. A window stays in the processor's cache, and memory does not grow with the text."""
_LOOKAHEAD = 8 * 1024
_LOOKBEHIND = 256
_MAX_LOOKAHEAD = 128 * 1024
PERSONAL_KINDS = frozenset(("email", "ip", "host", "home", "user", "name", "path", "url", "mac", "phone"))
"""Kinds that are not secrets, but identify people and machines."""


def find_spans(text: str, views: Iterable[TextView] | None = None, *, personal: bool = True) -> list[Span]:
    """Find everything to redact in a text and in its views. Spans may overlap.

    `views` are the result of `text_views(text)`, if the caller already has it.
    """
    spans = list(_scan_windows(_to_bytes(text), personal=personal, decode_runs=False))
    for view in text_views(text) if views is None else views:
        for span in _scan_windows(_to_bytes(view.text), personal=personal, decode_runs=False):
            start, end = view.where(span.start, span.end)
            value = span.value or view.text[span.start : span.end]
            spans.append(Span(start, end, span.kind, span.local_only, value))
    return spans


def find_spans_in_bytes(view: bytes, *, personal: bool = False) -> list[Span]:
    """The same for the bytes of a file, with byte offsets. Of the views, only runs of base64 and hex are decoded."""
    return list(_scan_windows(view, personal=personal, decode_runs=True))


def _to_bytes(text: str) -> bytes:
    """The text as bytes, one per character, so that offsets are the same."""
    return (text if text.isascii() else translate_names(text, foreign_characters(text))).encode("ascii", "replace")


def _scan_windows(view: bytes, *, personal: bool, decode_runs: bool) -> Iterator[Span]:
    if len(view) <= WINDOW + _LOOKAHEAD:
        yield from _scan_window(view, personal=personal, decode_runs=decode_runs)
        return
    start = 0
    while start < len(view):
        stop = start + WINDOW
        begin = max(0, start - _LOOKBEHIND)
        lookahead = _LOOKAHEAD
        while True:
            end = min(len(view), stop + lookahead)
            spans = [
                Span(first + begin, last + begin, kind, local_only, value)
                for first, last, kind, local_only, value in _scan_window(
                    view[begin:end], personal=personal, decode_runs=decode_runs
                )
            ]
            # A span that touches the window's end may continue after it.
            if (
                end == len(view)
                or lookahead >= _MAX_LOOKAHEAD
                or all(span.end < end or span.start >= stop for span in spans)
            ):
                break
            lookahead *= 4
        yield from (span for span in spans if start <= span.start < stop or span.start < start < span.end)
        start = stop


def _scan_window(view: bytes, *, personal: bool, decode_runs: bool) -> Iterator[Span]:
    lower = view.lower()
    marks = find_rare_marks(view, lower)
    yield from find_private_keys(view, marks)
    broken = BrokenTokenFinder(view)
    for span in find_in_runs(view, broken, find_in_encoded if decode_runs else None):
        yield span
        if span.kind in PAIRED_KINDS:
            yield from find_paired_secrets(view, span)
    yield from broken.short(marks)
    yield from find_azure_secrets(view, marks)
    yield from find_joined_variables(view, marks)
    named_values = find_named_values(view, lower, marks, is_text=not decode_runs)
    yield from find_wallet_keys(view, lower, marks)
    yield from find_short_credentials(view, lower, marks)
    yield from named_values
    yield from find_assigned_values(view, lower, marks)
    yield from find_command_passwords(view, lower, marks)
    yield from find_call_passwords(view, lower, marks)
    if personal:
        yield from find_personal_data(view, marks.gates)


def merge_overlapping(spans: list[Span]) -> list[tuple[int, int, Span]]:
    """Sort spans and merge overlapping ones, as (start, end, span that determines the kind)."""
    merged: list[tuple[int, int, Span]] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1][1]:
            start, end, first = merged[-1]
            main_span = span if (first.kind in PERSONAL_KINDS and span.kind not in PERSONAL_KINDS) else first
            merged[-1] = (start, max(end, span.end), main_span)
        else:
            merged.append((span.start, span.end, span))
    return merged


CONTEXT_KINDS = {
    "private-key": "private key: PEM, OpenSSH, PGP, PuTTY",
    "azure-client-secret": "Azure client secret",
    "seed-phrase": "seed phrase of a wallet, after a label",
    "wallet-key-bytes": "private key of a wallet as a list of 64 numbers",
    "password": "value assigned to a name that means password",
    "password-hash": "password hash: crypt, htpasswd, bcrypt",
    "assigned-secret": "value assigned to a name that means key, token, secret or credential",
    "random-value": "random value of a variable or argument, alone on a line, or in a text",
    "authorization-header": "value of an Authorization header",
    "bearer-token": "token after the word Bearer",
    "basic-authorization": "base64 login after the word Basic",
    "cookie": "value of a Cookie or Set-Cookie header",
    "url-password": "password in the login part of a URL",
    "url-token": "token in the login part of a URL",
    "url-parameter": "signature, session or code in a URL parameter",
    "curl-password": "password in curl's -u option",
    "webhook": "webhook URL, which works without any other key",
    "command-output": "output of a command that prints a secret, or content of a secret file",
}
"""Kinds that are recognized by their context."""


def counts_in_lines(span: Span, text: str) -> bool:
    """Whether a span of joined lines counts: the word after a name that ends a line is rarely its value."""
    return span.kind not in CONTEXT_KINDS or any(map(str.isdigit, text[span.start : span.end]))


PERSONAL_KIND_DESCRIPTIONS = {
    "email": "e-mail address",
    "ip": "IP address",
    "host": "name of a machine or an internal network",
    "home": "home directory",
    "user": "account name",
    "name": "name of a person before an e-mail address",
    "path": "path (only strict)",
    "url": "URL (only strict)",
    "mac": "hardware address (only strict)",
    "phone": "telephone number (only strict)",
}
"""Descriptions of the personal kinds."""
KINDS: dict[str, str] = {
    **{rule.kind: rule.what for rule in FORMATS},
    **{service.kind: service.what for service in SERVICES},
    **CONTEXT_KINDS,
    **PERSONAL_KIND_DESCRIPTIONS,
}
"""Every kind with its description."""


# In lower case, so that one search serves names and formats; rules that depend on case check again. Alternatives that
# begin with a letter fail at once. Lookbehinds are slower and come last.
_DASH = re.compile(
    rb"-(?:s(?<=sudo -s)()|stdin()|(?:[pu]|[abcekhnrswx](?=[ \t=:\"'\\pu]))(?<=[ \t]-.)(?P<option>)|-(?=[a-z0-9])(?="
    + (LONG_OPTION + rb"|(?:proxy-)?user|(?:src-|dest-)?creds|auth )")
    + rb"|with-token()|literal(?<=from-literal)(?=[= ])()|s(?<=convertto-s)ecurestring()"
    rb"|b(?<=-----b)egin()|e(?<=-----e)nd()|l(?<=private-l)ines: ()| (?<=---- )(?:begin()|end())"
    rb"|" + broken_anchor_pattern(b"-") + rb"(?P<anchor>))"
)
# Most windows have no other dashes that matter than those of options after a blank.
_OPTION = re.compile(rb"-(?<= -)(?:[pu]|[abcekhnrswx](?=[ \t=:\"'\\pu]))")
_DASH_GATE = gate(
    rb"(?i)sudo -s|-stdin|\t-[a-z]|--(?:[a-z0-9]+-)*(?:token|pass|secret|key|apikey|credential)[a-z]*[ \t]"
    rb"|--(?:proxy-)?user|--(?:src-|dest-)?creds|--auth |-with-token|from-literal|convertto-securestring"
    rb"|-----(?:begin|end)|private-lines: |---- (?:begin|end)|" + broken_anchor_gate(b"-")
)
_ANCHOR_GROUP, _OPTION_GROUP = _DASH.groupindex["anchor"], _DASH.groupindex["option"]
# A letter that continues the name makes it another name; `is` and `was` may follow.
_NAME_END = rb"(?![a-hj-vx-z0-9_])"
_UNDERSCORE = re.compile(
    rb"_(?:" + b"|".join(word + _NAME_END for word in ENV_WORDS) + rb"|" + broken_anchor_pattern(b"_") + rb")"
)
_UNDERSCORE_GATE = gate(rb"(?i)_(?:" + b"|".join(ENV_WORDS) + rb")(?:[^a-hj-vx-z0-9_]|\z)|" + broken_anchor_gate(b"_"))


def find_rare_marks(view: bytes, lower: bytes) -> RareMarks:
    """Find the rare marks of a window; `lower` is the window in lower case."""
    marks = RareMarks(view, lower)
    if _DASH_GATE not in marks.gates:
        marks.options = [match.start() for match in _OPTION.finditer(lower)]
    for match in _DASH.finditer(lower) if _DASH_GATE in marks.gates else ():
        start, group = match.start(), match.lastindex
        if group == _OPTION_GROUP:
            marks.options.append(start)
            continue
        # The start of a word or of a long option may also be in the middle of a token.
        marks.dashes.append(start)
        if group is None:
            marks.long_options.append(start)
        elif group != _ANCHOR_GROUP:
            marks.add_word(match[0], start)
    if _UNDERSCORE_GATE in marks.gates:
        marks.underscores = [match.start() for match in _UNDERSCORE.finditer(lower)]
    return marks


_MAX_ENCODED = 64 * 1024


def find_in_encoded(view: bytes, start: int, end: int) -> Span | None:
    """The run and the lines that continue it, if they encode a text with a secret, which becomes the span's value.

    Call this only if it `may_be_encoded`.
    """
    part = decode_run(view[start : start + _MAX_ENCODED].decode("latin-1"), 0, min(end - start, _MAX_ENCODED))
    for span in find_spans(part.text, personal=False) if part is not None else ():
        if part is not None and not span.local_only:
            value = span.value or part.text[span.start : span.end]
            return Span(start + part.start, start + part.end, span.kind, value=value)
    return None


_SHORT_VALUE = compile_lazily(rb"[A-Za-z0-9_:-]{10,32}(?![A-Za-z0-9_-])")
_SHORT_REST = rb"[a-z0-9_.-]{0,24}(?:\\*[\"'`])?[ \t]{0,4}(?:=>|:=|=|:|>)[ \t]{0,4}(?:\\*[\"'`])?"
# Services whose credentials are shorter than a run, each searched for by a rare letter of its name.
_SHORT_SERVICES = tuple(
    (word, compile_lazily(name + _SHORT_REST))
    for word, name in (
        (prefilter.AIRTABLE, rb"b(?<=airtab)le"),
        (prefilter.CONTRIBSYS, rb"b(?<=contrib)sys"),
        (prefilter.DROPBOX, rb"x(?<=dropbox)"),
        (prefilter.LINKEDIN, rb"k(?<=link)edin"),
        (prefilter.CLOUDANT, rb"u(?<=clou)dant"),
        (prefilter.CONFLUENT, rb"u(?<=conflu)ent"),
        (prefilter.SUMO, rb"u(?<=su)mo"),
        (None, rb"asana"),
    )
)
_ASANA_GATE = gate(rb"(?i)asana")


def find_short_credentials(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find credentials that are shorter than a run, by the name of their service."""
    for word, pattern in _SHORT_SERVICES:
        is_present = _ASANA_GATE in marks.gates if word is None else word in marks.words
        for match in pattern.finditer(lower) if is_present else ():
            value = _SHORT_VALUE.match(view, match.end())
            name = lower[max(0, match.start() - 6) : match.end()]
            for service_pattern, kind in classify_name(name[::-1])[0] if value else ():
                if value and service_pattern.fullmatch(value[0].decode()):
                    yield Span(*value.span(), kind)
