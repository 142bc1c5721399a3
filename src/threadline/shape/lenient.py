"""Build structs from JSON values that do not quite match, and decode JSON that strict decoders reject.

`fit` keeps what matches a type, leaves the rest at its default, and reports each mismatch with its JSON path. A
converter is built once per type and follows the structure of the type, not of the value, so a deeply nested value in an
`Any` field costs nothing.

The fast decoder rejects lone surrogates, NaN, numbers out of range, raw control characters and invalid UTF-8.
`lenient_loads` accepts them all with the standard library's scanner and lists what it had to repair.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import Struct, inspect

from threadline.shape.base import OTHER_TAG, OWN_PREFIX


def wire_fields(shape: type[Struct]) -> list[inspect.Field]:
    """Return the fields that are read from disk, without those that threadline sets itself."""
    info: Any = inspect.type_info(shape)
    return [field for field in info.fields if not field.encode_name.startswith(OWN_PREFIX)]


class Misfit(Struct, frozen=True):
    """A value that does not have the type of its field."""

    json_path: str
    message: str


_Converter = Callable[[Any, str, list[Misfit]], Any]
_NO_VALUE: Any = object()


def fit(value: Any, type_: Any) -> tuple[Any, list[Misfit]]:
    """Convert a value to a type as far as possible, and list what did not fit. None if nothing fits.

    >>> class Point(Struct):
    ...     x: int = 0
    ...     y: int = 0
    >>> fit({"x": 1, "y": "far"}, Point)
    (Point(x=1, y=0), [Misfit(json_path='$.y', message='Expected `int`, got `str`')])
    """
    misfits: list[Misfit] = []
    result = _converter_for(type_)(value, "$", misfits)
    return (None if result is _NO_VALUE else result), misfits


@cache
def _converter_for(type_: Any) -> _Converter:
    return _make_converter(inspect.type_info(type_))


def _make_converter(info: inspect.Type) -> _Converter:
    """Build the converter for a type from the table below."""
    make = _CONVERTERS.get(type(info))
    if make is None:
        raise TypeError(f"a shape cannot have a field of type {info!r}")
    return make(info)


def _reject(expected: str, value: Any, path: str, misfits: list[Misfit]) -> Any:
    misfits.append(Misfit(path, f"Expected `{expected}`, got `{_json_type_name(value)}`"))
    return _NO_VALUE


def _json_type_name(value: Any) -> str:
    names = {type(None): "null", dict: "object", list: "array"}
    return names.get(type(value), type(value).__name__)


def _scalar_converter(type_: type, name: str) -> _Converter:
    def convert(value: Any, path: str, misfits: list[Misfit]) -> Any:
        return value if type(value) is type_ else _reject(name, value, path, misfits)

    return convert


def _int_converter(info: inspect.IntType) -> _Converter:
    def convert(value: Any, path: str, misfits: list[Misfit]) -> Any:
        number = value
        if (type(value) is float and value.is_integer()) or _is_digit_string(value):
            number = int(value)
        if type(number) is not int:
            return _reject("int", value, path, misfits)
        if (info.ge is not None and number < info.ge) or (info.le is not None and number > info.le):
            misfits.append(Misfit(path, f"{str(number)[:20]} is out of range"))
            return _NO_VALUE
        if number is not value:
            misfits.append(Misfit(path, f"Expected `int`, got `{_json_type_name(value)}`; read as {number}"))
        return number

    return convert


def _is_digit_string(value: Any) -> bool:
    return type(value) is str and value.isascii() and value.isdecimal() and len(value) <= len(str(2**63))


def _convert_float(value: Any, path: str, misfits: list[Misfit]) -> Any:
    if type(value) is float or (type(value) is int and abs(value) <= _MAX_FLOAT):
        return value
    return _reject("float", value, path, misfits)


def _list_converter(info: inspect.ListType | inspect.VarTupleType) -> _Converter:
    convert_item = _make_converter(info.item_type)
    make = list if isinstance(info, inspect.ListType) else tuple

    def convert(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is not list:
            return _reject("array", value, path, misfits)
        items = (convert_item(item, f"{path}[{at}]", misfits) for at, item in enumerate(value))
        return make(item for item in items if item is not _NO_VALUE)

    return convert


def _dict_converter(info: inspect.DictType) -> _Converter:
    convert_value = _make_converter(info.value_type)

    def convert(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is not dict:
            return _reject("object", value, path, misfits)
        converted = {key: convert_value(item, f"{path}.{key}", misfits) for key, item in value.items()}
        return {key: item for key, item in converted.items() if item is not _NO_VALUE}

    return convert


@cache
def _struct_converter(shape: type[Struct]) -> _Converter:
    converters: dict[str, tuple[str, _Converter]] = {}

    def convert(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is not dict:
            return _reject("object", value, path, misfits)
        if not converters:  # on first use, because a type may contain itself
            converters.update(
                (field.encode_name, (field.name, _make_converter(field.type))) for field in wire_fields(shape)
            )
        values: dict[str, Any] = {}
        for key, item in value.items():
            name_and_converter = converters.get(key)
            if name_and_converter is not None:
                name, convert_field = name_and_converter
                fitted = convert_field(item, f"{path}.{key}", misfits)
                if fitted is not _NO_VALUE:
                    values[name] = fitted
        return shape(**values)

    return convert


def _union_converter(info: inspect.UnionType) -> _Converter:
    structs = [member for member in info.types if isinstance(member, inspect.StructType)]
    tagged = {member.tag: _make_converter(member) for member in structs if member.tag is not None}
    other = next((member.cls for member in structs if member.tag == OTHER_TAG), None)
    tag_field = next((member.tag_field for member in structs if member.tag_field), None)
    by_type: dict[type, _Converter] = {}
    for member in info.types:
        for python_type in _PYTHON_TYPES.get(type(member), ()):
            by_type.setdefault(python_type, _make_converter(member))
    names = " | ".join(_JSON_TYPE_NAMES.get(type(member), "object") for member in info.types)

    def convert(value: Any, path: str, misfits: list[Misfit]) -> Any:
        if type(value) is dict and tag_field is not None:
            tag = value.get(tag_field)
            chosen = tagged.get(tag) if type(tag) is str and tag != OTHER_TAG else None
            if chosen is not None:
                return chosen(value, path, misfits)
            if other is not None:
                return other(tag=tag if type(tag) is str else "", data=value)
        chosen = by_type.get(type(value))
        if chosen is not None:
            return chosen(value, path, misfits)
        if other is not None:
            misfits.append(Misfit(path, f"Expected `{names}`, got `{_json_type_name(value)}`"))
            return other(tag="", data=value)
        if int in by_type:  # a count written as text or as 1e5
            return by_type[int](value, path, misfits)
        return _reject(names, value, path, misfits)

    return convert


_CONVERTERS: dict[type, Callable[[Any], _Converter]] = {
    inspect.AnyType: lambda _info: lambda value, _path, _misfits: value,
    inspect.StructType: lambda info: _struct_converter(info.cls),
    inspect.UnionType: _union_converter,
    inspect.ListType: _list_converter,
    inspect.VarTupleType: _list_converter,
    inspect.DictType: _dict_converter,
    inspect.NoneType: lambda _info: _scalar_converter(type(None), "null"),
    inspect.BoolType: lambda _info: _scalar_converter(bool, "bool"),
    inspect.StrType: lambda _info: _scalar_converter(str, "str"),
    inspect.IntType: _int_converter,
    inspect.FloatType: lambda _info: _convert_float,
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
_JSON_TYPE_NAMES: dict[type, str] = {
    inspect.NoneType: "null",
    inspect.BoolType: "bool",
    inspect.StrType: "str",
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.ListType: "array",
    inspect.VarTupleType: "array",
}


_MAX_FLOAT = int(sys.float_info.max)
# Python refuses to convert more digits than this to an int. Such a number stays text.
_MAX_INT_DIGITS = 4300
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class LenientValue(Struct, frozen=True):
    """A value, and what was wrong with its JSON: values of `ProblemKind` with a message each."""

    value: Any
    defects: tuple[tuple[str, str], ...]


def lenient_loads(data: bytes) -> LenientValue:
    """Decode one JSON value, tolerating as many errors as possible.

    Raises:
        ValueError: it is not JSON at all.
        RecursionError: it is nested too deeply.
    """
    defects: dict[str, str] = {}
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        defects["invalid-utf8"] = f"byte {error.start} is not UTF-8; shown as U+FFFD"
    if text.startswith("\ufeff"):
        text = text[1:]
        defects["byte-order-mark"] = "starts with a byte order mark"

    def keep_as_text(digits: str) -> str:
        shown = digits if len(digits) <= 20 else f"{digits[:17]}…"  # noqa: PLR2004 - as much as a message can show
        defects["bad-number"] = f"{shown} is not a number that JSON allows; kept as text"
        return digits

    def parse_int(digits: str) -> int | str:
        return int(digits) if len(digits) <= _MAX_INT_DIGITS else keep_as_text(digits)

    def parse_float(digits: str) -> float | str:
        number = float(digits)
        return number if math.isfinite(number) else keep_as_text(digits)

    hooks: dict[str, Any] = {"parse_constant": keep_as_text, "parse_int": parse_int, "parse_float": parse_float}
    try:
        value = json.loads(text, **hooks)
    except json.JSONDecodeError:
        value = json.loads(text, strict=False, **hooks)
        defects["control-character"] = "a string contains a raw control character"
    if _ESCAPED_SURROGATE.search(data) and _LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        defects["lone-surrogate"] = "a string contains half of a surrogate pair"
    return LenientValue(value, tuple(defects.items()))
