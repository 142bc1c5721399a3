"""Homes without what another of them holds as well: two may share their transcripts through a link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from threadline.model.found import Found


def distinct(found: Iterable[Found]) -> Iterator[Found]:
    """Each home with the transcripts that no home before it has, and the projects that still have one."""
    homes = list(found)
    if len(homes) == 1:
        yield from homes
        return
    seen: set[str] = set()
    for one in homes:
        own = tuple(transcript for transcript in one.transcripts if str(transcript.path) not in seen)
        if len(own) == len(one.transcripts):
            yield one
        else:
            folders = {transcript.folder for transcript in own}
            projects = tuple(project for project in one.projects if project.folder in folders)
            yield replace(one, transcripts=own, projects=projects)
        seen.update(str(transcript.path) for transcript in own)
