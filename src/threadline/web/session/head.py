"""The head of a session's page: title, figures, and the command to resume it.

The resume command is shown to be copied and never run. It is left out if an id or directory in it cannot be trusted.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from datetime import tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline.archive import Archive
from threadline.model.context import ContextLimit
from threadline.model.session import Agent, Continuation
from threadline.model.text import count, format_duration, join_some, short_model_name
from threadline.model.text import count_agents as said_agents
from threadline.model.times import zone_name
from threadline.model.totals import Sum, sum_amounts
from threadline.render import (
    abandoned_turns,
    agent_duration,
    agent_title,
    describe_cost,
    format_dollars,
    shorten,
    visible,
)
from threadline.render.html import EMPTY, KEPT_HINT, Child, el, facts_row, icon, join, number_element, time_element
from threadline.web import urls
from threadline.web.session_cache import CachedSession
from threadline.web.urls import SessionLinks

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.model.session import Session

_MAX_TITLE, _MAX_NAME = 200, 120


class Head(Struct, frozen=True):
    """What is known of a session, or of one of its agents."""

    kept: CachedSession
    agent: Agent
    links: SessionLinks
    total: Sum
    context: int | None
    limit: ContextLimit | None
    continuations: tuple[Continuation, ...] | None
    zone: tzinfo
    cwd: str | None
    amount: Decimal | None = None

    @property
    def title(self) -> str:
        """What it is called."""
        if self.agent.id is not None:
            return shorten(agent_title(self.agent), _MAX_TITLE)
        return shorten(self.kept.session.title.text, _MAX_TITLE) or "(no title)"


def build_head(
    kept: CachedSession,
    agent: Agent,
    links: SessionLinks,
    archive: Archive,
    *,
    related: bool,
    zone: tzinfo,
) -> Head:
    """The head of an agent's page; `related` looks for sessions that share something with this one."""
    windows = kept.windows(links.agent_name)
    last = next((window for window in reversed(windows) if window.told), None)
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
        amount=sum_amounts(costs) if costs else None,
    )


def render_head(known: Head) -> Markup:
    """The head, drawn."""
    is_main = known.agent.id is None
    return el(
        "header",
        EMPTY if is_main else el("p", el("a", "the session", href=known.links.page()), class_="up"),
        el("h1", known.title),
        facts_row(_fact_items(known)),
        facts_row(_figure_items(known)),
        _resume_block(known) if is_main else EMPTY,
        _copy_links(known),
        _continuation_lines(known) if is_main else EMPTY,
        *_problem_lines(known),
        class_="head",
    )


def _fact_items(known: Head) -> Iterator[Child]:
    told, agent = known.kept.facts, known.agent
    if told.project is not None:
        project = told.project
        address = urls.build_url(urls.SESSIONS, project=project)
        yield el("a", shorten(project, _MAX_NAME), href=address, class_="path")
    if agent.id is None:
        if told.git_branches:
            yield join_some(shorten(branch, 60) for branch in told.git_branches)
        yield join_some(shorten(short_model_name(model), 60) for model in told.models) or "no model answered"
        yield _time_item(known)
        if known.kept.session.kept:
            yield el("span", "kept", title=KEPT_HINT)
    else:
        yield shorten(short_model_name(agent.model), 60) if agent.model else "model not told"
        yield str(agent.status)
        if (
            began := next((entry.timestamp for entry in agent.entries if entry.timestamp is not None), None)
        ) is not None:
            yield [time_element(began, known.zone), f" {zone_name(known.zone)}"]
        yield format_duration(agent_duration(agent)) or "no time told"


def _time_item(known: Head) -> Child:
    """When it began, and how long it took; here the zone is named that all times of the page are told in."""
    told = known.kept.facts
    if told.started is None:
        return "no time told"
    took = format_duration(told.wall_time)
    return [time_element(told.started, known.zone), f" {zone_name(known.zone)}", f", {took}" if took else ""]


def _figure_items(known: Head) -> Iterator[Child]:
    session, agent = known.kept.session, known.agent
    turns = sum(turn.act is not None for turn in agent.turns)
    if turns or agent.id is None:
        left = sum(map(len, abandoned_turns(agent).values()))
        yield count(turns, "turn") + (f", {left:,} of them on branches" if left else "")
    yield count(known.kept.facts.calls if agent.id is None else len(agent.calls), "call")
    if agent.id is None and session.agents:
        kept = [one for one in session.agents if one.side is None]
        yield said_agents(len(kept), len(kept))
    if agent.id is None:
        yield [number_element(known.total.tokens), " tokens"]
        yield describe_cost(known.total)
    elif known.amount is not None:
        yield format_dollars(known.amount)
    if known.context is not None and known.limit is not None:
        share = 100 * known.context / known.limit.tokens
        yield el("span", f"{known.context:,} in context at the end ({share:.0f} %)", title=known.limit.why)
    yield el("a", "context and cost", href=known.links.below("along", agent=known.links.agent_name))


def _resume_block(known: Head) -> Markup:
    command = resume_command(known.kept.session, known.cwd, home_for_resume(known.kept.path))
    if command is None:
        return EMPTY
    button = el("button", icon("copy"), "Copy", type="button", data_copy="resume", title="Copy the command to go on")
    return el("p", el("code", visible(command), id="resume"), button, class_="resume")


def _copy_links(known: Head) -> Markup:
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


def _continuation_lines(known: Head) -> Markup:
    found = known.continuations
    if found is None:
        there = known.links.below("related")
        return el("p", el("a", "Sessions that share something with this one", href=there), class_="related")
    # Several summaries may be of sessions of which nothing else is known: one line says as much as many.
    return join(dict.fromkeys(el("p", _continuation_text(one_, known.links), class_="related") for one_ in found))


def _continuation_text(found: Continuation, links: SessionLinks) -> Iterator[Child]:
    yield "Goes on in " if found.forward else "Goes on from "
    other = str(found.session) if found.session is not None else None
    yield el("a", other[:8], href=links.session(other)) if other else "a session that is not known"
    yield f" ({found.kind})"


def _problem_lines(known: Head) -> Iterator[Markup]:
    for problem in known.kept.session.file_problems:
        yield el("p", f"{problem.kind}: {shorten(problem.message, 300)}", class_="problem")


def continuation_rows(found: tuple[Continuation, ...]) -> list[dict[str, Any]]:
    """Continuations as data."""
    return [
        {
            "kind": str(continuation.kind),
            "session": continuation.session,
            "forward": continuation.forward,
            "evidence": continuation.evidence,
        }
        for continuation in found
    ]


def head_record(known: Head) -> dict[str, Any]:
    """The head as data."""
    session, told = known.kept.session, known.kept.facts
    return {
        "id": known.kept.id,
        "path": known.kept.path,
        "kept": session.kept,
        "version": known.kept.version,
        "agent": known.agent.id,
        "title": agent_title(known.agent) if known.agent.id is not None else session.title.text,
        "project": told.project,
        "models": told.models,
        "git_branches": told.git_branches,
        "started": told.started,
        "ended": told.ended,
        "turns": sum(turn.act is not None for turn in known.agent.turns),
        "calls": told.calls if known.agent.id is None else len(known.agent.calls),
        "agents": [
            {
                "id": agent.id,
                "name": agent_title(agent),
                "side": agent.side,
                "status": str(agent.status),
                "calls": len(agent.calls),
            }
            for agent in session.agents
        ],
        "branches": len(known.agent.branches),
        "tokens": known.total.tokens,
        "amount": known.total.amount,
        "unpriced": known.total.unpriced,
        "context": known.context,
        "limit": known.limit.tokens if known.limit is not None else None,
        "resume": resume_command(known.kept.session, known.cwd, home_for_resume(known.kept.path)),
        "continuations": continuation_rows(known.continuations or ()),
        "problems": [{"kind": str(problem.kind), "message": problem.message} for problem in session.file_problems],
    }


_SAFE_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
_QUOTES = re.compile("['\u2018\u2019\u201a\u201b]")
"""What ends a text in single quotes for PowerShell, unless it is doubled."""
_POWERSHELL_WILDCARD = re.compile(r"[\[\]*?`]")


def home_for_resume(transcript: Path) -> str | None:
    """The home that a transcript lies in, where Claude Code would not look unless it is told to; None of the usual one.

    None, too, of a transcript that lies in no home, and of one that is only kept.
    """
    folder = transcript.parent.parent
    home = os.path.realpath(folder.parent)
    usual = os.path.realpath(os.path.expanduser("~/.claude"))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    return home if folder.name == "projects" and home != usual and home.isprintable() else None


def resume_command(session: Session, cwd: str | None, home: str | None = None) -> str | None:
    """What a person may run to go on with a session that belongs to a directory; `home` is one that must be named.

    None where what it would name is not to be trusted.
    """
    if session.id is None or not _SAFE_ID.fullmatch(str(session.id)):
        return None
    is_of_windows = cwd is not None and not cwd.startswith("/")
    named = f"CLAUDE_CONFIG_DIR={shlex.quote(home)} " if home and not is_of_windows and not session.kept else ""
    steps = [f"{named}claude --resume {session.id}"]
    if session.kept:  # it must be in a home before it can go on
        steps.insert(0, f"threadline keep restore {session.id}")
    if cwd is None:
        return " && ".join(steps)
    if not cwd.isprintable():
        return None
    if cwd.startswith("/"):
        return " && ".join((f"cd {shlex.quote(cwd)}", *steps))
    # PowerShell, which every Windows has, knows no && before its seventh version.
    return "; ".join((_powershell_cd(cwd), *steps)) if _WINDOWS_PATH.match(cwd) else None


def _powershell_cd(cwd: str) -> str:
    r"""Go to a directory of Windows, in PowerShell; a plain one in words that Git's Bash understands as well.

    >>> _powershell_cd(r"C:\Users\Ann\my app")
    "cd 'C:\\Users\\Ann\\my app'"
    """
    quoted = "'" + _QUOTES.sub(lambda found: found[0] * 2, cwd) + "'"
    return (
        f"Set-Location -LiteralPath {quoted}"
        if _POWERSHELL_WILDCARD.search(cwd) or _QUOTES.search(cwd)
        else f"cd {quoted}"
    )
