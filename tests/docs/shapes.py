"""The model's structs, as the pages of the format should describe them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_args

from msgspec import Struct, inspect

import threadline.model
from threadline import Block, ContentBlock
from threadline.model.attachments import Attachment
from threadline.model.entries import KINDS, InternalEntry
from threadline.model.entries.conversation import ProgressData
from threadline.model.results import OtherResult, ToolResult
from threadline.model.usage import Head, MessageHead
from threadline.shape import OTHER_TAG, Shape, wire_fields

NOT_ON_DISK: frozenset[type[Struct]] = frozenset({Head, MessageHead, OtherResult, Block, ToolResult, InternalEntry})
"""Structs that do not describe a shape on disk: heads, unknown results, and bases without fields."""

ON_EVERY_PAGE = frozenset({"Entry", "ChainEntry", "Attached", "Block", "ToolResult", "InternalEntry", "Shape"})
"""Bases whose fields a page may omit. Any other base must be named."""

_WORDS: dict[type, str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.AnyType: "any",
    inspect.NoneType: "null",
}
_FAMILIES = {"OtherBlock": "block", "OtherAttachment": "attachment", "OtherProgress": "progress"}


def shapes() -> dict[str, type[Struct]]:
    """Return every struct of the model that is read from disk, by name."""
    for module in pkgutil.walk_packages(threadline.model.__path__, "threadline.model."):
        importlib.import_module(module.name)
    return {
        shape.__name__: shape for shape in _subclasses(Shape) if shape not in NOT_ON_DISK and tag(shape) != OTHER_TAG
    }


def _subclasses(shape: type[Struct]) -> Iterator[type[Struct]]:
    for inner in shape.__subclasses__():
        is_twin = inner.__struct_config__.forbid_unknown_fields
        if inner.__module__.startswith("threadline.model.") and not is_twin:
            yield inner
            yield from _subclasses(inner)


def tag(shape: type[Struct]) -> str | None:
    """Return the `type` of a struct on disk, or None if it has none or is only a base."""
    word = shape.__struct_config__.tag
    return word if isinstance(word, str) and word != shape.__name__ else None


def base(shape: type[Struct]) -> type[Struct]:
    """Return the struct that this one inherits its fields from."""
    parent: type[Struct] = shape.__mro__[1]
    return parent


def own_fields(shape: type[Struct]) -> dict[str, inspect.Field]:
    """Return the fields that a struct adds to its base, by wire name."""
    inherited = set() if base(shape) is Shape else {field.encode_name for field in wire_fields(base(shape))}
    return {field.encode_name: field for field in wire_fields(shape) if field.encode_name not in inherited}


def describe_type(info: inspect.Type) -> str:
    """Describe a field's type in the words of the pages.

    >>> describe_type(inspect.type_info(dict[str, list[int | str]]))
    'map of list of integer or string'
    """
    match info:
        case inspect.ListType():
            return f"list of {describe_type(info.item_type)}"
        case inspect.DictType():
            return f"map of {describe_type(info.value_type)}"
        case inspect.StructType():
            return _FAMILIES.get(info.cls.__name__, "" if info.tag else info.cls.__name__)
        case inspect.UnionType():
            words = [describe_type(member) for member in info.types if not isinstance(member, inspect.NoneType)]
            return " or ".join(dict.fromkeys(word for word in words if word))
    return _WORDS[type(info)]


def tags_of(union: Any) -> dict[str, str]:
    """Return the members of a tagged union, class by tag, without the one for unknown values."""
    return {
        word: member.__name__ for member in get_args(union) if (word := tag(member)) not in {None, OTHER_TAG} and word
    }


ATTACHMENTS = tags_of(Attachment)
PROGRESS = tags_of(ProgressData)
BLOCKS = tags_of(ContentBlock)
KIND_CLASSES = {shape.__name__: kind for kind, shape in KINDS.items()}
