"""Tests of outcomes across sessions: counted once, the same from the index and from the files, with their costs."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import SESSION, Part, Pen, Row, call, meta, prompt, transcript, write

import threadline
from threadline.archive import Archive
from threadline.errors import BadQuery, NotFound, Unreadable
from threadline.index import CallFilter, Index
from threadline.insight import Repository, find_commits
from threadline.model.ledger import NO_TIME

COPY = "5e551011-0000-4000-8000-000000000009"
COST = Decimal("0.000162")
"""What a reply of 4 tokens of input and 10 of output costs; a call is such a reply."""
URL = "https://github.com/ann/shop/pull/12"


def git(command: str, output: str, **fields: Any) -> Part:
    """A shell command and its output."""
    return call("Bash", {"command": command}, output, details={"stdout": output, "interrupted": False}, **fields)


def edit(path: str, *lines: str) -> Part:
    """An edit with a patch."""
    details = {"filePath": path, "oldString": "a", "newString": "b", "structuredPatch": [{"lines": list(lines)}]}
    return call("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, "ok", details=details)


PARTS: tuple[Part, ...] = (
    prompt("Sort the shelves"),
    edit("/work/app/shelf.py", " a", "-b", "+c", "+d"),
    edit("/work/app/shelf.py", "-c", "+e"),
    git("pytest -q", "3 passed, 1 failed in 0.1s", error=True),
    git("pytest -q", "4 passed in 0.1s"),
    git("git commit -am Sort", "[main 1111111] Sort\n 1 file changed, 2 insertions(+)\n"),
    git("git commit --amend --no-edit", "[main 2222222] Sort\n 1 file changed, 2 insertions(+)\n"),
    git("git push && gh pr create --fill", f"To github.com:ann/shop\n   0..1\n{URL}\n"),
    meta("pr-link", prNumber=12, prUrl=URL, prRepository="ann/shop", timestamp="2026-01-05T09:59:00.000Z"),
    git("gh pr merge 12", ""),
)


def make_home(folder: Path, *, copies: bool = False) -> Path:
    """A home with a session that sorts shelves; with `copies`, also a fork that repeats all of it."""
    rows = transcript(*PARTS, pen=Pen(SESSION, cwd="/work/app"))
    write(folder / f"projects/-work-app/{SESSION}.jsonl", *rows)
    if copies:
        forked = [_fork(row) for row in rows if isinstance(row, dict)]
        write(folder / f"projects/-work-app/{COPY}.jsonl", *forked)
    return folder


def _fork(row: Row) -> Row:
    if "uuid" not in row:
        return {**row, "sessionId": COPY}
    return {**row, "sessionId": COPY, "forkedFrom": {"sessionId": SESSION, "messageUuid": row["uuid"]}}


def rows_of(home: Path, **keywords: Any) -> list[Any]:
    """The outcomes of a home, which have to be the same with and without an index."""
    with threadline.open(home, index=home / "index.sqlite", keep=False) as archive:
        archive.refresh()
        indexed = list(archive.outcomes(**keywords))
    with threadline.open(home, index=False, keep=False) as archive:
        assert list(archive.outcomes(**keywords)) == indexed
    return indexed


def test_outcomes_of_a_session(tmp_path: Path) -> None:
    """Every outcome has its place; the file is last seen at its last edit."""
    rows = rows_of(make_home(tmp_path))
    assert [(str(row.kind), row.action, row.label or row.ref) for row in rows] == [
        ("file", "edited", "/work/app/shelf.py"),
        ("test", "pytest", "pytest -q"),
        ("test", "pytest", "pytest -q"),
        ("commit", "committed", "Sort"),
        ("commit", "amended", "Sort"),
        ("pull-request", "created", URL),
        ("pull-request", "merged", URL),
    ]
    assert all(row.place.line and row.session == SESSION and row.project == "/work/app" for row in rows)
    file, failed, passed, first, second, *_ = rows
    assert (file.added, file.removed, file.surviving) == (3, 2, 2)
    assert (failed.passed, failed.failed, failed.is_ok) == (3, 1, False)
    assert (passed.passed, passed.failed, passed.is_ok) == (4, 0, True)
    assert (first.is_replaced, second.is_replaced) == (True, False)
    assert all(row.call is not None and row.model for row in rows)


def test_replaced_commits(tmp_path: Path) -> None:
    """A quiet amend replaces the last commit, whatever its branch; a rebase with autosquash replaces fixups."""
    rebased = "Rebasing (2/3)\rSuccessfully rebased and updated refs/heads/main.\n"
    parts = (
        git("git commit -am One", "[main 1111111] One\n"),
        git("git commit -am '@ Two'", "[main 2222222] @ Two\n"),
        git("git commit --amend -F m >/dev/null && git log -1 --format=%B | head -3", "Two\n"),
        git("git commit --fixup 1111111", "[main 4444444] fixup! One\n"),
        git("git commit -q --fixup HEAD && git log --oneline -1", "5555555 fixup! Two\n"),
        git("git rebase -i --autosquash HEAD~9 2>&1 | tail -3", rebased),
        git("git commit --fixup 1111111", "[main 6666666] fixup! One\n"),
        git("git commit -q --amend --no-edit", ""),
    )
    write(tmp_path / f"projects/-a/{SESSION}.jsonl", *transcript(prompt("go"), *parts, pen=Pen(cwd="/a")))
    rows = rows_of(tmp_path)
    assert [(row.label, row.is_replaced) for row in rows] == [
        ("One", False),
        ("@ Two", True),
        ("Two", False),
        ("fixup! One", True),
        ("fixup! Two", True),
        ("fixup! One", True),
        ("", False),
    ]
    with threadline.open(tmp_path) as archive:
        found = [commit for _call, commit in find_commits(archive.session(SESSION))]
    assert [(commit.label, commit.is_replaced) for commit in found] == [(row.label, row.is_replaced) for row in rows]


def test_copies_count_once(tmp_path: Path) -> None:
    """A fork repeats the calls; they belong to the session that made them."""
    rows = rows_of(make_home(tmp_path, copies=True))
    counted = [row for row in rows if row.action != "linked"]
    assert {row.session for row in counted} == {SESSION}
    assert len(counted) == 7
    with threadline.open(tmp_path, index=False, keep=False) as archive:
        total = archive.outcome_groups("project").total
        assert total is not None
        assert (total.commits, total.pull_requests, total.surviving) == (1, 1, 2)


def test_fork_has_no_outcomes_of_its_own(tmp_path: Path) -> None:
    """The calls that it repeats belong to the original, also if only the fork is selected."""
    assert [row.action for row in rows_of(make_home(tmp_path, copies=True), session=COPY)] == ["linked"]
    with threadline.open(tmp_path, index=False, keep=False) as archive:
        total = archive.outcome_groups("session", session=COPY).total
        assert total is None or total.added == 0


def test_outcomes_without_a_time_are_named_as_in_usage(tmp_path: Path) -> None:
    """They are a group of their own: costs without a time have that of the file."""
    rows = transcript(prompt("go"), git("git commit -m A", "[main 1111111] A\n"), pen=Pen(cwd="/a"))
    timeless = [{key: row[key] for key in row if key != "timestamp"} for row in rows if isinstance(row, dict)]
    write(tmp_path / f"projects/-a/{SESSION}.jsonl", *timeless)
    with threadline.open(tmp_path, index=False, keep=False) as archive:
        commits = {group.key: group.commits for group in archive.outcome_groups("day")}
    assert commits[NO_TIME] == 1


def test_linked_pull_request_without_a_command(tmp_path: Path) -> None:
    """Claude Code links pull requests that were created on the web."""
    link = meta("pr-link", prNumber=12, prUrl=URL, timestamp="2026-01-05T09:59:00.000Z")
    write(tmp_path / f"projects/-a/{SESSION}.jsonl", *transcript(prompt("go"), link, link, pen=Pen(cwd="/a")))
    assert [(row.action, row.ref) for row in rows_of(tmp_path)] == [("linked", URL)]


def test_groups_and_their_cost(tmp_path: Path) -> None:
    """What was spent is divided by what was produced; the total is the ledger's."""
    with threadline.open(make_home(tmp_path), index=False, keep=False) as archive:
        for by in ("session", "project", "model", "day"):
            groups = archive.outcome_groups(by)
            total = groups.total
            assert total is not None
            assert total.amount == archive.ledger().total.amount == 8 * COST
            assert sum(group.commits for group in groups) == total.commits == 1
        (group,) = archive.outcome_groups("project")
    assert (group.key, group.pull_requests, group.files, group.added, group.surviving) == ("/work/app", 1, 1, 3, 2)
    assert (group.test_runs, group.failed_runs, group.passed, group.failed) == (2, 1, 7, 1)
    assert group.per_commit == group.per_pull_request == 8 * COST
    assert group.per_100_lines == 8 * COST * 50


def test_newest_days(tmp_path: Path) -> None:
    """A limit chooses the newest days, in order of time."""
    for day, id_ in ((5, SESSION), (7, COPY)):
        pen = Pen(id_, datetime(2026, 1, day, 9, tzinfo=UTC), cwd="/a")
        write(
            tmp_path / f"projects/-a/{id_}.jsonl", *transcript(prompt("go"), git("pytest", "1 passed in 1s"), pen=pen)
        )
    with threadline.open(tmp_path, index=False, keep=False) as archive:
        assert [group.key for group in archive.outcome_groups("day", limit=1)] == ["2026-01-07"]
        assert (list(archive.outcome_groups("day", limit=0)), archive.outcome_groups("day", limit=0).more) == ([], 2)


def test_filters(tmp_path: Path) -> None:
    """Kinds, projects, periods and limits."""
    home = make_home(tmp_path)
    assert [row.action for row in rows_of(home, kinds="commit")] == ["committed", "amended"]
    assert [row.action for row in rows_of(home, kinds="commit", limit=1)] == ["amended"]
    assert not rows_of(home, project="elsewhere")
    assert not rows_of(home, until="2020-01-01")
    assert rows_of(home, session=SESSION[:8]) == rows_of(home)
    with threadline.open(home, index=False, keep=False) as archive:
        with pytest.raises(BadQuery):
            archive.outcomes(kinds="meal")
        with pytest.raises(BadQuery):
            archive.outcome_groups("meal")
        with pytest.raises(NotFound):
            archive.outcomes(repo=tmp_path / "nowhere")


def test_outcomes_of_all_sessions_build_the_index(tmp_path: Path) -> None:
    """A large home is read once, not each time; those of one session do not need an index."""
    home, index = make_home(tmp_path / "home"), tmp_path / "index.sqlite"
    with Archive(threadline.homes(home), index=index, max_refresh_bytes=0) as archive:
        assert archive.outcomes(SESSION)
    assert not index.exists()
    with Archive(threadline.homes(home), index=index, max_refresh_bytes=0) as archive:
        rows = list(archive.outcomes())
    assert index.exists()
    assert rows == rows_of(home)


def test_appended_lines(tmp_path: Path) -> None:
    """A refresh that reads only what was appended gives the same rows as a new index."""
    rows = transcript(*PARTS, pen=Pen(SESSION, cwd="/work/app"))
    path = tmp_path / f"projects/-work-app/{SESSION}.jsonl"
    index = tmp_path / "index.sqlite"
    for end in range(2, len(rows) + 1, 3):
        write(path, *rows[:end])
        with threadline.open(tmp_path, index=index, keep=False) as archive:
            archive.refresh()
    write(path, *rows)
    with threadline.open(tmp_path, index=index, keep=False) as archive:
        archive.refresh()
        appended = list(archive.outcomes())
        durations = archive.sql("SELECT COUNT(*) AS calls FROM call_rows WHERE duration IS NOT NULL")
    assert appended == rows_of(tmp_path)
    assert durations == [{"calls": 8}]


def test_views(tmp_path: Path) -> None:
    """The tables for SQL."""
    with threadline.open(make_home(tmp_path, copies=True), index=tmp_path / "index.sqlite", keep=False) as archive:
        assert archive.sql("SELECT sha, action FROM commits ORDER BY line") == [
            {"sha": "1111111", "action": "committed"},
            {"sha": "2222222", "action": "amended"},
        ]
        assert archive.sql("SELECT SUM(passed) AS passed, SUM(failed) AS failed FROM test_runs") == [
            {"passed": 7, "failed": 1}
        ]
        assert archive.sql("SELECT SUM(added) AS added, SUM(removed) AS removed FROM edits") == [
            {"added": 3, "removed": 2}
        ]


def _git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(  # noqa: S603 - git in a folder of the test
        ["git", *identity, *arguments],  # noqa: S607
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_repository_selects_sessions_and_their_cost(tmp_path: Path) -> None:
    """Sessions that worked elsewhere are neither listed nor paid for; if none worked there, nothing is listed."""
    for name in ("shop", "empty"):
        (tmp_path / name).mkdir()
        _git(tmp_path / name, "init", "-q")
    for session, cwd in ((SESSION, tmp_path / "shop"), (COPY, tmp_path / "other")):
        rows = transcript(
            prompt("go"),
            edit(str(cwd / "shelf.py"), "+c"),
            git("git commit -m x", f"[main {session[-1] * 7}] x\n"),
            pen=Pen(session, cwd=str(cwd)),
        )
        write(tmp_path / f"home/projects/-{cwd.name}/{session}.jsonl", *rows)
    with threadline.open(tmp_path / "home", index=False, keep=False) as archive:
        for by in ("session", "project", "day", "model"):
            groups = archive.outcome_groups(by, repo=tmp_path / "shop")
            assert [(group.commits, group.files, group.amount) for group in groups] == [(1, 1, 2 * COST)]
            assert groups.total is not None
            assert groups.total.per_commit == 2 * COST
        assert len(archive.outcome_groups("session")) == 2
        assert not archive.outcomes(repo=tmp_path / "empty")
        assert not archive.outcome_groups("session", repo=tmp_path / "empty")


def test_only_ids_are_commits(tmp_path: Path) -> None:
    """Names that git would understand are not asked for, and a branch with the name of an id is not the commit."""
    _git(tmp_path, "init", "-q", "-b", "main")
    assert Repository(tmp_path).head is None
    _git(tmp_path, "commit", "-qm", "x", "--allow-empty")
    _git(tmp_path, "branch", "abcdef1")
    id_ = _git(tmp_path, "rev-parse", "HEAD")
    full = Repository(tmp_path).full_ids([id_[:7], "HEAD", "main", "abcdef1", "0000000\n1111111", "--all", id_.upper()])
    assert full == dict.fromkeys(full) | {id_[:7]: id_, id_.upper(): id_}
    assert len(full) == 7


def test_mailmap_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a pipe. If git takes too long nevertheless, that is an error: nothing is known then."""
    _git(tmp_path, "init", "-q", "-b", "main")
    _git(tmp_path, "commit", "-qm", "x", "--allow-empty")
    row = git("git commit -m x", f"[main {_git(tmp_path, 'rev-parse', 'HEAD')}] x\n")
    write(tmp_path / f"home/projects/-a/{SESSION}.jsonl", *transcript(prompt("go"), row, pen=Pen(cwd=str(tmp_path))))
    os.mkfifo(tmp_path / "pipe")
    _git(tmp_path, "config", "mailmap.file", str(tmp_path / "pipe"))
    run = Repository.run

    def run_briefly(repository: Repository, *arguments: str, data: bytes | None = None) -> bytes:
        return run(repository, *arguments, data=data, seconds=5)

    def fail_log(repository: Repository, *arguments: str, data: bytes | None = None) -> bytes:
        if arguments[0] == "log":
            raise Unreadable("`git log` took longer than 30 s.")
        return run(repository, *arguments, data=data)

    with threadline.open(tmp_path / "home", index=False, keep=False) as archive:
        monkeypatch.setattr(Repository, "run", run_briefly)
        assert [row.state for row in archive.outcomes(repo=tmp_path)] == ["exists"]
        monkeypatch.setattr(Repository, "run", fail_log)
        with pytest.raises(Unreadable, match="git log"):
            archive.outcomes(repo=tmp_path)


@pytest.mark.slow
def test_repository(tmp_path: Path) -> None:
    """Commits that exist, were reverted, are on no branch or are missing; lines that the working tree has."""
    folder = tmp_path / "shop"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    (folder / ".git/hooks/post-checkout").write_text("#!/bin/sh\ntouch hooked\n")

    def commit(text: str) -> str:
        (folder / "shelf.py").write_text(text)
        _git(folder, "add", ".")
        _git(folder, "commit", "-qm", text.splitlines()[-1])
        return _git(folder, "rev-parse", "--short=9", "HEAD")

    kept = commit("a\nc\n")
    reverted = commit("a\nc\nd\n")
    _git(folder, "revert", "--no-edit", "HEAD")
    lost = commit("a\nc\nlost\n")
    _git(folder, "reset", "-q", "--hard", "HEAD~1")
    parts = [git("git commit -m x", f"[main {id_}] {id_}\n") for id_ in (kept, reverted, lost, "0123456789abcdef0123")]
    session = transcript(prompt("go"), edit(str(folder / "shelf.py"), "+c", "+d"), *parts, pen=Pen(cwd=str(folder)))
    write(tmp_path / f"home/projects/-shop/{SESSION}.jsonl", *session)
    with threadline.open(tmp_path / "home", index=False, keep=False) as archive:
        rows = archive.outcomes(repo=folder)
    file, *commits = rows
    assert [row.state for row in commits] == [
        "exists",
        "reverted",
        "unreachable",
        "missing",
    ]
    assert file.kind == "file"
    assert (file.added, file.surviving) == (2, 1)
    assert not (folder / "hooked").exists()


def test_outcomes_are_stored_when_first_asked(tmp_path: Path) -> None:
    """A refresh stores none; a question stores those of its sessions, until they grow."""
    home, index = make_home(tmp_path / "home", copies=True), tmp_path / "index.sqlite"
    everything = CallFilter()
    with threadline.open(home, index=index, keep=False) as archive:
        archive.refresh()
        assert len(archive.open_index().unstored_outcomes(everything)) == 2
        assert archive.outcomes(COPY)
        assert [part.path.stem for part in archive.open_index().unstored_outcomes(everything)] == [SESSION]
        archive.store_insights()
        assert not archive.open_index().unstored_outcomes(everything)
    with (home / f"projects/-work-app/{SESSION}.jsonl").open("a") as file:
        file.write("\n")
    with threadline.open(home, index=index, keep=False) as archive:
        archive.refresh()
        assert [part.path.stem for part in archive.open_index().unstored_outcomes(everything)] == [SESSION]


def test_outcomes_leave_with_their_session(tmp_path: Path) -> None:
    """Nothing of a deleted session remains in the index: neither rows nor names of programs."""
    home, index = make_home(tmp_path / "home"), tmp_path / "index.sqlite"
    with threadline.open(home, index=index, keep=False) as archive:
        archive.refresh()
        assert archive.outcomes()
        assert archive.sql("SELECT program FROM programs")
    (home / f"projects/-work-app/{SESSION}.jsonl").unlink()
    with threadline.open(home, index=index, keep=False) as archive:
        archive.refresh()
        assert not archive.outcomes()
        assert not archive.sql("SELECT program FROM programs")
    assert b"1111111" not in index.read_bytes()


def test_outcomes_that_cannot_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be stored now is answered from the transcripts."""
    home, index = make_home(tmp_path / "home", copies=True), tmp_path / "index.sqlite"
    with threadline.open(home, index=index, keep=False) as archive:
        archive.refresh()
        with monkeypatch.context() as patch:
            patch.setattr(Index, "store_outcomes", lambda *_: False)
            rows, programs = list(archive.outcomes()), list(archive.tools("command", costs=False))
        assert archive.open_index().unstored_outcomes(CallFilter())
        assert rows == list(archive.outcomes())
        assert programs == list(archive.tools("command", costs=False))
