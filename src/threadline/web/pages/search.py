"""Search: what a query finds, where, and what would have been found where it finds nothing."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.zone import zone_name
from threadline.render.figures import count
from threadline.render.html.anchor import named
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.lists import KEPT
from threadline.render.html.said import project, row_of_facts, when
from threadline.render.html.words import one, shown
from threadline.web import addresses
from threadline.web.page import Page
from threadline.web.pages.filters import chosen
from threadline.web.pages.listed import project_address

if TYPE_CHECKING:
    from threadline.model.hit import Hit, Hits
    from threadline.search.ranking import Sort
    from threadline.web.asked import Asked

_SHOWN, _MOST = 20, 200
_LONGEST = 1000
_HELP = (
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


def search(asked: Asked) -> Page:
    """What was asked for, and what it finds."""
    query = (asked.text("q") or "").strip()
    if not query:
        main = join((el("h1", "Search", class_="unseen"), _form(asked, ""), _help(is_open=True)))
        return Page("Search", "search", main, {"query": "", "hits": []})
    here = asked.zone()
    ways = _ways(asked)
    try:
        hits = _found(asked, query, ways, here)
    except BadQuery as error:
        main = join((el("h1", "Search", class_="unseen"), _form(asked, query), _refused(error), _help(is_open=True)))
        return Page(f"{one(query, 60)} · Search", "search", main, {"query": query, "hits": [], "error": str(error)})
    why = asked.archive.why(query, zone=here, now=asked.now) if not hits.hits else None
    main = join(
        (
            el("h1", f"Search: {one(query, 80)}", class_="unseen"),
            _form(asked, query),
            _head(asked, hits, here),
            el("p", shown(why), class_="nothing") if why is not None else EMPTY,
            el("ol", [_hit(asked, hit, here) for hit in hits.hits], class_="hits"),
            _more(asked, hits),
            _help(is_open=False),
        )
    )
    data = {"query": query, "why": why, **_data(hits)}
    return Page(f"{one(query, 60)} · Search", "search", main, data)


class _Ways(Struct, frozen=True):
    """How hits are wanted."""

    limit: int
    every: bool
    sort: Sort


def _ways(asked: Asked) -> _Ways:
    sort = cast("Sort", asked.choice("sort", ("rank", "time"), "rank"))
    return _Ways(asked.number("limit", _SHOWN, least=1, most=_MOST), asked.flag("every"), sort)


def _found(asked: Asked, query: str, ways: _Ways, here: tzinfo) -> Hits:
    if len(query) > _LONGEST:
        raise BadQuery(f"A query has no more than {_LONGEST:,} characters here; this one has {len(query):,}.")
    return asked.archive.search(query, limit=ways.limit, every=ways.every, sort=ways.sort, zone=here, now=asked.now)


def _form(asked: Asked, query: str) -> Child:
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


def _refused(error: BadQuery) -> Child:
    """Why a query cannot be understood; where the sentence points at a place in it, below that place."""
    return el("pre", shown(str(error)), class_="refused", role="alert", tabindex=0)


def _head(asked: Asked, hits: Hits, here: tzinfo) -> Child:
    least = "at least " if hits.at_least else ""
    told = f"{least}{count(hits.total, 'entry', 'entries')}" if not hits.near else "Nothing matches exactly"
    by_time, every = asked.text("sort") == "time", asked.flag("every")
    ways = (
        chosen(asked.here(sort=None), "Best first", is_chosen=not by_time),
        chosen(asked.here(sort="time"), "Newest first", is_chosen=by_time),
        chosen(asked.here(every=None), "One a session", is_chosen=not every),
        chosen(asked.here(every=True), "Every entry", is_chosen=every),
    )
    note = el("p", shown(hits.note), class_="note") if hits.note else EMPTY
    counted = el("span", told, class_="count") if hits.hits else EMPTY
    times = el("span", f"times of {zone_name(here)}", class_="count") if hits.hits else EMPTY
    return join((el("p", counted, ways, times, class_="chips"), note))


def _hit(asked: Asked, hit: Hit, here: tzinfo) -> Child:
    at = f"L{hit.place.line}"
    agent = named(hit.agent) if hit.agent else None
    address = None
    if hit.session is not None and not hit.gone:
        address = addresses.hit(hit.session, agent, f"{agent}.{at}" if agent else at)
    title = one(hit.title or "(no title)", 160)
    facts = [
        when(hit.timestamp, here),
        el("span", one(hit.field or hit.kind, 40), class_="field"),
        project(hit.project, project_address(hit.project)),
        el("span", f"agent {one(str(hit.agent), 12)}") if hit.agent else None,
        el("span", "its transcript is gone") if hit.gone else None,
        el("span", "kept", title=KEPT) if hit.kept else None,
        el("span", f"without {one(', '.join(hit.lacks), 80)}", class_="lacks") if hit.lacks else None,
        _others(asked, hit) if hit.more and not hit.gone else None,
    ]
    return el(
        "li",
        el("h2", el("a", title, href=address) if address else title),
        el("p", marked(hit), class_="snippet"),
        row_of_facts(facts),
        data_item=True,
    )


def _others(asked: Asked, hit: Hit) -> Child:
    query = f"{asked.text('q') or ''} session:{hit.session}"
    href = addresses.address(addresses.SEARCH, q=query, every=True)
    return el("a", f"{hit.more:,} more in this session", href=href, class_="more")


def marked(hit: Hit) -> list[Child]:
    """The words around, with those that were asked for standing out."""
    parts: list[Child] = []
    at = 0
    for start, end in hit.highlights:
        parts += (shown(hit.snippet[at:start]), el("mark", shown(hit.snippet[start:end])))
        at = end
    return [*parts, shown(hit.snippet[at:])]


def _more(asked: Asked, hits: Hits) -> Child:
    limit = asked.number("limit", _SHOWN, least=1, most=_MOST)
    if hits.listed <= len(hits.hits) or limit >= _MOST:
        return EMPTY
    return el("p", el("a", "More", href=asked.here(limit=min(_MOST, limit * 3)), class_="button"), class_="pager")


def _help(*, is_open: bool) -> Child:
    rows = [
        [el("dt", el("a", el("code", query), href=addresses.address(addresses.SEARCH, q=query))), el("dd", what)]
        for query, what in _HELP
    ]
    return el("details", el("summary", "How to ask"), el("dl", rows), class_="asking-help", open=is_open)


def _data(hits: Hits) -> dict[str, Any]:
    return {
        "total": hits.total,
        "at_least": hits.at_least,
        "note": hits.note,
        "near": hits.near,
        "listed": hits.listed,
        "hits": hits.hits,
    }
