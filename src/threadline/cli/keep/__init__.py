"""The `threadline keep` command and its actions."""

from threadline.cli.keep.group import keep

__all__ = ["keep"]
