"""What has been seen to be secret somewhere, found everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.render.redaction.forms import forms
from threadline.render.redaction.trie import trie

_FEW = 24
_WHOLE_WORD = 12


class Known:
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
            for form in forms(secret):
                self._secrets.setdefault(form, secret)
                if len(form) < _WHOLE_WORD:
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
        if len(self._secrets) <= _FEW:
            for form, secret in self._secrets.items():
                at = text.find(form)
                while at >= 0:
                    if self._counts(text, at, form):
                        yield at, at + len(form), secret
                    at = text.find(form, at + 1)
            return
        if self._pattern is None:
            self._pattern = re.compile(trie(self._secrets))
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
                places = _places(low, folded)
            else:
                places = [found.span() for found in re.finditer(re.escape(word), text, re.IGNORECASE)]
            for start, end in places:
                if not whole or _is_whole(text, start, end):
                    yield start, end, word, kind

    def _counts(self, text: str, at: int, form: str) -> bool:
        """Short secrets count only where they stand by themselves."""
        return form not in self._short or _is_whole(text, at, at + len(form))


def _places(text: str, word: str) -> list[tuple[int, int]]:
    found = []
    at = text.find(word)
    while at >= 0:
        found.append((at, at + len(word)))
        at = text.find(word, at + len(word))
    return found


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit stands next to it, but for one that belongs to an escape."""
    before = text[max(0, start - 2) : start]
    is_begun = not before[-1:].isalnum() or before[:1] == "\\" or text[max(0, start - 3) : start - 2] == "%"
    is_begun = is_begun or text[max(0, start - 6) : start - 4] == "\\u"
    return is_begun and not text[end : end + 1].isalnum()
