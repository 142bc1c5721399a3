"""Read a transcript again for receipts and reconciliation.

`read_mentions` returns the counts of each line, where the ledger keeps only the most complete ones. `read_cost_states`
returns the totals that Claude Code itself wrote (`cost-state`). Amounts are exact decimals, never floats.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from decimal import Decimal
from pathlib import Path

import msgspec
from msgspec import Raw, Struct, field

from threadline.errors import Error
from threadline.json_values import DECODE_ERRORS
from threadline.model.ledger import sum_amounts
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.receipts import LineCounts
from threadline.model.reported_costs import CostState, ModelTokens, ReportedSource
from threadline.parse.lines import Chunk, LineNumbers, MatchingLines, find_lines, find_lines_in_block
from threadline.parse.reader import TranscriptReader
from threadline.parse.usage import USAGE_NEEDLE, CacheWrites, EntryRow, MessageRow, UsageRow, recover_rows, split_writes

_COMPACTION_NEEDLE = b'"compact_boundary"'


class _CompactMetadata(Struct, gc=False, rename="camel"):
    pre_tokens: int | None = None


class CompactionBoundary(Struct, gc=False, rename="camel"):
    """A compaction's boundary: when it was, and how much was summarised."""

    kind: str = field(default="", name="type")
    subtype: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    compact_metadata: _CompactMetadata | None = None

    @property
    def tokens(self) -> int:
        """How many tokens were in the context before; 0 if unknown."""
        return (self.compact_metadata.pre_tokens or 0) if self.compact_metadata is not None else 0


class Mentions(Struct, gc=False):
    """The counts of a transcript's lines, by offset and message, its compactions and problems.

    `unreadable` says why the transcript could not be read.
    """

    counts: dict[tuple[int, str], list[LineCounts]] = {}
    compactions: list[CompactionBoundary] = []
    problems: list[Problem] = []
    unreadable: str | None = None


_decode_row = msgspec.json.Decoder(EntryRow).decode
_decode_compaction = msgspec.json.Decoder(CompactionBoundary).decode
_check_json = msgspec.json.Decoder(msgspec.Raw).decode


def read_mentions(path: str | Path, offsets: Container[int]) -> Mentions:
    """Read a transcript again for the lines that begin at these offsets."""
    mentions = Mentions()
    reader, numbers = TranscriptReader(str(path)), LineNumbers(str(path))
    boundaries: dict[tuple[str | None, str | None], CompactionBoundary] = {}
    try:
        for matches in find_lines(path, USAGE_NEEDLE):
            mentions.problems += _damage_problems(reader, matches, numbers)
            for offset, row in _rows_at_offsets(Path(path), matches, offsets):
                for key, counts in _row_counts(row, f"{path}@{offset}"):
                    mentions.counts.setdefault((offset, key), []).append(counts)
            for boundary in _find_compactions(matches.block):
                boundaries[boundary.uuid, boundary.timestamp] = boundary
    except Error as error:
        mentions.unreadable = str(error)
    mentions.compactions += boundaries.values()
    return mentions


def _rows_at_offsets(path: Path, matches: MatchingLines, offsets: Container[int]) -> Iterator[tuple[int, EntryRow]]:
    for offset, line in zip(matches.offsets, matches.lines, strict=True):
        if offset in offsets:
            try:
                yield offset, _decode_row(line)
            except DECODE_ERRORS:
                for row in recover_rows(path, offset, line):
                    yield offset, row


def _row_counts(row: EntryRow, place: str) -> Iterator[tuple[str, LineCounts]]:
    """Yield a row's counts with the key that the ledger uses for its message."""
    if row.kind == "assistant" and row.message is not None:
        key = row.message.id or row.request_id or row.uuid or place
        yield from _message_counts(key, row.message, row.request_id)
    elif row.kind == "progress" and row.data is not None and row.data.message is not None:
        repeated = row.data.message
        if repeated.message is not None:
            key = repeated.message.id or repeated.request_id or repeated.uuid or row.uuid or place
            yield from _message_counts(key, repeated.message, repeated.request_id)


def _message_counts(key: str, message: MessageRow, request: str | None) -> Iterator[tuple[str, LineCounts]]:
    usage: UsageRow | None = message.usage
    if usage is None:
        return
    five, hour = split_writes(usage.cache_creation_input_tokens or 0, usage.cache_creation or CacheWrites())
    yield (
        key,
        LineCounts(
            input=usage.input_tokens or 0,
            output=usage.output_tokens or 0,
            cache_write_5m=five,
            cache_write_1h=hour,
            cache_read=usage.cache_read_input_tokens or 0,
            stop_reason=message.stop_reason,
            request=request,
        ),
    )


def _damage_problems(reader: TranscriptReader, matches: MatchingLines, numbers: LineNumbers) -> Iterator[Problem]:
    """Yield the problems of lines with a token count that cannot be read completely."""
    for offset, line in zip(matches.offsets, matches.lines, strict=True):
        try:
            _check_json(line)
        except DECODE_ERRORS:
            for entry in reader.decode_line_by_line(Chunk([line], offset), numbers(offset)):
                yield from (problem for problem in entry.line.problems if problem.lost or not problem.recovered)


def _find_compactions(block: bytes) -> Iterator[CompactionBoundary]:
    for line in find_lines_in_block(block, _COMPACTION_NEEDLE):
        try:
            boundary = _decode_compaction(line)
        except DECODE_ERRORS:
            continue  # cut at the end of the block, and complete in the next; or a text that quotes the word
        if boundary.kind == "system" and boundary.subtype == "compact_boundary":
            yield boundary


COST_STATE_NEEDLE = b'"cost-state"'
_MODEL_USAGE_NEEDLE = b'"modelUsage"'
_CHAIN_KINDS = frozenset({"user", "assistant", "system", "attachment", "progress"})
# No session costs this much: a larger figure is damage, and would not add up exactly.
_MAX_COST = Decimal(10**12)
_MAX_TOKENS = 2**53


class _ModelRow(Struct, rename="camel"):
    input_tokens: Raw = Raw()
    output_tokens: Raw = Raw()
    cache_creation_input_tokens: Raw = Raw()
    cache_read_input_tokens: Raw = Raw()
    web_search_requests: Raw = Raw()
    cost_usd: Raw = field(default=Raw(), name="costUSD")


class _CostStateRow(Struct, rename="camel"):
    type: str | None = None
    session_id: str | None = None
    total_cost_usd: Raw = field(default=Raw(), name="totalCostUSD")
    has_unknown_model_cost: Raw = field(default=Raw(), name="hasUnknownModelCost")
    start_time: Raw = Raw()
    model_usage: Raw = Raw()


class _BoundaryRow(Struct):
    type: str | None = None
    subtype: str | None = None


class CostStates(Struct, frozen=True):
    """The totals of one transcript in file order, and problems for those that could not be read."""

    states: tuple[CostState, ...] = ()
    problems: tuple[Problem, ...] = ()


_decode_cost_state = msgspec.json.Decoder(_CostStateRow).decode
_decode_models = msgspec.json.Decoder(dict[str, _ModelRow]).decode
_decode_boundary = msgspec.json.Decoder(_BoundaryRow).decode


def read_cost_states(path: str | Path) -> CostStates:
    """Return every total in a transcript. An unreadable file and totals that are not numbers become problems."""
    states: dict[Place, CostState] = {}  # a line without its newline may be in two blocks
    problems: list[Problem] = []
    numbers = LineNumbers(str(path))
    try:
        for matches in find_lines(path, COST_STATE_NEEDLE):
            states |= {state.place: state for state in _model_usage_totals(matches, path, numbers)}
            for offset, line in zip(matches.offsets, matches.lines, strict=True):
                place = Place(str(path), numbers(offset), offset)
                try:
                    row = _decode_cost_state(line)
                except DECODE_ERRORS:
                    problems.append(Problem(ProblemKind.FOREIGN, place, "a line with a total that cannot be read"))
                    continue
                if row.type == "cost-state":
                    states |= {state.place: state for state in _parse_cost_state(row, place, problems)}
    except Error as error:
        problems.append(Problem(ProblemKind.UNREADABLE, Place(str(path)), str(error), recovered=False))
    return CostStates(tuple(states.values()), tuple(problems))


def _model_usage_totals(matches: MatchingLines, path: str | Path, numbers: LineNumbers) -> Iterator[CostState]:
    """Yield the totals on rows of the conversation that have `modelUsage` with amounts."""
    block = matches.block
    at = block.find(_MODEL_USAGE_NEEDLE)
    while at >= 0:
        start, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at) + 1 or len(block)
        at = block.find(_MODEL_USAGE_NEEDLE, end)
        try:
            row = _decode_cost_state(block[start:end])
            models = _decode_models(row.model_usage) if row.type in _CHAIN_KINDS and bytes(row.model_usage) else {}
        except DECODE_ERRORS:
            continue  # cut at the end of the block, and complete in the next; or a text that quotes the word
        costs = [
            (name, amount) for name, model in models.items() if (amount := _parse_money(model.cost_usd)) is not None
        ]
        if costs:
            offset = matches.start + start
            yield CostState(
                Place(str(path), numbers(offset), offset),
                row.session_id,
                sum_amounts(amount for _, amount in costs),
                tokens=tuple(_model_tokens(name, model) for name, model in models.items()),
                costs=tuple(costs),
                source=ReportedSource.MODEL_USAGE,
            )


def find_compaction_offsets(path: str | Path) -> list[int]:
    """Return the offsets of a transcript's compactions; none if it cannot be read."""
    offsets: list[int] = []
    try:
        for matches in find_lines(path, _COMPACTION_NEEDLE):
            offsets += [
                offset for offset, line in zip(matches.offsets, matches.lines, strict=True) if _is_boundary(line)
            ]
    except Error:
        return offsets
    return offsets


def _is_boundary(line: bytes) -> bool:
    try:
        row = _decode_boundary(line)
    except DECODE_ERRORS:
        return False
    return row.type == "system" and row.subtype == "compact_boundary"


def _parse_cost_state(row: _CostStateRow, place: Place, problems: list[Problem]) -> Iterator[CostState]:
    amount = _parse_money(row.total_cost_usd)
    if amount is None:
        problems.append(
            Problem(ProblemKind.WRONG_TYPE, place.within("$.totalCostUSD"), "a total that is not an amount")
        )
        return
    try:
        models = _decode_models(row.model_usage) if bytes(row.model_usage) else {}
    except DECODE_ERRORS:
        models = {}
        problems.append(Problem(ProblemKind.WRONG_TYPE, place.within("$.modelUsage"), "not the usage of models"))
    yield CostState(
        place,
        row.session_id,
        amount,
        bytes(row.has_unknown_model_cost) == b"true",
        tuple(_model_tokens(name, model) for name, model in models.items()),
        tuple((name, _parse_money(model.cost_usd) or Decimal(0)) for name, model in models.items()),
        bytes(row.start_time).decode("ascii", "replace") or None,
    )


def _model_tokens(name: str, model: _ModelRow) -> ModelTokens:
    return ModelTokens(
        name,
        _parse_count(model.input_tokens),
        _parse_count(model.output_tokens),
        _parse_count(model.cache_creation_input_tokens),
        _parse_count(model.cache_read_input_tokens),
        _parse_count(model.web_search_requests),
    )


def _parse_count(raw: Raw) -> int:
    digits = bytes(raw)
    return int(digits) if digits.isdigit() and len(digits) <= len(str(_MAX_TOKENS)) else 0


def _parse_money(raw: Raw) -> Decimal | None:
    try:
        amount = Decimal(bytes(raw).decode("ascii"))
    except (ArithmeticError, UnicodeDecodeError):
        return None
    return amount if amount.is_finite() and 0 <= amount < _MAX_COST else None
