"""Find notifications about background tasks: an agent, a shell command or a workflow ended, or has output.

Claude Code reports to the model in a `<task-notification>` element. The element can be in three rows: in the queue it
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
from threadline.model.places import CallId
from threadline.model.text import extract_text
from threadline.thread.acts import tag_text

_OPEN_TAG, _CLOSE_TAG = "<task-notification>", "</task-notification>"
# Bounded: a million letters are not a name, and thousands of digits are not a count.
_USAGE_COUNT = re.compile(r"<(\w{1,40})>\s{0,9}(\d{1,18})\s{0,9}</\1>|\b(\w{1,40}):\s{0,9}(\d{1,18})\b")


class Notification(Struct, frozen=True):
    """The end of a background task: an agent, a shell command, a workflow.

    `task` is the agent's id, for agents. `usage` are the counts as they are written: an agent's context, not its cost.
    """

    task: str
    entry: Entry
    call: CallId | None = None
    status: str | None = None
    summary: str | None = None
    result: str | None = None
    output_file: str | None = None
    usage: dict[str, int] = {}


def find_notifications(entries: Iterable[Entry]) -> list[Notification]:
    """Return every notification once. If it was queued and then delivered to the model, the later row counts."""
    entries = list(entries)
    queued: list[tuple[int, str]] = []
    delivered: dict[object, list[tuple[int, str]]] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, QueueOperationEntry):
            queued += ((at, text) for text in _tag_contents(entry.text) if entry.operation == "enqueue")
        elif row_texts := [(at, text) for text in _tag_contents(_program_text(entry))]:
            delivered[entry.uuid or at] = row_texts  # a row that is written again is the same one
    texts = [pair for row_texts in delivered.values() for pair in row_texts]
    counts = Counter(text.strip() for _, text in texts)
    for at, text in queued:
        counts[text.strip()] -= 1
        if counts[text.strip()] < 0:
            texts.append((at, text))
    return [_parse_notification(text, entries[at]) for at, text in sorted(texts, key=lambda pair: pair[0])]


def _program_text(entry: Entry) -> str:
    """Return the text of a row that may contain a notification: Claude Code's own, not a person's who quotes one."""
    if isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, QueuedCommand):
        return extract_text(entry.attachment.prompt)
    if isinstance(entry, UserEntry):
        text = entry.text
        is_program = entry.origin is not None and entry.origin.kind == "task-notification"
        return (
            text
            if is_program or text.lstrip().startswith((_OPEN_TAG, "<system-reminder>", "[SYSTEM NOTIFICATION"))
            else ""
        )
    return ""


def _tag_contents(text: str) -> Iterator[str]:
    """Yield the content of each notification in a text."""
    start = text.find(_OPEN_TAG)
    while start >= 0:
        start += len(_OPEN_TAG)
        end = text.find(_CLOSE_TAG, start)
        if end < 0:
            return
        yield text[start:end]
        start = text.find(_OPEN_TAG, end)


def _parse_notification(text: str, entry: Entry) -> Notification:
    # A result may contain anything, even the other elements: those are searched outside of it.
    before, opened, rest = text.partition("<result>")
    result, _, after = rest.rpartition("</result>") if opened else ("", "", "")
    outside = before + after
    call = tag_text(outside, "tool-use-id")
    return Notification(
        task=tag_text(outside, "task-id") or "",
        entry=entry,
        call=CallId(call) if call else None,
        status=tag_text(outside, "status"),
        summary=unescape(tag_text(outside, "summary") or "") or None,
        result=(result or rest).strip() if opened else None,
        output_file=tag_text(outside, "output-file"),
        usage=_parse_usage(tag_text(outside, "usage") or ""),
    )


def _parse_usage(text: str) -> dict[str, int]:
    return {name or plain: int(count or number) for name, count, plain, number in _USAGE_COUNT.findall(text)}
