"""What commands print: tables for people, JSON and CSV for programs.

Transcripts hold hostile text. Nothing that could steer a terminal leaves here raw, and no CSV cell is a formula.
"""

from __future__ import annotations

import csv
import io
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from threadline.render.terminal_text import clip, clip_left, columns, one_line, plain

__all__ = [
    "clip",
    "clip_left",
    "columns",
    "day",
    "json_text",
    "one_line",
    "plain",
    "print_json",
    "print_rows",
    "size",
    "table",
    "terminal_width",
    "to_plain",
]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_KILO = 1000


def size(count: int) -> str:
    """A number of bytes for a person: 68.2 MB."""
    value = float(count)
    for unit in _UNITS:
        if value < _KILO or unit == _UNITS[-1]:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"
        value /= _KILO
    raise AssertionError


def day(moment: Any) -> str:
    """A day for a person."""
    return moment.strftime("%Y-%m-%d") if moment is not None else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows under headings, columns aligned; the columns in `right` are numbers. The last column may be cut."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(columns(row[at]) for row in [list(headings), *cells]) for at in range(len(headings))]
    room = terminal_width() - sum(widths[:-1]) - 2 * len(widths)
    widths[-1] = max(min(widths[-1], room), min(widths[-1], 20))
    lines = [_row(headings, widths, right)]
    lines += [_row(row, widths, right) for row in cells]
    return "\n".join(lines)


def terminal_width() -> int:
    """The terminal's width, or plenty where there is none."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 160


def _row(cells: Sequence[str], widths: list[int], right: Sequence[int]) -> str:
    padded = []
    for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        shown = clip(cell, width)
        space = " " * (width - columns(shown))
        padded.append(space + shown if at in right else shown + space)
    return ("  " + "  ".join(padded)).rstrip()


def to_plain(value: Any) -> Any:
    """Structs, paths, times and enums as JSON values."""
    return msgspec.to_builtins(value, enc_hook=_encode)


def _encode(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value).encode(errors="surrogateescape").decode(errors="replace")
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def json_text(value: Any, *, indent: int = 0) -> str:
    """JSON in valid UTF-8, whatever the strings hold."""
    try:
        text = msgspec.json.encode(value, enc_hook=_encode)
    except UnicodeEncodeError:
        text = msgspec.json.encode(_clean(to_plain(value)))
    return (msgspec.json.format(text, indent=indent) if indent else text).decode()


def _clean(value: Any) -> Any:
    """The same value without half surrogate pairs, which have no UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return value


def print_json(value: Any) -> None:
    """One JSON document."""
    _echo(json_text(value, indent=2))


def _echo(text: str, *, end: str = "\n") -> None:
    """Print for a program: UTF-8, whatever the terminal's encoding."""
    click.echo((text + end).encode(), nl=False)


def print_rows(rows: Iterable[Mapping[str, Any]], output: str) -> int:
    """Rows as JSON, JSON Lines or CSV, each as it comes; how many there were."""
    if output == "json":
        return _print_array(rows)
    count = 0
    for line in _csv_lines(rows) if output == "csv" else map(json_text, rows):
        _echo(line)
        count += 1
    return max(0, count - 1) if output == "csv" else count


def _print_array(rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for row in rows:
        _echo(("," if count else "[") + "\n" + json_text(row), end="")
        count += 1
    _echo("\n]" if count else "[]")
    return count


def _csv_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    heading: list[str] | None = None
    for row in rows:
        if heading is None:
            heading = list(row)
            yield _csv_line(heading)
        yield _csv_line([_cell(row[name]) for name in heading])


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)  # quotes what holds a carriage return or newline, as its own line end does
    return line.getvalue().removesuffix("\r\n")


def _cell(value: Any) -> str:
    text = json_text(value)
    if not text.startswith('"'):
        return "" if text == "null" else text
    words: str = msgspec.json.decode(text)
    return "'" + words if words.startswith(_FORMULA) else words
