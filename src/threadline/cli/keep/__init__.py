"""The `threadline keep` command and its actions."""

from threadline.cli.keep.run import keep

__all__ = ["keep"]
