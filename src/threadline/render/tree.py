"""Build and draw the tree of a session: turns, branches, compactions and agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import Any

from msgspec import Struct

from threadline.model.calls import Call, Outcome
from threadline.model.ledger import SessionCosts, Sum
from threadline.model.session import Agent, Branch, Compaction, Session, Turn
from threadline.model.text import (
    count,
    count_agents,
    format_amount,
    format_duration,
    format_time,
    format_token_change,
)
from threadline.model.times import zone_name
from threadline.render.session_facts import (
    NO_TRANSCRIPT,
    AgentPlacement,
    agent_duration,
    agent_title,
    agents_without_transcript,
    continuation_record,
    describe_continuation,
)
from threadline.render.text import (
    PROMPT_SIGN,
    Role,
    Span,
    Spans,
    Style,
    act_sign,
    cut_line,
    display_width,
    fit_facts,
    line_width,
    one_line,
    wrap,
)

# Singular and plural of outcomes that count as failures.
_FAILURE_WORDS: dict[Outcome, tuple[str, str]] = {
    Outcome.ERROR: ("error", "errors"),
    Outcome.DENIED: ("refused", "refused"),
    Outcome.INTERRUPTED: ("interrupted", "interrupted"),
    Outcome.LOST: ("lost", "lost"),
}
_KIND_SIGNS: dict[str, tuple[str, Role]] = {
    "turn": (PROMPT_SIGN, Role.PROMPT),
    "agent": ("↳", Role.AGENT),
    "branch": ("⎇", Role.NOTICE),
    "compaction": ("═", Role.NOTICE),
}
# Agents nested deeper than this are only counted.
_MAX_DEPTH = 20
# Facts are dropped from notes until a text has this much room.
_MIN_TEXT = 24


class TreeNode(Struct, frozen=True):
    """One line of the tree: its kind, text, figures, note and children.

    A note is a text, or facts with ranks: `fit_facts` drops those with the highest rank if there is too little room.
    """

    kind: str
    text: str
    figures: dict[str, Any] = {}
    note: str | tuple[tuple[str, int], ...] = ""
    children: tuple[TreeNode, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The node and its children as JSON values."""
        fields: dict[str, Any] = {"kind": self.kind, "text": self.text, **self.figures}
        return {**fields, "children": [child.as_json() for child in self.children]}


def build_tree(
    session: Session, *, everything: bool = False, zone: tzinfo = UTC, costs: SessionCosts | None = None
) -> TreeNode:
    """Build the tree of a session. `everything` includes side agents. Notes show times in `zone`, and `costs`."""
    return _TreeBuilder(session, zone, costs, everything=everything).session()


def draw_tree(root: TreeNode, width: int, *, colour: bool = False) -> Iterator[str]:
    """The lines of a tree."""
    style = Style(colour=colour)
    yield style.line(cut_line((Span(root.text, Role.TITLE),), width))
    for note in _note_text(root, width).split("\n"):
        yield from (style.line(line) for line in wrap((Span(note, Role.FAINT),), width))
    for line in _child_lines(root, "", width):
        yield style.line(line)


def _child_lines(node: TreeNode, indent: str, width: int) -> Iterator[Spans]:
    for index, child in enumerate(node.children):
        last = index == len(node.children) - 1
        sign, role = _node_sign(child)
        before = (Span(indent + ("└─ " if last else "├─ "), Role.FAINT), Span(sign + " ", role))
        facts = _note_text(child, width - line_width(before) - _MIN_TEXT - 2)
        note = f"  {facts}" if facts else ""
        room = max(12, width - line_width(before) - len(note))
        text = one_line(child.text, room)
        # Notes are aligned at the right.
        yield cut_line((*before, Span(text), Span(" " * (room - display_width(text))), Span(note, Role.FAINT)), width)
        yield from _child_lines(child, indent + ("   " if last else "│  "), width)


def _note_text(node: TreeNode, room: int) -> str:
    return node.note if isinstance(node.note, str) else fit_facts(node.note, room)


def _node_sign(node: TreeNode) -> tuple[str, Role]:
    """The sign of a node. A turn has the sign of the act that started it, as in the text output."""
    sign, role = _KIND_SIGNS.get(node.kind, ("·", Role.FAINT))
    act = node.figures.get("act") if node.kind == "turn" else None
    return (act_sign(act), role) if isinstance(act, str) else (sign, role)


class _TreeBuilder:
    """Builds the nodes of a session."""

    def __init__(self, session: Session, zone: tzinfo, costs: SessionCosts | None, *, everything: bool) -> None:
        self._session = session
        self._costs = costs
        self._zone = zone
        self._everything = everything
        self._placement = AgentPlacement(session)
        self._missing_agents = agents_without_transcript(session)
        self._calls: dict[int | None, list[Call]] = {}
        for call in session.main.calls:
            self._calls.setdefault(call.turn, []).append(call)
        turn_of = {id(entry): turn.number for turn in session.main.turns for entry in turn.entries}
        self._compactions: dict[int, list[Compaction]] = {}
        for compaction in session.main.compactions:
            if (number := turn_of.get(id(compaction.boundary or compaction.summary))) is not None:
                self._compactions.setdefault(number, []).append(compaction)

    def session(self) -> TreeNode:
        session = self._session
        shown = [agent for agent in session.agents if self._is_shown(agent)]
        figures = {
            "session": session.id,
            "turns": sum(turn.act is not None for turn in session.turns),
            "calls": len(session.calls),
            "agents": len(shown),
            "agents_started": len(shown) + len(self._missing_agents),
            "branches": len(session.branches),
            "compactions": len(session.compactions),
            "entries": len(session),
            **self._cost(self._costs.total if self._costs is not None else None),
            "continuations": [continuation_record(link) for link in session.continuations],
        }
        plural = {"branches": "branch", "entries": "entry"}
        numbers = {key: value for key, value in figures.items() if isinstance(value, int) and key != "tokens"}
        labels = {key: count(value, plural.get(key, key[:-1]), key) for key, value in numbers.items() if value}
        labels["agents"] = count_agents(len(shown), len(shown) + len(self._missing_agents))
        labels.pop("agents_started", None)
        labels["amount"] = self._cost_label(self._costs.total if self._costs is not None else None)
        labels["times"] = f"times {zone_name(self._zone)}" if session.turns else ""
        note = " · ".join(labels[key] for key in (*numbers, "amount", "times") if labels.get(key))
        links = "".join(f"\n{describe_continuation(link)}" for link in session.continuations)
        return TreeNode(
            "session", session.title.text or "(no title)", figures, f"{session.id or ''} · {note}{links}", self._main()
        )

    def _main(self) -> tuple[TreeNode, ...]:
        main = self._session.main
        branch_of = {
            entry.uuid: number
            for number, branch in enumerate(main.branches, 1)
            for entry in branch.entries
            if entry.uuid
        }
        abandoned: dict[int, list[Turn]] = {}
        kept_turns: list[Turn] = []
        for turn in main.turns:
            number = branch_of.get(turn.act.entry.uuid) if turn.act is not None and turn.act.entry.uuid else None
            kept_turns.append(turn) if number is None else abandoned.setdefault(number, []).append(turn)
        # A branch is placed under the turn in which it was abandoned, which may differ from the turn that created it.
        turn_of = {entry.uuid: turn.number for turn in kept_turns for entry in turn.entries if entry.uuid is not None}
        forks: dict[int, list[TreeNode]] = {}
        top: list[tuple[int, TreeNode]] = []
        for number, branch in enumerate(main.branches, 1):
            node = self._branch(number, branch, abandoned.get(number, []))
            turn_number = turn_of.get(branch.fork) if branch.fork is not None else None
            if turn_number is not None:
                forks.setdefault(turn_number, []).append(node)
            else:
                top.append((branch.first.line.number, node))
        for turn in kept_turns:
            node = self._turn(turn, forks.get(turn.number, []))
            # Before the first prompt there is usually only bookkeeping.
            if turn.act is not None or node.children or node.figures["calls"]:
                top.append((turn.entries[0].line.number, node))
        rest = (self._agent(agent, 1) for agent in self._placement.unlinked if self._is_shown(agent))
        return (*(node for _, node in sorted(top, key=lambda pair: pair[0])), *rest)

    def _turn(self, turn: Turn, branches: list[TreeNode]) -> TreeNode:
        calls = self._calls.get(turn.number, [])
        compactions = self._compactions.get(turn.number, [])
        took = turn.duration or None  # a single point in time has no duration
        text = turn.act.text if turn.act is not None else "(before the first prompt)"
        figures = {
            "number": turn.number,
            "act": str(turn.act.kind) if turn.act is not None else None,
            "started": turn.started,
            "place": str(turn.entries[0].place),
            "seconds": took.total_seconds() if took is not None else None,
            **_call_counts(calls),
            **self._cost(self._costs.turn(turn.number) if self._costs is not None else None),
        }
        cost = self._cost_label(self._costs.turn(turn.number) if self._costs is not None else None)
        note = _node_note(format_time(turn.started, self._zone), calls, format_duration(took), cost=cost)
        children = (*self._agents(calls, 1), *map(_compaction_node, compactions), *branches)
        return TreeNode("turn", f"{turn.number}  {text}" if turn.act is not None else text, figures, note, children)

    def _branch(self, number: int, branch: Branch, turns: list[Turn]) -> TreeNode:
        figures = {"number": number, "entries": len(branch.entries), "place": str(branch.first.place)}
        text = f"branch {number}, {count(len(branch.entries), 'entry', 'entries')}"
        return TreeNode("branch", text, figures, "", tuple(self._turn(turn, []) for turn in turns))

    def _agents(self, calls: list[Call], depth: int) -> Iterator[TreeNode]:
        for call in calls:
            yield from (self._agent(agent, depth) for agent in self._placement.under(call) if self._is_shown(agent))
            if call.id in self._missing_agents:
                figures = {"has_transcript": False, "link": {"call": call.id}, "place": str(call.place)}
                yield TreeNode("agent", self._missing_agents[call.id], figures, NO_TRANSCRIPT)

    def _deeper(self, agent: Agent) -> Iterator[TreeNode]:
        if more := sum(map(self._is_shown, self._placement.below(agent))):
            yield TreeNode("deeper", f"… {count(more, 'nested agent')} not shown", {"agents": more})

    def _agent(self, agent: Agent, depth: int) -> TreeNode:
        calls = list(agent.calls)
        took = agent_duration(agent)
        figures = {
            "agent": agent.id,
            "has_transcript": True,
            "type": agent.type,
            "side": agent.side,
            "status": str(agent.status),
            "link": {"call": agent.link.call, "step": agent.link.step, "why": agent.link.why},
            "place": str(agent.entries[0].place) if agent.entries else None,
            "seconds": took.total_seconds() if took is not None else None,
            **_call_counts(calls),
            **self._cost(self._costs.agent(agent.id) if self._costs is not None else None),
        }
        cost = self._cost_label(self._costs.agent(agent.id) if self._costs is not None else None)
        deeper = self._agents(calls, depth + 1) if depth < _MAX_DEPTH else self._deeper(agent)
        children = (*deeper, *map(_compaction_node, agent.compactions))
        return TreeNode(
            "agent",
            agent_title(agent),
            figures,
            _node_note("", calls, format_duration(took), str(agent.status), cost),
            children,
        )

    def _is_shown(self, agent: Agent) -> bool:
        return self._everything or agent.side is None

    def _cost(self, total: Sum | None) -> dict[str, Any]:
        return {"tokens": total.tokens, "amount": total.amount} if total is not None else {}

    def _cost_label(self, total: Sum | None) -> str:
        return format_amount(total.amount) if total is not None and total.charges else ""


def _call_counts(calls: list[Call]) -> dict[str, Any]:
    counts = Counter(call.outcome for call in calls)
    outcomes = {str(outcome): counts[outcome] for outcome in _FAILURE_WORDS if counts[outcome]}
    return {"calls": len(calls), "failed": sum(outcomes.values()), "outcomes": outcomes}


def _node_note(
    when: str, calls: list[Call], took: str, status: str = "", cost: str = ""
) -> tuple[tuple[str, int], ...]:
    """The facts of a turn or agent, with their ranks."""
    call_count = count(len(calls), "call") if calls else ""
    outcomes: dict[str, int] = _call_counts(calls)["outcomes"]
    failed = ", ".join(count(number, *_FAILURE_WORDS[Outcome(outcome)]) for outcome, number in outcomes.items())
    return (call_count, 3), (failed, 1), (cost, 0), (took, 2), (when, 0), (status, 0)


def _compaction_node(compaction: Compaction) -> TreeNode:
    figures = {
        "how": str(compaction.kind),
        "trigger": compaction.trigger,
        "tokens_before": compaction.tokens_before,
        "tokens_after": compaction.tokens_after,
        "place": str(compaction.place),
    }
    text = f"compaction ({compaction.trigger or compaction.kind})"
    return TreeNode("compaction", text, figures, format_token_change(compaction.tokens_before, compaction.tokens_after))
