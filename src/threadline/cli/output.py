"""Print tables for people, and JSON and CSV for programs.

Transcripts contain hostile text. Nothing that could control a terminal is printed raw, and no CSV cell is a formula
unless `--csv-exact` asks for unmodified cells.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import expanduser
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import msgspec

from threadline.model.text import count as counted
from threadline.render import clip, clip_left, display_width, one_line, plain

if TYPE_CHECKING:
    from threadline.model.places import Place
    from threadline.model.session import Session

__all__ = [
    "clip",
    "clip_left",
    "counted",
    "display_width",
    "format_day",
    "format_heading",
    "format_size",
    "format_table",
    "json_text",
    "one_line",
    "plain",
    "print_json",
    "print_rows",
    "terminal_width",
    "to_json_value",
    "wrap_text",
]

_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_KILO = 1000
_WIDTH_WHEN_PIPED = 160
_MIN_LAST_COLUMN, _MIN_COLUMN = 20, 10
# What a CSV cell has no use for, and a terminal obeys.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Control and format characters beyond ASCII, private use, selectors that nothing shows: what `plain` escapes, too.
_TERMINAL_CONTROLS = re.compile(
    "[\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)


def format_size(count: int) -> str:
    """A number of bytes for a person: 68.2 MB."""
    value = float(count)
    for unit in _UNITS:
        if value < _KILO or unit == _UNITS[-1]:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"
        value /= _KILO
    raise AssertionError


def format_day(moment: Any) -> str:
    """A day for a person."""
    return moment.strftime("%Y-%m-%d") if moment is not None else ""


def format_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[int] = (),
    shrink: Sequence[int] = (),
    ends: bool = False,
) -> str:
    """Rows under headings, columns aligned; the columns in `right` are numbers.

    The last column is cut where the terminal ends, with `ends` at its beginning: a path's end tells more. Where too
    little is left for it, the columns in `shrink` give way.
    """
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(display_width(row[at]) for row in [list(headings), *cells]) for at in range(len(headings))]
    wanted = min(widths[-1], _MIN_LAST_COLUMN)
    while (room := terminal_width() - sum(widths[:-1]) - 2 * len(widths)) < wanted:
        widest = max(shrink, key=lambda at: widths[at], default=None)
        if widest is None or widths[widest] <= _MIN_COLUMN:
            break
        widths[widest] -= 1
    widths[-1] = max(min(widths[-1], room), wanted)
    lines = [_format_row(headings, widths, right)]
    lines += [
        _format_row([*row[:-1], clip_left(row[-1], widths[-1]) if ends else row[-1]], widths, right) for row in cells
    ]
    return "\n".join(lines)


def terminal_width(*, piped: int = _WIDTH_WHEN_PIPED) -> int:
    """The terminal's width; where there is none, what COLUMNS says, or else plenty: `piped`."""
    if sys.stdout.isatty():
        import shutil

        return shutil.get_terminal_size((100, 24)).columns
    said = os.environ.get("COLUMNS", "")
    return int(said[:6]) if said.isascii() and said.isdecimal() and int(said[:6]) else piped


def format_heading(text: str) -> str:
    """A heading, bold on a terminal that has colours."""
    from threadline.cli import screen
    from threadline.render import Role, Span, Style

    return Style(colour=screen.use_colour()).line((Span(text, Role.TITLE),))


def wrap_text(text: str, first: str = "", indent: str | None = None) -> str:
    """Plain text over as many lines as the terminal needs, after `first`, its other lines after `indent`."""
    import textwrap

    return textwrap.fill(
        plain(text),
        max(40, terminal_width()),
        initial_indent=first,
        subsequent_indent=" " * len(first) if indent is None else indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _format_row(cells: Sequence[str], widths: list[int], right: Sequence[int]) -> str:
    padded = []
    for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        shown = clip(cell, width)
        space = " " * (width - display_width(shown))
        padded.append(space + shown if at in right else shown + space)
    return ("  " + "  ".join(padded)).rstrip()


def to_json_value(value: Any) -> Any:
    """Structs, paths, times and enums as JSON values."""
    return msgspec.to_builtins(value, enc_hook=_encode_path)


def _encode_path(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value).encode(errors="surrogateescape").decode(errors="replace")
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def json_text(value: Any, *, indent: int = 0) -> str:
    """JSON in valid UTF-8, whatever the strings hold; what could steer a terminal is escaped, as JSON can."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=_encode_path)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(_replace_surrogates(to_json_value(value)))
    text = (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()
    return text if text.isascii() and "\x7f" not in text else _TERMINAL_CONTROLS.sub(_escape_match, text)


def _escape_match(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _replace_surrogates(value: Any) -> Any:
    """The same value without half surrogate pairs, which have no UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return value


def print_json(value: Any) -> None:
    """One JSON document."""
    _echo(json_text(value, indent=2))


def _echo(text: str, *, end: str = "\n", file: IO[bytes] | None = None) -> None:
    """Print for a program: UTF-8, whatever the terminal's encoding."""
    click.echo((text + end).encode(), file=file, nl=False)


def print_rows(rows: Iterable[Mapping[str, Any]], output: str, file: IO[bytes] | None = None) -> int:
    """Rows as JSON, JSON Lines or CSV, each as it comes, into a file where one is given; how many there were."""
    if output == "json":
        return _print_array(rows, file)
    is_csv = output in {"csv", "csv-exact"}
    count = 0
    for line in _csv_lines(rows, exact=output == "csv-exact") if is_csv else map(json_text, rows):
        _echo(line, file=file)
        count += 1
    return max(0, count - 1) if is_csv else count


def _print_array(rows: Iterable[Mapping[str, Any]], file: IO[bytes] | None) -> int:
    count = 0
    for row in rows:
        _echo(("," if count else "[") + "\n" + json_text(row), end="", file=file)
        count += 1
    _echo("\n]" if count else "[]", file=file)
    return count


def _csv_lines(rows: Iterable[Mapping[str, Any]], *, exact: bool) -> Iterator[str]:
    names: list[str] | None = None
    for row in rows:
        if names is None:
            names = list(row)
            yield _csv_line(names)
        yield _csv_line([_csv_cell(row[name], exact=exact) for name in names])


def _csv_line(cells: Sequence[str]) -> str:
    import csv

    line = io.StringIO()
    csv.writer(line).writerow(cells)  # quotes what holds a carriage return or newline, as its own line end does
    return line.getvalue().removesuffix("\r\n")


def _csv_cell(value: Any, *, exact: bool) -> str:
    text = json_text(value)
    if not text.startswith('"'):
        return "" if text == "null" else text
    words: str = msgspec.json.decode(text)
    if exact:
        return words
    words = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", words)
    return "'" + words if words.startswith(_FORMULA_PREFIXES) else words


def shorten_path(path: str | Path, width: int) -> str:
    """A path below the person's own folder as `~/…`, cut at its beginning where it is too long."""
    text = str(path)
    home = expanduser("~")  # noqa: PTH111 - Path.home raises where there is none
    if text.startswith(home + "/"):
        text = "~" + text[len(home) :]
    return clip_left(plain(text), width)


def parse_place(session: Session, text: str | None) -> Place | None:
    """The place that was meant: `FILE:LINE`, or the number of a line of the main transcript."""
    from threadline.errors import BadQuery
    from threadline.model.places import Place

    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return Place(str(session.path or ""), int(text[:18]))
    place = Place.parse(text)
    if not place.line:
        raise BadQuery(f"{text!r} is not a place; write FILE:LINE or LINE, for example session.jsonl:12 or 12.")
    return place


def print_text(text: str) -> None:
    """Print a file's text: as it is into a pipe, without what could steer a terminal on one."""
    if sys.stdout.isatty():
        text = "\n".join(escape_line(line) for line in text.split("\n"))
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(errors="surrogatepass"))
    sys.stdout.buffer.flush()


def escape_line(line: str) -> str:
    """A line that cannot steer a terminal; its tabs stay."""
    return "\t".join(plain(part) for part in line.split("\t"))


def format_place(session: Session, place: Place | None) -> str:
    """A place in a table: its line, after the agent's name where it is not in the main transcript."""
    if place is None:
        return ""
    if session.path is None or place.transcript == str(session.path):
        return str(place.line)
    stem = place.transcript.rsplit("/", 1)[-1].removesuffix(".jsonl").removeprefix("agent-")
    return f"{stem[:8]}:{place.line}"
