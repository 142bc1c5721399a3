"""Remember the secrets that were found, in every encoded form, and their placeholders."""

from __future__ import annotations

import json
import re
from base64 import b32encode, b64encode, urlsafe_b64encode
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate, islice
from urllib.parse import quote, quote_plus

from threadline.redact.rules.patterns import compile_lazily, trie_pattern
from threadline.redact.scanner import PERSONAL_KINDS

_MAX_LINEAR_SEARCH = 24
_MAX_BEGINNING = 16
_WHOLE_WORD_LENGTH = 12


class KnownSecrets:
    """Known secrets in all their encoded forms, and known words, which are matched in any case."""

    def __init__(self) -> None:
        self._secrets: dict[str, str] = {}
        # The forms of secrets by their beginning, longest first, and a pattern of all beginnings.
        self._forms: dict[str, list[str]] = {}
        self._words: dict[str, tuple[str, str, bool]] = {}
        self._pattern: re.Pattern[str] | None = None
        self._short: set[str] = set()
        self._cut: set[str] = set()
        self._bare: dict[bytes, str] = {}
        self.changes = 0
        """How often something new was added."""

    def add(self, secret: str) -> None:
        """Add a secret and its encoded forms."""
        if self._secrets.get(secret) != secret:
            self._secrets[secret] = secret
            self.changes += 1
            self._cut.discard(secret)
            for form in encoded_forms(secret):
                self._secrets.setdefault(form, secret)
                if len(form) < _WHOLE_WORD_LENGTH:
                    self._short.add(form)
            cut = secret[_CUT:-_CUT]
            if len(secret) >= _MIN_CORE and cut not in self._secrets:
                # Encodings of a larger text that is cut may lose a letter or two at either end.
                self._secrets[cut] = secret
                self._cut.add(cut)
            bare = _bare_letters(secret.encode("ascii", "replace"))
            if len(bare) >= _MIN_BARE and _DIGIT.search(bare):
                self._bare.setdefault(bare, secret)
            self._pattern = None

    def add_word(self, word: str, kind: str, *, whole_word: bool) -> None:
        """Add a word. `whole_word`: it does not match inside another word."""
        if word and word.lower() not in self._words:
            self._words[word.lower()] = (word, kind, whole_word)
            self.changes += 1

    def __contains__(self, secret: str) -> bool:
        return secret in self._secrets

    def may_occur_in(self, text: str) -> bool:
        """Whether a secret or a word may be in an ASCII text. Nearly no id contains one, and this is quickly seen."""
        lowered = text.lower()
        if any(word in lowered for word in self._words) or next(self.secrets_in(text), None) is not None:
            return True
        return bool(self._bare) and next(self.broken_secrets_in(text), None) is not None

    def secrets_in(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Find secrets in a text, as (start, end, secret)."""
        if len(self._secrets) <= _MAX_LINEAR_SEARCH:
            for form, secret in self._secrets.items():
                at = text.find(form)
                while at >= 0:
                    if self._is_occurrence(text, at, form):
                        yield at, at + len(form), secret
                    at = text.find(form, at + 1)
            return
        if self._pattern is None:
            self._forms.clear()
            for form in sorted(self._secrets, key=len, reverse=True):
                self._forms.setdefault(form[:_MAX_BEGINNING], []).append(form)
            self._pattern = re.compile(trie_pattern(self._forms))
        at = 0
        while match := self._pattern.search(text, at):
            form = self._longest_form(text, match)
            if form and self._is_occurrence(text, match.start(), form):
                yield match.start(), match.start() + len(form), self._secrets[form]
                at = match.start() + len(form)
            else:
                at = match.start() + 1

    def _longest_form(self, text: str, beginning: re.Match[str]) -> str:
        """The longest form of a secret where the pattern of all beginnings matches; empty if there is none."""
        longest = beginning[0]
        for end in range(len(longest), 0, -1):
            for form in self._forms.get(longest[:end], ()):
                if text.startswith(form, beginning.start()):
                    return form
        return ""

    def broken_secrets_in(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Find secrets whose letters are separated: wrapped over lines, joined in code, or with a sign between them."""
        if not self._bare:
            return
        view = text.encode("ascii", "replace")
        bare = _bare_letters(view)
        blocks: list[int] = []
        for letters, secret in self._bare.items():
            at = bare.find(letters)
            while at >= 0:
                blocks = blocks or _count_letters(view)
                start, end = _place_of(view, blocks, at), _place_of(view, blocks, at + len(letters) - 1) + 1
                is_near = end - start <= len(secret) * _MAX_SPREAD + _MAX_INDENT
                if is_near and not _SYNTAX.intersection(text[start:end]).difference(secret):
                    yield start, end, secret
                at = bare.find(letters, at + len(letters))

    def words_in(self, text: str) -> Iterator[tuple[int, int, str, str]]:
        """Find words in a text, as (start, end, word, kind)."""
        if not self._words:
            return
        find = _word_search(text)
        for folded, (word, kind, whole_word) in self._words.items():
            for start, end in find(folded, word):
                if not whole_word or _is_whole_word(text, start, end):
                    yield start, end, word, kind

    def _is_occurrence(self, text: str, at: int, form: str) -> bool:
        """Whether a match counts. Short secrets and cut ones count only as whole words."""
        if form in self._cut:
            return _is_cut_word(text, at, at + len(form), self._secrets[form])
        return form not in self._short or _is_whole_word(text, at, at + len(form))


_MIN_BARE = 10
_MAX_SPREAD = 4
_MAX_INDENT = 160
_SYNTAX = frozenset("=:;(){}<")
"""Signs between different values. A secret does not continue after them."""
_DIGIT = compile_lazily(rb"[0-9]")
_LETTER = compile_lazily(rb"[A-Za-z0-9]")
_TO_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(byte for byte in range(256) if not chr(byte).isascii() or not chr(byte).isalnum())
_BLOCK = 512


def _bare_letters(view: bytes) -> bytes:
    """Only the letters and digits of a text, in lower case."""
    return view.translate(_TO_LOWER, _NO_LETTERS)


def _count_letters(view: bytes) -> list[int]:
    """How many letters and digits precede each block of a text."""
    counts = (len(view[at : at + _BLOCK].translate(None, _NO_LETTERS)) for at in range(0, len(view), _BLOCK))
    return list(accumulate(counts, initial=0))


def _place_of(view: bytes, blocks: list[int], at: int) -> int:
    """The position in the text of a letter of its bare letters."""
    block = bisect_right(blocks, at) - 1
    letters = _LETTER.finditer(view, block * _BLOCK)
    return next(islice(letters, at - blocks[block], None)).start()


def _word_search(text: str) -> Callable[[str, str], list[tuple[int, int]]]:
    """A function that finds a word, given in lower case and as it is, in any case."""
    if text.isascii():
        lowered = text.lower()
        return lambda folded, _word: _occurrences(lowered, folded)
    # Of these letters, one becomes two in lower case, and the other becomes ASCII.
    if "\u0130" in text or "\u212a" in text:
        lowered = text.lower()
        if len(lowered) == len(text):
            return lambda folded, _word: _occurrences(lowered, folded)
        return lambda _folded, word: [match.span() for match in re.finditer(re.escape(word), text, re.IGNORECASE)]
    # Changing the case of ASCII is many times faster.
    view = text.encode("ascii", "replace").lower().decode()
    whole = cache(text.lower)
    return lambda folded, _word: _occurrences(view if folded.isascii() and "?" not in folded else whole(), folded)


def _occurrences(text: str, word: str) -> list[tuple[int, int]]:
    spans = []
    at = text.find(word)
    while at >= 0:
        spans.append((at, at + len(word)))
        at = text.find(word, at + len(word))
    return spans


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit is next to the span, except as part of an escape."""
    before = text[max(0, start - 2) : start]
    starts_word = not before[-1:].isalnum() or before[:1] == "\\" or text[max(0, start - 3) : start - 2] == "%"
    starts_word = starts_word or text[max(0, start - 6) : start - 4] == "\\u"
    return starts_word and not text[end : end + 1].isalnum()


def _is_cut_word(text: str, start: int, end: int, secret: str) -> bool:
    """Whether a secret without its ends is not part of another word, in which other characters of a secret are."""
    for length in range(_CUT, -1, -1):
        if text.endswith(secret[_CUT - length : _CUT], max(0, start - length), start):
            start -= length
            break
    for length in range(_CUT, -1, -1):
        if text.startswith(secret[len(secret) - _CUT : len(secret) - _CUT + length], end):
            end += length
            break
    signs = _SIGNS.intersection(secret)
    is_joined = text[max(0, start - 1) : start] in signs or text[end : end + 1] in signs
    return not is_joined and _is_whole_word(text, start, end)


_SIGNS = frozenset("_-+/.~")
_MIN_ENCODED = 8
_MIN_CORE = 14
_CUT = 2


def encoded_forms(secret: str) -> set[str]:
    """The secret, reversed and encoded: URL, JSON, HTML, hex, base32 and base64.

    Other encodings are decoded by `text_views`.
    """
    raw = secret.encode(errors="surrogatepass")
    in_url = quote(raw, safe="")
    forms = {secret, in_url, in_url.lower(), quote(raw), quote_plus(raw)}
    escaped = json.dumps(secret)[1:-1]
    forms |= {escaped, json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1]}
    forms.add(secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    if len(raw) >= _MIN_ENCODED:
        digits = {raw.hex(), *(raw.hex(separator) for separator in (" ", ":", "-"))}
        forms |= digits | {form.upper() for form in digits}
        for encode in (b64encode, urlsafe_b64encode):
            forms |= _base64_forms(raw, encode)
        # With the line end that `echo` adds, the last letters differ.
        forms |= {b32encode(data).decode().rstrip("=") for data in (raw, raw + b"\n")}
        forms.add(secret[::-1])
    return {form for form in forms if form}


def _base64_forms(raw: bytes, encode: type(b64encode)) -> set[str]:  # type: ignore[valid-type]
    """The base64 text of the bytes inside larger data, for each offset in a group of three bytes."""
    forms = {encode(raw).decode().rstrip("=")}
    for shift in range(3):
        # Without the letters that depend on the bytes before or after.
        encoded = encode(bytes(shift) + raw).decode().rstrip("=")
        begin = (0, 2, 3)[shift]
        end = len(encoded) - (0 if (shift + len(raw)) % 3 == 0 else 1)
        forms.add(encoded[begin:end])
    return {form for form in forms if len(form) >= _MIN_ENCODED}


HOME_PLACEHOLDER = "<home>"


class Placeholders:
    """Numbers values by family, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._last: Counter[str] = Counter()

    def of(self, family: str, value: str) -> str:
        """The placeholder of a value."""
        existing = self._placeholders.get((family, value))
        if existing is not None:
            return existing
        self._last[family] += 1
        number = self._last[family]
        placeholder = HOME_PLACEHOLDER if family == "home" and number == 1 else f"<{family}-{number}>"
        self._placeholders[family, value] = placeholder
        return placeholder

    def same(self, family: str, value: str, as_of: str) -> None:
        """Give a value the placeholder of another value."""
        self._placeholders.setdefault((family, value), self.of(family, as_of))


def placeholder_family(kind: str) -> str:
    """The name of a kind in placeholders. All secrets are `secret`."""
    return kind if kind in PERSONAL_KINDS or kind == "word" else "secret"
