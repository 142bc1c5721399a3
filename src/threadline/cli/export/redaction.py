"""The options of `threadline export` that say what to redact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from threadline.cli.options import CommandFunction
from threadline.errors import BadQuery
from threadline.export import load_settings
from threadline.redact import Level, Settings

_FILE_PATH = click.Path(dir_okay=False, path_type=Path)


def redaction_options(function: CommandFunction) -> CommandFunction:
    """Add the options."""
    for option in reversed(
        (
            click.option(
                "--redact/--no-redact",
                default=True,
                help="Redact secrets, names, addresses and home directories. Default: redact.",
            ),
            click.option(
                "--level",
                type=click.Choice([level.value for level in Level]),
                help="How much to redact. strict: also random values, paths and URLs. metrics: all text."
                " Default: standard.",
            ),
            click.option("--hide", multiple=True, metavar="WORD", help="Also redact WORD. Repeatable."),
            click.option(
                "--hide-from",
                multiple=True,
                type=_FILE_PATH,
                metavar="FILE",
                help="Also redact the words in FILE, one per line.",
            ),
            click.option(
                "--patterns",
                multiple=True,
                type=_FILE_PATH,
                metavar="FILE",
                help="Also redact the patterns and words in this TOML file; see docs/redaction.md.",
            ),
        )
    ):
        function = option(function)
    return function


def parse_redaction(details: dict[str, Any]) -> Settings | None:
    """The settings that the options describe; None with `--no-redact`.

    Raises:
        BadQuery: an option contradicts `--no-redact`, or a file is invalid.
        NotFound: a file does not exist.
    """
    if details["redact"]:
        level = Level(details["level"]) if details["level"] else None
        return load_settings(details["hide"], details["hide_from"], details["patterns"], level)
    for name in ("hide", "hide_from", "patterns", "level"):
        if details[name]:
            raise BadQuery(f"--{name.replace('_', '-')} cannot be combined with --no-redact.")
    return None
