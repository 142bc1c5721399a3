"""Render an agent's conversation as HTML articles, with the agents it started in their places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry
from threadline.model.places import CallId, MessageId
from threadline.model.session import ActKind, Agent, Session
from threadline.model.text import count, format_duration, short_model_name
from threadline.render import (
    NO_TRANSCRIPT,
    AgentPlacement,
    BackgroundTasks,
    BranchItem,
    CallItem,
    CompactionItem,
    Detail,
    FailureItem,
    Item,
    NoticeItem,
    OutputItem,
    PlacedItem,
    PromptItem,
    ReplyItem,
    TaskItem,
    TaskNotification,
    TaskUpdateItem,
    ThinkingItem,
    act_sign,
    agent_duration,
    agent_title,
    agents_without_transcript,
    anchor_of,
    describe_compaction,
    place_items,
    shorten,
    task_answer,
    task_sentence,
    visible,
)
from threadline.render.html.calls import render_call
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.images import render_images
from threadline.render.html.markdown import markdown_to_html
from threadline.render.html.sections import PlaceLinks, Scene, Section, split_into_sections


class MessageStats(Struct, frozen=True):
    """Figures of one message: tokens in context, output tokens, and cost (None if no price is known)."""

    model: str | None = None
    context: int | None = None
    output: int | None = None
    amount: Decimal | None = None


StatsByMessage = Mapping[MessageId, MessageStats]
"""Figures by message id."""


_MAX_DEPTH = 6
_MAX_NOTICE, _MAX_TEXT, _MAX_PROSE = 160, 6000, 60_000
"""Longer texts are cut, unless the scene is uncut. The entry's own page has the full text."""
_FENCE = re.compile(r"^ {0,3}```[^\n]*\n(?:.*?^ {0,3}```[ \t]*$|.*\Z)", re.MULTILINE | re.DOTALL)
_MAX_FENCES = 20
_MAX_TAGS = 2400
"""The maximum number of start and end tags for one text."""


class ConversationRenderer:
    """Renders one agent of a session. The agents that it started are below their calls.

    An agent with more than `inline` items is rendered as a link (None: every agent is rendered in place).
    """

    def __init__(
        self,
        session: Session,
        agent: Agent,
        scene: Scene,
        *,
        stats: StatsByMessage | None = None,
        notifications: Iterable[TaskNotification] = (),
        inline: int | None = 30,
    ) -> None:
        self.session = session
        self.agent = agent
        self.scene = scene
        self._stats = stats or {}
        self._inline = inline
        self._placement = AgentPlacement(session)
        self._missing_agents = agents_without_transcript(session)
        self._tasks = BackgroundTasks(session, notifications)
        self._places = PlaceLinks(session, scene)
        self._failing = self._failing_calls() if scene.view.errors else frozenset()
        self.items = place_items(agent, scene.view, self._tasks.by_entry, self._failing)
        self.sections = split_into_sections(self.items)
        self._last_entries = _last_items(self.items)
        self._model_changes_at = _model_changes(self._last_entries, self._stats)

    def _failing_calls(self) -> frozenset[CallId]:
        """The calls whose agents contain a failure, directly or in agents that they started."""
        inside, notifications = self.scene.view.inside, self._tasks.by_entry
        failed_agents = [
            agent
            for agent in self.session.agents
            if self._is_shown(agent) and place_items(agent, inside, notifications)
        ]
        starters = {
            str(under.id): (call, agent)
            for agent in (self.session.main, *self.session.agents)
            for call in agent.calls
            for under in self._placement.under(call)
        }
        failing: set[CallId] = set()
        pending = [str(agent.id) for agent in failed_agents]
        while pending:
            call, agent = starters.get(pending.pop(), (None, None))
            if call is None or agent is None or call.id in failing:
                continue
            failing.add(call.id)
            if agent.id is not None:
                pending.append(str(agent.id))
        return frozenset(failing)

    def section(self, number: int) -> Markup:
        """The content of a section, by its number."""
        return self.articles(self.sections[number - 1])

    def articles(self, section: Section) -> Markup:
        """The articles of a section."""
        return self._articles(self.items, range(section.start, section.stop), 0)

    def _articles(self, items: Sequence[PlacedItem], chosen: range, depth: int) -> Markup:
        """Render items. Each is rendered with the one before it, so that an equal time is not repeated."""
        size = len(items)
        return join(
            self._article(items[index], items[index - 1] if index else None, index + 1, size, depth) for index in chosen
        )

    def first_articles(self, limit: int) -> Markup:
        """The first articles, for showing below the call that started the agent."""
        return self._articles(self.items, range(min(limit, len(self.items))), 1)

    @property
    def unlinked(self) -> list[Agent]:
        """The agents that are not linked to a call. They are shown at the end of the main agent's page."""
        view = self.scene.view
        if self.agent.id is not None or view.agents is Detail.NONE or view.has_turn_range:
            return []
        return [agent for agent in self._placement.unlinked if self._is_shown(agent)]

    def unlinked_agents(self) -> Markup:
        """A section with the agents that are not linked to a call, each with the reason."""
        agents = self.unlinked
        if not agents:
            return EMPTY
        html = [
            join(
                (
                    self._agent(agent, 0),
                    el("p", shorten(agent.link.why, 300), class_="reason") if agent.link.why else EMPTY,
                )
            )
            for agent in agents
        ]
        return el("section", el("h2", "Agents without a call"), *html, class_="unlinked-agents")

    def _article(
        self, placed_item: PlacedItem, before: PlacedItem | None, number: int, size: int, depth: int
    ) -> Markup:
        item = placed_item.item
        head, body = _RENDERERS[type(item)](self, placed_item, depth)
        stats_entry = self._last_entries.get(placed_item.anchor) if depth == 0 else None
        return el(
            "article",
            self._gutter(placed_item, before),
            el("div", head, body, self._stats_line(stats_entry), *self._problems(item), class_="body"),
            class_=f"item {placed_item.kind}{_item_classes(item)}",
            id=placed_item.anchor,
            tabindex=-1,
            aria_posinset=number if depth == 0 else None,
            aria_setsize=size if depth == 0 else None,
            aria_label=f"{_item_label(placed_item)}, {item.entry.place.line:,}",
        )

    def _gutter(self, placed_item: PlacedItem, before: PlacedItem | None) -> Markup:
        """The time of an item, as a permalink. Its title contains the line number."""
        entry = placed_item.item.entry
        when = entry.timestamp
        label = self.scene.clock(when) if when is not None else "·"
        full = f"line {entry.place.line:,}" + (f" · {self.scene.format_time(when)}" if when is not None else "")
        clock = el("time", label, datetime=when.isoformat()) if when is not None else label
        is_same = when is not None and before is not None and _minute(before.item) == _minute(placed_item.item)
        classes = "at same" if is_same and "turn-start" not in _item_classes(placed_item.item) else "at"
        return el("a", clock, href=self.scene.links.entry(placed_item.anchor), class_=classes, title=full)

    def _stats_line(self, entry: AssistantEntry | None) -> Markup:
        """The figures of a message, shown below its last item."""
        message = entry.message if entry is not None else None
        stats = self._stats.get(message.id) if message is not None and message.id is not None else None
        if message is None or stats is None:
            return EMPTY
        return el("p", " · ".join(_stats_labels(stats, named=message.id in self._model_changes_at)), class_="figure")

    def _problems(self, item: Item) -> Iterator[Markup]:
        for problem in item.entry.problems:
            yield el("p", f"{problem.kind}: {shorten(problem.message, 300)}", class_="problem")

    def _is_shown(self, agent: Agent) -> bool:
        return agent.side is None or self.scene.view.everything

    # Each method below renders one kind of item and returns its heading and its body.

    def prompt(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """An act of the person. If it starts a turn, it has the turn's heading."""
        item: Any = placed_item.item
        act = item.act
        if act.kind is ActKind.INTERRUPT:
            return EMPTY, el("p", "interrupted by the user", class_="interrupt")
        head = el("h2", f"Turn {item.turn}", class_="turn") if item.turn is not None else EMPTY
        marks = [
            el("p", "typed while the model was working", class_="aside") if act.kind is ActKind.STEERING else EMPTY,
            render_images(item.entry, placed_item.anchor, self.scene) if act.images else EMPTY,
        ]
        if act.kind is ActKind.PLAN:
            plan = self._prose(act.text, placed_item.anchor)
            return head, el("div", el("p", "Plan", class_="aside"), plan, class_="words plan")
        sign = el("span", act_sign(act.kind), class_="sign", aria_hidden="true")
        return head, join((el("div", sign, self._cut(act.text, placed_item.anchor), class_="words"), *marks))

    def _cut(self, text: str, anchor: str) -> Markup:
        """A text as it was written. A very long one is cut and links to the full text."""
        shown = visible(text.strip("\n"))
        raw = self.scene.links.raw(anchor)
        if self.scene.uncut or raw is None or len(shown) <= _MAX_TEXT:
            return el("span", *_mark_fences(shown), class_="text")
        more = el("a", f"{len(shown) - _MAX_TEXT:,} more characters", href=raw, class_="more")
        return join((el("span", *_mark_fences(shown[:_MAX_TEXT]), class_="text"), more))

    def _prose(self, text: str, anchor: str) -> Markup:
        """A text as Markdown. A very long one is cut and links to the full text."""
        raw = self.scene.links.raw(anchor)
        if self.scene.uncut or raw is None:
            return el("div", markdown_to_html(text), class_="prose")
        length = min(len(text), _MAX_PROSE)
        html = markdown_to_html(text[:length])
        while html.count("<") > _MAX_TAGS:  # markup at every word would create too many elements
            length //= 2
            html = markdown_to_html(text[:length])
        if length == len(text):
            return el("div", html, class_="prose")
        more = el("a", f"{len(text) - length:,} more characters", href=raw, class_="more")
        return el("div", html, more, class_="prose")

    def task(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """The task of an agent."""
        item: Any = placed_item.item
        return el("p", "Task", class_="aside"), self._prose(item.text, placed_item.anchor)

    def reply(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A reply by the model."""
        item: Any = placed_item.item
        return EMPTY, self._prose(item.text, placed_item.anchor)

    def thinking(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """Thinking, folded. The summary line contains its first words."""
        item: Any = placed_item.item
        text = item.text.strip()
        if not text:
            return EMPTY, el("p", "Thinking (signature only)", class_="aside")
        line = el("summary", el("span", "Thinking", class_="label"), el("span", shorten(text, 120), class_="excerpt"))
        is_open = self.scene.view.thinking is Detail.FULL
        return EMPTY, el("details", line, self._prose(text, placed_item.anchor), open=is_open)

    def call(self, placed_item: PlacedItem, depth: int) -> tuple[Markup, Markup]:
        """A call, with the person's feedback and the agents it started below."""
        item: Any = placed_item.item
        call: Call = item.call
        return EMPTY, render_call(call, self.scene, *self._below(call, depth))

    def _below(self, call: Call, depth: int) -> Iterator[Child]:
        if call.feedback:
            yield el(
                "div", el("span", act_sign("feedback"), class_="sign"), visible(call.feedback), class_="words feedback"
            )
        if (notification := self._tasks.end(call)) is not None:
            address = self.scene.links.entry(self._places.anchor(notification.entry.place))
            yield el("p", el("a", "Result", href=address, class_="quiet"), class_="aside")
        if self.scene.view.agents is Detail.NONE:
            return
        if call.id in self._missing_agents:
            yield el("p", f"{shorten(self._missing_agents[call.id], 160)} {NO_TRANSCRIPT}", class_="absent")
        yield from (self._agent(agent, depth) for agent in self._placement.under(call) if self._is_shown(agent))

    def _agent(self, agent: Agent, depth: int) -> Markup:
        """An agent: a summary line with the agent's items folded below it, or a link to the agent's page."""
        facts = [count(len(agent.calls), "call"), format_duration(agent_duration(agent)), str(agent.status)]
        page = self.scene.links.agent(agent.id) if agent.id is not None else None
        line = (
            el("span", shorten(agent_title(agent), 160), class_="agent-name"),
            el("span", " · ".join(fact for fact in facts if fact), class_="facts"),
        )
        link = el("a", "open", href=page, class_="open-link") if page else EMPTY
        items = (
            place_items(agent, self.scene.view.inside, self._tasks.by_entry, self._failing)
            if depth < _MAX_DEPTH
            else ()
        )
        is_long = self._inline is not None and len(items) > self._inline
        if depth >= _MAX_DEPTH or (is_long and page is None):
            return el("div", el("p", *line, class_="line"), link, class_="agent", data_agent=str(agent.id))
        if is_long and page is not None:
            path, mark, query = page.partition("?")
            source = f"{path}/entries{mark}{query}"
            place = el("p", el("a", f"Show {count(len(items), 'entry', 'entries')}", href=page), class_="aside")
            unloaded = el("details", el("summary", *line, class_="line"), place, data_src=source)
            return el("div", unloaded, link, class_="agent", data_agent=str(agent.id))
        html = self._articles(items, range(len(items)), depth + 1)
        # A filter for failures opens the agents that contain them.
        is_open = self.scene.view.agents is Detail.FULL or (self.scene.view.errors and bool(items))
        # Screen readers cannot reach a link inside a summary, so the link is placed beside it.
        folded = el("details", el("summary", *line, class_="line"), html, open=is_open)
        return el("div", folded, link, class_="agent", data_agent=str(agent.id))

    def output(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """Output of a local command."""
        item: Any = placed_item.item
        return EMPTY, el("pre", self._cut(item.text, placed_item.anchor), class_="output")

    def failure(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A failed API request."""
        item: Any = placed_item.item
        return EMPTY, el("p", el("b", "API error"), " ", shorten(item.text, 2000))

    def notice(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A notice by Claude Code. A long one is folded."""
        item: Any = placed_item.item
        label = el("span", shorten(item.what, 60), class_="label")
        text = item.text.strip()
        if len(text) <= _MAX_NOTICE and "\n" not in text:
            return EMPTY, el("p", label, " ", visible(text))
        line = el("summary", label, " ", el("span", shorten(text, 140), class_="excerpt"))
        return EMPTY, el("details", line, el("pre", self._cut(text, placed_item.anchor), class_="output"))

    def task_update(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A notification about a background task, with its answer folded."""
        item: Any = placed_item.item
        notification: TaskNotification = item.notification
        call = self._tasks.starting_call(notification)
        where: Child = EMPTY
        if call is not None:
            address = self.scene.links.entry(anchor_of(call.entry, call.agent))
            where = el("a", "show the call", href=address, class_="quiet")
        line = (
            el("span", "background task", class_="label"),
            " ",
            shorten(task_sentence(notification), 300),
            " ",
            where,
        )
        answer = task_answer(notification)
        if answer is None:
            return EMPTY, el("p", *line)
        return EMPTY, el("details", el("summary", *line), self._prose(answer, placed_item.anchor))

    def compaction(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A compaction: a heading and the folded summary."""
        item: Any = placed_item.item
        compaction = item.compaction
        label = describe_compaction(compaction)
        head = el("h2", shorten(label[:1].upper() + label[1:], 160))
        if compaction.summary is None or not compaction.summary.text.strip():
            return head, EMPTY
        return head, el("details", el("summary", "Summary"), self._prose(compaction.summary.text, placed_item.anchor))

    def branch(self, placed_item: PlacedItem, depth: int) -> tuple[Markup, Markup]:
        """A marker where the conversation left a branch, with a link to the branch."""
        item: Any = placed_item.item
        if depth == 0 and item.number == self.scene.view.branch:
            return EMPTY, el("p", "this branch begins here")
        number = len(item.branch.entries)
        label_text = f"Rewound here: {count(number, 'entry', 'entries')} dropped"
        words = shorten(item.text, 140)
        at = anchor_of(item.branch.first, self.agent.id)
        address = self.scene.links.branch(item.number, at) if depth == 0 and self.agent.id is None else None
        label = el("a", f"View branch {item.number}", href=address) if address else f"branch {item.number}"
        return EMPTY, el("p", label_text, f": “{words}” " if words else " ", label)


_Renderer = Callable[[ConversationRenderer, PlacedItem, int], tuple[Markup, Markup]]
_RENDERERS: dict[type[Item], _Renderer] = {
    PromptItem: ConversationRenderer.prompt,
    TaskItem: ConversationRenderer.task,
    ReplyItem: ConversationRenderer.reply,
    ThinkingItem: ConversationRenderer.thinking,
    CallItem: ConversationRenderer.call,
    OutputItem: ConversationRenderer.output,
    FailureItem: ConversationRenderer.failure,
    NoticeItem: ConversationRenderer.notice,
    TaskUpdateItem: ConversationRenderer.task_update,
    CompactionItem: ConversationRenderer.compaction,
    BranchItem: ConversationRenderer.branch,
}
_KIND_LABELS = {"prompt": "Prompt", "task": "Task", "reply": "Reply", "thinking": "Thinking", "call": "Call"}


def _item_label(placed_item: PlacedItem) -> str:
    """The start of an item's ARIA label: its kind, and its tool if it is a call. The line number follows."""
    item = placed_item.item
    what = _KIND_LABELS.get(placed_item.kind, placed_item.kind.capitalize())
    return f"{what} {shorten(item.call.tool, 60)}, line" if isinstance(item, CallItem) else f"{what}, line"


def _mark_fences(text: str) -> Iterator[Child]:
    """A text as it was written. Fenced blocks are separate elements, because they are quotes and not prose."""
    done = 0
    for fence in islice(_FENCE.finditer(text), _MAX_FENCES):
        yield text[done : fence.start()]
        yield el("span", fence.group(), class_="fence")
        done = fence.end()
    yield text[done:]


def _minute(item: Item) -> str | None:
    when = item.entry.timestamp
    return when.strftime("%Y-%m-%d %H:%M") if when is not None else None


def _item_classes(item: Item) -> str:
    if isinstance(item, PromptItem):
        return f" {item.act.kind}" + (" turn-start" if item.turn is not None else "")
    return f" {item.call.outcome}" if isinstance(item, CallItem) else ""


def _stats_labels(stats: MessageStats, *, named: bool) -> Iterator[str]:
    if stats.model and named:
        yield shorten(short_model_name(stats.model), 60)
    if stats.context is not None:
        yield f"{stats.context:,} in context"
    if stats.output is not None:
        yield f"{stats.output:,} out"
    if stats.amount is not None:
        yield f"${stats.amount:.4f}"


def _last_items(items: Sequence[PlacedItem]) -> dict[str, AssistantEntry]:
    """The last item of each message, by anchor. The message's figures are shown there."""
    last: dict[str, tuple[str, AssistantEntry]] = {}
    for placed_item in items:
        entry = placed_item.item.entry
        if isinstance(entry, AssistantEntry) and entry.message is not None and entry.message.id is not None:
            last[entry.message.id] = (placed_item.anchor, entry)
    return dict(last.values())


def _model_changes(last: Mapping[str, AssistantEntry], stats: StatsByMessage) -> frozenset[str]:
    """The messages whose model differs from that of the message before. Only these show the model's name."""
    changed: set[str] = set()
    before: str | None = None
    for entry in last.values():
        message = entry.message
        message_stats = stats.get(message.id) if message is not None and message.id is not None else None
        if message is None or message.id is None or message_stats is None or message_stats.model is None:
            continue
        if message_stats.model != before:
            changed.add(message.id)
        before = message_stats.model
    return frozenset(changed)
