"""Apply all rules to a text of any length, window by window.

A window stays in the processor's cache, and memory does not grow with the text. Each text is searched as it is and
again without the characters that can hide a word (see `views`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from threadline.redact import prefilter
from threadline.redact.arguments import (
    PAIRED_KINDS,
    find_call_passwords,
    find_command_passwords,
    find_paired_secrets,
)
from threadline.redact.assignments import (
    ENV_WORDS,
    LONG_OPTION,
    find_assigned_values,
    find_named_values,
    is_credible,
)
from threadline.redact.decoding import decode_run, foreign_characters, may_be_encoded
from threadline.redact.entropy import find_random_hex, find_random_value, is_random_run
from threadline.redact.formats import FORMATS, SERVICES, Span
from threadline.redact.heuristics import (
    is_secret_name,
    kind_of,
    services_in_name,
    split_name,
    translate_names,
    word_set,
)
from threadline.redact.multiline import (
    MAY_CONTINUE,
    MAY_HAVE_STARTED,
    BrokenTokenFinder,
    broken_anchor_pattern,
    find_private_keys,
)
from threadline.redact.personal import find_personal_data
from threadline.redact.prefilter import RareMarks
from threadline.redact.tokens import (
    CONTINUATIONS,
    JOINING_BYTES,
    candidate_runs,
    find_azure_secrets,
    find_token,
    find_wallet_keys,
)
from threadline.redact.variables import find_joined_variables
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
    marks = find_rare_marks(lower)
    yield from find_private_keys(view, marks)
    done = 0
    broken = BrokenTokenFinder(view)
    find_at_run = _find_at_run_and_decode if decode_runs else _find_at_run
    for start, end, is_hex in candidate_runs(view):
        if end <= done:
            continue
        is_broken = view[end : end + 2] in MAY_CONTINUE or view[start - 2 : start] in MAY_HAVE_STARTED
        span = (broken.find_at_run(start, end) if is_broken else None) or find_at_run(view, start, end, is_hex)
        if span is not None:
            done = span.end
            yield span
            if span.kind in PAIRED_KINDS:
                yield from find_paired_secrets(view, span)
    yield from broken.short(marks)
    yield from find_azure_secrets(view)
    yield from find_joined_variables(view)
    named_values = find_named_values(view, lower, marks)
    yield from find_wallet_keys(view, lower, marks)
    yield from find_short_credentials(view, lower, marks)
    yield from named_values
    yield from find_assigned_values(view, lower, marks)
    yield from find_command_passwords(view, lower, marks)
    yield from find_call_passwords(view, lower, marks)
    if personal:
        yield from find_personal_data(view)


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


_PLAIN_KEY = re.compile(r"[A-Za-z_$][\w$-]*\Z")


def find_in_value(value: Any, *, personal: bool = False) -> Iterator[tuple[str, str, str]]:
    """Find everything in a JSON value, as (JSON path of the text, kind, secret).

    The secret itself is only for counting. Never output it.
    """
    for path, key, text in texts_with_paths(value):
        if key and is_secret_name(key) and is_credible(key, text, quoted=True):
            yield path, kind_of(key, text), text
            continue
        for _start, _end, span in merge_overlapping(find_spans(text, personal=personal)):
            yield path, span.kind, text[span.start : span.end]


def texts_with_paths(value: Any) -> Iterator[tuple[str, str, str]]:
    """All texts of a JSON value, as (JSON path, nearest key, text)."""
    pending: list[tuple[str, str, Any]] = [("$", "", value)]
    while pending:
        path, key, node = pending.pop()
        if isinstance(node, str):
            yield path, key, node
        elif isinstance(node, dict):
            for name, inner in reversed(node.items()):
                pending.append((path + (f".{name}" if _PLAIN_KEY.match(name) else f"[{name!r}]"), name, inner))
            # A key is also a text and may be a path or an e-mail address.
            pending += [(path, "", name) for name in node if len(name) > 16]  # noqa: PLR2004 - shorter ones are names
        elif isinstance(node, list):
            pending += [(f"{path}[{index}]", key, node[index]) for index in range(len(node) - 1, -1, -1)]


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
    rb"-(?:s(?<=sudo -s)()|stdin()|(?:[pu]|[abcekhnrswx](?=[ \t=:\"'\\pu]))(?<=[ \t]-.)|-(?=[a-z0-9])(?="
    + (LONG_OPTION + rb"|(?:proxy-)?user|(?:src-|dest-)?creds|auth )")
    + rb"|with-token()|literal(?<=from-literal)(?=[= ])()|s(?<=convertto-s)ecurestring()"
    rb"|b(?<=-----b)egin()|e(?<=-----e)nd()|l(?<=private-l)ines: ()| (?<=---- )(?:begin()|end())"
    rb"|" + broken_anchor_pattern(b"-") + rb"(?P<anchor>))"
)
_ANCHOR_GROUP = _DASH.groupindex["anchor"]
# A letter that continues the name makes it another name; `is` and `was` may follow.
_NAME_END = rb"(?![a-hj-vx-z0-9_])"
_UNDERSCORE = re.compile(
    rb"_(?:" + b"|".join(word + _NAME_END for word in ENV_WORDS) + rb"|" + broken_anchor_pattern(b"_") + rb")"
)


def find_rare_marks(lower: bytes) -> RareMarks:
    """Find the rare marks of a window, which is in lower case."""
    marks = RareMarks(lower)
    for match in _DASH.finditer(lower):
        # The start of a word or an option may also be in the middle of a token.
        marks.dashes.append(match.start())
        if match.lastindex is None:
            marks.options.append(match.start())
        elif match.lastindex != _ANCHOR_GROUP:
            marks.add_word(match[0], match.start())
    marks.underscores = [match.start() for match in _UNDERSCORE.finditer(lower)]
    return marks


# Caches of runs that are not secrets by themselves, because the same names and paths recur. The value tells what may
# make one of them a secret: that it can be an assigned value (1), or that it looks random (2). Both depend on the text
# around it.
_HARMLESS_RUNS: dict[bytes, int] = {}
_HARMLESS_DECODED_RUNS: dict[bytes, int] = {}
_CAN_BE_ASSIGNED, _LOOKS_RANDOM = 1, 2
_MAX_HARMLESS_RUNS = 16384
_MAX_CACHED_RUN = 128


def _find_at_run(view: bytes, start: int, end: int, is_hex: bool) -> Span | None:
    """The credential that a run is or starts with."""
    if is_hex:
        return _find_hex(view, start, end)
    return _check_run_once(view, start, end, _HARMLESS_RUNS, decode=False)


def _find_at_run_and_decode(view: bytes, start: int, end: int, is_hex: bool) -> Span | None:
    """The credential that a run is or starts with, or that is encoded in it."""
    if is_hex:
        return _find_hex(view, start, end) or find_in_encoded(view, start, end)
    return _check_run_once(view, start, end, _HARMLESS_DECODED_RUNS, decode=True)


def _find_hex(view: bytes, start: int, end: int) -> Span | None:
    """The credential that a hexadecimal run is by the name or the words before it."""
    if not can_be_assigned(view, start, end):
        return None
    return find_assigned_run(view, start, end) or find_random_hex(view, start, end)


def _check_run_once(view: bytes, start: int, end: int, harmless_runs: dict[bytes, int], *, decode: bool) -> Span | None:
    # A run that is joined to a word before or after it cannot be judged by itself.
    if view.startswith(CONTINUATIONS, end) or (start and view[start - 1] in JOINING_BYTES):
        return _check_run(view, start, end, decode=decode)[0]
    run = view[start:end]
    traits = harmless_runs.get(run)
    if traits is not None:
        return _find_in_context(view, start, end, traits) if traits else None
    span, traits = _check_run(view, start, end, decode=decode)
    if span is None and end - start < _MAX_CACHED_RUN:
        if len(harmless_runs) > _MAX_HARMLESS_RUNS:
            harmless_runs.clear()
        harmless_runs[run] = traits
    return span


def _check_run(view: bytes, start: int, end: int, *, decode: bool) -> tuple[Span | None, int]:
    """The credential, and what may make the run one in another context."""
    traits = _CAN_BE_ASSIGNED if can_be_assigned(view, start, end) else 0
    if is_random_run(view[start:end]):
        traits |= _LOOKS_RANDOM
    span = (
        find_token(view, start, end)
        or _find_in_context(view, start, end, traits)
        or (find_in_encoded(view, start, end) if decode else None)
    )
    return span, traits


def _find_in_context(view: bytes, start: int, end: int, traits: int) -> Span | None:
    """The credential that a run is by the name it is assigned to, or by its randomness and the text around it."""
    span = find_assigned_run(view, start, end) if traits & _CAN_BE_ASSIGNED else None
    return find_random_value(view, start, end) if span is None and traits & _LOOKS_RANDOM else span


# Keys of ids in JSON and in JSON within JSON. Nearly every run follows one of these.
_ID_PREFIXES = tuple(
    (name + quote + colon + quote).encode()
    for name in (
        "uuid",
        "Uuid",
        "Id",
        "_id",
        '"id',
        "ignature",
        "sha",
        "Sha",
        "hash",
        "Hash",
        "data",
        "slug",
        "name",
        "ommit",
    )
    for quote in ('"', '\\"')
    for colon in (":", ": ")
)
_PATH_STARTS = frozenset(b"/.~")
_DIGIT = re.compile(rb"[0-9]")
_UPPER = re.compile(rb"[A-Z]")
_DELIMITERS = frozenset(b"\"'`=: >,\t")
_ASSIGNMENT_SIGNS = b"=:>,"
_AROUND = b" \t\"'`\\)]=:>,"
_NAME_BACKWARDS = re.compile(rb"[A-Za-z0-9_.-]*+")
_VALUE = re.compile(rb"[A-Za-z0-9_+/=.~%-]{20,512}")
_VALUE_ENDS = frozenset(b"\"'`\\ \t\r\n,;)}]<&|")
_SHORT_VALUE = re.compile(rb"[A-Za-z0-9_:-]{10,32}(?![A-Za-z0-9_-])")
_SHORT_REST = rb"[a-z0-9_.-]{0,24}(?:\\*[\"'`])?[ \t]{0,4}(?:=>|:=|=|:|>)[ \t]{0,4}(?:\\*[\"'`])?"
# Services whose credentials are shorter than a run, each searched for by a rare letter of its name.
_SHORT_SERVICES = tuple(
    (word, re.compile(name + _SHORT_REST))
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
# Values with these names are long and look random, but are not secret.
_HARMLESS_NAMES = word_set(
    "id ids uuid guid hash hashes sha md digest checksum integrity signature commit etag data content"
    " cursor request message parent leaf prompt slug version url uri image fingerprint blob tree rev"
    " revision src href file path name class classname svg d base body text resolved sum ref build icon"
    " thumbnail buffer snapshot source map model type title label description fixture expected actual diff"
    " patch encoded output input result line x y seed etag cid did tag digest256 sha256 sha1 sha512 nonce"
    " alg kid thumbprint publickey modulus address tx block chunk asset bundle"
)

_DIGEST_NAME = re.compile(r"(?i)(?:.*[_.-])?(?:sha-?[0-9]{1,3}|md5|h1|crc32c?|blake[23][a-z]?|integrity|etag)")

_Services = tuple[tuple[re.Pattern[str], str], ...]


def can_be_assigned(view: bytes, start: int, end: int) -> bool:
    """Whether a run can be an assigned value: it is not a path and has a digit."""
    return view[start] not in _PATH_STARTS and _DIGIT.search(view, start, end) is not None


def find_assigned_run(view: bytes, start: int, end: int) -> Span | None:
    """The credential at a run by the name it is assigned to: that of a service, or a random value of another name.

    Call this only if `can_be_assigned`.
    """
    if not start or view[start - 1] not in _DELIMITERS:
        return None
    head = view[max(0, start - 64) : start].rstrip(b" \t\"'`\\")
    if not head or head[-1] not in _ASSIGNMENT_SIGNS:
        return None
    backwards = _NAME_BACKWARDS.match(head.rstrip(_AROUND)[::-1])
    services, harmless = _classify_name(backwards[0] if backwards else b"")
    # Nearly every name is harmless, so the check for ids comes last.
    if (harmless and not services) or view.endswith(_ID_PREFIXES, 0, start):
        return None
    return _check_value(view, start, end, services, harmless=harmless)


def _check_value(view: bytes, start: int, end: int, services: _Services, *, harmless: bool) -> Span | None:
    match = _VALUE.match(view, start)
    stop = match.end() if match else end
    # A random value has letters of both cases. Most field names do not.
    if not services and not _UPPER.search(view, start, stop):
        return None
    value = view[start:stop].decode().rstrip(".")
    for pattern, kind in services:
        if pattern.fullmatch(value):
            return Span(start, start + len(value), kind)
    if harmless or (stop < len(view) and view[stop] not in _VALUE_ENDS) or not _is_random_value(value):
        return None
    return Span(start, start + len(value), "random-value")


def _is_random_value(value: str) -> bool:
    """Whether a value, or one of its parts between dots, looks random."""
    return any(is_random_run(part.encode()) for part in value.rstrip("=").split("."))


def find_short_credentials(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find credentials that are shorter than a run, by the name of their service."""
    for word, pattern in _SHORT_SERVICES:
        for match in pattern.finditer(lower) if word is None or word in marks.words else ():
            value = _SHORT_VALUE.match(view, match.end())
            name = lower[max(0, match.start() - 6) : match.end()]
            for service_pattern, kind in _classify_name(name[::-1])[0] if value else ():
                if value and service_pattern.fullmatch(value[0].decode()):
                    yield Span(*value.span(), kind)


@lru_cache(maxsize=4096)
def _classify_name(backwards: bytes) -> tuple[_Services, bool]:
    """The patterns of the services that a name contains, and whether a random value of this name is harmless.

    The name is reversed, as it was matched.
    """
    name = backwards[::-1].decode("latin-1").removeprefix("X-").removeprefix("x-")
    services = tuple((re.compile(service.pattern), service.kind) for service in services_in_name(name))
    words = split_name(name)
    if _DIGEST_NAME.fullmatch(name):
        return (), True
    if name and name.upper() == name:
        return services, False
    harmless = (
        not words or bool(_HARMLESS_NAMES & set(words)) or any(word.endswith(("uuid", "sha", "hash")) for word in words)
    )
    return services, harmless and not is_secret_name(name)


_MAX_ENCODED = 64 * 1024


def find_in_encoded(view: bytes, start: int, end: int) -> Span | None:
    """The run and the lines that continue it, if they encode a text with a secret, which becomes the span's value."""
    if not may_be_encoded(view, start):
        return None
    part = decode_run(view[start : start + _MAX_ENCODED].decode("latin-1"), 0, min(end - start, _MAX_ENCODED))
    for span in find_spans(part.text, personal=False) if part is not None else ():
        if part is not None and not span.local_only:
            value = span.value or part.text[span.start : span.end]
            return Span(start + part.start, start + part.end, span.kind, value=value)
    return None
