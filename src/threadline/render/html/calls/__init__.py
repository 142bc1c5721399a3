"""Tool calls as HTML.

`render_call` renders a summary line with the outcome of the call, and below it a view for the tool. Each module defines
the views of related tools in a table of `ToolView`s: `agents`, `files`, `planning`, `search` (files, code, the web),
`shell` and `other` (which has the default view). `view` joins these tables, `components` contains what they share, and
`diff` compares and renders changed lines.
"""

from __future__ import annotations

from threadline.render.html.calls.view import render_call

__all__ = ["render_call"]
