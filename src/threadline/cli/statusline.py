"""`threadline statusline`: one line for Claude Code to show below the prompt.

The line must appear quickly and must never break the prompt: other sessions are read within a time limit, every field
of the input may be missing or malformed, and any failure falls back to what Claude Code passed in.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta, tzinfo
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isfinite
from typing import Any

import click
import msgspec
from msgspec import Struct

from threadline.account import Ledger, Rates, load_rates
from threadline.cli import EXIT_OK
from threadline.cli.options import home_option
from threadline.cli.resolve import open_archive
from threadline.model.charges import EXACT
from threadline.model.times import parse_moment
from threadline.model.totals import Sum, UsageWindow
from threadline.render import Role, Span, Style, one_line
from threadline.reports import RecentUsage, SessionRef, homes_including, resolve_session

_EPILOG = """
\b
Examples:
  threadline statusline --install         what to write into settings.json
  threadline statusline --cost both       Claude Code's own figure beside ours
  threadline statusline --format '{model} {session} {share}'
  threadline statusline --json < saved.json
\b
In ~/.claude/settings.json:
  {"statusLine": {"type": "command", "command": "threadline statusline"}}
\b
What --format may hold: {model}, {session}, {reported}, {today}, {block},
{left}, {burn}, {context}, {share}; what is not known is a -.
"""
_SNIPPET = """{
  "statusLine": {
    "type": "command",
    "command": "threadline statusline"
  }
}"""
_TEMPLATE_PART = re.compile(r"\{(\w*)\}")
_DEFAULT_MILLISECONDS = 300


@click.command(epilog=_EPILOG)
@click.option(
    "--cost",
    type=click.Choice(["computed", "reported", "both"]),
    default="computed",
    help="The session's cost from its transcripts (the default), as Claude Code reports it, or both.",
)
@click.option("--format", "template", metavar="TEXT", help="The line as a template; the parts are named below.")
@click.option("--tz", metavar="ZONE", help="Where today begins: Europe/Berlin, UTC; by default where this machine is.")
@click.option(
    "--prices",
    "files",
    multiple=True,
    metavar="FILE",
    help="A price file, ours or LiteLLM's, whose models are added or replace; may be given several times.",
)
@click.option(
    "--time",
    "milliseconds",
    type=click.IntRange(min=0),
    default=_DEFAULT_MILLISECONDS,
    metavar="MS",
    help="Milliseconds for other sessions' transcripts; "
    f"by default {_DEFAULT_MILLISECONDS}. What there is no time for is left"
    " out, and a + says so.",
)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@click.option("--install", is_flag=True, help="Only print what to write into settings.json; nothing is changed.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON document.")
@home_option
def statusline(
    *,
    cost: str,
    template: str | None,
    tz: str | None,
    files: tuple[str, ...],
    milliseconds: int,
    no_color: bool,
    install: bool,
    as_json: bool,
    homes: tuple[str, ...],
) -> int:
    """Answer Claude Code's statusline with one line: model, session, today, the five hours' window, context.

    Reads the JSON that Claude Code gives on standard input, this session's transcripts, and of the others only those
    that changed within a day: however much a home holds, that takes no longer. A + stands behind an amount that is
    only the least it can be, a ~ before a window whose begin is not certain.
    """
    if install:
        click.echo(_SNIPPET)
        return EXIT_OK
    _check_template(template)
    from threadline.errors import Error

    told = read_input()
    try:
        found = gather_figures(told, homes, files, tz=tz, seconds=milliseconds / 1000, now=_now())
    except Error:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, a prompt must not break: what was told is shown
        click.echo(f"threadline: The transcripts could not be read ({type(error).__name__}).", err=True)
        found = figures_from_input(told, _now())
    if as_json:
        from threadline.cli import output as out

        out.print_json(found.record())
    else:
        click.echo(_format_statusline(found, cost, template, coloured=not no_color), color=True)
    return EXIT_OK


def _now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def _check_template(template: str | None) -> None:
    from threadline.errors import BadQuery

    wrong = [name for name in _TEMPLATE_PART.findall(template or "") if name not in PARTS]
    if wrong:
        named = ", ".join(f"{{{name}}}" for name in PARTS)
        raise BadQuery(f"The template names {{{wrong[0]}}}, which is no part; the parts are {named}.")


def _format_statusline(found: StatuslineFigures, cost: str, template: str | None, *, coloured: bool) -> str:
    import os

    from threadline.render import should_use_colour

    # Claude Code reads the line through a pipe and shows its colours, so that a pipe is no reason to leave them out.
    in_colour = coloured and should_use_colour(os.environ, terminal=True)
    if template is None:
        return default_line(found, cost, coloured=in_colour)
    shown = format_parts(found, cost)
    return _TEMPLATE_PART.sub(lambda part: shown[part[1]] or "-", template)


_MAX_INPUT_BYTES = 64 * 1024 * 1024
_PROMPT_TOKEN_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LONG_CONTEXT_MARKS = ("[1m]", "1m context")
_DEFAULT_CONTEXT, _LONG_CONTEXT = 200_000, 1_000_000
_MAX_NUMBER = 1e15


class StatuslineInput(Struct, frozen=True):
    """What Claude Code tells. `tokens` are those of the last prompt, `limit` is how large the window may grow.

    `share` is how full Claude Code says the window is; `reported` what it says that the session cost so far, in USD.
    """

    model: str | None = None
    session: str | None = None
    transcript: str | None = None
    reported: Decimal | None = None
    tokens: int | None = None
    limit: int | None = None
    share: float | None = None
    is_long: bool = False

    def limit_for(self, tokens: int) -> int:
        """How large the window may grow: as told, or else a million where something tells of that, or 200,000."""
        return self.limit or (_LONG_CONTEXT if self.is_long or tokens > _DEFAULT_CONTEXT else _DEFAULT_CONTEXT)


def read_input() -> StatuslineInput:
    """What standard input tells; nothing where a person is at the keyboard, or where it is no JSON."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return StatuslineInput()
    try:
        data = sys.stdin.buffer.read(_MAX_INPUT_BYTES)
    except (OSError, ValueError):
        return StatuslineInput()
    return parse_input(data)


def parse_input(data: bytes) -> StatuslineInput:
    """What such bytes tell."""
    given = _decode_json(data)
    identity, name = _get_text(given, "model", "id"), _get_text(given, "model", "display_name")
    cost, share = _get_number(given, "cost", "total_cost_usd"), _get_number(given, "context_window", "used_percentage")
    sent = [_get_count(given, "context_window", "current_usage", one) for one in _PROMPT_TOKEN_FIELDS]
    return StatuslineInput(
        model=name or identity or _get_text(given, "model"),
        session=_get_text(given, "session_id"),
        transcript=_get_text(given, "transcript_path"),
        reported=Decimal(str(cost)) if cost is not None else None,
        tokens=sum(one or 0 for one in sent) or None,
        limit=_get_count(given, "context_window", "context_window_size") or None,
        share=share / 100 if share else None,  # none is said after a compaction, when nobody knows
        is_long=any(mark in f"{identity} {name}".lower() for mark in _LONG_CONTEXT_MARKS)
        or _get_path(given, "exceeds_200k_tokens") is True,
    )


def _decode_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        import json  # half a character in a path is enough for the fast decoder to refuse

        try:
            return json.loads(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            return None


def _get_path(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _get_text(value: Any, *keys: str) -> str | None:
    found = _get_path(value, *keys)
    return found if isinstance(found, str) and found.strip() else None


def _get_number(value: Any, *keys: str) -> int | float | None:
    found = _get_path(value, *keys)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return found if is_number and abs(found) < _MAX_NUMBER and isfinite(found) and found >= 0 else None


def _get_count(value: Any, *keys: str) -> int | None:
    found = _get_number(value, *keys)
    return int(found) if found is not None else None


_MAX_INDEXED_BYTES = 8 * 1024 * 1024
_ONE_DAY = timedelta(hours=24)


class StatuslineFigures(Struct, frozen=True):
    """All that a statusline may show. `day` is today in the reader's zone."""

    told: StatuslineInput
    recent: RecentUsage
    now: datetime
    day: str | None
    session: Sum | None
    today: Sum | None
    window: UsageWindow | None
    is_certain: bool
    tokens: int | None
    limit: int | None
    share: float | None
    digest: str

    @property
    def left(self) -> timedelta | None:
        """How long the window goes on."""
        return self.window.ends - self.now if self.window is not None else None

    def record(self) -> dict[str, Any]:
        """The figures for a program."""
        found = self.recent
        return {
            "model": self.told.model,
            "session": {
                "id": found.named.session,
                **_sum_record(self.session),
                "reported": self.told.reported,
                "difference": _reported_difference(self.session, self.told.reported),
            },
            "today": {"day": self.day, **_sum_record(self.today), "is_whole": found.is_whole},
            "window": self._window(),
            "context": {"tokens": self.tokens, "limit": self.limit, "share": self.share},
            "not_read": {"transcripts": found.not_read, "is_listed": found.is_listed},
            "problems": [f"{problem.place}: {problem.message}" for problem in found.ledger.problems],
            "prices": {"digest": self.digest},
        }

    def _window(self) -> dict[str, Any] | None:
        if self.window is None:
            return None
        return {**self.window.record(), "is_certain": self.is_certain}


def gather_figures(
    told: StatuslineInput,
    given: tuple[str, ...],
    files: tuple[str, ...],
    *,
    tz: str | None,
    seconds: float,
    now: datetime,
) -> StatuslineFigures:
    """The figures at a moment.

    Raises:
        Error: a home, a price file or a time zone that was named is not there.
    """
    from threadline.model.times import parse_zone

    here = parse_zone(tz)
    begins, ends = parse_moment("today", now=now, zone=here), parse_moment("today", now=now, zone=here, end=True)
    table = load_rates(*files)
    homes = open_archive(given).homes
    asked = resolve_session(told.transcript, told.session, homes)
    since = min(begins, now - _ONE_DAY)
    with open_archive((), found=homes_including(asked, homes), most=_MAX_INDEXED_BYTES) as archive:
        found = archive.recent(asked, table, since=since, seconds=seconds)
        return _build_figures(told, found, table, begins, ends, now, here)


def _build_figures(  # noqa: PLR0917 - all that is known by now
    told: StatuslineInput,
    found: RecentUsage,
    table: Rates,
    begins: datetime,
    ends: datetime,
    now: datetime,
    here: tzinfo,
) -> StatuslineFigures:
    window, is_certain = found.window(now)
    tokens, limit, share = _context_usage(told, found)
    return StatuslineFigures(
        told=told,
        recent=found,
        now=now,
        day=f"{now.astimezone(here):%Y-%m-%d}",
        session=found.of_session(),
        today=found.within(begins, ends),
        window=window,
        is_certain=is_certain,
        tokens=tokens,
        limit=limit,
        share=share,
        digest=table.digest,
    )


def figures_from_input(told: StatuslineInput, now: datetime) -> StatuslineFigures:
    """What Claude Code told alone."""
    table = load_rates()
    nothing = RecentUsage(SessionRef(told.session), now, Ledger((), table), None, is_listed=False)
    tokens, limit, share = _context_usage(told, nothing)
    return StatuslineFigures(
        told=told,
        recent=nothing,
        now=now,
        day=None,
        session=None,
        today=None,
        window=None,
        is_certain=True,
        tokens=tokens,
        limit=limit,
        share=share,
        digest=table.digest,
    )


def _context_usage(told: StatuslineInput, found: RecentUsage) -> tuple[int | None, int | None, float | None]:
    """Tokens in the window, its limit, and the share. What Claude Code tells is newer than what it has written."""
    last = found.last
    tokens = told.tokens or (last.prompt_tokens if last is not None else None)
    if tokens is None:
        return None, told.limit, told.share
    limit = told.limit_for(tokens)
    return tokens, limit, tokens / limit


def _sum_record(one: Sum | None) -> dict[str, Any]:
    if one is None:
        return {"amount": None, "charges": None, "unpriced": None}
    amount = one.amount if one.amount is not None or one.unpriced else Decimal(0)
    return {"amount": amount, "charges": one.charges, "unpriced": one.unpriced}


def _reported_difference(computed: Sum | None, reported: Decimal | None) -> Decimal | None:
    amount = _sum_record(computed)["amount"]
    return None if amount is None or reported is None else EXACT.subtract(reported, amount)


PARTS = ("model", "session", "reported", "today", "block", "left", "burn", "context", "share")
"""What a template may name."""

_MAX_NAME = 40
_THOUSAND, _MILLION = 1000, 1_000_000
_FULL_SHARE, _NEARLY_FULL_SHARE = 0.9, 0.7
_CENT = Decimal("0.01")
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_EVEN)
# What was spent within a few minutes says nothing about an hour.
_MIN_BURN_TIME = timedelta(minutes=5)
_SEPARATOR = Span(" | ", Role.FAINT)


def format_parts(found: StatuslineFigures, cost: str = "computed") -> dict[str, str]:
    """Each part of the line; empty where nothing is known of it."""
    window = found.window
    least = not found.recent.is_whole
    burn = _burn_rate(window)
    return {
        "model": one_line(found.told.model or "", _MAX_NAME),
        "session": _session_text(found, cost),
        "reported": format_dollars(found.told.reported),
        "today": _format_sum(found.today, least=least) if found.today is not None else "",
        "block": ("" if found.is_certain else "~") + _format_sum(window.sum, least=least) if window is not None else "",
        "left": _format_time_left(found),
        "burn": f"{format_dollars(burn)}/h" if burn is not None else "",
        "context": _format_tokens(found.tokens),
        "share": f"{found.share:.0%}" if found.share is not None else "",
    }


def default_line(found: StatuslineFigures, cost: str, *, coloured: bool) -> str:
    """The whole line; what is not known is left out."""
    told = format_parts(found, cost)
    shown = [
        (Span(told["model"], Role.STRONG),),
        _labelled_spans("session", told["session"]),
        _labelled_spans("today", told["today"]),
        _labelled_spans(
            "block", ", ".join(filter(None, (told["block"], told["left"] and f"{told['left']} left", told["burn"])))
        ),
        _context_spans(found, told),
    ]
    spans: list[Span] = []
    for some in shown:
        if any(span.text for span in some):
            spans += [*([_SEPARATOR] if spans else []), *some]
    return Style(colour=coloured).line(spans)


def format_dollars(amount: Decimal | None) -> str:
    """`$1.23`; nothing where there is no amount."""
    return f"${_ROUNDING.quantize(amount, _CENT):,}" if amount is not None else ""


def _labelled_spans(label: str, text: str) -> tuple[Span, ...]:
    return (Span(f"{label} ", Role.FAINT), Span(text)) if text else ()


def _context_spans(found: StatuslineFigures, told: dict[str, str]) -> tuple[Span, ...]:
    share = found.share or 0
    role = Role.BAD if share >= _FULL_SHARE else Role.NOTICE if share >= _NEARLY_FULL_SHARE else Role.BODY
    text = f"{told['context']} ({told['share']})" if told["context"] and told["share"] else told["share"]
    return (Span("context ", Role.FAINT), Span(text, role)) if text else ()


def _session_text(found: StatuslineFigures, cost: str) -> str:
    computed = _format_sum(found.session) if found.session is not None else ""
    reported = format_dollars(found.told.reported)
    if cost == "both" and computed and reported:
        return f"{computed} (reported {reported})"
    if not computed and not found.told.reported:  # nothing spent, so that nothing is written yet
        return reported
    if cost == "reported" or not computed:
        return f"{reported} reported" if reported else computed
    return computed


def _burn_rate(window: UsageWindow | None) -> Decimal | None:
    """What an hour costs; None while the window has not gone on for long enough to tell."""
    if window is None or window.burn is None or window.first is None or window.last is None:
        return None
    return window.burn.amount_per_hour if window.last - window.first >= _MIN_BURN_TIME else None


def _format_sum(one: Sum, *, least: bool = False) -> str:
    """An amount; a + where it is only the least that it can be, and no figure where nothing of it has a price."""
    if one.amount is None and one.unpriced:
        return "no price"
    return format_dollars(one.amount or Decimal(0)) + ("+" if least or one.unpriced else "")


def _format_time_left(found: StatuslineFigures) -> str:
    left = found.left
    if left is None:
        return ""
    whole = max(0, int(left.total_seconds() // 60))
    return f"{whole // 60}h {whole % 60:02d}m" if whole >= 60 else f"{whole}m"  # noqa: PLR2004 - minutes of an hour


def _format_tokens(count: int | None) -> str:
    """`834`, `42k`, `1.2M`."""
    if count is None:
        return ""
    if count < _THOUSAND:
        return str(count)
    return f"{count / _MILLION:.1f}M" if count >= _MILLION else f"{count / _THOUSAND:.0f}k"
