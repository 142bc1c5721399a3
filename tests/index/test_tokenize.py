"""Tokens: what SQLite is given, and how it splits it."""
# ruff: noqa: RUF001 - letters that look like others are what this is about

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threadline.index import normalize_text, tokenize
from threadline.index.vocabulary import TOKENIZER, encode_normalized

# Any text that SQLite accepts, often with characters that separate, fold or are tokens by themselves.
_SPECIAL = st.sampled_from(
    "aZ9_-./ \n\t\0\x1béÉßİıŁøǅ\u0301\u0307\u200dﬁ²Ⅳ中文検索かがガｶﾞ한글각ไทยไंहि🙂🫠→…﷽Ａ１𝐀𠮷\ue000\U000e0001"
)
_TEXT = st.text(st.one_of(_SPECIAL, st.characters(exclude_categories=["Cs"])), max_size=60)
_ANY = st.text(st.one_of(_SPECIAL, st.characters()), max_size=60)


def _sqlite_tokens(text: str) -> list[str]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE VIRTUAL TABLE one USING fts5(text, content='', tokenize='{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE made USING fts5vocab(one, 'instance')")
        database.execute("INSERT INTO one (rowid, text) VALUES (1, ?)", (text,))
        return [term for (term,) in database.execute("SELECT term FROM made ORDER BY offset")]


@given(_TEXT)
@example("a\0b")
@example("x" * 40_000)
def test_tokens_equal_sqlites(text: str) -> None:
    """The tokens in Python are SQLite's, in the same order."""
    assert tokenize(text) == _sqlite_tokens(text)


@pytest.mark.slow
def test_folds_every_character_like_sqlite() -> None:
    """Python and SQLite agree on every character, inside a word and beside one."""
    for start in range(0, 0x110000, 0x8000):
        # In planes with only private or unassigned characters, a sample is enough.
        step = 1 if start < 0x40000 or start == 0xE0000 else 64
        text = "".join(
            f"b{chr(code)} {chr(code)}b " for code in range(start, start + 0x8000, step) if not 0xD800 <= code <= 0xDFFF
        )
        assert tokenize(text) == (_sqlite_tokens(text) if text else [])


@given(_ANY)
def test_sqlite_accepts_normalized_text(text: str) -> None:
    """SQLite accepts any normalized text, even with a lone surrogate."""
    assert _sqlite_tokens(normalize_text(text)) == tokenize(normalize_text(text))


@given(_ANY)
def test_normalizing_twice_gives_the_same_tokens(text: str) -> None:
    """Normalizing text twice gives the same tokens as once."""
    once = normalize_text(text)
    assert tokenize(normalize_text(once)) == tokenize(once)


@given(_ANY)
@example("→ │ ✓ ü")
@example("\x1b[31mß\x1b[0m")
def test_encoded_text_is_the_normalized_text(text: str) -> None:
    """Text that is encoded for the index is the text that is searched for."""
    assert encode_normalized(text).decode() == normalize_text(text)


@given(st.text(st.characters(max_codepoint=127, exclude_characters="\x1b")))
def test_ascii_is_not_copied(text: str) -> None:
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
def test_tokenizes_many_scripts(text: str, expected: list[str]) -> None:
    """Words are found as people type them."""
    assert tokenize(normalize_text(text)) == expected


@pytest.mark.parametrize(
    ("text", "other"),
    [("가각", "\u1100\u1161\u1100\u1161\u11a8"), ("ガ", "カ\u3099"), ("é", "e\u0301"), ("ｶﾞ", "ガ")],
)
def test_composed_and_decomposed_letters_are_the_same_token(text: str, other: str) -> None:
    """A letter in one code point or several is the same token. File names come in both forms."""
    assert tokenize(normalize_text(text)) == tokenize(normalize_text(other))


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1), _TEXT, _TEXT)
def test_a_chinese_word_is_a_phrase_of_its_characters(word: str, before: str, after: str) -> None:
    """The characters of a Chinese word are adjacent tokens, whatever surrounds it."""
    tokens, phrase = tokenize(normalize_text(f"{before}{word}{after}")), list(word)
    assert any(tokens[at : at + len(phrase)] == phrase for at in range(len(tokens)))
