"""The context of an agent: the window at each request, cache breaks, and what filled the window.

`analyze_context` returns all of it. docs/context.md explains what is measured and what is an estimate.
"""

from threadline.thread.context.report import analyze_context

__all__ = ["analyze_context"]
