"""A session in one of the forms that it can be given out in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from threadline.errors import Missing
from threadline.export.copies import Copy
from threadline.load import Session
from threadline.model.sum import Sum
from threadline.render.html.view import View
from threadline.render.options import Options
from threadline.thread.notifications import notifications

if TYPE_CHECKING:
    from threadline.export.as_html import Pieces

_WIDTH = 100
_CHUNK = 1 << 20


class Form(StrEnum):
    """What a session can be given out as."""

    HTML = "html"
    MD = "md"
    JSON = "json"
    JSONL = "jsonl"
    TXT = "txt"
    PDF = "pdf"


def text_of(form: Form, whole: Session, view: View, total: Sum) -> str:
    """A session as a file's text. Not of HTML and PDF, see `html_page`, nor of `jsonl`, see `raw_lines`."""
    return _FORMS[form](whole, view, total)


def raw_lines(copy: Copy) -> Iterator[bytes]:
    """The lines of a session's transcripts as they are, its agents' after its own."""
    last = b"\n"
    for path, _name in copy.files:
        if last != b"\n":
            yield b"\n"
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                last = chunk[-1:]
                yield chunk


def html_page(whole: Session, view: View, total: Sum, pages: dict[str, str] | None = None) -> Pieces:
    """A session as one file of HTML, which a PDF is printed from.

    Raises:
        Missing: what makes HTML is not installed.
    """
    try:
        from threadline.export.as_html import session_page  # noqa: PLC0415 - needs what the other forms do not
        from threadline.export.links import FileLinks  # noqa: PLC0415 - the same
    except ModuleNotFoundError as error:
        raise Missing(f"HTML needs {error.name}, which is not installed; run: pip install 'threadline[web]'") from None
    links = FileLinks(pages) if pages else None
    return session_page(whole, view, notifications(whole), links, total)


def _markdown(whole: Session, view: View, total: Sum) -> str:
    from threadline.render.as_markdown import markdown  # noqa: PLC0415 - one form at a time

    return "\n".join(markdown(whole, view, notifications(whole), total)) + "\n"


def _json(whole: Session, view: View, total: Sum) -> str:
    from threadline.render.as_json import session_value  # noqa: PLC0415 - one form at a time

    value = session_value(whole, view, notifications(whole), total)
    try:
        return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=1).decode() + "\n"
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8, but an escape
        return json.dumps(msgspec.to_builtins(value, enc_hook=str), indent=1) + "\n"


def _text(whole: Session, view: View, total: Sum) -> str:
    from threadline.render import text  # noqa: PLC0415 - one form at a time
    from threadline.render.amounts import spent, tokens  # noqa: PLC0415 - the same
    from threadline.render.figures import span_of_time  # noqa: PLC0415 - the same
    from threadline.render.lasting import lasted  # noqa: PLC0415 - the same
    from threadline.render.left import left_told  # noqa: PLC0415 - the same

    options = Options(
        width=_WIDTH,
        agents=view.agents,
        everything=view.everything,
        branch=view.branch,
        thread=view.thread,
        thinking=str(view.thinking),
        calls=str(view.calls),
        from_turn=view.from_turn,
        to_turn=view.to_turn,
        uncut=True,
    )
    figures = " · ".join(one for one in (span_of_time(lasted(whole)), tokens(total), spent(total)) if one)
    told = [one for one in (figures, left_told(whole.main, view.branch)) if one]
    lines = text.session(whole, options, notifications(whole), told)
    return "\n".join(line.rstrip() for line in lines) + "\n"


_FORMS: dict[Form, Callable[[Any, View, Sum], str]] = {
    Form.MD: _markdown,
    Form.JSON: _json,
    Form.TXT: _text,
}
