"""The doctor: it reads everything by a thread of its own, and pages go on meanwhile."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep

from tests import make
from tests.web.pages.asking import Seen, ask, data

import threadline
from threadline.archive import Archive
from threadline.web.pages.doctor import ExaminationProgress, Examiner

_PATIENCE = 120


def _ended(examining: Examiner) -> ExaminationProgress:
    until = monotonic() + _PATIENCE
    while monotonic() < until:
        standing = examining.reading
        if standing is not None and not standing.is_at_work:
            return standing
        sleep(0.05)
    raise AssertionError("it did not end")


def test_it_finds_what_the_archive_finds(demo: Archive, demo_home: Path) -> None:
    """What the other thread found is what reading here finds."""
    examining = Examiner([str(demo_home)])
    assert examining.begin("now").is_at_work
    assert examining.begin("now").state == "now"
    assert _ended(examining).found == demo.examine()


def test_a_home_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    """Where the reading fails, that is said; it can be begun again."""
    examining = Examiner([str(tmp_path / "nowhere")])
    examining.begin("now")
    standing = _ended(examining)
    assert standing.found is None
    assert "nowhere" in str(standing.failed)


def test_a_page_shows_how_far_it_is_and_then_what_was_found(demo: Archive) -> None:
    """The page is there at once, says how far it is, by a script or by a link, and ends with what was found."""
    until = monotonic() + _PATIENCE
    page = ask(demo, "/doctor")
    while data(page)["state"] == "at work" and monotonic() < until:
        assert page.scripts == ("doctor.js",)
        assert "See how far it is" in Seen(page).words
        sleep(0.1)
        page = ask(demo, "/doctor")
    told = data(page)
    assert told["state"] == "done"
    assert told["examination"]["entries"] == demo.examine().entries
    assert not page.scripts
    assert "of bytes understood" in Seen(page).words


def test_what_the_index_knows_is_told_without_reading(tmp_path: Path) -> None:
    """Every problem that the index has is on the page at once, and leads to its entry."""
    rows = make.transcript(make.prompt("words"), b'{"type": "user", "torn\n', make.reply("ok"))
    make.write(tmp_path / "home" / "projects" / "-work" / f"{make.SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = ask(archive, "/doctor")
        told = data(page)["known"]
        assert [one["line"] for one in told] == [2]
        assert f"/session/{make.SESSION}?at=L2#L2" in Seen(page).links
