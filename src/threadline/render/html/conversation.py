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
from threadline.model.session import ActKind, Agent, CompactionKind, Session
from threadline.model.text import count, format_duration, short_model_name
from threadline.render import (
    NOT_KEPT,
    AgentDetail,
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
    place_items,
    shorten,
    task_answer,
    task_sentence,
    visible,
)
from threadline.render.html.calls import render_call as drawn_call
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.images import render_images
from threadline.render.html.markdown import markdown_to_html
from threadline.render.html.scene import Scene
from threadline.render.html.sections import Section, split_into_sections


class MessageStats(Struct, frozen=True):
    """One message in numbers: how full the window was, what came out, what it cost (None: no rate is known)."""

    model: str | None = None
    context: int | None = None
    output: int | None = None
    amount: Decimal | None = None


StatsByMessage = Mapping[MessageId, MessageStats]
"""Messages in numbers, by their id."""


_MAX_DEPTH = 6
_MAX_NOTICE, _MAX_TEXT, _MAX_PROSE = 160, 6000, 60_000
"""A prompt or an output with more characters is cut on a page that is not whole; the entry's own page has it all."""
_FENCE = re.compile(r"^ {0,3}```[^\n]*\n(?:.*?^ {0,3}```[ \t]*$|.*\Z)", re.MULTILINE | re.DOTALL)
_MAX_FENCES = 20
_MAX_TAGS = 2400
"""Begins and ends of elements in what is drawn of one text."""


class ConversationRenderer:
    """Draws one agent of a session, with the agents below it in their places.

    `inline` is how many items an agent inside may have to be drawn in place; one that has more is a link (None: every
    one is drawn).
    """

    def __init__(
        self,
        whole: Session,
        agent: Agent,
        scene: Scene,
        *,
        figures: StatsByMessage | None = None,
        news: Iterable[TaskNotification] = (),
        inline: int | None = 30,
    ) -> None:
        self.session = whole
        self.agent = agent
        self.scene = scene
        self._figures = figures or {}
        self._inline = inline
        self._places = AgentPlacement(whole)
        self._not_kept = agents_without_transcript(whole)
        self._tasks = BackgroundTasks(whole, news)
        self._failing = self._failing_calls() if scene.view.errors else frozenset()
        self.items = place_items(agent, scene.view, self._tasks.by_entry, self._failing)
        self.sections = split_into_sections(self.items)
        self._last = _last_items(self.items)
        self._others = _model_changes(self._last, self._figures)

    def _failing_calls(self) -> frozenset[CallId]:
        """The calls whose agents, or agents of theirs, hold something that failed."""
        inside, news = self.scene.view.inside, self._tasks.by_entry
        bad = [agent for agent in self.session.agents if self._is_shown(agent) and place_items(agent, inside, news)]
        starters = {
            str(under.id): (call, agent)
            for agent in (self.session.main, *self.session.agents)
            for call in agent.calls
            for under in self._places.under(call)
        }
        found: set[CallId] = set()
        waiting = [str(agent.id) for agent in bad]
        while waiting:
            call, agent = starters.get(waiting.pop(), (None, None))
            if call is None or agent is None or call.id in found:
                continue
            found.add(call.id)
            if agent.id is not None:
                waiting.append(str(agent.id))
        return frozenset(found)

    def section(self, number: int) -> Markup:
        """What a section holds when it is filled."""
        return self.articles(self.sections[number - 1])

    def articles(self, section: Section) -> Markup:
        """The articles of a section, one after the other."""
        return self._drawn(self.items, range(section.start, section.stop), 0)

    def _drawn(self, items: Sequence[PlacedItem], chosen: range, depth: int) -> Markup:
        """Items one after the other; each knows the one before it, whose time need not be told again."""
        size = len(items)
        return join(self._article(items[at], items[at - 1] if at else None, at + 1, size, depth) for at in chosen)

    @property
    def unlinked(self) -> list[Agent]:
        """The agents that no call leads to, which stand at the end of the main agent's page."""
        if self.agent.id is not None or self.scene.view.agents is AgentDetail.NONE:
            return []
        return [agent for agent in self._places.apart if self._is_shown(agent)]

    def apart(self) -> Markup:
        """The agents that no call leads to, each with the reason."""
        agents = self.unlinked
        if not agents:
            return EMPTY
        drawn = [
            join(
                (
                    self._agent(agent, 0),
                    el("p", shorten(agent.link.why, 300), class_="why") if agent.link.why else EMPTY,
                )
            )
            for agent in agents
        ]
        return el("section", el("h2", "Agents without a call"), *drawn, class_="apart")

    def _article(
        self, placed_item: PlacedItem, before: PlacedItem | None, number: int, size: int, depth: int
    ) -> Markup:
        item = placed_item.item
        head, body = _RENDERERS[type(item)](self, placed_item, depth)
        figure = self._last.get(placed_item.anchor) if depth == 0 else None
        return el(
            "article",
            self._gutter(placed_item, before),
            el("div", head, body, self._figure(figure), *self._problems(item), class_="body"),
            class_=f"item {placed_item.kind}{_item_classes(item)}",
            id=placed_item.anchor,
            tabindex=-1,
            aria_posinset=number if depth == 0 else None,
            aria_setsize=size if depth == 0 else None,
            aria_label=f"{_item_label(placed_item)}, {item.entry.place.line:,}",
        )

    def _gutter(self, placed_item: PlacedItem, before: PlacedItem | None) -> Markup:
        """The time, which is the link to the item, and says where it stands."""
        entry = placed_item.item.entry
        when = entry.timestamp
        label = self.scene.clock(when) if when is not None else "·"
        full = f"line {entry.place.line:,}" + (f" · {self.scene.told(when)}" if when is not None else "")
        clock = el("time", label, datetime=when.isoformat()) if when is not None else label
        is_same = when is not None and before is not None and _minute(before.item) == _minute(placed_item.item)
        said = "at same" if is_same and "turn-start" not in _item_classes(placed_item.item) else "at"
        return el("a", clock, href=self.scene.links.entry(placed_item.anchor), class_=said, title=full)

    def _figure(self, entry: AssistantEntry | None) -> Markup:
        """What the message took, under the last of its items."""
        message = entry.message if entry is not None else None
        figure = self._figures.get(message.id) if message is not None and message.id is not None else None
        if message is None or figure is None:
            return EMPTY
        return el("p", " · ".join(_stats_labels(figure, named=message.id in self._others)), class_="figure")

    def _problems(self, item: Item) -> Iterator[Markup]:
        for problem in item.entry.problems:
            yield el("p", f"{problem.kind}: {shorten(problem.message, 300)}", class_="problem")

    def _is_shown(self, agent: Agent) -> bool:
        return agent.side is None or self.scene.view.everything

    # What follows draws one kind of item each: a heading, and what it says.

    def said(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A person's act; where it begins a turn, its heading."""
        item: Any = placed_item.item
        act = item.act
        if act.kind is ActKind.INTERRUPT:
            return EMPTY, el("p", "interrupted by the person", class_="interrupt")
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

    def _cut(self, text: str, anchor_: str) -> Markup:
        """A text as it was written; one that is very long is cut, and leads to where it is whole."""
        words = visible(text.strip("\n"))
        raw = self.scene.links.raw(anchor_)
        if self.scene.whole or raw is None or len(words) <= _MAX_TEXT:
            return el("span", *_mark_fences(words), class_="text")
        more = el("a", f"{len(words) - _MAX_TEXT:,} more characters", href=raw, class_="more")
        return join((el("span", *_mark_fences(words[:_MAX_TEXT]), class_="text"), more))

    def _prose(self, text: str, anchor_: str) -> Markup:
        """A text in Markdown; one that is as long as a book is cut, and leads to where it is whole."""
        raw = self.scene.links.raw(anchor_)
        if self.scene.whole or raw is None:
            return el("div", markdown_to_html(text), class_="prose")
        much = min(len(text), _MAX_PROSE)
        drawn = markdown_to_html(text[:much])
        while drawn.count("<") > _MAX_TAGS:  # a mark at every word makes more elements than a page may have
            much //= 2
            drawn = markdown_to_html(text[:much])
        if much == len(text):
            return el("div", drawn, class_="prose")
        more = el("a", f"{len(text) - much:,} more characters", href=raw, class_="more")
        return el("div", drawn, more, class_="prose")

    def told(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """An agent's task."""
        item: Any = placed_item.item
        return el("p", "Task", class_="aside"), self._prose(item.text, placed_item.anchor)

    def reply(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """The model's words."""
        item: Any = placed_item.item
        return EMPTY, self._prose(item.text, placed_item.anchor)

    def thought(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """Thinking: folded, its first words on the line."""
        item: Any = placed_item.item
        text = item.text.strip()
        if not text:
            return EMPTY, el("p", "Thinking, of which only the signature was kept", class_="aside")
        line = el("summary", el("span", "Thinking", class_="label"), el("span", shorten(text, 120), class_="told"))
        is_open = self.scene.view.thinking is Detail.FULL
        return EMPTY, el("details", line, self._prose(text, placed_item.anchor), open=is_open)

    def called(self, placed_item: PlacedItem, depth: int) -> tuple[Markup, Markup]:
        """A call, with what the person said to it and the agents it started below."""
        item: Any = placed_item.item
        call: Call = item.call
        return EMPTY, drawn_call(call, placed_item.anchor, self.scene, *self._below(call, depth))

    def _below(self, call: Call, depth: int) -> Iterator[Child]:
        if call.feedback:
            yield el(
                "div", el("span", act_sign("feedback"), class_="sign"), visible(call.feedback), class_="words feedback"
            )
        if (news := self._tasks.end(call)) is not None:
            there = self.scene.links.entry(anchor_of(news.entry, self.agent.id))
            yield el("p", el("a", "see its result", href=there, class_="quiet"), class_="aside")
        if self.scene.view.agents is AgentDetail.NONE:
            return
        if call.id in self._not_kept:
            yield el("p", f"{shorten(self._not_kept[call.id], 160)} {NOT_KEPT}", class_="absent")
        yield from (self._agent(agent, depth) for agent in self._places.under(call) if self._is_shown(agent))

    def _agent(self, agent: Agent, depth: int) -> Markup:
        """An agent in its place: a line, and below it, folded, what it did, or where that can be seen."""
        facts = [count(len(agent.calls), "call"), format_duration(agent_duration(agent)), str(agent.status)]
        page = self.scene.links.agent(agent.id) if agent.id is not None else None
        line = (
            el("span", shorten(agent_title(agent), 160), class_="who"),
            el("span", " · ".join(fact for fact in facts if fact), class_="facts"),
        )
        way = el("a", "open", href=page, class_="whole") if page else EMPTY
        items = (
            place_items(agent, self.scene.view.inside, self._tasks.by_entry, self._failing)
            if depth < _MAX_DEPTH
            else ()
        )
        if depth >= _MAX_DEPTH or (self._inline is not None and len(items) > self._inline):
            return el("div", el("p", *line, class_="line"), way, class_="agent", data_agent=str(agent.id))
        drawn = self._drawn(items, range(len(items)), depth + 1)
        # Whoever asks for what failed asks for what is inside.
        is_open = self.scene.view.agents is AgentDetail.FULL or (self.scene.view.errors and bool(items))
        # A link inside a summary could not be reached by those who hear the page: it stands beside.
        folded = el("details", el("summary", *line, class_="line"), drawn, open=is_open)
        return el("div", folded, way, class_="agent", data_agent=str(agent.id))

    def output(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """What a local command printed."""
        item: Any = placed_item.item
        return EMPTY, el("pre", self._cut(item.text, placed_item.anchor), class_="output")

    def failed(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A request that failed."""
        item: Any = placed_item.item
        return EMPTY, el("p", el("b", "API error"), " ", shorten(item.text, 2000))

    def notice(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A line of the program's own; what is long is folded."""
        item: Any = placed_item.item
        label = el("span", shorten(item.what, 60), class_="label")
        text = item.text.strip()
        if len(text) <= _MAX_NOTICE and "\n" not in text:
            return EMPTY, el("p", label, " ", visible(text))
        line = el("summary", label, " ", el("span", shorten(text, 140), class_="told"))
        return EMPTY, el("details", line, el("pre", self._cut(text, placed_item.anchor), class_="output"))

    def ended(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """What became of a background task."""
        item: Any = placed_item.item
        news: TaskNotification = item.news
        call = self._tasks.starting_call(news)
        where: Child = EMPTY
        if call is not None:
            there = self.scene.links.entry(anchor_of(call.entry, call.agent))
            where = el("a", "show the call", href=there, class_="quiet")
        line = (el("span", "background task", class_="label"), " ", shorten(task_sentence(news), 300), " ", where)
        said = task_answer(news)
        if said is None:
            return EMPTY, el("p", *line)
        return EMPTY, el("details", el("summary", *line), self._prose(said, placed_item.anchor))

    def compacted(self, placed_item: PlacedItem, _depth: int) -> tuple[Markup, Markup]:
        """A compaction: a line across, and its summary, folded."""
        item: Any = placed_item.item
        made = item.compaction
        what = "Old results cleared" if made.kind is CompactionKind.MICRO else "Compacted"
        how = f" ({shorten(made.trigger, 40)})" if made.trigger else ""
        sizes = [f"{size:,}" for size in (made.tokens_before, made.tokens_after) if size is not None]
        tokens = f" · {' → '.join(sizes)} tokens" if sizes else ""
        head = el("h2", f"{what}{how}{tokens}")
        if made.summary is None or not made.summary.text.strip():
            return head, EMPTY
        return head, el("details", el("summary", "Summary"), self._prose(made.summary.text, placed_item.anchor))

    def left(self, placed_item: PlacedItem, depth: int) -> tuple[Markup, Markup]:
        """Where a branch was left, which leads to it."""
        item: Any = placed_item.item
        if depth == 0 and item.number == self.scene.view.branch:
            return EMPTY, el("p", "this branch begins here")
        number = len(item.branch.entries)
        said = f"{number:,} {'entry was' if number == 1 else 'entries were'} left here"
        words = shorten(item.text, 140)
        there = self.scene.links.branch(item.number) if depth == 0 and self.agent.id is None else None
        label = el("a", f"branch {item.number}", href=there) if there else f"branch {item.number}"
        return EMPTY, el("p", said, f": “{words}” " if words else " ", label)


_Renderer = Callable[[ConversationRenderer, PlacedItem, int], tuple[Markup, Markup]]
_RENDERERS: dict[type[Item], _Renderer] = {
    PromptItem: ConversationRenderer.said,
    TaskItem: ConversationRenderer.told,
    ReplyItem: ConversationRenderer.reply,
    ThinkingItem: ConversationRenderer.thought,
    CallItem: ConversationRenderer.called,
    OutputItem: ConversationRenderer.output,
    FailureItem: ConversationRenderer.failed,
    NoticeItem: ConversationRenderer.notice,
    TaskUpdateItem: ConversationRenderer.ended,
    CompactionItem: ConversationRenderer.compacted,
    BranchItem: ConversationRenderer.left,
}
_KIND_LABELS = {"prompt": "Prompt", "task": "Task", "reply": "Reply", "thinking": "Thinking", "call": "Call"}


def _item_label(placed_item: PlacedItem) -> str:
    """What a screen reader calls an item: its kind and its line."""
    item = placed_item.item
    what = _KIND_LABELS.get(placed_item.kind, placed_item.kind.capitalize())
    return f"{what} {shorten(item.call.tool, 60)}, line" if isinstance(item, CallItem) else f"{what}, line"


def _mark_fences(text: str) -> Iterator[Child]:
    """A text as it was written, with what stands between fences apart: that is quoted, and not said."""
    done = 0
    for found in islice(_FENCE.finditer(text), _MAX_FENCES):
        yield text[done : found.start()]
        yield el("span", found.group(), class_="fence")
        done = found.end()
    yield text[done:]


def _minute(item: Item) -> str | None:
    when = item.entry.timestamp
    return when.strftime("%Y-%m-%d %H:%M") if when is not None else None


def _item_classes(item: Item) -> str:
    if isinstance(item, PromptItem):
        return f" {item.act.kind}" + (" turn-start" if item.turn is not None else "")
    return f" {item.call.outcome}" if isinstance(item, CallItem) else ""


def _stats_labels(figure: MessageStats, *, named: bool) -> Iterator[str]:
    if figure.model and named:
        yield shorten(short_model_name(figure.model), 60)
    if figure.context is not None:
        yield f"{figure.context:,} in context"
    if figure.output is not None:
        yield f"{figure.output:,} out"
    if figure.amount is not None:
        yield f"${figure.amount:.4f}"


def _last_items(items: Sequence[PlacedItem]) -> dict[str, AssistantEntry]:
    """The last item of each message, by its anchor: there its figures stand."""
    last: dict[str, tuple[str, AssistantEntry]] = {}
    for placed_item in items:
        entry = placed_item.item.entry
        if isinstance(entry, AssistantEntry) and entry.message is not None and entry.message.id is not None:
            last[entry.message.id] = (placed_item.anchor, entry)
    return dict(last.values())


def _model_changes(last: Mapping[str, AssistantEntry], figures: StatsByMessage) -> frozenset[str]:
    """The messages whose model is not that of the one before: only there it is worth telling."""
    changed: set[str] = set()
    before: str | None = None
    for entry in last.values():
        message = entry.message
        figure = figures.get(message.id) if message is not None and message.id is not None else None
        if message is None or message.id is None or figure is None or figure.model is None:
            continue
        if figure.model != before:
            changed.add(message.id)
        before = figure.model
    return frozenset(changed)
