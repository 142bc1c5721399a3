"""Filters for calls, files and entries, built from command-line options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from threadline.cli.output import no_match_message
from threadline.errors import did_you_mean
from threadline.model.entry_filter import AttributedEntry, EntryFilter, names_agent
from threadline.model.text import format_time, join_some
from threadline.model.times import TimeRange, zone_name
from threadline.summary import SessionFilter

if TYPE_CHECKING:
    from threadline.archive import Archive

DEFAULT_LIMIT = 50
"""How many rows a table across all sessions has, unless `--limit` says otherwise."""


class CrossSessionFilter(Struct, frozen=True):
    """Which calls or files to list, of one session or of all; no limit means all."""

    project: str | None
    time: TimeRange
    limit: int | None
    zone: tzinfo = UTC

    @staticmethod
    def parse(
        project: str | None, since: str | None, until: str | None, limit: int | None, zone: tzinfo
    ) -> CrossSessionFilter:
        """Parse the command-line options.

        Raises:
            BadQuery: a time cannot be understood, or `--since` is after `--until`.
        """
        return CrossSessionFilter(project, TimeRange.parse(since, until, tz=zone), limit, zone)

    @property
    def has_filters(self) -> bool:
        """Whether it leaves anything out; a limit alone does not count."""
        return self.project is not None or bool(self.time)

    def archive_arguments(self) -> dict[str, Any]:
        """The filter as arguments of `Archive.calls` and `Archive.files`."""
        return {"project": self.project, "since": self.time.since, "until": self.time.until, "limit": self.limit}

    def for_single_session(self) -> CrossSessionFilter:
        """The filter for one session.

        Raises:
            UsageError: it has a project.
        """
        if self.project is not None:
            raise click.UsageError("--project filters all sessions; omit SESSION to use it.")
        return self

    def with_default_limit(self, output: str) -> CrossSessionFilter:
        """The filter for all sessions: tables are limited by default, output for programs is not."""
        return replace(self, limit=self.limit or (DEFAULT_LIMIT if output == "table" else None))


def explain_project(archive: Archive, project: str | None) -> str | None:
    """A message with the projects that exist, if a part of a name matches none of them."""
    if project is None or archive.sessions(SessionFilter(project=project)).sessions:
        return None
    projects = dict.fromkeys(session.project for session in archive.sessions(SessionFilter()).sessions)
    return f"No project matches {project!r}. Projects: {join_some(projects)}."


_MAX_NAMES = 12
# Blocks that people mistake for kinds of entries, and the kinds that contain them.
_ENTRY_KINDS_OF_BLOCK = {
    "text": ("assistant", "user"),
    "thinking": ("assistant",),
    "tool_use": ("assistant",),
    "tool_result": ("user",),
    "image": ("user",),
}


class ExplainedEntryFilter:
    """Filters entries, and remembers the kinds, agents and times of all of them to explain an empty result."""

    def __init__(
        self,
        kinds: tuple[str, ...],
        agent: str | None,
        time: TimeRange,
        zone: tzinfo = UTC,
        *,
        problems: bool = False,
    ) -> None:
        self._filter = EntryFilter(kinds=kinds, agent=agent, time=time)
        self._kinds = kinds
        self._agent = agent.removeprefix("agent-") if agent is not None else None
        self._time = time
        self._zone = zone
        self._problems = problems
        self._kind_counts: Counter[str] = Counter()
        self._agents: dict[str, None] = {}
        self._first: datetime | None = None
        self._last: datetime | None = None

    def apply(self, entries: Iterable[AttributedEntry]) -> Iterator[AttributedEntry]:
        """The entries that match."""
        for attributed in entries:
            self._kind_counts[attributed.entry.kind] += 1
            if attributed.agent is not None:
                self._agents[attributed.agent] = None
            if self._time:
                self._note_time(attributed.entry.timestamp)
            if self._filter.matches(attributed) and (not self._problems or attributed.problems):
                yield attributed

    def _note_time(self, when: datetime | None) -> None:
        if when is not None:
            self._first = min(self._first or when, when)
            self._last = max(self._last or when, when)

    def explain_nothing(self) -> str:
        """Why no entry matched, and which filters would match."""
        if not self._kind_counts:
            return "There are no entries here yet."
        missing = [kind for kind in self._kinds if kind not in self._kind_counts]
        if missing and len(missing) == len(self._kinds):
            return self._explain_kind(missing[0])
        agent = self._explain_agent()
        if agent:
            return agent
        if self._time and not self._overlaps_time():
            return f"No entries in that time. {self._describe_times()}"
        options = {
            "kind": bool(self._kinds),
            "agent": self._agent,
            "since": self._time.since,
            "until": self._time.until,
            "problems": self._problems,
        }
        if [name for name, value in options.items() if value] == ["problems"]:
            return "No entry has a problem."
        return no_match_message("entry", sum(self._kind_counts.values()), options, plural="entries")

    def _explain_kind(self, kind: str) -> str:
        if "," in kind:
            repeated = " ".join(f"--kind {part.strip()}" for part in kind.split(",") if part.strip())
            return f"Unknown kind {kind!r}. Repeat the option instead: {repeated}."
        if kind in _ENTRY_KINDS_OF_BLOCK:
            containers = _ENTRY_KINDS_OF_BLOCK[kind]
            options = " or ".join(f"--kind {container}" for container in containers)
            return f"{kind!r} is a block inside {' and '.join(containers)} entries, not a kind of entry. Try {options}."
        from threadline.model.entries import KINDS  # noqa: PLC0415 - `calls` and `files` do without the entry model

        match = did_you_mean(kind, [*self._kind_counts, *KINDS]) if kind not in KINDS else None
        suggestion = f" Did you mean {match}?" if match is not None else ""
        kinds = _join_names([name for name, _count in self._kind_counts.most_common()])
        return f"No entries of kind {kind!r}.{suggestion} Kinds here: {kinds}."

    def _explain_agent(self) -> str | None:
        if self._agent in {None, "main"}:
            return None
        if self._agent == "sub":
            return None if self._agents else "No subagent wrote here; everything is from the main thread."
        if any(names_agent(self._agent or "", agent) for agent in self._agents):
            return None
        agents = f"Agents here: {_join_names(list(self._agents))}." if self._agents else "There are no subagents here."
        return f"No entries by agent {self._agent!r}. {agents} Use `main` for the main thread, `sub` for all subagents."

    def _overlaps_time(self) -> bool:
        if self._first is None or self._last is None:
            return False
        since, until = self._time.since, self._time.until
        return (since is None or self._last >= since) and (until is None or self._first <= until)

    def _describe_times(self) -> str:
        if self._first is None or self._last is None:
            return "No entry here has a timestamp."
        first, last = format_time(self._first, self._zone), format_time(self._last, self._zone)
        return f"The entries here are from {first} to {last} ({zone_name(self._zone)})."


def _join_names(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
