"""Render a tool call for a terminal: a summary line with its outcome, a few lines of output, and diffs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from threadline.model.blocks import DocumentBlock, ImageBlock
from threadline.model.call_summary import (
    FILE_TOOLS,
    LAUNCH_STATUSES,
    change_tally,
    strip_machine_lines,
    strip_program_tags,
    summarize_input,
    text_of,
)
from threadline.model.calls import Call, Outcome, is_refusal_note
from threadline.model.names import AGENT_TOOLS, tool_label
from threadline.model.results import (
    AgentResult,
    AskUserQuestionResult,
    EditResult,
    Hunk,
    MultiEditResult,
    ReadResult,
    TodoWriteResult,
    WriteResult,
)
from threadline.model.text import count, format_duration
from threadline.render.terminal_markdown import markdown_lines
from threadline.render.text import (
    PROMPT_SIGN,
    Role,
    Span,
    Spans,
    clip_left,
    cut_line,
    line_width,
    one_line,
    plain,
    plain_lines,
    wrap_hard,
)

_DIFF_ROLES = {"+": Role.ADDED, "-": Role.REMOVED}


def changed_lines(call: Call) -> Iterator[Spans]:
    """The lines that a call changed, with their new line numbers; empty if they are unknown."""
    result = call.result
    if isinstance(result, EditResult | MultiEditResult | WriteResult) and result.structured_patch:
        for at, hunk in enumerate(result.structured_patch):
            if at:
                yield (Span("⋯", Role.FAINT),)
            yield from _hunk_lines(hunk)
    elif isinstance(result, WriteResult) and result.type == "create":
        yield from _added_text_lines(result.content)
    else:
        yield from _requested_changes(call.input)


def _hunk_lines(hunk: Hunk) -> Iterator[Spans]:
    old, new = hunk.old_start or 0, hunk.new_start or 0
    for line in hunk.lines or ():
        if line.startswith("\\"):  # "\ No newline at end of file"
            continue
        mark, text = (line[0], line[1:]) if line[:1] in ("+", "-", " ") else (" ", line)
        yield _diff_line(mark, old if mark == "-" else new, text)
        old += mark != "+"
        new += mark != "-"


def _diff_line(mark: str, number: int, text: str) -> Spans:
    shown = next(plain_lines(text.split("\n", 1)[0]))
    return (Span(f"{number:>5} ", Role.FAINT), Span(f"{mark} {shown}", _DIFF_ROLES.get(mark, Role.FAINT)))


def _added_text_lines(text: str | None) -> Iterator[Spans]:
    for number, line in enumerate((text or "").removesuffix("\n").split("\n"), 1):
        yield _diff_line("+", number, line)


def _requested_changes(arguments: Any) -> Iterator[Spans]:
    """The requested change, if there is no structured result."""
    edits: Iterable[Any] = (arguments.get("edits") or (arguments,)) if isinstance(arguments, dict) else ()
    for edit in edits if isinstance(edits, list | tuple) else ():
        for name, mark in (("old_string", "-"), ("new_string", "+"), ("content", "+")):
            text = edit.get(name) if isinstance(edit, dict) else None
            for line in text.removesuffix("\n").split("\n") if isinstance(text, str) and text else ():
                shown = next(plain_lines(line))
                yield (Span("      "), Span(f"{mark} {shown}", _DIFF_ROLES[mark]))


class OutcomeMark(Struct, frozen=True):
    """How an outcome is shown."""

    sign: str
    role: Role


OUTCOME_MARKS: dict[Outcome, OutcomeMark] = {
    Outcome.OK: OutcomeMark("✓", Role.GOOD),
    Outcome.ERROR: OutcomeMark("✗", Role.BAD),
    Outcome.DENIED: OutcomeMark("⊘", Role.BAD),
    Outcome.INTERRUPTED: OutcomeMark("■", Role.NOTICE),
    Outcome.PENDING: OutcomeMark("◌", Role.NOTICE),
    Outcome.LOST: OutcomeMark("?", Role.NOTICE),
}
_TODO_SIGNS = {"completed": ("☒", Role.FAINT), "in_progress": ("◐", Role.STRONG)}
_FEW_LINES, _ERROR_LINES, _MANY_LINES = 4, 12, 24
_NUMBERED_LINE = re.compile(r"^ *\d+[→\t]", re.MULTILINE)


def call_line(call: Call, width: int) -> Spans:
    """`✓ Bash  npm test  3.2s` on one line. The input is cut, never the outcome."""
    mark = OUTCOME_MARKS[call.outcome]
    before = (Span(mark.sign, mark.role), Span(" "), Span(tool_label(call.tool), Role.TOOL))
    notes = [
        change_tally(call.result),
        "" if call.outcome is Outcome.OK else str(call.outcome),
        format_duration(call.duration),
    ]
    after = tuple(Span(f"  {note}", Role.FAINT if at != 1 else mark.role) for at, note in enumerate(notes) if note)
    room = width - line_width(before) - line_width(after) - 2
    summary = _input_summary(call, max(10, room))
    return cut_line((*before, Span(f"  {summary}" if summary else ""), *after), width)


def _input_summary(call: Call, width: int) -> str:
    """The summary of the input. A path is relative to the working directory and cut at its start."""
    text = summarize_input(call.tool, call.input)
    if call.tool not in FILE_TOOLS:
        return one_line(text, width)
    cwd = call.entry.cwd or ""
    below = text.startswith(cwd) and text[len(cwd) : len(cwd) + 1] in ("/", "\\")
    return clip_left(plain(text[len(cwd) + 1 :] if cwd and below else text), width)


def call_body(call: Call, width: int, *, uncut: bool = False) -> Iterator[Spans]:
    """The first lines of a call's result, or all of them if `uncut`. The user's feedback is not included."""
    lines = _BODY_RENDERERS.get(call.tool, _output_lines)(call, width)
    if call.outcome is not Outcome.OK:
        lines = _output_lines(call, width)
    yield from _fold_lines(lines, width, None if uncut else _max_lines(call))
    if call.persisted is not None:
        yield (Span("full output: " + clip_left(plain(str(call.persisted)), max(20, width - 13)), Role.FAINT),)


def _max_lines(call: Call) -> int:
    if call.outcome is not Outcome.OK:
        return _ERROR_LINES
    return _MANY_LINES if call.tool in _BODY_RENDERERS and call.tool not in AGENT_TOOLS else _FEW_LINES


def _fold_lines(lines: Iterator[Spans], width: int, most: int | None) -> Iterator[Spans]:
    """The first lines, cut to the width, and the number of remaining lines. Without a limit all lines, wrapped."""
    if most is None:
        for line in lines:
            yield from _wrap_line(line, width)
        return
    rest = 0
    for at, line in enumerate(lines):
        if at < most:
            yield cut_line(line, width)
        else:
            rest += 1
    if rest:
        yield (Span(f"… {count(rest, 'more line')}", Role.FAINT),)


def _wrap_line(line: Spans, width: int) -> Iterator[Spans]:
    """Split a line into pieces that fit. Most lines are one piece."""
    if line_width(line) <= width:
        yield line
        return
    *before, last = line
    indent = line_width(before)
    for at, piece in enumerate(wrap_hard(last.text, width - indent)):
        yield (*(before if not at else (Span(" " * indent),)), Span(piece, last.role))


def _output_lines(call: Call, _width: int) -> Iterator[Spans]:
    text = "" if is_refusal_note(call) else strip_program_tags(call.output)
    role = Role.BAD if call.outcome is Outcome.ERROR else Role.FAINT
    for line in plain_lines(text) if text.strip() else ():
        yield (Span(line, role),)
    content: Any = call.block.content if call.block is not None else None
    for item in content if isinstance(content, list) else ():
        if isinstance(item, ImageBlock | DocumentBlock):
            yield (Span("(image)" if isinstance(item, ImageBlock) else "(document)", Role.FAINT),)


def _read_lines(call: Call, width: int) -> Iterator[Spans]:
    """The number of lines that were read, without their content."""
    result = call.result
    file = result.file if isinstance(result, ReadResult) else None
    if file is not None and file.num_lines is not None:
        of = f" of {file.total_lines:,}" if file.total_lines and file.total_lines != file.num_lines else ""
        start = f" from {file.start_line:,}" if file.start_line and file.start_line > 1 else ""
        yield (Span(f"{file.num_lines:,}{of} {'line' if file.num_lines == 1 else 'lines'}{start}", Role.FAINT),)
    elif numbered := len(_NUMBERED_LINE.findall(call.output)):
        # The calls of an agent often have no structured result, only the output for the model.
        yield (Span(count(numbered, "line"), Role.FAINT),)
    else:
        yield from _output_lines(call, width)


def _change_lines(call: Call, width: int) -> Iterator[Spans]:
    has_lines = False
    for line in changed_lines(call):
        has_lines = True
        yield line
    if not has_lines:
        yield from _output_lines(call, width)


def _todo_lines(call: Call, width: int) -> Iterator[Spans]:
    """The list after the call."""
    result = call.result
    items: Any = result.new_todos if isinstance(result, TodoWriteResult) else None
    if not items and isinstance(call.input, dict):
        items = call.input.get("todos")
    for item in items if isinstance(items, list) else ():
        status, text = text_of(item, "status"), text_of(item, "content")
        sign, role = _TODO_SIGNS.get(status, ("☐", Role.BODY))
        yield (Span(f"{sign} "), Span(one_line(text, width), role))


def _plan_lines(call: Call, width: int) -> Iterator[Spans]:
    plan = text_of(call.input, "plan") or text_of(call.result, "plan")
    yield from markdown_lines(plan, width)


def _answer_lines(call: Call, width: int) -> Iterator[Spans]:
    """The questions to the user and the answers."""
    answers = call.result.answers if isinstance(call.result, AskUserQuestionResult) else None
    if not isinstance(answers, dict):
        yield from _output_lines(call, width)
        return
    for question, answer in answers.items():
        yield (Span(one_line(str(question), width), Role.FAINT),)
        yield (Span(f"{PROMPT_SIGN} {one_line(str(answer), width - 2)}", Role.PROMPT),)


def _report_lines(call: Call, _width: int) -> Iterator[Spans]:
    """The answer of an agent, without the lines that Claude Code appends for the model."""
    status = call.result.status if isinstance(call.result, AgentResult) else None
    if status in LAUNCH_STATUSES:
        yield (Span(LAUNCH_STATUSES[status], Role.FAINT),)
        return
    report = strip_machine_lines(call.output)
    for line in plain_lines(report.strip("\n")) if report.strip() else ():
        yield (Span(line, Role.FAINT),)


# Renderers of tools with a special result.
_BODY_RENDERERS: dict[str, Callable[[Call, int], Iterator[Spans]]] = {
    "Read": _read_lines,
    "View": _read_lines,
    "Edit": _change_lines,
    "MultiEdit": _change_lines,
    "Write": _change_lines,
    "Replace": _change_lines,
    "TodoWrite": _todo_lines,
    "ExitPlanMode": _plan_lines,
    "exit_plan_mode": _plan_lines,
    "AskUserQuestion": _answer_lines,
    "Task": _report_lines,
    "Agent": _report_lines,
}
