"""Find the secrets of the sessions that an answer quotes, also those that only another line reveals, in bounded time.

A password is recognised by the words before it, `export DB_PASSWORD=…`, and may be quoted from any other line. If a
session takes too long to be searched completely, three things are searched: the quoted lines; the surroundings of the
other occurrences of every quoted word that could be a secret; and, after the answer, everything.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from msgspec import Struct

from threadline.find import change_time_ns
from threadline.home_files import opened_in_home
from threadline.model.places import Place
from threadline.redact import SessionRedactor, Settings

_LINES_BEFORE = 3
_MAX_BYTES_BEFORE = 40_000
_LAST_BYTES = 4096
_MAX_PLACE_BYTES = 200_000
_BYTES_AT_ONCE = 64_000
_MAX_SEARCHED_LINES = 500_000
_MAX_PENDING = 50
_MAX_WORDS = 1000
_MAX_OCCURRENCES = 8
_MAX_REPEATS = 50
_REACH = 240
"""How many bytes before and after a word are searched for what makes it a secret."""
# What a secret may consist of. In a transcript, quotes, backslashes and other alphabets are escaped.
_TOKEN = re.compile(r"[!#-\[\]-~]{5,}")
_PIECE = re.compile(r"[^\"'`=:,;()\[\]{}<>|&?/@\\]{5,}")
_PUNCTUATION = "._-*!~+$%^#"
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,5}|[0-9]{4}-[0-9]{2}-[0-9]{2}\S*|[0-9a-f]{8}-[0-9a-f-]{27}\S*")
# Words with signs around them, paths, names of functions and fields.
_PLAIN_TOKEN = re.compile(r"[^A-Za-z0-9]*[A-Za-z]+(?:(?:[./:_,-]|::|->)[A-Za-z]+)*[^A-Za-z0-9]*|[^A-Za-z]*")
# Where a text starts and ends: rules depend on the start of a line.
_TEXT_EDGE = re.compile(rb'(?<!\\)"(?:(?:content|text|stdout|stderr|command|prompt|result|output)":"|\s?[}\]])')
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


class SecretSearch:
    """Learns secrets from transcripts, and removes them from answers.

    `settings` are those of exports; None switches redaction off. The first `learn_at_once` bytes of a session are
    searched completely before an answer; `learn_more` searches the rest.
    """

    def __init__(self, settings: Settings | None, learn_at_once: int) -> None:
        self._redactor = SessionRedactor(settings) if settings is not None else None
        self._learn_at_once = learn_at_once
        self._searched: set[int] = set()
        self._transcripts: dict[str, _Transcript] = {}
        # The transcripts that `learn_more` searches, in this order.
        self._pending: dict[str, None] = {}

    def redact(self, text: str) -> str:
        """Remove the secrets that are known, and those that the text itself reveals."""
        return self._redactor.redactor.redact(text) if self._redactor is not None else text

    def learn_text(self, text: str) -> None:
        """Search a text."""
        if self._redactor is not None:
            self._redactor.learn(text)

    def learn_lines(self, lines: Iterable[bytes]) -> None:
        """Search lines of transcripts, except those that were searched before."""
        if self._redactor is None:
            return
        if len(self._searched) > _MAX_SEARCHED_LINES:
            self._searched.clear()
        new = {key: line for line in lines if (key := hash(line.rstrip(b"\n"))) not in self._searched}
        self._searched.update(new)
        self._redactor.learn_all(_decode(new.values()))

    def _learn_in_order(self, lines: Iterable[bytes]) -> None:
        """Search consecutive lines, also those that were searched before: a command makes its output a secret."""
        if self._redactor is not None:
            self._redactor.learn_all(_decode(lines))

    def learn_session(self, transcripts: Iterable[str]) -> None:
        """Search the transcripts of a session completely. What takes long is left for `learn_more`."""
        if self._redactor is None:
            return
        left = self._learn_at_once
        pending: dict[str, None] = {}
        for path in transcripts:
            unsearched = self._transcript(path).unsearched
            if unsearched > left:
                pending[path] = None
            elif unsearched > 0:
                left -= unsearched
                while self._learn_next(path, unsearched):
                    pass
        self._pending = {**pending, **self._pending}  # first: the agent reads it now

    def learn_places(self, places: Iterable[Place]) -> None:
        """Search the lines at some places, with the lines before each, and not more of them than takes long."""
        if self._redactor is None:
            return
        lines: list[bytes] = []
        for place in places:
            end = place.offset + place.length
            if place.length and self._transcript(place.transcript).searched_to < end:
                start = max(0, place.offset - _MAX_BYTES_BEFORE)
                data = _read(place.transcript, start, end)
                before = data[: place.offset - start].split(b"\n")[1:][-_LINES_BEFORE - 1 :]
                lines += [*before, data[place.offset - start :]]
                if len(self._pending) < _MAX_PENDING:  # an agent reads on in what it has found
                    self._pending.setdefault(place.transcript)
                if sum(map(len, lines)) > _MAX_PLACE_BYTES:
                    break
        self.learn_lines(lines)

    def learn_words(self, texts: Mapping[str, Iterable[str]]) -> None:
        """Search for what makes a word of these texts a secret elsewhere in their transcript: texts by transcript.

        Only the part of a transcript that was not searched before is read.
        """
        if self._redactor is None:
            return
        found: list[str] = []
        for path, quoted in texts.items():
            transcript = self._transcript(path)
            if not transcript.unsearched:
                continue
            words = set(list_words(quoted)) - transcript.safe_words
            if words:
                found += surroundings(_read(path, transcript.searched_to, transcript.status.size), words)
                transcript.safe_words |= words
        self._redactor.learn("\n\n".join(found))

    def learn_more(self, seconds: float = 0.02) -> bool:
        """Search more of the transcripts that answers quoted; return whether there is more."""
        deadline = monotonic() + seconds
        while self._pending and monotonic() < deadline:
            path = next(iter(self._pending))
            if not self._learn_next(path, _BYTES_AT_ONCE):
                del self._pending[path]
        return bool(self._pending)

    def _learn_next(self, path: str, size: int) -> bool:
        """Search the next lines of a transcript; False if there are none. A line without an end is not complete."""
        transcript = self._transcript(path)
        start = transcript.searched_to
        data = b""
        while True:
            more = _read(path, start + len(data), start + len(data) + size)
            data += more
            end = data.rfind(b"\n") + 1
            if end or len(more) < size:
                break
            size *= 2
        if end:
            self._learn_in_order(data[:end].splitlines(keepends=True))
        else:
            self.learn_lines([data])
        transcript.searched_to += end
        transcript.last_bytes = (transcript.last_bytes + data[:end])[-_LAST_BYTES:]
        return end > 0

    def _transcript(self, path: str) -> _Transcript:
        """What is known about a transcript: nothing, if it was rewritten since it was searched."""
        status = read_status(path)
        transcript = self._transcripts.get(path)
        if transcript is None or not transcript.is_continued(path, status):
            transcript = self._transcripts[path] = _Transcript(status)
        elif transcript.status != status:
            transcript.status = status
            transcript.safe_words.clear()
        return transcript


class FileStatus(NamedTuple):
    """What tells that a file was changed."""

    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int


def read_status(path: str | Path) -> FileStatus:
    """The status of a file; zeros if there is none."""
    try:
        status = Path(path).stat()
    except OSError:
        return FileStatus(0, 0, 0, 0)
    return FileStatus(status.st_size, status.st_ino, status.st_mtime_ns, change_time_ns(status))


class _Transcript(Struct):
    """How far a transcript was searched."""

    status: FileStatus
    searched_to: int = 0
    last_bytes: bytes = b""
    """The last bytes that were searched."""
    safe_words: set[bytes] = set()
    """The words whose surroundings were searched in all of the rest."""

    @property
    def unsearched(self) -> int:
        """How many bytes were not searched."""
        return self.status.size - self.searched_to

    def is_continued(self, path: str, status: FileStatus) -> bool:
        """Whether a file was only appended to since."""
        if status == self.status:
            return True
        start = self.searched_to - len(self.last_bytes)
        return status.size > self.status.size and _read(path, start, self.searched_to) == self.last_bytes


def list_words(texts: Iterable[str]) -> list[bytes]:
    """The words of texts that could be a secret, or the longest part of one: not those of a sentence, dates and ids.

    >>> list_words(["The key is vK7-quiet-horse, said /home/ann42."])
    [b'vK7-quiet-horse', b'ann42']
    """
    words: dict[str, None] = {}
    for token in dict.fromkeys(token for text in texts for token in _TOKEN.findall(text)):
        pieces = [piece.strip(_PUNCTUATION) for piece in _PIECE.findall(token)]
        telling = [piece for piece in pieces if len(piece) > 3 and not _PLAIN_WORD.fullmatch(piece)]  # noqa: PLR2004 - shorter ones are in many words
        if not telling and not _PLAIN_TOKEN.fullmatch(token) and not _PLAIN_WORD.fullmatch(token):
            telling = [token.strip(",;:.()[]{}<>'`")]
        words.update(dict.fromkeys(telling))
    return [word.encode() for word in list(words)[:_MAX_WORDS] if word]


def surroundings(data: bytes, words: Iterable[bytes]) -> Iterator[str]:
    """What is around the first occurrences of words in transcripts, as plain text."""
    start, end = 0, -1
    for first, last in _find_first(data, set(words)):
        if end >= 0 and first - _REACH > end:
            yield _unescape(data[start:end])
            end = -1
        start = start if end >= 0 else max(0, first - _REACH)
        end = last + _REACH
    if end >= 0:
        yield _unescape(data[start:end])


def _find_first(data: bytes, words: set[bytes]) -> Iterator[tuple[int, int]]:
    """The first occurrences of each word, in order. Frequent words are no longer searched for after those."""
    seen: Counter[bytes] = Counter()
    at = 0
    while words:
        repeats = 0
        for match in _compile_words(words).finditer(data, at):
            word = match[0]
            seen[word] += 1
            if seen[word] <= _MAX_OCCURRENCES:
                yield match.span()
                continue
            repeats += 1
            if repeats > _MAX_REPEATS:
                at = match.end()
                break
        else:
            return
        words = {word for word in words if seen[word] <= _MAX_OCCURRENCES}


def _compile_words(words: Iterable[bytes]) -> Any:
    pattern = b"|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    try:
        import re2  # noqa: PLC0415 - an extra, without which the search takes longer
    except ImportError:
        return re.compile(pattern)
    options = re2.Options()
    options.never_capture = True
    options.max_mem = 64 << 20
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


def _unescape(data: bytes) -> str:
    """Replace the escapes of JSON in a part of a line, which may start or end anywhere."""
    return _ESCAPE.sub(_plain_bytes, _TEXT_EDGE.sub(b"\n", data)).decode(errors="replace")


def _plain_bytes(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return chr(int(match[1], 16)).encode(errors="replace")
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(match[2], match[2])


def _decode(lines: Iterable[bytes]) -> Iterator[Any]:
    for line in lines:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            if line.strip():
                yield line.decode(errors="replace")


def _read(path: str, start: int, end: int) -> bytes:
    """A part of a transcript; nothing if it cannot be read any more."""
    try:
        with opened_in_home(path) as descriptor:
            return os.pread(descriptor, end - start, start)
    except OSError:
        return b""
