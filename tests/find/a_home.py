"""A home to look at, written file by file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from threadline.find import look
from threadline.model.homes import Home

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.model.homes import Found, Project

SESSION = "01234567-89ab-4cde-8f01-23456789abcd"
ANOTHER = "fedcba98-7654-4321-8fed-cba987654321"


def write(home: Path, path: str, *rows: object) -> Path:
    """Write a file of JSON lines; text and bytes are written as they are."""
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(_line(row) for row in rows))
    return file


def found(home: Path) -> Found:
    """Look at the home."""
    return look(Home(home, "option"))


def project(home: Path, folder: str) -> Project:
    """Look at the home and give one project."""
    return next(project for project in found(home).projects if project.folder == folder)


def _line(row: object) -> bytes:
    if isinstance(row, bytes):
        return row
    return (row if isinstance(row, str) else json.dumps(row) + "\n").encode()
