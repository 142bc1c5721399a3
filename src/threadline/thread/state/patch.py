"""Apply edits and patches to a file's text, or to the lines of it that are known.

Claude Code makes its patches from text whose leading tabs are shown as two spaces each (measured: every patch of
2.0.64 to 2.1.219 of a file with tabs). A patch therefore proves where an edit was made, but proves a line's text only
if the line does not begin with two spaces. The edit's own strings contain the tabs.

Files are shown to the model with line numbers: `     1→text` in older versions, `1<tab>text` in newer ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from threadline.model.results import Hunk

_NO_NEWLINE = "\\"
_TWO_SPACES = "  "


def replace_text(text: str, old: str, new: str, *, all_: bool) -> str | None:
    r"""Return the text after a replacement, as the tool does it; None if it does not contain `old`.

    If something is replaced by nothing, the line end after it is removed too.

    >>> replace_text("a\nb\nc", "b", "", all_=False)
    'a\nc'
    """
    if not old:
        return new if not text else None
    if old not in text:
        return None
    if not new and not old.endswith("\n") and old + "\n" in text:
        old += "\n"
    return text.replace(old, new) if all_ else text.replace(old, new, 1)


def tabs_as_spaces(line: str) -> str:
    """Return the line as a patch shows it."""
    text = line.lstrip("\t")
    return _TWO_SPACES * (len(line) - len(text)) + text


def matches_patch(text: str, hunks: Sequence[Hunk] | None) -> bool:
    """Whether a text matches the new side of a patch."""
    lines = text.split("\n") if hunks else []
    for hunk in hunks or ():
        side = _hunk_side(hunk, "+")
        if side and not _matches_side(lines, max(0, (hunk.new_start or 0) - 1), side):
            return False
    return True


def _matches_side(lines: list[str], start: int, side: list[str]) -> bool:
    span = lines[start : start + len(side)]
    return len(span) == len(side) and all(
        shown in (line, tabs_as_spaces(line)) for line, shown in zip(span, side, strict=True)
    )


def _hunk_side(hunk: Hunk, sign: str) -> list[str]:
    return [line[1:] for line in hunk.lines or () if line[:1] in (sign, " ")]


def apply_patch(text: str, hunks: Sequence[Hunk] | None, raw: str) -> str | None:
    """Return the text with a patch applied; None if it does not fit, or if spaces in it may be a tab.

    `raw` is the text that was inserted: a new line consists of it and of the lines that it replaces, and begins with a
    tab only if one of them has one.
    """
    lines = text.split("\n")
    result: list[str] = []
    at = 0
    for hunk in hunks or ():
        start = max(0, (hunk.old_start or 0) - 1)
        removed, added = _hunk_side(hunk, "-"), _hunk_side(hunk, "+")
        if _ends_without_newline(hunk) or start < at or lines[start : start + len(removed)] != removed:
            return None
        if "\t" in raw + "".join(removed) and any(line.startswith(_TWO_SPACES) for line in added):
            return None
        result += lines[at:start]
        result += added
        at = start + len(removed)
    return "\n".join(result + lines[at:])


def _ends_without_newline(hunk: Hunk) -> bool:
    return any(line.startswith(_NO_NEWLINE) for line in hunk.lines or ())


def _has_valid_start(hunk: Hunk) -> bool:
    """Whether a hunk's line numbers are possible: they start at 1, or at 0 if there are no lines."""
    return min(hunk.old_start or 0, hunk.new_start or 0) >= 0


def shift_lines(lines: dict[int, str], hunks: Sequence[Hunk] | None) -> dict[int, str] | None:
    """Return the known lines of a file after a patch, renumbered; None if they contradict the patch.

    A patch of lines before the first one contradicts any file.
    """
    if not all(map(_has_valid_start, hunks or ())):
        return None
    ranges: list[tuple[int, int, int]] = []
    for hunk in hunks or ():
        start, removed = hunk.old_start or 1, _hunk_side(hunk, "-")
        for number, shown in enumerate(removed, start):
            line = lines.get(number)
            if line is not None and shown not in (line, tabs_as_spaces(line)):
                return None
        # A last line without a newline ends the file: a known line after it is the empty one after a newline.
        end = sys.maxsize if _ends_without_newline(hunk) else start + len(removed)
        ranges.append((start, end, len(_hunk_side(hunk, "+")) - len(removed)))
    shifted: dict[int, str] = {}
    ranges.sort()
    at = delta = 0
    for number in sorted(lines):
        while at < len(ranges) and number >= ranges[at][1]:
            delta += ranges[at][2]
            at += 1
        if (at == len(ranges) or number < ranges[at][0]) and number + delta >= 1:
            shifted[number + delta] = lines[number]
    return shifted


def unchanged_lines(lines: dict[int, str], hunks: Sequence[Hunk] | None) -> dict[int, str]:
    """Return the known lines that a patch shows unchanged, by their new numbers: their exact text is known."""
    unchanged: dict[int, str] = {}
    for hunk in hunks or ():
        old, new = hunk.old_start or 1, hunk.new_start or 1
        for line in (hunk.lines or ()) if _has_valid_start(hunk) else ():
            if line[:1] == " " and old in lines:
                unchanged[new] = lines[old]
            old += line[:1] in ("-", " ")
            new += line[:1] in ("+", " ")
    return unchanged


def proven_lines(hunks: Sequence[Hunk] | None) -> dict[int, str]:
    """Return the lines of the new side of a patch that are certain: those that cannot have begun with a tab."""
    return {
        number: line
        for hunk in hunks or ()
        if _has_valid_start(hunk)
        for number, line in enumerate(_hunk_side(hunk, "+"), hunk.new_start or 1)
        if not line.startswith(_TWO_SPACES)
    }


def line_growth(hunks: Sequence[Hunk] | None) -> int | None:
    """Return by how many lines a patch makes a file longer; None if the line end of its last line changes."""
    if any(_ends_without_newline(hunk) for hunk in hunks or ()):
        return None
    return sum(len(_hunk_side(hunk, "+")) - len(_hunk_side(hunk, "-")) for hunk in hunks or ())


_NUMBERED_LINE = re.compile(r"\s*([0-9]{1,9})(?:\t|→)(.*)", re.DOTALL)
_GAP_LINE = "..."


def parse_numbered_lines(text: str) -> dict[int, str]:
    r"""Return lines by number, up to the first without one, which is not the file's. Gaps are skipped.

    >>> parse_numbered_lines("1\ta\n2\t\n...\n9\tb\n\n<system-reminder>")
    {1: 'a', 2: '', 9: 'b'}
    """
    numbered: dict[int, str] = {}
    last = 0
    for line in text.split("\n"):
        if line.strip() == _GAP_LINE:
            continue
        match = _NUMBERED_LINE.fullmatch(line)
        if match is None or int(match[1]) <= last:
            break
        last = int(match[1])
        numbered[last] = match[2]
    return numbered
