"""Prompts whose transcripts were deleted are found in the history, and marked as deleted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.search.indexed_home import FIRST, SECOND, Archive
from tests.transcripts import Pen, prompt, reply

from threadline.search import documents, search

NOW = datetime(2026, 1, 6, tzinfo=UTC)
GONE = "5e551033-0000-4000-8000-000000000003"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Two existing sessions, and a history that also has a third session and rows without a session."""
    archive = Archive(tmp_path)
    archive.write(prompt("deploy the harbour"), reply("done"))
    archive.write(prompt("an old harbour, typed long ago by someone"), session=SECOND, pen=Pen(SECOND))
    _write_history(
        archive,
        _row("an old harbour, typed long ago by someone", None),
        _row("an older harbour that nobody has any more", None),
        _row("deploy the harbour", FIRST),
        _row("what about the Café at the harbour\nand its lighthouse?", GONE),
        _row("harbour again", GONE, days=-1),
    )
    return archive


def _row(text: str, session: str | None, days: int = 0, **more: Any) -> dict[str, Any]:
    typed_at = (NOW + timedelta(days=days)).timestamp() * 1000
    row = {"display": text, "pastedContents": {}, "timestamp": int(typed_at), "project": "/work/app"}
    return row | ({"sessionId": session} if session else {}) | more


def _write_history(archive: Archive, *rows: dict[str, Any] | bytes) -> None:
    lines = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() for row in rows]
    (archive.home / "history.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))


def test_finds_a_prompt_whose_transcript_was_deleted(archive: Archive) -> None:
    """The hit has its session, time, project and place in the history. Prompts of existing sessions are found there."""
    with archive.opened() as index:
        (hit,) = search(index, "lighthouse", now=NOW).hits
        assert (hit.gone, hit.session, hit.project, hit.field, hit.timestamp) == (
            True,
            GONE,
            "/work/app",
            "prompt",
            NOW,
        )
        assert (Path(hit.place.transcript).name, hit.place.line) == ("history.jsonl", 4)
        raw = Path(hit.place.transcript).read_bytes()[hit.place.offset : hit.place.offset + hit.place.length]
        assert "lighthouse" in json.loads(raw)["display"]
        hits = search(index, "deploy harbour", now=NOW).hits
        assert [(hit.session, hit.gone) for hit in hits] == [(FIRST, False)]


def test_groups_deleted_prompts_by_session(archive: Archive) -> None:
    """The prompts of a deleted session are grouped. One without a session is deleted if no entry has its text."""
    with archive.opened() as index:
        hits = search(index, "harbour", now=NOW)
        assert sorted((hit.session or "", hit.gone, hit.more) for hit in hits.hits) == [
            ("", True, 0),
            (FIRST, False, 0),
            (SECOND, False, 0),
            (GONE, True, 1),
        ]
        assert hits.total == 5
        (without_session,) = (hit for hit in hits.hits if hit.session is None)
        assert without_session.snippet.startswith("an older harbour")
        times = [hit.timestamp for hit in search(index, "harbour", every=True, sort="time").hits]
        assert times == sorted(filter(None, times), reverse=True)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("cafe lighthouse", 1),
        ('"the harbour and its"', 1),
        ("light*", 1),
        ("/ight.ouse/", 1),
        ("prompt:lighthouse", 1),
        ("reply:lighthouse", 0),
        ("lighthouse project:app kind:user", 1),
        ("lighthouse project:shop", 0),
        ("lighthouse since:2026-02-01", 0),
        ("lighthouse OR nothing", 1),
        ("lighthouse -cafe", 0),
        ("lighthouse tool:Bash", 0),
        (f"session:{GONE[:8]}", 1),
    ],
)
def test_the_history_supports_the_whole_query_language(archive: Archive, text: str, count: int) -> None:
    """Words, phrases, prefixes, regular expressions, fields and filters."""
    with archive.opened() as index:
        assert sum(hit.gone for hit in search(index, text, now=NOW).hits) == count
        assert sum(hit.gone for hit in search(index, text, now=NOW, near=True).hits) == count


def test_survives_a_damaged_history(archive: Archive) -> None:
    """Invalid rows, texts of other types, escaped letters, a truncated line, and no history at all."""
    _write_history(
        archive,
        b"",
        b"nonsense lighthouse",
        b'{"display": 5, "sessionId": "lighthouse"}',
        b'["lighthouse"]',
        b'{"display":"light\\u0068ouse by number","sessionId":"' + GONE.encode() + b'"}',
        b'{"display":"lighthouse, cut off',
    )
    with archive.opened() as index:
        (hit,) = search(index, "lighthouse", now=NOW).hits
        assert (hit.snippet, hit.timestamp, hit.place.line) == ("lighthouse by number", None, 5)
        (archive.home / "history.jsonl").unlink()
        assert search(index, "lighthouse", now=NOW).hits == ()


def test_searches_only_the_end_of_a_long_history(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line number is unknown there, but the bytes are."""
    monkeypatch.setattr(documents, "MAX_HISTORY_BYTES", 400)
    _write_history(
        archive,
        _row("first lighthouse", GONE),
        *(_row(f"straw {number}", GONE) for number in range(9)),
        _row("last", GONE),
    )
    with archive.opened() as index:
        assert search(index, "lighthouse", now=NOW).hits == ()
        (hit,) = search(index, "last", now=NOW).hits
        assert hit.place.line == 0
        data = (archive.home / "history.jsonl").read_bytes()
        assert json.loads(data[hit.place.offset :][: hit.place.length])["display"] == "last"


def test_opens_the_history_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if other queries are tried because nothing is found. Rows that cannot match are not decoded."""
    opened = _record_calls(monkeypatch, "open_transcript")
    decoded = _record_calls(monkeypatch, "_decode_row")
    with archive.opened() as index:
        search(index, "lighthuose zzzz", now=NOW, near=True)
        assert len(opened) == 1
        decoded.clear()
        search(index, "nobody", now=NOW)
        assert len(decoded) == 2  # the row, and one with an accent, which may be any letter


def _record_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[object]:
    """Record the arguments of each call of one of the module's functions from now on."""
    real = getattr(documents, name)
    calls: list[object] = []

    def wrapper(*args: object, **keywords: object) -> Any:
        calls.append(args)
        return real(*args, **keywords)

    monkeypatch.setattr(documents, name, wrapper)
    return calls


def test_session_with_capital_letters_is_not_deleted(archive: Archive) -> None:
    """Its prompts are found in its transcript, and not as those of a deleted session. `history` compares ids alike."""
    capital = GONE.upper()
    archive.write(prompt("a beacon"), session=capital, pen=Pen(capital))
    _write_history(archive, _row("a beacon", capital))
    with archive.opened() as index:
        hits = search(index, "beacon", now=NOW)
    assert [(hit.session, hit.gone, hits.total) for hit in hits.hits] == [(capital, False, 1)]
