"""Labels: what groups of charges are called, and the columns of the index that tell it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from threadline.account.adding import Group
from threadline.account.keys import MAIN, NO_CALL, NONE, TIMES
from threadline.index.priced import Priced
from threadline.index.texts import as_path
from threadline.model.kept import home_name, machine_name

_AGENT = "CASE WHEN o.agent IS NULL THEN 0 WHEN o.agent = '' THEN 1 ELSE 2 END"
_MIXED = "CASE WHEN c.share_id IN ({0})"
COLUMNS = {
    "session": ("o.session",),
    "project": ("t.project_id",),
    "model": (),
    "agent": ("o.agent",),
    "agent-type": (_AGENT, "o.agent_type", "o.transcript_id"),
    "skill": ("o.skill",),
    "branch": ("o.git_branch",),
    "version": ("o.version",),
    "home": ("t.home_id",),
    "machine": ("t.home_id",),
    "part": (_AGENT, "o.is_side"),
    "tool": ("c.share_id", f"{_MIXED} THEN c.message_id END", f"{_MIXED} THEN c.number END"),
}
"""The columns that each key needs: of an origin `o`, its transcript `t`, or a charge `c`."""
_Row = tuple[Any, ...]


class Labels:
    """What groups are called, from what the tables have."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        names: Group,
        rates: Mapping[int, Priced],
        types: Mapping[int, str | None],
    ) -> None:
        self._names = names
        self._rates = rates
        self._types = types
        self._paths: dict[str, dict[int | None, str]] = {}
        if "project" in names:
            self._paths["project"] = _paths(connection, "SELECT project_id, COALESCE(path, folder) FROM projects")
        # Which machine a home was on is not in the index: it is told by who keeps, and asked at the time.
        for name, told in (("home", home_name), ("machine", machine_name)):
            if name in names:
                paths = _paths(connection, "SELECT home_id, path FROM homes")
                self._paths[name] = {number: told(path) for number, path in paths.items()}
        self.shares = _shares(connection) if "tool" in names else {}
        self._tool = names.index("tool") if self.shares else 0
        mixed = ", ".join(str(number) for number, tools in self.shares.items() if len(tools) > 1)
        self.columns: list[str] = []
        self._readers: list[tuple[str, int]] = []
        for name in names:
            wanted = COLUMNS.get(name, ())
            if name == "agent-type" and not types:
                wanted = wanted[:2]
            self._readers.append((name, len(self.columns)))
            self.columns += (column.format(mixed) for column in wanted)

    def group(self, time: Mapping[str, str], told: _Row, rate: int) -> Group:
        """The values of all keys."""
        return tuple([self._value(name, at, time, told, rate) for name, at in self._readers])

    def _value(self, name: str, at: int, time: Mapping[str, str], told: _Row, rate: int) -> str:
        if name in TIMES:
            return time[name]
        if name in self._paths:
            return self._paths[name].get(told[at], NONE)
        if name in {"model", "tool"}:
            return (self._rates[rate][0] or NONE) if name == "model" else ""
        if name == "part":
            return "side agents" if told[at + 1] else "agents" if told[at] > 1 else MAIN
        if name == "agent-type":
            return self._type(told[at : at + 3])
        return told[at] or (MAIN if name == "agent" else NONE)

    def shared(self, told: _Row, counts: _Row) -> Iterator[tuple[str, Sequence[int]]]:
        """The shares of what was spent, as `account.adding` shares charges: those of several tools come one by one."""
        tools = self.shares[told[self._readers[self._tool][1]]]
        if len(tools) == 1:
            yield tools[0], counts
            return
        for number, tool in enumerate(tools):
            yield tool, [count // len(tools) + (number < count % len(tools)) for count in counts]

    def with_tool(self, group: Group, tool: str) -> Group:
        """The values of all keys, with that of the tool."""
        return *group[: self._tool], tool, *group[self._tool + 1 :]

    def _type(self, told: Sequence[Any]) -> str:
        agent, said = told[0], told[1]
        if agent and said is None and self._types:
            said = self._types.get(told[2])
        return said or (NONE if agent > 1 else MAIN)


def _shares(connection: sqlite3.Connection) -> dict[int | None, tuple[str, ...]]:
    """The tools that share charges, by number; where they are all the same, that one."""
    found: dict[int | None, tuple[str, ...]] = {None: (NO_CALL,)}
    for number, told in connection.execute("SELECT share_id, tools FROM shares"):
        tools = tuple(json.loads(told))
        found[number] = tools[:1] if len(set(tools)) == 1 else tools
    return found


def _paths(connection: sqlite3.Connection, asked: str) -> dict[int | None, str]:
    return {number: as_path(path) or NONE for number, path in connection.execute(asked)}
