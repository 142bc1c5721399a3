"""The head of a session's page: title, facts, figures, actions, and folds; and the bar that stays while you scroll."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline.annotations import NO_ANNOTATION
from threadline.model.ledger import Sum, sum_amounts
from threadline.model.places import ProblemKind
from threadline.model.session import ContinuationKind
from threadline.model.text import (
    count,
    count_agents,
    format_amount,
    format_duration,
    format_percent,
    format_tokens,
    join_some,
    short_model_name,
)
from threadline.model.times import zone_name
from threadline.render import (
    abandoned_turns,
    agent_duration,
    agent_title,
    count_session_agents,
    describe_cost,
    shorten,
    visible,
)
from threadline.render.html import EMPTY, KEPT_HINT, Child, el, facts_row, icon, number_element, time_element
from threadline.web import urls
from threadline.web.pages.annotations import read_or_none, star_button
from threadline.web.session.resume import home_for_resume, resume_command, resume_line

if TYPE_CHECKING:
    from threadline.archive import Archive, SharedSpending
    from threadline.lake import LakeOrigin
    from threadline.model.context import ContextLimit
    from threadline.model.session import Agent, Continuation
    from threadline.web.session_cache import CachedSession
    from threadline.web.urls import SessionLinks

_MAX_TITLE, _MAX_NAME, _MAX_OTHER, _MAX_SHARED = 200, 120, 40, 3
_TODO_TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})
_CONTINUED = {
    ContinuationKind.FORK: ("forked from ", "forked as "),
    ContinuationKind.BRANCH: ("branched from ", "branched as "),
    ContinuationKind.RESUMED_COPY: ("resumed from ", "resumed in "),
}


class SessionHead(Struct, frozen=True):
    """What the head shows about a session, or about one of its agents.

    `continuations` is None if they were not looked up. `amount` is the cost of an agent; `total` is the session's,
    and `shared` is what it contains of messages that are counted for other sessions. `titles` are those of the other
    sessions. `origin` is set for a session of a lake: who pushed it from where.
    """

    session: CachedSession
    agent: Agent
    links: SessionLinks
    total: Sum
    context: int | None
    limit: ContextLimit | None
    continuations: tuple[Continuation, ...] | None
    zone: tzinfo
    cwd: str | None
    amount: Decimal | None = None
    shared: tuple[SharedSpending, ...] = ()
    titles: Mapping[str, str] = {}
    open_folds: tuple[str, ...] = ()
    origin: LakeOrigin | None = None

    @property
    def resume_command(self) -> str | None:
        """The command that resumes the session; None for a session of a lake, which is on another machine."""
        if self.origin is not None:
            return None
        return resume_command(self.session.session, self.cwd, home_for_resume(self.session.path))

    @property
    def title(self) -> str:
        """The title of the page."""
        if self.agent.id is not None:
            return shorten(agent_title(self.agent), _MAX_TITLE)
        return shorten(self.session.session.title.text, _MAX_TITLE) or "(no title)"


def build_head(
    session: CachedSession,
    agent: Agent,
    links: SessionLinks,
    archive: Archive,
    *,
    with_related: bool,
    zone: tzinfo,
    open_folds: tuple[str, ...] = (),
    origin: LakeOrigin | None = None,
) -> SessionHead:
    """Collect what the head shows; `with_related` looks up sessions that this one continues, or that continue it."""
    windows = session.windows(links.agent_name)
    last = next((window for window in reversed(windows) if window.has_usage), None)
    spending = session.spending(archive)
    own_windows = windows if agent.id is not None else ()  # the session's own total comes from the ledger
    costs = [
        cost for window in own_windows if window.message and (cost := spending.costs.get(window.message)) is not None
    ]
    continuations = session.continuations if with_related else session.session.continuations or None
    others = {str(each.session) for each in continuations or () if each.session is not None}
    others |= {str(shared.session) for shared in spending.shared if shared.session is not None}
    return SessionHead(
        session=session,
        agent=agent,
        links=links,
        total=spending.total,
        context=last.prompt if last else None,
        limit=session.limit(links.agent_name),
        continuations=continuations,
        zone=zone,
        cwd=archive.directory_of(session.path, session.facts.cwds),
        amount=sum_amounts(costs) if costs else None,
        shared=spending.shared,
        titles=archive.titles(others) if others else {},
        open_folds=open_folds,
        origin=origin,
    )


def page_header(session: CachedSession, title: str, facts: Child = None) -> Markup:
    """The head of a page below a session's: a link back to the session, the title, and facts."""
    name = shorten(session.session.title.text, _MAX_NAME) or "Back to the session"
    back = el("p", el("a", name, href=session.links.page()), class_="up")
    return el("header", back, el("h1", title), facts, class_="head")


def render_head(head: SessionHead) -> Markup:
    """Render the head."""
    is_main, command = head.agent.id is None, head.resume_command
    return el(
        "header",
        EMPTY if is_main else el("p", el("a", "Back to the session", href=head.links.page()), class_="up"),
        el("h1", head.title),
        facts_row(_facts(head)),
        facts_row(_figures(head)),
        resume_line(command, "resume") if is_main and command is not None else EMPTY,
        _action_links(head),
        *_problem_lines(head),
        el("div", _cost_fold(head), class_="folds") if is_main else EMPTY,
        class_="head",
    )


def _facts(head: SessionHead) -> Iterator[Child]:
    facts, agent = head.session.facts, head.agent
    if head.origin is not None:
        person = head.origin.person
        yield el("a", shorten(person, 60), href=urls.build_url(urls.SESSIONS, person=person), title="who pushed it")
        yield el("span", shorten(head.origin.machine, 60), title="the machine that it was pushed from")
        if head.origin.note:
            yield head.origin.note
    if facts.project is not None:
        url = urls.build_url(urls.SESSIONS, project=facts.project)
        yield el("a", shorten(facts.project, _MAX_NAME), href=url, class_="path")
    if agent.id is None:
        if facts.git_branches:
            yield join_some(shorten(branch, 60) for branch in facts.git_branches)
        yield join_some(shorten(short_model_name(model), 60) for model in facts.models) or "no replies"
        if facts.slug:
            yield el("span", shorten(facts.slug, 60), title="Claude Code's own name for the session")
        if (environment := facts.environment) is not None:
            yield shorten(environment.os_version or environment.platform or "", 60)
        yield _time_fact(head)
        yield from _continuations(head)
        if head.session.session.kept:
            yield el("span", "kept", title=KEPT_HINT)
    else:
        yield shorten(short_model_name(agent.model), 60) if agent.model else "model unknown"
        yield str(agent.status)
        started = next((entry.timestamp for entry in agent.entries if entry.timestamp is not None), None)
        if started is not None:
            yield [time_element(started, head.zone), f" {zone_name(head.zone)}"]
        yield format_duration(agent_duration(agent)) or "duration unknown"


def _time_fact(head: SessionHead) -> Child:
    """Start and duration; it names the zone of all times on the page."""
    facts = head.session.facts
    if facts.started is None:
        return "time unknown"
    duration = format_duration(facts.wall_time)
    return [
        time_element(facts.started, head.zone),
        f" {zone_name(head.zone)}",
        f", {duration}" if duration else "",
    ]


def _figures(head: SessionHead) -> Iterator[Child]:
    session, agent = head.session.session, head.agent
    turns = sum(turn.act is not None for turn in agent.turns)
    if turns or agent.id is None:
        abandoned = sum(map(len, abandoned_turns(agent).values()))
        yield count(turns, "turn") + (f", {abandoned:,} of them on branches" if abandoned else "")
    yield count(head.session.facts.calls if agent.id is None else len(agent.calls), "call")
    if agent.id is None and (agents := count_agents(*count_session_agents(session))):
        yield el("a", agents, href=head.links.below("agents"))
    if agent.id is None:
        yield [number_element(head.total.tokens), " token" if head.total.tokens == 1 else " tokens"]
        yield _receipt_link(head)
        if head.shared:
            yield from _shared_figures(head)
    elif head.amount is not None:
        yield format_amount(head.amount)
    if head.context is not None and head.limit is not None:
        context, limit = format_tokens(head.context), format_tokens(head.limit.tokens)
        share = head.context / head.limit.tokens
        yield el("span", f"ended at {context} of {limit} context ({format_percent(share)})", title=head.limit.why)
    if agent.id is not None or not head.total.amount:
        yield el("a", "context and cost", href=head.links.below("along", agent=head.links.agent_name))


def _receipt_link(head: SessionHead) -> Child:
    text = describe_cost(head.total)
    if not urls.is_offered(urls.RECEIPT):
        return text
    url = urls.build_url(urls.RECEIPT, session=head.links.id)
    return el("a", text, href=url, title="Each reply is counted once. Show the receipt.")


def _cost_fold(head: SessionHead) -> Markup:
    """A fold whose content is loaded when it is opened; without scripts, it contains a link."""
    if not head.total.amount:
        return EMPTY
    url = head.links.below("cost")
    link = el("p", el("a", "Open as page", href=url))
    label = el("summary", "Why it cost this much")
    return el("details", label, link, data_src=url, data_open="cost", open="cost" in head.open_folds)


def _shared_figures(head: SessionHead) -> Iterator[Child]:
    """What the session contains of messages that are counted for other sessions, and for which."""
    for shared in head.shared[:_MAX_SHARED]:
        has_own_id = shared.session is not None and shared.session != head.session.session.id
        name = str(shared.session if has_own_id else shared.transcript)
        url = urls.session_url(name)
        label = shorten(shared.transcript.parent.name, 80)
        link = _other_session(name, url, head.titles) if has_own_id else el("a", label, href=url)
        hint = "Claude Code copied these messages into this session. They are counted once."
        tokens = "token" if shared.tokens == 1 else "tokens"
        yield el("span", number_element(shared.tokens), f" more {tokens} counted in ", link, title=hint)
    if len(head.shared) > _MAX_SHARED:
        yield f"and in {count(len(head.shared) - _MAX_SHARED, 'more session')}"


def _action_links(head: SessionHead) -> Markup:
    links = head.links
    markdown, share = links.below("markdown", agent=links.agent_name), links.below("share")
    is_main = head.agent.id is None
    session_id = str(head.session.session.id) if head.session.session.id is not None else None
    annotation = read_or_none().sessions.get(session_id or "", NO_ANNOTATION)
    return el(
        "p",
        el("button", icon("search"), "Find", type="button", data_action="find", title="Find in this session (/)"),
        el(
            "a",
            icon("link"),
            "Link",
            href=links.this_page(),
            data_action="copy-link",
            title="Copy a link to this page (y)",
        ),
        el(
            "a",
            icon("markdown"),
            "Copy as Markdown",
            href=markdown,
            data_copy="markdown",
            title="Copy the whole session as Markdown, redacted",
        ),
        el("a", icon("share"), "Share", href=share, title="Export redacted, with a preview"),
        el("a", icon("note"), "Notes", href=links.below("notes"), title="Tags and a note") if is_main else None,
        el(
            "a",
            icon("columns"),
            "Compare",
            href=urls.build_url(urls.COMPARE, a=links.id),
            title="Compare with another session",
        )
        if is_main and urls.is_offered(urls.COMPARE)
        else None,
        star_button(session_id, annotation) if is_main else None,
        el("a", icon("state"), "Files at the end", href=links.below("state", "end")),
        el("a", icon("compare"), "Changes", href=links.below("changes"), title="What this session changed, as diffs"),
        el("a", icon("todos"), "Todos", href=links.below("todos")) if is_main and _has_todos(head) else None,
        class_="copying",
        data_prepare=share,
    )


def _has_todos(head: SessionHead) -> bool:
    session = head.session.session
    return any(call.tool in _TODO_TOOLS for agent in (session.main, *session.agents) for call in agent.calls)


def _continuations(head: SessionHead) -> Iterator[Child]:
    if head.continuations is None:
        yield el("a", "related sessions", href=head.links.below("related"))
        return
    # Several summaries may be of unknown sessions: the same text is shown once.
    yield from dict.fromkeys(el("span", continuation_text(each, head.titles)) for each in head.continuations)


def continuation_text(continuation: Continuation, titles: Mapping[str, str]) -> Iterator[Child]:
    """How this session and another one continue each other, with a link to the other: `forked from "Gradients"`."""
    yield _continuation_phrase(continuation)
    other = str(continuation.session) if continuation.session is not None else None
    yield _other_session(other, urls.session_url(other), titles) if other else "an unknown session"
    if continuation.kind not in _CONTINUED:
        yield f" ({continuation.kind})"


def _other_session(name: str, url: str, titles: Mapping[str, str]) -> Markup:
    title = shorten(titles.get(name, ""), _MAX_OTHER)
    return el(
        "a",
        f"\N{LEFT DOUBLE QUOTATION MARK}{title}\N{RIGHT DOUBLE QUOTATION MARK}" if title else name[:8],
        href=url,
        title=f"Session {name}",
    )


def _continuation_phrase(continuation: Continuation) -> str:
    """How this session and another one continue each other: `Forked from `, to be followed by the other."""
    return _CONTINUED.get(continuation.kind, ("continued from ", "continued in "))[continuation.forward]


def _problem_lines(head: SessionHead) -> Iterator[Markup]:
    for problem in head.session.session.file_problems:
        name = f"{problem.place.transcript}: " if problem.kind is ProblemKind.SKIPPED else ""
        yield el("p", visible(f"{problem.kind}: {name}{shorten(problem.message, 300)}"), class_="problem")


def continuation_rows(continuations: tuple[Continuation, ...]) -> list[dict[str, Any]]:
    """Continuations as data."""
    return [
        {
            "kind": str(continuation.kind),
            "session": continuation.session,
            "forward": continuation.forward,
            "evidence": continuation.evidence,
        }
        for continuation in continuations
    ]


def head_record(head: SessionHead) -> dict[str, Any]:
    """The head as data."""
    session, facts = head.session.session, head.session.facts
    environment = facts.environment
    return {
        "session": session.id if "/" in head.session.id else head.session.id,
        "name": head.session.id,
        "path": head.session.path,
        "kept": session.kept,
        "version": head.session.version,
        "agent": head.agent.id,
        "title": agent_title(head.agent) if head.agent.id is not None else session.title.text,
        "project": facts.project,
        "models": facts.models,
        "git_branches": facts.git_branches,
        "slug": facts.slug,
        "platform": environment.platform if environment is not None else None,
        "os_version": environment.os_version if environment is not None else None,
        "started": facts.started,
        "ended": facts.ended,
        "turns": sum(turn.act is not None for turn in head.agent.turns),
        "calls": facts.calls if head.agent.id is None else len(head.agent.calls),
        "agents": [
            {
                "agent": agent.id,
                "name": agent_title(agent),
                "side": agent.side,
                "status": str(agent.status),
                "calls": len(agent.calls),
            }
            for agent in session.agents
        ],
        "branches": len(head.agent.branches),
        "tokens": head.total.tokens,
        "amount": head.total.amount,
        "unpriced": head.total.unpriced,
        "shared": [{"session": part.session, "path": part.transcript, "tokens": part.tokens} for part in head.shared],
        "context": head.context,
        "limit": head.limit.tokens if head.limit is not None else None,
        "resume": head.resume_command,
        "continuations": continuation_rows(head.continuations or ()),
        "problems": [
            {"kind": str(problem.kind), "message": problem.message, "place": str(problem.place)}
            for problem in session.file_problems
        ],
    }


def render_mini_head(
    session: CachedSession, agent: Agent, title: str, *, turn: int, is_timeline_open: bool = False
) -> Markup:
    """A bar with the title, the current turn, time and cost, which stays visible; scripts keep it current."""
    turns = sum(turn.act is not None for turn in agent.turns)
    url = session.links.below("timeline")
    timeline = el(
        "details",
        el("summary", "Timeline"),
        el("p", el("a", "Open as page", href=url)),
        data_src=url,
        data_open="timeline",
        open=is_timeline_open,
    )
    find = el("button", icon("search"), type="button", data_action="find", aria_label="Find in this session")
    facts: dict[str, Any] = {
        "mini-turn": f"turn {turn:,} of {turns:,}" if turn else count(turns, "turn"),
        "mini-time": "",
        "mini-cost": "",
    }
    return el(
        "div",
        el("a", title, href="#main", class_="mini-title"),
        *(el("span", text, class_=name) for name, text in facts.items()),
        timeline if agent.id is None and turns else "",
        find,
        class_="mini-head",
        data_turns=turns,
    )
