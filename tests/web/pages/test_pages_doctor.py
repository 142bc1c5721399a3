"""The doctor page: a background thread reads everything while other pages keep working."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep

from tests.transcripts import SESSION, prompt, reply, transcript, write
from tests.web.pages.requests import ParsedPage, ask, data

import threadline
from threadline.archive import Archive
from threadline.model.text import format_size
from threadline.web import Page
from threadline.web.examiner import ExaminationProgress, Examiner

_MAX_SECONDS = 120


def _wait(examiner: Examiner) -> ExaminationProgress:
    deadline = monotonic() + _MAX_SECONDS
    while monotonic() < deadline:
        progress = examiner.progress
        if progress is not None and not progress.is_running:
            return progress
        sleep(0.05)
    raise AssertionError("it did not end")


def test_the_result_equals_the_archives(demo: Archive, demo_home: Path) -> None:
    """The background thread finds what reading here finds. A second start joins the first."""
    examiner = Examiner()
    assert examiner.start("now", [str(demo_home)]).is_running
    assert examiner.start("later", [str(demo_home)]).generation == "now"
    assert _wait(examiner).result == demo.examine()


def test_a_failed_check_can_be_repeated(tmp_path: Path, demo_home: Path) -> None:
    """If reading fails, the page can say why, and the next check may succeed."""
    examiner = Examiner()
    examiner.start("now", [str(tmp_path / "nowhere")])
    progress = _wait(examiner)
    assert progress.result is None
    assert "nowhere" in str(progress.failure)
    examiner.start("now", [str(demo_home)])
    assert _wait(examiner).result is not None


def test_the_page_shows_progress_and_then_the_result(demo: Archive) -> None:
    """The page loads at once, shows progress by a script or a link, and then the result."""
    deadline = monotonic() + _MAX_SECONDS
    page = ask(demo, "/doctor")
    while data(page)["state"] == "at work" and monotonic() < deadline:
        assert page.scripts == ("progress.js",)
        assert "Reload to see progress" in ParsedPage(page).words
        sleep(0.1)
        page = ask(demo, "/doctor")
    answer = data(page)
    assert answer["state"] == "done"
    assert answer["examination"]["entries"] == demo.examine().entries
    assert not page.scripts
    assert f"100% of {format_size(demo.examine().bytes)} understood" in ParsedPage(page).words


def test_shows_problems_from_the_index_at_once(tmp_path: Path) -> None:
    """Every problem in the index is on the page at once, with a link to its entry."""
    rows = transcript(prompt("words"), b'{"type": "user", "torn\n', reply("ok"))
    write(tmp_path / "home" / "projects" / "-work" / f"{SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = ask(archive, "/doctor")
        problems = data(page)["known"]
        assert [problem["line"] for problem in problems] == [2]
        assert f"/session/{SESSION}?at=L2#L2" in ParsedPage(page).links


def _examined(archive: Archive) -> Page:
    """The page once every transcript has been examined."""
    deadline = monotonic() + _MAX_SECONDS
    page = ask(archive, "/doctor")
    while data(page)["state"] == "at work" and monotonic() < deadline:
        sleep(0.05)
        page = ask(archive, "/doctor")
    return page


def test_unknown_data_is_not_called_damage(tmp_path: Path) -> None:
    """Of a transcript with an unknown kind of entry and no damage, the page does not say that 0 B are damaged."""
    rows = transcript(prompt("words"), reply("ok"))
    write(tmp_path / "home" / "projects" / "-work" / f"{SESSION}.jsonl", *rows, {"type": "weather", "sky": "blue"})
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = _examined(archive)
    words = ParsedPage(page).words
    assert "Nothing is damaged." in words
    assert "0 B" not in words


def test_lists_missing_fields_by_kind(tmp_path: Path) -> None:
    """A field that rows lack is listed once with its count, and the index knows each row."""
    write(tmp_path / "home" / "projects" / "-work" / f"{SESSION}.jsonl", {"type": "user"}, {"type": "user"})
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = _examined(archive)
        missing = data(page)["examination"]["missing_fields"]
        assert {(item["kind"], item["count"]) for item in missing} == {("user", 2)}
        assert [problem["kind"] for problem in data(page)["known"]] == ["missing-field"] * 2 * len(missing)
        words = ParsedPage(page).words
        assert "Missing fields" in words
        assert all(item["field"] in words for item in missing)
