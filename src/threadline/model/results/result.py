"""What every tool's result has."""

from __future__ import annotations

from typing import Any

from threadline.shape import Shape


class ToolResult(Shape, frozen=True):
    """A tool's own result, richer than what the model saw. Each tool's is a class of its own."""


class OtherResult(ToolResult, frozen=True):
    """A result of a tool, or in a shape, that threadline does not know: whole in `data`."""

    data: Any = None
