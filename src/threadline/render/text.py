"""A session as text for a terminal: it reads as the conversation did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from threadline.model.act import ActKind
from threadline.model.agent import Agent
from threadline.model.entries import ChainEntry
from threadline.model.session import Session
from threadline.model.thread import Branch, CompactionKind
from threadline.render.agents import Places, absent, not_kept
from threadline.render.agents import headline as agent_line
from threadline.render.call_text import body, headline
from threadline.render.figures import count, model_name, moment
from threadline.render.layout import cut, indented, rule, wrap
from threadline.render.markdown import markdown
from threadline.render.options import Agents, Options
from threadline.render.outline import (
    Called,
    Compacted,
    Ended,
    Failed,
    Item,
    Left,
    News,
    Notice,
    Output,
    Reply,
    Said,
    Thought,
    Told,
    outline,
)
from threadline.render.style import ASKS, Role, Span, Spans, Style, act_sign
from threadline.render.tasks import Tasks, answer, sentence
from threadline.render.terminal_text import one_line, plain_lines

_LONG_PROMPT, _LONG_OUTPUT, _LONG_TASK, _LONG_ANSWER = 60, 8, 6, 6
# Items that stand close together; a blank line goes before all others.
_CLOSE = (Called, Thought, Notice, Ended, Output, Failed)
_DEEPEST = 12


def session(
    whole: Session, options: Options | None = None, news: Iterable[News] = (), told: Iterable[str] = ()
) -> Iterator[str]:
    """The lines of a session, each as it is asked for.

    `news` is what became of its background tasks, `told` is what else its head says.
    """
    chosen = options or Options()
    style = Style(colour=chosen.colour)
    for line in _Text(whole, chosen, news, told).lines():
        yield style.line(line)


def leading(agent: Agent, *, thread: bool = False, branch: int | None = None) -> Sequence[ChainEntry]:
    """The entries that lead: the conversation, the thread alone, or the way to a branch and the branch itself."""
    if branch is not None:
        return _to_branch(agent, agent.branches[branch - 1])
    return agent.thread.entries if thread else agent.conversation


def _is_chosen(number: int, options: Options) -> bool:
    if options.turn is not None:
        return number == options.turn
    first, last = options.from_turn, options.to_turn
    return (first is None or number >= first) and (last is None or number <= last)


def _to_branch(agent: Agent, branch: Branch) -> list[ChainEntry]:
    before: list[ChainEntry] = []
    for entry in agent.conversation:
        before.append(entry)
        if entry.uuid is not None and entry.uuid == branch.fork:
            return [*before, *branch.entries]
    return list(branch.entries)


class _Text:
    """Draws one session."""

    def __init__(self, whole: Session, options: Options, news: Iterable[News], told: Iterable[str]) -> None:
        self._session = whole
        self._told = told
        self._options = options
        self._places = Places(whole)
        self._drawn: set[int] = set()
        self._not_kept = not_kept(whole)
        self._tasks = Tasks(whole, news)

    def lines(self) -> Iterator[Spans]:
        """All lines, the session's own first."""
        options, main = self._options, self._session.main
        yield from self._facts()
        chosen = [one for one in main.turns if _is_chosen(one.number, options)]
        part = chosen if len(chosen) < len(main.turns) else []
        items = outline(
            main,
            leading(main, thread=options.thread, branch=options.branch),
            beside=options.branch is None,
            within=[entry for turn in part for entry in turn.entries],
            news=self._tasks.by_entry,
        )
        yield from self._items(items, options.width, 0)
        if not part and options.branch is None:
            yield from self._unlinked()

    def _facts(self) -> Iterator[Spans]:
        one = self._session
        width = self._options.width
        yield from wrap((Span(one.title.text or "(no title)", Role.TITLE),), width)
        facts = [
            str(one.id or ""),
            one.cwds[0] if one.cwds else "",
            ", ".join(map(model_name, one.models)),
            moment(one.started) + (" (UTC)" if one.started else ""),
            "kept" if one.kept else "",
        ]
        yield from wrap((Span(" · ".join(fact for fact in facts if fact), Role.FAINT),), width)
        for fact in self._told:
            yield from wrap((Span(fact, Role.FAINT),), width)
        for link in one.continuations:
            way = "goes on in" if link.forward else "goes on from"
            yield from wrap((Span(f"{way} {link.session or 'another session'} ({link.kind})", Role.FAINT),), width)

    def _items(self, items: Iterator[Item], width: int, depth: int) -> Iterator[Spans]:
        before: Item | None = None
        for item in items:
            if isinstance(item, Notice) and item.quiet and not self._options.everything:
                continue
            first = True
            for line in _DRAW[type(item)](self, item, width, depth):
                if first and not (isinstance(item, _CLOSE) and isinstance(before, _CLOSE)):
                    yield ()
                first = False
                yield line
            before = before if first else item

    def said(self, item: Said, width: int, _depth: int) -> Iterator[Spans]:
        """A person's act."""
        act = item.act
        if act.kind is ActKind.INTERRUPT:
            yield (Span("■ interrupted by the person", Role.NOTICE),)
            return
        if act.kind is ActKind.FEEDBACK and item.turn is None:
            return  # it stands under the call that it refused
        if item.turn is not None:
            label = f"turn {item.turn}" + (f" · {moment(act.timestamp)}" if act.timestamp else "")
            yield rule((Span(label, Role.FAINT),), width)
        if act.kind is ActKind.PLAN:
            yield (Span("◆ plan", Role.PROMPT),)
        yield from self._words(act.text, width, "  " if act.kind is ActKind.PLAN else f"{act_sign(act.kind)} ")
        if act.images:
            yield (Span("  " + " ".join(["(image)"] * act.images), Role.FAINT),)
        if act.kind is ActKind.STEERING:
            yield (Span("  (typed while the model was working)", Role.FAINT),)

    def _words(self, text: str, width: int, sign: str, *, whole: bool = False) -> Iterator[Spans]:
        lines = list(plain_lines(text.strip("\n")))
        most = len(lines) if whole or self._options.everything or self._options.uncut else _LONG_PROMPT
        for at, line in enumerate(lines[:most]):
            space, words = indented(line, width)
            first = Span((sign if not at else "  ") + space, Role.PROMPT)
            yield from wrap((Span(words, Role.PROMPT),), width, first=(first,), rest=(Span("  " + space),))
        if len(lines) > most:
            yield (Span(f"  … {count(len(lines) - most, 'more line')}", Role.FAINT),)

    def told(self, item: Told, width: int, _depth: int) -> Iterator[Spans]:
        """An agent's task."""
        yield from self._few(item.text, width, _LONG_TASK, f"{ASKS} ", Role.PROMPT)

    def reply(self, item: Reply, width: int, _depth: int) -> Iterator[Spans]:
        """The model's words."""
        for at, line in enumerate(markdown(item.text, width - 2)):
            yield ((Span("● " if not at else "  "), *line)) if line else ()

    def thought(self, item: Thought, width: int, _depth: int) -> Iterator[Spans]:
        """Thinking: one line of it."""
        text = item.text.strip()
        if self._options.thinking == "none":
            return
        if not text:
            if self._options.everything:
                yield (Span("✻ thinking, of which only the signature was kept", Role.FAINT),)
        elif self._options.everything or self._options.thinking == "full":
            yield from self._few(text, width, None, "✻ ", Role.FAINT)
        else:
            more = text.count("\n")
            note = f" ({count(more + 1, 'line')})" if more else ""
            words = one_line(text, max(20, width - 2 - len(note)))
            yield (Span(f"✻ {words}{note}", Role.FAINT),)

    def called(self, item: Called, width: int, depth: int) -> Iterator[Spans]:
        """A call, a few lines of what came of it, and the agents it started."""
        call = item.call
        if self._options.calls == "none":
            return
        yield headline(call, width)
        whole = self._options.everything or self._options.calls == "full"
        for at, line in enumerate(body(call, width - 4, whole=whole)):
            yield (Span("  ⎿ " if not at else "    ", Role.FAINT), *line)
        if call.feedback:
            # A person's own words are never cut, be they few or many.
            yield from ((Span("  "), *line) for line in self._words(call.feedback, width - 2, f"{ASKS} ", whole=True))
        if (news := self._tasks.end(call)) is not None:
            yield (Span(f"    what became of it: line {news.entry.place.line:,}", Role.FAINT),)
        if call.id in self._not_kept and self._options.agents is not Agents.NONE:
            yield (Span("  "), *absent(self._not_kept[call.id], width - 2))
        for agent in self._places.under(call):
            yield from self._agent(agent, width, depth)

    def _agent(self, agent: Agent, width: int, depth: int) -> Iterator[Spans]:
        options = self._options
        if options.agents is Agents.NONE or id(agent) in self._drawn or not self._shown(agent):
            return
        self._drawn.add(id(agent))  # a call may stand in a transcript several times
        yield (Span("  "), *agent_line(agent, width - 2))
        if options.agents is Agents.FULL and depth < _DEEPEST:
            bar = Span("  │ ", Role.AGENT)
            for line in self._items(outline(agent, news=self._tasks.by_entry), max(40, width - 4), depth + 1):
                yield (bar, *line)
        elif options.agents is Agents.FULL and (more := sum(map(self._shown, self._places.below(agent)))):
            yield (Span(f"    … {count(more, 'agent')} deeper", Role.FAINT),)

    def _shown(self, agent: Agent) -> bool:
        return agent.side is None or self._options.everything

    def _unlinked(self) -> Iterator[Spans]:
        """The agents that no call leads to."""
        options = self._options
        agents = [agent for agent in self._places.apart if self._shown(agent)]
        if not agents or options.agents is Agents.NONE:
            return
        yield ()
        yield rule((Span("agents without a call", Role.FAINT),), options.width)
        for agent in agents:
            yield from self._agent(agent, options.width, 0)
            if agent.link.why:
                yield (Span(f"    {one_line(agent.link.why, options.width - 4)}", Role.FAINT),)

    def output(self, item: Output, width: int, _depth: int) -> Iterator[Spans]:
        """What a local command printed."""
        yield from self._few(item.text, width, _LONG_OUTPUT, "  ⎿ ", Role.FAINT)

    def failed(self, item: Failed, width: int, _depth: int) -> Iterator[Spans]:
        """A request that failed."""
        yield from wrap(
            (Span(f"API error: {item.text}", Role.BAD),), width, first=(Span("✗ ", Role.BAD),), rest=(Span("  "),)
        )

    def notice(self, item: Notice, width: int, _depth: int) -> Iterator[Spans]:
        """A line of the program's own."""
        text = one_line(item.text, max(20, width - len(item.what) - 4))
        yield cut((Span(f"◦ {item.what}{': ' if text else ''}{text}", Role.FAINT),), width)

    def ended(self, item: Ended, width: int, _depth: int) -> Iterator[Spans]:
        """What became of a background task: where it was started, and what it answered, a few lines of it."""
        news = item.news
        call = self._tasks.starter(news)
        where = f"  (started at line {call.place.line:,})" if call is not None else ""
        before = "◦ background task: "
        words = one_line(sentence(news), max(20, width - len(before) - len(where)))
        yield cut((Span(before + words + where, Role.FAINT),), width)
        if (said := answer(news)) is not None:
            lines = list(markdown(said, width - 4))
            most = len(lines) if self._options.everything else _LONG_ANSWER
            for at, line in enumerate(lines[:most]):
                yield (Span("  ⎿ " if not at else "    ", Role.FAINT), *line)
            if len(lines) > most:
                yield (Span(f"    … {count(len(lines) - most, 'more line')}", Role.FAINT),)

    def compacted(self, item: Compacted, width: int, _depth: int) -> Iterator[Spans]:
        """A compaction: a line across, and how its summary begins."""
        one = item.compaction
        micro = one.kind is CompactionKind.MICRO
        what = "old results cleared" if micro else "compacted"
        how = f" ({one.trigger})" if one.trigger else ""
        sizes = [f"{size:,}" for size in (one.tokens_before, one.tokens_after) if size is not None]
        tokens = f" · {' → '.join(sizes)} tokens" if sizes else ""
        yield rule((Span(what + how + tokens, Role.NOTICE),), width, line="─" if micro else "═", role=Role.NOTICE)
        if one.summary is not None:
            yield from self._few(one.summary.text, width, 3, "  ", Role.FAINT)

    def left(self, item: Left, width: int, _depth: int) -> Iterator[Spans]:
        """Where a branch was left."""
        number = len(item.branch.entries)
        before = f"⎇ {number:,} {'entry was' if number == 1 else 'entries were'} left here"
        after = f"  (--branch {item.number})"
        words = one_line(item.text, max(20, width - len(before) - len(after) - 4))
        yield cut((Span(before + (f": “{words}”" if words else "") + after, Role.NOTICE),), width)

    def _few(self, text: str, width: int, most: int | None, sign: str, role: Role) -> Iterator[Spans]:
        """The first lines of a text, wrapped, behind a sign."""
        lines = list(plain_lines(text.strip("\n")))
        shown = lines if most is None or self._options.everything else lines[:most]
        indent = Span(" " * len(sign))
        for at, line in enumerate(shown):
            space, words = indented(line, width)
            first = Span(sign + space, role) if not at else Span(indent.text + space)
            yield from wrap((Span(words, role),), width, first=(first,), rest=(Span(indent.text + space),))
        if len(lines) > len(shown):
            yield (indent, Span(f"… {count(len(lines) - len(shown), 'more line')}", Role.FAINT))


_Draw = Callable[[_Text, Any, int, int], Iterator[Spans]]
_DRAW: dict[type[Item], _Draw] = {
    Said: _Text.said,
    Told: _Text.told,
    Reply: _Text.reply,
    Thought: _Text.thought,
    Called: _Text.called,
    Output: _Text.output,
    Failed: _Text.failed,
    Notice: _Text.notice,
    Ended: _Text.ended,
    Compacted: _Text.compacted,
    Left: _Text.left,
}
