"""Build a digest: what was done in a period by project and session, what it cost, why, and what to change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline.index import TranscriptActivity
from threadline.insight import COUNTED_ACTIONS
from threadline.model.context import BreakCause
from threadline.model.insight.attribution import CauseKind, CostCause
from threadline.model.insight.digest import (
    Digest,
    DigestCause,
    DigestPeriod,
    DigestProject,
    DigestSession,
    SessionHint,
    WorkDone,
)
from threadline.model.insight.outcomes import OutcomeGroup, OutcomeKind
from threadline.model.insight.waste import WASTE_RULES, Waste
from threadline.model.ledger import NONE, Row, Sum, share_of, sum_amounts
from threadline.model.names import mcp_server
from threadline.model.places import SessionId
from threadline.model.text import count, format_amount, format_duration, format_percent
from threadline.model.times import total_time, work_spans, zone_name
from threadline.reports import agents_only_note, sessions_without_main

if TYPE_CHECKING:
    from threadline.account import Ledger, Rates
    from threadline.archive.archive import Archive
    from threadline.insight import CauseList

_MAX_CAUSES = 3
_MAX_HINTS = 5
_MAX_ADVICE = 2
_EXAMPLES = 200
_TOOL_KINDS = frozenset({str(CauseKind.CALL), str(CauseKind.RESULT)})
_MIN_FAILED, _MIN_FAILED_SHARE = 5, 0.2
_MIN_WASTED_SHARE = Decimal("0.25")
_LONG = timedelta(hours=3)
_NO_SESSION = "(no session)"
_NO_WORK = WorkDone()
_RESULT_KINDS = (str(OutcomeKind.COMMIT), str(OutcomeKind.PULL_REQUEST))
_KIND_LABELS = {
    CauseKind.SYSTEM: "System prompts and tool definitions",
    CauseKind.SUMMARY: "Summaries of compactions",
    CauseKind.PROMPT: "Prompts",
    CauseKind.REPLY: "Replies of the model",
    CauseKind.THINKING: "Thinking",
    CauseKind.INJECTED: "Injected text",
    CauseKind.IMAGE: "Images",
    CauseKind.UNSEEN: "Text that transcripts do not contain",
    CauseKind.SEARCH: "Web searches",
    CauseKind.AGENT: "Agents without a transcript",
    CauseKind.OTHER: "Requests whose prompt is unknown",
}
_KIND_SUGGESTIONS = {
    CauseKind.SYSTEM: "Every request carries them. Disconnect MCP servers and plugins that you do not use.",
    CauseKind.SUMMARY: "Start a new session for a new task instead of compacting an old one.",
    CauseKind.PROMPT: "Name files instead of pasting them, and begin a new session for a new task.",
    CauseKind.REPLY: "Ask for short answers. Every request carries old replies: begin a new session for a new task.",
    CauseKind.THINKING: "Use less thinking, or a smaller model, for simple tasks.",
    CauseKind.INJECTED: "Remove skills, agents, hooks and memory files that you do not use, and shorten CLAUDE.md.",
    CauseKind.IMAGE: "Crop or scale down screenshots, and begin a new session after looking at them.",
    CauseKind.UNSEEN: "See threadline context SESSION for when the window grew.",
    CauseKind.SEARCH: "Ask narrower questions, or name the page to read.",
    CauseKind.AGENT: "Give agents a narrower task, or a smaller model.",
    CauseKind.OTHER: "See threadline why SESSION for the requests.",
}
_TOOL_SUGGESTIONS = {
    "Bash": "Limit the output of commands (head, grep, --quiet), and run noisy commands in a subagent.",
    "Read": "Read the part that is needed instead of whole files, or let a subagent read them and report.",
    "Grep": "Search for file names first, in fewer folders, and limit the matches.",
    "Glob": "Search in fewer folders.",
    "Edit": "Begin a new session for a new task: every request carries old edits.",
    "Write": "Edit files instead of writing them again as a whole.",
    "Agent": "Give agents a narrower task, ask for short reports, and use a smaller model if it can do the task.",
    "WebFetch": "Ask for the part of the page that is needed.",
}
_OTHER_TOOL = "Ask for less at a time, or let a subagent call it and report."


class _SessionParts(Struct):
    """What the ledger and the index know about a session in the period."""

    project: str
    session: str
    rows: list[Row]
    activity: list[TranscriptActivity]

    @property
    def times(self) -> list[datetime]:
        return [time for part in self.activity for time in part.times]


def build_digest(
    archive: Archive,
    period: DigestPeriod,
    *,
    now: datetime,
    zone: tzinfo,
    project: str | None = None,
    prices: Rates | None = None,
) -> Digest:
    """Build the digest of a period. The sums are those of the ledger with the same filter."""
    whole = archive.ledger(prices, calls=False, project=project)
    whole.zone = zone
    selected = whole.where(since=period.since, until=period.until)
    before = period.previous(zone)
    previous = whole.where(since=before.since, until=before.until)
    is_running = period.is_running(now)
    so_far = None
    if is_running:
        so_far = whole.where(since=before.since, until=min(before.since + (now - period.since), before.until)).total
    waste = archive.waste(project=project, since=period.since, until=period.until, prices=prices)
    causes = archive.causes(project=project, since=period.since, until=period.until, prices=prices)
    work = _read_work(archive, period, project)
    sessions = _read_sessions(archive, selected, period, waste, work)
    return Digest(
        period=period,
        previous_period=before,
        zone=zone_name(zone),
        sum=selected.total,
        previous=previous.total,
        previous_so_far=so_far,
        worked=total_time(span for spans in sessions.spans.values() for span in spans),
        days=tuple((row.keys["day"], row) for row in selected.by("day", zone=zone)),
        projects=tuple(_projects(selected, previous, sessions, work)),
        causes=tuple(_top_causes(causes, selected.total.amount)),
        waste=tuple(_top_waste(waste, selected.total.amount)),
        hints=tuple(_hints(sessions.sessions, selected.total)),
        work=work.total,
        error=causes.error,
        notes=tuple(_notes(archive, selected, now if is_running else None)),
    )


class _Sessions(Struct):
    """The sessions of the period, and the spans of work of each project."""

    sessions: list[DigestSession]
    spans: dict[str, list[tuple[datetime, datetime]]]


class _Work(Struct):
    """What was produced in the period: by session, by project, and in all."""

    sessions: dict[str, WorkDone]
    projects: dict[str, WorkDone]
    total: WorkDone


def _read_work(archive: Archive, period: DigestPeriod, project: str | None) -> _Work:
    """What sessions produced. A file that several sessions changed counts once in its project and in the total."""
    results: defaultdict[str, list[str]] = defaultdict(list)
    outcomes = archive.outcomes(kinds=_RESULT_KINDS, project=project, since=period.since, until=period.until)
    for outcome in outcomes:
        is_commit = outcome.kind is OutcomeKind.COMMIT
        is_counted = not outcome.is_replaced if is_commit else outcome.action in COUNTED_ACTIONS
        text = outcome.label if is_commit else outcome.ref or outcome.label
        if outcome.session is not None and is_counted and text and text not in results[outcome.session]:
            results[outcome.session].append(text)
    sessions = archive.outcome_groups("session", project=project, since=period.since, until=period.until)
    projects = archive.outcome_groups("project", project=project, since=period.since, until=period.until)
    return _Work(
        {group.key: _work_done(group, results.get(group.key, ())) for group in sessions},
        {group.key: _work_done(group) for group in projects},
        _work_done(projects.total) if projects.total is not None else _NO_WORK,
    )


def _work_done(group: OutcomeGroup, results: Iterable[str] = ()) -> WorkDone:
    return WorkDone(
        commits=group.commits,
        pull_requests=group.pull_requests,
        files=group.files,
        added=group.added,
        removed=group.removed,
        test_runs=group.test_runs,
        failed_runs=group.failed_runs,
        results=tuple(results),
    )


def _read_sessions(
    archive: Archive, ledger: Ledger, period: DigestPeriod, waste: Sequence[Waste], work: _Work
) -> _Sessions:
    rows = ledger.by("project", "session", "transcript")
    activity = archive.open_index().transcript_activity(
        {row.keys["transcript"] for row in rows}, period.since, period.until
    )
    parts: dict[tuple[str, str], _SessionParts] = {}
    for row in rows:
        key = row.keys["project"], row.keys["session"]
        part = parts.setdefault(key, _SessionParts(*key, [], []))
        part.rows.append(row)
        if row.keys["transcript"] in activity:
            part.activity.append(activity[row.keys["transcript"]])
    titles = archive.titles({session for _project, session in parts if session != NONE})
    wasted: defaultdict[str | None, list[Decimal]] = defaultdict(list)
    for finding in waste:
        wasted[finding.session].append(finding.amount)
    spans: defaultdict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    sessions = []
    for part in parts.values():
        own_spans = work_spans(part.times)
        spans[part.project] += own_spans
        session = _digest_session(part, titles, own_spans, sum_amounts(wasted[part.session]))
        sessions.append(replace(session, work=work.sessions.get(part.session, _NO_WORK)))
    return _Sessions(sessions, dict(spans))


def _digest_session(
    part: _SessionParts, titles: Mapping[str, str], spans: list[tuple[datetime, datetime]], wasted: Decimal
) -> DigestSession:
    has_id = part.session != NONE
    times = part.times
    return DigestSession(
        session=SessionId(part.session) if has_id else None,
        title=titles.get(part.session, "") if has_id else _NO_SESSION,
        project=part.project,
        sum=Sum.of(part.rows),
        first=min(times, default=None),
        last=max(times, default=None),
        worked=total_time(spans),
        prompts=sum(activity.prompts for activity in part.activity),
        calls=sum(activity.calls for activity in part.activity),
        failed_calls=sum(activity.failed_calls for activity in part.activity),
        wasted=wasted,
    )


def _projects(ledger: Ledger, previous: Ledger, found: _Sessions, work: _Work) -> Iterable[DigestProject]:
    """The projects, most expensive first, as in `usage --by project`."""
    before = {row.keys["project"]: row for row in previous.by("project")}
    for row in ledger.by("project"):
        name = row.keys["project"]
        sessions = [session for session in found.sessions if session.project == name]
        sessions.sort(key=lambda session: (-(session.sum.amount or 0), -session.sum.tokens, session.session or ""))
        yield DigestProject(
            project=name,
            sum=row,
            previous=before.get(name, Sum()),
            worked=total_time(found.spans.get(name, ())),
            sessions=tuple(sessions),
            work=work.projects.get(name, _NO_WORK),
        )


def _top_causes(causes: CauseList, total: Decimal | None) -> Iterable[DigestCause]:
    """The most expensive kinds of causes: the calls of a tool with their results, thinking, and others.

    Every cause is in one of them, so that they do not overlap.
    """
    groups = [(group, True) for group in causes.by("tool") if group.key != NONE]
    groups += [(group, False) for group in causes.by("kind") if group.key not in _TOOL_KINDS]
    groups.sort(key=lambda pair: (-pair[0].amount, pair[0].key))
    examples = causes.largest(_EXAMPLES)
    for group, is_tool in groups[:_MAX_CAUSES]:
        example = next((cause for cause in examples if _belongs(cause, group.key, is_tool=is_tool)), None)
        yield DigestCause(
            label=f"{group.key} calls and their results" if is_tool else _KIND_LABELS[CauseKind(group.key)],
            amount=group.amount,
            share=share_of(group.amount, total),
            tokens=group.tokens,
            causes=group.causes,
            estimated=group.estimated,
            suggestion=_suggest(group.key, is_tool=is_tool),
            example=example.label if example is not None else "",
            example_amount=example.amount if example is not None else None,
            session=example.session if example is not None else None,
            turn=example.turn if example is not None else None,
            place=str(example.place) if example is not None and example.place is not None else None,
        )


def _belongs(cause: CostCause, key: str, *, is_tool: bool) -> bool:
    is_tool_cause = str(cause.kind) in _TOOL_KINDS
    return is_tool_cause == is_tool and key == (cause.name if is_tool else str(cause.kind))


def _suggest(key: str, *, is_tool: bool) -> str:
    if not is_tool:
        return _KIND_SUGGESTIONS[CauseKind(key)]
    server = mcp_server(key)
    if server is not None:
        return f"Ask the MCP server {server} for less at a time, or let a subagent call it and report."
    return _TOOL_SUGGESTIONS.get(key, _OTHER_TOOL)


def _top_waste(waste: Sequence[Waste], total: Decimal | None) -> Iterable[DigestCause]:
    """What could have been saved, by detector, the most expensive first."""
    groups: defaultdict[str, list[Waste]] = defaultdict(list)
    for finding in waste:
        groups[finding.detector].append(finding)
    summed = [(sum_amounts(finding.amount for finding in group), detector) for detector, group in groups.items()]
    summed.sort(key=lambda item: (-item[0], item[1]))
    for amount, detector in summed[:_MAX_CAUSES]:
        group = groups[detector]
        first = group[0]  # the most expensive one
        yield DigestCause(
            label=_waste_label(detector, group),
            amount=amount,
            share=share_of(amount, total),
            tokens=sum(finding.tokens for finding in group),
            causes=len(group),
            estimated=any(finding.estimated for finding in group),
            suggestion=_waste_advice(group),
            example=first.label,
            example_amount=first.amount,
            session=first.session,
            turn=first.turn,
            place=str(first.places[0]) if first.places else None,
        )


def _waste_label(detector: str, group: Sequence[Waste]) -> str:
    """What the findings have in common; of cache breaks also their causes."""
    label = WASTE_RULES[detector].label
    causes = dict.fromkeys(cause for finding in group if (cause := finding.cause) is not None)
    return f"{label} ({', '.join(causes)})" if causes else label


def _waste_advice(group: Sequence[Waste]) -> str:
    """The advice of the findings, the most expensive first. That of an unknown cause is left out if there is other."""
    amounts: defaultdict[str, Decimal] = defaultdict(Decimal)
    for finding in group:
        amounts[finding.advice] += finding.amount if finding.cause is not BreakCause.UNKNOWN else 0
    ordered = sorted(amounts, key=lambda advice: -amounts[advice])
    return " ".join([advice for advice in ordered if amounts[advice]][:_MAX_ADVICE] or ordered[:1])


def _hints(sessions: Sequence[DigestSession], total: Sum) -> Iterable[SessionHint]:
    """Sessions that are worth a look: each is the most extreme in some respect."""
    reasons: defaultdict[int, list[str]] = defaultdict(list)
    for number, reason in _reasons(sessions, total):
        reasons[number].append(reason)
    for number, texts in list(reasons.items())[:_MAX_HINTS]:
        session = sessions[number]
        yield SessionHint(session.session, session.title, session.project, tuple(texts))


def _reasons(sessions: Sequence[DigestSession], total: Sum) -> Iterable[tuple[int, str]]:
    numbered = [(number, session) for number, session in enumerate(sessions) if session.session is not None]
    if not numbered:
        return
    number, most = max(numbered, key=lambda pair: pair[1].sum.amount or 0)
    if most.sum.amount and len(numbered) > 1:
        part = format_percent(share_of(most.sum.amount, total.amount))
        yield number, f"the most expensive: {format_amount(most.sum.amount)}, {part} of all"
    number, wasteful = max(numbered, key=lambda pair: pair[1].wasted)
    if wasteful.wasted and wasteful.wasted >= _MIN_WASTED_SHARE * (wasteful.sum.amount or 0):
        part = format_percent(share_of(wasteful.wasted, wasteful.sum.amount))
        yield number, f"up to {format_amount(wasteful.wasted)} ({part}) that could have been avoided"
    for number, session in sorted(numbered, key=lambda pair: -pair[1].failed_calls):
        if session.failed_calls >= _MIN_FAILED and session.failed_calls >= _MIN_FAILED_SHARE * session.calls:
            yield number, f"{session.failed_calls:,} of {count(session.calls, 'call')} failed"
    number, longest = max(numbered, key=lambda pair: pair[1].worked)
    if longest.worked >= _LONG:
        yield number, f"the longest: {format_duration(longest.worked, seconds=False)}"


def _notes(archive: Archive, ledger: Ledger, now: datetime | None) -> Iterable[str]:
    total = ledger.total
    if now is not None:
        yield "The period is not over."
    if total.unpriced:
        yield f"{count(total.unpriced, 'charge')} without a known price: not included in amounts."
    if total.lower_bound:
        yield (
            f"Output tokens are a minimum for {count(total.lower_bound, 'charge')}:"
            " Claude Code did not record the final count."
        )
    if ledger.missing_agents:
        yield f"{count(len(ledger.missing_agents), 'agent')} without a transcript: not included in amounts."
    if note := agents_only_note(sessions_without_main(ledger.sessions, archive.found)):
        yield note
    if ledger.problems:
        yield f"{count(len(ledger.problems), 'transcript')} could not be read completely."
