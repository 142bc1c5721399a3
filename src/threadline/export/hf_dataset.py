"""Write sessions as a data set for Hugging Face: redacted transcripts, Parquet files, and a card.

`projects/` is a Claude home with the redacted transcripts, complete and unchanged otherwise. `data/` has a Parquet file
for each split, with a row for each conversation. The card (`README.md`) names these files, so that
`datasets.load_dataset` loads the folder without a script and without the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from threadline.export.conversations import Conversation, ExportedSession, conversation_facts
from threadline.export.leak_check import RecordChecker
from threadline.export.messages import MessageShape, build_messages, describe_tools
from threadline.export.output import StagedFile, make_unique, safe_name
from threadline.export.parquet_file import ParquetFile
from threadline.export.splits import TRAIN, choose_split
from threadline.json_values import encode_json
from threadline.model.ledger import Sum
from threadline.model.tables import import_library
from threadline.model.text import count

_AMOUNT_DIGITS = Decimal(1).scaleb(-18)
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
COLUMNS = {
    "conversation": "the id of the conversation: the session's, with the agent's after it",
    "session_id": "the session",
    "agent_id": "the agent; null for the main one",
    "agent_type": "the type of agent",
    "description": "the agent's task in a few words",
    "parent": "the conversation that started the agent",
    "title": "the session's title",
    "project": "the directory that the session was started in",
    "version": "the version of Claude Code",
    "model": "the model that answered last",
    "started": "the time of its first entry, in UTC",
    "ended": "the time of its last entry, in UTC",
    "messages": "the messages, in the shape of OpenAI's API; `arguments` is JSON",
    "tools": "the tools that it calls, as JSON",
    "input_tokens": "input that was not in the cache",
    "output_tokens": "output, including thinking",
    "cache_write_tokens": "tokens written to the cache",
    "cache_read_tokens": "tokens read from the cache",
    "amount_usd": "the cost in USD; null if no price is known",
    "group": "the same for all sessions that continue or repeat each other; a group is in one split",
}
"""The columns of the Parquet files."""


class HfWriter:
    """Writes a data set. `groups` are the sessions' groups by main transcript, `shares` the splits in percent.

    Raises:
        Missing: pyarrow is not installed.
    """

    def __init__(
        self,
        folder: Path,
        checker: RecordChecker,
        *,
        groups: Mapping[Path, str],
        shares: Mapping[str, float],
        level: str | None,
        thinking: bool,
    ) -> None:
        self._folder = folder
        self._checker = checker
        self._groups = groups
        self._shares = shares
        self._level = level
        self._thinking = thinking
        self._splits: dict[str, ParquetFile] = {}
        self._projects: dict[Path, str] = {}
        self._sessions: Counter[str] = Counter()
        self._totals: list[Sum] = []
        self._transcripts: list[StagedFile] = []
        self._columns = _column_types()

    def add(self, exported: ExportedSession) -> None:
        """Write the transcripts and the rows of a session."""
        group = self._groups[exported.copy.source]
        split = choose_split(group, self._shares)
        self._sessions[split] += 1
        self._totals.append(exported.ledger.total)
        folder = self._project_folder(exported)
        for path, below in (*exported.copy.files, *exported.copy.side_files):
            name = f"projects/{folder}/{below}"
            self._checker.check_lines(path, name)
            self._transcripts.append(StagedFile(path, name, exported.copy.name))
        if split not in self._splits:
            path = self._folder / f"data/{split}.parquet"
            path.parent.mkdir(exist_ok=True)
            self._splits[split] = ParquetFile(path, self._columns)
        for conversation in exported.conversations:
            row = self._row(exported, conversation, group, f"data/{split}.parquet")
            self._splits[split].add(row, sum(len(message["content"]) for message in row["messages"]))

    def _row(self, exported: ExportedSession, conversation: Conversation, group: str, name: str) -> dict[str, Any]:
        messages = build_messages(conversation, MessageShape.OPENAI, thinking=self._thinking)
        facts = self._checker.check(
            {**conversation_facts(exported, conversation), "model": conversation.model or ""}, name
        )
        tools = self._checker.check(describe_tools(conversation, MessageShape.OPENAI), name)
        total = exported.sum(conversation.charges)
        return {
            **facts,
            "conversation": conversation.id,
            "started": conversation.started,
            "ended": conversation.ended,
            "messages": [self._checker.check(message, name) for message in messages],
            "tools": encode_json(tools).decode(),
            "input_tokens": total.input,
            "output_tokens": total.output,
            "cache_write_tokens": total.cache_write,
            "cache_read_tokens": total.cache_read,
            "amount_usd": total.amount.quantize(_AMOUNT_DIGITS) if total.amount is not None else None,
            "group": group,
        }

    def _project_folder(self, exported: ExportedSession) -> str:
        """The folder for a session's transcripts: sessions of one folder are in one folder."""
        source = exported.copy.source.parent
        if source not in self._projects:
            cwds = exported.session.cwds
            name = "-" + safe_name(cwds[0].replace("\\", "/").rstrip("/").rpartition("/")[2] if cwds else "", "project")
            self._projects[source] = make_unique([*self._projects.values(), name])[-1]
        return self._projects[source]

    def finish(self) -> list[StagedFile]:
        """Complete the Parquet files, and write the card."""
        files = []
        for split, file in sorted(self._splits.items(), key=lambda item: (item[0] != TRAIN, item[0])):
            file.close()
            files.append(StagedFile(file.path, f"data/{split}.parquet"))
        card = self._folder / "README.md"
        card.write_text(self._card(), encoding="utf-8")
        return [StagedFile(card, "README.md"), *files, *self._transcripts]

    def _card(self) -> str:
        splits = [split for split in (TRAIN, *self._shares) if split in self._splits]
        rows = sum(file.rows for file in self._splits.values())
        total = Sum.of(self._totals)
        files = "\n".join(
            f"      - split: {split}\n        path: data/{split}.parquet" for split in dict.fromkeys(splits)
        )
        table = "\n".join(
            f"| {split} | {self._sessions[split]:,} | {self._splits[split].rows:,} |" for split in dict.fromkeys(splits)
        )
        columns = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in COLUMNS.items())
        return _CARD.format(
            size=next((size for limit, size in _SIZES if rows < limit), "n>1M"),
            files=files,
            table=table,
            columns=columns,
            sessions=count(sum(self._sessions.values()), "session"),
            conversations=count(rows, "conversation"),
            tokens=f"{total.tokens:,}",
            redaction=_REDACTION[self._level],
        )


_REDACTION = {
    None: "Nothing was redacted: the data set contains everything, including secrets. Do not publish it.",
    "standard": "Secrets, names, addresses and home directories were replaced by placeholders (level `standard`).",
    "strict": "Secrets, names, addresses, paths, URLs and random values were replaced (level `strict`).",
    "metrics": "All text was removed: only times, kinds, models, counts and sizes remain (level `metrics`).",
}
_CARD = """\
---
pretty_name: Claude Code sessions
task_categories:
  - text-generation
tags:
  - agent-traces
  - claude-code
  - tool-use
size_categories:
  - {size}
configs:
  - config_name: default
    data_files:
{files}
---

# Claude Code sessions

{sessions}, {conversations}, {tokens} tokens. Written by threadline.

```python
from datasets import load_dataset

data = load_dataset("path/to/this/folder")
```

## Splits

| split | sessions | conversations |
|---|---|---|
{table}

Sessions that continue, fork or repeat each other are in the same split.

## Columns

A row is a conversation: of a session, or of an agent that it started.

| column | meaning |
|---|---|
{columns}

## Transcripts

`projects/` has the transcripts as Claude Code wrote them, line by line, after redaction. Programs that read a Claude
home can read this folder.

## Redaction

{redaction}
"""


def _column_types() -> dict[str, Any]:
    arrow = import_library("pyarrow", "frames")
    text, moment = arrow.large_string(), arrow.timestamp("us", tz="UTC")
    function = arrow.struct({"name": text, "arguments": text})
    call = arrow.struct({"id": text, "type": text, "function": function})
    message = arrow.struct(
        {
            "role": text,
            "content": text,
            "reasoning_content": text,
            "tool_calls": arrow.list_(call),
            "tool_call_id": text,
        }
    )
    types = {
        "started": moment,
        "ended": moment,
        "messages": arrow.list_(message),
        "amount_usd": arrow.decimal128(38, 18),
        **dict.fromkeys(("input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens"), arrow.int64()),
    }
    return {name: types.get(name, text) for name in COLUMNS}
