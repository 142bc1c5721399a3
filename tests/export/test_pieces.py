"""A page is written in pieces as it is drawn, and the second look sees what it would see in the whole."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from tests.export.test_cli_export import TOKEN
from tests.redact.credentials import seeded
from tests.transcripts import SESSION, prompt, reply, transcript, write

from threadline.export import ExportFormat, ExportOptions, export_sessions, leak_check
from threadline.export.html_files import render_session_page
from threadline.export.leak_check import StreamChecker, find_leftovers
from threadline.load import read
from threadline.redact import Finding, Redactor, Settings
from threadline.render import View


@pytest.fixture
def long_session(tmp_path: Path) -> Path:
    """A session of 600 turns."""
    parts = [part for at in range(600) for part in (prompt(f"Ask {at} & go"), reply(f"**Answer** {at} with `code`."))]
    return write(tmp_path / f"home/projects/-work-app/{SESSION}.jsonl", *transcript(*parts))


@pytest.mark.slow
def test_no_piece_holds_much_of_a_long_session(long_session: Path, tmp_path: Path) -> None:
    """Together the pieces are the file, to the byte, none of them much of it; the work is told to its end."""
    made = render_session_page(read(long_session), View())
    pieces = list(made.pieces)
    assert len(pieces) == made.count > 10
    # The first has the style, the list of turns and nothing that was said.
    assert max(map(len, pieces[1:])) < sum(map(len, pieces[1:])) / 5
    done: list[int] = []
    written = (
        export_sessions([long_session], ExportOptions(settings=None), tmp_path / "work", done.append)
        .files[0]
        .path.read_text()
    )
    head, told = ("".join(pieces).partition("</h1>")[0], written.partition("</h1>")[0])
    assert head == told
    assert written.partition('<div class="feed">')[2] == "".join(pieces).partition('<div class="feed">')[2]
    assert written.endswith("</html>\n")
    assert sum(done) == 2 * long_session.stat().st_size


@pytest.mark.parametrize("size", [1, 40, 5000])
def test_the_second_look_at_pieces_finds_what_it_finds_in_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the pieces are, what stands in one, in several and across two of them is found, and counted once."""
    monkeypatch.setattr(leak_check, "_CHECK_SIZE", size)
    body = [seeded(at).randbytes(48).hex() for at in range(12)]
    key = ["-----BEGIN RSA PRIVATE " + "KEY-----", *body, "-----END RSA PRIVATE " + "KEY-----"]
    pieces = [
        f"<p>one {TOKEN} of it</p>",
        *(f"<p>nothing {at}</p>" for at in range(50)),
        *(f"<span>{line}\n</span>" for line in key),
        f'<p title="{TOKEN}">and more</p>',
    ]
    looking = StreamChecker(Redactor(Settings()), "x.html")
    for piece in pieces:
        looking.feed(piece)
    whole = find_leftovers(Redactor(Settings()), "html", "".join(pieces), "x.html")
    assert _counts(whole) == {"github-token": 2, "private-key": 1}
    assert _counts(looking.finish()) == {"github-token": 2, "private-key": 1}


def _counts(found: list[Finding]) -> Counter[str]:
    counts = Counter[str]()
    for finding in found:
        counts[finding.kind] += finding.count
    return counts


def test_what_is_clean_stays_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the same words twice, where pieces meet, finds nothing that is not there."""
    monkeypatch.setattr(leak_check, "_CHECK_SIZE", 1)
    looking = StreamChecker(Redactor(Settings()), "x.html")
    for at in range(100):
        looking.feed(f"<p>turn {at}: all is well</p>")
    assert looking.finish() == []


@pytest.mark.slow
def test_the_second_look_at_lines_holds_few_of_them(tmp_path: Path) -> None:
    """A transcript of any size is looked at line by line: what that holds at once is far less than the file."""
    session = write(tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl", *transcript(prompt("word " * 2000)))
    row = session.read_bytes()
    with session.open("ab") as file:
        file.writelines([row] * 800)
    order = ExportOptions(form=ExportFormat.JSONL)
    tracemalloc.start()
    try:
        export_sessions([session], order, tmp_path / "work")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < session.stat().st_size / 3
