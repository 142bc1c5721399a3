"""`threadline tree`: print a session's turns, branches, compactions and agents as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, output_options
from threadline.cli.screen import pager_option

if TYPE_CHECKING:
    from threadline.render import TreeNode

_EPILOG = """
\b
Examples:
  threadline tree last             the session of last use
  threadline tree 55604662 --all   with agents the program runs for itself
  threadline tree last --json      the same for a program, nested
"""


@click.command(epilog=_EPILOG)
@click.argument("session")
@click.option("--all", "everything", is_flag=True, help="Side agents (compaction, suggestions, side questions), too.")
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@pager_option
@home_option
@output_options
def tree(session: str, *, everything: bool, no_color: bool, pager: bool, homes: tuple[str, ...], output: str) -> int:
    """Show a session's turns, branches, compactions and agents as a tree.

    SESSION is the start of its id, a transcript, or `last`. On a terminal a pager shows it: what PAGER says, or less
    (with -FRX unless LESS says otherwise), or more; none where TERM is dumb.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.resolve import read_session
    from threadline.render import build_tree, draw_tree

    found = read_session(session, homes)
    root = build_tree(found, everything=everything)
    if output == "json":
        out.print_json(root.as_json())
    elif output != "table":
        out.print_rows(_tree_rows(root, 0), output)
    else:
        coloured = screen.use_colour(wanted=not no_color)
        screen.print_lines(draw_tree(root, screen.page_width(), colour=coloured), coloured=coloured, pager=pager)
    return EXIT_OK if len(found) else EXIT_NOTHING


def _tree_rows(node: TreeNode, depth: int) -> Iterator[dict[str, Any]]:
    """A row for each line of the tree."""
    figures = node.figures
    yield {
        "depth": depth,
        "kind": node.kind,
        "text": node.text,
        "calls": figures.get("calls"),
        "failed": figures.get("failed"),
        "seconds": figures.get("seconds"),
        "status": figures.get("status"),
        "place": figures.get("place"),
    }
    for child in node.children:
        yield from _tree_rows(child, depth + 1)
