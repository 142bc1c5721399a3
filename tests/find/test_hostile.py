"""Homes that were not made by Claude Code alone."""

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
from tests.find.a_home import ANOTHER, SESSION, found, write

from threadline import files
from threadline.find import project_paths, transcript_at
from threadline.find.listing import TranscriptWalk
from threadline.model.homes import Home, SideFileKind
from threadline.model.places import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has neither these files nor these names")

MAIN = f"projects/-a/{SESSION}.jsonl"


def problems(home: Path) -> list[tuple[str, ProblemKind, str]]:
    """Give what could not be looked at: path below the home, kind and message."""
    return [
        (os.path.relpath(problem.place.transcript, home), problem.kind, problem.message)
        for problem in found(home).problems
    ]


def transcripts(home: Path) -> list[Path]:
    """Give the paths of the transcripts."""
    return [transcript.path for transcript in found(home).transcripts]


def test_a_pipe_is_skipped_and_does_not_block(tmp_path: Path) -> None:
    """A named pipe in a transcript's or the history's place is told, and not waited for."""
    write(tmp_path, MAIN)
    os.mkfifo(tmp_path / "projects/-a" / f"{ANOTHER}.jsonl")
    os.mkfifo(tmp_path / "history.jsonl")
    assert problems(tmp_path) == [
        ("history.jsonl", ProblemKind.SKIPPED, "a named pipe"),
        (f"projects/-a/{ANOTHER}.jsonl", ProblemKind.SKIPPED, "a named pipe"),
    ]


def test_a_file_that_becomes_a_pipe_does_not_block(tmp_path: Path) -> None:
    """Even if a file is swapped for a pipe after it was listed, reading it gives up at once."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        list(files.read_lines(tmp_path / "pipe", 100))
    with pytest.raises(OSError, match="not a regular file"):
        files.read_file(tmp_path, follow_symlinks=True)


def test_a_socket_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket is told and not opened."""
    write(tmp_path, MAIN)
    monkeypatch.chdir(tmp_path / "projects/-a")  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind("s.jsonl")
        assert problems(tmp_path) == [("projects/-a/s.jsonl", ProblemKind.SKIPPED, "a socket")]


def test_a_device_is_skipped(tmp_path: Path) -> None:
    """A device is told and not opened, directly or through a link."""
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


def test_a_directory_with_a_transcripts_name_is_skipped(tmp_path: Path) -> None:
    """A directory called `x.jsonl` is told and not entered."""
    write(tmp_path, f"{MAIN}/{ANOTHER}.jsonl")
    assert transcripts(tmp_path) == []
    expected = "a directory with the name of a transcript"
    assert problems(tmp_path) == [(MAIN, ProblemKind.SKIPPED, expected)]


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    """Neither a loop nor a way out of the home is walked."""
    home = tmp_path / "home"
    main = write(home, MAIN)
    write(tmp_path, f"outside/{ANOTHER}.jsonl")
    (home / "projects/-a/loop").symlink_to(home / "projects")
    (home / "projects/-b").symlink_to(tmp_path / "outside")
    (home / "todos").symlink_to("/")
    (home / "projects/-c").symlink_to(home / "projects/-c")
    assert transcripts(home) == [main]
    followed = "a link to a directory; directories are not followed"
    assert problems(home) == [
        ("projects/-a/loop", ProblemKind.SKIPPED, followed),
        ("projects/-b", ProblemKind.SKIPPED, followed),
        ("projects/-c", ProblemKind.SKIPPED, "a link that leads in a circle"),
        ("todos", ProblemKind.SKIPPED, followed),
    ]


def test_projects_itself_may_be_a_link(tmp_path: Path) -> None:
    """People move `projects` to another disk: it is followed, and paths are real ones."""
    home = tmp_path / "home"
    home.mkdir()
    main = write(tmp_path, f"disk/stored/-a/{SESSION}.jsonl", {"cwd": "/a"})
    (tmp_path / "disk/stored/-a/copy.jsonl").symlink_to(main)
    (home / "projects").symlink_to(tmp_path / "disk/stored")
    assert [(transcript.path, transcript.folder) for transcript in found(home).transcripts] == [(main, "-a")]
    assert [project.path for project in found(home).projects] == ["/a"]
    assert problems(home) == []


@pytest.mark.parametrize("target", ["home", ".", "/", "home/projects", "nowhere"])
def test_projects_may_not_be_a_link_to_all_of_a_disk(tmp_path: Path, target: str) -> None:
    """A link to what holds the home, to itself or to nowhere is told."""
    home = tmp_path / "home"
    home.mkdir()
    write(tmp_path, "secret/x.jsonl")
    (home / "projects").symlink_to(tmp_path / target)
    assert transcripts(home) == []
    assert [problem[:2] for problem in problems(home)] == [("projects", ProblemKind.SKIPPED)]


def test_a_file_is_listed_once_however_many_links_lead_to_it(tmp_path: Path) -> None:
    """Links within the home add nothing to a file that is listed, and list once one that is not."""
    main = write(tmp_path, MAIN)
    (tmp_path / "projects/-a" / f"{ANOTHER}.jsonl").symlink_to(main)
    kept = write(tmp_path, "unknown/kept.jsonl")
    for name in ("one", "two"):
        (tmp_path / "projects/-a" / f"{name}.jsonl").symlink_to(kept)
    assert transcripts(tmp_path) == [main, kept]
    assert problems(tmp_path) == []


def test_a_link_out_of_the_home_or_to_nowhere_is_skipped(tmp_path: Path) -> None:
    """A file elsewhere is not this home's, and one that is not there is none."""
    home = tmp_path / "home"
    write(home, MAIN)
    outside = write(tmp_path, "outside.jsonl")
    (home / "projects/-a/a.jsonl").symlink_to(outside)
    (home / "projects/-a/b.jsonl").symlink_to("gone")
    assert problems(home) == [
        ("projects/-a/a.jsonl", ProblemKind.SKIPPED, "a link to a file outside the home"),
        ("projects/-a/b.jsonl", ProblemKind.SKIPPED, "a link to something that is not there"),
    ]


def test_secrets_are_not_opened_through_links_either(tmp_path: Path) -> None:
    """A transcript that is a link to a secret is skipped; a secret that is a link is not followed."""
    write(tmp_path, ".credentials.json", "secret")
    write(tmp_path, "projects/-a/x.md")
    (tmp_path / MAIN).symlink_to(tmp_path / ".credentials.json")
    (tmp_path / ".env").symlink_to("/dev/zero")
    assert transcripts(tmp_path) == []
    assert problems(tmp_path) == [(MAIN, ProblemKind.SKIPPED, "a link to a secret")]
    secrets = [file for file in found(tmp_path).side_files if file.kind is SideFileKind.SECRET]
    assert [(secret.path.name, secret.size) for secret in secrets] == [(".credentials.json", 0), (".env", 0)]


def test_nothing_but_heads_and_hints_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One transcript per project is opened; secrets, settings and other side files never are."""
    main = write(tmp_path, MAIN, {"cwd": "/a"})
    for path in (
        f"projects/-a/{ANOTHER}.jsonl",
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
    found(tmp_path)
    assert opened == [str(main)]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    """Size, times of change and modes are what they were."""
    write(tmp_path, MAIN, {"cwd": "/a"})
    write(tmp_path, "history.jsonl", {"project": "/b"})
    (tmp_path / "projects/-b").mkdir()

    def state() -> Iterator[tuple[str, int, int, int, int]]:
        for path in sorted(tmp_path.rglob("*")):
            status = path.lstat()
            yield str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode

    before = list(state())
    found(tmp_path)
    assert list(state()) == before


def test_an_unreadable_directory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One directory that may not be listed does not keep the others from being listed."""
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
    expected = "could not be looked at: Permission denied"
    assert problems(tmp_path) == [("projects/-closed", ProblemKind.UNREADABLE, expected)]
    assert [project.folder for project in found(tmp_path).projects] == ["-a", "-closed"]


def test_an_unreadable_transcript_is_listed_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transcript that may not be opened is listed, and the next one names the project."""
    write(tmp_path, MAIN, {"cwd": "/a"})
    write(tmp_path, f"projects/-a/{ANOTHER}.jsonl", {"cwd": "/a"})
    real = os.open

    def refuse(path: str, flags: int) -> int:
        if os.fspath(path) == str(tmp_path / MAIN):
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    assert len(transcripts(tmp_path)) == 2
    expected = "could not be read to learn the project's path: Permission denied"
    assert problems(tmp_path) == [(MAIN, ProblemKind.UNREADABLE, expected)]
    assert [project.path for project in found(tmp_path).projects] == ["/a"]


def test_what_vanishes_meanwhile_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code deletes files while they are being listed: nothing to tell."""
    first = write(tmp_path, MAIN, {"cwd": "/a"})
    second = write(tmp_path, f"projects/-b/{SESSION}.jsonl", {"cwd": "/b"})
    write(tmp_path, "projects/-c/memory/x.md")
    real = os.scandir

    def then_delete(path: str) -> object:
        listed = real(path)
        if path == str(tmp_path / "projects/-a"):
            first.unlink()
        if path == str(tmp_path / "projects/-c"):
            (tmp_path / "projects/-c/memory/x.md").unlink()
            (tmp_path / "projects/-c/memory").rmdir()
        return listed

    def gone(path: Path, limit: int) -> Iterator[bytes]:
        path.unlink()
        return files.read_lines(path, limit)

    monkeypatch.setattr(os, "scandir", then_delete)
    monkeypatch.setattr(project_paths, "read_lines", gone)
    result = found(tmp_path)
    assert [transcript.path for transcript in result.transcripts] == [second]
    assert [project.path for project in result.projects] == [None, None, None]
    assert result.problems == ()


def test_twins_are_all_listed(tmp_path: Path) -> None:
    """Names that differ only in case or in how an accent is written are different files."""
    accents = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    names = {*accents, "a", "A", "ß", "ss"}
    for name in names:
        write(tmp_path, f"projects/{name}/{name}.jsonl")
    listed = {path.name for path in (tmp_path / "projects").iterdir()}  # some disks do not tell twins apart
    assert {project.folder for project in found(tmp_path).projects} == listed
    assert {path.stem for path in transcripts(tmp_path)} == listed


def test_a_name_as_long_as_names_may_be_is_listed(tmp_path: Path) -> None:
    """Of an agent whose transcript's name has 255 bytes, no .meta.json can lie beside it; that is no failure."""
    named = f"agent-{'a' * (255 - len('agent-.jsonl'))}.jsonl"
    file = write(tmp_path, f"projects/-a/{named}", {"type": "user"})
    listing = TranscriptWalk(Home(tmp_path, "option"))
    ((path, status),) = listing.stats()
    assert listing.transcript(path, status) == found(tmp_path).transcripts[0]
    assert transcript_at(file).meta is None


def test_very_deep_directories_end(tmp_path: Path) -> None:
    """A path longer than the machine allows is a problem, not a crash."""
    write(tmp_path, MAIN)
    descriptor = os.open(tmp_path / "projects/-a", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=descriptor)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = deeper
    os.close(descriptor)
    (problem,) = found(tmp_path).problems
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
    """Whatever bytes a name is made of, the project and the transcript are found and can be opened again."""
    home = Path(tempfile.mkdtemp(dir=tmp_path))
    folder = os.path.join(os.fsencode(home), b"projects", name)  # noqa: PTH118 - Path takes no bytes
    os.makedirs(folder)  # noqa: PTH103 - the same
    file = os.path.join(folder, name[:200] + b".jsonl")  # noqa: PTH118 - the same
    with open(file, "wb") as written:  # noqa: PTH123 - the same
        written.write(b'{"cwd":"/x"}\n')
    result = found(home)
    assert [os.fsencode(project.folder) for project in result.projects] in ([name], [])
    if name.lower().endswith(b".jsonl"):
        assert [problem.kind for problem in result.problems] == [ProblemKind.SKIPPED]
    else:
        assert [os.fsencode(transcript.path) for transcript in result.transcripts] == [file]
        assert result.transcripts[0].path.read_bytes() == b'{"cwd":"/x"}\n'
