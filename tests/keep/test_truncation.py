"""A transcript that was cut off and gone on with, again and again: every entry is in what is put together, once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.keep.stores import home_with, kept, lines, transcript
from tests.profiles import scale_examples

from threadline.keep import Catalogue, Store, Version
from threadline.keep.truncation import join_lost_parts


def _versions(folder: Path, texts: list[bytes]) -> tuple[Catalogue, list[Version]]:
    """What a keep has of a transcript that was kept in each of these states."""
    store = Store.make(folder / "keep")
    for text in texts:
        kept(store, home_with(folder / "home", {transcript(1): text}))
    catalogue = Catalogue(store)
    (versions,) = catalogue.versions.values()
    return catalogue, versions


def _ids(text: bytes) -> Iterator[str]:
    """The ids of the entries that are whole."""
    for line in text.split(b"\n")[:-1]:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if "uuid" in told:
            yield told["uuid"]


def _life(random: Random) -> Iterator[bytes]:
    """A transcript that grows, and is cut off now and then: to nothing, at the end of a line, or in the middle."""
    text, number = b"", 0
    for _day in range(random.randrange(2, 8)):
        if random.random() < 0.4:
            rows = text.splitlines(keepends=True)
            ends = [0, len(b"".join(rows[: random.randrange(len(rows) + 1)])), random.randrange(len(text) + 1)]
            text = text[: random.choice(ends)]
        if random.random() < 0.8 or not text:
            for _line in range(random.randrange(1, 6)):
                number += 1
                named = b'{"type":"user","uuid":"u%d"}\n' % number
                text += random.choice((named, named, b'{"type":"mode"}\n', b'{"type":"title","t":%d}\n' % number))
        yield text


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(scale_examples(60)))
def test_every_entry_is_there_once(tmp_path: Path, seed: int) -> None:
    """Whatever a cut took stands where it stood, as often as it was cut; and nothing is there twice."""
    texts = list(_life(Random(seed)))  # noqa: S311 - seeded, so that a failure comes again
    catalogue, versions = _versions(tmp_path, texts)
    whole = join_lost_parts(catalogue, versions)
    data = b"".join(catalogue.data(whole))
    assert len(data) == whole.size
    assert Counter(_ids(data)) == dict.fromkeys((id_ for text in texts for id_ in _ids(text)), 1)


@pytest.mark.parametrize(
    "after", [b'{"type":"last-prompt","lastPrompt":"x"}\n', b"\0" * 4096, b'{"type":"us{"a":1}\n', b"\n"]
)
def test_what_a_crash_leaves_is_no_edit(tmp_path: Path, after: bytes) -> None:
    """A transcript of which only a title, zeros or half a line is left was cut off, and nobody wanted that."""
    catalogue, versions = _versions(tmp_path, [lines(1, 20), after])
    assert lines(1, 20) in b"".join(catalogue.data(join_lost_parts(catalogue, versions)))


@pytest.mark.parametrize("after", [b"{}\n", b"[]\n", b'"gone"\n'])
def test_what_is_no_transcript_any_more_was_rewritten(tmp_path: Path, after: bytes) -> None:
    """Where somebody put something else in its place, that is what is given."""
    catalogue, versions = _versions(tmp_path, [lines(1, 20), after])
    assert b"".join(catalogue.data(join_lost_parts(catalogue, versions))) == after


def test_what_is_written_again_and_again_stays_where_it_was(tmp_path: Path) -> None:
    """Titles and modes are the same line many times; that one of them is there does not mean that all are."""
    mode, entries = b'{"type":"mode"}\n', [b'{"type":"user","uuid":"u%d"}\n' % number for number in range(4)]
    first = mode + entries[0] + mode + entries[1]
    for number, rest in enumerate((b"", mode + entries[0])):
        texts = [first, rest, rest + entries[2] + mode + entries[3]]
        catalogue, versions = _versions(tmp_path / str(number), texts)
        told = b"".join(catalogue.data(join_lost_parts(catalogue, versions)))
        assert told == first + entries[2] + mode + entries[3]
