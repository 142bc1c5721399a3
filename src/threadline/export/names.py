"""Names of files that are given out: whatever a session is called, a plain word that every system takes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_STRANGE = re.compile(r"[^0-9A-Za-z._-]+")
_MOST = 80
# What Windows does not let a file be called, whatever its ending.
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")


def safe(name: str, otherwise: str = "session") -> str:
    """A name for a file, without its ending.

    >>> safe("../../etc/passwd"), safe("-rf"), safe("CON"), safe(""), safe("Café\u202e au lait")
    ('etc-passwd', 'rf', 'session-CON', 'session', 'Cafe-au-lait')
    """
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    made = _STRANGE.sub("-", letters).strip("-._")[:_MOST].rstrip("-._")
    made = re.sub(r"-{2,}|\.{2,}", "-", made)
    if not made:
        return otherwise
    return f"{otherwise}-{made}" if _RESERVED.match(made) else made


def distinct(names: Iterable[str]) -> list[str]:
    """The names, those that differ only in case told apart by a number."""
    taken: set[str] = set()
    given = []
    for name in names:
        made, number = name, 1
        while made.lower() in taken:
            number += 1
            made = f"{name}-{number}"
        taken.add(made.lower())
        given.append(made)
    return given
