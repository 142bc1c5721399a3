"""Write the output of commands: tables, JSON and CSV, in the width and colours of the terminal, with progress bars."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from decimal import Decimal
from functools import cache
from os.path import expanduser
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.json_values import encode_json, escape_match, to_json_value
from threadline.model.homes import HOME_VARIABLES
from threadline.model.text import count, format_decimal, format_size, plain_decimal, short_id
from threadline.render import (
    Role,
    Span,
    Spans,
    Style,
    clip,
    clip_left,
    display_width,
    dropped_note,
    fit_columns,
    one_line,
    plain,
    should_use_colour,
    wrap,
)

if TYPE_CHECKING:
    from threadline.model.places import Place
    from threadline.model.session import Session

GAP = "  "
"""The space between columns, and the indent of a page."""
# Spreadsheets take full-width signs for the plain ones.
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_WIDTH_WHEN_PIPED = 160
# The least width of the last column and of others, and of both if that is still too much.
_MIN_LAST_COLUMN, _MIN_COLUMN = 18, 10
_MIN_NARROW_LAST, _MIN_NARROW, _MIN_HEADING = 12, 5, 4
# CSV quotes cells with tabs and line ends; everything else in a cell is escaped as in a table.
_WITHIN_LINE = re.compile(r"[^\t\n\r]+")


_Value = TypeVar("_Value")
_KEPT_ALIVE: list[object] = []


def keep_alive(value: _Value) -> _Value:
    """Keep a large value until the process ends, because destroying it would take time."""
    _KEPT_ALIVE.append(value)
    return value


def terminal_width(*, piped: int = _WIDTH_WHEN_PIPED) -> int:
    """The terminal's width; without a terminal, COLUMNS or else `piped`."""
    if sys.stdout.isatty():
        import shutil  # noqa: PLC0415 - slow to import, and only a terminal needs it

        return shutil.get_terminal_size((100, 24)).columns
    return _columns_variable() or piped


def _columns_variable() -> int:
    """The width in COLUMNS; 0 if it has none."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns[:6]) if columns.isascii() and columns.isdecimal() else 0


def format_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[int] = (),
    shrink: Sequence[int] = (),
    drop: Sequence[str] = (),
    ends: bool = False,
    cut: Callable[[str, int], str] | None = None,
) -> str:
    """Align rows under headings. No line is wider than the terminal.

    Args:
        headings: The first line.
        rows: The other lines; cells may contain anything.
        right: Columns to align right.
        shrink: Columns that give way first if the last one gets too little space.
        drop: Headings of columns to leave out if there is too little space, the least important first. A note below
            the table names those that were left out.
        ends: Cut the last column at its start rather than its end. Useful for paths.
        cut: Cuts the last column to a width. By default, lines are cut at the end.
    """
    cells = [[plain(cell) for cell in row] for row in rows]
    kept = _fitting_columns(headings, cells, shrink, drop) if drop else range(len(headings))
    dropped = [heading for at, heading in enumerate(headings) if at not in kept]
    headings = [headings[at] for at in kept]
    cells = [[row[at] for at in kept] for row in cells]
    right, shrink = ([new for new, old in enumerate(kept) if old in columns] for columns in (right, shrink))
    widths = _fit_widths(headings, cells, shrink)
    cut = clip_left if ends else cut
    if cut is not None:
        cells = [[*row[:-1], cut(row[-1], widths[-1])] for row in cells]
    lines = ("".join(pad_cells(row, widths, right)).rstrip() for row in [headings, *cells])
    table = "\n".join(clip(line, terminal_width()) for line in lines)
    return f"{table}\n\n{wrap_text(dropped_note(dropped))}" if any(dropped) else table


def _fitting_columns(
    headings: Sequence[str], cells: Sequence[Sequence[str]], shrink: Sequence[int], drop: Sequence[str]
) -> list[int]:
    """The columns for which there is room. The last one, and those that may shrink, need only their least width."""
    widths = {}
    for at, heading in enumerate(headings):
        width = max([display_width(heading), *(display_width(row[at]) for row in cells)])
        least = _MIN_LAST_COLUMN if at == len(headings) - 1 else _MIN_COLUMN if at in shrink else width
        widths[heading] = min(width, least)
    fitting = fit_columns(widths, drop, terminal_width(), gap=len(GAP))
    return [at for at, heading in enumerate(headings) if heading in fitting]


def _fit_widths(headings: Sequence[str], cells: Sequence[Sequence[str]], shrink: Sequence[int]) -> list[int]:
    """The widths of columns. If they do not fit, some are narrower than their cells."""
    bodies = [max((display_width(row[at]) for row in cells), default=0) for at in range(len(headings))]
    widths = [max(display_width(heading), body) for heading, body in zip(headings, bodies, strict=True)]
    last = len(widths) - 1
    room = terminal_width() - len(GAP) * len(widths)
    others = [at for at in range(last) if at not in shrink]
    every = range(last + 1)
    # In this order: the last column, columns that may shrink, headings, then columns from the widest one down.
    steps: list[tuple[Sequence[int], Callable[[int], int]]] = [
        ([last], lambda _at: _MIN_LAST_COLUMN),
        (shrink, lambda _at: _MIN_COLUMN),
        (others, lambda at: max(bodies[at], _MIN_HEADING)),
        ([last], lambda _at: _MIN_NARROW_LAST),
        (shrink, lambda _at: _MIN_NARROW),
        (every, lambda _at: _MIN_NARROW),
        (every, lambda _at: 1),
    ]
    for columns, least in steps:
        while sum(widths) > room:
            widest = max((at for at in columns if widths[at] > least(at)), key=lambda at: widths[at], default=None)
            if widest is None:
                break
            widths[widest] -= 1
    return widths


def format_heading(text: str) -> str:
    """A heading, bold on a terminal with colours."""
    return Style(colour=should_use_colour(os.environ, terminal=sys.stdout.isatty())).line((Span(text, Role.TITLE),))


def session_heading(session: Session) -> str:
    """The id and the title of a session, as a heading."""
    return format_heading(one_line(f"{short_id(session.id)} {session.title.text}".strip(), page_width()))


def pad_cells(cells: Sequence[str], widths: Sequence[int], right: Sequence[int] = ()) -> list[str]:
    """Each cell, preceded by a gap, clipped or padded to its width."""
    padded = []
    for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        text = clip(cell, width)
        space = " " * (width - display_width(text))
        padded.append(GAP + (space + text if at in right else text + space))
    return padded


def wrap_text(text: str, first: str = "", indent: str | None = None) -> str:
    """Wrap plain text to the terminal's width, with `first` before the first line and `indent` before the others."""
    rest = " " * len(first) if indent is None else indent
    lines = wrap((Span(text),), max(40, terminal_width()), first=(Span(first),), rest=(Span(rest),))
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def has_width() -> bool:
    """Whether lines have to fit: on a terminal, or if COLUMNS is set."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))


def wrap_note(text: str, width: int, role: Role = Role.FAINT) -> Iterator[Spans]:
    """Wrap a note below a table."""
    return wrap((Span(text, role),), width, first=(Span(GAP),), rest=(Span(GAP),))


def shorten_path(path: str | Path, width: int) -> str:
    """A path, with the user's home directory as `~`, cut at its start if it is too long."""
    text = str(path)
    home = expanduser("~")  # noqa: PTH111 - Path.home raises if there is none
    if text.startswith(home + "/"):
        text = "~" + text[len(home) :]
    return clip_left(plain(text), width)


def format_place(session: Session, place: Place | None) -> str:
    """A place in a table: its line, preceded by the agent's id unless it is in the main transcript."""
    if place is None:
        return ""
    if session.path is None or place.transcript == str(session.path):
        return str(place.line)
    return format_transcript_place(place)


def format_transcript_place(place: Place) -> str:
    """A place as commands accept it: the start of the id of its session or agent, and the line."""
    stem = place.transcript.rsplit("/", 1)[-1].removesuffix(".jsonl").removeprefix("agent-")
    return f"{short_id(stem)}:{place.line}"


def print_text(text: str) -> None:
    """Print a file's text: unchanged into a pipe, without control characters on a terminal."""
    if sys.stdout.isatty():
        text = "\n".join(escape_line(line) for line in text.split("\n"))
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(errors="surrogatepass"))
    sys.stdout.buffer.flush()


def escape_line(line: str) -> str:
    """A line that cannot control a terminal. Tabs stay."""
    return "\t".join(plain(part) for part in line.split("\t"))


def json_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a record to JSON values, with amounts that have no exponent and no trailing zeros."""
    amounts = {name: plain_decimal(value) for name, value in record.items() if isinstance(value, Decimal)}
    converted: dict[str, Any] = to_json_value({**record, **amounts})
    return converted


def json_text(value: Any, *, indent: int = 0) -> str:
    """JSON as valid UTF-8, whatever the strings contain. Characters that could control a terminal are escaped."""
    encoded = encode_json(value)
    text = (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()
    return text if text.isascii() and "\x7f" not in text else _terminal_controls().sub(escape_match, text)


@cache
def _terminal_controls() -> re.Pattern[str]:
    """Matches control and format characters beyond ASCII, private use, invisible selectors: what `plain` escapes."""
    return re.compile(
        "[\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
        "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
        "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
    )


def print_json(value: Any) -> None:
    """Print one JSON document."""
    _echo(json_text(value, indent=2))


def print_record(record: Mapping[str, Any], output: str) -> None:
    """Print one record for a program: a JSON object, or a single row."""
    if output == "json":
        print_json(record)
    else:
        print_rows([record], output)


def print_rows(
    rows: Iterable[Mapping[str, Any]],
    output: str,
    file: IO[bytes] | None = None,
    *,
    columns: Sequence[str] | None = None,
) -> int:
    """Print rows as JSON, JSON Lines or CSV, one by one, to standard output or `file`; return how many.

    If the `columns` are known, CSV has a header even if there are no rows.
    """
    if output == "json":
        return _print_array(rows, file)
    number = 0
    for line in _csv_lines(rows, columns) if output == "csv" else map(json_text, rows):
        _echo(line, file=file)
        number += 1
    return max(0, number - 1) if output == "csv" else number


def _echo(text: str, *, end: str = "\n", file: IO[bytes] | None = None) -> None:
    """Print for a program: UTF-8, whatever the terminal's encoding."""
    click.echo((text + end).encode(), file=file, nl=False)


def _print_array(rows: Iterable[Mapping[str, Any]], file: IO[bytes] | None) -> int:
    number = 0
    for row in rows:
        _echo(("," if number else "[") + "\n" + json_text(row), end="", file=file)
        number += 1
    _echo("\n]" if number else "[]", file=file)
    return number


def _csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None) -> Iterator[str]:
    import csv  # noqa: PLC0415 - slow to import, and only `--csv` needs it

    def format_line(cells: Sequence[str]) -> str:
        line = io.StringIO()
        csv.writer(line).writerow(cells)  # also quotes cells that contain a carriage return or newline
        return line.getvalue().removesuffix("\r\n")

    names = columns
    if names is not None:
        yield format_line(list(map(_escape_csv, names)))
    for row in rows:
        if names is None:
            names = list(row)
            yield format_line(list(map(_escape_csv, names)))
        yield format_line([_csv_cell(row[name]) for name in names])


def _csv_cell(value: Any) -> str:
    text = json_text(value) if not isinstance(value, Decimal) else format_decimal(value)
    if not text.startswith('"'):
        return "" if text == "null" else text
    return _escape_csv(msgspec.json.decode(text))


def _escape_csv(text: str) -> str:
    """Text for a cell that neither controls a terminal, hides anything, nor is a formula."""
    cell = text if text.isascii() and text.isprintable() else _WITHIN_LINE.sub(lambda part: plain(part[0]), text)
    return "'" + cell if cell.startswith(_FORMULA_PREFIXES) else cell


_Item = TypeVar("_Item")
_SCREEN_WIDTH_WHEN_PIPED = 100
QUIET_BYTES = 8 * 1024 * 1024
"""Indexing or unpacking fewer bytes than this shows no progress bar, because it takes only a moment."""


def use_colour(*, enabled: bool = True) -> bool:
    """Whether to use colours on standard output."""
    return enabled and should_use_colour(os.environ, terminal=sys.stdout.isatty())


def page_width() -> int:
    """The width of text: the terminal's, COLUMNS, or a width that is easy to read."""
    return max(40, terminal_width(piped=_SCREEN_WIDTH_WHEN_PIPED))


def print_listing(
    items: Sequence[_Item],
    output: str,
    *,
    row: Callable[[_Item], Mapping[str, Any]],
    table: Callable[[Sequence[_Item]], str],
    nothing: Callable[[], str],
    limit: int | None = None,
) -> int:
    """Print a list as a table or as rows; return the exit code.

    Args:
        items: What to list.
        output: `table`, `json`, `jsonl` or `csv`.
        row: Converts an item to a row for programs.
        table: Formats all items as a table for people.
        nothing: Explains why the list is empty. Called only if it is.
        limit: The limit in effect. If the table reaches it, a note says how to see more.
    """
    if output != "table":
        print_rows(map(row, items), output)
    elif items:
        click.echo(table(items))
        if len(items) == limit:
            click.echo("\n" + wrap_text(f"Showing the newest {limit:,}. Use --limit N for more."))
    return EXIT_OK if items else report_nothing(nothing())


def print_message(text: str) -> None:
    """Print a message on standard error, safe for a terminal and wrapped to its width."""
    click.echo(wrap_message(f"threadline: {plain(text)}"), err=True)


def wrap_message(line: str) -> str:
    """Wrap a line for standard error at spaces, if that is a terminal or COLUMNS is set. Long words stay whole."""
    width = _error_width()
    if width is None:
        return line
    lines = [""]
    for word in line.split(" "):
        text = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1].strip() and display_width(text) > width:
            lines.append(f"  {word}")
        else:
            lines[-1] = text
    return "\n".join(lines)


def _error_width() -> int | None:
    """The width of standard error; None if it has none, or does not know it."""
    width = _columns_variable()
    if not width:
        with suppress(OSError, ValueError, AttributeError):  # closed, replaced, or not a terminal
            width = os.get_terminal_size(sys.stderr.fileno()).columns
    return max(40, width) if width else None


def can_ask() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


def report_new_folder(path: Path) -> None:
    """Say that a file will be written to a folder that does not exist yet."""
    if not path.parent.exists():
        print_message(f"Creating the folder {str(path.parent)!r}.")


def report_nothing(text: str) -> int:
    """Explain on standard error why there is no result; return the exit code for that."""
    print_message(text)
    return EXIT_NOTHING


def no_match_message(
    noun: str, total: int, options: Mapping[str, object], hint: str = "", *, plural: str | None = None
) -> str:
    """Say that no item matches these options. Those that are None or False are not in use; `""` is an argument.

    >>> no_match_message("session", 77, {"project": "x", "since": None}, "Projects: a, b.")
    "None of 77 sessions matches --project 'x'. Projects: a, b."
    """
    used = [_format_option(name, value) for name, value in options.items() if value not in (None, False)]
    items = f"None of {count(total, noun, plural)} matches" if total != 1 else f"The only {noun} does not match"
    return f"{items} {' and '.join(used) or 'the filter'}. {hint}".rstrip()


def _format_option(name: str, value: object) -> str:
    option = f"--{name}" if name else ""
    return f"{option} {value!r}".lstrip() if isinstance(value, str) else option


def report_no_home() -> None:
    """Say that there is no Claude home, and what to do about it."""
    print_message(no_home_message())


def no_home_message() -> str:
    """Why there is no home, and what to do. A variable that leads nowhere is named."""
    wrong = [f"{name} is {os.environ[name]!r}" for name in HOME_VARIABLES if os.environ.get(name)]
    if wrong:
        reason = f"{' and '.join(wrong)}, which does not exist. Correct or unset it, or use --home DIR."
    else:
        reason = "Use --home DIR or CLAUDE_CONFIG_DIR, or create an example: threadline demo demo-home"
    return f"No Claude home found. {reason}"


def print_lines(lines: Iterable[str], *, colour: bool, pager: bool = True, first_line: int = 0) -> None:
    """Print lines one by one, because a session may have a million. On a terminal, use a pager.

    `less` and `more` start at `first_line`.
    """
    command = pager_command() if pager and sys.stdout.isatty() else []
    if command:
        # One line earlier, so that the reader sees that there is text above.
        command += [f"+{first_line - 1}"] if first_line > 1 and Path(command[0]).stem in {"less", "more"} else []
        _run_pager(lines, command)
        return
    for line in lines:
        click.echo(line, color=colour)


def pager_command() -> list[str]:
    """The pager to use: $PAGER, or else less or more. Empty if PAGER is empty or `cat`, or TERM is dumb.

    PAGER is split into words without a shell: `;`, `$( )` and the like have no effect.
    """
    import shlex  # noqa: PLC0415 - only a terminal needs it
    import shutil  # noqa: PLC0415 - likewise

    configured = os.environ.get("PAGER")
    if os.environ.get("TERM") == "dumb" or configured == "":
        return []
    try:
        words = shlex.split(configured, posix=os.name != "nt") if configured is not None else []
    except ValueError:
        words = []
    for candidate in ([words] if words else []) + [["less"], ["more"]]:
        path = shutil.which(candidate[0])
        if path is not None:
            return [] if Path(path).stem == "cat" else [path, *candidate[1:]]
    return []


def _run_pager(lines: Iterable[str], command: list[str]) -> None:
    import subprocess  # noqa: PLC0415 - slow to import, and only a terminal needs it

    # As git does: pass colours through, and leave what fits on the screen there.
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - the user's own
    except OSError:
        for line in lines:
            click.echo(line)
        return
    if pager.stdin is not None:
        with suppress(OSError, KeyboardInterrupt):  # the reader has quit the pager
            for line in lines:
                pager.stdin.write(f"{line}\n".encode(errors="backslashreplace"))
        with suppress(OSError):
            pager.stdin.close()
    while True:
        try:
            pager.wait()
            break
        except KeyboardInterrupt:  # meant for the pager, which continues
            continue


@contextmanager
def progress_bar(label: str, total: int, *, rate: bool = False) -> Iterator[Callable[[int], None]]:
    """Show progress in bytes on a terminal's standard error, with the time left and optionally the rate.

    The function it provides takes the number of bytes done since the last call. Without a terminal, nothing is shown.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or not total:
        yield lambda _done: None
        return
    transfer = _TransferRate() if rate else None
    bar = click.progressbar(length=total, label=label, file=sys.stderr, show_pos=False, item_show_func=transfer)
    try:
        with bar:
            yield bar.update if transfer is None else lambda done: bar.update(done, transfer.add(done))
    finally:
        sys.stderr.write("\x1b[1A\x1b[2K")  # remove the bar
        sys.stderr.flush()  # before the result or the message, or its last line would be removed


def archive_progress(
    label: str, total: int, *, quiet_bytes: int = QUIET_BYTES
) -> AbstractContextManager[Callable[[int], None]]:
    """The progress bar that an archive asks for; none for `quiet_bytes` or less of indexing or unpacking."""
    if label in {"Indexing", "Unpacking", "Fetching"} and total <= quiet_bytes:
        return nullcontext(lambda _done: None)
    return progress_bar(label, total, rate=label in {"Indexing", "Unpacking", "Fetching", "Scanning"})


class _TransferRate:
    """Bytes per second since it was created, as text."""

    def __init__(self) -> None:
        self._start = monotonic()
        self._done = 0

    def add(self, done: int) -> int:
        """Add bytes; return the total."""
        self._done += done
        return self._done

    def __call__(self, done: int | None) -> str | None:
        return f"{format_size(int(done / max(monotonic() - self._start, 0.001)))}/s" if done else None
