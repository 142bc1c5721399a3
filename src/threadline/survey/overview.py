"""What a newcomer wants to know of all homes: how much there is, from when, and what is special about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from threadline.errors import Error
from threadline.model.found import Found, Home, Project, Transcript, TranscriptKind
from threadline.model.kept import KEEP, home_name
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.time import parse_timestamp
from threadline.survey.distinct import distinct
from threadline.survey.glance import Glance, Glancing

_LARGEST = 5


class LargeTranscript(Struct, frozen=True):
    """One of the biggest transcripts."""

    path: Path
    project: str
    bytes: int
    entries: int


class ProjectGlance(Struct, frozen=True):
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
    projects: tuple[ProjectGlance, ...]
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


def glance(transcript: Transcript) -> Glance:
    """One pass over a transcript's heads. Refusals of the machine become a problem."""
    try:
        return _glance(transcript)
    except Error as error:
        problem = Problem(ProblemKind.UNREADABLE, Place(str(transcript.path)), str(error), recovered=False)
        return Glance(problem=problem)


def _glance(transcript: Transcript) -> Glance:
    from threadline.parse import heads

    glancing = Glancing()
    for head in heads(transcript.path):
        glancing.add(head, head.line)
    return glancing.glance(transcript.kind)


def overview(
    found: Iterable[Found],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    glances: Callable[[Iterable[Transcript]], Iterable[tuple[Transcript, Glance]]] | None = None,
    side_files: Iterable[Mapping[str, int]] | None = None,
) -> Overview:
    """All homes at a glance. `progress` is told the bytes of each transcript as it is read.

    `glances` gives a glance at each transcript, where somebody has read them before; `side_files` are the numbers of
    those in each home, where they have been counted and are not listed.
    """
    looked = list(distinct(found))
    transcripts = [transcript for one in looked for transcript in one.transcripts]
    told: dict[Path, tuple[Transcript, Glance]] = {}
    for transcript, seen in _read(transcripts, jobs) if glances is None else glances(transcripts):
        told[transcript.path] = (transcript, seen)
        if progress is not None:
            progress(transcript.size)
    ordered = [told[transcript.path] for transcript in transcripts]
    counted = side_files if side_files is not None else (_kinds(one) for one in looked)
    return summed(looked, ordered, _added(counted))


def _kinds(found: Found) -> Counter[str]:
    return Counter(str(side.kind) for side in found.side_files)


def _added(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """All of them together; of kinds that are as many, the one that came first is first."""
    added: Counter[str] = Counter()
    for some in counts:
        for name, number in some.items():
            added[name] += number
    return added


def _read(transcripts: list[Transcript], jobs: int | None) -> Iterator[tuple[Transcript, Glance]]:
    from threadline.survey.each import each

    return each(glance, transcripts, jobs=jobs)


def summed(found: list[Found], glances: list[tuple[Transcript, Glance]], side_files: Counter[str]) -> Overview:
    """The homes at a glance, when each of their transcripts has been glanced at."""
    kinds = _added(seen.kinds for _transcript, seen in glances)
    versions = _added(seen.versions for _transcript, seen in glances)
    names = {(project.home, project.folder): project.name for one in found for project in one.projects}
    mains = [(transcript, seen) for transcript, seen in glances if transcript.kind is TranscriptKind.MAIN]
    largest = sorted(glances, key=lambda pair: -pair[0].size)[:_LARGEST]
    problems = [problem for one in found for problem in one.problems]
    problems += [seen.problem for _transcript, seen in glances if seen.problem is not None]
    first, last = _span(seen for _transcript, seen in glances)
    return Overview(
        homes=tuple(one.home for one in found),
        projects=tuple(_projects(found, glances)),
        sessions=_sessions(mains),
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
        continuations=_continuations(mains),
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
        kept=_sessions([pair for pair in mains if pair[0].home.source == KEEP]),
    )


def version_key(version: str) -> tuple[tuple[int, str], ...]:
    """Versions in the order of their numbers: 2.1.9 before 2.1.10."""
    return tuple((int(part), "") if _is_number(part) else (-1, part) for part in version.split("."))


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < 10  # noqa: PLR2004 - no version is that long


def _is_agent(transcript: Transcript) -> bool:
    return transcript.kind in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT)


def _sessions(mains: list[tuple[Transcript, Glance]]) -> int:
    """Sessions are ids: an empty transcript is none, and two homes may hold the same one."""
    return len({transcript.session for transcript, seen in mains if seen.entries})


def _continuations(mains: list[tuple[Transcript, Glance]]) -> int:
    """Sessions that begin with what another session began with: resumed copies, forks and branches."""
    began: set[str] = set()
    continued = 0
    for _transcript, seen in sorted(mains, key=lambda pair: pair[1].first or ""):
        marks = {mark for mark in (seen.first_uuid, seen.first_message) if mark is not None}
        continued += bool(marks & began)
        began |= marks
    return continued


def _span(glances: Iterable[Glance]) -> tuple[datetime | None, datetime | None]:
    seen = [(one.first, one.last) for one in glances if one.first is not None and one.last is not None]
    if not seen:
        return None, None
    return parse_timestamp(min(first for first, _last in seen)), parse_timestamp(max(last for _first, last in seen))


def _projects(found: list[Found], glances: list[tuple[Transcript, Glance]]) -> list[ProjectGlance]:
    by_folder: dict[tuple[str, str], list[tuple[Transcript, Glance]]] = {}
    for transcript, seen in glances:
        by_folder.setdefault((home_name(transcript.home.path), transcript.folder), []).append((transcript, seen))
    # What is only in the keep is of the project it was of; one that the living home knows is called as it is there.
    by_place = {
        (home_name(project.home.path), project.folder): project
        for one in sorted(found, key=lambda each: each.home.source != KEEP)
        for project in one.projects
    }
    ordered = dict.fromkeys((home_name(project.home.path), project.folder) for one in found for project in one.projects)
    rows = [_project(by_place[key], by_folder.get(key, [])) for key in ordered]
    return sorted(rows, key=lambda row: row.last.timestamp() if row.last else 0, reverse=True)


def _project(project: Project, glances: list[tuple[Transcript, Glance]]) -> ProjectGlance:
    first, last = _span(seen for _transcript, seen in glances)
    return ProjectGlance(
        project=project.name,
        folder=project.folder,
        home=Path(home_name(project.home.path)),
        sessions=_sessions([pair for pair in glances if pair[0].kind is TranscriptKind.MAIN]),
        agents=sum(_is_agent(transcript) for transcript, _seen in glances),
        bytes=sum(transcript.size for transcript, _seen in glances),
        first=first,
        last=last,
    )
