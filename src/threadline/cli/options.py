"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorated = Callable[..., Any]

FORMATS = ("table", "json", "jsonl", "csv")


def output_options(function: Decorated) -> Decorated:
    """`--json`, `--jsonl`, `--csv`: a table when none is given."""
    helps = {
        "csv": "Print rows as CSV, with a heading.",
        "jsonl": "Print one JSON object a row.",
        "json": "Print one JSON document.",
    }
    for name, text in helps.items():
        function = click.option(f"--{name}", "output", flag_value=name, help=text)(function)
    return click.option("--table", "output", flag_value="table", default="table", hidden=True)(function)


def home_option(function: Decorated) -> Decorated:
    """`--home`: which homes, instead of those that are found."""
    return click.option(
        "--home",
        "homes",
        multiple=True,
        metavar="DIR",
        help="A Claude home to read, instead of those found; may be given several times.",
    )(function)


def jobs_option(function: Decorated) -> Decorated:
    """`--jobs`: how many workers."""
    return click.option(
        "--jobs", type=click.IntRange(min=1), metavar="N", help="How many workers to read with; by default, one a core."
    )(function)
