"""Making charges again, with every line that tells of them, from what the index keeps of messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping

from threadline.account.charges import alone, charged
from threadline.account.rates import Rates
from threadline.account.rule import parted, settled
from threadline.index.seen import SeenAgain, ranks
from threadline.index.spread import KeptSpread
from threadline.model.charge import Charge


def made_of(
    connection: sqlite3.Connection,
    rates: Rates,
    types: Mapping[int, str | None],
    messages: str,
    given: Iterable[object] = (),
) -> Iterator[Charge]:
    """The charges of messages that a query names. `types` are those of agents whose rows do not say it."""
    seen = SeenAgain(connection, ranks(connection), types)
    spread = KeptSpread(connection, seen.numbers)
    for _number, key, group in seen.groups(messages, given):
        if len(group) == 1:
            yield from alone(group[0], rates)
        else:
            for part in parted(key, group):
                yield from charged(settled(part, spread), rates)
