"""What each session spent: every charge belongs to one main transcript, or is listed without a session.

A session is its main transcript (`find.SessionOwners`). A message that several transcripts contain counts in one of
them; the others only show how much they share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from threadline.find import SessionOwners, session_of_path
from threadline.model.homes import Found, ProjectNames, Transcript, TranscriptKind
from threadline.model.ledger import NONE, Sum
from threadline.model.places import SessionId

if TYPE_CHECKING:
    from threadline.account import Ledger


class UnlistedSpending(Struct, frozen=True):
    """What was spent in a transcript that is not part of a listed session, and why it is not.

    `session` is the session that `usage --by session` counts it for, if any. `transcripts` are the paths: one, or those
    of a main transcript that is not listed and of its agents.
    """

    session: SessionId | None
    project: str
    reason: str
    transcripts: tuple[Path, ...]
    total: Sum


class SharedSpending(Struct, frozen=True):
    """What a session shares with another one, which it is counted for: the other's id, its transcript, and tokens."""

    session: SessionId | None
    transcript: Path
    tokens: int


class SharedTokens(NamedTuple):
    """The tokens of messages that a transcript contains and another one owns. Both are paths."""

    transcript: str
    owner: str
    tokens: int


class SpendingBySession(Struct, frozen=True):
    """The spending of all sessions by the path of their main transcripts, and of transcripts without one."""

    own: Mapping[Path, Sum]
    transcripts: Mapping[Path, tuple[Path, ...]]
    shared: Mapping[Path, tuple[SharedSpending, ...]]
    unowned: tuple[UnlistedSpending, ...]
    projects: Mapping[Path, str]

    def of(self, main: Path) -> Sum:
        """What a session spent, or a transcript without one."""
        own = self.own.get(main)
        return own if own is not None else Sum.of(spent.total for spent in self.unowned if main in spent.transcripts)

    def unlisted(self, listed: Collection[Path]) -> tuple[UnlistedSpending, ...]:
        """What was spent elsewhere than in the listed sessions and their agents."""
        mains = [
            UnlistedSpending(
                session=session_of_path(main),
                project=self.projects[main],
                reason=_ONLY_AGENTS,
                transcripts=tuple(dict.fromkeys((main, *self.transcripts[main]))),
                total=spent,
            )
            for main, spent in self.own.items()
            if main not in listed
        ]
        rows = [*mains, *self.unowned]
        return tuple(sorted(rows, key=lambda row: (row.session or "", str(row.transcripts[0]))))


_ONLY_AGENTS = "the transcript contains only an agent's messages"
_NO_SESSION = "the transcript of its session is missing"
_NO_TRANSCRIPT = "the file is not a session's or an agent's transcript"


def build_spending(
    ledger: Ledger,
    found: Collection[Found],
    named: Callable[[Transcript], SessionId | None],
    shared: Iterable[SharedTokens],
    mains: Collection[Path] | None = None,
) -> SpendingBySession:
    """Assign what was spent to main transcripts. `named` returns the session that an agent's entries name.

    With `mains`, only what these main transcripts and their agents spent is summed.
    """
    names = ProjectNames(found)
    all_transcripts = {str(transcript.path): transcript for home in found for transcript in home.transcripts}
    owners = SessionOwners(all_transcripts.values(), named)
    transcripts = all_transcripts
    if mains is not None:
        transcripts = {
            path: transcript
            for path, transcript in all_transcripts.items()
            if (main := owners.main_of(transcript)) is not None and main.path in mains
        }
        ledger = ledger.where(transcripts=transcripts.keys())
    by_main: dict[Path, list[Sum]] = {}
    parts: dict[Path, list[Path]] = {}
    projects: dict[Path, str] = {}
    unowned: list[tuple[str, Transcript, Sum]] = []
    for row in ledger.by("session", "transcript"):
        transcript = transcripts.get(row.keys["transcript"])
        if transcript is None:
            continue
        main = owners.main_of(transcript)
        if main is not None:
            by_main.setdefault(main.path, []).append(row)
            parts.setdefault(main.path, []).append(transcript.path)
            projects[main.path] = names.of(main)
        else:
            unowned.append((row.keys["session"], transcript, row))
    return SpendingBySession(
        own={main: Sum.of(rows) for main, rows in by_main.items()},
        transcripts={main: tuple(sorted(set(paths))) for main, paths in parts.items()},
        shared=_add_shared(shared, all_transcripts, owners, mains),
        unowned=tuple(
            UnlistedSpending(
                session=SessionId(session) if session != NONE else None,
                project=names.of(transcript),
                reason=_NO_TRANSCRIPT if transcript.kind is TranscriptKind.OTHER else _NO_SESSION,
                transcripts=(transcript.path,),
                total=spent,
            )
            for session, transcript, spent in unowned
        ),
        projects=projects,
    )


def _add_shared(
    rows: Iterable[SharedTokens],
    transcripts: Mapping[str, Transcript],
    owners: SessionOwners,
    mains: Collection[Path] | None,
) -> dict[Path, tuple[SharedSpending, ...]]:
    """Add up what sessions share, without what agents and their own session share."""
    tokens: dict[Path, dict[Path, int]] = {}
    for row in rows:
        holder, owner = transcripts.get(row.transcript), transcripts.get(row.owner)
        main = owners.main_of(holder) if holder is not None else None
        if main is None or owner is None or (mains is not None and main.path not in mains):
            continue
        other = owners.main_of(owner) or owner
        if other.path != main.path:
            by_other = tokens.setdefault(main.path, {})
            by_other[other.path] = by_other.get(other.path, 0) + row.tokens
    return {
        main: tuple(
            SharedSpending(transcripts[str(other)].session, other, number)
            for other, number in sorted(others.items(), key=lambda pair: (-pair[1], str(pair[0])))
        )
        for main, others in tokens.items()
    }


def shared_tokens(ledger: Ledger) -> list[SharedTokens]:
    """The messages of a ledger that transcripts share. Ids that several calls have in common are left out."""
    calls: dict[str, set[int]] = {}
    for charge in ledger:
        calls.setdefault(charge.message, set()).add(id(charge.owner))
    sums: dict[tuple[str, str], int] = {}
    for charge in ledger:
        if len(calls[charge.message]) > 1:
            continue
        owner = charge.origin.transcript
        for holder in {sighting.origin.transcript for sighting in charge.sightings} - {owner}:
            tokens = charge.input + charge.output + charge.cache_write + charge.cache_read
            sums[holder, owner] = sums.get((holder, owner), 0) + tokens
    return [SharedTokens(holder, owner, tokens) for (holder, owner), tokens in sums.items()]
