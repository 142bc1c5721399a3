"""Join what sessions recorded about a file with its history in git, in order of time.

Commits and sessions explain each other. A session edits the text of a commit, so the lines that were there are the
commit's. A commit contains what sessions wrote, so those lines are theirs. A line of a commit that is neither in the
versions before it nor in what a session left is the commit's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from msgspec import Struct

from threadline.insight.blame.alignment import is_trivial
from threadline.insight.blame.commands import moved_paths, names_path, written_runs
from threadline.insight.blame.git_versions import CommittedVersion, GitVersions
from threadline.insight.blame.origins import (
    AMBIGUOUS,
    NEW,
    OUTSIDE,
    Claim,
    Origin,
    Origins,
    Version,
    VersionStore,
    Windows,
    apply_claims,
    carry,
    combine,
    split_lines,
    unknown,
)
from threadline.insight.blame.timeline import FileTimeline
from threadline.model.insight.blame import BlamedLine
from threadline.model.times import moment_from_seconds
from threadline.shell_syntax import input_command
from threadline.thread import FactKind, FileFact, base_name

# Commit times are in whole seconds: what happened in the same second came before.
_COMMIT_SECOND = 0.999

CommandCheck = Callable[[float, float], bool]
"""Whether a command of a session may have changed files between two times."""


class OwnedFact(Struct, frozen=True):
    """A fact with the origin of the lines that its call wrote, and the directory that the call was made in."""

    fact: FileFact
    origin: Origin | None
    cwd: str | None = None
    session_has_rewinds: bool = False


class FileHistory:
    """The history of one file under all of its names."""

    def __init__(
        self,
        paths: Iterable[str],
        git: GitVersions | None = None,
        may_command_write: CommandCheck = lambda *_: True,
        canonical: Callable[[str], str] = str,
        is_recorded: Callable[[CommittedVersion], bool] = lambda _: False,
    ) -> None:
        """`paths` are the full paths of the file: its names, and those in other working trees.

        `canonical` returns a path without links, as those in `paths` are. `is_recorded` says whether the session that
        made a commit is recorded.
        """
        self._recorded, self._snapshots, self._windows = VersionStore(), VersionStore(), Windows()
        self._timelines = {
            path: FileTimeline(self._recorded, self._snapshots, self._windows, self._last_commit)
            for path in dict.fromkeys(paths)
        }
        self._names = {base_name(path) for path in self._timelines}
        self._canonical = canonical
        self._git = git
        self._elsewhere: set[str] = set()
        self._may_command_write = may_command_write
        self._is_recorded = is_recorded
        self._committed: dict[str, Version] = {}
        self._commit_times: dict[str, float] = {}
        self._lines: set[str] = set()  # of all commits so far
        self._last: str | None = None

    def use_only_equal_texts(self, paths: Iterable[str]) -> None:
        """Use what sessions recorded at these paths only if a commit has the same text: the files may be others."""
        self._elsewhere.update(paths)

    def replay(self, facts: Iterable[OwnedFact]) -> None:
        """Apply all facts and commits in order of time. The facts are in order."""
        commits = list(self._git.versions) if self._git is not None else []
        for commit in commits:
            before = [self._commit_times[parent] for parent in commit.parents if parent in self._commit_times]
            self._commit_times[commit.id] = max([commit.time + _COMMIT_SECOND, *before])
        commits.sort(key=lambda commit: self._commit_times[commit.id])
        at = 0
        for owned in facts:
            while at < len(commits) and self._commit_times[commits[at].id] < owned.fact.time:
                self._apply_commit(commits[at])
                at += 1
            self._apply_fact(owned)
        for commit in commits[at:]:
            self._apply_commit(commit)

    def last_version(self, path: str) -> Version | None:
        """The last version that sessions recorded, before the file was deleted if it was."""
        timeline = self._timelines.get(path)
        return timeline.last_text if timeline is not None else None

    def explain(self, path: str, text: str) -> Origins:
        """Return the origins of the current text."""
        lines = split_lines(text)
        timeline = self._timelines.get(path)
        head = self._git.head if self._git is not None else None
        committed = self._committed.get(head) if head is not None else None
        # What sessions recorded before the last commit is part of it; what they recorded later includes it.
        is_newer = head is None or (timeline is not None and timeline.time > self._commit_times[head])
        if timeline is not None and timeline.time and is_newer:
            return timeline.explain(lines)
        if committed is None:
            return [OUTSIDE for _ in lines]
        if committed.lines == lines:
            return committed.origins
        return carry(committed, lines, lambda _: OUTSIDE, is_outside=True)

    def is_committed(self, text: str) -> bool:
        """Whether a text is that of the last commit."""
        head = self._committed.get(self._git.head or "") if self._git is not None else None
        return head is not None and head.lines == split_lines(text)

    def _last_commit(self, after: float) -> Version | None:
        if self._last is None or self._commit_times[self._last] <= after:
            return None
        return self._committed[self._last]

    def _apply_fact(self, owned: OwnedFact) -> None:
        fact = owned.fact
        if fact.kind is FactKind.COMMAND:
            self._apply_command(owned)
        elif (timeline := self._timelines.get(self._canonical(fact.path))) is not None:
            timeline.can_restore_any = timeline.can_restore_any or owned.session_has_rewinds
            timeline.apply(fact, owned.origin)

    def _apply_command(self, owned: OwnedFact) -> None:
        command = command_text(owned.fact)
        if owned.origin is None or not any(name in command for name in self._names):
            return
        for source, target in moved_paths(command, owned.cwd):
            old, new = self._canonical(source), self._canonical(target)
            if old in self._timelines and new in self._timelines and old != new:
                self._timelines[new].copy_from(self._timelines[old], owned.fact.time)
        for path, timeline in self._timelines.items():
            is_named = names_path(command, path, owned.cwd and self._canonical(owned.cwd))
            if is_named and (runs := list(written_runs(command, path))):
                timeline.claim(owned.origin, runs, owned.fact.time)

    def _apply_commit(self, commit: CommittedVersion) -> None:
        lines = split_lines(commit.text) if commit.text is not None else []
        version = Version(lines, self._explain_commit(commit, lines))
        self._committed[commit.id] = version
        self._lines.update(lines)
        self._snapshots.add(version)
        self._last = commit.id

    def _explain_commit(self, commit: CommittedVersion, lines: list[str]) -> Origins:
        before = [parent for parent in commit.parents if parent in self._committed]
        kept = [carry(self._committed[parent], lines, lambda _: NEW, is_outside=True) for parent in before]
        origins: Origins = reduce(combine, kept) if kept else [NEW for _ in lines]
        is_new = [origin is NEW for origin in origins]
        since = max((self._commit_times[parent] for parent in before), default=0.0)
        timelines = [timeline for timeline in self._checkouts() if timeline.time > since]
        recorded = self._recorded.get(lines)
        if recorded is not None:
            origins = [
                right if left is NEW or right.known or right is AMBIGUOUS else left
                for left, right in zip(origins, recorded, strict=True)
            ]
        else:
            views = [
                carry(timeline.version, lines, lambda _: NEW, is_outside=True)
                for timeline in timelines
                if timeline.version is not None
            ]
            if views:
                origins = [_join_views(origin, [view[at] for view in views]) for at, origin in enumerate(origins)]
        origins = apply_claims(lines, origins, self._claims())
        origins = self._claim_first_commits(lines, origins, is_new)
        latest = max((timeline.time for timeline in timelines), default=since)
        return self._claim_new_lines(
            commit, lines, origins, is_new, (max(since, latest), self._commit_times[commit.id])
        )

    def _claim_first_commits(self, lines: list[str], origins: Origins, is_new: list[bool]) -> Origins:
        """Return the origins with the edits that left a line in any working tree which was never committed before.

        So the lines of a branch that was squashed or rebased keep their writers.
        """
        claims = [claim for timeline in self._timelines.values() for claim in timeline.session_lines_as_claims()]
        if not claims or not any(is_new):
            return origins
        claimed = apply_claims(lines, origins, claims)
        return [
            after
            if is_new[at] and before is NEW and (is_trivial(lines[at]) or lines[at] not in self._lines)
            else before
            for at, (before, after) in enumerate(zip(origins, claimed, strict=True))
        ]

    def _claim_new_lines(
        self,
        commit: CommittedVersion,
        lines: list[str],
        origins: Origins,
        is_new: list[bool],
        window: tuple[float, float],
    ) -> Origins:
        """Return the origins with the commit for the lines that it brought, and that no session can have written."""
        candidates = [
            at for at, origin in enumerate(origins) if is_new[at] and not origin.known and origin is not AMBIGUOUS
        ]
        if not candidates:
            return origins
        written = {line for timeline in self._timelines.values() for line in timeline.written}
        letters = {_letters(line) for line in written}
        own: dict[tuple[float, float], Origin] = {}
        for at in candidates:
            line = lines[at]
            if not is_trivial(line) and (line in written or _letters(line) in letters):
                origins[at] = _doubtful_origin(commit)
                continue
            when = self._windows.get(origins[at]) or window
            if when not in own:
                own[when] = self._commit_origin(commit, when)
            origins[at] = own[when]
        return origins

    def _claims(self) -> list[Claim]:
        return [claim for timeline in self._checkouts() for claim in timeline.claims]

    def _checkouts(self) -> list[FileTimeline]:
        return [timeline for path, timeline in self._timelines.items() if path not in self._elsewhere]

    def _commit_origin(self, commit: CommittedVersion, window: tuple[float, float]) -> Origin:
        """The origin of the lines that only this commit can have brought, if they were written in this window."""
        if commit.is_cut:
            return unknown("The history before this commit is missing.", commit.commit)
        if commit.is_by_claude and not self._is_recorded(commit):
            return unknown("Claude Code made this commit, in a session that is not recorded.", commit.commit)
        if self._may_command_write(*window):
            return unknown("A command of a session may have written it before this commit.", commit.commit)
        time = moment_from_seconds(commit.time) if commit.time else None
        return BlamedLine(0, "", known=True, commit=commit.commit, author=commit.author or None, time=time)


def _join_views(parents: Origin, sessions: list[Origin]) -> Origin:
    """The origin of a committed line, from the versions before it and from what newer sessions left.

    A line of the versions before that no newer session left was removed and written again.
    """
    if not sessions:
        return parents
    if parents.known:
        is_contradicted = any(view is AMBIGUOUS or (view.known and view is not parents) for view in sessions)
        return AMBIGUOUS if is_contradicted or all(view is NEW for view in sessions) else parents
    known = next((view for view in sessions if view.known), None)
    if known is not None:
        return known
    return next((view for view in sessions if view is not NEW), parents) if parents is NEW else parents


def command_text(fact: FileFact) -> str:
    """The text of the shell command of a fact; empty if it is not one."""
    return (input_command(fact.call.input) if fact.call is not None else None) or ""


def _doubtful_origin(commit: CommittedVersion) -> Origin:
    return unknown("A session wrote the same words before; this commit brought them in this form.", commit.commit)


def _letters(line: str) -> str:
    """The letters and digits of a line: what formatters do not change."""
    return "".join(filter(str.isalnum, line))


def blamed_lines(lines: Sequence[str], origins: Sequence[Origin]) -> tuple[BlamedLine, ...]:
    """Return the lines with their numbers and origins."""
    return tuple(
        BlamedLine(
            line=number,
            text=text,
            known=origin.known,
            session=origin.session,
            turn=origin.turn,
            prompt=origin.prompt,
            model=origin.model,
            agent=origin.agent,
            time=origin.time,
            tool=origin.tool,
            call=origin.call,
            place=origin.place,
            path=origin.path,
            commit=origin.commit,
            author=origin.author,
            reason=origin.reason,
        )
        for number, (text, origin) in enumerate(zip(lines, origins, strict=True), 1)
    )
