"""The version of the index's schema."""

from __future__ import annotations

VERSION = 2
"""An index of another version is not opened; it is made anew beside it."""
