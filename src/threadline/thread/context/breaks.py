"""Cache breaks: requests that read much less from the cache than the one before had left there, and why."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise

from threadline.model.agent import Agent
from threadline.model.context import BreakCause, CacheBreak, Window
from threadline.model.thread import CompactionKind
from threadline.thread.context.changes import Changes
from threadline.thread.context.parents import Parents
from threadline.thread.context.windows import Sent

# Less than this is the ordinary loss at the end of a prompt: the last blocks stood behind the last cache mark.
LEAST_SHORTFALL = 2_000
LEAST_SHARE = 0.9
_MINUTE, _MINUTES, _HOUR = timedelta(minutes=1), timedelta(minutes=5), timedelta(hours=1)
_LONG = timedelta(hours=3)


def breaks(agent: Agent, sent: Sequence[Sent]) -> list[CacheBreak]:
    """Every cache break of an agent, in order.

    What a request could have read is what the one before read and wrote. The first request has none before it, and one
    whose size is not told is passed over.
    """
    told = [one for one in sent if one.window.told]
    causes = _Causes(agent, sent)
    found = []
    lifetime = _MINUTES
    for before, one in pairwise(told):
        lifetime = _lifetime(before) or lifetime
        expected, read = before.window.cached, one.window.cache_read
        shortfall = expected - read
        if shortfall < LEAST_SHORTFALL or read >= LEAST_SHARE * expected:
            continue
        gap = _gap(before.window, one.window)
        cause, evidence = causes.of(before, one, gap, lifetime)
        found.append(
            CacheBreak(
                request=one.window.number,
                turn=one.window.turn,
                place=one.window.place,
                time=one.window.time,
                cause=cause,
                evidence=evidence,
                expected=expected,
                cache_read=read,
                shortfall=shortfall,
                rewritten=min(shortfall, one.window.prompt - read),
                gap=gap,
            )
        )
    return found


def _gap(before: Window, after: Window) -> timedelta | None:
    """The time between the first rows of two requests, as near as rows tell when they were sent."""
    if before.time is None or after.time is None or after.time < before.time:
        return None
    return after.time - before.time


def _lifetime(sent: Sent) -> timedelta | None:
    """How long what a request wrote is kept: as it asked for, or as its writes were counted; None if it wrote none."""
    asked = next((row.prompt_cache_requested for row in sent.rows if row.prompt_cache_requested), None)
    if asked is not None:
        return _HOUR if asked == "1h" else _MINUTES
    if not sent.window.cache_write:
        return None
    return _HOUR if sent.window.cache_write_1h >= sent.window.cache_write_5m else _MINUTES


class _Causes:
    """Asks the transcript for the cause of a break, question by question."""

    def __init__(self, agent: Agent, sent: Sequence[Sent]) -> None:
        self._parents = Parents(agent.entries, sent)
        self._changes = Changes(agent.entries)
        rows = {id(one.boundary or one.summary): one for one in agent.compactions}
        at = [(at, rows[id(entry)]) for at, entry in enumerate(agent.entries) if id(entry) in rows]
        self._compacted, self._compactions = [one[0] for one in at], [one[1] for one in at]

    def of(self, before: Sent, one: Sent, gap: timedelta | None, lifetime: timedelta) -> tuple[BreakCause, str]:
        """The likely cause and its evidence: the first question that is answered with yes."""
        questions: tuple[tuple[BreakCause, Callable[[], str | None]], ...] = (
            (BreakCause.MODEL, lambda: _model(before.window, one.window)),
            (BreakCause.COMPACTION, lambda: self._compaction(before, one)),
            (BreakCause.BRANCH, lambda: self._branch(before, one)),
            (BreakCause.IDLE, lambda: _idle(gap, lifetime)),
            (BreakCause.TOOLS, lambda: self._changes.tools(before, one)),
            (BreakCause.SETTINGS, lambda: self._changes.settings(before, one)),
            (BreakCause.RESTART, lambda: self._changes.restart(before, one)),
        )
        answers = ((cause, answer) for cause, ask in questions if (answer := ask()) is not None)
        return next(answers, (BreakCause.UNKNOWN, _unknown(one.window)))

    def _compaction(self, before: Sent, one: Sent) -> str | None:
        """A compaction whose row stands between the two."""
        at = bisect_right(self._compacted, before.first)
        if at == len(self._compacted) or self._compacted[at] >= one.first:
            return None
        found = self._compactions[at]
        blanked = found.kind is CompactionKind.MICRO
        what = "old results were blanked" if blanked else "the conversation was replaced by a summary"
        return f"{what} at line {found.place.line}"

    def _branch(self, before: Sent, one: Sent) -> str | None:
        """The conversation went back: the request goes on from an earlier one than the one before it."""
        above = self._parents.request_before(one)
        if above is None or above >= before.window.number:
            return None
        back = before.window.number - above
        return f"the conversation went back by {back} request{'s' if back > 1 else ''}"


def _model(before: Window, after: Window) -> str | None:
    if not before.model or not after.model or before.model == after.model:
        return None
    return f"{before.model} answered before, {after.model} now; each model has a cache of its own"


def _idle(gap: timedelta | None, lifetime: timedelta) -> str | None:
    if gap is None or gap <= lifetime:
        return None
    kept = "an hour" if lifetime == _HOUR else "5 minutes"
    passed = f"{gap // _MINUTE} minutes" if gap < _LONG else f"{gap // _HOUR} hours"
    return f"{passed} since the request before, and what that wrote is kept for {kept}"


def _unknown(after: Window) -> str:
    if not after.cache_read:
        return "nothing was read from the cache, and the transcript does not tell why"
    return f"only the first {after.cache_read:,} tokens were read, and the transcript does not tell why"
