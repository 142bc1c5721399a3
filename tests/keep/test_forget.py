"""Forgetting removes a session's bytes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
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

from threadline.errors import NotFound
from threadline.keep import Catalogue, Store, forget_session
from threadline.keep import forget as forgetting
from threadline.keep.manifest import ForgetRow

_SECRET = b'{"sessionId":"x","text":"the word is swordfish"}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a session to forget, and another; large enough to train a dictionary."""
    monkeypatch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
    secret = _SECRET * 1000 + lines(1, 3000)
    return write_home(
        tmp_path / "home",
        {
            transcript_path(1): secret,
            transcript_path(2): lines(2, 3000),
            f"todos/{session_id(1)}-agent-{session_id(1)}.json": b"[]",
        },
    )


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Store:
    """A keep of it, after two runs."""
    store = Store.make(tmp_path / "keep")
    keep_home(store, home)
    with (home / transcript_path(1)).open("ab") as file:
        file.write(_SECRET)
    write_home(home, {f"todos/{session_id(2)}-agent-{session_id(2)}.json": b"[]"})
    keep_home(store, home)
    return store


def test_no_byte_of_a_forgotten_session_is_left(store: Store) -> None:
    """After forgetting, the text of a session is in no pack, manifest or dictionary."""
    assert b"swordfish" in all_bytes(store)
    assert any(b"swordfish" in path.read_bytes() for path in store.dictionary_files())
    forgets = forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "it held a password")
    assert (forgets.files, forgets.versions, forgets.problems) == (2, 3, ())
    assert forgets.bytes > 0
    assert b"swordfish" not in all_bytes(store)
    assert not store.dictionary_files()


def test_other_sessions_stay(store: Store) -> None:
    """Other sessions stay, even if the forgotten one had the same content."""
    before = kept_versions(store)
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    after = kept_versions(store)
    assert after == {path: data for path, data in before.items() if session_id(1) not in path}
    assert after[f"todos/{session_id(2)}-agent-{session_id(2)}.json"] == [b"[]"]
    assert is_clean(store)


def test_reason_is_recorded(store: Store) -> None:
    """The keep records that a session was forgotten, and why."""
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "it held a password")
    rows = [row for manifest in Catalogue(store).manifests for row in manifest.rows if isinstance(row, ForgetRow)]
    assert [(row.session, row.reason) for row in rows] == [(session_id(1), "it held a password")]


def test_forgotten_session_is_not_kept_again(store: Store, home: Path) -> None:
    """Later runs skip a session that still exists, in any project."""
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    write_home(
        home, {transcript_path(1): _SECRET * 5, transcript_path(1, "-moved"): _SECRET, transcript_path(2): lines(4, 5)}
    )
    run = keep_home(store, home)
    assert (run.new, run.changed, run.gone) == (0, 1, 0)
    assert b"swordfish" not in all_bytes(store)


def test_forgets_files_by_path(store: Store) -> None:
    """Files without the session's id in their path are forgotten if they are given."""
    versions = [version for version in Catalogue(store).newest() if version.path == transcript_path(2)]
    forget_session(Catalogue(store, trust_cache=False), HERE, "a name", versions, "a wish")
    assert transcript_path(2) not in kept_versions(store)
    assert transcript_path(1) in kept_versions(store)


def test_forgetting_unknown_session_is_an_error(store: Store) -> None:
    """A session that is not kept cannot be forgotten."""
    runs = store.run_files()
    with pytest.raises(NotFound):
        forget_session(Catalogue(store, trust_cache=False), HERE, session_id(77), [], "a wish")
    assert store.run_files() == runs


def test_forgets_pieces_of_an_interrupted_run(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that no manifest contains may belong to the session, so they are removed, too."""
    with (home / transcript_path(1)).open("ab") as file:
        file.write(b"the second word is marlin\n")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put_run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            keep_home(store, home)
    assert b"marlin" in all_bytes(store)
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    assert b"marlin" not in all_bytes(store)


def test_pieces_stay_while_a_manifest_is_unreadable(store: Store, home: Path) -> None:
    """Its versions may need them. Once the manifest is back, they can be read."""
    write_home(home, {transcript_path(3): lines(3, 3000)})
    keep_home(store, home)
    manifest = store.run_files()[-1]
    intact = manifest.read_bytes()
    manifest.chmod(0o600)
    manifest.write_bytes(b"damaged")
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    assert b"swordfish" not in all_bytes(store)
    manifest.write_bytes(intact)
    assert kept_versions(store)[transcript_path(3)] == [lines(3, 3000)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("where", ["purge_forgotten", "rewrite_packs", "remove_retired_dictionaries"])
def test_next_run_finishes_interrupted_forget(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Interrupted anywhere, the keep is clean, the session is not listed, and the next run removes its bytes."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(forgetting, where, interrupt)
        with pytest.raises(KeyboardInterrupt):
            forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    assert is_clean(store)
    assert transcript_path(1) not in kept_versions(store)
    keep_home(store, home)
    assert is_clean(store)
    assert b"swordfish" not in all_bytes(store)
    assert not list(store.dictionaries.glob("*.going"))
