"""The search page."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.text import count
from threadline.model.times import zone_name
from threadline.render import agent_slug, shorten, visible
from threadline.render.html import EMPTY, KEPT_HINT, Child, el, facts_row, join, project_link, time_element
from threadline.web import urls
from threadline.web.pages.forms import choice_chip
from threadline.web.pages.sessions import project_url
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.model.hits import Hit, Hits
    from threadline.search import Sort
    from threadline.web.request import PageRequest

_DEFAULT_LIMIT, _MAX_LIMIT = 20, 200
_MAX_QUERY = 1000
_EXAMPLES = (
    ("rate limit", "both words, in one entry"),
    ('"rate limit"', "these words in a row"),
    ("parseTimestamp", "also parse_timestamp"),
    ("deploy -staging", "without a word"),
    ("deploy OR release", "either"),
    ("prompt:deploy", "only what was typed; also reply: thinking: command: path: result: error:"),
    ("tool:Bash project:app", "of a tool, of a project; also model: branch: session: agent: kind:"),
    ("since:7d until:2026-11-01", "of a time"),
    ("/retry in \\d+ s/", "a regular expression"),
)


def search(asked: PageRequest) -> Page:
    """What was asked for, and what it finds."""
    query = (asked.text("q") or "").strip()
    if not query:
        main = join((el("h1", "Search", class_="unseen"), _search_form(asked, ""), _help_section(is_open=True)))
        return Page("Search", "search", main, {"query": "", "hits": []})
    here = asked.zone()
    ways = _parse_options(asked)
    try:
        hits = _run_search(asked, query, ways, here)
    except BadQuery as error:
        main = join(
            (
                el("h1", "Search", class_="unseen"),
                _search_form(asked, query),
                _query_error(error),
                _help_section(is_open=True),
            )
        )
        return Page(f"{shorten(query, 60)} · Search", "search", main, {"query": query, "hits": [], "error": str(error)})
    why = asked.archive.why(query, zone=here, now=asked.now) if not hits.hits else None
    main = join(
        (
            el("h1", f"Search: {shorten(query, 80)}", class_="unseen"),
            _search_form(asked, query),
            _result_head(asked, hits, here),
            el("p", visible(why), class_="nothing") if why is not None else EMPTY,
            el("ol", [_hit_item(asked, hit, here) for hit in hits.hits], class_="hits"),
            _more_link(asked, hits),
            _help_section(is_open=False),
        )
    )
    data = {"query": query, "why": why, **_hits_record(hits)}
    return Page(f"{shorten(query, 60)} · Search", "search", main, data)


class _SearchOptions(Struct, frozen=True):
    """How hits are wanted."""

    limit: int
    every: bool
    sort: Sort


def _parse_options(asked: PageRequest) -> _SearchOptions:
    sort = cast("Sort", asked.choice("sort", ("rank", "time"), "rank"))
    return _SearchOptions(asked.number("limit", _DEFAULT_LIMIT, least=1, most=_MAX_LIMIT), asked.flag("every"), sort)


def _run_search(asked: PageRequest, query: str, ways: _SearchOptions, here: tzinfo) -> Hits:
    if len(query) > _MAX_QUERY:
        raise BadQuery(f"A query has no more than {_MAX_QUERY:,} characters here; this one has {len(query):,}.")
    return asked.archive.search(query, limit=ways.limit, every=ways.every, sort=ways.sort, zone=here, now=asked.now)


def _search_form(asked: PageRequest, query: str) -> Child:
    box = el(
        "input",
        type="search",
        name_="q",
        value=query,
        aria_label="What to find",
        placeholder='words, "phrases", field:value, /expressions/',
        autofocus=not query,
        spellcheck="false",
        autocomplete="off",
    )
    kept = [
        el("input", type="hidden", name_=name, value=text)
        for name in ("sort", "every", "tz")
        if (text := asked.text(name))
    ]
    return el(
        "form", box, kept, el("button", "Search", type="submit"), action=asked.path, method="get", class_="asking"
    )


def _query_error(error: BadQuery) -> Child:
    """Why a query cannot be understood; where the sentence points at a place in it, below that place."""
    return el("pre", visible(str(error)), class_="refused", role="alert", tabindex=0)


def _result_head(asked: PageRequest, hits: Hits, here: tzinfo) -> Child:
    least = "at least " if hits.at_least else ""
    told = f"{least}{count(hits.total, 'entry', 'entries')}" if not hits.near else "Nothing matches exactly"
    by_time, every = asked.text("sort") == "time", asked.flag("every")
    ways = (
        choice_chip(asked.here(sort=None), "Best first", is_chosen=not by_time),
        choice_chip(asked.here(sort="time"), "Newest first", is_chosen=by_time),
        choice_chip(asked.here(every=None), "One a session", is_chosen=not every),
        choice_chip(asked.here(every=True), "Every entry", is_chosen=every),
    )
    note = el("p", visible(hits.note), class_="note") if hits.note else EMPTY
    counted = el("span", told, class_="count") if hits.hits else EMPTY
    times = el("span", f"times of {zone_name(here)}", class_="count") if hits.hits else EMPTY
    return join((el("p", counted, ways, times, class_="chips"), note))


def _hit_item(asked: PageRequest, hit: Hit, here: tzinfo) -> Child:
    at = f"L{hit.place.line}"
    agent = agent_slug(hit.agent) if hit.agent else None
    address = None
    if hit.session is not None and not hit.gone:
        address = urls.anchor_url(hit.session, agent, f"{agent}.{at}" if agent else at)
    title = shorten(hit.title or "(no title)", 160)
    facts = [
        time_element(hit.timestamp, here),
        el("span", shorten(hit.field or hit.kind, 40), class_="field"),
        project_link(hit.project, project_url(hit.project)),
        el("span", f"agent {shorten(str(hit.agent), 12)}") if hit.agent else None,
        el("span", "its transcript is gone") if hit.gone else None,
        el("span", "kept", title=KEPT_HINT) if hit.kept else None,
        el("span", f"without {shorten(', '.join(hit.lacks), 80)}", class_="lacks") if hit.lacks else None,
        _more_in_session(asked, hit) if hit.more and not hit.gone else None,
    ]
    return el(
        "li",
        el("h2", el("a", title, href=address) if address else title),
        el("p", highlight_snippet(hit), class_="snippet"),
        facts_row(facts),
        data_item=True,
    )


def _more_in_session(asked: PageRequest, hit: Hit) -> Child:
    query = f"{asked.text('q') or ''} session:{hit.session}"
    href = urls.build_url(urls.SEARCH, q=query, every=True)
    return el("a", f"{hit.more:,} more in this session", href=href, class_="more")


def highlight_snippet(hit: Hit) -> list[Child]:
    """The words around, with those that were asked for standing out."""
    parts: list[Child] = []
    at = 0
    for start, end in hit.highlights:
        parts += (visible(hit.snippet[at:start]), el("mark", visible(hit.snippet[start:end])))
        at = end
    return [*parts, visible(hit.snippet[at:])]


def _more_link(asked: PageRequest, hits: Hits) -> Child:
    limit = asked.number("limit", _DEFAULT_LIMIT, least=1, most=_MAX_LIMIT)
    if hits.listed <= len(hits.hits) or limit >= _MAX_LIMIT:
        return EMPTY
    return el("p", el("a", "More", href=asked.here(limit=min(_MAX_LIMIT, limit * 3)), class_="button"), class_="pager")


def _help_section(*, is_open: bool) -> Child:
    rows = [
        [el("dt", el("a", el("code", query), href=urls.build_url(urls.SEARCH, q=query))), el("dd", what)]
        for query, what in _EXAMPLES
    ]
    return el("details", el("summary", "How to ask"), el("dl", rows), class_="asking-help", open=is_open)


def _hits_record(hits: Hits) -> dict[str, Any]:
    return {
        "total": hits.total,
        "at_least": hits.at_least,
        "note": hits.note,
        "near": hits.near,
        "listed": hits.listed,
        "hits": hits.hits,
    }
