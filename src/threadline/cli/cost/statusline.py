"""`threadline statusline`: one line for Claude Code to show below the prompt.

The line must appear quickly and must never break the prompt: other sessions are read within a time limit, every field
of the input may be missing or malformed, and any failure falls back to what Claude Code passed in.
"""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isfinite
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from threadline.account import Ledger, load_rates
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import WholeNumber, colour_option, home_option, prices_option, timezone_option
from threadline.cli.resolve import open_archive, program_words
from threadline.errors import BadQuery, Error
from threadline.files import BUDGETS, settings_file
from threadline.model.ledger import EXACT, Sum, UsageWindow
from threadline.model.text import format_amount, format_duration, format_percent, format_tokens
from threadline.model.times import parse_moment
from threadline.render import Role, Span, Style, one_line, should_use_colour
from threadline.reports import RecentUsage, SessionRef, homes_including, resolve_session

if TYPE_CHECKING:
    from threadline.model.budgets import BudgetUse

_EPILOG = """
\b
Examples:
  threadline statusline --install         print the settings to add
  threadline statusline --cost both       computed and reported cost
  threadline statusline --format '{model} {session} {share}'
  threadline statusline --json < saved.json

\b
In ~/.claude/settings.json:
  {"statusLine": {"type": "command", "command": "threadline statusline"}}
\b
Parts for --format: {model}, {session}, {reported}, {today}, {block},
{left}, {burn}, {context}, {share}, {budget}. An unknown value is shown as -.
"""
_TEMPLATE_PART = re.compile(r"\{(\w*)\}")
_DEFAULT_MILLISECONDS = 300


@click.command(epilog=_EPILOG)
@click.option(
    "--cost",
    type=click.Choice(["computed", "reported", "both"]),
    default="computed",
    help="The session's cost computed from its transcripts, as Claude Code reports it, or both. Default: computed.",
)
@click.option("--format", "template", metavar="TEXT", help="Template for the line; parts are listed below.")
@timezone_option
@prices_option
@click.option(
    "--time",
    "milliseconds",
    type=WholeNumber(),
    default=_DEFAULT_MILLISECONDS,
    metavar="MS",
    help="Time limit in milliseconds for reading other sessions. Transcripts that do not fit are skipped and a + is"
    f" shown. Default: {_DEFAULT_MILLISECONDS}.",
)
@colour_option
@click.option("--install", is_flag=True, help="Print what to add to settings.json. Nothing is changed.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON document.")
@home_option
def statusline(
    *,
    cost: str,
    template: str | None,
    zone: tzinfo,
    price_files: tuple[str, ...],
    milliseconds: int,
    colour: bool,
    install: bool,
    as_json: bool,
    homes: tuple[str, ...],
) -> int:
    """Print one line for Claude Code's status line.

    Shows model, cost of the session and of today, the current five-hour window, what is left of budgets (see
    `threadline budget`), and context usage. Reads the JSON that Claude Code passes on standard input, this session's
    transcripts, and transcripts of other sessions that changed within a day, so the size of the home does not matter.
    A + after an amount means "at least"; a ~ before a window means that its start is uncertain.
    """
    if install:
        command = " ".join(map(quote, [*program_words(), "statusline"]))
        settings = {"statusLine": {"type": "command", "command": command}}
        click.echo(msgspec.json.format(msgspec.json.encode(settings)).decode())
        out.print_message("Add this to settings.json in your Claude home, for example ~/.claude/settings.json.")
        return EXIT_OK
    _check_template(template)

    status = read_input()
    now = _now()
    try:
        figures = gather_figures(status, homes, price_files, zone=zone, seconds=milliseconds / 1000, now=now)
    except Error:
        raise
    except Exception as error:  # noqa: BLE001 - nothing may break the prompt: show what Claude Code passed in
        out.print_message(f"The transcripts could not be read ({type(error).__name__}).")
        figures = figures_from_input(status, now)
    if as_json:
        out.print_json(figures.record())
    else:
        _print_line(_format_statusline(figures, cost, template, colour=colour))
    return EXIT_OK


def _print_line(line: str) -> None:
    """Print the line. If standard output is closed, nobody sees it, and that must not break the prompt."""
    try:
        click.echo(line, color=True)
    except BrokenPipeError:
        raise
    except OSError:
        sys.stdout = None  # what could not be written is not written again at the end


def _now() -> datetime:
    """The current time; tests replace it."""
    return datetime.now(UTC)


def _check_template(template: str | None) -> None:
    unknown = [name for name in _TEMPLATE_PART.findall(template or "") if name not in PARTS]
    if unknown:
        parts = ", ".join(f"{{{name}}}" for name in PARTS)
        raise BadQuery(f"Unknown part {{{unknown[0]}}} in --format. Parts: {parts}.")


def _format_statusline(figures: StatuslineFigures, cost: str, template: str | None, *, colour: bool) -> str:
    # Claude Code reads the line through a pipe and shows its colours, so a pipe does not disable them.
    colour = colour and should_use_colour(os.environ, terminal=True)
    if template is None:
        return default_line(figures, cost, colour=colour)
    parts = format_parts(figures, cost)
    return _TEMPLATE_PART.sub(lambda part: parts[part[1]] or "-", template)


_MAX_INPUT_BYTES = 64 * 1024 * 1024
_PROMPT_TOKEN_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LONG_CONTEXT_MARKS = ("[1m]", "1m context")
_DEFAULT_CONTEXT, _LONG_CONTEXT = 200_000, 1_000_000
_MAX_NUMBER = 1e15


class StatuslineInput(Struct, frozen=True):
    """What Claude Code passes in.

    `directory` is the one it works in. `reported` is the session's cost so far, in USD. `tokens` are those of the last
    prompt, `limit` is the size of the context window, and `share` is how full it is.
    """

    model: str | None = None
    session: str | None = None
    transcript: str | None = None
    directory: str | None = None
    reported: Decimal | None = None
    tokens: int | None = None
    limit: int | None = None
    share: float | None = None
    is_long: bool = False

    def limit_for(self, tokens: int) -> int:
        """The size of the context window: as passed in, or a million if something indicates that, or 200,000."""
        return self.limit or (_LONG_CONTEXT if self.is_long or tokens > _DEFAULT_CONTEXT else _DEFAULT_CONTEXT)


def read_input() -> StatuslineInput:
    """Parse standard input; empty if that is a terminal or not JSON."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return StatuslineInput()
    try:
        data = sys.stdin.buffer.read(_MAX_INPUT_BYTES)
    except (OSError, ValueError):
        return StatuslineInput()
    return parse_input(data)


def parse_input(data: bytes) -> StatuslineInput:
    """Parse Claude Code's JSON; missing or malformed fields are None."""
    value = _decode_json(data)
    model_id, name = _get_text(value, "model", "id"), _get_text(value, "model", "display_name")
    cost, share = _get_number(value, "cost", "total_cost_usd"), _get_number(value, "context_window", "used_percentage")
    tokens = [_get_count(value, "context_window", "current_usage", field) for field in _PROMPT_TOKEN_FIELDS]
    return StatuslineInput(
        model=name or model_id or _get_text(value, "model"),
        session=_get_text(value, "session_id"),
        transcript=_get_text(value, "transcript_path"),
        directory=_get_text(value, "workspace", "project_dir") or _get_text(value, "cwd"),
        reported=Decimal(str(cost)) if cost is not None else None,
        tokens=sum(number or 0 for number in tokens) or None,
        limit=_get_count(value, "context_window", "context_window_size") or None,
        share=share / 100 if share else None,  # 0 after a compaction, when it is unknown
        is_long=any(mark in f"{model_id} {name}".lower() for mark in _LONG_CONTEXT_MARKS)
        or _get_path(value, "exceeds_200k_tokens") is True,
    )


def _decode_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        import json  # noqa: PLC0415 - more lenient: msgspec rejects half a character in a path

        try:
            return json.loads(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            return None


def _get_path(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _get_text(value: Any, *keys: str) -> str | None:
    text = _get_path(value, *keys)
    return text if isinstance(text, str) and text.strip() else None


def _get_number(value: Any, *keys: str) -> int | float | None:
    number = _get_path(value, *keys)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return number if is_number and abs(number) < _MAX_NUMBER and isfinite(number) and number >= 0 else None


def _get_count(value: Any, *keys: str) -> int | None:
    number = _get_number(value, *keys)
    return int(number) if number is not None else None


_ONE_DAY = timedelta(hours=24)


class StatuslineFigures(Struct, frozen=True):
    """Everything a status line may show. `day` is today in the user's time zone."""

    status: StatuslineInput
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
    budgets: tuple[BudgetUse, ...] = ()

    @property
    def left(self) -> timedelta | None:
        """How long the window remains open."""
        return self.window.ends - self.now if self.window is not None else None

    def record(self) -> dict[str, Any]:
        """The figures for a program."""
        recent = self.recent
        return {
            "model": self.status.model,
            "session": {
                "session": recent.named.session,
                **_sum_record(self.session),
                "reported": self.status.reported,
                "difference": _reported_difference(self.session, self.status.reported),
            },
            "today": {"day": self.day, **_sum_record(self.today), "is_whole": recent.is_whole},
            "window": {**self.window.record(), "is_certain": self.is_certain} if self.window is not None else None,
            "context": {"tokens": self.tokens, "limit": self.limit, "share": self.share},
            "not_read": {"transcripts": recent.not_read, "is_listed": recent.is_listed},
            "problems": [f"{problem.place}: {problem.message}" for problem in recent.ledger.problems],
            "prices": {"digest": self.digest},
            "budgets": [use.record() for use in self.budgets],
        }


def gather_figures(
    status: StatuslineInput,
    home_names: tuple[str, ...],
    price_files: tuple[str, ...],
    *,
    zone: tzinfo,
    seconds: float,
    now: datetime,
) -> StatuslineFigures:
    """The figures at a given time.

    Raises:
        Error: a home or price file does not exist.
    """
    begins, ends = parse_moment("today", now=now, tz=zone), parse_moment("today", now=now, tz=zone, end=True)
    rates = load_rates(*price_files)
    homes = open_archive(home_names).homes
    session = resolve_session(status.transcript, status.session, homes)
    since = min(begins, now - _ONE_DAY)
    with open_archive((), found=homes_including(session, homes), refresh_bytes=out.QUIET_BYTES) as archive:
        recent = archive.recent_usage(session, rates, since=since, seconds=seconds)
        window, is_certain = recent.window(now)
        tokens, limit, share = _context_usage(status, recent)
        return StatuslineFigures(
            status=status,
            recent=recent,
            now=now,
            day=f"{now.astimezone(zone):%Y-%m-%d}",
            session=recent.of_session(),
            today=recent.within(begins, ends),
            window=window,
            is_certain=is_certain,
            tokens=tokens,
            limit=limit,
            share=share,
            digest=rates.digest,
            budgets=_measure_budgets(status, recent, now, zone),
        )


def _measure_budgets(
    status: StatuslineInput, recent: RecentUsage, now: datetime, zone: tzinfo
) -> tuple[BudgetUse, ...]:
    """The user's budgets that apply to the directory, the tightest first. Weeks and months need an index."""
    if not settings_file(BUDGETS).exists():
        return ()
    from threadline.account import measure_budgets, read_budgets  # noqa: PLC0415 - only if there are budgets

    try:
        budgets = [budget for budget in read_budgets() if budget.applies_to(status.directory)]
    except Error as error:
        out.print_message(str(error))
        return ()
    uses = measure_budgets(
        budgets,
        recent.ledger,
        now=now,
        zone=zone,
        complete_since=None if recent.has_all else recent.since,
        is_whole=recent.is_whole,
    )
    return tuple(sorted(uses, key=lambda use: -(use.share if use.share is not None else -1)))


def figures_from_input(status: StatuslineInput, now: datetime) -> StatuslineFigures:
    """The figures that Claude Code passed in, without reading anything."""
    rates = load_rates()
    nothing = RecentUsage(SessionRef(status.session), now, Ledger((), rates), None, is_listed=False)
    tokens, limit, share = _context_usage(status, nothing)
    return StatuslineFigures(
        status=status,
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
        digest=rates.digest,
    )


def _context_usage(status: StatuslineInput, recent: RecentUsage) -> tuple[int | None, int | None, float | None]:
    """Tokens in the context window, its size, and the share. Input from Claude Code is newer than its transcripts."""
    last = recent.last
    tokens = status.tokens or (last.prompt_tokens if last is not None else None)
    if tokens is None:
        return None, status.limit, status.share
    limit = status.limit_for(tokens)
    return tokens, limit, tokens / limit


def _sum_record(total: Sum | None) -> dict[str, Any]:
    if total is None:
        return {"amount": None, "charges": None, "unpriced": None}
    amount = total.amount if total.amount is not None or total.unpriced else Decimal(0)
    return {"amount": amount, "charges": total.charges, "unpriced": total.unpriced}


def _reported_difference(computed: Sum | None, reported: Decimal | None) -> Decimal | None:
    amount = _sum_record(computed)["amount"]
    return None if amount is None or reported is None else EXACT.subtract(reported, amount)


PARTS = ("model", "session", "reported", "today", "block", "left", "burn", "context", "share", "budget")
"""The parts that a template may contain."""

_MAX_NAME = 40
_THOUSAND, _MILLION = 1000, 1_000_000
_FULL_SHARE, _NEARLY_FULL_SHARE = 0.9, 0.7
_MAX_BUDGETS = 2
_CENT = Decimal("0.01")
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_EVEN)
# A few minutes of usage are not representative of an hour.
_MIN_BURN_TIME = timedelta(minutes=5)
_SEPARATOR = Span(" | ", Role.FAINT)


def format_parts(figures: StatuslineFigures, cost: str = "computed") -> dict[str, str]:
    """Each part of the line; empty if it is unknown."""
    window = figures.window
    least = not figures.recent.is_whole
    burn = _burn_rate(window)
    return {
        "model": one_line(figures.status.model or "", _MAX_NAME),
        "session": _session_text(figures, cost),
        "reported": format_amount(figures.status.reported),
        "today": _format_sum(figures.today, least=least) if figures.today is not None else "",
        "block": ("" if figures.is_certain else "~") + _format_sum(window.sum, least=least)
        if window is not None
        else "",
        "left": format_duration(figures.left, seconds=False),
        "burn": f"{format_amount(burn)}/h" if burn is not None else "",
        "context": format_tokens(figures.tokens),
        "share": format_percent(figures.share),
        "budget": ", ".join(use.describe() for use in figures.budgets if use.spent is not None),
    }


def default_line(figures: StatuslineFigures, cost: str, *, colour: bool) -> str:
    """The default line, without unknown parts."""
    parts = format_parts(figures, cost)
    block = filter(None, (parts["block"], parts["left"] and f"{parts['left']} left", parts["burn"]))
    sections = [
        (Span(parts["model"], Role.STRONG),),
        _labelled_spans("session", parts["session"]),
        _labelled_spans("today", parts["today"]),
        _labelled_spans("block", ", ".join(block)),
        _budget_spans(figures),
        _context_spans(figures, parts),
    ]
    spans: list[Span] = []
    for section in sections:
        if any(span.text for span in section):
            spans += [*([_SEPARATOR] if spans else []), *section]
    return Style(colour=colour).line(spans)


def _labelled_spans(label: str, text: str) -> tuple[Span, ...]:
    return (Span(f"{label} ", Role.FAINT), Span(text)) if text else ()


def _budget_spans(figures: StatuslineFigures) -> tuple[Span, ...]:
    """What is left of the tightest budgets, in the colour of a warning if it is little."""
    uses = [use for use in figures.budgets if use.spent is not None][:_MAX_BUDGETS]
    if not uses:
        return ()
    from threadline.model.budgets import NEARLY_USED  # noqa: PLC0415 - only if there are budgets

    spans: list[Span] = []
    for use in uses:
        role = Role.BAD if use.is_over else Role.NOTICE if use.is_near(NEARLY_USED) else Role.BODY
        spans += [Span(", " if spans else "budget ", Role.FAINT), Span(use.describe(), role)]
    return tuple(spans)


def _context_spans(figures: StatuslineFigures, parts: dict[str, str]) -> tuple[Span, ...]:
    share = figures.share or 0
    role = Role.BAD if share >= _FULL_SHARE else Role.NOTICE if share >= _NEARLY_FULL_SHARE else Role.BODY
    text = f"{parts['context']} ({parts['share']})" if parts["context"] and parts["share"] else parts["share"]
    return (Span("context ", Role.FAINT), Span(text, role)) if text else ()


def _session_text(figures: StatuslineFigures, cost: str) -> str:
    computed = _format_sum(figures.session) if figures.session is not None else ""
    reported = format_amount(figures.status.reported)
    if cost == "both" and computed and reported:
        return f"{computed} (reported {reported})"
    if not computed and not figures.status.reported:  # no usage yet, so nothing has been written
        return reported
    if cost == "reported" or not computed:
        return f"{reported} reported" if reported else computed
    return computed


def _burn_rate(window: UsageWindow | None) -> Decimal | None:
    """The cost per hour; None until the window has been in use for long enough."""
    if window is None or window.burn is None or window.first is None or window.last is None:
        return None
    return window.burn.amount_per_hour if window.last - window.first >= _MIN_BURN_TIME else None


def _format_sum(total: Sum, *, least: bool = False) -> str:
    """An amount, with a + if it may be more; no figure if none of the charges has a price."""
    if total.amount is None and total.unpriced:
        return "no price"
    return format_amount(total.amount or Decimal(0)) + ("+" if least or total.unpriced else "")
