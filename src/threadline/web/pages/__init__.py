"""The pages but the session's: which function makes which."""

from __future__ import annotations

from collections.abc import Mapping

from threadline.web.page import Make

PAGES: Mapping[str, Make] = {}
"""Paths without `.json`, and who makes what is shown there. Paths are those of `web/addresses.py`."""
