"""Words: what SQLite is given, and what it makes of it."""
# ruff: noqa: RUF001 - letters that look like others are what this is about

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threadline.index import normalize_text, tokenize
from threadline.index.vocabulary import TOKENIZER

# Any text that SQLite takes, much of it of the characters that divide, fold or stand apart.
_SPECIAL = st.sampled_from(
    "aZ9_-./ \n\t\0\x1béÉßİıŁøǅ\u0301\u0307\u200dﬁ²Ⅳ中文検索かがガｶﾞ한글각ไทยไंहि🙂🫠→…﷽Ａ１𝐀𠮷\ue000\U000e0001"
)
_TEXT = st.text(st.one_of(_SPECIAL, st.characters(exclude_categories=["Cs"])), max_size=60)
_ANY = st.text(st.one_of(_SPECIAL, st.characters()), max_size=60)


def _by_sqlite(text: str) -> list[str]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE VIRTUAL TABLE one USING fts5(text, content='', tokenize='{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE made USING fts5vocab(one, 'instance')")
        database.execute("INSERT INTO one (rowid, text) VALUES (1, ?)", (text,))
        return [term for (term,) in database.execute("SELECT term FROM made ORDER BY offset")]


@given(_TEXT)
@example("a\0b")
@example("x" * 40_000)
def test_tokens_are_those_that_sqlite_makes(text: str) -> None:
    """The tokens in Python are SQLite's own, in its order."""
    assert tokenize(text) == _by_sqlite(text)


@pytest.mark.slow
def test_every_character_is_folded_as_sqlite_folds_it() -> None:
    """There is no character, in a word or beside one, that Python and SQLite take for different things."""
    for start in range(0, 0x110000, 0x8000):
        # Of the planes that no character is assigned to but private ones, one is as good as the next.
        step = 1 if start < 0x40000 or start == 0xE0000 else 64
        text = "".join(
            f"b{chr(one)} {chr(one)}b " for one in range(start, start + 0x8000, step) if not 0xD800 <= one <= 0xDFFF
        )
        assert tokenize(text) == (_by_sqlite(text) if text else [])


@given(_ANY)
def test_what_is_searchable_can_be_handed_to_sqlite(text: str) -> None:
    """Whatever a transcript holds, half of a surrogate pair too, SQLite takes it."""
    assert _by_sqlite(normalize_text(text)) == tokenize(normalize_text(text))


@given(_ANY)
def test_searchable_text_stays_as_it_is(text: str) -> None:
    """Making text searchable twice gives the same tokens as once."""
    once = normalize_text(text)
    assert tokenize(normalize_text(once)) == tokenize(once)


@given(st.text(st.characters(max_codepoint=127, exclude_characters="\x1b")))
def test_ascii_is_handed_over_as_it_is(text: str) -> None:
    """Text that needs no change is not copied."""
    assert normalize_text(text) is text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("数据库连接", ["数", "据", "库", "连", "接"]),
        ("the 検索index is", ["the", "検", "索", "index", "is"]),
        ("ひらがなカタカナ", list("ひらがなカタカナ")),
        ("한국어 검색", list("한국어검색")),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("ＦＵＬＬ　ｗｉｄｔｈ１２", ["full", "width12"]),
        ("ﾊﾝｶｸ", list("ハンカク")),
        ("ﬁle oﬃce", ["file", "office"]),
        ("naïve CAFÉ Ångström", ["naive", "cafe", "angstrom"]),
        (
            "snake_case camelCase dotted.name --flag E0277",
            ["snake", "case", "camelcase", "dotted", "name", "flag", "e0277"],
        ),
        ("\x1b[1;31mFAILED\x1b[0m tests", ["failed", "tests"]),
        ("\x1b]8;;file:///there\x07here\x1b]8;;\x07", ["8", "file", "there", "here", "8"]),
        ("\x1b[1m\x1b(Bbold\x1b[m \x1b[2K\x1b[1Gdone", ["bold", "done"]),
        ("nul\0inside", ["nul", "inside"]),
        ("half \ud83d pair", ["half", "pair"]),
        ("zero\u200bwidth", ["zero", "width"]),
    ],
)
def test_words_in_many_scripts(text: str, expected: list[str]) -> None:
    """Words are found as a person would type them."""
    assert tokenize(normalize_text(text)) == expected


@pytest.mark.parametrize(
    ("text", "other"),
    [("가각", "\u1100\u1161\u1100\u1161\u11a8"), ("ガ", "カ\u3099"), ("é", "e\u0301"), ("ｶﾞ", "ガ")],
)
def test_forms_of_the_same_letter_are_the_same_token(text: str, other: str) -> None:
    """Whether a letter is written in one piece or several makes no difference: names of files come in both ways."""
    assert tokenize(normalize_text(text)) == tokenize(normalize_text(other))


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1), _TEXT, _TEXT)
def test_a_word_without_spaces_is_a_phrase_of_its_characters(word: str, before: str, after: str) -> None:
    """Wherever Chinese words stand, their characters are adjacent tokens."""
    found, wanted = tokenize(normalize_text(f"{before}{word}{after}")), list(word)
    assert any(found[at : at + len(wanted)] == wanted for at in range(len(found)))
