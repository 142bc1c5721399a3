"""Tests of homes with hostile or damaged files."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.find.home_files import OTHER_SESSION, SESSION, list_home, write

import threadline
from threadline import files, home_files
from threadline.find import project_paths, transcript_at
from threadline.find.listing import TranscriptWalk
from threadline.model.homes import Home, SideFileKind
from threadline.model.places import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has neither these files nor these names")

MAIN = f"projects/-a/{SESSION}.jsonl"


def problems(home: Path) -> list[tuple[str, ProblemKind, str]]:
    """Return path below the home, kind and message of each problem."""
    return [
        (os.path.relpath(problem.place.transcript, home), problem.kind, problem.message)
        for problem in list_home(home).problems
    ]


def transcripts(home: Path) -> list[Path]:
    """Return the paths of the transcripts."""
    return [transcript.path for transcript in list_home(home).transcripts]


def test_pipes_are_skipped_without_blocking(tmp_path: Path) -> None:
    """A named pipe in place of a transcript or the history is reported."""
    write(tmp_path, MAIN)
    os.mkfifo(tmp_path / "projects/-a" / f"{OTHER_SESSION}.jsonl")
    os.mkfifo(tmp_path / "history.jsonl")
    assert problems(tmp_path) == [
        ("history.jsonl", ProblemKind.SKIPPED, "a named pipe"),
        (f"projects/-a/{OTHER_SESSION}.jsonl", ProblemKind.SKIPPED, "a named pipe"),
    ]


def test_file_replaced_by_a_pipe_does_not_block(tmp_path: Path) -> None:
    """If a file is replaced by a pipe after listing, reading it fails immediately."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        list(home_files.read_lines(tmp_path / "pipe", 100))
    with pytest.raises(OSError, match="not a regular file"):
        files.read_file(tmp_path, follow_symlinks=True)


def test_sockets_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket is reported and not opened."""
    write(tmp_path, MAIN)
    monkeypatch.chdir(tmp_path / "projects/-a")  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind("s.jsonl")
        assert problems(tmp_path) == [("projects/-a/s.jsonl", ProblemKind.SKIPPED, "a socket")]


def test_devices_are_skipped(tmp_path: Path) -> None:
    """A device is reported and not opened, directly or through a symlink."""
    write(tmp_path, MAIN)
    (tmp_path / "projects/-a/linked.jsonl").symlink_to("/dev/zero")
    expected = "a link to something that is not a regular file"
    assert problems(tmp_path) == [("projects/-a/linked.jsonl", ProblemKind.SKIPPED, expected)]
    try:
        os.mknod(tmp_path / "projects/-a/zero.jsonl", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except OSError:
        return  # only an administrator makes devices; the link was tried
    assert (
        "projects/-a/zero.jsonl",
        ProblemKind.SKIPPED,
        "a character device",
    ) in problems(tmp_path)


def test_directory_named_like_a_transcript_is_skipped(tmp_path: Path) -> None:
    """A directory `x.jsonl` is reported and not entered."""
    write(tmp_path, f"{MAIN}/{OTHER_SESSION}.jsonl")
    assert transcripts(tmp_path) == []
    expected = "a directory with the name of a transcript"
    assert problems(tmp_path) == [(MAIN, ProblemKind.SKIPPED, expected)]


def test_symlinks_to_directories_are_not_followed(tmp_path: Path) -> None:
    """Neither a loop nor a path out of the home is walked."""
    home = tmp_path / "home"
    main = write(home, MAIN)
    write(tmp_path, f"outside/{OTHER_SESSION}.jsonl")
    (home / "projects/-a/loop").symlink_to(home / "projects")
    (home / "projects/-b").symlink_to(tmp_path / "outside")
    (home / "todos").symlink_to("/")
    (home / "projects/-c").symlink_to(home / "projects/-c")
    assert transcripts(home) == [main]
    message = "a link to a directory; directories are not followed"
    assert problems(home) == [
        ("projects/-a/loop", ProblemKind.SKIPPED, message),
        ("projects/-b", ProblemKind.SKIPPED, message),
        ("projects/-c", ProblemKind.SKIPPED, "a circular link"),
        ("todos", ProblemKind.SKIPPED, message),
    ]


def test_projects_may_be_a_symlink(tmp_path: Path) -> None:
    """People move `projects` to another disk. It is followed, and paths are real ones."""
    home = tmp_path / "home"
    home.mkdir()
    main = write(tmp_path, f"disk/stored/-a/{SESSION}.jsonl", {"cwd": "/a"})
    (tmp_path / "disk/stored/-a/copy.jsonl").symlink_to(main)
    (home / "projects").symlink_to(tmp_path / "disk/stored")
    assert [(transcript.path, transcript.folder) for transcript in list_home(home).transcripts] == [(main, "-a")]
    assert [project.path for project in list_home(home).projects] == ["/a"]
    assert problems(home) == []


@pytest.mark.parametrize("target", ["home", ".", "/", "home/projects", "nowhere"])
def test_projects_may_not_be_a_symlink_to_a_parent(tmp_path: Path, target: str) -> None:
    """A symlink to something that contains the home, to itself or to nowhere is reported."""
    home = tmp_path / "home"
    home.mkdir()
    write(tmp_path, "secret/x.jsonl")
    (home / "projects").symlink_to(tmp_path / target)
    assert transcripts(home) == []
    assert [problem[:2] for problem in problems(home)] == [("projects", ProblemKind.SKIPPED)]


def test_symlinked_file_is_listed_once(tmp_path: Path) -> None:
    """Symlinks within the home add nothing to a listed file, and list an unlisted one once."""
    main = write(tmp_path, MAIN)
    (tmp_path / "projects/-a" / f"{OTHER_SESSION}.jsonl").symlink_to(main)
    linked = write(tmp_path, "unknown/kept.jsonl")
    for name in ("one", "two"):
        (tmp_path / "projects/-a" / f"{name}.jsonl").symlink_to(linked)
    assert transcripts(tmp_path) == [main, linked]
    assert problems(tmp_path) == []


def test_symlink_out_of_the_home_or_to_nowhere_is_skipped(tmp_path: Path) -> None:
    """Neither leads to a file of this home."""
    home = tmp_path / "home"
    write(home, MAIN)
    outside = write(tmp_path, "outside.jsonl")
    (home / "projects/-a/a.jsonl").symlink_to(outside)
    (home / "projects/-a/b.jsonl").symlink_to("gone")
    assert problems(home) == [
        ("projects/-a/a.jsonl", ProblemKind.SKIPPED, "a link to a file outside the home"),
        ("projects/-a/b.jsonl", ProblemKind.SKIPPED, "a link to a missing file"),
    ]


def test_secrets_are_not_opened_through_symlinks(tmp_path: Path) -> None:
    """A transcript that is a symlink to a secret is skipped, and a secret that is a symlink is not followed."""
    write(tmp_path, ".credentials.json", "secret")
    write(tmp_path, "projects/-a/x.md")
    (tmp_path / MAIN).symlink_to(tmp_path / ".credentials.json")
    (tmp_path / ".env").symlink_to("/dev/zero")
    assert transcripts(tmp_path) == []
    assert problems(tmp_path) == [(MAIN, ProblemKind.SKIPPED, "a link to a secret")]
    secrets = [file for file in list_home(tmp_path).side_files if file.kind is SideFileKind.SECRET]
    assert [(secret.path.name, secret.size) for secret in secrets] == [(".credentials.json", 0), (".env", 0)]


def test_only_one_transcript_per_project_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets, settings and other side files are never opened."""
    main = write(tmp_path, MAIN, {"cwd": "/a"})
    for path in (
        f"projects/-a/{OTHER_SESSION}.jsonl",
        ".credentials.json",
        "settings.json",
        "x.key",
        ".claude.json",
    ):
        write(tmp_path, path, {"cwd": "/a"})
    opened: list[str] = []
    real = os.open

    def spy(path: str, flags: int) -> int:
        opened.append(os.fspath(path))
        return real(path, flags)

    monkeypatch.setattr(os, "open", spy)
    list_home(tmp_path)
    assert opened == [str(main)]


def test_listing_changes_nothing(tmp_path: Path) -> None:
    """Sizes, times and modes stay the same."""
    write(tmp_path, MAIN, {"cwd": "/a"})
    write(tmp_path, "history.jsonl", {"project": "/b"})
    (tmp_path / "projects/-b").mkdir()

    def state() -> Iterator[tuple[str, int, int, int, int]]:
        for path in sorted(tmp_path.rglob("*")):
            status = path.lstat()
            yield str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode

    before = list(state())
    list_home(tmp_path)
    assert list(state()) == before


def test_unreadable_directory_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other directories are still listed."""
    main = write(tmp_path, MAIN)
    closed = tmp_path / "projects" / "-closed"
    closed.mkdir()
    real = os.scandir

    def refuse(path: str) -> object:
        if path == str(closed):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)  # an administrator, as in many containers, may list anything
    assert transcripts(tmp_path) == [main]
    expected = "could not be accessed: Permission denied"
    assert problems(tmp_path) == [("projects/-closed", ProblemKind.UNREADABLE, expected)]
    assert [project.folder for project in list_home(tmp_path).projects] == ["-a", "-closed"]


def test_unreadable_transcript_is_listed_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next transcript provides the project's path."""
    write(tmp_path, MAIN, {"cwd": "/a"})
    write(tmp_path, f"projects/-a/{OTHER_SESSION}.jsonl", {"cwd": "/a"})
    real = os.open

    def refuse(path: str, flags: int) -> int:
        if os.fspath(path) == str(tmp_path / MAIN):
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    assert len(transcripts(tmp_path)) == 2
    expected = "could not be read to learn the project's path: Permission denied"
    assert problems(tmp_path) == [(MAIN, ProblemKind.UNREADABLE, expected)]
    assert [project.path for project in list_home(tmp_path).projects] == ["/a"]


def test_files_deleted_while_listing_are_not_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code deletes files while they are being listed."""
    first = write(tmp_path, MAIN, {"cwd": "/a"})
    second = write(tmp_path, f"projects/-b/{SESSION}.jsonl", {"cwd": "/b"})
    write(tmp_path, "projects/-c/memory/x.md")
    real = os.scandir

    def then_delete(path: str) -> object:
        entries = real(path)
        if path == str(tmp_path / "projects/-a"):
            first.unlink()
        if path == str(tmp_path / "projects/-c"):
            (tmp_path / "projects/-c/memory/x.md").unlink()
            (tmp_path / "projects/-c/memory").rmdir()
        return entries

    def delete_and_read(path: Path, limit: int) -> Iterator[bytes]:
        path.unlink()
        return home_files.read_lines(path, limit)

    monkeypatch.setattr(os, "scandir", then_delete)
    monkeypatch.setattr(project_paths, "read_lines", delete_and_read)
    result = list_home(tmp_path)
    assert [transcript.path for transcript in result.transcripts] == [second]
    assert [project.path for project in result.projects] == [None, None, None]
    assert result.problems == ()


def test_names_that_differ_in_case_or_accents_are_different_files(tmp_path: Path) -> None:
    """All of them are listed."""
    accents = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    names = {*accents, "a", "A", "ß", "ss"}
    for name in names:
        write(tmp_path, f"projects/{name}/{name}.jsonl")
    listed = {path.name for path in (tmp_path / "projects").iterdir()}  # some disks do not tell twins apart
    assert {project.folder for project in list_home(tmp_path).projects} == listed
    assert {path.stem for path in transcripts(tmp_path)} == listed


def test_longest_possible_name_is_listed(tmp_path: Path) -> None:
    """An agent's transcript with a name of 255 bytes cannot have a .meta.json. That is not an error."""
    name = f"agent-{'a' * (255 - len('agent-.jsonl'))}.jsonl"
    file = write(tmp_path, f"projects/-a/{name}", {"type": "user"})
    listing = TranscriptWalk(Home(tmp_path, "option"))
    ((path, status),) = listing.stats()
    assert listing.transcript(path, status) == list_home(tmp_path).transcripts[0]
    assert transcript_at(file).meta is None


def test_very_deep_directory_is_a_problem(tmp_path: Path) -> None:
    """A path longer than the operating system allows does not crash."""
    write(tmp_path, MAIN)
    descriptor = os.open(tmp_path / "projects/-a", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=descriptor)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = deeper
    os.close(descriptor)
    (problem,) = list_home(tmp_path).problems
    assert problem.kind is ProblemKind.UNREADABLE
    assert transcripts(tmp_path) == [tmp_path / MAIN]


NAMES = st.one_of(
    st.sampled_from(
        [
            b"new\nline",
            b"-rf",
            b"%00",
            b"..x",
            "\u202egnp.".encode(),
            b"x" * 249,
            b"\xff\xfe",
            b"CON",
            b"*",
            b" ",
        ]
    ),
    st.binary(min_size=1, max_size=200).filter(lambda name: b"/" not in name and b"\0" not in name),
).filter(lambda name: name not in {b".", b".."})


@given(NAMES)
def test_any_name_is_listed(tmp_path: Path, name: bytes) -> None:
    """Whatever bytes a name has, the project and the transcript are listed and can be opened."""
    home = Path(tempfile.mkdtemp(dir=tmp_path))
    folder = os.path.join(os.fsencode(home), b"projects", name)  # noqa: PTH118 - Path takes no bytes
    os.makedirs(folder)  # noqa: PTH103 - the same
    file = os.path.join(folder, name[:200] + b".jsonl")  # noqa: PTH118 - the same
    with open(file, "wb") as stream:  # noqa: PTH123 - the same
        stream.write(b'{"cwd":"/x"}\n')
    result = list_home(home)
    assert [os.fsencode(project.folder) for project in result.projects] in ([name], [])
    if name.lower().endswith(b".jsonl"):
        assert [problem.kind for problem in result.problems] == [ProblemKind.SKIPPED]
    else:
        assert [os.fsencode(transcript.path) for transcript in result.transcripts] == [file]
        assert result.transcripts[0].path.read_bytes() == b'{"cwd":"/x"}\n'


@pytest.mark.parametrize("seconds", [2**34 - 1, -(2**31)])
def test_times_that_sqlite_cannot_store(tmp_path: Path, seconds: int) -> None:
    """A session whose file was changed after the year 2262, or before 1970, is listed, and an append to it is read."""
    path = write(tmp_path / "home", MAIN)
    row = '{"type": "user", "uuid": "u", "sessionId": "%s", "message": {"role": "user", "content": "shelf"}}\n'
    for size in (1, 2):
        path.write_text(row % SESSION * size)
        try:
            os.utime(path, (seconds, seconds))
        except OSError:
            pytest.skip("the file system cannot store this time")
        with threadline.open(tmp_path / "home", index=tmp_path / "index.sqlite") as archive:
            archive.refresh()
            assert [session.id for session in archive.sessions()] == [SESSION]
