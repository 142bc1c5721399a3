"""The agents of a session, with those whose transcripts are missing."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.model.call_summary import LAUNCH_STATUSES
from threadline.model.ledger import sum_amounts
from threadline.model.results import AgentResult
from threadline.model.text import count, count_agents, format_amount, format_duration, short_model_name
from threadline.render import (
    BackgroundTasks,
    TaskNotification,
    agent_duration,
    agent_title,
    agents_without_transcript,
    anchor_of,
    shorten,
    task_answer,
)
from threadline.render.html import (
    Child,
    Column,
    TableRow,
    el,
    facts_row,
    join,
    number_element,
    render_table,
    time_element,
)
from threadline.web.request import Page
from threadline.web.session.head import page_header

if TYPE_CHECKING:
    from threadline.model.calls import Call
    from threadline.model.places import CallId, MessageId
    from threadline.model.session import Agent
    from threadline.web.request import PageRequest
    from threadline.web.session_cache import CachedSession

_MAX_TITLE, _MAX_RESULT = 160, 200
_MARKDOWN = re.compile(r"[*`]{2,}|^#+ | #+ |^---$", re.MULTILINE)
_LAUNCHED = "async_launched"
_COLUMNS = (
    Column("Agent and result", "title"),
    Column("Type", "minor"),
    Column("Model", "model minor"),
    Column("Status", "minor"),
    Column("Started", "when minor"),
    Column("Turn", "number minor"),
    Column("Took", "number"),
    Column("Calls", "number minor"),
    Column("Tokens", "number minor", title="Tokens of its requests, or those that its result reports"),
    Column("Amount", "number"),
)


class AgentRow(Struct, frozen=True):
    """An agent of a session. Without a transcript (`missing`), only its call and its result are known.

    `anchor` is the entry of the call that started it.
    """

    agent: str | None
    title: str
    type: str | None
    model: str | None
    started: datetime | None
    duration: timedelta | None
    turn: int | None
    calls: int | None
    tokens: int | None
    amount: Decimal | None
    status: str
    result: str
    anchor: str | None
    missing: bool = False


def agent_rows(session: CachedSession, costs: Mapping[MessageId, Decimal]) -> list[AgentRow]:
    """Every agent of a session, in the order of their calls; those without a known call come last."""
    calls = session.session.calls_by_id
    rows = [
        _row_of_agent(session, name, agent, calls, costs)
        for name, agent in session.agents.items()
        if agent.side is None
    ]
    tasks = BackgroundTasks(session.session, session.notifications)
    rows += [
        _row_of_call(calls[id_], title, tasks.end(calls[id_]))
        for id_, title in agents_without_transcript(session.session).items()
    ]
    return sorted(rows, key=lambda row: (row.started is None, row.started.timestamp() if row.started else 0))


def _row_of_agent(
    session: CachedSession,
    name: str,
    agent: Agent,
    calls: Mapping[CallId, Call],
    costs: Mapping[MessageId, Decimal],
) -> AgentRow:
    windows = session.windows(name)
    messages = dict.fromkeys(window.message for window in windows if window.message is not None)
    amounts = [costs[message] for message in messages if message in costs]
    call = calls.get(agent.link.call) if agent.link.call is not None else None
    times = [entry.timestamp for entry in agent.entries if entry.timestamp is not None]
    return AgentRow(
        agent=name,
        title=agent_title(agent),
        type=agent.type,
        model=agent.model,
        started=min(times, default=None),
        duration=agent_duration(agent),
        turn=call.turn if call is not None and call.agent is None else None,
        calls=len(agent.calls),
        tokens=sum(window.prompt + window.output for window in windows),
        amount=sum_amounts(amounts) if amounts else None,
        status=str(agent.status),
        result=agent.result,
        anchor=anchor_of(call.entry, call.agent) if call is not None else None,
    )


def _row_of_call(call: Call, title: str, end: TaskNotification | None) -> AgentRow:
    """An agent without a transcript. If it ran in the background, a notification may report its end."""
    result = call.result if isinstance(call.result, AgentResult) else AgentResult()
    milliseconds = result.total_duration_ms
    kind = call.input.get("subagent_type") if isinstance(call.input, dict) else None
    return AgentRow(
        agent=None,
        title=title,
        type=kind if isinstance(kind, str) else result.agent_type,
        model=result.resolved_model,
        started=call.timestamp,
        duration=_duration_of_call(call, milliseconds, end),
        turn=call.turn if call.agent is None else None,
        calls=result.total_tool_use_count,
        tokens=result.total_tokens,
        amount=None,
        status=(end.status if end is not None else None) or result.status or str(call.outcome),
        result=(task_answer(end) or "") if end is not None else "" if result.status == _LAUNCHED else call.output,
        anchor=anchor_of(call.entry, call.agent),
        missing=True,
    )


def _duration_of_call(call: Call, milliseconds: float | None, end: TaskNotification | None) -> timedelta | None:
    if milliseconds is not None and milliseconds > 0:
        with suppress(OverflowError):  # a transcript may contain any number
            return timedelta(milliseconds=milliseconds)
    if end is not None and end.entry.timestamp is not None and call.timestamp is not None:
        return end.entry.timestamp - call.timestamp
    is_launched = isinstance(call.result, AgentResult) and call.result.status == _LAUNCHED
    return None if is_launched else call.duration


def agents_page(request: PageRequest) -> Page:
    """All agents of a session, with those whose transcripts are missing."""
    session = request.session()
    rows = agent_rows(session, session.spending(request.archive).costs)
    head = page_header(session, "Agents", facts_row(_summarize(rows)))
    cells = [list(_cells(row, session, request)) for row in rows]
    filled = [at for at in range(len(_COLUMNS)) if any(row[at] for row in cells)]
    columns = [_COLUMNS[at] for at in filled]
    table_rows = [TableRow([row[at] for at in filled], item=True) for row in cells]
    table = (
        render_table("Agents", columns, table_rows, kind="list agents", hidden_caption=True)
        if rows
        else el("p", "This session started no agents.", class_="nothing")
    )
    return Page("Agents", "insight", join((head, table)), rows)


def _summarize(rows: list[AgentRow]) -> Iterator[Child]:
    present = sum(not row.missing for row in rows)
    yield count_agents(present, len(rows)) or "no agents"
    amounts = [row.amount for row in rows if row.amount is not None]
    if amounts:
        yield format_amount(sum_amounts(amounts))
    if missing := len(rows) - present:
        yield f"the cost of {count(missing, 'agent')} is unknown"


def _cells(row: AgentRow, session: CachedSession, request: PageRequest) -> Iterator[Child]:
    links = session.links
    title = shorten(row.title.removeprefix(f"{row.type}: "), _MAX_TITLE)
    url = links.agent(row.agent) if row.agent is not None else links.entry(row.anchor) if row.anchor else None
    result = shorten(_MARKDOWN.sub("", html.unescape(row.result)), _MAX_RESULT)
    yield [el("a", title, href=url) if url is not None else title, facts_row([result]) if result else None]
    yield shorten(row.type or "agent", 40)
    yield shorten(short_model_name(row.model), 40) if row.model else ""
    status = LAUNCH_STATUSES.get(row.status, row.status)
    yield [shorten(status, 40), el("p", "transcript missing", class_="lacks") if row.missing else None]
    yield time_element(row.started, request.zone())
    yield el("a", f"{row.turn:,}", href=links.entry(row.anchor)) if row.turn is not None and row.anchor else ""
    yield format_duration(row.duration)
    yield f"{row.calls:,}" if row.calls is not None else ""
    yield number_element(row.tokens) if row.tokens is not None else ""
    yield format_amount(row.amount) if row.amount is not None else el("span", "unknown", class_="faint")
