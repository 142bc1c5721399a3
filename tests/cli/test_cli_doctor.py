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
    "drift",
}
NAME = "5e551011-0000-4000-8000-000000000001.jsonl"


def home_of(tmp_path: Path, *rows: Any) -> tuple[Path, Path]:
    """A home with one transcript of these rows, and that transcript."""
    home = tmp_path / "home"
    return home, write(home / "projects/-work-app" / NAME, *rows)


def test_a_demo_home_is_healthy(cli: CliRunner, demo_home: Path) -> None:
    """A made-up home: the round trip is exact, all is understood, nothing is drift, one tail is torn."""
    result = cli("doctor", "--home", demo_home, "--check")
    assert result.code == 0
    assert result.err == ""
    assert "Check passed: every transcript is reproduced byte for byte" in result.out
    assert "Understood 100 % of bytes" in result.out
    assert "none: every kind, block, tool result and field is known" in result.out
    seen = cli("doctor", "--home", demo_home, "--check", "--json").json
    assert (seen["round_trip"], seen["understood"], seen["drift"]) == (True, 1, [])
    assert list(seen["problems"]) == ["torn-tail"]


def test_keys_are_stable(cli: CliRunner, demo_home: Path, tmp_path: Path) -> None:
    """The keys of the JSON are these words, whatever there is to read; without `--check` nothing is claimed."""
    seen = cli("doctor", "--home", demo_home, "--json").json
    assert set(seen) == KEYS
    assert seen["round_trip"] is None
    assert set(seen["problems"]["torn-tail"]) == {"count", "recovered", "lost", "places"}
    home, _path = home_of(tmp_path, {"type": "novelty"})
    drift = cli("doctor", home, "--json").json["drift"]
    assert set(drift[0]) == {"what", "name", "within", "count", "bytes", "first_version", "place"}
    assert set(cli("doctor", "--json").json) == KEYS


def test_figures_equal_an_independent_count(cli: CliRunner, demo_home: Path) -> None:
    """Transcripts, lines, bytes, kinds and versions equal what json and open count, and what the overview says."""
    seen = cli("doctor", "--home", demo_home, "--json").json
    assert seen["transcripts"] == len(home_counts.transcripts(demo_home))
    assert seen["lines"] == home_counts.count_lines(demo_home)
    assert seen["bytes"] == home_counts.total_size(demo_home)
    assert seen["kinds"].pop("pending") == 1
    assert seen["kinds"] == home_counts.count_kinds(demo_home)
    assert seen["entries"] == sum(seen["kinds"].values())
    assert seen["versions"] == home_counts.count_versions(demo_home)
    overview = cli("--home", demo_home, "--json").json
    for word in ("transcripts", "bytes", "entries", "versions", "side_files"):
        assert overview[word] == seen[word]


def test_every_byte_is_accounted_for(cli: CliRunner, tmp_path: Path) -> None:
    """Understood, damaged, unfinished and unknown bytes sum up to the size of the file."""
    torn = line({"type": "user", "message": {"role": "user", "content": "never finished"}})[:-20]
    rows = transcript(prompt("hi"), b"\0" * 100 + b"\n", b"garbage\n", {"type": "novelty", "x": 1}, reply("ok"), torn)
    home, path = home_of(tmp_path, *rows)
    seen = cli("doctor", home, "--json").json
    unknown = sum(item["bytes"] for item in seen["drift"])
    assert seen["pending_bytes"] == len(torn)
    assert seen["damaged_bytes"] == 101 + 8
    assert unknown == len(line({"type": "novelty", "x": 1}))
    parts = (seen["understood_bytes"], seen["damaged_bytes"], seen["pending_bytes"], unknown)
    assert sum(parts) == seen["bytes"] == path.stat().st_size
    assert seen["understood"] == seen["understood_bytes"] / (seen["bytes"] - len(torn)) < 1


def test_problems_have_kind_count_and_places(cli: CliRunner, tmp_path: Path) -> None:
    """Problems are counted by kind, with what was recovered, what was lost, and where to look, each place once."""
    row = line({"type": "summary", "summary": "s", "leafUuid": "u"})
    home, path = home_of(tmp_path, row, row[:-1] + row, b"\0" * 9 + b"\n", b"42\n", row)
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


def planted(pen: Pen) -> list[Any]:
    """One of everything that the model does not know, each on a row of its own, after a first row."""
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
def drifting(tmp_path: Path) -> Path:
    """A home in which each unknown thing stands twice, and the older version stands in the later file."""
    home = tmp_path / "drifting"
    for name, version in (("a", "2.1.10"), ("b", "2.1.9")):
        session = f"5e551011-0000-4000-8000-00000000000{name}"
        write(home / f"projects/-work-app/{session}.jsonl", *planted(Pen(session, version=version)))
    return home


@pytest.mark.parametrize(("what", "name", "json_path"), PLANTED)
def test_drift_tells_what_how_often_since_when_and_where(
    cli: CliRunner, drifting: Path, what: str, name: str, json_path: str
) -> None:
    """Each unknown kind, subtype, block, attachment, tool result and field: count, first version by number, place."""
    rows = {("kind", 2), ("subtype", 3), ("block", 4), ("attachment", 5), ("tool-result", 7), ("field", 8)}
    number = dict(rows)[what]
    path = next(drifting.glob("projects/*/*b.jsonl"))
    (item,) = [one for one in cli("doctor", drifting, "--json").json["drift"] if one["what"] == what]
    assert item["name"] == name
    assert item["count"] == 2
    assert item["first_version"] == "2.1.9"
    assert item["place"] == f"{path}:{number}{json_path}"
    assert item["bytes"] > 0


def test_drift_is_not_understood_but_comes_back(
    cli: CliRunner, drifting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is unknown lowers the share that is understood, is all of the rest, and makes the round trip no worse."""
    monkeypatch.setenv("COLUMNS", "160")
    seen = cli("doctor", drifting, "--json", "--check").json
    assert len(seen["drift"]) == len(PLANTED)
    assert seen["round_trip"] is True
    assert 0.5 < seen["understood"] < 1
    assert seen["understood_bytes"] + sum(item["bytes"] for item in seen["drift"]) == seen["bytes"]
    shown = cli("doctor", drifting).out
    for _what, name, _path in PLANTED:
        assert name in shown


def test_rows_are_problems_and_drift(cli: CliRunner, drifting: Path, demo_home: Path) -> None:
    """`--jsonl` and `--csv` print each problem and each piece of drift as a row, equal to what `--json` holds."""
    whole = cli("doctor", drifting, demo_home, "--json").json
    rows = cli("doctor", drifting, demo_home, "--jsonl").jsonl
    table = cli("doctor", drifting, demo_home, "--csv").csv
    assert [row["finding"] for row in rows] == ["problem"] + ["drift"] * len(PLANTED)
    assert rows[0]["what"] == "torn-tail"
    assert [row["place"] for row in rows[1:]] == [item["place"] for item in whole["drift"]]
    assert [row["bytes"] for row in rows[1:]] == [item["bytes"] for item in whole["drift"]]
    problem = whole["problems"]["torn-tail"]
    assert {name: rows[0][name] for name in ("count", "recovered", "lost")} == {
        name: problem[name] for name in ("count", "recovered", "lost")
    }
    assert [(row["what"], row["name"], row["place"], int(row["count"])) for row in table] == [
        (row["what"], row["name"], row["place"], row["count"]) for row in rows
    ]


def test_paths_may_be_files_folders_and_homes(cli: CliRunner, demo_home: Path) -> None:
    """PATH is a transcript, a folder with transcripts or a home; several are summed; none is counted twice."""

    def read(*paths: Path) -> tuple[int, int]:
        seen = cli("doctor", *paths, "--json").json
        return seen["transcripts"], seen["bytes"]

    one, other = sorted(home_counts.main_transcripts(demo_home))[:2]
    folder = one.parent
    below = list(folder.glob("**/*.jsonl"))
    assert read(one) == (1, one.stat().st_size)
    assert read(one, other) == (2, one.stat().st_size + other.stat().st_size)
    assert read(folder) == (len(below), sum(path.stat().st_size for path in below))
    everything = (len(home_counts.transcripts(demo_home)), home_counts.total_size(demo_home))
    assert read(demo_home) == read(demo_home / "projects") == everything
    link = Path("link.jsonl")
    link.symlink_to(one)
    assert read(demo_home, one, folder, demo_home, link) == everything
    once, twice = (cli("doctor", *[demo_home] * times, "--json").json for times in (1, 2))
    assert once == twice


def test_nothing_there_is_an_error_and_nothing_found_is_one(cli: CliRunner, tmp_path: Path) -> None:
    """A PATH that is not there: exit code 2. A folder without transcripts, or no home: 1."""
    missing = cli("doctor", tmp_path / "nowhere")
    assert (missing.code, missing.out) == (2, "")
    assert missing.err.startswith("threadline: There is nothing at ")
    (tmp_path / "empty/projects").mkdir(parents=True)
    for nothing in (cli("doctor", tmp_path), cli("doctor", "--home", tmp_path / "empty")):
        assert (nothing.code, nothing.out) == (1, "")
        assert nothing.err.startswith("threadline: Nothing to read in '")
    nobody = cli("doctor")
    assert (nobody.code, nobody.out) == (1, "")
    assert "No Claude home found" in nobody.err
    both = cli("doctor", tmp_path, "--home", tmp_path)
    assert both.code == 2
    assert "either PATH or --home" in both.err


class Forgetful(TranscriptReader):
    """A reader that loses an entry."""

    def entries(self, path: str | Path, *, offset: int = 0, number: int = 1) -> Iterator[Entry]:
        """All entries but the second."""
        for at, entry in enumerate(super().entries(path, offset=offset, number=number)):
            if at != 1:
                yield entry


def test_a_failed_round_trip_is_an_error(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were an entry lost, `--check` would find out: exit code 2, `round_trip` false, the transcript named."""
    home, path = home_of(tmp_path, *transcript(prompt("a"), prompt("b"), prompt("c")))
    monkeypatch.setattr(doctor, "TranscriptReader", Forgetful)
    assert cli("doctor", home).code == 0
    result = cli("doctor", home, "--check")
    assert result.code == 2
    assert "CHECK FAILED" in result.out
    checked = cli("doctor", home, "--check", "--json")
    assert checked.code == 2
    assert checked.json["round_trip"] is False
    assert checked.json["problems"]["changed-while-read"]["places"] == [str(path)]


def test_what_cannot_be_read_is_a_problem_and_the_rest_is_read(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transcript that vanishes between listing and opening is a problem; the others are read and checked."""
    home, path = home_of(tmp_path, *transcript(prompt("a")))
    gone = write(path.with_name("5e551011-0000-4000-8000-000000000002.jsonl"), *transcript(prompt("b")))
    really = find.look

    def look(home: Home) -> Found:
        found: Found = really(home)
        gone.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(find, "look", look)
    result = cli("doctor", "--home", home, "--check")
    assert result.code == 0
    assert "unreadable" in result.out
    assert "every readable transcript is reproduced" in result.out
    write(gone, *transcript(prompt("b")))
    monkeypatch.setenv("THREADLINE_INDEX", "off")
    seen = cli("--home", home, "--json").json
    assert (seen["sessions"], len(seen["problems"])) == (2, 1)  # `list` lists it as well, with its problem


@pytest.mark.parametrize("arguments", [["doctor", "--check"], ["doctor"], []])
def test_nothing_blocks_and_nothing_is_followed(cli: CliRunner, tmp_path: Path, arguments: list[str]) -> None:
    """A FIFO, a socket, loops of links and a directory with a transcript's name are skipped with a reason."""
    home, path = home_of(tmp_path, *transcript(prompt("a")))
    folder = path.parent
    os.mkfifo(folder / "5e551011-0000-4000-8000-00000000000f.jsonl")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "around").symlink_to(folder)
    (folder / "5e551011-0000-4000-8000-00000000000d.jsonl").mkdir()
    with socket.socket(socket.AF_UNIX) as plug:
        os.chdir(folder)
        plug.bind("s.jsonl")
        result = cli(*arguments, "--home", home, "--json")
    assert result.code == 0
    seen = result.json
    assert seen["transcripts"] == 1
    found = seen["problems"]
    count = found["skipped"]["count"] if isinstance(found, dict) else len(found)
    assert count >= 3


def test_a_fifo_that_is_named_does_not_block(tmp_path: Path) -> None:
    """Asked to check a FIFO, the doctor says that it cannot be read, and does not wait for a writer."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    for arguments in (["doctor"], ["doctor", "--check"], ["entries"]):
        result = run_in_subprocess(*arguments, tmp_path / "pipe.jsonl")
        assert "Traceback" not in result.err
        assert "regular file" in result.err or "unreadable" in result.out


def test_workers_give_the_same_answer(demo_home: Path) -> None:
    """Read with two workers or with one, the findings are the same."""
    one, two = (run_in_subprocess("doctor", demo_home, "--check", "--json", "--jobs", jobs) for jobs in ("1", "2"))
    assert one.code == two.code == 0
    assert one.json == two.json


def test_ids_will_do(cli: CliRunner, demo_home: Path) -> None:
    """`doctor` takes the start of a session's or an agent's id, as `entries` does, and `--home` says where to look."""
    main = home_counts.main_transcripts(demo_home)[0]
    agent = next(path for path in home_counts.transcripts(demo_home) if path.name.startswith("agent-a"))
    for path, names in ((main, (main.stem[:8], main.name)), (agent, (agent.stem, agent.stem[6:14], agent.name))):
        for name in names:
            seen = cli("doctor", name, "--home", demo_home, "--json").json
            assert (seen["transcripts"], seen["bytes"]) == (1, path.stat().st_size)
    assert cli("doctor", "ffff0000", "--home", demo_home).code == 2


def test_a_narrow_page_keeps_the_ends_of_places(
    cli: CliRunner, drifting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns no line is longer, and the file's end and the line number of each place are there."""
    monkeypatch.setenv("COLUMNS", "80")
    with next(drifting.glob("projects/*/*b.jsonl")).open("ab") as file:
        file.write(b"garbage\n")
    lines = cli("doctor", drifting).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(text.lstrip().startswith("foreign-bytes") and text.endswith("b.jsonl:9") for text in lines)
    for number in (2, 3, 4, 5, 7, 8):
        assert any(text.endswith(f"b.jsonl:{number}") for text in lines)


def test_figures_are_worded_with_care(cli: CliRunner, tmp_path: Path) -> None:
    """One thing is singular, a share has two decimals at most and is never rounded up to all, a tail is pending."""
    torn = b'{"type":"user"'
    home, _path = home_of(tmp_path, *transcript(prompt("x" * 200_000)), {"type": "novelty"}, torn)
    shown = cli("doctor", home).out
    assert "Read 1 transcript: 3 lines, 2 entries" in shown
    assert "Understood 99.99 % of bytes, 14 bytes pending" in shown
    (row,) = [text for text in shown.splitlines() if text.lstrip().startswith("torn-tail")]
    assert "14 bytes pending" in row
    _home, one = home_of(tmp_path / "other", *transcript(prompt("x")))
    assert "Read 1 transcript: 1 line, 1 entry, " in cli("doctor", one).out
