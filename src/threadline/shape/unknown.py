"""What a value holds that its shape does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from msgspec import Struct, inspect

from threadline.shape.shape import OTHER, wire_fields


class Unknown(Struct, frozen=True):
    """One part of a value that its shape has no word for.

    `what` is `field` or `tag`; `shape` is the name of the shape (for a tag: of the union's stand-in); `name`
    the field's or tag's name; `json_path` leads to it and `value` is it.
    """

    what: str
    shape: str
    name: str
    json_path: str
    value: Any


_Walk = Callable[[Any, str], Iterator[Unknown]]


def unknown(value: Any, type_: Any) -> Iterator[Unknown]:
    """Name every field and tag in `value` that `type_` does not know.

    >>> class Point(Struct):
    ...     x: int = 0
    >>> [(found.name, found.json_path) for found in unknown({"x": 1, "z": 2}, Point)]
    [('z', '$.z')]
    """
    return _walk_for(type_)(value, "$")


@cache
def _walk_for(type_: Any) -> _Walk:
    return _walk(inspect.type_info(type_))


def _walk(info: inspect.Type) -> _Walk:
    match info:
        case inspect.StructType():
            return _struct_walk(info.cls)
        case inspect.UnionType():
            return _union_walk(info)
        case inspect.ListType() | inspect.VarTupleType():
            return _list_walk(info)
        case inspect.DictType():
            return _dict_walk(info)
    return _nothing


def _nothing(_value: Any, _path: str) -> Iterator[Unknown]:
    return iter(())


@cache
def _struct_walk(shape: type[Struct]) -> _Walk:
    walks: dict[str, _Walk] = {}
    tag = shape.__struct_config__.tag_field or ""

    def walk(value: Any, path: str) -> Iterator[Unknown]:
        if type(value) is not dict:
            return
        if not walks:  # made late: a shape may hold itself
            walks.update((field.encode_name, _walk(field.type)) for field in wire_fields(shape))
        for key, item in value.items():
            inner = walks.get(key)
            if inner is not None:
                yield from inner(item, f"{path}.{key}")
            elif key != tag:
                yield Unknown("field", shape.__name__, key, f"{path}.{key}", item)

    return walk


def _union_walk(info: inspect.UnionType) -> _Walk:
    structs = [member for member in info.types if isinstance(member, inspect.StructType)]
    tagged = {member.tag: _walk(member) for member in structs if member.tag not in (None, OTHER)}
    tag_field = next((member.tag_field for member in structs if member.tag_field), None)
    other = next((member.cls.__name__ for member in structs if member.tag == OTHER), "")
    plain = next((_walk(member) for member in structs if member.tag is None), _nothing)
    lists = next((_walk(m) for m in info.types if isinstance(m, inspect.ListType | inspect.VarTupleType)), _nothing)
    dicts = next((_walk(member) for member in info.types if isinstance(member, inspect.DictType)), plain)

    def walk(value: Any, path: str) -> Iterator[Unknown]:
        if type(value) is list:
            yield from lists(value, path)
        elif type(value) is dict:
            if tag_field is None:
                yield from dicts(value, path)
                return
            tag = value.get(tag_field)
            known = tagged.get(tag) if type(tag) is str else None
            if known is not None:
                yield from known(value, path)
            else:
                yield Unknown("tag", other, tag if type(tag) is str else "", path, value)

    return walk


def _list_walk(info: inspect.ListType | inspect.VarTupleType) -> _Walk:
    item_walk = _walk(info.item_type)
    if item_walk is _nothing:
        return _nothing

    def walk(value: Any, path: str) -> Iterator[Unknown]:
        if type(value) is list:
            for at, item in enumerate(value):
                yield from item_walk(item, f"{path}[{at}]")

    return walk


def _dict_walk(info: inspect.DictType) -> _Walk:
    value_walk = _walk(info.value_type)
    if value_walk is _nothing:
        return _nothing

    def walk(value: Any, path: str) -> Iterator[Unknown]:
        if type(value) is dict:
            for key, item in value.items():
                yield from value_walk(item, f"{path}.{key}")

    return walk
