"""What can go wrong for the caller.

As a tree::

    Error (all that threadline raises on purpose)
    ├── NotFound          the thing named is not there
    │   └── Ambiguous     the name fits several things
    ├── Unreadable        the machine refuses: permissions, a device, a vanished file
    ├── BadQuery          a filter, date or option that says nothing sensible
    ├── IndexBusy         another process is writing the index
    └── Missing           an optional part of threadline is not installed

Bad data is never an exception: it is a `Problem` with a place. These are for the caller's mistakes and
the machine's refusals, and each text is a sentence that says what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable


class Error(Exception):
    """Whatever threadline raises on purpose; its text is a sentence for a person."""


class NotFound(Error):
    """The home, transcript or session that was named is not there."""


class Ambiguous(NotFound):
    """The name fits several things; the text lists them."""


class Unreadable(Error):
    """The machine refuses to let it be read: permissions, not a regular file, gone meanwhile."""


class BadQuery(Error):
    """A filter, a date or an option that cannot be understood."""


class IndexBusy(Error):
    """Another process is writing the index; try again when it is done."""


class Missing(Error):
    """An optional part of threadline is not installed."""


def did_you_mean(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The choice that is spelled most like `word`, ignoring case; None if none is close.

    >>> did_you_mean("Doctr", ["list", "doctor"])
    'doctor'
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    folded = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(word.lower(), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None
