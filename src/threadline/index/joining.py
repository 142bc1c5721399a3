"""Joining: rows of one message that were read at several times, as one sighting, as if they had been read at once."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.model.sighting import PLACEHOLDER, Sighting, is_before_final, number_of

_MOST_ROWS = 8 * 1024  # characters: beyond that, a gathering begins another sighting, too


def joined(told: Iterable[tuple[Sighting, bool]]) -> list[Sighting]:
    """The sightings of one key, in file order; with each, whether a row says more than a few tokens are."""
    made: dict[tuple[object, ...], tuple[Sighting, bool]] = {}
    full: list[Sighting] = []
    for one, tells in told:
        origin = one.origin
        group = (origin.transcript, origin.session, origin.agent, one.sent, one.repeated)
        known = made.get(group)
        if known is None or len(known[0].rows) > _MOST_ROWS:
            if known is not None:
                full.append(known[0])
            made[group] = one, tells
        else:
            made[group] = known[0], known[1] or tells
            _go_on(known[0], one, tells=known[1] or tells)
    return [*full, *(one for one, _tells in made.values())]


def _go_on(known: Sighting, more: Sighting, *, tells: bool) -> None:
    """Rows that came later: what tells more counts, and of what tells as much, the last."""
    known.rows += f" {more.rows}"
    known.calls += (call for call in more.calls if call.startswith(" ") or call not in known.calls)
    known.web_searches = max(known.web_searches, more.web_searches)
    if more.reported is not None:
        known.reported = max(known.reported, more.reported, key=number_of)
    if (more.output, more.tie) >= (known.output, known.tie):
        known.output, known.stopped, known.offset = more.output, more.stopped, more.offset
        known.model, known.passes = more.model, more.passes
        known.cache_write_5m, known.cache_write_1h = more.cache_write_5m, more.cache_write_1h
        known.speed, known.geo, known.tier = more.speed, more.geo, more.tier
    is_early = not known.stopped and is_before_final(known.origin.version)
    known.partial = is_early or (tells and known.output <= PLACEHOLDER)
