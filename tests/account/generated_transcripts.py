"""Hypothesis strategies for transcripts, and changes to transcripts that must not change what was spent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st

import threadline
from threadline.account import Ledger
from threadline.model.ledger import sum_fields

Row = dict[str, Any]
# The price of sonnet 5.5 changes on the eighth, that of opus 4.6 in March: some messages stand on the border.
STARTS = ("2026-10-07T23:59:58", "2026-03-12T23:59:57", "2026-01-05T09:00:00")
MODELS = ("claude-sonnet-5-5", "claude-opus-4-6", "claude-opus-5-5", "claude-haiku-5-5", "glm-5.1", None)


def pseudo_random_text(*parts: object, length: int = 24) -> str:
    """Return text that looks random and is the same for the same parts."""
    return sha256(repr(parts).encode()).hexdigest()[:length]


@dataclass(frozen=True)
class GeneratedTranscript:
    """A generated transcript: rows of a session, or of one of its agents, sorted by time."""

    session: str
    agent: str | None
    rows: tuple[Row, ...]
    folder: str = "-work-app"

    @property
    def name(self) -> str:
        """Its path below `projects`."""
        inside = f"/subagents/agent-{self.agent}" if self.agent else ""
        return f"{self.folder}/{self.session}{inside}.jsonl"


@st.composite
def _extras(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """Draw the fields of a usage other than the counts."""
    extra: dict[str, Any] = {}
    if draw(st.booleans()):
        extra["speed"] = draw(st.sampled_from(["fast", "standard", None]))
    if draw(st.booleans()):
        extra["inference_geo"] = draw(st.sampled_from(["us", "", None]))
    if draw(st.booleans()):
        extra["iterations"] = [
            {"type": "message", "input_tokens": 1, "output_tokens": 1},
            {"type": "advisor_message", "model": "claude-opus-4-6", "input_tokens": number, "output_tokens": 2},
        ]
    return extra


@st.composite
def messages(draw: st.DrawFn, session: str, agent: str | None, start: datetime, *, at_odds: bool) -> list[Row]:
    """Draw the rows of one message: outputs grow, and early rows of gateways are zero."""
    number = draw(st.integers(0, 5))
    low_entropy = draw(st.booleans())
    is_shared = draw(st.booleans())  # between sessions and agents: an id that collides
    owner = () if is_shared and low_entropy else (session, agent)
    id_ = f"msg_{number}" if low_entropy else "msg_01" + pseudo_random_text("id", number, *owner)
    sent = draw(st.sampled_from([(10, 0, 0), (10, 20, 300), (3, 7, 150_000), (3, 7, 250_000)]))
    hour = draw(st.integers(0, sent[1])) if at_odds else sent[1] // 2
    model = draw(st.sampled_from(MODELS)) if at_odds else MODELS[number]
    extra = draw(_extras(number)) if at_odds else {"speed": ("fast", None)[number % 2], "inference_geo": "us"}
    outputs = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=3)))
    rows: list[Row] = []
    for at, output in enumerate(outputs):
        empty = at < len(outputs) - 1 and draw(st.integers(0, 4)) == 0
        usage = {
            "input_tokens": 0 if empty else sent[0],
            "cache_creation_input_tokens": 0 if empty else sent[1],
            "cache_read_input_tokens": 0 if empty else sent[2],
            "output_tokens": 0 if empty else output,
            "server_tool_use": {"web_search_requests": draw(st.integers(0, 2))},
            **({} if empty else extra),
        }
        if not empty and (not at_odds or draw(st.booleans())):
            usage["cache_creation"] = {
                "ephemeral_5m_input_tokens": sent[1] - hour,
                "ephemeral_1h_input_tokens": hour,
            }
        rows.append(
            {
                "type": "assistant",
                "uuid": pseudo_random_text("uuid", session, agent, start, number, at, 0),
                "sessionId": session,
                "isSidechain": agent is not None,
                "timestamp": "",
                "version": draw(st.sampled_from(["2.1.40", "2.1.232"])) if at == 0 else rows[0]["version"],
                "message": {
                    "id": id_,
                    "model": model,
                    "stop_reason": draw(st.sampled_from([None, "end_turn"])),
                    "content": [{"type": "tool_use", "id": f"t{number}{at}", "name": f"Tool{at}", "input": {}}],
                    "usage": usage,
                },
                **({"agentId": agent} if agent else {}),
            }
        )
    return rows


@st.composite
def transcripts(draw: st.DrawFn, *, at_odds: bool = True) -> list[GeneratedTranscript]:
    """Draw the transcripts of one home: sessions and their agents. With `at_odds`, rows of a message may disagree."""
    generated = []
    for number in range(draw(st.integers(1, 3))):
        session = f"{pseudo_random_text('session', number, length=8)}-0000-4000-8000-{number:012d}"
        for agent in draw(st.sampled_from([(None,), (None, "a1"), ("a1", "a2")])):
            start = datetime.fromisoformat(draw(st.sampled_from(STARTS))).replace(tzinfo=UTC)
            parts = draw(st.lists(messages(session, agent, start, at_odds=at_odds), min_size=1, max_size=4))
            rows = [row for part in parts for row in part]
            for at, row in enumerate(rows):
                row["timestamp"] = f"{start + timedelta(milliseconds=700 * at):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
                row["uuid"] = pseudo_random_text("uuid", session, agent, at)
            generated.append(GeneratedTranscript(session, agent, tuple(rows)))
    return generated


def split_transcript(transcript: GeneratedTranscript, at: Sequence[int]) -> list[GeneratedTranscript]:
    """Split a transcript at some rows. Each piece is in its own folder."""
    borders = [0, *sorted(border % (len(transcript.rows) + 1) for border in at), len(transcript.rows)]
    return [
        replace(transcript, rows=transcript.rows[begin:end], folder=f"{transcript.folder}-{number}")
        for number, (begin, end) in enumerate(pairwise(borders))
    ]


def copy_transcript(
    transcript: GeneratedTranscript, number: int, *, forked: bool, new_uuids: bool = False
) -> GeneratedTranscript:
    """Copy a transcript into another session, as resuming and forking do."""
    session = f"c0b1e5c0-0000-4000-8000-{number:012d}"
    rows = [{**row, "sessionId": session} for row in transcript.rows]
    for row in rows:
        if forked:
            row["forkedFrom"] = {"sessionId": transcript.session, "messageUuid": row["uuid"]}
        if new_uuids:
            row["uuid"] = pseudo_random_text("again", number, row["uuid"])
    return replace(transcript, session=session, rows=tuple(rows))


@contextmanager
def temporary_home(generated: Iterable[GeneratedTranscript]) -> Iterator[Path]:
    """Write the transcripts to a temporary home."""
    with TemporaryDirectory(prefix="threadline-laws-") as top:
        for transcript in generated:
            path = Path(top, "projects", transcript.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in transcript.rows))
        yield Path(top)


def ledger_of(generated: Iterable[GeneratedTranscript]) -> Ledger:
    """Build the ledger of a home with these transcripts."""
    with temporary_home(generated) as path:
        return threadline.ledger(path, jobs=1)


def spent_figures(generated: Iterable[GeneratedTranscript]) -> dict[str, Any]:
    """Return all figures of the total except the number of lower bounds, which no single row can show."""
    figures = sum_fields(ledger_of(generated).total)
    del figures["lower_bound"]
    return figures
