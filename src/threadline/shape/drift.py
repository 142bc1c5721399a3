"""Detect fields and tags that the model does not know.

`strict_type` derives a variant of a type that rejects unknown fields, so "is there anything new in this line?" is
answered at the fast decoder's speed. The variant is a subclass, so decoded values are still instances of the
original. `find_unknown` then lists each unknown field and tag with its JSON path.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import or_
from typing import Any, NewType, Union, get_args, get_origin

import msgspec
from msgspec import Struct, inspect

from threadline.shape.base import OTHER_TAG
from threadline.shape.lenient import wire_fields


@cache
def strict_type(type_: Any) -> Any:
    """Return the type with every struct in it replaced by a variant that rejects unknown fields."""
    if isinstance(type_, NewType):
        return type_
    if isinstance(type_, type) and issubclass(type_, Struct):
        return _strict_struct(type_)
    origin = get_origin(type_)
    if origin in (Union, types.UnionType):
        return reduce(or_, (strict_type(member) for member in get_args(type_)))
    if origin in (list, dict, tuple):
        return origin[tuple(item if item is ... else strict_type(item) for item in get_args(type_))]
    return type_


def _strict_struct(shape: type[Struct]) -> type[Struct]:
    changed = [
        (field.name, twin, msgspec.field(name=field.encode_name, **_default_arguments(field)))
        for field in msgspec.structs.fields(shape)
        if (twin := strict_type(field.type)) is not field.type
    ]
    config = shape.__struct_config__
    return msgspec.defstruct(
        shape.__name__,
        changed,
        bases=(shape,),
        module=shape.__module__,
        tag=config.tag,
        tag_field=config.tag_field,
        forbid_unknown_fields=True,
    )


def _default_arguments(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    if field.default is not msgspec.NODEFAULT:
        return {"default": field.default}
    if field.default_factory is not msgspec.NODEFAULT:
        return {"default_factory": field.default_factory}
    return {}


class UnknownPart(Struct, frozen=True):
    """A field or tag in a value that its type does not know.

    `what` is `field` or `tag`. `shape` is the name of the type; for a tag, of the union's member for unknown tags.
    `name` is the name of the field or tag.
    """

    what: str
    shape: str
    name: str
    json_path: str
    value: Any


_Walker = Callable[[Any, str], Iterator[UnknownPart]]


def find_unknown(value: Any, type_: Any) -> Iterator[UnknownPart]:
    """Name every field and tag in `value` that `type_` does not know.

    >>> class Point(Struct):
    ...     x: int = 0
    >>> [(found.name, found.json_path) for found in find_unknown({"x": 1, "z": 2}, Point)]
    [('z', '$.z')]
    """
    return _walker_for(type_)(value, "$")


@cache
def _walker_for(type_: Any) -> _Walker:
    return _make_walker(inspect.type_info(type_))


def _make_walker(info: inspect.Type) -> _Walker:
    match info:
        case inspect.StructType():
            return _struct_walker(info.cls)
        case inspect.UnionType():
            return _union_walker(info)
        case inspect.ListType() | inspect.VarTupleType():
            return _list_walker(info)
        case inspect.DictType():
            return _dict_walker(info)
    return _no_walk


def _no_walk(_value: Any, _path: str) -> Iterator[UnknownPart]:
    return iter(())


@cache
def _struct_walker(shape: type[Struct]) -> _Walker:
    walks: dict[str, _Walker] = {}
    tag = shape.__struct_config__.tag_field or ""

    def walk(value: Any, path: str) -> Iterator[UnknownPart]:
        if type(value) is not dict:
            return
        if not walks:  # on first use, because a type may contain itself
            walks.update((field.encode_name, _make_walker(field.type)) for field in wire_fields(shape))
        for key, item in value.items():
            inner = walks.get(key)
            if inner is not None:
                yield from inner(item, f"{path}.{key}")
            elif key != tag:
                yield UnknownPart("field", shape.__name__, key, f"{path}.{key}", item)

    return walk


def _union_walker(info: inspect.UnionType) -> _Walker:
    structs = [member for member in info.types if isinstance(member, inspect.StructType)]
    tagged = {member.tag: _make_walker(member) for member in structs if member.tag not in (None, OTHER_TAG)}
    tag_field = next((member.tag_field for member in structs if member.tag_field), None)
    other = next((member.cls.__name__ for member in structs if member.tag == OTHER_TAG), "")
    plain = next((_make_walker(member) for member in structs if member.tag is None), _no_walk)
    lists = next(
        (_make_walker(m) for m in info.types if isinstance(m, inspect.ListType | inspect.VarTupleType)), _no_walk
    )
    dicts = next((_make_walker(member) for member in info.types if isinstance(member, inspect.DictType)), plain)

    def walk(value: Any, path: str) -> Iterator[UnknownPart]:
        if type(value) is list:
            yield from lists(value, path)
        elif type(value) is dict:
            if tag_field is None:
                yield from dicts(value, path)
                return
            tag = value.get(tag_field)
            walk_member = tagged.get(tag) if type(tag) is str else None
            if walk_member is not None:
                yield from walk_member(value, path)
            else:
                yield UnknownPart("tag", other, tag if type(tag) is str else "", path, value)

    return walk


def _list_walker(info: inspect.ListType | inspect.VarTupleType) -> _Walker:
    item_walk = _make_walker(info.item_type)
    if item_walk is _no_walk:
        return _no_walk

    def walk(value: Any, path: str) -> Iterator[UnknownPart]:
        if type(value) is list:
            for at, item in enumerate(value):
                yield from item_walk(item, f"{path}[{at}]")

    return walk


def _dict_walker(info: inspect.DictType) -> _Walker:
    value_walk = _make_walker(info.value_type)
    if value_walk is _no_walk:
        return _no_walk

    def walk(value: Any, path: str) -> Iterator[UnknownPart]:
        if type(value) is dict:
            for key, item in value.items():
                yield from value_walk(item, f"{path}.{key}")

    return walk
