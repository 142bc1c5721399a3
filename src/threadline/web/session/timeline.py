"""The timeline of a session, and the bar that stays at the top of its page while you scroll."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline.insight import find_commits
from threadline.model.calls import Outcome
from threadline.model.session import CompactionKind
from threadline.model.text import count, format_duration
from threadline.render import agent_title, anchor_of, shorten, visible
from threadline.render.html import (
    IDLE,
    MARK_KINDS,
    Child,
    Column,
    Mark,
    Span,
    draw_timeline,
    el,
    find_gaps,
    folded_table,
    icon,
    join,
    render_table,
    time_element,
)
from threadline.web.request import Fragment

if TYPE_CHECKING:
    from threadline.model.session import Agent
    from threadline.web.request import PageRequest
    from threadline.web.session_cache import CachedSession

FAILED_OUTCOMES = (Outcome.ERROR, Outcome.DENIED, Outcome.INTERRUPTED, Outcome.LOST)
_MAX_TURNS, _MAX_AGENTS, _MAX_MARKS, _MAX_ROWS = 240, 80, 160, 300
_MAX_LABEL = 80


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
    name = shorten(session.session.title.text, 120) or "Back to the session"
    heading = el(
        "header", el("p", el("a", name, href=session.links.page()), class_="up"), el("h1", title), class_="head"
    )
    main = _render_timeline(request, timeline) if timeline.turns else el("p", "No turns with a known time.")
    return Fragment(title, "insight", main, timeline, heading=heading)


def build_timeline(session: CachedSession) -> Timeline:
    """Collect what the timeline shows."""
    main = session.session.main
    times = sorted(entry.timestamp for entry in main.entries if entry.timestamp is not None)
    agents = [span for agent in session.session.agents if agent.side is None and (span := _agent_span(session, agent))]
    return Timeline(
        turns=_merge_turns([span for span in _turn_spans(session) if span is not None]),
        agents=sorted(agents, key=lambda span: span.start)[:_MAX_AGENTS],
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
            yield Mark(
                "failure", f"{call.tool}: {call.outcome}", call.timestamp, links.entry(anchor_of(call.entry, None))
            )
    for call, commit in list(find_commits(session.session))[:_MAX_MARKS]:
        if call.timestamp is not None:
            label = f"Commit {commit.ref or ''}: {shorten(visible(commit.label), _MAX_LABEL)}"
            yield Mark("commit", label, call.timestamp, links.entry(anchor_of(call.entry, call.agent)))
    for compaction in session.session.main.compactions:
        entry = compaction.boundary or compaction.summary
        if entry is not None and entry.timestamp is not None and compaction.kind is not CompactionKind.MICRO:
            yield Mark("compaction", "Compaction", entry.timestamp, links.entry(anchor_of(entry, None)))


def _render_timeline(request: PageRequest, timeline: Timeline) -> Markup:
    marks = ((name, kind) for kind, name in MARK_KINDS.items())
    legend = (("turn-span", "turn"), ("agent-span", "agent"), *marks)
    minutes = int(IDLE.total_seconds() // 60)
    return el(
        "div",
        draw_timeline(timeline.turns, timeline.agents, timeline.marks, timeline.gaps),
        el(
            "ul",
            [el("li", label, class_=kind) for kind, label in legend],
            el("li", f"idle for more than {minutes} minutes, shortened", class_="idle"),
            class_="legend timeline-legend",
        ),
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


def render_mini_head(
    session: CachedSession, agent: Agent, title: str, *, turn: int, is_timeline_open: bool = False
) -> Markup:
    """A bar with the title, the current turn, time and cost, which stays visible; scripts keep it current."""
    turns = sum(turn.act is not None for turn in agent.turns)
    url = session.links.below("timeline")
    timeline = el(
        "details",
        el("summary", "Timeline"),
        el("p", el("a", "Open as page", href=url)),
        data_src=url,
        data_open="timeline",
        open=is_timeline_open,
    )
    find = el("button", icon("search"), type="button", data_action="find", aria_label="Find in this session")
    facts: dict[str, Any] = {
        "mini-turn": f"turn {turn:,} of {turns:,}" if turn else count(turns, "turn"),
        "mini-time": "",
        "mini-cost": "",
    }
    return el(
        "div",
        el("a", title, href="#main", class_="mini-title"),
        *(el("span", text, class_=name) for name, text in facts.items()),
        timeline if agent.id is None and turns else "",
        find,
        class_="mini-head",
        data_turns=turns,
    )
