"""List sessions with a summary of each, newest first.

The newest sessions are found by the last timestamps of their transcripts, so a short list of a big home reads few
files. `TranscriptSource` is the seam: `FileSource` reads transcripts, the index answers from its own tables.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from threadline.errors import Error
from threadline.files import is_running, process_start_time, read_at
from threadline.find import SessionOwners, drop_shared_transcripts, list_live_session_files
from threadline.home_files import opened_in_home
from threadline.model.homes import (
    Found,
    Homes,
    ProjectNames,
    SideAgentKind,
    SideFile,
    SideFileKind,
    Transcript,
    TranscriptKind,
)
from threadline.model.places import SessionId
from threadline.model.tables import Listing
from threadline.model.text import count
from threadline.model.times import FIRST_MOMENT, moment_from_mtime
from threadline.model.titles import SummaryRef
from threadline.summary.transcripts import TranscriptStats, TranscriptSummary, count_started_agents, read_stats

if TYPE_CHECKING:
    from threadline.model.side_files import LiveSession

_TAIL_BYTES = 16 * 1024

SessionKey = tuple[str, str, SessionId | None]
"""A session across a home and what the keep has of it: the home's name, its folder and the session's id."""


class AgentHead(Struct, frozen=True):
    """What the beginning of an agent's transcript says.

    `session` is the session it belongs to, `side` the kind of side agent it is. An agent that `is_single_reply` is a
    warm-up as well, unless a call started it.
    """

    session: SessionId | None = None
    side: SideAgentKind | None = None
    is_single_reply: bool = False


class SessionSummary(Struct, frozen=True, rename={"id": "session"}):
    """A session in one line.

    `started` and `ended` are the first and the last time of the main conversation, None if no row has a time. `first`
    and `last` are the same, but `last` is when the file was modified if no row has a time. `agents` counts the agents
    that worked for the session and have a transcript; `agents_started` adds those whose transcripts are missing. `size`
    is that of the main transcript. `problem` says why it could not be read. A session that is `kept` exists only in the
    keep, possibly from another `machine`. `index.SessionBrief` has the fields that need only one query.
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
    slug: str | None = None
    platform: str | None = None
    os_version: str | None = None
    started: datetime | None = None
    ended: datetime | None = None

    def __repr__(self) -> str:
        last = f", last used {self.last:%Y-%m-%d %H:%M} UTC" if self.last is not None else ""
        return f"SessionSummary({self.id!r}, {self.title!r}, {self.project!r}, {count(self.turns, 'turn')}{last})"


class SessionFilter(Struct, frozen=True):
    """Which sessions to list: those that match all fields that are set."""

    project: str | None = None
    title: str | None = None
    agent_type: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None
    machine: str | None = None

    @property
    def needs_reading(self) -> bool:
        """Whether every transcript has to be read to know which sessions match."""
        return self.limit is None or any((self.title, self.agent_type, self.until))


class SessionList(Listing[SessionSummary]):
    """Sessions, newest first; `more` is the number of main transcripts beyond the limit."""

    row_type = SessionSummary
    noun = "session"
    hidden = ("agent_types",)
    renamed = {"id": "session"}  # noqa: RUF012 - annotated in the base class
    html_columns = ("session", "title", "project", "first", "last", "turns", "agents", "model")

    @property
    def sessions(self) -> tuple[SessionSummary, ...]:
        """The sessions."""
        return tuple(self)


class TranscriptSource(Protocol):
    """Where summaries of transcripts come from: the files, or an index of them."""

    def last_time(self, transcript: Transcript) -> datetime:
        """Return the last time in a transcript, or its mtime if it has none."""
        ...

    def summaries(self, transcripts: Iterable[Transcript]) -> Iterable[tuple[Transcript, TranscriptSummary]]:
        """Summarize main transcripts, in any order."""
        ...

    def stats(self, transcripts: Iterable[Transcript]) -> Iterable[tuple[Transcript, TranscriptStats]]:
        """Count what is in transcripts of any kind, in any order."""
        ...

    def agent_head(self, transcript: Transcript) -> AgentHead:
        """Return what the beginning of an agent's transcript says."""
        ...


class FileSource:
    """Reads the transcripts themselves, with `jobs` worker processes.

    `transcripts` are all those of the homes: a summary in any of them may title a session.
    """

    def __init__(self, jobs: int | None = None, transcripts: Iterable[Transcript] = ()) -> None:
        self._jobs = jobs
        self._transcripts = tuple(transcripts)
        self._summary_refs: dict[Path, tuple[SummaryRef, ...]] = {}

    def last_time(self, transcript: Transcript) -> datetime:
        """Return the last time in a transcript, searched from its end."""
        return read_last_timestamp(transcript)

    def summaries(self, transcripts: Iterable[Transcript]) -> Iterable[tuple[Transcript, TranscriptSummary]]:
        """Summarize main transcripts. Those that a summary in another transcript may title come last."""
        from threadline.parallel import map_transcripts
        from threadline.summary.fold import read_summary

        waiting = []
        for transcript, result in map_transcripts(read_summary, transcripts, jobs=self._jobs):
            self._summary_refs[transcript.path] = result.summary.summaries
            if result.state is None:
                yield transcript, result.summary
            else:
                waiting.append((transcript, result))
        refs = self._all_summaries() if waiting else ()
        for transcript, result in waiting:
            yield transcript, result.with_title(refs, str(transcript.path))

    def _all_summaries(self) -> tuple[SummaryRef, ...]:
        """Return the summaries of all transcripts. Those that were not read are searched for them."""
        from threadline.parallel import map_transcripts
        from threadline.parse import can_have_summaries, find_summaries

        unread = [
            transcript
            for transcript in self._transcripts
            if transcript.path not in self._summary_refs and can_have_summaries(transcript)
        ]
        self._summary_refs |= {
            transcript.path: refs for transcript, refs in map_transcripts(find_summaries, unread, jobs=self._jobs)
        }
        return tuple(ref for refs in self._summary_refs.values() for ref in refs)

    def stats(self, transcripts: Iterable[Transcript]) -> Iterable[tuple[Transcript, TranscriptStats]]:
        """Count what is in transcripts."""
        from threadline.parallel import map_transcripts

        return map_transcripts(read_stats, transcripts, jobs=self._jobs)

    def agent_head(self, transcript: Transcript) -> AgentHead:
        """Return what the beginning of an agent's transcript says."""
        return read_agent_head(transcript)


def list_sessions(
    found: Iterable[Found],
    filter_: SessionFilter | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    source: TranscriptSource | None = None,
) -> SessionList:
    """List the matching sessions of all homes. `progress` is called with the size of each transcript that was read."""
    chosen = filter_ or SessionFilter()
    homes = list(drop_shared_transcripts(found))
    reader = source or FileSource(jobs, (transcript for home in homes for transcript in home.transcripts))
    builder = _SummaryBuilder(homes, chosen, reader)
    summaries: list[SessionSummary] = []
    candidates = iter(builder.candidates())
    # As many at a time as are still missing, since some transcripts are not sessions; all at once if the filter needs
    # to read every transcript.
    while batch := list(
        islice(candidates, None if chosen.needs_reading else min((chosen.limit or 0) - len(summaries), sys.maxsize)),
    ):
        for transcript, transcript_summary in reader.summaries(batch):
            summary = builder.summary(transcript, transcript_summary)
            if summary is not None:
                summaries.append(summary)
            if progress is not None:
                progress(transcript.size)
        if chosen.limit is not None and len(summaries) >= chosen.limit:
            break
    summaries.sort(key=lambda summary: (summary.last or FIRST_MOMENT, str(summary.path)), reverse=True)
    shown = summaries[: chosen.limit]
    return SessionList(shown, len(summaries) - len(shown) + sum(1 for _ in candidates))


class _SummaryBuilder:
    """Builds summaries of the sessions in some homes."""

    def __init__(self, found: list[Found], filter_: SessionFilter, source: TranscriptSource) -> None:
        self._found = found
        self._homes = Homes(home.home for home in found)
        self._source = source
        self._filter = filter_
        self._projects = ProjectNames(found)
        self._agents = SessionAgents((transcript for home in found for transcript in home.transcripts), source)
        self._running = _running_sessions(found)

    def candidates(self) -> list[Transcript]:
        """Return the main transcripts that may match; newest first if there is a limit."""
        chosen = self._filter
        mains = [
            transcript
            for home in self._found
            for transcript in home.transcripts
            if transcript.kind is TranscriptKind.MAIN
            and transcript.size
            and self._is_of_machine(transcript)
            and self._is_of_project(transcript)
        ]
        if chosen.limit is None and chosen.since is None:
            return mains
        dated = [(self._source.last_time(transcript), transcript) for transcript in mains]
        dated = [(last, transcript) for last, transcript in dated if chosen.since is None or last >= chosen.since]
        dated.sort(key=lambda pair: (pair[0], str(pair[1].path)), reverse=True)
        return [transcript for _, transcript in dated]

    def _is_of_machine(self, transcript: Transcript) -> bool:
        machine = self._filter.machine
        return machine is None or transcript.home.machine.casefold() == machine.casefold()

    def _is_of_project(self, transcript: Transcript) -> bool:
        return self._filter.project is None or _contains(self._projects.of(transcript), self._filter.project)

    def summary(self, transcript: Transcript, read: TranscriptSummary) -> SessionSummary | None:
        """Return the summary of a session; None if the transcript is not a session, or does not match."""
        if not read.spoken:
            return None  # empty, only bookkeeping, or entirely an agent's
        files = self._agents.of_session(transcript, read.started)
        agents = {*files, *read.inline}
        types = Counter(read.agent_types) | Counter(_types_in_meta(files.values(), self._homes))
        summary = SessionSummary(
            id=transcript.session,
            title=read.title,
            title_source=read.title_source,
            project=read.cwd or self._projects.of(transcript),
            first=read.first,
            last=read.last or moment_from_mtime(transcript.mtime_ns),
            turns=read.turns,
            agents=len(agents),
            agents_started=count_started_agents(agents, read.started, read.unnamed),
            agent_types=dict(types.most_common()),
            model=read.model,
            entries=read.entries,
            size=transcript.size,
            running=transcript.session in self._running,
            path=transcript.path,
            problem=read.problem,
            kept=transcript.home.is_kept,
            machine=transcript.home.machine,
            slug=read.slug,
            platform=read.platform,
            os_version=read.os_version,
            started=read.first,
            ended=read.last,
        )
        return summary if self._matches(summary) else None

    def _matches(self, summary: SessionSummary) -> bool:
        chosen = self._filter
        return (
            (chosen.title is None or _contains(summary.title, chosen.title))
            and (chosen.agent_type is None or any(_contains(kind, chosen.agent_type) for kind in summary.agent_types))
            and (chosen.since is None or (summary.last is not None and summary.last >= chosen.since))
            and (chosen.until is None or (summary.first or summary.last or FIRST_MOMENT) <= chosen.until)
        )


class SessionAgents:
    """The agents that have a transcript of their own, by session, in every layout.

    `SessionOwners` decides which session that is. Side agents are left out when the agents of a session are requested:
    only then are the beginnings of its agents' transcripts read.
    """

    def __init__(self, transcripts: Iterable[Transcript], source: TranscriptSource) -> None:
        self._source = source
        self._heads: dict[Path, AgentHead] = {}
        self._by_session: dict[SessionKey, dict[str, Transcript]] = {}
        transcripts = list(transcripts)
        owners = SessionOwners(transcripts, lambda agent: self._head(agent).session)
        for transcript in transcripts:
            if transcript.is_agent and transcript.agent is not None:
                main = owners.main_of(transcript)
                session = transcript.session or self._head(transcript).session
                key = session_key(main) if main is not None else (transcript.home.name, transcript.folder, session)
                self._by_session.setdefault(key, {})[transcript.agent] = transcript

    def sessions(self) -> list[SessionKey]:
        """Return the sessions that have agents."""
        return list(self._by_session)

    def of_session(self, main: Transcript, started: Iterable[str]) -> dict[str, Transcript]:
        """Return a session's working agents by id. `started` are the agents that results of its calls name."""
        return self.working(session_key(main), started)

    def working(self, session: SessionKey, started: Iterable[str]) -> dict[str, Transcript]:
        """Return the agents of a session that are not side agents."""
        names = set(started)
        return {
            agent: transcript
            for agent, transcript in self._by_session.get(session, {}).items()
            if not self._is_side(transcript, is_started=agent in names)
        }

    def has_single_reply(self, session: SessionKey) -> bool:
        """Whether the session's calls are needed to decide which of its agents are side agents."""
        return any(self._head(agent).is_single_reply for agent in self._by_session[session].values())

    def _head(self, transcript: Transcript) -> AgentHead:
        if transcript.path not in self._heads:
            self._heads[transcript.path] = self._source.agent_head(transcript)
        return self._heads[transcript.path]

    def _is_side(self, transcript: Transcript, *, is_started: bool) -> bool:
        head = self._head(transcript)
        return head.side is not None or (head.is_single_reply and not is_started)


def session_key(main: Transcript) -> SessionKey:
    """Return what identifies the session of a main transcript."""
    return main.home.name, main.folder, main.session  # some transcripts of a home may be only in the keep


def _types_in_meta(agents: Iterable[Transcript], homes: Homes) -> Iterator[str]:
    """Yield the types of agents that their side files name, in the home or in the keep."""
    for agent in agents:
        meta_path = agent.meta or agent.path.with_suffix(".meta.json")
        paths = (*([agent.meta] if agent.meta is not None else []), *homes.counterparts(meta_path))
        type_ = next((type_ for path in paths if (type_ := _agent_type(path)) is not None), None)
        if type_ is not None:
            yield type_


def _agent_type(path: Path) -> str | None:
    from threadline.parse import read_agent_meta

    meta = read_agent_meta(path)
    return meta.agent_type if meta is not None else None


def read_last_timestamp(transcript: Transcript) -> datetime:
    """Return the last time in a transcript, searched from its end, or its mtime if it has none."""
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
    return moment_from_mtime(transcript.mtime_ns) or FIRST_MOMENT


def _first_whole_line(transcript: Transcript, tail: int) -> int:
    """Return the offset of the first whole line within the last bytes of a file, or its size if there is none."""
    start = transcript.size - tail
    if start <= 0:
        return 0
    with opened_in_home(transcript.path) as file:
        end = read_at(file, start, transcript.size).find(b"\n")
    return start + end + 1 if end >= 0 else transcript.size


def read_agent_head(transcript: Transcript) -> AgentHead:
    """Read the beginning of an agent's transcript: usually a line or two."""
    from threadline.parse import entries
    from threadline.thread import SideAgentFold

    fold = SideAgentFold()
    session: SessionId | None = None
    with suppress(Error):
        for entry in entries(transcript.path):
            session = session or entry.session_id
            fold.add(entry)
            if fold.is_decided and session is not None:
                break
    return AgentHead(session, fold.kind(transcript.agent or "", is_started=True), fold.is_single_reply)


def _running_sessions(found: list[Found]) -> set[SessionId]:
    registered = [side_file for home in found for side_file in list_live_session_files(home.home)]
    return find_running_sessions(registered) if registered else set()


def find_running_sessions(side_files: Iterable[SideFile]) -> set[SessionId]:
    """Return the sessions whose process is alive, from the registry of live processes in a home.

    After `/clear`, the id in the registry is stale: it names the previous session.
    """
    from threadline.model.side_files import LiveSession  # few homes have running sessions
    from threadline.parse import read_side_content

    sessions: set[SessionId] = set()
    for side in side_files:
        if side.kind is not SideFileKind.LIVE_SESSION or not side.path.stem.isdecimal():
            continue
        live = read_side_content(side.path, side.home.path, LiveSession)
        if live is not None and live.session_id is not None and _is_alive(live):
            sessions.add(live.session_id)
    return sessions


def _is_alive(live: LiveSession) -> bool:
    # On Windows, nobody can tell.
    if live.pid is None or live.pid <= 0 or os.name == "nt" or not is_running(live.pid):
        return False
    started = process_start_time(live.pid)
    recorded = str(live.proc_start) if live.proc_start is not None else None
    # Pids are reused: if both start times are known, they must agree.
    return started is None or recorded is None or not recorded.isdecimal() or recorded == started


def _contains(text: str, part: str) -> bool:
    return part.casefold() in text.casefold()
