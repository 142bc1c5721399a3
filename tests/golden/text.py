"""How an answer is written into a golden file: the same on every machine, short, and easy to read in a diff."""

from __future__ import annotations

import difflib
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import threadline

FOLDER = Path(__file__).parent
_WIDTH = 150
_LONGEST, _SHOWN = 240, 100
_DIFFERENCE = 60


def steady(value: Any, names: Mapping[str, str]) -> Any:
    """The answer with `names` in place of what differs between runs; of a long text its beginning, length and hash."""
    if isinstance(value, str):
        for found, name in names.items():
            value = value.replace(found, name)
        return value if len(value) <= _LONGEST else _shortened(value)
    if isinstance(value, Mapping):
        return {steady(str(key), names): steady(item, names) for key, item in value.items()}
    return [steady(item, names) for item in value] if isinstance(value, list | tuple) else value


def _shortened(text: str) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:_SHOWN]}… ({len(text)} characters, {digest[:12]})"


def names_of(folder: Path) -> dict[str, str]:
    """What differs between runs wherever it stands: the folder of the run, the interpreter, the version."""
    version = f"threadline {threadline.__version__}"
    return {str(folder): "<tmp>", sys.executable: "<python>", version: "threadline <version>"}


def text_of(value: Any) -> str:
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


def path_of(suite: str, name: str) -> Path:
    """Where the golden file of an answer is."""
    return FOLDER / suite / f"{name}.json"


def differences(suite: str, answers: Mapping[str, Any]) -> list[str]:
    """What is not as the golden files of a suite have it: an entry for each, with the first lines of its diff."""
    known = {path.stem for path in (FOLDER / suite).glob("*.json")}
    found = [f"{suite}/{name}.json: nothing is asked that gives this file" for name in sorted(known - answers.keys())]
    for name, answer in answers.items():
        golden = path_of(suite, name).read_text(encoding="utf-8") if name in known else ""
        changed = difflib.unified_diff(
            golden.splitlines(), text_of(answer).splitlines(), f"golden/{suite}/{name}.json", "now", lineterm="", n=1
        )
        lines = list(changed)
        if lines:
            more = [f"… {len(lines) - _DIFFERENCE} lines more"] if len(lines) > _DIFFERENCE else []
            found.append("\n".join([*lines[:_DIFFERENCE], *more]))
    return found


def write(suite: str, answers: Mapping[str, Any]) -> None:
    """Make the answers the golden ones of a suite; files of other names go."""
    folder = FOLDER / suite
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.json"):
        if path.stem not in answers:
            path.unlink()
    for name, answer in answers.items():
        path_of(suite, name).write_text(text_of(answer), encoding="utf-8")
