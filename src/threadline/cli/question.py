"""What a receipt is wanted of, as people write it: a session, a message, a day or a place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from threadline.errors import Ambiguous, BadQuery, NotFound
from threadline.model.found import Found, Transcript

if TYPE_CHECKING:
    from threadline.account.ledger import Ledger
    from threadline.archive import Archive
    from threadline.survey.asked import Asked

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_AGO = {"today": 0, "yesterday": 1}
_LINE = re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,18})(?:\$.*)?", re.DOTALL)
_MESSAGE = ("msg_", "req_")
_LONG = 100


class Question(NamedTuple):
    """Which homes to count, and what to ask of their ledger."""

    found: Sequence[Found]
    asked: Callable[[Ledger], Asked]


def question(what: str, archive: Archive, zone: tzinfo) -> Question:
    """What was meant.

    Raises:
        NotFound: it is neither a session nor a message, nor a place that is there.
        Ambiguous: it is the start of several.
        BadQuery: it is no day, or too short.
    """
    from threadline.survey.asked import of_day, of_message, of_place

    day = _day(what, zone)
    if day is not None:
        return Question(archive.found, lambda ledger: of_day(ledger, day, zone))
    if what.startswith(_MESSAGE):
        return Question(archive.found, lambda ledger: of_message(ledger, what))
    place = _LINE.fullmatch(what)
    if place is not None and not _is_file(what):
        found, transcript = _transcript(place["file"], archive)
        return Question(found, lambda ledger: of_place(ledger, str(transcript.path), int(place["line"])))
    return _session_or_message(what, archive)


def _session_or_message(what: str, archive: Archive) -> Question:
    """A session, if one is named so; else whatever message the ledger knows by that id."""
    from threadline.survey.asked import messages, of_message, of_transcript

    try:
        found, transcript = _transcript(what, archive)
    except (Ambiguous, BadQuery):
        raise
    except NotFound:
        if _is_path(what):
            raise
        return Question(archive.found, lambda ledger: _message(ledger, what))

    def asked(ledger: Ledger) -> Asked:
        same = messages(ledger, what) if not _is_path(what) and what != "last" else []
        if same == [what]:
            return of_message(ledger, what)
        if same:
            raise Ambiguous(
                f"{what[:_LONG]!r} is the start of the id of {str(transcript.path)!r}"
                f" and of {len(same):,} messages, such as {same[0]}; write more of it."
            )
        return of_transcript(ledger, transcript)

    return Question(found, asked)


def _message(ledger: Ledger, what: str) -> Asked:
    from threadline.survey.asked import messages, of_message

    if not messages(ledger, what):
        raise NotFound(
            f"{what[:_LONG]!r} is no session, message, day or place; write the start of an id, `last`, a transcript,"
            " 2026-11-03, today, yesterday or FILE:LINE. `threadline list` shows sessions."
        )
    return of_message(ledger, what)


def _day(text: str, zone: tzinfo) -> str | None:
    word = text.strip().lower()
    if word in _AGO:
        return f"{datetime.now(zone) - timedelta(days=_AGO[word]):%Y-%m-%d}"
    if not _DAY.fullmatch(word):
        return None
    try:
        return datetime.fromisoformat(word).date().isoformat()
    except ValueError:
        raise BadQuery(f"There is no day {text!r}; write one such as 2026-11-03.") from None


def _transcript(name: str, archive: Archive) -> tuple[Sequence[Found], Transcript]:
    """The transcript of that name, and what to count: all homes, or its session alone where it lies in none."""
    found = archive.found
    if not _is_path(name) and name != "last":
        return found, archive.transcript(name)
    path = os.path.realpath(archive.path(name) if name == "last" else os.path.expanduser(name))  # noqa: PTH111 - text
    for one in found:
        for transcript in one.transcripts:
            if str(transcript.path) == path:
                return found, transcript
    alone = archive.at(path, session=True)
    return (alone,), alone.transcripts[0]


def _is_path(text: str) -> bool:
    return _is_file(text) or (os.sep in text and text.endswith(".jsonl"))


def _is_file(text: str) -> bool:
    try:
        return Path(os.path.expanduser(text)).is_file()  # noqa: PTH111 - Path.expanduser raises without such a user
    except (OSError, ValueError):
        return False
