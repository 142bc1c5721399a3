"""Writes the files of a home, and lists it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from threadline.find import look
from threadline.model.homes import Home

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.model.homes import Found, Project

SESSION = "01234567-89ab-4cde-8f01-23456789abcd"
OTHER_SESSION = "fedcba98-7654-4321-8fed-cba987654321"


def write(home: Path, path: str, *rows: object) -> Path:
    """Write a file of JSON lines. Text and bytes are written unchanged."""
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(_line(row) for row in rows))
    return file


def list_home(home: Path) -> Found:
    """List the home."""
    return look(Home(home, "option"))


def find_project(home: Path, folder: str) -> Project:
    """List the home and return one project."""
    return next(find_project for find_project in list_home(home).projects if find_project.folder == folder)


def _line(row: object) -> bytes:
    if isinstance(row, bytes):
        return row
    return (row if isinstance(row, str) else json.dumps(row) + "\n").encode()
