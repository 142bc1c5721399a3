"""The head of an exported file: what the session took and spent as the page tells it, and what the file leaves out."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.transcripts import SESSION, Pen, Row, prompt, reply, transcript, write
from tests.web.client import Client

from threadline.load import read

FORMS = ("html", "md", "json", "txt")
OTHER = "5e551011-0000-4000-8000-000000000002"
AGENT = "a0000000000000001"


def _text(form: str, session: Path, cli: CliRunner, *options: str) -> str:
    """What a reader sees of a session in this form."""
    result = cli("export", str(session), "--format", form, "--out", "-", *options)
    assert result.code == 0, result.err
    if form != "html":
        return result.out
    body = result.out.partition("<body")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of 22 seconds, with an agent whose transcript tells of a day before."""
    folder = tmp_path / "home/projects/-work-app"
    parts = [part for at in range(6) for part in (prompt(f"turn {at}"), reply("so", output=1000, read=50_000))]
    path = write(folder / f"{SESSION}.jsonl", *transcript(*parts))
    before = Pen(SESSION, datetime(2026, 1, 4, 9, tzinfo=UTC), agentId=AGENT, isSidechain=True)
    write(folder / SESSION / f"subagents/agent-{AGENT}.jsonl", *transcript(prompt("look"), reply("seen"), pen=before))
    return path


def test_every_form_tells_what_was_spent(session: Path, cli: CliRunner) -> None:
    """Tokens and amount stand in the head, as the ledger has them, whether something is taken out or not."""
    total = read(session).ledger.total
    assert total.amount is not None
    for options in ((), ("--no-redact",)):
        for form in ("html", "md", "txt"):
            text = _text(form, session, cli, *options)
            assert f"{total.tokens / 1000:.1f} k tokens" in text, form
            assert f"${total.amount:.2f}" in text, form
        told = json.loads(_text("json", session, cli, *options))["spent"]
        assert (told["tokens"], told["amount"], told["output"]) == (total.tokens, str(total.amount), total.output)


def test_what_another_session_spent_is_not_told_as_this_one_s(tmp_path: Path, cli: CliRunner) -> None:
    """A session that copied messages of the one it goes on from spent only its own, though that one is not exported."""
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
    own = transcript(prompt("go on"), reply("yes", output=7, message={"id": "msg_own"}, requestId="req_own"), pen=pen)
    path = write(folder / f"{SESSION}.jsonl", *forked, *own)
    ledger = read(path).ledger
    assert ledger.total.output == 7
    assert json.loads(_text("json", path, cli))["spent"]["output"] == 7


def test_one_session_has_one_duration(session: Path, cli: CliRunner) -> None:
    """The list, the page's head and every form say the same, whatever times its agents tell."""
    first, last = (datetime.fromisoformat(json.loads(line)["timestamp"]) for line in _ends(session))
    assert last - first < timedelta(minutes=1)
    took = f"{(last - first).seconds}s"
    client = Client(session.parents[2])
    row = re.search(r"<tbody>.*?</tbody>", client.get("/sessions").text, re.DOTALL)
    assert row is not None
    assert f">{took}<" in row[0]
    head = client.get(f"/session/{SESSION}").text.partition('<header class="head">')[2].partition("</header>")[0]
    assert f", {took}" in head
    for form in ("html", "md", "txt"):
        assert re.search(rf"\b{took}\b", _text(form, session, cli)[:600]), form
    assert json.loads(_text("json", session, cli))["seconds"] == (last - first).total_seconds()


def _ends(path: Path) -> tuple[str, str]:
    found = path.read_text().splitlines()
    return found[0], found[-1]


def _back(pen: Pen) -> Iterator[Row]:
    pen.parent = f"{3:08d}-0000-4000-8000-{SESSION[-12:]}"
    return iter(())


@pytest.mark.parametrize("form", FORMS)
def test_a_file_says_which_branches_it_does_not_show(form: str, tmp_path: Path, cli: CliRunner) -> None:
    """A session that was rewound says how many branches were left and which option has them."""
    parts = (prompt("first"), reply("one"), prompt("wrong"), reply("two"), _back, prompt("right"), reply("three"))
    path = write(tmp_path / f"home/projects/-work-app/{SESSION}.jsonl", *transcript(*parts))
    whole, left = _text(form, path, cli), _text(form, path, cli, "--branch", "1")
    if form == "json":
        expected = [{"number": 1, "entries": 2, "turns": [2]}]
        assert [(one["branch"], one["branches"]) for one in map(json.loads, (whole, left))] == [
            (None, expected),
            (1, expected),
        ]
        return
    assert "1 abandoned branch with 1 turn is not shown. Export it with --branch 1." in whole
    assert "This is abandoned branch 1 of 1" in left
    assert "branch" not in _text(
        form, write(path.with_name(f"{OTHER}.jsonl"), *transcript(prompt("a"), reply("b"))), cli
    )


def test_agents_of_the_program_itself_are_not_counted(session: Path, cli: CliRunner) -> None:
    """One that summed up the conversation is none that anybody started: files count agents as the page does."""
    of_its_own = Pen(SESSION, agentId="acompact-12ab34", isSidechain=True)
    place = session.with_suffix("") / "subagents/agent-acompact-12ab34.jsonl"
    write(place, *transcript(prompt("sum it up"), reply("It was long."), pen=of_its_own))
    head = Client(session.parents[2]).get(f"/session/{SESSION}").text.partition('<header class="head">')[2]
    assert "<span>1 agent</span>" in head.partition("</header>")[0]
    assert " 1 agent " in _text("html", session, cli)
    assert "- agents: 1\n" in _text("md", session, cli)
