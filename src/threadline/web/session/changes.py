"""All changes of a session: for each file, the difference between its first and its last known content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline.model.state import ProofLevel
from threadline.model.text import count, format_changes
from threadline.render import shorten
from threadline.render.html import EMPTY, Child, el, facts_row, join, render_unified_diff
from threadline.web import urls
from threadline.web.request import Page, PlainText
from threadline.web.session.head import page_header

if TYPE_CHECKING:
    from threadline.model.state import FileState
    from threadline.web.request import PageRequest
    from threadline.web.session_cache import CachedSession

_MAX_FILES = 40
_MIN_LISTED = 3
_MAX_LINES, _MAX_CHARACTERS = 200, 20_000
_ENDS = (ProofLevel.WHOLE, ProofLevel.ABSENT)


class FileChange(Struct, frozen=True):
    """What a session changed in a file: a unified diff, or why it is not known."""

    path: str
    diff: str
    added: int = 0
    removed: int = 0
    reason: str = ""


def changes_page(request: PageRequest) -> Page | PlainText:
    """What a session changed, file by file; with `patch`, as a patch."""
    session = request.session()
    changes = request.cached("session changes", lambda: list(_find_changes(session)), session.id, session.version)
    if request.flag("patch"):
        return PlainText("".join(change.diff for change in changes), "text/x-patch")
    known = [change for change in changes if change.diff]
    patch = session.links.below("changes", patch=True)
    facts: list[Child] = [
        count(len(changes), "changed file"),
        el(
            "span",
            f"net {format_changes(sum(change.added for change in known), sum(change.removed for change in known))}",
            title="the difference between the first and the last content of each file",
        ),
    ]
    if known:
        facts.append(el("a", "Copy as patch", href=patch, data_copy="patch"))
    head = page_header(session, "Changes of this session", facts_row(facts))
    blocks = [_render_change(session, change, at) for at, change in enumerate(changes[:_MAX_FILES])]
    more = len(changes) - _MAX_FILES
    rest = el("p", f"and {count(more, 'more file')}, included in the patch", class_="note") if more > 0 else EMPTY
    nothing = el("p", "This session changed no files with its tools.", class_="nothing")
    main = join((head, _file_list(changes[:_MAX_FILES]), *(blocks or [nothing]), rest))
    return Page("Changes", "files", main, changes)


def _find_changes(session: CachedSession) -> Iterator[FileChange]:
    for file in session.session.at().files.values():
        if file.changed is not None:
            yield _change_of(file)


def _change_of(file: FileState) -> FileChange:
    """The difference between a file's first and last content, if both are known."""
    if file.proven not in _ENDS:
        return FileChange(file.path, "", reason="The content at the end is only partly known.")
    before = (file.first.content if file.first is not None else None) or ""
    after = file.content or ""
    path = file.path.replace("\\", "/").lstrip("/")
    old = f"a/{path}" if before else "/dev/null"
    new = f"b/{path}" if file.proven is ProofLevel.WHOLE else "/dev/null"
    lines = list(unified_diff(_split_lines(before), _split_lines(after), old, new))
    added = sum(line.startswith("+") for line in lines[2:])
    removed = sum(line.startswith("-") for line in lines[2:])
    reason = "" if lines else "At the end, the file was the same as when the session first read it."
    return FileChange(file.path, "".join(map(_with_line_end, lines)), added, removed, reason)


def _split_lines(text: str) -> list[str]:
    """Lines with their ends; other separators than line feeds are part of a line."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _with_line_end(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _file_list(changes: Sequence[FileChange]) -> Child:
    """Links to the files below, folded."""
    if len(changes) < _MIN_LISTED:
        return EMPTY
    items = [
        el(
            "li",
            el("a", el("code", shorten(change.path, 300)), href=f"#file-{at}"),
            el("span", format_changes(change.added, change.removed) if change.diff else "not shown", class_="faint"),
        )
        for at, change in enumerate(changes)
    ]
    return el("details", el("summary", "List of files"), el("ul", items), class_="file-list")


def _render_change(session: CachedSession, change: FileChange, at: int) -> Markup:
    log = urls.build_url(urls.FILE_LOG, path=change.path, session=session.session.id)
    blame = urls.build_url(urls.BLAME, path=change.path)
    facts: list[Child] = [
        format_changes(change.added, change.removed) if change.diff else change.reason,
        el("a", "Each edit", href=log) if urls.is_offered(urls.FILE_LOG) else None,
        el("a", "Who wrote each line", href=blame) if urls.is_offered(urls.BLAME) else None,
    ]
    return el(
        "section",
        el("h2", el("code", shorten(change.path, 300))),
        facts_row(facts),
        render_unified_diff(change.diff, _MAX_LINES, _MAX_CHARACTERS) if change.diff else EMPTY,
        id=f"file-{at}",
        class_="block",
    )
