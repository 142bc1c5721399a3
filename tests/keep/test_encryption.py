"""An encrypted keep reveals nothing without its key, can be added to without it, and is restored with it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.keep.steps import killed_at
from tests.keep.stores import (
    HERE,
    all_bytes,
    is_clean,
    keep_home,
    kept_versions,
    lines,
    session_id,
    transcript_path,
    write_home,
)

import threadline
from threadline.errors import NotFound, Unreadable
from threadline.keep import PASSPHRASE_VARIABLE, Catalogue, Machine, Store, forget_session, merge_keeps, repack
from threadline.keep.encryption import (
    IDENTITY_COPY_FILE,
    IDENTITY_FILE,
    KEY_FILE_VARIABLE,
    create_passphrase_key,
    key_from_passphrase,
    load_or_create_key_file,
)
from threadline.keep.store import write_keep_info

pytest.importorskip("pyrage")


@pytest.fixture(autouse=True)
def _no_key_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home large enough for a dictionary, with a lower limit."""
    monkeypatch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
    return write_home(tmp_path / "home", {transcript_path(1): lines(1, 3_000), transcript_path(2): lines(2, 10)})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep whose key is in a file."""
    return Store.make(tmp_path / "keep", load_or_create_key_file(tmp_path / "key"))


@pytest.mark.parametrize("change", ["replaced", "added", "removed"])
def test_what_is_added_is_for_the_same_keys(store: Store, home: Path, tmp_path: Path, change: str) -> None:
    """Whoever may write to the folder cannot make a machine that knows the keep store files for others to read."""
    machine = Machine("here_1", "here", tmp_path / "data")
    keep_home(store, home, machine)
    own = store.info.recipients
    theirs = load_or_create_key_file(tmp_path / "other-key").recipient
    changed = {"replaced": (theirs,), "added": (*own, theirs), "removed": ()}[change]
    moved = shutil.copytree(store.folder, tmp_path / "moved")
    write_keep_info(moved, store.info.id, changed)  # a keep is known by its id
    write_keep_info(store.folder, "another", changed)  # and by its folder
    append_lines(home, 7)
    for folder in (store.folder, moved):
        stored = sorted(path.name for path in folder.rglob("*"))
        other = Store(folder, store.identity)
        for add in (keep_home, lambda store, _home, machine: repack(Catalogue(store), machine)):
            with pytest.raises(Unreadable, match=r"restore it from a copy"):
                add(other, home, machine)
        assert sorted(path.name for path in folder.rglob("*")) == stored
    write_keep_info(store.folder, store.info.id, own)
    keep_home(Store(store.folder, store.identity), home, machine)


def append_lines(home: Path, seed: int) -> None:
    """Append lines to the first transcript."""
    with (home / transcript_path(1)).open("ab") as file:
        file.write(lines(seed, 20))


def test_files_reveal_nothing(store: Store, home: Path) -> None:
    """Neither the names nor the bytes of an encrypted keep reveal its content or the machine."""
    keep_home(store, home)
    everything = b"\n".join(
        os.fsencode(path.relative_to(store.folder)) + (path.read_bytes() if path.is_file() else b"")
        for path in store.folder.rglob("*")
        if not path.name.startswith(".lock")
    )
    for word in (b"here_1", session_id(1).encode(), b"uuid", b"jsonl", b"threadln"):
        assert word not in everything.replace((store.folder / "README.txt").read_bytes(), b"")
    assert len(store.dictionary_files()) == 1
    assert {path.suffix for path in (*store.pack_files(), *store.run_files(), *store.dictionary_files())} == {".age"}


def test_key_restores_everything(store: Store, home: Path, tmp_path: Path) -> None:
    """With the key, it can be listed, verified and restored like any other keep."""
    before = (home / transcript_path(1)).read_bytes()
    keep_home(store, home)
    append_lines(home, 5)
    keep_home(store, home)
    again = Store(store.folder, load_or_create_key_file(tmp_path / "key").identity)
    assert kept_versions(again)[transcript_path(1)] == [before, (home / transcript_path(1)).read_bytes()]
    assert is_clean(again)


def test_keeping_needs_no_key(store: Store, home: Path, tmp_path: Path) -> None:
    """A machine with only the public key adds what grew, and only that, since it caches what it kept."""
    machine = Machine("here_1", "here", tmp_path / "memory")
    locked = Store(store.folder)
    first = keep_home(locked, home, machine)
    append_lines(home, 5)
    second = keep_home(Store(store.folder), home, machine)
    assert (first.new, second.grown, second.new) == (2, 1, 0)
    assert second.stored < first.stored / 20
    assert len(kept_versions(store)[transcript_path(1)]) == 2
    assert is_clean(store)


def test_without_cache_everything_is_stored_again(store: Store, home: Path) -> None:
    """Without the cache, a run without the key stores everything again. Packing removes the duplicates."""
    keep_home(Store(store.folder), home)
    keep_home(Store(store.folder), home)
    assert kept_versions(store)[transcript_path(2)] == [lines(2, 10)]
    repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 1
    assert is_clean(store)


def test_without_the_key_nothing_is_readable(store: Store, home: Path) -> None:
    """Without its key, nothing is readable, and the message says what to do."""
    keep_home(store, home)
    locked = Store(store.folder)
    assert not Catalogue(locked).versions
    for operation in (
        lambda: is_clean(locked),
        lambda: repack(Catalogue(locked, trust_cache=False), HERE),
        lambda: forget_session(Catalogue(locked, trust_cache=False), HERE, session_id(1), [], "a wish"),
        lambda: merge_keeps(Catalogue(locked, trust_cache=False), HERE, []),
    ):
        with pytest.raises(Unreadable, match=KEY_FILE_VARIABLE):
            operation()


@pytest.mark.slow
def test_passphrase_opens_the_keep(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keep may contain its key, encrypted with a passphrase. Another passphrase does not open it."""
    keep_home(Store.make(tmp_path / "keep", create_passphrase_key("open sesame")), home)
    with pytest.raises(Unreadable, match="passphrase"):
        key_from_passphrase(tmp_path / "keep", "open barley")
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "open sesame")
    assert kept_versions(Store(tmp_path / "keep"))[transcript_path(2)] == [lines(2, 10)]
    with pytest.raises(Unreadable):
        create_passphrase_key("")


@pytest.mark.slow
def test_damaged_copy_of_the_key_is_not_fatal(tmp_path: Path) -> None:
    """The key is stored twice: a damaged copy is reported, and the other opens the keep."""
    key = create_passphrase_key("open sesame")
    store = Store.make(tmp_path / "keep", key)
    assert is_clean(store)
    for name in (IDENTITY_FILE, IDENTITY_COPY_FILE):
        content = (store.folder / name).read_bytes()
        (store.folder / name).write_bytes(content[:-1])
        assert not is_clean(store)
        assert key_from_passphrase(store.folder, "open sesame") == key.identity
        (store.folder / name).write_bytes(content)


def test_key_file_from_environment(store: Store, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment may name the key file. A missing file, or one without a key, is an error."""
    keep_home(store, home)
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(tmp_path / "key"))
    assert kept_versions(Store(store.folder))[transcript_path(2)] == [lines(2, 10)]
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(tmp_path / "none"))
    with pytest.raises(NotFound):
        kept_versions(Store(store.folder))
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(home / transcript_path(1)))
    with pytest.raises(Unreadable, match="contains no key"):
        kept_versions(Store(store.folder))


def test_key_file_is_private(store: Store, tmp_path: Path) -> None:
    """A new key file has mode 0600, and is never overwritten."""
    assert store.is_encrypted
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert load_or_create_key_file(tmp_path / "key") == load_or_create_key_file(tmp_path / "key")


def test_wrong_key_opens_nothing(store: Store, home: Path, tmp_path: Path) -> None:
    """With the key of another keep, every file is reported as undecryptable, and none is readable."""
    keep_home(store, home)
    wrong = Store(store.folder, load_or_create_key_file(tmp_path / "other").identity)
    catalogue = Catalogue(wrong)
    assert not catalogue.versions
    assert "cannot be decrypted" in catalogue.problems[0]


def test_merges_plain_and_encrypted_keeps(store: Store, home: Path, tmp_path: Path) -> None:
    """Merging a keep into an encrypted one encrypts it. A second merge changes nothing, and the way back works."""
    plain = Store.make(tmp_path / "plain")
    keep_home(plain, home)
    append_lines(home, 5)
    keep_home(plain, home)
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [plain])
    assert kept_versions(store) == kept_versions(plain)
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [plain]).bytes == 0
    back = Store.make(tmp_path / "back")
    merge_keeps(Catalogue(back, trust_cache=False), HERE, [store])
    assert kept_versions(back) == kept_versions(plain)
    assert is_clean(back)


def test_plain_keep_cannot_become_encrypted(tmp_path: Path) -> None:
    """The error message says to merge instead."""
    Store.make(tmp_path / "plain")
    with pytest.raises(Unreadable, match="merge"):
        Store.make(tmp_path / "plain", load_or_create_key_file(tmp_path / "key"))


def test_forget_and_pack_an_encrypted_keep(store: Store, home: Path) -> None:
    """With the key, sessions are forgotten and packs rewritten as usual."""
    for seed in range(4):
        append_lines(home, seed)
        keep_home(store, home)
    repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 1
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    assert set(kept_versions(store)) == {transcript_path(2)}
    assert is_clean(store)


@pytest.mark.sample(2)
@pytest.mark.parametrize("work", ["pack", "keep"])
def test_forgotten_session_stored_without_key_is_removed_again(
    store: Store, home: Path, tmp_path: Path, work: str
) -> None:
    """A run without key and cache cannot know what was forgotten. A run with the key removes it again."""
    machine = Machine("here_1", "here", tmp_path / "memory")
    keep_home(store, home, machine)
    forget_session(Catalogue(store, machine.folder, trust_cache=False), machine, session_id(2), (), "private")
    for cache in (tmp_path / "memory").glob("*.memory"):
        cache.unlink()
    keep_home(Store(store.folder), home, machine)
    private = set(lines(2, 10).splitlines())
    assert private & set(all_bytes(store).splitlines())
    if work == "pack":
        repack(Catalogue(store, machine.folder, trust_cache=False), machine)
    else:
        keep_home(store, home, machine)
    assert not private & set(all_bytes(store).splitlines())
    assert set(kept_versions(store)) == {transcript_path(1)}
    assert is_clean(store)


@pytest.mark.sample(3)
@pytest.mark.parametrize("work", ["forget", "pack", "merge"])
def test_run_without_the_key_knows_earlier_work(store: Store, home: Path, tmp_path: Path, work: str) -> None:
    """After forgetting, packing or merging, nothing is stored again, in particular not what was forgotten."""
    machine = Machine("here_1", "here", tmp_path / "memory")
    for seed in range(3):
        append_lines(home, seed)
        keep_home(store, home, machine)
    if work == "forget":
        forget_session(Catalogue(store, machine.folder, trust_cache=False), machine, session_id(2), (), "private")
    elif work == "pack":
        repack(Catalogue(store, machine.folder, trust_cache=False), machine)
    else:
        other = Store.make(tmp_path / "other")
        keep_home(other, write_home(tmp_path / "there", {transcript_path(5): lines(5, 5)}))
        merge_keeps(Catalogue(store, machine.folder, trust_cache=False), machine, [other])
    before = store.pack_files()
    again = keep_home(Store(store.folder), home, machine)
    assert (again.new, again.stored, again.problems) == (0, 0, ())
    assert store.pack_files() == before


@pytest.mark.parametrize("key", [True, False])
def test_keep_json_of_encrypted_keep_is_rebuilt_with_the_key(
    store: Store, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bool
) -> None:
    """Without keep.json only the key identifies the recipient, and nothing is ever added unencrypted."""
    keep_home(store, home)
    info = store.info
    (store.folder / "keep.json").write_bytes(b"{")
    append_lines(home, 7)
    if not key:
        with pytest.raises(Unreadable, match="with the key"):
            keep_home(Store(store.folder), home)
        return
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(tmp_path / "key"))
    assert keep_home(Store(store.folder), home).grown == 1
    assert Store(store.folder).info.recipients == info.recipients
    assert {path.suffix for path in (*store.pack_files(), *store.run_files())} == {".age"}
    assert is_clean(Store(store.folder))


def test_incomplete_encrypted_keep_does_not_become_plain(tmp_path: Path) -> None:
    """Nothing is kept unencrypted because the first command was killed."""
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / IDENTITY_FILE).write_bytes(b"x")
    with pytest.raises(Unreadable, match="--encrypt"):
        Store.make(tmp_path / "keep")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_killed_process_leaves_no_partial_key(tmp_path: Path) -> None:
    """Killed at any step, there is no key file or a complete one, and the next process continues."""
    path = tmp_path / "keys" / "key"
    number = 1
    while killed_at(number, lambda: load_or_create_key_file(path)):
        if path.exists():
            assert load_or_create_key_file(path).identity in path.read_text()
            path.unlink()
        number += 1
    assert number > 4
    assert load_or_create_key_file(path) == load_or_create_key_file(path)


@pytest.mark.parametrize("keep", [True, False])
def test_only_reading_the_keep_leaves_plain_text_in_the_cache(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, keep: bool
) -> None:
    """What a command reads from an encrypted keep is plain text in a private cache. Without the keep, nothing is."""
    row = {"type": "user", "sessionId": session_id(1), "message": {"role": "user", "content": "walnut lantern"}}
    home = write_home(tmp_path / "home", {transcript_path(1): json.dumps(row).encode() + b"\n"})
    (tmp_path / "data" / "threadline").mkdir(parents=True)
    (tmp_path / "data" / "threadline" / "machine").write_text(f"{HERE.id}\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    keep_home(store, home)
    (home / transcript_path(1)).unlink()
    cache = tmp_path / "cache"
    monkeypatch.setenv("THREADLINE_CACHE", str(cache))
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(tmp_path / "key"))
    with threadline.open(home, keep=store.folder if keep else False) as archive:
        archive.refresh()
        assert len(list(archive.sessions())) == keep
    plain = [path for path in cache.rglob("*") if path.is_file() and b"walnut" in path.read_bytes()]
    assert bool(plain) == keep
    assert all(path.stat().st_mode & 0o077 == 0 for path in (cache, *plain))
