"""Tests that a large generated home has the size distribution of real ones."""

from __future__ import annotations

import re

import pytest
from tools.demo import home, write

_MEASURED = {0.5: 105_000, 0.9: 654_000, 0.99: 5_400_000}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[int], list[bytes]]:
    """Sizes of the transcripts of a home of 60 MB, and its lines."""
    path = tmp_path_factory.mktemp("profile") / "home"
    write(path, megabytes=60)
    files = [file.read_bytes() for file in path.glob("projects/**/*.jsonl") if file.name != "journal.jsonl"]
    return sorted(map(len, files)), [line for file in files for line in file.split(b"\n") if line]


def quantile(values: list[int], share: float) -> int:
    """Return the value below which this share of values is."""
    return values[min(len(values) - 1, int(share * len(values)))]


def test_split_has_the_measured_quantiles() -> None:
    """With the measured total and number of transcripts, the quantiles match."""
    sizes = home.split_sizes(1_239 * 2**20, 3_142)
    assert sum(sizes) == pytest.approx(1_239 * 2**20, rel=0.01)
    assert sizes[-1] == pytest.approx(87_000_000, rel=0.05)
    for share, size in _MEASURED.items():
        assert quantile(sizes, share) == pytest.approx(size, rel=0.06)


def test_transcripts_have_the_measured_spread(lines: tuple[list[int], list[bytes]]) -> None:
    """On disk, the ratios of quantiles to the median match real homes, and the total is right."""
    sizes = lines[0]
    assert sum(sizes) == pytest.approx(60_000_000, rel=0.06)
    scale = quantile(sizes, 0.5) / _MEASURED[0.5]
    for share, size in _MEASURED.items():
        assert quantile(sizes, share) == pytest.approx(size * scale, rel=0.3)


def test_line_lengths_are_uneven(lines: tuple[list[int], list[bytes]]) -> None:
    """The median is about 1.3 KB and the mean about 3 KB. Some lines have hundreds of KB."""
    lengths = sorted(map(len, lines[1]))
    assert 1_000 < quantile(lengths, 0.5) < 1_700
    assert 2_400 < sum(lengths) / len(lengths) < 3_600
    assert lengths[-1] > 200_000


def test_density_of_escapes_and_non_ascii(lines: tuple[list[int], list[bytes]]) -> None:
    """Escapes and characters outside ASCII are about as frequent as in real transcripts."""
    text = b"\n".join(lines[1])
    per_kilobyte = {mark: text.count(mark) * 1000 / len(text) for mark in (b"\\n", b'\\"', b"\\t", b"\\\\", b"\\u")}
    assert 9 < per_kilobyte[b"\\n"] < 17
    assert 4 < per_kilobyte[b'\\"'] < 11
    assert 4 < per_kilobyte[b"\\t"] < 11
    assert per_kilobyte[b"\\\\"] > 0.3
    assert per_kilobyte[b"\\u"] > 0.2
    outside = len(re.findall(rb"[\x80-\xff]", text)) / len(text)
    assert 0.005 < outside < 0.02
