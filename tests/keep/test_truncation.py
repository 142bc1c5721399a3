"""A transcript that was truncated and continued several times: the joined version has every entry once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.keep.stores import keep_home, lines, transcript_path, write_home
from tests.profiles import scale_examples

from threadline.keep import Catalogue, Store, Version
from threadline.keep.truncation import join_lost_parts


def keep_versions(folder: Path, texts: list[bytes]) -> tuple[Catalogue, list[Version]]:
    """The catalogue and versions of a transcript that was kept in each of these states."""
    store = Store.make(folder / "keep")
    for text in texts:
        keep_home(store, write_home(folder / "home", {transcript_path(1): text}))
    catalogue = Catalogue(store)
    (versions,) = catalogue.versions.values()
    return catalogue, versions


def entry_ids(text: bytes) -> Iterator[str]:
    """The ids of the complete entries."""
    for line in text.split(b"\n")[:-1]:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "uuid" in entry:
            yield entry["uuid"]


def transcript_states(random: Random) -> Iterator[bytes]:
    """A transcript that grows and is sometimes truncated: to nothing, at the end of a line, or in the middle."""
    text, number = b"", 0
    for _day in range(random.randrange(2, 8)):
        if random.random() < 0.4:
            rows = text.splitlines(keepends=True)
            ends = [0, len(b"".join(rows[: random.randrange(len(rows) + 1)])), random.randrange(len(text) + 1)]
            text = text[: random.choice(ends)]
        if random.random() < 0.8 or not text:
            for _line in range(random.randrange(1, 6)):
                number += 1
                entry = b'{"type":"user","uuid":"u%d"}\n' % number
                text += random.choice((entry, entry, b'{"type":"mode"}\n', b'{"type":"title","t":%d}\n' % number))
        yield text


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(scale_examples(60)))
def test_every_entry_occurs_once(tmp_path: Path, seed: int) -> None:
    """What a truncation removed is in its place, however often it happened, and nothing occurs twice."""
    texts = list(transcript_states(Random(seed)))  # noqa: S311 - seeded, so that a failure comes again
    catalogue, versions = keep_versions(tmp_path, texts)
    joined = join_lost_parts(catalogue, versions)
    data = b"".join(catalogue.data(joined))
    assert len(data) == joined.size
    assert Counter(entry_ids(data)) == dict.fromkeys((id_ for text in texts for id_ in entry_ids(text)), 1)


@pytest.mark.parametrize(
    "after", [b'{"type":"last-prompt","lastPrompt":"x"}\n', b"\0" * 4096, b'{"type":"us{"a":1}\n', b"\n"]
)
def test_remains_of_a_crash_are_not_an_edit(tmp_path: Path, after: bytes) -> None:
    """If only a title, zeros or half a line is left, the transcript was truncated unintentionally."""
    catalogue, versions = keep_versions(tmp_path, [lines(1, 20), after])
    assert lines(1, 20) in b"".join(catalogue.data(join_lost_parts(catalogue, versions)))


@pytest.mark.parametrize("after", [b"{}\n", b"[]\n", b'"gone"\n'])
def test_other_content_is_a_rewrite(tmp_path: Path, after: bytes) -> None:
    """If the content was replaced by something else, the new content counts."""
    catalogue, versions = keep_versions(tmp_path, [lines(1, 20), after])
    assert b"".join(catalogue.data(join_lost_parts(catalogue, versions))) == after


def test_repeated_lines_stay_in_place(tmp_path: Path) -> None:
    """Titles and modes are the same line many times. One of them does not stand for all."""
    mode, entries = b'{"type":"mode"}\n', [b'{"type":"user","uuid":"u%d"}\n' % number for number in range(4)]
    first = mode + entries[0] + mode + entries[1]
    for number, rest in enumerate((b"", mode + entries[0])):
        texts = [first, rest, rest + entries[2] + mode + entries[3]]
        catalogue, versions = keep_versions(tmp_path / str(number), texts)
        joined = b"".join(catalogue.data(join_lost_parts(catalogue, versions)))
        assert joined == first + entries[2] + mode + entries[3]
