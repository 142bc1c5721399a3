"""Kept: a session in memory, with all that its pages need to know of it, each made once and when it is asked for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.errors import NotFound
from threadline.load import Session, continuations_of
from threadline.model.agent import Agent
from threadline.model.call import Call
from threadline.model.entries import Entry
from threadline.model.session import Continuation
from threadline.model.zone import zone_name
from threadline.render.html.anchor import anchor, elsewhere, named, parted
from threadline.render.html.drawing import Drawing
from threadline.render.html.scene import Scene
from threadline.thread.context.limits import Limits
from threadline.thread.context.windows import requests
from threadline.thread.notifications import Notification, notifications
from threadline.web.facts import Facts, facts
from threadline.web.linked import Linked, entry_of
from threadline.web.spending import Spent, spent
from threadline.web.where import Where

if TYPE_CHECKING:
    from threadline.archive import Standing
    from threadline.model.context import Limit, Window
    from threadline.render.html.figures import Figures
    from threadline.render.html.view import View

_DRAWINGS = 6


class Drawn(Struct, frozen=True):
    """An agent drawn in a view, and where in it everything stands."""

    drawing: Drawing
    where: Where


class Kept:
    """A session that was read: `id` is what the archive calls it, `version` changes when its transcripts do.

    `size` is that of its transcripts.
    """

    def __init__(self, id_: str, session: Session, version: str, size: int) -> None:
        self.id = id_
        self.session = session
        self.version = version
        self.size = size
        self._lock = threading.RLock()
        self._drawn: OrderedDict[tuple[str | None, View, str], Drawn] = OrderedDict()
        self._windows: dict[str | None, tuple[Window, ...]] = {}
        self._limits: dict[str | None, Limit | None] = {}
        self._lines: dict[str | None, dict[int, Entry]] = {}
        self._spent: tuple[str, Spent] | None = None

    @property
    def path(self) -> Path:
        """Its main transcript."""
        return self.session.path or Path()

    @cached_property
    def facts(self) -> Facts:
        """What its entries have in common."""
        return facts(self.session)

    @cached_property
    def news(self) -> tuple[Notification, ...]:
        """What became of its background tasks."""
        return tuple(notifications(self.session))

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The agents by the names that addresses have for them."""
        return {named(agent.id): agent for agent in self.session.agents if agent.id is not None}

    @cached_property
    def _other_files(self) -> dict[str | None, str]:
        """Files besides its own that the main agent has rows from, by what stands for them in anchors."""
        entries = self.session.main.entries
        own = entries[0].line.transcript if entries else ""
        return {elsewhere(path): path for path in {one.line.transcript for one in entries} if path != own}

    @cached_property
    def calls(self) -> dict[str, Call]:
        """The calls by their ids; of several with the same, the first."""
        return {str(call.id): call for call in reversed(self.session.calls)}

    @cached_property
    def continuations(self) -> tuple[Continuation, ...]:
        """What it continues, and what continues it."""
        return continuations_of(self.session)

    def agent(self, name: str | None) -> Agent:
        """The agent of that name; the main one for None.

        Raises:
            NotFound: there is none.
        """
        if name is None:
            return self.session.main
        found = self.agents.get(name)
        if found is None:
            raise NotFound("This session has no agent of that name.")
        return found

    def entry(self, anchor_: str) -> tuple[Entry, Agent]:
        """The entry that an anchor names, and whose it is; an item's anchor will do.

        Raises:
            NotFound: there is none.
        """
        parts = parted(entry_of(anchor_))
        if parts is None:
            raise NotFound("That is no anchor; write L120 for line 120, or AGENT.L7 for an agent's.")
        name, line = parts
        agent = self.session.main if name in self._other_files else self.agent(name)
        with self._lock:
            if name not in self._lines:
                own = self._other_files.get(name, agent.entries[0].line.transcript if agent.entries else "")
                self._lines[name] = {one.line.number: one for one in agent.entries if one.line.transcript == own}
        found = self._lines[name].get(line)
        if found is not None:
            return found, agent
        inside = self._inside.get(line) if name is None else None
        if inside is None:
            raise NotFound(f"There is no line {line:,} in that transcript.")
        return inside

    @cached_property
    def _inside(self) -> dict[int, tuple[Entry, Agent]]:
        """Lines of the main transcript that are those of agents inside it."""
        main = self.session.main.entries
        own = main[0].line.transcript if main else str(self.session.path or "")
        return {
            one.line.number: (one, agent)
            for agent in self.session.agents
            for one in agent.entries
            if one.line.transcript == own
        }

    def drawn(self, name: str | None, view: View, links: Linked, archive: Standing, zone: tzinfo) -> Drawn:
        """An agent as a view wants it, with the times of a zone.

        Raises:
            NotFound: there is no such agent, or no such branch.
        """
        agent = self.agent(name)
        if view.branch is not None and not 1 <= view.branch <= len(agent.branches):
            raise NotFound(f"There is no branch {view.branch}; this conversation has {len(agent.branches)}.")
        key = (name, view, zone_name(zone))
        with self._lock:
            found = self._drawn.get(key)
            if found is None:
                scene = Scene(view, links, cwd=self.facts.project or "", zone=zone)
                figures = self.figures(name, archive)
                drawing = Drawing(self.session, agent, scene, figures=figures, news=self.news)
                found = self._drawn[key] = Drawn(drawing, Where(drawing))
                while len(self._drawn) > _DRAWINGS:
                    self._drawn.popitem(last=False)
            self._drawn.move_to_end(key)
            return found

    def windows(self, name: str | None) -> tuple[Window, ...]:
        """The window that each request of an agent found."""
        with self._lock:
            if name not in self._windows:
                agent = self.agent(name)
                self._windows[name] = tuple(one.window for one in requests(agent.entries, agent.turns))
            return self._windows[name]

    def limit(self, name: str | None) -> Limit | None:
        """How large the window of an agent may grow; None where no request tells how large it was."""
        with self._lock:
            if name not in self._limits:
                agent, windows = self.agent(name), self.windows(name)
                last = next((one for one in reversed(windows) if one.told), None)
                self._limits[name] = Limits(agent, [agent.entries], windows).of(last.model) if last else None
            return self._limits[name]

    def spent(self, archive: Standing) -> Spent:
        """What it spent, as far as the index knows by now: it may be a moment older than the session."""
        known = archive.generation if archive.is_indexed else ""
        with self._lock:
            if self._spent is None or self._spent[0] != known:
                self._spent = (known, spent(self.session, archive))
            return self._spent[1]

    def figures(self, name: str | None, archive: Standing) -> Figures:
        """Each message in numbers."""
        return self.spent(archive).figures(self.windows(name))


def turn_anchor(agent: Agent, number: int) -> str | None:
    """Where a turn begins."""
    turn = next((one for one in agent.turns if one.number == number), None)
    if turn is None or not turn.entries:
        return None
    return anchor(turn.act.entry if turn.act is not None else turn.entries[0], agent.id)
