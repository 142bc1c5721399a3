"""A session at a glance: its turns, branches, compactions and agents as a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from threadline.model.act import Turn
from threadline.model.agent import Agent
from threadline.model.call import Call, Outcome
from threadline.model.session import Session
from threadline.model.thread import Branch, Compaction
from threadline.render.agents import NOT_KEPT, Places, duration, name, not_kept
from threadline.render.figures import agents, count, moment, span_of_time
from threadline.render.layout import cut, width_of
from threadline.render.style import ASKS, Role, Span, Spans, Style, act_sign
from threadline.render.terminal_text import columns, one_line

# What did not end well, as it is counted: one, and several.
_FAILED: dict[Outcome, tuple[str, str]] = {
    Outcome.ERROR: ("error", "errors"),
    Outcome.DENIED: ("refused", "refused"),
    Outcome.INTERRUPTED: ("interrupted", "interrupted"),
    Outcome.LOST: ("lost", "lost"),
}
_MARKS: dict[str, tuple[str, Role]] = {
    "turn": (ASKS, Role.PROMPT),
    "agent": ("↳", Role.AGENT),
    "branch": ("⎇", Role.NOTICE),
    "compaction": ("═", Role.NOTICE),
}
# Agents within agents: below this many they are counted.
_DEEPEST = 20


class Node(Struct, frozen=True):
    """One line of the tree: what it is, what it says, its figures, and what hangs below it."""

    kind: str
    text: str
    figures: dict[str, Any] = {}
    note: str = ""
    children: tuple[Node, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        told: dict[str, Any] = {"kind": self.kind, "text": self.text, **self.figures}
        return {**told, "children": [child.as_json() for child in self.children]}


def tree(session: Session, *, everything: bool = False) -> Node:
    """The tree of a session; with `everything`, of its side agents as well."""
    return _Builder(session, everything=everything).session()


def draw(root: Node, width: int, *, colour: bool = False) -> Iterator[str]:
    """The lines of a tree."""
    style = Style(colour=colour)
    yield style.line(cut((Span(root.text, Role.TITLE),), width))
    yield style.line(cut((Span(root.note, Role.FAINT),), width))
    for line in _below(root, "", width):
        yield style.line(line)


def _below(node: Node, indent: str, width: int) -> Iterator[Spans]:
    for at, child in enumerate(node.children):
        last = at == len(node.children) - 1
        sign, role = _mark(child)
        before = (Span(indent + ("└─ " if last else "├─ "), Role.FAINT), Span(sign + " ", role))
        note = f"  {child.note}" if child.note else ""
        room = max(12, width - width_of(before) - len(note))
        text = one_line(child.text, room)
        # Figures stand at the right, one under the other.
        yield cut((*before, Span(text), Span(" " * (room - columns(text))), Span(note, Role.FAINT)), width)
        yield from _below(child, indent + ("   " if last else "│  "), width)


def _mark(node: Node) -> tuple[str, Role]:
    """A turn has the sign of the act that began it, as in the text."""
    sign, role = _MARKS.get(node.kind, ("·", Role.FAINT))
    act = node.figures.get("act") if node.kind == "turn" else None
    return (act_sign(act), role) if isinstance(act, str) else (sign, role)


class _Builder:
    """Puts the parts of a session where they belong."""

    def __init__(self, session: Session, *, everything: bool) -> None:
        self._session = session
        self._everything = everything
        self._places = Places(session)
        self._not_kept = not_kept(session)
        self._calls: dict[int | None, list[Call]] = {}
        for call in session.main.calls:
            self._calls.setdefault(call.turn, []).append(call)
        turn_of = {id(entry): turn.number for turn in session.main.turns for entry in turn.entries}
        self._compactions: dict[int, list[Compaction]] = {}
        for one in session.main.compactions:
            if (number := turn_of.get(id(one.boundary or one.summary))) is not None:
                self._compactions.setdefault(number, []).append(one)

    def session(self) -> Node:
        one = self._session
        shown = [agent for agent in one.agents if self._shown(agent)]
        figures = {
            "session": one.id,
            "turns": sum(turn.act is not None for turn in one.turns),
            "calls": len(one.calls),
            "agents": len(shown),
            "agents_started": len(shown) + len(self._not_kept),
            "branches": len(one.branches),
            "compactions": len(one.compactions),
            "entries": len(one),
        }
        plural = {"branches": "branch", "entries": "entry"}
        numbers = {key: value for key, value in figures.items() if isinstance(value, int)}
        told = {key: count(value, plural.get(key, key[:-1]), key) for key, value in numbers.items() if value}
        told["agents"] = agents(len(shown), len(shown) + len(self._not_kept))
        told.pop("agents_started", None)
        note = " · ".join(told[key] for key in numbers if told.get(key))
        return Node("session", one.title.text or "(no title)", figures, f"{one.id or ''} · {note}", self._main())

    def _main(self) -> tuple[Node, ...]:
        main = self._session.main
        branch_of = {
            entry.uuid: number
            for number, branch in enumerate(main.branches, 1)
            for entry in branch.entries
            if entry.uuid
        }
        left: dict[int, list[Turn]] = {}
        stays: list[Turn] = []
        for turn in main.turns:
            number = branch_of.get(turn.act.entry.uuid) if turn.act is not None and turn.act.entry.uuid else None
            stays.append(turn) if number is None else left.setdefault(number, []).append(turn)
        # A branch stands under the turn it was left in, which need not be the turn it was made in.
        turn_of = {entry.uuid: turn.number for turn in stays for entry in turn.entries if entry.uuid is not None}
        forks: dict[int, list[Node]] = {}
        top: list[tuple[int, Node]] = []
        for number, branch in enumerate(main.branches, 1):
            node = self._branch(number, branch, left.get(number, []))
            turn_number = turn_of.get(branch.fork) if branch.fork is not None else None
            if turn_number is not None:
                forks.setdefault(turn_number, []).append(node)
            else:
                top.append((branch.first.line.number, node))
        for turn in stays:
            node = self._turn(turn, forks.get(turn.number, []))
            # Before the first prompt there is as a rule nothing but bookkeeping.
            if turn.act is not None or node.children or node.figures["calls"]:
                top.append((turn.entries[0].line.number, node))
        rest = (self._agent(one, 1) for one in self._places.apart if self._shown(one))
        return (*(node for _, node in sorted(top, key=lambda pair: pair[0])), *rest)

    def _turn(self, turn: Turn, branches: list[Node]) -> Node:
        calls = self._calls.get(turn.number, [])
        compactions = self._compactions.get(turn.number, [])
        took = turn.duration or None  # of a single moment there is no duration
        text = turn.act.text if turn.act is not None else "(before the first prompt)"
        figures = {
            "number": turn.number,
            "act": str(turn.act.kind) if turn.act is not None else None,
            "started": turn.started,
            "place": str(turn.entries[0].place),
            "seconds": took.total_seconds() if took is not None else None,
            **_counts(calls),
        }
        note = _note(moment(turn.started), calls, span_of_time(took))
        children = (*self._agents(calls, 1), *map(_compaction, compactions), *branches)
        return Node("turn", f"{turn.number}  {text}" if turn.act is not None else text, figures, note, children)

    def _branch(self, number: int, branch: Branch, turns: list[Turn]) -> Node:
        figures = {"number": number, "entries": len(branch.entries), "place": str(branch.first.place)}
        text = f"branch {number}, {count(len(branch.entries), 'entry', 'entries')} left"
        return Node("branch", text, figures, "", tuple(self._turn(turn, []) for turn in turns))

    def _agents(self, calls: list[Call], depth: int) -> Iterator[Node]:
        for call in calls:
            yield from (self._agent(agent, depth) for agent in self._places.under(call) if self._shown(agent))
            if call.id in self._not_kept:
                figures = {"kept": False, "link": {"call": call.id}, "place": str(call.place)}
                yield Node("agent", self._not_kept[call.id], figures, NOT_KEPT)

    def _deeper(self, agent: Agent) -> Iterator[Node]:
        if more := sum(map(self._shown, self._places.below(agent))):
            yield Node("deeper", f"… {count(more, 'agent')} deeper", {"agents": more})

    def _agent(self, agent: Agent, depth: int) -> Node:
        calls = list(agent.calls)
        took = duration(agent)
        figures = {
            "agent": agent.id,
            "kept": True,
            "type": agent.type,
            "side": agent.side,
            "status": str(agent.status),
            "link": {"call": agent.link.call, "step": agent.link.step, "why": agent.link.why},
            "place": str(agent.entries[0].place) if agent.entries else None,
            "seconds": took.total_seconds() if took is not None else None,
            **_counts(calls),
        }
        deeper = self._agents(calls, depth + 1) if depth < _DEEPEST else self._deeper(agent)
        children = (*deeper, *map(_compaction, agent.compactions))
        return Node("agent", name(agent), figures, _note("", calls, span_of_time(took), str(agent.status)), children)

    def _shown(self, agent: Agent) -> bool:
        return self._everything or agent.side is None


def _counts(calls: list[Call]) -> dict[str, Any]:
    ended = Counter(call.outcome for call in calls)
    outcomes = {str(outcome): ended[outcome] for outcome in _FAILED if ended[outcome]}
    return {"calls": len(calls), "failed": sum(outcomes.values()), "outcomes": outcomes}


def _note(when: str, calls: list[Call], took: str, status: str = "") -> str:
    some = count(len(calls), "call") if calls else ""
    outcomes: dict[str, int] = _counts(calls)["outcomes"]
    failed = ", ".join(count(number, *_FAILED[Outcome(outcome)]) for outcome, number in outcomes.items())
    return " · ".join(part for part in (some, failed, took, when, status) if part)


def _compaction(one: Compaction) -> Node:
    sizes = [f"{size:,}" for size in (one.tokens_before, one.tokens_after) if size is not None]
    figures = {
        "how": str(one.kind),
        "trigger": one.trigger,
        "tokens_before": one.tokens_before,
        "tokens_after": one.tokens_after,
        "place": str(one.place),
    }
    text = f"compaction ({one.trigger or one.kind})"
    return Node("compaction", text, figures, f"{' → '.join(sizes)} tokens" if sizes else "")
