"""The head of a session's page: what it is called, what it took, and how to take it up again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from decimal import Decimal
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from threadline.archive import Standing
from threadline.model.agent import Agent
from threadline.model.context import Limit
from threadline.model.session import Continuation
from threadline.model.sum import Sum, added
from threadline.model.zone import zone_name
from threadline.render.agents import duration, name
from threadline.render.amounts import dollars, spent
from threadline.render.figures import agents as said_agents
from threadline.render.figures import count, model_name, some, span_of_time
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.icons import icon
from threadline.render.html.lists import KEPT
from threadline.render.html.said import row_of_facts, short, when
from threadline.render.html.words import one, shown
from threadline.render.left import left_turns
from threadline.web import addresses
from threadline.web.kept import Kept
from threadline.web.linked import Linked
from threadline.web.resuming import home_to_name, resume_command

_TITLE, _NAME = 200, 120


class Head(Struct, frozen=True):
    """What is known of a session, or of one of its agents."""

    kept: Kept
    agent: Agent
    links: Linked
    total: Sum
    context: int | None
    limit: Limit | None
    continuations: tuple[Continuation, ...] | None
    zone: tzinfo
    cwd: str | None
    amount: Decimal | None = None

    @property
    def title(self) -> str:
        """What it is called."""
        if self.agent.id is not None:
            return one(name(self.agent), _TITLE)
        return one(self.kept.session.title.text, _TITLE) or "(no title)"


def head_of(kept: Kept, agent: Agent, links: Linked, archive: Standing, *, related: bool, zone: tzinfo) -> Head:
    """The head of an agent's page; `related` looks for sessions that share something with this one."""
    windows = kept.windows(links.agent_name)
    last = next((one for one in reversed(windows) if one.told), None)
    limit = kept.limit(links.agent_name)
    found = kept.continuations if related else kept.session.continuations or None
    told = kept.spent(archive)
    own = windows if agent.id is not None else ()  # the session's total is known
    costs = [cost for one in own if one.message and (cost := told.amounts.get(one.message)) is not None]
    return Head(
        kept=kept,
        agent=agent,
        links=links,
        total=told.total,
        context=last.prompt if last else None,
        limit=limit,
        continuations=found,
        zone=zone,
        cwd=archive.directory_of(kept.path, kept.facts.cwds),
        amount=added(costs) if costs else None,
    )


def head(known: Head) -> Markup:
    """The head, drawn."""
    is_main = known.agent.id is None
    return el(
        "header",
        EMPTY if is_main else el("p", el("a", "the session", href=known.links.page()), class_="up"),
        el("h1", known.title),
        row_of_facts(_facts(known)),
        row_of_facts(_figures(known)),
        _resume(known) if is_main else EMPTY,
        _copying(known),
        _continued(known) if is_main else EMPTY,
        *_problems(known),
        class_="head",
    )


def _facts(known: Head) -> Iterator[Child]:
    told, agent = known.kept.facts, known.agent
    if told.project is not None:
        project = told.project
        address = addresses.address(addresses.SESSIONS, project=project)
        yield el("a", one(project, _NAME), href=address, class_="path")
    if agent.id is None:
        if told.git_branches:
            yield some(one(branch, 60) for branch in told.git_branches)
        yield some(one(model_name(model), 60) for model in told.models) or "no model answered"
        yield _when(known)
        if known.kept.session.kept:
            yield el("span", "kept", title=KEPT)
    else:
        yield one(model_name(agent.model), 60) if agent.model else "model not told"
        yield str(agent.status)
        if (
            began := next((entry.timestamp for entry in agent.entries if entry.timestamp is not None), None)
        ) is not None:
            yield [when(began, known.zone), f" {zone_name(known.zone)}"]
        yield span_of_time(duration(agent)) or "no time told"


def _when(known: Head) -> Child:
    """When it began, and how long it took; here the zone is named that all times of the page are told in."""
    told = known.kept.facts
    if told.started is None:
        return "no time told"
    took = span_of_time(told.wall_time)
    return [when(told.started, known.zone), f" {zone_name(known.zone)}", f", {took}" if took else ""]


def _figures(known: Head) -> Iterator[Child]:
    session, agent = known.kept.session, known.agent
    turns = sum(turn.act is not None for turn in agent.turns)
    if turns or agent.id is None:
        left = sum(map(len, left_turns(agent).values()))
        yield count(turns, "turn") + (f", {left:,} of them on branches" if left else "")
    yield count(known.kept.facts.calls if agent.id is None else len(agent.calls), "call")
    if agent.id is None and session.agents:
        kept = [one for one in session.agents if one.side is None]
        yield said_agents(len(kept), len(kept))
    if agent.id is None:
        yield [short(known.total.tokens), " tokens"]
        yield spent(known.total)
    elif known.amount is not None:
        yield dollars(known.amount)
    if known.context is not None and known.limit is not None:
        share = 100 * known.context / known.limit.tokens
        yield el("span", f"{known.context:,} in context at the end ({share:.0f} %)", title=known.limit.why)
    yield el("a", "context and cost", href=known.links.below("along", agent=known.links.agent_name))


def _resume(known: Head) -> Markup:
    command = resume_command(known.kept.session, known.cwd, home_to_name(known.kept.path))
    if command is None:
        return EMPTY
    button = el("button", icon("copy"), "Copy", type="button", data_copy="resume", title="Copy the command to go on")
    return el("p", el("code", shown(command), id="resume"), button, class_="resume")


def _copying(known: Head) -> Markup:
    links = known.links
    markdown = links.below("markdown", agent=links.agent_name)
    return el(
        "p",
        el("button", icon("search"), "Find", type="button", data_deed="find", title="Find in this session (/)"),
        el("a", icon("link"), "Link", href=links.own(), data_deed="copy-link"),
        el("a", icon("markdown"), "Markdown", href=markdown, data_copy="markdown"),
        el("a", icon("state"), "State at the end", href=links.below("state", "end")),
        class_="copying",
    )


def _continued(known: Head) -> Markup:
    found = known.continuations
    if found is None:
        there = known.links.below("related")
        return el("p", el("a", "Sessions that share something with this one", href=there), class_="related")
    # Several summaries may be of sessions of which nothing else is known: one line says as much as many.
    return join(dict.fromkeys(el("p", _continuation(one_, known.links), class_="related") for one_ in found))


def _continuation(found: Continuation, links: Linked) -> Iterator[Child]:
    yield "Goes on in " if found.forward else "Goes on from "
    other = str(found.session) if found.session is not None else None
    yield el("a", other[:8], href=links.session(other)) if other else "a session that is not known"
    yield f" ({found.kind})"


def _problems(known: Head) -> Iterator[Markup]:
    for problem in known.kept.session.file_problems:
        yield el("p", f"{problem.kind}: {one(problem.message, 300)}", class_="problem")


def continuation_rows(found: tuple[Continuation, ...]) -> list[dict[str, Any]]:
    """Continuations as data."""
    return [
        {"kind": str(one_.kind), "session": one_.session, "forward": one_.forward, "evidence": one_.evidence}
        for one_ in found
    ]


def head_data(known: Head) -> dict[str, Any]:
    """The head as data."""
    session, told = known.kept.session, known.kept.facts
    return {
        "id": known.kept.id,
        "path": known.kept.path,
        "kept": session.kept,
        "version": known.kept.version,
        "agent": known.agent.id,
        "title": name(known.agent) if known.agent.id is not None else session.title.text,
        "project": told.project,
        "models": told.models,
        "git_branches": told.git_branches,
        "started": told.started,
        "ended": told.ended,
        "turns": sum(turn.act is not None for turn in known.agent.turns),
        "calls": told.calls if known.agent.id is None else len(known.agent.calls),
        "agents": [
            {"id": agent.id, "name": name(agent), "status": str(agent.status), "calls": len(agent.calls)}
            for agent in session.agents
        ],
        "branches": len(known.agent.branches),
        "tokens": known.total.tokens,
        "amount": known.total.amount,
        "unpriced": known.total.unpriced,
        "context": known.context,
        "limit": known.limit.tokens if known.limit is not None else None,
        "resume": resume_command(known.kept.session, known.cwd, home_to_name(known.kept.path)),
        "continuations": continuation_rows(known.continuations or ()),
        "problems": [{"kind": str(one_.kind), "message": one_.message} for one_ in session.file_problems],
    }
