"""Views of tools that read and edit files and notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup

from threadline.model.call_summary import list_of, number_of, strip_program_tags, text_of, value_of
from threadline.model.calls import Call
from threadline.model.entries import UserEntry
from threadline.model.results import EditResult, MultiEditResult, NotebookEditResult, ReadFile, ReadResult, WriteResult
from threadline.model.text import count
from threadline.render.html.calls.components import (
    MAX_CHARACTERS,
    MAX_LINES,
    ToolView,
    code_block,
    facts_line,
    file_heading,
    link_to_rest,
    output_block,
    split_head,
)
from threadline.render.html.calls.diff import (
    DiffRows,
    first_rows,
    hunks_of_deleted_text,
    hunks_of_new_text,
    hunks_of_patch,
    hunks_of_texts,
    line_numbers,
    more_lines,
    render_diff,
    split_lines,
)
from threadline.render.html.code import MAX_HIGHLIGHTS, highlight_within, language_of_file
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.images import render_call_images
from threadline.render.html.sections import Scene

_NUMBERED_LINE = re.compile(r" *(\d{1,9})[→\t](.*)")
_REMINDER = re.compile(r"\s*<system-reminder>.*", re.DOTALL)
_MAX_CELLS = 8
_UNCHANGED = "Unchanged since it was last read."


def numbered_code(text: str, first: int, language: str | None, limit: int | None) -> Markup:
    """Code with line numbers in a separate column, so that copied text does not contain them.

    At most `limit` pieces are highlighted (None: no limit).
    """
    numbers = range(first, first + len(text.split("\n")))
    html = highlight_within(text, language, limit)
    guard = "\n" if text.startswith("\n") else ""
    return el("div", line_numbers(numbers), el("pre", guard, html, class_="lines"), class_="numbered", tabindex=0)


def numbered_lines(text: str, first: int, path: str, call: Call, scene: Scene) -> Markup:
    """Numbered lines of a file, starting with number `first`. Cut unless the scene is uncut."""
    bare = text.removesuffix("\n")
    language = language_of_file(path)
    if scene.uncut:
        return numbered_code(bare, first, language, None)
    shown, rest = split_head(bare)
    after = first + shown.count("\n") + 1

    def below() -> Markup:
        return numbered_code(rest, after, language, MAX_HIGHLIGHTS)

    more = link_to_rest(count(rest.count("\n") + 1, "more line"), call, scene, below) if rest else EMPTY
    return join((numbered_code(shown, first, language, MAX_HIGHLIGHTS), more))


def _read_path(call: Call) -> str:
    return text_of(call.input, "file_path", "notebook_path")


def _read_input(call: Call, scene: Scene) -> Markup:
    arguments = call.input
    start, limit = number_of(arguments, "offset"), number_of(arguments, "limit")
    start_text = f"from line {start:,}" if start else ""
    return join(
        (
            file_heading(_read_path(call), scene),
            facts_line(start_text, f"at most {count(limit, 'line')}" if limit else ""),
        )
    )


def _read_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if cells := _notebook_cells(call):
        return join((file_heading(_read_path(call), scene), _render_cells(cells, call, scene)))
    if not isinstance(result, ReadResult):
        return _read_output(call, scene)
    if result.type == "file_unchanged":
        return join((file_heading(_read_path(call), scene), facts_line(_UNCHANGED)))
    file = result.file or ReadFile()
    path = file.file_path or _read_path(call)
    html = _file_content(file, path, call, scene)
    return join(
        (
            file_heading(path, scene),
            facts_line(_line_range(file), *_file_facts(result.type, file)),
            html,
            render_call_images(call, scene),
        )
    )


def _file_content(file: ReadFile, path: str, call: Call, scene: Scene) -> Markup:
    if file.cells is not None:
        return _render_cells(file.cells, call, scene)
    if file.content is None:
        return EMPTY
    return (
        numbered_lines(file.content, file.start_line or 1, path, call, scene)
        if file.content
        else facts_line("empty file")
    )


def _line_range(file: ReadFile) -> str:
    """`lines 204 to 363 of 1,200`, or the number of lines if the whole file was read."""
    if file.num_lines is None or file.content is None:
        return ""
    start = file.start_line or 1
    if start <= 1 and file.total_lines in (None, file.num_lines):
        return count(file.num_lines, "line")
    of = f" of {file.total_lines:,}" if file.total_lines is not None else ""
    return f"lines {start:,} to {start + max(0, file.num_lines - 1):,}{of}"


def _file_facts(kind: str | None, file: ReadFile) -> Iterable[str]:
    if kind not in (None, "text"):
        yield str(kind)
    if file.original_size is not None:
        yield count(file.original_size, "byte")
    if file.count is not None:
        yield count(file.count, "page")
    if file.truncated_by_token_cap:
        yield "truncated by Claude Code: too many tokens"


def _notebook_cells(call: Call) -> list[object]:
    """The cells in a result of `NotebookRead` (up to 1.0)."""
    cells = call.answer.tool_use_result if isinstance(call.answer, UserEntry) else None
    return [cell for cell in cells if text_of(cell, "source")] if isinstance(cells, list) else []


def _render_cells(cells: Sequence[object], call: Call, scene: Scene) -> Markup:
    """The cells of a notebook with their outputs."""
    shown = cells if scene.uncut else cells[:_MAX_CELLS]
    left = len(cells) - len(shown)
    more = link_to_rest(
        count(left, "more cell"), call, scene, lambda: join(_render_cell(cell, call, scene) for cell in cells[-left:])
    )
    return join((*(_render_cell(cell, call, scene) for cell in shown), more if left else EMPTY))


def _render_cell(cell: object, call: Call, scene: Scene) -> Markup:
    kind = text_of(cell, "cellType", "cell_type")
    language = text_of(cell, "language") or "python"
    source = value_of(cell, "source")
    text = "".join(map(str, source)) if isinstance(source, list) else text_of(cell, "source")
    outputs = "\n".join(text_of(output, "text") for output in list_of(cell, "outputs"))
    return el(
        "div",
        code_block(text, "markdown" if kind == "markdown" else language, call, scene),
        output_block(outputs, call, scene),
        class_="cell",
    )


def _read_output(call: Call, scene: Scene) -> Markup:
    """The output for the model, if there is no structured result. Its lines contain their numbers."""
    text = strip_program_tags(call.output)
    path = _read_path(call)
    matches = [_NUMBERED_LINE.fullmatch(line) for line in split_lines(_REMINDER.sub("", text))]
    numbered = [match for match in matches if match is not None]
    if not numbered or len(numbered) < len(matches):
        return join((file_heading(path, scene), output_block(text, call, scene), render_call_images(call, scene)))
    start = int(numbered[0][1])
    range_text = f"lines {start:,} to {start + len(numbered) - 1:,}" if start > 1 else count(len(numbered), "line")
    html = numbered_lines("\n".join(match[2] for match in numbered), start, path, call, scene)
    return join((file_heading(path, scene), facts_line(range_text), html))


READ_VIEWS: dict[str, ToolView] = dict.fromkeys(("Read", "View", "NotebookRead"), ToolView(_read_result, _read_input))


_SPARE_LINES = 4


def render_changes(hunks: Sequence[DiffRows], call: Call, scene: Scene) -> Markup:
    """Render hunks. Long diffs are cut, unless the scene is uncut."""
    if scene.uncut or (sum(map(len, hunks)) <= MAX_LINES + _SPARE_LINES and _text_size(hunks) <= MAX_CHARACTERS):
        return render_diff(hunks, uncut=scene.uncut)
    shown, left = first_rows(hunks, MAX_LINES, MAX_CHARACTERS)
    more = link_to_rest(more_lines(left), call, scene, lambda: render_diff(hunks)) if left else EMPTY
    return join((render_diff(shown, uncut=False), more))


def _text_size(hunks: Sequence[DiffRows]) -> int:
    return sum(len(row.text) for rows in hunks for row in rows)


def _edit_heading(path: str, scene: Scene, *facts: str | None) -> Markup:
    return join((file_heading(path, scene), facts_line(*facts)))


def _edited_path(call: Call) -> str:
    return text_of(call.result, "file_path", "notebook_path") or text_of(call.input, "file_path", "notebook_path")


def _edit_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, EditResult | MultiEditResult | WriteResult):
        return join((_edit_input(call, scene), output_block(call.output, call, scene)))
    hunks = _result_hunks(result) or list(_requested_hunks(call))
    facts = [
        "created" if isinstance(result, WriteResult) and result.type == "create" else "",
        "edited by the user before it was written" if result.user_modified else "",
        "every occurrence" if isinstance(result, EditResult) and result.replace_all else "",
    ]
    if not hunks:
        facts.append("empty file" if "created" in facts else "no changes")
    return join((_edit_heading(_edited_path(call), scene, *facts), render_changes(hunks, call, scene)))


def _result_hunks(result: EditResult | MultiEditResult | WriteResult) -> list[DiffRows]:
    """Hunks from a result: its patch, or a comparison of the file before and after."""
    if result.structured_patch:
        return hunks_of_patch(result.structured_patch)
    if isinstance(result, WriteResult):
        content = result.content or ""
        return (
            hunks_of_new_text(content)
            if result.original_file is None
            else hunks_of_texts(result.original_file, content)
        )
    return []


def _edit_input(call: Call, scene: Scene) -> Markup:
    """The requested change, if there is no structured result."""
    return join((_edit_heading(_edited_path(call), scene), render_changes(list(_requested_hunks(call)), call, scene)))


def _requested_hunks(call: Call) -> Iterator[DiffRows]:
    arguments = call.input
    if content := text_of(arguments, "content"):
        yield from hunks_of_new_text(content)
    for edit in list_of(arguments, "edits") or [arguments]:
        yield from hunks_of_texts(text_of(edit, "old_string"), text_of(edit, "new_string"), numbered=False)


def _notebook_edit_result(call: Call, scene: Scene) -> Markup:
    """One cell of a notebook, before and after."""
    result = call.result
    if not isinstance(result, NotebookEditResult):
        return join((_notebook_edit_input(call, scene), output_block(call.output, call, scene)))
    mode = result.edit_mode or "replace"
    old, new = result.old_source, result.new_source or ""
    has_old_source = old is not None or mode != "replace"
    facts = (
        f"{mode} cell {result.cell_id or result.cell_number or ''}".strip(),
        result.cell_type,
        "" if has_old_source else "previous content unknown",
        result.error,
    )
    hunks = hunks_of_deleted_text(old or "") if mode == "delete" else hunks_of_texts(old or "", new)
    return join((_edit_heading(_edited_path(call), scene, *facts), render_changes(hunks, call, scene)))


def _notebook_edit_input(call: Call, scene: Scene) -> Markup:
    arguments = call.input
    cell = value_of(arguments, "cell_id") or value_of(arguments, "cell_number")
    label = f"{text_of(arguments, 'edit_mode') or 'replace'} cell {cell if isinstance(cell, str | int) else ''}".strip()
    return join(
        (
            _edit_heading(_edited_path(call), scene, label),
            render_changes(hunks_of_new_text(text_of(arguments, "new_source")), call, scene),
        )
    )


EDIT_VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "Replace"), ToolView(_edit_result, _edit_input)),
    "NotebookEdit": ToolView(_notebook_edit_result, _notebook_edit_input),
}
