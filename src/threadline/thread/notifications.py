"""Notifications: that a background task ended, or has something to say.

The program tells the model of it in a `<task-notification>` element, which can stand in three rows: in the queue it
waited in, and then in a user row or in an attachment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import unescape

from msgspec import Struct

from threadline.model.attachments import QueuedCommand
from threadline.model.entries import AttachmentEntry, Entry, QueueOperationEntry, UserEntry
from threadline.model.ids import CallId
from threadline.model.text import extract_text

_OPEN, _CLOSE = "<task-notification>", "</task-notification>"
_COUNT = re.compile(r"<(\w+)>\s*(\d+)\s*</\1>|(\w+):\s*(\d+)")


class Notification(Struct, frozen=True):
    """What became of a background task: an agent, a shell command, a workflow.

    `task` is the agent's id, for agents. `usage` are the counts as they are written: an agent's context, not what it
    cost.
    """

    task: str
    entry: Entry
    call: CallId | None = None
    status: str | None = None
    summary: str | None = None
    result: str | None = None
    output_file: str | None = None
    usage: dict[str, int] = {}


def notifications(entries: Iterable[Entry]) -> list[Notification]:
    """Every notification, once each: one that was queued and then given to the model is told by the latter's row."""
    given: dict[object, list[str]] = {}
    queued: list[tuple[str, Entry]] = []
    rows: dict[object, Entry] = {}
    for entry in entries:
        if isinstance(entry, QueueOperationEntry):
            if entry.operation == "enqueue":
                queued += ((text, entry) for text in _elements(entry.text))
        elif texts := list(_elements(_text(entry))):
            key = entry.uuid or id(entry)  # a row that is written again is the same one
            given[key], rows[key] = texts, entry
    told = [(text, rows[key]) for key, texts in given.items() for text in texts]
    left = Counter(text.strip() for text, _ in told)
    for text, entry in queued:
        if left[text.strip()]:
            left[text.strip()] -= 1
        else:
            told.append((text, entry))
    return [_notification(text, entry) for text, entry in told]


def _text(entry: Entry) -> str:
    """The text of a row in which a notification may stand: the program's own, not a person who quotes one."""
    if isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, QueuedCommand):
        return extract_text(entry.attachment.prompt)
    if isinstance(entry, UserEntry):
        text = entry.text
        machine = entry.origin is not None and entry.origin.kind == "task-notification"
        return text if machine or text.lstrip().startswith((_OPEN, "<system-reminder>", "[SYSTEM NOTIFICATION")) else ""
    return ""


def _elements(text: str) -> Iterator[str]:
    """What stands inside each notification of a text."""
    start = text.find(_OPEN)
    while start >= 0:
        start += len(_OPEN)
        end = text.find(_CLOSE, start)
        if end < 0:
            return
        yield text[start:end]
        start = text.find(_OPEN, end)


def _notification(text: str, entry: Entry) -> Notification:
    # A result may hold anything, the names of the other elements included: they are looked for outside of it.
    before, opened, rest = text.partition("<result>")
    result, _, after = rest.rpartition("</result>") if opened else ("", "", "")
    outside = before + after
    call = _inside(outside, "tool-use-id")
    return Notification(
        task=_inside(outside, "task-id") or "",
        entry=entry,
        call=CallId(call) if call else None,
        status=_inside(outside, "status"),
        summary=unescape(_inside(outside, "summary") or "") or None,
        result=(result or rest).strip() if opened else None,
        output_file=_inside(outside, "output-file"),
        usage=_usage(_inside(outside, "usage") or ""),
    )


def _inside(text: str, name: str) -> str | None:
    _, opened, rest = text.partition(f"<{name}>")
    inner, closed, _ = rest.partition(f"</{name}>")
    return inner.strip() if opened and closed else None


def _usage(text: str) -> dict[str, int]:
    return {name or plain: int(count or number) for name, count, plain, number in _COUNT.findall(text)}
