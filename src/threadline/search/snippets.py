"""Cut the text around a match, and mark the parts to highlight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import NamedTuple
from unicodedata import normalize

from threadline.index import strip_escapes
from threadline.model.hits import SNIPPET_LENGTH
from threadline.search.query import TEXT_FIELDS, Phrase, Query, Regex, expand, positive_terms
from threadline.search.ranking import WEIGHTS
from threadline.search.regex import get_finder

_FIELD_OF_COLUMN = {column: field for field, column in TEXT_FIELDS.items()}
_CHARS_BEFORE = 50
_MAX_SPANS = 200
_FEW = 40
_FIRST_CHARS = 100_000
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_COMBINING_MARKS = "[\u0300-\u036f]*"


class Snippet(NamedTuple):
    """A part of a field's text on one line, with the start and end of each match in it.

    `field` is the field's name in the query language.
    """

    field: str | None
    text: str
    highlights: tuple[tuple[int, int], ...]


class _Span(NamedTuple):
    start: int
    end: int
    term: int


def snippet(query: Query, texts: Mapping[str, str]) -> Snippet:
    """The part of an entry's texts, given by column, that shows best why it was found."""
    terms = _query_terms(query)
    best: tuple[tuple[int, float], str, list[_Span]] | None = None
    for column in sorted(texts, key=lambda column: -WEIGHTS[column]):
        spans = list(_find_spans(terms, column, strip_escapes(texts[column])))
        rank = (len({span.term for span in spans}), WEIGHTS[column])
        if spans and (best is None or rank > best[0]):
            best = rank, column, spans
    if best is None:
        if not texts:
            return Snippet(None, "", ())
        column = max(texts, key=lambda column: WEIGHTS[column])
        return Snippet(_FIELD_OF_COLUMN[column], *_cut_around(strip_escapes(texts[column]), []))
    _rank, column, spans = best
    return Snippet(_FIELD_OF_COLUMN[column], *_cut_around(strip_escapes(texts[column]), _merge_spans(spans)))


@lru_cache(maxsize=16)
def _query_terms(query: Query) -> tuple[Phrase | Regex, ...]:
    return tuple(positive_terms(expand(query)))


def _find_spans(terms: Iterable[Phrase | Regex], column: str, text: str) -> Iterator[_Span]:
    lowered: str | None = text.lower()
    if lowered is not None and len(lowered) != len(text):  # the lower case of a few letters is longer
        lowered = None
    rare: list[_Span] = []
    frequent: list[tuple[int, str, re.Pattern[str]]] = []
    for number, term in enumerate(terms):
        if isinstance(term, Regex):
            is_searched = term.field is None or TEXT_FIELDS[term.field] == column
            span = get_finder(term).first(text) if is_searched else None
            spans = [_Span(*span, number)] if span is not None else []
            rare += spans
            yield from spans
        elif term.column in (None, column):
            searched, pattern = _choose_pattern(text, lowered, term)
            if pattern is None:
                continue
            # What matters is usually near the beginning. The rest is searched only if nothing is found there.
            end = _FIRST_CHARS if len(text) > _FIRST_CHARS and pattern.search(searched, 0, _FIRST_CHARS) else len(text)
            spans = [_Span(*match.span(), number) for match in islice(pattern.finditer(searched, 0, end), _MAX_SPANS)]
            if len(spans) == _MAX_SPANS:
                frequent.append((number, searched, pattern))
            else:
                rare += spans
            yield from spans
    # A frequent word is worth showing next to a rare one.
    for number, searched, pattern in frequent:
        for near in rare[:_FEW]:
            for match in pattern.finditer(searched, max(0, near.start - _CHARS_BEFORE), near.end + SNIPPET_LENGTH):
                yield _Span(*match.span(), number)


def _choose_pattern(text: str, lowered: str | None, phrase: Phrase) -> tuple[str, re.Pattern[str] | None]:
    """The text to search for a phrase, and the pattern: plain letters, or if that finds nothing, with accents."""
    is_plain = all(map(str.isascii, phrase.tokens))
    if lowered is not None and is_plain and all(token in lowered for token in phrase.tokens):
        pattern = _plain_pattern(phrase)
        if text.isascii() or pattern.search(lowered):
            return lowered, pattern
    return text, None if text.isascii() else _pattern(phrase)


@lru_cache(maxsize=64)
def _plain_pattern(phrase: Phrase) -> re.Pattern[str]:
    """The pattern of a phrase for lower-case plain text. It begins with a literal, which is found quickly."""
    first, *others = map(re.escape, phrase.tokens)
    pattern = rf"{first}(?<![^\W_]{first})" + "".join(rf"[\W_]+{other}" for other in others)
    return re.compile(pattern + (r"[^\W_]*" if phrase.prefix else r"(?![^\W_])"))


@lru_cache(maxsize=64)
def _pattern(phrase: Phrase) -> re.Pattern[str]:
    """The pattern of a phrase with any accents, and any signs between its tokens: close enough for a snippet."""
    body = ""
    for at, token in enumerate(phrase.tokens):
        if at:
            body += r"[\W_]+" if token.isascii() and phrase.tokens[at - 1].isascii() else r"[\W_]*"
        body += "".join(map(_letter_pattern, token))
    before = r"(?<![^\W_])" if _is_spaced(phrase.tokens[0][:1]) else ""
    after = r"(?![^\W_])" if _is_spaced(phrase.tokens[-1][-1:]) and not phrase.prefix else ""
    whole = f"{before}{body}{after}" if not phrase.prefix else rf"{before}{body}[^\W_]*"
    # Next to a script without spaces, a word has no boundary that a pattern could recognize.
    return re.compile(f"{whole}|{body}" if not phrase.prefix and _is_mixed(phrase) else whole, re.IGNORECASE)


def _is_mixed(phrase: Phrase) -> bool:
    return len({_is_spaced(token[:1]) for token in phrase.tokens}) > 1


def _is_spaced(character: str) -> bool:
    return character < "\u0e00"


def _letter_pattern(character: str) -> str:
    forms = _accented_letters().get(character)
    return f"[{character}{forms}]{_COMBINING_MARKS}" if forms else re.escape(character)


@lru_cache(maxsize=1)
def _accented_letters() -> dict[str, str]:
    """The accented letters that each plain letter matches."""
    accented: dict[str, str] = {}
    for code in range(0xC0, 0x250):
        base = normalize("NFD", chr(code))[0].lower()
        if base.isascii() and base.isalpha():
            accented[base] = accented.get(base, "") + chr(code)
    return {letter: accented.get(letter, "") + letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}


def _merge_spans(spans: list[_Span]) -> list[_Span]:
    """The spans from the place with the most terms on, in order; overlapping ones are merged."""
    spans = sorted(set(spans))
    best = max(
        (
            (len({span.term for span in spans[at : at + _FEW] if span.end - first.start <= SNIPPET_LENGTH}), -at)
            for at, first in enumerate(spans)
        ),
        default=(0, 0),
    )
    merged: list[_Span] = []
    for span in spans[-best[1] :]:
        if merged and span.start < merged[-1].end:
            merged[-1] = _Span(merged[-1].start, max(merged[-1].end, span.end), merged[-1].term)
        else:
            merged.append(span)
    return merged


def _cut_around(text: str, spans: list[_Span]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text around the first span, on one line."""
    start = _word_edge(text, spans[0].start - _CHARS_BEFORE, spans[0].start) if spans else 0
    end = min(len(text), start + SNIPPET_LENGTH)
    shown = "…" if start else ""
    highlights: list[tuple[int, int]] = []
    at = start
    for span in spans:
        if span.start >= end:
            break
        shown = _append_flat(shown, text[at : span.start])
        first = len(shown)
        shown = _append_flat(shown, text[span.start : min(span.end, end)])
        if len(shown) > first:
            highlights.append((first, len(shown)))
        at = min(span.end, end)
    shown = _append_flat(shown, text[at:end])
    return (f"{shown}…" if end < len(text) else shown.rstrip()), tuple(highlights)


def _word_edge(text: str, start: int, before: int) -> int:
    """Where to begin: after the next space, if there is one before the match."""
    if start <= 0:
        return 0
    space = _SPACE.search(text, start, before)
    return space.end() if space is not None and space.end() <= before else start


def _append_flat(shown: str, more: str) -> str:
    flat = _SPACE.sub(" ", more)
    return shown + (flat.lstrip() if not shown or shown.endswith(" ") else flat)
