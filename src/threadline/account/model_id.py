"""The many spellings of a model's id, and the one that prices are kept under."""

from __future__ import annotations

import re

# Longer than the longest address of a model that a cloud gives; what is longer is nobody's id.
LONGEST = 512
"""How many characters an id may have."""

_REGION = re.compile(r"(us|eu|apac|au|jp|global)\.")
_BRACKETS = re.compile(r"(?:\[[^\[\]]*\])+\Z")
_REVISION = re.compile(r"(?:-v\d{1,2}:\d{1,2}|-v1|:0)\Z")
_AT_DATE = re.compile(r"@\d{8}\Z")
_DATE = re.compile(r"-\d{8}\Z")
_MODES = ("-latest", "-fast", "-thinking")
_DOT = re.compile(r"(?<=\d)\.(?=\d)")
# From version 4 on the family stands before the version; before, after it.
_SWAPPED = re.compile(r"claude-((?:[4-9]|\d\d)(?:-\d{1,2})?)-([a-z]+)")


def normalise(model: str) -> str:
    """The id without what says where it ran, when it was made and in which mode.

    An id that could be nobody's (too long, not ASCII) is given back as it is.

    >>> normalise("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    'claude-sonnet-4-5'
    >>> normalise("openrouter/anthropic/claude-4.5-sonnet")
    'claude-sonnet-4-5'
    """
    if len(model) > LONGEST or not model.isascii():
        return model
    name = _REGION.sub("", _without_path(model), count=1) if region(model) else _without_path(model)
    name = name.removeprefix("anthropic.")
    for suffix in (_BRACKETS, _REVISION, _AT_DATE, _DATE):
        name = suffix.sub("", name)
    if name.startswith("claude-"):
        name = _without_modes(name)
    name = dashed(name)
    swapped = _SWAPPED.fullmatch(name)
    return f"claude-{swapped[2]}-{swapped[1]}" if swapped else name


def region(model: str) -> str | None:
    """The region that a cloud's id names before the model: `us`, `eu`, …; `global` is one, too.

    >>> region("bedrock/eu.anthropic.claude-opus-4-6-v1")
    'eu'
    """
    if len(model) > LONGEST or not model.isascii():
        return None
    found = _REGION.match(_without_path(model))
    return found[1] if found else None


def dashed(name: str) -> str:
    """A name in lower case, with dashes in its version: `GLM-5.1` is `glm-5-1`."""
    return _DOT.sub("-", lowered(name))


def lowered(name: str) -> str:
    """A name in lower case; one that is not ASCII stays as it is, since some of its letters would become ASCII."""
    return name.lower() if name.isascii() else name


def _without_path(model: str) -> str:
    return model.lower().rpartition("/")[2]


def _without_modes(name: str) -> str:
    """Of Claude alone: elsewhere `-fast` and `-thinking` are models of their own, with prices of their own."""
    for mode in _MODES:
        name = name.removesuffix(mode)
    return _DATE.sub("", name)
