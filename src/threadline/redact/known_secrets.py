"""Remember secrets once found: every form they can take, and the placeholder of each."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from threadline.redact.prefilter import trie_pattern
from threadline.redact.scanner import PERSONAL_KINDS

_MAX_LINEAR_SEARCH = 24
_WHOLE_WORD_LENGTH = 12


class KnownSecrets:
    """Texts that are known to be secret, in all their forms; and words, which are found whatever their case."""

    def __init__(self) -> None:
        self._secrets: dict[str, str] = {}
        self._words: dict[str, tuple[str, str, bool]] = {}
        self._pattern: re.Pattern[str] | None = None
        self._short: set[str] = set()
        self.changes = 0
        """How often something new became known."""

    def add(self, secret: str) -> None:
        """Know a secret from now on."""
        if self._secrets.get(secret) != secret:
            self._secrets[secret] = secret
            self.changes += 1
            for form in encoded_forms(secret):
                self._secrets.setdefault(form, secret)
                if len(form) < _WHOLE_WORD_LENGTH:
                    self._short.add(form)
            self._pattern = None

    def add_word(self, word: str, kind: str, *, whole: bool) -> None:
        """Know a word from now on: `whole` where it counts only by itself, and not within another."""
        if word and word.lower() not in self._words:
            self._words[word.lower()] = (word, kind, whole)
            self.changes += 1

    def __contains__(self, secret: str) -> bool:
        return secret in self._secrets

    def secrets_in(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where secrets stand, and which."""
        if len(self._secrets) <= _MAX_LINEAR_SEARCH:
            for form, secret in self._secrets.items():
                at = text.find(form)
                while at >= 0:
                    if self._counts(text, at, form):
                        yield at, at + len(form), secret
                    at = text.find(form, at + 1)
            return
        if self._pattern is None:
            self._pattern = re.compile(trie_pattern(self._secrets))
        at = 0
        while found := self._pattern.search(text, at):
            if self._counts(text, found.start(), found[0]):
                yield found.start(), found.end(), self._secrets[found[0]]
                at = found.end()
            else:
                at = found.start() + 1

    def words_in(self, text: str) -> Iterator[tuple[int, int, str, str]]:
        """Where words stand, which, and of what kind."""
        if not self._words:
            return
        lowered = text.lower()
        low = lowered if len(lowered) == len(text) else None  # a few letters become two
        for folded, (word, kind, whole) in self._words.items():
            if low is not None:
                places = _occurrences(low, folded)
            else:
                places = [found.span() for found in re.finditer(re.escape(word), text, re.IGNORECASE)]
            for start, end in places:
                if not whole or _is_whole_word(text, start, end):
                    yield start, end, word, kind

    def _counts(self, text: str, at: int, form: str) -> bool:
        """Short secrets count only where they stand by themselves."""
        return form not in self._short or _is_whole_word(text, at, at + len(form))


def _occurrences(text: str, word: str) -> list[tuple[int, int]]:
    found = []
    at = text.find(word)
    while at >= 0:
        found.append((at, at + len(word)))
        at = text.find(word, at + len(word))
    return found


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit stands next to it, but for one that belongs to an escape."""
    before = text[max(0, start - 2) : start]
    is_begun = not before[-1:].isalnum() or before[:1] == "\\" or text[max(0, start - 3) : start - 2] == "%"
    is_begun = is_begun or text[max(0, start - 6) : start - 4] == "\\u"
    return is_begun and not text[end : end + 1].isalnum()


_MIN_ENCODED = 8


def encoded_forms(secret: str) -> set[str]:
    """The secret, and all that stands for it."""
    found = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
    escaped = json.dumps(secret)[1:-1]
    found |= {escaped, json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1]}
    found |= {quote(secret, safe="").lower(), secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
    raw = secret.encode(errors="surrogatepass")
    if len(raw) >= _MIN_ENCODED:
        found |= {raw.hex(), raw.hex().upper()}
        for encode in (b64encode, urlsafe_b64encode):
            found |= _base64_forms(raw, encode)
    return {form for form in found if form}


def _base64_forms(raw: bytes, encode: type(b64encode)) -> set[str]:  # type: ignore[valid-type]
    """What base64 of anything that holds the bytes holds: by where in a group of three they begin."""
    found = {encode(raw).decode().rstrip("=")}
    for shift in range(3):
        # Letters that depend on what stands before or behind are left out.
        whole = encode(bytes(shift) + raw).decode().rstrip("=")
        begin = (0, 2, 3)[shift]
        end = len(whole) - (0 if (shift + len(raw)) % 3 == 0 else 1)
        found.add(whole[begin:end])
    return {form for form in found if len(form) >= _MIN_ENCODED}


HOME_PLACEHOLDER = "<home>"


class Placeholders:
    """Numbers things by family in the order in which they are first seen."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._last: Counter[str] = Counter()

    def of(self, family: str, value: str) -> str:
        """The placeholder of a value."""
        known = self._given.get((family, value))
        if known is not None:
            return known
        self._last[family] += 1
        number = self._last[family]
        made = HOME_PLACEHOLDER if family == "home" and number == 1 else f"<{family}-{number}>"
        self._given[family, value] = made
        return made

    def same(self, family: str, value: str, as_of: str) -> None:
        """Let a value have the placeholder of another one."""
        self._given.setdefault((family, value), self.of(family, as_of))


def placeholder_family(kind: str) -> str:
    """What a kind is called in a placeholder: all that is secret is `secret`."""
    return kind if kind in PERSONAL_KINDS or kind == "word" else "secret"
