"""`unknown` and `strict`: what a value holds that its shape has no word for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.subtests import for_each

from threadline.model.blocks import Message
from threadline.model.entries import KINDS, AnyEntry, UserEntry
from threadline.shape import Shape, find_unknown, strict_type
from threadline.shape.lenient import wire_fields

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


@pytest.mark.parametrize(("value", "found"), CASES.values(), ids=CASES)
def test_what_is_new_is_named_with_its_path(value: dict[str, Any], found: list[tuple[str, str, str]]) -> None:
    """Each field and tag that no shape knows is named once, with the path that leads to it."""
    assert [(new.what, new.name, new.json_path) for new in find_unknown(value, AnyEntry)] == found


@for_each("kind", sorted(KINDS))
def test_a_twin_is_its_noun_and_refuses_what_is_new(kind: str) -> None:
    """The strict twin of a kind makes the same noun of what is known, and refuses a field that is not."""
    twin = strict_type(KINDS[kind])
    made = msgspec.convert({"type": kind, "uuid": "u"}, twin)
    assert isinstance(made, KINDS[kind])
    assert made.uuid == "u"
    with pytest.raises(msgspec.ValidationError, match="neverHeardOf"):
        msgspec.convert({"type": kind, "neverHeardOf": 1}, twin)


def test_a_twin_is_strict_all_the_way_down() -> None:
    """A field that is new in a block of a message is refused, too."""
    row = {"type": "user", "message": {"content": [{"type": "text", "text": "x", "mood": 1}]}}
    with pytest.raises(msgspec.ValidationError, match="mood"):
        msgspec.convert(row, strict_type(UserEntry))
    assert strict_type(Message) is strict_type(Message)


@for_each("kind", [*KINDS.values()], ids=list(KINDS))
def test_every_field_has_a_default(kind: type[Shape]) -> None:
    """No kind requires a field: a row that only says its kind is an entry."""
    assert msgspec.convert({"type": kind.__struct_config__.tag}, kind) is not None
    assert all(not field.required for field in wire_fields(kind))
