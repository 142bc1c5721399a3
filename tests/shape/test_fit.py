"""Tests of `fit`, which decodes values that do not quite have the expected shape."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct, field
from tests.subtests import for_each

from threadline.shape import OTHER_TAG, OWN_PREFIX, Misfit, Shape, fit


class Leaf(Shape, frozen=True, tag="leaf"):
    """A member of a tagged union."""

    size: int = 0


class Other(Shape, frozen=True, tag=OTHER_TAG):
    """The stand-in for unknown tags."""

    tag: str = ""
    data: Any = None


class Tree(Shape, frozen=True):
    """A shape with a field of every sort."""

    name: str | None = None
    count: Annotated[int, Meta(ge=0, le=100)] | None = None
    ratio: float | None = None
    flag: bool | None = None
    anything: Any = None
    names: list[str] | None = None
    pair: tuple[int, ...] | None = None
    by_key: dict[str, Leaf] | None = None
    leaf: Leaf | Other | None = None
    content: str | list[Leaf | Other | str] | None = None
    inner_tree: "Tree | None" = None  # noqa: UP037 - msgspec reads it when the class is being made
    own: int = field(default=1, name=f"{OWN_PREFIX}own")


MISFITS: dict[str, tuple[Any, Tree, list[str]]] = {
    "all well": ({"name": "a", "count": 3}, Tree(name="a", count=3), []),
    "null is nothing": ({"name": None}, Tree(), []),
    "a wrong scalar": ({"name": 5, "flag": "yes", "ratio": "x"}, Tree(), ["$.name", "$.flag", "$.ratio"]),
    "a boolean is no number": ({"count": True, "ratio": False}, Tree(), ["$.count", "$.ratio"]),
    "an integer is a ratio": ({"ratio": 2}, Tree(ratio=2), []),
    "an integer that no float holds": ({"ratio": 10**400}, Tree(), ["$.ratio"]),
    "a whole float is a count": ({"count": 1e1}, Tree(count=10), ["$.count"]),
    "digits are a count": ({"count": "12"}, Tree(count=12), ["$.count"]),
    "other digits are not": ({"count": "١٢"}, Tree(), ["$.count"]),
    "a negative count": ({"count": -1}, Tree(), ["$.count"]),
    "a count too large": ({"count": 101}, Tree(), ["$.count"]),
    "digits too many": ({"count": "9" * 5000}, Tree(), ["$.count"]),
    "a broken list": ({"names": "a"}, Tree(), ["$.names"]),
    "a broken item": ({"names": ["a", 1, "b"]}, Tree(names=["a", "b"]), ["$.names[1]"]),
    "a tuple": ({"pair": [1, "x"]}, Tree(pair=(1,)), ["$.pair[1]"]),
    "a broken value": (
        {"byKey": {"a": {"size": 1}, "b": 2, "c": {"size": "x"}}},
        Tree(by_key={"a": Leaf(1), "c": Leaf()}),
        ["$.byKey.b", "$.byKey.c.size"],
    ),
    "a known tag": ({"leaf": {"type": "leaf", "size": 2}}, Tree(leaf=Leaf(2)), []),
    "an unknown tag": ({"leaf": {"type": "twig"}}, Tree(leaf=Other("twig", {"type": "twig"})), []),
    "no tag": ({"leaf": {"size": 2}}, Tree(leaf=Other("", {"size": 2})), []),
    "a tag that is no text": ({"leaf": {"type": []}}, Tree(leaf=Other("", {"type": []})), []),
    "our own tag": ({"leaf": {"type": OTHER_TAG}}, Tree(leaf=Other(OTHER_TAG, {"type": OTHER_TAG})), []),
    "a member that is no object": ({"leaf": 5}, Tree(leaf=Other("", 5)), ["$.leaf"]),
    "text or blocks": ({"content": ["a", {"type": "leaf"}]}, Tree(content=["a", Leaf()]), []),
    "neither": ({"content": 5}, Tree(), ["$.content"]),
    "itself inside": (
        {"innerTree": {"innerTree": {"name": 1}}},
        Tree(inner_tree=Tree(inner_tree=Tree())),
        ["$.innerTree.innerTree.name"],
    ),
    "what is ours is not read": ({f"{OWN_PREFIX}own": 9}, Tree(own=1), []),
    "unknown fields": ({"unheardOf": 1}, Tree(), []),
}


@for_each("value, expected, paths", MISFITS.values(), ids=MISFITS)
def test_keeps_what_fits_and_reports_misfits(value: Any, expected: Tree, paths: list[str]) -> None:
    """A field that does not fit has its default and is reported with its JSON path."""
    result, misfits = fit(value, Tree)
    assert result == expected
    assert [misfit.json_path for misfit in misfits] == paths


@pytest.mark.parametrize("value", [None, 5, "x", [], True])
def test_value_that_is_not_an_object_is_none(value: Any) -> None:
    """There is one misfit at the top."""
    result, misfits = fit(value, Tree)
    assert result is None
    assert [misfit.json_path for misfit in misfits] == ["$"]


def test_misfit_message_has_types_but_not_the_value() -> None:
    """The message is that of the fast decoder."""
    assert fit({"flag": "sk-ant-made-up"}, Tree)[1] == [Misfit("$.flag", "Expected `bool | null`, got `str`")]


@pytest.mark.slow
def test_open_field_is_passed_through() -> None:
    """Its value is not copied or walked, however deep it is."""
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    result, misfits = fit({"anything": deep}, Tree)
    assert result.anything is deep
    assert misfits == []


def test_type_that_json_cannot_represent_is_refused() -> None:
    """Such a field is a programming error."""

    class Odd(Struct):
        when: complex = 0j

    with pytest.raises(TypeError):
        fit({"when": 1}, Odd)
