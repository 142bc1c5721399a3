"""Who wrote each line of a file: sessions, people, formatters, commands and git."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.insight.agent_trace_schema import SCHEMA
from tests.thread.state_rows import edit_call, hunks, write_call
from tests.transcripts import Part, Pen, call, prompt, transcript, write

import threadline
from threadline.cli.commands import run
from threadline.errors import BadQuery, NotFound
from threadline.insight import agent_trace_record, may_write_files, moved_paths, written_runs
from threadline.insight.blame.alignment import align
from threadline.model.insight.blame import Blame, TextSource

FIRST, SECOND = (f"{number:08d}-0000-4000-8000-000000000000" for number in (1, 2))


class Sessions:
    """A home with sessions that edit one file."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        self.file = self.work / "app.py"

    def add(self, session: str, *parts: Part, hour: int = 9, original: str | None = None) -> None:
        """Write the transcript of a session that starts at an hour; or of a fork of another one."""
        pen = Pen(session, datetime(2026, 1, 5, hour, tzinfo=UTC), cwd=str(self.work))
        rows = transcript(prompt("Do it"), *parts, pen=pen)
        if original is not None:
            copied = [row for row in rows if isinstance(row, dict)]
            rows = [{**row, "forkedFrom": {"sessionId": original, "messageUuid": row["uuid"]}} for row in copied]
        write(self.home / f"projects/-work/{session}.jsonl", *rows)

    def blame(self, text: str | None, **options: Any) -> Blame:
        """The blame of the file, with this text."""
        if text is not None:
            self.file.write_bytes(text.encode(errors="surrogateescape"))
        with threadline.open(self.home, keep=False) as archive:
            return archive.blame(self.file, **options)

    def writers(self, text: str | None, **options: Any) -> list[str]:
        """The first digit of each line's session, `c` for a commit, `?` for nobody."""
        return [
            str(line.session)[7] if line.session is not None else "c" if line.known else "?"
            for line in self.blame(text, **options).lines
        ]


@pytest.fixture(name="sessions")
def _sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Sessions(tmp_path)


def write_file(sessions: Sessions, text: str, original: str | None = None, **fields: Any) -> Part:
    """A call that writes the file."""
    return write_call(str(sessions.file), text, original, **fields)


def edit_file(sessions: Sessions, before: str, old: str, new: str, **fields: Any) -> Part:
    """A call that edits the file."""
    return edit_call(str(sessions.file), before, old, new, **fields)


def test_lines_belong_to_the_edits_that_wrote_them(sessions: Sessions) -> None:
    """Each line has the session, turn, prompt, model, time, tool and place of its edit."""
    before = "import os\n\ndef first():\n    return 1\n"
    sessions.add(FIRST, write_file(sessions, before))
    sessions.add(SECOND, edit_file(sessions, before, "    return 1", "    value = 2\n    return value"), hour=10)
    after = before.replace("    return 1", "    value = 2\n    return value")
    assert sessions.writers(after) == ["1", "1", "1", "2", "2"]
    line = sessions.blame(after).lines[3]
    assert (line.turn, line.prompt, line.tool, line.agent) == (1, "Do it", "Edit", None)
    assert line.model is not None
    assert line.time is not None
    assert line.place is not None
    assert line.place.transcript.endswith(f"{SECOND}.jsonl")


def test_rewrite_keeps_the_writers_of_unchanged_lines(sessions: Sessions) -> None:
    """A session that writes the whole file wrote only what it changed."""
    before = "first = 1\nsecond = 2\nthird = 3\n"
    after = "first = 1\nsecond = 22\nthird = 3\nfourth = 4\n"
    sessions.add(FIRST, write_file(sessions, before))
    sessions.add(SECOND, write_file(sessions, after, before), hour=10)
    assert sessions.writers(after) == ["1", "2", "1", "2"]


def test_changes_outside_of_sessions_are_unknown(sessions: Sessions) -> None:
    """What a person changed between two edits, or after the last one, is unknown. The rest is not."""
    before = "first = 1\nsecond = 2\nthird = 3\n"
    person = "first = 1\nsecond = 2\nperson = 0\nthird = 3\n"
    sessions.add(FIRST, write_file(sessions, before))
    sessions.add(SECOND, edit_file(sessions, person, "first = 1", "first = 11"), hour=10)
    assert sessions.writers("first = 11\nsecond = 2\nperson = 0\nthird = 3\nlast = 9\n") == ["2", "1", "?", "1", "?"]


def test_formatter_and_moves_keep_writers(sessions: Sessions) -> None:
    """Indentation, wrapped lines and moved lines keep their writers; the lines of two writers joined have none."""
    before = "def compute():\n  total = alpha + beta\n  return total\nlast_line_here = 1\n"
    sessions.add(FIRST, write_file(sessions, before))
    sessions.add(SECOND, edit_file(sessions, before, "  return total\n", "  return total * 100\n"), hour=10)
    text = "last_line_here = 1\ndef compute():\n    total = (alpha\n        + beta)\n    return total * 100\n"
    assert sessions.writers(text)[:2] == ["1", "1"]
    text = "def compute():\n    total = alpha +\n        beta\n    return total * 100\nlast_line_here = 1\n"
    assert sessions.writers(text) == ["1", "1", "1", "2", "1"]
    assert sessions.writers("def compute():\n  total = alpha + beta  return total * 100\n") == ["1", "?"]


def test_repeated_lines_are_not_guessed(sessions: Sessions) -> None:
    """If a person inserts a blank line and a function before a blank line, either may be the new one."""
    before = "def first():\n    pass\n\ndef second():\n    pass\n"
    sessions.add(FIRST, write_file(sessions, before))
    text = "def first():\n    pass\n\ndef person():\n    pass\n\ndef second():\n    pass\n"
    assert sessions.writers(text) == ["1", "?", "?", "?", "?", "?", "1", "1"]


def test_edit_is_placed_exactly(sessions: Sessions) -> None:
    """The strings of an edit say where it is, even between equal lines."""
    before = "a = 1\n\n\nb = 2\n"
    sessions.add(FIRST, write_file(sessions, before))
    sessions.add(SECOND, edit_file(sessions, before, "b = 2", "c = 3\n\n\nb = 2"), hour=10)
    assert sessions.writers("a = 1\n\n\nc = 3\n\n\nb = 2\n") == ["1", "1", "1", "2", "2", "2", "1"]


def test_replace_all_changes_every_line(sessions: Sessions) -> None:
    """Two replacements may be in one line."""
    before = "x = x\nkeep = 1\nx = 2\n"
    sessions.add(FIRST, write_file(sessions, before))
    sessions.add(SECOND, edit_file(sessions, before, "x", "y", every=True), hour=10)
    assert sessions.writers("y = y\nkeep = 1\ny = 2\n") == ["2", "1", "2"]


def test_copies_of_a_session_count_once(sessions: Sessions) -> None:
    """A fork contains the calls of its original. The lines belong to the original."""
    part = write_file(sessions, "one = 1\n")
    sessions.add(FIRST, part)
    sessions.add(SECOND, part, edit_file(sessions, "one = 1\n", "one = 1", "one = 1\ntwo = 2"), original=FIRST)
    assert sessions.writers("one = 1\ntwo = 2\n") == ["1", "2"]
    (sessions.home / f"projects/-work/{FIRST}.jsonl").unlink()
    assert sessions.writers("one = 1\ntwo = 2\n") == ["2", "2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one = 1\r\ntwo = 2\r\n", ["1", "1"]),
        ("one = 1\ntwo = 2", ["1", "1"]),
        ("\ufeffone = 1\ntwo = 2\n", ["1", "1"]),
        ("one = 1\n\udcff\ntwo = 2\n", ["1", "?", "1"]),
        ("", []),
    ],
)
def test_line_ends_and_encodings(sessions: Sessions, text: str, expected: list[str]) -> None:
    """Line ends, a missing last one, a byte order mark and bytes that are not UTF-8 do not matter."""
    sessions.add(FIRST, write_file(sessions, "one = 1\ntwo = 2\n"))
    assert sessions.writers(text) == expected


def test_names_that_no_file_can_have(sessions: Sessions) -> None:
    """A transcript may name any text as a file. Such names are of other files."""
    names = ["\0", "A"]
    sessions.add(FIRST, *(write_call(f"{sessions.work}/{name}/app.py", "a\n") for name in names))
    (path,) = sessions.home.glob("projects/-work/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"/A/", rb"/\ud800/"))  # half of a surrogate pair
    sessions.add(SECOND, write_file(sessions, "a\n"))
    assert sessions.writers("a\n") == ["2"]


def test_links_lead_to_the_same_file(sessions: Sessions, tmp_path: Path) -> None:
    """A session may have edited the file through a link."""
    link = tmp_path / "link"
    link.symlink_to(sessions.work)
    sessions.add(FIRST, write_call(str(link / "app.py"), "one = 1\n"))
    assert sessions.writers("one = 1\n") == ["1"]


def test_file_that_is_gone(sessions: Sessions) -> None:
    """The last recorded text is shown; a file that nobody wrote is not found."""
    sessions.add(FIRST, write_file(sessions, "one = 1\n"))
    blame = sessions.blame(None)
    assert (blame.source, [line.text for line in blame.lines]) == (TextSource.SESSIONS, ["one = 1"])
    assert blame.statements[0].startswith(f"'{blame.file}' no longer exists.")
    sessions.file = sessions.work / "other.py"
    with pytest.raises(NotFound, match=r"no session wrote one\. `threadline files` lists"):
        sessions.blame(None)
    sessions.file = sessions.work / "elsewhere" / blame.file.rpartition("/")[2]
    with pytest.raises(NotFound, match=rf"Sessions touched other files of that name: .*{re.escape(blame.file)}"):
        sessions.blame(None)
    sessions.file = sessions.work
    with pytest.raises(BadQuery, match="is a folder"):
        sessions.blame(None)


def test_file_of_windows_that_is_gone(sessions: Sessions) -> None:
    """Its path is named as it is, without doubled backslashes."""
    path = r"D:\app\notes.md"
    sessions.add(FIRST, write_call(path, "one = 1\n"))
    with threadline.open(sessions.home, keep=False) as archive:
        blame = archive.blame("notes.md")
    assert (blame.file, [line.text for line in blame.lines]) == (path, ["one = 1"])
    assert blame.statements[0].startswith(r"'D:\app\notes.md' no longer exists.")


def test_file_that_a_snapshot_says_is_gone(sessions: Sessions) -> None:
    """The text before it was deleted is the last one."""
    time = "2026-01-05T10:00:00.000Z"
    deleted = {"backupFileName": None, "version": 2, "backupTime": time}
    tracked = {"messageId": "m", "trackedFileBackups": {str(sessions.file): deleted}, "timestamp": time}
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": tracked, "isSnapshotUpdate": False}
    sessions.add(FIRST, write_file(sessions, "one = 1\n"), snapshot)
    assert [line.text for line in sessions.blame(None).lines] == ["one = 1"]


def test_lines_are_selected_by_number(sessions: Sessions) -> None:
    """A range may reach beyond the end, but not begin there."""
    sessions.add(FIRST, write_file(sessions, "one = 1\ntwo = 2\n"))
    assert [line.line for line in sessions.blame("one = 1\ntwo = 2\n", first=2, last=9).lines] == [2]
    with pytest.raises(NotFound, match="no line 3"):
        sessions.blame("one = 1\ntwo = 2\n", first=3)
    with pytest.raises(BadQuery, match="Lines are counted from 1"):
        sessions.blame("one = 1\ntwo = 2\n", first=2, last=1)


def test_command_that_contains_a_line_wrote_it(sessions: Sessions) -> None:
    """A here-document proves its lines; other changes by commands do not."""
    command = f"cat > {sessions.file} <<'EOF'\nalpha_value = 1\n\nbeta_value = 2\nEOF\nsed -i s/1/3/ {sessions.file}"
    sessions.add(FIRST, call("Bash", command, ""))
    blame = sessions.blame("alpha_value = 3\n\nbeta_value = 2\n")
    assert [line.tool for line in blame.lines] == [None, None, "Bash"]


def test_command_in_another_folder_wrote_another_file(sessions: Sessions, tmp_path: Path) -> None:
    """A relative path is that of the folder in which the command was run."""
    heredoc = "cat > app.py <<'EOF'\nalpha_value = 1\nEOF"
    sessions.add(FIRST, call("Bash", f"cd {tmp_path} && {heredoc}", ""))
    rows = transcript(prompt("x"), call("Bash", heredoc, ""), pen=Pen(SECOND, cwd="/elsewhere"))
    write(sessions.home / f"projects/-elsewhere/{SECOND}.jsonl", *rows)
    assert sessions.writers("alpha_value = 1\n") == ["?"]


def test_command_that_moves_a_file_keeps_writers(sessions: Sessions) -> None:
    """The lines belong to the edits under the old name."""
    old = sessions.work / "old.py"
    sessions.add(FIRST, write_call(str(old), "one = 1\ntwo = 2\n"), call("Bash", "git mv old.py app.py", ""))
    assert sessions.writers("one = 1\ntwo = 2\n") == ["1", "1"]


def test_partly_known_edits_are_claims(sessions: Sessions) -> None:
    """If the text before is not recorded, the inserted lines are recognised if they occur once."""
    before = "".join(f"line {number}\n" for number in range(40))
    old, new = "line 7\nline 8\n", "line 7\nspecial = 1\n\nother = 2\nline 8\n"
    sessions.add(FIRST, edit_file(sessions, before, old, new, has_original=False))
    text = before.replace(old, new)
    assert sessions.writers(text)[7:12] == ["?", "1", "1", "1", "?"]


def test_edit_that_a_person_modified(sessions: Sessions) -> None:
    """What the model did not propose is not the model's."""
    before, after = "one = 1\ntwo = 2\n", "one = 1\nperson = 3\ntwo = 2\n"
    part = edit_file(
        sessions,
        before,
        "two = 2",
        "model = 3\ntwo = 2",
        userModified=True,
        newString="person = 3\ntwo = 2",
        structuredPatch=hunks(before, after),
    )
    sessions.add(FIRST, write_file(sessions, before))
    sessions.add(SECOND, part, hour=10)
    assert sessions.writers(after) == ["1", "?", "1"]


class Repository:
    """A git repository for tests, whose commits have given times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, hour: int = 12, date: str | None = None) -> str:
        """Run git as a person."""
        date = date or f"2026-01-05T{hour:02}:30:00Z"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), date),
            **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Person"),
            **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "person@example.com"),
        }
        command = ["git", *arguments]
        done = subprocess.run(  # noqa: S603 - the test's own words
            command, cwd=self.folder, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, file: Path, text: str, *, hour: int) -> str:
        """Commit a text; return the id."""
        file.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", "change", hour=hour)
        return self.git("rev-parse", "HEAD")


def test_git_says_what_no_session_wrote(sessions: Sessions) -> None:
    """Lines of commits are the commits', unless a session wrote them; renames are followed."""
    repository = Repository(sessions.work)
    old = sessions.work / "old.py"
    base = "person_one = 1\nperson_two = 2\n"
    first = repository.commit(old, base, hour=8)
    edited = base + "session_line = 3\n"
    part = edit_call(str(old), base, "person_two = 2\n", "person_two = 2\nsession_line = 3\n")
    sessions.add(FIRST, part, hour=9)
    repository.commit(old, edited, hour=10)
    repository.git("mv", "old.py", "app.py")
    last = repository.commit(sessions.file, edited + "person_three = 4\n", hour=11)
    blame = sessions.blame(None)
    assert [line.commit for line in blame.lines] == [first, first, None, last]
    assert [line.session for line in blame.lines] == [None, None, FIRST, None]
    assert blame.lines[0].author == "Person"
    assert blame.revision == last
    assert sessions.writers(None, git=False) == ["?", "?", "?", "?"]


def test_name_with_a_line_break(sessions: Sessions) -> None:
    """Its committed text is read, also after a commit that removed it."""
    repository = Repository(sessions.work)
    sessions.add(FIRST)
    sessions.file = sessions.work / "a\nb.py"
    first = repository.commit(sessions.file, "one = 1\n", hour=8)
    repository.git("rm", "-q", sessions.file.name)
    repository.git("commit", "-qm", "remove", hour=9)
    last = repository.commit(sessions.file, "one = 1\ntwo = 2\n", hour=10)
    assert first != last
    assert [line.commit for line in sessions.blame(None).lines] == [last, last]


def test_commands_may_have_written_what_is_committed(sessions: Sessions) -> None:
    """Without a command in between, a line is the commit's. With one that may change files, it is unknown."""
    repository = Repository(sessions.work)
    sessions.add(FIRST, write_file(sessions, "one = 1\n"), call("Bash", "git status && pytest -q", ""))
    repository.commit(sessions.file, "one = 1\nperson_line = 2\n", hour=10)
    assert sessions.writers(None) == ["1", "c"]
    sessions.add(SECOND, call("Bash", "python generate.py", ""), hour=10)
    repository.git("commit", "--amend", "-qm", "later", hour=11)
    assert sessions.writers(None) == ["1", "?"]


def test_commit_of_a_session_that_is_gone_is_unknown(sessions: Sessions) -> None:
    """The message of a commit says that Claude Code made it. Without its session, nobody knows who wrote a line."""
    repository = Repository(sessions.work)
    sessions.file.write_text("one = 1\n")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "Add\n\nCo-Authored-By: Claude <noreply@anthropic.com>", hour=8)
    sessions.add(FIRST, edit_file(sessions, "one = 1\n", "one = 1", "one = 1\ntwo = 2"))
    (line, other) = sessions.blame("one = 1\ntwo = 2\n").lines
    assert (line.known, other.session) == (False, FIRST)
    assert line.commit == repository.git("rev-parse", "HEAD")
    assert "session that is not recorded" in line.reason


def test_working_tree_that_is_gone(sessions: Sessions) -> None:
    """A session worked in another working tree of the repository, which was removed after its branch was merged."""
    repository = Repository(sessions.work)
    repository.commit(sessions.file, "person_line = 1\n", hour=8)
    tree = sessions.work / ".claude/worktrees/task/app.py"
    before = "person_line = 1\n"
    sessions.add(FIRST, edit_call(str(tree), before, before, f"{before}session_line = 2\n"))
    repository.commit(sessions.file, "person_line = 1\nsession_line = 2\n", hour=10)
    assert sessions.writers(None) == ["c", "1"]


def test_squashed_branch_keeps_its_writers(sessions: Sessions) -> None:
    """A branch is squashed onto a newer commit, so that no text equals what the session left in its working tree."""
    repository = Repository(sessions.work)
    repository.commit(sessions.file, "first_line = 1\n", hour=8)
    tree = sessions.work / ".claude/worktrees/task/app.py"
    before, after = "first_line = 1\n", "first_line = 1\nsession_line = 2\n\nsession_other = 3\n"
    command = call("Bash", "git -c user.name=x commit -qam x", "")
    sessions.add(FIRST, edit_call(str(tree), before, before, after), command)
    repository.commit(sessions.file, "first_line = 10\n", hour=10)
    repository.commit(sessions.file, after.replace("first_line = 1", "first_line = 10"), hour=11)
    assert sessions.writers(None) == ["c", "1", "1", "1"]


def test_edit_in_another_clone_makes_a_commit_unknown(sessions: Sessions, tmp_path: Path) -> None:
    """A session may have written a line in another clone, from which it was pulled."""
    repository = Repository(sessions.work)
    folder = sessions.work / "src"
    folder.mkdir()
    sessions.file = folder / "app.py"
    clone = tmp_path / "clone/src/app.py"
    repository.commit(sessions.file, "first_line = 1\n", hour=8)
    sessions.add(
        FIRST, edit_call(str(clone), "first_line = 1\n", "first_line = 1\n", "first_line = 1\nother_line = 2\n")
    )
    repository.commit(sessions.file, "first_line = 1\nother_line = 2\n", hour=10)
    assert sessions.writers(None) == ["c", "?"]


def test_deleted_and_typed_again_is_not_the_sessions(sessions: Sessions) -> None:
    """A line that a commit removed and another one brought back is not claimed for its first writer."""
    repository = Repository(sessions.work)
    text = "session_one = 1\nsession_two = 2\n"
    sessions.add(FIRST, write_file(sessions, text))
    repository.commit(sessions.file, text, hour=10)
    repository.commit(sessions.file, "session_one = 1\n", hour=11)
    repository.commit(sessions.file, "session_two = 2\nsession_one = 1\n", hour=12)
    assert sessions.writers(None) == ["?", "1"]


def test_a_commit_after_the_last_year_has_no_time(sessions: Sessions) -> None:
    """Git accepts times that no calendar has. The line is still the commit's."""
    repository = Repository(sessions.work)
    sessions.file.write_text("one = 1\n")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "change", date="@999999999999 +0000")
    sessions.add(FIRST, write_call(str(sessions.work / "other.py"), "two = 2\n", None))
    (line,) = sessions.blame(None).lines
    assert (line.known, line.commit, line.time) == (True, repository.git("rev-parse", "HEAD"), None)


def test_nothing_of_a_repository_is_run(sessions: Sessions, tmp_path: Path) -> None:
    """Programs that the configuration of a repository names are not started."""
    repository = Repository(sessions.work)
    (sessions.work / ".gitattributes").write_text("*.py diff=evil filter=evil\n")
    repository.commit(sessions.file, "one = 1\n", hour=8)
    marker = tmp_path / "ran"
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    names = ("core.fsmonitor", "core.pager", "diff.external", "diff.evil.textconv", "diff.evil.command")
    for name in (*names, "filter.evil.clean", "filter.evil.smudge", "core.sshCommand", "gpg.program"):
        repository.git("config", name, str(program))
    repository.git("config", "log.showSignature", "true")
    sessions.add(FIRST, write_file(sessions, "two = 2\n", "one = 1\n"))
    assert sessions.writers("two = 2\n") == ["1"]
    assert not marker.exists()


def test_agent_trace_record_is_valid(sessions: Sessions) -> None:
    """The record validates against the schema of Agent Trace 0.1.0."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, of the extra `test`, is not installed")
    repository = Repository(sessions.work)
    text = "one = 1\ntwo = 2\n"
    sessions.add(FIRST, write_file(sessions, text))
    commit = repository.commit(sessions.file, text + "person_line = 3\n", hour=10)
    blame = sessions.blame(None)
    record = agent_trace_record(blame, tool_version="1.0", recorded=datetime(2026, 1, 6, tzinfo=UTC))
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(record)
    (file,) = record["files"]
    assert record["vcs"] == {"type": "git", "revision": commit}
    assert file["path"] == "app.py"
    contributors = [(part["contributor"]["type"], part["ranges"][0]["start_line"]) for part in file["conversations"]]
    assert contributors == [("ai", 1), ("unknown", 3)]
    assert file["conversations"][0]["url"] == f"urn:uuid:{FIRST}"


def test_command_prints_lines_and_writers(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table, JSON and an Agent Trace record. Control characters are escaped, and a missing file is an error."""
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    monkeypatch.setenv("COLUMNS", "80")
    sessions.add(FIRST, write_file(sessions, "one = 1\ntwo = '\x1b[31m'\n"))
    sessions.file.write_text("one = 1\ntwo = '\x1b[31m'\nlast\n")
    home = f"--home={sessions.home}"
    assert run(["blame", str(sessions.file), home]) == 0
    table = capsys.readouterr().out
    assert table.startswith("00000001 turn 1 2026-01-05 09:00 1) one = 1\n")
    assert "3 lines: 2 written by sessions, 1 unknown." in table
    assert "\x1b" not in table
    assert max(map(len, table.splitlines())) <= 80
    assert run(["blame", f"{sessions.file}:3", "--json", home]) == 0
    document = json.loads(capsys.readouterr().out)
    (line,) = document["lines"]
    assert (document["file"], line["line"], line["text"], line["known"]) == (str(sessions.file), 3, "last", False)
    assert run(["blame", str(sessions.file), "--format", "agent-trace", home]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == "0.1.0"
    assert run(["blame", str(sessions.work / "none.py"), home]) == 2
    assert run(["blame", f"{sessions.file}:9", home]) == 2
    sessions.file.write_text("")
    assert run(["blame", str(sessions.file), home]) == 1


@pytest.mark.parametrize(
    ("range_", "expected"),
    [("", [1, 2, 3]), (":2", [2]), (":2-3", [2, 3]), (":2-", [2, 3]), (":-2", [1, 2]), (":1,2", [1, 2])],
)
def test_range_of_lines(
    sessions: Sessions, range_: str, expected: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines follow a colon."""
    sessions.add(FIRST, write_file(sessions, "one = 1\n"))
    sessions.file.write_text("one = 1\ntwo = 2\nthree = 3\n")
    assert run(["blame", f"{sessions.file}{range_}", "--no-keep", f"--home={sessions.home}", "--json"]) == 0
    assert [line["line"] for line in json.loads(capsys.readouterr().out)["lines"]] == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git status && git commit -m 'x > y'", False),
        ("pytest -q 2>&1 | tail -5", False),
        ("cd src && grep -rn 'a > b' . > /dev/null", False),
        ("python -m pytest", False),
        ("sed -n 1,5p a.py", False),
        ("git -C /w -c user.name=x commit -qam 'x'", False),
        ("git commit -F - <<'EOF'\nfix: sed -i\nEOF", False),
        ("sed -i s/a/b/ a.py", True),
        ("echo x > a.py", True),
        ("black .", True),
        ("npm run format", True),
        ("git checkout a.py", True),
        ("ruff check --fix", True),
        ("echo $(python make.py)", True),
        ("find . -name '*.py' -exec rm {} +", True),
        ("cat <<EOF | python -\nprint()\nEOF", True),
        ("curl -sSf -XPOST -HContent-Type:x https://x/o", False),
        ("sort -rnk2 -t, a", False),
        ("xxd a", False),
        ("curl -sSLo a.py https://x", True),
        ("curl -LO https://x/a.py", True),
        ("curl --output=a.py https://x", True),
        ("curl --remote-name https://x/a.py", True),
        ("sort -uoa.txt a.txt", True),
        ("xxd -r a.hex a.bin", True),
    ],
)
def test_commands_that_may_change_files(command: str, expected: bool) -> None:
    """Only programs that are known to read do not count."""
    assert may_write_files(command) is expected


def test_commands_are_read_for_names_and_texts() -> None:
    """Moves are relative to the directory that the command is in; texts are those of here-documents and quotes."""
    assert ("/w/src/a.py", "/w/src/b.py") in list(moved_paths("cd src && mv a.py b.py", "/w"))
    assert ("/w/a.py", "/w/lib/a.py") in list(moved_paths("git mv -f a.py lib", "/w"))
    assert list(moved_paths("echo mv a b", "/w")) == []
    assert list(written_runs("echo 'x = 1' >> a.py", "/w/a.py")) == [["x = 1"]]
    assert list(written_runs("cat a.py > b.py", "/w/a.py")) == []


@pytest.mark.parametrize(
    ("command", "is_written"),
    [
        ("cat > app.py <<'EOF'\n{0}\nEOF", True),
        ("cat <<'EOF' >> ./src/app.py\n{0}\nEOF", True),
        ("mkdir -p src && cat <<-EOF | sudo tee -a /w/src/app.py >/dev/null\n{0}\nEOF\ngit add src/app.py", True),
        ("python3 - <<'EOF'\nopen('src/app.py', 'w').write(text)\n{0}\nEOF", True),
        ("cd x; uv run python - src/app.py <<EOF\n{0}\nEOF", True),
        ("git commit -F- <<'EOF'\nChange app.py\n{0}\nEOF", False),
        ("git commit -m \"$(cat <<'EOF'\nChange app.py\n{0}\nEOF\n)\"", False),
        ("cat > ../app.py <<'EOF'\n{0}\nEOF", True),
        ("cat > notes.md <<'EOF'\nSee app.py\n{0}\nEOF", False),
        ("cat > /elsewhere/app.py <<'EOF'\n{0}\nEOF", False),
        ("cat > tests/app.py <<'EOF'\n{0}\nEOF", False),
        ("cat app.py; cat > b.py <<'EOF'\n{0}\nEOF", False),
        ("python3 - <<'EOF'\nprint(1)\n{0}\nEOF\ncat app.py", False),
        ("gh pr create --body-file - <<'EOF'\nChanges app.py\n{0}\nEOF", False),
        ("echo '{0}' | tee -a src/app.py", True),
        ("echo '{0}' | grep x src/app.py", False),
    ],
)
def test_command_writes_a_file_only_if_it_is_a_target(command: str, *, is_written: bool) -> None:
    """Here-documents may be for something else: messages, other files, programs that do not name the file."""
    runs = written_runs(command.format("alpha_value = 1"), "/w/src/app.py")
    assert any("alpha_value = 1" in run for run in runs) is is_written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda n: list(map(str, range(n))), lambda n: [str(at) if at % 7 else f"{at} changed" for at in range(n)]),
        (lambda n: ["}"] * n, lambda n: ["}"] * (n + 1)),
        (lambda n: ["}", ""] * (n // 2), lambda n: ["", "}"] * (n // 2 - 1)),
        (lambda n: list(map(str, range(n))), lambda n: list(map(str, reversed(range(n))))),
    ],
)
def test_alignment_takes_linear_time(old: Callable[[int], list[str]], new: Callable[[int], list[str]]) -> None:
    """Twice as many lines take about twice as many steps, not four times, even if all lines are equal."""
    steps = [count_steps(align, old(number), new(number)) for number in (500, 1_000)]
    assert steps[1] < 2.6 * steps[0]


def count_steps(function: Callable[..., Any], *arguments: Any) -> int:
    """How many lines of Python a call executes."""
    steps = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return steps


def test_alignment_of_large_files() -> None:
    """Files of 50,000 lines are compared, even if all lines are equal."""
    unique = [f"line {number}" for number in range(50_000)]
    changed = [line if number % 7 else f"{line} changed" for number, line in enumerate(unique)]
    assert sum(bool(source) for source in align(unique, changed).sources) == 50_000 - len(unique[::7])
    same: Sequence[str] = ["}"] * 50_000
    assert len(align(same, [*same, "}"]).sources) == 50_001
    alternating = [("}", "")[number % 2] for number in range(50_000)]
    assert len(align(alternating, alternating[1:]).sources) == 49_999
