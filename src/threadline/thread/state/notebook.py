"""Apply the edits of `NotebookEdit` to the text of a notebook, as Claude Code writes it.

Claude Code parses the notebook, changes one cell and writes the JSON with an indent of one space (measured with
2.1.325). If Python would write some value differently than JavaScript, the result is not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_INSERTED_CELL = re.compile(r"Inserted cell (\S+) with ")
_CELL_POSITION = re.compile(r"cell-([0-9]{1,9})")
_INTEGER_KEY = re.compile(r"0|[1-9][0-9]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_SAFE_INTEGER = 2**53 - 1
_FIRST_FORMAT_WITH_IDS = (4, 5)
_CODE = "code"


class _Unknown(Exception):
    """The text after the edit is not known."""


def edit_notebook(text: str, arguments: Mapping[str, Any], output: str) -> str | None:
    """Return the text of a notebook after an edit; None if it is not known.

    `arguments` are the input of the call. `output` is its result, which has the id of an inserted cell.
    """
    try:
        notebook = json.loads(text, parse_float=_parse_number, parse_constant=_reject)
        _apply_edit(notebook, arguments, output)
        _check_values(notebook)
        return json.dumps(notebook, indent=1, ensure_ascii=False)
    except (_Unknown, ValueError, RecursionError):
        return None


def _apply_edit(notebook: Any, arguments: Mapping[str, Any], output: str) -> None:
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    source = arguments.get("new_source")
    mode = arguments.get("edit_mode") or "replace"
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells) or not isinstance(source, str):
        raise _Unknown
    position = _find_position(cells, arguments, mode)
    if mode == "replace" and position == len(cells):
        mode = "insert"  # as the tool does one past the end
    if mode == "insert" and position <= len(cells):
        cells.insert(position, _new_cell(notebook, source, arguments.get("cell_type") or _CODE, output))
    elif position >= len(cells):
        raise _Unknown
    elif mode == "delete":
        del cells[position]
    elif mode == "replace":
        _replace_source(cells[position], source, arguments.get("cell_type"))
    else:
        raise _Unknown


def _find_position(cells: list[dict[str, Any]], arguments: Mapping[str, Any], mode: str) -> int:
    """Return the position of the cell to change, or that of the new cell."""
    name, number = arguments.get("cell_id"), arguments.get("cell_number")
    if isinstance(name, str) and name:
        after = 1 if mode == "insert" else 0
        position = next((at for at, cell in enumerate(cells) if cell.get("id") == name), None)
        if position is not None:
            return position + after
        match = _CELL_POSITION.fullmatch(name)
        if match is not None:
            return int(match[1]) + after
    elif isinstance(number, int) and number >= 0:
        return number
    elif name is None and number is None and mode == "insert":
        return 0
    raise _Unknown


def _new_cell(notebook: dict[str, Any], source: str, cell_type: str, output: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": cell_type}
    version = notebook.get("nbformat"), notebook.get("nbformat_minor", 0)
    if not all(isinstance(number, int) for number in version):
        raise _Unknown
    if version >= _FIRST_FORMAT_WITH_IDS:
        match = _INSERTED_CELL.match(output)
        if match is None:
            raise _Unknown
        cell["id"] = match[1]
    cell |= {"source": source, "metadata": {}}
    return cell | {"execution_count": None, "outputs": []} if cell_type == _CODE else cell


def _replace_source(cell: dict[str, Any], source: str, cell_type: Any) -> None:
    cell["source"] = source
    if cell.get("cell_type") == _CODE:
        cell["execution_count"] = None
        cell["outputs"] = []
    if isinstance(cell_type, str) and cell_type:
        cell["cell_type"] = cell_type


def _parse_number(text: str) -> int | float:
    """Return a number as JavaScript has it. It writes 1.0 as 1, and has its own form of exponents."""
    number = float(text)
    if number.is_integer() and abs(number) <= _MAX_SAFE_INTEGER and text[0] != "-":
        return int(number)
    if "e" in repr(number) or number.is_integer():
        raise _Unknown
    return number


def _reject(_constant: str) -> Any:
    raise _Unknown


def _check_values(notebook: Any) -> None:
    """Raise `_Unknown` if JavaScript would write a value in a different way, or keys in a different order."""
    if any(map(_is_written_differently, _walk(notebook))):
        raise _Unknown


def _is_written_differently(value: Any) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, int):
        return abs(value) > _MAX_SAFE_INTEGER
    return isinstance(value, dict) and any(map(_INTEGER_KEY.fullmatch, value))


def _walk(value: Any) -> Iterator[Any]:
    stack = [value]
    while stack:
        value = stack.pop()
        yield value
        if isinstance(value, dict):
            stack += [*value, *value.values()]
        elif isinstance(value, list):
            stack += value
