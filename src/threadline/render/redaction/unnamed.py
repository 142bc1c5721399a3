"""Runs of letters and digits that nothing gives away but what they are assigned to, or that they are random."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from threadline.render.redaction import plausible, rare
from threadline.render.redaction.naming import is_secret, services_named, words_of
from threadline.render.redaction.rare import Rare
from threadline.render.redaction.span import Span
from threadline.render.redaction.wordlist import words

# How ids of all kinds are set apart, in JSON and in JSON within JSON: nearly every run stands behind one of these.
_IDS = tuple(
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
_PATHS = frozenset(b"/.~")
_DIGIT = re.compile(rb"[0-9]")
_UPPER = re.compile(rb"[A-Z]")
_DELIMITERS = frozenset(b"\"'`=: >,\t")
_ASSIGNS = b"=:>,"
_AROUND = b" \t\"'`\\)]=:>,"
_NAME_BACKWARDS = re.compile(rb"[A-Za-z0-9_.-]*+")
_VALUE = re.compile(rb"[A-Za-z0-9_+/=.~%-]{20,512}")
_ENDS = frozenset(b"\"'`\\ \t\r\n,;)}]<&|")
_SHORT_VALUE = re.compile(rb"[A-Za-z0-9_:-]{10,32}(?![A-Za-z0-9_-])")
_SHORT_REST = rb"[a-z0-9_.-]{0,24}(?:\\*[\"'`])?[ \t]{0,4}(?:=>|:=|=|:|>)[ \t]{0,4}(?:\\*[\"'`])?"
# Services whose credentials are shorter than the runs that are looked at, each by a letter of its name that is rare.
_SHORT = tuple(
    (word, re.compile(name + _SHORT_REST))
    for word, name in (
        (rare.AIRTABLE, rb"b(?<=airtab)le"),
        (rare.CONTRIBSYS, rb"b(?<=contrib)sys"),
        (rare.DROPBOX, rb"x(?<=dropbox)"),
        (rare.LINKEDIN, rb"k(?<=link)edin"),
        (rare.CLOUDANT, rb"u(?<=clou)dant"),
        (rare.CONFLUENT, rb"u(?<=conflu)ent"),
        (rare.SUMO, rb"u(?<=su)mo"),
        (None, rb"asana"),
    )
)
# A value of such a name is long and looks random, and is no secret.
_HARMLESS = words(
    "id ids uuid guid hash hashes sha md digest checksum integrity signature commit etag data content"
    " cursor request message parent leaf prompt slug version url uri image fingerprint blob tree rev"
    " revision src href file path name class classname svg d base body text resolved sum ref build icon"
    " thumbnail buffer snapshot source map model type title label description fixture expected actual diff"
    " patch encoded output input result line x y seed etag cid did tag digest256 sha256 sha1 sha512 nonce"
    " alg kid thumbprint publickey modulus address tx block chunk asset bundle"
)

_Services = tuple[tuple[re.Pattern[str], str], ...]


def may_be_assigned(view: bytes, start: int, end: int) -> bool:
    """Whether a run can be a value by itself: no path, and with a digit."""
    return view[start] not in _PATHS and _DIGIT.search(view, start, end) is not None


def unnamed(view: bytes, start: int, end: int) -> Span | None:
    """The credential at a run by what it is assigned to: a service's own, or random under a name that says nothing.

    The run is one that may be assigned to something.
    """
    if not start or view[start - 1] not in _DELIMITERS:
        return None
    head = view[max(0, start - 64) : start].rstrip(b" \t\"'`\\")
    if not head or head[-1] not in _ASSIGNS:
        return None
    backwards = _NAME_BACKWARDS.match(head.rstrip(_AROUND)[::-1])
    services, harmless = _verdict(backwards[0] if backwards else b"")
    # Nearly every name says nothing; only of the others is it worth a look whether it is an id's.
    if (harmless and not services) or view.endswith(_IDS, 0, start):
        return None
    return _told(view, start, end, services, harmless=harmless)


def _told(view: bytes, start: int, end: int, services: _Services, *, harmless: bool) -> Span | None:
    found = _VALUE.match(view, start)
    stop = found.end() if found else end
    # What is random has letters of both cases, and names of fields, which come most often, have not.
    if not services and not _UPPER.search(view, start, stop):
        return None
    value = view[start:stop].decode().rstrip(".")
    for pattern, kind in services:
        if pattern.fullmatch(value):
            return Span(start, start + len(value), kind)
    if harmless or (stop < len(view) and view[stop] not in _ENDS) or not plausible.is_random(value):
        return None
    return Span(start, start + len(value), "random-value")


def short(view: bytes, low: bytes, seen: Rare) -> Iterator[Span]:
    """Credentials that are shorter than the runs that are looked at, by the name of their service."""
    for word, pattern in _SHORT:
        for found in pattern.finditer(low) if word is None or word in seen.words else ():
            value = _SHORT_VALUE.match(view, found.end())
            name = low[max(0, found.start() - 6) : found.end()]
            for one, kind in _verdict(name[::-1])[0] if value else ():
                if value and one.fullmatch(value[0].decode()):
                    yield Span(*value.span(), kind)


@lru_cache(maxsize=4096)
def _verdict(backwards: bytes) -> tuple[_Services, bool]:
    """The forms that values of services that the name mentions have; and whether a random value says nothing.

    The name is given as it is found, from its end to its start.
    """
    name = backwards[::-1].decode("latin-1")
    services = tuple((re.compile(service.pattern), service.kind) for service in services_named(name))
    words = words_of(name)
    if name and name.upper() == name:
        return services, False
    harmless = (
        not words or bool(_HARMLESS & set(words)) or any(word.endswith(("uuid", "sha", "hash")) for word in words)
    )
    return services, harmless and not is_secret(name)
