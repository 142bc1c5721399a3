"""A session as Markdown: what a person would write who tells of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from threadline.model.act import ActKind
from threadline.model.agent import Agent
from threadline.model.call import Call, Outcome
from threadline.model.entries import Entry
from threadline.model.session import Session
from threadline.model.sum import Sum
from threadline.model.thread import CompactionKind
from threadline.render.agents import NOT_KEPT, Places, duration, name, not_kept
from threadline.render.amounts import spent, tokens
from threadline.render.diff import changes, tally
from threadline.render.figures import count, model_name, moment, span_of_time
from threadline.render.html.placed import Placed, placed
from threadline.render.html.view import Amount, View
from threadline.render.html.words import one
from threadline.render.lasting import ends, lasted
from threadline.render.left import left_told
from threadline.render.markdown_source import code, fenced, prose, quoted, words
from threadline.render.options import Agents
from threadline.render.outline import News
from threadline.render.style import Role
from threadline.render.tasks import answer, by_entry, sentence
from threadline.render.telling import telling

_SAID, _LABEL = 120, 160
_DEEPEST = 6
_EDITS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "Replace"})
_SHELLS = frozenset({"Bash", "PowerShell"})


def markdown(
    whole: Session, view: View | None = None, news: Iterable[News] = (), total: Sum | None = None
) -> Iterator[str]:
    """The lines of a session; `total` is what it spent."""
    yield from _Markdown(whole, view or View(), news, total).lines()


def entry_markdown(whole: Session, agent: Agent, entry: Entry, view: View | None = None) -> Iterator[str]:
    """The lines of one entry of an agent; a result is told with its call."""
    chosen = view or View()
    called = next((call.entry for call in agent.calls if call.answer is entry), entry)
    drawn = _Markdown(whole, chosen, ())
    yield from drawn.some(agent, (one for one in placed(agent, chosen) if one.item.entry is called))


class _Markdown:
    """Draws one session."""

    def __init__(self, whole: Session, view: View, news: Iterable[News], total: Sum | None = None) -> None:
        self._total = total
        self._session = whole
        self._view = view
        self._places = Places(whole)
        self._not_kept = not_kept(whole)
        self._news = by_entry(news)

    def lines(self) -> Iterator[str]:
        """All lines."""
        yield f"# {words(one(self._session.title.text, _LABEL)) or '(no title)'}"
        yield ""
        yield from (f"- {key}: {value}" for key, value in self._facts())
        yield from self._items(self._session.main, 0)
        yield from self._apart()

    def _facts(self) -> Iterator[tuple[str, str]]:
        whole, total = self._session, self._total
        started, took = ends(whole)[0], span_of_time(lasted(whole))
        agents = sum(agent.side is None for agent in whole.agents)
        turns = count(sum(turn.act is not None for turn in whole.turns), "turn")
        found = {
            "session": code(one(str(whole.id or ""), _LABEL)),
            "project": code(one(whole.cwds[0], _LABEL)) if whole.cwds else "",
            "model": ", ".join(words(model_name(model)) for model in whole.models),
            "started": f"{moment(started)} UTC" if started is not None else "",
            "took": f"{turns}, {count(len(whole.calls), 'call')}{f', {took}' if took else ''}",
            "agents": f"{agents:,}" if agents else "",
            "spent": f"{tokens(total)}, {spent(total)}" if total is not None else "",
            "branches": left_told(whole.main, self._view.branch),
        }
        yield from ((key, value) for key, value in found.items() if value)
        for link in whole.continuations:
            way = "goes on in" if link.forward else "goes on from"
            yield way, code(one(str(link.session or "another session"), _LABEL))

    def _items(self, agent: Agent, depth: int) -> Iterator[str]:
        for item in placed(agent, self._view.inside if depth else self._view, self._news):
            drawn = list(_DRAW[item.kind](self, item, depth))
            if drawn:
                yield ""
                yield from drawn

    def some(self, agent: Agent, items: Iterable[Placed]) -> Iterator[str]:
        """Some items of an agent, a blank line between them."""
        is_first = True
        for item in items:
            drawn = list(_DRAW[item.kind](self, item, 0 if agent.id is None else 1))
            if drawn and not is_first:
                yield ""
            is_first = is_first and not drawn
            yield from drawn

    def said(self, item: Placed, depth: int) -> Iterator[str]:
        """A person's act, quoted; where it begins a turn, with its heading."""
        said: Any = item.item
        act = said.act
        if act.kind is ActKind.INTERRUPT:
            yield "*interrupted by the person*"
            return
        if said.turn is not None and depth == 0:
            when = f" · {moment(act.timestamp)}" if act.timestamp else ""
            yield f"## Turn {said.turn}{when}"
            yield ""
        if act.kind is ActKind.STEERING:
            yield "*typed while the model was working*"
            yield ""
        sign = {ActKind.COMMAND: "", ActKind.SHELL: "! ", ActKind.MEMORY: "# ", ActKind.PLAN: "**Plan**\n\n"}
        yield from quoted(prose(sign.get(act.kind, "") + act.text) if act.text.strip() else ())
        if act.images:
            yield from quoted([" ".join(["(image)"] * act.images)])

    def told(self, item: Placed, _depth: int) -> Iterator[str]:
        """An agent's task."""
        said: Any = item.item
        yield from quoted(prose(said.text))

    def reply(self, item: Placed, _depth: int) -> Iterator[str]:
        """The model's words, as they are."""
        said: Any = item.item
        yield from prose(said.text)

    def thought(self, item: Placed, _depth: int) -> Iterator[str]:
        """Thinking, folded unless it is to be shown whole."""
        said: Any = item.item
        text = said.text.strip()
        if not text:
            return
        if self._view.thinking is Amount.FULL:
            yield "*Thinking*"
            yield ""
            yield from quoted(prose(text))
            return
        yield from _folded(f"Thinking: {_escaped(one(text, _SAID))}", prose(text))

    def called(self, item: Placed, depth: int) -> Iterator[str]:
        """A call, with what came of it, and the agents it started."""
        said: Any = item.item
        call: Call = said.call
        label = self._label(call)
        body = list(_body(call))
        if not body:
            yield f"**{words(call.tool)}** {label}".rstrip()
        elif self._view.calls is Amount.FULL:
            yield f"**{words(call.tool)}** {label}".rstrip()
            yield ""
            yield from body
        else:
            told = one(telling(call.tool, call.input), _SAID)
            how = "" if call.outcome is Outcome.OK else f" ({call.outcome})"
            summary = f"<b>{_escaped(one(call.tool, 60))}</b> {f'<code>{_escaped(told)}</code>' if told else ''}{how}"
            yield from _folded(summary.strip(), body)
        if call.feedback:
            yield ""
            yield from quoted(prose(call.feedback))
        yield from self._agents(call, depth)

    def _label(self, call: Call) -> str:
        told = code(one(telling(call.tool, call.input), _LABEL))
        changed = tally(call)
        how = "" if call.outcome is Outcome.OK else f"({call.outcome})"
        return " ".join(part for part in (told, changed, how) if part)

    def _agents(self, call: Call, depth: int) -> Iterator[str]:
        if self._view.agents is Agents.NONE:
            return
        if call.id in self._not_kept:
            yield ""
            yield f"*agent {words(one(self._not_kept[call.id], _LABEL))} {NOT_KEPT}*"
        for agent in self._places.under(call):
            yield from self._agent(agent, depth)

    def _agent(self, agent: Agent, depth: int) -> Iterator[str]:
        if agent.side is not None and not self._view.everything:
            return
        facts = (count(len(agent.calls), "call"), span_of_time(duration(agent)), str(agent.status))
        line = f"Agent {one(name(agent), _LABEL)}: {' · '.join(fact for fact in facts if fact)}"
        yield ""
        if depth >= _DEEPEST:
            yield f"*{words(line)}*"
        elif self._view.agents is Agents.FULL:
            yield f"**{words(line)}**"
            yield from quoted(self._items(agent, depth + 1))
        else:
            yield from _folded(_escaped(line), self._items(agent, depth + 1))

    def _apart(self) -> Iterator[str]:
        agents = [agent for agent in self._places.apart if agent.side is None or self._view.everything]
        if not agents or self._view.agents is Agents.NONE or self._view.branch is not None or self._is_cut:
            return
        yield ""
        yield "## Agents without a call"
        for agent in agents:
            yield from self._agent(agent, 0)

    @property
    def _is_cut(self) -> bool:
        return self._view.from_turn is not None or self._view.to_turn is not None

    def output(self, item: Placed, _depth: int) -> Iterator[str]:
        """What a local command printed."""
        said: Any = item.item
        yield from fenced(said.text)

    def failed(self, item: Placed, _depth: int) -> Iterator[str]:
        """A request that failed."""
        said: Any = item.item
        yield f"**API error** {words(one(said.text, 2000))}"

    def notice(self, item: Placed, _depth: int) -> Iterator[str]:
        """A line of the program's own, or what became of a background task."""
        said: Any = item.item
        news = getattr(said, "news", None)
        if news is not None:
            yield f"*background task: {words(one(sentence(news), 300))}*"
            if (answered := answer(news)) is not None:
                yield ""
                yield from _folded("Its answer", prose(answered))
            return
        text = said.text.strip()
        if len(text) <= _LABEL and "\n" not in text:
            yield f"*{words(said.what)}{': ' if text else ''}{words(text)}*"
        else:
            yield from _folded(f"{_escaped(one(said.what, 60))}: {_escaped(one(text, _SAID))}", fenced(text))

    def compacted(self, item: Placed, _depth: int) -> Iterator[str]:
        """A compaction and its summary."""
        said: Any = item.item
        made = said.compaction
        what = "Old results cleared" if made.kind is CompactionKind.MICRO else "Compacted"
        sizes = [f"{size:,}" for size in (made.tokens_before, made.tokens_after) if size is not None]
        tokens = f" · {' → '.join(sizes)} tokens" if sizes else ""
        yield "---"
        yield ""
        yield f"*{what}{f' ({words(made.trigger)})' if made.trigger else ''}{tokens}*"
        if made.summary is not None and made.summary.text.strip():
            yield ""
            yield from _folded("Summary", prose(made.summary.text))

    def left(self, item: Placed, _depth: int) -> Iterator[str]:
        """Where a branch was left."""
        said: Any = item.item
        told = words(one(said.text, _SAID))
        yield f"*branch {said.number} was left here{f': “{told}”' if told else ''}*"


_Draw = Callable[[_Markdown, Placed, int], Iterator[str]]
_DRAW: dict[str, _Draw] = {
    "prompt": _Markdown.said,
    "task": _Markdown.told,
    "reply": _Markdown.reply,
    "thinking": _Markdown.thought,
    "call": _Markdown.called,
    "output": _Markdown.output,
    "failure": _Markdown.failed,
    "notice": _Markdown.notice,
    "compaction": _Markdown.compacted,
    "branch": _Markdown.left,
}


def _body(call: Call) -> Iterator[str]:
    """What a call was given, as far as its line does not say it, and what came of it."""
    if call.tool in _EDITS and (lines := list(changes(call))):
        yield from fenced("\n".join(map(_changed, lines)), "diff")
    elif call.tool in _SHELLS and isinstance(call.input, dict):
        yield from fenced(f"$ {call.input.get('command') or ''}", "console")
    elif isinstance(call.input, dict) and _says_more(call):
        yield from fenced(_json(call.input), "json")
    if call.output.strip() and not (call.tool in _EDITS and call.outcome is Outcome.OK):
        yield from fenced(call.output)


def _changed(line: Iterable[Any]) -> str:
    """A line of a change as in a patch: the number goes."""
    spans = [span for span in line if span.role is not Role.FAINT or span.text.lstrip()[:1] not in "0123456789"]
    text = "".join(span.text for span in spans)
    return text[:1] + text[2:] if text[:1] in ("+", "-") else text


def _says_more(call: Call) -> bool:
    told = telling(call.tool, call.input)
    return any(isinstance(value, dict | list) or str(value) not in told for value in call.input.values())


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(_clean(value)), indent=2).decode()


def _clean(value: Any) -> Any:
    """The value without half surrogate pairs, which have no UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_clean(inner) for inner in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    return value


def _folded(summary: str, body: Iterable[str]) -> Iterator[str]:
    """A part that opens where it stands; blank lines let what is inside be Markdown."""
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield from body
    yield ""
    yield "</details>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
