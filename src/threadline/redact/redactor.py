"""Replace secrets and personal data in the texts of one export, each thing always by the same placeholder."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from threadline.redact import heuristics
from threadline.redact.assignments import is_credible, is_distinctive, kind_of
from threadline.redact.formats import Span
from threadline.redact.heuristics import is_secret_name
from threadline.redact.known_secrets import KnownSecrets, Placeholders, placeholder_family
from threadline.redact.layers import TextLayer, text_layers
from threadline.redact.multiline import PRIVATE_KEY, body_lines
from threadline.redact.personal import GENERIC_USER_NAMES
from threadline.redact.scanner import PERSONAL_KINDS, find_spans, merge_overlapping
from threadline.redact.settings import Settings

_MAX_ROUNDS = 5
_MAX_DEPTH = 300
_PIECE_LENGTH = 1000
_CACHED_LENGTH = 256
_OVERLAP = 200
_MIN_NAME = 3
# Where Claude Code says in which directory it works.
_PROJECT_KEYS = frozenset(("cwd", "project", "originalCwd", "projectPath", "worktreePath"))
_MIN_REST = 4
_NAME_KINDS = frozenset(("word", "user", "host"))


class FormatWords(Struct, frozen=True):
    """The words of a format: names of fields, and what some fields may say."""

    keys: frozenset[str] = frozenset()
    values: dict[str, frozenset[str]] = {}

    def is_fixed(self, key: str, value: str) -> bool:
        """Whether a value is a word of the format in this field."""
        return key in self.values and value in self.values[key]


class Redactor:
    """Takes secrets and what tells of people and machines out of the texts of one export.

    Let it `learn` every text first: what is told by its surroundings in one place is then taken away in all. `redact`
    learns from what it is given, too, but cannot go back to what it gave out before. `fixed` are the words of the
    format that trees are written in, which stay.
    """

    def __init__(self, settings: Settings | None = None, fixed: FormatWords | None = None) -> None:
        self._settings = settings or Settings()
        self._fixed = fixed or FormatWords()
        self._patterns = self._settings.compile_patterns()
        self._keep = frozenset(self._settings.keep)
        self._placeholders = Placeholders()
        self._known = KnownSecrets()
        self._found: Counter[tuple[str, str, str]] = Counter()
        self._learnt: set[str] = set()
        self._projects: set[str] = set()
        # Texts in which the rules find nothing, by their hash: most are met twice, to learn from and to be redacted.
        self._clean: set[int] = set()
        self._done: dict[str, tuple[str, Counter[tuple[str, str]]]] = {}
        self._known_then = 0
        for word in sorted(self._settings.words, key=len, reverse=True):
            self._known.add_word(word, "word", whole=False)
        for user in self._settings.users:
            self._learn_user(user)
        for host in self._settings.hosts:
            self._known.add_word(host, "host", whole=True)

    @property
    def findings(self) -> list[Finding]:
        """What was taken away so far, by kind and place, in the order in which it was met."""
        return [Finding(kind, place, made, count) for (kind, place, made), count in self._found.items()]

    def learn(self, text: str) -> None:
        """Learn what a text tells to be secret, so that it is taken away wherever it stands."""
        # The same short texts, names and paths, come in every entry.
        if text not in self._learnt:
            self._learned(text)
            if len(text) < _CACHED_LENGTH:
                self._learnt.add(text)

    def learn_value(self, value: Any) -> None:
        """The same of every text in a tree of lists and objects, by its keys, too."""
        for text, key in _texts_with_keys(value, self._fixed.keys):
            if key is not None and self._is_secret_by(key, text):
                self._learn(text, Span(0, len(text), kind_of(key, text), local_only=not is_distinctive(text)))
            else:
                self.learn(text)
            if key in _PROJECT_KEYS and text not in self._projects:
                self._projects.add(text)
                for span in find_spans(text):
                    self._learn_user(span.value if span.kind == "home" else "")

    def redact(self, text: str, place: str = "") -> str:
        """The text without what is to be taken away. `place` is where it is from, for the findings."""
        done = self._done.get(text) if self._known.changes == self._known_then else None
        if done is None:
            done = self._redacted(text)
        redacted, found = done
        for (kind, made), count in found.items():
            self._found[kind, place, made] += count
        return redacted

    def redact_value(self, value: Any, place: str = "", *, learnt: bool = False) -> Any:
        """A tree of lists and objects without what is to be taken away; keys are redacted, too.

        `learnt` says that it was learnt from before, and need not be again.
        """
        if not learnt:
            self.learn_value(value)
        return self._value(value, place, None, 0)

    def check(self, text: str, place: str = "", own: frozenset[str] = frozenset()) -> list[Finding]:
        """What is still to be found in a text that was redacted: nothing, or it must not be given out.

        `own` are words, in small letters, that whoever made the text put there; one of them is no name of anybody.
        """
        layers = list(text_layers(text))
        found = Counter(
            (tells.kind, self._placeholder(tells, text))
            for start, end, tells in self._all(text, find_spans(text, layers), layers)
            if not (tells.kind in _NAME_KINDS and _surrounding_word(text, start, end) in own)
        )
        return [Finding(kind, place, made, count) for (kind, made), count in found.items()]

    def _learned(self, text: str, layers: list[TextLayer] | None = None) -> list[Span]:
        """What the rules find in a text, which is known from now on."""
        mark = hash(text)
        if mark in self._clean:
            return []
        found = find_spans(text, layers)
        if not found:
            self._clean.add(mark)
        for span in found:
            value = text[span.start : span.end]
            # A page of a web site may be called /home/settings: only what looks like an account's home names one.
            if span.kind == "home" and ("Users" in value or text.startswith("/.", span.end)):
                self._learn_user(span.value)
            self._learn(value if span.kind == "home" else span.value or value, span)
        return found

    def _redacted(self, text: str) -> tuple[str, Counter[tuple[str, str]]]:
        """The text without all that is to be taken away, and what that was; remembered while nothing new is known."""
        found: Counter[tuple[str, str]] = Counter()
        redacted = text
        for _round in range(_MAX_ROUNDS):
            before = redacted
            redacted = self._once(before, found)
            if redacted == before:
                break
        if self._known.changes != self._known_then:
            self._done.clear()
            self._known_then = self._known.changes
        if len(text) < _CACHED_LENGTH:
            self._done[text] = redacted, found
        return redacted, found

    def _once(self, text: str, found: Counter[tuple[str, str]]) -> str:
        parts: list[str] = []
        last = 0
        layers = list(text_layers(text))
        for start, end, tells in self._all(text, self._learned(text, layers), layers):
            made = self._placeholder(tells, text)
            found[tells.kind, made] += 1
            parts += [text[last:start], made]
            last = end
        return "".join([*parts, text[last:]]) if parts else text

    def _all(self, text: str, by_rules: list[Span], layers: list[TextLayer]) -> list[tuple[int, int, Span]]:
        """All that is to be taken away, without what is kept and what was put there."""
        found = [span for span in by_rules if text[span.start : span.end] not in self._keep]
        found += self._by_what_is_known(text)
        for without in layers:
            for span in self._by_what_is_known(without.text):
                start, end = without.where(span.start, span.end)
                found.append(Span(start, end, span.kind, value=span.value or without.text[span.start : span.end]))
        if not found:
            return []
        put = [one.span() for one in heuristics.PLACEHOLDER.finditer(text)]
        return merge_overlapping([piece for span in found for piece in _outside_placeholders(span, put, text)])

    def _by_what_is_known(self, text: str) -> Iterator[Span]:
        """Secrets and words that are known already, and what own patterns find."""
        for start, end, value in self._known.secrets_in(text):
            yield Span(start, end, "known-secret", value=value)
        for start, end, word, kind in self._known.words_in(text):
            yield Span(start, end, kind, value=word)
        yield from self._by_patterns(text)

    def _by_patterns(self, text: str) -> Iterator[Span]:
        """What own patterns find: line by line, and long lines in pieces, so that no pattern can take forever."""
        for name, pattern in self._patterns.items():
            for start, end in _split_pieces(text):
                for found in pattern.finditer(text, start, end):
                    if found[0] and found[0] not in self._keep:
                        yield Span(found.start(), found.end(), name)

    def _placeholder(self, span: Span, text: str) -> str:
        value = text[span.start : span.end] if span.kind == "home" else span.value or text[span.start : span.end]
        family = span.kind if span.kind in self._patterns else placeholder_family(span.kind)
        if family in {"user", "host", "email", "word"}:
            value = value.lower()
        return self._placeholders.of(family, value)

    def _learn(self, value: str, span: Span) -> None:
        """Know a thing from now on, and let its number be by the order in which things were met."""
        if value in self._keep or heuristics.PLACEHOLDER.search(value):
            return
        if span.kind in PERSONAL_KINDS:
            if span.kind == "user":
                self._learn_user(value)
            elif span.kind == "host" and value.lower() not in GENERIC_USER_NAMES:
                self._known.add_word(value, "host", whole=True)
            return
        self._placeholders.of("secret", value)
        if not span.local_only and value not in self._known:
            self._known.add(value)
            for line in body_lines(value) if span.kind == PRIVATE_KEY else ():
                self._placeholders.same("secret", line, value)
                self._known.add(line)

    def _learn_user(self, name: str) -> None:
        if len(name) >= _MIN_NAME and name.lower() not in GENERIC_USER_NAMES and name not in self._keep:
            self._known.add_word(name, "user", whole=True)

    def _is_secret_by(self, key: str, text: str) -> bool:
        return is_secret_name(key) and is_credible(key, text, quoted=True) and text not in self._keep

    def _text(self, text: str, place: str, key: str | None) -> str:
        """A text of a tree, by its key where that tells."""
        if key is not None and self._fixed.is_fixed(key, text):
            return text
        if key is not None and self._is_secret_by(key, text):
            span = Span(0, len(text), kind_of(key, text))
            made = self._placeholder(span, text)
            self._found[span.kind, place, made] += 1
            return made
        return self.redact(text, place)

    def _value(self, value: Any, place: str, key: str | None, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value, place, key)
        if depth > _MAX_DEPTH:
            return None
        if isinstance(value, dict):
            made: dict[str, Any] = {}
            for name, one in value.items():
                shown = name if name in self._fixed.keys else self.redact(str(name), place)
                made[shown] = self._value(one, f"{place}.{shown}" if place else place, str(name), depth + 1)
            return made
        if isinstance(value, list | tuple):
            return [self._value(one, place, key, depth + 1) for one in value]
        return value


def _surrounding_word(text: str, start: int, end: int) -> str:
    """The word that a span is part of, in small letters."""
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end].lower()


def leftovers(redactor: Redactor, text: str, place: str = "") -> list[Finding]:
    """What a text that is about to be given out still holds; an export with any is refused."""
    return redactor.check(text, place)


def _outside_placeholders(span: Span, put: list[tuple[int, int]], text: str) -> Iterator[Span]:
    """The parts of a span that lie outside of placeholders, if they can say anything."""
    at = span.start
    first = bisect_right(put, (at, 0))
    first -= first > 0 and put[first - 1][1] > at
    inside = put[first : bisect_right(put, (span.end - 1, len(text) + 1))]
    if not inside:
        yield span
        return
    for start, end in [*inside, (span.end, span.end)]:
        piece = text[at:start]
        if sum(map(str.isalnum, piece)) >= _MIN_REST:
            yield Span(at, start, span.kind, local_only=True)
        at = max(at, end)


def _split_pieces(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        while end - start > _PIECE_LENGTH:
            yield start, start + _PIECE_LENGTH
            start += _PIECE_LENGTH - _OVERLAP
        yield start, end
        start = end + 1


def _texts_with_keys(value: Any, fixed: frozenset[str]) -> Iterator[tuple[str, str | None]]:
    """All texts of a tree, each with the key it belongs to; keys are texts, too, but for those of the format."""
    waiting: list[tuple[Any, str | None]] = [(value, None)]
    while waiting:
        one, key = waiting.pop()
        if isinstance(one, str):
            yield one, key
        elif isinstance(one, dict):
            waiting += [(name, None) for name in one if isinstance(name, str) and name not in fixed]
            waiting += [(inner, str(name)) for name, inner in reversed(one.items())]
        elif isinstance(one, list | tuple):
            waiting += [(inner, key) for inner in reversed(one)]


class Finding(Struct, frozen=True):
    """Something of a kind that was found at a place, and what stands there instead. `count` is how often."""

    kind: str
    place: str
    placeholder: str
    count: int = 1


__all__ = ["Finding", "Redactor", "Settings", "leftovers"]
