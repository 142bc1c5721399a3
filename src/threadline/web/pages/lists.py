"""The pages of tool calls, of files, and of keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from threadline.errors import BadQuery
from threadline.model.calls import Outcome
from threadline.model.text import count, format_duration
from threadline.render import shorten, summarize_call
from threadline.render import visible as clean
from threadline.render.html import (
    EMPTY,
    Child,
    Column,
    TableRow,
    el,
    facts_row,
    folded_table,
    join,
    project_link,
    render_table,
    time_element,
    time_zone_note,
)
from threadline.web import urls
from threadline.web.archive_pool import cached_figure
from threadline.web.assets import KEYS, Key, describe_pages, key_label, keys_by_group
from threadline.web.pages.forms import FormField, filter_form, form_on_error, is_safe_value, pager, parse_range
from threadline.web.pages.sessions import suggested_values
from threadline.web.request import Page
from threadline.web.urls import entry_url

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import FileTouch
    from threadline.model.calls import ListedCall, ListedFile
    from threadline.web.request import PageRequest

_CALLS_PER_PAGE = 100
_MAX_INPUT = 110
_CALL_COLUMNS = (
    Column("When", "when"),
    Column("Tool", "tool"),
    Column("What", "what"),
    Column("Outcome", "outcome"),
    Column("Took", "number"),
    Column("Session", "title"),
    Column("Project", "path"),
)


def _call_fields(asked: PageRequest) -> list[FormField]:
    archive = asked.archive
    tools = [
        ("", "all tools"),
        *((tool, f"{shorten(tool, 50)} ({n:,})") for tool, n in tool_counts(archive).items() if is_safe_value(tool)),
    ]
    outcomes = [("", "any"), *((str(word), str(word)) for word in Outcome)]
    return [
        FormField("tool", "Tool", choices=tools),
        FormField("outcome", "Outcome", choices=outcomes),
        FormField("project", "Project", "part of path", offered=suggested_values(archive, "project")),
        FormField("session", "Session", "the start of its id"),
        FormField("since", "Since", "7d, 2026-11-03"),
        FormField("until", "Until", "yesterday"),
    ]


@form_on_error("Calls", _call_fields, "limit")
def calls(asked: PageRequest) -> Page:
    """Calls that fit what is asked."""
    archive = asked.archive
    here = asked.zone()
    shown = parse_range(asked, _CALLS_PER_PAGE)
    tools, outcomes = asked.texts("tool"), asked.texts("outcome")
    if (odd := next((word for word in outcomes if word not in list(Outcome)), None)) is not None:
        raise BadQuery(f"outcome={shorten(odd, 40)!r} is none of {', '.join(Outcome)}.")
    found = archive.calls(
        tools=tools,
        outcomes=outcomes,
        session=asked.text("session"),
        project=asked.text("project"),
        since=asked.moment("since", zone=here),
        until=asked.moment("until", end=True, zone=here),
        limit=shown.stop,
    )[shown.after :]
    more = len(found) > shown.limit
    found = found[: shown.limit]
    titles = archive.titles({str(call.session) for call in found if call.session is not None})
    told = {call: summarize_call(call.tool, archive.call_input(call)) for call in found}
    main = join(
        (
            el("div", el("h1", "Calls"), time_zone_note(here), class_="head"),
            filter_form(asked, _call_fields(asked), kept=("limit", "tz")),
            _call_table(found, told, titles, here)
            if found
            else el("p", clean(_explain_no_calls(archive, tools)), class_="nothing"),
            pager(asked, shown, len(found), None, more=more),
        )
    )
    data = {
        "calls": [{"what": told[call], "title": titles.get(str(call.session)), "call": call} for call in found],
        "after": shown.after,
        "more": more,
    }
    return Page("Calls", "calls", main, data)


def tool_counts(archive: Archive) -> Mapping[str, int]:
    """How often each tool was called, most often first."""
    return cached_figure(archive, "tools", archive.open_index().tool_counts)


def _call_table(
    found: list[ListedCall], told: Mapping[ListedCall, str], titles: Mapping[str, str], here: tzinfo
) -> Child:
    rows = [_call_row(call, told[call], titles.get(str(call.session)), here) for call in found]
    return render_table("Calls", _CALL_COLUMNS, rows, kind="list calls", heading=2, hidden_caption=True)


def _call_row(call: ListedCall, told: str, title: str | None, here: tzinfo) -> TableRow:
    address = entry_url(call.session, call.agent, call.place.line)
    what = shorten(told, _MAX_INPUT) or "(nothing given)"
    code = f" {call.exit_code}" if call.exit_code else ""
    whose = el("span", "agent", class_="agent-mark", title=shorten(str(call.agent), 80)) if call.agent else EMPTY
    page = urls.session_url(str(call.session)) if call.session is not None else None
    name = shorten(title or str(call.session or ""), 48)
    cells: list[Child] = [
        time_element(call.timestamp, here),
        shorten(call.tool, 50),
        el("a", what, href=address) if address else what,
        el("span", f"{call.outcome}{code}", class_=f"outcome {call.outcome}"),
        format_duration(call.duration),
        [el("a", name, href=page) if page else name, whose],
        project_link(call.project, urls.build_url(urls.CALLS, project=call.project)),
    ]
    return TableRow(cells, str(call.outcome), item=True)


def _explain_no_calls(archive: Archive, tools: tuple[str, ...]) -> str:
    never = archive.never_called(tools) if tools else None
    return f"No call fits all of that: {never}." if never else "No call fits all of that. Take something away above."


_FILES_PER_PAGE = 100
_MAX_TOUCHES = 500
_MAX_PATH = 110
_FILE_COLUMNS = (
    Column("Last touched", "when"),
    Column("File", "path"),
    Column("Reads", "number"),
    Column("Writes", "number"),
    Column("Session", "title"),
    Column("Project", "path"),
)
_TOUCH_COLUMNS = (Column("When", "when"), Column("How", "how"), Column("Session", "title"), Column("By"))


def _file_fields(asked: PageRequest) -> list[FormField]:
    return [
        FormField("path", "File", "a path or its end", kind="search"),
        FormField("project", "Project", "part of path", offered=suggested_values(asked.archive, "project")),
        FormField("session", "Session", "the start of its id"),
        FormField("since", "Since", "7d, 2026-11-03"),
        FormField("until", "Until", "yesterday"),
    ]


@form_on_error("Files", _file_fields, "limit")
def files(asked: PageRequest) -> Page:
    """Files that fit what is asked; where that is one file, each time that it was touched."""
    archive = asked.archive
    here = asked.zone()
    shown = parse_range(asked, _FILES_PER_PAGE)
    path = asked.text("path")
    found = archive.files(
        path,
        session=asked.text("session"),
        project=asked.text("project"),
        since=asked.moment("since", zone=here),
        until=asked.moment("until", end=True, zone=here),
        limit=shown.stop,
    )[shown.after :]
    more = len(found) > shown.limit
    found = found[: shown.limit]
    alone = found[0].path if path is not None and len({each.path for each in found}) == 1 else None
    times = archive.open_index().touches(alone, _MAX_TOUCHES) if alone is not None else []
    held = {str(each.session) for each in found} | {str(each.session) for each in times}
    titles = archive.titles(held)
    main = join(
        (
            el(
                "div",
                el("h1", shorten(alone, 300) if alone else "Files"),
                _file_summary(found) if alone else EMPTY,
                time_zone_note(here),
                class_="head",
            ),
            filter_form(asked, _file_fields(asked), kept=("limit", "tz")),
            _file_table(found, titles, here) if found else el("p", _explain_no_files(path), class_="nothing"),
            pager(asked, shown, len(found), None, more=more),
            _touch_section(times, titles, here) if times else EMPTY,
        )
    )
    data = {
        "files": [{"title": titles.get(str(each.session)), "file": each} for each in found],
        "touches": times,
        "after": shown.after,
        "more": more,
    }
    return Page(shorten(alone, 80) if alone else "Files", "files", main, data)


def _file_summary(found: list[ListedFile]) -> Child:
    reads, writes = sum(each.reads for each in found), sum(each.writes for each in found)
    facts = (count(len(found), "session"), count(reads, "read"), count(writes, "write"))
    return facts_row(facts)


def _file_table(found: list[ListedFile], titles: Mapping[str, str], here: tzinfo) -> Child:
    rows = [_file_row(each, titles, here) for each in found]
    return render_table("Files", _FILE_COLUMNS, rows, kind="list files", heading=1, hidden_caption=True)


def _file_row(each: ListedFile, titles: Mapping[str, str], here: tzinfo) -> TableRow:
    whole = urls.build_url(urls.FILES, path=each.path)
    cells: list[Child] = [
        time_element(each.last, here),
        el("a", shorten_path(each.path), href=whole, title=shorten(each.path, 400)),
        f"{each.reads:,}" if each.reads else "",
        f"{each.writes:,}" if each.writes else "",
        _session_link(each.session, titles),
        project_link(each.project, urls.build_url(urls.FILES, project=each.project)),
    ]
    return TableRow(cells, item=True)


def shorten_path(path: str) -> str:
    """A path in one line; of one that is long, the end, which tells more."""
    return shorten(path, _MAX_PATH) if len(path) <= _MAX_PATH else "…" + shorten(path[1 - _MAX_PATH :], _MAX_PATH)


def _session_link(session: str | None, titles: Mapping[str, str]) -> Child:
    if session is None:
        return ""
    return el("a", shorten(titles.get(str(session)) or str(session), 70), href=urls.session_url(str(session)))


def _touch_section(times: list[FileTouch], titles: Mapping[str, str], here: tzinfo) -> Child:
    rows = [_touch_row(each, titles, here) for each in times]
    note = f"The last {_MAX_TOUCHES} times" if len(times) == _MAX_TOUCHES else count(len(times), "time")
    made = render_table("Each time that it was touched", _TOUCH_COLUMNS, rows, kind="list", hidden_caption=True)
    inside = made if len(times) <= _FILES_PER_PAGE else folded_table(note, made)
    return el("section", el("h2", f"Each time that it was touched: {note}"), inside, class_="block")


def _touch_row(each: FileTouch, titles: Mapping[str, str], here: tzinfo) -> list[Child]:
    address = entry_url(each.session, each.agent, each.place.line)
    moment = time_element(each.timestamp, here) or "at no known time"
    return [
        el("a", moment, href=address) if address else moment,
        shorten(each.how, 20),
        _session_link(each.session, titles),
        f"agent {shorten(str(each.agent), 20)}" if each.agent else "main agent",
    ]


def _explain_no_files(path: str | None) -> str:
    if path is not None:
        return f"No session touched a file whose path is, or ends with, {shorten(path, 200)}. Write whole names."
    return "No file fits all of that. Take something away above."


def keys_page(_asked: PageRequest) -> Page:
    """All keys."""
    columns = (Column("Key"), Column("What it does"), Column("Where"))
    tables = [
        el(
            "section",
            el("h2", name),
            render_table(name, columns, map(_key_cells, some), hidden_caption=True),
            class_="block",
        )
        for name, some in keys_by_group()
    ]
    told = el("p", "Keys work wherever nothing is being typed. They need scripts; everything else here does not.")
    return Page("Keys", "keys", join((el("div", el("h1", "Keys"), told, class_="head"), *tables)), KEYS)


def _key_cells(one: Key) -> list[Child]:
    written = [[" or " if at else "", _key_element(key)] for at, key in enumerate(one.keys)]
    return [written, one.what, describe_pages(one)]


def _key_element(key: str) -> Child:
    return [[" " if at else "", el("kbd", part)] for at, part in enumerate(key_label(key).split(" "))]
