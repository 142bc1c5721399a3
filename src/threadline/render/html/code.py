"""Syntax highlighting, indented JSON, and the raw view of an entry, each within a bound on elements.

Indenting JSON changes only the white space between its parts: numbers, keys and escapes stay as written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

from threadline.model.entries import Entry
from threadline.model.text import count
from threadline.render import shorten, visible
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.sections import Scene

_MAX_CODE = 20_000
"""Longer code is not highlighted, so that the time is bounded."""

# Supported languages, by every name that a fence or file extension has for them.
_LANGUAGES: dict[str, str] = {
    alias: name
    for name, aliases in {
        "bash": "sh shell zsh console shell-session",
        "c": "h",
        "cpp": "c++ cc hpp cxx",
        "csharp": "cs c#",
        "css": "scss less",
        "diff": "patch",
        "docker": "dockerfile",
        "go": "golang",
        "html": "htm vue svelte",
        "ini": "cfg conf",
        "java": "",
        "javascript": "js mjs cjs jsx",
        "json": "jsonl ipynb",
        "kotlin": "kt kts",
        "lua": "",
        "make": "makefile mk",
        "markdown": "md mdx",
        "perl": "pl",
        "php": "",
        "powershell": "ps1",
        "python": "py pyi python3",
        "ruby": "rb",
        "rust": "rs",
        "sql": "",
        "swift": "",
        "toml": "",
        "typescript": "ts tsx mts",
        "xml": "svg plist",
        "yaml": "yml",
    }.items()
    for alias in (name, *aliases.split())
}
# CSS classes of highlighted tokens. Everything else is plain.
_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (Keyword, "k"),
    (String, "s"),
    (Number, "n"),
    (Name.Function, "f"),
    (Name.Class, "t"),
    (Name.Decorator, "d"),
    (Name.Tag, "k"),
    (Name.Attribute, "f"),
    (Name.Builtin, "b"),
    (Generic.Inserted, "add"),
    (Generic.Deleted, "del"),
    (Generic.Heading, "k"),
)


def language_of_file(path: str) -> str | None:
    """The language of a file, by its name."""
    name = PurePosixPath(path.replace("\\", "/")).name.lower()
    return _LANGUAGES.get(name.rpartition(".")[2]) if name else None


def highlight(code: str, language: str | None) -> Markup:
    """Code as HTML for a `<pre>`, highlighted if the language is known and the code is not too long."""
    name = _LANGUAGES.get((language or "").strip().lower())
    text = visible(code)
    if name is None or len(text) > _MAX_CODE:
        return escape(text)
    tokens = ((_css_class(kind), value) for _, kind, value in _lexer(name).get_tokens_unprocessed(text))
    parts = ((mark, "".join(value for _, value in run)) for mark, run in groupby(tokens, key=lambda token: token[0]))
    html = [
        f'<span class="{mark}">{escape(value)}</span>' if mark and not value.isspace() else escape(value)
        for mark, value in parts
    ]
    return Markup("".join(html))  # noqa: S704 - every text was escaped


@lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer:
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:  # an older Pygments without that language
        return get_lexer_by_name("text", stripnl=False, ensurenl=False)


@lru_cache(maxsize=1024)
def _css_class(kind: _TokenType) -> str:
    return next((mark for token, mark in _CLASSES if _is_subtype(kind, token)), "")


def _is_subtype(kind: _TokenType, token: _TokenType) -> bool:
    return kind[: len(token)] == token


MAX_HIGHLIGHTS = 90
"""The maximum number of elements of one piece of code, unless the scene is uncut."""
_HIGHLIGHT = re.compile(r'<span class="(\w+)">([^<]*)</span>')
_DROP_ORDER = ("b", "n", "d", "f", "t", "k", "s", "add", "del", "c")


def highlight_within(code: str, language: str | None, most: int | None = MAX_HIGHLIGHTS) -> Markup:
    """Code as HTML with a limited number of elements (None: no limit)."""
    html = highlight(code, language)
    if most is None or html.count("<span") <= most:
        return html
    counts = Counter(match[1] for match in _HIGHLIGHT.finditer(html))
    left, dropped = sum(counts.values()), set[str]()
    for name in _DROP_ORDER:
        if left <= most:
            break
        dropped.add(name)
        left -= counts[name]
    # Spans do not nest and their content is already escaped, so removing a span leaves its text intact.
    return Markup(_HIGHLIGHT.sub(lambda match: match[2] if match[1] in dropped else match[0], html))  # noqa: S704


_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++', re.DOTALL)
_INDENT = "  "
_MAX_DEPTH = 40
"""Deeper values are not indented further, because their lines would be mostly white space."""


def indent_json(text: str, longest: int | None = None) -> str:
    r"""Indented JSON with one value per line. Strings with more than `longest` characters are cut, with a note.

    Check the text with `is_json` first: other text comes out garbled.

    >>> print(indent_json('{"a":[1.0,2],"b":{}}'))
    {
      "a": [
        1.0,
        2
      ],
      "b": {}
    }
    """
    out: list[str] = []
    depth, at_start = 0, False
    for part in _JSON_TOKEN.findall(text):
        if part in ("}", "]"):
            depth -= 1
            out.append(part if at_start else _line_break(depth) + part)
            at_start = False
            continue
        if at_start:
            out.append(_line_break(depth))
        at_start = part in ("{", "[")
        depth += at_start
        if part in (":", ","):
            out.append(": " if part == ":" else f",{_line_break(depth)}")
        else:
            out.append(part if longest is None or len(part) <= longest else _cut_string(part, longest))
    return "".join(out)


def _cut_string(part: str, longest: int) -> str:
    return f'{part[:longest]}… {len(part) - longest:,} more characters"'


def _line_break(depth: int) -> str:
    return "\n" + _INDENT * max(0, min(depth, _MAX_DEPTH))


def is_json(text: str) -> bool:
    """Whether a text is a JSON object or list."""
    bare = text.strip()
    if not (bare.startswith(("{", "[")) and bare.endswith(("}", "]"))):
        return False
    try:
        json.loads(bare, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def to_indented_json(value: Any) -> str:
    """A value as indented JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (ValueError, TypeError, RecursionError):
        return "(nested too deeply to show)"


_MAX_LINE, _MAX_JSON = 60_000, 200_000
"""In a longer line, long strings are cut first; the rest is cut at this length."""
_MAX_STRING = 2000
_MAX_RAW_HIGHLIGHTS = 1200


def render_raw_entry(entry: Entry, scene: Scene) -> Markup:
    """An entry's JSON, indented, and below it the original line. Very long ones are cut, with a note."""
    text = entry.raw.decode(errors="backslashreplace")
    indented = _indented_entry(text, scene)
    return el(
        "div",
        el("p", " · ".join(_raw_facts(entry, text, scene)), class_="facts"),
        *(el("p", f"{problem.kind}: {shorten(problem.message, 300)}", class_="problem") for problem in entry.problems),
        _raw_block(indented, scene, "json") if indented is not None else EMPTY,
        _original_line(text, scene, folded=indented is not None),
        class_="raw",
    )


def _raw_facts(entry: Entry, text: str, scene: Scene) -> Iterator[str]:
    yield shorten(entry.kind, 60)
    yield f"line {entry.place.line:,}"
    if entry.timestamp is not None:
        yield scene.format_time(entry.timestamp)
    yield count(len(entry.raw), "byte")
    if not _is_utf8(entry.raw):
        yield r"not valid UTF-8: invalid bytes are shown as \xNN"
    if not text.strip():
        yield "a blank line"
    elif not is_json(text):
        yield "not a JSON object"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _indented_entry(text: str, scene: Scene) -> str | None:
    """The indented JSON; None if the line is not valid JSON."""
    bare = text.lstrip("\ufeff")
    if not is_json(bare):
        return None
    return indent_json(bare, None if scene.uncut or len(bare) <= _MAX_LINE else _MAX_STRING)


def _original_line(text: str, scene: Scene, *, folded: bool) -> Markup:
    """The original line."""
    bare = text.removesuffix("\n")
    if not bare:
        return EMPTY
    html = _raw_block(bare, scene, None)
    return el("details", el("summary", "Original line"), html, class_="rest") if folded else html


def _raw_block(text: str, scene: Scene, language: str | None) -> Markup:
    most = len(text) if scene.uncut else _MAX_JSON if language else _MAX_LINE
    left = len(text) - most
    note = el("p", f"{count(left, 'more character')} not shown", class_="more") if left > 0 else EMPTY
    part = text[:most]
    html = highlight_within(part, language, _MAX_RAW_HIGHLIGHTS) if language else visible(part)
    return join((el("pre", html, class_="code", tabindex=0), note))
