"""The search page."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.text import count
from threadline.model.times import zone_name
from threadline.render import shorten, visible
from threadline.render.html import EMPTY, KEPT_HINT, Child, choice_chip, el, facts_row, join, project_link, time_element
from threadline.web import urls
from threadline.web.pages.annotations import SEND_ORIGIN, read_or_none, save_search_form, saved_searches_list
from threadline.web.pages.sessions import project_url
from threadline.web.request import Page
from threadline.web.urls import carried_inputs, hidden_inputs

if TYPE_CHECKING:
    from threadline.model.hits import Hit, Hits
    from threadline.search import Sort
    from threadline.web.request import PageRequest

_DEFAULT_LIMIT, _MAX_LIMIT = 20, 200
_MAX_QUERY = 1000
_MAX_MARKS, _MAX_MARK = 8, 60
"""How many words are highlighted on the page that a hit leads to, and their longest."""
_EXAMPLES = (
    ("rate limit", "both words, in one entry"),
    ('"rate limit"', "this phrase"),
    ("parseTimestamp", "also finds parse_timestamp"),
    ("deploy -staging", "without a word"),
    ("deploy OR release", "either word"),
    ("prompt:deploy", "only prompts; also reply: thinking: command: file: result: error:"),
    ("tool:Bash project:app", "one tool, one project; also model: branch: session: agent: kind:"),
    ("since:7d until:2026-11-01", "a range of time"),
    ("/retry in \\d+ s/", "a regular expression"),
)


def search_page(request: PageRequest) -> Page:
    """A query and its hits."""
    query = (request.text("q") or "").strip()
    if not query:
        main = join(
            (
                el("h1", "Search", class_="visually-hidden"),
                _search_form(request, ""),
                el(
                    "p",
                    el("a", "Prompt history", href=urls.build_url(urls.HISTORY)),
                    ", including deleted sessions",
                    class_="note",
                ),
                saved_searches_list(annotations := read_or_none(), urls.SEARCH),
                _syntax_help(is_open=True),
            )
        )
        data = {"query": "", "hits": [], "saved": annotations.searches}
        return Page("Search", "search", main, data, head=SEND_ORIGIN)
    title = f"{shorten(query, 60)} · Search"
    zone = request.zone()
    options = _parse_options(request)
    try:
        hits = _run_search(request, query, options, zone)
    except BadQuery as error:
        main = join(
            (
                el("h1", "Search", class_="visually-hidden"),
                _search_form(request, query),
                _query_error(error),
                _syntax_help(is_open=True),
            )
        )
        data = {"query": query, "hits": [], "error": str(error)}
        return Page(title, "search", main, data, status=HTTPStatus.BAD_REQUEST)
    why = request.archive.explain_no_hits(query, zone=zone, now=request.now) if not hits.hits else None
    main = join(
        (
            el("h1", f"Search: {shorten(query, 80)}", class_="visually-hidden"),
            _search_form(request, query),
            _result_head(request, hits, options, zone),
            el("p", visible(why), class_="nothing") if why is not None else EMPTY,
            el("ol", [_hit_item(request, hit, zone) for hit in hits.hits], class_="hits"),
            _more_link(request, hits, options),
            save_search_form(request, query),
            _syntax_help(is_open=False),
        )
    )
    return Page(title, "search", main, {"query": query, "why": why, **_hits_record(hits)}, head=SEND_ORIGIN)


class _SearchOptions(Struct, frozen=True):
    limit: int
    every: bool
    sort: Sort


def _parse_options(request: PageRequest) -> _SearchOptions:
    return _SearchOptions(
        limit=request.number("limit", _DEFAULT_LIMIT, least=1, most=_MAX_LIMIT),
        every=request.flag("every"),
        sort=cast("Sort", request.choice("sort", ("rank", "time"), "rank")),
    )


def _run_search(request: PageRequest, query: str, options: _SearchOptions, zone: tzinfo) -> Hits:
    if len(query) > _MAX_QUERY:
        raise BadQuery(f"This query has {len(query):,} characters. At most {_MAX_QUERY:,} are allowed.")
    return request.archive.search(
        query, limit=options.limit, every=options.every, sort=options.sort, zone=zone, now=request.now
    )


def _search_form(request: PageRequest, query: str) -> Child:
    box = el(
        "input",
        type="search",
        name_="q",
        value=query,
        aria_label="Search query",
        placeholder='words, "phrases", field:value, /expressions/',
        autofocus=not query,
        spellcheck="false",
        autocomplete="off",
    )
    hidden = [
        *hidden_inputs((name, text) for name in ("sort", "every") if (text := request.text(name))),
        *carried_inputs(),
    ]
    button = el("button", "Search", type="submit")
    return el("form", box, hidden, button, action=request.path, method="get", class_="search-form")


def _query_error(error: BadQuery) -> Child:
    """The error in monospace: it may point at a place in the query."""
    return el("pre", visible(str(error)), class_="refused", role="alert", tabindex=0)


def _result_head(request: PageRequest, hits: Hits, options: _SearchOptions, zone: tzinfo) -> Child:
    at_least = "at least " if hits.at_least else ""
    total = f"{at_least}{count(hits.total, 'entry', 'entries')}" if not hits.near else "No exact match"
    by_time, every = options.sort == "time", options.every
    chips = (
        choice_chip(request.url_with(sort=None), "Best match", is_chosen=not by_time),
        choice_chip(request.url_with(sort="time"), "Newest first", is_chosen=by_time),
        choice_chip(request.url_with(every=None), "Group by session", is_chosen=not every),
        choice_chip(request.url_with(every=True), "All matches", is_chosen=every),
    )
    note = el("p", visible(hits.note), class_="note") if hits.note else EMPTY
    counted = el("span", total, class_="count") if hits.hits else EMPTY
    times = el("span", f"times in {zone_name(zone)}", class_="count") if hits.hits else EMPTY
    return join((el("p", counted, chips, times, class_="chips"), note))


def _hit_item(request: PageRequest, hit: Hit, zone: tzinfo) -> Child:
    name = urls.session_name(request.archive, hit.session, hit.place.transcript)
    url = None if hit.gone else urls.entry_url(name, hit.agent, hit.place.line, mark=matching_words(hit))
    title = shorten(hit.title or "(no title)", 160)
    facts = [
        time_element(hit.timestamp, zone),
        el("span", shorten(hit.field or hit.kind, 40), class_="field"),
        project_link(hit.project, project_url(hit.project)),
        el("span", f"agent {shorten(str(hit.agent), 12)}") if hit.agent else None,
        el("span", "transcript deleted") if hit.gone else None,
        el("span", "kept", title=KEPT_HINT) if hit.kept else None,
        el("span", f"without {shorten(', '.join(hit.lacks), 80)}", class_="lacks") if hit.lacks else None,
        _more_in_session(request, hit) if hit.more and not hit.gone else None,
    ]
    return el(
        "li",
        el("h2", el("a", title, href=url) if url else title),
        el("p", highlight_snippet(hit), class_="snippet"),
        facts_row(facts),
        data_item=True,
    )


def _more_in_session(request: PageRequest, hit: Hit) -> Child:
    query = f"{request.text('q') or ''} session:{hit.session}"
    url = urls.build_url(urls.SEARCH, q=query, every=True)
    least = "at least " if hit.at_least else "+"
    return el("a", f"{least}{count(hit.more, 'match', 'matches')} in this session", href=url, class_="more")


def matching_words(hit: Hit) -> list[str]:
    """The words of the snippet that match, each once, as they are written."""
    words = dict.fromkeys(hit.snippet[start:end].casefold() for start, end in hit.highlights)
    return [word for word in words if len(word) <= _MAX_MARK][:_MAX_MARKS]


def highlight_snippet(hit: Hit) -> list[Child]:
    """The snippet of a hit with the matching words marked."""
    return highlight_text(hit.snippet, hit.highlights)


def highlight_text(text: str, ranges: Iterable[tuple[int, int]]) -> list[Child]:
    """A text with parts of it marked."""
    parts: list[Child] = []
    at = 0
    for start, end in ranges:
        parts += (visible(text[at:start]), el("mark", visible(text[start:end])))
        at = end
    return [*parts, visible(text[at:])]


def _more_link(request: PageRequest, hits: Hits, options: _SearchOptions) -> Child:
    if hits.listed <= len(hits.hits) or options.limit >= _MAX_LIMIT:
        return EMPTY
    url = request.url_with(limit=min(_MAX_LIMIT, options.limit * 3))
    return el("p", el("a", "Show more", href=url, class_="button"), class_="pager")


def _syntax_help(*, is_open: bool) -> Child:
    rows = [
        [el("dt", el("a", el("code", query), href=urls.build_url(urls.SEARCH, q=query))), el("dd", meaning)]
        for query, meaning in _EXAMPLES
    ]
    return el("details", el("summary", "Search syntax"), el("dl", rows), class_="search-help", open=is_open)


def _hits_record(hits: Hits) -> dict[str, Any]:
    return {
        "total": hits.total,
        "at_least": hits.at_least,
        "note": hits.note,
        "near": hits.near,
        "listed": hits.listed,
        "hits": hits.hits,
    }
