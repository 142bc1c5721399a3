"""Bytes of one object to one entry: fast where it fits, forgiving where it does not."""

from __future__ import annotations

from typing import Any, Union

import msgspec

from threadline.model.entries import KINDS, Entry, OtherEntry
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.parse.run import REFUSALS, lines_decoder
from threadline.shape import Loaded, Misfit, fit, loads

# Forgiving makes values of all that a line holds, many times its size; a longer line is not forgiven.
_FORGIVEN = 8 * 1024 * 1024
_KNOWN: Any = Union[tuple(KINDS.values())]  # noqa: UP007 - a union made of a table; no line may call itself `OtherEntry`
decode_entry = msgspec.json.Decoder[Any](_KNOWN).decode


decode_lines = lines_decoder(_KNOWN)


def decode_object(data: bytes, place: Place) -> tuple[Entry, list[Problem]]:
    """The entry that one JSON object is, and what was wrong with it.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    try:
        return decode_entry(data), []
    except REFUSALS:
        return _forgiving(data, place)


def _forgiving(data: bytes, place: Place) -> tuple[Entry, list[Problem]]:
    loaded = loads(data) if len(data) <= _FORGIVEN else _loaded_at_once(data)
    problems = [Problem(ProblemKind(kind), place, message) for kind, message in loaded.forgiven]
    value = loaded.value
    if not isinstance(value, dict):
        problems.append(
            Problem(
                ProblemKind.NOT_AN_OBJECT,
                place,
                f"a line must hold an object, and this holds {_article(value)}",
                recovered=False,
                lost=place.length,
            )
        )
        return OtherEntry(tag="damaged"), problems
    kind = value.get("type")
    if not isinstance(kind, str):
        problems.append(Problem(ProblemKind.NO_TYPE, place, "the object does not say what kind of entry it is"))
    entry, misfits = _fit_entry(value, kind)
    problems.extend(_problem(misfit, place) for misfit in misfits)
    return entry, problems


def _loaded_at_once(data: bytes) -> Loaded:
    """A huge value as it should be: forgiving would hold it in memory three times over."""
    try:
        _scan(data)  # makes nothing of it, and so fails for little
        return Loaded(msgspec.json.decode(data), ())
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


class _Anything(msgspec.Struct):
    """Any object, passed over."""


_scan = msgspec.json.Decoder(_Anything).decode


def _fit_entry(value: dict[str, Any], kind: Any) -> tuple[Entry, list[Misfit]]:
    if not isinstance(kind, str) or kind not in KINDS:
        # What every entry has is worth having of an unknown kind, too.
        known, misfits = fit({key: value[key] for key in _ENVELOPE if key in value}, Entry)
        envelope = msgspec.structs.asdict(known)
        tag = kind if isinstance(kind, str) else "untyped"
        return OtherEntry(**envelope, tag=tag), misfits
    entry, misfits = fit(value, KINDS[kind])
    return entry, misfits


def _problem(misfit: Misfit, place: Place) -> Problem:
    return Problem(ProblemKind.WRONG_TYPE, place.within(misfit.json_path), misfit.message)


def _article(value: Any) -> str:
    words = {
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "an array",
    }
    return words[type(value)]


_ENVELOPE = ("uuid", "sessionId", "timestamp")
