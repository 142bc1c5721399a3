"""The doctor: it reads everything by a thread of its own, and pages go on meanwhile."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep

from tests.transcripts import SESSION, prompt, reply, transcript, write
from tests.web.pages.requests import Seen, ask, data

import threadline
from threadline.archive import Archive
from threadline.web.examiner import ExaminationProgress, Examiner

_PATIENCE = 120


def _wait(examiner: Examiner) -> ExaminationProgress:
    until = monotonic() + _PATIENCE
    while monotonic() < until:
        progress = examiner.progress
        if progress is not None and not progress.is_running:
            return progress
        sleep(0.05)
    raise AssertionError("it did not end")


def test_the_result_is_the_archive_s(demo: Archive, demo_home: Path) -> None:
    """The background thread finds what reading here finds; a second start joins the first."""
    examiner = Examiner()
    assert examiner.start("now", [str(demo_home)]).is_running
    assert examiner.start("later", [str(demo_home)]).generation == "now"
    assert _wait(examiner).result == demo.examine()


def test_a_missing_home_is_a_failure_that_can_be_repeated(tmp_path: Path, demo_home: Path) -> None:
    """If reading fails, the page can say why, and the next check may succeed."""
    examiner = Examiner()
    examiner.start("now", [str(tmp_path / "nowhere")])
    progress = _wait(examiner)
    assert progress.result is None
    assert "nowhere" in str(progress.failure)
    examiner.start("now", [str(demo_home)])
    assert _wait(examiner).result is not None


def test_a_page_shows_how_far_it_is_and_then_what_was_found(demo: Archive) -> None:
    """The page is there at once, says how far it is, by a script or by a link, and ends with what was found."""
    until = monotonic() + _PATIENCE
    page = ask(demo, "/doctor")
    while data(page)["state"] == "at work" and monotonic() < until:
        assert page.scripts == ("doctor.js",)
        assert "Reload to see progress" in Seen(page).words
        sleep(0.1)
        page = ask(demo, "/doctor")
    told = data(page)
    assert told["state"] == "done"
    assert told["examination"]["entries"] == demo.examine().entries
    assert not page.scripts
    assert "of bytes understood" in Seen(page).words


def test_what_the_index_knows_is_told_without_reading(tmp_path: Path) -> None:
    """Every problem that the index has is on the page at once, and leads to its entry."""
    rows = transcript(prompt("words"), b'{"type": "user", "torn\n', reply("ok"))
    write(tmp_path / "home" / "projects" / "-work" / f"{SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = ask(archive, "/doctor")
        told = data(page)["known"]
        assert [one["line"] for one in told] == [2]
        assert f"/session/{SESSION}?at=L2#L2" in Seen(page).links
