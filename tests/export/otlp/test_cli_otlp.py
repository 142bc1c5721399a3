"""Tests of `threadline export --format otlp`."""

from __future__ import annotations

import errno
import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.conftest import cli
from tests.cli.runner import CliRunner
from tests.export.otlp.decoding import decode_json, sum_spans
from tests.export.otlp.receiver import receive

from threadline.export import OtlpWriter

__all__ = ["cli"]


def test_file_has_what_usage_reports(cli: CliRunner, small_home: Path, tmp_path: Path) -> None:
    """A file of all sessions has the totals of `threadline usage`; it is not overwritten without --force."""
    target = tmp_path / "traces.jsonl"
    command = ("export", "--format", "otlp", "--home", str(small_home), "--out", str(target))
    result = cli(*command)
    assert result.code == 0
    spans = [span for line in target.read_text().splitlines() for span in decode_json(line)]
    assert f"{len(spans):,} spans" in result.out
    total = cli("usage", "--json", "--home", str(small_home)).json["total"]
    spent = sum_spans(spans)
    assert {name: getattr(spent, name) for name in total} == {**total, "amount": Decimal(total["amount"])}
    assert cli(*command).code == 2
    assert cli(*command, "--force").code == 0


def test_one_session_has_what_usage_reports(cli: CliRunner, small_home: Path) -> None:
    """A session's trace has the totals of `threadline usage --session`."""
    lines = cli("export", "--format", "otlp", "last", "--home", str(small_home), "--out", "-").out.splitlines()
    spans = [span for line in lines for span in decode_json(line)]
    session = spans[0].attributes["session.id"]
    total = cli("usage", "--session", session, "--json", "--home", str(small_home)).json["total"]
    assert sum_spans(spans).amount == total["amount"]
    assert sum_spans(spans).charges == total["charges"]


def test_sending_reports_what_was_sent_and_resumes(cli: CliRunner, small_home: Path, tmp_path: Path) -> None:
    """Traces are sent to the endpoint; with --resume, a second run sends nothing."""
    with receive() as receiver:
        sending = ("--endpoint", receiver.url, "--resume", str(tmp_path / "sent.jsonl"), "--header", "api-key=k")
        command = ("export", "--format", "otlp", "--home", str(small_home), "--json", *sending)
        first = cli(*command)
        assert first.code == 0
        assert first.json["spans"] == len(receiver.stored) == len(receiver.spans)
        assert {headers["api-key"] for headers in receiver.headers} == {"k"}
        second = cli(*command).json
        assert (second["traces"], second["unchanged"]) == (0, first.json["traces"])
        assert len(receiver.spans) == first.json["spans"]


def test_variables_send_nothing_unless_asked(
    cli: CliRunner, small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OTEL_EXPORTER_OTLP_ENDPOINT alone causes no request; --send uses it."""
    with receive() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        command = ("export", "--format", "otlp", "last", "--home", str(small_home))
        assert cli(*command, "--out", str(tmp_path / "a.jsonl")).code == 0
        assert not receiver.paths
        assert cli(*command, "--send").code == 0
        assert receiver.paths


def test_rejected_spans_are_an_error(cli: CliRunner, small_home: Path) -> None:
    """If the server rejects spans, the exit code is 2, and the message has its reason."""
    with receive() as receiver:
        receiver.rejects = 1
        result = cli("export", "--format", "otlp", "last", "--home", str(small_home), "--endpoint", receiver.url)
    assert result.code == 2
    assert "rejected 1 span: too old" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "md", "--endpoint", "http://h"], "--endpoint needs --format otlp"),
        (["--format", "otlp", "--site", "x"], "--site does not apply"),
        (["--format", "otlp", "--all"], "--all does not apply"),
        (["--format", "otlp", "--rate", "5"], "--rate is for sending"),
        (["--format", "otlp", "--follow"], "--follow needs"),
        (["--format", "otlp", "--endpoint", "http://h", "--out", "x"], "not both"),
        (["--format", "otlp", "--content", "--level", "metrics"], "metrics removes all text"),
        (["--format", "otlp", "--no-redact", "--hide", "Acme"], "cannot be combined with --no-redact"),
    ],
)
def test_options_that_contradict_are_refused(
    options: list[str], message: str, cli: CliRunner, small_home: Path
) -> None:
    """Options that make no sense together are an error that says so."""
    result = cli("export", "last", "--home", str(small_home), *options)
    assert result.code == 2
    assert message in result.err


def test_missing_extra_names_the_command(
    cli: CliRunner, small_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the extra, sending says how to install it, and files are written."""
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1", None)
    command = ("export", "--format", "otlp", "last", "--home", str(small_home))
    result = cli(*command, "--endpoint", "http://127.0.0.1:9")
    assert result.code == 2
    assert "needs opentelemetry-proto" in result.err
    assert "[otlp]'" in result.err
    assert cli(*command, "--out", str(tmp_path / "a.jsonl")).code == 0
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])["resourceSpans"]


def test_full_temporary_folder_is_named(
    cli: CliRunner, small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is no space for the traces, the message names the temporary folder, and no file is left."""

    def raise_disk_full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(OtlpWriter, "send", raise_disk_full)
    result = cli("export", "--format", "otlp", "last", "--home", str(small_home), "--out", str(tmp_path / "x.jsonl"))
    assert result.code == 2
    assert "is full. Free some space, or set TMPDIR" in result.err
    assert not (tmp_path / "x.jsonl").exists()
