"""`threadline tree`: print a session's turns, branches, compactions and agents as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    colour_option,
    complete_with,
    home_option,
    output_options,
    pager_option,
    timezone_option,
)
from threadline.cli.resolve import read_session
from threadline.render import TreeNode, build_tree, draw_tree

_EPILOG = """
\b
Examples:
  threadline tree                  the newest session
  threadline tree 55604662 --all   with agents that Claude Code runs itself
  threadline tree last --json      nested, for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last", shell_complete=complete_with("sessions"))
@click.option(
    "--all", "everything", is_flag=True, help="Include side agents (compaction, suggestions, side questions)."
)
@timezone_option
@colour_option
@pager_option
@home_option
@output_options
def tree(
    session: str,
    *,
    everything: bool,
    zone: tzinfo,
    colour: bool,
    pager: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show a session's turns, branches, compactions and agents as a tree.

    SESSION is the start of a session id, a transcript, or `last`, the default. On a terminal, output goes through a
    pager: $PAGER, less (with -FRX unless LESS is set) or more; none if TERM is dumb.
    """
    loaded = read_session(session, homes)
    root = build_tree(loaded, everything=everything, zone=zone, costs=loaded.costs)
    if output == "json":
        out.print_json(root.as_json())
    elif output != "table":
        out.print_rows(_tree_rows(root, 0), output)
    else:
        colour = out.use_colour(enabled=colour)
        out.print_lines(draw_tree(root, out.page_width(), colour=colour), colour=colour, pager=pager)
    return EXIT_OK if len(loaded) else EXIT_NOTHING


def _tree_rows(node: TreeNode, depth: int) -> Iterator[dict[str, Any]]:
    """One row per line of the tree."""
    figures = node.figures
    yield {
        "depth": depth,
        "kind": node.kind,
        "text": node.text,
        "calls": figures.get("calls"),
        "failed": figures.get("failed"),
        "seconds": figures.get("seconds"),
        "tokens": figures.get("tokens"),
        "amount": figures.get("amount"),
        "status": figures.get("status"),
        "place": figures.get("place"),
    }
    for child in node.children:
        yield from _tree_rows(child, depth + 1)
