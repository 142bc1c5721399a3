"""The context of an agent: the window at each request, cache breaks, and what filled the window.

`context` gives all of it. What is measured and what is an estimate is in docs/context.md.
"""

from threadline.thread.context.report import analyze_context

__all__ = ["analyze_context"]
