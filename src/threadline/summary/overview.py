"""Overview of all homes: numbers, sizes, time span, versions and problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from threadline.find import SideFileCounts, drop_shared_transcripts
from threadline.model.homes import Found, Home, Project, ProjectNames, Transcript, TranscriptKind
from threadline.model.names import version_key
from threadline.model.places import Problem
from threadline.model.times import parse_timestamp
from threadline.summary.sessions import FileSource, SessionAgents, SessionKey, TranscriptSource, session_key
from threadline.summary.transcripts import TranscriptStats

_MAX_LARGEST = 5

_ReadTranscript = tuple[Transcript, TranscriptStats]
_ProjectKey = tuple[str, str]
_AgentKey = tuple[SessionKey, str]


class LargeTranscript(Struct, frozen=True):
    """One of the largest transcripts."""

    path: Path
    project: str
    bytes: int
    entries: int


class ProjectOverview(Struct, frozen=True):
    """The numbers of one project."""

    project: str
    folder: str
    home: Path
    sessions: int
    agents: int
    bytes: int
    first: datetime | None
    last: datetime | None


class Overview(Struct, frozen=True):
    """All homes at a glance.

    `sessions` and `agents` are counted as in the list of sessions: a transcript without conversation is not a session,
    and side agents are not counted. `inline_agents` is how many of the agents are inside main transcripts. `kept` is
    how many of the sessions exist only in the keep. `not_entered` are directories of the homes that are not searched.
    `listed` is how many rows the list has: a session that several homes or projects have is listed several times.
    `agents_only` is how many more sessions have transcripts of agents, but none of their own.
    """

    homes: tuple[Home, ...]
    projects: tuple[ProjectOverview, ...]
    sessions: int
    transcripts: int
    agents: int
    inline_agents: int
    entries: int
    bytes: int
    kinds: dict[str, int]
    versions: dict[str, int]
    first: datetime | None
    last: datetime | None
    compactions: int
    compacted_sessions: int
    continuations: int
    titled_by_summary: int
    largest: tuple[LargeTranscript, ...]
    side_files: dict[str, int]
    problems: tuple[Problem, ...]
    kept: int = 0
    not_entered: tuple[Path, ...] = ()
    listed: int = 0
    agents_only: int = 0


def build_overview(
    found: Iterable[Found],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    source: TranscriptSource | None = None,
    side_files: Iterable[SideFileCounts] | None = None,
) -> Overview:
    """Summarize all homes. `progress` is called with the size of each transcript that was read.

    `side_files` are the numbers of side files in each home, for homes whose side files are not listed in `found`.
    """
    homes = list(drop_shared_transcripts(found))
    transcripts = [transcript for home in homes for transcript in home.transcripts]
    reader = source or FileSource(jobs)
    stats: dict[Path, TranscriptStats] = {}
    for transcript, transcript_stats in reader.stats(transcripts):
        stats[transcript.path] = transcript_stats
        if progress is not None:
            progress(transcript.size)
    read = [(transcript, stats[transcript.path]) for transcript in transcripts]
    counts = list(side_files) if side_files is not None else list(map(_count_side_files, homes))
    return _combine_stats(homes, read, _AgentCounts(read, reader), counts)


def _count_side_files(found: Found) -> SideFileCounts:
    kinds = Counter(str(side_file.kind) for side_file in found.side_files)
    return SideFileCounts(dict(kinds), (), found.not_entered)


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Add up counts; kinds that are equally frequent keep their order."""
    total: Counter[str] = Counter()
    for count in counts:
        for name, number in count.items():
            total[name] += number
    return total


class _AgentCounts:
    """The working agents, of all homes and by project."""

    def __init__(self, read: list[_ReadTranscript], source: TranscriptSource) -> None:
        self.inline = 0
        self._by_project: dict[_ProjectKey, set[_AgentKey]] = {}
        agents = SessionAgents((transcript for transcript, _ in read), source)
        unclear = {session for session in agents.sessions() if agents.has_single_reply(session)}
        # Inline agents, and calls that started agents, are only in summaries, which few sessions need.
        mains = [
            transcript
            for transcript, stats in read
            if transcript.kind is TranscriptKind.MAIN and (stats.inline_agents or session_key(transcript) in unclear)
        ]
        started: dict[SessionKey, set[str]] = {}
        for transcript, summary in source.summaries(mains) if mains else ():
            session = session_key(transcript)
            started.setdefault(session, set()).update(summary.started)
            if summary.spoken:
                self.inline += len(summary.inline)
                self._project(transcript).update((session, agent) for agent in summary.inline)
        for session in agents.sessions():
            for agent, transcript in agents.working(session, started.get(session, ())).items():
                self._project(transcript).add((session, agent))

    def _project(self, transcript: Transcript) -> set[_AgentKey]:
        return self._by_project.setdefault(_project_key(transcript), set())

    @property
    def total(self) -> int:
        """The number of agents in all homes."""
        return len({agent for agents in self._by_project.values() for agent in agents})

    def of_project(self, key: _ProjectKey) -> int:
        """Return the number of agents in a project."""
        return len(self._by_project.get(key, ()))


def _project_key(transcript: Transcript) -> _ProjectKey:
    return transcript.home.name, transcript.folder


def _combine_stats(
    homes: list[Found], read: list[_ReadTranscript], agents: _AgentCounts, side_files: list[SideFileCounts]
) -> Overview:
    kinds = _sum_counts(stats.kinds for _, stats in read)
    versions = _sum_counts(stats.versions for _, stats in read)
    names = ProjectNames(homes)
    mains = [(transcript, stats) for transcript, stats in read if transcript.kind is TranscriptKind.MAIN]
    largest = sorted(read, key=lambda pair: -pair[0].size)[:_MAX_LARGEST]
    problems = [problem for home in homes for problem in home.problems]
    problems += [stats.problem for _, stats in read if stats.problem is not None]
    first, last = _time_span(stats for _, stats in read)
    return Overview(
        homes=tuple(home.home for home in homes),
        projects=tuple(_project_overviews(homes, read, agents)),
        sessions=_count_sessions(mains),
        transcripts=len(read),
        agents=agents.total,
        inline_agents=agents.inline,
        entries=sum(stats.entries for _, stats in read),
        bytes=sum(transcript.size for transcript, _ in read),
        kinds=dict(kinds.most_common()),
        versions=dict(sorted(versions.items(), key=lambda item: version_key(item[0]))),
        first=first,
        last=last,
        compactions=sum(stats.compactions for _, stats in mains),
        compacted_sessions=sum(stats.compactions > 0 for _, stats in mains),
        continuations=_count_continuations(mains),
        titled_by_summary=sum(stats.starts_with_summary for _, stats in mains),
        largest=tuple(
            LargeTranscript(
                transcript.path,
                names.of(transcript),
                transcript.size,
                stats.entries,
            )
            for transcript, stats in largest
        ),
        side_files=dict(_sum_counts(counts.kinds for counts in side_files).most_common()),
        problems=tuple(problems),
        kept=_count_sessions([pair for pair in mains if pair[0].home.is_kept]),
        not_entered=tuple(dict.fromkeys(path for counts in side_files for path in counts.not_entered)),
        listed=sum(_is_listed(stats) for _, stats in mains),
        agents_only=len(
            {transcript.session for transcript, _ in read if transcript.session is not None}
            - {transcript.session for transcript, _ in mains}
        ),
    )


def _count_sessions(mains: list[_ReadTranscript]) -> int:
    """Count sessions, each once: two transcripts, or two homes, may have the same one."""
    return len({transcript.session_key for transcript, stats in mains if _is_listed(stats)})


def _is_listed(stats: TranscriptStats) -> bool:
    return bool(stats.spoken) or stats.problem is not None


def _count_continuations(mains: list[_ReadTranscript]) -> int:
    """Count sessions that begin like another session: resumed copies, forks and branches."""
    known_ids: set[str] = set()
    continuations = 0
    for _, stats in sorted(mains, key=lambda pair: pair[1].first or ""):
        ids = {id_ for id_ in (stats.first_uuid, stats.first_message) if id_ is not None}
        continuations += bool(ids & known_ids)
        known_ids |= ids
    return continuations


def _time_span(stats: Iterable[TranscriptStats]) -> tuple[datetime | None, datetime | None]:
    spans = [(each.first, each.last) for each in stats if each.first is not None and each.last is not None]
    if not spans:
        return None, None
    return parse_timestamp(min(first for first, _ in spans)), parse_timestamp(max(last for _, last in spans))


def _project_overviews(homes: list[Found], read: list[_ReadTranscript], agents: _AgentCounts) -> list[ProjectOverview]:
    by_key: dict[_ProjectKey, list[_ReadTranscript]] = {}
    for transcript, stats in read:
        by_key.setdefault(_project_key(transcript), []).append((transcript, stats))
    # A kept transcript counts for the project it was in. If the home still has that project, its name is taken.
    projects = {
        (project.home.name, project.folder): project
        for home in sorted(homes, key=lambda home: not home.home.is_kept)
        for project in home.projects
    }
    order = dict.fromkeys((project.home.name, project.folder) for home in homes for project in home.projects)
    rows = [_project_overview(projects[key], by_key.get(key, []), agents.of_project(key)) for key in order]
    return sorted(rows, key=lambda row: row.last.timestamp() if row.last else 0, reverse=True)


def _project_overview(project: Project, read: list[_ReadTranscript], agents: int) -> ProjectOverview:
    first, last = _time_span(stats for _, stats in read)
    return ProjectOverview(
        project=project.name,
        folder=project.folder,
        home=Path(project.home.name),
        sessions=_count_sessions([pair for pair in read if pair[0].kind is TranscriptKind.MAIN]),
        agents=agents,
        bytes=sum(transcript.size for transcript, _ in read),
        first=first,
        last=last,
    )
