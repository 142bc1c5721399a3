"""The transcripts of one session, given its main transcript."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from threadline.find.side_files import PROJECTS
from threadline.find.transcripts import agent_id, is_transcript, naming, session_id, transcript
from threadline.find.walk import Walk
from threadline.model.found import Found, Home, Transcript, TranscriptKind
from threadline.model.kept import twins


def session_transcripts(main: Path) -> tuple[list[Transcript], list[Transcript]]:
    """Transcripts of agents and journals below the session's own directory, and agents' beside it.

    Those beside name their session inside. An agent's own transcript has no others: they are its session's. Some of
    them may be only in the keep, or all but them.
    """
    home = Home(main.parent, "path")
    below = [
        _transcript(Path(seen.entry.path), seen.parts, home)
        for directory in _directories(main)
        for seen in Walk().below(str(directory), (directory.name,), lambda _path, _parts: True)
        if is_transcript(seen.parts[-1]) and not seen.is_link
    ]
    folders = (main.parent, *map(Path, twins(main.parent)))
    others = [path for folder in folders for path in sorted(folder.glob("agent-*.jsonl"))]
    others = others if agent_id(main.name) is None else []
    beside = [
        _transcript(path, (path.name,), home)
        for path in others
        if _is_own_file(path) and agent_id(path.name) is not None
    ]
    own = [one for one in below if one.kind is not TranscriptKind.OTHER]
    return sorted(own, key=lambda one: one.path), beside


def _directories(main: Path) -> Iterator[Path]:
    """The session's own directories: beside its transcript, and in other projects that it went on to.

    In a folder that holds a transcript of the same session, the directory is that one's.
    """
    for beside in (main.with_suffix(""), *map(Path, twins(main.with_suffix("")))):
        if os.path.isdir(beside):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
            yield beside
    own = main.absolute().parent
    if own.parent.name != PROJECTS or session_id(main.stem) is None:
        return
    try:
        folders = sorted(os.listdir(own.parent))  # noqa: PTH208 - names are enough
    except OSError:
        return
    for name in folders:
        elsewhere = own.parent / name / main.stem
        if name != own.name and os.path.isdir(elsewhere) and not os.path.exists(f"{elsewhere}.jsonl"):  # noqa: PTH110, PTH112 - the same
            yield elsewhere


def with_session(found: Found) -> Found:
    """One transcript that was found alone, together with those of its session: it may lie in no home."""
    below, beside = session_transcripts(found.transcripts[0].path)
    return replace(found, transcripts=(*found.transcripts, *below, *beside))


def transcript_at(path: Path) -> Transcript:
    """The transcript at a path, with what the path alone says."""
    return _transcript(path, (path.name,), Home(path.parent, "path"))


def main_transcripts_beside(main: Path) -> list[Path]:
    """The other sessions' main transcripts in the same folder."""
    found = (
        path
        for folder in (main.parent, *map(Path, twins(main.parent)))
        for path in sorted(folder.glob("*.jsonl"))
        if path != main and path.is_file() and not path.is_symlink()
    )
    return [path for path in found if naming((path.name,)).kind is TranscriptKind.MAIN]


def _transcript(path: Path, parts: tuple[str, ...], home: Home) -> Transcript:
    meta = path.with_name(path.name.removesuffix(".jsonl") + ".meta.json")
    if not _is_own_file(meta):
        meta = next((twin for twin in map(Path, twins(meta)) if _is_own_file(twin)), meta)
    return transcript(
        path,
        home,
        path.parent.name,
        path.stat(),
        parts,
        meta=meta if _is_own_file(meta) else None,
    )


def _is_own_file(path: Path) -> bool:
    """Whether it is a regular file here, and no link: one may lead to a secret."""
    # Not `path.is_file`: it raises where the name is longer than names may be.
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114
