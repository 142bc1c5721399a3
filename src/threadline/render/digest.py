"""Render a digest as blocks of text, and these as Markdown or for a terminal. HTML uses the same blocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from threadline.model.insight.digest import Digest, DigestCause, DigestProject, DigestSession, PeriodUnit, WorkDone
from threadline.model.ledger import Sum
from threadline.model.text import count, format_amount, format_changes, format_percent, format_tokens, short_id
from threadline.model.times import in_zone
from threadline.render.session_markdown import escape_markdown
from threadline.render.text import Role, Span, Spans, one_line, wrap

MAX_SESSIONS = 10
"""How many sessions of a project are listed by default."""
_MAX_TITLE, _MAX_LABEL, _MAX_RESULTS = 90, 110, 4
_MANY_TIMES = 10  # from here on, a factor says more than per cent
_MIN_DAYS_FOR_LIST, _MAX_DAYS_FOR_LIST = 2, 7
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BEFORE = {
    PeriodUnit.DAY: "The day before",
    PeriodUnit.WEEK: "The week before",
    PeriodUnit.MONTH: "The month before",
    PeriodUnit.RANGE: "The same time before",
}

BlockKind = Literal["title", "heading", "subheading", "text", "item", "detail"]


class DigestPart(Struct, frozen=True):
    """A part of a line: text in a role. `session` is the id of the session that it names."""

    text: str
    role: Role = Role.BODY
    session: str | None = None


class DigestBlock(Struct, frozen=True):
    """A heading, a paragraph, an item of a list, or a detail below an item."""

    kind: BlockKind
    parts: tuple[DigestPart, ...]


def digest_blocks(digest: Digest, zone: tzinfo, *, max_sessions: int = MAX_SESSIONS) -> Iterator[DigestBlock]:
    """Yield the blocks of a digest. `max_sessions` limits how many sessions of a project are listed."""
    yield _block("title", digest_title(digest, zone))
    yield _block("text", *_summary(digest))
    if digest.work:
        yield _block("text", f"{describe_work(digest.work)}.")
    if _MIN_DAYS_FOR_LIST <= len(digest.days) <= _MAX_DAYS_FOR_LIST:
        yield _block("text", ", ".join(f"{_day_name(day)} {_amount(total)}" for day, total in digest.days) + ".")
    yield _block("heading", "Projects")
    for project in digest.projects:
        yield from _project_blocks(project, digest, max_sessions)
    for heading, causes in (("Most expensive causes", digest.causes), ("Avoidable costs", digest.waste)):
        if causes:
            yield _block("heading", heading)
        for cause in causes:
            yield from _cause_blocks(cause)
    if digest.hints:
        yield _block("heading", "Worth a look")
    for hint in digest.hints:
        reasons = "; ".join(hint.reasons)
        yield _block("item", _session_part(hint.session, hint.title), f": {reasons} ", _id_part(hint.session))
    yield _block("heading", "About these figures")
    for note in _notes(digest):
        yield _block("item", note)


def _block(kind: BlockKind, *parts: str | DigestPart) -> DigestBlock:
    return DigestBlock(kind, tuple(DigestPart(part) if isinstance(part, str) else part for part in parts if part))


def _strong(text: str) -> DigestPart:
    return DigestPart(text, Role.STRONG)


def digest_title(digest: Digest, zone: tzinfo) -> str:
    """The title of a digest: its period."""
    first, last = in_zone(digest.period.since, zone), in_zone(digest.period.until, zone)
    if digest.period.unit is PeriodUnit.DAY:
        return f"{_WEEKDAYS[first.weekday()]}, {_date(first)} {first.year}"
    if digest.period.unit is PeriodUnit.MONTH:
        return f"{_MONTHS[first.month - 1]} {first.year}"
    if digest.period.unit is PeriodUnit.RANGE:
        return f"{digest.period.name} ({digest.zone})"
    year = f" {first.year}" if first.year != last.year else ""
    return f"Week {digest.period.name}: {_date(first)}{year} - {_date(last)} {last.year}"


def _date(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]}"


def _day_name(day: str) -> str:
    try:
        moment = datetime.fromisoformat(day)
    except ValueError:  # no time, or an impossible one
        return day
    return f"{_WEEKDAYS[moment.weekday()]} {_date(moment)}"


def _summary(digest: Digest) -> Iterator[str | DigestPart]:
    sessions, projects = len(digest.sessions), len(digest.projects)
    yield _strong(_amount(digest.sum))
    yield f" for {count(sessions, 'session')} in {count(projects, 'project')}, {_worked(digest.worked)}. "
    before = _BEFORE[digest.period.unit]
    if not digest.previous.charges:
        yield f"{before}: nothing."
    elif digest.previous_so_far is not None:
        yield f"{before}: {_amount(digest.previous_so_far)} by the same time{_change(digest)}"
        yield f", {_amount(digest.previous)} in all."
    else:
        yield f"{before}: {_amount(digest.previous)}{_change(digest)}."


def _amount(total: Sum) -> str:
    if total.amount is None and total.unpriced:
        return f"{format_tokens(total.tokens)} tokens without a known price"
    return format_amount(total.amount or Decimal(0)) + ("+" if total.unpriced else "")


def _change(digest: Digest) -> str:
    if digest.change is None:
        return ""
    factor = digest.change + 1
    return f" ({factor:,.0f} times as much)" if factor >= _MANY_TIMES else f" ({digest.change:+.0%})"


def _worked(worked: timedelta) -> str:
    return f"{_minutes(worked)} of work"


def _minutes(worked: timedelta) -> str:
    """A time in hours and minutes, however many hours."""
    hours, minutes = divmod(worked // timedelta(minutes=1), 60)
    return f"{hours:,}h {minutes:02}m" if hours else f"{minutes}m" if minutes else "less than 1m"


def describe_work(work: WorkDone) -> str:
    """Say what was produced: `3 commits, 1 pull request, 14 files changed (+340 -12), 5 test runs (1 failed)`."""
    parts = []
    if work.commits:
        parts.append(count(work.commits, "commit"))
    if work.pull_requests:
        parts.append(count(work.pull_requests, "pull request"))
    if work.files:
        lines = f" ({format_changes(work.added, work.removed)} lines)" if work.added or work.removed else ""
        parts.append(f"{count(work.files, 'file')} changed{lines}")
    if work.test_runs:
        failed = f" ({work.failed_runs:,} failed)" if work.failed_runs else ""
        parts.append(f"{count(work.test_runs, 'test run')}{failed}")
    return ", ".join(parts)


def _project_blocks(project: DigestProject, digest: Digest, max_sessions: int) -> Iterator[DigestBlock]:
    yield _block("subheading", f"{one_line(project.project, _MAX_TITLE)}: {_amount(project.sum)}")
    spent = _amount(project.previous) if project.previous.charges else "nothing"
    facts = [count(len(project.sessions), "session"), _worked(project.worked), describe_work(project.work)]
    yield _block("text", f"{', '.join(filter(None, facts))}. {_BEFORE[digest.period.unit]}: {spent}.")
    for session in project.sessions[:max_sessions]:
        yield from _session_blocks(session)
    others = project.sessions[max_sessions:]
    if others:
        total = Sum.of(session.sum for session in others)
        yield _block("item", f"{count(len(others), 'more session')}: {_amount(total)}")


def _session_blocks(session: DigestSession) -> Iterator[DigestBlock]:
    facts = [
        _amount(session.sum),
        _minutes(session.worked),
        count(session.prompts, "prompt"),
        describe_work(session.work),
    ]
    text = f": {', '.join(filter(None, facts))} "
    yield _block("item", _session_part(session.session, session.title), text, _id_part(session.session))
    for result in session.work.results[:_MAX_RESULTS]:
        yield _block("detail", one_line(result, _MAX_LABEL))
    more = len(session.work.results) - _MAX_RESULTS
    if more > 0:
        yield _block("detail", f"and {more:,} more")


def _session_part(session: str | None, title: str) -> DigestPart:
    return DigestPart(one_line(title, _MAX_TITLE) or "(no title)", Role.STRONG, session)


def _id_part(session: str | None) -> DigestPart:
    return DigestPart(short_id(session), Role.CODE, session)


def _cause_blocks(cause: DigestCause) -> Iterator[DigestBlock]:
    amount = f"{'~' if cause.estimated else ''}{format_amount(cause.amount)}"
    times = f"{cause.causes:,} times" if cause.causes > 1 else "once"
    yield _block("item", _strong(f"{cause.label}: {amount}"), f" ({format_percent(cause.share)}), {times}")
    if cause.example:
        place = f" in turn {cause.turn}" if cause.turn else ""
        largest = f"Largest: {one_line(cause.example, _MAX_LABEL)}{place}, {format_amount(cause.example_amount)} "
        yield _block("detail", largest, _id_part(cause.session))
    yield _block("detail", cause.suggestion)


def _notes(digest: Digest) -> Iterator[str]:
    yield (
        "Amounts are those of threadline usage for the same period. Work is the time between entries, without pauses of"
        " more than 10 minutes; sessions at the same time count once."
    )
    if any(cause.estimated for cause in (*digest.causes, *digest.waste)):
        error = f" Estimates differ by {format_percent(digest.error)} on average." if digest.error is not None else ""
        yield f"~ marks amounts that depend on estimated sizes.{error}"
    if digest.waste:
        yield "Avoidable costs may overlap, so their sum is not a saving."
    yield from digest.notes


def digest_to_markdown(digest: Digest, zone: tzinfo, *, max_sessions: int = MAX_SESSIONS) -> Iterator[str]:
    """Yield the lines of a digest as Markdown."""
    before: BlockKind | None = None
    for block in digest_blocks(digest, zone, max_sessions=max_sessions):
        is_list = block.kind in {"item", "detail"} and before in {"item", "detail"}
        if before is not None and not is_list:
            yield ""
        yield _MARKS[block.kind] + "".join(map(_part_markdown, block.parts)).rstrip()
        before = block.kind


_MARKS: dict[BlockKind, str] = {
    "title": "# ",
    "heading": "## ",
    "subheading": "### ",
    "text": "",
    "item": "- ",
    "detail": "  - ",
}


def _part_markdown(part: DigestPart) -> str:
    if part.role is Role.CODE:
        return f"`{part.text.replace('`', '')}`"
    space = part.text[len(part.text.rstrip()) :]
    start = part.text[: len(part.text) - len(part.text.lstrip())] if part.text.strip() else ""
    text = f"{start}{escape_markdown(part.text)}{space}"
    return f"**{text.strip()}**" if part.role is Role.STRONG else text


_ROLES: dict[BlockKind, Role] = {"title": Role.TITLE, "heading": Role.TITLE, "subheading": Role.STRONG}
_INDENTS: dict[BlockKind, tuple[str, str]] = {"item": ("- ", "  "), "detail": ("    ", "    ")}


def digest_lines(digest: Digest, zone: tzinfo, width: int, *, max_sessions: int = MAX_SESSIONS) -> Iterator[Spans]:
    """Yield the lines of a digest for a terminal."""
    before: BlockKind | None = None
    for block in digest_blocks(digest, zone, max_sessions=max_sessions):
        is_list = block.kind in {"item", "detail"} and before in {"item", "detail"}
        if before is not None and not is_list and before != "subheading":
            yield ()
        role = _ROLES.get(block.kind)
        spans = tuple(Span(part.text, role or _terminal_role(part, block.kind)) for part in block.parts)
        first, rest = _INDENTS.get(block.kind, ("", ""))
        yield from wrap(spans, width, first=(Span(first),), rest=(Span(rest),))
        before = block.kind


def _terminal_role(part: DigestPart, kind: BlockKind) -> Role:
    if part.role is Role.CODE:
        return Role.FAINT
    return Role.FAINT if kind == "detail" and part.role is Role.BODY else part.role
