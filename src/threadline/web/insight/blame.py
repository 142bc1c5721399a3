"""Who wrote each line of a file: the session, turn and edit, or the commit, or that nobody is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import groupby
from typing import TYPE_CHECKING

from markupsafe import Markup

from threadline import insight
from threadline.errors import NotFound
from threadline.model.text import count, format_percent, format_time, noun_for, short_model_name
from threadline.model.times import zone_name
from threadline.render import shorten, visible
from threadline.render.html import Child, el, facts_row, figures_row, join
from threadline.web import urls
from threadline.web.pages.forms import FormField, filter_form, form_on_error, pager, parse_range
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.model.insight.blame import Blame, BlamedLine
    from threadline.web.request import PageRequest

_LINES_PER_PAGE = 500
_MAX_CHOICES = 50
_MAX_LINE, _MAX_TITLE, _MAX_PROMPT = 2_000, 60, 300
_TAB = 4
_SHORT_ID = 8


def _fields(_request: PageRequest) -> Iterator[FormField]:
    yield FormField("path", "File", "a path or its end", kind="search", is_wide=True)


@form_on_error("Who wrote it", "blame", _fields, "limit")
def blame_page(request: PageRequest) -> Page:
    """The text of a file that sessions have written, with who wrote each line."""
    path = request.text("path")
    paths = _written_files(request, path) if path is not None else []
    if len(paths) != 1:
        return _choose_page(request, path, paths)
    zone = request.zone()
    try:
        result = request.archive.blame(paths[0])
    except NotFound:
        return _edits_only_page(request, paths[0])
    shown = parse_range(request, _LINES_PER_PAGE)
    lines = shown.select(result.lines)
    sessions = {str(line.session) for line in result.lines if line.session is not None}
    titles = request.archive.titles(sessions)
    main = join(
        (
            el(
                "div",
                el("h1", f"Who wrote {shorten(result.file, 300)}"),
                facts_row([f"times in {zone_name(zone)}", *_links(result)]),
                class_="head",
            ),
            filter_form(request, list(_fields(request)), preserve=("limit",)),
            _summary(result),
            [el("p", visible(statement), class_="note") for statement in result.statements],
            _table(request, lines, titles, zone) if lines else el("p", "The file is empty.", class_="nothing"),
            pager(request, shown, len(lines), len(result.lines)),
            _unknown_reasons(result),
        )
    )
    return Page(shorten(f"Who wrote {result.file}", 80), "blame", main, insight.blame_record(result))


def _written_files(request: PageRequest, path: str) -> list[str]:
    """The files of this path, or whose path ends with it, that sessions have written.

    Only these are opened: a page must not show any other file of the disk.
    """
    files = request.archive.files(path, limit=_MAX_CHOICES * 20)
    written = dict.fromkeys(file.path for file in files if file.writes)
    return [path] if path in written else list(written)


def _choose_page(request: PageRequest, path: str | None, paths: Sequence[str]) -> Page:
    """The files to choose from, if the path is not that of one file."""
    content: Child
    if path is None:
        content = el("p", "Enter the path of a file that a session has written, or the end of it.", class_="nothing")
    elif not paths:
        text = f"No session has written a file whose path is {shorten(path, 200)} or ends with it."
        content = el("p", f"{text} Enter complete folder names.", class_="nothing")
    else:
        shown = paths[:_MAX_CHOICES]
        items = [el("li", el("a", shorten(each, 300), href=request.url_with(path=each))) for each in shown]
        content = join((el("p", f"{count(len(paths), 'file')} match. Choose one."), el("ul", items, class_="notes")))
    main = join(
        (
            el("div", el("h1", "Who wrote it"), class_="head"),
            filter_form(request, list(_fields(request)), preserve=("limit",)),
            content,
        )
    )
    return Page("Who wrote it", "blame", main, {"file": None, "lines": [], "files": list(paths[:_MAX_CHOICES])})


def _edits_only_page(request: PageRequest, path: str) -> Page:
    """A file that does not exist, and that sessions edited, but neither read nor wrote completely."""
    name, log = shorten(path, 300), el("a", "Edits as diffs", href=urls.build_url(urls.FILE_LOG, path=path))
    text = "The file does not exist here, and no transcript has its complete text, so its lines are not known. "
    main = join(
        (
            el("div", el("h1", f"Who wrote {name}"), class_="head"),
            filter_form(request, list(_fields(request)), preserve=("limit",)),
            el("p", text, log, class_="nothing"),
        )
    )
    return Page(shorten(f"Who wrote {path}", 80), "blame", main, {"file": path, "lines": []})


def _links(result: Blame) -> Iterator[Child]:
    yield el("a", "Edits as diffs", href=urls.build_url(urls.FILE_LOG, path=result.file))
    yield el("a", "Sessions that read or changed it", href=urls.build_url(urls.FILES, path=result.file))
    if result.repository is not None:
        yield f"with the history of git in {shorten(result.repository, 200)}"


def _summary(result: Blame) -> Markup:
    lines = result.lines
    by_session = sum(line.known and line.session is not None for line in lines)
    by_commit = sum(line.known and line.session is None for line in lines)
    figures = (
        (by_session, "written by sessions", "the link leads to the edit"),
        (by_commit, "committed, not by a session", None),
        (len(lines) - by_session - by_commit, "unknown", "the transcripts and git do not prove who wrote them"),
    )
    total = len(lines) or 1
    return figures_row(
        [
            (f"{len(lines):,}", noun_for(len(lines), "line"), None),
            *(
                ([f"{number:,} ", el("small", format_percent(number / total))], label, hint)
                for number, label, hint in figures
                if number or hint is not None
            ),
        ]
    )


def _unknown_reasons(result: Blame) -> Child:
    reasons = Counter(line.reason for line in result.lines if not line.known and line.reason)
    items = [
        el("li", f"{count(number, 'line')} unknown: {visible(reason)}") for reason, number in reasons.most_common()
    ]
    return el("ul", items, class_="notes") if items else None


def _table(request: PageRequest, lines: Sequence[BlamedLine], titles: Mapping[str, str], zone: tzinfo) -> Markup:
    """Each line with its number. The writer is shown once for consecutive lines."""
    rows: list[Markup] = []
    for _writer, group in groupby(lines, key=_writer_key):
        run = list(group)
        for at, line in enumerate(run):
            writer = _writer_cell(request, line, titles, zone, len(run)) if at == 0 else None
            text = visible(line.text[:_MAX_LINE].expandtabs(_TAB))
            rows.append(
                el(
                    "tr",
                    writer,
                    el("td", el("a", f"{line.line}", href=f"#L{line.line}"), class_="number"),
                    el("td", el("code", text), class_="code"),
                    id=f"L{line.line}",
                    class_="first" if at == 0 else None,
                )
            )
    head = el(
        "tr",
        el("th", "Writer", scope="col"),
        el("th", "Line", scope="col", class_="number"),
        el("th", "Text", scope="col"),
    )
    table = el(
        "table",
        el("caption", "Who wrote each line", class_="visually-hidden"),
        el("thead", head),
        el("tbody", rows),
        class_="blame-lines",
    )
    return el("div", table, class_="scrollable", tabindex=0, role="region", aria_label="Who wrote each line")


def _writer_key(line: BlamedLine) -> tuple[object, ...]:
    return line.known, line.session, line.call, line.commit if line.session is None else None, line.reason


def _writer_cell(request: PageRequest, line: BlamedLine, titles: Mapping[str, str], zone: tzinfo, lines: int) -> Markup:
    day = format_time(line.time, zone)[:10] if line.time is not None else ""
    if line.known and line.session is not None:
        title = shorten(titles.get(str(line.session)) or str(line.session)[:_SHORT_ID], _MAX_TITLE)
        url = _edit_url(request, line)
        turn = f"turn {line.turn}" if line.turn is not None else ""
        details = [turn, day, short_model_name(line.model) if line.model else "", "agent" if line.agent else ""]
        content: Child = [
            el("a", title, href=url) if url is not None else title,
            el("span", " · ".join(shorten(part, 60) for part in details if part), class_="detail"),
        ]
        hint = f"{line.tool or 'edit'}: {line.prompt or ''}"
        return _cell("session", content, hint, lines)
    if line.known:
        author = f" {line.author}" if line.author else ""
        content = [
            el("code", (line.commit or "")[:_SHORT_ID]),
            el("span", f"{shorten(author, 60)} {day}", class_="detail"),
        ]
        return _cell("commit", content, "committed, and not written by a session", lines)
    return _cell("unknown", "unknown", line.reason, lines)


def _cell(kind: str, content: Child, hint: str, lines: int) -> Markup:
    return el(
        "th",
        el("div", content, title=shorten(hint, _MAX_PROMPT) or None),
        scope="rowgroup" if lines > 1 else "row",
        rowspan=lines if lines > 1 else None,
        class_=f"writer {kind}",
    )


def _edit_url(request: PageRequest, line: BlamedLine) -> str | None:
    if line.place is None:
        return urls.session_url(str(line.session)) if line.session is not None else None
    url = urls.place_url(request.archive, line.place)
    return url or urls.entry_url(str(line.session), line.agent, line.place.line or 0)
