"""Pushing sessions to a lake: only what is new, only what the policy allows."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, cast

import pytest
from tests.cli.runner import CliRunner
from tests.interfaces import odd_homes
from tests.lake.machines import machine, push, session_id, write_session
from tests.lake.test_build import rows_of
from tests.lake.test_erase import objects_with

import threadline
from threadline.errors import NotFound, Unreadable
from threadline.find import look

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.lake import (
    Policy,
    PolicyNotAccepted,
    PushOptions,
    SegmentReader,
    all_sources,
    build_lake,
    change_policy,
    create_lake,
    list_batches,
    push_sessions,
    read_batch,
    select_sources,
)
from threadline.lake.bronze import compress
from threadline.storage import Bucket

DATA = "bronze/data"


def contents(bucket: Bucket) -> dict[str, bytes]:
    """The bytes of every file in a lake, by its path."""
    files: dict[str, bytes] = {}
    for source in all_sources(bucket):
        files |= {file.path: data for file, data in SegmentReader(bucket).read(source)}
    return files


def stored_bytes(bucket: Bucket) -> int:
    """How many bytes the objects with content take."""
    return sum(entry.size for entry in bucket.list(DATA))


def test_a_push_uploads_every_byte_once(tmp_path: Path) -> None:
    """A second push uploads nothing, and after a file grew, only its new part. The lake has the files' bytes."""
    home = tmp_path / "home"
    path = write_session(home, 1, turns=50)
    bucket = Bucket(str(tmp_path / "lake"))
    assert push(bucket, [home]).sessions == 1
    assert push(bucket, [home]).sessions == 0
    before = stored_bytes(bucket)
    with path.open("ab") as file:
        file.write(b'{"type":"user","message":{"content":"one more"}}\n')
    assert push(bucket, [home]).sessions == 1
    assert stored_bytes(bucket) - before < before / 4
    assert contents(bucket) == {f"projects/-work-app/{path.name}": path.read_bytes()}


def test_a_rewritten_file_replaces_its_objects(tmp_path: Path) -> None:
    """If a file was rewritten, its old bytes are deleted from the lake."""
    home = tmp_path / "home"
    path = write_session(home, 1, text="the old words")
    bucket = Bucket(str(tmp_path / "lake"))
    push(bucket, [home])
    old = {entry.path for entry in bucket.list(DATA)}
    path.write_bytes(path.read_bytes().replace(b"old words", b"new words!"))
    push(bucket, [home])
    assert not old & {entry.path for entry in bucket.list(DATA)}
    assert contents(bucket)[f"projects/-work-app/{path.name}"] == path.read_bytes()


def test_a_session_that_is_deleted_during_a_push(tmp_path: Path) -> None:
    """The others are pushed."""
    home = tmp_path / "home"
    deleted = write_session(home, 1)
    write_session(home, 2)
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.FULL)
    found = look(home)
    deleted.unlink()
    result = push_sessions(bucket, [found], machine(1), PushOptions("person", accepted=Policy.FULL))
    assert (result.sessions, result.problems) == (1, [])


def test_excluded_projects_and_sessions_stay(tmp_path: Path) -> None:
    """Nothing of an excluded project or session is uploaded."""
    home = tmp_path / "home"
    for number, project in ((1, "-work-app"), (2, "-work-private"), (3, "-work-app")):
        write_session(home, number, project=project)
    bucket = Bucket(str(tmp_path / "lake"))
    result = push(bucket, [home], projects=("PRIVATE",), sessions=(session_id(3),))
    assert (result.sessions, result.excluded) == (1, 2)
    assert [path.rpartition("/")[2] for path in contents(bucket)] == [f"{session_id(1)}.jsonl"]


def test_the_policy_has_to_be_accepted(tmp_path: Path) -> None:
    """A push is refused before the policy was accepted, and again after it changed; nothing is uploaded."""
    home = tmp_path / "home"
    write_session(home, 1)
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.METRICS)
    with pytest.raises(PolicyNotAccepted, match="policy metrics: no text"):
        push_sessions(bucket, [look(home)], machine(1), PushOptions("person1"))
    assert not list(bucket.list(DATA))
    push(bucket, [home], accepted=Policy.METRICS)
    push_sessions(bucket, [look(home)], machine(1), PushOptions("person1"))  # accepted before
    change_policy(bucket, Policy.FULL)
    with pytest.raises(PolicyNotAccepted, match="changed its policy from metrics to full"):
        push_sessions(bucket, [look(home)], machine(1), PushOptions("person1"))


@pytest.mark.parametrize("policy", [Policy.REDACTED, Policy.METRICS])
def test_policies_remove_secrets_at_the_source(tmp_path: Path, policy: Policy) -> None:
    """By the policies `redacted` and `metrics`, no object contains a planted secret or the user's home directory."""
    secret = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j"
    home = tmp_path / "home"
    write_session(home, 1, text=f"the token is {secret}, in /home/wilhelmina/app", project="-home-wilhelmina-app")
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, policy)
    assert push(bucket, [home], accepted=policy).sessions == 1
    ((path, data),) = contents(bucket).items()
    ((id_, numbers),) = list_batches(bucket).items()
    for text in (path, data.decode(), repr(read_batch(bucket, id_, *numbers))):
        assert secret not in text
        assert "wilhelmina" not in text
    assert (b"the token is" in data) == (policy is Policy.REDACTED)
    assert b'"output_tokens":11' in data.replace(b" ", b"")


@pytest.mark.parametrize("policy", [Policy.REDACTED, Policy.METRICS])
def test_policies_remove_secrets_in_names_of_agents(tmp_path: Path, policy: Policy) -> None:
    """The name of an agent's file is redacted as its id in the transcripts; the agent remains one of its session."""
    secret = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j"
    home = tmp_path / "home"
    main = write_session(home, 1)
    agents = main.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    for agent in (secret, "a0123456789abcdef"):
        (agents / f"agent-{agent}.jsonl").write_bytes(main.read_bytes())
        (agents / f"agent-{agent}.meta.json").write_text('{"agentType":"Explore"}')
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, policy)
    assert push(bucket, [home], accepted=policy).sessions == 1
    ((id_, numbers),) = list_batches(bucket).items()
    assert secret not in repr(read_batch(bucket, id_, *numbers))
    names = sorted(path.rpartition("/subagents/")[2] for path in contents(bucket) if "/subagents/" in path)
    assert names == [
        "agent-<secret-1>.jsonl",
        "agent-<secret-1>.meta.json",
        "agent-a0123456789abcdef.jsonl",
        "agent-a0123456789abcdef.meta.json",
    ]


@pytest.mark.parametrize("policy", [Policy.REDACTED, Policy.METRICS])
def test_policies_hide_the_name_of_the_machine(tmp_path: Path, policy: Policy) -> None:
    """By other policies than `full`, no object, nor its path, contains the host name, which is in a machine's id."""
    bucket, home = Bucket(str(tmp_path / "lake")), tmp_path / "home"
    create_lake(bucket, policy)
    for number in (1, 2):
        write_session(home, number)
        assert push(bucket, [home], accepted=policy).sessions == 1
    build_lake(bucket, jobs=1)
    assert not any(machine(1).label in entry.path for entry in bucket.list(""))
    assert objects_with(bucket, machine(1).label) == []


@pytest.mark.parametrize("policies", [(Policy.FULL, Policy.METRICS), (Policy.METRICS, Policy.FULL)])
def test_a_machine_is_the_same_after_a_change_of_policy(tmp_path: Path, policies: tuple[Policy, Policy]) -> None:
    """What a machine pushed by an earlier policy is not pushed again as that of another machine."""
    bucket, home = Bucket(str(tmp_path / "lake")), tmp_path / "home"
    for number, policy in enumerate(policies, 1):
        create_lake(bucket, policy) if number == 1 else change_policy(bucket, policy)
        write_session(home, number)
        assert push(bucket, [home], accepted=policy).sessions == 1
    assert list(list_batches(bucket).values()) == [[1, 2]]


def test_an_object_that_the_storage_damages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push finds it when it reads back what it uploaded, and the command that it names uploads it again."""
    bucket, home = Bucket(str(tmp_path / "lake")), tmp_path / "home"
    path = write_session(home, 1)
    create = Bucket.create

    def damage(self: Bucket, path: str, data: bytes) -> bool:
        return create(self, path, compress(b"damaged") if path.startswith(DATA) else data)

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "create", damage)
        with pytest.raises(Unreadable, match=f"was stored damaged. Run: threadline lake push {bucket.name} --repair$"):
            push(bucket, [home])
    assert push(bucket, [home], repair=True).sessions == 1
    assert list(contents(bucket).values()) == [path.read_bytes()]


def test_a_session_with_a_secret_in_its_id_is_refused(tmp_path: Path) -> None:
    """It is named on this machine, and nothing of it is uploaded."""
    secret = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j"
    home = tmp_path / "home"
    path = write_session(home, 1)
    path.write_bytes(path.read_bytes().replace(path.stem.encode(), secret.encode()))
    path.rename(path.with_name(f"{secret}.jsonl"))
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.REDACTED)
    result = push(bucket, [home], accepted=Policy.REDACTED)
    assert [session for session, _ in result.refused] == [secret]
    assert not contents(bucket)


def test_two_pushes_at_once_lose_nothing(tmp_path: Path) -> None:
    """Two pushes of one machine at the same time: every file is in the lake, and each batch has its own number."""
    home = tmp_path / "home"
    paths = [write_session(home, number) for number in range(1, 9)]
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.FULL)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            push(Bucket(bucket.uri), [home], batch_bytes=1)
        except BaseException as error:  # noqa: BLE001 - reported below
            errors.append(error)

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert contents(bucket) == {f"projects/-work-app/{path.name}": path.read_bytes() for path in paths}
    numbers = list_batches(bucket)[machine(1).id]
    assert numbers == list(range(1, len(numbers) + 1))


def test_objects_are_written_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service takes long to answer each request, so pushes and builds do not wait for one before they send the next.

    Here, a request is answered only while another one waits.
    """
    home = tmp_path / "home"
    for number in range(1, 5):
        write_session(home, number)
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.FULL)
    met: Counter[str] = Counter()
    for name in ("create", "put"):
        original, two_writers = getattr(Bucket, name), Barrier(2)

        def write(self: Bucket, path: str, data: bytes, original: Any = original, writers: Any = two_writers) -> Any:
            if path.startswith((DATA, "silver/entries/data")):
                writers.wait(timeout=60)
                met[path.partition("/")[0]] += 1
            return original(self, path, data)

        monkeypatch.setattr(Bucket, name, write)
    push(bucket, [home])
    build_lake(bucket, jobs=1)
    assert met == {"bronze": 4, "silver": 4}


def test_an_interrupted_push_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a push dies between two batches, the next one pushes the rest."""
    home = tmp_path / "home"
    paths = [write_session(home, number) for number in range(1, 5)]
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.FULL)
    original = Bucket.create
    calls = []

    def create(self: Bucket, path: str, data: bytes) -> bool:
        calls.append(path)
        if len(calls) == 6:
            raise Unreadable("the network is gone")
        return original(self, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "create", create)
        with pytest.raises(Unreadable, match="network"):
            push(bucket, [home], batch_bytes=1, accepted=Policy.FULL)
    result = push(bucket, [home], batch_bytes=1)
    assert 0 < result.sessions < len(paths)
    assert contents(bucket) == {f"projects/-work-app/{path.name}": path.read_bytes() for path in paths}


def test_damage_in_the_lake_is_reported(tmp_path: Path) -> None:
    """A damaged or missing object is an error that names it, not a shorter file."""
    home = tmp_path / "home"
    write_session(home, 1)
    bucket = Bucket(str(tmp_path / "lake"))
    push(bucket, [home])
    (entry,) = bucket.list(DATA)
    bucket.put(entry.path, bucket.get(entry.path)[:-9])
    with pytest.raises(Unreadable, match="damaged"):
        contents(bucket)
    bucket.delete([entry.path])
    with pytest.raises(Unreadable, match="is missing"):
        contents(bucket)


def test_repair_pushes_damaged_sessions_again(tmp_path: Path) -> None:
    """With `repair`, a session whose object is damaged is pushed again, and the others are not."""
    home = tmp_path / "home"
    paths = [write_session(home, number) for number in (1, 2)]
    bucket = Bucket(str(tmp_path / "lake"))
    push(bucket, [home])
    entry = next(iter(bucket.list(DATA)))
    bucket.put(entry.path, bucket.get(entry.path)[:-9])
    assert push(bucket, [home]).sessions == 0
    assert push(bucket, [home], repair=True).sessions == 1
    assert contents(bucket) == {f"projects/-work-app/{path.name}": path.read_bytes() for path in paths}


def test_repair_deletes_nothing_that_is_not_pushed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a damaged session stays if this machine no longer has it, or if the storage only refused."""
    home = tmp_path / "home"
    path = write_session(home, 1)
    bucket = Bucket(str(tmp_path / "lake"))
    push(bucket, [home])
    (first,) = bucket.list(DATA)
    path.write_bytes(path.read_bytes() * 2)
    push(bucket, [home])
    content, before = path.read_bytes(), contents(bucket)
    path.unlink()
    intact = bucket.get(first.path)
    bucket.put(first.path, intact[:-9])
    objects = sorted(entry.path for entry in bucket.list(DATA))
    assert push(bucket, [home], repair=True).sessions == 0
    assert sorted(entry.path for entry in bucket.list(DATA)) == objects
    bucket.put(first.path, intact)
    assert contents(bucket) == before

    def refuse(_self: Bucket, path: str) -> bytes:
        if path.startswith(DATA):
            raise Unreadable("the network is gone")
        return original(_self, path)

    original = Bucket.get
    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "get", refuse)
        assert push(bucket, [home], repair=True).sessions == 0
    assert contents(bucket) == before
    path.write_bytes(content)
    bucket.put(first.path, intact[:-9])
    assert push(bucket, [home], repair=True).sessions == 1
    assert contents(bucket) == {f"projects/-work-app/{path.name}": content}
    assert first.path not in {entry.path for entry in bucket.list(DATA)}


@pytest.mark.parametrize("mtime_ns", [-(2**63) - 10**9, 2**63 + 10**9, 10**20, 3 * 10**20])
def test_an_impossible_mtime_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mtime_ns: int) -> None:
    """File systems may report times that no table can store. Such a file is pushed, built and not too old to keep."""
    home = tmp_path / "home"
    path = write_session(home, 1)
    bucket = Bucket(str(tmp_path / "lake"))
    original = Path.stat

    def stat(self: Path, **options: bool) -> os.stat_result:
        status = original(self, **options)
        fields, named = cast("Any", status.__reduce__())[1]
        return os.stat_result(fields, {**named, "st_mtime_ns": mtime_ns}) if self == path else status

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", stat)
        push(bucket, [home])
    monkeypatch.setattr(os, "utime", lambda *_args, **_options: None)
    if mtime_ns > 0:
        with pytest.raises(NotFound, match="matches"):
            select_sources(bucket, before=datetime(2200, 1, 1, tzinfo=UTC))
    assert build_lake(bucket, jobs=1).sessions == 1
    assert rows_of(bucket, "sightings")


def test_status_lists_people_and_machines(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Two people who push from one machine have a row each, with their own sessions and what of them is built."""
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.FULL)
    for person, numbers in (("alice", (1,)), ("bob", (2, 3))):
        for number in numbers:
            write_session(tmp_path / person, number)
        options = PushOptions(person=person, accepted=Policy.FULL)
        push_sessions(bucket, [look(tmp_path / person)], machine(1), options)
        if person == "alice":
            build_lake(bucket, jobs=1)
    rows = CliRunner(capfdbinary)("lake", "status", bucket.uri, "--json").json["machines"]
    counts = [(row["person"], row["sessions"], row["batches"], row["built"]) for row in rows]
    assert counts == [("alice", 1, 1, 1), ("bob", 2, 1, 0)]


@pytest.mark.parametrize("policy", Policy)
def test_names_that_are_not_text_are_pushed_escaped(tmp_path: Path, policy: Policy) -> None:
    r"""Folders and files whose names are not UTF-8 are in the lake as `\xff`, and everything in them is counted."""
    (home,) = odd_homes.CASES["folder that is no text"](tmp_path / "home")
    write_session(home, 1)
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, policy)
    assert push(bucket, [home], accepted=policy).sessions == 3
    assert push(bucket, [home], accepted=policy).sessions == 0
    assert all(path.isprintable() for path in contents(bucket))
    assert sum("\\xff" in path for path in contents(bucket)) == (0 if policy is Policy.METRICS else 2)
    build_lake(bucket)
    spent: Counter[str] = Counter()
    for row in rows_of(bucket, "charges"):
        spent[row["session"]] += row["input"] + row["output"] + row["cache_read"]
    ledger = threadline.ledger(home)
    assert spent == {row.keys["session"]: row.tokens for row in ledger.by("session")}
    assert len(spent) == 3
