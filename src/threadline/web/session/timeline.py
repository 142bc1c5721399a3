"""The timeline of a session: turns, agents, failures, commits, compactions and idle times."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline.insight import find_commits
from threadline.model.names import AGENT_TOOLS
from threadline.model.session import CompactionKind
from threadline.model.text import count, format_amount, format_duration
from threadline.render import agent_title, anchor_of, shorten, visible
from threadline.render.html import (
    EMPTY,
    IDLE,
    MARK_KINDS,
    Child,
    Column,
    Mark,
    Span,
    TableRow,
    draw_timeline,
    el,
    facts_row,
    find_gaps,
    folded_table,
    join,
    render_table,
    time_element,
)
from threadline.web.request import Fragment
from threadline.web.session.head import page_header
from threadline.web.session.usage import FAILED_OUTCOMES, turn_usage

if TYPE_CHECKING:
    from threadline.model.session import Agent, Turn
    from threadline.web.request import PageRequest
    from threadline.web.session_cache import CachedSession

_MAX_TURNS, _MAX_AGENTS, _MAX_MARKS, _MAX_ROWS = 240, 80, 160, 300
_MAX_LABEL, _MAX_PROMPT = 80, 110
_TURNS_ID = "turns"
_TURN_COLUMNS = (
    Column("When", "when"),
    Column("Turn", "title"),
    Column("Took", "number"),
    Column("Paused", "number minor", title="Pauses of more than 5 minutes in the turn or after it"),
    Column("Calls", "number minor"),
    Column("Failed", "number minor"),
    Column("Agents", "number minor"),
    Column("Commits", "number minor"),
    Column("Amount", "number"),
)


class Timeline(Struct, frozen=True):
    """What happened in a session, each list sorted by time. `gaps` are times in which nothing happened."""

    turns: list[Span]
    agents: list[Span]
    marks: list[Mark]
    gaps: list[tuple[datetime, datetime]]


def timeline_page(request: PageRequest) -> Fragment:
    """The timeline of a session: turns, agents, failures, commits, compactions and idle times."""
    session = request.session()
    timeline = build_timeline(session)
    title = "Timeline"
    commits = Counter(call.turn for call, commit in find_commits(session.session) if not commit.is_replaced)
    heading = page_header(session, title, facts_row(_facts(session, timeline, commits.total())))
    main = _render_timeline(request, session, timeline) if timeline.turns else el("p", "No turns with a known time.")
    below = _turn_table(request, session, timeline, commits)
    return Fragment(title, "insight", main, timeline, heading=heading, below=below)


def _facts(session: CachedSession, timeline: Timeline, commits: int) -> Iterator[str]:
    """How long the session took and worked, and what happened in it."""
    facts = session.facts
    if facts.wall_time is not None:
        idle = sum((end - start for start, end in timeline.gaps), timedelta())
        yield format_duration(facts.wall_time)
        if idle:
            yield f"{format_duration(facts.wall_time - idle)} excluding {count(len(timeline.gaps), 'pause')}"
    yield count(sum(turn.act is not None for turn in session.session.main.turns), "turn")
    if failed := sum(call.outcome in FAILED_OUTCOMES for call in session.session.calls):
        yield count(failed, "failed call")
    if commits:
        yield count(commits, "commit")
    compactions = sum(mark.kind == "compaction" for mark in timeline.marks)
    if compactions:
        yield count(compactions, "compaction")


def _turn_table(
    request: PageRequest, session: CachedSession, timeline: Timeline, commits: Mapping[int | None, int]
) -> Markup:
    """What happened in each turn, also in its agents. A pause belongs to the turn that it began in, or followed."""
    turns = [turn for turn in session.session.main.turns if turn.started is not None]
    calls = Counter(call.turn for call in session.session.calls)
    failed = Counter(call.turn for call in session.session.calls if call.outcome in FAILED_OUTCOMES)
    agents = Counter(call.turn for call in session.session.calls if call.tool in AGENT_TOOLS)
    usage = turn_usage(session.windows(None), session.spending(request.archive).costs)
    amounts = {row["turn"]: row["amount"] for row in usage}
    starts = [turn.started for turn in turns if turn.started is not None]
    pauses: dict[int, timedelta] = {}
    for start, end in timeline.gaps:
        at = max(0, bisect_right(starts, start) - 1)
        pauses[at] = pauses.get(at, timedelta()) + (end - start)
    rows = [
        TableRow(
            [
                time_element(turn.started, request.zone()),
                _turn_cell(session, turn),
                format_duration(turn.duration),
                format_duration(pauses.get(at)),
                *(f"{counts[turn.number]:,}" if counts.get(turn.number) else "" for counts in (calls, failed)),
                *(f"{counts[turn.number]:,}" if counts.get(turn.number) else "" for counts in (agents, commits)),
                format_amount(amount) if (amount := amounts.get(turn.number)) is not None else "",
            ],
            item=True,
        )
        for at, turn in enumerate(turns[:_MAX_ROWS])
    ]
    if not rows:
        return EMPTY
    filled = [at for at in range(len(_TURN_COLUMNS)) if any(row.cells[at] for row in rows)]
    table = render_table(
        "Turns",
        [_TURN_COLUMNS[at] for at in filled],
        [TableRow([row.cells[at] for at in filled], item=True) for row in rows],
        kind="list turns-list",
        heading=1,
        hidden_caption=True,
    )
    hidden = len(turns) - _MAX_ROWS
    note = el("p", f"and {count(hidden, 'more turn')}", class_="note") if hidden > 0 else EMPTY
    return el("section", el("h2", "Turns"), table, note, class_="block", id=_TURNS_ID)


def _turn_cell(session: CachedSession, turn: Turn) -> Child:
    if turn.act is None:
        return "0: before the first prompt"
    label = f"{turn.number:,}: {shorten(turn.act.text, _MAX_PROMPT)}"
    return el("a", label, href=session.links.entry(anchor_of(turn.act.entry, None)))


def build_timeline(session: CachedSession) -> Timeline:
    """Collect what the timeline shows. While an agent works, the main agent may wait, but that is no pause."""
    agents = [agent for agent in session.session.agents if agent.side is None]
    entries = chain(session.session.main.entries, *(agent.entries for agent in agents))
    times = sorted(entry.timestamp for entry in entries if entry.timestamp is not None)
    spans = [span for agent in agents if (span := _agent_span(session, agent)) is not None]
    return Timeline(
        turns=_merge_turns([span for span in _turn_spans(session) if span is not None]),
        agents=sorted(spans, key=lambda span: span.start)[:_MAX_AGENTS],
        marks=sorted(_marks(session), key=lambda mark: mark.time),
        gaps=find_gaps(times),
    )


def _turn_spans(session: CachedSession) -> Iterator[Span | None]:
    for turn in session.session.main.turns:
        if turn.act is None or turn.started is None:
            continue
        url = session.links.entry(anchor_of(turn.act.entry, None))
        label = f"Turn {turn.number}: {shorten(turn.act.text, _MAX_LABEL)}"
        yield Span(label, turn.started, max(turn.started, turn.ended or turn.started), url)


def _merge_turns(spans: list[Span]) -> list[Span]:
    """Combine consecutive turns if there are too many to draw."""
    size = -(-len(spans) // _MAX_TURNS)
    if size <= 1:
        return spans
    return [
        Span(
            f"{group[0].label} (and {len(group) - 1} more)",
            group[0].start,
            max(span.end for span in group),
            group[0].url,
        )
        for at in range(0, len(spans), size)
        if (group := spans[at : at + size])
    ]


def _agent_span(session: CachedSession, agent: Agent) -> Span | None:
    times = [entry.timestamp for entry in agent.entries if entry.timestamp is not None]
    if not times or agent.id is None:
        return None
    return Span(shorten(agent_title(agent), _MAX_LABEL), min(times), max(times), session.links.agent(agent.id))


def _marks(session: CachedSession) -> Iterator[Mark]:
    links = session.links
    failed = [call for call in session.session.main.calls if call.outcome in FAILED_OUTCOMES and call.timestamp]
    for call in failed[:: -(-len(failed) // _MAX_MARKS) or 1]:
        if call.timestamp is not None:
            label = f"{shorten(call.tool, _MAX_LABEL)}: {call.outcome}"
            yield Mark("failure", label, call.timestamp, links.entry(anchor_of(call.entry, None)))
    for call, commit in find_commits(session.session)[:_MAX_MARKS]:
        if call.timestamp is not None:
            note = " (replaced)" if commit.is_replaced else ""
            label = f"Commit {commit.ref or ''}: {shorten(visible(commit.label), _MAX_LABEL)}{note}"
            yield Mark("commit", label, call.timestamp, links.entry(anchor_of(call.entry, call.agent)))
    for compaction in session.session.main.compactions:
        entry = compaction.boundary or compaction.summary
        if entry is not None and entry.timestamp is not None and compaction.kind is not CompactionKind.MICRO:
            yield Mark("compaction", "Compaction", entry.timestamp, links.entry(anchor_of(entry, None)))


def _render_timeline(request: PageRequest, session: CachedSession, timeline: Timeline) -> Markup:
    drawn = {mark.kind for mark in timeline.marks}
    marks = [(name, kind) for kind, name in MARK_KINDS.items() if kind in drawn]
    agents = [("agent-span", "agent")] if timeline.agents else []
    legend = (("turn-span", "turn"), *agents, *marks)
    minutes = int(IDLE.total_seconds() // 60)
    return el(
        "div",
        draw_timeline(timeline.turns, timeline.agents, timeline.marks, timeline.gaps),
        el(
            "ul",
            [el("li", label, class_=kind) for kind, label in legend],
            el("li", f"idle for more than {minutes} minutes, shortened", class_="idle") if timeline.gaps else "",
            class_="legend timeline-legend",
        ),
        el("p", el("a", "List of turns", href=f"{session.links.below('timeline')}#{_TURNS_ID}")),
        folded_table("View as table", _table(request, timeline)),
        class_="timeline-view",
    )


def _table(request: PageRequest, timeline: Timeline) -> Markup:
    rows: list[tuple[datetime, str, Child, str]] = [
        *((span.start, "turn", _link(span), format_duration(span.end - span.start)) for span in timeline.turns),
        *((span.start, "agent", _link(span), format_duration(span.end - span.start)) for span in timeline.agents),
        *((mark.time, mark.kind, _link(mark), "") for mark in timeline.marks),
        *((start, "idle", "", format_duration(end - start)) for start, end in timeline.gaps),
    ]
    rows.sort(key=lambda row: row[0])
    columns = (Column("When", "when"), Column("What"), Column("Where"), Column("Took", "number"))
    cells = [[time_element(when, request.zone()), kind, label, took] for when, kind, label, took in rows[:_MAX_ROWS]]
    table = render_table("Timeline", columns, cells, hidden_caption=True)
    hidden = len(rows) - _MAX_ROWS
    note = el("p", f"and {count(hidden, 'more event')}", class_="note") if hidden > 0 else ""
    return join((table, note))


def _link(event: Span | Mark) -> Child:
    return el("a", event.label, href=event.url) if event.url is not None else event.label
