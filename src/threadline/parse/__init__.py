"""Bytes to entries, losing nothing: `entries` for the whole of each, `heads` for what most questions need."""

from threadline.parse.entries import entries
from threadline.parse.heads import heads
from threadline.parse.side_files import SideReading, read_side_file

__all__ = ["SideReading", "entries", "heads", "read_side_file"]
