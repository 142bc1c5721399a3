"""The cases of the corpus, and the notation in which `out.json` states what must be read from each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from threadline.model.places import Problem

CORPUS = Path(__file__).with_name("corpus")
CASES = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir())


def inputs(case: str) -> list[Path]:
    """Return the files of a case, in order."""
    return sorted(path for path in (CORPUS / case / "in").rglob("*") if path.is_file())


def transcripts(case: str) -> list[Path]:
    """Return the transcripts of a case: its files without those that `out.json` calls side files."""
    side_files = {file["file"] for file in expected(case) if "side" in file}
    return [path for path in inputs(case) if name_in(case, path) not in side_files]


def name_in(case: str, path: Path) -> str:
    """Return a file's name as `out.json` writes it."""
    return path.relative_to(CORPUS / case / "in").as_posix()


def expected(case: str) -> list[dict[str, Any]]:
    """Return what must be read from each file of a case."""
    files: list[dict[str, Any]] = json.loads((CORPUS / case / "out.json").read_bytes())
    return files


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem as `out.json` writes it."""
    return {
        "kind": problem.kind.value,
        "json_path": problem.place.json_path,
        "recovered": problem.recovered,
        "lost": problem.lost,
    }


def values_at(value: Any, paths: Iterable[str]) -> dict[str, Any]:
    """Return the value at each path. A path is names of attributes, keys or positions, joined with dots.

    `*` stands for every item of a list. A final `class` is the name of the type.
    """
    return {path: _plain(_walk(value, path)) for path in paths}


def _walk(value: Any, path: str) -> Any:
    if not path:
        return value
    if isinstance(value, Iterator):
        value = list(value)
    if path == "class":
        return type(value).__name__
    if isinstance(value, dict):  # a key may contain dots
        key = max((key for key in value if path == key or path.startswith(f"{key}.")), key=len)
        return _walk(value[key], path[len(key) + 1 :])
    step, _, rest = path.partition(".")
    if step == "*":
        return [_walk(item, rest) for item in value]
    if isinstance(value, list | tuple):
        return _walk(value[int(step)], rest)
    return _walk(getattr(value, step, None), rest)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
