"""Overview of all homes: how much there is, from when, and what is special about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from threadline.errors import Error
from threadline.find import drop_shared_transcripts
from threadline.model.homes import KEEP_SOURCE, Found, Home, Project, Transcript, TranscriptKind, home_name
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.times import parse_timestamp
from threadline.summary.transcripts import StatsFold, TranscriptStats

_MAX_LARGEST = 5


class LargeTranscript(Struct, frozen=True):
    """One of the biggest transcripts."""

    path: Path
    project: str
    bytes: int
    entries: int


class ProjectOverview(Struct, frozen=True):
    """One project: how much there is of it."""

    project: str
    folder: str
    home: Path
    sessions: int
    agents: int
    bytes: int
    first: datetime | None
    last: datetime | None


class Overview(Struct, frozen=True):
    """All homes at a glance. Of the sessions, those that are `kept` are only in the keep."""

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


def read_stats(transcript: Transcript) -> TranscriptStats:
    """One pass over a transcript's heads. Refusals of the machine become a problem."""
    try:
        return _fold_heads(transcript)
    except Error as error:
        problem = Problem(ProblemKind.UNREADABLE, Place(str(transcript.path)), str(error), recovered=False)
        return TranscriptStats(problem=problem)


def _fold_heads(transcript: Transcript) -> TranscriptStats:
    from threadline.parse import heads

    glancing = StatsFold()
    for head in heads(transcript.path):
        glancing.add(head, head.line)
    return glancing.glance(transcript.kind)


def build_overview(
    found: Iterable[Found],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    glances: Callable[[Iterable[Transcript]], Iterable[tuple[Transcript, TranscriptStats]]] | None = None,
    side_files: Iterable[Mapping[str, int]] | None = None,
) -> Overview:
    """All homes at a glance. `progress` is told the bytes of each transcript as it is read.

    `glances` gives a glance at each transcript, where somebody has read them before; `side_files` are the numbers of
    those in each home, where they have been counted and are not listed.
    """
    looked = list(drop_shared_transcripts(found))
    transcripts = [transcript for one in looked for transcript in one.transcripts]
    told: dict[Path, tuple[Transcript, TranscriptStats]] = {}
    for transcript, seen in _read_all_stats(transcripts, jobs) if glances is None else glances(transcripts):
        told[transcript.path] = (transcript, seen)
        if progress is not None:
            progress(transcript.size)
    ordered = [told[transcript.path] for transcript in transcripts]
    counted = side_files if side_files is not None else (_side_file_kinds(one) for one in looked)
    return combine_stats(looked, ordered, _sum_counts(counted))


def _side_file_kinds(found: Found) -> Counter[str]:
    return Counter(str(side.kind) for side in found.side_files)


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """All of them together; of kinds that are as many, the one that came first is first."""
    added: Counter[str] = Counter()
    for some in counts:
        for name, number in some.items():
            added[name] += number
    return added


def _read_all_stats(transcripts: list[Transcript], jobs: int | None) -> Iterator[tuple[Transcript, TranscriptStats]]:
    from threadline.parallel import map_transcripts

    return map_transcripts(read_stats, transcripts, jobs=jobs)


def combine_stats(
    found: list[Found], glances: list[tuple[Transcript, TranscriptStats]], side_files: Counter[str]
) -> Overview:
    """The homes at a glance, when each of their transcripts has been glanced at."""
    kinds = _sum_counts(seen.kinds for _transcript, seen in glances)
    versions = _sum_counts(seen.versions for _transcript, seen in glances)
    names = {(project.home, project.folder): project.name for one in found for project in one.projects}
    mains = [(transcript, seen) for transcript, seen in glances if transcript.kind is TranscriptKind.MAIN]
    largest = sorted(glances, key=lambda pair: -pair[0].size)[:_MAX_LARGEST]
    problems = [problem for one in found for problem in one.problems]
    problems += [seen.problem for _transcript, seen in glances if seen.problem is not None]
    first, last = _time_span(seen for _transcript, seen in glances)
    return Overview(
        homes=tuple(one.home for one in found),
        projects=tuple(_project_overviews(found, glances)),
        sessions=_count_sessions(mains),
        transcripts=len(glances),
        agents=sum(_is_agent(transcript) for transcript, _seen in glances),
        inline_agents=sum(seen.inline_agents for _transcript, seen in glances),
        entries=sum(seen.entries for _transcript, seen in glances),
        bytes=sum(transcript.size for transcript, _seen in glances),
        kinds=dict(kinds.most_common()),
        versions=dict(sorted(versions.items(), key=lambda item: version_key(item[0]))),
        first=first,
        last=last,
        compactions=sum(seen.compactions for _transcript, seen in mains),
        compacted_sessions=sum(seen.compactions > 0 for _transcript, seen in mains),
        continuations=_count_continuations(mains),
        titled_by_summary=sum(seen.starts_with_summary for _transcript, seen in mains),
        largest=tuple(
            LargeTranscript(
                transcript.path,
                names.get((transcript.home, transcript.folder), transcript.folder),
                transcript.size,
                seen.entries,
            )
            for transcript, seen in largest
        ),
        side_files=dict(side_files.most_common()),
        problems=tuple(problems),
        kept=_count_sessions([pair for pair in mains if pair[0].home.source == KEEP_SOURCE]),
    )


def version_key(version: str) -> tuple[tuple[int, str], ...]:
    """Versions in the order of their numbers: 2.1.9 before 2.1.10."""
    return tuple((int(part), "") if _is_version_number(part) else (-1, part) for part in version.split("."))


def _is_version_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < 10  # noqa: PLR2004 - no version is that long


def _is_agent(transcript: Transcript) -> bool:
    return transcript.kind in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT)


def _count_sessions(mains: list[tuple[Transcript, TranscriptStats]]) -> int:
    """Sessions are ids: an empty transcript is none, and two homes may hold the same one."""
    return len({transcript.session for transcript, seen in mains if seen.entries})


def _count_continuations(mains: list[tuple[Transcript, TranscriptStats]]) -> int:
    """Sessions that begin with what another session began with: resumed copies, forks and branches."""
    began: set[str] = set()
    continued = 0
    for _transcript, seen in sorted(mains, key=lambda pair: pair[1].first or ""):
        marks = {mark for mark in (seen.first_uuid, seen.first_message) if mark is not None}
        continued += bool(marks & began)
        began |= marks
    return continued


def _time_span(glances: Iterable[TranscriptStats]) -> tuple[datetime | None, datetime | None]:
    seen = [(stats.first, stats.last) for stats in glances if stats.first is not None and stats.last is not None]
    if not seen:
        return None, None
    return parse_timestamp(min(first for first, _last in seen)), parse_timestamp(max(last for _first, last in seen))


def _project_overviews(found: list[Found], glances: list[tuple[Transcript, TranscriptStats]]) -> list[ProjectOverview]:
    by_folder: dict[tuple[str, str], list[tuple[Transcript, TranscriptStats]]] = {}
    for transcript, seen in glances:
        by_folder.setdefault((home_name(transcript.home.path), transcript.folder), []).append((transcript, seen))
    # What is only in the keep is of the project it was of; one that the living home knows is called as it is there.
    by_place = {
        (home_name(project.home.path), project.folder): project
        for one in sorted(found, key=lambda each: each.home.source != KEEP_SOURCE)
        for project in one.projects
    }
    ordered = dict.fromkeys((home_name(project.home.path), project.folder) for one in found for project in one.projects)
    rows = [_project_overview(by_place[key], by_folder.get(key, [])) for key in ordered]
    return sorted(rows, key=lambda row: row.last.timestamp() if row.last else 0, reverse=True)


def _project_overview(project: Project, glances: list[tuple[Transcript, TranscriptStats]]) -> ProjectOverview:
    first, last = _time_span(seen for _transcript, seen in glances)
    return ProjectOverview(
        project=project.name,
        folder=project.folder,
        home=Path(home_name(project.home.path)),
        sessions=_count_sessions([pair for pair in glances if pair[0].kind is TranscriptKind.MAIN]),
        agents=sum(_is_agent(transcript) for transcript, _seen in glances),
        bytes=sum(transcript.size for transcript, _seen in glances),
        first=first,
        last=last,
    )
