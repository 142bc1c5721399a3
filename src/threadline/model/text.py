"""Extract the text of messages, and format numbers and times for people.

Every terminal, page and file writes counts, tokens, amounts, sizes, durations and times with the functions below;
docs/terminal.md describes their formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from threadline.model.times import in_zone


def extract_text(content: Any) -> str:
    r"""Return the text of a message's content: a string as it is, text blocks joined with newlines, else nothing.

    Accepts everything that occurs in transcripts: a string, a list of blocks (structs or plain objects, mixed with
    strings), one block, a complete message or entry, or None.

    >>> extract_text("hello")
    'hello'
    >>> extract_text([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])
    'a\nb'
    >>> extract_text(None)
    ''
    """
    return "\n".join(_iter_texts(content))


def _iter_texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for item in content:
            if isinstance(item, str):
                yield item
            else:
                yield from _block_text(item)
    elif content is not None:
        inner = _get_field(content, "message", None)
        message = content if inner is None else inner
        nested = _get_field(message, "content", None)
        if _get_field(message, "type", None) in (None, "message", "user", "assistant") and nested is not None:
            yield from _iter_texts(nested)
        else:
            yield from _block_text(message)


def _block_text(block: Any) -> Iterator[str]:
    text = _get_field(block, "text", None)
    if isinstance(text, str) and _get_field(block, "type", "text") == "text":
        yield text


def _get_field(value: Any, name: str, default: Any) -> Any:
    return value.get(name, default) if isinstance(value, dict) else getattr(value, name, default)


def fold_line(text: str, most: int) -> str:
    r"""Collapse white space to fit a text on one line, and cut it with an ellipsis after `most` characters.

    >>> fold_line("two\n  lines", 8)
    'two lin…'
    """
    words = text.split(maxsplit=most)  # more words than characters cannot fit
    folded = " ".join(words[:most])
    return folded if len(folded) <= most else folded[: most - 1] + "…"


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SHOW_TENTHS_BELOW = 10
_SHOW_TENTHS_BELOW_SHARE = 0.0995
_MAX_LISTED = 8


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun: `1 call`, `1,204 calls`."""
    return f"{number:,} {noun_for(number, noun, plural)}"


def noun_for(number: int, noun: str, plural: str | None = None) -> str:
    """The noun in the form that a number needs: `call`, `calls`."""
    return noun if number == 1 else plural or f"{noun}s"


def is_path_or_end(path: str, end: str) -> bool:
    r"""Whether a path is `end` or ends with it, by whole names and with either kind of slash.

    >>> is_path_or_end("C:\\app\\a.py", "app/a.py"), is_path_or_end("/app/aa.py", "a.py")
    (True, False)
    """
    return path == end or path.replace("\\", "/").endswith("/" + end.replace("\\", "/").lstrip("/"))


def last_names(path: str) -> str:
    r"""Return the last two names of a path, with the slashes that it has.

    >>> last_names("/home/mara/app/"), last_names("C:\\Users\\Mara\\app"), last_names("D:\\app")
    ('mara/app', 'Mara\\app', 'D:\\app')
    """
    bare = path.rstrip("/\\")
    return bare[-len("/".join(bare.replace("\\", "/").split("/")[-2:])) :]


def no_such_number(noun: str, number: int, total: int, *, plural: str | None = None, owner: str = "session") -> str:
    """Say that a number is too high.

    >>> no_such_number("turn", 9, 3)
    'No turn 9: the session has 3 turns.'
    """
    total_text = count(total, noun, plural) if total else f"no {noun_for(total, noun, plural)}"
    return f"No {noun} {number}: the {owner} has {total_text}."


def join_some(words: Iterable[str], limit: int = _MAX_LISTED) -> str:
    """Join the first words of a list: `Bash, Read and 3 more`."""
    words = list(words)
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + more


def count_agents(with_transcript: int, started: int) -> str:
    """Format a number of agents: `3 agents`; empty if there were none.

    If transcripts of agents are missing, add how many exist: `5 agents, 3 transcripts`, `26 agents, no transcripts`.
    """
    if started <= with_transcript:
        return count(with_transcript, "agent") if with_transcript else ""
    transcripts = count(with_transcript, "transcript") if with_transcript else "no transcripts"
    return f"{count(started, 'agent')}, {transcripts}"


_KILO = 1000
_MAX_TOKENS = 10**30
"""A larger number, which only a damaged transcript contains, is formatted as this one: a float may not hold it."""
_TOKEN_UNITS = ("", "k", "M", "G", "T", "P")
_BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_CENT = Decimal("0.01")
_SIGNIFICANT_DIGITS = 2


def format_tokens(number: int | None, *, exact: bool = False) -> str:
    """Format a number of tokens with one decimal: `812`, `12.3k`, `4.3M`; empty if unknown.

    >>> [format_tokens(number) for number in (812, 12_345, 999_960, -4_321_000)]
    ['812', '12.3k', '1.0M', '-4.3M']
    """
    if number is None:
        return ""
    if exact:
        return f"{number:,}"
    value, unit = abs(number), 0
    scaled = float(min(value, _MAX_TOKENS))
    while scaled >= _KILO - 0.05 * (unit > 0) and unit < len(_TOKEN_UNITS) - 1:
        scaled, unit = scaled / _KILO, unit + 1
    digits = f"{scaled:,.1f}{_TOKEN_UNITS[unit]}" if unit else str(value)
    return f"-{digits}" if number < 0 else digits


def format_token_change(before: int | None, after: int | None) -> str:
    """Format a number of tokens that changed, as far as it is known: `998.7k → 18.1k tokens`; empty if it is not."""
    sizes = [format_tokens(size) for size in (before, after) if size is not None]
    return f"{' → '.join(sizes)} tokens" if sizes else ""


def format_amount(amount: Decimal | float | None, *, exact: bool = False, signed: bool = False) -> str:
    """Format an amount in USD: `$1,234.57`; below one cent with two significant digits; empty if unknown.

    `exact` shows all digits, and `signed` a plus sign.

    >>> [format_amount(Decimal(text)) for text in ("1234.567", "0.00042", "0", "-3")]
    ['$1,234.57', '$0.00042', '$0.00', '-$3.00']
    >>> format_amount(Decimal("137.790806"), exact=True), format_amount(Decimal("1.5"), signed=True)
    ('$137.790806', '+$1.50')
    """
    if amount is None:
        return ""
    decimal = Decimal(amount)
    size = decimal.copy_abs()
    digits = 2
    if exact:
        digits = max(digits, len(format_decimal(size).partition(".")[2]))
    elif 0 < size < _CENT:
        digits = _SIGNIFICANT_DIGITS - 1 - size.adjusted()
    sign = "-" if decimal < 0 else "+" if signed and decimal > 0 else ""
    return f"{sign}${size:,.{digits}f}"


def format_size(number: int) -> str:
    """Format a number of bytes, in decimal units: `1 byte`, `997 bytes`, `68.2 MB`."""
    if number < _KILO:
        return count(number, "byte")
    value, unit = float(number), 0
    while value >= _KILO - 0.05 * (unit > 0) and unit < len(_BYTE_UNITS) - 1:
        value, unit = value / _KILO, unit + 1
    return f"{value:,.1f} {_BYTE_UNITS[unit]}"


def format_percent(share: Decimal | float | None) -> str:
    """Format a share: `43%`; below ten per cent with one decimal; empty if unknown.

    >>> [format_percent(share) for share in (0.426, 0.036, 0.0996, 0)]
    ['43%', '3.6%', '10%', '0%']
    """
    if share is None:
        return ""
    return f"{share:.1%}" if 0 < abs(float(share)) < _SHOW_TENTHS_BELOW_SHARE else f"{share:.0%}"


def format_coverage(share: float) -> str:
    """Format a share with up to two decimals, never rounded up: `100%` means all.

    >>> format_coverage(0.999999), format_coverage(1)
    ('99.99%', '100%')
    """
    return f"{int(share * 10_000) / 100:.2f}".rstrip("0").rstrip(".") + "%"


def format_changes(added: int | None, removed: int | None) -> str:
    """Format a number of changed lines: `+1,200 -508`."""
    return f"+{added or 0:,} -{removed or 0:,}"


def format_duration(duration: timedelta | float | None, *, seconds: bool = True) -> str:
    """Format a duration, or a number of seconds: `340ms`, `3.2s`, `1m 12s`, `2h 03m`, `3d 4h`; empty if unknown.

    Without `seconds`, whole minutes are the smallest unit.

    >>> format_duration(timedelta(seconds=72)), format_duration(timedelta(seconds=72), seconds=False)
    ('1m 12s', '1m')
    """
    if duration is None:
        return ""
    if not isinstance(duration, timedelta):
        duration = timedelta(seconds=duration)
    if not seconds:
        minutes = max(0, duration // timedelta(minutes=1))
        return f"{minutes}m" if minutes < _MINUTE else format_duration(timedelta(minutes=minutes))
    return _format_seconds(duration.total_seconds())


def _format_seconds(seconds: float) -> str:
    rounded = round(seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if rounded < _MINUTE:
        return f"{seconds:.1f}s" if seconds < _SHOW_TENTHS_BELOW else f"{rounded}s"
    if rounded < _HOUR:
        return f"{rounded // _MINUTE}m {rounded % _MINUTE:02d}s"
    if rounded < _DAY:
        return f"{rounded // _HOUR}h {rounded % _HOUR // _MINUTE:02d}m"
    return f"{rounded // _DAY}d {rounded % _DAY // _HOUR}h"


def format_time(when: datetime | None, zone: tzinfo = UTC, pattern: str = "%Y-%m-%d %H:%M") -> str:
    """Format a time in a time zone: `2026-01-05 09:00`; empty if it is unknown."""
    if when is None:
        return ""
    local = in_zone(when, zone)
    return local.strftime(pattern.replace("%Y", f"{local.year:04}"))  # some systems do not pad the first years


def short_model_name(model: str | None) -> str:
    """Shorten a model's name: `sonnet-4-5` for `claude-sonnet-4-5-20250929`."""
    if not model:
        return ""
    name = model.removeprefix("claude-")
    head, _, tail = name.rpartition("-")
    return head if head and len(tail) == len("20250929") and tail.isdecimal() else name


_SHORT_ID_LENGTH = 8


def short_id(id_: str | None) -> str:
    """The start of an id of a session or an agent, which tables show and commands accept; empty if it is unknown.

    >>> short_id("5e551011-0000-4000-8000-000000000002"), short_id(None)
    ('5e551011', '')
    """
    return (id_ or "")[:_SHORT_ID_LENGTH]


def format_decimal(number: Decimal) -> str:
    """Format a number without exponent and trailing zeros.

    >>> format_decimal(Decimal("1E+1")), format_decimal(Decimal("0.50"))
    ('10', '0.5')
    """
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain_decimal(number: Decimal) -> Decimal:
    """The same number without exponent and trailing zeros."""
    return Decimal(format_decimal(number))


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can encode a text. An argument or a file name with other bytes has surrogates in their place."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_surrogates(value: Any) -> Any:
    """Return the same value, with lone surrogates in all its texts replaced: UTF-8 cannot encode them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    return value
