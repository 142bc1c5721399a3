"""Validates transcripts and side files against the JSON Schema that `threadline schema` prints."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import threadline
from threadline import ToolResultBlock, ToolUseBlock
from threadline.model.entries import KINDS, AssistantEntry, Entry, UserEntry
from threadline.model.homes import SideFile
from threadline.model.results import result_type
from threadline.schema import json_schema, schema_kinds
from threadline.shape import fit


class SchemaValidator:
    """Validates what the reader accepts without problems, and counts it by definition. Skips without `jsonschema`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []
        self._schema = json_schema()
        jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, of the extra `test`, is not installed")
        self._make_validator = jsonschema.Draft202012Validator
        self._validators: dict[str, Any] = {}
        self._side = {kind.name: kind.definition for kind in schema_kinds() if kind.name.startswith("side-file/")}

    def check_schema(self) -> None:
        """Raise an error if the schema itself is not valid."""
        self._make_validator.check_schema(self._schema)

    @property
    def definitions(self) -> dict[str, Any]:
        """All definitions of the schema, by name."""
        definitions: dict[str, Any] = self._schema["$defs"]
        return definitions

    def check_transcript(self, path: Path) -> None:
        """Validate every line against the schema of its kind, and every tool result against that of its tool."""
        tools: dict[str, str] = {}
        for entry in threadline.entries(path):
            data = entry.data
            if isinstance(data, dict) and not entry.all_problems:
                definition = KINDS[entry.kind].__name__ if entry.kind in KINDS else "Entry"
                self._check(definition, data, str(entry.place))
            for name, result in _results(entry, tools):
                self._check(name, result, f"{entry.place}$.toolUseResult")

    def check_side_file(self, side: SideFile) -> None:
        """Validate the content of a side file, or each row of the history."""
        definition = self._side.get(f"side-file/{side.kind}")
        if definition is None:
            return
        texts = side.path.read_bytes().splitlines() if side.kind == "history" else [side.path.read_bytes()]
        if not threadline.read_side_file(side).problems:
            for text in filter(bytes.strip, texts):
                self._check(definition, json.loads(text), str(side.path))

    def check_any_line(self, data: Any) -> bool:
        """Whether a line validates against the whole schema."""
        return bool(self._validator("Entry").is_valid(data))

    def _check(self, definition: str, data: Any, place: str) -> None:
        self.counts[definition] += 1
        for error in self._validator(definition).iter_errors(data):
            self.errors.append(f"{place}: {definition}: {error.json_path}: {error.message[:200]}")

    def _validator(self, definition: str) -> Any:
        if definition not in self._validators:
            root = {"$ref": f"#/$defs/{definition}", "$defs": self._schema["$defs"]}
            self._validators[definition] = self._make_validator(root)
        return self._validators[definition]


def _results(entry: Entry, tools: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the tool results of an entry that fit their type, with the name of its definition."""
    if not isinstance(entry, UserEntry | AssistantEntry) or entry.message is None:
        return
    for block in entry.message.blocks:
        if isinstance(block, ToolUseBlock):
            tools[block.id or ""] = block.name
        elif isinstance(block, ToolResultBlock) and isinstance(entry, UserEntry):
            value = entry.tool_use_result
            shape = result_type(value, tools.get(block.tool_use_id or "")) if isinstance(value, dict) else None
            if shape is not None and not fit(value, shape)[1]:
                yield shape.__name__, value


def check_all(validator: SchemaValidator, transcripts: Iterable[Path], side_files: Iterable[SideFile]) -> None:
    """Validate files; the test fails with the first errors."""
    for path in transcripts:
        validator.check_transcript(path)
    for side in side_files:
        validator.check_side_file(side)
    assert not validator.errors, "\n".join(validator.errors[:10])
