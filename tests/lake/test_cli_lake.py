"""`threadline lake`: errors say what to do. `test_lake_docs.py` runs the commands of docs/lake.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, TypedLines
from tests.lake.machines import write_session

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")


def test_errors_say_what_to_do(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Without a lake, without tables, with an unknown URI or engine: one sentence, exit code 2."""
    cli = CliRunner(capfdbinary)
    lake = str(tmp_path / "lake")
    for words, sentence in (
        (["build", lake], "threadline lake init"),
        (["status", "gs://bucket"], "Use file:///folder or s3://bucket/prefix"),
    ):
        result = cli("lake", *words)
        assert result.code == 2
        assert sentence in " ".join(result.err.split())
    assert cli("lake", "init", lake, "--policy", "metrics", "--json").json["policy"] == "metrics"
    for words, sentence in (
        (["init", lake, "--policy", "full"], "--change-policy"),
        (["usage", lake], "threadline lake build"),
        (["build", lake, "--engine", "ray"], "Use local, sail or sc://HOST:PORT"),
        (["forget", lake], "--session ID, --person NAME or --before WHEN"),
    ):
        result = cli("lake", *words)
        assert result.code == 2
        assert sentence in " ".join(result.err.split())


def test_empty_answers_say_why(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Of a lake without text, and of a period without charges or sessions: exit code 1. Times are in the zone."""
    cli = CliRunner(capfdbinary)
    lake = str(tmp_path / "lake")
    write_session(tmp_path / "home", 1)
    assert cli("lake", "init", lake, "--policy", "metrics").code == 0
    assert cli("lake", "push", lake, "--accept", "metrics", "--person", "ann", "--home", tmp_path / "home").code == 0
    assert cli("lake", "build", lake).code == 0
    for words, sentence in (
        (["search", lake, "hello"], "it contains no text"),
        (["usage", lake, "--since", "2027-01-01"], "matches --since. Charges run from"),
        (["usage", lake, "--project", "nowhere"], "Projects: "),
        (["forget", lake, "--before", "2020-01-01"], "Nothing in"),
    ):
        result = cli("lake", *words)
        assert (result.code, result.out) == (1, "")
        assert sentence in " ".join(result.err.split())
    status = cli("lake", "status", lake, "--tz", "Asia/Tokyo").out
    assert "last push (Asia/Tokyo)" in status
    assert "+00:00" not in status


def test_questions_can_be_answered_with_no(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is pushed by a policy that was refused, and nothing is forgotten without a yes."""
    cli = CliRunner(capfdbinary)
    lake = str(tmp_path / "lake")
    write_session(tmp_path / "home", 1)
    assert cli("lake", "init", lake, "--policy", "metrics").code == 0
    push = ("lake", "push", lake, "--person", "ann", "--home", tmp_path / "home")
    forget = ("lake", "forget", lake, "--person", "ann")
    for words, typed, code, sentence in (
        (push, "n\n", 2, "--accept metrics"),
        (push, "y\n", 0, "Push now?"),
        (forget, "n\n", 1, "Nothing was forgotten."),
    ):
        monkeypatch.setattr("sys.stdin", TypedLines(typed))
        result = cli(*words)
        assert result.code == code
        assert sentence in " ".join(result.err.split())
