"""Reads exports with the libraries that they are for: `python interop_readers.py FORMAT PATH` prints a row per session.

It runs in a process of its own, and needs nothing of threadline: some libraries need another version of Python.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read_atif(path: Path) -> Iterator[Row]:
    """Validate trajectories with Harbor's models."""
    from harbor.models.trajectories import Trajectory  # noqa: PLC0415 - each format has its own library

    for file in sorted(path.iterdir()):
        trajectory = Trajectory.model_validate_json(file.read_text())
        metrics = trajectory.final_metrics
        yield {
            "session": trajectory.session_id,
            "input": metrics.total_prompt_tokens,
            "output": metrics.total_completion_tokens,
            "cache_read": metrics.total_cached_tokens,
            "amount": metrics.total_cost_usd,
            "calls": sum(
                len(step.tool_calls or ())
                for part in (trajectory, *(trajectory.subagent_trajectories or ()))
                for step in part.steps
            ),
        }


def read_inspect(path: Path) -> Iterator[Row]:
    """Read the samples of an Inspect log."""
    from inspect_ai.log import read_eval_log  # noqa: PLC0415

    log = read_eval_log(str(path))
    if log.status != "success" or log.results.completed_samples != len(log.samples):
        raise SystemExit("The log is not complete.")
    for sample in log.samples:
        usage = sample.model_usage.values()
        calls = [
            call.id for message in sample.messages if message.role == "assistant" for call in message.tool_calls or ()
        ]
        results = [message.tool_call_id for message in sample.messages if message.role == "tool"]
        if calls != results:
            raise SystemExit(f"A call of {sample.id} has no result.")
        yield {
            "session": sample.metadata["session_id"],
            "input": sum(part.total_tokens - part.output_tokens for part in usage),
            "output": sum(part.output_tokens for part in usage),
            "cache_read": sum(part.input_tokens_cache_read for part in usage),
            "amount": sum(part.total_cost or 0 for part in usage),
            "calls": len(calls),
        }


def read_scout(path: Path) -> Iterator[Row]:
    """Read the transcripts of a Scout database."""
    from inspect_scout import TranscriptContent, transcripts_db  # noqa: PLC0415

    async def read() -> list[Row]:
        rows = []
        async with transcripts_db(str(path)) as database:
            async for info in database.select():
                transcript = await database.read(info, TranscriptContent(messages="all"))
                if len(transcript.messages) != info.message_count:
                    raise SystemExit(f"{info.transcript_id} lost messages.")
                calls = [message for message in transcript.messages if message.role == "tool"]
                rows.append({"session": info.source_id, "tokens": info.total_tokens, "calls": len(calls)})
        return rows

    yield from asyncio.run(read())


def read_hf(path: Path) -> Iterator[Row]:
    """Load a data set without the network."""
    from datasets import load_dataset  # noqa: PLC0415

    for split in load_dataset(str(path)).values():
        for row in split:
            yield {
                "session": row["session_id"],
                "input": row["input_tokens"] + row["cache_write_tokens"] + row["cache_read_tokens"],
                "output": row["output_tokens"],
                "cache_read": row["cache_read_tokens"],
                "amount": str(row["amount_usd"] or 0),
                "calls": sum(len(message["tool_calls"] or ()) for message in row["messages"]),
            }


def read_messages(path: Path) -> Iterator[Row]:
    """Load messages of OpenAI's shape as JSON lines."""
    from datasets import load_dataset  # noqa: PLC0415

    for row in load_dataset("json", data_files=str(path), split="train"):
        calls = [call for message in row["messages"] for call in message.get("tool_calls") or ()]
        yield {"session": row["metadata"]["session_id"], "calls": len(calls)}


READERS: dict[str, tuple[str, Callable[[Path], Iterator[Row]]]] = {
    "atif": ("harbor", read_atif),
    "inspect": ("inspect_ai", read_inspect),
    "scout": ("inspect_scout", read_scout),
    "hf": ("datasets", read_hf),
    "messages": ("datasets", read_messages),
}
"""The library for each format, and the function that reads it."""

if __name__ == "__main__":
    for line in READERS[sys.argv[1]][1](Path(sys.argv[2])):
        sys.stdout.write(json.dumps(line) + "\n")
