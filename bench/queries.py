"""Queries to measure with: words, phrases and expressions of a home's own text, from rare to common."""

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
_NOT_SAID = {"id", "tool_use_id", "signature", "data", "type", "media_type"}


class Asked(NamedTuple):
    """A query: its kind, how common its words are, and the words, piece or expression itself."""

    kind: str
    band: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it, as one would say it."""
        return " ".join(self.parts)


def drawn(home: Path, count: int) -> list[Asked]:
    """So many queries of each kind, fewer where a home has few words; the same home gives the same ones."""
    chance = random.Random(SEED)
    texts = list(_texts(home, chance))
    words = _by_band(texts)
    found = []
    for kind in KINDS:
        taken: set[tuple[str, ...]] = set()
        for _try in range(TRIES * count):
            if len(taken) == count:
                break
            band = BANDS[len(taken) % len(BANDS)]
            word, at = chance.choice(words[band])
            parts = _asked(kind, word, texts[at], chance)
            if parts and parts not in taken:
                taken.add(parts)
                found.append(Asked(kind, band, parts))
    return found


def digest(queries: list[Asked]) -> str:
    """What tells one list of queries from another."""
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
            text = "\n".join(_said(message.get("content"))) if isinstance(message, dict) else ""
            if text:
                yield text


def _said(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _said(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name not in _NOT_SAID:
                yield from _said(one)


def _by_band(texts: list[str]) -> dict[str, list[tuple[str, int]]]:
    """Words, each with a text that has it, by the share of texts that do."""
    seen: Counter[str] = Counter()
    last: dict[str, int] = {}
    for at, text in enumerate(texts):
        words = set(_WORD.findall(text))
        seen.update({word.lower() for word in words})
        last.update({word.lower(): at for word in words})
    bands: dict[str, list[tuple[str, int]]] = {band: [] for band in BANDS}
    for word, count in sorted(seen.items()):
        share = count / len(texts)
        band = "rare" if share <= RARE or count == 1 else "common" if share >= COMMON else "middling"
        bands[band].append((word, last[word]))
    return bands


def _asked(kind: str, word: str, text: str, chance: random.Random) -> tuple[str, ...]:
    """The query that is made of a word and the text it stands in; nothing where that text has not enough."""
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
    return (_piece(pair[0], chance) if kind == "substring" else _expression(pair[1], pair[2], chance),)


def _piece(text: str, chance: random.Random) -> str:
    """A few characters from the middle, across words or within one."""
    start = chance.randint(1, max(1, len(text) - SHORT - 2))
    return text[start : start + chance.randint(SHORT, SHORT + 4)].strip().lower()


def _expression(first: str, second: str, chance: random.Random) -> str:
    """An expression that Python, Go and Rust read alike."""
    return chance.choice(
        (
            rf"\b{first}[ _-]{second}\b",
            rf"{first}\s+\w+",
            rf"({first}|{second})[a-z]* [a-z]+ed\b",
            rf"\b{first[:2]}[a-z]*{first[-1]} {second}",
            rf"{first} [a-z]{{{len(second)}}}\b",
        )
    ).lower()
