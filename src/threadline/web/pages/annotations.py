"""Stars, tags and notes on a session, and saved searches: the forms, and what they do.

The forms work without scripts. Their page sends its `Origin` (see `pages/access.py`), which the guard requires. All
that they change is threadline's own file of annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from markupsafe import Markup

from threadline.annotations import (
    MAX_NAME,
    MAX_NOTE,
    NO_ANNOTATION,
    Annotation,
    Annotations,
    annotate_session,
    parse_tags,
    read_annotations,
    remove_search,
    save_search,
)
from threadline.errors import BadQuery, Error, NotFound
from threadline.render import shorten
from threadline.render.html import EMPTY, Child, el, icon, join, with_code
from threadline.web import urls
from threadline.web.request import Page
from threadline.web.urls import hidden_inputs

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

SEND_ORIGIN = el("meta", name_="referrer", content="same-origin")
"""In the head of pages with forms: from others, browsers send `Origin: null`, which the guard refuses."""
_TRUE_WORDS = frozenset({"1", "true", "on"})
_STORAGE_NOTE = "Stored in threadline's data folder, not in the Claude home. `threadline keep` backs it up."


def read_or_none() -> Annotations:
    """All annotations; none if their file cannot be read, which must not hide a page."""
    try:
        return read_annotations()
    except Error:
        return Annotations()


def notes_page(request: PageRequest) -> Page:
    """The star, tags and note of a session."""
    cached = request.session()
    session, title = str(cached.session.id), str(cached.session.title)
    annotations = read_annotations()
    annotation = annotations.sessions.get(session, NO_ANNOTATION)
    back = urls.session_url(request.path_values["session"])
    main = join(
        (
            el(
                "header",
                el("p", el("a", shorten(title, 200) or session, href=back), class_="up"),
                el("h1", "Notes"),
                class_="head",
            ),
            _form(session, annotation, annotations, back),
            el("p", with_code(_STORAGE_NOTE), class_="note"),
        )
    )
    data = {"session": session, "starred": annotation.starred, "tags": annotation.tags, "note": annotation.note}
    return Page(f"Notes · {shorten(title, 80)}", "annotation", main, data, head=SEND_ORIGIN)


def _form(session: str, annotation: Annotation, annotations: Annotations, back: str) -> Markup:
    suggestions = el("datalist", [el("option", value=tag) for tag in annotations.tags], id="tags-suggestions")
    tags = el("input", type="text", name_="tags", value=", ".join(annotation.tags), list_="tags-suggestions")
    box = el("input", type="checkbox", name_="starred", value="1", checked=annotation.starred)
    return el(
        "form",
        hidden_inputs([("session", session), ("back", back), ("all", "1")]),
        el("label", box, "Starred"),
        el("label", el("span", "Tags, separated by commas"), tags, suggestions),
        el("label", el("span", "Note"), el("textarea", annotation.note, name_="note", rows=8, maxlength=MAX_NOTE)),
        el("button", "Save", type="submit"),
        action=urls.ANNOTATE,
        method="post",
        class_="notes-form",
    )


def apply_annotation(values: Mapping[str, str], has_session: Callable[[str], bool]) -> tuple[Annotation, str]:
    """Change a session's annotation as a form or script asks; return it and the page to go back to.

    With `all`, a missing checkbox means no star, as in forms; otherwise only what is given changes. `has_session` says
    whether a session has that id.

    Raises:
        BadQuery: no session is named, or a text is too long.
        NotFound: there is no such session.
    """
    session = values.get("session", "")
    if not session or len(session) > MAX_NAME:
        raise BadQuery("No session is named.")
    if not has_session(session):
        raise NotFound("No session has this id.")
    is_form = "all" in values
    starred = values.get("starred", "").lower() in _TRUE_WORDS if is_form or "starred" in values else None
    tags = parse_tags(values["tags"]) if "tags" in values else None
    annotation = annotate_session(session, starred=starred, tags=tags, note=values.get("note"))
    return annotation, own_path(values.get("back")) or urls.session_url(session)


def apply_search(values: Mapping[str, str]) -> str:
    """Save or remove a search as a form asks; return the page to go back to.

    Raises:
        BadQuery: the name or address is invalid.
        NotFound: there is no search to remove.
    """
    if "remove" in values:
        remove_search(values["remove"])
        return own_path(values.get("back")) or urls.SEARCH
    return save_search(values.get("name", ""), values.get("address", "")).address


def own_path(address: str | None) -> str | None:
    """An address of this server without the host; None for any other."""
    if not address or not address.startswith("/") or address.startswith(("//", "/\\")):
        return None
    parts = urlsplit(address)
    return address if not parts.scheme and not parts.netloc and address.isprintable() else None


def star_button(session: str | None, annotation: Annotation) -> Child:
    """A button that a script handles; without scripts, a starred session has only the star."""
    if session is None:
        return EMPTY
    label = "Remove the star" if annotation.starred else "Star this session"
    return el(
        "button",
        icon("star"),
        type="button",
        class_="star",
        data_action="star",
        data_session=session,
        aria_pressed="true" if annotation.starred else "false",
        aria_label=label,
        title=f"{label} (*)",
    )


def annotation_facts(annotation: Annotation) -> list[Child]:
    """The tags, as links, and the beginning of the note."""
    tags: list[Child] = [
        el("a", f"#{shorten(tag, 40)}", href=urls.build_url(urls.SESSIONS, tag=tag), class_="tag")
        for tag in annotation.tags
    ]
    note = shorten(annotation.note, 120)
    return [*tags, el("span", note, class_="noted", title="your note")] if note else tags


def save_search_form(request: PageRequest, name: str) -> Markup:
    """A form that saves the current page as a search."""
    box = el("input", type="text", name_="name", value=shorten(name, 80), maxlength=MAX_NAME, aria_label="Name")
    return el(
        "details",
        el("summary", "Save this search"),
        el(
            "form",
            box,
            hidden_inputs([("address", request.url_with(after=None))]),
            el("button", "Save", type="submit"),
            action=urls.SAVED_SEARCHES,
            method="post",
        ),
        class_="save-search",
    )


def saved_searches_list(annotations: Annotations, back: str) -> Child:
    """The saved searches as links, each with a button that removes it."""
    if not annotations.searches:
        return EMPTY
    items = [
        el(
            "li",
            el("a", shorten(search.name, 80), href=search.address),
            el(
                "form",
                hidden_inputs([("remove", search.name), ("back", back)]),
                el("button", icon("close"), type="submit", aria_label=f"Remove {search.name}", title="Remove"),
                action=urls.SAVED_SEARCHES,
                method="post",
            ),
        )
        for search in annotations.searches
    ]
    return el("section", el("h2", "Saved searches"), el("ul", items, class_="saved"), class_="block")
