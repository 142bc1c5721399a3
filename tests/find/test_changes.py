"""What changed since last time: every way in which a transcript becomes another, or stays what it was."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import msgspec
import pytest
from tests.find.a_home import ANOTHER, SESSION, write
from tests.find.held_lines import SECOND, HeldLines, whole_lines

from threadline.find import detect_changes, fingerprint, look, make_fingerprint, stat_transcripts
from threadline.find.fingerprint import END, hash_ends
from threadline.find.listing import TranscriptWalk
from threadline.model.homes import ChangeKind, Home, TranscriptFingerprint, TranscriptStat
from threadline.model.places import ProblemKind

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has neither inodes in directories nor these files")

THEN = 1_700_000_000 * SECOND
LATER = THEN + 3600 * SECOND
MAIN = f"projects/-a/{SESSION}.jsonl"
OTHER = f"projects/-a/{ANOTHER}.jsonl"
LINES = b"".join(b'{"n":%d,"text":"%s"}\n' % (number, b"x" * 90) for number in range(200))


def put(home: Path, path: str, data: bytes, *, at: int = THEN) -> Path:
    """Write a file as of then."""
    file = write(home, path, data)
    os.utime(file, ns=(at, at))
    return file


def append(file: Path, data: bytes, *, at: int = THEN + 60 * SECOND) -> None:
    """Write on, a minute later."""
    with file.open("ab") as writing:
        writing.write(data)
    os.utime(file, ns=(at, at))


def overwrite(file: Path, data: bytes, *, at: int = THEN + 60 * SECOND) -> None:
    """Write other bytes into the same file, a minute later."""
    with file.open("r+b") as writing:
        writing.write(data)
        writing.truncate()
    os.utime(file, ns=(at, at))


def held(home: Path) -> HeldLines:
    """All lines of the home, read an hour later."""
    lines = HeldLines(home)
    lines.refresh(LATER)
    return lines


def is_right(lines: HeldLines) -> bool:
    """Whether the lines are those of the files, no more and no less."""
    there = {path: whole_lines(Path(path).read_bytes()) for home in lines.homes for path, _ in stat_transcripts(home)}
    return lines.lines == there


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were opened to look at their bytes."""
    paths: list[str] = []
    real = os.open

    def spy(path: str, flags: int) -> int:
        paths.append(os.fspath(path))
        return real(path, flags)

    monkeypatch.setattr(os, "open", spy)
    return paths


@pytest.fixture
def sizes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were looked at, each time that some were."""
    sizes: list[int] = []
    real = os.read

    def counted(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    return sizes


def test_a_new_transcript_is_read_from_its_start(tmp_path: Path) -> None:
    """Where nothing is known, every transcript is new, and its transcript is the one that `look` lists."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, f"projects/-a/{SESSION}/subagents/agent-1.jsonl", LINES)
    put(tmp_path, f"projects/-a/{SESSION}/subagents/agent-1.meta.json", b"{}")
    found = detect_changes([], [Home(tmp_path, "option")])
    assert {(change.kind, change.read_from) for change in found.changed} == {(ChangeKind.NEW, 0)}
    assert tuple(change.transcript for change in found.changed) == look(Home(tmp_path, "option")).transcripts


def test_nothing_is_opened_where_nothing_changed(tmp_path: Path, opened: list[str]) -> None:
    """A file with the same device, inode, size and time is passed over by its status alone."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, OTHER, LINES)
    lines = held(tmp_path)
    opened.clear()
    found = lines.refresh(LATER)
    assert (found.changed, found.touched, found.unchanged, opened) == ((), (), 2, [])


def test_an_appended_line_costs_that_line(tmp_path: Path, sizes_read: list[int]) -> None:
    """Reading goes on where it ended, and beyond what is new only the ends are read."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    sizes_read.clear()
    append(file, b'{"new":1}\n')
    lines.read = 0
    assert lines.kinds(LATER) == ["grown"]
    assert lines.read == 10
    # Both ends to compare, both ends to know, the old end to know that it was still there, and the line to sum up.
    assert sum(sizes_read) == 5 * END + 10
    assert is_right(lines)


def test_a_torn_line_is_read_when_it_ends(tmp_path: Path) -> None:
    """What has no newline yet is not read; once it ends, it is read from its start."""
    file = put(tmp_path, MAIN, LINES + b'{"torn":')
    lines = held(tmp_path)
    assert lines.known[str(file)].read_to == len(LINES)
    assert lines.kinds(LATER) == []
    append(file, b'"more')
    assert lines.kinds(LATER) == ["grown"]
    append(file, b'"}\n', at=THEN + 90 * SECOND)
    assert lines.kinds(LATER) == ["grown"]
    assert lines.lines[str(file)][-1] == b'{"torn":"more"}\n'
    assert is_right(lines)


def test_a_torn_line_that_is_cut_off_changes_no_line(tmp_path: Path) -> None:
    """A file that shrinks to the end of its whole lines holds the same lines."""
    file = put(tmp_path, MAIN, LINES + b'{"torn":')
    lines = held(tmp_path)
    overwrite(file, LINES)
    found = lines.refresh(LATER)
    assert (found.changed, len(found.touched)) == ((), 1)
    assert is_right(lines)


def test_an_empty_file_is_known_and_picked_up_later(tmp_path: Path) -> None:
    """An empty file is new once, then nothing, then grown; so is one of one torn line."""
    file = put(tmp_path, MAIN, b"")
    lines = held(tmp_path)
    assert lines.lines == {str(file): []}
    assert lines.kinds(LATER) == []
    append(file, b'{"torn":1')
    assert lines.kinds(LATER) == ["grown"]
    append(file, b"}\n", at=THEN + 90 * SECOND)
    assert lines.kinds(LATER) == ["grown"]
    assert is_right(lines)


def test_a_touched_file_is_compared_and_not_read_again(tmp_path: Path) -> None:
    """Another time alone changes no line: it is stored, and the next time nothing is opened."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    os.utime(file, ns=(THEN + SECOND, THEN + SECOND))
    found = lines.refresh(LATER)
    assert (found.changed, [one.mtime_ns for one in found.touched]) == ((), [THEN + SECOND])
    assert lines.refresh(LATER).unchanged == 1


@pytest.mark.parametrize("at", [0, END // 2, len(LINES) // 2, len(LINES) - 10])
def test_a_rewrite_of_the_same_size_is_found_wherever_it_is(tmp_path: Path, at: int) -> None:
    """One byte that differs is found at the ends and in the middle, though size and inode are the same."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    overwrite(file, LINES[:at] + b"#" + LINES[at + 1 :])
    assert lines.kinds(LATER) == ["rewritten"]
    assert is_right(lines)


def test_a_rewrite_that_is_longer_is_not_an_append(tmp_path: Path) -> None:
    """Where the bytes before the end are others, the file is read from its start."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    overwrite(file, b'{"first":1}\n' + LINES)
    assert lines.kinds(LATER) == ["rewritten"]
    assert is_right(lines)


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    """As when a failed stream takes its last line back."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    overwrite(file, b"".join(whole_lines(LINES)[:-1]))
    assert lines.kinds(LATER) == ["truncated"]
    assert is_right(lines)


def test_a_line_taken_back_and_another_written_is_found(tmp_path: Path) -> None:
    """Truncated and grown again between two looks: the end is another."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    overwrite(file, b"".join(whole_lines(LINES)[:-1]) + b'{"another":"%s"}\n' % (b"y" * 500))
    assert lines.kinds(LATER) == ["rewritten"]
    assert is_right(lines)


def test_copytruncate_gives_a_new_file_and_a_truncated_one(tmp_path: Path) -> None:
    """A rotated log: the copy is new, the original starts over."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    shutil.copy2(file, tmp_path / OTHER)
    overwrite(file, b"")
    assert lines.kinds(LATER) == ["truncated", "new"]
    append(file, b'{"over":1}\n', at=THEN + 90 * SECOND)
    assert lines.kinds(LATER) == ["grown"]
    assert is_right(lines)


def test_a_renamed_file_keeps_its_lines(tmp_path: Path) -> None:
    """The path changes, nothing is read again."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    file.rename(tmp_path / OTHER)
    lines.read = 0
    found = lines.refresh(LATER)
    assert [(one.kind, one.read_from) for one in found.changed] == [(ChangeKind.MOVED, len(LINES))]
    assert lines.read == 0
    assert lines.refresh(LATER).unchanged == 1
    assert is_right(lines)


def test_a_renamed_project_keeps_the_lines_of_all_its_files(tmp_path: Path) -> None:
    """All of its transcripts move, even those that are alike to the byte; a moved one may have grown."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, OTHER, LINES)
    put(tmp_path, f"projects/-a/{SESSION}/subagents/agent-1.jsonl", LINES)
    lines = held(tmp_path)
    (tmp_path / "projects/-a").rename(tmp_path / "projects/-b")
    append(tmp_path / f"projects/-b/{SESSION}.jsonl", b'{"more":1}\n')
    lines.read = 0
    assert lines.kinds(LATER) == ["moved"] * 3
    assert lines.read == 11
    assert is_right(lines)


def test_a_file_moved_across_disks_is_known_by_its_content(tmp_path: Path) -> None:
    """A copy whose original is gone is the same transcript, with its time kept or not."""
    for keep in (shutil.copy2, shutil.copyfile):
        home = tmp_path / keep.__name__
        file = put(home, MAIN, LINES)
        lines = held(home)
        keep(file, home / OTHER)
        file.unlink()
        assert lines.kinds(LATER) == ["moved"]
        assert is_right(lines)


@pytest.mark.slow
def test_a_thousand_alike_files_are_each_found_again(tmp_path: Path) -> None:
    """Copied elsewhere and deleted here, all of them move, and each file takes the lines of one other."""
    for number in range(1000):
        put(tmp_path, f"projects/-a/{number}.jsonl", b'{"same":1}\n')
    lines = held(tmp_path)
    shutil.copytree(tmp_path / "projects/-a", tmp_path / "projects/-b")
    shutil.rmtree(tmp_path / "projects/-a")
    assert lines.kinds(LATER) == ["moved"] * 1000
    assert is_right(lines)


def test_what_has_moved_has_moved_once(tmp_path: Path) -> None:
    """Of a renamed file and copies of it, one has moved and the others are new."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    file.rename(tmp_path / OTHER)
    for name in ("0", "zz"):
        shutil.copy2(tmp_path / OTHER, tmp_path / f"projects/-a/{name}.jsonl")
    assert lines.kinds(LATER) == ["moved", "new", "new"]
    assert is_right(lines)


def test_an_empty_file_is_not_recognised(tmp_path: Path) -> None:
    """What had no lines has nothing by which to know it elsewhere."""
    file = put(tmp_path, MAIN, b"")
    lines = held(tmp_path)
    file.rename(tmp_path / OTHER)
    assert lines.kinds(LATER) == ["vanished", "new"]
    assert is_right(lines)


def test_a_new_file_with_an_old_inode_is_new(tmp_path: Path) -> None:
    """A disk gives the number of a deleted file to the next: the bytes tell that it is another."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    file.rename(tmp_path / OTHER)
    overwrite(tmp_path / OTHER, LINES.replace(b"x", b"y"))
    assert lines.kinds(LATER) == ["vanished", "new"]
    assert is_right(lines)


def test_a_file_moved_over_another_takes_its_place(tmp_path: Path) -> None:
    """The lines of the one are gone, those of the other stay and bear its name."""
    put(tmp_path, MAIN, LINES)
    file = put(tmp_path, OTHER, LINES.replace(b"x", b"y"))
    lines = held(tmp_path)
    file.rename(tmp_path / MAIN)
    assert lines.kinds(LATER) == ["vanished", "moved"]
    assert is_right(lines)


def test_two_files_that_change_names_are_read_anew(tmp_path: Path) -> None:
    """Neither is gone, so neither has moved."""
    one = put(tmp_path, MAIN, LINES)
    two = put(tmp_path, OTHER, LINES.replace(b"x", b"y"))
    lines = held(tmp_path)
    one.rename(tmp_path / "aside")
    two.rename(one)
    (tmp_path / "aside").rename(two)
    assert lines.kinds(LATER) == ["replaced", "replaced"]
    assert is_right(lines)


def test_a_file_put_in_its_place_is_judged_by_its_bytes(tmp_path: Path) -> None:
    """Saved anew with the same content nothing changes, with more it has grown, with other bytes it is replaced."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    middle = len(LINES) // 2
    for data, expected in (
        (LINES, []),
        (LINES + b'{"more":1}\n', ["grown"]),
        (LINES[:middle] + b"#" + LINES[middle + 1 :] + b'{"more":1}\n', ["replaced"]),
        (b"", ["replaced"]),
    ):
        put(tmp_path, "saved", data, at=THEN + 60 * SECOND).rename(file)
        assert lines.kinds(LATER) == expected
        assert is_right(lines)


def test_a_restored_file_with_its_size_and_time_is_the_same(tmp_path: Path) -> None:
    """Another inode alone changes no line."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    shutil.copy2(file, tmp_path / "restored")
    (tmp_path / "restored").rename(file)
    found = lines.refresh(LATER)
    assert (found.changed, len(found.touched)) == ((), 1)
    assert lines.refresh(LATER).unchanged == 1


def test_hard_links_are_transcripts_of_their_own(tmp_path: Path) -> None:
    """Two names of one file are two transcripts; when one goes, the other stays as it was."""
    file = put(tmp_path, MAIN, LINES)
    os.link(file, tmp_path / OTHER)
    lines = held(tmp_path)
    append(file, b'{"more":1}\n')
    assert lines.kinds(LATER) == ["grown", "grown"]
    file.unlink()
    assert lines.kinds(LATER) == ["vanished"]
    assert is_right(lines)


def test_a_link_is_the_file_it_leads_to(tmp_path: Path) -> None:
    """A link to a listed transcript adds nothing; one that replaces its file by a link elsewhere makes it vanish."""
    file = put(tmp_path, MAIN, LINES)
    (tmp_path / OTHER).symlink_to(file)
    lines = held(tmp_path)
    assert list(lines.lines) == [str(file)]
    file.unlink()
    file.symlink_to("/dev/zero")
    assert lines.kinds(LATER) == ["vanished"]
    assert lines.lines == {}


def test_a_vanished_file_loses_its_lines(tmp_path: Path) -> None:
    """Deleted, alone or with its home."""
    put(tmp_path / "home", MAIN, LINES).unlink()
    file = put(tmp_path / "home", OTHER, LINES)
    lines = held(tmp_path / "home")
    file.unlink()
    assert lines.kinds(LATER) == ["vanished"]
    put(tmp_path / "home", OTHER, LINES)
    assert lines.kinds(LATER) == ["new"]
    shutil.rmtree(tmp_path / "home")
    assert lines.kinds(LATER) == ["vanished"]


def test_what_vanishes_between_listing_and_comparing_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file deleted while it is looked at is vanished, without a problem."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    append(file, LINES)
    real = os.open

    def gone(path: str, flags: int) -> int:
        Path(path).unlink(missing_ok=True)
        return real(path, flags)

    monkeypatch.setattr(os, "open", gone)
    found = lines.refresh(LATER)
    assert ([change.kind for change in found.changed], found.problems) == ([ChangeKind.VANISHED], ())


def test_a_file_that_may_not_be_read_any_more_keeps_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is unreadable, with a problem; once it may be read again, reading goes on."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    append(file, b'{"more":1}\n')

    def refuse(_path: str, _flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        found = lines.refresh(LATER)
    assert [change.kind for change in found.changed] == [ChangeKind.UNREADABLE]
    assert [(problem.kind, problem.message) for problem in found.problems] == [
        (ProblemKind.UNREADABLE, "could not be read: Permission denied")
    ]
    assert lines.kinds(LATER) == ["grown"]
    assert is_right(lines)


def test_files_of_a_closed_directory_have_not_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that may not be listed says nothing of its files; those beside it are looked at."""
    put(tmp_path, MAIN, LINES)
    put(tmp_path, f"projects/-ab/{SESSION}.jsonl", LINES).unlink()
    beside = put(tmp_path, f"projects/-ab/{ANOTHER}.jsonl", LINES.replace(b"x", b"y"))
    lines = held(tmp_path)
    beside.unlink()
    real = os.scandir

    def refuse(path: str) -> object:
        if path == str(tmp_path / "projects/-a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = lines.refresh(LATER)
    assert [change.kind for change in found.changed] == [ChangeKind.VANISHED, ChangeKind.UNREADABLE]
    assert [problem.kind for problem in found.problems] == [ProblemKind.UNREADABLE]


def test_a_file_that_became_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe in a transcript's place makes it vanish, and is told."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    file.unlink()
    os.mkfifo(file)
    found = lines.refresh(LATER)
    assert [change.kind for change in found.changed] == [ChangeKind.VANISHED]
    assert [problem.message for problem in found.problems] == ["a named pipe"]
    with pytest.raises(OSError, match="not a regular file"):
        hash_ends(file, 10)


@pytest.mark.parametrize("at", [0, -5 * SECOND, THEN - 3600 * SECOND, LATER + 3600 * SECOND])
def test_times_that_go_back_or_lie_ahead_are_times_like_any_other(tmp_path: Path, at: int) -> None:
    """A file is read on whatever its time, and then is as it was: no skip, no loop."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    append(file, b'{"more":1}\n', at=at)
    assert lines.kinds(LATER) == ["grown"]
    assert lines.kinds(LATER) == []
    overwrite(file, (LINES + b'{"more":1}\n').replace(b"x", b"y"), at=at + 1)
    assert lines.kinds(LATER) == ["rewritten"]
    assert lines.kinds(LATER) == []
    assert is_right(lines)


def test_a_clock_that_is_set_back_skips_nothing(tmp_path: Path) -> None:
    """When it is now earlier than last time, changes are found as ever."""
    file = put(tmp_path, MAIN, LINES)
    lines = held(tmp_path)
    append(file, b'{"more":1}\n', at=THEN - 60 * SECOND)
    assert lines.kinds(THEN - 30 * SECOND) == ["grown"]
    assert lines.kinds(0) == []
    assert is_right(lines)


def test_a_write_within_the_grain_of_time_is_found(tmp_path: Path, opened: list[str]) -> None:
    """A file read just after it was written to is compared next time, until its time is long enough ago."""
    file = put(tmp_path, MAIN, LINES)
    lines = HeldLines(tmp_path)
    lines.refresh(THEN + SECOND)
    overwrite(file, LINES[:-5] + b"#" + LINES[-4:], at=THEN)
    assert lines.kinds(THEN + SECOND) == ["rewritten"]
    assert is_right(lines)
    assert lines.refresh(THEN + SECOND).touched[0].racy
    assert not lines.refresh(LATER).touched[0].racy
    opened.clear()
    assert lines.refresh(LATER).unchanged == 1
    assert opened == []


def test_a_file_just_written_to_is_compared_by_its_ends(tmp_path: Path, sizes_read: list[int]) -> None:
    """A long transcript that is being written costs two short reads as long as its time proves nothing."""
    put(tmp_path, MAIN, LINES)
    lines = HeldLines(tmp_path)
    lines.refresh(THEN + SECOND)
    sizes_read.clear()
    lines.refresh(THEN + SECOND)
    assert sum(sizes_read) == 2 * END


def test_what_is_written_while_it_is_read_is_found_next_time(tmp_path: Path) -> None:
    """What is known is from before the reading: bytes that come meanwhile are not taken for read."""
    file = put(tmp_path, MAIN, LINES)
    stat = detect_changes([], [Home(tmp_path, "option")], now_ns=LATER).changed[0].stat
    assert stat is not None
    append(file, b'{"more":1}\n')
    known = make_fingerprint(stat, len(LINES), last=LINES[-100:])
    found = detect_changes([known], [Home(tmp_path, "option")], now_ns=LATER).changed
    assert [(change.kind, change.read_from) for change in found] == [(ChangeKind.GROWN, len(LINES))]


@pytest.mark.parametrize(
    ("data", "last"),
    [(LINES[:-5] + b"#" + LINES[-4:], LINES[-100:]), (LINES[5:] + b".....", b"")],
    ids=["another line", "no end of a line"],
)
def test_what_is_rewritten_while_it_is_read_is_read_again(tmp_path: Path, data: bytes, last: bytes) -> None:
    """If the last bytes that were read are not there any more, or no line ends there, the file will not match."""
    file = put(tmp_path, MAIN, LINES)
    stat = detect_changes([], [Home(tmp_path, "option")], now_ns=LATER).changed[0].stat
    assert stat is not None
    overwrite(file, data, at=THEN)
    known = make_fingerprint(stat, len(LINES), last=last)
    found = detect_changes([known], [Home(tmp_path, "option")], now_ns=LATER).changed
    assert [(change.kind, change.read_from) for change in found] == [(ChangeKind.REWRITTEN, 0)]


@pytest.mark.parametrize("read_to", [0, 1, END - 1, END, END + 1, 2 * END, 2 * END + 1, len(LINES)])
def test_a_fingerprint_is_of_the_bytes_before_its_end(tmp_path: Path, read_to: int) -> None:
    """What follows does not change it, what precedes does; an extended checksum is that of the whole."""
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


def test_what_is_known_is_stored_in_few_bytes(tmp_path: Path) -> None:
    """It comes back as it was, and takes little more than its path and three hashes."""
    file = put(tmp_path, MAIN, LINES)
    known = held(tmp_path).known[str(file)]
    stored = msgspec.msgpack.encode(known)
    assert msgspec.msgpack.decode(stored, type=TranscriptFingerprint) == known
    assert len(stored) < len(known.path) + 100


def test_homes_that_share_their_projects_have_each_transcript_once(tmp_path: Path) -> None:
    """A second home whose `projects` is a link to the first one's adds nothing."""
    put(tmp_path / "one", MAIN, LINES)
    (tmp_path / "two").mkdir()
    (tmp_path / "two/projects").symlink_to(tmp_path / "one/projects")
    lines = HeldLines(tmp_path / "one", tmp_path / "two")
    assert lines.kinds(LATER) == ["new"]
    assert lines.refresh(LATER).unchanged == 1


def test_a_session_moved_to_another_home_keeps_its_lines(tmp_path: Path) -> None:
    """Homes that are looked through together are one place to move in."""
    file = put(tmp_path / "one", MAIN, LINES)
    lines = HeldLines(tmp_path / "one", tmp_path / "two")
    lines.refresh(LATER)
    (tmp_path / "two/projects/-a").mkdir(parents=True)
    file.rename(tmp_path / "two" / MAIN)
    found = lines.refresh(LATER).changed
    assert [(one.kind, one.transcript and one.transcript.home.path) for one in found] == [
        (ChangeKind.MOVED, tmp_path / "two")
    ]


def test_the_lean_listing_is_what_look_lists(tmp_path: Path) -> None:
    """Links, pipes, put-aside folders, secrets, odd names: the same transcripts, and the same problems with them."""
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
        one = Home(top, "option")
        listing = TranscriptWalk(one)
        made = {listing.transcript(*each) for each in listing.stats()}
        expected = look(one, side_files=False) if top.exists() else None
        assert made == set(expected.transcripts if expected else ())
        told = {(problem.place, problem.message) for problem in listing.problems}
        assert told == {(problem.place, problem.message) for problem in (expected.problems if expected else ())}


def test_a_name_in_capitals_is_listed(tmp_path: Path) -> None:
    """A suffix is one in any case, as `look` has it."""
    file = put(tmp_path, "projects/-a/LOUD.JSONL", LINES)
    assert [path for path, _ in stat_transcripts(Home(tmp_path, "option"))] == [str(file)]
    assert [transcript.path for transcript in look(Home(tmp_path, "option")).transcripts] == [file]


def test_the_clock_is_the_machines_unless_told(tmp_path: Path) -> None:
    """A file of this moment is racy, an old one is not."""
    put(tmp_path, MAIN, LINES, at=time.time_ns())
    put(tmp_path, OTHER, LINES)
    found = detect_changes([], [Home(tmp_path, "option")]).changed
    assert [one.stat and one.stat.racy for one in found] == [True, False]


def test_a_large_file_is_compared_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checksum does not depend on how the bytes are cut."""
    file = put(tmp_path, MAIN, LINES)
    whole = held(tmp_path).known[str(file)].checksum
    monkeypatch.setattr(fingerprint, "_BLOCK", 999)
    assert held(tmp_path).known[str(file)].checksum == whole
