"""The corpus as tests read it: cases by name, and the little language in which `out.json` says what must come out."""

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
    """The files of a case, in order."""
    return sorted(path for path in (CORPUS / case / "in").rglob("*") if path.is_file())


def transcripts(case: str) -> list[Path]:
    """The transcripts of a case: those of its files that are not stated to be side files."""
    sides = {stated["file"] for stated in expected(case) if "side" in stated}
    return [path for path in inputs(case) if name_in(case, path) not in sides]


def name_in(case: str, path: Path) -> str:
    """A file's name as `out.json` writes it."""
    return path.relative_to(CORPUS / case / "in").as_posix()


def expected(case: str) -> list[dict[str, Any]]:
    """What must come out of a case."""
    stated: list[dict[str, Any]] = json.loads((CORPUS / case / "out.json").read_bytes())
    return stated


def problem(found: Problem) -> dict[str, Any]:
    """A problem as `out.json` writes it."""
    return {
        "kind": found.kind.value,
        "json_path": found.place.json_path,
        "recovered": found.recovered,
        "lost": found.lost,
    }


def said(thing: Any, paths: Iterable[str]) -> dict[str, Any]:
    """What a thing says at each path: names of attributes, keys or positions, joined with dots.

    `*` goes on with every item of a list, and a last `class` gives the name of the type.
    """
    return {path: _plain(_walk(thing, path)) for path in paths}


def _walk(thing: Any, path: str) -> Any:
    if not path:
        return thing
    if isinstance(thing, Iterator):
        thing = list(thing)
    if path == "class":
        return type(thing).__name__
    if isinstance(thing, dict):  # a key may hold dots
        key = max((key for key in thing if path == key or path.startswith(f"{key}.")), key=len)
        return _walk(thing[key], path[len(key) + 1 :])
    step, _, rest = path.partition(".")
    if step == "*":
        return [_walk(item, rest) for item in thing]
    if isinstance(thing, list | tuple):
        return _walk(thing[int(step)], rest)
    return _walk(getattr(thing, step, None), rest)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
