"""Tests of the generated demo home."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from tools.demo import HomeSize, write

from threadline.errors import BadQuery, Unreadable
from threadline.parse import entries
from threadline.thread import Requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HomeSize]:
    """The home that the generator writes by default."""
    path = tmp_path_factory.mktemp("demo") / "home"
    return path, write(path)


def transcripts(home: Path) -> list[Path]:
    """Return all transcripts, including those of agents but not workflow journals."""
    return sorted(path for path in home.glob("projects/**/*.jsonl") if path.name != "journal.jsonl")


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows that can be read."""
    for line in path.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def file_digests(home: Path) -> dict[str, str]:
    """Return every file with a hash of its bytes."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file())
    return {path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_requests_can_be_rebuilt(home: tuple[Path, HomeSize]) -> None:
    """Every message of every request is in the transcript, and has the hash that the request names."""
    requests = [request for path in transcripts(home[0]) for request in Requests(list(entries(path)))]
    assert len(requests) > 10
    assert [request.number for request in requests if not (request.verified and request.digest_verified)] == []


def test_same_seed_gives_the_same_bytes(tmp_path: Path, home: tuple[Path, HomeSize]) -> None:
    """The same seed and size give the same files wherever they are written."""
    second = write(tmp_path / "elsewhere" / "home")
    assert second == home[1]
    assert file_digests(tmp_path / "elsewhere" / "home") == file_digests(home[0])


def test_home_does_not_depend_on_the_machine(tmp_path: Path) -> None:
    """It contains no clock, path, user or random number of this machine."""
    write(tmp_path / "home", seed=3, megabytes=0.4)
    text = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert str(tmp_path).encode() not in text


def test_another_seed_gives_another_home(tmp_path: Path) -> None:
    """No file except the settings is the same."""
    write(tmp_path / "one", seed=1, megabytes=0.3)
    write(tmp_path / "two", seed=2, megabytes=0.3)
    assert not set(file_digests(tmp_path / "one").values()) & set(file_digests(tmp_path / "two").values()) - {
        hashlib.sha256((tmp_path / "one" / "settings.json").read_bytes()).hexdigest()
    }


def test_ends_on_the_requested_day(tmp_path: Path) -> None:
    """Something happens on that day and nothing after it."""
    write(tmp_path / "home", megabytes=1, until=date(2026, 12, 24))
    days = [
        row["timestamp"][:10] for path in transcripts(tmp_path / "home") for row in rows(path) if "timestamp" in row
    ]
    assert max(days) == "2026-12-24"


def test_counts_match_the_files(home: tuple[Path, HomeSize]) -> None:
    """`write` returns the numbers of what it wrote."""
    path, written = home
    files = transcripts(path)
    assert written.transcripts == len(files)
    assert written.agents == sum(file.name.startswith("agent-") for file in files)
    assert written.bytes == sum(file.stat().st_size for file in files)
    assert written.lines == sum(len(file.read_bytes().rstrip(b"\n").split(b"\n")) for file in files)
    assert written.projects == len(list((path / "projects").iterdir()))


def test_exactly_one_line_is_torn(home: tuple[Path, HomeSize]) -> None:
    """Every line is a JSON object, except the last one of one transcript."""
    torn = []
    for file in transcripts(home[0]):
        raw = file.read_bytes()
        lines = raw.split(b"\n")
        for number, line in enumerate(lines[:-1]):
            assert isinstance(json.loads(line), dict), (file, number)
        if lines[-1]:
            torn.append(lines[-1])
    assert len(torn) == 1
    with pytest.raises(ValueError, match=r"Unterminated|delimiter|Expecting"):
        json.loads(torn[0])


def test_parents_exist_and_uuids_are_unique(home: tuple[Path, HomeSize]) -> None:
    """Every parent is a row of the same transcript."""
    for file in transcripts(home[0]):
        uuids = [row["uuid"] for row in rows(file) if "uuid" in row]
        assert len(uuids) == len(set(uuids)), file
        parents = {row["parentUuid"] for row in rows(file) if row.get("parentUuid")}
        assert parents <= set(uuids), file


def test_results_have_calls(home: tuple[Path, HomeSize]) -> None:
    """Every tool result belongs to a call of the same transcript, and its parent is the row of that call."""
    for file in transcripts(home[0]):
        calls: dict[str, str] = {}
        for row in rows(file):
            content = row.get("message", {}).get("content") if "message" in row else None
            for block in content if isinstance(content, list) else []:
                if block.get("type") == "tool_use":
                    calls[block["id"]] = row["uuid"]
                if block.get("type") == "tool_result" and row["type"] == "user":
                    assert row["parentUuid"] == calls[block["tool_use_id"]]


def test_contains_every_kind_of_file_and_row(home: tuple[Path, HomeSize]) -> None:
    """Kinds of rows, layouts of agents, and side files."""
    path = home[0]
    kinds: Counter[str] = Counter()
    versions = set()
    for file in transcripts(path):
        for row in rows(file):
            kinds[row["type"]] += 1
            if "subtype" in row:
                kinds[row["subtype"]] += 1
            versions.add(row.get("version", "").rsplit(".", 1)[0])
    expected = {
        "user assistant system attachment progress summary ai-title custom-title last-prompt mode",
        "queue-operation file-history-snapshot file-history-delta cost-state tools-used",
        "api-request api-request-blob",
        "api-request-shape compact_boundary turn_duration stop_hook_summary api_error local_command",
    }
    assert set(" ".join(expected).split()) <= set(kinds)
    assert {"0.2", "1.0", "2.0", "2.1"} <= versions
    for pattern in (
        "projects/*/agent-*.jsonl",
        "projects/*/*/subagents/agent-*.jsonl",
        "projects/*/*/subagents/agent-*.meta.json",
        "projects/*/*/subagents/workflows/*/agent-*.jsonl",
        "projects/*/*/subagents/workflows/*/journal.jsonl",
        "projects/*/*/workflows/*.json",
        "projects/*/*/tool-results/*.txt",
        "projects/*/sessions-index.json",
        "history.jsonl",
        "stats-cache.json",
        "todos/*.json",
        "tasks/*/*.json",
        "plans/*.md",
        "file-history/*/*@v*",
        "sessions/*.json",
    ):
        assert list(path.glob(pattern)), pattern


def test_copies_share_rows(home: tuple[Path, HomeSize]) -> None:
    """A resumed session of 1.0 and a forked one of 2.1 begin with rows of another transcript."""
    owners: dict[str, list[str]] = {}
    for file in transcripts(home[0]):
        for row in rows(file):
            if "uuid" in row:
                owners.setdefault(row["uuid"], []).append(row["version"])
    assert {versions[0] for versions in owners.values() if len(versions) > 1} == {"1.0.108", "2.1.232"}


def test_fields_match_the_version(home: tuple[Path, HomeSize]) -> None:
    """Rows only have fields that their version wrote, in its order."""
    for file in transcripts(home[0]):
        for row in rows(file):
            version = tuple(map(int, row.get("version", "0").split(".")))
            if row["type"] != "assistant" or row["message"]["model"] == "<synthetic>":
                continue
            assert ("costUSD" in row) == (version < (1, 0, 9))
            assert ("gitBranch" in row) == (version >= (1, 0, 56))
            assert ("requestRef" in row) == (version >= (2, 1, 320))
            keys = list(row)
            assert keys.index("message") < keys.index("type")
            assert (keys.index("cwd") > keys.index("type")) == (version >= (2, 1, 76))


def test_refuses_to_overwrite(tmp_path: Path) -> None:
    """A directory that is not empty is unchanged, and the message says what to do."""
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(BadQuery, match="not empty"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(BadQuery, match="not empty"):
        write(tmp_path / "mine")


@pytest.mark.parametrize(("megabytes", "count"), [(0, None), (-1, None), (float("nan"), None), (1, 0)])
def test_refuses_a_size_of_zero(tmp_path: Path, megabytes: float, count: int | None) -> None:
    """Nothing is written."""
    with pytest.raises(BadQuery, match="size above zero"):
        write(tmp_path / "home", megabytes=megabytes, transcripts=count)
    assert not (tmp_path / "home").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_unwritable_directory_is_an_error(tmp_path: Path) -> None:
    """The message has the reason of the operating system."""
    tmp_path.chmod(0o500)
    with pytest.raises(Unreadable, match="Cannot write"):
        write(tmp_path / "home")


def test_progress_reaches_its_goal(tmp_path: Path) -> None:
    """It increases, never exceeds the goal and ends close to it."""
    updates: list[tuple[int, int]] = []
    write(tmp_path / "home", megabytes=0.5, progress=lambda done, goal: updates.append((done, goal)))
    assert [done for done, _ in updates] == sorted(done for done, _ in updates)
    assert all(done <= goal for done, goal in updates)
    assert updates[-1][0] > updates[-1][1] * 0.9
