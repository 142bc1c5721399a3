"""Writes results as golden files: the same on every machine, short, and easy to read in a diff."""

from __future__ import annotations

import difflib
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import threadline

FOLDER = Path(__file__).parent
_WIDTH = 150
_LONGEST, _SHOWN = 240, 100
_DIFFERENCE = 60


def normalize(value: Any, names: Mapping[str, str]) -> Any:
    """The value with `names` replaced for what differs between runs. Long texts are cut to a start, length and hash."""
    if isinstance(value, str):
        for text, name in names.items():
            value = value.replace(text, name)
        return value if len(value) <= _LONGEST else _shorten(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {normalize(str(key), names): normalize(item, names) for key, item in value.items()}
    return [normalize(item, names) for item in value] if isinstance(value, list | tuple) else value


def _shorten(text: str) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:_SHOWN]}… ({len(text)} characters, {digest[:12]})"


def varying_names(folder: Path) -> dict[str, str]:
    """What differs between runs: the folder of the run, the interpreter, the version."""
    version = f"threadline {threadline.__version__}"
    return {str(folder): "<tmp>", sys.executable: "<python>", version: "threadline <version>"}


def format_json(value: Any) -> str:
    """JSON with one line for whatever fits into one."""
    return "".join(_lines(value, "", "", "")) + "\n"


def _lines(value: Any, indent: str, before: str, after: str) -> Iterator[str]:
    line = f"{indent}{before}{_compact(value)}{after}"
    if len(line) <= _WIDTH or not isinstance(value, dict | list) or not value:
        yield line
        return
    if isinstance(value, dict):
        opening, closing, parts = "{", "}", [(f"{_compact(key)}: ", item) for key, item in value.items()]
    else:
        opening, closing, parts = "[", "]", [("", item) for item in value]
    yield f"{indent}{before}{opening}\n"
    for number, (label, item) in enumerate(parts, 1):
        yield from _lines(item, f"{indent} ", label, "," if number < len(parts) else "")
        yield "\n"
    yield f"{indent}{closing}{after}"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def golden_path(suite: str, name: str) -> Path:
    """The path of a golden file."""
    return FOLDER / suite / f"{name}.json"


def differences(suite: str, results: Mapping[str, Any]) -> list[str]:
    """The differences from the golden files of a suite, each with the first lines of its diff."""
    existing = {path.stem for path in (FOLDER / suite).glob("*.json")}
    messages = [
        f"{suite}/{name}.json: nothing is asked that gives this file" for name in sorted(existing - results.keys())
    ]
    for name, value in results.items():
        golden = golden_path(suite, name).read_text(encoding="utf-8") if name in existing else ""
        changed = difflib.unified_diff(
            golden.splitlines(), format_json(value).splitlines(), f"golden/{suite}/{name}.json", "now", lineterm="", n=1
        )
        lines = list(changed)
        if lines:
            more = [f"… {len(lines) - _DIFFERENCE} lines more"] if len(lines) > _DIFFERENCE else []
            messages.append("\n".join([*lines[:_DIFFERENCE], *more]))
    return messages


def write(suite: str, results: Mapping[str, Any]) -> None:
    """Write the results as the golden files of a suite, and remove other files."""
    folder = FOLDER / suite
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.json"):
        if path.stem not in results:
            path.unlink()
    for name, value in results.items():
        golden_path(suite, name).write_text(format_json(value), encoding="utf-8")
