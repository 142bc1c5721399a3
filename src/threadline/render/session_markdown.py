"""Render a session as Markdown that reads the same in every renderer.

Text of a transcript cannot break out of its place: tags and images are escaped, and no fence is left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from threadline.model.call_summary import change_tally, summarize_input
from threadline.model.calls import Call, Outcome
from threadline.model.entries import Entry
from threadline.model.ledger import Sum
from threadline.model.session import ActKind, Agent, Session
from threadline.model.text import (
    count,
    format_duration,
    format_time,
    replace_surrogates,
    short_model_name,
)
from threadline.model.times import zone_name
from threadline.render.call_text import changed_lines
from threadline.render.items import PlacedItem, place_items
from threadline.render.outline import Detail, TaskNotification, View
from threadline.render.session_facts import (
    NO_TRANSCRIPT,
    AgentPlacement,
    agent_duration,
    agent_title,
    agents_without_transcript,
    describe_compaction,
    describe_hidden_branches,
    describe_platform,
    group_by_entry,
    task_answer,
    task_sentence,
)
from threadline.render.text import Span, describe_cost, describe_tokens, shorten, visible
from threadline.shell_syntax import SHELL_TOOLS

_FENCE = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)")
_TICKS = re.compile(r"`+")
# Tags and comments would be invisible, so they are escaped. A URL in angle brackets is a link and is not escaped.
_TAG = re.compile(r"(\\*)(<(?=[A-Za-z/!?])(?!https?://[^\s<>]*>)|!(?=\[))")
_MIN_FENCE, _MAX_INDENT = 3, 3


def code_block(text: str, language: str = "") -> Iterator[str]:
    """A fenced code block. The fence is longer than any fence in the text."""
    lines = visible(text).strip("\n").split("\n")
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(_MIN_FENCE, longest + 1)
    yield fence + language
    yield from lines
    yield fence


def code_span(text: str) -> str:
    """A code span on one line, with as many backticks as needed.

    >>> code_span("a `b` c")
    '``a `b` c``'
    """
    longest = max(map(len, _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}" if text.strip() else ""


def escape_markdown(text: str) -> str:
    r"""A text on one line with all Markdown syntax escaped.

    >>> escape_markdown("a *b* <c> [d]")
    'a \\*b\\* \\<c> \\[d\\]'
    """
    return re.sub(r"([\\`*_\[\]<|~])", r"\\\1", " ".join(visible(text).split()))


def quote_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines as a block quote."""
    yield from (f"> {line}" if line else ">" for line in lines)


def contained_markdown(text: str) -> Iterator[str]:
    """Markdown that cannot affect what follows: tags and images are escaped, and an open fence is closed."""
    lines = visible(text).strip("\n").split("\n")
    block: list[str] = []
    at, is_ambiguous = 0, False
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        end = _end_of_fence(lines, at, fence) if fence is not None and not is_ambiguous else None
        if fence is not None and end is not None:
            yield from (*_escape_block(block), *lines[at:end])
            if end == len(lines) and (end - at == 1 or not _closes_fence(lines[-1], fence)):
                yield fence["marks"]
            block = []
            at = end
            continue
        # The meaning of such a fence depends on the list around it. It and all fences after it are escaped.
        is_ambiguous = is_ambiguous or fence is not None
        line = lines[at] if fence is None else re.sub(r"([`~])", r"\\\1", lines[at])
        if line.strip():
            block.append(line)
        else:
            yield from (*_escape_block(block), line)
            block = []
        at += 1
    yield from _escape_block(block)


def _end_of_fence(lines: list[str], at: int, fence: re.Match[str]) -> int | None:
    """The index after the last line of a fenced block; None if the fence may not open a block.

    A fence at the margin always opens a block, which ends with the text if no other fence closes it. An indented fence
    counts only if a fence with the same indent closes it and no line between them is less indented.
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
    closing = _FENCE.match(line)
    if closing is None or not closing["marks"].startswith(fence["marks"]) or closing["info"].strip():
        return False
    return len(closing["indent"]) <= _MAX_INDENT if not fence["indent"] else closing["indent"] == fence["indent"]


def _escape_block(lines: list[str]) -> Iterator[str]:
    """Escape tags and images in consecutive non-blank lines.

    Tags in code spans are not escaped, but only if every line closes the spans that it opens. Otherwise the start of a
    span depends on the other lines, and every tag is escaped.
    """
    split_lines = [_split_code_spans(line) for line in lines]
    certain = None not in split_lines
    for line, parts in zip(lines, split_lines, strict=True):
        if certain and parts is not None:
            yield "".join(part if is_code else _escape_tags(part) for part, is_code in parts)
        else:
            yield _escape_tags(line)


def _split_code_spans(line: str) -> list[tuple[str, bool]] | None:
    """Split a line into (text, is code) parts; None if a span is left open or a backtick is escaped."""
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
    return _TAG.sub(lambda match: match[0] if len(match[1]) % 2 else f"{match[1]}\\{match[2]}", text)


_MAX_SUMMARY, _MAX_LABEL = 120, 160
_MAX_DEPTH = 6
_EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "Replace"})


def session_to_markdown(
    session: Session, view: View | None = None, notifications: Iterable[TaskNotification] = (), total: Sum | None = None
) -> Iterator[str]:
    """Yield the lines of a session. `total` is its usage and cost."""
    yield from _MarkdownRenderer(session, view or View(), notifications, total).lines()


def entry_to_markdown(session: Session, agent: Agent, entry: Entry, view: View | None = None) -> Iterator[str]:
    """Yield the lines of one entry of an agent. For a tool result, these are the lines of its call."""
    settings = view or View()
    start = next((call.entry for call in agent.calls if call.answer is entry), entry)
    renderer = _MarkdownRenderer(session, settings, ())
    yield from renderer.selected_items(
        agent, (item for item in place_items(agent, settings) if item.item.entry is start)
    )


class _MarkdownRenderer:
    """Renders one session. There is one method per kind of item."""

    def __init__(
        self, session: Session, view: View, notifications: Iterable[TaskNotification], total: Sum | None = None
    ) -> None:
        self._total = total
        self._session = session
        self._view = view
        self._placement = AgentPlacement(session)
        self._missing_agents = agents_without_transcript(session)
        self._news = group_by_entry(notifications)

    def lines(self) -> Iterator[str]:
        """Yield all lines."""
        yield f"# {escape_markdown(shorten(self._session.title.text, _MAX_LABEL)) or '(no title)'}"
        yield ""
        yield from (f"- {key}: {value}" for key, value in self._facts())
        yield from self._items(self._session.main, 0)
        yield from self._unlinked_agents()

    def _facts(self) -> Iterator[tuple[str, str]]:
        session, total = self._session, self._total
        started, took = session.started, format_duration(session.wall_time)
        agents = sum(agent.side is None for agent in session.agents)
        turns = count(sum(turn.act is not None for turn in session.turns), "turn")
        facts = {
            "session": code_span(shorten(str(session.id or ""), _MAX_LABEL)),
            "project": code_span(shorten(session.cwds[0], _MAX_LABEL)) if session.cwds else "",
            "model": ", ".join(escape_markdown(short_model_name(model)) for model in session.models),
            "slug": code_span(shorten(session.slug, _MAX_LABEL)) if session.slug else "",
            "platform": escape_markdown(shorten(describe_platform(session), _MAX_LABEL)),
            "started": f"{format_time(started, self._view.zone)} {zone_name(self._view.zone)}"
            if started is not None
            else "",
            "size": f"{turns}, {count(len(session.calls), 'call')}",
            "duration": took,
            "agents": f"{agents:,}" if agents else "",
            "spent": f"{describe_tokens(total)}, {describe_cost(total)}" if total is not None else "",
            "branches": describe_hidden_branches(session.main, self._view.branch),
        }
        yield from ((key, value) for key, value in facts.items() if value)
        for link in session.continuations:
            label = "continues in" if link.forward else "continues from"
            yield label, code_span(shorten(str(link.session or "another session"), _MAX_LABEL))

    def _items(self, agent: Agent, depth: int) -> Iterator[str]:
        for item in place_items(agent, self._view.inside if depth else self._view, self._news):
            lines = list(_RENDERERS[item.kind](self, item, depth))
            if lines:
                yield ""
                yield from lines

    def selected_items(self, agent: Agent, items: Iterable[PlacedItem]) -> Iterator[str]:
        """The given items of an agent, separated by blank lines."""
        is_first = True
        for item in items:
            lines = list(_RENDERERS[item.kind](self, item, 0 if agent.id is None else 1))
            if lines and not is_first:
                yield ""
            is_first = is_first and not lines
            yield from lines

    def prompt(self, item: PlacedItem, depth: int) -> Iterator[str]:
        """An act of the person, as a quote. If it starts a turn, the turn's heading comes first."""
        prompt: Any = item.item
        act = prompt.act
        if act.kind is ActKind.INTERRUPT:
            yield "*interrupted by the user*"
            return
        if prompt.turn is not None and depth == 0:
            when = f" · {format_time(act.timestamp, self._view.zone)}" if act.timestamp else ""
            yield f"## Turn {prompt.turn}{when}"
            yield ""
        if act.kind is ActKind.STEERING:
            yield "*typed while the model was working*"
            yield ""
        sign = {ActKind.COMMAND: "", ActKind.SHELL: "! ", ActKind.MEMORY: "# ", ActKind.PLAN: "**Plan**\n\n"}
        yield from quote_lines(contained_markdown(sign.get(act.kind, "") + act.text) if act.text.strip() else ())
        if act.images:
            yield from quote_lines([" ".join(["(image)"] * act.images)])

    def task(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """The task of an agent."""
        task: Any = item.item
        yield from quote_lines(contained_markdown(task.text))

    def reply(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A reply by the model."""
        reply: Any = item.item
        yield from contained_markdown(reply.text)

    def thinking(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """Thinking, folded unless it is shown in full."""
        thinking: Any = item.item
        text = thinking.text.strip()
        if not text:
            return
        if self._view.thinking is Detail.FULL:
            yield "*Thinking*"
            yield ""
            yield from quote_lines(contained_markdown(text))
            return
        yield from _details(f"Thinking: {_escape_html(shorten(text, _MAX_SUMMARY))}", contained_markdown(text))

    def call(self, item: PlacedItem, depth: int) -> Iterator[str]:
        """A call, its result, and the agents it started."""
        call_item: Any = item.item
        call: Call = call_item.call
        label = self._label(call)
        body = list(_call_body(call))
        if not body:
            yield f"**{escape_markdown(call.tool)}** {label}".rstrip()
        elif self._view.calls is Detail.FULL:
            yield f"**{escape_markdown(call.tool)}** {label}".rstrip()
            yield ""
            yield from body
        else:
            text = shorten(summarize_input(call.tool, call.input), _MAX_SUMMARY)
            how = "" if call.outcome is Outcome.OK else f" ({call.outcome})"
            code = f"<code>{_escape_html(text)}</code>" if text else ""
            summary = f"<b>{_escape_html(shorten(call.tool, 60))}</b> {code}{how}"
            yield from _details(summary.strip(), body)
        if call.feedback:
            yield ""
            yield from quote_lines(contained_markdown(call.feedback))
        yield from self._agents(call, depth)

    def _label(self, call: Call) -> str:
        text = code_span(shorten(summarize_input(call.tool, call.input), _MAX_LABEL))
        changed = change_tally(call.result)
        how = "" if call.outcome is Outcome.OK else f"({call.outcome})"
        return " ".join(part for part in (text, changed, how) if part)

    def _agents(self, call: Call, depth: int) -> Iterator[str]:
        if self._view.agents is Detail.NONE:
            return
        if call.id in self._missing_agents:
            yield ""
            yield f"*agent {escape_markdown(shorten(self._missing_agents[call.id], _MAX_LABEL))} {NO_TRANSCRIPT}*"
        for agent in self._placement.under(call):
            yield from self._agent(agent, depth)

    def _agent(self, agent: Agent, depth: int) -> Iterator[str]:
        if agent.side is not None and not self._view.everything:
            return
        facts = (count(len(agent.calls), "call"), format_duration(agent_duration(agent)), str(agent.status))
        line = f"Agent {shorten(agent_title(agent), _MAX_LABEL)}: {' · '.join(fact for fact in facts if fact)}"
        yield ""
        if depth >= _MAX_DEPTH:
            yield f"*{escape_markdown(line)}*"
        elif self._view.agents is Detail.FULL:
            yield f"**{escape_markdown(line)}**"
            yield from quote_lines(self._items(agent, depth + 1))
        else:
            yield from _details(_escape_html(line), self._items(agent, depth + 1))

    def _unlinked_agents(self) -> Iterator[str]:
        agents = [agent for agent in self._placement.unlinked if agent.side is None or self._view.everything]
        if not agents or self._view.agents is Detail.NONE or self._view.branch is not None or self._view.has_turn_range:
            return
        yield ""
        yield "## Agents without a call"
        for agent in agents:
            yield from self._agent(agent, 0)

    def output(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """Output of a local command."""
        output: Any = item.item
        yield from code_block(output.text)

    def failure(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A failed API request."""
        failure: Any = item.item
        yield f"**API error** {escape_markdown(shorten(failure.text, 2000))}"

    def notice(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A notice by Claude Code, or a notification about a background task."""
        notice: Any = item.item
        notification = getattr(notice, "notification", None)
        if notification is not None:
            yield f"*background task: {escape_markdown(shorten(task_sentence(notification), 300))}*"
            if (answer := task_answer(notification)) is not None:
                yield ""
                yield from _details("Answer", contained_markdown(answer))
            return
        text = notice.text.strip()
        if len(text) <= _MAX_LABEL and "\n" not in text:
            yield f"*{escape_markdown(notice.what)}{': ' if text else ''}{escape_markdown(text)}*"
        else:
            yield from _details(
                f"{_escape_html(shorten(notice.what, 60))}: {_escape_html(shorten(text, _MAX_SUMMARY))}",
                code_block(text),
            )

    def compaction(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A compaction and its summary."""
        compaction_item: Any = item.item
        compaction = compaction_item.compaction
        label = describe_compaction(compaction)
        yield "---"
        yield ""
        yield f"*{escape_markdown(label[:1].upper() + label[1:])}*"
        if compaction.summary is not None and compaction.summary.text.strip():
            yield ""
            yield from _details("Summary", contained_markdown(compaction.summary.text))

    def branch(self, item: PlacedItem, _depth: int) -> Iterator[str]:
        """A marker where the conversation left a branch."""
        branch: Any = item.item
        text = escape_markdown(shorten(branch.text, _MAX_SUMMARY))
        yield f"*branch {branch.number} abandoned here{f': “{text}”' if text else ''}*"


_Renderer = Callable[[_MarkdownRenderer, PlacedItem, int], Iterator[str]]
_RENDERERS: dict[str, _Renderer] = {
    "prompt": _MarkdownRenderer.prompt,
    "task": _MarkdownRenderer.task,
    "reply": _MarkdownRenderer.reply,
    "thinking": _MarkdownRenderer.thinking,
    "call": _MarkdownRenderer.call,
    "output": _MarkdownRenderer.output,
    "failure": _MarkdownRenderer.failure,
    "notice": _MarkdownRenderer.notice,
    "compaction": _MarkdownRenderer.compaction,
    "branch": _MarkdownRenderer.branch,
}


def _call_body(call: Call) -> Iterator[str]:
    """The input of a call, unless its summary line contains it, and its output."""
    if call.tool in _EDIT_TOOLS and (lines := list(changed_lines(call))):
        yield from code_block("\n".join(map(_patch_line, lines)), "diff")
    elif call.tool in SHELL_TOOLS and isinstance(call.input, dict):
        yield from code_block(f"$ {call.input.get('command') or ''}", "console")
    elif isinstance(call.input, dict) and _has_unshown_input(call):
        yield from code_block(_format_json(call.input), "json")
    if call.output.strip() and not (call.tool in _EDIT_TOOLS and call.outcome is Outcome.OK):
        yield from code_block(call.output)


def _patch_line(spans: Sequence[Span]) -> str:
    """A changed line as in a patch: its mark, then its text. What is before it is its line number."""
    text = spans[-1].text
    return text[:1] + text[2:] if text[:1] in ("+", "-", " ") else text


def _has_unshown_input(call: Call) -> bool:
    summary = summarize_input(call.tool, call.input)
    return any(isinstance(value, dict | list) or str(value) not in summary for value in call.input.values())


def _format_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(replace_surrogates(value)), indent=2).decode()


def _details(summary: str, body: Iterable[str]) -> Iterator[str]:
    """A `<details>` element. The blank lines allow Markdown inside it."""
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield from body
    yield ""
    yield "</details>"


def _escape_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
