"""An encrypted keep tells nothing without its key, is added to without it, and gives everything back with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.keep.steps import dies_at
from tests.keep.stores import HERE, all_bytes, given_back, home_with, is_clean, kept, lines, session_id, transcript

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

pytest.importorskip("pyrage")


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home large enough for a dictionary, for which less is enough than usual."""
    monkeypatch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
    return home_with(tmp_path / "home", {transcript(1): lines(1, 3_000), transcript(2): lines(2, 10)})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep whose key is in a file."""
    return Store.make(tmp_path / "keep", load_or_create_key_file(tmp_path / "key"))


def _grown(home: Path, seed: int) -> None:
    with (home / transcript(1)).open("ab") as file:
        file.write(lines(seed, 20))


def test_files_tell_nothing(store: Store, home: Path) -> None:
    """Neither the names nor the bytes of an encrypted keep have a word of what is in it, nor of the machine."""
    kept(store, home)
    told = b"\n".join(
        os.fsencode(path.relative_to(store.folder)) + (path.read_bytes() if path.is_file() else b"")
        for path in store.folder.rglob("*")
        if not path.name.startswith(".lock")
    )
    for word in (b"here_1", session_id(1).encode(), b"uuid", b"jsonl", b"threadln"):
        assert word not in told.replace((store.folder / "README.txt").read_bytes(), b"")
    assert len(store.dictionary_files()) == 1
    assert {path.suffix for path in (*store.pack_files(), *store.run_files(), *store.dictionary_files())} == {".age"}


def test_with_the_key_everything_comes_back(store: Store, home: Path, tmp_path: Path) -> None:
    """Whoever has the key lists, verifies and restores as from any other keep."""
    before = (home / transcript(1)).read_bytes()
    kept(store, home)
    _grown(home, 5)
    kept(store, home)
    again = Store(store.folder, load_or_create_key_file(tmp_path / "key").identity)
    assert given_back(again)[transcript(1)] == [before, (home / transcript(1)).read_bytes()]
    assert is_clean(again)


def test_keeping_needs_no_key(store: Store, home: Path, tmp_path: Path) -> None:
    """A machine that has only the public key adds what grew, and only that, since it remembers what it kept."""
    machine = Machine("here_1", "here", tmp_path / "memory")
    locked = Store(store.folder)
    first = kept(locked, home, machine)
    _grown(home, 5)
    second = kept(Store(store.folder), home, machine)
    assert (first.new, second.grown, second.new) == (2, 1, 0)
    assert second.stored < first.stored / 20
    assert len(given_back(store)[transcript(1)]) == 2
    assert is_clean(store)


def test_without_memory_all_is_kept_again_and_nothing_lost(store: Store, home: Path) -> None:
    """Where the memory was thrown away, a run without the key keeps all once more; packing takes it out again."""
    kept(Store(store.folder), home)
    kept(Store(store.folder), home)
    assert given_back(store)[transcript(2)] == [lines(2, 10)]
    repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 1
    assert is_clean(store)


def test_without_the_key_nothing_is_read(store: Store, home: Path) -> None:
    """Without its key, nothing of it is given out, and what to do is said."""
    kept(store, home)
    locked = Store(store.folder)
    assert not Catalogue(locked).versions
    for refused in (
        lambda: is_clean(locked),
        lambda: repack(Catalogue(locked, trust_cache=False), HERE),
        lambda: forget_session(Catalogue(locked, trust_cache=False), HERE, session_id(1), [], "a wish"),
        lambda: merge_keeps(Catalogue(locked, trust_cache=False), HERE, []),
    ):
        with pytest.raises(Unreadable, match=KEY_FILE_VARIABLE):
            refused()


@pytest.mark.slow
def test_a_passphrase_opens_it(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keep may hold its key itself, under a passphrase; another passphrase does not open it."""
    kept(Store.make(tmp_path / "keep", create_passphrase_key("open sesame")), home)
    with pytest.raises(Unreadable, match="passphrase"):
        key_from_passphrase(tmp_path / "keep", "open barley")
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "open sesame")
    assert given_back(Store(tmp_path / "keep"))[transcript(2)] == [lines(2, 10)]
    with pytest.raises(Unreadable):
        create_passphrase_key("")


@pytest.mark.slow
def test_one_damaged_copy_of_the_key_locks_nobody_out(tmp_path: Path) -> None:
    """The key under the passphrase is there twice: a damaged one is told, and the other opens the keep."""
    seal = create_passphrase_key("open sesame")
    store = Store.make(tmp_path / "keep", seal)
    assert is_clean(store)
    for name in (IDENTITY_FILE, IDENTITY_COPY_FILE):
        whole = (store.folder / name).read_bytes()
        (store.folder / name).write_bytes(whole[:-1])
        assert not is_clean(store)
        assert key_from_passphrase(store.folder, "open sesame") == seal.identity
        (store.folder / name).write_bytes(whole)


def test_the_environment_names_the_key(
    store: Store, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key file may be named by the environment; one that is not there, or holds no key, is told."""
    kept(store, home)
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(tmp_path / "key"))
    assert given_back(Store(store.folder))[transcript(2)] == [lines(2, 10)]
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(tmp_path / "none"))
    with pytest.raises(NotFound):
        given_back(Store(store.folder))
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(home / transcript(1)))
    with pytest.raises(Unreadable, match="contains no key"):
        given_back(Store(store.folder))


def test_the_key_file_is_its_owners(store: Store, tmp_path: Path) -> None:
    """A key file that is made has mode 0600, and is never written over."""
    assert store.is_encrypted
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert load_or_create_key_file(tmp_path / "key") == load_or_create_key_file(tmp_path / "key")


def test_another_key_opens_nothing(store: Store, home: Path, tmp_path: Path) -> None:
    """With the key of another keep, every file is told to be closed, and none is given out."""
    kept(store, home)
    wrong = Store(store.folder, load_or_create_key_file(tmp_path / "other").identity)
    catalogue = Catalogue(wrong)
    assert not catalogue.versions
    assert "cannot be decrypted" in catalogue.problems[0]


def test_a_plain_keep_is_merged_into_an_encrypted_one_and_back(store: Store, home: Path, tmp_path: Path) -> None:
    """Encrypting a keep is merging it into an encrypted one; twice changes nothing, and the way back is the same."""
    plain = Store.make(tmp_path / "plain")
    kept(plain, home)
    _grown(home, 5)
    kept(plain, home)
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [plain])
    assert given_back(store) == given_back(plain)
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [plain]).bytes == 0
    back = Store.make(tmp_path / "back")
    merge_keeps(Catalogue(back, trust_cache=False), HERE, [store])
    assert given_back(back) == given_back(plain)
    assert is_clean(back)


def test_a_plain_keep_is_not_made_an_encrypted_one(tmp_path: Path) -> None:
    """A keep stays what it was begun as; asking for another is refused, with the way out."""
    Store.make(tmp_path / "plain")
    with pytest.raises(Unreadable, match="merge"):
        Store.make(tmp_path / "plain", load_or_create_key_file(tmp_path / "key"))


def test_forgetting_and_packing_work_on_what_is_encrypted(store: Store, home: Path) -> None:
    """With the key, sessions are forgotten and packs written anew as anywhere."""
    for seed in range(4):
        _grown(home, seed)
        kept(store, home)
    repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 1
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    assert set(given_back(store)) == {transcript(2)}
    assert is_clean(store)


@pytest.mark.sample(2)
@pytest.mark.parametrize("work", ["pack", "keep"])
def test_what_came_back_without_key_and_memory_goes_again(store: Store, home: Path, tmp_path: Path, work: str) -> None:
    """Who has neither the key nor the memory cannot know what was forgotten; whoever has the key takes it out again."""
    machine = Machine("here_1", "here", tmp_path / "memory")
    kept(store, home, machine)
    forget_session(Catalogue(store, machine.folder, trust_cache=False), machine, session_id(2), (), "private")
    for remembered in (tmp_path / "memory").glob("*.memory"):
        remembered.unlink()
    kept(Store(store.folder), home, machine)
    private = set(lines(2, 10).splitlines())
    assert private & set(all_bytes(store).splitlines())
    if work == "pack":
        repack(Catalogue(store, machine.folder, trust_cache=False), machine)
    else:
        kept(store, home, machine)
    assert not private & set(all_bytes(store).splitlines())
    assert set(given_back(store)) == {transcript(1)}
    assert is_clean(store)


@pytest.mark.sample(3)
@pytest.mark.parametrize("work", ["forget", "pack", "merge"])
def test_a_run_without_the_key_knows_what_was_done_with_it(store: Store, home: Path, tmp_path: Path, work: str) -> None:
    """After forgetting, packing or merging nothing is stored again, and least of all what was forgotten."""
    machine = Machine("here_1", "here", tmp_path / "memory")
    for seed in range(3):
        _grown(home, seed)
        kept(store, home, machine)
    if work == "forget":
        forget_session(Catalogue(store, machine.folder, trust_cache=False), machine, session_id(2), (), "private")
    elif work == "pack":
        repack(Catalogue(store, machine.folder, trust_cache=False), machine)
    else:
        other = Store.make(tmp_path / "other")
        kept(other, home_with(tmp_path / "there", {transcript(5): lines(5, 5)}))
        merge_keeps(Catalogue(store, machine.folder, trust_cache=False), machine, [other])
    before = store.pack_files()
    again = kept(Store(store.folder), home, machine)
    assert (again.new, again.stored, again.problems) == (0, 0, ())
    assert store.pack_files() == before


@pytest.mark.parametrize("key", [True, False])
def test_the_label_of_an_encrypted_keep_is_written_anew_with_the_key(
    store: Store, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bool
) -> None:
    """Without keep.json nobody knows whom to encrypt for: only the key tells, and nothing is ever added in clear."""
    kept(store, home)
    about = store.info
    (store.folder / "keep.json").write_bytes(b"{")
    _grown(home, 7)
    if not key:
        with pytest.raises(Unreadable, match="with the key"):
            kept(Store(store.folder), home)
        return
    monkeypatch.setenv(KEY_FILE_VARIABLE, os.fspath(tmp_path / "key"))
    assert kept(Store(store.folder), home).grown == 1
    assert Store(store.folder).info.recipients == about.recipients
    assert {path.suffix for path in (*store.pack_files(), *store.run_files())} == {".age"}
    assert is_clean(Store(store.folder))


def test_an_encrypted_keep_that_was_hardly_begun_does_not_become_a_plain_one(tmp_path: Path) -> None:
    """What was to be encrypted is not kept in clear because the first command was killed."""
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / IDENTITY_FILE).write_bytes(b"x")
    with pytest.raises(Unreadable, match="--encrypt"):
        Store.make(tmp_path / "keep")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_killed_process_leaves_no_half_key(tmp_path: Path) -> None:
    """Killed at any step, there is no key file or a complete one, and the next process goes on."""
    path = tmp_path / "keys" / "key"
    number = 1
    while dies_at(number, lambda: load_or_create_key_file(path)):
        if path.exists():
            assert load_or_create_key_file(path).identity in path.read_text()
            path.unlink()
        number += 1
    assert number > 4
    assert load_or_create_key_file(path) == load_or_create_key_file(path)
