"""The history of a file: every edit by any session, as diffs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from threadline.model.state import edit_row
from threadline.model.text import short_model_name
from threadline.model.times import zone_name
from threadline.render import shorten
from threadline.render.html import (
    EMPTY,
    Child,
    el,
    facts_row,
    join,
    render_unified_diff,
    time_element,
)
from threadline.web import urls
from threadline.web.pages.forms import filter_form, form_on_error, pager, parse_range
from threadline.web.pages.lists import file_fields, session_link
from threadline.web.request import Page, PlainText

if TYPE_CHECKING:
    from threadline.model.state import FileEdit
    from threadline.web.request import PageRequest

_EDITS_PER_PAGE = 20
_MAX_LINES, _MAX_CHARACTERS = 400, 40_000
_MAX_PROMPT = 400


@form_on_error("File history", "files", file_fields, "limit")
def file_log_page(request: PageRequest) -> Page | PlainText:
    """The edits of a file that match the filters, newest first, as diffs; with `patch`, as a patch."""
    archive = request.archive
    zone = request.zone()
    shown = parse_range(request, _EDITS_PER_PAGE)
    path = request.text("path")
    since, until = request.time_range()
    edits = (
        archive.file_log(
            path,
            session=request.text("session"),
            project=request.text("project"),
            since=since,
            until=until,
            limit=shown.stop,
        )[shown.after :]
        if path is not None
        else []
    )
    more = len(edits) > shown.limit
    edits = edits[: shown.limit]
    paths = {edit.path for edit in edits}
    single = next(iter(paths)) if len(paths) == 1 else None
    if request.flag("patch"):
        return PlainText("".join(edit.diff for edit in reversed(edits)), "text/x-patch")
    titles = archive.titles({str(edit.session) for edit in edits if edit.session is not None})
    main = join(
        (
            el(
                "div",
                el("h1", f"Edits of {shorten(single, 300)}" if single else "File history"),
                facts_row(
                    [
                        f"times in {zone_name(zone)}",
                        *_summarize(path, single),
                        *([_patch_link(request)] if edits else []),
                    ]
                ),
                class_="head",
            ),
            filter_form(request, file_fields(request), preserve=("limit",)),
            [_render_edit(edit, titles, zone, named=single is None) for edit in edits]
            or el("p", _explain_nothing(path), class_="nothing"),
            pager(request, shown, len(edits), None, more=more),
        )
    )
    data = {
        "edits": [{"title": titles.get(str(edit.session)), "edit": edit_row(edit)} for edit in edits],
        "after": shown.after,
        "more": more,
    }
    return Page(shorten(f"Edits of {single}", 80) if single else "File history", "files", main, data)


def _patch_link(request: PageRequest) -> Child:
    """A link that copies the edits of this page as a patch, oldest first."""
    return el("a", "Copy as patch", href=request.url_with(patch=True), data_copy="patch")


def _summarize(path: str | None, single: str | None) -> list[Child]:
    if path is None:
        return []
    links: list[Child] = [
        el("a", "Sessions that read or changed it", href=urls.build_url(urls.FILES, path=single or path))
    ]
    if single is not None:
        links.append(el("a", "Who wrote each line", href=urls.build_url(urls.BLAME, path=single)))
    return links


def _render_edit(edit: FileEdit, titles: Mapping[str, str], zone: tzinfo, *, named: bool) -> Child:
    url = urls.entry_url(edit.session, edit.agent, edit.place.line)
    moment = time_element(edit.timestamp, zone) or "time unknown"
    facts: list[Child] = [
        shorten(edit.how, 20),
        session_link(edit.session, titles),
        f"turn {edit.turn:,}" if edit.turn is not None else "",
        f"agent {shorten(str(edit.agent), 20)}" if edit.agent else "",
        shorten(short_model_name(edit.model), 60),
        el("span", "exact" if edit.proven else "uncertain", class_="proof proven" if edit.proven else "proof"),
    ]
    return el(
        "section",
        el("h2", el("a", moment, href=url) if url else moment),
        facts_row(facts),
        el("p", el("code", shorten(edit.path, 300))) if named else EMPTY,
        el("blockquote", shorten(edit.prompt, _MAX_PROMPT)) if edit.prompt else EMPTY,
        EMPTY if edit.proven and edit.diff else el("p", edit.statement, class_="note"),
        render_unified_diff(edit.diff, _MAX_LINES, _MAX_CHARACTERS),
        class_="block",
    )


def _explain_nothing(path: str | None) -> str:
    if path is None:
        return "Enter the path of a file, or the end of it."
    return (
        f"No matching edit of a file whose path is {shorten(path, 200)} or ends with it. Enter complete folder names."
    )
