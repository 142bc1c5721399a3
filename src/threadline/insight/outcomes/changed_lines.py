"""The lines that an edit removed and added, and how many of the added ones survive later edits.

Lines come from the patch that the tool recorded; a file that was created has only added ones. Without a patch, as in
the transcripts of older agents, they are the lines of the input that differ.

To survive means: no later edit of the session removed a line with the same text. Lines are compared without the spaces
around them, because a recorded patch shows tabs as spaces. A line is stored as a checksum.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from zlib import crc32

from msgspec import Struct

from threadline.model.call_summary import list_of


class ChangedLines(Struct, array_like=True, gc=False):
    """The numbers of lines that an edit added and removed, and the checksums of those lines, packed."""

    added: int
    removed: int
    added_sums: bytes
    removed_sums: bytes
    is_whole: bool = False
    """Whether the added lines are the whole file, so that nothing from before is left."""


def checksum(line: str) -> int:
    """The checksum of a line, without the spaces around it."""
    return crc32(line.strip().encode(errors="replace"))


def pack_lines(lines: Iterable[str]) -> bytes:
    """The checksums of lines, four bytes each."""
    return array("I", map(checksum, lines)).tobytes()


def unpack_sums(packed: bytes) -> array[int]:
    """The checksums in packed form."""
    sums: array[int] = array("I")
    sums.frombytes(packed)
    return sums


def changed_lines(raw: Any, arguments: Any) -> ChangedLines | None:
    """What an edit changed, from the tool's own result or else from the call's input; None if neither says so."""
    lines = [line for hunk in list_of(raw, "structuredPatch") for line in list_of(hunk, "lines")]
    if lines:
        removed = [line[1:] for line in lines if isinstance(line, str) and line[:1] == "-"]
        added = [line[1:] for line in lines if isinstance(line, str) and line[:1] == "+"]
        return ChangedLines(len(added), len(removed), pack_lines(added), pack_lines(removed))
    result = raw if isinstance(raw, dict) else {}
    content = result.get("content") if isinstance(result.get("content"), str) else None
    inputs = arguments if isinstance(arguments, dict) else {}
    if content is None and isinstance(inputs.get("content"), str) and "file_path" in inputs:
        content = inputs["content"]
    if content is not None:
        if isinstance(result.get("originalFile"), str):  # it was written again, and the patch is empty
            return ChangedLines(0, 0, b"", b"")
        written = _split_lines(content)
        return ChangedLines(len(written), 0, pack_lines(written), b"", is_whole=True)
    pairs = list(_replaced_texts(result, inputs))
    if not pairs:
        return None
    differing = [_differing_lines(old, new) for old, new in pairs]
    removed = [line for old, _ in differing for line in old]
    added = [line for _, new in differing for line in new]
    return ChangedLines(len(added), len(removed), pack_lines(added), pack_lines(removed))


def _replaced_texts(result: dict[str, Any], inputs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    edits = list_of(inputs, "edits")
    candidates = [
        *((edit.get("old_string"), edit.get("new_string")) for edit in edits if isinstance(edit, dict)),
        (inputs.get("old_string"), inputs.get("new_string")),
        (result.get("oldString"), result.get("newString")) if not inputs else (None, None),
        (result.get("old_source") or "", inputs.get("new_source")),
    ]
    for old, new in candidates:
        if isinstance(old, str) and isinstance(new, str) and old != new:
            yield old, new


def _split_lines(text: str) -> list[str]:
    """The lines of a text as git and a patch count them: a form feed or a Unicode separator ends none."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _differing_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines of two texts without those that both begin and end with."""
    before, after = _split_lines(old), _split_lines(new)
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


class LineOwners:
    """The lines of one file that a session added, each with the edit that did, while edits are applied in order."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._edits: dict[int, list[int]] = {}
        """The edits that added each line, in order: one for each time that it is there."""

    def apply(self, change: ChangedLines, edit: int) -> None:
        """Apply an edit, by its number."""
        if change.is_whole:
            self._counts.clear()
            self._edits.clear()
        for line in unpack_sums(change.removed_sums) if self._edits else ():
            if edits := self._edits.get(line):
                self._counts[edits.pop()] -= 1  # the last edit that added it
        added = unpack_sums(change.added_sums)
        for line in added:
            self._edits.setdefault(line, []).append(edit)
        self._counts[edit] += len(added)

    def count(self) -> Counter[int]:
        """How many lines of each edit survive."""
        return self._counts.copy()

    def count_in(self, text: str) -> Counter[int]:
        """How many lines of each edit a text contains."""
        counts: Counter[int] = Counter()
        for line, number in Counter(map(checksum, _split_lines(text))).items():
            counts.update(self._edits.get(line, ())[:number])
        return counts
