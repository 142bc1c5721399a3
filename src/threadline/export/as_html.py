"""A session as one file of HTML: it holds its style, runs nothing, and asks nobody for anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from markupsafe import Markup
from msgspec import Struct

from threadline.export.links import FileLinks
from threadline.model.session import Session
from threadline.model.sum import Sum
from threadline.render.amounts import spent, tokens
from threadline.render.figures import count, model_name, moment, span_of_time
from threadline.render.html.drawing import Drawing
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.frame import frame
from threadline.render.html.said import row_of_facts
from threadline.render.html.scene import Scene
from threadline.render.html.style import style, style_hash
from threadline.render.html.view import View
from threadline.render.html.words import one
from threadline.render.lasting import ends, lasted
from threadline.render.left import left_told
from threadline.render.outline import News, Said

_TITLE, _TOLD = 300, 90
# What a page that is filled and emptied needs, and a file does not.
_NEEDLESS = re.compile(r' (?:tabindex="-1"|aria-posinset="[0-9]+"|aria-setsize="[0-9]+"|loading="lazy")')
# No text of a session can hold it: its brackets are escaped.
_FEED = Markup("<!--feed-->")
_BETWEEN_TAGS = re.compile(r">[^<]*&#3[49];[^<]*<")


class Pieces(Struct, frozen=True):
    """A file as it is written: one piece after the other, each of whole elements but for the frame around all."""

    many: int
    each: Iterator[str]


def session_page(
    whole: Session, view: View, news: Iterable[News] = (), links: FileLinks | None = None, total: Sum | None = None
) -> Pieces:
    """The file of a session. `links` leads to the other pages of a site; `total` is what the session spent.

    It is drawn section by section: a long session as one text would take many times the memory that the session does.
    """
    cwd = whole.cwds[0] if whole.cwds else ""
    scene = Scene(view, links or FileLinks(), whole=True, cwd=cwd)
    drawing = Drawing(whole, whole.main, scene, news=news, inline=None)
    # Not a feed by its role: the file is whole, and nothing will be filled in.
    feed = el("div", _FEED, class_="feed")
    main = join((_head(whole, scene, total), el("div", _turns(drawing), feed, class_="session")))
    around = document(one(whole.title.text, _TITLE) or "Session", main, kind="session-page", top=_top(links))
    before, _, after = around.partition(_FEED)
    each = chain((before,), (_slim(str(piece)) for piece in _drawn(drawing)), (after,))
    return Pieces(len(drawing.sections) + 3, each)


def _drawn(drawing: Drawing) -> Iterator[Markup]:
    yield from map(drawing.articles, drawing.sections)
    yield drawing.apart()


def document(title: str, main: Child, *, kind: str, top: Child = EMPTY, head: Child = EMPTY, script: str = "") -> str:
    """A document with its style and its policy inside; `script` is the hash of the one that may run, if any."""
    policy = f"default-src 'none'; style-src '{style_hash()}'; img-src data:; base-uri 'none'; form-action 'none'"
    declared = (
        el(
            "meta",
            http_equiv="Content-Security-Policy",
            content=f"{policy}; script-src '{script}'" if script else policy,
        ),
        el("meta", name_="referrer", content="no-referrer"),
        el("meta", name_="generator", content="threadline"),
        Markup(f"<style>{style()}</style>"),  # noqa: S704 - our own files, which a test holds to have no `</`
        head,
    )
    return _slim(str(frame(title, main, kind=kind, head=declared, top=top))) + "\n"


def facts(whole: Session, total: Sum | None = None) -> Iterator[str]:
    """What is known of a session at a glance; the time it began first, where there is one."""
    started = ends(whole)[0]
    if started is not None:
        yield f"{moment(started)} UTC"
    yield from (model_name(model) for model in whole.models)
    yield count(sum(turn.act is not None for turn in whole.turns), "turn")
    yield count(len(whole.calls), "call")
    if agents := sum(agent.side is None for agent in whole.agents):
        yield count(agents, "agent")
    if took := span_of_time(lasted(whole)):
        yield took
    if total is not None:
        yield tokens(total)
        yield spent(total)


def _head(whole: Session, scene: Scene, total: Sum | None) -> Markup:
    known = row_of_facts(one(fact, _TITLE) for fact in facts(whole, total))
    where = row_of_facts(el("code", one(text, _TITLE)) for text in (scene.cwd, str(whole.id or "")) if text)
    more = [_continued(scene, link.forward, str(link.session)) for link in whole.continuations if link.session]
    title = el("h1", one(whole.title.text, _TITLE) or "(no title)")
    left = left_told(whole.main, scene.view.branch)
    if left:
        more.append(el("p", left, class_="left-note"))
    return el("header", title, known, where, *more, class_="head")


def _continued(scene: Scene, forward: bool, session: str) -> Markup:
    there = scene.links.session(session)
    label: Child = el("a", one(session, _TITLE), href=there) if there else el("code", one(session, _TITLE))
    return el("p", "goes on in " if forward else "goes on from ", label)


def _turns(drawing: Drawing) -> Markup:
    """The turns, each a link to where it begins."""
    begun = [(one_, one_.item) for one_ in drawing.items if isinstance(one_.item, Said) and one_.item.turn is not None]
    links = []
    for one_, item in begun:
        words = el("span", one(item.act.text, _TOLD) or str(item.act.kind), class_="words-of")
        links.append(el("li", el("a", el("span", item.turn, class_="number"), words, href=f"#{one_.anchor}")))
    return el("nav", el("ol", *links, class_="turns"), class_="side", aria_label="Turns") if links else EMPTY


def _top(links: FileLinks | None) -> Markup:
    if links is None or not links.pages:
        return EMPTY
    ways = (el("a", "All sessions", href="../index.html"), el("a", "Search", href="../search.html"))
    return el("header", el("nav", *ways, aria_label="Site"), class_="top")


def _slim(text: str) -> str:
    """The same document without what only a server's page needs; quotes between tags need no escape."""
    return _BETWEEN_TAGS.sub(_unquoted, _NEEDLESS.sub("", text))


def _unquoted(found: re.Match[str]) -> str:
    return found[0].replace("&#34;", '"').replace("&#39;", "'")
