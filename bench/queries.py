"""Sample queries from a home's own text: words, phrases, prefixes and expressions, from rare to common."""

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
_IGNORED_FIELDS = {"id", "tool_use_id", "signature", "data", "type", "media_type"}


class Query(NamedTuple):
    """A query: its kind, how common its words are, and its words, substring or expression."""

    kind: str
    band: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The parts, joined by spaces."""
        return " ".join(self.parts)


def sample_queries(home: Path, count: int) -> list[Query]:
    """Return `count` queries of each kind, or fewer if the home has few words. The same home gives the same queries."""
    chance = random.Random(SEED)
    texts = list(_texts(home, chance))
    words = _by_band(texts)
    queries = []
    for kind in KINDS:
        used: set[tuple[str, ...]] = set()
        for _try in range(TRIES * count):
            if len(used) == count:
                break
            band = BANDS[len(used) % len(BANDS)]
            word, at = chance.choice(words[band])
            parts = _query_parts(kind, word, texts[at], chance)
            if parts and parts not in used:
                used.add(parts)
                queries.append(Query(kind, band, parts))
    return queries


def digest(queries: list[Query]) -> str:
    """Return a short hash that identifies a list of queries."""
    return sha256(json.dumps(queries).encode()).hexdigest()[:12]


def _texts(home: Path, chance: random.Random) -> Iterator[str]:
    paths = transcripts(home)
    for path in sorted(chance.sample(paths, min(FILES, len(paths)))):
        lines = path.read_bytes().splitlines()
        for line in chance.sample(lines, min(LINES, len(lines))):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            message = row.get("message")
            text = "\n".join(_strings(message.get("content"))) if isinstance(message, dict) else ""
            if text:
                yield text


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in the content of a message, except ids and binary data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in _IGNORED_FIELDS:
                yield from _strings(item)


def _by_band(texts: list[str]) -> dict[str, list[tuple[str, int]]]:
    """Group words by how many texts have them, each with the number of the last such text."""
    counts: Counter[str] = Counter()
    last: dict[str, int] = {}
    for at, text in enumerate(texts):
        words = set(_WORD.findall(text))
        counts.update({word.lower() for word in words})
        last.update({word.lower(): at for word in words})
    bands: dict[str, list[tuple[str, int]]] = {band: [] for band in BANDS}
    for word, count in sorted(counts.items()):
        share = count / len(texts)
        band = "rare" if share <= RARE or count == 1 else "common" if share >= COMMON else "middling"
        bands[band].append((word, last[word]))
    return bands


def _query_parts(kind: str, word: str, text: str, chance: random.Random) -> tuple[str, ...]:
    """Build a query from a word and a text that contains it. Return nothing if the text is too short."""
    if kind in ("word", "prefix"):
        return (word if kind == "word" else word[: chance.randint(3, 6)],)
    if kind == "words":
        others = sorted({other.lower() for other in _WORD.findall(text)} - {word})
        return (word, *chance.sample(others, 2)) if len(others) > 1 else ()
    pair = re.search(rf"(?i)(?<![\w\\])({word}) ([a-z]{{3,20}})(?!\w)", text)
    if pair is None:
        return ()
    if kind == "phrase":
        return pair[1].lower(), pair[2].lower()
    return (_substring(pair[0], chance) if kind == "substring" else _regex(pair[1], pair[2], chance),)


def _substring(text: str, chance: random.Random) -> str:
    """Return a few characters from the middle, possibly across words."""
    start = chance.randint(1, max(1, len(text) - SHORT - 2))
    return text[start : start + chance.randint(SHORT, SHORT + 4)].strip().lower()


def _regex(first: str, second: str, chance: random.Random) -> str:
    """Return an expression that means the same in Python, Go and Rust."""
    return chance.choice(
        (
            rf"\b{first}[ _-]{second}\b",
            rf"{first}\s+\w+",
            rf"({first}|{second})[a-z]* [a-z]+ed\b",
            rf"\b{first[:2]}[a-z]*{first[-1]} {second}",
            rf"{first} [a-z]{{{len(second)}}}\b",
        )
    ).lower()
