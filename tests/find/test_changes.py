"""Tests of change detection: every way in which a transcript changes or stays the same."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from tests.find.home_files import OTHER_SESSION, SESSION, write
from tests.find.line_store import SECOND, LineStore, whole_lines

from threadline.find import changes as changes_module
from threadline.find import detect_changes, fingerprint, look, make_fingerprint, stat_transcripts
from threadline.find.fingerprint import END, hash_ends
from threadline.find.listing import TranscriptWalk
from threadline.model.homes import ChangeKind, Home, TranscriptFingerprint, TranscriptStat
from threadline.model.places import ProblemKind

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has neither inodes in directories nor these files")

THEN = 1_700_000_000 * SECOND
LATER = THEN + 3600 * SECOND
MAIN = f"projects/-a/{SESSION}.jsonl"
OTHER = f"projects/-a/{OTHER_SESSION}.jsonl"
LINES = b"".join(b'{"n":%d,"text":"%s"}\n' % (number, b"x" * 90) for number in range(200))


def put(home: Path, path: str, data: bytes, *, at: int = THEN) -> Path:
    """Write a file with an old mtime."""
    file = write(home, path, data)
    os.utime(file, ns=(at, at))
    return file


def append(file: Path, data: bytes, *, at: int = THEN + 60 * SECOND) -> None:
    """Append to a file, a minute later."""
    with file.open("ab") as stream:
        stream.write(data)
    os.utime(file, ns=(at, at))


def overwrite(file: Path, data: bytes, *, at: int = THEN + 60 * SECOND) -> None:
    """Write other bytes into the same file, a minute later."""
    with file.open("r+b") as stream:
        stream.write(data)
        stream.truncate()
    os.utime(file, ns=(at, at))


def read_home(home: Path) -> LineStore:
    """Read all lines of the home, an hour later."""
    store = LineStore(home)
    store.refresh(LATER)
    return store


def is_up_to_date(store: LineStore) -> bool:
    """Whether the store has exactly the lines of the files."""
    expected = {
        path: whole_lines(Path(path).read_bytes()) for home in store.homes for path, _ in stat_transcripts(home)
    }
    return store.lines == expected


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are opened."""
    paths: list[str] = []
    real = os.open

    def spy(path: str, flags: int) -> int:
        paths.append(os.fspath(path))
        return real(path, flags)

    monkeypatch.setattr(os, "open", spy)
    return paths


@pytest.fixture
def sizes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of bytes of each read."""
    sizes: list[int] = []
    real = os.read

    def counted(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    return sizes


def test_new_transcript_is_read_from_its_start(tmp_path: Path) -> None:
    """Without any fingerprint, every transcript is new and equal to what `look` lists."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, f"projects/-a/{SESSION}/subagents/agent-1.jsonl", LINES)
    put(tmp_path, f"projects/-a/{SESSION}/subagents/agent-1.meta.json", b"{}")
    changes = detect_changes([], [Home(tmp_path, "option")])
    assert {(change.kind, change.read_from) for change in changes.changed} == {(ChangeKind.NEW, 0)}
    assert tuple(change.transcript for change in changes.changed) == look(Home(tmp_path, "option")).transcripts


def test_unchanged_files_are_not_opened(tmp_path: Path, opened: list[str]) -> None:
    """A file with the same device, inode, size and mtime is skipped by its status."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, OTHER, LINES)
    store = read_home(tmp_path)
    opened.clear()
    changes = store.refresh(LATER)
    assert (changes.changed, changes.touched, changes.unchanged, opened) == ((), (), 2, [])


def test_only_the_appended_line_is_read(tmp_path: Path, sizes_read: list[int]) -> None:
    """Besides the new line, only the ends of the file are read."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    sizes_read.clear()
    append(file, b'{"new":1}\n')
    store.bytes_read = 0
    assert store.kinds(LATER) == ["grown"]
    assert store.bytes_read == 10
    # Both ends to compare, both ends to know, the old end to know that it was still there, and the line to sum up.
    assert sum(sizes_read) == 5 * END + 10
    assert is_up_to_date(store)


def test_torn_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    """A line without a newline is not read until it ends. Then it is read from its start."""
    file = put(tmp_path, MAIN, LINES + b'{"torn":')
    store = read_home(tmp_path)
    assert store.fingerprints[str(file)].read_to == len(LINES)
    assert store.kinds(LATER) == []
    append(file, b'"more')
    assert store.kinds(LATER) == ["grown"]
    append(file, b'"}\n', at=THEN + 90 * SECOND)
    assert store.kinds(LATER) == ["grown"]
    assert store.lines[str(file)][-1] == b'{"torn":"more"}\n'
    assert is_up_to_date(store)


def test_truncating_a_torn_line_changes_no_line(tmp_path: Path) -> None:
    """A file that shrinks to the end of its complete lines has the same lines."""
    file = put(tmp_path, MAIN, LINES + b'{"torn":')
    store = read_home(tmp_path)
    overwrite(file, LINES)
    changes = store.refresh(LATER)
    assert (changes.changed, len(changes.touched)) == ((), 1)
    assert is_up_to_date(store)


def test_empty_file_is_new_once_and_then_grows(tmp_path: Path) -> None:
    """So is a file that contains only a torn line."""
    file = put(tmp_path, MAIN, b"")
    store = read_home(tmp_path)
    assert store.lines == {str(file): []}
    assert store.kinds(LATER) == []
    append(file, b'{"torn":1')
    assert store.kinds(LATER) == ["grown"]
    append(file, b"}\n", at=THEN + 90 * SECOND)
    assert store.kinds(LATER) == ["grown"]
    assert is_up_to_date(store)


def test_touched_file_is_compared_and_not_read_again(tmp_path: Path) -> None:
    """A new mtime changes no line. It is stored, and next time nothing is opened."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    os.utime(file, ns=(THEN + SECOND, THEN + SECOND))
    changes = store.refresh(LATER)
    assert (changes.changed, [fingerprint.mtime_ns for fingerprint in changes.touched]) == ((), [THEN + SECOND])
    assert store.refresh(LATER).unchanged == 1


@pytest.mark.parametrize("at", [0, END // 2, len(LINES) // 2, len(LINES) - 10])
def test_rewrite_of_the_same_size_is_detected_anywhere(tmp_path: Path, at: int) -> None:
    """One changed byte is detected at the ends and in the middle, although size and inode are the same."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    overwrite(file, LINES[:at] + b"#" + LINES[at + 1 :])
    assert store.kinds(LATER) == ["rewritten"]
    assert is_up_to_date(store)


def test_longer_rewrite_is_not_an_append(tmp_path: Path) -> None:
    """If the bytes before the old end differ, the file is read from its start."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    overwrite(file, b'{"first":1}\n' + LINES)
    assert store.kinds(LATER) == ["rewritten"]
    assert is_up_to_date(store)


def test_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    """A failed stream may remove its last line."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    overwrite(file, b"".join(whole_lines(LINES)[:-1]))
    assert store.kinds(LATER) == ["truncated"]
    assert is_up_to_date(store)


def test_replaced_last_line_is_detected(tmp_path: Path) -> None:
    """The file was truncated and grew again between two refreshes, so its end differs."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    overwrite(file, b"".join(whole_lines(LINES)[:-1]) + b'{"another":"%s"}\n' % (b"y" * 500))
    assert store.kinds(LATER) == ["rewritten"]
    assert is_up_to_date(store)


def test_copytruncate_is_a_new_file_and_a_truncated_one(tmp_path: Path) -> None:
    """As when a log is rotated: the copy is new, the original starts over."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    shutil.copy2(file, tmp_path / OTHER)
    overwrite(file, b"")
    assert store.kinds(LATER) == ["truncated", "new"]
    append(file, b'{"over":1}\n', at=THEN + 90 * SECOND)
    assert store.kinds(LATER) == ["grown"]
    assert is_up_to_date(store)


def test_renamed_file_keeps_its_lines(tmp_path: Path) -> None:
    """The path changes, and nothing is read again."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    file.rename(tmp_path / OTHER)
    store.bytes_read = 0
    changes = store.refresh(LATER)
    assert [(change.kind, change.read_from) for change in changes.changed] == [(ChangeKind.MOVED, len(LINES))]
    assert store.bytes_read == 0
    assert store.refresh(LATER).unchanged == 1
    assert is_up_to_date(store)


def test_renamed_project_keeps_the_lines_of_all_its_files(tmp_path: Path) -> None:
    """All transcripts move, even identical ones. A moved transcript may have grown."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, OTHER, LINES)
    put(tmp_path, f"projects/-a/{SESSION}/subagents/agent-1.jsonl", LINES)
    store = read_home(tmp_path)
    (tmp_path / "projects/-a").rename(tmp_path / "projects/-b")
    append(tmp_path / f"projects/-b/{SESSION}.jsonl", b'{"more":1}\n')
    store.bytes_read = 0
    assert store.kinds(LATER) == ["moved"] * 3
    assert store.bytes_read == 11
    assert is_up_to_date(store)


def test_file_moved_across_disks_is_recognised_by_content(tmp_path: Path) -> None:
    """A copy whose original is gone is the same transcript, with the same mtime or not."""
    for copy in (shutil.copy2, shutil.copyfile):
        home = tmp_path / copy.__name__
        file = put(home, MAIN, LINES)
        store = read_home(home)
        copy(file, home / OTHER)
        file.unlink()
        assert store.kinds(LATER) == ["moved"]
        assert is_up_to_date(store)


@pytest.mark.slow
def test_thousand_identical_files_all_move(tmp_path: Path) -> None:
    """If they are copied and the originals deleted, each copy takes the lines of one original."""
    for number in range(1000):
        put(tmp_path, f"projects/-a/{number}.jsonl", b'{"same":1}\n')
    store = read_home(tmp_path)
    shutil.copytree(tmp_path / "projects/-a", tmp_path / "projects/-b")
    shutil.rmtree(tmp_path / "projects/-a")
    assert store.kinds(LATER) == ["moved"] * 1000
    assert is_up_to_date(store)


def test_file_moves_only_once(tmp_path: Path) -> None:
    """If a file was renamed and copied, one file has moved and the others are new."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    file.rename(tmp_path / OTHER)
    for name in ("0", "zz"):
        shutil.copy2(tmp_path / OTHER, tmp_path / f"projects/-a/{name}.jsonl")
    assert store.kinds(LATER) == ["moved", "new", "new"]
    assert is_up_to_date(store)


def test_renamed_empty_file_is_not_recognised(tmp_path: Path) -> None:
    """Without lines there is nothing to compare."""
    file = put(tmp_path, MAIN, b"")
    store = read_home(tmp_path)
    file.rename(tmp_path / OTHER)
    assert store.kinds(LATER) == ["vanished", "new"]
    assert is_up_to_date(store)


def test_reused_inode_is_a_new_file(tmp_path: Path) -> None:
    """A file system may reuse the inode of a deleted file. The bytes differ."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    file.rename(tmp_path / OTHER)
    overwrite(tmp_path / OTHER, LINES.replace(b"x", b"y"))
    assert store.kinds(LATER) == ["vanished", "new"]
    assert is_up_to_date(store)


def test_file_renamed_over_another_replaces_it(tmp_path: Path) -> None:
    """The replaced file vanishes. The renamed one keeps its lines under the new name."""
    put(tmp_path, MAIN, LINES)
    file = put(tmp_path, OTHER, LINES.replace(b"x", b"y"))
    store = read_home(tmp_path)
    file.rename(tmp_path / MAIN)
    assert store.kinds(LATER) == ["vanished", "moved"]
    assert is_up_to_date(store)


def test_two_files_that_swap_names_are_read_again(tmp_path: Path) -> None:
    """Neither is gone, so neither has moved."""
    first = put(tmp_path, MAIN, LINES)
    second = put(tmp_path, OTHER, LINES.replace(b"x", b"y"))
    store = read_home(tmp_path)
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    assert store.kinds(LATER) == ["replaced", "replaced"]
    assert is_up_to_date(store)


def test_replaced_file_is_compared_by_content(tmp_path: Path) -> None:
    """Equal content is no change, more content is growth, and other content is a replacement."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    middle = len(LINES) // 2
    for data, expected in (
        (LINES, []),
        (LINES + b'{"more":1}\n', ["grown"]),
        (LINES[:middle] + b"#" + LINES[middle + 1 :] + b'{"more":1}\n', ["replaced"]),
        (b"", ["replaced"]),
    ):
        put(tmp_path, "saved", data, at=THEN + 60 * SECOND).rename(file)
        assert store.kinds(LATER) == expected
        assert is_up_to_date(store)


def test_restored_file_is_unchanged(tmp_path: Path) -> None:
    """A new inode alone changes no line."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    shutil.copy2(file, tmp_path / "restored")
    (tmp_path / "restored").rename(file)
    changes = store.refresh(LATER)
    assert (changes.changed, len(changes.touched)) == ((), 1)
    assert store.refresh(LATER).unchanged == 1


def test_hard_links_are_separate_transcripts(tmp_path: Path) -> None:
    """If one is deleted, the other is unchanged."""
    file = put(tmp_path, MAIN, LINES)
    os.link(file, tmp_path / OTHER)
    store = read_home(tmp_path)
    append(file, b'{"more":1}\n')
    assert store.kinds(LATER) == ["grown", "grown"]
    file.unlink()
    assert store.kinds(LATER) == ["vanished"]
    assert is_up_to_date(store)


def test_symlinks_are_not_transcripts(tmp_path: Path) -> None:
    """A symlink to a listed transcript adds nothing.

    A transcript that is replaced by a symlink to elsewhere vanishes.
    """
    file = put(tmp_path, MAIN, LINES)
    (tmp_path / OTHER).symlink_to(file)
    store = read_home(tmp_path)
    assert list(store.lines) == [str(file)]
    file.unlink()
    file.symlink_to("/dev/zero")
    assert store.kinds(LATER) == ["vanished"]
    assert store.lines == {}


def test_deleted_file_loses_its_lines(tmp_path: Path) -> None:
    """It may be deleted alone or with its home."""
    put(tmp_path / "home", MAIN, LINES).unlink()
    file = put(tmp_path / "home", OTHER, LINES)
    store = read_home(tmp_path / "home")
    file.unlink()
    assert store.kinds(LATER) == ["vanished"]
    put(tmp_path / "home", OTHER, LINES)
    assert store.kinds(LATER) == ["new"]
    shutil.rmtree(tmp_path / "home")
    assert store.kinds(LATER) == ["vanished"]


def test_file_deleted_after_listing_has_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no problem."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    append(file, LINES)
    real = os.open

    def delete_and_open(path: str, flags: int) -> int:
        Path(path).unlink(missing_ok=True)
        return real(path, flags)

    monkeypatch.setattr(os, "open", delete_and_open)
    changes = store.refresh(LATER)
    assert ([change.kind for change in changes.changed], changes.problems) == ([ChangeKind.VANISHED], ())


def test_unreadable_file_keeps_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported as a problem. Once it can be read again, reading continues."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    append(file, b'{"more":1}\n')

    def refuse(_path: str, _flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        changes = store.refresh(LATER)
    assert [change.kind for change in changes.changed] == [ChangeKind.UNREADABLE]
    assert [(problem.kind, problem.message) for problem in changes.problems] == [
        (ProblemKind.UNREADABLE, "could not be read: Permission denied")
    ]
    assert store.kinds(LATER) == ["grown"]
    assert is_up_to_date(store)


def test_files_of_an_unreadable_directory_have_not_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in other directories are still checked."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, f"projects/-ab/{SESSION}.jsonl", LINES).unlink()
    beside = put(tmp_path, f"projects/-ab/{OTHER_SESSION}.jsonl", LINES.replace(b"x", b"y"))
    store = read_home(tmp_path)
    beside.unlink()
    real = os.scandir

    def refuse(path: str) -> object:
        if path == str(tmp_path / "projects/-a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    changes = store.refresh(LATER)
    assert [change.kind for change in changes.changed] == [ChangeKind.VANISHED, ChangeKind.UNREADABLE]
    assert [problem.kind for problem in changes.problems] == [ProblemKind.UNREADABLE]


def test_pipe_in_place_of_a_transcript_does_not_block(tmp_path: Path) -> None:
    """The transcript vanishes, and the pipe is reported."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    file.unlink()
    os.mkfifo(file)
    changes = store.refresh(LATER)
    assert [change.kind for change in changes.changed] == [ChangeKind.VANISHED]
    assert [problem.message for problem in changes.problems] == ["a named pipe"]
    with pytest.raises(OSError, match="not a regular file"):
        hash_ends(file, 10)


@pytest.mark.parametrize("at", [0, -5 * SECOND, THEN - 3600 * SECOND, LATER + 3600 * SECOND])
def test_past_and_future_mtimes_are_valid(tmp_path: Path, at: int) -> None:
    """A file is read whatever its mtime, and is then unchanged."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    append(file, b'{"more":1}\n', at=at)
    assert store.kinds(LATER) == ["grown"]
    assert store.kinds(LATER) == []
    overwrite(file, (LINES + b'{"more":1}\n').replace(b"x", b"y"), at=at + 1)
    assert store.kinds(LATER) == ["rewritten"]
    assert store.kinds(LATER) == []
    assert is_up_to_date(store)


@pytest.mark.parametrize("mtime_ns", [2**63 + SECOND, -(2**63) - SECOND])
def test_inodes_and_times_of_64_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mtime_ns: int) -> None:
    """Some file systems have inodes and times that SQLite cannot store. A file with them is unchanged, and can move."""
    file = put(tmp_path, MAIN, LINES)
    fields, named = cast("Any", file.stat().__reduce__())[1]
    status = os.stat_result((fields[0], 2**64 - 3, 2**63 + 1, *fields[3:]), {**named, "st_mtime_ns": mtime_ns})
    stat = msgspec.structs.replace(fingerprint.make_stat(str(file), status, LATER), racy=False)
    assert -(2**63) <= stat.mtime_ns < 2**63
    assert changes_module.stat_change(stat, status) is None
    known = make_fingerprint(stat, len(LINES))
    monkeypatch.setattr(TranscriptWalk, "stats", lambda _walk: iter([(str(file), status)]))
    assert detect_changes([known], [Home(tmp_path, "option")], now_ns=LATER).unchanged == 1
    renamed = msgspec.structs.replace(known, path="renamed", size=len(LINES) - 1)
    assert changes_module.MissingTranscripts([renamed]).identify(str(file), status) == renamed


def test_clock_set_back_skips_nothing(tmp_path: Path) -> None:
    """If the current time is earlier than last time, changes are still detected."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    append(file, b'{"more":1}\n', at=THEN - 60 * SECOND)
    assert store.kinds(THEN - 30 * SECOND) == ["grown"]
    assert store.kinds(0) == []
    assert is_up_to_date(store)


def test_write_within_the_mtime_resolution_is_detected(tmp_path: Path, opened: list[str]) -> None:
    """A file that was read just after a write is compared next time, until its mtime is old enough."""
    file = put(tmp_path, MAIN, LINES)
    store = LineStore(tmp_path)
    store.refresh(THEN + SECOND)
    overwrite(file, LINES[:-5] + b"#" + LINES[-4:], at=THEN)
    assert store.kinds(THEN + SECOND) == ["rewritten"]
    assert is_up_to_date(store)
    assert store.refresh(THEN + SECOND).touched[0].racy
    assert not store.refresh(LATER).touched[0].racy
    opened.clear()
    assert store.refresh(LATER).unchanged == 1
    assert opened == []


def test_recently_written_file_is_compared_by_its_ends(tmp_path: Path, sizes_read: list[int]) -> None:
    """While the mtime proves nothing, a long transcript costs two short reads."""
    put(tmp_path, MAIN, LINES)
    store = LineStore(tmp_path)
    store.refresh(THEN + SECOND)
    sizes_read.clear()
    store.refresh(THEN + SECOND)
    assert sum(sizes_read) == 2 * END


def test_bytes_written_while_reading_are_detected_next_time(tmp_path: Path) -> None:
    """The status is from before reading, so new bytes are not considered read."""
    file = put(tmp_path, MAIN, LINES)
    stat = detect_changes([], [Home(tmp_path, "option")], now_ns=LATER).changed[0].stat
    assert stat is not None
    append(file, b'{"more":1}\n')
    fingerprint_ = make_fingerprint(stat, len(LINES), last=LINES[-100:])
    changes = detect_changes([fingerprint_], [Home(tmp_path, "option")], now_ns=LATER).changed
    assert [(change.kind, change.read_from) for change in changes] == [(ChangeKind.GROWN, len(LINES))]


@pytest.mark.parametrize(
    ("data", "last"),
    [(LINES[:-5] + b"#" + LINES[-4:], LINES[-100:]), (LINES[5:] + b".....", b"")],
    ids=["another line", "no end of a line"],
)
def test_file_rewritten_while_reading_is_read_again(tmp_path: Path, data: bytes, last: bytes) -> None:
    """If the last bytes that were read are gone, or no line ends there, the fingerprint does not match."""
    file = put(tmp_path, MAIN, LINES)
    stat = detect_changes([], [Home(tmp_path, "option")], now_ns=LATER).changed[0].stat
    assert stat is not None
    overwrite(file, data, at=THEN)
    fingerprint_ = make_fingerprint(stat, len(LINES), last=last)
    changes = detect_changes([fingerprint_], [Home(tmp_path, "option")], now_ns=LATER).changed
    assert [(change.kind, change.read_from) for change in changes] == [(ChangeKind.REWRITTEN, 0)]


@pytest.mark.parametrize("read_to", [0, 1, END - 1, END, END + 1, 2 * END, 2 * END + 1, len(LINES)])
def test_fingerprint_covers_the_bytes_before_its_end(tmp_path: Path, read_to: int) -> None:
    """Later bytes do not change it, earlier ones do. An extended checksum equals that of the whole."""
    file = put(tmp_path, MAIN, LINES)
    before = hash_ends(file, read_to)
    append(file, b"more")
    assert hash_ends(file, read_to) == before
    stat = TranscriptStat(str(file), 1, 1, len(LINES), 1, racy=False)
    part = make_fingerprint(stat, read_to)
    assert make_fingerprint(stat, len(LINES), before=part) == make_fingerprint(stat, len(LINES))
    if read_to:
        overwrite(file, b"#" + LINES[1:])
        assert hash_ends(file, read_to)[0] != before[0]


def test_fingerprint_is_stored_compactly(tmp_path: Path) -> None:
    """It round-trips, and takes little more than its path and three hashes."""
    file = put(tmp_path, MAIN, LINES)
    fingerprint_ = read_home(tmp_path).fingerprints[str(file)]
    stored = msgspec.msgpack.encode(fingerprint_)
    assert msgspec.msgpack.decode(stored, type=TranscriptFingerprint) == fingerprint_
    assert len(stored) < len(fingerprint_.path) + 100


def test_homes_that_share_their_projects_have_each_transcript_once(tmp_path: Path) -> None:
    """A second home whose `projects` is a symlink to the first one's adds nothing."""
    put(tmp_path / "one", MAIN, LINES)
    (tmp_path / "two").mkdir()
    (tmp_path / "two/projects").symlink_to(tmp_path / "one/projects")
    store = LineStore(tmp_path / "one", tmp_path / "two")
    assert store.kinds(LATER) == ["new"]
    assert store.refresh(LATER).unchanged == 1


def test_session_moved_to_another_home_keeps_its_lines(tmp_path: Path) -> None:
    """Moves are detected between all listed homes."""
    file = put(tmp_path / "one", MAIN, LINES)
    store = LineStore(tmp_path / "one", tmp_path / "two")
    store.refresh(LATER)
    (tmp_path / "two/projects/-a").mkdir(parents=True)
    file.rename(tmp_path / "two" / MAIN)
    changes = store.refresh(LATER).changed
    assert [(change.kind, change.transcript and change.transcript.home.path) for change in changes] == [
        (ChangeKind.MOVED, tmp_path / "two")
    ]


def test_transcript_walk_equals_look(tmp_path: Path) -> None:
    """With symlinks, pipes, excluded folders, secrets and odd names, both list the same transcripts and problems."""
    home = tmp_path / "home"
    for path in (
        MAIN,
        "projects/loose.jsonl",
        "projects/-a/.env.jsonl",
        "projects/-a/new\nline \udcff.jsonl",
        "projects/-a/memory/noted.jsonl",
        "projects/memory/mine.jsonl",
        f"projects/-a/{SESSION}/tool-results/printed.jsonl",
        f"projects/-a/{SESSION}/workflows/scripts/x.jsonl",
        f"projects/-a/{SESSION}/subagents/agent-1.jsonl",
        f"projects/-a/{SESSION}/subagents/agent-1.meta.json",
        f"projects/-a/{SESSION}/subagents/workflows/run/journal.jsonl",
        "projects/-a/folder.jsonl/inside.jsonl",
        "projects/-b/sessions-index.json",
        "unknown/kept.jsonl",
        "history.jsonl",
        ".credentials.json",
    ):
        put(home, path, LINES)
    os.mkfifo(home / "projects/-a/pipe")
    for name, to in {
        "again": home / MAIN,
        "kept": home / "unknown/kept.jsonl",
        "kept-too": home / "unknown/kept.jsonl",
        "history": home / "history.jsonl",
        "secret": home / ".credentials.json",
        "meta": home / f"projects/-a/{SESSION}/subagents/agent-1.meta.json",
        "nowhere": home / "gone",
        "outside": tmp_path / "elsewhere",
        "printed": home / f"projects/-a/{SESSION}/tool-results/printed.jsonl",
    }.items():
        (home / f"projects/-b/{name}.jsonl").symlink_to(to)
    (home / "projects/-c").symlink_to(home / "projects/-a")
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "projects").symlink_to(home / "projects")
    circle = tmp_path / "circle"
    circle.mkdir()
    (circle / "projects").symlink_to(circle)
    for top in (home, moved, circle, tmp_path / "nowhere"):
        listed_home = Home(top, "option")
        listing = TranscriptWalk(listed_home)
        listed = {listing.transcript(*stat) for stat in listing.stats()}
        expected = look(listed_home, side_files=False) if top.exists() else None
        assert listed == set(expected.transcripts if expected else ())
        problems = {(problem.place, problem.message) for problem in listing.problems}
        assert problems == {(problem.place, problem.message) for problem in (expected.problems if expected else ())}


def test_suffix_is_case_insensitive(tmp_path: Path) -> None:
    """As in `look`."""
    file = put(tmp_path, "projects/-a/LOUD.JSONL", LINES)
    assert [path for path, _ in stat_transcripts(Home(tmp_path, "option"))] == [str(file)]
    assert [transcript.path for transcript in look(Home(tmp_path, "option")).transcripts] == [file]


def test_default_clock_is_the_system_clock(tmp_path: Path) -> None:
    """A file from this moment is racy, an old one is not."""
    put(tmp_path, MAIN, LINES, at=time.time_ns())
    put(tmp_path, OTHER, LINES)
    changes = detect_changes([], [Home(tmp_path, "option")]).changed
    assert [change.stat and change.stat.racy for change in changes] == [True, False]


def test_checksum_does_not_depend_on_block_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file is read in blocks."""
    file = put(tmp_path, MAIN, LINES)
    checksum = read_home(tmp_path).fingerprints[str(file)].checksum
    monkeypatch.setattr(fingerprint, "_BLOCK", 999)
    assert read_home(tmp_path).fingerprints[str(file)].checksum == checksum


def scrub(file: Path) -> None:
    """Overwrite a byte in the middle, and set the mtime back."""
    status = file.stat()
    with file.open("r+b") as stream:
        stream.seek(status.st_size // 2)
        stream.write(b"~")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)


def test_edit_in_place_that_keeps_size_and_mtime_is_seen(tmp_path: Path) -> None:
    """Nothing but the ctime tells."""
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    scrub(file)
    changes = store.refresh(LATER)
    assert [change.kind for change in changes.changed] == [ChangeKind.REWRITTEN]
    assert is_up_to_date(store)


def test_new_ctimes_alone_do_not_cause_reading(tmp_path: Path) -> None:
    """Other permissions give all files other ctimes. Their checksums are compared once; no line is read again."""
    for number in range(3):
        put(tmp_path, f"projects/-a/{SESSION[:-1]}{number}.jsonl", LINES)
    store = read_home(tmp_path)
    for file in tmp_path.glob("projects/-a/*.jsonl"):
        file.chmod(0o600 if file.stat().st_mode & 0o077 else 0o640)
    changes = store.refresh(LATER)
    assert (changes.changed, len(changes.touched)) == ((), 3)
    changes = store.refresh(LATER)
    assert (changes.changed, changes.touched, changes.unchanged) == ((), (), 3)


def test_copied_home_is_not_read_again(tmp_path: Path) -> None:
    """A home that was deleted and restored with `cp -a` has other inodes and ctimes, and the same mtimes."""
    home = tmp_path / "home"
    put(home, MAIN, LINES)
    put(home, OTHER, LINES + LINES)
    store = read_home(home)
    shutil.copytree(home, tmp_path / "backup", copy_function=shutil.copy2)
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "backup", home, copy_function=shutil.copy2)
    changes = store.refresh(LATER)
    assert (changes.changed, len(changes.touched)) == ((), 2)


@pytest.mark.parametrize("at", [0, -2])
def test_without_ctimes_both_ends_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Where the system has no ctime, an edit at either end is seen, and unchanged files stay unchanged."""
    for module in (fingerprint, changes_module):
        monkeypatch.setattr(module, "HAS_CHANGE_TIME", False)
    file = put(tmp_path, MAIN, LINES)
    store = read_home(tmp_path)
    assert store.refresh(LATER).unchanged == 1
    data = bytearray(LINES)
    data[at] = ord("~")
    overwrite(file, bytes(data), at=THEN)
    assert [change.kind for change in store.refresh(LATER).changed] == [ChangeKind.REWRITTEN]
    assert is_up_to_date(store)
