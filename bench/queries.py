"""Draw search queries from the text of a home: words, phrases and regular expressions, from rare to common."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bench.homes import transcripts

KINDS = ("word", "words", "phrase", "prefix", "substring", "regex")
BANDS = ("rare", "middling", "common")
SEED = 5
FILES = 400
LINES = 100
COMMON = 0.02  # of the entries
RARE = 0.0005
SHORT = 5
TRIES = 100
_WORD = re.compile(r"(?<![\w\\])[A-Za-z]{3,20}(?!\w)")
_NOT_TEXT = {"id", "tool_use_id", "signature", "data", "type", "media_type"}


class SearchQuery(NamedTuple):
    """A query: its kind, how common its words are, and its words, or the substring or regular expression."""

    kind: str
    band: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The parts as one text."""
        return " ".join(self.parts)


def draw_queries(home: Path, count: int) -> list[SearchQuery]:
    """Up to `count` queries of each kind, fewer if the home has few words. The same home gives the same queries."""
    rng = random.Random(SEED)
    texts = list(_texts(home, rng))
    words = _by_band(texts)
    queries = []
    for kind in KINDS:
        drawn: set[tuple[str, ...]] = set()
        for _try in range(TRIES * count):
            if len(drawn) == count:
                break
            band = BANDS[len(drawn) % len(BANDS)]
            word, at = rng.choice(words[band])
            parts = _query_parts(kind, word, texts[at], rng)
            if parts and parts not in drawn:
                drawn.add(parts)
                queries.append(SearchQuery(kind, band, parts))
    return queries


def queries_digest(queries: list[SearchQuery]) -> str:
    """A short hash that identifies a list of queries."""
    return sha256(json.dumps(queries).encode()).hexdigest()[:12]


def _texts(home: Path, rng: random.Random) -> Iterator[str]:
    paths = transcripts(home)
    for path in sorted(rng.sample(paths, min(FILES, len(paths)))):
        lines = path.read_bytes().splitlines()
        for line in rng.sample(lines, min(LINES, len(lines))):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            message = row.get("message")
            text = "\n".join(_texts_in(message.get("content"))) if isinstance(message, dict) else ""
            if text:
                yield text


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in _NOT_TEXT:
                yield from _texts_in(item)


def _by_band(texts: list[str]) -> dict[str, list[tuple[str, int]]]:
    """Words by the share of texts that contain them, each with the number of such a text."""
    counts: Counter[str] = Counter()
    last_text: dict[str, int] = {}
    for at, text in enumerate(texts):
        words = set(_WORD.findall(text))
        counts.update({word.lower() for word in words})
        last_text.update({word.lower(): at for word in words})
    bands: dict[str, list[tuple[str, int]]] = {band: [] for band in BANDS}
    for word, count in sorted(counts.items()):
        share = count / len(texts)
        band = "rare" if share <= RARE or count == 1 else "common" if share >= COMMON else "middling"
        bands[band].append((word, last_text[word]))
    return bands


def _query_parts(kind: str, word: str, text: str, rng: random.Random) -> tuple[str, ...]:
    """The parts of a query, from a word and the text it occurs in; none if the text has too few words."""
    if kind in ("word", "prefix"):
        return (word if kind == "word" else word[: rng.randint(3, 6)],)
    if kind == "words":
        others = sorted({other.lower() for other in _WORD.findall(text)} - {word})
        return (word, *rng.sample(others, 2)) if len(others) > 1 else ()
    pair = re.search(rf"(?i)(?<![\w\\])({word}) ([a-z]{{3,20}})(?!\w)", text)
    if pair is None:
        return ()
    if kind == "phrase":
        return pair[1].lower(), pair[2].lower()
    return (_substring(pair[0], rng) if kind == "substring" else _regex(pair[1], pair[2], rng),)


def _substring(text: str, rng: random.Random) -> str:
    """A few characters from the middle of a text, within a word or across two."""
    start = rng.randint(1, max(1, len(text) - SHORT - 2))
    return text[start : start + rng.randint(SHORT, SHORT + 4)].strip().lower()


def _regex(first: str, second: str, rng: random.Random) -> str:
    """A regular expression that has the same meaning in Python, Go and Rust."""
    return rng.choice(
        (
            rf"\b{first}[ _-]{second}\b",
            rf"{first}\s+\w+",
            rf"({first}|{second})[a-z]* [a-z]+ed\b",
            rf"\b{first[:2]}[a-z]*{first[-1]} {second}",
            rf"{first} [a-z]{{{len(second)}}}\b",
        )
    ).lower()
