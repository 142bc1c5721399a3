"""The context of an agent: the window at each request, cache breaks, and what filled the window.

`report` puts it together. docs/context.md explains what is measured and what is an estimate.
"""
