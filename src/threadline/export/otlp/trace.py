"""Turn a session and its charges into the spans of a trace.

Every charge that the session owns is a `chat` span, and every call an `execute_tool` span. Both are children of the
`invoke_agent` span of their agent. The span of a subagent is a child of the call that started it; if the subagent
outlived that call, it is a child of the agent that made the call, and has a link to the call. What the session copied
from another one is in that one's trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from threadline.export.otlp import conventions as names
from threadline.export.otlp.content import Content, NameRedactor
from threadline.export.otlp.message_rows import CopiedRows, RowTable, SessionFacts, TurnRange, message_key
from threadline.export.otlp.spans import (
    Link,
    Span,
    SpanKind,
    root_span_id,
    span_id,
    to_nanoseconds,
    trace_id,
    trace_key,
)
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AssistantEntry, Entry
from threadline.model.ledger import Charge
from threadline.model.places import AgentId
from threadline.model.session import Agent, AgentStatus

_FAILED_OUTCOMES = frozenset((Outcome.ERROR, Outcome.DENIED, Outcome.INTERRUPTED, Outcome.LOST))
_ERROR_KIND = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FAILED_STATUSES = frozenset((AgentStatus.FAILED, AgentStatus.INTERRUPTED))


def build_spans(
    facts: SessionFacts, redactor: NameRedactor, content: Content | None = None, turns: TurnRange | None = None
) -> list[Span]:
    """Build the spans of a session, children before their parents; the last one is that of the main agent."""
    return _TraceBuilder(facts, redactor, content, turns or TurnRange()).build()


class _AgentNode:
    """An agent's span while it is built: its direct children, and the times that they and it cover."""

    def __init__(self, agent: Agent, id_: bytes) -> None:
        self.agent = agent
        self.id = id_
        self.parent: _AgentNode | None = None
        self.call: Call | None = None
        self.children: list[Span] = []
        self.agents = 0
        self.start: int | None = None
        self.end: int | None = None

    def cover(self, start: int, end: int) -> None:
        self.start = start if self.start is None else min(self.start, start)
        self.end = end if self.end is None else max(self.end, end)


class _TraceBuilder:
    def __init__(self, facts: SessionFacts, redactor: NameRedactor, content: Content | None, turns: TurnRange) -> None:
        self._facts = facts
        self._session = facts.session
        self._redactor = redactor
        self._content = content
        self._turns = turns
        self._started = facts.session.started
        self._trace_id = trace_id(trace_key(facts.id, facts.folder))
        self._used_ids: set[bytes] = set()
        shown_id = redactor.id("sessionId", facts.id)
        self._common = {names.CONVERSATION_ID: shown_id, names.SESSION_ID: shown_id}
        self._rows = RowTable(facts.session)
        self._copies = CopiedRows(facts)
        self._calls: dict[str, Span] = {}
        main = _AgentNode(facts.session.main, root_span_id(facts.scope))
        self._used_ids.add(main.id)
        self._nodes: dict[AgentId | None, _AgentNode] = {None: main}
        self._main = main

    def build(self) -> list[Span]:
        for agent in self._session.agents:
            self._nodes[agent.id] = _AgentNode(agent, self._new_id("agent", str(agent.id)))
        self._link_agents()
        self._add_api_calls()
        self._add_calls()
        return [*self._finish_agents(), *self._main.children, self._main_span()]

    def _new_id(self, kind: str, *parts: str) -> bytes:
        """An id that no other span of the session has. Ids in transcripts are not always unique."""
        id_ = span_id(self._facts.scope, kind, *parts)
        number = 1
        while id_ in self._used_ids:
            number += 1
            id_ = span_id(self._facts.scope, kind, *parts, str(number))
        self._used_ids.add(id_)
        return id_

    # --- agents

    def _link_agents(self) -> None:
        """Find the agent and the call that started each agent. If agents start each other, the main agent did."""
        calls = self._session.calls_by_id
        for node in self._nodes.values():
            if node is self._main:
                continue
            link = node.agent.link
            node.call = calls.get(link.call) if link.call is not None else None
            parent = self._nodes.get(node.call.agent if node.call is not None else link.agent, self._main)
            if parent is node or _is_ancestor(node, parent):
                parent, node.call = self._main, None
            node.parent = parent

    def _finish_agents(self) -> Iterator[Span]:
        """Yield the spans of all agents but the main one, after those of their children."""
        for node in _deepest_first(self._nodes.values()):
            own_times = _times_of(node.agent.entries)
            if node is self._main or node.parent is None or self._is_left_out(node):
                continue
            if own_times is not None and not self._copies.is_all_copied(node.agent):
                node.cover(*own_times)
            start, end = node.start or 0, node.end or node.start or 0
            span = self._agent_span(node, start, end)
            yield from node.children
            yield span
            node.parent.agents += 1
            node.parent.cover(start, end)

    def _is_left_out(self, node: _AgentNode) -> bool:
        """Whether an agent has nothing to show: it was copied from another session, or is not in the chosen turns."""
        if node.children or node.agents:
            return False
        turn = node.call.turn if node.call is not None else None
        return self._copies.is_all_copied(node.agent) or not self._turns.contains(turn)

    def _agent_span(self, node: _AgentNode, start: int, end: int) -> Span:
        agent = node.agent
        parent_id = node.parent.id if node.parent is not None else self._main.id
        links: tuple[Link, ...] = ()
        call = self._calls.get(node.call.id) if node.call is not None else None
        if call is not None and call.start <= start and end <= call.end:
            parent_id = call.span_id
        elif call is not None:
            links = (Link(self._trace_id, call.span_id, {names.LINK_KIND: "call"}),)
        type_ = self._redactor.field("agentType", agent.type or str(agent.side or "agent"))
        attributes: dict[str, Any] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.PROVIDER_NAME: names.PROVIDER,
            names.AGENT_NAME: type_,
            names.AGENT_ID: self._redactor.id("agentId", str(agent.id)),
            **self._common,
        }
        if agent.side is not None:
            attributes[names.SIDE_AGENT] = str(agent.side)
        if self._content is not None:
            attributes |= self._content.of_agent(agent)
        error = str(agent.status) if agent.status in _FAILED_STATUSES else None
        if error is not None:
            attributes[names.ERROR_TYPE] = error
        return Span(
            trace_id=self._trace_id,
            span_id=node.id,
            parent_id=parent_id,
            name=f"{names.INVOKE_AGENT} {type_}",
            kind=SpanKind.INTERNAL,
            start=start,
            end=end,
            attributes=attributes,
            error=error,
            links=links,
            is_finished=agent.status is not AgentStatus.PENDING and (call is None or call.is_finished),
        )

    def _main_span(self) -> Span:
        session, node = self._session, self._main
        is_partial = self._turns != TurnRange()
        if node.start is None or not is_partial:
            for moment in session.span:
                if moment is not None:
                    node.cover(to_nanoseconds(moment), to_nanoseconds(moment))
        attributes: dict[str, Any] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.PROVIDER_NAME: names.PROVIDER,
            names.AGENT_NAME: names.MAIN_AGENT,
            **self._common,
        }
        optional = {
            names.AGENT_VERSION: self._redactor.field("version", session.versions[-1]) if session.versions else None,
            names.PROJECT: self._redactor.text("cwd", self._facts.project),
            names.GIT_BRANCH: self._redactor.text(
                "gitBranch", session.git_branches[-1] if session.git_branches else None
            ),
        }
        attributes |= {key: value for key, value in optional.items() if value}
        if self._content is not None:
            attributes |= self._content.of_session(self._turns)
        links = tuple(
            Link(trace_id(key), root_span_id(key), {names.LINK_KIND: str(link.kind)})
            for link in session.continues
            if link.session is not None and link.session != self._facts.id
            for key in (trace_key(link.session, self._facts.folder),)
        )
        return Span(
            trace_id=self._trace_id,
            span_id=node.id,
            parent_id=None,
            name=f"{names.INVOKE_AGENT} {names.MAIN_AGENT}",
            kind=SpanKind.INTERNAL,
            start=node.start or 0,
            end=node.end or 0,
            attributes=attributes,
            links=links,
            is_finished=False,
        )

    # --- API calls

    def _add_api_calls(self) -> None:
        ordered = sorted(
            self._facts.own, key=lambda charge: (charge.owner.time or "", charge.message, charge.part, charge.place)
        )
        for charge in ordered:
            rows = self._rows.of_charge(charge)
            agent = self._rows.agent_of(rows[0]) if rows else _agent_id(charge)
            node = self._nodes.get(agent, self._main)
            self._add_chat(node, rows, charge)
        for agent, rows in self._rows.without_charges():
            if not self._copies.is_copied(rows[0]) and (not rows[0].is_synthetic or rows[0].is_api_error_message):
                self._add_chat(self._nodes.get(agent, self._main), rows, None)

    def _add_chat(self, node: _AgentNode, rows: Sequence[AssistantEntry], charge: Charge | None) -> None:
        turn = self._rows.turn_of(rows[0]) if rows else None
        if node is not self._main:
            turn = node.call.turn if node.call is not None else None
        if not self._turns.contains(turn):
            return
        message = charge.message if charge is not None else message_key(rows[0])
        model = charge.model if charge is not None else _model_of(rows[0])
        shown_model = self._redactor.field("model", model) if model else None
        start, end = self._chat_times(rows, charge)
        attributes: dict[str, Any] = {
            names.OPERATION: names.CHAT,
            names.PROVIDER_NAME: names.PROVIDER,
            names.RESPONSE_ID: self._redactor.id("id", message),
            **({names.REQUEST_MODEL: shown_model, names.RESPONSE_MODEL: shown_model} if shown_model else {}),
            **self._common,
            **_turn_attribute(turn),
        }
        stop_reason = next((row.stop_reason for row in reversed(rows) if row.stop_reason), None)
        if stop_reason is not None:
            attributes[names.FINISH_REASONS] = [self._redactor.field("stop_reason", stop_reason)]
        request = next((row.request_id for row in rows if row.request_id), None)
        if request is not None:
            attributes[names.REQUEST_ID] = self._redactor.id("requestId", request)
        place = charge.place if charge is not None else rows[-1].place
        attributes |= self._place_attribute(place.transcript, place.line)
        part = charge.part if charge is not None else ""
        if charge is not None:
            attributes |= names.usage_attributes(charge)
        if self._content is not None and not part:
            attributes |= self._content.of_message(rows)
        error = _api_error(rows)
        if error is not None:
            attributes[names.ERROR_TYPE] = error = self._redactor.field("type", error)
        span = Span(
            trace_id=self._trace_id,
            span_id=self._new_id("chat", message, part),
            parent_id=node.id,
            name=" ".join(filter(None, (names.CHAT, shown_model))),
            kind=SpanKind.CLIENT,
            start=start,
            end=end,
            attributes=attributes,
            error=error,
            is_finished=not rows or self._rows.is_followed(rows),
        )
        node.children.append(span)
        node.cover(start, end)

    def _chat_times(self, rows: Sequence[AssistantEntry], charge: Charge | None) -> tuple[int, int]:
        """From the entry that the message answers to its last row. Transcripts do not say when a request was sent."""
        own = _times_of(rows)
        if own is None:
            moment = charge.timestamp if charge is not None else None
            time = _time_or(moment, self._started)
            return time, time
        prompt_time = self._rows.prompt_time(rows[0])
        started = to_nanoseconds(prompt_time) if prompt_time is not None else own[0]
        return min(started, own[0]), own[1]

    # --- calls

    def _add_calls(self) -> None:
        """Add every call once: a forked agent repeats calls of its parent, and the one that was charged counts."""
        preferred: dict[str, Call] = {}
        for call in self._session.calls:
            known = preferred.get(call.id)
            if known is None or self._copy_rank(call) < self._copy_rank(known):
                preferred[call.id] = call
        for node in self._nodes.values():
            for call in node.agent.calls:
                is_copy = call is not preferred[call.id] or self._copies.is_copied(call.entry)
                if is_copy or not self._turns.contains(call.turn):
                    continue
                span = self._call_span(node, call)
                self._calls[call.id] = span
                node.children.append(span)
                node.cover(span.start, span.end)

    def _copy_rank(self, call: Call) -> tuple[bool, str, int]:
        return not self._rows.is_charged(call.entry), call.place.transcript, call.place.line

    def _call_span(self, node: _AgentNode, call: Call) -> Span:
        began = call.timestamp or (call.answer.timestamp if call.answer is not None else None)
        start = _time_or(began, self._started)
        duration = call.duration
        end = to_nanoseconds(began + duration) if began is not None and duration is not None else start
        tool = self._redactor.tool(call.tool)
        attributes: dict[str, Any] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: tool,
            names.TOOL_CALL_ID: self._redactor.id("id", call.id),
            names.TOOL_TYPE: "function",
            names.OUTCOME: str(call.outcome),
            **self._common,
            **_turn_attribute(call.turn),
            **self._place_attribute(call.place.transcript, call.place.line),
        }
        if self._content is not None:
            attributes |= self._content.of_call(call)
        error = str(call.outcome) if call.outcome in _FAILED_OUTCOMES else None
        if error is not None:
            attributes[names.ERROR_TYPE] = error
        return Span(
            trace_id=self._trace_id,
            span_id=self._new_id("call", call.id),
            parent_id=node.id,
            name=f"{names.EXECUTE_TOOL} {tool}",
            kind=SpanKind.INTERNAL,
            start=start,
            end=end,
            attributes=attributes,
            error=error,
            is_finished=call.outcome is not Outcome.PENDING,
        )

    def _place_attribute(self, transcript: str, line: int) -> dict[str, Any]:
        name = self._redactor.id("sessionId", transcript.rsplit("/", 1)[-1].removesuffix(".jsonl"))
        return {names.PLACE: f"{name}.jsonl:{line}"}


def _model_of(row: AssistantEntry) -> str | None:
    return row.message.model if row.message is not None and not row.is_synthetic else None


def _agent_id(charge: Charge) -> AgentId | None:
    return AgentId(charge.agent) if charge.agent is not None else None


def _api_error(rows: Sequence[AssistantEntry]) -> str | None:
    """The kind of error that the API answered with; None if it did not."""
    row = next((row for row in rows if row.is_api_error_message), None)
    if row is None:
        return None
    kinds = (row.api_error_type, row.error, row.api_error_status)
    return next((str(kind) for kind in kinds if kind and _ERROR_KIND.fullmatch(str(kind))), "api_error")


def _time_or(*moments: datetime | None) -> int:
    """The first known time in nanoseconds; 0 if none is known."""
    return next((to_nanoseconds(moment) for moment in moments if moment is not None), 0)


def _turn_attribute(turn: int | None) -> dict[str, Any]:
    return {names.TURN: turn} if turn is not None else {}


def _times_of(entries: Iterable[Entry]) -> tuple[int, int] | None:
    """The first and the last time of entries in nanoseconds."""
    moments = [moment for entry in entries if (moment := entry.timestamp) is not None]
    return (to_nanoseconds(min(moments)), to_nanoseconds(max(moments))) if moments else None


def _is_ancestor(node: _AgentNode, other: _AgentNode | None) -> bool:
    """Whether a node is the other one, or above it."""
    while other is not None:
        if other is node:
            return True
        other = other.parent
    return False


def _deepest_first(nodes: Iterable[_AgentNode]) -> list[_AgentNode]:
    depths: dict[int, int] = {}
    ordered = list(nodes)
    for node in ordered:
        path = []
        current: _AgentNode | None = node
        while current is not None and id(current) not in depths:
            path.append(current)
            current = current.parent
        depth = depths[id(current)] if current is not None else -1
        for above in reversed(path):
            depth += 1
            depths[id(above)] = depth
    return sorted(ordered, key=lambda node: -depths[id(node)])
