"""A repository that a real client, a person and a formatter write: every line is attributed as scripted, or unknown."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.real.client import API, Block, Client, bash, newest, start_client, steps, tool

import threadline
from threadline.model.entries import UserEntry
from threadline.model.insight.blame import Blame

NEWEST = newest() if API.exists() else None
PERSON = "person"

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed"),
]

DONE: list[Block] = [{"text": "Done."}]


class Script:
    """A client in a git repository, and who wrote each line, by its text without spaces."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.folder = client.work
        self.truth: dict[str, set[str]] = {}
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> None:
        """Run git as a person."""
        names = ("user.name=Person", "user.email=person@example.com", "commit.gpgsign=false")
        options = [word for name in names for word in ("-c", name)]
        subprocess.run(["git", *options, *arguments], cwd=self.folder, check=True, capture_output=True)  # noqa: S603, S607

    def path(self, name: str) -> str:
        """The full path of a file."""
        return str(self.folder / name)

    def say(self, name: str, *calls: Block, writes: str = "", options: tuple[str, ...] = ()) -> str:
        """A turn of a session, which writes these lines."""
        session = self.client.say(name, steps(*([one_call] for one_call in calls), DONE), *options)
        assert session is not None, self.client.failures
        self.add_truth(writes, session)
        return session

    def add_truth(self, lines: str, writer: str) -> None:
        """Note who writes lines."""
        for line in lines.splitlines():
            self.truth.setdefault("".join(line.split()), set()).add(writer)

    def person_replaces(self, name: str, old: str, new: str, *, commit: bool = True) -> None:
        """A person changes a file."""
        file = self.folder / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        self.add_truth(new, PERSON)
        if commit:
            self.commit()

    def commit(self) -> None:
        """A person commits everything."""
        self.git("add", "-A")
        self.git("commit", "-qm", "Change")

    def blame(self, name: str, *, git: bool = True) -> Blame:
        """The blame of a file, compared with the script: nothing may be wrong."""
        with threadline.open(self.client.claude_home, keep=False) as archive:
            blame = archive.blame(self.folder / name, git=git)
        for line in blame.lines:
            if line.known and line.text.strip():
                writer = str(line.session) if line.session is not None else PERSON
                assert writer in self.truth["".join(line.text.split())], (line, self.truth)
        return blame


@pytest.fixture(name="script")
def _script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert NEWEST is not None
    with start_client(NEWEST, tmp_path) as client:
        client.variables["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] = "1"
        yield Script(client)


def unknown_lines(blame: Blame) -> list[str]:
    """The lines that nobody is known for."""
    return [line.text for line in blame.lines if not line.known]


FIRST_TEXT = """import os


def alpha_function():
    alpha_value = 1
    return alpha_value


def beta_function():
    beta_value = 2
    return beta_value
"""


def format_and_move(script: Script) -> None:
    """A person formats the file with another indentation, and moves a function."""
    file = script.folder / "app.py"
    joined, wrapped = "alpha_function() + beta_function()", "(\n    alpha_function()\n    + beta_function())"
    file.write_text(file.read_text().replace("    ", "  ").replace(joined, wrapped))
    script.add_truth("alpha_function()\n+ beta_function())\nreturn (", script.client.sessions["second"])
    script.add_truth("alpha_function()\n+ beta_function())\nreturn (", PERSON)
    script.commit()
    blame = script.blame("app.py")
    assert len(unknown_lines(blame)) <= 4
    text = file.read_text()
    start, end = text.index("def beta_function"), text.index("def gamma_function")
    file.write_text(text[:start] + text[end:].rstrip("\n") + "\n\n\n" + text[start:end].rstrip("\n") + "\n")
    script.commit()
    blame = script.blame("app.py")
    assert [line.known for line in blame.lines if "beta_more" in line.text] == [True]


def test_every_line_is_attributed_as_scripted(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    """Edits, rewrites, moves, a rename, a subagent, a person and a formatter, over several sessions and commits."""
    path = script.path("app.py")
    first = script.say("first", tool("Write", file_path=path, content=FIRST_TEXT), writes=FIRST_TEXT)
    new = "    beta_value = 20\n    beta_more = 21"
    edit = tool("Edit", file_path=path, old_string="    beta_value = 2", new_string=new)
    script.say("first again", edit, bash("git add -A && git status"), writes=new, options=("-r", first))
    script.commit()
    typed = "    person_value = 3\n    return alpha_value + person_value"
    script.person_replaces("app.py", "    return alpha_value", typed)

    # Another session rewrites the file, and leaves most of it as it is.
    text = (script.folder / "app.py").read_text()
    added = "\n\ndef gamma_function():\n    return alpha_function() + beta_function()\n"
    rewrite = tool("Write", file_path=path, content=text.replace("import os", "import os\nimport sys") + added)
    script.say("second", tool("Read", file_path=path), rewrite, writes="import sys\n" + added)

    # A subagent edits it.
    agent_line = "    agent_value = os.getpid()"
    old = "    alpha_value = 1\n"
    agent_edit = tool("Edit", file_path=path, old_string=old, new_string=f"{agent_line}\n{old}")
    prompt = steps([tool("Read", file_path=path)], [agent_edit], DONE)
    agent = tool("Agent", description="edit", prompt=prompt, subagent_type="general-purpose", run_in_background=False)
    third = script.say("third", agent, writes=agent_line)
    script.commit()
    blame = script.blame("app.py")
    (line,) = [line for line in blame.lines if line.text == agent_line]
    assert (line.session, line.turn) == (third, 1)
    assert line.agent is not None
    assert unknown_lines(blame) == []
    assert {line.turn for line in blame.lines if line.session == first} == {1, 2}

    format_and_move(script)

    # A session renames the file and goes on.
    moved = script.path("core.py")
    renaming = tool("Edit", file_path=moved, old_string="import sys", new_string="import sys\nimport json")
    script.say("fourth", bash("git mv app.py core.py"), tool("Read", file_path=moved), renaming, writes="import json")
    blame = script.blame("core.py")
    assert [line.known for line in blame.lines if line.text.startswith(("import", "def"))].count(False) == 0
    script.commit()
    blame = script.blame("core.py")
    without_git = script.blame("core.py", git=False)
    counts = [(len(each.lines), len(unknown_lines(each))) for each in (blame, without_git)]
    with capsys.disabled():
        print(f"\nlines and unknown lines, with and without git: {counts}; {unknown_lines(blame)}")  # noqa: T201 - figures
    assert counts[0][1] <= counts[0][0] * 0.3


def test_rewound_files_have_the_writers_they_had(script: Script) -> None:
    """A rewind restores the text of an earlier turn. What was written after it is gone."""
    path = script.path("notes.txt")
    start = "first note of the session\nsecond note of the session\nthird note of the session\n"
    session = script.say("notes", tool("Write", file_path=path, content=start), writes=start)
    replaced = "second note, written again"
    edit = tool("Edit", file_path=path, old_string="second note of the session", new_string=replaced)
    script.say("notes again", edit, writes=replaced, options=("-r", session))
    with threadline.open(script.client.claude_home, keep=False) as archive:
        prompts = [
            entry
            for entry in archive.session(session).main.entries
            if isinstance(entry, UserEntry) and entry.text.startswith("STEPS")
        ]
    script.client.run("--resume", session, "--rewind-files", str(prompts[-1].uuid))
    assert Path(path).read_text() == start
    blame = script.blame("notes.txt")
    assert [line.session for line in blame.lines] == [session] * 3
    assert {line.turn for line in blame.lines} == {1}
    later = "fourth note of another session"
    old = "third note of the session"
    end = tool("Edit", file_path=path, old_string=old, new_string=f"{old}\n{later}")
    other = script.say("other", tool("Read", file_path=path), end, writes=later)
    blame = script.blame("notes.txt")
    assert [line.session for line in blame.lines] == [session, session, session, other]


def test_two_sessions_and_a_command(script: Script) -> None:
    """Sessions take turns; a command writes lines that it contains, and others that it does not."""
    path = script.path("tool.sh")
    heredoc = "cat > tool.sh <<'EOF'\necho written by a command\necho another line of it\nEOF"
    one = script.say("one", bash(heredoc), writes="echo written by a command\necho another line of it")
    line = "echo added by an edit"
    old = "echo another line of it"
    edit = tool("Edit", file_path=path, old_string=old, new_string=f"{old}\n{line}")
    script.say("two", tool("Read", file_path=path), edit, writes=line)
    script.say("three", bash("sed -i 's/added by/changed by/' tool.sh"), writes="echo changed by an edit")
    script.person_replaces("tool.sh", "echo written", "echo typed here\necho written", commit=False)
    blame = script.blame("tool.sh")
    assert [str(line.session or "") for line in blame.lines] == ["", one, one, ""]
    assert [line.tool for line in blame.lines] == [None, "Bash", "Bash", None]
