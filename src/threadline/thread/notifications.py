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
_NAME = b"task-notification"
# Bounded: a run of a million letters is no name, and a number of thousands of digits no count.
_COUNT = re.compile(r"<(\w{1,40})>\s{0,9}(\d{1,18})\s{0,9}</\1>|\b(\w{1,40}):\s{0,9}(\d{1,18})\b")


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
    listed = list(entries)
    queued: list[tuple[int, str]] = []
    given: dict[object, list[tuple[int, str]]] = {}
    for at, entry in enumerate(listed):
        if isinstance(entry, QueueOperationEntry):
            queued += ((at, text) for text in _elements(entry.text) if entry.operation == "enqueue")
        elif _may_hold(entry) and (found := [(at, text) for text in _elements(_text(entry))]):
            given[entry.uuid or at] = found  # a row that is written again is the same one
    told = [one for found in given.values() for one in found]
    seen = Counter(text.strip() for _, text in told)
    for at, text in queued:
        seen[text.strip()] -= 1
        if seen[text.strip()] < 0:
            told.append((at, text))
    return [_notification(text, listed[at]) for at, text in sorted(told, key=lambda one: one[0])]


def _may_hold(entry: Entry) -> bool:
    """Whether its line names a notification, or could do so in escapes; what was made by hand has no line."""
    raw = entry.line.raw
    return not raw or _NAME in raw or b"\\u" in raw


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
