"""Parses Markdown pages: headings, the text below each, and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FORMAT = DOCS / "format"
SHAPES = FORMAT / "shapes"

_HEADING = re.compile(r"(#{1,6}) (.+)")
_CELL_END = re.compile(r"(?<!\\)\|")


@dataclass
class Section:
    """A heading and everything below it up to the next heading of any level."""

    title: str
    level: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text below the heading."""
        return "\n".join(self.lines)

    @property
    def table(self) -> list[dict[str, str]]:
        """The rows of the section's table by column, or none without a table."""
        rows = [_cells(line) for line in self.lines if line.startswith("|")]
        if not rows:
            return []
        head, _rule, *body = rows
        return [dict(zip(head, row, strict=True)) for row in body]

    def code(self, language: str) -> list[str]:
        """The lines of the section's code blocks in `language`."""
        code_lines: list[str] = []
        block_language: str | None = None
        for line in self.lines:
            if line.startswith("```"):
                block_language = line[3:] if block_language is None else None
            elif block_language == language:
                code_lines.append(line)
        return code_lines


@cache
def sections(path: Path) -> dict[str, Section]:
    """Read the sections of a page, by title. Titles are unique within a page."""
    by_title: dict[str, Section] = {}
    current = Section("", 0)
    in_code = False
    for line in path.read_text(encoding="utf-8").splitlines():
        in_code ^= line.startswith("```")
        heading = None if in_code else _HEADING.fullmatch(line)
        if heading is None:
            current.lines.append(line)
            continue
        current = Section(heading[2], len(heading[1]))
        assert current.title not in by_title, f"{path.name} has two headings {current.title!r}"
        by_title[current.title] = current
    return by_title


def strip_markup(cell: str) -> str:
    """A cell's text without the markup of code and links: `[`a`](b)` is `a`."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell).replace("`", "")


def code_names(cell: str) -> list[str]:
    """All names in a cell that are marked as code."""
    return re.findall(r"`([^`]+)`", cell)


def links(path: Path) -> list[str]:
    """The targets of a page's links."""
    return re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))


def anchor(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELL_END.split(line)[1:-1]]
