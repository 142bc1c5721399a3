"""The figures of a statusline as text: short, in plain ASCII, calm."""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal

from threadline.cli.statusline_figures import Figures
from threadline.model.sum import Sum
from threadline.model.window import UsageWindow
from threadline.render.style import Role, Span, Style
from threadline.render.terminal_text import one_line

PARTS = ("model", "session", "reported", "today", "block", "left", "burn", "context", "share")
"""What a template may name."""

_LONGEST_NAME = 40
_THOUSAND, _MILLION = 1000, 1_000_000
_FULL, _NEARLY = 0.9, 0.7
_CENT = Decimal("0.01")
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_EVEN)
# What was spent within a few minutes says nothing about an hour.
_TELLING = timedelta(minutes=5)
_BAR = Span(" | ", Role.FAINT)


def parts(found: Figures, cost: str = "computed") -> dict[str, str]:
    """Each part of the line; empty where nothing is known of it."""
    window = found.window
    least = not found.recent.is_whole
    burn = _burn(window)
    return {
        "model": one_line(found.told.model or "", _LONGEST_NAME),
        "session": _session(found, cost),
        "reported": dollars(found.told.reported),
        "today": _amount(found.today, least=least) if found.today is not None else "",
        "block": ("" if found.is_certain else "~") + _amount(window.sum, least=least) if window is not None else "",
        "left": _minutes(found),
        "burn": f"{dollars(burn)}/h" if burn is not None else "",
        "context": _tokens(found.tokens),
        "share": f"{found.share:.0%}" if found.share is not None else "",
    }


def line(found: Figures, cost: str, *, coloured: bool) -> str:
    """The whole line; what is not known is left out."""
    told = parts(found, cost)
    shown = [
        (Span(told["model"], Role.STRONG),),
        _labelled("session", told["session"]),
        _labelled("today", told["today"]),
        _labelled(
            "block", ", ".join(filter(None, (told["block"], told["left"] and f"{told['left']} left", told["burn"])))
        ),
        _context(found, told),
    ]
    spans: list[Span] = []
    for some in shown:
        if any(span.text for span in some):
            spans += [*([_BAR] if spans else []), *some]
    return Style(colour=coloured).line(spans)


def dollars(amount: Decimal | None) -> str:
    """`$1.23`; nothing where there is no amount."""
    return f"${_ROUNDING.quantize(amount, _CENT):,}" if amount is not None else ""


def _labelled(label: str, text: str) -> tuple[Span, ...]:
    return (Span(f"{label} ", Role.FAINT), Span(text)) if text else ()


def _context(found: Figures, told: dict[str, str]) -> tuple[Span, ...]:
    share = found.share or 0
    role = Role.BAD if share >= _FULL else Role.NOTICE if share >= _NEARLY else Role.BODY
    text = f"{told['context']} ({told['share']})" if told["context"] and told["share"] else told["share"]
    return (Span("context ", Role.FAINT), Span(text, role)) if text else ()


def _session(found: Figures, cost: str) -> str:
    computed = _amount(found.session) if found.session is not None else ""
    reported = dollars(found.told.reported)
    if cost == "both" and computed and reported:
        return f"{computed} (reported {reported})"
    if not computed and not found.told.reported:  # nothing spent, so that nothing is written yet
        return reported
    if cost == "reported" or not computed:
        return f"{reported} reported" if reported else computed
    return computed


def _burn(window: UsageWindow | None) -> Decimal | None:
    """What an hour costs; None while the window has not gone on for long enough to tell."""
    if window is None or window.burn is None or window.first is None or window.last is None:
        return None
    return window.burn.amount_per_hour if window.last - window.first >= _TELLING else None


def _amount(one: Sum, *, least: bool = False) -> str:
    """An amount; a + where it is only the least that it can be, and no figure where nothing of it has a price."""
    if one.amount is None and one.unpriced:
        return "no price"
    return dollars(one.amount or Decimal(0)) + ("+" if least or one.unpriced else "")


def _minutes(found: Figures) -> str:
    left = found.left
    if left is None:
        return ""
    whole = max(0, int(left.total_seconds() // 60))
    return f"{whole // 60}h {whole % 60:02d}m" if whole >= 60 else f"{whole}m"  # noqa: PLR2004 - minutes of an hour


def _tokens(count: int | None) -> str:
    """`834`, `42k`, `1.2M`."""
    if count is None:
        return ""
    if count < _THOUSAND:
        return str(count)
    return f"{count / _MILLION:.1f}M" if count >= _MILLION else f"{count / _THOUSAND:.0f}k"
