"""Spending: what a session spent, in all and message by message; an index knows it, and else its transcripts tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.model.ids import MessageId
from threadline.model.rate import EXACT
from threadline.model.sum import Sum
from threadline.render.html.figures import Figure, Figures

if TYPE_CHECKING:
    from threadline.archive import Standing
    from threadline.load import Session
    from threadline.model.context import Window


class Spent(Struct, frozen=True):
    """What a session spent in all, agents included, and what each message cost as far as a price is known."""

    total: Sum
    amounts: Mapping[MessageId, Decimal]

    def figures(self, windows: Iterable[Window]) -> Figures:
        """The messages of some windows in numbers."""
        return {
            message: Figure(
                model=one.model,
                context=one.prompt if one.told else None,
                output=one.output,
                amount=self.amounts.get(message),
            )
            for one in windows
            if (message := one.message) is not None
        }


def spent(session: Session, archive: Standing) -> Spent:
    """What a session spent."""
    if session.id is not None and archive.is_indexed:
        total = archive.ledger().where(session=str(session.id)).total
        known = archive.amounts(str(session.id))
        return Spent(total, {MessageId(message): amount for message, amount in known.items()})
    ledger = session.ledger
    return Spent(ledger.total, _added((one.message, one.amount) for one in ledger if one.amount is not None))


def _added(rows: Iterable[tuple[str, Decimal]]) -> dict[MessageId, Decimal]:
    found: dict[MessageId, Decimal] = {}
    for message, amount in rows:
        id_ = MessageId(message)
        found[id_] = EXACT.add(found[id_], amount) if id_ in found else amount
    return found
