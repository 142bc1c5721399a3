"""A session written by hand, which the shipped home has besides the generated ones.

`threadline demo` and the screenshots of the README begin with it, so that a reader finds a conversation that makes
sense: a bug, a failing test, an agent that looks for more, a fix, a question, and a commit.
"""

# ruff: noqa: RUF001 - the signs of a test runner

from __future__ import annotations

from difflib import SequenceMatcher
from random import Random
from typing import TYPE_CHECKING, Any

from tools.demo import agents, events
from tools.demo.agents import AgentTask, AgentWork, Outcome
from tools.demo.projects import KETTLE, Task
from tools.demo.session import Plan, Session, SessionResult
from tools.demo.tool_calls import Call, Workspace
from tools.demo.versions import ERAS
from tools.demo.writer import TranscriptWriter, uuid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tools.demo.text import Pools

PROJECT = KETTLE
_TASK = Task(
    "Same voucher accepted twice",
    "fix/same-voucher",
    "A customer used the voucher SPRING10 twice in one basket: they applied it, pressed Back, and applied it again. "
    "Write a failing test first, then fix it, please.",
)
_MODEL = "claude-opus-5-5"
_START = 1_794_661_320_000  # 2026-11-14 13:02 UTC, after all generated sessions
_SYSTEM_PROMPT = 21_000 * 4
"""The bytes of the system prompt and the tools."""

_BASKET, _TEST = "src/cart/basket.ts", "tests/cart/basket.test.ts"
_BASKET_BEFORE = """\
import { roundCents } from "../money";
import type { Voucher } from "../vouchers";

export interface Basket {
  id: string;
  lines: { sku: string; quantity: number; unitPrice: number }[];
  vouchers: Voucher[];
}

/** Add a voucher to a basket. */
export function applyVoucher(basket: Basket, voucher: Voucher, now = Date.now()): Basket {
  if (voucher.expiresAt < now) {
    throw new Error(`Voucher ${voucher.code} has expired`);
  }
  return { ...basket, vouchers: [...basket.vouchers, voucher] };
}

/** What the customer pays, in euros. */
export function total(basket: Basket): number {
  const goods = basket.lines.reduce((sum, line) => sum + line.quantity * line.unitPrice, 0);
  const discount = basket.vouchers.reduce((sum, voucher) => sum + goods * voucher.share, 0);
  return roundCents(Math.max(0, goods - discount));
}
"""
_BASKET_AFTER = _BASKET_BEFORE.replace(
    """\
/** Add a voucher to a basket. */
""",
    """\
/** Add a voucher to a basket. A voucher that the basket already has is not added again. */
""",
).replace(
    """\
  return { ...basket, vouchers: [...basket.vouchers, voucher] };
""",
    """\
  if (basket.vouchers.some((applied) => applied.code === voucher.code)) {
    return basket;
  }
  return { ...basket, vouchers: [...basket.vouchers, voucher] };
""",
)
_TEST_BEFORE = """\
import { describe, expect, it } from "vitest";
import { applyVoucher, total, type Basket } from "../../src/cart/basket";

const spring = { code: "SPRING10", share: 0.1, expiresAt: Date.parse("2027-06-01") };
const basket: Basket = { id: "b-1", lines: [{ sku: "teapot", quantity: 2, unitPrice: 25 }], vouchers: [] };

describe("applyVoucher", () => {
  it("reduces the total by the voucher's share", () => {
    expect(total(applyVoucher(basket, spring))).toBe(45);
  });
});
"""
_TEST_AFTER = (
    _TEST_BEFORE.removesuffix("});\n")
    + """\

  it("applies a voucher once, even if it is added again", () => {
    const once = applyVoucher(basket, spring);
    expect(total(applyVoucher(once, spring))).toBe(45);
  });
});
"""
)
_FAILED_TESTS = """\
 RUN  v3.2.4 /home/mara/src/kettle.shop

 ❯ tests/cart/basket.test.ts (2 tests | 1 failed) 9ms
   ✓ applyVoucher > reduces the total by the voucher's share 2ms
   × applyVoucher > applies a voucher once, even if it is added again 5ms
     → expected 40 to be 45

 Test Files  1 failed (1)
      Tests  1 failed | 1 passed (2)"""
_PASSED_TESTS = """\
 RUN  v3.2.4 /home/mara/src/kettle.shop

 ✓ tests/cart/basket.test.ts (2 tests) 6ms
 ✓ tests/cart/restore.test.ts (7 tests) 14ms
 ✓ tests/orders/place_order.test.ts (12 tests) 31ms

 Test Files  3 passed (3)
      Tests  21 passed (21)"""
_CALLERS = """\
src/cart/routes.ts:41:  const basket = applyVoucher(await loadBasket(id), voucher);
src/cart/restore.ts:18:      basket = applyVoucher(basket, voucher);
tests/cart/basket.test.ts:9:    expect(total(applyVoucher(basket, spring))).toBe(45);"""
_RESTORE = """\
/** Rebuild a basket from the customer's browser. */
export function restoreBasket(saved: SavedBasket, stored: Basket): Basket {
  let basket = stored;
  for (const voucher of saved.vouchers) {
    if (!basket.vouchers.includes(voucher)) {
      basket = applyVoucher(basket, voucher);
    }
  }
  return basket;
}
"""
_AGENT = AgentTask(
    "Explore",
    "Find other places that add vouchers",
    "applyVoucher in src/cart/basket.ts adds a voucher without checking whether the basket has it. Find every other "
    "place that adds a voucher to a basket, and say for each whether the same voucher can be added twice there. Do not "
    "change any file.",
)
_REPORT = """\
Two places add vouchers:

1. `src/cart/routes.ts:41` calls `applyVoucher` for each request. Pressing Back and submitting again sends the request \
twice, so this is how the customer did it.
2. `src/cart/restore.ts:18` has a check of its own, `basket.vouchers.includes(voucher)`. It compares objects, and the \
saved voucher is never the same object as the stored one, so **the check never holds**.

Nothing else writes to `basket.vouchers`. A check by code in `applyVoucher` covers both."""
_BASKETS = """\
 baskets | total
---------+--------
       3 | €14.20
(1 row)"""
_COMMIT = """\
[fix/same-voucher 7c41e0a] Apply each voucher once per basket
 2 files changed, 9 insertions(+), 1 deletion(-)"""


class Story(Session):
    """Writes the session, and the transcript of its agent."""

    def __init__(self, root: Path, pools: Pools) -> None:
        rng = Random("story")  # seeded, for invented text
        plan = Plan(
            identity=uuid(rng), project=PROJECT, era=ERAS[-1], size=1 << 20, start=_START, task=_TASK, agents=[0]
        )
        super().__init__(plan, root, rng, pools)
        self.facts["entrypoint"] = "cli"
        self.work.model = _MODEL
        self.work.meter.pending = _SYSTEM_PROMPT

    def write(self, previous: SessionResult | None = None) -> SessionResult:
        """Write everything."""
        del previous
        events.opening(self)
        self._fix()
        self._look_at_stored_baskets()
        self._commit()
        events.closing(self)
        self.writer.close()
        return self.result()

    def _fix(self) -> None:
        self._prompt(_TASK.prompt)
        self._act(
            "I'll start with the code that applies vouchers and its test.",
            _read(_BASKET, _BASKET_BEFORE),
            _read(_TEST, _TEST_BEFORE),
        )
        self._act(
            "`applyVoucher` appends whatever it is given, so applying SPRING10 twice takes off 20%. Here is a test "
            "that says it should not:",
            _edit(_TEST, _TEST_BEFORE, _TEST_AFTER),
        )
        self._act("", _bash("npx vitest run tests/cart/basket.test.ts", "Run the new test", _FAILED_TESTS, code=1))
        self._explore("The test fails as it should: 40 instead of 45. Before I fix it, is this the only way in?")
        self._act(
            "One check in `applyVoucher` covers both places. It compares codes, because the objects differ.",
            _edit(_BASKET, _BASKET_BEFORE, _BASKET_AFTER),
        )
        self._act("", _bash("npm test", "Run all tests", _PASSED_TESTS))
        self._reply(
            "Fixed. **A basket now has each voucher at most once**, and all 21 tests pass.\n\n"
            "- `applyVoucher` returns the basket unchanged if it already has a voucher with that code.\n"
            "- The same check makes `restoreBasket` correct. Its own check compared objects and never held; I left it "
            "in place, but it can be removed.\n\n"
            "Baskets that were saved with the voucher twice still have it twice. Shall I look for those?"
        )

    def _look_at_stored_baskets(self) -> None:
        self._prompt("yes, how many are there?")
        query = (
            "select count(*) as baskets, sum(discount_twice) as total from open_baskets "
            "where cardinality(voucher_codes) > (select count(distinct c) from unnest(voucher_codes) c)"
        )
        self._act("", _bash(f'psql "$SHOP_DB" -c "{query}"', "Count open baskets with a voucher twice", _BASKETS))
        self._reply(
            "Three open baskets, with €14.20 too much discount in all. For three I would not write a migration: they "
            "expire by themselves within seven days."
        )

    def _commit(self) -> None:
        self._prompt("agreed, leave them. Commit it, please")
        command = 'git add -A && git commit -m "Apply each voucher once per basket"'
        operation = {"commit": {"sha": "7c41e0a", "kind": "committed"}}
        self._act("", _bash(command, "Commit the fix and its test", _COMMIT, gitOperation=operation))
        self._reply("Committed as `7c41e0a` on `fix/same-voucher`.")

    def _prompt(self, text: str) -> None:
        self.clock.tick(95_000)
        self.writer.prompt_id = uuid(self.rng)
        self.prompts.append((self.clock.now, text))
        self.work.user(text, **events.prompt_fields(self))
        if len(self.prompts) == 1:
            self.work.context.first(self.work.model)

    def _act(self, text: str, *calls: Call) -> None:
        self.clock.tick(7_000)
        self.work.run(_text_blocks(text), list(calls))

    def _reply(self, text: str) -> None:
        self.clock.tick(9_000)
        self.work.message(_text_blocks(text))
        events.titles(self)

    def _explore(self, text: str) -> None:
        """Start the agent, and wait for its report."""
        self.clock.tick(6_000)
        arguments = {"description": _AGENT.description, "prompt": _AGENT.prompt, "subagent_type": _AGENT.kind}
        call = Call("Agent", arguments, None)
        block = self.work.call(call)
        row = self.work.message([*_text_blocks(text), block])[-1]
        self.sent = 1
        outcome = self._agent_outcome()
        agents.meta(self.work, _AGENT, outcome, block["id"])
        self.extra_lines += outcome.lines
        self.extra_size += outcome.size
        self.sums.append(outcome.sums)
        self.work.calls += 1
        self.work.used["Agent"] = 1
        call.content, call.result = agents.report(self.work, _AGENT, outcome)
        self.work.result(call, block["id"], row)

    def _agent_outcome(self) -> Outcome:
        identity = agents.new_id(self.work)
        writer = TranscriptWriter(
            agents.path_of(self.work, identity),
            era=self.plan.era,
            rng=self.rng,
            clock=self.clock,
            session=self.plan.identity,
            cwd=PROJECT.path,
            agent=identity,
            **self.facts,
        )
        writer.prompt_id = self.writer.prompt_id
        workspace = Workspace(
            rng=self.rng,
            era=self.plan.era,
            project=PROJECT,
            pools=self.workspace.pools,
            session=self.plan.identity,
            root=self.workspace.root,
        )
        work = AgentWork(writer, workspace, "claude-haiku-5-5", self.plan.size)
        work.meter.pending = _SYSTEM_PROMPT // 2
        began = self.clock.now
        work.user(_AGENT.prompt, parent=None)
        work.context.first(work.model)
        for call in (_grep("applyVoucher|vouchers.push", _CALLERS), _read("src/cart/restore.ts", _RESTORE, start=13)):
            self.clock.tick(5_000)
            work.run([], [call])
        self.clock.tick(8_000)
        work.message(_text_blocks(_REPORT))
        writer.close()
        return Outcome(
            identity=identity,
            text=_REPORT,
            milliseconds=self.clock.now - began,
            tokens=work.meter.context,
            calls=work.calls,
            usage=work.meter.shape(work.count) if work.count else {},
            sample=[],
            sums=work.meter.sums,
            used=work.used,
            lines=writer.lines,
            size=writer.size,
        )


def _text_blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def _read(path: str, text: str, start: int = 1) -> Call:
    lines = text.removesuffix("\n").split("\n")
    numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, start))
    arguments: dict[str, Any] = {"file_path": PROJECT.at(path)}
    if start > 1:
        arguments |= {"offset": start, "limit": len(lines)}
    file = {
        "filePath": PROJECT.at(path),
        "content": text,
        "numLines": len(lines),
        "startLine": start,
        "totalLines": start + len(lines) - 1,
    }
    return Call("Read", arguments, numbered, {"type": "text", "file": file})


def _edit(path: str, before: str, after: str) -> Call:
    """An edit of the lines that differ, with the lines between them."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matches = SequenceMatcher(None, old, new, autojunk=False)
    changes = [opcode for opcode in matches.get_opcodes() if opcode[0] != "equal"]
    start, new_start = max(0, changes[0][1] - 1), max(0, changes[0][3] - 1)
    end, new_end = changes[-1][2] + 1, changes[-1][4] + 1
    replaced, replacement = "".join(old[start:end]), "".join(new[new_start:new_end])
    arguments = {
        "replace_all": False,
        "file_path": PROJECT.at(path),
        "old_string": replaced,
        "new_string": replacement,
    }
    result = {
        "filePath": PROJECT.at(path),
        "oldString": replaced,
        "newString": replacement,
        "originalFile": before,
        "structuredPatch": [_hunk(list(group), old, new) for group in matches.get_grouped_opcodes(3)],
        "userModified": False,
        "replaceAll": False,
    }
    return Call("Edit", arguments, f"The file {PROJECT.at(path)} has been updated successfully.", result)


def _hunk(group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]) -> dict[str, Any]:
    lines: list[str] = []
    for kind, start, end, new_start, new_end in group:
        if kind == "equal":
            lines += [f" {line.rstrip()}" for line in old[start:end]]
        else:
            lines += [f"-{line.rstrip()}" for line in old[start:end]]
            lines += [f"+{line.rstrip()}" for line in new[new_start:new_end]]
    first, last = group[0], group[-1]
    return {
        "oldStart": first[1] + 1,
        "oldLines": last[2] - first[1],
        "newStart": first[3] + 1,
        "newLines": last[4] - first[3],
        "lines": lines,
    }


def _bash(command: str, description: str, output: str, *, code: int = 0, **more: Any) -> Call:
    arguments = {"command": command, "description": description}
    if code:
        text = f"Exit code {code}\n{output}"
        return Call("Bash", arguments, text, f"Error: {text}", error=True)
    result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
    return Call("Bash", arguments, output, result | more, flagged=True)


def _grep(pattern: str, output: str) -> Call:
    arguments = {"pattern": pattern, "path": PROJECT.path, "output_mode": "content", "-n": True}
    result = {"mode": "content", "numFiles": 0, "filenames": [], "content": output, "numLines": output.count("\n") + 1}
    return Call("Grep", arguments, output, result)
