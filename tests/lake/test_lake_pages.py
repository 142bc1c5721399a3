"""`threadline serve --lake`: the pages of a lake show what its tables and bronze contain."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.lake.machines import FORK, machine, make_homes, push, session_id, write_fork, write_session
from tests.web.client import Client
from tests.web.test_annotation_pages import post

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.annotations import Annotations, read_annotations
from threadline.errors import NotFound, Unreadable
from threadline.find import look
from threadline.lake import (
    FileVersion,
    LakeReader,
    LakeSessionFilter,
    Policy,
    PushOptions,
    build_lake,
    create_lake,
    forget_sources,
    push_sessions,
    read_usage,
    select_sources,
    write_teams,
)
from threadline.storage import Bucket

TEAMS = b'[teams]\nsearch = ["person1", "person2"]\nplatform = ["person3"]\n'
HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> CliRunner:
    """Runs the command."""
    return CliRunner(capfdbinary)


@contextmanager
def lake_client(bucket: Bucket) -> Iterator[Client]:
    """A client for the pages of a lake."""
    from threadline.web import ArchivePool  # noqa: PLC0415 - after the check for extras

    client = Client()
    client.use(ArchivePool.of_lake(LakeReader(bucket)))
    try:
        yield client
    finally:
        client.pool.close()


@pytest.fixture(scope="module")
def five_machines(tmp_path_factory: pytest.TempPathFactory, demo_home: Path) -> Bucket:
    """A lake of five machines with overlaps, copies and a fork, and two teams."""
    folder = tmp_path_factory.mktemp("lake-pages")
    bucket = Bucket(str(folder / "lake"))
    for number, home in enumerate(make_homes(folder / "homes", demo_home), 1):
        push(bucket, [home], number)
    build_lake(bucket, jobs=1)
    write_teams(bucket, TEAMS)
    return bucket


def small_lake(tmp_path: Path, policy: Policy = Policy.FULL, *, person: str = "person1", text: str = "hello") -> Bucket:
    """A lake with one session of one person."""
    home = tmp_path / "home"
    write_session(home, 1, text=text)
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, policy)
    push_sessions(bucket, [look(home)], machine(1), PushOptions(person=person, accepted=policy))
    build_lake(bucket, jobs=1)
    return bucket


def json_of(client: Client, path: str) -> Any:
    """The JSON twin of a page."""
    response = client.get(path)
    assert response.status_code == 200, (path, response.text[-500:])
    return json.loads(response.text, parse_float=Decimal)  # amounts are exact numbers


@pytest.mark.parametrize("key", ["team", "person", "project", "model", "day", "session", "tool", "machine"])
def test_usage_equals_the_ledger_of_the_lake(five_machines: Bucket, key: str) -> None:
    """The usage page has the rows of `lake usage`, by every key, to the last digit."""
    usage = read_usage(five_machines)
    rows = usage.ledger.by(key, extra=usage.keys)
    with lake_client(five_machines) as client:
        document = json_of(client, f"/usage.json?by={key}&since=all&limit=2000&tz=UTC")
        assert client.get(f"/usage?by={key}&since=all").status_code == 200
    assert {row[key]: row["amount"] or 0 for row in document["rows"]} == {
        row.keys[key]: row.amount or 0 for row in rows
    }
    assert document["total"]["amount"] == usage.ledger.total.amount


def test_filters_by_person_and_team_select_their_usage(five_machines: Bucket) -> None:
    """With ?team= and ?person=, only what these people spent is counted, also in links of the table."""
    usage = read_usage(five_machines)
    of_person = {row.keys["person"]: row.amount for row in usage.ledger.by("person", extra=usage.keys)}
    with lake_client(five_machines) as client:
        team = json_of(client, "/usage.json?by=person&team=search&since=all")
        person = json_of(client, "/usage.json?by=model&person=person3&since=all")
        page = client.get("/usage?by=team&since=all").text
    assert {row["person"] for row in team["rows"]} == {"person1", "person2"}
    assert person["total"]["amount"] == of_person["person3"]
    assert 'href="/sessions?since=all&amp;team=search"' in page or "team=search" in page


def test_each_session_page_has_the_amount_of_the_lake(five_machines: Bucket) -> None:
    """A session that is opened alone shows what the whole lake counts for it: forks and copies are counted once.

    If another machine has part of it, the page says how much is counted there, as a page of several homes does.
    """
    usage = read_usage(five_machines)
    amounts = {row.keys["session"]: row.amount or 0 for row in usage.ledger.by("session")}
    tokens = {row.keys["session"]: row.tokens for row in usage.ledger.by("session")}
    with lake_client(five_machines) as client:
        listed = json_of(client, "/sessions.json?limit=500")["sessions"]
        for row in listed:
            assert (row["amount"] or 0) == amounts.get(row["session"], 0)
        for session in [
            FORK,
            *(session_id(number) for number in (1, 2, 4, 5)),
            *(row["session"] for row in listed[:4]),
        ]:
            assert (json_of(client, f"/session/{session}.json")["amount"] or 0) == amounts.get(session, 0), session
        part = json_of(client, f"/session/{session_id(3)}.json")
    assert part["tokens"] + sum(shared["tokens"] for shared in part["shared"]) == tokens[session_id(3)]


def test_a_session_on_several_machines_is_listed_once(five_machines: Bucket) -> None:
    """The list has one row with all people who pushed it, and its page shows the most complete copy."""
    with lake_client(five_machines) as client:
        rows = {row["session"]: row for row in json_of(client, "/sessions.json?limit=500")["sessions"]}
        assert rows[session_id(1)]["people"] == ["person1", "person2"]
        assert rows[session_id(3)]["people"] == ["person1", "person4"]
        assert rows[session_id(3)]["copies"] == 2
        assert "2 copies" in client.get("/sessions?person=person4").text  # two homes may be on one machine
        page = client.get(f"/session/{session_id(3)}")
        assert page.text.count("file-1") >= 1  # the half copy ends before it
        mine = json_of(client, "/sessions.json?person=person2")
        assert {row["session"] for row in mine["sessions"]} == {session_id(1), session_id(4)}
        team = json_of(client, "/sessions.json?team=platform")
        assert {row["session"] for row in team["sessions"]} == {FORK, session_id(5)}


@pytest.mark.parametrize("sort", ["amount", "turns", "agents", "duration", "title", "project"])
def test_the_list_can_be_sorted_and_filtered(five_machines: Bucket, sort: str) -> None:
    """Each order gives all sessions, and filters by title, id, project, model and time choose among them."""
    with lake_client(five_machines) as client:
        everything = json_of(client, f"/sessions.json?sort={sort}&limit=500")
        first, second = (json_of(client, f"/sessions.json?sort={sort}&limit=3&after={after}") for after in (0, 3))
        by_id = json_of(client, f"/sessions.json?sort={sort}&grep={session_id(4)[:-2]}")
        by_project = json_of(client, f"/sessions.json?sort={sort}&project=/work/other")
        by_model = json_of(client, f"/sessions.json?sort={sort}&model=no-such-model")
    assert everything["sessions"][:6] == first["sessions"] + second["sessions"]
    assert len(everything["sessions"]) == everything["total"]
    assert {row["session"] for row in by_id["sessions"]} >= {session_id(4)}
    assert {row["session"] for row in by_project["sessions"]} == {session_id(5)}
    assert by_model["total"] == 0


def test_search_finds_whole_words_and_leads_to_the_entry(five_machines: Bucket) -> None:
    """A search has the hits of `lake search`; a hit leads to its entry on the session's page."""
    with lake_client(five_machines) as client:
        hits = json_of(client, "/search.json?q=another+way")["hits"]
        assert [(hit["session"], hit["person"], hit["field"]) for hit in hits] == [(FORK, "person3", "prompt")]
        assert hits[0]["highlights"] == [[0, 7], [8, 11]]
        page = client.get("/search?q=another+way").text
        link = re.search(r'href="(/session/[^"]+)"', page)
        assert link is not None
        assert f"at=L{hits[0]['line']}" in link[1]
        assert "another way" in client.get(link[1].replace("&amp;", "&").partition("#")[0]).text
        assert json_of(client, "/search.json?q=anoth")["hits"] == []
        assert json_of(client, "/search.json?q=another+way&person=person1")["hits"] == []
        assert json_of(client, '/search.json?q="way+another"')["hits"] == []


def test_without_text_pages_say_so(tmp_path: Path) -> None:
    """With the policy metrics, the dashboard, the search and the session's page say that there is no text."""
    with lake_client(small_lake(tmp_path, Policy.METRICS, text="a private word")) as client:
        for path in ("/", "/search?q=private", "/sessions", f"/session/{session_id(1)}"):
            response = client.get(path)
            assert response.status_code == 200
            assert "no text" in response.text or "without text" in response.text, path
            assert "a private word" not in response.text


def test_redacted_sessions_are_shown_redacted(tmp_path: Path) -> None:
    """With the policy redacted, a secret is on no page, and the session's page says that it is redacted."""
    secret = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j"
    with lake_client(small_lake(tmp_path, Policy.REDACTED, text=f"the token is {secret}")) as client:
        page = client.get(f"/session/{session_id(1)}").text
        assert "the token is" in page
        assert "redacted" in page
        for path in (
            "/",
            "/search?q=token",
            "/sessions",
            f"/session/{session_id(1)}",
            f"/session/{session_id(1)}.json",
        ):
            assert secret not in client.get(path).text


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    """Markup in the names of people, teams and projects is escaped on every page."""
    bucket = small_lake(tmp_path, person=HOSTILE)
    write_teams(bucket, f"[teams]\n{json.dumps(HOSTILE)} = [{json.dumps(HOSTILE)}]\n".encode())
    with lake_client(bucket) as client:
        for path in ("/", "/sessions", "/usage?by=person,team,project", "/search?q=hello", f"/session/{session_id(1)}"):
            text = client.get(path).text
            assert "<script>alert" not in text
            assert "&lt;script&gt;alert(1)" in text, path


def test_links_lead_only_to_pages_of_a_lake(five_machines: Bucket) -> None:
    """The navigation and the session's page do not offer pages that need the homes of one machine."""
    with lake_client(five_machines) as client:
        for path in ("/", f"/session/{session_id(1)}", f"/session/{session_id(1)}/changes", "/palette"):
            text = client.get(path).text
            assert not re.search(r'href="/(calls|files|doctor|why|waste|compare|history|blocks)\b', text), path
        assert client.get("/calls").status_code == 404
        assert json_of(client, f"/session/{session_id(2)}.json")["resume"] is None


def test_a_forgotten_session_disappears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `lake forget`, an open server neither lists nor shows the session, and deletes what it had downloaded."""
    monkeypatch.setattr("threadline.lake.reader.CHECK_SECONDS", 0.0)
    bucket = small_lake(tmp_path)
    write_session(tmp_path / "home", 2, text="stays")
    push(bucket, [tmp_path / "home"])
    build_lake(bucket, jobs=1)
    with lake_client(bucket) as client:
        assert client.get(f"/session/{session_id(1)}").status_code == 200
        assert client.pool.lake is not None
        folder = client.pool.lake.folder
        forget_sources(bucket, select_sources(bucket, sessions=[session_id(1)]))
        assert client.get(f"/session/{session_id(1)}").status_code == 404
        assert json_of(client, "/sessions.json")["total"] == 1
        assert not list(folder.rglob(f"{session_id(1)}*"))
        assert client.get(f"/session/{session_id(2)}").status_code == 200
    assert not folder.exists()


def test_a_page_that_is_computed_during_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that began before a build ends with the tables of that time; then they are forgotten."""
    monkeypatch.setattr("threadline.lake.reader.CHECK_SECONDS", -1.0)
    bucket = small_lake(tmp_path)
    with LakeReader(bucket) as reader:
        state = reader.state
        assert state.sessions(LakeSessionFilter(), limit=9)[1] == 1
        write_session(tmp_path / "home", 2)
        push(bucket, [tmp_path / "home"])
        build_lake(bucket, jobs=1)
        assert reader.state.sessions(LakeSessionFilter(), limit=9)[1] == 2
        assert state.sessions(LakeSessionFilter(), limit=9)[1] == 1
        # Also what had not been read before the build.
        assert {charge.session for charge in state.usage.ledger} == {session_id(1)}
        assert state.known_sessions([session_id(1), session_id(2)]) == {session_id(1)}
        assert len(list(reader.folder.glob("commit-*"))) == 2
        del state
        assert len(list(reader.folder.glob("commit-*"))) == 1


def test_a_missing_file_of_the_tables_is_an_error_of_ours(tmp_path: Path, cli: CliRunner) -> None:
    """Pages, search and SQL say that the tables cannot be read, instead of failing."""
    bucket = small_lake(tmp_path)
    for entry in list(bucket.list("silver/texts/data")):
        bucket.delete([entry.path])
    with lake_client(bucket) as client:
        response = client.get("/search?q=hello")
    assert (response.status_code, "threadline lake build" in response.text) == (503, True)
    for words in (["search", bucket.uri, "hello"], ["sql", bucket.uri, "SELECT count(*) FROM texts"]):
        result = cli("lake", *words)
        assert (result.code, "Traceback" in result.err) == (2, False)
        assert "cannot be read: IO Error" in " ".join(result.err.split())


def test_the_list_reads_annotations_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sessions a page lists, the file of annotations is not read for each of them."""
    bucket = small_lake(tmp_path)
    for number in range(2, 8):
        write_session(tmp_path / "home", number)
    push(bucket, [tmp_path / "home"])
    build_lake(bucket, jobs=1)
    reads: list[None] = []

    def read() -> Annotations:
        reads.append(None)
        return Annotations()

    monkeypatch.setattr("threadline.web.pages.lake.read_or_none", read)
    with lake_client(bucket) as client:
        assert json_of(client, "/sessions.json")["total"] == 7
        assert client.get("/sessions").status_code == 200
    assert len(reads) <= 4


def test_a_lake_that_is_not_built_says_what_to_do(tmp_path: Path) -> None:
    """Before the first build, every page names the command."""
    bucket = Bucket(str(tmp_path / "lake"))
    create_lake(bucket, Policy.FULL)
    with lake_client(bucket) as client:
        response = client.get("/")
    assert response.status_code == 404
    assert "threadline lake build" in response.text


@pytest.mark.parametrize(
    "path", ["../../escape.jsonl", "/etc/passwd", "projects/../../x", "projects//x", "a/./b", "\0"]
)
def test_a_path_that_leads_out_of_the_home_is_refused(tmp_path: Path, path: str) -> None:
    """A machine cannot make others write outside of their folder: neither a build nor a page follows such a path."""
    version = FileVersion("f", "s", "session", "home", path, "project", 0, "", 0, (0, 0), ())
    with pytest.raises(Unreadable, match="leads out of its home"):
        version.path_below(tmp_path)


def test_names_of_sessions_may_be_shortened(five_machines: Bucket) -> None:
    """The start of an id opens the session, if no other id starts like it."""
    with LakeReader(five_machines) as reader:
        assert reader.fetch(FORK[:8]) == FORK
        with pytest.raises(NotFound, match="session ids start with"):
            reader.fetch(session_id(1)[:8])
        with pytest.raises(NotFound, match="has no session"):
            reader.fetch("0000")


def test_a_session_is_downloaded_once_and_others_can_be_read_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of a page asks for its session. A download that takes long does not stop the other pages."""
    bucket = small_lake(tmp_path)
    write_session(tmp_path / "home", 2)
    push(bucket, [tmp_path / "home"])
    build_lake(bucket, jobs=1)
    objects: list[str] = []
    is_allowed = Event()
    get = Bucket.get

    def slow_get(self: Bucket, path: str) -> bytes:
        if path.startswith("bronze/data/"):
            objects.append(path)
            assert is_allowed.wait(20)
        return get(self, path)

    with LakeReader(bucket) as reader, ThreadPoolExecutor(1) as pool:
        reader.fetch(session_id(1))
        homes = reader.homes()
        monkeypatch.setattr(Bucket, "get", slow_get)
        fetching = pool.submit(reader.fetch, session_id(2))
        assert reader.fetch(session_id(1)) == session_id(1)
        assert reader.state.sessions(LakeSessionFilter(), limit=9)[1] == 2
        assert reader.homes() == homes
        is_allowed.set()
        assert fetching.result() == session_id(2)
        assert reader.fetch(session_id(2)) == session_id(2)
        assert len(objects) == 1


def test_downloads_run_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of different sessions, and for one session, those of the sessions that share messages with it."""
    bucket = small_lake(tmp_path)
    original = write_session(tmp_path / "home", 2)
    push(bucket, [tmp_path / "home"])
    write_fork(tmp_path / "other", original)
    push(bucket, [tmp_path / "other"], 2)
    build_lake(bucket, jobs=1)
    at_once = Barrier(3)
    get = Bucket.get

    def get_together(self: Bucket, path: str) -> bytes:
        if path.startswith("bronze/data/"):
            at_once.wait(20)
        return get(self, path)

    with LakeReader(bucket) as reader, ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(Bucket, "get", get_together)
        names = [session_id(1), session_id(2)]
        assert list(pool.map(reader.fetch, names)) == names
        assert len(reader.homes()) == 2


def test_sessions_of_a_lake_can_be_annotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before they are downloaded. A session that the lake does not have is not found."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with lake_client(small_lake(tmp_path)) as client:
        assert post(client, "/annotate.json", session=session_id(1), starred="1").status_code == 200
        assert post(client, "/annotate.json", session=session_id(2), starred="1").status_code == 404
    assert list(read_annotations().sessions) == [session_id(1)]
