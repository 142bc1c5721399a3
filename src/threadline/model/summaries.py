"""Summaries: titles that Claude Code wrote. Each names the conversation it describes by the id of one of its entries.

The entry may be in any transcript of any home, so a summary has to be resolved over all of them. `SummaryLinks` is the
answer: the index has it ready, and `threadline.parse.TranscriptLinks` finds it in the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from threadline.model.places import SessionId


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
