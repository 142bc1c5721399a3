"""Subtests about the style: readable in light and dark, whole in itself, and made for the classes that are there."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.subtests import for_each

import threadline
from threadline.model.calls import Outcome
from threadline.model.session import ActKind
from threadline.render import ITEM_KINDS
from threadline.render.html import icon, stylesheet, stylesheet_hash
from threadline.render.html.page import ICON_NAMES, STYLESHEETS, read_stylesheet

_SOURCE = Path(threadline.__file__).parent
_COLOUR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
_GROUP = re.compile(r"/\* (surfaces|text) \*/(.*?)\n\n", re.DOTALL)
_CLASS = re.compile(r"\.(-?[a-z][\w-]*)")

_BARE = frozenset({"copy", "steering"})
"""Classes that need no rule: scripts and tests know them, or the look of their place is enough."""


def _groups() -> dict[str, dict[str, tuple[str, str]]]:
    """The colours of the page by what they are for: name, then light and dark."""
    return {
        found[1]: {name: (light, dark) for name, light, dark in _COLOUR.findall(found[2])}
        for found in _GROUP.finditer(read_stylesheet("base.css"))
    }


def _luminance(colour: str) -> float:
    """As WCAG 2.2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(text: str, other: str) -> float:
    low, high = sorted((_luminance(text), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_text_can_be_read_on_every_surface(theme: int) -> None:
    """Each colour of text against each colour that may lie behind it is at least 4.5 to 1."""
    groups = _groups()
    assert len(groups["text"]) > 10
    assert len(groups["surfaces"]) > 8
    pale = {
        f"{text} on {surface}": round(_contrast(ink[theme], paper[theme]), 2)
        for text, ink in groups["text"].items()
        for surface, paper in groups["surfaces"].items()
        if _contrast(ink[theme], paper[theme]) < 4.5
    }
    assert pale == {}


def test_text_has_a_colour_of_text_and_boxes_that_of_a_surface() -> None:
    """No rule gives text a colour that was not held against all surfaces, and no box a colour that is none of them."""
    groups = _groups()
    text, surfaces = set(groups["text"]), set(groups["surfaces"])
    for selector, rules in _rules():
        for name in re.findall(r"(?<![\w-])color:\s*var\(--([\w-]+)\)", rules):
            assert name in text or (name == "paper" and "var(--knot)" in rules), f"{selector} {{ color: --{name} }}"
        is_shape = "::" in selector or "svg" in selector or ".chart" in selector
        for name in re.findall(r"background(?:-color)?:\s*var\(--([\w-]+)\)", rules):
            assert is_shape or name in surfaces, f"{selector} {{ background: --{name} }}"


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_parts_of_a_chart_stand_out(theme: int) -> None:
    """Each part's colour is at least 3 to 1 against the page, as WCAG asks of what is no text."""
    parts = {name: both for name, *both in _COLOUR.findall(read_stylesheet("charts.css")) if name.startswith("part-")}
    paper = _groups()["surfaces"]["paper"][theme]
    assert len(parts) == 8
    assert {name for name, both in parts.items() if _contrast(both[theme], paper) < 3} == set()


def test_colours_are_named_in_one_place() -> None:
    """A colour is written once, with its light and its dark form; every rule names it."""
    for name in STYLESHEETS:
        text = re.sub(r":root \{.*?\n\}", "", read_stylesheet(name), count=1, flags=re.DOTALL)
        assert re.findall(r":[^;{]*#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", text) == [], name


def test_what_is_named_is_used_and_what_is_used_is_named() -> None:
    """Every custom property has a value somewhere, and a use."""
    text = stylesheet()
    assert set(re.findall(r"var\(--([\w-]+)", text)) == set(re.findall(r"(?<![\w(-])--([\w-]+)\s*:", text))


@pytest.mark.parametrize("name", STYLESHEETS)
def test_nothing_is_fetched(name: str) -> None:
    """No address, no other sheet, no font: the style is whole in itself."""
    assert re.search(r"url\(|@import|@font-face|image-set\(|https?:|//\w", read_stylesheet(name), re.IGNORECASE) is None


@pytest.mark.parametrize("name", STYLESHEETS)
def test_braces_are_even(name: str) -> None:
    """A brace too many would silently end everything after it."""
    depth = 0
    for sign in re.sub(r"/\*.*?\*/", "", read_stylesheet(name), flags=re.DOTALL):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0


def test_the_hash_allows_the_style() -> None:
    """What a policy names is the hash of exactly what is sent."""
    assert stylesheet_hash() == f"sha256-{base64.b64encode(hashlib.sha256(stylesheet().encode()).digest()).decode()}"
    assert "/*" not in stylesheet()
    assert "</" not in stylesheet()


def test_every_class_has_a_rule() -> None:
    """Each class that a page is made with has a rule, or is known to need none."""
    made = {name for path in _modules() for name in _classes(path)} - {""}
    made |= {str(one) for one in (*Outcome, *ActKind)} | set(ITEM_KINDS.values())
    assert sorted(made - _ruled() - _BARE) == []


def test_every_rule_has_a_class() -> None:
    """No rule is for a class that nothing makes: neither the renderer, nor the server, nor a script."""
    said = {word for path in _modules() for text in _strings(path) for word in text.split()}
    said |= {str(one) for one in (*Outcome, *ActKind)}
    scripts = " ".join(path.read_text(encoding="utf-8") for path in sorted(_SOURCE.glob("web/assets/*.js")))
    said |= set(re.findall(r"[\w-]+", scripts))
    counted = {re.sub(r"\d$", "", name): name for name in _ruled() if name[-1:].isdigit()}
    said |= {name for name in _ruled() for start in counted if name.startswith(start) and start in said}
    assert sorted(_ruled() - said) == []


def test_no_style_is_inline() -> None:
    """A strict policy forbids style attributes, and no element is given one."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in _modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and any(word.arg in ("style", "style_") for word in node.keywords)
        if isinstance(node.func, ast.Name) and node.func.id in ("el", "opening")
    ]
    assert found == []


@for_each("name", ICON_NAMES)
def test_icons_are_of_one_kind(name: str) -> None:
    """Every icon is one path on the same grid, without a colour or a stroke of its own."""
    drawn = icon(name)
    assert re.fullmatch(
        r'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="[MmLlHhVvCcSsAaZz0-9 .-]+"></path></svg>',
        drawn,
    )


def _rules() -> Iterator[tuple[str, str]]:
    """Every rule: its selector and what it sets; those inside conditions, too."""
    text = re.sub(r'"[^"]*"', '""', stylesheet())
    for found in re.finditer(r"([^{}]+)\{([^{}]*)\}", text):
        selector = found[1].split(";")[-1].strip()
        if not selector.startswith("@"):
            yield selector, found[2]


def _ruled() -> set[str]:
    """The classes that rules are for."""
    return {name for selector, _ in _rules() for name in _CLASS.findall(selector)}


def _modules() -> list[Path]:
    """Whatever makes elements."""
    return [path for folder in ("render/html", "web", "export") for path in sorted(_SOURCE.glob(f"{folder}/**/*.py"))]


def _strings(path: Path) -> Iterator[str]:
    """Every string of a module's source."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _classes(path: Path) -> Iterator[str]:
    """The words that stand as a class in a module's source; of what is put together at run time, the constant ones."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.keyword) or node.arg != "class_":
            continue
        walked = list(ast.walk(node.value))
        pieces = {id(piece) for one in walked if isinstance(one, ast.JoinedStr) for piece in one.values}
        for inner in walked:
            if id(inner) in pieces:
                continue
            if isinstance(inner, ast.JoinedStr):
                yield from _words(inner)
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield from inner.value.split()


def _words(text: ast.JoinedStr) -> Iterator[str]:
    """The whole words of a string that is put together."""
    joined = "".join(str(value.value) if isinstance(value, ast.Constant) else "\0" for value in text.values)
    yield from (word for word in joined.split() if "\0" not in word)
