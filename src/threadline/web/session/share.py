"""Share a session, some turns or an entry: choose, look at what is redacted, then copy or save it.

The export engine creates the file and checks it for leaks. The preview and the download are the same bytes: the
download's URL contains the hash of the preview, and is refused if the session has changed since.
"""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec.structs import replace

from threadline.errors import BadQuery
from threadline.export import ExportFormat, load_settings
from threadline.model.text import count, format_size
from threadline.redact import Level
from threadline.render import Detail, View, entry_to_markdown, session_to_markdown, shorten, visible
from threadline.render.html import Column, el, icon, join, render_table
from threadline.web.request import Download, Fragment, Page, PageResult, PlainText
from threadline.web.session.shared_file import RefusedFile, ShareChoice, SharedFile, SharePlan, export_choice
from threadline.web.session.view import parse_view
from threadline.web.urls import carried_inputs, entry_anchor

if TYPE_CHECKING:
    from threadline.web.archive_pool import ReservedFigure
    from threadline.web.request import PageRequest

_FORMATS = {
    ExportFormat.HTML: ("HTML page", "text/html"),
    ExportFormat.MD: ("Markdown", "text/markdown"),
    ExportFormat.TXT: ("text", "text/plain"),
    ExportFormat.JSON: ("JSON", "application/json"),
    ExportFormat.JSONL: ("transcript (JSONL)", "application/jsonl"),
    ExportFormat.PDF: ("PDF", "application/pdf"),
}
_TEXT_FORMATS = frozenset({ExportFormat.MD, ExportFormat.TXT, ExportFormat.JSON})
_SCOPES = {"session": "the whole session", "turns": "some turns", "entry": "one entry"}
_LEVELS = {
    Level.STANDARD: "secrets, names, addresses, home directories",
    Level.STRICT: "also random values, paths and URLs",
    Level.METRICS: "all text: only times, models, counts",
}
_DETAILS = tuple(str(detail) for detail in Detail)
_MAX_PREPARED_BYTES = 8 * 1024 * 1024
_QUIET_TIME = timedelta(minutes=1)
_MAX_PREVIEW = 20_000
_MAX_SCANNED = 400_000
_TAG = re.compile(r"<(/?[a-z0-9]*)[^>]*>")
_BLOCK_END = re.compile(r"/(p|article|h[1-6]|li|div|tr|pre|summary|header|section)|br")
_WITHIN_WORDS = frozenset(("/b", "/i", "/em", "/strong", "/code", "/mark"))
_BLANK_LINES = re.compile(r"[ \t]*\n(?:[ \t]*\n)+")


def _space_of_tag(tag: re.Match[str]) -> str:
    """What a preview has instead of a tag: a new line at the end of a block, and a space after other elements."""
    if _BLOCK_END.fullmatch(tag[1]):
        return "\n"
    return " " if tag[1].startswith("/") and tag[1] not in _WITHIN_WORDS else ""


def share_page(request: PageRequest) -> PageResult:
    """The form, and the preview: what is redacted, and how the result begins.

    A preview of a long session takes a second or two. So scripts load it into the page (`part=preview`); without
    scripts, the page contains it if `preview` is set. The server starts computing it while the browser loads the page,
    or even before: a script requests this page when the pointer is near its link.
    """
    session = request.session()
    choice = parse_choice(request)
    if request.text("part") == "preview":
        return Fragment("Preview", "sharing", *_preview_file(request, choice), is_bare=True)
    preview, file_data = _preview_file(request, choice) if request.flag("preview") else (None, {})
    if preview is None and not request.wants_data:
        request.pool.compute_ahead(lambda archive: export_choice(replace(request, archive=archive), choice))
    title = shorten(session.session.title.text, 120) or "Back to the session"
    main = join(
        (
            el(
                "header",
                el("p", el("a", title, href=session.links.page()), class_="up"),
                el("h1", "Share"),
                class_="head",
            ),
            _form(request, choice, max((turn.number for turn in session.session.turns), default=0)),
            preview or _preview_fold(request),
        )
    )
    data = {"format": choice.form, "level": choice.level, "scope": _scope(request), **file_data}
    return Page(f"Share · {shorten(title, 80)}", "sharing", main, data)


def share_file_page(request: PageRequest) -> PageResult:
    """The file that was previewed.

    Raises:
        BadQuery: the session has changed since the preview, or there was none.
    """
    choice = parse_choice(request)
    file = export_choice(request, choice)
    if request.text("hash") != file.hash:
        raise BadQuery("The session has changed since the preview. Go back and look at the new preview.")
    media_type = _FORMATS[choice.form][1]
    return Download(file.name, file.content, media_type, _file_data(file))


def plan_preparation(request: PageRequest) -> tuple[SharePlan, ReservedFigure[SharedFile]] | None:
    """The file to export before the reader opens the page, reserved; None if that should wait, or if it is cached.

    Redacting and checking takes half a second per megabyte. A session that is still being written would probably change
    before it is shared.

    Raises:
        NotFound: the archive has no such session.
    """
    session = request.session()
    ended = session.facts.ended
    if session.size > _MAX_PREPARED_BYTES or (ended is not None and request.now - ended < _QUIET_TIME):
        return None
    plan = SharePlan.of(request, parse_choice(request))
    reserved = plan.reserve(request.pool)
    return None if reserved is None else (plan, reserved)


def _preview_file(request: PageRequest, choice: ShareChoice) -> tuple[Markup, dict[str, Any]]:
    """The preview of the file and its data, or why there is no file."""
    try:
        file = export_choice(request, choice)
    except RefusedFile as error:
        if request.wants_data:
            raise
        return el("p", visible(str(error)), class_="refused", role="alert"), {}
    return _preview(request, choice, file), _file_data(file)


def _file_data(file: SharedFile) -> dict[str, Any]:
    return {"name": file.name, "size": len(file.content), "hidden": file.hidden, "hash": file.hash}


def _preview_fold(request: PageRequest) -> Markup:
    """A fold that loads the preview at once; without scripts, a link to it."""
    return el(
        "details",
        el("summary", "Preview"),
        el("p", el("a", "Show the preview", href=request.url_with(preview=True)), class_="note"),
        data_src=request.url_with(part="preview"),
        open=True,
        class_="share-fold",
    )


def markdown_page(request: PageRequest) -> PageResult:
    """The session, or one entry, as Markdown: redacted, unless `redact=0` asks for it as it is."""
    session = request.session()
    view = parse_view(request, session)
    options = replace(view.view, zone=request.zone())
    anchor = request.text("anchor")
    if request.text("redact") is None or request.flag("redact"):
        return _redacted_markdown(request, options, entry_anchor(anchor) if anchor is not None else None)
    if anchor is not None:
        entry, agent = session.entry(anchor)
        lines = entry_to_markdown(session.session, agent, entry, options)
    else:
        total = session.spending(request.archive).total
        lines = session_to_markdown(session.session, options, session.notifications, total)
    return PlainText("\n".join(lines) + "\n", "text/markdown")


def _redacted_markdown(request: PageRequest, view: View, anchor: str | None) -> PlainText:
    """A session or one entry as redacted Markdown."""
    choice = ShareChoice(ExportFormat.MD, load_settings().level, view, anchor)
    return PlainText(export_choice(request, choice).content.decode(errors="replace"), "text/markdown")


def parse_choice(request: PageRequest) -> ShareChoice:
    """What the parameters of the form choose.

    Raises:
        BadQuery: they contradict each other.
    """
    scope = _scope(request)
    default_form = ExportFormat.MD if scope == "entry" else ExportFormat.HTML
    form = ExportFormat(request.choice("format", tuple(map(str, _FORMATS)), str(default_form)))
    first, last = request.optional_number("from"), request.optional_number("to")
    if scope == "turns" and first is not None and last is not None and last < first:
        raise BadQuery(f"from={first} is after to={last}.")
    entry = request.text("entry") if scope == "entry" else None
    if scope == "entry" and entry is None:
        raise BadQuery("Name the entry: entry=L120. The page of a session has a link for each entry.")
    has_turns = scope == "turns"
    return ShareChoice(
        form=ExportFormat.MD if entry is not None else form,
        level=request.enum("level", Level, load_settings().level),
        view=View(
            thinking=Detail(request.choice("thinking", _DETAILS, str(Detail.FOLD))),
            calls=Detail(request.choice("calls", _DETAILS, str(Detail.FOLD))),
            agents=Detail(request.choice("agents", _DETAILS, str(Detail.FOLD))),
            images=False,
            from_turn=first if has_turns else None,
            to_turn=last if has_turns else None,
            zone=request.zone(),
        ),
        entry=entry,
        hide=request.texts("hide"),
    )


def _scope(request: PageRequest) -> str:
    return request.choice("scope", tuple(_SCOPES), "entry" if request.text("entry") else "session")


def _form(request: PageRequest, choice: ShareChoice, turns: int) -> Markup:
    scope = _scope(request)
    return el(
        "form",
        _menu("scope", "What", _SCOPES, scope),
        _number("from", "From turn", request.text("from"), turns),
        _number("to", "To turn", request.text("to"), turns),
        el("label", el("span", "Entry"), _text_input("entry", choice.entry or request.text("entry"), "L120")),
        _menu("format", "Format", {str(form): label for form, (label, _type) in _FORMATS.items()}, str(choice.form)),
        _menu("level", "Redact", {str(level): label for level, label in _LEVELS.items()}, str(choice.level)),
        el("label", el("span", "Also hide"), _text_input("hide", ", ".join(choice.hide), "words, names")),
        *(
            _menu(name, label, {detail: detail for detail in _DETAILS}, str(value))
            for name, label, value in (
                ("thinking", "Thinking", choice.view.thinking),
                ("calls", "Calls", choice.view.calls),
                ("agents", "Agents", choice.view.agents),
            )
        ),
        carried_inputs(),
        el("input", type="hidden", name_="preview", value="1"),
        el("button", "Preview", type="submit"),
        action=request.path,
        method="get",
        class_="share-form",
        data_busy="Redacting and checking. This takes a few seconds for a long session.",
    )


def _menu(name: str, label: str, choices: dict[str, str], value: str) -> Markup:
    options = [el("option", text, value=choice, selected=choice == value) for choice, text in choices.items()]
    return el("label", el("span", label), el("select", options, name_=name))


def _number(name: str, label: str, value: str | None, most: int) -> Markup:
    box = el("input", type="number", name_=name, value=value or "", min=0, max=most or None, placeholder="any")
    return el("label", el("span", label), box)


def _text_input(name: str, value: str | None, hint: str) -> Markup:
    return el("input", type="text", name_=name, value=value or "", placeholder=hint, autocomplete="off")


def _preview(request: PageRequest, choice: ShareChoice, file: SharedFile) -> Markup:
    url = request.url_with(preview=None, part=None, hash=file.hash).replace("/share?", "/share/file?", 1)
    total = sum(file.hidden.values())
    label = _FORMATS[choice.form][0]
    copy = (
        el("a", icon("copy"), f"Copy {label}", href=url, data_copy="file", class_="button")
        if choice.form in _TEXT_FORMATS
        else None
    )
    actions = el(
        "p", copy, el("a", icon("down"), f"Save {file.name}", href=url, class_="button"), class_="share-actions"
    )
    unseen = [el("p", f"The session does not contain {shorten(word, 60)}.") for word in file.unseen_words]
    text = _preview_text(choice.form, file.content)
    return join(
        (
            el("h2", f"{count(total, 'value')} redacted" if total else "Nothing had to be redacted"),
            _hidden_table(file.hidden) if file.hidden else None,
            unseen,
            el("h2", f"Preview ({format_size(len(file.content))})"),
            actions,
            el("pre", text, class_="share-preview", tabindex=0, role="region", aria_label="Preview"),
        )
    )


def _hidden_table(hidden: dict[str, int]) -> Markup:
    rows = [[kind.replace("-", " "), f"{number:,}"] for kind, number in hidden.items()]
    return render_table(
        "Redacted values by kind", (Column("Kind"), Column("Values", "number")), rows, hidden_caption=True
    )


def _preview_text(form: ExportFormat, content: bytes) -> str:
    """How the file begins, as text."""
    if form is ExportFormat.PDF:
        return "(The preview of a PDF is the file itself.)"
    text = content[:_MAX_SCANNED].decode(errors="replace")
    if form is ExportFormat.HTML:
        body = text.partition("<main")[2].partition(">")[2]
        text = _BLANK_LINES.sub("\n\n", unescape(_TAG.sub(_space_of_tag, body))).strip()
    return visible(text[:_MAX_PREVIEW]) + ("\n…" if len(text) > _MAX_PREVIEW else "")
