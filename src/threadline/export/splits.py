"""Divide sessions into the splits of a data set, so that no conversation is in two of them.

A session forms a group with its forks, resumed copies and continuations. A whole group is in one split, which depends
only on a hash of the group's oldest session, so it is the same in each export.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from threadline.errors import BadQuery
from threadline.model.entries import AssistantEntry, ChainEntry, Entry, UserEntry
from threadline.model.places import SessionId
from threadline.model.session import conversation_time
from threadline.model.times import time_range
from threadline.model.titles import NO_LINKS, SummaryLinks
from threadline.parse import entries
from threadline.thread import detect_continuations
from threadline.union_find import UnionFind

TRAIN = "train"
_FIRST_ENTRIES = 40
_FIRST_TEXTS = 3
_MIN_TEXT = 20
_RESOLUTION = 10_000


def parse_splits(values: Iterable[str]) -> dict[str, float]:
    """The share of each split in percent, by name; `train` gets the rest.

    >>> parse_splits(["test=10", "validation=5"])
    {'test': 10.0, 'validation': 5.0, 'train': 85.0}

    Raises:
        BadQuery: a value is not a name and a percentage, or there is nothing left for `train`.
    """
    shares: dict[str, float] = {}
    for value in values:
        name, _, share = value.partition("=")
        try:
            percent = float(share)
        except ValueError:
            percent = -1
        if not (name.isidentifier() and name.isascii()) or name == TRAIN or name in shares or not 0 < percent < 100:  # noqa: PLR2004 - percent
            raise BadQuery(f"--split {value!r} is not a name and a percentage. Example: --split test=10.")
        shares[name] = percent
    rest = 100 - sum(shares.values())
    if rest <= 0:
        raise BadQuery("The splits must leave something for train: their sum must be less than 100.")
    return {**shares, TRAIN: rest}


def choose_split(group: str, shares: Mapping[str, float]) -> str:
    """The split of a group."""
    position = int(group[:8], 16) % _RESOLUTION
    limit = 0.0
    for name, percent in shares.items():
        limit += percent * _RESOLUTION / 100
        if position < limit:
            return name
    return TRAIN


def group_sessions(mains: Iterable[Path], links: SummaryLinks = NO_LINKS) -> dict[Path, str]:
    """The group of each session, by its main transcript: a hash that all sessions of a group have in common."""
    sessions = list(mains)
    groups = UnionFind(len(sessions))
    owners: dict[int, int] = {}
    ages: list[tuple[str, str]] = []
    for number, main in enumerate(sessions):
        rows = tuple(entries(main))
        started, _ended = time_range(map(conversation_time, rows))
        ages.append((started.isoformat() if started is not None else "9999", main.stem))
        for key in _identifying_keys(main, rows, links):
            groups.union(number, owners.setdefault(hash(key), number))
    oldest: dict[int, tuple[str, str]] = {}
    for number, age in enumerate(ages):
        root = groups.find(number)
        oldest[root] = min(age, oldest.get(root, age))
    return {
        main: hashlib.sha256(oldest[groups.find(number)][1].encode(errors="replace")).hexdigest()[:16]
        for number, main in enumerate(sessions)
    }


def _identifying_keys(main: Path, rows: tuple[Entry, ...], links: SummaryLinks) -> Iterator[tuple[str, str]]:
    """Yield keys of a session. Two sessions that share a key are in the same group."""
    yield "session", main.stem
    for continuation in detect_continuations(SessionId(main.stem), rows, (), links):
        if continuation.session is not None:
            yield "session", continuation.session
    # A copy begins like its original, or at least repeats its messages.
    chain = (row for row in rows if isinstance(row, ChainEntry) and row.uuid)
    yield from (("entry", str(row.uuid)) for row in islice(chain, _FIRST_ENTRIES))
    replies = [row for row in rows if isinstance(row, AssistantEntry) and row.message is not None]
    yield from (("message", row.message.id) for row in replies if row.message is not None and row.message.id)
    # A copy with new ids still has the same texts.
    prompt = next((row.text for row in rows if isinstance(row, UserEntry) and row.text and not row.is_meta), "")
    texts = (row.text for row in replies if len(row.text) >= _MIN_TEXT and not row.is_synthetic)
    yield from (("text", f"{prompt}\0{text}") for text in islice(texts, _FIRST_TEXTS))
