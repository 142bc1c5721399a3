"""The rule applied by hand: slow, plain and apart from the program, to check it against.

Every line is read with `json.loads`, every candidate is compared with every other, and amounts are plain `Decimal`s of
the price file. Nothing here is shared with `threadline`.
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
MOST_COUNT = 2**53


@dataclass
class Candidate:
    """One row that tells a usage."""

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
        """The usage that it tells."""
        usage: dict[str, Any] = self.message["usage"]
        return usage

    @property
    def writes(self) -> tuple[int, int]:
        """Cache writes: for five minutes, for an hour."""
        split = self.usage.get("cache_creation") or {}
        five, hour = count(split.get("ephemeral_5m_input_tokens")), count(split.get("ephemeral_1h_input_tokens"))
        flat = count(self.usage.get("cache_creation_input_tokens"))
        return (five + max(0, flat - five - hour), hour) if five + hour > 0 else (flat, 0)

    @property
    def triple(self) -> tuple[int, int, int]:
        """What was sent."""
        usage = self.usage
        return count(usage.get("input_tokens")), sum(self.writes), count(usage.get("cache_read_input_tokens"))

    @property
    def output(self) -> int:
        """The output that it tells."""
        return count(self.usage.get("output_tokens"))

    @property
    def scope(self) -> tuple[str | None, str | None]:
        """The session and the agent."""
        return self.row.get("sessionId"), self.agent

    @property
    def value(self) -> tuple[Any, ...]:
        """How much it tells."""
        stopped = self.message.get("stop_reason") is not None
        return self.output, sum(self.triple) + self.output, stopped, not self.row.get("isSidechain"), self.writes[1]

    @property
    def precedence(self) -> tuple[Any, ...]:
        """How early an original it is."""
        forked = bool(self.row.get("forkedFrom"))
        return forked, self.file.name.startswith(SIDE), self.began, self.row.get("timestamp", ""), self.line


@dataclass
class Figures:
    """What was spent."""

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
    """A count of tokens, or 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT else 0


def read(files: Iterable[Path]) -> tuple[list[Candidate], dict[str, tuple[int | None, bool]]]:
    """All candidates of the files, and what each call's result says: how many searches, and whether it succeeded."""
    found: list[Candidate] = []
    results: dict[str, tuple[int | None, bool]] = {}
    for file in files:
        rows = [(number, row) for number, row in enumerate(_rows(file), 1) if isinstance(row, dict)]
        began = next((row["timestamp"] for _, row in rows if isinstance(row.get("timestamp"), str)), "")
        for number, row in rows:
            results |= dict(_results(row))
            found += _candidates(file, number, began, row)
    return found, results


def _rows(file: Path) -> Iterator[Any]:
    for line in file.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except ValueError:
            yield None


def _candidates(file: Path, number: int, began: str, row: dict[str, Any]) -> Iterator[Candidate]:
    message, embedded, told = row.get("message"), False, row
    agent = row.get("agentId")
    if row.get("type") == "progress" and (row.get("data") or {}).get("type") == "agent_progress":
        told, embedded, agent = row["data"].get("message") or {}, True, row["data"].get("agentId")
        message = told.get("message")
    elif row.get("type") != "assistant":
        return
    if not isinstance(message, dict) or message.get("model") == "<synthetic>":
        return
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return
    split = usage.get("cache_creation") or {}
    if all(usage.get(name) is None for name in COUNTS) and all(one is None for one in split.values()):
        return
    key = message.get("id") or told.get("requestId") or told.get("uuid") or row.get("uuid") or f"{file}:{number}"
    named = file.name.removeprefix("agent-").removesuffix(".jsonl") if file.name.startswith("agent-") else None
    agent = agent or named or ("inside" if row.get("isSidechain") else None)
    yield Candidate(key, file, number, began, {**row, "uuid": told.get("uuid")}, message, embedded, agent)


def _results(row: dict[str, Any]) -> Iterator[tuple[str, tuple[int | None, bool]]]:
    content = (row.get("message") or {}).get("content") if row.get("type") == "user" else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            told = row.get("toolUseResult")
            said = told.get("searchCount") if isinstance(told, dict) else None
            yield block["tool_use_id"], (said, not block.get("is_error") and not isinstance(told, str))


def is_low(key: str) -> bool:
    """Whether an id has no sixteen random characters: times, counters, constants."""
    told = re.sub(r"^[a-z]+[_-]", "", key)
    return len(told) < 16 or told.isdigit()


def calls(found: list[Candidate]) -> Iterator[list[Candidate]]:
    """The candidates of each call."""
    keys: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in found:
        keys[candidate.key].append(candidate)
    for key, group in keys.items():
        low = is_low(key)
        own = [one for one in group if not one.embedded]
        kept = own + [
            one for one in group if one.embedded and not any(not low or other.scope == one.scope for other in own)
        ]
        yield from _split(kept, low=low)


def _split(group: list[Candidate], *, low: bool) -> Iterator[list[Candidate]]:
    def same(candidate: Candidate, other: Candidate) -> bool:
        if candidate.row["uuid"] is not None and candidate.row["uuid"] == other.row["uuid"]:
            return True
        return candidate.triple == other.triple and (not low or candidate.scope == other.scope)

    parts: list[list[Candidate]] = []
    for candidate in group:
        near = [part for part in parts if any(same(candidate, other) for other in part)]
        parts = [part for part in parts if part not in near] + [
            [candidate, *(other for part in near for other in part)]
        ]
    empty = [part for part in parts if all(one.triple == (0, 0, 0) for one in part)]
    full = sorted((part for part in parts if part not in empty), key=lambda part: min(one.precedence for one in part))
    for part in empty:
        scopes = {one.scope for one in part}
        homes = [home for home in full if not low or scopes & {one.scope for one in home}]
        if homes:
            homes[0].extend(part)
        else:
            full.append(part)
    yield from full


def by_hand(files: Iterable[Path]) -> Figures:
    """What was spent, by the rule and the list prices."""
    found, results = read(files)
    prices = json.loads(PRICES.read_text(), parse_float=Decimal)
    total = Figures()
    for group in calls(found):
        best = max(group, key=lambda one: one.value)
        owner = min(group, key=lambda one: one.precedence)
        searches = _searches(group, results)
        _add(total, best, owner.row.get("timestamp", "")[:10], searches, prices)
    return total


def _searches(group: list[Candidate], results: dict[str, tuple[int | None, bool]]) -> int:
    made = {
        block["id"]: block.get("name")
        for candidate in group
        for block in (candidate.message.get("content") or [])
        if isinstance(block, dict) and block.get("type") == "tool_use"
    }
    told = [results[id_] for id_, name in made.items() if name == "WebSearch" and id_ in results]
    client = sum((1 if said is None else said) if succeeded else 0 for said, succeeded in told)
    served = (count((candidate.usage.get("server_tool_use") or {}).get("web_search_requests")) for candidate in group)
    return max(client, *served)


def _add(total: Figures, best: Candidate, day: str, searches: int, prices: dict[str, Any]) -> None:
    total.charges += 1
    total.web_searches += searches
    advised = [one for one in best.usage.get("iterations") or () if one.get("type") == "advisor_message"]
    for model, usage in [(best.message.get("model"), best.usage), *((one.get("model"), one) for one in advised)]:
        told = Candidate("", best.file, 0, "", {}, {"usage": usage}, embedded=False, agent=None)
        five, hour = told.writes
        total.input += told.triple[0]
        total.output += told.output
        total.cache_write += five + hour
        total.cache_write_1h += hour
        total.cache_read += told.triple[2]
        price = _price(prices, model or "", day, sum(told.triple), best.usage)
        if price is None:
            total.unpriced += 1
            continue
        counts = (told.triple[0], told.output, five, hour, told.triple[2])
        names = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
        each = (Decimal(number) * price[name] for name, number in zip(names, counts, strict=True))
        total.amount += sum(each, Decimal(0)) / Decimal(1_000_000)
        total.amount += Decimal(searches) * Decimal("0.01") if usage is best.usage else 0


def _price(
    prices: dict[str, Any], model: str, day: str, prompt: int, usage: dict[str, Any]
) -> dict[str, Decimal] | None:
    short = re.sub(r"-\d{8}$", "", model)
    known = next((one for key, one in prices["models"].items() if short in {key, *one.get("aliases", ())}), None)
    if known is None:
        return None
    for period in known["periods"]:
        if (period.get("from") or "") <= day < (period.get("to") or "9999-99"):
            long = period.get("long_context")
            row = long if long and prompt > long["over_prompt_tokens"] else period
            times = Decimal(1)
            if usage.get("speed") == "fast":
                fast = [one for one in known.get("fast", ()) if (one.get("from") or "") <= day]
                if not fast:
                    return None
                times = Decimal(fast[0]["multiplier"])
            if usage.get("inference_geo") == "us":
                times *= Decimal(known.get("us_inference_multiplier") or 1)
            return {name: Decimal(row[name]) * times for name in row if name in NAMES}
    return None


NAMES = frozenset({"input", "output", "cache_write_5m", "cache_write_1h", "cache_read"})
