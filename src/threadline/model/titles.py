"""Titles of sessions: where they come from, and which one counts.

A summary is a title that Claude Code wrote. It names the conversation it describes by the id of one of its entries. The
entry may be in any transcript of any home, so a summary has to be resolved over all of them. `SummaryLinks` is the
answer: the index has it ready, and `threadline.parse.TranscriptLinks` finds it in the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from threadline.model.places import SessionId
from threadline.model.text import fold_line

_MAX_TITLE_LENGTH = 200


class TitleSource(StrEnum):
    """Where a session's title comes from."""

    CUSTOM = "custom-title"
    AI = "ai-title"
    LAST_PROMPT = "last-prompt"
    SUMMARY = "summary"
    FIRST_PROMPT = "first-prompt"
    PLAN = "plan"
    NONE = "none"


class Title(Struct, frozen=True):
    """A session's title, and its source."""

    text: str = ""
    source: TitleSource = TitleSource.NONE

    def __str__(self) -> str:
        return self.text


_MIN_TITLE_LENGTH = 12
_MIN_WIDE_TITLE_LENGTH = 5


def is_fragment(text: str) -> bool:
    """Whether a text is too short to recognise a session by: `1`, `continue`, `yes please`.

    >>> is_fragment("looks good"), is_fragment("Fix the login page"), is_fragment("ログインを直して")
    (True, False, False)
    """
    folded = " ".join(text.split())
    return len(folded) < (_MIN_TITLE_LENGTH if folded.isascii() else _MIN_WIDE_TITLE_LENGTH)


def choose_title(entry_titles: Mapping[str, str], act_titles: Mapping[str, str]) -> Title:
    """Choose the title from those in entries, by source, and the first texts of acts, by rank.

    What somebody or a model chose as the title comes first, then what the session began with. Claude Code prefers the
    last prompt to the first, but that is often only "continue".
    """
    candidates = (
        (TitleSource.CUSTOM, entry_titles.get(TitleSource.CUSTOM)),
        (TitleSource.AI, entry_titles.get(TitleSource.AI)),
        (TitleSource.SUMMARY, entry_titles.get(TitleSource.SUMMARY)),
        (TitleSource.FIRST_PROMPT, act_titles.get("prompt")),
        (TitleSource.PLAN, act_titles.get("plan")),
        (TitleSource.LAST_PROMPT, entry_titles.get(TitleSource.LAST_PROMPT)),
        (TitleSource.FIRST_PROMPT, act_titles.get("fragment")),
        (TitleSource.FIRST_PROMPT, act_titles.get("command")),
    )
    source, text = next(((source, text) for source, text in candidates if text), (TitleSource.NONE, ""))
    return Title(shorten_title(text), source)


def shorten_title(text: str) -> str:
    """Return a text as a title: in one line, at most 200 characters."""
    return fold_line(text, _MAX_TITLE_LENGTH)


class SummaryRef(Struct, frozen=True):
    """A summary in a transcript. It titles the conversation that contains the entry `leaf`.

    `transcript` and `offset` are its place, `session` is the session that its transcript belongs to.
    """

    leaf: str
    text: str
    transcript: str
    offset: int
    session: SessionId | None = None


class SummaryLinks(Protocol):
    """All summaries of some homes, and the sessions that contain the entries they name."""

    @property
    def summaries(self) -> Sequence[SummaryRef]:
        """Every summary that names an entry."""
        ...

    @property
    def owners(self) -> Mapping[str, Sequence[SessionId]]:
        """The sessions that contain each named entry, in their main transcript or in an agent's."""
        ...


class KnownLinks(Struct, frozen=True):
    """Links that are known already."""

    summaries: tuple[SummaryRef, ...] = ()
    owners: dict[str, tuple[SessionId, ...]] = {}


NO_LINKS = KnownLinks()


def choose_summary(summaries: Iterable[SummaryRef], positions: Mapping[str, int], transcript: str) -> str | None:
    """Return the summary that titles a conversation; None if none of them names one of its entries.

    `positions` are the positions of its entries by id, `transcript` is its transcript. The summary of the latest entry
    counts. Of several with the same entry, the last one in its own transcript counts, else the last one by path.
    """
    best = max(
        (summary for summary in summaries if summary.leaf in positions),
        key=lambda ref: (positions[ref.leaf], ref.transcript == transcript, ref.transcript, ref.offset),
        default=None,
    )
    return best.text if best is not None else None
