"""The vocabulary narrows searches for parts of words and regular expressions without losing results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.search.indexed_home import FIRST, SECOND, Archive, scan_places, search_places
from tests.transcripts import Part, call, prompt, reply

from threadline.search import ranking, search
from threadline.search.query import parse_query
from threadline.search.ranking import Ranker, make_plan

TEXTS = [
    "decodeFrame fails in src/decoder.py: ENOENT at offset_ms=12",
    "Café recoded; naïve résumé, \u212aelvin \u017ftrasse \u0130stanbul d\u0131\u015f",
    "数据库decode连接 encoder数 ГОРОД",
    "\x1b[31mreco\x1b[0mded in colours, e\u0301tude\u0301s",
    "wide \uff44\uff45\uff43\uff4f\uff44\uff45 and \U0001d41d\U0001d41e\U0001d41c\U0001d428",
    "aaaaaaaaaa1b2c3d4 0xdeadbeef_feed",
]
QUERIES = """
ecod /ecod/ /odeFr/ /coder\\.p/ /set_m/ /recoded/ /elvin/ /kelvin/ /strasse/ /tras/ /istanbul/ /tanb/ /a[ïi]ve/ /esum/
/据库d/ /库decode连/ /der数/ /\u041e\u0420\u041e/ /co(?:ded|der)/ /(?:eade|zzz)rx?|adbee/ /\\bdec\\w+/ /e.o.e/ /1b2c/
/_feed$/ /^deco/ /zzzz/ /ENO/c /eno/c file:/ecod/ prompt:/ecod/ /ecod/&/frame/ /t(?=s_m)/ /e\u0301tud/ /tudes/
/(?i:ECOD)/ /[d]ecode/
/ecode{1,2}F/
""".split()  # noqa: SIM905 - a list of forty quoted expressions is harder to read


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive with these texts."""
    archive = Archive(tmp_path)
    archive.write(*map(prompt, TEXTS), *(call("Bash", text, result=text) for text in TEXTS[:3]))
    archive.write(*(reply(f"straw {number}") for number in range(30)), session=SECOND)
    return archive


@contextmanager
def _forbid_scans() -> Iterator[None]:
    """Fail if all entries are scanned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ranker, "newest", _never)
        yield


def _never(*_: object) -> None:
    raise AssertionError("all entries were scanned")


def test_finds_parts_of_words_like_a_scan(archive: Archive) -> None:
    """In the middle, across punctuation, in branches, in other forms of a letter, beside Chinese, in a field."""
    queries = [query.replace("&", " ") for query in QUERIES]
    with archive.opened() as index:
        results = {text: (search_places(index, text), scan_places(index, text)) for text in queries}
    assert {text: hits for text, (hits, _) in results.items()} == {text: scan for text, (_, scan) in results.items()}
    assert sum(bool(hits) for hits, _ in results.values()) > len(queries) * 0.8


@pytest.mark.parametrize("text", ["/ecod/", "/odeFr/", "/set_m/", "/co(?:ded|der)/", "/adbee/", "/zzzz/", "file:/cod/"])
def test_the_vocabulary_narrows_the_search(archive: Archive, text: str) -> None:
    """Parts of words lead to the entries with such words, so that not all entries are scanned."""
    with archive.opened() as index, _forbid_scans():
        assert make_plan(parse_query(text), index.vocabulary).match is not None
        search(index, text)
        assert make_plan(parse_query("/odeFr/")).match is None


def test_parts_of_too_many_words_do_not_narrow(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then all entries are scanned, newest first, and the result is the same."""
    with archive.opened() as index:
        expected = search_places(index, "/ecod/")
        monkeypatch.setattr(ranking, "MAX_WORDS", 2)
        assert make_plan(parse_query("/ecod/"), index.vocabulary).match is None
        assert search_places(index, "/ecod/") == expected


_ALPHABET = "aAbc1é_ .数\n\u212a\u017f\u0130\u0131k"
_words = st.text(_ALPHABET, min_size=1, max_size=10) | st.sampled_from(TEXTS)
_pieces = st.text("abck1sie_ .数", min_size=1, max_size=4).map(re.escape) | st.sampled_from(
    ["(?:ab|ck)", "a.?c", "[ab]c", "b+", "(?:a|b.)c", r"\b", "^", "$", "(?:1|_a)*", "k{2}"]
)
_expressions = st.lists(_pieces, min_size=1, max_size=3).map(lambda pieces: "".join(pieces).replace("\\\n", "\\n"))


@given(st.lists(_words, min_size=1, max_size=8), st.lists(_expressions, min_size=1, max_size=6), st.booleans())
def test_any_expression_finds_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], patterns: list[str], exact: bool
) -> None:
    """For any texts and any expressions."""
    archive = Archive(tmp_path_factory.mktemp("archive"))
    parts: list[Part] = [prompt(text) if number % 2 else reply(text) for number, text in enumerate(texts)]
    archive.write(*parts, session=FIRST)
    with archive.opened() as index:
        for pattern in patterns:
            text = f"/{pattern}/{'c' if exact else ''}"
            assert search_places(index, text) == scan_places(index, text), text
