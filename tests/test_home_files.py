"""Nothing outside a home is read, whatever links, names and special files the home contains."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import cli
from tests.cli.runner import CliRunner
from tests.opened_files import OpenedFiles
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.client import Client

import threadline
from threadline import home_files
from threadline.home_files import OutsideHomeError, open_in_home, read_in_home
from threadline.keep import LINKED_SETTINGS, read_retention_period
from threadline.model.homes import Home
from threadline.model.places import ProblemKind

__all__ = ["cli"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a right that not everyone has on Windows")
OUTSIDE = "text-from-outside"
AGENT = "aaaa1111"


@pytest.fixture(params=["system names open files", "paths are resolved"])
def _each_way_to_locate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "paths are resolved":
        monkeypatch.setattr(home_files, "_HAS_PROC", False)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with files that a link may lead to, one for each kind."""
    folder = tmp_path / "outside"
    write(folder / "file-history" / "b@v1", OUTSIDE.encode())
    todo = [{"content": OUTSIDE, "status": "pending", "activeForm": "x"}]
    write(folder / "todos" / f"{SESSION}-agent-{SESSION}.json", json.dumps(todo).encode())
    task = {"id": "1", "subject": OUTSIDE, "description": OUTSIDE, "status": "pending"}
    write(folder / "tasks" / "1.json", json.dumps(task).encode())
    pen = Pen(SESSION, agentId=AGENT, isSidechain=True)
    write(folder / "subagents" / f"agent-{AGENT}.jsonl", *transcript(prompt(OUTSIDE), reply(OUTSIDE), pen=pen))
    write(folder / "subagents" / f"agent-{AGENT}.meta.json", json.dumps({"agentType": OUTSIDE}).encode())
    return folder


def write_session(home: Path) -> Path:
    """Write a home with a session whose snapshot names a backup."""
    backup = {"backupFileName": "b@v1", "version": 1, "backupTime": "2026-01-05T09:00:00.000Z"}
    tracked = {"messageId": "m", "trackedFileBackups": {"/work/app/f": backup}, "timestamp": "2026-01-05T09:00:00.000Z"}
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": tracked, "isSnapshotUpdate": False}
    rows = transcript(prompt("hi"), snapshot, reply("ok", output=3))
    return write(home / "projects" / "-work-app" / f"{SESSION}.jsonl", *rows)


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


_SESSION_FOLDER = f"home/projects/-work-app/{SESSION}"
_BACKUPS = f"home/file-history/{SESSION}"
_TODOS = f"{SESSION}-agent-{SESSION}.json"
LINKS: dict[str, dict[str, str]] = {
    "a backup": {f"{_BACKUPS}/b@v1": "outside/file-history/b@v1"},
    "a relative link": {f"{_BACKUPS}/b@v1": "../../../outside/file-history/b@v1"},
    "a backup through another link": {"home/plans/x": "outside/file-history", f"{_BACKUPS}/b@v1": "home/plans/x/b@v1"},
    "the backups of a session": {_BACKUPS: "outside/file-history"},
    "all backups": {f"outside/{SESSION}": "outside/file-history", "home/file-history": "outside"},
    "todos": {"home/todos": "outside/todos"},
    "a todo list": {f"home/todos/{_TODOS}": f"outside/todos/{_TODOS}"},
    "tasks": {f"outside/{SESSION}": "outside/tasks", "home/tasks": "outside"},
    "the tasks of a session": {f"home/tasks/{SESSION}": "outside/tasks"},
    "a task": {f"home/tasks/{SESSION}/1.json": "outside/tasks/1.json"},
    "a session's directory": {_SESSION_FOLDER: "outside"},
    "agents": {f"{_SESSION_FOLDER}/subagents": "outside/subagents"},
    "an agent": {f"{_SESSION_FOLDER}/subagents/agent-{AGENT}.jsonl": f"outside/subagents/agent-{AGENT}.jsonl"},
}
"""Links and their targets."""


def make_links(folder: Path, kind: str) -> None:
    """Create the links of a kind below a folder."""
    for link, target in LINKS[kind].items():
        (folder / link).parent.mkdir(parents=True, exist_ok=True)
        (folder / link).symlink_to(target if target.startswith("..") else folder / target)


@pytest.mark.usefixtures("_each_way_to_locate")
@pytest.mark.parametrize("kind", LINKS)
def test_links_out_of_a_home_are_not_followed_and_reported(tmp_path: Path, outside: Path, kind: str) -> None:
    """The state, the conversation and the pages contain nothing from outside; the session's problems name the link."""
    main = write_session(tmp_path / "home")
    assert outside.is_dir()
    make_links(tmp_path, kind)
    session = threadline.read(main)
    assert OUTSIDE not in repr((session.at(), session.main, session.agents, session.file_log("f")))
    assert [problem.kind for problem in session.problems] == [ProblemKind.SKIPPED]
    problems = [problem for home in [threadline.look(tmp_path / "home")] for problem in home.problems]
    assert session.problems[0].place.transcript in {problem.place.transcript for problem in problems}


def test_commands_and_pages_do_not_print_a_linked_backup(cli: CliRunner, tmp_path: Path, outside: Path) -> None:
    """`files`, `show`, `export`, the page and its JSON: none prints it, and they say that it was not read."""
    home = tmp_path / "home"
    write_session(home)
    assert outside.is_dir()
    make_links(tmp_path, "a backup")
    for command in (
        ["files", SESSION, "--path", "f", "--content"],
        ["files", SESSION, "--json"],
        ["show", SESSION],
        ["export", SESSION, "--out", "-", "--format", "json"],
    ):
        result = cli(*command, "--home", home)
        assert OUTSIDE not in result.out + result.err
        assert command[0] == "export" or "b@v1' is a link to" in result.err
    assert cli("doctor", "--home", home, "--json").json["problems"]
    client = Client(home)
    for address in (f"/session/{SESSION}/state/end", f"/session/{SESSION}/state/end.json", f"/session/{SESSION}"):
        page = client.get(address)
        assert (page.status_code, OUTSIDE in page.text) == (200, False)
    assert "b@v1: a link to" in client.get(f"/session/{SESSION}").text


@pytest.mark.parametrize("target", ["settings.json", ".credentials.json", ".claude.json", "history.jsonl"])
def test_links_to_other_files_of_the_home_are_not_read_as_backups(tmp_path: Path, target: str) -> None:
    """Settings may contain keys. A link into the same home is not followed either."""
    main = write_session(tmp_path / "home")
    write(tmp_path / "home" / target, OUTSIDE.encode())
    _link(tmp_path / "home" / "file-history" / SESSION / "b@v1", tmp_path / "home" / target)
    session = threadline.read(main)
    assert OUTSIDE not in repr(session.at())
    assert [problem.kind for problem in session.problems] == [ProblemKind.SKIPPED]


@pytest.mark.parametrize("target", ["/proc/self/environ", "/dev/zero", "fifo"])
def test_special_files_are_not_read(tmp_path: Path, target: str) -> None:
    """Neither through a link nor in place of a backup."""
    main = write_session(tmp_path / "home")
    backup = tmp_path / "home" / "file-history" / SESSION / "b@v1"
    backup.parent.mkdir(parents=True)
    if target == "fifo":
        os.mkfifo(backup)
    else:
        backup.symlink_to(target)
    session = threadline.read(main)
    assert not session.at().files
    assert [problem.kind for problem in session.problems] == [ProblemKind.SKIPPED]


def test_ids_in_rows_do_not_lead_out(tmp_path: Path) -> None:
    """An agent's transcript beside the sessions belongs to the session that its rows name, which may be any text."""
    write(tmp_path / "outside" / "b@v1", OUTSIDE.encode())
    main = write_session(tmp_path / "home")
    rows = main.read_text().replace(SESSION, "../../outside")
    agent = main.with_name(f"agent-{AGENT}.jsonl")
    agent.write_text(rows)
    (tmp_path / "home" / "file-history").mkdir()
    assert OUTSIDE not in repr(threadline.read(agent).at())


def test_file_history_beside_a_loose_transcript_is_not_read(tmp_path: Path) -> None:
    """A transcript outside of a home has no backups, wherever its folders are."""
    main = write_session(tmp_path / "home")
    loose = write(tmp_path / "a" / "b" / main.name, main.read_bytes())
    write(tmp_path / "file-history" / SESSION / "b@v1", OUTSIDE.encode())
    assert OUTSIDE not in repr(threadline.read(loose).at())


@pytest.mark.usefixtures("_each_way_to_locate")
@pytest.mark.parametrize("linked", ["home", "projects", "home and projects"])
def test_home_and_projects_may_be_links(tmp_path: Path, linked: str) -> None:
    """As with dotfiles, or another disk: everything is read, by the path that was named and by the real one."""
    home = tmp_path / "home"
    main = write_session(home)
    write(home / "file-history" / SESSION / "b@v1", b"content")
    todo = [{"content": "sort", "status": "pending", "activeForm": "x"}]
    write(home / "todos" / f"{SESSION}-agent-{SESSION}.json", json.dumps(todo).encode())
    if "projects" in linked:
        (home / "projects").rename(tmp_path / "disk")
        (home / "projects").symlink_to(tmp_path / "disk")
    if "home" in linked:
        home.rename(tmp_path / "dotfiles")
        home.symlink_to(tmp_path / "dotfiles")
    named = threadline.read(main)
    with threadline.open(home, index=False, keep=False) as archive:
        listed = archive.session(SESSION)
    for session in (named, listed):
        state = session.at()
        assert [file.content for file in state.files.values()] == ["content"]
        assert [todos.todos[0].content for todos in state.todos] == ["sort"]
        assert session.problems == ()


@pytest.mark.usefixtures("_each_way_to_locate")
def test_named_transcript_that_links_out_of_its_home_is_refused(tmp_path: Path, outside: Path) -> None:
    """The message names the target: a user who wants that file can name it. Outside of a home, links are followed."""
    main = write_session(tmp_path / "home")
    real = main.rename(outside / "real.jsonl")
    main.symlink_to(real)
    with pytest.raises(threadline.Unreadable, match=r"out of the home.*real\.jsonl"):
        threadline.read(main)
    _link(tmp_path / "home" / "projects" / "-linked", outside)
    with pytest.raises(threadline.Unreadable, match="out of the home"):
        threadline.read(tmp_path / "home" / "projects" / "-linked" / "real.jsonl")
    (tmp_path / "loose.jsonl").symlink_to(real)
    assert len(list(threadline.entries(tmp_path / "loose.jsonl"))) == 3
    (tmp_path / "folder").symlink_to(outside)
    assert len(list(threadline.entries(tmp_path / "folder" / "real.jsonl"))) == 3


@pytest.mark.usefixtures("_each_way_to_locate")
def test_folder_swapped_for_a_link_is_detected(tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may become a link between the check and the opening; the open file decides."""
    backup = write(tmp_path / "home" / "file-history" / SESSION / "b@v1", b"mine")
    folder = backup.parent
    real_open = os.open

    def swap_and_open(path: str, flags: int, *arguments: int) -> int:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(outside / "file-history")
        return real_open(path, flags, *arguments)

    monkeypatch.setattr(os, "open", swap_and_open)
    with pytest.raises(OutsideHomeError):
        open_in_home(backup, home=tmp_path / "home")


@pytest.mark.parametrize(
    "path", ["../outside/file-history/b@v1", "x/../../outside/file-history/b@v1", "/etc/passwd", "."]
)
def test_paths_that_lead_out_of_the_home_are_refused(tmp_path: Path, outside: Path, path: str) -> None:
    """`..` and absolute paths, which data may contain."""
    (tmp_path / "home" / "x").mkdir(parents=True)
    assert outside.is_dir()
    with pytest.raises(OSError, match=r"home|regular"):
        open_in_home(os.path.join(tmp_path / "home", path), home=tmp_path / "home")  # noqa: PTH118 - as data is joined


def test_allowed_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`THREADLINE_LINKS` lists where links to files may lead. Without it, settings that are a link are not read."""
    home, dotfiles = tmp_path / "home", tmp_path / "dotfiles"
    home.mkdir()
    write(dotfiles / "settings.json", b'{"cleanupPeriodDays": 99}')
    (home / "settings.json").symlink_to(dotfiles / "settings.json")
    assert (read_retention_period(home).days, read_retention_period(home).invalid_setting) == (30, LINKED_SETTINGS)
    monkeypatch.setenv("THREADLINE_LINKS", os.pathsep.join((str(tmp_path / "else"), str(dotfiles))))
    assert read_retention_period(home).days == 99
    monkeypatch.setenv("THREADLINE_LINKS", str(tmp_path / "dot"))
    assert read_retention_period(home).days == 30


def test_allowed_directories_list_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transcript in an allowed directory is listed and read; a secret there is not."""
    main = write_session(tmp_path / "home")
    main.symlink_to(main.rename(tmp_path / "moved.jsonl"))
    (tmp_path / ".env").write_text(OUTSIDE)
    (main.parent / "x.jsonl").symlink_to(tmp_path / ".env")
    monkeypatch.setenv("THREADLINE_LINKS", str(tmp_path))
    (transcript,) = threadline.look(Home(tmp_path / "home", "option")).transcripts
    assert transcript.session == SESSION
    assert len(list(threadline.entries(transcript.path))) == 3


def test_deleted_file_is_still_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code may replace a file while it is opened."""
    path = write(tmp_path / "home" / "todos" / "a.json", b"[]")
    real_open = os.open

    def open_and_delete(name: str, flags: int, *arguments: int) -> int:
        descriptor = real_open(name, flags, *arguments)
        Path(name).unlink()
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_and_delete)
        assert read_in_home(path, limit=10, home=tmp_path / "home") == b"[]"


COMMANDS: tuple[list[str], ...] = (
    [],
    ["list", "--no-index"],
    ["usage", "--no-index"],
    ["usage", "--mode", "both"],
    ["search", "the"],
    ["history"],
    ["doctor"],
    ["doctor", "--check"],
    ["errors"],
    ["calls"],
    ["show", "last"],
    ["files", "last"],
    ["todos", "last"],
    ["tree", "last"],
    ["context", "last"],
    ["export", "last", "--out", "-", "--format", "md"],
    ["scan"],
    ["entries"],
    ["keep"],
    ["keep", "status"],
    ["keep", "uninstall"],
    ["index", "refresh"],
    ["sql", "SELECT * FROM said LIMIT 3"],
)


@pytest.fixture(params=["files", "folders", "all but one transcript"])
def linked_home(
    request: pytest.FixtureRequest, demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A home whose files, or folders, are links to another place."""
    linked = request.param
    home, outside = tmp_path / "home", tmp_path / "outside"
    shutil.copytree(demo_home, outside)
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (home / "projects").mkdir(parents=True)
    for path in sorted(outside.rglob("*")):
        below = path.relative_to(outside)
        is_linked = len(below.parts) == (2 if below.parts[0] == "projects" else 1) or not path.is_dir()
        link = home / below
        if linked != "folders":
            is_linked = path.is_file()
        if is_linked and not any(parent.is_symlink() for parent in link.parents) and below.parts != ("projects",):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    if linked == "all but one transcript":
        mains = sorted((home / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
        data = mains[-1].read_bytes()
        mains[-1].unlink()
        mains[-1].write_bytes(data)
    return home


@pytest.mark.slow
def test_no_command_or_page_opens_anything_outside(cli: CliRunner, linked_home: Path, opened: OpenedFiles) -> None:
    """Nothing at the other place is opened or listed."""
    home = linked_home
    names = [path.stem for path in (home / "projects").glob("*/*.jsonl")]
    opened.paths.clear()
    opened.folder = str(home.with_name("outside"))
    try:
        for command in COMMANDS:
            result = cli(*command, "--home", home)
            assert "Traceback" not in result.err, command
            assert opened.paths == [], command
        client = Client(home)
        pages = ["/", "/sessions.json", "/usage", "/search?q=the", "/doctor", *(f"/session/{name}" for name in names)]
        for page in (*pages, *(f"/session/{name}/state/end" for name in names)):
            assert client.get(page).status_code in {200, 404}
            assert opened.paths == [], page
    finally:
        opened.folder = ""
