"""The cases of the ledger, and the notation in which `out.json` states what is expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import threadline
from threadline.account import Ledger
from threadline.model.ledger import Charge, Sum, sum_fields
from threadline.model.places import Place

CORPUS = Path(__file__).parent / "cases"
CASES = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir())


def expected(case: str) -> dict[str, Any]:
    """Return what a case expects."""
    expectation: dict[str, Any] = json.loads((CORPUS / case / "out.json").read_bytes())
    return expectation


def homes(case: str) -> list[Path]:
    """Return the homes of a case: one, unless it names several."""
    top = CORPUS / case / "in"
    return [top / name for name in expected(case).get("homes", [""])]


def ledger(case: str) -> Ledger:
    """Build the ledger of a case, with the prices that come with threadline."""
    return threadline.ledger(homes(case), jobs=1)


def sorted_charges(ledger_: Ledger) -> list[Charge]:
    """Return the charges sorted by time, then by id."""
    return sorted(ledger_, key=lambda charge: (charge.timestamp, charge.message, charge.part, charge.input))


def place_text(place_text: Place) -> str:
    """Return a line as its file below `projects` and its number."""
    return f"{place_text.transcript.partition('/in/')[2].partition('projects/')[2]}:{place_text.line}"


def _amount(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount.normalize())


CHARGE_FIELDS: dict[str, Callable[[Charge], Any]] = {
    "message": lambda charge: charge.message,
    "model": lambda charge: charge.model,
    "input": lambda charge: charge.input,
    "output": lambda charge: charge.output,
    "cache_write_5m": lambda charge: charge.cache_write_5m,
    "cache_write_1h": lambda charge: charge.cache_write_1h,
    "cache_read": lambda charge: charge.cache_read,
    "web_searches": lambda charge: charge.web_searches,
    "amount": lambda charge: _amount(charge.amount),
    "reported": lambda charge: _amount(charge.reported),
    "session": lambda charge: charge.session,
    "agent": lambda charge: charge.agent,
    "time": lambda charge: charge.owner.time,
    "flags": lambda charge: [flag.value for flag in charge.flags],
    "calls": lambda charge: list(charge.calls),
    "counted": lambda charge: place_text(charge.place),
    "set_aside": lambda charge: {place_text(copy.place): copy.reason.name for copy in charge.set_aside},
    "places": lambda charge: sorted([place_text(charge.place), *(place_text(copy.place) for copy in charge.set_aside)]),
}


def charge_fields(charge: Charge, names: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a charge that a case states."""
    return {name: CHARGE_FIELDS[name](charge) for name in names}


def sum_values(total: Sum, names: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a sum that a case states."""
    values = {**sum_fields(total), "amount": _amount(total.amount)}
    return {name: values[name] for name in names}
