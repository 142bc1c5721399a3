"""Words: text as full text takes it in, and the tokens that come of it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from unicodedata import normalize

TOKENIZER = "unicode61 remove_diacritics 2"
"""How SQLite cuts text into tokens: at all but letters and digits, without case, without accents."""

# Scripts that put no space between words (Hangul does, but glues particles to them): each character is a token.
_UNSPACED = (
    "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3005-\u3007\u3021-\u3029"  # Han
    "\u3040-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # the Tai scripts
    "\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
    "\u3100-\u312f\u31a0-\u31bf\ua000-\ua4cf"  # Bopomofo, Yi
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
# The same with what lies beyond the first 65,536 characters: many times slower, and seldom needed.
_UNSPACED_RUN_BEYOND = re.compile(f"[{_UNSPACED}\U00020000-\U0003ffff\U0001aff0-\U0001b16f]+")
# Other forms of letters than a person types: ligatures, wide and narrow ones, mathematical alphabets, pieces of Hangul,
# doubles of Han. Half of a surrogate pair is among them, which SQLite does not take.
_OTHER_FORMS = re.compile(
    "[\ufb00-\ufb4f\uff00-\uffef\u1100-\u11ff\ud7b0-\udfff\uf900-\ufaff\U0001d400-\U0001d7ff\U0002f800-\U0002fa1f]+"
)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_VOICED = re.compile("[\u3040-\u30ff][\u3099\u309a]")
# Bytes of UTF-8 that characters begin with, and other bytes: of those that stay as they are (ASCII, the alphabets of
# Europe, signs and arrows), and of those that stand apart and have no other forms.
_STAY = bytes(range(0xE0)) + b"\xe2\xee"
_STAND_APART = bytes([0xE0, *range(0xE3, 0xED)])
# What a program prints to colour its output and to move about: right before words, and it would be taken for theirs.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[()][0-9A-Z])")
# The bytes of a token that SQLite keeps, and how many characters are surely no more.
_LONGEST = 32768
_SHORT = _LONGEST // 4


def searchable(text: str) -> str:
    r"""The text as it is handed to SQLite, when it is indexed and when it is asked for.

    Characters of scripts without spaces stand apart, so that a word of them is a phrase; wide, narrow and composed
    forms of letters are the letters; escape sequences of terminals are gone. Case and accents stay: SQLite folds them.

    >>> searchable("full text 検索")
    'full text  検 索 '
    >>> searchable("\x1b[31mError\x1b[0m: no such file")
    'Error: no such file'
    """
    text = visible(text)
    if text.isascii() or not (leads := text.encode("utf-8", "surrogatepass").translate(None, _STAY)):
        return text
    other_forms = bool(leads.translate(None, _STAND_APART)) or "\u3099" in text or "\u309a" in text
    run = _UNSPACED_RUN_BEYOND if b"\xf0" in leads else _UNSPACED_RUN
    # Most lines are ASCII even here, and found to be so faster than looked through.
    return "\n".join(
        [
            line if line.isascii() else run.sub(_apart, _usual_forms(line) if other_forms else line)
            for line in text.split("\n")
        ]
    )


def _usual_forms(line: str) -> str:
    return _VOICED.sub(_usual, _OTHER_FORMS.sub(_usual, line))


def visible(text: str) -> str:
    """The text without the escape sequences that steer a terminal: what a person saw."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _usual(found: re.Match[str]) -> str:
    run = found[0]
    return normalize("NFKC", run if run.isprintable() else _HALF_PAIR.sub(" ", run))


def _apart(found: re.Match[str]) -> str:
    return f" {' '.join(found[0])} "


def tokens(text: str) -> list[str]:
    """The tokens that SQLite makes of a text, in order. What a person typed goes through `searchable` first.

    >>> tokens("Café: snake_case --dry-run /etc/hosts")
    ['cafe', 'snake', 'case', 'dry', 'run', 'etc', 'hosts']
    """
    if not text.isascii() and (unknown := set(map(ord, text)) - _FOLDED.keys()):
        _FOLDED.update(_folded(sorted(unknown)))
    return [token if len(token) <= _SHORT else _cut(token) for token in text.translate(_FOLDED).split()]


def _cut(token: str) -> str:
    """A token as far as SQLite keeps it."""
    return token.encode()[:_LONGEST].decode(errors="ignore")


def _folded(characters: Sequence[int]) -> dict[int, str]:
    """What SQLite makes of each character: its plain form, nothing for an accent, a space for what divides tokens.

    It is asked, because its tables are older than Python's and differ from them in thousands of characters.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE VIRTUAL TABLE one USING fts5(text, content='', tokenize='{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE made USING fts5vocab(one, 'instance')")
        whole = ((one, f"a{chr(one)}a") for one in characters if not _HALF_PAIR.match(chr(one)))
        database.executemany("INSERT INTO one (rowid, text) VALUES (?, ?)", whole)
        made: dict[int, str] = dict(database.execute("SELECT doc, term FROM made WHERE offset = 0"))
    return {one: made[one][1:-1] if len(made.get(one, "")) > 1 else " " for one in characters}


# The first 128 are the same in every version; the others come as they are met.
_FOLDED = {one: chr(one).lower() if chr(one).isalnum() else " " for one in range(128)}
