"""Background tasks of a session as its pages tell them: which call began one, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.model.call import Call
from threadline.model.session import Session
from threadline.render.outline import News, named


class Tasks:
    """What is told of background tasks. `by_entry` is the news that each entry tells, by the entry's name."""

    def __init__(self, whole: Session, news: Iterable[News]) -> None:
        self._calls = {call.id: call for call in whole.calls}
        self._started = {str(call.started): call for call in whole.calls if call.started is not None}
        self._ends: dict[str, News] = {}
        self.by_entry = by_entry(news)
        for told in (one for some in self.by_entry.values() for one in some):
            if (call := self.starter(told)) is not None:
                self._ends[call.id] = told

    def starter(self, news: News) -> Call | None:
        """The call that started the task."""
        return (self._calls.get(news.call) if news.call is not None else None) or self._started.get(news.task)

    def end(self, call: Call) -> News | None:
        """What became of the task that a call started."""
        return self._ends.get(call.id)


def by_entry(news: Iterable[News]) -> dict[str, list[News]]:
    """News by the name of the entry that tells it."""
    found: dict[str, list[News]] = {}
    for told in news:
        found.setdefault(named(told.entry), []).append(told)
    return found


def sentence(news: News) -> str:
    """What became of a task, in a line."""
    return news.summary or " ".join(filter(None, (news.task, news.status))) or "ended"


def answer(news: News) -> str | None:
    """What a task answered, if it said anything."""
    return news.result if news.result and news.result.strip() else None
