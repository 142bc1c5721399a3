"""`threadline scan`: reports where secrets are, without ever showing one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.runner import CliResult, CliRunner
from tests.redact.credentials import seeded, token_value

from threadline.redact.rules.formats import FORMATS

KINDS = {rule.kind: rule for rule in FORMATS}
TOKEN = token_value(KINDS["github-token"], seeded(1))
KEY_ID = token_value(KINDS["aws-access-key-id"], seeded(2))
WORD = "q7!Zk" + "29xW"
SESSION = "11111111-2222-4333-8444-555555555555"


def entry(text: str, day: int, **more: object) -> bytes:
    """A row of a transcript."""
    row = {
        "type": "user",
        "sessionId": SESSION,
        "uuid": f"11111111-2222-4333-8444-55555555555{day}",
        "timestamp": f"2026-03-0{day}T10:00:00.000Z",
        "message": {"role": "user", "content": text},
        **more,
    }
    return json.dumps(row).encode() + b"\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with secrets in a transcript, in the history and in a tool's result."""
    folder = tmp_path / "home/projects/-w-p"
    (folder / SESSION / "tool-results").mkdir(parents=True)
    rows = entry("nothing", 1), entry(f"use {TOKEN} and {TOKEN}", 2), entry("x", 3, env={"DB_PASSWORD": WORD})
    (folder / f"{SESSION}.jsonl").write_bytes(b"".join(rows) + b"{torn " + KEY_ID.encode())
    (folder / SESSION / "tool-results/b1.txt").write_text(f"first\nAWS_KEY={KEY_ID}\n")
    (tmp_path / "home/history.jsonl").write_text(json.dumps({"display": f"log in with {TOKEN}", "timestamp": 1}) + "\n")
    return tmp_path / "home"


def shows_no_secret(result: CliResult) -> bool:
    """Whether neither stream has a secret, or the beginning of one."""
    return not any(secret[:6] in result.out + result.err for secret in (TOKEN, KEY_ID, WORD))


def test_reports_places_and_fields(cli: CliRunner, home: Path) -> None:
    """Each place has a kind, field and count, in transcripts, torn lines, side files and the history."""
    result = cli("scan", "--home", home, "--jsonl")
    assert result.code == 0
    assert shows_no_secret(result)
    findings = {(row["kind"], row["place"].removeprefix(f"{home}/"), row["count"]) for row in result.jsonl}
    main = f"projects/-w-p/{SESSION}.jsonl"
    assert findings == {
        ("github-token", f"{main}:2$.message.content", 2),
        ("password", f"{main}:3$.env.DB_PASSWORD", 1),
        ("aws-access-key-id", f"{main}:4", 1),
        ("aws-access-key-id", f"projects/-w-p/{SESSION}/tool-results/b1.txt:2", 1),
        ("github-token", "history.jsonl:1$.display", 1),
    }


def test_table_counts_kinds(cli: CliRunner, home: Path) -> None:
    """The table has a line per kind with the number of occurrences, secrets and places."""
    result = cli("scan", "--home", home)
    assert result.code == 0
    assert shows_no_secret(result)
    lines = [line.split() for line in result.out.splitlines()]
    assert ["github-token", "3", "1", "2"] in [line[:4] for line in lines]
    assert ["aws-access-key-id", "2", "1", "2"] in [line[:4] for line in lines]
    assert f"{SESSION}.jsonl:2$.message.content" in result.out


def test_formats_agree(cli: CliRunner, home: Path) -> None:
    """JSON, JSON Lines and CSV have the same rows."""
    rows = cli("scan", "--home", home, "--json").json
    assert cli("scan", "--home", home, "--jsonl").jsonl == rows
    cells = cli("scan", "--home", home, "--csv").csv
    assert [row["place"] for row in cells] == [row["place"] for row in rows]


def test_filters_by_kind_time_session_and_path(cli: CliRunner, home: Path) -> None:
    """`--kind`, `--since`, a session id and a path exclude everything else."""
    assert {row["kind"] for row in cli("scan", "--home", home, "--kind", "password", "--jsonl").jsonl} == {"password"}
    late = cli("scan", "--home", home, "--since", "2026-03-03", "--kind", "github-token", "--jsonl").jsonl
    assert [row["place"] for row in late if row["timestamp"]] == []
    by_id = cli("scan", SESSION[:8], "--home", home, "--jsonl").jsonl
    by_path = cli("scan", home / f"projects/-w-p/{SESSION}.jsonl", "--jsonl").jsonl
    assert [row for row in by_id if "/tool-results/" not in row["place"]] == by_path
    assert {row["session"] for row in by_id} == {SESSION}


def test_result_does_not_depend_on_jobs(cli: CliRunner, home: Path) -> None:
    """One worker and two workers find the same secrets."""
    single, parallel = (cli("scan", "--home", home, "--jobs", jobs, "--jsonl").jsonl for jobs in ("1", "2"))
    assert single == parallel


def test_no_secrets_exits_with_1(cli: CliRunner, demo_home: Path) -> None:
    """Exit code 1, an empty list, and how much was scanned. The demo has no secrets."""
    result = cli("scan", "--home", demo_home, "--json")
    assert (result.code, result.json) == (1, [])
    assert "No secrets found in " in result.err


@pytest.mark.slow
def test_personal_option_finds_personal_data(cli: CliRunner, demo_home: Path) -> None:
    """`--personal` finds home directories and addresses. Without it, they are not reported."""
    kinds = {row["kind"] for row in cli("scan", "--home", demo_home, "--personal", "--jsonl").jsonl}
    assert "home" in kinds
    assert cli("scan", "--home", demo_home, "--kind", "home", "--json").code == 0


def test_unknown_kind_is_an_error(cli: CliRunner, home: Path) -> None:
    """An unknown kind exits with 2, with a suggestion."""
    result = cli("scan", "--home", home, "--kind", "github-tokn")
    assert (result.code, result.out) == (2, "")
    assert "Did you mean 'github-token'?" in result.err


@pytest.mark.parametrize("output", ["--json", "--jsonl", "--csv", None])
def test_masks_secrets_in_places(cli: CliRunner, tmp_path: Path, output: str | None) -> None:
    """Secrets in keys, file names and session ids are not shown. The rest of the place is."""
    home = tmp_path / "home"
    folder = home / "projects/-w-p" / SESSION / "subagents"
    folder.mkdir(parents=True)
    letters = "AKIA" + "QWERTYUIOPASDFGH"  # a secret that looks like a field's name
    (folder / f"agent-{TOKEN}.jsonl").write_bytes(entry("x", 1, env={TOKEN: TOKEN, letters: {"inner": TOKEN}}))
    (folder.parent.parent / "x.jsonl").write_bytes(entry(f"use {TOKEN}", 2, sessionId=KEY_ID))
    result = cli("scan", "--home", home, *([output] if output else []))
    assert result.code == 0
    assert shows_no_secret(result)
    assert letters not in result.out
    assert "/agent-….jsonl:1$.env.…" in result.out


def test_a_session_includes_its_agents_and_side_files(cli: CliRunner, home: Path) -> None:
    """`scan SESSION` scans the main transcript, the agents' transcripts and the session's other files."""
    agent = home / f"projects/-w-p/{SESSION}/subagents/agent-a1b2c3d4.jsonl"
    agent.parent.mkdir()
    agent.write_bytes(entry(f"use {TOKEN}", 4, isSidechain=True, agentId="a1b2c3d4"))
    for name in (SESSION[:8], "last"):
        places = [row["place"] for row in cli("scan", name, "--home", home, "--jsonl").jsonl]
        files = {place.removeprefix(f"{home}/projects/-w-p/{SESSION}").partition(":")[0] for place in places}
        assert files == {".jsonl", "/subagents/agent-a1b2c3d4.jsonl", "/tool-results/b1.txt"}
    alone = cli("scan", f"{home}/projects/-w-p/{SESSION}.jsonl", "--jsonl").jsonl
    assert all("/subagents/" not in row["place"] for row in alone)
    assert [row["place"] for row in cli("scan", "a1b2c3d4", "--home", home, "--jsonl").jsonl] == [
        f"{agent}:1$.message.content"
    ]
