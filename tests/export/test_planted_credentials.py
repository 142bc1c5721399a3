"""No planted credential survives in any export format, and another scanner finds none."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.export.planted_home import Planted, plant
from tests.redact.test_oracle import findings, scanner

from threadline.export import ExportFormat, ExportOptions, ExportResult
from threadline.export.exporter import _Exporter
from threadline.export.redacted_copies import RedactedCopies
from threadline.find import homes, look
from threadline.model.homes import TranscriptKind
from threadline.redact import Settings
from threadline.render import Detail, View

FULL_VIEW = View(thinking=Detail.FULL, calls=Detail.FULL, agents=Detail.FULL, images=False, everything=True)
FORMATS = ("html", "md", "json", "jsonl", "txt", "site")


pytestmark = pytest.mark.slow  # exports a thousand credentials in every format


@pytest.fixture(scope="module", params=[False, True], ids=["corpus", "home"])
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Planted]]:
    """A home with every credential planted: only the rows of the corpus, or a demo home as well."""
    home = tmp_path_factory.mktemp("planted") / "home"
    return home, plant(home, with_demo=request.param)


@pytest.fixture(scope="module")
def exports(planted: tuple[Path, list[Planted]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, ExportResult]:
    """All sessions of it in every format, with everything shown.

    They are redacted once, which takes most of the time.
    """
    home, _credentials = planted
    mains = [
        transcript.path for transcript in look(homes(home)[0]).transcripts if transcript.kind is TranscriptKind.MAIN
    ]
    folder = tmp_path_factory.mktemp("exports")
    copies = RedactedCopies(folder / "copies", Settings())
    redacted = copies.make(mains)
    findings = tuple(copies.redactor.findings)
    results = {}
    for export_format in FORMATS:
        options = ExportOptions(
            ExportFormat("html" if export_format == "site" else export_format),
            FULL_VIEW,
            Settings(),
            site=export_format == "site",
        )
        results[export_format] = ExportResult(
            tuple(_Exporter(options, folder / export_format, copies.sessions).export(redacted)), findings
        )
    return results


def texts(result: ExportResult) -> Iterator[tuple[str, str]]:
    """The texts of the files, raw and as a reader sees them."""
    for file in result.files:
        text = file.path.read_text(encoding="utf-8")
        yield file.name, text
        if file.name.endswith("html"):
            yield file.name, html.unescape(text)
        elif file.name.endswith("json"):
            yield file.name, json.dumps(json.loads(text), ensure_ascii=False)


def test_enough_credentials_are_planted(planted: tuple[Path, list[Planted]]) -> None:
    """At least 150 credentials of at least 40 kinds, each planted several times, are in the transcripts."""
    home, credentials = planted
    text = "\n".join(path.read_text(errors="replace") for path in (home / "projects").rglob("*.jsonl"))
    assert len(credentials) >= 150
    assert len({credential.kind for credential in credentials}) >= 40
    assert all(credential.times >= 2 for credential in credentials)
    missing = [
        credential.kind
        for credential in credentials
        if json.dumps(credential.lines[0])[1:-1] not in text and credential.lines[0] not in text
    ]
    assert missing == []


@pytest.mark.parametrize("export_format", FORMATS)
def test_no_credential_survives(
    export_format: str, planted: tuple[Path, list[Planted]], exports: dict[str, ExportResult]
) -> None:
    """No credential, and no line of a private key, is in any file. Most of each session is still there."""
    result = exports[export_format]
    assert len(result.files) > 50
    for name, text in texts(result):
        leaks = [credential.kind for credential in planted[1] for line in credential.lines if line in text]
        assert leaks == [], name
    assert sum("<secret-" in text or "&lt;secret-" in text for _name, text in texts(result)) > 25


@pytest.mark.parametrize("export_format", FORMATS)
def test_report_contains_no_credential(
    export_format: str, planted: tuple[Path, list[Planted]], exports: dict[str, ExportResult]
) -> None:
    """The report names kind, place and placeholder, but no value."""
    report = repr(exports[export_format].findings)
    assert [credential.kind for credential in planted[1] for line in credential.lines if line in report] == []
    assert {"password", "private-key", "github-token"} <= set(exports[export_format].hidden)


@pytest.mark.skipif(scanner() is None, reason="kingfisher-bin is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("export_format", FORMATS)
def test_another_scanner_finds_nothing(
    export_format: str, planted: tuple[Path, list[Planted]], exports: dict[str, ExportResult]
) -> None:
    """Kingfisher finds nothing in the exports, though it finds plenty in the transcripts."""
    folder = exports[export_format].files[0].path.parent
    assert findings(folder.parent if export_format == "site" else folder) == []
    if export_format == "jsonl":
        assert len(findings(planted[0] / "projects")) > 100
