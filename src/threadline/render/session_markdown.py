"""Render a session as Markdown that reads the same in every renderer.

Text of a transcript cannot break out of its place: tags and images are escaped, and no fence is left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from threadline.model.calls import Call, Outcome
from threadline.model.entries import Entry
from threadline.model.session import ActKind, Agent, CompactionKind, Session
from threadline.model.text import count, format_duration, format_time, short_model_name
from threadline.model.totals import Sum
from threadline.render.amounts import describe_cost, describe_tokens
from threadline.render.call_summary import summarize_input
from threadline.render.call_text import change_tally, changed_lines
from threadline.render.items import PlacedItem, place_items
from threadline.render.outline import TaskNotification
from threadline.render.safe_text import shorten, visible
from threadline.render.session_facts import (
    NOT_KEPT,
    AgentPlacement,
    agent_duration,
    agent_title,
    agents_without_transcript,
    describe_hidden_branches,
    group_by_entry,
    task_answer,
    task_sentence,
)
from threadline.render.terminal import Role
from threadline.render.view import AgentDetail, Detail, View

_FENCE = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)")
_TICKS = re.compile(r"`+")
# A tag, a comment or a placeholder would vanish; an address in brackets is a link, and stays.
_TAG = re.compile(r"(\\*)(<(?=[A-Za-z/!?])(?!https?://[^\s<>]*>)|!(?=\[))")
_MIN_FENCE, _MAX_INDENT = 3, 3


def code_block(text: str, language: str = "") -> Iterator[str]:
    """A text as a block of code, in a fence that is longer than any inside."""
    lines = visible(text).strip("\n").split("\n")
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(_MIN_FENCE, longest + 1)
    yield fence + language
    yield from lines
    yield fence


def code_span(text: str) -> str:
    """A text on one line as a span of code, in as many ticks as it takes.

    >>> code("a `b` c")
    '``a `b` c``'
    """
    longest = max(map(len, _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}" if text.strip() else ""


def escape_markdown(text: str) -> str:
    r"""A text on one line, nothing in it a mark of Markdown.

    >>> words("a *b* <c> [d]")
    'a \\*b\\* \\<c> \\[d\\]'
    """
    return re.sub(r"([\\`*_\[\]<|~])", r"\\\1", " ".join(visible(text).split()))


def quote_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines behind the sign of a quotation."""
    yield from (f"> {line}" if line else ">" for line in lines)


def contained_markdown(text: str) -> Iterator[str]:
    """Markdown as it was written: tags and pictures are shown as they are written, and no fence is left open."""
    lines = visible(text).strip("\n").split("\n")
    block: list[str] = []
    at, wary = 0, False
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        end = _end_of_fence(lines, at, fence) if fence is not None and not wary else None
        if fence is not None and end is not None:
            yield from (*_escape_block(block), *lines[at:end])
            if end == len(lines) and (end - at == 1 or not _closes_fence(lines[-1], fence)):
                yield fence["marks"]
            block = []
            at = end
            continue
        # What such a fence begins or ends hangs on the list it stands in: it and all after it are shown as they are.
        wary = wary or fence is not None
        line = lines[at] if fence is None else re.sub(r"([`~])", r"\\\1", lines[at])
        if line.strip():
            block.append(line)
        else:
            yield from (*_escape_block(block), line)
            block = []
        at += 1
    yield from _escape_block(block)


def _end_of_fence(lines: list[str], at: int, fence: re.Match[str]) -> int | None:
    """Behind the last line of a fence's block; None where it may be none.

    At the margin a fence is one wherever it stands, and open to the end where nothing closes it. An indented one counts
    where another closes it at the same indent and nothing between them is less indented.
    """
    if "`" in fence["marks"] and "`" in fence["info"]:
        return None
    indent = len(fence["indent"])
    for number, line in enumerate(lines[at + 1 :], at + 1):
        if _closes_fence(line, fence):
            return number + 1
        if indent and line.strip() and (len(line) - len(line.lstrip(" ")) < indent or _FENCE.match(line)):
            return None
    return None if indent else len(lines)


def _closes_fence(line: str, fence: re.Match[str]) -> bool:
    found = _FENCE.match(line)
    if found is None or not found["marks"].startswith(fence["marks"]) or found["info"].strip():
        return False
    return len(found["indent"]) <= _MAX_INDENT if not fence["indent"] else found["indent"] == fence["indent"]


def _escape_block(lines: list[str]) -> Iterator[str]:
    """Lines without a blank one between them, their tags and pictures made visible.

    Those in code stay as they are, but only where every line closes the spans that it opens: else it depends on what
    the lines are to each other where a span begins, and every tag is made visible.
    """
    parted = [_split_code_spans(line) for line in lines]
    certain = None not in parted
    for line, parts in zip(lines, parted, strict=True):
        if certain and parts is not None:
            yield "".join(part if is_code else _escape_tags(part) for part, is_code in parts)
        else:
            yield _escape_tags(line)


def _split_code_spans(line: str) -> list[tuple[str, bool]] | None:
    """A line in parts that are code and parts that are not; None where a span is left open or a tick is escaped."""
    parts: list[tuple[str, bool]] = []
    at = 0
    while (ticks := _TICKS.search(line, at)) is not None:
        end = next((run.end() for run in _TICKS.finditer(line, ticks.end()) if run[0] == ticks[0]), None)
        if end is None or line[: ticks.start()].endswith("\\"):
            return None
        parts += [(line[at : ticks.start()], False), (line[ticks.start() : end], True)]
        at = end
    return [*parts, (line[at:], False)]


def _escape_tags(text: str) -> str:
    return _TAG.sub(lambda found: found[0] if len(found[1]) % 2 else f"{found[1]}\\{found[2]}", text)


_MAX_SUMMARY, _MAX_LABEL = 120, 160
_MAX_DEPTH = 6
_EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "Replace"})
_SHELL_TOOLS = frozenset({"Bash", "PowerShell"})


def session_to_markdown(
    whole: Session, view: View | None = None, news: Iterable[TaskNotification] = (), total: Sum | None = None
) -> Iterator[str]:
    """The lines of a session; `total` is what it spent."""
    yield from _MarkdownRenderer(whole, view or View(), news, total).lines()


def entry_to_markdown(whole: Session, agent: Agent, entry: Entry, view: View | None = None) -> Iterator[str]:
    """The lines of one entry of an agent; a result is told with its call."""
    chosen = view or View()
    called = next((call.entry for call in agent.calls if call.answer is entry), entry)
    drawn = _MarkdownRenderer(whole, chosen, ())
    yield from drawn.some(agent, (item for item in place_items(agent, chosen) if item.item.entry is called))


class _MarkdownRenderer:
    """Draws one session."""

    def __init__(self, whole: Session, view: View, news: Iterable[TaskNotification], total: Sum | None = None) -> None:
        self._total = total
        self._session = whole
        self._view = view
        self._places = AgentPlacement(whole)
        self._not_kept = agents_without_transcript(whole)
        self._news = group_by_entry(news)

    def lines(self) -> Iterator[str]:
        """All lines."""
        yield f"# {escape_markdown(shorten(self._session.title.text, _MAX_LABEL)) or '(no title)'}"
        yield ""
        yield from (f"- {key}: {value}" for key, value in self._facts())
        yield from self._items(self._session.main, 0)
        yield from self._apart()

    def _facts(self) -> Iterator[tuple[str, str]]:
        whole, total = self._session, self._total
        started, took = whole.started, format_duration(whole.wall_time)
        agents = sum(agent.side is None for agent in whole.agents)
        turns = count(sum(turn.act is not None for turn in whole.turns), "turn")
        found = {
            "session": code_span(shorten(str(whole.id or ""), _MAX_LABEL)),
            "project": code_span(shorten(whole.cwds[0], _MAX_LABEL)) if whole.cwds else "",
            "model": ", ".join(escape_markdown(short_model_name(model)) for model in whole.models),
            "started": f"{format_time(started)} UTC" if started is not None else "",
            "took": f"{turns}, {count(len(whole.calls), 'call')}{f', {took}' if took else ''}",
            "agents": f"{agents:,}" if agents else "",
            "spent": f"{describe_tokens(total)}, {describe_cost(total)}" if total is not None else "",
            "branches": describe_hidden_branches(whole.main, self._view.branch),
        }
        yield from ((key, value) for key, value in found.items() if value)
        for link in whole.continuations:
            way = "goes on in" if link.forward else "goes on from"
            yield way, code_span(shorten(str(link.session or "another session"), _MAX_LABEL))

    def _items(self, agent: Agent, depth: int) -> Iterator[str]:
        for item in place_items(agent, self._view.inside if depth else self._view, self._news):
            drawn = list(_RENDERERS[item.kind](self, item, depth))
            if drawn:
                yield ""
                yield from drawn

    def some(self, agent: Agent, items: Iterable[PlacedItem]) -> Iterator[str]:
        """Some items of an agent, a blank line between them."""
        is_first = True
        for item in items:
            drawn = list(_RENDERERS[item.kind](self, item, 0 if agent.id is None else 1))
            if drawn and not is_first:
                yield ""
            is_first = is_first and not drawn
            yield from drawn

    def said(self, item: PlacedItem, depth: int) -> Iterator[str]:
        """A person's act, quoted; where it begins a turn, with its heading."""
        said: Any = item.item
        act = said.act
        if act.kind is ActKind.INTERRUPT:
            yield "*interrupted by the person*"
            return
        if said.turn is not None and depth == 0:
            when = f" · {format_time(act.timestamp)}" if act.timestamp else ""
            yield f"## Turn {said.turn}{when}"
            yield ""
        if act.kind is ActKind.STEERING:
            yield "*typed while the model was working*"
            yield ""
        sign = {ActKind.COMMAND: "", ActKind.SHELL: "! ", ActKind.MEMORY: "# ", ActKind.PLAN: "**Plan**\n\n"}
        yield from quote_lines(contained_markdown(sign.get(act.kind, "") + act.text) if act.text.strip() else ())
        if act.images:
            yield from quote_lines([" ".join(["(image)"] * act.images)])

    def told(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """An agent's task."""
        said: Any = item.item
        yield from quote_lines(contained_markdown(said.text))

    def reply(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """The model's words, as they are."""
        said: Any = item.item
        yield from contained_markdown(said.text)

    def thought(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """Thinking, folded unless it is to be shown whole."""
        said: Any = item.item
        text = said.text.strip()
        if not text:
            return
        if self._view.thinking is Detail.FULL:
            yield "*Thinking*"
            yield ""
            yield from quote_lines(contained_markdown(text))
            return
        yield from _details(f"Thinking: {_escape_html(shorten(text, _MAX_SUMMARY))}", contained_markdown(text))

    def called(self, item: PlacedItem, depth: int) -> Iterator[str]:
        """A call, with what came of it, and the agents it started."""
        said: Any = item.item
        call: Call = said.call
        label = self._label(call)
        body = list(_call_body(call))
        if not body:
            yield f"**{escape_markdown(call.tool)}** {label}".rstrip()
        elif self._view.calls is Detail.FULL:
            yield f"**{escape_markdown(call.tool)}** {label}".rstrip()
            yield ""
            yield from body
        else:
            told = shorten(summarize_input(call.tool, call.input), _MAX_SUMMARY)
            how = "" if call.outcome is Outcome.OK else f" ({call.outcome})"
            code = f"<code>{_escape_html(told)}</code>" if told else ""
            summary = f"<b>{_escape_html(shorten(call.tool, 60))}</b> {code}{how}"
            yield from _details(summary.strip(), body)
        if call.feedback:
            yield ""
            yield from quote_lines(contained_markdown(call.feedback))
        yield from self._agents(call, depth)

    def _label(self, call: Call) -> str:
        told = code_span(shorten(summarize_input(call.tool, call.input), _MAX_LABEL))
        changed = change_tally(call)
        how = "" if call.outcome is Outcome.OK else f"({call.outcome})"
        return " ".join(part for part in (told, changed, how) if part)

    def _agents(self, call: Call, depth: int) -> Iterator[str]:
        if self._view.agents is AgentDetail.NONE:
            return
        if call.id in self._not_kept:
            yield ""
            yield f"*agent {escape_markdown(shorten(self._not_kept[call.id], _MAX_LABEL))} {NOT_KEPT}*"
        for agent in self._places.under(call):
            yield from self._agent(agent, depth)

    def _agent(self, agent: Agent, depth: int) -> Iterator[str]:
        if agent.side is not None and not self._view.everything:
            return
        facts = (count(len(agent.calls), "call"), format_duration(agent_duration(agent)), str(agent.status))
        line = f"Agent {shorten(agent_title(agent), _MAX_LABEL)}: {' · '.join(fact for fact in facts if fact)}"
        yield ""
        if depth >= _MAX_DEPTH:
            yield f"*{escape_markdown(line)}*"
        elif self._view.agents is AgentDetail.FULL:
            yield f"**{escape_markdown(line)}**"
            yield from quote_lines(self._items(agent, depth + 1))
        else:
            yield from _details(_escape_html(line), self._items(agent, depth + 1))

    def _apart(self) -> Iterator[str]:
        agents = [agent for agent in self._places.apart if agent.side is None or self._view.everything]
        if not agents or self._view.agents is AgentDetail.NONE or self._view.branch is not None or self._is_cut:
            return
        yield ""
        yield "## Agents without a call"
        for agent in agents:
            yield from self._agent(agent, 0)

    @property
    def _is_cut(self) -> bool:
        return self._view.from_turn is not None or self._view.to_turn is not None

    def output(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """What a local command printed."""
        said: Any = item.item
        yield from code_block(said.text)

    def failed(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A request that failed."""
        said: Any = item.item
        yield f"**API error** {escape_markdown(shorten(said.text, 2000))}"

    def notice(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A line of the program's own, or what became of a background task."""
        said: Any = item.item
        news = getattr(said, "news", None)
        if news is not None:
            yield f"*background task: {escape_markdown(shorten(task_sentence(news), 300))}*"
            if (answered := task_answer(news)) is not None:
                yield ""
                yield from _details("Its answer", contained_markdown(answered))
            return
        text = said.text.strip()
        if len(text) <= _MAX_LABEL and "\n" not in text:
            yield f"*{escape_markdown(said.what)}{': ' if text else ''}{escape_markdown(text)}*"
        else:
            yield from _details(
                f"{_escape_html(shorten(said.what, 60))}: {_escape_html(shorten(text, _MAX_SUMMARY))}", code_block(text)
            )

    def compacted(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A compaction and its summary."""
        said: Any = item.item
        made = said.compaction
        what = "Old results cleared" if made.kind is CompactionKind.MICRO else "Compacted"
        sizes = [f"{size:,}" for size in (made.tokens_before, made.tokens_after) if size is not None]
        tokens = f" · {' → '.join(sizes)} tokens" if sizes else ""
        yield "---"
        yield ""
        yield f"*{what}{f' ({escape_markdown(made.trigger)})' if made.trigger else ''}{tokens}*"
        if made.summary is not None and made.summary.text.strip():
            yield ""
            yield from _details("Summary", contained_markdown(made.summary.text))

    def left(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """Where a branch was left."""
        said: Any = item.item
        told = escape_markdown(shorten(said.text, _MAX_SUMMARY))
        yield f"*branch {said.number} was left here{f': “{told}”' if told else ''}*"


_Renderer = Callable[[_MarkdownRenderer, PlacedItem, int], Iterator[str]]
_RENDERERS: dict[str, _Renderer] = {
    "prompt": _MarkdownRenderer.said,
    "task": _MarkdownRenderer.told,
    "reply": _MarkdownRenderer.reply,
    "thinking": _MarkdownRenderer.thought,
    "call": _MarkdownRenderer.called,
    "output": _MarkdownRenderer.output,
    "failure": _MarkdownRenderer.failed,
    "notice": _MarkdownRenderer.notice,
    "compaction": _MarkdownRenderer.compacted,
    "branch": _MarkdownRenderer.left,
}


def _call_body(call: Call) -> Iterator[str]:
    """What a call was given, as far as its line does not say it, and what came of it."""
    if call.tool in _EDIT_TOOLS and (lines := list(changed_lines(call))):
        yield from code_block("\n".join(map(_patch_line, lines)), "diff")
    elif call.tool in _SHELL_TOOLS and isinstance(call.input, dict):
        yield from code_block(f"$ {call.input.get('command') or ''}", "console")
    elif isinstance(call.input, dict) and _has_unshown_input(call):
        yield from code_block(_format_json(call.input), "json")
    if call.output.strip() and not (call.tool in _EDIT_TOOLS and call.outcome is Outcome.OK):
        yield from code_block(call.output)


def _patch_line(line: Iterable[Any]) -> str:
    """A line of a change as in a patch: the number goes."""
    spans = [span for span in line if span.role is not Role.FAINT or span.text.lstrip()[:1] not in "0123456789"]
    text = "".join(span.text for span in spans)
    return text[:1] + text[2:] if text[:1] in ("+", "-") else text


def _has_unshown_input(call: Call) -> bool:
    told = summarize_input(call.tool, call.input)
    return any(isinstance(value, dict | list) or str(value) not in told for value in call.input.values())


def _format_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(_replace_surrogates(value)), indent=2).decode()


def _replace_surrogates(value: Any) -> Any:
    """The value without half surrogate pairs, which have no UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(inner) for inner in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(inner) for key, inner in value.items()}
    return value


def _details(summary: str, body: Iterable[str]) -> Iterator[str]:
    """A part that opens where it stands; blank lines let what is inside be Markdown."""
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield from body
    yield ""
    yield "</details>"


def _escape_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
