"""Required fields: the table fits the model and the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import DOCS, sections
from tests.transcripts import write

from threadline.model.entries import KINDS, may_have_problems
from threadline.model.entries.required import REQUIRED, RequiredField, describe_rule, missing_fields
from threadline.model.names import parse_version
from threadline.model.times import sortable_time
from threadline.parse import entries


@pytest.mark.parametrize("rule", REQUIRED, ids=lambda rule: f"{rule.kind}-{rule.only}-{rule.field}")
def test_every_rule_names_a_field_of_its_kind(rule: RequiredField) -> None:
    """A rule for a field that the model does not know would never be checked."""
    assert rule.field.split(".")[0] in KINDS[rule.kind].__struct_encode_fields__
    assert bool(parse_version(rule.since)) == bool(rule.since)


def test_an_empty_entry_lacks_all_that_every_version_writes(tmp_path: Path) -> None:
    """For each kind, a row with only a `type` lacks each field without limits, except those of a missing object."""
    path = write(tmp_path / "rows.jsonl", *({"type": kind} for kind in KINDS))
    for entry in entries(path):
        expected = {
            rule.field
            for rule in REQUIRED
            if rule.kind == entry.kind and not (rule.since or rule.until or rule.only or "." in rule.field)
        }
        assert {rule.field for rule in missing_fields(entry)} == expected


_COMPLETE: dict[str, Any] = {
    "type": "user",
    "uuid": "u",
    "parentUuid": "p",
    "timestamp": "2026-02-01T10:00:00.000Z",
    "sessionId": "s",
    "isSidechain": False,
    "userType": "external",
    "cwd": "/work",
    "version": "2.1.9",
    "gitBranch": "main",
    "sourceToolAssistantUUID": "a",
    "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
}


@pytest.mark.parametrize(
    "changed", [*_COMPLETE, "message.role", "message.content", "bad time", "early time", "nothing"]
)
@pytest.mark.parametrize("null", [False, True])
def test_entries_checked_together_have_the_problems_of_each(changed: str, null: bool, tmp_path: Path) -> None:
    """Of many entries, those that `may_have_problems` leaves out have none, and complete ones are left out."""
    row: dict[str, Any] = {**_COMPLETE, "message": {**_COMPLETE["message"]}}
    times = {"bad time": "soon", "early time": "1999-02-01T10:00:00.000Z"}
    if changed in times:
        row["timestamp"] = times[changed]
    elif changed != "nothing":
        *outer, name = changed.split(".")
        parent = row["message"] if outer else row
        if null:
            parent[name] = None
        else:
            del parent[name]
    path = write(tmp_path / "rows.jsonl", _COMPLETE, row, _COMPLETE, {"type": "mode", "mode": "plan", "sessionId": "s"})
    rows = list(entries(path))
    checked = [entry for entry in rows if not entry.problems]
    suspects = may_have_problems(checked, [sortable_time(entry.timestamp_text) for entry in checked])
    assert [entry.line.number for entry in checked if entry.all_problems and entry not in suspects] == []
    assert [entry.line.number for entry in suspects] == sorted(entry.line.number for entry in suspects)
    if changed == "nothing":
        assert suspects == []


def test_the_problems_page_lists_the_fields_of_the_conversation() -> None:
    """Each required field of the five kinds of the conversation, and each version, is in the table on the page."""
    rows = re.findall(r"^\|.*\|$", sections(DOCS / "problems.md")["missing-field"].text, re.MULTILINE)
    for rule in REQUIRED:
        if rule.kind in {"user", "assistant", "system", "progress", "attachment"}:
            name = f"`{rule.field.split('.')[-1]}`"
            assert any(name in row or f"`{rule.field}`" in row for row in rows), rule
            assert not rule.since or any(name in row and row.endswith(f"| {rule.since} |") for row in rows), rule


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({}, "every version writes it in `user` entries"),
        ({"since": "2.1.1"}, "version 2.1.1 and later always write it in `user` entries"),
        ({"until": "2.1.9"}, "versions up to 2.1.9 always write it in `user` entries"),
        ({"since": "2.0.0", "until": "2.1.9"}, "versions 2.0.0 to 2.1.9 always write it in `user` entries"),
        ({"only": "tool_result"}, "every version writes it in `user` entries with a tool result"),
    ],
)
def test_messages_name_the_versions(limits: dict[str, Any], sentence: str) -> None:
    """The message says which versions write the field."""
    assert describe_rule(RequiredField("user", "x", **limits)) == f"`x` is missing: {sentence}"
