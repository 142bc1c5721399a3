"""Cut the text around a match, and say which parts of it to highlight."""

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
    """A piece of a field's text on one line; `highlights` say from where to where it was asked for.

    The field has the name that it is asked for by.
    """

    field: str | None
    text: str
    highlights: tuple[tuple[int, int], ...]


class _Span(NamedTuple):
    start: int
    end: int
    which: int


def snippet(query: Query, said: Mapping[str, str]) -> Snippet:
    """Of what an entry says by field, the piece that shows best why it was found."""
    asked = _query_terms(query)
    best: tuple[tuple[int, float], str, list[_Span]] | None = None
    for name in sorted(said, key=lambda name: -WEIGHTS[name]):
        found = list(_find_spans(asked, name, strip_escapes(said[name])))
        rank = (len({one.which for one in found}), WEIGHTS[name])
        if found and (best is None or rank > best[0]):
            best = rank, name, found
    if best is None:
        if not said:
            return Snippet(None, "", ())
        name = max(said, key=lambda one: WEIGHTS[one])
        return Snippet(_FIELD_OF_COLUMN[name], *_cut_around(strip_escapes(said[name]), []))
    _rank, name, found = best
    return Snippet(_FIELD_OF_COLUMN[name], *_cut_around(strip_escapes(said[name]), _merge_spans(found)))


@lru_cache(maxsize=16)
def _query_terms(query: Query) -> tuple[Phrase | Regex, ...]:
    return tuple(positive_terms(expand(query)))


def _find_spans(asked: Iterable[Phrase | Regex], column: str, text: str) -> Iterator[_Span]:
    low: str | None = text.lower()
    if low is not None and len(low) != len(text):  # a letter or two become longer
        low = None
    rare: list[_Span] = []
    frequent: list[tuple[int, str, re.Pattern[str]]] = []
    for which, phrase in enumerate(asked):
        if isinstance(phrase, Regex):
            found = (
                get_finder(phrase).first(text) if phrase.field is None or TEXT_FIELDS[phrase.field] == column else None
            )
            some = [_Span(*found, which)] if found is not None else []
            rare += some
            yield from some
        elif phrase.column in (None, column):
            seen, pattern = _looked_at(text, low, phrase)
            if pattern is None:
                continue
            # Most of what is said begins with what matters; only where that has nothing, the rest is looked through.
            end = _FIRST_CHARS if len(text) > _FIRST_CHARS and pattern.search(seen, 0, _FIRST_CHARS) else len(text)
            some = [_Span(*match.span(), which) for match in islice(pattern.finditer(seen, 0, end), _MAX_SPANS)]
            if len(some) == _MAX_SPANS:
                frequent.append((which, seen, pattern))
            else:
                rare += some
            yield from some
    # A word that stands everywhere is worth showing beside one that does not.
    for which, seen, pattern in frequent:
        for near in rare[:_FEW]:
            for match in pattern.finditer(seen, max(0, near.start - _CHARS_BEFORE), near.end + SNIPPET_LENGTH):
                yield _Span(*match.span(), which)


def _looked_at(text: str, low: str | None, phrase: Phrase) -> tuple[str, re.Pattern[str] | None]:
    """What a phrase is looked for in, and how: by its letters as they are, or if that finds nothing, with accents."""
    is_plain = all(map(str.isascii, phrase.tokens))
    if low is not None and is_plain and all(token in low for token in phrase.tokens):
        pattern = _plain_pattern(phrase)
        if text.isascii() or pattern.search(low):
            return low, pattern
    return text, None if text.isascii() else _pattern(phrase)


@lru_cache(maxsize=64)
def _plain_pattern(phrase: Phrase) -> re.Pattern[str]:
    """The same for text in small plain letters: it begins with a word that is spelt out, which is found at once."""
    first, *others = map(re.escape, phrase.tokens)
    made = rf"{first}(?<![^\W_]{first})" + "".join(rf"[\W_]+{other}" for other in others)
    return re.compile(made + (r"[^\W_]*" if phrase.prefix else r"(?![^\W_])"))


@lru_cache(maxsize=64)
def _pattern(phrase: Phrase) -> re.Pattern[str]:
    """An expression for tokens in a row, with whatever accents and signs between; near enough to be shown."""
    made = ""
    for at, token in enumerate(phrase.tokens):
        if at:
            made += r"[\W_]+" if token.isascii() and phrase.tokens[at - 1].isascii() else r"[\W_]*"
        made += "".join(map(_letter_pattern, token))
    before = r"(?<![^\W_])" if _is_spaced(phrase.tokens[0][:1]) else ""
    after = r"(?![^\W_])" if _is_spaced(phrase.tokens[-1][-1:]) and not phrase.prefix else ""
    whole = f"{before}{made}{after}" if not phrase.prefix else rf"{before}{made}[^\W_]*"
    # Next to a script without spaces, a word has no edge that an expression knows.
    return re.compile(f"{whole}|{made}" if not phrase.prefix and _is_mixed(phrase) else whole, re.IGNORECASE)


def _is_mixed(phrase: Phrase) -> bool:
    return len({_is_spaced(token[:1]) for token in phrase.tokens}) > 1


def _is_spaced(character: str) -> bool:
    return character < "\u0e00"


def _letter_pattern(character: str) -> str:
    forms = _accented_letters().get(character)
    return f"[{character}{forms}]{_COMBINING_MARKS}" if forms else re.escape(character)


@lru_cache(maxsize=1)
def _accented_letters() -> dict[str, str]:
    """The letters with accents that a plain letter finds."""
    found: dict[str, str] = {}
    for code in range(0xC0, 0x250):
        base = normalize("NFD", chr(code))[0].lower()
        if base.isascii() and base.isalpha():
            found[base] = found.get(base, "") + chr(code)
    return {letter: found.get(letter, "") + letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}


def _merge_spans(found: list[_Span]) -> list[_Span]:
    """Spans in order, those that overlap as one, around the place where most of what was asked for stands."""
    found = sorted(set(found))
    near = max(
        (
            (len({one.which for one in found[at : at + _FEW] if one.end - first.start <= SNIPPET_LENGTH}), -at)
            for at, first in enumerate(found)
        ),
        default=(0, 0),
    )
    merged: list[_Span] = []
    for one in found[-near[1] :]:
        if merged and one.start < merged[-1].end:
            merged[-1] = _Span(merged[-1].start, max(merged[-1].end, one.end), merged[-1].which)
        else:
            merged.append(one)
    return merged


def _cut_around(text: str, found: list[_Span]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text around the first span, on one line."""
    start = _word_edge(text, found[0].start - _CHARS_BEFORE, found[0].start) if found else 0
    end = min(len(text), start + SNIPPET_LENGTH)
    shown = "…" if start else ""
    highlights: list[tuple[int, int]] = []
    at = start
    for one in found:
        if one.start >= end:
            break
        shown = _append_flat(shown, text[at : one.start])
        first = len(shown)
        shown = _append_flat(shown, text[one.start : min(one.end, end)])
        if len(shown) > first:
            highlights.append((first, len(shown)))
        at = min(one.end, end)
    shown = _append_flat(shown, text[at:end])
    return (f"{shown}…" if end < len(text) else shown.rstrip()), tuple(highlights)


def _word_edge(text: str, wanted: int, before: int) -> int:
    """Where to begin: after a space, where one is near."""
    if wanted <= 0:
        return 0
    space = _SPACE.search(text, wanted, before)
    return space.end() if space is not None and space.end() <= before else wanted


def _append_flat(shown: str, more: str) -> str:
    flat = _SPACE.sub(" ", more)
    return shown + (flat.lstrip() if not shown or shown.endswith(" ") else flat)
