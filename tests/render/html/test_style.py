"""Checks of the stylesheets: readable in light and dark, self-contained, with rules for exactly the used classes."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.source_trees import module_nodes
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

_WITHOUT_RULE = frozenset({"copy", "steering"})
"""Classes that need no rule: scripts and tests use them, or inherited style is enough."""


def _groups() -> dict[str, dict[str, tuple[str, str]]]:
    """The colours of the page by group: name, then light and dark."""
    return {
        match[1]: {name: (light, dark) for name, light, dark in _COLOUR.findall(match[2])}
        for match in _GROUP.finditer(read_stylesheet("base.css"))
    }


def _luminance(colour: str) -> float:
    """The relative luminance as defined by WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(text: str, other: str) -> float:
    low, high = sorted((_luminance(text), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_text_colour_is_readable_on_every_surface(theme: int) -> None:
    """Each text colour has a contrast of at least 4.5 to 1 with each surface colour."""
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


def test_rules_use_text_colours_for_text_and_surface_colours_for_boxes() -> None:
    """No rule uses a text colour that was not checked against all surfaces, or another colour as a background."""
    groups = _groups()
    text, surfaces = set(groups["text"]), set(groups["surfaces"])
    for selector, rules in _rules():
        for name in re.findall(r"(?<![\w-])color:\s*var\(--([\w-]+)\)", rules):
            assert name in text or (name == "paper" and "var(--knot)" in rules), f"{selector} {{ color: --{name} }}"
        is_shape = "::" in selector or "svg" in selector or ".chart" in selector
        for name in re.findall(r"background(?:-color)?:\s*var\(--([\w-]+)\)", rules):
            assert is_shape or name in surfaces, f"{selector} {{ background: --{name} }}"


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_parts_of_a_chart_have_enough_contrast(theme: int) -> None:
    """Each part has a contrast of at least 3 to 1 with the page, as WCAG requires for graphics."""
    parts = {
        name: colours for name, *colours in _COLOUR.findall(read_stylesheet("charts.css")) if name.startswith("part-")
    }
    paper = _groups()["surfaces"]["paper"][theme]
    assert len(parts) == 8
    assert {name for name, colours in parts.items() if _contrast(colours[theme], paper) < 3} == set()


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_in_a_treemap_is_readable(theme: int) -> None:
    """Each tint has a contrast of at least 4.5 to 1 with the colour of text."""
    tints = {name: pair for name, *pair in _COLOUR.findall(read_stylesheet("charts.css")) if name.startswith("tint-")}
    ink = _groups()["text"]["ink"][theme]
    assert len(tints) == 8
    assert {name for name, pair in tints.items() if _contrast(pair[theme], ink) < 4.5} == set()


def test_colours_are_defined_in_one_place() -> None:
    """A colour is defined once, in a light and a dark form, and rules use its name."""
    for name in STYLESHEETS:
        text = re.sub(r":root \{.*?\n\}", "", read_stylesheet(name), count=1, flags=re.DOTALL)
        assert re.findall(r":[^;{]*#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", text) == [], name


def test_custom_properties_are_defined_and_used() -> None:
    """Every custom property is defined and used."""
    text = stylesheet()
    assert set(re.findall(r"var\(--([\w-]+)", text)) == set(re.findall(r"(?<![\w(-])--([\w-]+)\s*:", text))


@pytest.mark.parametrize("name", STYLESHEETS)
def test_stylesheets_fetch_nothing(name: str) -> None:
    """No address, no other stylesheet, no font."""
    assert re.search(r"url\(|@import|@font-face|image-set\(|https?:|//\w", read_stylesheet(name), re.IGNORECASE) is None


@pytest.mark.parametrize("name", STYLESHEETS)
def test_braces_are_balanced(name: str) -> None:
    """An extra brace would silently end everything after it."""
    depth = 0
    for char in re.sub(r"/\*.*?\*/", "", read_stylesheet(name), flags=re.DOTALL):
        depth += {"{": 1, "}": -1}.get(char, 0)
        assert depth >= 0
    assert depth == 0


def test_the_hash_matches_the_stylesheet() -> None:
    """The hash in the policy is that of the stylesheet as sent."""
    assert stylesheet_hash() == f"sha256-{base64.b64encode(hashlib.sha256(stylesheet().encode()).digest()).decode()}"
    assert "/*" not in stylesheet()
    assert "</" not in stylesheet()


def test_every_class_has_a_rule() -> None:
    """Each class that pages use has a rule, or is known to need none."""
    used = {name for path in _modules() for name in _classes(path)} - {""}
    used |= {str(member) for member in (*Outcome, *ActKind)} | set(ITEM_KINDS.values())
    assert sorted(used - _classes_with_rules() - _WITHOUT_RULE) == []


def test_every_rule_is_used() -> None:
    """No rule is for a class that neither the renderer, nor the server, nor a script uses."""
    used = {word for path in _modules() for text in _strings(path) for word in text.split()}
    used |= {str(member) for member in (*Outcome, *ActKind)}
    scripts = " ".join(path.read_text(encoding="utf-8") for path in sorted(_SOURCE.glob("web/assets/*.js")))
    used |= set(re.findall(r"[\w-]+", scripts))
    numbered = {re.sub(r"\d$", "", name): name for name in _classes_with_rules() if name[-1:].isdigit()}
    used |= {
        name for name in _classes_with_rules() for prefix in numbered if name.startswith(prefix) and prefix in used
    }
    assert sorted(_classes_with_rules() - used) == []


def test_no_element_has_an_inline_style() -> None:
    """A strict policy forbids style attributes."""
    elements = [
        f"{path.name}:{node.lineno}"
        for path in _modules()
        for node in module_nodes(path)
        if isinstance(node, ast.Call) and any(keyword.arg in ("style", "style_") for keyword in node.keywords)
        if isinstance(node.func, ast.Name) and node.func.id in ("el", "opening")
    ]
    assert elements == []


@for_each("name", ICON_NAMES)
def test_icons_have_one_form(name: str) -> None:
    """Every icon is one path on the same grid, without its own colour or stroke."""
    svg = icon(name)
    assert re.fullmatch(
        r'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="[MmLlHhVvCcSsAaZz0-9 .-]+"></path></svg>',
        svg,
    )


def _rules() -> Iterator[tuple[str, str]]:
    """Every rule: its selector and declarations, including those inside conditions."""
    text = re.sub(r'"[^"]*"', '""', stylesheet())
    for match in re.finditer(r"([^{}]+)\{([^{}]*)\}", text):
        selector = match[1].split(";")[-1].strip()
        if not selector.startswith("@"):
            yield selector, match[2]


def _classes_with_rules() -> set[str]:
    """The classes that have rules."""
    return {name for selector, _ in _rules() for name in _CLASS.findall(selector)}


def _modules() -> list[Path]:
    """All modules that create elements."""
    return [path for folder in ("render/html", "web", "export") for path in sorted(_SOURCE.glob(f"{folder}/**/*.py"))]


def _strings(path: Path) -> Iterator[str]:
    """Every string in a module's source."""
    for node in module_nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _classes(path: Path) -> Iterator[str]:
    """The classes in a module's source. Of strings built at run time, only the constant words."""
    for node in module_nodes(path):
        if not isinstance(node, ast.keyword) or node.arg != "class_":
            continue
        nodes = list(ast.walk(node.value))
        pieces = {id(piece) for nested in nodes if isinstance(nested, ast.JoinedStr) for piece in nested.values}
        for inner in nodes:
            if id(inner) in pieces:
                continue
            if isinstance(inner, ast.JoinedStr):
                yield from _words(inner)
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield from inner.value.split()


def _words(text: ast.JoinedStr) -> Iterator[str]:
    """The complete words of an f-string."""
    joined = "".join(str(value.value) if isinstance(value, ast.Constant) else "\0" for value in text.values)
    yield from (word for word in joined.split() if "\0" not in word)
