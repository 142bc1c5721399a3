"""Replace secrets and personal data in the texts of one export. Equal values get the same placeholder."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from threadline.redact.known_secrets import KnownSecrets, Placeholders, placeholder_family
from threadline.redact.records import (
    ID_FIELDS,
    ID_VALUE,
    MAX_DEPTH,
    WITHOUT_TEXT,
    FormatWords,
    join_group,
    positions_in_group,
    quote_secret_numbers,
)
from threadline.redact.rules import heuristics
from threadline.redact.rules.assignments import is_credible
from threadline.redact.rules.entropy import find_random_values
from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import is_distinctive, is_secret_name, kind_of
from threadline.redact.rules.multiline import PRIVATE_KEY, body_lines
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.rules.personal import GENERIC_USER_NAMES, find_personal_data
from threadline.redact.rules.prefilter import open_gates
from threadline.redact.scanner import PERSONAL_KINDS, counts_in_lines, find_spans, merge_overlapping
from threadline.redact.settings import PIECE_LENGTH, Level, Settings
from threadline.redact.views import TextView, complete_views, text_views

_MAX_ROUNDS = 5
_LONG_TEXT = 128 * 1024
_REACH = 8 * 1024
"""How far a replacement may change what is found in a long text, as in `scanner`."""
_CACHED_LENGTH = 256
_OVERLAP = 200
_MIN_NAME = 3
_MIN_LEFTOVER = 6
# Fields that contain Claude Code's working directory.
_PROJECT_KEYS = frozenset(("cwd", "project", "originalCwd", "projectPath", "worktreePath"))
_MIN_REST = 4
_MAX_FOUND = 100_000
# A list of numbers may be a key if it is the whole text.
_ALONE = compile_lazily(r"[\s0-9?]*\[[\s0-9]")
_NAME_KINDS = frozenset(("word", "user", "host", "name"))


class Redactor:
    """Replaces secrets and personal data in the texts of one export.

    Let it `learn` every text first. A secret that is recognized by its context in one place is then replaced in all
    places. `redact` also learns from its text, but cannot change what it returned before. `fixed` are the words of the
    file format, which are never replaced.
    """

    def __init__(self, settings: Settings | None = None, fixed: FormatWords | None = None) -> None:
        self._settings = settings or Settings()
        self.level = self._settings.level
        """How much is removed."""
        self._fixed = fixed or FormatWords()
        self._patterns = self._settings.compile_patterns()
        self._keep = frozenset(self._settings.keep)
        self._placeholders = Placeholders()
        self._known = KnownSecrets()
        self._seen_words: set[str] = set()
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._leftovers: dict[str, Span] = {}
        self._learned_texts: set[str] = set()
        self._projects: set[str] = set()
        # What the rules find, by the hash of the text. Most texts are searched several times: to learn and to redact.
        self._clean_hashes: set[int] = set()
        self._found: dict[int, list[Span]] = {}
        self._found_count = 0
        # Hashes of texts that have no views, as most texts, and of texts whose views are clean.
        self._plain_hashes: set[int] = set()
        self._clean_views: set[int] = set()
        self._is_in_record = False
        # Spans that only the structure around a text reveals, by text.
        self._marks: dict[str, list[Span]] = {}
        self._cache: dict[str, tuple[str, Counter[tuple[str, str]]]] = {}
        self._cache_version = 0
        for word in sorted(self._settings.words, key=len, reverse=True):
            self._known.add_word(word, "word", whole_word=False)
        for user in self._settings.users:
            self._learn_user(user)
        for host in self._settings.hosts:
            self._known.add_word(host, "host", whole_word=True)

    @property
    def findings(self) -> list[Finding]:
        """The replacements so far, by kind and place, in the order of the first occurrence."""
        return [Finding(kind, place, placeholder, count) for (kind, place, placeholder), count in self._counts.items()]

    @property
    def unseen_words(self) -> tuple[str, ...]:
        """The words of the settings that no text contained so far."""
        seen = {word.lower() for word in self._seen_words}
        return tuple(word for word in self._settings.words if word.lower() not in seen)

    def learn(self, text: str) -> None:
        """Learn the secrets of a text, so that they are replaced everywhere."""
        # The same short texts, such as names and paths, occur in every entry.
        if text not in self._learned_texts:
            self._learn_from(text)
            if len(text) < _CACHED_LENGTH:
                self._learned_texts.add(text)

    def learn_value(self, value: Any) -> None:
        """Learn the secrets of every text in a JSON value, also by their keys."""
        for text, key in _texts_with_keys(value, self._fixed.keys):
            if key is not None and self._is_secret_field(key, text):
                self._learn(text, Span(0, len(text), kind_of(key, text), local_only=not is_distinctive(text)))
            else:
                self.learn(text)
        self.learn_projects(value)

    def learn_projects(self, value: Any) -> None:
        """Learn the owners of the home directories that a record's working directories are in."""
        for key in _PROJECT_KEYS if isinstance(value, dict) else ():
            text = value.get(key)
            if isinstance(text, str) and text not in self._projects:
                self._projects.add(text)
                for span in find_spans(text):
                    self._learn_user(span.value if span.kind == "home" else "")

    def find_spans(self, text: str, views: list[TextView] | None = None) -> list[Span]:
        """Find everything that the rules of this level find in a text. Spans may overlap."""
        digest = hash(text)
        if digest in self._clean_hashes:
            return []
        spans = self._found.get(digest)
        if spans is None:
            spans = self._find_by_rules(text, self.views_of(text) if views is None else views)
            self._remember_spans(digest, spans)
        return spans

    def _remember_spans(self, digest: int, spans: list[Span]) -> None:
        if not spans:
            self._clean_hashes.add(digest)
            return
        if self._found_count > _MAX_FOUND:
            self._found.clear()
            self._found_count = 0
        self._found[digest] = spans
        self._found_count += len(spans)

    def views_of(self, text: str) -> list[TextView]:
        """The views of a text. Most texts have none, which is remembered."""
        digest = hash(text)
        if digest in self._plain_hashes:
            return []
        views = text_views(text)
        if not views:
            self._plain_hashes.add(digest)
        return views

    def search_at_once(self, texts: Iterable[str]) -> None:
        """Search many short texts at once and note in which nothing is. That is many times faster than one by one."""
        unsearched = [
            text
            for text in sorted(texts)
            if hash(text) not in self._clean_hashes and hash(text) not in self._found and not _ALONE.match(text)
        ]
        joined, starts = join_group(unsearched)
        views, is_complete = complete_views(joined)
        if not is_complete:
            return
        places = [place for view in views for place in view.places]
        with_views = {at for place in places for at in positions_in_group(starts, *place)}
        touched = {
            at for span in self._find_by_rules(joined, views) for at in positions_in_group(starts, span.start, span.end)
        }
        self.note_plain(text for at, text in enumerate(unsearched) if at not in with_views)
        self.note_clean(text for at, text in enumerate(unsearched) if at not in touched)

    def _find_by_rules(self, text: str, views: list[TextView]) -> list[Span]:
        spans = find_spans(text, views)
        return [*spans, *find_strictly(text)] if self.level is Level.STRICT else spans

    def note_clean(self, texts: Iterable[str]) -> None:
        """Note that the rules find nothing in these texts, so that they are not searched again."""
        self._clean_hashes.update(map(hash, texts))

    def note_plain(self, texts: Iterable[str]) -> None:
        """Note that these texts have no views."""
        self._plain_hashes.update(map(hash, texts))

    def note_clean_views(self, texts: Iterable[str]) -> None:
        """Note that the rules find nothing in the views of these texts either."""
        self._clean_views.update(map(hash, texts))

    def learn_span(self, text: str, span: Span) -> None:
        """Remember the value of a span that was found in a text."""
        value = text[span.start : span.end]
        # A web page may have the path /home/settings. Only a path that looks like an account's home names a user.
        if span.kind == "home" and ("Users" in value or text.startswith("/.", span.end)):
            self._learn_user(span.value)
        self._learn(value if span.kind == "home" else span.value or value, span)

    def mark(self, text: str, span: Span) -> None:
        """Redact a span wherever exactly this text occurs. The rules would not find it in the text alone."""
        spans = self._marks.setdefault(text, [])
        if span not in spans and text[span.start : span.end] not in self._keep:
            spans.append(span)
            self._cache.pop(text, None)

    def redact(self, text: str, place: str = "") -> str:
        """Replace everything to redact in a text. `place` is its origin, for the findings."""
        cached = self._cache.get(text) if self._known.changes == self._cache_version else None
        if cached is None:
            cached = self._redact_uncached(text)
        redacted, counts = cached
        for (kind, placeholder), count in counts.items():
            self._counts[kind, place, placeholder] += count
        return redacted

    def redact_value(self, value: Any, place: str = "") -> Any:
        """Replace everything to redact in a JSON value, including its keys."""
        self.learn_value(value)
        return self._redact_node(value, place, None, 0)

    def redact_record(self, record: Any, place: str = "") -> Any:
        """The same for a record that was learned, and that the caller searches as a whole afterwards."""
        self._is_in_record = True
        try:
            return self._redact_node(record, place, None, 0)
        finally:
            self._is_in_record = False

    def redact_own_fields(self, record: dict[str, Any], place: str = "") -> dict[str, Any]:
        """The same for a record that has something to redact only in its own fields; see `is_unchanged`."""
        self._is_in_record = True
        try:
            redacted: dict[str, Any] = {}
            for name, item in record.items():
                redacted_name = name if name in self._fixed.keys else self.redact(name, place)
                item_place = f"{place}.{redacted_name}" if place else place
                redacted[redacted_name] = self._redact_text(item, item_place, name) if type(item) is str else item
            return redacted
        finally:
            self._is_in_record = False

    def is_unchanged(self, texts: list[str], ids: list[str]) -> bool:
        """Whether redacting these texts of a record one by one would change none of them.

        The texts were learned, and none is a secret by the name of its field.
        """
        hashes = set(map(hash, texts))
        return (
            not self._patterns
            and self.level is Level.STANDARD
            and hashes <= self._clean_hashes
            and hashes - self._plain_hashes <= self._clean_views
            and self._marks.keys().isdisjoint(texts)
            and next(self._find_known("\n".join((*texts, *ids))), None) is None
        )

    def check(
        self, text: str, place: str = "", own_words: frozenset[str] = frozenset(), *, joined_lines: bool = False
    ) -> list[Finding]:
        """Find what a redacted text still contains. If there are findings, the text must not be published.

        `own_words` are words in lower case that threadline's own output contains. They do not count as names.
        `joined_lines`: the text is lines joined by blanks, of which not every span counts.
        """
        views = self.views_of(text)
        counts: Counter[tuple[str, str]] = Counter()
        for start, end, span in self._spans_to_redact(text, self.find_spans(text, views), views):
            if joined_lines and not counts_in_lines(span, text):
                continue
            if not (span.kind in _NAME_KINDS and _surrounding_word(text, start, end) in own_words):
                counts[span.kind, self._placeholder(span, text)] += 1
                self._leftovers.setdefault(text[start:end], span)
        return [Finding(kind, place, placeholder, count) for (kind, placeholder), count in counts.items()]

    def learn_leftovers(self) -> bool:
        """Learn what `check` found, so that redacting the same texts again removes it; whether there is anything new.

        The findings so far are forgotten, because the caller starts again.
        """
        before = self._known.changes
        for text, span in self._leftovers.items():
            for line in (span.value or text).split("\n"):
                if len(line.strip()) >= _MIN_LEFTOVER and not heuristics.PLACEHOLDER.search(line):
                    self._placeholders.same("secret", line.strip(), text)
                    self._known.add(line.strip())
        self._leftovers.clear()
        self._counts.clear()
        return self._known.changes != before

    @property
    def version(self) -> int:
        """A number that grows with everything that is learned."""
        return self._known.changes

    def find_places(self, text: str, views: list[TextView], *, only_known: bool) -> list[tuple[int, int]]:
        """Where a text contains something to redact. `only_known`: the rules find nothing in it."""
        spans = [] if only_known else self._find_by_rules(text, views)
        return [(start, end) for start, end, _span in self._spans_to_redact(text, spans, views)]

    def find_leftovers(self, text: str, counts: Callable[[Span], bool]) -> list[tuple[int, int, Span]]:
        """Find what a redacted text still contains, as `merge_overlapping` returns it, and learn from it.

        Spans of the rules that do not count are ignored. Learning their values would make them known secrets, which
        the check of the finished file finds and refuses.
        """
        views = self.views_of(text)
        spans = [span for span in self.find_spans(text, views) if counts(span)]
        for span in spans:
            self.learn_span(text, span)
        return self._spans_to_redact(text, spans, views)

    def count_placeholder(self, span: Span, text: str, place: str) -> str:
        """The placeholder of a span that the caller replaces, which is counted as a finding."""
        placeholder = self._placeholder(span, text)
        self._counts[span.kind, place, placeholder] += 1
        return placeholder

    def _learn_from(self, text: str, views: list[TextView] | None = None) -> list[Span]:
        """Find spans by the rules and remember their values."""
        spans = self.find_spans(text, views)
        for span in spans:
            self.learn_span(text, span)
        return spans

    def _redact_uncached(self, text: str) -> tuple[str, Counter[tuple[str, str]]]:
        """Redact a text and count what was replaced. The result is cached until something new is learned."""
        counts: Counter[tuple[str, str]] = Counter()
        before = text
        redacted, places = self._redact_once(text, counts)
        for _round in range(_MAX_ROUNDS - 1):
            if redacted == before or self._is_safe_around(redacted, places):
                break
            before = redacted
            redacted, places = self._redact_once(before, counts)
        if self._known.changes != self._cache_version:
            self._cache.clear()
            self._cache_version = self._known.changes
        if len(text) < _CACHED_LENGTH:
            self._cache[text] = redacted, counts
        return redacted, counts

    def _is_safe_around(self, text: str, places: list[tuple[int, int]]) -> bool:
        """Whether nothing is left in a long text after a few replacements. Only the text near them has changed."""
        if len(text) < _LONG_TEXT:
            return False
        parts = _parts_around(text, places)
        if sum(end - start for start, end in parts) > len(text) // 2:
            return False
        for start, end in parts:
            part = text[start:end]
            views = self.views_of(part)
            if self._spans_to_redact(part, self.find_spans(part, views), views):
                return False
        return True

    def _redact_once(self, text: str, counts: Counter[tuple[str, str]]) -> tuple[str, list[tuple[int, int]]]:
        """Replace everything that is found; also return where the placeholders are."""
        parts: list[str] = []
        places: list[tuple[int, int]] = []
        last = length = 0
        # The views of a long text are searched for known secrets with the whole record.
        views = [] if self._is_in_record and hash(text) in self._clean_views else self.views_of(text)
        spans = [*self._learn_from(text, views), *self._marks.get(text, ())]
        for start, end, span in self._spans_to_redact(text, spans, views):
            placeholder = self._placeholder(span, text)
            counts[span.kind, placeholder] += 1
            parts += [text[last:start], placeholder]
            length += start - last + len(placeholder)
            places.append((length - len(placeholder), length))
            last = end
        return ("".join([*parts, text[last:]]) if parts else text), places

    def _spans_to_redact(self, text: str, by_rules: list[Span], views: list[TextView]) -> list[tuple[int, int, Span]]:
        """All spans to replace, without values to keep and without placeholders."""
        spans = [span for span in by_rules if text[span.start : span.end] not in self._keep]
        spans += self._find_known(text)
        for view in views:
            for span in self._find_known(view.text):
                start, end = view.where(span.start, span.end)
                spans.append(Span(start, end, span.kind, value=span.value or view.text[span.start : span.end]))
        if not spans:
            return []
        placeholders = [match.span() for match in heuristics.PLACEHOLDER.finditer(text)]
        return merge_overlapping([piece for span in spans for piece in _outside_placeholders(span, placeholders, text)])

    def _find_known(self, text: str) -> Iterator[Span]:
        """Find known secrets and words, and matches of the user's patterns."""
        for start, end, value in self._known.secrets_in(text):
            yield Span(start, end, "known-secret", value=value)
        for start, end, value in self._known.broken_secrets_in(text):
            yield Span(start, end, "known-secret", value=value)
        for start, end, word, kind in self._known.words_in(text):
            self._seen_words.add(word)
            yield Span(start, end, kind, value=word)
        yield from self._find_by_patterns(text)

    def _find_by_patterns(self, text: str) -> Iterator[Span]:
        """Find matches of the user's patterns, line by line and long lines in pieces, so that the time is bounded."""
        for name, pattern in self._patterns.items():
            for start, end in _split_pieces(text):
                for match in pattern.finditer(text, start, end):
                    if match[0] and match[0] not in self._keep:
                        yield Span(match.start(), match.end(), name)

    def _placeholder(self, span: Span, text: str) -> str:
        value = text[span.start : span.end] if span.kind == "home" else span.value or text[span.start : span.end]
        family = span.kind if span.kind in self._patterns else placeholder_family(span.kind)
        if family in {"user", "host", "email", "name", "word"}:
            value = value.lower()
        return self._placeholders.of(family, value)

    def _learn(self, value: str, span: Span) -> None:
        """Remember a value. Placeholders are numbered in the order of the first occurrence."""
        if value in self._keep or heuristics.PLACEHOLDER.search(value):
            return
        if span.kind in PERSONAL_KINDS:
            if span.kind == "user":
                self._learn_user(value)
            elif span.kind == "host" and value.lower() not in GENERIC_USER_NAMES:
                self._known.add_word(value, "host", whole_word=True)
            elif span.kind == "name" and not span.local_only:
                self._known.add_word(value, "name", whole_word=True)
            return
        self._placeholders.of("secret", value)
        if not span.local_only and value not in self._known:
            self._known.add(value)
            for line in body_lines(value) if span.kind == PRIVATE_KEY else ():
                self._placeholders.same("secret", line, value)
                self._known.add(line)

    def _learn_user(self, name: str) -> None:
        if len(name) >= _MIN_NAME and name.lower() not in GENERIC_USER_NAMES and name not in self._keep:
            self._known.add_word(name, "user", whole_word=True)

    def _is_secret_field(self, key: str, text: str) -> bool:
        return is_secret_name(key) and is_credible(key, text, quoted=True) and text not in self._keep

    def _redact_text(self, text: str, place: str, key: str | None) -> str:
        """Redact a text of a JSON value, using its key."""
        if key is not None and self._fixed.is_fixed(key, text):
            return text
        if key is not None and self._is_secret_field(key, text):
            span = Span(0, len(text), kind_of(key, text))
            placeholder = self._placeholder(span, text)
            self._counts[span.kind, place, placeholder] += 1
            return placeholder
        if key in ID_FIELDS and self.level is Level.STANDARD and ID_VALUE.fullmatch(text):
            # No rule finds anything in ids and times, and nearly all of them are different.
            if not self._patterns and not self._known.may_occur_in(text):
                return text
            return text if next(self._find_known(text), None) is None else self.redact(text, place)
        return self.redact(text, place)

    def _redact_node(self, value: Any, place: str, key: str | None, depth: int) -> Any:
        if isinstance(value, str):
            return self._redact_text(value, place, key)
        if depth > MAX_DEPTH:
            return None
        if isinstance(value, dict):
            redacted: dict[str, Any] = {}
            for name, item in quote_secret_numbers(value).items():
                redacted_name = name if name in self._fixed.keys else self.redact(str(name), place)
                if type(item) in WITHOUT_TEXT and depth < MAX_DEPTH:
                    redacted[redacted_name] = item
                else:
                    redacted[redacted_name] = self._redact_node(
                        item, f"{place}.{redacted_name}" if place else place, str(name), depth + 1
                    )
            return redacted
        if isinstance(value, list | tuple):
            return [self._redact_node(item, place, key, depth + 1) for item in value]
        return value


def _surrounding_word(text: str, start: int, end: int) -> str:
    """The word that contains a span, in lower case."""
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end].lower()


def _outside_placeholders(span: Span, placeholders: list[tuple[int, int]], text: str) -> Iterator[Span]:
    """The parts of a span outside of placeholders, if they are long enough to matter."""
    at = span.start
    first = bisect_right(placeholders, (at, 0))
    first -= first > 0 and placeholders[first - 1][1] > at
    inside = placeholders[first : bisect_right(placeholders, (span.end - 1, len(text) + 1))]
    if not inside:
        yield span
        return
    for start, end in [*inside, (span.end, span.end)]:
        piece = text[at:start]
        if sum(map(str.isalnum, piece)) >= _MIN_REST:
            yield Span(at, start, span.kind, local_only=True)
        at = max(at, end)


def _parts_around(text: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of a text, of whole lines or cut at a distance, that are near places in it."""
    parts: list[tuple[int, int]] = []
    for start, end in places:
        begin = text.find("\n", max(0, start - 2 * _REACH), max(0, start - _REACH)) + 1 or max(0, start - 2 * _REACH)
        stop = text.find("\n", end + _REACH, end + 2 * _REACH)
        stop = stop if stop >= 0 else min(len(text), end + 2 * _REACH)
        if parts and begin <= parts[-1][1]:
            parts[-1] = (parts[-1][0], stop)
        else:
            parts.append((begin, stop))
    return parts


def _split_pieces(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        while end - start > PIECE_LENGTH:
            yield start, start + PIECE_LENGTH
            start += PIECE_LENGTH - _OVERLAP
        yield start, end
        start = end + 1


def _texts_with_keys(value: Any, fixed: frozenset[str]) -> Iterator[tuple[str, str | None]]:
    """All texts of a JSON value, each with its key. Keys are also texts, except those of the format."""
    pending: list[tuple[Any, str | None]] = [(value, None)]
    while pending:
        node, key = pending.pop()
        if isinstance(node, str):
            yield node, key
        elif isinstance(node, dict):
            pending += [(name, None) for name in node if isinstance(name, str) and name not in fixed]
            pending += [(inner, str(name)) for name, inner in reversed(node.items())]
        elif isinstance(node, list | tuple):
            pending += [(inner, key) for inner in reversed(node)]


def find_strictly(text: str) -> list[Span]:
    """What only the level `strict` removes: random-looking values, paths, URLs and all addresses.

    Each is replaced where it is found and not learned: it may be a word of the format in another field.
    """
    view = text.encode("ascii", "replace")
    spans = [*find_personal_data(view, open_gates(view), strict=True), *find_random_values(view)]
    return [span._replace(local_only=True) for span in spans]


class Finding(Struct, frozen=True):
    """A kind of value that was found at a place, its placeholder, and how often it occurred."""

    kind: str
    place: str
    placeholder: str
    count: int = 1
