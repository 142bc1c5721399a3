"""One agent at work in one transcript: messages block by block, tool calls, their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from threadline.demo import lookups, tools
from threadline.demo.context import Context
from threadline.demo.meter import Meter
from threadline.demo.scribe import Row, identifier, uuid
from threadline.demo.words import EMOJI

if TYPE_CHECKING:
    from threadline.demo.desk import Call, Desk
    from threadline.demo.meter import Count
    from threadline.demo.scribe import Scribe

_HUGE = 2_000_000
"""Bytes that must be left in a transcript before a single line may take a good part of them."""
_PLACEHOLDERS = (1, 2, 3, 4, 5, 8)


class Work:
    """Writes messages and calls of one agent until its transcript is as big as it should be."""

    def __init__(self, scribe: Scribe, desk: Desk, model: str, budget: int, *, side: bool | None = None) -> None:
        self.scribe = scribe
        self.desk = desk
        self.era = scribe.era
        self.rng = scribe.rng
        self.model = model
        self.budget = budget
        self.side = side
        self.meter = Meter(self.era, self.rng, hour=scribe.agent is None)
        self.context = Context(scribe, desk, side=side)
        self.count: Count | None = None
        self.calls = 0
        self.used: dict[str, int] = {}
        self.sample: list[Row] | None = None
        """Rows that a parent may show as the progress of this agent."""
        kinds = [(weight, make) for weight, need, make in lookups.CHOICES if need is None or self.era.writes(need)]
        self._weights = [weight for weight, _ in kinds]
        self._makers = [make for _, make in kinds]

    def left(self) -> int:
        """Bytes still to be written."""
        return self.budget - self.scribe.size

    def user(self, content: Any, *, parent: Any = ..., prompt: bool = True, **more: Any) -> str:
        """A user row; `more` are the fields that stand after the time."""
        before: Row = {
            name: more.pop(name) for name in ("isMeta", "isVisibleInTranscriptOnly", "isCompactSummary") if name in more
        }
        message = {"role": "user", "content": content}
        body: Row = {"type": "user", "message": message, **before, **self.scribe.stamp(), **more}
        start = self.scribe.size
        identity = self.scribe.chain(body, parent=parent, side=self.side, prompt=prompt)
        self.meter.pending += (self.scribe.size - start) // (2 if "toolUseResult" in more else 1)
        return identity

    def message(self, blocks: list[Row]) -> list[str]:
        """An assistant message, one row per block; gives the rows' uuids."""
        scribe = self.scribe
        era = self.era
        size = sum(len(str(block.get("input") or block.get("text") or block.get("thinking") or "")) for block in blocks)
        count = self.count = self.meter.message(self.model, size)
        request = self.context.request(self.model)
        message_id = identifier(self.rng, "msg")
        request_id = identifier(self.rng, "req", 20)
        stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        final = era.writes("final usage") or self.desk.chance(0.0 if era.writes("progress") else 0.6)
        placeholder = _PLACEHOLDERS[int(self.rng.random() * len(_PLACEHOLDERS))]
        rows = []
        for index, block in enumerate(blocks):
            scribe.clock.tick(int(self.rng.random() * 2_400) + 40)
            ended = era.writes("every row final") or (final and index == len(blocks) - 1)
            usage = self.meter.shape(count, None if ended else placeholder)
            message = self._shape(message_id, block, usage, stop if ended else None)
            body = self._body(message, index, count, request_id, request)
            rows.append(scribe.chain(body, side=self.side))
            if self.sample is not None:
                self.sample.append({"type": "assistant", "message": message, "requestId": request_id})
        return rows

    def _shape(self, identity: str, block: Row, usage: Row, stop: str | None) -> Row:
        writes = self.era.writes
        if writes("requests"):
            message: Row = {"id": identity, "type": "message", "role": "assistant", "model": self.model}
            return message | {
                "stop_sequence": None,
                "content": [block],
                "stop_reason": stop,
                "usage": usage,
                "stop_details": None,
            }
        if writes("model first"):
            message = {"model": self.model, "id": identity, "type": "message", "role": "assistant"}
        else:
            message = {"id": identity, "type": "message", "role": "assistant", "model": self.model}
        message |= {"content": [block], "stop_reason": stop, "stop_sequence": None}
        if writes("stop_details"):
            message["stop_details"] = None
        message["usage"] = usage
        if writes("diagnostics"):
            message["diagnostics"] = None
        return message

    def _body(self, message: Row, index: int, count: Count, request_id: str, request: str | None) -> Row:
        writes = self.era.writes
        body: Row = {"message": message}
        if writes("costUSD"):
            cost = self.meter.cost(self.model, count) if index == 0 else 0
            body |= {"costUSD": cost, "durationMs": 900 + count.output * 17}
        if request is not None:
            body["apiBlockIndex"] = index
        if writes("requestId"):
            body["requestId"] = request_id
        if request is not None:
            body |= {"requestRef": request, "requestedModel": self.model, "promptCacheRequested": "1h"}
        body |= {"type": "assistant", **self.scribe.stamp()}
        if writes("effort"):
            body["effort"] = "medium"
        return body

    def thinking(self) -> Row:
        """A thinking block; newer versions keep only the signature."""
        text = self.desk.pools.thought.take(self.rng, self.desk.length(900, 0.8, copies=2))
        signature = self.desk.pools.signature(self.rng, self.desk.length(500 + len(text) // 2, 0.5, copies=3))
        hidden = self.era.writes("empty thinking") and self.desk.chance(0.8)
        return {"type": "thinking", "thinking": "" if hidden else text, "signature": signature}

    def text(self, median: int = 350) -> Row:
        """A text block."""
        text = self.desk.pools.reply.take(self.rng, self.desk.length(median, 0.9, copies=1.2)).strip()
        if self.desk.chance(0.06):
            text = f"{self.rng.choice(EMOJI)} {text}"
        return {"type": "text", "text": text or "Done."}

    def say(self) -> Row:
        """A sentence or two before a call."""
        if self.desk.chance(0.3):
            return self.text(500)
        return {"type": "text", "text": self.desk.pools.narration.take(self.rng, self.desk.length(120, 0.7))}

    def call(self, call: Call) -> Row:
        """The block that asks for a tool."""
        block = {
            "type": "tool_use",
            "id": identifier(self.rng, "toolu"),
            "name": call.name,
            "input": call.input,
        }
        if self.era.writes("caller"):
            block["caller"] = {"type": "direct"}
        return block

    def choose(self) -> Call:
        """Some tool call."""
        if self.left() > _HUGE and self.desk.chance(0.0015):
            self.desk.room = min(self.left() // 2, 1_600_000)
            return tools.dump(self.desk)
        self.desk.room = max(700, min(self.left(), 120_000))
        return self.rng.choices(self._makers, self._weights)[0](self.desk)

    def step(self) -> None:
        """A message that calls tools, and their results."""
        blocks = []
        if self.desk.chance(0.3):
            blocks.append(self.thinking())
        if self.desk.chance(0.35):
            blocks.append(self.say())
        many = int(self.rng.random() * 4) if self.desk.chance(0.18) else 1
        calls = [self.choose() for _ in range(max(1, many))]
        self.run(blocks, calls)

    def run(self, blocks: list[Row], calls: list[Call]) -> list[str]:
        """Write a message with these calls and then their results; gives the tool ids."""
        asked = [self.call(call) for call in calls]
        rows = self.message(blocks + asked)[-len(calls) :]
        for call, block, row in zip(calls, asked, rows, strict=True):
            self.calls += 1
            self.used[call.name] = self.used.get(call.name, 0) + 1
            self.context.before(call, block["id"], row)
            self.scribe.clock.tick(int(self.rng.random() * 3_000) + 20)
            self.result(call, block["id"], row)
        self.context.after(calls[-1], asked[-1]["id"])
        return [block["id"] for block in asked]

    def result(self, call: Call, tool: str, row: str) -> str:
        """The row that carries one result: it hangs under the row of its own call."""
        if call.error:
            block: Row = {
                "type": "tool_result",
                "content": call.content,
                "is_error": True,
                "tool_use_id": tool,
            }
        else:
            block = {"tool_use_id": tool, "type": "tool_result", "content": call.content}
            if call.flagged:
                block["is_error"] = False
        more: Row = {}
        bare = self.scribe.agent is not None and self.era.writes("agents below")
        if call.result is not None and not (bare and self.desk.chance(0.9)):
            more["toolUseResult"] = call.result
        if self.era.writes("toolDenialKind") and call.content == DENIED:
            more["toolDenialKind"] = "user-rejected"
        if self.era.writes("sourceToolAssistantUUID"):
            more["sourceToolAssistantUUID"] = row
        if self.sample is not None:
            message = {"role": "user", "content": [block]}
            self.sample.append({"type": "user", "message": message, "uuid": uuid(self.rng)})
        return self.user([block], parent=row, **more)


DENIED = "The user doesn't want to proceed with this tool use. Wait for what they say next."
