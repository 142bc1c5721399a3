"""A slow, plain reference implementation of the ledger, to compare threadline with.

Every line is read with `json.loads`, every candidate is compared with every other, and amounts are plain `Decimal`s of
the price file. It shares no code with `threadline`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

PRICES = Path(__file__).parents[2] / "src/threadline/account/prices.json"
COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
SIDE = ("agent-acompact-", "agent-aside_question-", "agent-aprompt_suggestion-", "agent-asession_memory-")
MAX_COUNT = 2**53


@dataclass
class Candidate:
    """A row that reports usage."""

    key: str
    file: Path
    line: int
    began: str
    row: dict[str, Any]
    message: dict[str, Any]
    embedded: bool
    agent: str | None

    @property
    def usage(self) -> dict[str, Any]:
        """The usage that the row reports."""
        usage: dict[str, Any] = self.message["usage"]
        return usage

    @property
    def writes(self) -> tuple[int, int]:
        """Cache writes: for five minutes and for an hour."""
        split = self.usage.get("cache_creation") or {}
        five, hour = count(split.get("ephemeral_5m_input_tokens")), count(split.get("ephemeral_1h_input_tokens"))
        flat = count(self.usage.get("cache_creation_input_tokens"))
        return (five + max(0, flat - five - hour), hour) if five + hour > 0 else (flat, 0)

    @property
    def sent(self) -> tuple[int, int, int]:
        """The tokens that were sent: input, cache writes and cache reads."""
        usage = self.usage
        return count(usage.get("input_tokens")), sum(self.writes), count(usage.get("cache_read_input_tokens"))

    @property
    def output(self) -> int:
        """The output tokens that the row reports."""
        return count(self.usage.get("output_tokens"))

    @property
    def scope(self) -> tuple[str | None, str | None]:
        """The session and the agent."""
        return self.row.get("sessionId"), self.agent

    @property
    def completeness(self) -> tuple[Any, ...]:
        """Sort key: how complete the row is."""
        stopped = self.message.get("stop_reason") is not None
        return self.output, sum(self.sent) + self.output, stopped, not self.row.get("isSidechain"), self.writes[1]

    @property
    def precedence(self) -> tuple[Any, ...]:
        """Sort key: the original comes first."""
        named = self.row.get("sessionId")
        is_foreign = not self.file.name.startswith("agent-") and named is not None and named != self.file.stem
        return (
            bool(self.row.get("forkedFrom")) or is_foreign,
            self.file.name.startswith(SIDE),
            self.began,
            self.row.get("timestamp", ""),
            self.agent is not None,
            self.line,
        )


@dataclass
class Figures:
    """The totals of a ledger."""

    charges: int = 0
    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    web_searches: int = 0
    amount: Decimal = Decimal(0)
    unpriced: int = 0
    searched: dict[str, int] = field(default_factory=dict)


def count(value: Any) -> int:
    """Return a count of tokens, or 0 if the value is not a valid count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else 0


def read_candidates(files: Iterable[Path]) -> tuple[list[Candidate], dict[str, tuple[int | None, bool]]]:
    """Read all candidates, and for each call's result how many searches it reports and whether it succeeded."""
    candidates: list[Candidate] = []
    results: dict[str, tuple[int | None, bool]] = {}
    for file in files:
        rows = [(number, row) for number, row in enumerate(_rows(file), 1) if isinstance(row, dict)]
        began = next((row["timestamp"] for _, row in rows if isinstance(row.get("timestamp"), str)), "")
        for number, row in rows:
            results |= dict(_results(row))
            candidates += _candidates(file, number, began, row)
    return candidates, results


def _rows(file: Path) -> Iterator[Any]:
    for line in file.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except ValueError:
            yield None


def _candidates(file: Path, number: int, began: str, row: dict[str, Any]) -> Iterator[Candidate]:
    message, embedded, source = row.get("message"), False, row
    agent = row.get("agentId")
    if row.get("type") == "progress" and (row.get("data") or {}).get("type") == "agent_progress":
        source, embedded, agent = row["data"].get("message") or {}, True, row["data"].get("agentId")
        message = source.get("message")
    elif row.get("type") != "assistant":
        return
    if not isinstance(message, dict) or message.get("model") == "<synthetic>":
        return
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return
    split = usage.get("cache_creation") or {}
    if all(usage.get(name) is None for name in COUNTS) and all(value is None for value in split.values()):
        return
    key = message.get("id") or source.get("requestId") or source.get("uuid") or row.get("uuid") or f"{file}:{number}"
    file_agent = file.name.removeprefix("agent-").removesuffix(".jsonl") if file.name.startswith("agent-") else None
    agent = agent or file_agent or ("inside" if row.get("isSidechain") else None)
    yield Candidate(key, file, number, began, {**row, "uuid": source.get("uuid")}, message, embedded, agent)


def _results(row: dict[str, Any]) -> Iterator[tuple[str, tuple[int | None, bool]]]:
    content = (row.get("message") or {}).get("content") if row.get("type") == "user" else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            details = row.get("toolUseResult")
            search_count = details.get("searchCount") if isinstance(details, dict) else None
            yield block["tool_use_id"], (search_count, not block.get("is_error") and not isinstance(details, str))


def is_low_entropy(key: str) -> bool:
    """Whether an id has fewer than sixteen random characters: times, counters, constants."""
    suffix = re.sub(r"^[a-z]+[_-]", "", key)
    return len(suffix) < 16 or suffix.isdigit()


def group_by_call(candidates: list[Candidate]) -> Iterator[list[Candidate]]:
    """Yield the candidates of each call."""
    keys: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        keys[candidate.key].append(candidate)
    for key, group in keys.items():
        low_entropy = is_low_entropy(key)
        originals = [candidate for candidate in group if not candidate.embedded]
        counted = originals + [
            candidate
            for candidate in group
            if candidate.embedded and not any(not low_entropy or other.scope == candidate.scope for other in originals)
        ]
        yield from _split(counted, low_entropy=low_entropy)


def _split(group: list[Candidate], *, low_entropy: bool) -> Iterator[list[Candidate]]:
    def same(candidate: Candidate, other: Candidate) -> bool:
        if candidate.row["uuid"] is not None and candidate.row["uuid"] == other.row["uuid"]:
            return True
        return candidate.sent == other.sent and (not low_entropy or candidate.scope == other.scope)

    parts: list[list[Candidate]] = []
    for candidate in group:
        matching = [part for part in parts if any(same(candidate, other) for other in part)]
        parts = [part for part in parts if part not in matching] + [
            [candidate, *(other for part in matching for other in part)]
        ]
    empty = [part for part in parts if all(candidate.sent == (0, 0, 0) for candidate in part)]
    full = sorted(
        (part for part in parts if part not in empty), key=lambda part: min(candidate.precedence for candidate in part)
    )
    for part in empty:
        scopes = {candidate.scope for candidate in part}
        matches = [match for match in full if not low_entropy or scopes & {candidate.scope for candidate in match}]
        if matches:
            matches[0].extend(part)
        else:
            full.append(part)
    yield from full


def compute_reference(files: Iterable[Path]) -> Figures:
    """Compute what was spent, by the rule and the list prices."""
    candidates, results = read_candidates(files)
    prices = json.loads(PRICES.read_text(), parse_float=Decimal)
    total = Figures()
    for group in group_by_call(candidates):
        best = max(group, key=lambda candidate: candidate.completeness)
        owner = min(group, key=lambda candidate: candidate.precedence)
        searches = _searches(group, results)
        _add(total, best, owner.row.get("timestamp", "")[:10], searches, prices)
    return total


def _searches(group: list[Candidate], results: dict[str, tuple[int | None, bool]]) -> int:
    tools = {
        block["id"]: block.get("name")
        for candidate in group
        for block in (candidate.message.get("content") or [])
        if isinstance(block, dict) and block.get("type") == "tool_use"
    }
    reports = [results[id_] for id_, name in tools.items() if name == "WebSearch" and id_ in results]
    client = sum(
        (1 if search_count is None else search_count) if succeeded else 0 for search_count, succeeded in reports
    )
    served = (count((candidate.usage.get("server_tool_use") or {}).get("web_search_requests")) for candidate in group)
    return max(client, *served)


def _add(total: Figures, best: Candidate, day: str, searches: int, prices: dict[str, Any]) -> None:
    total.charges += 1
    total.web_searches += searches
    advisor_passes = [
        advisor for advisor in best.usage.get("iterations") or () if advisor.get("type") == "advisor_message"
    ]
    for model, usage in [
        (best.message.get("model"), best.usage),
        *((advisor.get("model"), advisor) for advisor in advisor_passes),
    ]:
        candidate = Candidate("", best.file, 0, "", {}, {"usage": usage}, embedded=False, agent=None)
        five, hour = candidate.writes
        total.input += candidate.sent[0]
        total.output += candidate.output
        total.cache_write += five + hour
        total.cache_write_1h += hour
        total.cache_read += candidate.sent[2]
        price = _price(prices, model or "", day, sum(candidate.sent), best.usage)
        if price is None:
            total.unpriced += 1
            continue
        counts = (candidate.sent[0], candidate.output, five, hour, candidate.sent[2])
        names = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
        each = (Decimal(number) * price[name] for name, number in zip(names, counts, strict=True))
        total.amount += sum(each, Decimal(0)) / Decimal(1_000_000)
        total.amount += Decimal(searches) * Decimal("0.01") if usage is best.usage else 0


def _price(
    prices: dict[str, Any], model: str, day: str, prompt: int, usage: dict[str, Any]
) -> dict[str, Decimal] | None:
    short = re.sub(r"-\d{8}$", "", model)
    prices_of_model = next(
        (entry for key, entry in prices["models"].items() if short in {key, *entry.get("aliases", ())}), None
    )
    if prices_of_model is None:
        return None
    for period in prices_of_model["periods"]:
        if (period.get("from") or "") <= day < (period.get("to") or "9999-99"):
            long = period.get("long_context")
            row = long if long and prompt > long["over_prompt_tokens"] else period
            times = Decimal(1)
            if usage.get("speed") == "fast":
                fast = [entry for entry in prices_of_model.get("fast", ()) if (entry.get("from") or "") <= day]
                if not fast:
                    return None
                times = Decimal(fast[0]["multiplier"])
            if usage.get("inference_geo") == "us":
                times *= Decimal(prices_of_model.get("us_inference_multiplier") or 1)
            return {name: Decimal(row[name]) * times for name in row if name in NAMES}
    return None


NAMES = frozenset({"input", "output", "cache_write_5m", "cache_write_1h", "cache_read"})
