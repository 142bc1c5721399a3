"""Files that were changed: what went and what came, with the numbers that the lines had and have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.results import EditResult, MultiEditResult, NotebookEditResult, WriteResult
from threadline.render.html.calls.cut import MOST_CHARACTERS, MOST_LINES, leads
from threadline.render.html.calls.diff import diff, first, more_lines
from threadline.render.html.calls.hunks import Rows, of_new, of_old, of_patch, of_texts
from threadline.render.html.calls.pieces import facts, file_name, printed
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import list_of, text_of, value_of
from threadline.render.html.scene import Scene

_SPARE = 4


def changes(hunks: Sequence[Rows], made: Call, scene: Scene) -> Markup:
    """Hunks as far as the page has room."""
    if scene.whole or (sum(map(len, hunks)) <= MOST_LINES + _SPARE and _size(hunks) <= MOST_CHARACTERS):
        return diff(hunks, whole=scene.whole)
    shown, left = first(hunks, MOST_LINES, MOST_CHARACTERS)
    more = leads(more_lines(left), made, scene, lambda: diff(hunks)) if left else EMPTY
    return join((diff(shown, whole=False), more))


def _size(hunks: Sequence[Rows]) -> int:
    return sum(len(row.text) for rows in hunks for row in rows)


def _head(path: str, scene: Scene, *said: str | None) -> Markup:
    return join((el("p", file_name(path, scene), class_="file") if path else EMPTY, facts(*said)))


def _path(made: Call) -> str:
    return text_of(made.result, "file_path", "notebook_path") or text_of(made.input, "file_path", "notebook_path")


def _edited(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, EditResult | MultiEditResult | WriteResult):
        return join((_tried(made, scene), printed(made.output, made, scene)))
    hunks = _hunks(result) or list(_wanted(made))
    said = [
        "created" if isinstance(result, WriteResult) and result.type == "create" else "",
        "the person changed it before it was written" if result.user_modified else "",
        "every occurrence" if isinstance(result, EditResult) and result.replace_all else "",
    ]
    if not hunks:
        said.append("an empty file" if "created" in said else "nothing in it changed")
    return join((_head(_path(made), scene, *said), changes(hunks, made, scene)))


def _hunks(result: EditResult | MultiEditResult | WriteResult) -> list[Rows]:
    """What a result tells: its own patch, or a file before and after."""
    if result.structured_patch:
        return of_patch(result.structured_patch)
    if isinstance(result, WriteResult):
        content = result.content or ""
        return of_new(content) if result.original_file is None else of_texts(result.original_file, content)
    return []


def _tried(made: Call, scene: Scene) -> Markup:
    """What was asked for, where no result tells what was done."""
    return join((_head(_path(made), scene), changes(list(_wanted(made)), made, scene)))


def _wanted(made: Call) -> Iterator[Rows]:
    given = made.input
    if content := text_of(given, "content"):
        yield from of_new(content)
    for edit in list_of(given, "edits") or [given]:
        yield from of_texts(text_of(edit, "old_string"), text_of(edit, "new_string"), numbered=False)


def _notebook(made: Call, scene: Scene) -> Markup:
    """One cell of a notebook, before and after."""
    result = made.result
    if not isinstance(result, NotebookEditResult):
        return join((_tried_notebook(made, scene), printed(made.output, made, scene)))
    mode = result.edit_mode or "replace"
    old, new = result.old_source, result.new_source or ""
    is_kept = old is not None or mode != "replace"
    said = (
        f"{mode} cell {result.cell_id or result.cell_number or ''}".strip(),
        result.cell_type,
        "" if is_kept else "what it was before was not kept",
        result.error,
    )
    hunks = of_old(old or "") if mode == "delete" else of_texts(old or "", new)
    return join((_head(_path(made), scene, *said), changes(hunks, made, scene)))


def _tried_notebook(made: Call, scene: Scene) -> Markup:
    given = made.input
    cell = value_of(given, "cell_id") or value_of(given, "cell_number")
    said = f"{text_of(given, 'edit_mode') or 'replace'} cell {cell if isinstance(cell, str | int) else ''}".strip()
    return join((_head(_path(made), scene, said), changes(of_new(text_of(given, "new_source")), made, scene)))


VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "Replace"), ToolView(_edited, _tried)),
    "NotebookEdit": ToolView(_notebook, _tried_notebook),
}
