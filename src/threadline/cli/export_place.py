"""Where an export goes and in which form: what `--to` and `--out` say together."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.errors import BadQuery

if TYPE_CHECKING:
    from threadline.export.forms import Form

_FORMS = ("html", "md", "json", "jsonl", "txt", "pdf")
_OTHER_ENDINGS = {"markdown": "md", "htm": "html", "text": "txt"}
_FOLDER = "threadline-export"


def form_and_turn(to: Sequence[str], out: str | None, *, several: bool) -> tuple[Form, int | None]:
    """The form and the last turn: `--to` says either; where it does not say the form, the file's ending does.

    Raises:
        BadQuery: there is no such form, or it was given twice.
    """
    from threadline.export.forms import Form

    turns = [int(one) for one in to if one.isascii() and one.isdecimal()]
    forms = [one.lower() for one in to if not (one.isascii() and one.isdecimal())]
    if len(turns) > 1 or len(forms) > 1:
        raise BadQuery("--to was given twice; give one form and one turn at most.")
    form = forms[0] if forms else _of_ending(out, several=several)
    if form not in _FORMS:
        raise BadQuery(f"There is no form {form!r}; --to takes {', '.join(_FORMS)}, or the number of the last turn.")
    return Form(form), turns[0] if turns else None


def _of_ending(out: str | None, *, several: bool) -> str:
    """The form that a file's ending means; a folder has none, nor has what has no ending.

    Raises:
        BadQuery: an ending that no form has, as a file of that name would not hold what it says.
    """
    if out is None or several or is_folder(out):
        return "html"
    ending = Path(out).suffix.lower().lstrip(".")
    form = _OTHER_ENDINGS.get(ending, ending or "html")
    if form not in _FORMS:
        raise BadQuery(
            f"There is no form for {f'.{ending}'!r}; end the name of --out in .{', .'.join(_FORMS)},"
            " or say the form with --to."
        )
    return form


def is_folder(out: str) -> bool:
    """Whether a folder is meant: one that is there, or a name that ends as those of folders do."""
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


def place_of(form: Form, out: str | None, site: Path | None, mains: Sequence[Path], *, is_site: bool) -> Path | None:
    """Where it goes: a file, or a folder where there are several; None is standard output.

    Raises:
        BadQuery: several files cannot go to standard output, nor anything to one that is closed.
    """
    from threadline.export.names import safe

    many = is_site or len(mains) > 1
    if out == "-":
        if many:
            raise BadQuery("Several files cannot go to standard output; name a folder with --out.")
        if sys.__stdout__ is None:
            raise BadQuery("Standard output is closed, so nothing can be written to it; name a file with --out.")
        return None
    if many:
        return site or Path(out or _FOLDER)
    name = f"{safe(mains[0].stem)}.{form}"
    if out is None:
        return Path(name)
    return Path(out) / name if is_folder(out) else Path(out)
