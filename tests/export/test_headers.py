"""The header of an exported file: duration, cost, and what the file omits."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, Pen, Row, prompt, reply, transcript, write
from tests.web.client import Client

from threadline.load import read

FORMATS = ("html", "md", "json", "txt")
OTHER = "5e551011-0000-4000-8000-000000000002"
AGENT = "a0000000000000001"


def exported_text(export_format: str, session: Path, cli: CliRunner, *options: str) -> str:
    """What a reader sees of a session in this format."""
    result = cli("export", str(session), "--format", export_format, "--out", "-", *options)
    assert result.code == 0, result.err
    if export_format != "html":
        return result.out
    body = result.out.partition("<body")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of 22 seconds, with an agent whose transcript is from the day before."""
    folder = tmp_path / "home/projects/-work-app"
    parts = [part for number in range(6) for part in (prompt(f"turn {number}"), reply("so", output=1000, read=50_000))]
    path = write(folder / f"{SESSION}.jsonl", *transcript(*parts))
    before = Pen(SESSION, datetime(2026, 1, 4, 9, tzinfo=UTC), agentId=AGENT, isSidechain=True)
    write(folder / SESSION / f"subagents/agent-{AGENT}.jsonl", *transcript(prompt("look"), reply("seen"), pen=before))
    return path


def test_every_format_shows_the_cost(session: Path, cli: CliRunner) -> None:
    """Tokens and amount in the header equal the ledger's, redacted or not."""
    total = read(session).ledger.total
    assert total.amount is not None
    for options in ((), ("--no-redact",)):
        for export_format in ("html", "md", "txt"):
            text = exported_text(export_format, session, cli, *options)
            assert f"{total.tokens / 1000:.1f}k tokens" in text, export_format
            assert f"${total.amount:.2f}" in text, export_format
        spent = json.loads(exported_text("json", session, cli, *options), parse_float=Decimal)["spent"]
        assert (spent["tokens"], spent["amount"], spent["output"]) == (total.tokens, total.amount, total.output)


def test_copied_messages_are_not_counted(tmp_path: Path, cli: CliRunner) -> None:
    """A session that copied messages of another counts only its own, though the other is not exported."""
    folder = tmp_path / "home/projects/-work-app"
    first = transcript(prompt("begin"), reply("so", output=1000))
    write(folder / f"{OTHER}.jsonl", *(row | {"sessionId": OTHER} for row in first if isinstance(row, dict)))
    forked = [
        row | {"forkedFrom": {"sessionId": OTHER, "messageUuid": row["uuid"]}} for row in first if isinstance(row, dict)
    ]
    pen = Pen(start=datetime(2026, 1, 6, 9, tzinfo=UTC))
    for _ in forked:
        pen.number()
    pen.parent = forked[-1]["uuid"]
    continued = transcript(
        prompt("go on"), reply("yes", output=7, message={"id": "msg_own"}, requestId="req_own"), pen=pen
    )
    path = write(folder / f"{SESSION}.jsonl", *forked, *continued)
    ledger = read(path).ledger
    assert ledger.total.output == 7
    assert json.loads(exported_text("json", path, cli))["spent"]["output"] == 7


def test_duration_is_the_same_everywhere(session: Path, cli: CliRunner) -> None:
    """The list, the page header and every format show the same duration, whatever the times of agents."""
    first, last = (datetime.fromisoformat(json.loads(line)["timestamp"]) for line in first_and_last_line(session))
    assert last - first < timedelta(minutes=1)
    duration = f"{(last - first).seconds}s"
    client = Client(session.parents[2])
    row = re.search(r"<tbody>.*?</tbody>", client.get("/sessions").text, re.DOTALL)
    assert row is not None
    assert f">{duration}<" in row[0]
    head = client.get(f"/session/{SESSION}").text.partition('<header class="head">')[2].partition("</header>")[0]
    assert f", {duration}" in head
    for export_format in ("html", "md", "txt"):
        assert re.search(rf"\b{duration}\b", exported_text(export_format, session, cli)[:600]), export_format
    assert json.loads(exported_text("json", session, cli))["seconds"] == (last - first).total_seconds()


def first_and_last_line(path: Path) -> tuple[str, str]:
    """The first and the last line of a file."""
    lines = path.read_text().splitlines()
    return lines[0], lines[-1]


def rewind(pen: Pen) -> Iterator[Row]:
    """Continue from the second reply."""
    pen.parent = f"{3:08d}-0000-4000-8000-{SESSION[-12:]}"
    return iter(())


@pytest.mark.parametrize("export_format", FORMATS)
def test_file_mentions_branches_not_shown(export_format: str, tmp_path: Path, cli: CliRunner) -> None:
    """A rewound session says how many branches were abandoned and which option exports them."""
    parts = (prompt("first"), reply("one"), prompt("wrong"), reply("two"), rewind, prompt("right"), reply("three"))
    path = write(tmp_path / f"home/projects/-work-app/{SESSION}.jsonl", *transcript(*parts))
    main_export, branch_export = (
        exported_text(export_format, path, cli),
        exported_text(export_format, path, cli, "--branch", "1"),
    )
    if export_format == "json":
        expected = [{"number": 1, "entries": 2, "turns": [2]}]
        assert [
            (document["branch"], document["branches"]) for document in map(json.loads, (main_export, branch_export))
        ] == [
            (None, expected),
            (1, expected),
        ]
        return
    assert "1 abandoned branch with 1 turn is not shown. Export it with --branch 1." in main_export
    assert "This is abandoned branch 1 of 1" in branch_export
    assert "branch" not in exported_text(
        export_format, write(path.with_name(f"{OTHER}.jsonl"), *transcript(prompt("a"), reply("b"))), cli
    )


def test_internal_agents_are_not_counted(session: Path, cli: CliRunner) -> None:
    """The agent that writes a compaction summary is not counted, as on the page."""
    pen = Pen(SESSION, agentId="acompact-12ab34", isSidechain=True)
    place = session.with_suffix("") / "subagents/agent-acompact-12ab34.jsonl"
    write(place, *transcript(prompt("sum it up"), reply("It was long."), pen=pen))
    head = Client(session.parents[2]).get(f"/session/{SESSION}").text.partition('<header class="head">')[2]
    assert re.search(r"<span><a [^>]*>1 agent</a></span>", head.partition("</header>")[0])
    assert " 1 agent " in exported_text("html", session, cli)
    assert "- agents: 1\n" in exported_text("md", session, cli)
