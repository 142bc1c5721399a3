"""Replay what sessions recorded about a file, and keep the writer of each line.

Every recorded edit is applied to the text that was recorded before it. Where that text differs from what is known,
something outside the recorded edits changed the file: a person, a formatter, a command, git. Lines that were kept,
moved or only reformatted keep their writers; for the others nobody is known, unless the text as a whole is one that
was recorded before: then it was restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from threadline.insight.blame.alignment import align
from threadline.insight.blame.origins import (
    AMBIGUOUS,
    BEFORE,
    OUTSIDE,
    PERSON,
    Claim,
    Origin,
    Origins,
    Version,
    VersionStore,
    Windows,
    apply_claims,
    carry,
    restore,
    split_lines,
)
from threadline.model.state import EvidenceKind
from threadline.thread import FactKind, FileFact


class FileTimeline:
    """One file, as far as sessions recorded it."""

    def __init__(
        self,
        recorded: VersionStore,
        snapshots: VersionStore,
        windows: Windows,
        base: Callable[[float], Version | None],
    ) -> None:
        """`recorded` gets every version. `snapshots` are those that a rewind or git can restore.

        `windows` gets when unknown lines can have been written. `base` returns the version of the last commit so far,
        if it was made after a time.

        `can_restore_any` is set if a rewind can have restored any recorded version; `written` are all lines that
        sessions wrote; `time` is that of the last fact. `last_text` is the last version in which the file existed.
        """
        self._recorded = recorded
        self._snapshots = snapshots
        self._windows = windows
        self._base = base
        self._text: str | None = None
        self.version: Version | None = None
        self.last_text: Version | None = None
        self.claims: list[Claim] = []
        self.can_restore_any = False
        self.written: set[str] = set()
        self.time = 0.0

    def apply(self, fact: FileFact, origin: Origin | None) -> None:
        """Apply the next fact. `origin` is that of its call."""
        since, self.time = self.time, fact.time
        if fact.kind is FactKind.SEEN:
            self._see(fact.content, since, is_snapshot=fact.evidence.how is EvidenceKind.BACKUP)
            return
        if origin is None:
            return
        if fact.kind is FactKind.WRITE and fact.content is not None:
            self._write(fact.content, self._writer(fact, origin))
        elif fact.kind is FactKind.EDIT:
            self._edit(fact, origin)

    def claim(self, origin: Origin, runs: list[list[str]], time: float) -> None:
        """Note lines that a call wrote, without knowing the text around them."""
        self.time = time
        self.claims.append(Claim(origin, runs))
        self.written.update(line for run in runs for line in run)

    def session_lines_as_claims(self) -> Iterator[Claim]:
        """Yield the runs of lines that sessions wrote, as the file was last seen."""
        run: list[str] = []
        last: Origin | None = None
        version = self.version or Version([], [])
        for line, origin in zip([*version.lines, ""], [*version.origins, None], strict=True):
            if origin is not last:
                if last is not None and last.session is not None:
                    yield Claim(last, [run])
                run = []
            run.append(line)
            last = origin

    def copy_from(self, other: FileTimeline, time: float) -> None:
        """Note that another file was moved or copied here."""
        self._text, self.version, self.time = other._text, other.version, time
        self.last_text = other.version
        self.claims += other.claims
        self.written |= other.written

    def _see(self, text: str | None, since: float, *, is_snapshot: bool) -> None:
        """Note the complete text, or that there is no file."""
        lines = split_lines(text) if text is not None else []
        if text is None or self.version is None or self.version.lines != lines:
            self.version = Version(lines, self.explain(lines, since) if text is not None else [])
        self._text = text or ""
        self.last_text = self.version if text is not None else self.last_text
        self._recorded.add(self.version)
        if is_snapshot:
            self._snapshots.add(self.version)

    def explain(self, lines: list[str], since: float | None = None) -> Origins:
        """Return the origins of a text that something outside the recorded edits made, since a time."""
        before = self.version
        if before is not None and before.lines == lines:
            return before.origins
        reason = OUTSIDE if before is not None else BEFORE
        new = self._windows.make_origin(reason, since, self.time) if since is not None else reason
        origins = [new for _ in lines]
        if before is not None:
            origins = carry(before, lines, lambda _: new, is_outside=True)
        restored = self._snapshots.get(lines) or (self._recorded.get(lines) if self.can_restore_any else None)
        if restored is not None:
            origins = restore(lines, origins, restored)
        base = self._base((self.time if since is None else since) if before is not None else 0.0)
        if base is not None:
            committed = carry(base, lines, lambda _: new, is_outside=True)
            origins = [_check_commit(origin, view, new) for origin, view in zip(origins, committed, strict=True)]
        return apply_claims(lines, origins, self.claims)

    def _write(self, text: str, writer: Callable[[str], Origin]) -> None:
        before = self.version or self._base(0.0) or Version([], [])
        self._set(text, carry(before, split_lines(text), writer))

    def _edit(self, fact: FileFact, origin: Origin) -> None:
        old, new = fact.old or "", fact.new or ""
        spans = list(_spans(self._text, old, new, all_=fact.replaces_all)) if self._text is not None else []
        after = _replace(self._text or "", spans, new) if spans else None
        if after is not None and not fact.is_user_modified and _is_same(after, fact.content) and self.version:
            self._set(after, _carry_edit(self.version, self._text or "", spans, new, origin))
        elif fact.content is not None:
            self._write(fact.content, self._writer(fact, origin))
        else:
            self.claim(origin, [] if fact.is_user_modified else list(_inserted_runs(old, new)), fact.time)

    def _writer(self, fact: FileFact, origin: Origin) -> Callable[[str], Origin]:
        if not fact.is_user_modified:
            return lambda _: origin
        arguments = fact.call.input if fact.call is not None and isinstance(fact.call.input, dict) else {}
        texts = [value for key in ("content", "new_string") if isinstance(value := arguments.get(key), str)]
        proposed = {line for text in texts for line in split_lines(text)}
        return lambda line: origin if line in proposed else PERSON

    def _set(self, text: str, origins: Origins) -> None:
        lines = split_lines(text)
        self._text = text
        self.version = self.last_text = Version(lines, origins)
        self.written.update(line for line, origin in zip(lines, origins, strict=True) if origin.session is not None)
        self._recorded.add(self.version)


def _check_commit(origin: Origin, committed: Origin, new: Origin) -> Origin:
    """The origin of a line, with what the last commit knows about it.

    A line that a later commit does not have was removed and written again.
    """
    if not origin.known:
        return origin if committed is new else committed
    return AMBIGUOUS if committed is new or (committed.known and committed is not origin) else origin


def _is_same(text: str, other: str | None) -> bool:
    return other is None or split_lines(text) == split_lines(other)


def _spans(text: str, old: str, new: str, *, all_: bool) -> Iterator[tuple[int, int]]:
    """Yield what an edit replaces, as the tool does it: with nothing, the line end is removed, too."""
    if not old:
        if not text:
            yield 0, 0
        return
    if not new and not old.endswith("\n") and old + "\n" in text:
        old += "\n"
    at = text.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = text.find(old, at + len(old)) if all_ else -1


def _replace(text: str, spans: list[tuple[int, int]], new: str) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


class _Region(Struct):
    """The whole lines that one or more spans are in, by characters."""

    start: int
    end: int
    spans: list[tuple[int, int]]


def _regions(text: str, spans: list[tuple[int, int]], new: str) -> list[_Region]:
    regions: list[_Region] = []
    for start, end in spans:
        begin = text.rfind("\n", 0, start) + 1
        are_whole_lines = text[end - 1 : end] == "\n" and (not new or new.endswith("\n"))
        close = end if are_whole_lines else (text.find("\n", end) + 1 or len(text))
        if regions and begin < regions[-1].end:
            regions[-1].end = max(close, regions[-1].end)
            regions[-1].spans.append((start, end))
        else:
            regions.append(_Region(begin, close, [(start, end)]))
    return regions


def _carry_edit(before: Version, text: str, spans: list[tuple[int, int]], new: str, origin: Origin) -> Origins:
    """Return the origins after an edit. Only the lines that it replaced are compared; the others are certainly kept."""
    origins: Origins = []
    at = line = 0
    for region in _regions(text, spans, new):
        low = line + text.count("\n", at, region.start)
        replaced = text[region.start : region.end]
        high = low + len(split_lines(replaced))
        shifted = [(start - region.start, end - region.start) for start, end in region.spans]
        inside = Version(before.lines[low:high], before.origins[low:high])
        origins += before.origins[line:low]
        origins += carry(inside, split_lines(_replace(replaced, shifted, new)), lambda _: origin)
        at, line = region.end, high
    return origins + before.origins[line:]


def _inserted_runs(old: str, new: str) -> Iterator[list[str]]:
    """Yield the whole lines that an edit inserts, in runs. The first and the last one may be parts of lines."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    alignment = align(old_lines, new_lines)
    run: list[str] = []
    for position, line in enumerate(new_lines):
        is_whole = 0 < position < len(new_lines) - 1
        if is_whole and not alignment.sources[position]:
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run
