"""Compare two sessions: figures, tools, files, prompts, and how their context windows grew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from threadline.insight import find_commits
from threadline.model.text import format_duration, format_tokens, short_model_name
from threadline.render import shorten
from threadline.render.html import (
    Child,
    Column,
    Curve,
    SessionRow,
    TableRow,
    amount_element,
    curve_chart,
    el,
    join,
    number_element,
    project_link,
    render_table,
    time_element,
)
from threadline.web import urls
from threadline.web.pages.sessions import all_sessions, project_url, session_rows
from threadline.web.request import Page
from threadline.web.urls import carried_inputs

if TYPE_CHECKING:
    from threadline.web.request import PageRequest
    from threadline.web.session_cache import CachedSession

_MAX_SUGGESTED, _MAX_TOOLS, _MAX_FILES, _MAX_PROMPTS = 200, 40, 200, 200
_MAX_CHOICES = 30
_SIDES = ("a", "b")
_TURNS = Column("Turns", "number")


class ComparedSession(Struct, frozen=True):
    """One of the two sessions: its row, its calls by tool, the files it changed, its prompts and its windows."""

    row: SessionRow
    tools: dict[str, int]
    files: tuple[str, ...]
    prompts: tuple[tuple[int, str, str], ...]
    windows: tuple[int, ...]


_FIGURES: tuple[tuple[str, Callable[[SessionRow, PageRequest], Child]], ...] = (
    ("Project", lambda row, _request: project_link(row.project, project_url(row.project))),
    ("Model", lambda row, _request: shorten(short_model_name(row.model), 40)),
    ("Started", lambda row, request: time_element(row.first, request.zone())),
    ("Duration", lambda row, _request: format_duration(row.duration)),
    ("Amount", lambda row, _request: amount_element(row.amount, row.unpriced)),
    ("Tokens", lambda row, _request: number_element(row.tokens)),
    ("Turns", lambda row, _request: f"{row.turns:,}"),
    ("Calls", lambda row, _request: f"{row.calls:,}"),
    ("Failed calls", lambda row, _request: f"{row.failed_calls:,}"),
    ("Agents", lambda row, _request: f"{max(row.agents, row.started_agents):,}"),
    ("Changed files", lambda row, _request: f"{row.files:,}"),
    ("Commits", lambda row, _request: f"{row.commits:,}"),
    ("Compactions", lambda row, _request: f"{row.compactions:,}"),
)


def compare_page(request: PageRequest) -> Page:
    """Two sessions side by side; without both, the form that chooses them."""
    names = [request.text(side) for side in _SIDES]
    sessions = [_read_session(request, name) for name in names if name is not None]
    body: Child = el(
        "p",
        "Choose two sessions to see their figures, context windows, tools, files and prompts side by side.",
        class_="note",
    )
    if len(sessions) == len(_SIDES):
        body = join(
            (
                _figure_table(request, sessions),
                _curves(sessions),
                _count_table("Calls by tool", "Tool", [session.tools for session in sessions]),
                _file_table(sessions),
                _prompt_columns(sessions),
            )
        )
    elif len(sessions) == 1:
        body = _choices(request, sessions[0])
    main = join((el("div", el("h1", "Compare two sessions"), class_="head"), _form(request, names), body))
    return Page("Compare", "compare", main, sessions)


def _choices(request: PageRequest, session: ComparedSession) -> Markup:
    """The sessions to compare one with: those of its project first, then the newest."""
    project = session.row.project
    others = [brief for brief in all_sessions(request) if urls.session_url(brief.name) != session.row.address]
    others.sort(key=lambda brief: brief.project != project)
    side = "b" if request.text("a") is not None else "a"
    rows = [
        TableRow(
            [
                time_element(brief.last, request.zone()),
                el("a", shorten(brief.title, 120) or "(no title)", href=request.url_with(**{side: brief.name})),
                project_link(brief.project),
                f"{brief.turns:,}",
            ],
            item=True,
        )
        for brief in others[:_MAX_CHOICES]
    ]
    title = (
        f"Compare \N{LEFT DOUBLE QUOTATION MARK}{shorten(session.row.title, 120)}\N{RIGHT DOUBLE QUOTATION MARK} with"
    )
    columns = (Column("Last used", "when"), Column("Session", "title"), Column("Project", "path minor"), _TURNS)
    table = render_table(title, columns, rows, kind="list", heading=1, hidden_caption=True)
    return el("section", el("h2", title), table, class_="block")


def _read_session(request: PageRequest, name: str) -> ComparedSession:
    """What is compared of a session.

    Raises:
        NotFound: there is no such session.
    """
    cached = request.session_cache.get(name, request.archive)
    brief = next((brief for brief in all_sessions(request) if brief.path == str(cached.path)), None)
    if brief is not None:
        row = session_rows(request, [brief])[0]
        session_id = request.archive.open_index().qualified_id(str(cached.session.id), cached.path)
        tools = Counter(call.tool for call in request.archive.calls(session=session_id, limit=None))
        files = [file.path for file in request.archive.files(session=session_id, limit=None) if file.writes]
    else:  # the index would add what other agents of the missing session did
        row = _bare_row(request, cached)
        tools = Counter(call.tool for call in cached.session.calls)
        files = [file.path for file in cached.session.at().files.values() if file.changed is not None]
    prompts = tuple(
        (turn.number, shorten(turn.act.text, 300), urls.session_url(name, at=f"L{turn.act.place.line}"))
        for turn in cached.session.turns
        if turn.act is not None
    )
    windows = tuple(window.prompt for window in cached.windows(None) if window.has_usage)
    # Counted here, because lists only know them once all sessions have been examined.
    commits = sum(not commit.is_replaced for _call, commit in find_commits(cached.session))
    row = replace(row, commits=commits)
    return ComparedSession(row, dict(tools.most_common()), tuple(sorted(files)), prompts, windows)


def _bare_row(request: PageRequest, cached: CachedSession) -> SessionRow:
    """The row of a session that lists do not show, such as an agent's transcript without its session."""
    session, facts = cached.session, cached.facts
    total = cached.spending(request.archive).total
    return SessionRow(
        id=str(session.id),
        title=session.title.text,
        address=urls.session_url(cached.id),
        project=facts.project or "",
        first=facts.started,
        last=facts.ended,
        model=facts.models[-1] if facts.models else None,
        turns=sum(turn.act is not None for turn in session.turns),
        calls=facts.calls,
        agents=len(session.agents),
        amount=total.amount,
        unpriced=total.unpriced,
        tokens=total.tokens,
    )


def _form(request: PageRequest, names: Sequence[str | None]) -> Markup:
    options = [
        el("option", shorten(brief.title, 80), value=brief.name) for brief in all_sessions(request)[:_MAX_SUGGESTED]
    ]
    inputs = [
        el(
            "label",
            el("span", f"Session {side.upper()}"),
            el(
                "input",
                type="text",
                name_=side,
                value=name or "",
                placeholder="part of a title, or an id",
                list_="sessions-suggestions",
                autocomplete="off",
            ),
        )
        for side, name in zip(_SIDES, names, strict=True)
    ]
    suggestions = el("datalist", options, id="sessions-suggestions")
    button = el("button", "Compare", type="submit")
    return el(
        "form", inputs, suggestions, carried_inputs(), button, action=request.path, method="get", class_="share-form"
    )


def _heads(sessions: Sequence[ComparedSession]) -> list[Column]:
    return [
        Column(
            el("a", f"{side.upper()}: {shorten(session.row.title, 60) or '(no title)'}", href=session.row.address),
            "number",
        )
        for side, session in zip(_SIDES, sessions, strict=True)
    ]


def _figure_table(request: PageRequest, sessions: Sequence[ComparedSession]) -> Child:
    rows = [[name, *(value(session.row, request) for session in sessions)] for name, value in _FIGURES]
    columns = [Column(el("span", "Figure", class_="visually-hidden")), *_heads(sessions)]
    table = render_table("Figures", columns, rows, kind="list comparison", hidden_caption=True)
    return el("section", el("h2", "Figures"), table, class_="block")


def _curves(sessions: Sequence[ComparedSession]) -> Child:
    """How the context windows grew, request by request, on the same scale."""
    curves = [
        Curve(f"{side.upper()}: {shorten(session.row.title, 40)}", session.windows)
        for side, session in zip(_SIDES, sessions, strict=True)
    ]
    drawn = curve_chart("windows", "Tokens in the context window by request", curves, format_tokens)
    return el("section", el("h2", "Context window"), drawn, class_="block")


def _count_table(title: str, noun: str, counts: Sequence[dict[str, int]]) -> Child:
    total = sum((Counter(each) for each in counts), Counter[str]())
    rows = [
        [shorten(name, 60), *(f"{each[name]:,}" if name in each else "" for each in counts)]
        for name, _number in total.most_common(_MAX_TOOLS)
    ]
    columns = (Column(noun, "title"), *(Column(side.upper(), "number") for side in _SIDES))
    table = render_table(title, columns, rows, kind="list comparison", hidden_caption=True)
    return el("section", el("h2", title), table if rows else el("p", "No calls."), class_="block")


def _file_table(sessions: Sequence[ComparedSession]) -> Child:
    changed = [set(session.files) for session in sessions]
    files = sorted(set().union(*changed))
    rows = [
        [
            el("a", shorten(path, 120), href=urls.build_url(urls.FILES, path=path)),
            *("changed" if path in each else "" for each in changed),
        ]
        for path in files[:_MAX_FILES]
    ]
    both = len(set.intersection(*changed))
    columns = (Column("File", "path"), *(Column(side.upper(), "number") for side in _SIDES))
    table = render_table("Changed files", columns, rows, kind="list comparison", hidden_caption=True)
    title = f"Changed files ({len(files):,}, {both:,} by both)"
    return el("section", el("h2", title), table if rows else el("p", "No changed files."), class_="block")


def _prompt_columns(sessions: Sequence[ComparedSession]) -> Child:
    columns = [
        el(
            "div",
            el("h3", f"{side.upper()}: {shorten(session.row.title, 60)}"),
            el(
                "ol",
                [
                    el("li", el("a", text, href=url), value=number, data_item=True)
                    for number, text, url in session.prompts[:_MAX_PROMPTS]
                ],
            ),
        )
        for side, session in zip(_SIDES, sessions, strict=True)
    ]
    return el("section", el("h2", "Prompts"), el("div", columns, class_="side-by-side"), class_="block")
