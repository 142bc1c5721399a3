"""Homes in S3 buckets: the same answers as from folders, and only what changed is fetched."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.runner import SOURCE, CliRunner
from tests.find.test_packed_homes import MTIME, SESSION, TRANSCRIPT, pack
from tests.interfaces.interfaces import ask_all
from tests.loopback_s3 import loopback_s3
from tests.transcripts import prompt, reply, transcript, write

import threadline
from threadline.errors import Missing, NotFound, Unreadable
from threadline.find import bucket_homes, homes, look
from threadline.model.homes import ARCHIVE_SOURCE
from threadline.storage import Bucket, StoredObject

pytest.importorskip("obstore", reason="needs the extra lake")

pytestmark = pytest.mark.filterwarnings("ignore")  # of moto and boto
BUCKET = "backups"
URI = f"s3://{BUCKET}/laptop/.claude"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, and no settings of the user."""
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path / "cache"


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> CliRunner:
    """Run the command."""
    return CliRunner(capfdbinary)


@pytest.fixture
def client(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of the bucket."""
    del cache
    with loopback_s3(monkeypatch, BUCKET) as client:
        yield client


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session and credentials."""
    home = tmp_path / "home"
    write(home / TRANSCRIPT, *transcript(prompt("Sort the shelf"), reply("Sorted.", output=7)))
    (home / ".credentials.json").write_text('{"token": "xyzzy"}')
    for path in home.rglob("*"):
        os.utime(path, (MTIME, MTIME))
    return home


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of objects that were fetched."""
    paths: list[str] = []
    original = Bucket.fetch

    def fetch(bucket: Bucket, path: str) -> tuple[StoredObject, Iterator[bytes]]:
        paths.append(path)
        return original(bucket, path)

    monkeypatch.setattr(Bucket, "fetch", fetch)
    return paths


def upload(client: Any, home: Path, prefix: str = "laptop/.claude") -> None:
    """Upload a home."""
    for path in filter(Path.is_file, home.rglob("*")):
        key = f"{prefix}/{path.relative_to(home).as_posix()}"
        client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())


@pytest.mark.slow
@pytest.mark.smoke
def test_only_what_changed_is_fetched(home: Path, client: Any, fetched: list[str], cli: CliRunner) -> None:
    """The first command fetches the home, the next one nothing, and later ones what changed. What is gone is gone."""
    upload(client, home)
    (found,) = homes(URI)
    assert (found.source, fetched) == (ARCHIVE_SOURCE, [TRANSCRIPT])
    assert (found.path / TRANSCRIPT).read_bytes() == (home / TRANSCRIPT).read_bytes()
    assert (found.path / ".credentials.json").read_bytes() == b""
    fetched.clear()
    with threadline.open(URI) as archive:
        assert [session.title for session in archive.sessions()] == ["Sort the shelf"]
        assert archive.ledger().total == threadline.ledger(home).total
    assert cli("list", "--home", URI).code == 0
    assert fetched == []
    write(home / TRANSCRIPT, *transcript(prompt("Sort the shelf again"), reply("Sorted.", output=7)))
    upload(client, home)
    other = TRANSCRIPT.replace("0001.jsonl", "0002.jsonl")
    client.put_object(Bucket=BUCKET, Key=f"laptop/.claude/{other}", Body=(home / TRANSCRIPT).read_bytes())
    assert "Sort the shelf again" in cli("list", "--home", URI).out
    assert fetched == [TRANSCRIPT, other]
    client.delete_object(Bucket=BUCKET, Key=f"laptop/.claude/{other}")
    assert [transcript.session for transcript in look(URI).transcripts] == [SESSION]


@pytest.mark.slow
def test_answers_equal_those_of_the_folder(small_home: Path, client: Any) -> None:
    """Every interface answers every question about a home in a bucket as about the folder that was uploaded."""
    times = [path for path in small_home.rglob("*") if path.is_file()]
    upload(client, small_home)
    (found,) = homes(URI)
    for path in times:  # a bucket has the time of the upload
        status = path.stat()
        os.utime(found.path / path.relative_to(small_home), ns=(status.st_atime_ns, status.st_mtime_ns))
    expected = ask_all(small_home)
    for interface, answers in ask_all(URI).items():  # type: ignore[arg-type] # every interface takes a URI, too
        for question, answer in answers.items():
            text = repr(answer).replace(str(found.path), str(small_home)).replace("'archive'", "'option'")
            assert text == repr(expected[interface][question]), (interface, question)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["b.tar.zst", "b.zip"])
def test_archive_in_a_bucket(name: str, home: Path, client: Any, tmp_path: Path, fetched: list[str]) -> None:
    """A URI may name an archive. It is fetched once, and again after it was replaced."""
    uri = f"s3://{BUCKET}/old/{name}"
    for title in ("Sort the shelf", "Sort the books"):
        write(home / TRANSCRIPT, *transcript(prompt(title), reply("Sorted.", output=7)))
        client.put_object(Bucket=BUCKET, Key=f"old/{name}", Body=pack(home, tmp_path / name).read_bytes())
        for _ in range(2):
            with threadline.open(uri) as archive:
                assert [session.title for session in archive.sessions()] == [title]
    assert fetched == [name, name]


@pytest.mark.slow
def test_which_objects_are_homes(home: Path, client: Any, fetched: list[str]) -> None:
    """A prefix may contain several homes; other objects are not fetched. `projects` means the home that contains it."""
    upload(client, home, "a/.claude")
    upload(client, home, "b/.claude")
    client.put_object(Bucket=BUCKET, Key="a/video.mp4", Body=b"x" * 1000)
    client.put_object(Bucket=BUCKET, Key="a/.claude/projects/", Body=b"")  # a folder, as the console creates it
    assert [home.path.parent.name for home in homes(f"s3://{BUCKET}")] == ["a", "b"]
    assert [home.path.parent.name for home in homes(f"s3://{BUCKET}/")] == ["a", "b"]
    assert len(fetched) == 2
    assert len(look(Path(f"s3://{BUCKET}/a/.claude/projects")).transcripts) == 1
    client.put_object(Bucket=BUCKET, Key=f"c/.claude/projects/-work\\app/{SESSION}.jsonl", Body=b"")
    upload(client, home, "c/.claude")
    problems = look(f"s3://{BUCKET}/c").problems
    assert [problem.message for problem in problems] == ["its name cannot be a path"]


@pytest.mark.slow
def test_secrets_are_not_fetched(client: Any, home: Path, fetched: list[str]) -> None:
    """The path below a home decides what is secret, wherever in a bucket the home is. Nothing secret is fetched."""
    (home / "security_state.json").write_text("{}")
    memory = Path(TRANSCRIPT).parent / "memory/security_notes.md"
    (home / memory).parent.mkdir()
    (home / memory).write_text("Rotate keys every month.")
    for prefix in ("projects/laptop", "ann/.claude"):
        upload(client, home, prefix)
    for uri in (f"s3://{BUCKET}/projects/laptop", f"s3://{BUCKET}/ann", f"s3://{BUCKET}"):
        fetched.clear()
        found = homes(uri)
        assert {Path(path).name for path in fetched} == {Path(TRANSCRIPT).name, "security_notes.md"}
        for path in (home.path for home in found):
            assert [(path / name).read_bytes() for name in (".credentials.json", "security_state.json")] == [b"", b""]
            assert (path / memory).read_text() == "Rotate keys every month."
        fetched.clear()
        assert (homes(uri), fetched) == (found, [])


@pytest.mark.slow
def test_what_cannot_be_read_is_an_error(client: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong buckets and prefixes, too many objects and too little space are sentences that say what to do."""
    client.put_object(Bucket=BUCKET, Key="photos/cat.jpg", Body=b"x")
    upload(client, home)
    for uri, kind, message in (
        ("s3://no-such-bucket/home", Unreadable, "There is no such bucket. Check the URI and AWS_ENDPOINT_URL"),
        (f"s3://{BUCKET}/nowhere", NotFound, "There is nothing at 's3://backups/nowhere'. Name the prefix of a home"),
        (f"s3://{BUCKET}/photos", NotFound, "contains nothing that Claude Code writes. Name the prefix that contains"),
        (f"s3://{BUCKET}/photos/cat.jpg", Unreadable, "is not an archive that threadline reads"),
        ("s3://", NotFound, "There is no directory"),
    ):
        with pytest.raises(kind, match=message):
            homes(uri)
    with monkeypatch.context() as patch:
        patch.setattr(bucket_homes, "MAX_FILES", 1)
        with pytest.raises(Unreadable, match=r"more than 1 objects\. Name a longer prefix"):
            homes(URI)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _folder: SimpleNamespace(free=1000))
        with pytest.raises(Unreadable, match="Free some space, or set THREADLINE_CACHE"):
            homes(URI)
    client.put_object(Bucket=BUCKET, Key="laptop/.claude/a//b", Body=b"x")
    with pytest.raises(Unreadable, match="Rename the object, or use a longer prefix"):
        homes(URI)


@pytest.mark.slow
def test_an_interrupted_fetch_is_continued(
    client: Any, home: Path, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error, what was fetched before is not fetched again."""
    write(home / "projects/-work-app/zz.jsonl", *transcript(prompt("last")))
    upload(client, home)
    counting = Bucket.fetch

    def fail(bucket: Bucket, path: str) -> tuple[StoredObject, Iterator[bytes]]:
        if path.endswith("zz.jsonl"):
            raise Unreadable("the network is down")
        return counting(bucket, path)

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "fetch", fail)
        with pytest.raises(Unreadable, match="the network is down"):
            homes(URI)
    fetched.clear()
    assert len(look(URI).transcripts) == 2
    assert fetched == ["projects/-work-app/zz.jsonl"]


@pytest.mark.slow
def test_two_at_once(client: Any, home: Path, fetched: list[str]) -> None:
    """Of several threads or processes, one fetches, and the others wait for it."""
    upload(client, home)
    with ThreadPoolExecutor(4) as pool:
        assert len({found[0].path for found in pool.map(homes, [URI] * 4)}) == 1
    assert fetched == [TRANSCRIPT]


class _RefusingHandler(BaseHTTPRequestHandler):
    """Refuses every request as S3 does."""

    authorization: str = ""

    def do_GET(self) -> None:
        type(self).authorization = self.headers.get("Authorization", "")
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


def test_refused_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CliRunner) -> None:
    """Refused access is an error that says what to check. Keys come from the profile of the AWS command line."""
    (tmp_path / "credentials").write_text("[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = secret\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _RefusingHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        (tmp_path / "config").write_text(f"[profile work]\nregion = eu-west-1\nendpoint_url = {endpoint}\n")
        monkeypatch.setenv("AWS_PROFILE", "work")
        result = cli("list", "--home", URI)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (result.code, result.out) == (2, "")
    assert "Access was refused. Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the permissions" in result.err
    assert "AKIAWORK/" in _RefusingHandler.authorization
    assert "/eu-west-1/s3/" in _RefusingHandler.authorization


def test_service_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is not there is an error that says what to check."""
    for name, value in (("ENDPOINT_URL", "http://127.0.0.1:9"), ("ACCESS_KEY_ID", "a"), ("SECRET_ACCESS_KEY", "b")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with pytest.raises(Unreadable, match=r"cannot be reached\. Check AWS_ENDPOINT_URL and the network"):
        homes(URI)


def test_missing_extra(monkeypatch: pytest.MonkeyPatch, cli: CliRunner) -> None:
    """Without obstore, the error has the command that installs it into this environment."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Missing, match=r"pip install .*\[lake\]'"):
        homes(URI)
    result = cli("list", "--home", URI)
    assert result.code == 2
    assert "obstore is not installed. Run:" in result.err


def test_the_storage_is_not_loaded_for_folders(home: Path) -> None:
    """Reading a folder loads no code for buckets or the network."""
    code = (
        "import sys, threadline; threadline.open(sys.argv[1]).sessions();"
        "sys.exit(any(name in sys.modules for name in ('threadline.storage', 'obstore', 'concurrent.futures.thread')))"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    subprocess.run([sys.executable, "-c", code, str(home)], env=environment, check=True)  # noqa: S603 - ours
