"""Search a finished file again for anything that must not be shared, and refuse it if something is found.

The text that a reader would see is extracted from HTML and JSON first. Messages contain the kinds and numbers of
findings, but never the values.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from threadline.errors import Error
from threadline.export.redacted_copies import strip_media
from threadline.export.redaction_settings import OWN_WORDS
from threadline.model.text import count
from threadline.redact import (
    Finding,
    FormatWords,
    Level,
    Redactor,
    SessionRedactor,
    format_vocabulary,
    join_leaves,
    join_lines,
    list_leaves,
    word_set,
)

_STYLE_OR_SCRIPT = re.compile(r"<style>.*?</style>|<script>.*?</script>", re.DOTALL)
_JSON_SCRIPT = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
# Tags inside a word or a line of code do not separate words; our own elements with a class do.
_INLINE_TAG = re.compile(
    r"</(?:span|b|i|em|strong|code|a|s|mark)>|<(?:em|strong|code|s|mark)>|<a href[^>]*>"
    r'|<span class="(?:[a-z]|add|del)">'
)
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE_TEXT = re.compile(r' (?:title|href|alt|aria-label|datetime|id|data-[a-z]+)="([^"]*)"')
_INLINE_IMAGE = re.compile(r' src="data:[^"]*"')
_CHECK_SIZE = 1 << 20
_OVERLAP = 1 << 14
"""Characters that are checked again with the next piece. The longest private key is shorter."""


class UnsafeExport(Error):
    """A finished file still contains something that must not be shared. Nothing was written.

    `reason` is the first sentence of its message, which then says what the options of the command can do.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.reason} Hide them with --hide WORD, leave parts out (--tools none, --from, --to), or export without"
            " redaction (--no-redact)."
        )


def raise_if_unsafe(leftovers: list[Finding]) -> None:
    """Raise an error with the kinds and numbers of leftovers.

    Raises:
        UnsafeExport: there are leftovers.
    """
    if not leftovers:
        return
    counts = Counter[str]()
    for finding in leftovers:
        counts[finding.kind] += finding.count
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(counts.items()))
    places = sorted({finding.place for finding in leftovers})
    where = ", ".join(places[:3]) + (f" and {len(places) - 3:,} more" if len(places) > 3 else "")  # noqa: PLR2004 - a few
    secrets = count(sum(counts.values()), "secret or name", "secrets or names")
    raise UnsafeExport(f"Nothing was written, because {secrets} would remain in {where} ({kinds}).")


def find_leftovers(redactor: Redactor, form: str, text: str, place: str) -> list[Finding]:
    """Find what must not be shared in a file of this format, except threadline's own words."""
    findings: list[Finding] = []
    for readable, is_joined in _readable_texts(form, text):
        findings += redactor.check(readable, place, OWN_WORDS, joined_lines=is_joined)
    return findings


def find_leftovers_in_lines(redactor: SessionRedactor, lines: Iterable[bytes], place: str) -> Iterator[Finding]:
    """Find what must not be shared in the lines of a transcript, except threadline's own words.

    A line that was searched when it was redacted, and is still the same, is not searched again. The others are searched
    many at once, because nearly none contains anything.
    """
    others: list[str] = []
    unsearched = (line.decode(errors="replace") for line in lines if not redactor.is_safe(line))
    for record in redactor.find_suspects(_decode_lines(unsearched, others)):
        for text, is_joined in _json_texts(record):
            yield from redactor.redactor.check(text, place, OWN_WORDS, joined_lines=is_joined)
    for line in others:
        yield from redactor.redactor.check(line, place, OWN_WORDS)


def _decode_lines(lines: Iterable[str], others: list[str]) -> Iterator[Any]:
    """The records of lines. A line that is not JSON is added to `others`."""
    for line in lines:
        try:
            yield strip_media(json.loads(line))
        except (ValueError, RecursionError):
            others.append(line)


class StreamChecker:
    """Checks an HTML file that is written in pieces, including text that spans two pieces."""

    def __init__(self, redactor: Redactor, place: str) -> None:
        self._redactor = redactor
        self._place = place
        self._pieces: list[str] = []
        self._size = 0
        self._overlap = ""
        self._counts = Counter[tuple[str, str]]()

    def feed(self, piece: str) -> None:
        """Add a piece. Pieces are checked when there are enough characters."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size >= _CHECK_SIZE:
            self._check()

    def finish(self) -> list[Finding]:
        """Check the rest; return all findings."""
        self._check()
        return [
            Finding(kind, self._place, placeholder, number)
            for (kind, placeholder), number in self._counts.items()
            if number > 0
        ]

    def _check(self) -> None:
        *others, (text, _is_joined) = _html_texts("".join(self._pieces))
        self._pieces, self._size = [], 0
        for other, is_joined in others:
            self._counts.update(self._count(other, joined_lines=is_joined))
        joined = self._overlap + text
        self._counts.update(self._count(joined))
        self._counts.subtract(self._count(self._overlap))
        cut = joined.find("\n", max(0, len(joined) - _OVERLAP))
        self._overlap = joined[cut + 1 :] if cut >= 0 else joined[-_OVERLAP:]

    def _count(self, text: str, *, joined_lines: bool = False) -> dict[tuple[str, str], int]:
        findings = self._redactor.check(text, self._place, OWN_WORDS, joined_lines=joined_lines)
        return {(finding.kind, finding.placeholder): finding.count for finding in findings}


def _readable_texts(form: str, text: str) -> Iterator[tuple[str, bool]]:
    """The texts that a reader of the file can see, and whether each is lines joined by blanks."""
    if form == "html":
        yield from _html_texts(text)
    elif form == "json":
        yield from _json_texts(json.loads(text))
    elif form == "jsonl":
        for line in text.split("\n"):
            try:
                yield from _json_texts(json.loads(line))
            except (ValueError, RecursionError):
                yield line, False
    elif form == "md":
        yield html.unescape(text.replace("\\<", "<")), False
    else:
        yield text, False


def _html_texts(text: str) -> Iterator[tuple[str, bool]]:
    for data in _JSON_SCRIPT.findall(text):
        yield from _json_texts(json.loads(data))
    bare = _INLINE_IMAGE.sub("", _STYLE_OR_SCRIPT.sub("", _JSON_SCRIPT.sub("", text)))
    # Blank lines between them: an anchor is not the value of the one before it.
    yield html.unescape("\n\n".join(sorted(set(_ATTRIBUTE_TEXT.findall(bare))))), False
    yield html.unescape(_TAG.sub("\n", _INLINE_TAG.sub("", bare))), False


def _json_texts(value: Any, words: FormatWords | None = None) -> Iterator[tuple[str, bool]]:
    """The texts of a JSON value as `SessionRedactor` sees them: joined in reading order, and the lines of each joined.

    Media are left out by the same rule that removes them from copies. `words` are those of the format.
    """
    leaves = list(list_leaves(strip_media(value), words or format_vocabulary()))
    yield join_leaves(leaves).text, False
    yield join_lines(leaves).text, True


_DATA_KEYS = word_set(
    "agent agent_id agent_type arguments completed conversation copied description ended epoch error extra"
    " final_metrics function function_name injected input_schema is_copied_context llm_call_count message_id metadata"
    " metrics model_name notes observation outcome parameters parent project properties reasoning reasoning_content"
    " reasoning_effort redacted schema_version session_id signature source source_call_id source_id source_type"
    " started step_id steps subagent_trajectory_ref synthetic target task_id task_set title tool tool_call_id"
    " tool_calls tools trajectory_id transcript_id"
)


@cache
def _data_vocabulary() -> FormatWords:
    """The fixed words of transcripts, and the keys of the formats for other programs."""
    words = format_vocabulary()
    return FormatWords(words.keys | _DATA_KEYS, words.values)


class RecordChecker:
    """Checks records of trajectories, logs and data sets before they are written.

    A record contains several entries of a transcript next to each other, which may reveal something that none of them
    does. It is redacted again then. `leftovers` is what is still found after that.
    """

    def __init__(self, redactor: SessionRedactor | None) -> None:
        self._redactor = redactor
        self.leftovers: list[Finding] = []

    def check(self, record: Any, name: str) -> Any:
        """Check a record of the file with this name; return it, redacted again if that is necessary."""
        if self._redactor is None:
            return record
        leftovers = self._find(record, name)
        if leftovers and self._redactor.level is not Level.METRICS:
            record = self._redactor.redact(record, name)
            leftovers = self._find(record, name)
        self.leftovers += leftovers
        return record

    def check_lines(self, path: Path, name: str) -> None:
        """Check a transcript line by line, because a secret does not span lines and a transcript may have any size."""
        if self._redactor is None:
            return
        with path.open("rb") as lines:
            self.leftovers += find_leftovers_in_lines(self._redactor, lines, name)

    def _find(self, record: Any, name: str) -> list[Finding]:
        findings: list[Finding] = []
        if self._redactor is not None:
            for text, is_joined in _json_texts(record, _data_vocabulary()):
                findings += self._redactor.redactor.check(text, name, OWN_WORDS, joined_lines=is_joined)
        return findings
