"""List sessions with a summary of each, newest first.

The newest sessions are found by the last timestamps of their transcripts, so a short list of a big home reads few
files. `TranscriptSource` is the seam: `FileSource` reads transcripts, the index answers from its own tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from threadline.errors import Error
from threadline.find import drop_shared_transcripts, list_live_session_files
from threadline.model.homes import (
    KEEP_SOURCE,
    Found,
    Transcript,
    TranscriptKind,
    counterpart_paths,
    home_name,
    machine_name,
)
from threadline.model.places import Place, SessionId
from threadline.model.side_agents import side_agent_kind
from threadline.summary.transcripts import TranscriptSummary

_TAIL_BYTES = 16 * 1024
AGENT_HEAD_ENTRIES = 8
"""How many entries of an agent's transcript are asked for its session."""
_NEVER = datetime.min.replace(tzinfo=UTC)

AgentHead = tuple[SessionId | None, str | None]
"""The session that an agent's transcript beside the sessions names, and the first words of a prompt there."""


class SessionSummary(Struct, frozen=True):
    """What a list shows of a session.

    `agents` are those that worked and were kept, `agents_started` those and the ones whose transcripts are not there.
    `size` is that of its main transcript; `problem` says why it was not read. One that is `kept` is only in the keep,
    maybe of another `machine`.
    """

    id: SessionId | None
    title: str
    title_source: str
    project: str
    first: datetime | None
    last: datetime | None
    turns: int
    agents: int
    agents_started: int
    agent_types: dict[str, int]
    model: str | None
    entries: int
    size: int
    running: bool
    path: Path
    problem: str | None = None
    kept: bool = False
    machine: str = ""


class SessionFilter(Struct, frozen=True):
    """Which sessions to list: all that fit every one of these."""

    project: str | None = None
    title: str | None = None
    agent_type: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None
    machine: str | None = None

    @property
    def needs_reading(self) -> bool:
        """Whether only reading every transcript tells which are wanted."""
        return self.limit is None or any((self.title, self.agent_type, self.until))


class SessionList(Struct, frozen=True):
    """Sessions, newest first; `more` is how many main transcripts there are beyond the limit."""

    sessions: tuple[SessionSummary, ...]
    more: int = 0


class TranscriptSource(Protocol):
    """Tells of transcripts what a list needs: from the files, or from whoever has read them before."""

    def last(self, transcript: Transcript) -> datetime:
        """The last time that it tells; when it was written where it tells none."""
        ...

    def lights(self, transcripts: Iterable[Transcript]) -> Iterable[tuple[Transcript, TranscriptSummary]]:
        """What a light pass over each of them tells, in any order."""
        ...

    def inside(self, transcript: Transcript) -> AgentHead:
        """The session that an agent's transcript names inside, and its first words."""
        ...


class FileSource:
    """Reads the transcripts themselves."""

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = jobs

    def last(self, transcript: Transcript) -> datetime:
        """The last time that it tells, looked for from its end."""
        return read_last_timestamp(transcript)

    def lights(self, transcripts: Iterable[Transcript]) -> Iterable[tuple[Transcript, TranscriptSummary]]:
        """One light pass over each of them."""
        from threadline.parallel import map_transcripts
        from threadline.summary.fold import summarize_transcript

        return map_transcripts(summarize_transcript, transcripts, jobs=self._jobs)

    def inside(self, transcript: Transcript) -> AgentHead:
        """The session that an agent's transcript names inside, and its first words."""
        return read_agent_head(transcript)


def list_sessions(
    found: Iterable[Found],
    wanted: SessionFilter | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    reader: TranscriptSource | None = None,
) -> SessionList:
    """The sessions of all homes that are wanted. `progress` is told the bytes of each transcript as it is read."""
    ask = wanted or SessionFilter()
    reading = reader or FileSource(jobs)
    lister = _SummaryBuilder(list(drop_shared_transcripts(found)), ask, reading)
    candidates = lister.candidates()
    kept: list[SessionSummary] = []
    waiting = iter(candidates)
    # As many at a time as are still missing, for in a few nothing was said; all at once where only reading tells which.
    while batch := list(islice(waiting, None if ask.needs_reading else (ask.limit or 0) - len(kept))):
        for transcript, seen in reading.lights(batch):
            summary = lister.summary(transcript, seen)
            if summary is not None:
                kept.append(summary)
            if progress is not None:
                progress(transcript.size)
        if ask.limit is not None and len(kept) >= ask.limit:
            break
    kept.sort(key=lambda one: (one.last or _NEVER, str(one.path)), reverse=True)
    shown = kept[: ask.limit]
    return SessionList(tuple(shown), len(kept) - len(shown) + sum(1 for _ in waiting))


class _SummaryBuilder:
    """Knows the homes, and what is asked of them."""

    def __init__(self, found: list[Found], ask: SessionFilter, reading: TranscriptSource) -> None:
        self._found = found
        self._reading = reading
        self._ask = ask
        self._projects = {(project.home, project.folder): project.name for each_ in found for project in each_.projects}
        self._agents = _agents_by_session(found, reading)
        self._running = _running_sessions(found)

    def candidates(self) -> list[Transcript]:
        """The main transcripts that may be wanted, the newest first by what their ends say."""
        mains = [
            transcript
            for one in self._found
            for transcript in one.transcripts
            if transcript.kind is TranscriptKind.MAIN
            and transcript.size
            and self._is_of_machine(transcript)
            and self._is_of_project(transcript)
        ]
        ask = self._ask
        if ask.limit is None and ask.since is None:
            return mains
        dated = [(self._reading.last(transcript), transcript) for transcript in mains]
        dated = [(last, one) for last, one in dated if ask.since is None or last >= ask.since]
        return [one for _, one in sorted(dated, key=lambda pair: (pair[0], str(pair[1].path)), reverse=True)]

    def _is_of_machine(self, transcript: Transcript) -> bool:
        asked = self._ask.machine
        return asked is None or machine_name(transcript.home.path).casefold() == asked.casefold()

    def _is_of_project(self, transcript: Transcript) -> bool:
        return self._ask.project is None or _contains(self._project(transcript), self._ask.project)

    def _project(self, transcript: Transcript) -> str:
        return self._projects.get((transcript.home, transcript.folder), transcript.folder)

    def summary(self, transcript: Transcript, seen: TranscriptSummary) -> SessionSummary | None:
        """The summary of a transcript; None where it is no session, or not one that is wanted."""
        if not seen.spoken:
            return None  # empty, only bookkeeping, or all an agent's
        files = self._agents.get((home_name(transcript.home.path), transcript.session), {})
        types = Counter(seen.agent_types) | Counter(self._types(files.values()))
        kept = {*files, *seen.inline}
        missing = set(seen.started) - kept
        # Old versions do not name the agents in results: as many of them are here as no result names.
        last = seen.last or _mtime(transcript)
        made = SessionSummary(
            id=transcript.session,
            title=seen.title,
            title_source=seen.title_source,
            project=seen.cwd or self._project(transcript),
            first=seen.first,
            last=last,
            turns=seen.turns,
            agents=len(kept),
            agents_started=len(kept) + len(missing) + max(0, seen.unnamed - len(kept - set(seen.started))),
            agent_types=dict(types.most_common()),
            model=seen.model,
            entries=seen.entries,
            size=transcript.size,
            running=transcript.session in self._running,
            path=transcript.path,
            problem=seen.problem,
            kept=transcript.home.source == KEEP_SOURCE,
            machine=machine_name(transcript.home.path),
        )
        return made if self._is_wanted(made) else None

    def _is_wanted(self, made: SessionSummary) -> bool:
        ask = self._ask
        return (
            (ask.title is None or _contains(made.title, ask.title))
            and (ask.agent_type is None or any(_contains(kind, ask.agent_type) for kind in made.agent_types))
            and (ask.since is None or (made.last is not None and made.last >= ask.since))
            and (ask.until is None or (made.first or made.last or _NEVER) <= ask.until)
        )

    def _types(self, files: Iterable[Transcript]) -> Iterator[str]:
        for file in files:
            beside = file.meta or file.path.with_suffix(".meta.json")
            metas = (*([file.meta] if file.meta is not None else []), *map(Path, counterpart_paths(beside)))
            kind = next((kind for meta in metas if (kind := _read_agent_type(meta)) is not None), None)
            if kind is not None:
                yield kind


def read_last_timestamp(transcript: Transcript) -> datetime:
    """The last time a transcript tells, looked for from its end; when it was written where it tells none."""
    from threadline.parse import entries

    with suppress(Error, OSError):
        for tail in (_TAIL_BYTES, 64 * _TAIL_BYTES):
            times = [
                when
                for entry in entries(transcript.path, offset=_first_whole_line(transcript, tail))
                if (when := entry.timestamp) is not None
            ]
            if times:
                return max(times)
            if tail >= transcript.size:
                break
    return _mtime(transcript) or _NEVER


def _first_whole_line(transcript: Transcript, tail: int) -> int:
    """Where the first whole line within the last bytes of a file begins; its end where there is none."""
    start = transcript.size - tail
    if start <= 0:
        return 0
    with transcript.path.open("rb", buffering=0) as file:
        file.seek(start)
        end = file.read(tail).find(b"\n")
    return start + end + 1 if end >= 0 else transcript.size


def _mtime(transcript: Transcript) -> datetime | None:
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(transcript.mtime_ns / 1e9, UTC)
    return None


def _agents_by_session(
    found: list[Found], reading: TranscriptSource
) -> dict[tuple[str, SessionId | None], dict[str, Transcript]]:
    """The agents of each session, in every layout: by the session that the path names, or that the file names inside.

    What the program runs for itself is not counted.
    """
    by_session: dict[tuple[str, SessionId | None], dict[str, Transcript]] = {}
    for transcript in (transcript for one in found for transcript in one.transcripts):
        if transcript.kind not in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT) or transcript.agent is None:
            continue
        session, prompt = (transcript.session, None) if transcript.session is not None else reading.inside(transcript)
        if side_agent_kind(transcript.agent, prompt) is None:
            home = home_name(transcript.home.path)  # some of them may be only in the keep
            by_session.setdefault((home, session), {})[transcript.agent] = transcript
    return by_session


def read_agent_head(transcript: Transcript) -> AgentHead:
    """What the first few entries of an agent's transcript say."""
    from threadline.model.entries import UserEntry
    from threadline.parse import entries

    with suppress(Error):
        for entry in islice(entries(transcript.path), AGENT_HEAD_ENTRIES):
            if entry.session_id is not None:
                return entry.session_id, entry.text if isinstance(entry, UserEntry) else None
    return None, None


def _read_agent_type(meta: Path) -> str | None:
    from threadline.model.side_files import AgentMeta
    from threadline.parse import decode_side_value, read_side_bytes

    with suppress(Error):
        content = decode_side_value(read_side_bytes(meta), AgentMeta, Place(str(meta), 1)).content
        return content.agent_type if isinstance(content, AgentMeta) else None
    return None


def _running_sessions(found: list[Found]) -> set[SessionId]:
    registered = [side for one in found for side in list_live_session_files(one.home)]
    if not registered:
        return set()
    from threadline.summary.running import find_running_sessions

    return find_running_sessions(registered)


def _contains(text: str, part: str) -> bool:
    return part.casefold() in text.casefold()
