"""Moments as people write them on a command line."""

from __future__ import annotations

from threadline.model.when import moment

__all__ = ["moment"]
