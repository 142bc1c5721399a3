"""The `threadline lake` command and its actions."""

from threadline.cli.lake.group import lake

__all__ = ["lake"]
