"""Distribute the cost of a session over the pieces of its context, by position.

A request's window is read from the cache up to `cache_read`, written up to `cache_read + cache_write`, and not cached
after that. The pieces in the window have a known order, so each part of the cost falls on the pieces that it overlaps.
The cost of the output falls on the blocks that the model wrote. Tokens are whole numbers and prices are exact, so
nothing is lost.

Most requests read nearly everything from the cache. Such a read is noted once for a prefix of the window and settled
only when slices change, and only by these, so the time grows with the number of pieces and requests, not with their
product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from threadline.account import Ledger
from threadline.insight.request_costs import SessionRequests, starting_turns
from threadline.model.call_summary import summarize_call
from threadline.model.calls import Call
from threadline.model.context import ContextCategory
from threadline.model.entries import AttachmentEntry, Entry, UserEntry
from threadline.model.insight.attribution import Attribution, CauseKind, CostCause, sort_key
from threadline.model.ledger import EXACT, Charge, Rate, sum_amounts
from threadline.model.names import mcp_server
from threadline.model.places import AgentId, CallId, Place
from threadline.model.session import Agent, Session
from threadline.model.text import extract_text, fold_line, plain_decimal
from threadline.thread import (
    ContextPath,
    EntrySplitter,
    Piece,
    SentRequest,
    WindowFiller,
    WindowSlice,
    WindowStep,
    context_paths,
    measured_scale,
    share_out,
    start_window,
)

_ZERO = Decimal(0)
_MILLION = Decimal(1_000_000)
_MAX_LABEL = 80
_FILE_KEYS = ("file_path", "notebook_path", "path")
_Key = tuple[CauseKind, str | None, Place | None, str | None]


def attribute_costs(
    session: Session, ledger: Ledger, project: str | None = None, requests: SessionRequests | None = None
) -> Attribution:
    """Distribute the charges of a session over what caused them.

    The ledger has charges of this session only; not necessarily all of them. `project` is that of the causes.
    `requests` are those of the session and the ledger, if they are known.
    """
    causes = _Causes(session, project)
    requests = requests or SessionRequests(session, ledger)
    for charge in requests.unlocated:
        causes.add_whole(charge)
    accuracy = _Accuracy()
    for agent in (session.main, *session.agents):
        charges = requests.charges(agent.id)
        if charges:
            _AgentAttribution(agent, requests.of_agent(agent.id), causes, accuracy).attribute(charges)
    rows = sorted(causes.rows(), key=sort_key)
    amount = sum_amounts(row.amount for row in rows)
    return Attribution(session.id, amount, tuple(rows), accuracy.error, requests.unpriced, accuracy.measured)


class _Accuracy:
    """How far the estimates are from the measured growth of windows."""

    def __init__(self) -> None:
        self.measured = 0
        self._missed = 0.0

    def add(self, path: ContextPath, scale: float) -> None:
        for before, step in pairwise(path.measurable_steps):
            more = step.window.prompt - before.window.prompt
            if more > 0 and step.pieces and not step.is_restart:
                expected = sum(max(1, piece.weight) for piece in step.pieces) * scale
                self.measured += more
                self._missed += abs(more - expected)

    @property
    def error(self) -> float | None:
        return self._missed / self.measured if self.measured else None


class _Cause(Struct, eq=False):
    """A cause while its costs are added up."""

    kind: CauseKind
    label: str
    place: Place | None
    agent: AgentId | None
    turn: int | None
    name: str | None = None
    file: str | None = None
    server: str | None = None
    call: str | None = None
    tokens: int = 0
    requests: int = 0
    write: Decimal = _ZERO
    read: Decimal = _ZERO
    output: Decimal = _ZERO
    is_exact: bool = True


class _Causes:
    """All causes of a session, by what and where they are."""

    def __init__(self, session: Session, project: str | None) -> None:
        self._session = session.id
        self._project = project
        self._causes: dict[tuple[AgentId | None, _Key], _Cause] = {}
        # The same piece is looked up by each request and branch. It is kept here, so that its id stays its own.
        self._by_piece: dict[tuple[AgentId | None, int], tuple[Piece, _Cause]] = {}
        self._calls = session.calls_by_id
        self._entries = {
            (entry.line.transcript, entry.line.number): entry
            for agent in (session.main, *session.agents)
            for entry in agent.entries
            if isinstance(entry, UserEntry | AttachmentEntry)
        }
        self._turns = {
            (entry.line.transcript, entry.line.number): turn.number
            for turn in session.main.turns
            for entry in turn.entries
        }
        self._agent_turns = starting_turns(session)

    def rows(self) -> Iterable[CostCause]:
        for cause in self._causes.values():
            if cause.write or cause.read or cause.output or cause.tokens:
                yield CostCause(
                    kind=cause.kind,
                    label=cause.label,
                    place=cause.place,
                    tokens=cause.tokens,
                    requests=cause.requests,
                    write=plain_decimal(cause.write),
                    read=plain_decimal(cause.read),
                    output=plain_decimal(cause.output),
                    estimated=not cause.is_exact,
                    agent=cause.agent,
                    turn=cause.turn,
                    name=cause.name,
                    file=cause.file,
                    server=cause.server,
                    call=cause.call,
                    session=self._session,
                    project=self._project,
                )

    def of_piece(self, agent: AgentId | None, piece: Piece) -> _Cause:
        """The cause that a piece of the window is."""
        known = self._by_piece.get((agent, id(piece)))
        if known is not None:
            return known[1]
        kind = CauseKind(piece.category)
        key = agent, (kind, piece.name, piece.place, piece.call)
        cause = self._causes.get(key)
        if cause is None:
            cause = self._causes[key] = self._make_cause(agent, kind, piece)
        self._by_piece[agent, id(piece)] = piece, cause
        return cause

    def _make_cause(self, agent: AgentId | None, kind: CauseKind, piece: Piece) -> _Cause:
        call = self._calls.get(CallId(piece.call)) if piece.call is not None else None
        entry = self._entries.get(_line_of(piece.place)) if piece.place is not None else None
        return _Cause(
            kind,
            _label_of(piece, call, entry),
            piece.place,
            agent,
            self._turn(agent, piece.place),
            piece.name if piece.category is not ContextCategory.CALL else call.tool if call is not None else None,
            _file_of(call, entry),
            mcp_server(call.tool) if call is not None else None,
            piece.call,
        )

    def of_request(self, agent: Agent | None, charge: Charge, kind: CauseKind, label: str) -> _Cause:
        """The cause of a request that cannot be split."""
        id_ = agent.id if agent is not None else None
        key = kind, charge.part or charge.message, charge.place, None
        turn = self._turn(id_, charge.place)
        return self._causes.setdefault((id_, key), _Cause(kind, label, _line_place(charge), id_, turn))

    def add_whole(self, charge: Charge) -> None:
        """Attribute a charge to its request or agent, because the session does not contain what was sent."""
        cause = self._missing_agent(charge) or self.of_request(
            None, charge, CauseKind.OTHER, f"Request to {charge.model}{f', {charge.part}' if charge.part else ''}"
        )
        rate = charge.rate
        if rate is not None:
            cause.requests += 1
            cause.tokens += charge.tokens
            cause.read = EXACT.add(cause.read, _price(charge.cache_read, rate.cache_read))
            written = rate.amount(
                input=charge.input, cache_write_5m=charge.cache_write_5m, cache_write_1h=charge.cache_write_1h
            )
            fees = EXACT.multiply(rate.web_search, charge.web_searches)
            cause.write = EXACT.add(cause.write, EXACT.add(written, fees))
            cause.output = EXACT.add(cause.output, _price(charge.output, rate.output))

    def _missing_agent(self, charge: Charge) -> _Cause | None:
        """The cause that is an agent without a transcript. The rows of its progress report what it spent."""
        if charge.agent is None or charge.agent in self._agent_turns:
            return None
        id_ = AgentId(charge.agent)
        key = CauseKind.AGENT, None, None, None
        turn = self._turns.get(_line_of(charge.place))
        label = f"Agent {id_}, whose transcript is gone"
        return self._causes.setdefault((id_, key), _Cause(CauseKind.AGENT, label, _line_place(charge), id_, turn))

    def _turn(self, agent: AgentId | None, place: Place | None) -> int | None:
        if agent is not None:
            return self._agent_turns.get(agent)
        return self._turns.get(_line_of(place)) if place is not None else None


def _line_place(charge: Charge) -> Place:
    """The place of the line that a charge was counted in: causes are lines, not values in them."""
    return charge.place.within("")


def _line_of(place: Place) -> tuple[str, int]:
    return place.transcript, place.line


def _price(tokens: int, per_million: Decimal) -> Decimal:
    return EXACT.divide(EXACT.multiply(per_million, tokens), _MILLION)


class _AgentAttribution:
    """Distributes the charges of one agent's requests."""

    def __init__(self, agent: Agent, sent: Sequence[SentRequest], causes: _Causes, accuracy: _Accuracy) -> None:
        self._agent = agent
        self._sent = {request.window.number: request for request in sent}
        self._causes = causes
        self._accuracy = accuracy
        self._splitter = EntrySplitter(agent)

    def attribute(self, charges: dict[int, list[Charge]]) -> None:
        """Distribute the charges, by the number of their request."""
        waiting = dict(charges)
        conversation, *branches = context_paths(self._agent, list(self._sent.values()), self._splitter)
        scale = measured_scale(path.measurable_steps for path in (conversation, *branches))
        for path in (conversation, *branches):
            self._accuracy.add(path, scale)
        by_fork: dict[int, list[ContextPath]] = {}
        for branch in branches:
            if any(step.window.number in waiting for step in branch.steps):
                by_fork.setdefault(branch.shared, []).append(branch)
        window = _PricedWindow(self._agent.id, self._causes, start_window(self._agent, scale))
        start = 0
        for end in sorted({*by_fork, len(conversation.steps)}):
            self._walk(conversation.steps[start:end], window, waiting)
            for branch in by_fork.get(end, ()):
                self._walk(branch.steps, window.fork(), waiting)
            start = end
        for group in waiting.values():  # requests that lead nowhere, and those whose size no row reports
            for charge in group:
                self._causes.add_whole(charge)

    def _walk(self, steps: Sequence[WindowStep], window: _PricedWindow, waiting: dict[int, list[Charge]]) -> None:
        """Follow a path, and distribute the charges of its requests."""
        for step in steps:
            window.step(step)
            for charge in waiting.pop(step.window.number, ()):
                window.add_prompt(charge)
                self._add_output(charge, self._sent[step.window.number])
        window.settle()

    def _add_output(self, charge: Charge, request: SentRequest) -> None:
        """Distribute the cost of a reply over its blocks."""
        rate = charge.rate
        if rate is None:
            return
        if charge.web_searches:
            cause = self._causes.of_request(self._agent, charge, CauseKind.SEARCH, "Fee for web searches")
            cause.requests += charge.web_searches
            cause.write = EXACT.add(cause.write, EXACT.multiply(rate.web_search, charge.web_searches))
        if not charge.output:
            return
        pieces = [piece for row in request.rows for piece in self._splitter.split(row) if piece.reply]
        if not pieces:
            pieces = [Piece(ContextCategory.REPLY, None, 1, reply=True, place=request.window.place)]
        shares = share_out([max(1, piece.weight) for piece in pieces], charge.output)
        sizes: dict[int, int] = {}
        for piece, tokens in zip(pieces, shares, strict=True):
            cause = self._causes.of_piece(self._agent.id, piece)
            cause.output = EXACT.add(cause.output, _price(tokens, rate.output))
            cause.is_exact = cause.is_exact and len(pieces) == 1
            sizes[id(cause)] = sizes.get(id(cause), 0) + tokens
            cause.tokens = max(cause.tokens, sizes[id(cause)])


class _Note(NamedTuple):
    """A request that read the first slices from the cache, for a price per million tokens, and carried `slices`."""

    read: int
    price: Decimal
    slices: int


class _PricedWindow:
    """A window whose slices pay for the requests that carry them."""

    def __init__(self, agent: AgentId | None, causes: _Causes, filler: WindowFiller) -> None:
        self._agent = agent
        self._causes = causes
        self._filler = filler
        filler.before_change = self._settle_before_change
        self._owners: list[_Cause] = []
        # Requests that are not settled, in order.
        self._notes: list[_Note] = []
        # For each slice, how many of these notes there were when it was added or last settled by itself; and what that
        # settled: price and requests.
        self._since: list[int] = []
        self._settled: dict[int, tuple[Decimal, int]] = {}
        self._changed: list[WindowSlice] = []
        # Several slices may have the same cause. The first is carried as long as the others, so it counts requests.
        self._sizes: dict[int, int] = {}
        self._counting: list[bool] = []

    def fork(self) -> _PricedWindow:
        """Return the same window, for requests that follow instead of others. What was noted must be settled."""
        window = _PricedWindow(self._agent, self._causes, self._filler.fork())
        window._owners, window._since = self._owners.copy(), self._since.copy()
        window._sizes, window._counting = self._sizes.copy(), self._counting.copy()
        return window

    def step(self, step: WindowStep) -> None:
        """Add what the next request sends."""
        self._filler.step(step)
        slices = self._filler.slices
        for part in self._changed:
            cause = self._owners[part.at]
            cause.is_exact = cause.is_exact and part.is_exact
        self._changed = []
        for part in slices[len(self._owners) :]:
            cause = self._causes.of_piece(self._agent, part.piece)
            self._counting.append(id(cause) not in self._sizes)
            size = self._sizes[id(cause)] = self._sizes.get(id(cause), 0) + part.tokens
            cause.tokens = max(cause.tokens, size)
            cause.is_exact = cause.is_exact and part.is_exact
            self._owners.append(cause)
            self._since.append(len(self._notes))

    def add_prompt(self, charge: Charge) -> None:
        """Distribute the cost of a prompt, from the end of the window to its start."""
        rate = charge.rate
        slices = self._filler.slices
        if rate is None or not slices:
            return
        # The counted row may report another size than the window; what does not fit falls on the last slice.
        parts = _Segments(charge, rate)
        self._pay(len(slices) - 1, parts.take(max(0, charge.prompt_tokens - self._filler.size)))
        at, covered = len(slices), self._filler.size
        while at and not parts.is_only_read:
            at -= 1
            covered -= slices[at].tokens
            self._pay(at, parts.take(slices[at].tokens))
        is_prefix = covered == parts.cache_read
        if not is_prefix:
            for first in range(at - 1, -1, -1):
                self._pay(first, parts.take(slices[first].tokens))
            self._pay(0, parts.take(parts.left))
        self._notes.append(_Note(at if is_prefix else 0, rate.cache_read, len(slices)))

    def _pay(self, at: int, costs: tuple[Decimal, Decimal]) -> None:
        cause = self._owners[at]
        written, read = costs
        cause.write = EXACT.add(cause.write, written)
        cause.read = EXACT.add(cause.read, read)

    def _settle_before_change(self, parts: Sequence[WindowSlice] | None) -> None:
        """Let slices pay before they change; without any, let all pay before they are replaced."""
        if parts is None:
            self.settle()
            self._owners, self._since, self._changed = [], [], []
            self._sizes, self._counting = {}, []
            return
        known = [part for part in parts if part.at < len(self._owners)]
        self._changed += known
        if sum(len(self._notes) - self._since[part.at] for part in known) > len(self._owners) + len(self._notes):
            self.settle()
        else:
            for part in known:
                self._settle_slice(part)

    def _settle_slice(self, part: WindowSlice) -> None:
        at = part.at
        price, carried = _ZERO, 0
        for note in self._notes[self._since[at] :]:
            if note.read > at:
                price = EXACT.add(price, note.price)
            carried += note.slices > at
        self._since[at] = len(self._notes)
        settled_price, settled_requests = self._settled.get(at, (_ZERO, 0))
        self._settled[at] = EXACT.add(settled_price, price), settled_requests + carried
        self._pay_for_carrying(at, price, carried)

    def settle(self) -> None:
        """Let all slices pay what was noted."""
        reads: dict[int, Decimal] = {}
        carried: dict[int, int] = {}
        for note in self._notes:
            reads[note.read] = EXACT.add(reads.get(note.read, _ZERO), note.price)
            carried[note.slices] = carried.get(note.slices, 0) + 1
        price, requests = _ZERO, 0
        for at in range(len(self._owners) - 1, -1, -1):
            price = EXACT.add(price, reads.get(at + 1, _ZERO))
            requests += carried.get(at + 1, 0)
            settled_price, settled_requests = self._settled.get(at, (_ZERO, 0))
            self._pay_for_carrying(at, EXACT.subtract(price, settled_price), requests - settled_requests)
        self._notes = []
        self._settled = {}
        self._since = [0] * len(self._owners)

    def _pay_for_carrying(self, at: int, price: Decimal, requests: int) -> None:
        cause = self._owners[at]
        if price:
            cause.read = EXACT.add(cause.read, _price(self._filler.slices[at].tokens, price))
        if self._counting[at]:
            cause.requests += requests


class _Segments:
    """The parts of a prompt, taken from its end: not cached, written, read."""

    def __init__(self, charge: Charge, rate: Rate) -> None:
        self._written = [charge.input, charge.cache_write_5m, charge.cache_write_1h]
        self._prices = rate.input, rate.cache_write_5m, rate.cache_write_1h
        self.cache_read = charge.cache_read
        self._read_price = rate.cache_read

    @property
    def is_only_read(self) -> bool:
        """Whether only the part that was read from the cache is left."""
        return not any(self._written)

    @property
    def left(self) -> int:
        """How many tokens are left."""
        return sum(self._written) + self.cache_read

    def take(self, tokens: int) -> tuple[Decimal, Decimal]:
        """Take the last tokens, and return what was paid for writing and for reading them."""
        paid = _ZERO
        for at, price in enumerate(self._prices):
            taken = min(tokens, self._written[at])
            if taken:
                self._written[at] -= taken
                tokens -= taken
                paid = EXACT.add(paid, _price(taken, price))
        taken = min(tokens, self.cache_read)
        self.cache_read -= taken
        return paid, _price(taken, self._read_price)


_LABELS = {ContextCategory.SUMMARY: "Summary of a compaction", ContextCategory.UNSEEN: "Not in the transcript"}


def _label_of(piece: Piece, call: Call | None, entry: Entry | None) -> str:
    match piece.category:
        case ContextCategory.SYSTEM:
            label = f"System prompt: {piece.name}" if piece.name else "System prompt and tool definitions"
        case ContextCategory.RESULT | ContextCategory.CALL:
            what = f"{call.tool} {summarize_call(call.tool, call.input)}" if call is not None else piece.name or ""
            label = f"{'Result' if piece.category is ContextCategory.RESULT else 'Call'} of {what}"
        case ContextCategory.PROMPT:
            label = f"Prompt: {extract_text(entry)}" if isinstance(entry, UserEntry) else "Prompt"
        case ContextCategory.INJECTED:
            path = _attached_file(entry)
            label = f"Injected: {piece.name}" + (f" {path}" if path else "")
        case ContextCategory.IMAGE:
            label = (piece.name or "image").capitalize()
        case _:
            label = _LABELS.get(piece.category) or str(piece.category).capitalize()
    return fold_line(label, _MAX_LABEL)


def _attached_file(entry: Entry | None) -> str | None:
    """The path of the file that an attachment contains."""
    attachment = entry.attachment if isinstance(entry, AttachmentEntry) else None
    paths = (getattr(attachment, name, None) for name in ("filename", "path", "plan_file_path"))
    return next((path for path in paths if isinstance(path, str) and path), None)


def _file_of(call: Call | None, entry: Entry | None) -> str | None:
    inputs = call.input if call is not None and isinstance(call.input, dict) else {}
    path = next((inputs[key] for key in _FILE_KEYS if isinstance(inputs.get(key), str)), None)
    return str(path) if path is not None else _attached_file(entry)
