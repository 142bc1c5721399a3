"""`threadline schema`: print JSON Schema or TypeScript types of Claude Code's files."""

from __future__ import annotations

from pathlib import Path

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import output_options
from threadline.errors import Unreadable
from threadline.files import write_output
from threadline.schema import FORMATS, json_schema, schema_kinds, typescript_types

# A narrower terminal would cut most descriptions.
_TABLE_WIDTH = 140
_LABEL_WIDTH = 28
_EPILOG = """
\b
Examples:
  threadline schema                      JSON Schema of a transcript's lines
  threadline schema --kind user          of one kind of entry
  threadline schema --kind result/Bash   of one tool's result
  threadline schema --list               all kinds
  threadline schema --format typescript --out claude-code.ts
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--format",
    "schema_format",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    help=f"Print this format. Default: {FORMATS[0]}.",
)
@click.option(
    "--kind", metavar="NAME", help="Describe only this kind and what it uses; see --list. Default: all kinds."
)
@click.option(
    "--out",
    "--output",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file and replace it if it exists. Default: standard output.",
)
@click.option("--list", "is_list", is_flag=True, help="List the kinds that have a schema.")
@output_options
def schema(schema_format: str, *, kind: str | None, path: Path | None, is_list: bool, output: str) -> int:
    """Print JSON Schema or TypeScript types of Claude Code's files.

    Describes every kind of entry, block, attachment, progress, tool result and side file that threadline knows.
    JSON Schema is in the 2020-12 dialect and validates one line of a transcript, or with --kind one value of that kind.
    Unknown fields are allowed. --json, --jsonl and --csv apply to --list.
    """
    if is_list:
        if kind is not None or path is not None:
            raise click.UsageError("--list cannot be combined with --kind or --out.")
        return _print_kinds(output)
    if output != "table":
        raise click.UsageError(f"--{output} needs --list.")
    if schema_format == "typescript":
        text = typescript_types(kind)
    else:
        text = out.json_text(json_schema(kind), indent=2) + "\n"
    if path is None:
        click.echo(text, nl=False)
        return EXIT_OK
    try:
        write_output(path, text.encode())
    except OSError as error:
        raise Unreadable(f"Cannot write {str(path)!r}: {error.strerror or error}.") from error
    return EXIT_OK


def _print_kinds(output: str) -> int:
    rows = [
        {"kind": kind.name, "definition": kind.definition, "description": kind.description} for kind in schema_kinds()
    ]
    if output != "table":
        out.print_rows(rows, output)
    elif out.terminal_width() >= _TABLE_WIDTH:
        click.echo(out.format_table(tuple(rows[0]), [tuple(row.values()) for row in rows]))
    else:
        for row in rows:
            _print_kind(row["kind"], row["description"])
    return EXIT_OK


def _print_kind(kind: str, description: str) -> None:
    """Print a kind and its description in a narrow terminal: the description starts a new line if the kind is long."""
    label = f"{out.GAP}{kind}{out.GAP}"
    if len(label) > _LABEL_WIDTH:
        click.echo(label.rstrip())
        label = ""
    click.echo(out.wrap_text(description, label.ljust(_LABEL_WIDTH)))
