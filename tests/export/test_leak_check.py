"""A page is written in pieces, and the leak check of the pieces finds what it would find in the whole."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from tests.export.test_cli_export import TOKEN
from tests.redact.credentials import password, seeded
from tests.transcripts import SESSION, prompt, reply, transcript, write

from threadline.export import ExportFormat, ExportOptions, export_sessions, leak_check
from threadline.export.html_files import render_session_page
from threadline.export.leak_check import StreamChecker, find_leftovers
from threadline.load import read
from threadline.redact import Finding, Redactor, SessionRedactor, Settings
from threadline.render import View


@pytest.fixture
def long_session(tmp_path: Path) -> Path:
    """A session of 600 turns."""
    parts = [
        part
        for number in range(600)
        for part in (prompt(f"Ask {number} & go"), reply(f"**Answer** {number} with `code`."))
    ]
    return write(tmp_path / f"home/projects/-work-app/{SESSION}.jsonl", *transcript(*parts))


@pytest.mark.slow
def test_long_session_is_written_in_small_pieces(long_session: Path, tmp_path: Path) -> None:
    """The pieces add up to the file, none is a large part of it, and the progress is complete."""
    page = render_session_page(read(long_session), View())
    pieces = list(page.pieces)
    assert len(pieces) == page.count > 10
    # The first piece has the style and the list of turns, and nothing of the conversation.
    assert max(map(len, pieces[1:])) < sum(map(len, pieces[1:])) / 5
    done: list[int] = []
    written = (
        export_sessions([long_session], ExportOptions(settings=None), tmp_path / "work", done.append)
        .files[0]
        .path.read_text()
    )
    head, written_head = ("".join(pieces).partition("</h1>")[0], written.partition("</h1>")[0])
    assert head == written_head
    assert written.partition('<div class="feed">')[2] == "".join(pieces).partition('<div class="feed">')[2]
    assert written.endswith("</html>\n")
    assert sum(done) == 2 * long_session.stat().st_size


@pytest.mark.parametrize("size", [1, 40, 5000])
def test_leak_check_of_pieces_equals_check_of_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces of any size, leaks within one, in several and across two are found and counted once."""
    monkeypatch.setattr(leak_check, "_CHECK_SIZE", size)
    body = [seeded(number).randbytes(48).hex() for number in range(12)]
    key = ["-----BEGIN RSA PRIVATE " + "KEY-----", *body, "-----END RSA PRIVATE " + "KEY-----"]
    pieces = [
        f"<p>one {TOKEN} of it</p>",
        *(f"<p>nothing {number}</p>" for number in range(50)),
        *(f"<span>{line}\n</span>" for line in key),
        f'<p title="{TOKEN}">and more</p>',
    ]
    checker = StreamChecker(Redactor(Settings()), "x.html")
    for piece in pieces:
        checker.feed(piece)
    findings = find_leftovers(Redactor(Settings()), "html", "".join(pieces), "x.html")
    assert count_by_kind(findings) == {"github-token": 2, "private-key": 1}
    assert count_by_kind(checker.finish()) == {"github-token": 2, "private-key": 1}


def count_by_kind(findings: list[Finding]) -> Counter[str]:
    """The number of findings per kind."""
    counts = Counter[str]()
    for finding in findings:
        counts[finding.kind] += finding.count
    return counts


def test_leak_check_of_clean_pieces_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking the overlap of two pieces twice finds nothing."""
    monkeypatch.setattr(leak_check, "_CHECK_SIZE", 1)
    checker = StreamChecker(Redactor(Settings()), "x.html")
    for number in range(100):
        checker.feed(f"<p>turn {number}: all is well</p>")
    assert checker.finish() == []


@pytest.mark.slow
def test_leak_check_of_lines_uses_little_memory(tmp_path: Path) -> None:
    """A transcript is checked line by line, with far less memory than its size."""
    session = write(tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl", *transcript(prompt("word " * 2000)))
    row = session.read_bytes()
    with session.open("ab") as file:
        file.writelines([row] * 800)
    options = ExportOptions(form=ExportFormat.JSONL)
    tracemalloc.start()
    try:
        export_sessions([session], options, tmp_path / "work")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < session.stat().st_size / 3


@pytest.mark.parametrize("form", [ExportFormat.MD, ExportFormat.JSON, ExportFormat.JSONL, ExportFormat.TXT])
def test_formats_agree_on_the_item_after_a_name(tmp_path: Path, form: ExportFormat) -> None:
    """Where lines are joined, the value of the next list item is not that of a name, in any format."""
    text = "env:\n- name: DB_PASSWORD\n  valueFrom:\n    key: password\n- name: LEVEL\n  value: verbose\n"
    session = write(tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl", *transcript(prompt(text)))
    result = export_sessions([session], ExportOptions(form=form), tmp_path / "work")
    assert "value: verbose" in result.files[0].path.read_text()


def test_leak_check_counts_in_joined_lines_what_redaction_counts(tmp_path: Path) -> None:
    """A plain word after a name that ends a line is not its value. A file that contains it is not refused."""
    text = "env:\n- name: DB_PASSWORD\n  from:\n    key: password\n\n  value: verbose\n"
    session = write(tmp_path / "home/projects/-work-app" / f"{SESSION}.jsonl", *transcript(prompt(text)))
    result = export_sessions([session], ExportOptions(form=ExportFormat.JSONL), tmp_path / "work")
    assert "value: verbose" in result.files[0].path.read_text()


def test_fields_that_look_random_if_joined() -> None:
    """A digest and the word of the next field stay readable next to a secret, and the check does not refuse them."""
    texts = [hashlib.sha256(b"prompt").hexdigest(), "system first", "done", f"password = {password(seeded(5))!r}"]
    record = {"type": "user", "message": {"content": [{"type": "text", "text": text} for text in texts]}}
    redactor = SessionRedactor()
    redactor.learn(record)
    redacted = redactor.redact(record)
    assert [block["text"] for block in redacted["message"]["content"]] == [*texts[:-1], "password = '<secret-1>'"]
    assert find_leftovers(redactor.redactor, "jsonl", json.dumps(redacted), "") == []
