"""Code in colours: a handful of classes, neighbours of one class joined, so that a page stays small."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from pathlib import PurePosixPath

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

from threadline.render.html.element import EMPTY, el
from threadline.render.html.words import shown

_LONGEST = 20_000
"""Longer code is shown without colours: what it costs is bounded, whatever it holds."""

# The languages that are told apart, by every name that a fence or a file's end has for them.
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
# What is coloured, and the class it has; everything else is plain.
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


def language_of(path: str) -> str | None:
    """The language that a file's name tells."""
    name = PurePosixPath(path.replace("\\", "/")).name.lower()
    return _LANGUAGES.get(name.rpartition(".")[2]) if name else None


def coloured(code: str, language: str | None) -> Markup:
    """Code as HTML, to stand inside a `<pre>`: in colours where the language is known and it is not too long."""
    name = _LANGUAGES.get((language or "").strip().lower())
    text = shown(code)
    if name is None or len(text) > _LONGEST:
        return escape(text)
    tokens = ((_class(kind), value) for _, kind, value in _lexer(name).get_tokens_unprocessed(text))
    parts = ((mark, "".join(value for _, value in some)) for mark, some in groupby(tokens, key=lambda one: one[0]))
    return EMPTY.join(
        el("span", value, class_=mark) if mark and not value.isspace() else escape(value) for mark, value in parts
    )


@lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer:
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:  # an older Pygments without that language
        return get_lexer_by_name("text", stripnl=False, ensurenl=False)


@lru_cache(maxsize=1024)
def _class(kind: _TokenType) -> str:
    return next((mark for token, mark in _CLASSES if _is_a(kind, token)), "")


def _is_a(kind: _TokenType, token: _TokenType) -> bool:
    return kind[: len(token)] == token
