"""Homes in zip and tar archives: the same answers as unpacked ones, and nothing that an archive can do harm with."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard
from tests.interfaces.interfaces import ask_all
from tests.profiles import scale_examples
from tests.transcripts import prompt, reply, transcript, write

import threadline
from threadline.errors import Ambiguous, Error, Missing, NotFound, Unreadable
from threadline.find import homes, look, look_at_path, unpack
from threadline.model.homes import ARCHIVE_SOURCE

SESSION = "5e551011-0000-4000-8000-000000000001"
TRANSCRIPT = f"projects/-work-app/{SESSION}.jsonl"
MTIME = 1_770_000_000
_PERMISSIONS = 0o777


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session, a side file and credentials."""
    home = tmp_path / "home"
    write(home / TRANSCRIPT, *transcript(prompt("Sort the shelf"), reply("Sorted.", output=7)))
    (home / "todos").mkdir()
    (home / f"todos/{SESSION}-agent-{SESSION}.json").write_text('[{"content": "shelf", "status": "pending"}]')
    (home / ".credentials.json").write_text('{"token": "xyzzy"}')
    for path in home.rglob("*"):
        os.utime(path, (MTIME, MTIME))
    return home


def tar_bytes(home: Path, prefix: str = "") -> bytes:
    """A tar archive of a home."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(home, arcname=prefix or ".")
    return buffer.getvalue()


def pack(home: Path, target: Path, prefix: str = "") -> Path:
    """Write an archive of a home in the format that the name says."""
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(home.rglob("*")):
                archive.write(path, Path(prefix, path.relative_to(home)).as_posix())
        return target
    compress: dict[str, Callable[[bytes], bytes]] = {".tar": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
    target.write_bytes(compress[target.suffix](tar_bytes(home, prefix)))
    return target


def file_info(name: str, size: int = 0, **fields: object) -> tarfile.TarInfo:
    """The header of a file."""
    info = tarfile.TarInfo(name)
    info.size = size
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def add_to_tar(home: Path, target: Path, *infos: tarfile.TarInfo) -> Path:
    """Write a tar archive of a home, and then files with these headers."""
    with tarfile.open(target, "w") as archive:
        archive.add(home, arcname=".")
        for info in infos:
            archive.addfile(info, io.BytesIO(b"x" * info.size))
    return target


def skipped(archive: Path) -> dict[str, str]:
    """The problems of an archive's home, by path below the archive."""
    return {problem.place.transcript.removeprefix(f"{archive}/"): problem.message for problem in look(archive).problems}


def files_outside(tmp_path: Path) -> set[Path]:
    """Everything below the test's folder that is not in the cache."""
    return {path for path in tmp_path.rglob("*") if "cache" not in path.relative_to(tmp_path).parts}


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tar.zst", "b.zip"])
@pytest.mark.parametrize("prefix", ["", "home/you/.claude"])
def test_formats(home: Path, tmp_path: Path, name: str, prefix: str) -> None:
    """The home in an archive has the same files with the same times, except the content of secrets."""
    archive = pack(home, tmp_path / name, prefix)
    (found,) = homes(archive)
    assert found.source == ARCHIVE_SOURCE
    for path in filter(Path.is_file, home.rglob("*")):
        copy = found.path / path.relative_to(home)
        expected = b"" if path.name == ".credentials.json" else path.read_bytes()
        assert (copy.read_bytes(), int(copy.stat().st_mtime)) == (expected, MTIME), copy
    with threadline.open(archive) as opened:
        (session,) = opened.sessions()
        assert (session.id, session.title) == (SESSION, "Sort the shelf")
        assert threadline.ledger(archive).total == opened.ledger().total
    assert [transcript.session for transcript in look_at_path(archive).transcripts] == [SESSION]
    assert look(archive).problems == ()


@pytest.mark.slow
def test_answers_equal_those_of_the_unpacked_home(small_home: Path, tmp_path: Path) -> None:
    """Every interface answers every question about an archive as about the home that was packed."""
    archive = pack(small_home, tmp_path / "b.tar.zst")
    (found,) = homes(archive)
    expected = ask_all(small_home)
    for interface, answers in ask_all(archive).items():
        for question, answer in answers.items():
            text = repr(answer).replace(str(found.path), str(small_home)).replace("'archive'", "'option'")
            assert text == repr(expected[interface][question]), (interface, question)


def test_unpacked_once(home: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive that did not change is not read again, and its index is used. If it changed, both are updated."""
    archive = pack(home, tmp_path / "b.tar.zst")
    with threadline.open(archive) as opened:
        opened.refresh()
        index = opened.index
    with monkeypatch.context() as patch:
        patch.setattr("threadline.find.packed_homes.PackedArchive", None)
        with threadline.open(archive) as opened:
            assert (opened.index, opened.status().changed) == (index, 0)
    second = SESSION[:-1] + "2"
    write(home / f"projects/-work-app/{second}.jsonl", *transcript(prompt("Paint it"), reply("Done.")))
    pack(home, archive)
    with threadline.open(archive) as opened:
        assert opened.index == index
        assert opened.refresh().transcripts == 1  # the other one has the same bytes as before
        assert {session.id for session in opened.sessions()} == {SESSION, second}
    assert len(list((cache / "unpacked").iterdir())) == 1


def test_folders_of_other_archives_are_removed(home: Path, tmp_path: Path, cache: Path) -> None:
    """Those of archives that are gone, or were not read for a month, when another one is unpacked."""
    gone, old, used = (pack(home, tmp_path / name) for name in ("gone.zip", "old.zip", "used.zip"))
    for archive in (gone, old, used):
        homes(archive)
    gone.unlink()
    os.utime(next((cache / "unpacked").glob("old*/about.json")), (MTIME - 10**8, MTIME - 10**8))
    homes(pack(home, tmp_path / "new.zip"))
    assert sorted(path.name.partition(".zip")[0] for path in (cache / "unpacked").iterdir()) == ["new", "used"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_files_are_private(home: Path, tmp_path: Path, cache: Path) -> None:
    """Whatever the archive says, only the owner may read them, and nobody may run or change them."""
    archive = add_to_tar(home, tmp_path / "b.tar", file_info("projects/-work-app/run.sh", 3, mode=0o6777))
    homes(archive)
    for path in (cache / "unpacked").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        expected = 0o700 if path.is_dir() else 0o600 if path.name == "about.json" else 0o400
        assert mode & _PERMISSIONS == expected, path
        assert not mode & (stat.S_ISUID | stat.S_ISGID)


HOSTILE: dict[str, tuple[tarfile.TarInfo, str]] = {
    "parent": (file_info("projects/-work-app/../../../../evil.jsonl", 3), "leads out"),
    "top": (file_info("../evil.jsonl", 3), "leads out"),
    "backslash": (file_info("projects/-work-app/..\\..\\evil.jsonl", 3), "leads out"),
    "symlink": (
        file_info("projects/-work-app/link.jsonl", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        "a symlink",
    ),
    "symlink to a folder": (file_info("projects/-etc", type=tarfile.SYMTYPE, linkname="/etc"), "a symlink"),
    "hard link": (
        file_info("projects/-work-app/hard.jsonl", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        "not in the archive",
    ),
    "device": (file_info("projects/-work-app/null.jsonl", type=tarfile.CHRTYPE, devmajor=1, devminor=3), "special"),
    "pipe": (file_info("projects/-work-app/pipe.jsonl", type=tarfile.FIFOTYPE), "special"),
    "long name": (file_info(f"projects/-work-app/{'x' * 300}.jsonl", 3), "not valid"),
    "file and folder": (file_info(f"{TRANSCRIPT[:-6]}/x.jsonl", 3), ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tar(home: Path, tmp_path: Path, name: str) -> None:
    """What is not a file below the archive is skipped and reported. The rest is read, and nothing else is written."""
    info, reason = HOSTILE[name]
    archive = add_to_tar(home, tmp_path / "b.tar", info)
    before = files_outside(tmp_path)
    problems = skipped(archive)
    assert files_outside(tmp_path) == before
    assert [message for message in problems.values() if reason in message] or not reason
    assert not any(path.is_symlink() or path.name.startswith("evil") for path in (tmp_path / "cache").rglob("*"))
    with threadline.open(archive) as opened:
        assert SESSION in {session.id for session in opened.sessions()}


def test_symlinks_are_never_written_through(home: Path, tmp_path: Path) -> None:
    """A link to a folder, and then a file in that folder: the file is written into a real folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    link = file_info("projects/-out", type=tarfile.SYMTYPE, linkname=str(outside))
    archive = add_to_tar(home, tmp_path / "b.tar", link, file_info("projects/-out/x.jsonl", 3))
    (found,) = homes(archive)
    assert list(outside.iterdir()) == []
    assert (found.path / "projects/-out/x.jsonl").read_text() == "xxx"


def test_absolute_paths_and_hard_links(home: Path, tmp_path: Path) -> None:
    """A leading slash is dropped, as `tar` does. A hard link to a file of the archive is one to the unpacked file."""
    archive = tmp_path / "b.tar"
    copy = f"projects/-work-app/{SESSION[:-1]}2.jsonl"
    with tarfile.open(archive, "w") as tar:
        for name in (TRANSCRIPT, f"/home/me/.claude/{TRANSCRIPT}"):
            data = (home / TRANSCRIPT).read_bytes()
            tar.addfile(file_info(name, len(data)), io.BytesIO(data))
        tar.addfile(file_info(copy, type=tarfile.LNKTYPE, linkname=TRANSCRIPT))
    (found,) = homes(archive)  # the other one is inside the first
    assert (found.path / copy).read_bytes() == (home / TRANSCRIPT).read_bytes()
    assert not list(Path("/home").glob("me/.claude/projects/-work-app"))


def test_last_file_of_a_name_counts(home: Path, tmp_path: Path) -> None:
    """As with `tar`, in both formats. A file whose path is also a folder's is skipped."""
    archive = add_to_tar(home, tmp_path / "b.tar", file_info(TRANSCRIPT, 5))
    assert (homes(archive)[0].path / TRANSCRIPT).read_text() == "xxxxx"
    zipped = pack(home, tmp_path / "b.zip")
    with zipfile.ZipFile(zipped, "a") as opened, pytest.warns(UserWarning, match="Duplicate"):
        opened.writestr(TRANSCRIPT, "other")
    assert (homes(zipped)[0].path / TRANSCRIPT).read_text() == "other"
    both = add_to_tar(home, tmp_path / "both.tar", file_info(f"{TRANSCRIPT}/x.jsonl", 3))
    assert skipped(both)[TRANSCRIPT] == "there is a folder with the same path"


def test_hostile_zip(home: Path, tmp_path: Path) -> None:
    """Paths that lead out of it, links and devices are skipped."""
    archive = pack(home, tmp_path / "b.zip")
    with zipfile.ZipFile(archive, "a") as opened:
        for name, mode in (("link", stat.S_IFLNK), ("device", stat.S_IFCHR), ("../../evil", stat.S_IFREG)):
            info = zipfile.ZipInfo(f"projects/-work-app/{name}.jsonl")
            info.external_attr = (mode | 0o777) << 16
            opened.writestr(info, "/etc/passwd")
    before = files_outside(tmp_path)
    assert len(skipped(archive)) == 3
    assert files_outside(tmp_path) == before
    assert len(list((tmp_path / "cache").rglob("*.jsonl"))) == 1


def test_bombs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content that is far larger than the archive is not unpacked, in no format, and the message says what to do."""
    monkeypatch.setattr(unpack, "ALWAYS_ALLOWED_BYTES", 1 << 20)
    (home / "projects/-work-app/zeros.jsonl").write_bytes(bytes(20 << 20))
    for name in ("b.tar.zst", "b.tar.gz", "b.zip"):
        with pytest.raises(Unreadable, match=r"unpacks to more than .* unpack it yourself, and name the folder"):
            homes(pack(home, tmp_path / name))
    assert not list((tmp_path / "cache").rglob("*.jsonl"))
    assert homes(pack(home, tmp_path / "b.tar"))  # its size is that of its content


def test_numbers_are_limited(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files, of bytes that describe a file, and of free bytes on the disk."""
    archive = pack(home, tmp_path / "b.tar")
    with monkeypatch.context() as patch:
        patch.setattr(unpack, "MAX_FILES", 3)
        with pytest.raises(Unreadable, match="more than 3 files"):
            homes(archive)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=10))
        with pytest.raises(Unreadable, match="set THREADLINE_CACHE"):
            homes(archive)
    long = tmp_path / "long.tar"
    with tarfile.open(long, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(file_info(TRANSCRIPT, pax_headers={"comment": "x" * (9 << 20)}))
    with pytest.raises(Unreadable, match="the description of a file is too long"):
        homes(long)
    shared = {f"key{number}": "x" for number in range(200)}
    with tarfile.open(long, "w", format=tarfile.PAX_FORMAT, pax_headers=shared) as tar:
        tar.addfile(file_info(TRANSCRIPT))
    with pytest.raises(Unreadable, match="too many values"):
        homes(long)


def test_headers_that_refer_to_each_other(tmp_path: Path) -> None:
    """Ten thousand headers in front of one file are an error, not a crash."""
    header = file_info("x", 0, type=tarfile.XHDTYPE).tobuf()
    archive = tmp_path / "b.tar"
    archive.write_bytes(header * 10_000 + bytes(1024))
    with pytest.raises(Error):
        homes(archive)


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tar.zst", "b.zip"])
def test_incomplete_archives(home: Path, tmp_path: Path, name: str) -> None:
    """An archive that was cut anywhere is an error that says so, and nothing is left of it."""
    archive = pack(home, tmp_path / name)
    whole = archive.read_bytes()
    ends = (len(whole) // 4, len(whole) // 2, len(whole) - 40) if name != "b.tar" else (512, 1024, 2560, 3000)
    for end in ends:
        archive.write_bytes(whole[:end])
        with pytest.raises(Unreadable, match=r"damaged or incomplete .* make it again"):
            homes(archive)
    assert not list((tmp_path / "cache").rglob("*.jsonl"))


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tar.zst", "b.zip"])
def test_damaged_archives(home: Path, tmp_path: Path, name: str) -> None:
    """Whatever bytes are changed, the archive is read or there is an error of ours. Nothing is written outside."""
    archive = pack(home, tmp_path / name)
    whole, chance = archive.read_bytes(), random.Random(19)  # noqa: S311 - not a secret
    before = files_outside(tmp_path)
    for _ in range(scale_examples(60)):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.choice((0, 0xFF, chance.randrange(256)))
        archive.write_bytes(data)
        try:
            homes(archive)
        except Error as error:
            assert str(error).endswith(".")  # noqa: PT017 - not every damage is an error
    assert files_outside(tmp_path) == before


def test_other_files(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives without a home, in other formats, or that need a package are errors that say what to do."""
    archive = tmp_path / "b.tar"
    with tarfile.open(archive, "w") as tar:
        tar.addfile(file_info("readme.txt", 3), io.BytesIO(b"abc"))
    with pytest.raises(NotFound, match="Pack a whole home"):
        homes(archive)
    for data in (b"\xfd7zXZ\x00", b"BZh9", b"Rar!\x1a\x07\x01"):
        archive.write_bytes(data)
        with pytest.raises(Unreadable, match=r"Use \.zip, \.tar, \.tar\.gz or \.tar\.zst"):
            homes(archive)
    archive.write_bytes(b"{}\n")
    with pytest.raises(Unreadable, match="damaged"):
        homes(archive)
    packed = pack(home, tmp_path / "b.tar.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(Missing, match=r"pip install .*\[keep\]'"):
        homes(packed)
    encrypted = pack(home, tmp_path / "b.zip")
    data = encrypted.read_bytes()
    encrypted.write_bytes(data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"))
    with pytest.raises(Unreadable, match="is encrypted"):
        homes(encrypted)


def test_archives_of_macos(home: Path, tmp_path: Path) -> None:
    """The attributes of files, which its archives contain, are neither transcripts nor another home."""
    archive = pack(home, tmp_path / "b.zip", ".claude")
    with zipfile.ZipFile(archive, "a") as opened:
        for folder in ("__MACOSX/.claude", ".claude"):
            opened.writestr(f"{folder}/projects/-work-app/._{SESSION}.jsonl", b"\x00\x05\x16\x07")
    (found,) = homes(archive)
    assert [transcript.session for transcript in look(found).transcripts] == [SESSION]


def test_processes_at_the_same_time(home: Path, tmp_path: Path, cache: Path) -> None:
    """Several may unpack the same archive: each gets a complete home, and one is left."""
    archive = pack(home, tmp_path / "b.tar")
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _number: homes(archive)[0].path, range(12)))
    assert len(set(results)) == 1
    assert (results[0] / TRANSCRIPT).read_bytes() == (home / TRANSCRIPT).read_bytes()
    assert len(list((cache / "unpacked").iterdir())) == 1


def several_homes(home: Path, tmp_path: Path) -> Iterator[Path]:
    """Archives of several homes: of two users, and of a home with a backup inside."""
    two = tmp_path / "two"
    for user in ("a", "b"):
        write(two / user / ".claude" / TRANSCRIPT.replace("0001", f"000{user}"), *transcript(prompt(user)))
    yield pack(two, tmp_path / "two.zip")
    write(home / "backups/old" / TRANSCRIPT, *transcript(prompt("old")))
    yield pack(home, tmp_path / "one.zip", "me/.claude")


def test_homes_of_an_archive(home: Path, tmp_path: Path) -> None:
    """An archive may contain several homes. A backup inside a home is not one."""
    two, one = several_homes(home, tmp_path)
    assert [found.path.parent.name for found in homes(two)] == ["a", "b"]
    with threadline.open(two) as opened:
        assert len(opened.sessions()) == 2
    with pytest.raises(Ambiguous, match="2 homes"):
        look(two)
    assert [found.path.parts[-2:] for found in homes(one)] == [("me", ".claude")]


def test_huge_sizes_in_headers_are_refused_at_once(tmp_path: Path) -> None:
    """A file that claims to be larger than any archive may be is not skipped byte by byte."""
    path = tmp_path / "b.tar"
    path.write_bytes(file_info(TRANSCRIPT, 1 << 62).tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(Unreadable, match="unpacks to more than"):
        look(path)
