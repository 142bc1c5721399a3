"""Values for shell completion: sessions, projects, models, tools, keys and query fields.

Values come from the index as it is. If there is none, nothing is completed: a shell must not wait for files to be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from threadline.cli import is_sqlite_error
from threadline.errors import Error
from threadline.model.places import starts_id

if TYPE_CHECKING:
    from threadline.index import Index

_MAX_ITEMS = 100
_MAX_TITLE = 60
_SAFE_VALUE = re.compile(r'[\w./~@%+=:,-]*|[\w:]*"[\w./~@%+=:, -]*"')
_PATH_STARTS = (".", "~", "/")


def complete(kind: str, context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The values of this kind that start with what was typed; none if the index cannot be read."""
    try:
        items = (item for item in _COMPLETERS[kind](context, incomplete) if _is_safe(item))
        return list(islice(items, _MAX_ITEMS))
    except (Error, OSError):
        return []
    except Exception as error:
        if is_sqlite_error(error):
            return []  # the index is damaged
        raise


def _is_safe(item: CompletionItem) -> bool:
    """Whether a shell may insert a value as it is. Names of files may contain anything, also commands."""
    return item.type == "file" or _SAFE_VALUE.fullmatch(item.value) is not None


def _read_index(context: click.Context, read: Callable[[Index], Iterable[Any]]) -> list[Any]:
    """Read from the index of the homes on the command line; nothing if there is none."""
    from threadline.cli.resolve import open_archive  # noqa: PLC0415 - fields and keys are completed without it

    homes: Sequence[str] = next(
        (parent.params["homes"] for parent in _contexts(context) if parent.params.get("homes")), ()
    )
    with open_archive(homes) as archive:
        if not archive.index.exists():
            return []
        archive.use_stale_index()
        return list(read(archive.open_index()))


def _contexts(context: click.Context | None) -> Iterator[click.Context]:
    while context is not None:
        yield context
        context = context.parent


def _complete_sessions(context: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Session ids with their titles, newest first, and `last`; or files, if a path was begun."""
    if incomplete.startswith(_PATH_STARTS) or os.sep in incomplete:
        yield CompletionItem(incomplete, type="file")
        return
    if "last".startswith(incomplete):
        yield CompletionItem("last", help="the newest session")
    for brief in _read_index(context, lambda index: index.sessions()):
        if brief.id is not None and starts_id(incomplete, brief.id):
            yield CompletionItem(brief.id, help=_printable(brief.title))


def _printable(title: str) -> str:
    words = " ".join(title.split())[:_MAX_TITLE]
    return "".join(character if character.isprintable() else " " for character in words)


def _complete_projects(context: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Projects by name, or by path if one was begun. `--project` matches any part of a path."""
    paths: list[str] = _read_index(context, lambda index: index.field_values("project"))
    by_name: dict[str, str] = {}
    for path in paths:
        name = path if incomplete.startswith(_PATH_STARTS) else path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
        by_name.setdefault(name, path)
    yield from (
        CompletionItem(name, help=_printable(path)) for name, path in by_name.items() if name.startswith(incomplete)
    )


def _complete_values(field: str) -> Callable[[click.Context, str], Iterator[CompletionItem]]:
    def values(context: click.Context, incomplete: str) -> Iterator[CompletionItem]:
        names: list[str] = _read_index(context, lambda index: index.field_values(field))
        typed = incomplete.casefold()
        yield from (CompletionItem(name) for name in names if name.casefold().startswith(typed))

    return values


def _complete_keys(_context: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """The keys of `usage --by`, also after a comma."""
    from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS  # noqa: PLC0415 - only keys need it

    before, comma, typed = incomplete.rpartition(",")
    used = before.split(",")
    for key, description in (KEY_DESCRIPTIONS | SESSION_KEY_DESCRIPTIONS).items():
        if key.startswith(typed) and key not in used:
            yield CompletionItem(f"{before}{comma}{key}", help=description)


def _complete_query(context: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Fields of the query language, and the values of a field after its colon."""
    from threadline.search import FIELDS  # noqa: PLC0415 - loads the search

    field, colon, typed = incomplete.partition(":")
    before = f"{field}{colon}"
    words: tuple[str, ...] = context.params.get("words") or ()
    if len(words) > 1 and words[-1] == ":" and not colon:  # bash splits words at colons
        field, colon, typed, before = words[-2], ":", incomplete, ""
    elif words and incomplete == ":":
        field, before = words[-1], ":"
    if not colon:
        yield from (CompletionItem(f"{name}:") for name in FIELDS if name.startswith(incomplete))
    elif field in _VALUE_FIELDS:
        for item in _complete_values(field)(context, typed):
            value = f'"{item.value}"' if " " in item.value else item.value
            yield CompletionItem(f"{before}{value}")


def _complete_kinds(_context: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    from threadline.model.entries import KINDS  # noqa: PLC0415 - loads the entry model

    yield from (CompletionItem(kind) for kind in KINDS if kind.startswith(incomplete))


_VALUE_FIELDS = frozenset({"tool", "model", "kind", "project", "branch", "version", "agent"})
_COMPLETERS: dict[str, Callable[[click.Context, str], Iterator[CompletionItem]]] = {
    "sessions": _complete_sessions,
    "projects": _complete_projects,
    "models": _complete_values("model"),
    "tools": _complete_values("tool"),
    "agent-types": _complete_values("agent"),
    "kinds": _complete_kinds,
    "keys": _complete_keys,
    "query": _complete_query,
}
