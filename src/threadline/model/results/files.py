"""Results of tools that read and write files."""

from __future__ import annotations

from typing import Any

from threadline.model.results.result import ToolResult
from threadline.shape import Shape


class ReadFile(Shape, frozen=True):
    """The file as it was read."""

    file_path: str | None = None
    content: str | None = None
    num_lines: int | None = None
    start_line: int | None = None
    total_lines: int | None = None
    truncated_by_token_cap: Any = None
    base64: str | None = None
    type: str | None = None
    original_size: int | None = None
    dimensions: Any = None
    cells: list[Any] | None = None
    count: int | None = None
    output_dir: str | None = None


class ReadResult(ToolResult, frozen=True):
    """`Read`: `type` is text, image, pdf, notebook, parts or file_unchanged."""

    type: str | None = None
    file: ReadFile | None = None


class Hunk(Shape, frozen=True):
    """One hunk of a patch."""

    old_start: int | None = None
    old_lines: int | None = None
    new_start: int | None = None
    new_lines: int | None = None
    lines: list[str] | None = None


class EditResult(ToolResult, frozen=True):
    """`Edit`: what was replaced by what. `original_file` is null when it was big, since 2.1.97."""

    file_path: str | None = None
    old_string: str | None = None
    new_string: str | None = None
    original_file: str | None = None
    structured_patch: list[Hunk] | None = None
    user_modified: bool | None = None
    replace_all: bool | None = None
    memdir_stamped: Any = None
    stale_recovered: bool | None = None
    git_diff: Any = None


class OneEdit(Shape, frozen=True, rename=None):
    """One of the replacements of a `MultiEdit`."""

    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool | None = None


class MultiEditResult(ToolResult, frozen=True):
    """`MultiEdit` (to 1.0.108): several replacements in one file."""

    file_path: str | None = None
    edits: list[OneEdit] | None = None
    original_file_contents: str | None = None
    structured_patch: list[Hunk] | None = None
    user_modified: bool | None = None


class WriteResult(ToolResult, frozen=True):
    """`Write`: `type` is create or update; a created file has an empty patch."""

    type: str | None = None
    file_path: str | None = None
    content: str | None = None
    structured_patch: list[Hunk] | None = None
    original_file: str | None = None
    user_modified: bool | None = None
    memdir_stamped: Any = None
    git_diff: Any = None


class NotebookEditResult(ToolResult, frozen=True, rename=None):
    """`NotebookEdit`: one cell was changed."""

    new_source: str | None = None
    old_source: str | None = None
    cell_id: str | None = None
    cell_number: int | None = None
    cell_type: str | None = None
    language: str | None = None
    edit_mode: str | None = None
    error: str | None = None
    notebook_path: str | None = None
    original_file: str | None = None
    updated_file: str | None = None


class LspResult(ToolResult, frozen=True):
    """`LSP`: what a language server answered."""

    operation: str | None = None
    result: Any = None
    file_path: str | None = None
    result_count: int | None = None
    file_count: int | None = None


class ArtifactResult(ToolResult, frozen=True):
    """`Artifact`: something was published."""

    url: str | None = None
    path: str | None = None
    title: str | None = None
    version: Any = None
    updated: bool | None = None
    live_subscription: str | None = None


class SendUserFileResult(ToolResult, frozen=True):
    """`SendUserFile`: files were given to the person."""

    attachments: list[Any] | None = None
    caption: str | None = None
    status: str | None = None
    sent_at: Any = None
