"""Sightings with what the transcript itself does not know: where it lies, and what it belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from sys import intern

from threadline.model.found import Transcript
from threadline.model.side_agent import kind_by_id
from threadline.model.sighting import Origin, Seen, Sighting
from threadline.model.time import parse_timestamp


def placed(
    seen: Seen, transcript: Transcript, project: str, lines: Callable[[int], int], rank: int = 0
) -> list[Sighting]:
    """The sightings of a transcript, each with its origin. `lines` numbers the line that begins at an offset."""
    path, home = os.fspath(transcript.path), os.fspath(transcript.home.path)
    began = seen.began or time_of(transcript.mtime_ns)
    for origin in seen.origins:
        origin.lines, origin.rank = lines, rank
        origin.transcript, origin.project, origin.home, origin.began = path, project, home, began
        origin.side = _is_side(origin)
    origins = seen.origins
    for sighting in seen.sightings:
        sighting.origin = origins[sighting.origin_number]
        if sighting.model is not None:
            sighting.model = intern(sighting.model)
        if not sighting.time:
            sighting.time = began
    return seen.sightings


def time_of(mtime_ns: int) -> str:
    """When the file was written, for rows that say no time; file systems may say times that there are not."""
    moment = parse_timestamp(mtime_ns // 1_000_000)
    return (moment or datetime.min.replace(tzinfo=UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_side(origin: Origin) -> bool:
    return origin.agent is not None and kind_by_id(origin.agent) is not None
