"""The exceptions that callers may see.

    Error (everything that threadline raises on purpose)
    ├── NotFound          nothing has this name or path
    │   └── Ambiguous     several things match the name
    ├── Unreadable        the system refuses to read it: permissions, a device, a file that is gone
    ├── BadQuery          an invalid filter, date or option
    ├── IndexBusy         another process is writing the index
    └── Missing           an optional part of threadline is not installed

Each message is a sentence that says what to do next. Bad data never raises: it becomes a `Problem` with a place.
"""

from __future__ import annotations

from collections.abc import Iterable


class Error(Exception):
    """Everything that threadline raises on purpose. Its message is a sentence for people."""


class NotFound(Error):
    """There is no home, transcript or session of this name."""


class Ambiguous(NotFound):
    """The name matches several things; the message lists them."""


class Unreadable(Error):
    """The system refuses to read it: no permission, not a regular file, or gone since it was listed."""


class BadQuery(Error):
    """A filter, a date or an option that cannot be understood."""


class IndexBusy(Error):
    """Another process is writing the index; try again when it is done."""


class Missing(Error):
    """An optional part of threadline is not installed.

    Its text names the command that installs the part into this environment.
    """

    def __str__(self) -> str:
        from threadline.extras import adapt_install_command  # noqa: PLC0415 - only this error needs it

        return adapt_install_command(super().__str__())


def did_you_mean(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The choice that is spelled most like `word`, ignoring case; None if none is close.

    >>> did_you_mean("Doctr", ["list", "doctor"])
    'doctor'
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    folded = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(word.lower(), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None
