"""Check the long runs of letters and digits of a text: each may be a token, a random value or encoded text.

A text has thousands of runs, and most are ids, names and paths that occur again and again. So this module sees few of
them twice: it remembers what it learned about a run, and checks again only what depends on the text around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from threadline.redact.decoding import may_be_encoded
from threadline.redact.rules.entropy import find_random_hex, find_random_value, is_random_run
from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import is_secret_name, services_in_name, split_name, word_set
from threadline.redact.rules.multiline import (
    MAY_CONTINUE,
    MAY_HAVE_STARTED,
    BrokenTokenFinder,
    PredicateCache,
    may_continue_line,
)
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.rules.tokens import (
    CONTINUATIONS,
    ESCAPE_SIGNS,
    JOINING_BYTES,
    MIN_RUN,
    WORD_TABLE,
    find_token,
    only_base64,
    skip_escape,
)

FindEncoded = Callable[[bytes, int, int], Span | None]
"""Finds the secret in the text that a run encodes, from its start and end."""

# Ids, and names and paths in lower case: only Firecrawl's keys (`fc-…`) look like these. The first group matches hex,
# the second ids of Claude. A run that is joined to a word before it cannot be judged by itself.
_HARMLESS_RUN = re.compile(
    rb"(?<![:|$])(?:((?!fc-)[0-9a-f-]++)|[a-z_./+-]++|((?:toolu|srvtoolu|msg|req|agent)_[0-9A-Za-z]++))"
    rb"(?![A-Za-z0-9_./+-])"
)
_HEX_GROUP = 1
_JOINED_BEFORE = frozenset((b":", b"|", b"$"))
# Ends of the names of ids, before the `":"` that Claude Code writes between a name and its value.
_ID_NAME_ENDS = frozenset(
    [b"uid", b"UID", b"_id", b'"id', b"ash", b"sha"]
    + [bytes((letter,)) + end for letter in range(0x61, 0x7B) for end in (b"Id", b"ID")]
)


# Next to these bytes a run may be the rest of an escape, or part of a longer or broken token.
def _is_special_before(before: bytes) -> bool:
    return not before or before[-1] in ESCAPE_SIGNS or before[-1] in JOINING_BYTES or MAY_HAVE_STARTED[before]


def _is_special_after(after: bytes) -> bool:
    return after.startswith(CONTINUATIONS) or MAY_CONTINUE[after]


# Whether the three bytes before or after a run are special.
_SPECIAL_BEFORE, _SPECIAL_AFTER = PredicateCache(_is_special_before), PredicateCache(_is_special_after)

# What is known of a run: nothing more to check (_IGNORED), or what may make it a secret in some context.
_IGNORED, _CAN_BE_ASSIGNED, _LOOKS_RANDOM = -1, 1, 2
_Known = tuple[dict[bytes, int], set[bytes]]
_KNOWN: _Known = ({}, set())
_KNOWN_AFTER_DECODING: _Known = ({}, set())
_BLANKS = frozenset(b" \t")
_MAX_TRAITS = 65536
_MAX_CACHED_RUN = 128
# Words that are joined to a run are remembered with it if they are short, as in `https://…` and `"$HOME/…`.
_MAX_JOINED = 8
_WORD_BOUNDARY = compile_lazily(rb"[^\w.~:|$!/+-]")
_SHORTEST_RUN = b"A" * MIN_RUN


def find_in_runs(view: bytes, broken: BrokenTokenFinder, find_encoded: FindEncoded | None) -> Iterator[Span]:
    """Find the credentials that a run is, starts with, is a piece of, or encodes if `find_encoded` decodes it."""
    finder = _RunFinder(view, broken, find_encoded)
    traits_of = finder.known_traits.get
    match_harmless = _HARMLESS_RUN.match
    ids: set[bytes] = set()
    id_name_ends, special_before, special_after = _ID_NAME_ENDS, _SPECIAL_BEFORE, _SPECIAL_AFTER
    done = end = 0
    # This does the same as `find_runs`. Calling that would take a tenth of the time of the whole search.
    find = (view.translate(WORD_TABLE) + b" ").find
    while (start := find(_SHORTEST_RUN, end)) >= 0:
        end = find(b" ", start + MIN_RUN)
        if end <= done:
            continue
        run = view[start:end]
        traits = traits_of(run)
        if traits == _IGNORED and view[start - 1 : start] not in _JOINED_BEFORE:
            continue
        if traits is None:
            # Every third run is an id after its name, and most of them occur again.
            if run in ids and view[start - 6 : start - 3] in id_name_ends:
                continue
            harmless = match_harmless(view, start)
            if harmless is not None and view[start - 6 : start - 3] in id_name_ends:
                ids.add(run)
                continue
            span = finder.check_new_run(run, start, end, harmless)
        elif special_after[view[end : end + 3]] or (
            special_before[view[start - 3 : start]]
            and (view[start - 1] not in _BLANKS or may_continue_line(view, start))
        ):
            span = finder.find_next_to_sign(start, end)
        elif traits and (traits & _LOOKS_RANDOM or view[start - 2 : start] in _MAY_FOLLOW_NAME):
            span = _find_in_context(view, start, end, traits)
        else:
            continue
        if span is not None:
            done = span.end
            yield span


class _RunFinder:
    """Finds the credential at a run of one text, if what is known of the run does not decide it."""

    __slots__ = ("_broken", "_find_encoded", "_harmless_joined", "_view", "known_traits")

    def __init__(self, view: bytes, broken: BrokenTokenFinder, find_encoded: FindEncoded | None) -> None:
        self._view = view
        self._broken = broken
        self._find_encoded = find_encoded
        self.known_traits, self._harmless_joined = _KNOWN if find_encoded is None else _KNOWN_AFTER_DECODING

    def check_new_run(self, run: bytes, start: int, end: int, harmless: re.Match[bytes] | None) -> Span | None:
        """The credential at a run of which nothing is known; `harmless` is what `_HARMLESS_RUN` matches there."""
        view = self._view
        if end - start >= _MAX_CACHED_RUN and _is_signature(view, start, end):
            return None
        if harmless is not None:
            group = harmless.lastindex
            if group is None:
                self._remember(run, _IGNORED)
                return None
            return self._find_at_hex(start, end) if group == _HEX_GROUP else None
        if _SPECIAL_BEFORE[view[start - 3 : start]] or _SPECIAL_AFTER[view[end : end + 3]]:
            return self.find_next_to_sign(start, end)
        traits = _traits_of(run)
        span = self._find(start, end, traits)
        if span is None:
            self._remember(run, traits)
        return span

    def find_next_to_sign(self, start: int, end: int) -> Span | None:
        """The credential at a run next to a sign that may join it to an escape or to the rest of a token."""
        view = self._view
        if start and view[start - 1] in ESCAPE_SIGNS:
            start = skip_escape(view, start)
        span = self._broken.find_at_run(start, end)
        if span is not None:
            return span
        run = view[start:end]
        if view.startswith(CONTINUATIONS, end):
            return self._find(start, end, _traits_of(run))
        if start and view[start - 1] in JOINING_BYTES:
            return self._find_in_joined(start, end)
        traits = self.known_traits.get(run)
        if traits is not None and traits != _IGNORED:
            return _find_in_context(view, start, end, traits) if traits else None
        traits = _traits_of(run)
        span = self._find(start, end, traits)
        # A name in lower case is checked only after an escape. Everywhere else it is ignored.
        if span is None and _HARMLESS_RUN.match(run) is None:
            self._remember(run, traits)
        return span

    def _find_in_joined(self, start: int, end: int) -> Span | None:
        """The credential at a run that is joined to the words before it, such as the rest of a URL."""
        words = self._view[start - _MAX_JOINED : end]
        if words in self._harmless_joined:
            return None
        span = self._find(start, end, _traits_of(self._view[start:end]))
        if span is None and self._is_harmless_joined(words, start, end):
            if len(self._harmless_joined) > _MAX_TRAITS:
                self._harmless_joined.clear()
            self._harmless_joined.add(words)
        return span

    def _is_harmless_joined(self, words: bytes, start: int, end: int) -> bool:
        """Whether a run and the words before it are the same in every context."""
        return (
            start >= _MAX_JOINED
            and len(words) < _MAX_CACHED_RUN
            and _WORD_BOUNDARY.search(words, 0, _MAX_JOINED) is not None
            and not _traits_of(self._view[start:end])
            and not may_be_encoded(self._view, start)
        )

    def _find_at_hex(self, start: int, end: int) -> Span | None:
        """The credential of which a run of hex is a piece, that it is by the words before it, or that it encodes."""
        view = self._view
        span = self._broken.find_at_run(start, end)
        if span is None and can_be_assigned(view, start, end):
            span = (
                find_assigned_run(view, start, end)
                or _find_service_argument(view, start, end)
                or find_random_hex(view, start, end)
            )
        return self._find_encoded_at(start, end) if span is None else span

    def _find(self, start: int, end: int, traits: int) -> Span | None:
        """The credential that a run is, starts with or encodes."""
        span = find_token(self._view, start, end)
        if span is None and traits:
            span = _find_in_context(self._view, start, end, traits)
        return self._find_encoded_at(start, end) if span is None else span

    def _find_encoded_at(self, start: int, end: int) -> Span | None:
        """The credential in the text that a run encodes."""
        if self._find_encoded is None or not may_be_encoded(self._view, start):
            return None
        return self._find_encoded(self._view, start, end)

    def _remember(self, run: bytes, traits: int) -> None:
        if len(run) < _MAX_CACHED_RUN:
            if len(self.known_traits) > _MAX_TRAITS:
                self.known_traits.clear()
            self.known_traits[run] = traits


def _is_signature(view: bytes, start: int, end: int) -> bool:
    """Whether a run is the signature of a thinking block, which is long and encodes no text."""
    return (
        view.endswith(_SIGNATURE_NAMES, 0, start) and only_base64(view, start, end) and not may_be_encoded(view, start)
    )


_SIGNATURE_NAMES = (b'"signature":"', b'"signature": "')


def _traits_of(run: bytes) -> int:
    """What may make a run a secret, by its characters. Most have no digit, and so no traits."""
    if _DIGIT.search(run) is None:
        return 0
    traits = _CAN_BE_ASSIGNED if run[0] not in _PATH_STARTS else 0
    return traits | _LOOKS_RANDOM if is_random_run(run) else traits


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
_DIGIT = compile_lazily(rb"[0-9]")
_UPPER = compile_lazily(rb"[A-Z]")
_ASSIGNMENT_SIGNS = b"=:>,"
_BETWEEN = b" \t\"'`\\"
# The two bytes before a value: an assignment sign, or a blank or quote that may follow one.
_MAY_FOLLOW_NAME = frozenset(
    bytes((first, last))
    for last in b"\"'`=: >,\t"
    for first in (range(256) if last in _ASSIGNMENT_SIGNS else _ASSIGNMENT_SIGNS + _BETWEEN)
)
_ASSIGNED_NAME_BACKWARDS = compile_lazily(rb"[ \t\"'`\\]*+[=:>,][ \t\"'`\\)\]=:>,]*+([A-Za-z0-9_.-]*+)")
_VALUE = compile_lazily(rb"[A-Za-z0-9_+/=.~%-]{20,512}")
_VALUE_ENDS = frozenset(b"\"'`\\ \t\r\n,;)}]<&|")
# Values with these names are long and look random, but are not secret.
_HARMLESS_NAMES = word_set(
    "id ids uuid guid hash hashes sha md digest checksum integrity signature commit etag data content"
    " cursor request message parent leaf prompt slug version url uri image fingerprint blob tree rev"
    " revision src href file path name class classname svg d base body text resolved sum ref build icon"
    " thumbnail buffer snapshot source map model type title label description fixture expected actual diff"
    " patch encoded output input result line x y seed etag cid did tag digest256 sha256 sha1 sha512 nonce"
    " alg kid thumbprint publickey modulus address tx block chunk asset bundle"
)

_DIGEST_NAME = compile_lazily(r"(?i)(?:.*[_.-])?(?:sha-?[0-9]{1,3}|md5|h1|crc32c?|blake[23][a-z]?|integrity|etag)")

_Services = tuple[tuple[re.Pattern[str], str], ...]


def can_be_assigned(view: bytes, start: int, end: int) -> bool:
    """Whether a run can be an assigned value: it is not a path and has a digit."""
    return view[start] not in _PATH_STARTS and _DIGIT.search(view, start, end) is not None


def find_assigned_run(view: bytes, start: int, end: int) -> Span | None:
    """The credential at a run by the name it is assigned to: that of a service, or a random value of another name.

    Call this only if `can_be_assigned`.
    """
    if not start or (start > 1 and view[start - 2 : start] not in _MAY_FOLLOW_NAME):
        return None
    assignment = _ASSIGNED_NAME_BACKWARDS.match(view[max(0, start - 64) : start][::-1])
    if assignment is None:
        return None
    services, harmless = classify_name(assignment[1])
    # Nearly every name is harmless, so the check for ids comes last.
    if (harmless and not services) or view.endswith(_ID_PREFIXES, 0, start):
        return None
    return _check_value(view, start, end, services, harmless=harmless)


# A program or function whose name is that of a service, such as `snyk auth …` and `algoliasearch("…", "…")`.
_SERVICE_CALL = compile_lazily(
    rb"([A-Za-z]{4,24})(?: (?:auth|login|token|init)[ ]\\*[\"']?|\((?:\\*[\"'][^\"'()\n]{0,40}[\"'], ?)?\\*[\"'])\Z"
)
_BEFORE_ARGUMENT = frozenset(b" \"'")
# What precedes the quote of the argument. Few words end like this, and a search takes longer.
_SERVICE_CALL_ENDS = (b"auth ", b"login ", b"token ", b"init ", b"(", b",", b", ")


def _find_service_argument(view: bytes, start: int, end: int) -> Span | None:
    """The credential that a run is by the program or function that it is an argument of."""
    if not start or view[start - 1] not in _BEFORE_ARGUMENT:
        return None
    if not view[max(0, start - 80) : start].rstrip(b"\\\"'").endswith(_SERVICE_CALL_ENDS):
        return None
    call = _SERVICE_CALL.search(view, max(0, start - 80), start)
    value = view[start:end].decode()
    for pattern, kind in classify_name(call[1][::-1])[0] if call else ():
        if pattern.fullmatch(value):
            return Span(start, end, kind)
    return None


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


@lru_cache(maxsize=4096)
def classify_name(backwards: bytes) -> tuple[_Services, bool]:
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
