"""What goes wrong with a lake: one sentence that says what to do, exit code 2, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import msgspec
import pytest
import zstandard
from tests.cli.runner import SOURCE, CliResult, CliRunner
from tests.lake.machines import push, session_id, write_session
from tests.lake.test_build import snapshot
from tests.lake.test_push import contents
from tests.loopback_s3 import loopback_s3

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.errors import Unreadable
from threadline.lake import build_lake, read_commit, read_usage
from threadline.storage import Bucket


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs the command on a machine of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("THREADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path / "keep"))
    return CliRunner(capfdbinary)


@pytest.fixture
def lake(cli: CliRunner, tmp_path: Path) -> Bucket:
    """A lake with two sessions of a home."""
    bucket = Bucket(str(tmp_path / "lake"))
    for number in (1, 2):
        write_session(tmp_path / "home", number)
    assert cli("lake", "init", bucket.uri, "--policy", "full").code == 0
    assert cli("lake", "push", bucket.uri, "--accept", "full", "--home", tmp_path / "home").code == 0
    return bucket


def assert_refused(result: CliResult, *sentences: str) -> None:
    """Check that a command failed with exit code 2, and with these words instead of a traceback."""
    assert (result.code, "Traceback" in result.err) == (2, False), result.err
    for sentence in sentences:
        assert sentence in " ".join(result.err.split())  # lines may wrap


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """An S3 service that refuses everything: set the code and the status that it answers."""
    answer: dict[str, Any] = {}

    class Service(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = f"<Error><Code>{answer['code']}</Code><Message>no</Message></Error>".encode()
            self.send_response(answer["status"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = _refuse  # noqa: N815 - the names of the server's methods

        def log_message(self, *_arguments: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield answer
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((403, "AccessDenied"), "Access was refused. Check AWS_ACCESS_KEY_ID"),
        ((403, "InvalidAccessKeyId"), "Access was refused. Check AWS_ACCESS_KEY_ID"),
        ((403, "RequestTimeTooSkewed"), "The clock of this machine differs from the service's. Set it"),
        ((404, "NoSuchBucket"), "There is no such bucket. Check the URI"),
        ((500, "InternalError"), "The service fails. Try again later."),
        ((503, "SlowDown"), "The service fails. Try again later."),
    ],
)
def test_a_service_that_refuses(
    cli: CliRunner, answers: dict[str, Any], tmp_path: Path, answer: tuple[int, str], sentence: str
) -> None:
    """No access, a wrong key, a wrong clock, a wrong bucket, failures: the error says which, and what to do."""
    write_session(tmp_path / "home", 1)
    answers["status"], answers["code"] = answer
    uri = "s3://team-bucket/lake"
    for words in (["init"], ["push", "--home", str(tmp_path / "home")], ["build"], ["usage"], ["status"]):
        assert_refused(cli("lake", words[0], uri, *words[1:]), "s3://team-bucket/lake", sentence)


def test_an_object_that_is_not_utf8(cli: CliRunner, lake: Bucket) -> None:
    """A damaged text in the lake's own object is reported like any other damage."""
    damaged = lake.get("lake.json").replace(b'"full"', b'"\xff"')
    lake.put("lake.json", damaged)
    assert_refused(cli("lake", "status", lake.uri), "is damaged", "Restore it from a backup")


def test_a_file_of_the_tables_that_is_missing(cli: CliRunner, lake: Bucket) -> None:
    """Queries name the command that rebuilds the tables; after it, they work."""
    assert cli("lake", "build", lake.uri).code == 0
    for entry in list(lake.list("silver/sightings/data")):
        lake.delete([entry.path])
    sentence = f"threadline lake build {lake.name} --rebuild"
    assert_refused(cli("lake", "usage", lake.uri), "A file of the tables is missing", sentence)
    assert cli("lake", "build", lake.uri, "--rebuild").code == 0
    assert cli("lake", "usage", lake.uri).code == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of moto and boto
def test_a_service_that_answers_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that takes five seconds for an answer is waited for: pyarrow alone gives up after three."""
    write_session(tmp_path / "home", 1)
    with loopback_s3(monkeypatch, "team-bucket"):
        bucket = Bucket("s3://team-bucket/lake")
        push(bucket, [tmp_path / "home"], 1)
        build_lake(bucket, jobs=1)
        with _slow_proxy(os.environ["AWS_ENDPOINT_URL"], seconds=5, of="/silver/sightings/data/") as address:
            monkeypatch.setenv("AWS_ENDPOINT_URL", address)
            assert read_usage(Bucket(bucket.uri)).ledger.total.charges == 4


@contextmanager
def _slow_proxy(endpoint: str, *, seconds: float, of: str) -> Iterator[str]:
    """A proxy on loopback that answers requests for some paths late."""

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            if of in self.path and self.command == "GET":
                time.sleep(seconds)
            with httpx.Client(base_url=endpoint) as client:
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                response = client.request(self.command, self.path, headers=headers)
            self.send_response(response.status_code)
            for name, value in response.headers.items():
                if name.lower() not in {"connection", "transfer-encoding", "date", "server"}:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.content)

        do_GET = do_HEAD = _forward  # noqa: N815 - the names of the server's methods

        def log_message(self, *_arguments: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of moto and boto
def test_a_bucket_that_disappears_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If pyarrow, which reads and writes the tables, cannot reach the service, that is an error of ours, too."""
    write_session(tmp_path / "home", 1)
    with loopback_s3(monkeypatch, "team-bucket"):
        bucket = Bucket("s3://team-bucket/lake")
        push(bucket, [tmp_path / "home"], 1)
        build_lake(bucket, jobs=1)
        properties = {**bucket.io_properties(), "s3.endpoint": "http://127.0.0.1:9"}
        monkeypatch.setattr(Bucket, "io_properties", lambda _bucket: properties)
        for use in (read_usage, lambda bucket: build_lake(bucket, jobs=1, rebuild=True)):
            with pytest.raises(Unreadable, match="The service cannot be reached"):
                use(bucket)


def test_a_push_that_is_killed_continues(cli: CliRunner, lake: Bucket, tmp_path: Path) -> None:
    """A push is killed between two uploads: what was in the lake stays readable, and the next push adds the rest."""
    home = tmp_path / "home"
    for number in range(3, 7):
        write_session(home, number)
    before = contents(lake)
    script = (
        "import os, sys; from threadline.storage import Bucket; from threadline.cli import main;"
        "create, calls = Bucket.create, []\n"
        "def die(self, path, data):\n"
        "    calls.append(path)\n"
        "    if len(calls) == 3: os.kill(os.getpid(), 9)\n"
        "    return create(self, path, data)\n"
        "Bucket.create = die; main()"
    )
    words = ["lake", "push", lake.uri, "--home", str(home)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    result = subprocess.run([sys.executable, "-c", script, *words], env=environment, check=False)  # noqa: S603 - ours
    assert result.returncode == -signal.SIGKILL
    assert contents(lake) == before
    assert cli(*words).code == 0
    assert contents(lake) == {f"projects/-work-app/{path.name}": path.read_bytes() for path in home.rglob("*.jsonl")}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_build_that_is_interrupted(cli: CliRunner, lake: Bucket) -> None:
    """Ctrl-C, also while workers start: exit code 130, no traceback of any process, and the next build does it all."""
    del cli
    script = (
        "import sys; from threadline.lake import tasks; from threadline.cli import main\n"
        "tasks.TASK_BYTES, tasks.MIN_PARALLEL_BYTES = 1, 0\n"
        "from multiprocessing.context import SpawnProcess; start = SpawnProcess.start\n"
        "def report(self):\n"
        "    start(self)\n"
        "    print('started', flush=True)\n"
        "SpawnProcess.start = report; main()"
    )
    command = [sys.executable, "-c", script, "lake", "build", lake.uri]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    process = subprocess.Popen(  # noqa: S603 - ours
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"started\n"] * 2
    time.sleep(0.2)  # the workers import
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")
    assert read_commit(lake) is None
    assert build_lake(lake, jobs=1).sessions == 2


def test_a_damaged_object(cli: CliRunner, lake: Bucket, tmp_path: Path) -> None:
    """A build names the damaged object and the repair, changes nothing, and works after the repair."""
    entry = next(iter(lake.list("bronze/data")))
    lake.put(entry.path, lake.get(entry.path)[:-9])
    assert_refused(cli("lake", "build", lake.uri), entry.path, "threadline lake push --repair")
    assert read_commit(lake) is None
    assert cli("lake", "push", lake.uri, "--repair", "--home", tmp_path / "home").code == 0
    assert cli("lake", "build", lake.uri, "--json").json["sessions"] == 2


def test_a_damaged_pack_of_the_keep(cli: CliRunner, lake: Bucket, tmp_path: Path) -> None:
    """A session that only a damaged pack of the keep has is not pushed, and the exit code says so; the others are."""
    home = tmp_path / "home"
    path = write_session(home, 3)
    assert cli("keep", "--home", home).code == 0
    path.unlink()
    write_session(home, 4)
    (pack,) = (tmp_path / "keep/packs").glob("*.zst")
    pack.chmod(0o600)
    data = bytearray(pack.read_bytes())
    data[len(data) // 3] ^= 0xFF
    pack.write_bytes(data)
    result = cli("lake", "push", lake.uri, "--home", home)
    assert_refused(result, f"{session_id(3)}.jsonl could not be read from the keep", "`threadline keep verify`")
    assert {source.rpartition("/")[2] for source in contents(lake)} == {
        f"{session_id(number)}.jsonl" for number in (1, 2, 4)
    }


def test_a_keep_of_a_newer_version(cli: CliRunner, lake: Bucket, tmp_path: Path) -> None:
    """Sessions of a keep that a newer version wrote are not pushed, with exit code 2; the keep is untouched."""
    home = tmp_path / "home"
    assert cli("keep", "--home", home).code == 0
    file = tmp_path / "keep/keep.json"
    info = msgspec.json.decode(file.read_bytes())
    file.chmod(0o600)
    file.write_bytes(msgspec.json.encode({**info, "version": 99, "check": "0" * 64}))
    write_session(home, 3)
    before = file.read_bytes()
    assert_refused(cli("lake", "push", lake.uri, "--home", home), "has a newer format (99). Update threadline.")
    assert file.read_bytes() == before
    assert len(contents(lake)) == 3


@pytest.mark.parametrize(
    ("start", "commands"),
    [
        ("lake.json", ["push", "build", "usage", "status"]),
        ("bronze/batches", ["push", "build", "status"]),
        ("silver/commits", ["build", "usage", "status"]),
    ],
)
def test_a_lake_of_a_newer_version(
    cli: CliRunner, lake: Bucket, tmp_path: Path, start: str, commands: list[str]
) -> None:
    """An older threadline neither reads nor changes what a newer one wrote."""
    if "usage" in commands:
        assert cli("lake", "build", lake.uri).code == 0
    path = next(entry.path for entry in lake.list("") if entry.path.startswith(start))
    data = lake.get(path)
    is_packed = path.endswith(".zst")
    value = msgspec.json.decode(zstandard.ZstdDecompressor().decompress(data) if is_packed else data)
    encoded = msgspec.json.encode({**value, "version": 99})
    lake.put(path, zstandard.ZstdCompressor().compress(encoded) if is_packed else encoded)
    before = {entry.path: lake.get(entry.path) for entry in lake.list("")}
    write_session(tmp_path / "home", 3)
    for command in commands:
        words = ["--home", str(tmp_path / "home")] if command == "push" else []
        assert_refused(cli("lake", command, lake.uri, *words), "Update threadline.")
    assert {entry.path: lake.get(entry.path) for entry in lake.list("")} == before


def test_a_changed_policy(cli: CliRunner, lake: Bucket, tmp_path: Path) -> None:
    """After the policy changed, a push asks again and uploads nothing; what was pushed stays."""
    assert cli("lake", "init", lake.uri, "--policy", "metrics", "--change-policy").code == 0
    write_session(tmp_path / "home", 3)
    before = contents(lake)
    result = cli("lake", "push", lake.uri, "--home", tmp_path / "home")
    assert_refused(result, "has changed its policy from full to metrics", "--accept metrics")
    assert contents(lake) == before


def test_tables_of_another_version(cli: CliRunner, lake: Bucket, tmp_path: Path) -> None:
    """A build by another version of threadline changes nothing and names the command that rebuilds; queries work."""
    assert cli("lake", "build", lake.uri).code == 0
    (entry,) = lake.list("silver/commits")
    lake.put(entry.path, msgspec.json.encode({**msgspec.json.decode(lake.get(entry.path)), "parser_version": "0.0.9"}))
    before = snapshot(lake)
    write_session(tmp_path / "home", 3)
    assert cli("lake", "push", lake.uri, "--home", tmp_path / "home").code == 0
    sentence = f"threadline lake build {lake.name} --rebuild"
    assert_refused(cli("lake", "build", lake.uri), "built by another version of threadline (0.0.9;", sentence)
    assert snapshot(lake) == before
    assert cli("lake", "usage", lake.uri, "--json").code == 0
    assert cli("lake", "build", lake.uri, "--rebuild").code == 0
    assert len(snapshot(lake)["sessions"]) == 3
    assert cli("lake", "build", lake.uri).code == 0


@pytest.mark.parametrize(
    "words",
    [
        *(["push"], ["build"], ["usage"], ["sql", "SELECT 1 FROM entries"], ["search", "word"], ["status"]),
        *(["teams"], ["teams", "teams.toml"], ["forget", "--person", "alice", "--yes"], ["clickhouse", "--sql"]),
    ],
)
def test_a_folder_that_does_not_exist(
    cli: CliRunner, tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that was misspelt is no lake: every command says so, and creates nothing."""
    monkeypatch.chdir(tmp_path)
    write_session(tmp_path / "home", 1)
    (tmp_path / "teams.toml").write_text('[teams]\nsearch = ["alice"]\n')
    homes = ["--home", str(tmp_path / "home")] if words[0] == "push" else []
    result = cli("lake", words[0], tmp_path / "lakee", *words[1:], *homes)
    assert_refused(result, "There is no lake at", "Create one: threadline lake init")
    assert not (tmp_path / "lakee").exists()


def test_a_file_instead_of_a_folder(cli: CliRunner, tmp_path: Path) -> None:
    """The error says that it is a file."""
    (tmp_path / "lake").touch()
    for command in ("init", "build", "status"):
        assert_refused(cli("lake", command, tmp_path / "lake"), "is a file. Use a folder.")


_NOT_UTF8 = "caf\udce9"  # what the shell's $'caf\xe9' is to Python


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["push", "LAKE", "--person", _NOT_UTF8],
            r"The name 'caf\xe9' is not valid UTF-8. Use another: --person NAME.",
        ),
        (["push", "LAKE", "--person", "a\x1b[31m"], r"The name 'a\x1b[31m' contains control characters."),
        (["init", f"LAKE-{_NOT_UTF8}"], r"caf\xe9' is not valid UTF-8. Use a folder or bucket whose name is."),
        (["build", f"s3://{_NOT_UTF8}/lake"], r"'s3://caf\xe9/lake' is not valid UTF-8."),
        (["search", "LAKE", _NOT_UTF8], "The query is not valid UTF-8."),
        (["search", "LAKE", "x", "--person", _NOT_UTF8], "The query is not valid UTF-8."),
        (["sql", "LAKE", f"SELECT '{_NOT_UTF8}'"], "The query is not valid UTF-8."),
        (["sql", "LAKE", f"SELECT '{_NOT_UTF8}'", "--engine", "sail"], "The query is not valid UTF-8."),
    ],
)
def test_an_argument_that_is_not_text(
    cli: CliRunner, lake: Bucket, tmp_path: Path, words: list[str], sentence: str
) -> None:
    """Bytes of an argument that are not UTF-8, or control the terminal, are refused; the lake stays as it is."""
    assert cli("lake", "build", lake.uri).code == 0
    before = {entry.path: entry.size for entry in lake.list("")}
    homes = ["--home", str(tmp_path / "home")] if words[0] == "push" else []
    write_session(tmp_path / "home", 3)
    arguments = [word.replace("LAKE", str(lake.folder)) for word in words]
    assert_refused(cli("lake", *arguments, *homes), sentence)
    assert {entry.path: entry.size for entry in lake.list("")} == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("s3://[lake", "'s3://[lake' is not a valid URI. Use s3://bucket/prefix."),
        ("//[lake/", "There is no lake at"),
        ("file://", "'file://' names no folder or bucket."),
        ("s3:///lake", "'s3:///lake' names no folder or bucket."),
        ("s3://bucket/lake?1", "contains # or ?, which have a meaning in URIs. Use one without them."),
    ],
)
def test_a_name_that_is_no_uri(cli: CliRunner, name: str, sentence: str) -> None:
    """A name that cannot be a URI, or would be another one, is refused in a sentence."""
    assert_refused(cli("lake", "status", name), sentence)


@pytest.mark.parametrize("sign", "#?")
def test_a_folder_with_a_sign_of_uris(cli: CliRunner, tmp_path: Path, sign: str) -> None:
    """What follows the sign would not be part of the URI: tables would be written to another folder."""
    folder = tmp_path / f"lake{sign}1"
    assert_refused(cli("lake", "init", folder, "--policy", "full"), "contains # or ?, which have a meaning in URIs.")
    assert not list(tmp_path.iterdir())


def test_sql_of_a_lake_names_the_lake(cli: CliRunner, lake: Bucket) -> None:
    """A statement that would change something, or read a file, is refused; the message does not name the index."""
    assert cli("lake", "build", lake.uri).code == 0
    assert_refused(
        cli("lake", "sql", lake.uri, "DROP TABLE charges"),
        "The lake is read-only (DROP). Only SELECT statements are allowed.",
    )
    assert_refused(cli("lake", "sql", lake.uri, "SELECT * FROM read_csv('/etc/passwd')"), "Only the lake can be read")
    for statement in (
        "DROP TABLE charges",
        "/* all */ -- now\ndrop table charges",
        "INSERT INTO charges SELECT 1",
        "WITH rows AS (SELECT 1) INSERT /* new */ INTO charges SELECT * FROM rows",
        "FROM charges INSERT\nOVERWRITE charges SELECT *",
    ):
        assert_refused(cli("lake", "sql", lake.uri, statement, "--engine", "sail"), "The lake is read-only (")
    assert cli("lake", "sql", lake.uri, "SELECT 1 WHERE false").err == "threadline: No rows.\n"


def test_messages_name_a_folder_as_people_do(cli: CliRunner, tmp_path: Path) -> None:
    """A path stays a path in messages and in the commands that they suggest."""
    result = cli("lake", "usage", tmp_path / "lake")
    sentence = f"There is no lake at '{tmp_path}/lake'. Create one: threadline lake init {tmp_path}/lake"
    assert_refused(result, sentence)


def test_a_person_in_the_environment_that_is_not_text(
    cli: CliRunner, lake: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default of --person is checked as well, and a name in another script is fine."""
    words = ["push", lake.uri, "--home", str(tmp_path / "home")]
    monkeypatch.setenv("THREADLINE_PERSON", _NOT_UTF8)
    assert_refused(cli("lake", *words), "is not valid UTF-8. Use another: --person NAME.")
    name = "\u5c71\u7530\u3000\u592a\u90ce"
    monkeypatch.setenv("THREADLINE_PERSON", name)
    write_session(tmp_path / "home", 3)
    assert cli("lake", *words, "--json").json["person"] == name


@pytest.mark.slow
def test_spark_that_does_not_answer(cli: CliRunner, lake: Bucket) -> None:
    """A wrong address of Spark is an error at once; the tables stay as they are."""
    pytest.importorskip("pyspark", reason="needs the extra lake-test")
    words = [sys.executable, "-m", "threadline", "lake", "build", lake.uri, "--engine"]
    del cli
    for engine, sentence in (("sc://127.0.0.1:1", "Nothing answers at"), ("sc://", "Use sc://HOST:PORT")):
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        result = subprocess.run([*words, engine], env=environment, capture_output=True, check=False)  # noqa: S603 - ours
        assert_refused(CliResult(result.returncode, result.stdout, result.stderr), sentence)
    assert read_commit(lake) is None
