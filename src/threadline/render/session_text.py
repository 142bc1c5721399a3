"""Render a session as text for a terminal, and single items as one line each for `watch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.model.calls import Outcome
from threadline.model.ledger import SessionCosts
from threadline.model.session import ActKind, Agent, CompactionKind, Session
from threadline.model.text import count, format_time, short_model_name
from threadline.model.times import in_zone, zone_name
from threadline.render.call_text import OUTCOME_MARKS, call_body, call_line
from threadline.render.items import leading_entries
from threadline.render.outline import (
    BranchItem,
    CallItem,
    CompactionItem,
    Detail,
    FailureItem,
    Item,
    NoticeItem,
    OutputItem,
    PromptItem,
    ReplyItem,
    TaskItem,
    TaskNotification,
    TaskUpdateItem,
    TextOptions,
    ThinkingItem,
    build_outline,
)
from threadline.render.session_facts import (
    AgentPlacement,
    BackgroundTasks,
    agent_line,
    agents_without_transcript,
    describe_compaction,
    describe_continuation,
    describe_platform,
    missing_agent_line,
    task_answer,
    task_sentence,
)
from threadline.render.terminal_markdown import markdown_lines
from threadline.render.text import (
    PROMPT_SIGN,
    Role,
    Span,
    Spans,
    Style,
    act_sign,
    clip_left,
    cut_line,
    describe_cost,
    display_width,
    labelled_rule,
    line_width,
    one_line,
    plain,
    plain_lines,
    split_indent,
    wrap,
)

_PROMPT_LINES, _OUTPUT_LINES, _TASK_LINES, _ANSWER_LINES = 60, 8, 6, 6
# No blank line between two of these items; all others have one before them.
_COMPACT_ITEMS = (CallItem, ThinkingItem, NoticeItem, TaskUpdateItem, OutputItem, FailureItem)
_MAX_DEPTH = 12
_NO_THINKING = "thinking (the transcript contains only its signature)"


def session_to_text(
    session: Session,
    options: TextOptions | None = None,
    notifications: Iterable[TaskNotification] = (),
    extra_facts: Iterable[str] = (),
    costs: SessionCosts | None = None,
) -> Iterator[str]:
    """Yield the lines of a session lazily.

    `notifications` are about its background tasks. `extra_facts` are added to the header, one per line. `costs` are
    shown with each turn.
    """
    settings = options or TextOptions()
    style = Style(colour=settings.colour)
    for line in _TextRenderer(session, settings, notifications, extra_facts, costs).lines():
        yield style.line(line)


def _is_turn_shown(number: int, options: TextOptions) -> bool:
    if options.turn is not None:
        return number == options.turn
    first, last = options.from_turn, options.to_turn
    return (first is None or number >= first) and (last is None or number <= last)


class _TextRenderer:
    """Renders one session as lines of spans. There is one method per kind of item."""

    def __init__(
        self,
        session: Session,
        options: TextOptions,
        notifications: Iterable[TaskNotification],
        extra_facts: Iterable[str],
        costs: SessionCosts | None,
    ) -> None:
        self._session = session
        self._costs = costs
        self._extra_facts = extra_facts
        self._options = options
        self._zone = zone_name(options.zone)
        self._placement = AgentPlacement(session)
        self._shown_agents: set[int] = set()
        self._missing_agents = agents_without_transcript(session)
        self._tasks = BackgroundTasks(session, notifications)

    def lines(self) -> Iterator[Spans]:
        """Yield all lines: the header, the main agent's items, then agents without a call."""
        options, main = self._options, self._session.main
        yield from self._facts()
        turns = [turn for turn in main.turns if _is_turn_shown(turn.number, options)]
        is_cut = len(turns) < len(main.turns)
        items = build_outline(
            main,
            leading_entries(main, thread=options.thread, branch=options.branch),
            beside=options.branch is None,
            within=[entry for turn in turns for entry in turn.entries] if is_cut else None,
            notifications=self._tasks.by_entry,
        )
        yield from self._items(items, options.width, 0)
        if not is_cut and options.branch is None:
            yield from self._unlinked_agents()

    def _facts(self) -> Iterator[Spans]:
        session = self._session
        width = self._options.width
        yield from wrap((Span(session.title.text or "(no title)", Role.TITLE),), width)
        facts = [
            str(session.id or ""),
            session.cwds[0] if session.cwds else "",
            ", ".join(map(short_model_name, session.models)),
            session.slug or "",
            describe_platform(session),
            format_time(session.started, self._options.zone) + (f" ({self._zone})" if session.started else ""),
            "kept" if session.kept else "",
        ]
        yield from wrap((Span(" · ".join(fact for fact in facts if fact), Role.FAINT),), width)
        for fact in self._extra_facts:
            yield from wrap((Span(fact, Role.FAINT),), width)
        for link in session.continuations:
            yield from wrap((Span(describe_continuation(link), Role.FAINT),), width)

    def _items(self, items: Iterator[Item], width: int, depth: int) -> Iterator[Spans]:
        before: Item | None = None
        for item in items:
            if isinstance(item, NoticeItem) and item.quiet and not self._options.everything:
                continue
            first = True
            for line in _RENDERERS[type(item)](self, item, width, depth):
                if first and not (isinstance(item, _COMPACT_ITEMS) and isinstance(before, _COMPACT_ITEMS)):
                    yield ()
                first = False
                yield line
            before = before if first else item

    def prompt(self, item: PromptItem, width: int, _depth: int) -> Iterator[Spans]:
        """An act of the person."""
        act = item.act
        if act.kind is ActKind.INTERRUPT:
            yield (Span("■ interrupted by the user", Role.NOTICE),)
            return
        if act.kind is ActKind.FEEDBACK and item.turn is None:
            return  # it is shown below the call that it refused
        if item.turn is not None:
            label = f"turn {item.turn}" + (
                f" · {format_time(act.timestamp, self._options.zone)}" if act.timestamp else ""
            )
            if self._costs is not None and self._costs.turn(item.turn).charges:
                label += f" · {describe_cost(self._costs.turn(item.turn))}"
            yield labelled_rule((Span(label, Role.FAINT),), width)
        if act.kind is ActKind.PLAN:
            yield (Span("◆ plan", Role.PROMPT),)
        yield from self._prompt_lines(act.text, width, "  " if act.kind is ActKind.PLAN else f"{act_sign(act.kind)} ")
        if act.images:
            yield (Span("  " + " ".join(["(image)"] * act.images), Role.FAINT),)
        if act.kind is ActKind.STEERING:
            yield (Span("  (typed while the model was working)", Role.FAINT),)

    def _prompt_lines(self, text: str, width: int, sign: str, *, uncut: bool = False) -> Iterator[Spans]:
        lines = list(plain_lines(text.strip("\n")))
        limit = len(lines) if uncut or self._options.everything or self._options.uncut else _PROMPT_LINES
        for index, line in enumerate(lines[:limit]):
            space, words = split_indent(line, width)
            first = Span((sign if not index else "  ") + space, Role.PROMPT)
            yield from wrap((Span(words, Role.PROMPT),), width, first=(first,), rest=(Span("  " + space),))
        if len(lines) > limit:
            yield (Span(f"  … {count(len(lines) - limit, 'more line')}", Role.FAINT),)

    def task(self, item: TaskItem, width: int, _depth: int) -> Iterator[Spans]:
        """The task of an agent."""
        yield from self._first_lines(item.text, width, _TASK_LINES, f"{PROMPT_SIGN} ", Role.PROMPT)

    def reply(self, item: ReplyItem, width: int, _depth: int) -> Iterator[Spans]:
        """A reply by the model, as Markdown."""
        for index, line in enumerate(markdown_lines(item.text, width - 2)):
            yield ((Span("● " if not index else "  "), *line)) if line else ()

    def thinking(self, item: ThinkingItem, width: int, _depth: int) -> Iterator[Spans]:
        """Thinking, as one line unless it is shown in full."""
        text = item.text.strip()
        if self._options.thinking is Detail.NONE:
            return
        if not text:
            if self._options.everything:
                yield (Span(f"✻ {_NO_THINKING}", Role.FAINT),)
        elif self._options.everything or self._options.thinking is Detail.FULL:
            yield from self._first_lines(text, width, None, "✻ ", Role.FAINT)
        else:
            more = text.count("\n")
            note = f" ({count(more + 1, 'line')})" if more else ""
            words = one_line(text, max(20, width - 2 - len(note)))
            yield (Span(f"✻ {words}{note}", Role.FAINT),)

    def call(self, item: CallItem, width: int, depth: int) -> Iterator[Spans]:
        """A call, the first lines of its result, and the agents it started."""
        call = item.call
        if self._options.calls is Detail.NONE:
            return
        yield call_line(call, width)
        uncut = self._options.everything or self._options.calls is Detail.FULL
        for index, line in enumerate(call_body(call, width - 4, uncut=uncut)):
            yield (Span("  ⎿ " if not index else "    ", Role.FAINT), *line)
        if call.feedback:
            # The user's text is never cut.
            yield from (
                (Span("  "), *line)
                for line in self._prompt_lines(call.feedback, width - 2, f"{PROMPT_SIGN} ", uncut=True)
            )
        if (notification := self._tasks.end(call)) is not None:
            yield (Span(f"    result: line {notification.entry.place.line}", Role.FAINT),)
        if call.id in self._missing_agents and self._options.agents is not Detail.NONE:
            yield (Span("  "), *missing_agent_line(self._missing_agents[call.id], width - 2))
        for agent in self._placement.under(call):
            yield from self._agent(agent, width, depth)

    def _agent(self, agent: Agent, width: int, depth: int) -> Iterator[Spans]:
        options = self._options
        if options.agents is Detail.NONE or id(agent) in self._shown_agents or not self._is_shown(agent):
            return
        self._shown_agents.add(id(agent))  # a transcript may contain a call several times
        yield (Span("  "), *agent_line(agent, width - 2))
        if options.agents is Detail.FULL and depth < _MAX_DEPTH:
            bar = Span("  │ ", Role.AGENT)
            for line in self._items(
                build_outline(agent, notifications=self._tasks.by_entry), max(40, width - 4), depth + 1
            ):
                yield (bar, *line)
        elif options.agents is Detail.FULL and (more := sum(map(self._is_shown, self._placement.below(agent)))):
            yield (Span(f"    … {count(more, 'nested agent')} not shown", Role.FAINT),)

    def _is_shown(self, agent: Agent) -> bool:
        return agent.side is None or self._options.everything

    def _unlinked_agents(self) -> Iterator[Spans]:
        """The agents that are not linked to a call."""
        options = self._options
        agents = [agent for agent in self._placement.unlinked if self._is_shown(agent)]
        if not agents or options.agents is Detail.NONE:
            return
        yield ()
        yield labelled_rule((Span("agents without a call", Role.FAINT),), options.width)
        for agent in agents:
            yield from self._agent(agent, options.width, 0)
            if agent.link.why:
                yield (Span(f"    {one_line(agent.link.why, options.width - 4)}", Role.FAINT),)

    def output(self, item: OutputItem, width: int, _depth: int) -> Iterator[Spans]:
        """Output of a local command."""
        yield from self._first_lines(item.text, width, _OUTPUT_LINES, "  ⎿ ", Role.FAINT)

    def failure(self, item: FailureItem, width: int, _depth: int) -> Iterator[Spans]:
        """A failed API request."""
        yield from wrap(
            (Span(f"API error: {item.text}", Role.BAD),), width, first=(Span("✗ ", Role.BAD),), rest=(Span("  "),)
        )

    def notice(self, item: NoticeItem, width: int, _depth: int) -> Iterator[Spans]:
        """A notice by Claude Code, on one line."""
        yield _notice_line(item, width)

    def task_update(self, item: TaskUpdateItem, width: int, _depth: int) -> Iterator[Spans]:
        """A notification about a background task: the line of the call that started it, and the start of its answer."""
        notification = item.notification
        call = self._tasks.starting_call(notification)
        where = f"  (started at line {call.place.line})" if call is not None else ""
        before = "◦ background task: "
        words = one_line(task_sentence(notification), max(20, width - len(before) - len(where)))
        yield cut_line((Span(before + words + where, Role.FAINT),), width)
        if (answer := task_answer(notification)) is not None:
            lines = list(markdown_lines(answer, width - 4))
            limit = len(lines) if self._options.everything else _ANSWER_LINES
            for index, line in enumerate(lines[:limit]):
                yield (Span("  ⎿ " if not index else "    ", Role.FAINT), *line)
            if len(lines) > limit:
                yield (Span(f"    … {count(len(lines) - limit, 'more line')}", Role.FAINT),)

    def compaction(self, item: CompactionItem, width: int, _depth: int) -> Iterator[Spans]:
        """A compaction: a labelled rule and the start of its summary."""
        compaction = item.compaction
        line = "─" if compaction.kind is CompactionKind.MICRO else "═"
        label = (Span(describe_compaction(compaction), Role.NOTICE),)
        yield labelled_rule(label, width, line=line, role=Role.NOTICE)
        if compaction.summary is not None:
            yield from self._first_lines(compaction.summary.text, width, 3, "  ", Role.FAINT)

    def branch(self, item: BranchItem, width: int, _depth: int) -> Iterator[Spans]:
        """A marker where the conversation left a branch."""
        number = len(item.branch.entries)
        before = f"⎇ {number:,} {'entry' if number == 1 else 'entries'} abandoned here"
        after = f"  (--branch {item.number})"
        words = one_line(item.text, max(20, width - len(before) - len(after) - 4))
        yield cut_line((Span(before + (f": “{words}”" if words else "") + after, Role.NOTICE),), width)

    def _first_lines(self, text: str, width: int, limit: int | None, sign: str, role: Role) -> Iterator[Spans]:
        """The first lines of a text, wrapped and indented behind a sign."""
        lines = list(plain_lines(text.strip("\n")))
        shown = lines if limit is None or self._options.everything else lines[:limit]
        indent = Span(" " * len(sign))
        for index, line in enumerate(shown):
            space, words = split_indent(line, width)
            first = Span(sign + space, role) if not index else Span(indent.text + space)
            yield from wrap((Span(words, role),), width, first=(first,), rest=(Span(indent.text + space),))
        if len(lines) > len(shown):
            yield (indent, Span(f"… {count(len(lines) - len(shown), 'more line')}", Role.FAINT))


_Renderer = Callable[[_TextRenderer, Any, int, int], Iterator[Spans]]
_RENDERERS: dict[type[Item], _Renderer] = {
    PromptItem: _TextRenderer.prompt,
    TaskItem: _TextRenderer.task,
    ReplyItem: _TextRenderer.reply,
    ThinkingItem: _TextRenderer.thinking,
    CallItem: _TextRenderer.call,
    OutputItem: _TextRenderer.output,
    FailureItem: _TextRenderer.failure,
    NoticeItem: _TextRenderer.notice,
    TaskUpdateItem: _TextRenderer.task_update,
    CompactionItem: _TextRenderer.compaction,
    BranchItem: _TextRenderer.branch,
}


_PROJECT_WIDTH = 14
_ID_WIDTH = 8
_MIN_WIDTH = 20


class EventSource(Struct, frozen=True):
    """Where an item comes from. Empty fields are not shown."""

    session: str = ""
    project: str = ""
    agent: str | None = None


def live_line(item: Item, source: EventSource, when: datetime | None, width: int, zone: tzinfo = UTC) -> Spans:
    """One safe line for `watch`: `09:14:03  55604662  app  ✓ Bash  npm test  3.2s`."""
    before = _line_prefix(source, in_zone(when, zone) if when is not None else None)
    return (*before, *_LINE_RENDERERS[type(item)](item, max(_MIN_WIDTH, width - line_width(before))))


def _line_prefix(source: EventSource, when: datetime | None) -> Spans:
    clock = f"{when.hour:02}:{when.minute:02}:{when.second:02}  " if when is not None else " " * 10
    spans = [Span(clock, Role.FAINT)]
    if source.session:
        spans.append(Span(f"{_pad(plain(source.session[:_ID_WIDTH]), _ID_WIDTH)}  ", Role.CODE))
    if source.project:
        spans.append(Span(f"{_pad(clip_left(plain(source.project), _PROJECT_WIDTH), _PROJECT_WIDTH)}  ", Role.FAINT))
    if source.agent is not None:
        spans.append(Span(f"⎇ {plain(source.agent[:_ID_WIDTH])}  ", Role.AGENT))
    return tuple(spans)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def _signed_line(sign: str, text: str, role: Role, width: int) -> Spans:
    return (Span(f"{sign} {one_line(text, max(_MIN_WIDTH, width - display_width(sign) - 1))}", role),)


def _prompt_line(item: PromptItem, width: int) -> Spans:
    act = item.act
    if act.kind is ActKind.INTERRUPT:
        return (Span("■ interrupted by the user", Role.NOTICE),)
    images = f"  +{count(act.images, 'image')}" if act.images else ""
    return (*_signed_line(act_sign(act.kind), act.text, Role.PROMPT, width - len(images)), Span(images, Role.FAINT))


def _task_line(item: TaskItem, width: int) -> Spans:
    return _signed_line(PROMPT_SIGN, item.text, Role.PROMPT, width)


def _reply_line(item: ReplyItem, width: int) -> Spans:
    return _signed_line("●", item.text, Role.BODY, width)


def _thinking_line(item: ThinkingItem, width: int) -> Spans:
    return _signed_line("✻", item.text.strip() or _NO_THINKING, Role.FAINT, width)


def _call_line(item: CallItem, width: int) -> Spans:
    """A call when it starts or ends, with the start of an error message or the user's feedback to a refusal."""
    if item.call.outcome is Outcome.PENDING:
        # The sign is enough for a call that has just started: leave out the word "pending".
        mark = OUTCOME_MARKS[Outcome.PENDING]
        return (Span(mark.sign, mark.role), *call_line(replace(item.call, outcome=Outcome.OK), width)[1:])
    line = call_line(item.call, width)
    room = width - line_width(line) - 5
    if room < _MIN_WIDTH:
        return line
    if item.call.feedback:
        return (*line, Span(f" · {PROMPT_SIGN} {one_line(item.call.feedback, room)}", Role.PROMPT))
    error = one_line(item.call.output, room) if item.call.outcome is Outcome.ERROR else ""
    return (*line, Span(f" · {error}" if error else "", Role.FAINT))


def _output_line(item: OutputItem, width: int) -> Spans:
    return _signed_line("⎿", item.text, Role.FAINT, width)


def _failure_line(item: FailureItem, width: int) -> Spans:
    return _signed_line("✗", f"API error: {item.text}", Role.BAD, width)


def _notice_line(item: NoticeItem, width: int) -> Spans:
    text = one_line(item.text, max(_MIN_WIDTH, width - len(item.what) - 4))
    return cut_line((Span(f"◦ {item.what}{': ' if text else ''}{text}", Role.FAINT),), width)


def _task_update_line(item: TaskUpdateItem, width: int) -> Spans:
    return _signed_line("◦", f"background task: {task_sentence(item.notification)}", Role.FAINT, width)


def _compaction_line(item: CompactionItem, width: int) -> Spans:
    return _signed_line("═", describe_compaction(item.compaction), Role.NOTICE, width)


_LINE_RENDERERS: dict[type[Item], Callable[[Any, int], Spans]] = {
    PromptItem: _prompt_line,
    TaskItem: _task_line,
    ReplyItem: _reply_line,
    ThinkingItem: _thinking_line,
    CallItem: _call_line,
    OutputItem: _output_line,
    FailureItem: _failure_line,
    NoticeItem: _notice_line,
    TaskUpdateItem: _task_update_line,
    CompactionItem: _compaction_line,
}
