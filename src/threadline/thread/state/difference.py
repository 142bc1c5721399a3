"""What changed between two states: a unified diff of each file, and what is proven of it."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from threadline.model.state import FileDifference, FileState, FileVersion, Proof, State

_NO_NEWLINE = "\n\\ No newline at end of file\n"
_NOWHERE = "/dev/null"


def difference(before: State, after: State) -> tuple[FileDifference, ...]:
    """How each file differs, in the order in which they were met; those that are proven to be the same are left out."""
    paths = dict.fromkeys((*before.files, *after.files))
    compared = (_of_file(path, before.files.get(path), after.files.get(path)) for path in paths)
    return tuple(one for one in compared if one is not None)


def _of_file(path: str, old: FileState | None, new: FileState | None) -> FileDifference | None:
    if new is None or (old is not None and old.evidence == new.evidence):
        return None  # nothing was learnt of it in between
    start, end = _version(old), _version(new)
    # What a file was before the session's first change tells what it was at any place before that.
    first = new.first if start is None and (old is None or old.changed is None) else None
    start = start or first
    if start is None or end is None:
        return FileDifference(path, start, end, "", proven=False, statement=_missing(old, start, new, end))
    if start.content == end.content:
        return None
    text = unified(path, start.content, end.content)
    if first is not None:
        met = f"It was first met at {first.evidence.place}; what it was before that is not proven"
        return FileDifference(path, start, end, text, proven=False, statement=f"{met}. After: {new.statement}")
    doubtful = _is_doubtful(old) or _is_doubtful(new)
    said = f"Before: {old.statement if old is not None else ''} After: {new.statement}"
    return FileDifference(path, start, end, text, proven=not doubtful, statement=said)


def _version(state: FileState | None) -> FileVersion | None:
    if state is None or state.proof is None or state.proven not in (Proof.WHOLE, Proof.ABSENT):
        return None
    return FileVersion(state.content, state.proof)


def _is_doubtful(state: FileState | None) -> bool:
    return state is not None and bool(state.doubts)


def _missing(old: FileState | None, start: FileVersion | None, new: FileState, end: FileVersion | None) -> str:
    before = "" if start is not None else f" Before: {old.statement if old is not None else 'Nothing is known.'}"
    after = "" if end is not None else f" After: {new.statement}"
    return f"No diff: one side is not proven whole.{before}{after}"


def unified(path: str, old: str | None, new: str | None) -> str:
    r"""A unified diff; None is no file.

    >>> print(unified("a", "1\n2\n", "1\n3"), end="")
    --- a
    +++ a
    @@ -1,2 +1,2 @@
     1
    -2
    +3
    \ No newline at end of file
    """
    names = (_NOWHERE if old is None else path, _NOWHERE if new is None else path)
    made = unified_diff(list(_lines(old or "")), list(_lines(new or "")), *names)
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in made)


def _lines(text: str) -> Iterator[str]:
    """Lines with their newlines, cut at newlines only: other line ends are part of the text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
