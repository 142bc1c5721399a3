"""A shape from a value that does not quite have it.

What fits is kept, what does not is left at its default and named in a `Misfit` with its JSON path. The
plan for a type is made once, from what msgspec knows of the type, and follows its structure only, so that a
deeply nested value in an open field costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import Struct, inspect

from threadline.shape.shape import OTHER, wire_fields


class Misfit(Struct, frozen=True):
    """One value that is not of the type its field has: where, and in words."""

    json_path: str
    message: str


_Plan = Callable[[Any, str, list[Misfit]], Any]
_NOTHING: Any = object()


def fit(value: Any, type_: Any) -> tuple[Any, list[Misfit]]:
    """The best `type_` that `value` can be, and what did not fit. The first is None when nothing does.

    >>> class Point(Struct):
    ...     x: int = 0
    ...     y: int = 0
    >>> fit({"x": 1, "y": "far"}, Point)
    (Point(x=1, y=0), [Misfit(json_path='$.y', message='Expected `int`, got `str`')])
    """
    misfits: list[Misfit] = []
    made = _plan_for(type_)(value, "$", misfits)
    return (None if made is _NOTHING else made), misfits


@cache
def _plan_for(type_: Any) -> _Plan:
    return _plan(inspect.type_info(type_))


def _plan(info: inspect.Type) -> _Plan:
    """The plan for one type, out of the table below."""
    make = _PLANS.get(type(info))
    if make is None:
        raise TypeError(f"no shape may have a field of type {info!r}")
    return make(info)


def _expected(what: str, value: Any, path: str, misfits: list[Misfit]) -> Any:
    misfits.append(Misfit(path, f"Expected `{what}`, got `{_name(value)}`"))
    return _NOTHING


def _name(value: Any) -> str:
    names = {type(None): "null", dict: "object", list: "array"}
    return names.get(type(value), type(value).__name__)


def _scalar_plan(type_: type, name: str) -> _Plan:
    def plan(value: Any, path: str, misfits: list[Misfit]) -> Any:
        return value if type(value) is type_ else _expected(name, value, path, misfits)

    return plan


def _int_plan(info: inspect.IntType) -> _Plan:
    def plan(value: Any, path: str, misfits: list[Misfit]) -> Any:
        number = value
        if (type(value) is float and value.is_integer()) or _is_digits(value):
            number = int(value)
        if type(number) is not int:
            return _expected("int", value, path, misfits)
        if (info.ge is not None and number < info.ge) or (info.le is not None and number > info.le):
            misfits.append(Misfit(path, f"{str(number)[:20]} is out of range"))
            return _NOTHING
        if number is not value:
            misfits.append(Misfit(path, f"Expected `int`, got `{_name(value)}`; read as {number}"))
        return number

    return plan


def _is_digits(value: Any) -> bool:
    return type(value) is str and value.isascii() and value.isdecimal() and len(value) <= len(str(2**63))


def _float(value: Any, path: str, misfits: list[Misfit]) -> Any:
    return value if type(value) in (float, int) else _expected("float", value, path, misfits)


def _list_plan(info: inspect.ListType | inspect.VarTupleType) -> _Plan:
    item_plan = _plan(info.item_type)
    make = list if isinstance(info, inspect.ListType) else tuple

    def plan(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is not list:
            return _expected("array", value, path, misfits)
        items = (item_plan(item, f"{path}[{at}]", misfits) for at, item in enumerate(value))
        return make(item for item in items if item is not _NOTHING)

    return plan


def _dict_plan(info: inspect.DictType) -> _Plan:
    value_plan = _plan(info.value_type)

    def plan(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is not dict:
            return _expected("object", value, path, misfits)
        made = {key: value_plan(item, f"{path}.{key}", misfits) for key, item in value.items()}
        return {key: item for key, item in made.items() if item is not _NOTHING}

    return plan


@cache
def _struct_plan(shape: type[Struct]) -> _Plan:
    plans: dict[str, tuple[str, _Plan]] = {}

    def plan(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is not dict:
            return _expected("object", value, path, misfits)
        if not plans:  # made late: a shape may hold itself
            plans.update((field.encode_name, (field.name, _plan(field.type))) for field in wire_fields(shape))
        made: dict[str, Any] = {}
        for key, item in value.items():
            known = plans.get(key)
            if known is not None:
                fitted = known[1](item, f"{path}.{key}", misfits)
                if fitted is not _NOTHING:
                    made[known[0]] = fitted
        return shape(**made)

    return plan


def _union_plan(info: inspect.UnionType) -> _Plan:
    structs = [member for member in info.types if isinstance(member, inspect.StructType)]
    tagged = {member.tag: _plan(member) for member in structs if member.tag is not None}
    other = next((member.cls for member in structs if member.tag == OTHER), None)
    tag_field = next((member.tag_field for member in structs if member.tag_field), None)
    by_type: dict[type, _Plan] = {}
    for member in info.types:
        for python_type in _PYTHON_TYPES.get(type(member), ()):
            by_type.setdefault(python_type, _plan(member))
    names = " | ".join(_INFO_NAMES.get(type(member), "object") for member in info.types)

    def plan(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is dict and tag_field is not None:
            tag = value.get(tag_field)
            chosen = tagged.get(tag) if type(tag) is str and tag != OTHER else None
            if chosen is not None:
                return chosen(value, path, misfits)
            if other is not None:
                return other(tag=tag if type(tag) is str else "", data=value)
        by = by_type.get(type(value))
        if by is not None:
            return by(value, path, misfits)
        if other is not None:
            misfits.append(Misfit(path, f"Expected `{names}`, got `{_name(value)}`"))
            return other(tag="", data=value)
        if int in by_type:  # a count written as text or as 1e5
            return by_type[int](value, path, misfits)
        return _expected(names, value, path, misfits)

    return plan


_PLANS: dict[type, Callable[[Any], _Plan]] = {
    inspect.AnyType: lambda _info: lambda value, _path, _misfits: value,
    inspect.StructType: lambda info: _struct_plan(info.cls),
    inspect.UnionType: _union_plan,
    inspect.ListType: _list_plan,
    inspect.VarTupleType: _list_plan,
    inspect.DictType: _dict_plan,
    inspect.NoneType: lambda _info: _scalar_plan(type(None), "null"),
    inspect.BoolType: lambda _info: _scalar_plan(bool, "bool"),
    inspect.StrType: lambda _info: _scalar_plan(str, "str"),
    inspect.IntType: _int_plan,
    inspect.FloatType: lambda _info: _float,
}
_PYTHON_TYPES: dict[type, tuple[type, ...]] = {
    inspect.NoneType: (type(None),),
    inspect.BoolType: (bool,),
    inspect.StrType: (str,),
    inspect.IntType: (int,),
    inspect.FloatType: (float, int),
    inspect.ListType: (list,),
    inspect.VarTupleType: (list,),
    inspect.DictType: (dict,),
    inspect.StructType: (dict,),
    inspect.AnyType: (dict, list, str, int, float, bool, type(None)),
}
_INFO_NAMES: dict[type, str] = {
    inspect.NoneType: "null",
    inspect.BoolType: "bool",
    inspect.StrType: "str",
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.ListType: "array",
    inspect.VarTupleType: "array",
}
