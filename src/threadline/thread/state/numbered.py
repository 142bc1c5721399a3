"""Text with line numbers, as the model sees files: `     1→text` in older versions, `1<tab>text` in newer ones."""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"\s*([0-9]{1,9})(?:\t|→)(.*)", re.DOTALL)
_GAP = "..."


def numbered_lines(text: str) -> dict[int, str]:
    r"""The lines by number, up to the first that has none: what follows is not the file's. Gaps are skipped.

    >>> numbered_lines("1\ta\n2\t\n...\n9\tb\n\n<system-reminder>")
    {1: 'a', 2: '', 9: 'b'}
    """
    found: dict[int, str] = {}
    last = 0
    for line in text.split("\n"):
        if line.strip() == _GAP:
            continue
        written = _NUMBERED.fullmatch(line)
        if written is None or int(written[1]) <= last:
            break
        last = int(written[1])
        found[last] = written[2]
    return found
