"""Files that were read: their lines with numbers, in the colours of their language; pictures shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.entries import UserEntry
from threadline.model.results import ReadFile, ReadResult
from threadline.render.figures import count
from threadline.render.html.calls.colours import MOST, colours
from threadline.render.html.calls.cut import head, leads
from threadline.render.html.calls.diff import numbers
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.hunks import lines_of
from threadline.render.html.calls.pieces import code, facts, file_name, printed
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.code import language_of
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import list_of, number_of, text_of, value_of
from threadline.render.html.pictures import pictures_of
from threadline.render.html.scene import Scene

_NUMBERED = re.compile(r" *(\d{1,9})[→\t](.*)")
_REMINDER = re.compile(r"\s*<system-reminder>.*", re.DOTALL)
_MOST_CELLS = 8
_UNCHANGED = "It was read before, and had not changed since."


def numbered(text: str, first: int, language: str | None, most: int | None) -> Markup:
    """Code with the numbers of its lines, in two columns: what is copied has no numbers in it.

    At most so many pieces have a colour (None: all that can).
    """
    at = range(first, first + len(text.split("\n")))
    drawn = colours(text, language, most)
    guard = "\n" if text.startswith("\n") else ""
    return el("div", numbers(at), el("pre", guard, drawn, class_="lines"), class_="numbered", tabindex=0)


def lines(text: str, first: int, path: str, made: Call, scene: Scene) -> Markup:
    """The lines of a file from a number on, cut where the page is not whole."""
    bare = text.removesuffix("\n")
    language = language_of(path)
    if scene.whole:
        return numbered(bare, first, language, None)
    shown, rest = head(bare)
    after = first + shown.count("\n") + 1

    def below() -> Markup:
        return numbered(rest, after, language, MOST)

    more = leads(count(rest.count("\n") + 1, "more line"), made, scene, below) if rest else EMPTY
    return join((numbered(shown, first, language, MOST), more))


def _path(made: Call) -> str:
    return text_of(made.input, "file_path", "notebook_path")


def _asked(made: Call, scene: Scene) -> Markup:
    given = made.input
    start, most = number_of(given, "offset"), number_of(given, "limit")
    wanted = f"from line {start:,}" if start else ""
    return join((_named(_path(made), scene), facts(wanted, f"at most {count(most, 'line')}" if most else "")))


def _named(path: str, scene: Scene) -> Markup:
    return el("p", file_name(path, scene), class_="file") if path else EMPTY


def _read(made: Call, scene: Scene) -> Markup:
    result = made.result
    if cells := _own_cells(made):
        return join((_named(_path(made), scene), _cells(cells, made, scene)))
    if not isinstance(result, ReadResult):
        return _as_seen(made, scene)
    if result.type == "file_unchanged":
        return join((_named(_path(made), scene), facts(_UNCHANGED)))
    file = result.file or ReadFile()
    path = file.file_path or _path(made)
    drawn = _content(file, path, made, scene)
    return join((_named(path, scene), facts(_range(file), *_told(result.type, file)), drawn, pictures_of(made, scene)))


def _content(file: ReadFile, path: str, made: Call, scene: Scene) -> Markup:
    if file.cells is not None:
        return _cells(file.cells, made, scene)
    if file.content is None:
        return EMPTY
    return lines(file.content, file.start_line or 1, path, made, scene) if file.content else facts("It is empty.")


def _range(file: ReadFile) -> str:
    """`lines 204 to 363 of 1,200`; all of a file is told by their number."""
    if file.num_lines is None or file.content is None:
        return ""
    start = file.start_line or 1
    if start <= 1 and file.total_lines in (None, file.num_lines):
        return count(file.num_lines, "line")
    of = f" of {file.total_lines:,}" if file.total_lines is not None else ""
    return f"lines {start:,} to {start + max(0, file.num_lines - 1):,}{of}"


def _told(kind: str | None, file: ReadFile) -> Iterable[str]:
    if kind not in (None, "text"):
        yield str(kind)
    if file.original_size is not None:
        yield count(file.original_size, "byte")
    if file.count is not None:
        yield count(file.count, "page")
    if file.truncated_by_token_cap:
        yield "cut by the program: too many tokens"


def _own_cells(made: Call) -> list[object]:
    """The cells that `NotebookRead` (to 1.0) gave as its result."""
    own = made.answer.tool_use_result if isinstance(made.answer, UserEntry) else None
    return [cell for cell in own if text_of(cell, "source")] if isinstance(own, list) else []


def _cells(cells: Sequence[object], made: Call, scene: Scene) -> Markup:
    """The cells of a notebook with what they printed."""
    some = cells if scene.whole else cells[:_MOST_CELLS]
    left = len(cells) - len(some)
    more = leads(count(left, "more cell"), made, scene, lambda: join(_cell(one, made, scene) for one in cells[-left:]))
    return join((*(_cell(one, made, scene) for one in some), more if left else EMPTY))


def _cell(cell: object, made: Call, scene: Scene) -> Markup:
    kind = text_of(cell, "cellType", "cell_type")
    language = text_of(cell, "language") or "python"
    source = value_of(cell, "source")
    text = "".join(map(str, source)) if isinstance(source, list) else text_of(cell, "source")
    outputs = "\n".join(text_of(one, "text") for one in list_of(cell, "outputs"))
    return el(
        "div",
        code(text, "markdown" if kind == "markdown" else language, made, scene),
        printed(outputs, made, scene),
        class_="cell",
    )


def _as_seen(made: Call, scene: Scene) -> Markup:
    """What the model saw, where no more was kept: lines that have their numbers in them."""
    text = clean(made.output)
    path = _path(made)
    found = [_NUMBERED.fullmatch(line) for line in lines_of(_REMINDER.sub("", text))]
    whole = [one for one in found if one is not None]
    if not whole or len(whole) < len(found):
        return join((_named(path, scene), printed(text, made, scene), pictures_of(made, scene)))
    start = int(whole[0][1])
    said = f"lines {start:,} to {start + len(whole) - 1:,}" if start > 1 else count(len(whole), "line")
    drawn = lines("\n".join(one[2] for one in whole), start, path, made, scene)
    return join((_named(path, scene), facts(said), drawn))


VIEWS: dict[str, ToolView] = dict.fromkeys(("Read", "View", "NotebookRead"), ToolView(_read, _asked))
