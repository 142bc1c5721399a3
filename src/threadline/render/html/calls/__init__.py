"""Calls as HTML: one line that says what was done and how it ended, and below it a view that suits the tool."""

from __future__ import annotations

from threadline.render.html.calls.view import render_call

__all__ = ["render_call"]
