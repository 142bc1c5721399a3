"""What the pages of insight share: their head and links, the filters of a period, and the wait for costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING

from markupsafe import Markup

from threadline.model.text import format_size
from threadline.render.html import Child, chip_row, choice_chip, el, facts_row, join
from threadline.web import urls
from threadline.web.insight.causes import BY_LABELS
from threadline.web.pages.forms import ALL, FormField, progress_bar
from threadline.web.pages.sessions import suggested_values
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.web.request import PageRequest

INSIGHT_PAGES = (
    (urls.WHY, "Why"),
    (urls.WASTE, "Waste"),
    (urls.OUTCOMES, "Outcomes"),
    (urls.TOOLS, "Tools"),
    (urls.DIGEST, "Digest"),
)
"""The pages about all sessions, in the order of their links."""


def insight_head(request: PageRequest, title: str, *facts: Child) -> Markup:
    """The title of a page, and links to the other pages about the same period."""
    return join((el("div", el("h1", title), facts_row(facts), class_="head"), insight_links(request)))


def insight_links(request: PageRequest) -> Markup:
    """Links to the pages of insight, which keep the period and the project."""
    kept = [(name, value) for name, value in request.query if name in {"since", "until", "project"} and value]
    links = [
        choice_chip(urls.build_url(path, kept), label, is_chosen=path == request.path) for path, label in INSIGHT_PAGES
    ]
    return el("nav", links, class_="chips", aria_label="Insight")


def list_filters(request: PageRequest) -> dict[str, str | None]:
    """The project and the period that were chosen on this page, for links to lists of the same."""
    since = request.text("since")
    return {
        "project": request.text("project"),
        "since": since if since != ALL else None,
        "until": request.text("until"),
    }


def by_chips(request: PageRequest, keys: Iterable[str], by: str) -> Markup:
    """Links to the same page by each key."""
    chips = [
        choice_chip(
            request.url_with(by=key, group=None, sort=None, after=None, groups=None),
            BY_LABELS.get(key, key),
            is_chosen=key == by,
        )
        for key in keys
    ]
    return chip_row("By", chips)


@contextmanager
def lend_zone(request: PageRequest) -> Iterator[Archive]:
    """The archive of a request, which meanwhile uses the time zone of the request."""
    archive = request.archive
    zone, archive.zone = archive.zone, request.zone()
    try:
        yield archive
    finally:
        archive.zone = zone


def prepare_first(page: Callable[[PageRequest], Page]) -> Callable[[PageRequest], Page]:
    """Decorate a page that needs the costs of all sessions to be attributed: meanwhile, it shows the progress.

    Its JSON twin waits. With `progress=1`, it only reports how far the preparation is.
    """

    @wraps(page)
    def page_or_progress(request: PageRequest) -> Page:
        is_poll = request.wants_data and request.flag("progress")
        progress = None
        if is_poll or not request.wants_data:
            progress = request.pool.insight.pending(request.archive)
        if progress is None and not is_poll:
            return page(request)
        done, total = (progress.done, progress.total) if progress is not None else (0, 0)
        data = {"state": "at work" if progress is not None else "done", "done": done, "total": total}
        return Page("Insight", "insight", _progress_view(request, done, total), data, scripts=("progress.js",))

    return page_or_progress


def _progress_view(request: PageRequest, done: int, total: int) -> Markup:
    text = f"{format_size(done)} of {format_size(total)}"
    poll = urls.build_url(urls.json_path(request.path), progress=True)
    return join(
        (
            insight_head(request, "Attributing costs"),
            el("p", "Each session is read once to find what caused its cost. You can use other pages meanwhile."),
            progress_bar("Progress", text, done, total, request.url_with(), poll=poll),
        )
    )


def period_fields(request: PageRequest) -> Iterator[FormField]:
    """The filters that pages about a period share."""
    yield FormField("since", "Since", "30d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")
    yield FormField("project", "Project", "part of path", suggestions=suggested_values(request, "project"))
