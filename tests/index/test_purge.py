"""Whatever is deleted from transcripts is gone from every file of the index after one refresh."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.index.content import content, differences, rebuilt_content, without_secure_delete
from tests.transcripts import Pen, call, meta, prompt, reply, transcript, write

import threadline
from threadline.find import homes
from threadline.index import Index, open_read_only, purge, refresh_index

KEPT = "5e551011-0000-4000-8000-000000000001"
GONE = "0ddba11e-0000-4000-8000-000000000002"
SECRET = re.compile(rb"(?i)0ddba11e|platypus\w*|ornithorhynch\w*|kamonohashi|schnabeltier")


@pytest.fixture(autouse=True)
def _plain_sqlite() -> Iterator[None]:
    """SQLite as most systems build it. Debian's overwrites deleted rows, and the tests would prove less."""
    with without_secure_delete():
        yield


def write_session(home: Path, session: str, word: str, other: str) -> Path:
    """Write a session in which a word is everywhere: prompt, title, reply, path, tool, branch, model, summary."""
    pen = Pen(session, cwd=f"/work/{word}", gitBranch=f"{word}-branch")
    path = write(
        home / f"projects/-work-{word}/{session}.jsonl",
        *transcript(
            prompt(f"tell me about the {word} and the {other}é"),
            reply(f"The {word}Reply", message={"model": f"claude-{word}"}, output=7),
            call("Bash", f"cat /work/{word}/notes", result=f"{word}Output", message={"model": f"claude-{word}"}),
            call("Read", f"/work/{word}/{word}.py", result="text"),
            call(f"mcp__{word}__ask", {"question": f"{word}Question"}, result="42"),
            meta("custom-title", customTitle=f"Title of {word}"),
            prompt(f"{other} " * 50),
            pen=pen,
        ),
    )
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two sessions; one of them has words, ids and paths that the other does not."""
    home = tmp_path / "home"
    write_session(home, KEPT, "heron", "egret")
    write_session(home, GONE, "platypus", "ornithorhynchus")
    return home


def gone_path(home: Path) -> Path:
    """The transcript with the distinctive words."""
    return next(home.glob(f"projects/*/{GONE}.jsonl"))


def traces(folder: Path) -> set[bytes]:
    """The distinctive words in any file of a folder, whatever the file is."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {word for path in files for word in SECRET.findall(path.read_bytes())}


@pytest.fixture
def index(home: Path, tmp_path: Path) -> Path:
    """The index of both sessions, in a folder of its own."""
    index = tmp_path / "cache" / "index.sqlite"
    refresh_index(index, homes(home))
    assert traces(index.parent)
    return index


def matches(index: Path, word: str) -> int:
    """How many rows of the full-text table contain a word."""
    with closing(open_read_only(index)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM text WHERE text MATCH ?", (word,)).fetchone()[0])


def check_clean(home: Path, index: Path) -> None:
    """Nothing is left of the deleted session, and all is there of the other."""
    assert traces(index.parent) == set()
    assert matches(index, "platypus") == 0
    assert not differences(content(index), rebuilt_content(home, home.parent))


def test_deleted_session_leaves_no_trace(home: Path, index: Path) -> None:
    """Words, ids, paths, names of tools and models are gone from the file, and `MATCH` counts what search finds."""
    gone_path(home).unlink()
    refresh_index(index, homes(home))
    check_clean(home, index)
    with threadline.open(home, index=index) as archive:
        assert list(archive.search("platypusReply")) == []
        assert len(list(archive.search("heronReply"))) == matches(index, "heronReply") == 1


@pytest.mark.parametrize("keeps_times", [False, True])
def test_scrubbed_text_leaves_no_trace(home: Path, index: Path, keeps_times: bool) -> None:
    """Text that is overwritten in place is gone, even if size and mtime stay."""
    path = gone_path(home)
    status = path.stat()
    scrubbed = SECRET.sub(lambda match: b"x" * len(match[0]), path.read_bytes())
    with path.open("r+b") as file:
        file.write(scrubbed)
    if keeps_times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    path.rename(path.parent.parent / "-work-heron" / f"{KEPT[:-1]}3.jsonl")
    path.parent.rmdir()
    with threadline.open(home, index=index) as archive:
        assert list(archive.search("platypusReply")) == []
    check_clean(home, index)


def test_every_way_to_ask_purges(home: Path, index: Path) -> None:
    """A command that only wants an answer purges a small index, too."""
    gone_path(home).unlink()
    with threadline.open(home, index=index) as archive:
        archive.sessions()
    check_clean(home, index)


_STEPS = ("_remove_words", "_merge_all", "rebuild_vocabulary", "_remove_names", "_set_step", "_empty_log")


@pytest.mark.sample(3)
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("step", _STEPS)
def test_interrupted_purge_continues(home: Path, index: Path, step: str, before: bool) -> None:
    """A purge that is killed before or after any step is completed by the next refresh."""
    gone_path(home).unlink()
    real: Callable[..., Any] = getattr(purge, step)

    def kill(*arguments: Any) -> None:
        if not before:
            real(*arguments)
        raise KeyboardInterrupt

    with patch.object(purge, step, kill), pytest.raises(KeyboardInterrupt):
        refresh_index(index, homes(home))
    with threadline.open(home, index=index) as archive:
        archive.sessions()
    check_clean(home, index)


def test_reader_delays_only_the_log(home: Path, index: Path) -> None:
    """A process that reads an old state keeps its words in the log. The next refresh removes them."""
    gone_path(home).unlink()
    with closing(open_read_only(index)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM entries").fetchone()
        refresh_index(index, homes(home))
        assert matches(index, "platypus") == 0
        assert Index.status(index, homes(home)).orphans == 0
    with threadline.open(home, index=index) as archive:
        archive.sessions()
    check_clean(home, index)


def test_words_that_cannot_be_deleted_one_by_one(home: Path, tmp_path: Path) -> None:
    """SQLite cuts off a very long word, perhaps inside a character. Then the index is built again."""
    write(
        home / f"projects/-work-platypus/{GONE}.jsonl",
        *transcript(prompt("platypus " + "ა" * 20_000), pen=Pen(GONE, cwd="/work/platypus")),
    )
    index = tmp_path / "cache" / "index.sqlite"
    refresh_index(index, homes(home))
    gone_path(home).unlink()
    refresh_index(index, homes(home))
    assert "ა".encode() * 10 not in index.read_bytes()
    check_clean(home, index)


def test_words_in_every_script(home: Path, tmp_path: Path) -> None:
    """Words with accents, without spaces and in other forms are removed, too."""
    texts = [
        "naïve PLATYPUS ß İ",
        "\u30ab\u30e2\u30ce\u30cf\u30b7kamonohashi",
        "\ufb01ne \uff26\uff55\uff4c\uff4c \u01c5 \u2163 \u00bd",
        "e\u0301 \U0001d518\U0001d52b Schnabeltier 🎈",
    ]
    write(
        home / f"projects/-work-platypus/{GONE}.jsonl",
        *transcript(*map(prompt, texts), pen=Pen(GONE, cwd="/work/platypus")),
    )
    index = tmp_path / "cache" / "index.sqlite"
    refresh_index(index, homes(home))
    gone_path(home).unlink()
    with patch("threadline.index.refresh._build") as build:
        refresh_index(index, homes(home))
    assert not build.called
    check_clean(home, index)


def test_refresh_without_deletion_does_not_purge(home: Path, index: Path) -> None:
    """An appended line costs nothing more than before: the file is not written again."""
    with gone_path(home).open("ab") as file:
        file.write(b'{"type":"summary","summary":"more","leafUuid":"x"}\n')
    with patch.object(purge, "_remove_words") as remove_words, patch.object(purge, "_empty_log") as empty_log:
        refresh_index(index, homes(home))
    assert not remove_words.called
    assert not empty_log.called


def test_large_index_is_purged_when_asked_to(home: Path, index: Path) -> None:
    """A command that wants an answer does not wait for a large index; `index refresh` removes the words."""
    gone_path(home).unlink()
    with patch.object(purge, "MAX_BYTES_AT_ONCE", 0):
        with threadline.open(home, index=index) as archive:
            assert len(archive.sessions().sessions) == 1
        status = Index.status(index, homes(home))
        assert status.orphans > 0
        with patch("threadline.index.refresh.refresh_index") as refresh, threadline.open(home, index=index) as archive:
            archive.sessions()
        assert not refresh.called
        refresh_index(index, homes(home))
    check_clean(home, index)


def test_full_disk_delays_the_purge(home: Path, index: Path) -> None:
    """If the file cannot be written again now, the answer comes nevertheless, and the next refresh continues."""

    class FullDisk(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql == "VACUUM":
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, parameters)

    gone_path(home).unlink()
    connect = sqlite3.connect
    with patch.object(sqlite3, "connect", lambda *args, **named: connect(*args, **{"factory": FullDisk, **named})):
        with threadline.open(home, index=index) as archive:
            assert len(archive.sessions().sessions) == 1
        with pytest.raises(threadline.Unreadable, match="full"):
            refresh_index(index, homes(home))
    refresh_index(index, homes(home))
    check_clean(home, index)


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, and no keep."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    return tmp_path / "cache"


def _sessions(*home: Path) -> Iterator[Any]:
    with threadline.open(home) as archive:
        yield from archive.sessions().sessions


def test_other_indexes_are_cleaned(home: Path, tmp_path: Path, cached: Path) -> None:
    """Indexes of other sets of homes, of older versions, and unfinished ones are removed if they have the session."""
    other = tmp_path / "other"
    write_session(other, KEPT, "heron", "egret")
    assert len(list(_sessions(home))) == 2
    assert len(list(_sessions(home, other))) == 3
    assert len(list(_sessions(other))) == 1
    data = next(data for path in cached.glob("index-*.sqlite") if SECRET.search(data := path.read_bytes()))
    (cached / "index-0123456789ab-v3.sqlite").write_bytes(data)
    (cached / "index-0123456789ab-v99.sqlite").write_bytes(data)
    (cached / "index-0123456789ab-v17.sqlite.new").write_bytes(data)
    gone_path(home).unlink()
    assert len(list(_sessions(home))) == 1
    assert traces(cached) == set()
    assert len(list(cached.glob("index-*.sqlite"))) == 2  # that of `other` has nothing that is gone


@pytest.mark.parametrize("keeps_times", [False, True])
def test_other_indexes_with_scrubbed_text_are_cleaned(
    home: Path, tmp_path: Path, cached: Path, keeps_times: bool
) -> None:
    """Text that was overwritten in place is also gone from the indexes of other sets of homes."""
    other = tmp_path / "other"
    write_session(other, KEPT, "heron", "egret")
    assert len(list(_sessions(home))) == 2
    assert len(list(_sessions(home, other))) == 3
    path = gone_path(home)
    status = path.stat()
    path.write_bytes(SECRET.sub(lambda match: b"x" * len(match[0]), path.read_bytes()))
    if keeps_times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert len(list(_sessions(home))) == 2
    assert not [name for name in cached.glob("index-*.sqlite*") if b"platypusReply" in name.read_bytes()]
