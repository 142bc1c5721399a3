"""Calls as lines: one that says what was done and how it ended, and a few of what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from threadline.model.block import DocumentBlock, ImageBlock
from threadline.model.call import Call, Outcome
from threadline.model.results import AgentResult, AskUserQuestionResult, ReadResult, TodoWriteResult
from threadline.render.agents import AGENT_TOOLS
from threadline.render.diff import changes, tally
from threadline.render.figures import count, span_of_time
from threadline.render.layout import cut, hard, width_of
from threadline.render.markdown import markdown
from threadline.render.style import ASKS, Role, Span, Spans
from threadline.render.telling import FILE_TOOLS, telling
from threadline.render.terminal_text import clip_left, one_line, plain, plain_lines


class Mark(Struct, frozen=True):
    """How an outcome is shown."""

    sign: str
    role: Role


OUTCOMES: dict[Outcome, Mark] = {
    Outcome.OK: Mark("✓", Role.GOOD),
    Outcome.ERROR: Mark("✗", Role.BAD),
    Outcome.DENIED: Mark("⊘", Role.BAD),
    Outcome.INTERRUPTED: Mark("■", Role.NOTICE),
    Outcome.PENDING: Mark("◌", Role.NOTICE),
    Outcome.LOST: Mark("?", Role.NOTICE),
}
_TODOS = {"completed": ("☒", Role.FAINT), "in_progress": ("◐", Role.STRONG)}
_FEW, _SOME, _MANY = 4, 12, 24
_TAGS = re.compile(r"</?(?:tool_use_error|error|persisted-output)>")
_REFUSED = "The user doesn't want to proceed with this tool use."
_LAUNCHED = {"async_launched": "works in the background", "teammate_spawned": "joined the team"}
_NUMBERED = re.compile(r"^ *\d+[→\t]", re.MULTILINE)
_MACHINE_LINES = re.compile(r"^(?:agentId: |<usage>)", re.MULTILINE)


def headline(call: Call, width: int) -> Spans:
    """`✓ Bash  npm test  3.2s`, on one line: the input is cut, never the outcome."""
    mark = OUTCOMES[call.outcome]
    before = (Span(mark.sign, mark.role), Span(" "), Span(_tool(call.tool), Role.TOOL))
    notes = [tally(call), "" if call.outcome is Outcome.OK else str(call.outcome), span_of_time(call.duration)]
    after = tuple(Span(f"  {note}", Role.FAINT if at != 1 else mark.role) for at, note in enumerate(notes) if note)
    room = width - width_of(before) - width_of(after) - 2
    given = _given(call, max(10, room))
    return cut((*before, Span(f"  {given}" if given else ""), *after), width)


def _given(call: Call, width: int) -> str:
    """The telling input; a file as seen from where the session stood, its end rather than its beginning."""
    text = telling(call.tool, call.input)
    if call.tool not in FILE_TOOLS:
        return one_line(text, width)
    cwd = call.entry.cwd or ""
    below = text.startswith(cwd) and text[len(cwd) : len(cwd) + 1] in ("/", "\\")
    return clip_left(plain(text[len(cwd) + 1 :] if cwd and below else text), width)


def _tool(name: str) -> str:
    """`server: tool` for what an MCP server offers."""
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return f"{server}: {tool}" if name.startswith("mcp__") and tool else name or "(no name)"


def body(call: Call, width: int, *, whole: bool = False) -> Iterator[Spans]:
    """What came of a call, a few lines of it or (`whole`) all; a person's own words are not output."""
    lines = _BODIES.get(call.tool, _output)(call, width)
    if call.outcome is not Outcome.OK:
        lines = _output(call, width)
    yield from _folded(lines, width, None if whole else _room(call))
    if call.persisted is not None:
        yield (Span("whole output: " + clip_left(plain(str(call.persisted)), max(20, width - 14)), Role.FAINT),)


def _room(call: Call) -> int:
    if call.outcome is not Outcome.OK:
        return _SOME
    return _MANY if call.tool in _BODIES and call.tool not in AGENT_TOOLS else _FEW


def _folded(lines: Iterator[Spans], width: int, most: int | None) -> Iterator[Spans]:
    """The first lines, each cut to the width, and how many there are more; with no bound all of them, wrapped."""
    if most is None:
        for line in lines:
            yield from _pieces(line, width)
        return
    rest = 0
    for at, line in enumerate(lines):
        if at < most:
            yield cut(line, width)
        else:
            rest += 1
    if rest:
        yield (Span(f"… {count(rest, 'more line')}", Role.FAINT),)


def _pieces(line: Spans, width: int) -> Iterator[Spans]:
    """A line in pieces that fit; as a rule it is one."""
    if width_of(line) <= width:
        yield line
        return
    *before, last = line
    indent = width_of(before)
    for at, piece in enumerate(hard(last.text, width - indent)):
        yield (*(before if not at else (Span(" " * indent),)), Span(piece, last.role))


def _output(call: Call, _width: int) -> Iterator[Spans]:
    text = _TAGS.sub("", call.output).strip("\n")
    if call.outcome is Outcome.DENIED and (text.startswith(_REFUSED) or call.feedback):
        text = ""  # what the program tells the model
    role = Role.BAD if call.outcome is Outcome.ERROR else Role.FAINT
    for line in plain_lines(text) if text.strip() else ():
        yield (Span(line, role),)
    content: Any = call.block.content if call.block is not None else None
    for item in content if isinstance(content, list) else ():
        if isinstance(item, ImageBlock | DocumentBlock):
            yield (Span("(image)" if isinstance(item, ImageBlock) else "(document)", Role.FAINT),)


def _read(call: Call, width: int) -> Iterator[Spans]:
    """How much was read: what it says is in the file."""
    result = call.result
    file = result.file if isinstance(result, ReadResult) else None
    if file is not None and file.num_lines is not None:
        of = f" of {file.total_lines:,}" if file.total_lines and file.total_lines != file.num_lines else ""
        start = f" from {file.start_line:,}" if file.start_line and file.start_line > 1 else ""
        yield (Span(f"{file.num_lines:,}{of} {'line' if file.num_lines == 1 else 'lines'}{start}", Role.FAINT),)
    elif numbered := len(_NUMBERED.findall(call.output)):
        # Results of agents are often kept as the model saw them and no more.
        yield (Span(count(numbered, "line"), Role.FAINT),)
    else:
        yield from _output(call, width)


def _changes(call: Call, width: int) -> Iterator[Spans]:
    any_line = False
    for line in changes(call):
        any_line = True
        yield line
    if not any_line:
        yield from _output(call, width)


def _todos(call: Call, width: int) -> Iterator[Spans]:
    """The list as the call left it."""
    result = call.result
    items: Any = result.new_todos if isinstance(result, TodoWriteResult) else None
    if not items and isinstance(call.input, dict):
        items = call.input.get("todos")
    for item in items if isinstance(items, list) else ():
        status, text = _field(item, "status"), _field(item, "content")
        sign, role = _TODOS.get(status, ("☐", Role.BODY))
        yield (Span(f"{sign} "), Span(one_line(text, width), role))


def _plan(call: Call, width: int) -> Iterator[Spans]:
    plan = _field(call.input, "plan") or _field(call.result, "plan")
    yield from markdown(plan, width)


def _answers(call: Call, width: int) -> Iterator[Spans]:
    """What the person was asked, and answered."""
    answers = call.result.answers if isinstance(call.result, AskUserQuestionResult) else None
    if not isinstance(answers, dict):
        yield from _output(call, width)
        return
    for question, answer in answers.items():
        yield (Span(one_line(str(question), width), Role.FAINT),)
        yield (Span(f"{ASKS} {one_line(str(answer), width - 2)}", Role.PROMPT),)


def _report(call: Call, _width: int) -> Iterator[Spans]:
    """What an agent answered, without the lines that the program puts at its end for the model."""
    status = call.result.status if isinstance(call.result, AgentResult) else None
    if status in _LAUNCHED:
        yield (Span(_LAUNCHED[status], Role.FAINT),)
        return
    report = _MACHINE_LINES.split(call.output, maxsplit=1)[0]
    for line in plain_lines(report.strip("\n")) if report.strip() else ():
        yield (Span(line, Role.FAINT),)


def _field(holder: Any, name: str) -> str:
    value = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
    return value if isinstance(value, str) else ""


# Tools whose result is shown in a way of its own.
_BODIES: dict[str, Callable[[Call, int], Iterator[Spans]]] = {
    "Read": _read,
    "View": _read,
    "Edit": _changes,
    "MultiEdit": _changes,
    "Write": _changes,
    "Replace": _changes,
    "TodoWrite": _todos,
    "ExitPlanMode": _plan,
    "exit_plan_mode": _plan,
    "AskUserQuestion": _answers,
    "Task": _report,
    "Agent": _report,
}
