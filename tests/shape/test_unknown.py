"""Tests of `find_unknown` and `strict_type`, which find what a shape does not declare."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.subtests import for_each

from threadline import Message
from threadline.model.entries import KINDS, AnyEntry, UserEntry
from threadline.shape import Shape, find_unknown, strict_type, wire_fields

CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]]]] = {
    "nothing new": ({"type": "user", "uuid": "u"}, []),
    "a field at the top": ({"type": "user", "mood": 1}, [("field", "mood", "$.mood")]),
    "a field inside": ({"type": "user", "message": {"mood": 1}}, [("field", "mood", "$.message.mood")]),
    "a field in a block": (
        {"type": "user", "message": {"content": ["x", {"type": "text", "mood": 1}]}},
        [("field", "mood", "$.message.content[1].mood")],
    ),
    "a block": (
        {"type": "user", "message": {"content": [{"type": "beam"}]}},
        [("tag", "beam", "$.message.content[0]")],
    ),
    "a kind": ({"type": "brand-new", "x": 1}, [("tag", "brand-new", "$")]),
    "an attachment": ({"type": "attachment", "attachment": {"type": "sky"}}, [("tag", "sky", "$.attachment")]),
    "a field in a map": (
        {"type": "cost-state", "modelUsage": {"m": {"mood": 1}}},
        [("field", "mood", "$.modelUsage.m.mood")],
    ),
    "open fields are open": ({"type": "user", "toolUseResult": {"mood": 1}}, []),
    "wrong types are not new": ({"type": "user", "message": 5, "uuid": []}, []),
    "our own words are new": (
        {"type": "user", "threadline:line": 1},
        [("field", "threadline:line", "$.threadline:line")],
    ),
}


@pytest.mark.parametrize(("value", "expected"), CASES.values(), ids=CASES)
def test_unknown_fields_and_tags_have_a_path(value: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    """Each unknown field and tag is reported once."""
    assert [(new.what, new.name, new.json_path) for new in find_unknown(value, AnyEntry)] == expected


@for_each("kind", sorted(KINDS))
def test_strict_type_refuses_unknown_fields(kind: str) -> None:
    """It decodes known fields to an instance of the original type."""
    strict = strict_type(KINDS[kind])
    entry = msgspec.convert({"type": kind, "uuid": "u"}, strict)
    assert isinstance(entry, KINDS[kind])
    assert entry.uuid == "u"
    with pytest.raises(msgspec.ValidationError, match="neverHeardOf"):
        msgspec.convert({"type": kind, "neverHeardOf": 1}, strict)


def test_strict_type_is_strict_at_every_level() -> None:
    """An unknown field in a block of a message is refused, too."""
    row = {"type": "user", "message": {"content": [{"type": "text", "text": "x", "mood": 1}]}}
    with pytest.raises(msgspec.ValidationError, match="mood"):
        msgspec.convert(row, strict_type(UserEntry))
    assert strict_type(Message) is strict_type(Message)


@for_each("kind", [*KINDS.values()], ids=list(KINDS))
def test_every_field_has_a_default(kind: type[Shape]) -> None:
    """No kind requires a field: a row that only has a type is an entry."""
    assert msgspec.convert({"type": kind.__struct_config__.tag}, kind) is not None
    assert all(not field.required for field in wire_fields(kind))
