"""The totals that Claude Code wrote into a transcript, found by their bytes; money is kept to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import msgspec
from msgspec import Raw, Struct, field

from threadline.errors import Error
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.reported import CostState, Tokens
from threadline.parse.line_numbers import LineNumbers
from threadline.parse.lines_with import lines_with
from threadline.parse.run import REFUSALS

NEEDLE = b'"cost-state"'
_COMPACTION = b'"compact_boundary"'
# Nobody has spent this much in a session: a figure beyond it is damage, and would not add up exactly.
_MOST = Decimal(10**12)
_MOST_TOKENS = 2**53


class _Model(Struct, rename="camel"):
    input_tokens: Raw = Raw()
    output_tokens: Raw = Raw()
    cache_creation_input_tokens: Raw = Raw()
    cache_read_input_tokens: Raw = Raw()
    web_search_requests: Raw = Raw()
    cost_usd: Raw = field(default=Raw(), name="costUSD")


class _Row(Struct, rename="camel"):
    type: str | None = None
    session_id: str | None = None
    total_cost_usd: Raw = field(default=Raw(), name="totalCostUSD")
    has_unknown_model_cost: Raw = field(default=Raw(), name="hasUnknownModelCost")
    start_time: Raw = Raw()
    model_usage: Raw = Raw()


class _Boundary(Struct):
    type: str | None = None
    subtype: str | None = None


class CostStates(Struct, frozen=True):
    """The totals of one transcript in file order, and those that could not be read."""

    states: tuple[CostState, ...] = ()
    problems: tuple[Problem, ...] = ()


_decode = msgspec.json.Decoder(_Row).decode
_decode_models = msgspec.json.Decoder(dict[str, _Model]).decode
_decode_boundary = msgspec.json.Decoder(_Boundary).decode


def cost_states(path: str | Path) -> CostStates:
    """Every total in a transcript. Refusals of the machine and totals that are no numbers become problems."""
    states: list[CostState] = []
    problems: list[Problem] = []
    numbers = LineNumbers(str(path))
    try:
        for found in lines_with(path, NEEDLE):
            for offset, line in zip(found.offsets, found.lines, strict=True):
                place = Place(str(path), numbers(offset), offset)
                try:
                    row = _decode(line)
                except REFUSALS:
                    problems.append(Problem(ProblemKind.FOREIGN, place, "a line with a total that cannot be read"))
                    continue
                if row.type == "cost-state":
                    states += _state(row, place, problems)
    except Error as error:
        problems.append(Problem(ProblemKind.UNREADABLE, Place(str(path)), str(error), recovered=False))
    return CostStates(tuple(states), tuple(problems))


def compactions(path: str | Path) -> list[int]:
    """Where (in bytes) a transcript was compacted; none where it cannot be read."""
    offsets: list[int] = []
    try:
        for found in lines_with(path, _COMPACTION):
            offsets += [offset for offset, line in zip(found.offsets, found.lines, strict=True) if _is_boundary(line)]
    except Error:
        return offsets
    return offsets


def _is_boundary(line: bytes) -> bool:
    try:
        row = _decode_boundary(line)
    except REFUSALS:
        return False
    return row.type == "system" and row.subtype == "compact_boundary"


def _state(row: _Row, place: Place, problems: list[Problem]) -> Iterator[CostState]:
    amount = _money(row.total_cost_usd)
    if amount is None:
        problems.append(Problem(ProblemKind.WRONG_TYPE, place.within("$.totalCostUSD"), "a total that is no amount"))
        return
    try:
        models = _decode_models(row.model_usage) if bytes(row.model_usage) else {}
    except REFUSALS:
        models = {}
        problems.append(Problem(ProblemKind.WRONG_TYPE, place.within("$.modelUsage"), "not the usage of models"))
    yield CostState(
        place,
        row.session_id,
        amount,
        bytes(row.has_unknown_model_cost) == b"true",
        tuple(_tokens(name, model) for name, model in models.items()),
        tuple((name, _money(model.cost_usd) or Decimal(0)) for name, model in models.items()),
        bytes(row.start_time).decode("ascii", "replace") or None,
    )


def _tokens(name: str, model: _Model) -> Tokens:
    return Tokens(
        name,
        _count(model.input_tokens),
        _count(model.output_tokens),
        _count(model.cache_creation_input_tokens),
        _count(model.cache_read_input_tokens),
        _count(model.web_search_requests),
    )


def _count(raw: Raw) -> int:
    written = bytes(raw)
    return int(written) if written.isdigit() and len(written) <= len(str(_MOST_TOKENS)) else 0


def _money(raw: Raw) -> Decimal | None:
    try:
        amount = Decimal(bytes(raw).decode("ascii"))
    except (ArithmeticError, UnicodeDecodeError):
        return None
    return amount if amount.is_finite() and 0 <= amount < _MOST else None
