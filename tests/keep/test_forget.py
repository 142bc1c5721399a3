"""Forgetting takes a session's bytes out, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.keep.stores import HERE, all_bytes, given_back, home_with, is_clean, kept, lines, session_id, transcript

from threadline.errors import NotFound
from threadline.keep import Catalogue, Store, forget_session
from threadline.keep import forget as forgetting
from threadline.keep.manifest import ForgetRow

_SECRET = b'{"sessionId":"x","text":"the word is swordfish"}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a session that is to be forgotten, and others; enough of it that a dictionary is learned."""
    monkeypatch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
    secret = _SECRET * 1000 + lines(1, 3000)
    return home_with(
        tmp_path / "home",
        {
            transcript(1): secret,
            transcript(2): lines(2, 3000),
            f"todos/{session_id(1)}-agent-{session_id(1)}.json": b"[]",
        },
    )


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Store:
    """A keep of it, after some days."""
    store = Store.make(tmp_path / "keep")
    kept(store, home)
    with (home / transcript(1)).open("ab") as file:
        file.write(_SECRET)
    home_with(home, {f"todos/{session_id(2)}-agent-{session_id(2)}.json": b"[]"})
    kept(store, home)
    return store


def test_no_byte_of_a_forgotten_session_is_left(store: Store) -> None:
    """After forgetting, the words of a session are nowhere in the keep: not in packs, manifests or dictionaries."""
    assert b"swordfish" in all_bytes(store)
    assert any(b"swordfish" in path.read_bytes() for path in store.dictionary_files())
    forgets = forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "it held a password")
    assert (forgets.files, forgets.versions, forgets.problems) == (2, 3, ())
    assert forgets.bytes > 0
    assert b"swordfish" not in all_bytes(store)
    assert not store.dictionary_files()


def test_the_others_stay(store: Store) -> None:
    """What other sessions hold stays, though the forgotten one held the same."""
    before = given_back(store)
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    after = given_back(store)
    assert after == {path: data for path, data in before.items() if session_id(1) not in path}
    assert after[f"todos/{session_id(2)}-agent-{session_id(2)}.json"] == [b"[]"]
    assert is_clean(store)


def test_the_reason_is_recorded(store: Store) -> None:
    """That a session was forgotten, and why, is told for ever."""
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "it held a password")
    rows = [row for manifest in Catalogue(store).manifests for row in manifest.rows if isinstance(row, ForgetRow)]
    assert [(row.session, row.reason) for row in rows] == [(session_id(1), "it held a password")]


def test_what_was_forgotten_is_not_kept_again(store: Store, home: Path) -> None:
    """A session that is still at the source is left out by the runs that follow, in whatever project it lies."""
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    home_with(home, {transcript(1): _SECRET * 5, transcript(1, "-moved"): _SECRET, transcript(2): lines(4, 5)})
    run = kept(store, home)
    assert (run.new, run.changed, run.gone) == (0, 1, 0)
    assert b"swordfish" not in all_bytes(store)


def test_files_are_forgotten_by_their_paths(store: Store) -> None:
    """Files that do not have the session's id in their path go by being named."""
    named = [one for one in Catalogue(store).newest() if one.path == transcript(2)]
    forget_session(Catalogue(store, trust_cache=False), HERE, "a name", named, "a wish")
    assert transcript(2) not in given_back(store)
    assert transcript(1) in given_back(store)


def test_nothing_to_forget_is_told(store: Store) -> None:
    """A session that is not kept cannot be forgotten."""
    runs = store.run_files()
    with pytest.raises(NotFound):
        forget_session(Catalogue(store, trust_cache=False), HERE, session_id(77), [], "a wish")
    assert store.run_files() == runs


def test_what_a_stopped_run_left_goes_too(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that no manifest tells of may be the session's: they are not left behind."""
    with (home / transcript(1)).open("ab") as file:
        file.write(b"the second word is marlin\n")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put_run", stopped)
        with pytest.raises(KeyboardInterrupt):
            kept(store, home)
    assert b"marlin" in all_bytes(store)
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    assert b"marlin" not in all_bytes(store)


@pytest.mark.sample(3)
@pytest.mark.parametrize("where", ["purge_forgotten", "rewrite_packs", "remove_retired_dictionaries"])
def test_a_stopped_forget_is_finished_by_the_next_run(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Stopped anywhere, the keep is clean, the session is not listed, and the next run takes its bytes out."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(forgetting, where, stopped)
        with pytest.raises(KeyboardInterrupt):
            forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    assert is_clean(store)
    assert transcript(1) not in given_back(store)
    kept(store, home)
    assert is_clean(store)
    assert b"swordfish" not in all_bytes(store)
    assert not list(store.dictionaries.glob("*.going"))
