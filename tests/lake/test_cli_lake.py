"""`threadline lake`: the commands of docs/lake.md run, and errors say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.doc_commands import ROOT, run_shell_lines

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")


@pytest.mark.slow
def test_every_command_of_the_page_runs(tmp_path: Path, small_home: Path) -> None:
    """Every shell line of docs/lake.md succeeds, from nothing to usage by team."""
    page = tmp_path / "lake.md"
    page.write_text((ROOT / "docs/lake.md").read_text().replace("/tmp/lake", str(tmp_path / "lake")))  # noqa: S108
    results = list(run_shell_lines(page, tmp_path, small_home))
    assert len(results) > 12
    for line, result in results:
        assert result.returncode == 0, f"{line}\n{result.stderr.decode()}"
    outputs = {line: result.stdout.decode() for line, result in results}
    assert "nothing is left" in results[-1][1].stdout.decode()
    assert "search" in next(text for line, text in outputs.items() if "--by team,project" in line)


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
        assert sentence in result.err
    assert cli("lake", "init", lake, "--policy", "metrics", "--json").json["policy"] == "metrics"
    for words, sentence in (
        (["init", lake, "--policy", "full"], "--change-policy"),
        (["usage", lake], "threadline lake build"),
        (["build", lake, "--engine", "ray"], "Use local, sail or sc://HOST:PORT"),
        (["forget", lake], "--session ID, --person NAME or --before WHEN"),
    ):
        result = cli("lake", *words)
        assert result.code == 2
        assert sentence in result.err
