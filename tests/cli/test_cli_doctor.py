"""`threadline doctor`."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli import home_counts
from tests.cli.runner import CliRunner, run_in_subprocess
from tests.transcripts import Pen, call, chain, line, meta, prompt, reply, transcript, write

from threadline import find
from threadline.model.entries import Entry
from threadline.model.homes import Found, Home
from threadline.parse import TranscriptReader
from threadline.reports import doctor

KEYS = {
    "transcripts",
    "lines",
    "bytes",
    "entries",
    "round_trip",
    "understood",
    "understood_bytes",
    "damaged_bytes",
    "pending_bytes",
    "kinds",
    "versions",
    "side_files",
    "problems",
    "missing_fields",
    "drift",
    "unlisted",
}
NAME = "5e551011-0000-4000-8000-000000000001.jsonl"


def write_home(tmp_path: Path, *rows: Any) -> tuple[Path, Path]:
    """A home with one transcript of these rows, and the transcript's path."""
    home = tmp_path / "home"
    return home, write(home / "projects/-work-app" / NAME, *rows)


def test_demo_home_is_healthy(cli: CliRunner, demo_home: Path) -> None:
    """The demo home round-trips, is fully understood, has no drift and one torn tail."""
    result = cli("doctor", "--home", demo_home, "--check")
    assert result.code == 0
    assert result.err == ""
    assert "Check passed: every transcript is reproduced byte for byte" in result.out
    assert "Understood 100% of bytes" in result.out
    assert "none: every kind, block, tool result and field is known" in result.out
    report = cli("doctor", "--home", demo_home, "--check", "--json").json
    assert (report["round_trip"], report["understood"], report["drift"]) == (True, 1, [])
    assert list(report["problems"]) == ["torn-tail"]


def test_json_keys_are_stable(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """The JSON always has these keys. Without `--check`, `round_trip` is null."""
    report = cli("doctor", "--home", demo_home, "--json").json
    assert set(report) == KEYS
    assert report["round_trip"] is None
    assert set(report["problems"]["torn-tail"]) == {"count", "recovered", "lost", "places"}
    home, _path = write_home(tmp_path, {"type": "novelty"})
    drift = cli("doctor", home, "--json").json["drift"]
    assert set(drift[0]) == {"what", "name", "within", "count", "bytes", "first_version", "place"}
    assert set(cli("doctor", "--json").json) == KEYS


def test_missing_fields_are_counted_by_kind_and_field(cli: CliRunner, tmp_path: Path) -> None:
    """A bare row is not "no problems". However many rows lack a field, it is listed once, with the first places."""
    _home, path = write_home(tmp_path, *[{"type": "user"}] * 7, *transcript(prompt("hi"), reply("ok")))
    report = cli("doctor", path, "--json").json
    assert report["problems"]["missing-field"]["count"] == 7 * 9
    fields = {item["field"]: item for item in report["missing_fields"]}
    assert set(fields) == {
        *("message", "uuid", "parentUuid", "timestamp", "sessionId", "isSidechain", "userType", "cwd", "version")
    }
    assert all((item["kind"], item["count"], item["since"]) == ("user", 7, None) for item in fields.values())
    assert fields["uuid"]["places"] == [f"{path}:{line}$.uuid" for line in range(1, 6)]
    page = cli("doctor", path).out
    assert "Missing fields that Claude Code always writes" in page
    rows = [row for row in cli("doctor", path, "--jsonl").jsonl if row["finding"] == "missing"]
    assert [(row["name"], row["within"], row["count"]) for row in rows][:1] == [("cwd", "user", 7)]


def test_required_fields_depend_on_the_version(cli: CliRunner, tmp_path: Path) -> None:
    """`gitBranch` is required since 1.0.98, and not if the version is unknown."""
    rows = transcript(*(prompt("hi", version=version) for version in ("1.0.17", "1.0.98", "1.0.100", "unknown")))
    _home, path = write_home(tmp_path, *({k: v for k, v in row.items() if k != "gitBranch"} for row in rows))  # type: ignore[union-attr] # rows, no bytes
    (missing,) = cli("doctor", path, "--json").json["missing_fields"]
    assert (missing["field"], missing["since"], missing["count"]) == ("gitBranch", "1.0.98", 2)
    assert missing["places"] == [f"{path}:2$.gitBranch", f"{path}:3$.gitBranch"]


def test_counts_equal_an_independent_count(cli: CliRunner, demo_home: Path) -> None:
    """Transcripts, lines, bytes, kinds and versions equal an independent count and the overview."""
    report = cli("doctor", "--home", demo_home, "--json").json
    assert report["transcripts"] == len(home_counts.transcripts(demo_home))
    assert report["lines"] == home_counts.count_lines(demo_home)
    assert report["bytes"] == home_counts.total_size(demo_home)
    assert report["kinds"].pop("pending") == 1
    assert report["kinds"] == home_counts.count_kinds(demo_home)
    assert report["entries"] == sum(report["kinds"].values())
    assert report["versions"] == home_counts.count_versions(demo_home)
    overview = cli("--home", demo_home, "--json").json
    for key in ("transcripts", "bytes", "entries", "versions", "side_files"):
        assert overview[key] == report[key]


def test_every_byte_is_accounted_for(cli: CliRunner, tmp_path: Path) -> None:
    """Understood, damaged, pending and unknown bytes add up to the size of the file."""
    torn = line({"type": "user", "message": {"role": "user", "content": "never finished"}})[:-20]
    rows = transcript(prompt("hi"), b"\0" * 100 + b"\n", b"garbage\n", {"type": "novelty", "x": 1}, reply("ok"), torn)
    home, path = write_home(tmp_path, *rows)
    report = cli("doctor", home, "--json").json
    unknown = sum(item["bytes"] for item in report["drift"])
    assert report["pending_bytes"] == len(torn)
    assert report["damaged_bytes"] == 101 + 8
    assert unknown == len(line({"type": "novelty", "x": 1}))
    parts = (report["understood_bytes"], report["damaged_bytes"], report["pending_bytes"], unknown)
    assert sum(parts) == report["bytes"] == path.stat().st_size
    assert float(report["understood"]) == report["understood_bytes"] / (report["bytes"] - len(torn)) < 1


def test_problems_are_counted_by_kind(cli: CliRunner, tmp_path: Path) -> None:
    """Problems are counted by kind, with the recovered and lost bytes, and each place once."""
    row = line({"type": "summary", "summary": "s", "leafUuid": "u"})
    home, path = write_home(tmp_path, row, row[:-1] + row, b"\0" * 9 + b"\n", b"42\n", row)
    problems = cli("doctor", home, "--json").json["problems"]
    assert problems["glued"] == {"count": 1, "recovered": 1, "lost": 0, "places": [f"{path}:2"]}
    assert problems["nul-run"] == {"count": 1, "recovered": 0, "lost": 10, "places": [f"{path}:3"]}
    assert problems["not-an-object"] == {"count": 1, "recovered": 0, "lost": 3, "places": [f"{path}:4"]}
    table = cli("doctor", home)
    for kind in problems:
        assert kind in table.out


PLANTED = [
    ("kind", "novelty", ""),
    ("subtype", "novel_subtype", "$.subtype"),
    ("block", "novel_block", "$.message.content[0]"),
    ("attachment", "novel_attachment", "$.attachment"),
    ("tool-result", "NovelTool", "$.toolUseResult"),
    ("field", "novelField", "$.novelField"),
]


def unknown_rows(pen: Pen) -> list[Any]:
    """One row for each kind of unknown thing, after a normal row."""
    return transcript(
        prompt("hi"),
        meta("novelty", novel=1),
        chain("system", subtype="novel_subtype", content="x"),
        reply({"type": "novel_block", "novel": 1}),
        chain("attachment", attachment={"type": "novel_attachment", "novel": 1}),
        call("NovelTool", "x", result="y", details={"novel": 1, "shape": 2}),
        prompt("hi", novelField=5),
        pen=pen,
    )


@pytest.fixture
def drift_home(tmp_path: Path) -> Path:
    """A home with each unknown thing twice. The older version is in the later file."""
    home = tmp_path / "drifting"
    for name, version in (("a", "2.1.10"), ("b", "2.1.9")):
        session = f"5e551011-0000-4000-8000-00000000000{name}"
        write(home / f"projects/-work-app/{session}.jsonl", *unknown_rows(Pen(session, version=version)))
    return home


@pytest.mark.parametrize(("what", "name", "json_path"), PLANTED)
def test_drift_has_count_first_version_and_place(
    cli: CliRunner, drift_home: Path, what: str, name: str, json_path: str
) -> None:
    """Each kind of drift has its count, the first version by number, and a place."""
    rows = {("kind", 2), ("subtype", 3), ("block", 4), ("attachment", 5), ("tool-result", 7), ("field", 8)}
    number = dict(rows)[what]
    path = next(drift_home.glob("projects/*/*b.jsonl"))
    (item,) = [drift for drift in cli("doctor", drift_home, "--json").json["drift"] if drift["what"] == what]
    assert item["name"] == name
    assert item["count"] == 2
    assert item["first_version"] == "2.1.9"
    assert item["place"] == f"{path}:{number}{json_path}"
    assert item["bytes"] > 0


def test_drift_lowers_understood_share_but_round_trips(
    cli: CliRunner, drift_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drift counts as not understood, but does not affect the round trip."""
    monkeypatch.setenv("COLUMNS", "160")
    report = cli("doctor", drift_home, "--json", "--check").json
    assert len(report["drift"]) == len(PLANTED)
    assert report["round_trip"] is True
    assert 0.5 < report["understood"] < 1
    assert report["understood_bytes"] + sum(item["bytes"] for item in report["drift"]) == report["bytes"]
    shown = cli("doctor", drift_home).out
    for _what, name, _path in PLANTED:
        assert name in shown


def test_rows_are_problems_and_drift(cli: CliRunner, drift_home: Path, demo_home: Path) -> None:
    """`--jsonl` and `--csv` print each problem and each drift as a row, equal to the JSON."""
    report = cli("doctor", drift_home, demo_home, "--json").json
    rows = cli("doctor", drift_home, demo_home, "--jsonl").jsonl
    table = cli("doctor", drift_home, demo_home, "--csv").csv
    assert [row["finding"] for row in rows] == ["problem"] + ["drift"] * len(PLANTED)
    assert rows[0]["what"] == "torn-tail"
    assert [row["place"] for row in rows[1:]] == [item["place"] for item in report["drift"]]
    assert [row["bytes"] for row in rows[1:]] == [item["bytes"] for item in report["drift"]]
    problem = report["problems"]["torn-tail"]
    assert {name: rows[0][name] for name in ("count", "recovered", "lost")} == {
        name: problem[name] for name in ("count", "recovered", "lost")
    }
    assert [(row["what"], row["name"], row["place"], int(row["count"])) for row in table] == [
        (row["what"], row["name"], row["place"], row["count"]) for row in rows
    ]


def test_accepts_files_folders_and_homes(cli: CliRunner, demo_home: Path) -> None:
    """PATH is a transcript, a folder or a home. Several are added up, and no transcript is counted twice."""

    def count(*paths: Path) -> tuple[int, int]:
        report = cli("doctor", *paths, "--json").json
        return report["transcripts"], report["bytes"]

    first, second = sorted(home_counts.main_transcripts(demo_home))[:2]
    folder = first.parent
    nested = list(folder.glob("**/*.jsonl"))
    assert count(first) == (1, first.stat().st_size)
    assert count(first, second) == (2, first.stat().st_size + second.stat().st_size)
    assert count(folder) == (len(nested), sum(path.stat().st_size for path in nested))
    everything = (len(home_counts.transcripts(demo_home)), home_counts.total_size(demo_home))
    assert count(demo_home) == count(demo_home / "projects") == everything
    link = Path("link.jsonl")
    link.symlink_to(first)
    assert count(demo_home, first, folder, demo_home, link) == everything
    once, twice = (cli("doctor", *[demo_home] * times, "--json").json for times in (1, 2))
    assert once == twice


def test_missing_path_exits_with_2_and_empty_home_with_1(cli: CliRunner, tmp_path: Path) -> None:
    """A missing PATH exits with 2. A folder without transcripts, or no home, exits with 1."""
    missing = cli("doctor", tmp_path / "nowhere")
    assert (missing.code, missing.out) == (2, "")
    assert missing.err.startswith("threadline: There is nothing at ")
    (tmp_path / "empty/projects").mkdir(parents=True)
    for empty in (cli("doctor", tmp_path), cli("doctor", "--home", tmp_path / "empty")):
        assert (empty.code, empty.out) == (1, "")
        assert empty.err.startswith("threadline: Nothing to read in '")
    no_home = cli("doctor")
    assert (no_home.code, no_home.out) == (1, "")
    assert "No Claude home found" in no_home.err
    both = cli("doctor", tmp_path, "--home", tmp_path)
    assert both.code == 2
    assert "either PATH or --home" in both.err


class LossyReader(TranscriptReader):
    """A reader that loses an entry."""

    def entries(self, path: str | Path, *, offset: int = 0, number: int = 1) -> Iterator[Entry]:
        """All entries except the second."""
        for position, entry in enumerate(super().entries(path, offset=offset, number=number)):
            if position != 1:
                yield entry


def test_failed_round_trip_is_an_error(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an entry is lost, `--check` exits with 2, sets `round_trip` to false and names the transcript."""
    home, path = write_home(tmp_path, *transcript(prompt("a"), prompt("b"), prompt("c")))
    monkeypatch.setattr(doctor, "TranscriptReader", LossyReader)
    assert cli("doctor", home).code == 0
    result = cli("doctor", home, "--check")
    assert result.code == 2
    assert "CHECK FAILED" in result.out
    checked = cli("doctor", home, "--check", "--json")
    assert checked.code == 2
    assert checked.json["round_trip"] is False
    assert checked.json["problems"]["changed-while-read"]["places"] == [str(path)]


def test_reports_vanished_transcript_and_reads_the_rest(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transcript that vanishes after it was listed is a problem. The others are read and checked."""
    home, path = write_home(tmp_path, *transcript(prompt("a")))
    vanished = write(path.with_name("5e551011-0000-4000-8000-000000000002.jsonl"), *transcript(prompt("b")))
    real_look = find.look

    def look(home: Home) -> Found:
        listing: Found = real_look(home)
        vanished.unlink(missing_ok=True)
        return listing

    monkeypatch.setattr(find, "look", look)
    result = cli("doctor", "--home", home, "--check")
    assert result.code == 0
    assert "unreadable" in result.out
    assert "every readable transcript is reproduced" in result.out
    write(vanished, *transcript(prompt("b")))
    monkeypatch.setenv("THREADLINE_INDEX", "off")
    overview = cli("--home", home, "--json").json
    assert (overview["sessions"], len(overview["problems"])) == (2, 1)  # `list` lists it as well, with its problem


@pytest.mark.parametrize("arguments", [["doctor", "--check"], ["doctor"], []])
def test_skips_fifos_sockets_and_link_loops(cli: CliRunner, tmp_path: Path, arguments: list[str]) -> None:
    """A FIFO, a socket, link loops and a directory named like a transcript are skipped with a reason."""
    home, path = write_home(tmp_path, *transcript(prompt("a")))
    folder = path.parent
    os.mkfifo(folder / "5e551011-0000-4000-8000-00000000000f.jsonl")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "around").symlink_to(folder)
    (folder / "5e551011-0000-4000-8000-00000000000d.jsonl").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(folder)
        server.bind("s.jsonl")
        result = cli(*arguments, "--home", home, "--json")
    assert result.code == 0
    report = result.json
    assert report["transcripts"] == 1
    problems = report["problems"]
    count = problems["skipped"]["count"] if isinstance(problems, dict) else len(problems)
    assert count >= 3


@pytest.mark.slow
def test_fifo_as_argument_does_not_block(tmp_path: Path) -> None:
    """A FIFO given as PATH is reported as unreadable, without waiting for a writer."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    for arguments in (["doctor"], ["doctor", "--check"], ["entries"]):
        result = run_in_subprocess(*arguments, tmp_path / "pipe.jsonl")
        assert "Traceback" not in result.err
        assert "regular file" in result.err or "unreadable" in result.out


@pytest.mark.slow
def test_result_does_not_depend_on_jobs(demo_home: Path) -> None:
    """One worker and two workers report the same findings."""
    single, parallel = (
        run_in_subprocess("doctor", demo_home, "--check", "--json", "--jobs", jobs) for jobs in ("1", "2")
    )
    assert single.code == parallel.code == 0
    assert single.json == parallel.json


def test_accepts_id_prefixes(cli: CliRunner, demo_home: Path) -> None:
    """`doctor` accepts the prefix of a session or agent id, as `entries` does. `--home` says where to look."""
    main = home_counts.main_transcripts(demo_home)[0]
    agent = next(path for path in home_counts.transcripts(demo_home) if path.name.startswith("agent-a"))
    for path, names in ((main, (main.stem[:8], main.name)), (agent, (agent.stem, agent.stem[6:14], agent.name))):
        for name in names:
            report = cli("doctor", name, "--home", demo_home, "--json").json
            assert (report["transcripts"], report["bytes"]) == (1, path.stat().st_size)
    assert cli("doctor", "ffff0000", "--home", demo_home).code == 2


def test_narrow_page_keeps_the_ends_of_places(
    cli: CliRunner, drift_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns no line is longer, and each place keeps the end of the file name and the line number."""
    monkeypatch.setenv("COLUMNS", "80")
    with next(drift_home.glob("projects/*/*b.jsonl")).open("ab") as file:
        file.write(b"garbage\n")
    lines = cli("doctor", drift_home).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(text.lstrip().startswith("foreign-bytes") and text.endswith("b.jsonl:9") for text in lines)
    for number in (2, 3, 4, 5, 7, 8):
        assert any(text.endswith(f"b.jsonl:{number}") for text in lines)


def test_wording_of_counts_and_shares(cli: CliRunner, tmp_path: Path) -> None:
    """One item is singular, a share has at most two decimals and never rounds up to 100%, a torn tail is pending."""
    torn = b'{"type":"user"'
    home, _path = write_home(tmp_path, *transcript(prompt("x" * 200_000)), {"type": "novelty"}, torn)
    shown = cli("doctor", home).out
    assert "Read 1 transcript (3 lines, 2 entries" in shown
    assert "Understood 99.99% of bytes, 14 bytes pending" in shown
    (row,) = [text for text in shown.splitlines() if text.lstrip().startswith("torn-tail")]
    assert "14 bytes pending" in row
    _home, path = write_home(tmp_path / "other", *transcript(prompt("x")))
    assert "Read 1 transcript (1 line, 1 entry, " in cli("doctor", path).out


def test_a_session_includes_its_agents(cli: CliRunner, tmp_path: Path) -> None:
    """`doctor SESSION` checks the agents' transcripts too, in the session's folder and beside it; PATH is one file."""
    home, main = write_home(tmp_path, *transcript(prompt("hi"), reply("ok")))
    session = NAME.removesuffix(".jsonl")
    rows = transcript(prompt("task"), reply("done", sidechain_kind="new"))
    write(main.with_suffix("") / "subagents/agent-a1b2c3d4.jsonl", *rows, b"{torn")
    write(main.parent / "agent-b2.jsonl", *rows)
    write(main.parent / "agent-c3.jsonl", *transcript(prompt("task"), pen=Pen("another")))
    report = cli("doctor", session[:8], "--home", home, "--json", "--check").json
    assert (report["transcripts"], report["round_trip"]) == (3, True)
    assert "torn-tail" in report["problems"]
    assert cli("doctor", main, "--json").json["transcripts"] == 1
    assert cli("doctor", "a1b2c3d4", "--home", home, "--json").json["transcripts"] == 1
