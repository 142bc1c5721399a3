"""Which request each request goes on from, by the rows' parents."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.model.entries import ChainEntry, Entry
from threadline.model.ids import EntryId
from threadline.thread.context.windows import Sent


class Parents:
    """The nearest request above any entry; each entry is walked once, however many ask."""

    def __init__(self, entries: Sequence[Entry], sent: Sequence[Sent]) -> None:
        self._above: dict[EntryId, EntryId | None] = {}
        for entry in entries:
            if isinstance(entry, ChainEntry) and entry.uuid is not None:
                self._above.setdefault(entry.uuid, entry.parent_uuid or None)
        self._number: dict[EntryId, int | None] = {}
        for one in reversed(sent):
            self._number.update((row.uuid, one.window.number) for row in one.rows if row.uuid is not None)

    def request_before(self, one: Sent) -> int | None:
        """The number of the request whose reply it goes on from; None where the rows lead nowhere."""
        return self._nearest(one.rows[0].parent_uuid or None)

    def _nearest(self, uuid: EntryId | None) -> int | None:
        path: list[EntryId] = []
        seen: set[EntryId] = set()
        while uuid is not None and uuid not in self._number and uuid not in seen:
            seen.add(uuid)
            path.append(uuid)
            uuid = self._above.get(uuid)
        found = self._number.get(uuid) if uuid is not None else None
        self._number.update(dict.fromkeys(path, found))
        return found
