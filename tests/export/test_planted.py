"""No planted credential survives in any form, and another scanner finds none."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.export.planting import Planted, plant
from tests.redact.test_oracle import findings, scanner

from threadline.export import ExportFormat, ExportOptions, ExportResult
from threadline.export.exporter import _Exporter
from threadline.export.redacted_copies import RedactedCopies
from threadline.find import homes, look
from threadline.model.homes import TranscriptKind
from threadline.redact import Settings
from threadline.render import AgentDetail, Detail, View

WHOLE = View(thinking=Detail.FULL, calls=Detail.FULL, agents=AgentDetail.FULL, images=False, everything=True)
FORMS = ("html", "md", "json", "jsonl", "txt", "site")


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["corpus", "home"])
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Planted]]:
    """A home in which every credential was planted: with the rows of the corpus only, or with a demo home as well."""
    home = tmp_path_factory.mktemp("planted") / "home"
    return home, plant(home, with_demo=request.param)


@pytest.fixture(scope="module")
def exports(planted: tuple[Path, list[Planted]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, ExportResult]:
    """All sessions of it in every form, each with everything shown; copied once, which takes the most time."""
    home, _every = planted
    mains = [
        transcript.path for transcript in look(homes(home)[0]).transcripts if transcript.kind is TranscriptKind.MAIN
    ]
    folder = tmp_path_factory.mktemp("exports")
    copies = RedactedCopies(folder / "copies", Settings())
    every = copies.make(mains)
    found = tuple(copies.redactor.findings)
    made = {}
    for form in FORMS:
        order = ExportOptions(ExportFormat("html" if form == "site" else form), WHOLE, Settings(), site=form == "site")
        made[form] = ExportResult(tuple(_Exporter(order, folder / form, copies.redactor).export(every)), found)
    return made


def texts(made: ExportResult) -> Iterator[tuple[str, str]]:
    """What the files say, as bytes and as a reader sees it."""
    for file in made.files:
        text = file.path.read_text(encoding="utf-8")
        yield file.name, text
        if file.name.endswith("html"):
            yield file.name, html.unescape(text)
        elif file.name.endswith("json"):
            yield file.name, json.dumps(json.loads(text), ensure_ascii=False)


def test_enough_was_planted(planted: tuple[Path, list[Planted]]) -> None:
    """At least 150 credentials of at least 40 kinds, each planted several times, stand in the transcripts."""
    home, every = planted
    there = "\n".join(path.read_text(errors="replace") for path in (home / "projects").rglob("*.jsonl"))
    assert len(every) >= 150
    assert len({one.kind for one in every}) >= 40
    assert all(one.times >= 2 for one in every)
    missing = [one.kind for one in every if json.dumps(one.lines[0])[1:-1] not in there and one.lines[0] not in there]
    assert missing == []


@pytest.mark.parametrize("form", FORMS)
def test_none_survives(form: str, planted: tuple[Path, list[Planted]], exports: dict[str, ExportResult]) -> None:
    """None of them stands in any file of this form, nor does a line of a private key; most of it is a session still."""
    made = exports[form]
    assert len(made.files) > 50
    for name, text in texts(made):
        left = [one.kind for one in planted[1] for line in one.lines if line in text]
        assert left == [], name
    assert sum("<secret-" in text or "&lt;secret-" in text for _name, text in texts(made)) > 25


@pytest.mark.parametrize("form", FORMS)
def test_the_report_tells_none(
    form: str, planted: tuple[Path, list[Planted]], exports: dict[str, ExportResult]
) -> None:
    """What was taken out is told by kind, place and placeholder, and by no value."""
    told = repr(exports[form].findings)
    assert [one.kind for one in planted[1] for line in one.lines if line in told] == []
    assert {"password", "private-key", "github-token"} <= set(exports[form].hidden)


@pytest.mark.skipif(scanner() is None, reason="kingfisher-bin is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_another_scanner_finds_nothing(
    form: str, planted: tuple[Path, list[Planted]], exports: dict[str, ExportResult]
) -> None:
    """Kingfisher finds nothing in the exports, though it finds plenty in the transcripts."""
    folder = exports[form].files[0].path.parent
    assert findings(folder.parent if form == "site" else folder) == []
    if form == "jsonl":
        assert len(findings(planted[0] / "projects")) > 100
