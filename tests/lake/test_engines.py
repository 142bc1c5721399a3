"""A lake in loopback S3, built on Sail: the same rows as in a folder, built on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.runner import SOURCE
from tests.lake.machines import make_homes, push, session_id, write_session
from tests.lake.test_build import assert_equal_usage, snapshot
from tests.loopback_s3 import loopback_s3
from tests.redact.test_oracle import findings, scanner

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.errors import Unreadable
from threadline.lake import Policy, build_lake, create_lake, forget_sources, select_sources
from threadline.storage import Bucket

pytestmark = pytest.mark.slow


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a bucket on loopback."""
    with loopback_s3(monkeypatch, "team-bucket"):
        yield "s3://team-bucket/lake"


@pytest.mark.filterwarnings("ignore")  # of moto, boto and pyspark
def test_s3_and_sail_give_the_same_rows(tmp_path: Path, s3: str, demo_home: Path) -> None:
    """Five machines push to S3, and Sail builds: the tables equal those in a folder, and usage that of one machine."""
    pytest.importorskip("pysail", reason="needs the extra lake-test")
    homes = make_homes(tmp_path / "homes", demo_home)
    lakes = [Bucket(s3), Bucket(str(tmp_path / "lake"))]
    for lake in lakes:
        for number, home in enumerate(homes, 1):
            push(lake, [home], number)
    # In a process of its own: pyspark takes a worker of the test run for a doctest.
    command = [sys.executable, "-m", "threadline", "lake", "build", s3, "--engine", "sail"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": SOURCE}, check=True, capture_output=True)  # noqa: S603 - ours
    build_lake(lakes[1], jobs=1)
    assert snapshot(lakes[0]) == snapshot(lakes[1])
    assert_equal_usage(lakes[0], homes)
    forget_sources(lakes[0], select_sources(lakes[0], sessions=[session_id(4)]))
    assert not any(session_id(4).encode() in lakes[0].get(entry.path) for entry in lakes[0].list("silver"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "command",
    [
        ["search", "LAKE", "hello"],
        ["sql", "LAKE", "SELECT timestamp, hour(timestamp) AS hour FROM texts ORDER BY timestamp, line"],
    ],
)
def test_times_of_sail_are_those_of_local(tmp_path: Path, command: list[str]) -> None:
    """Far from Greenwich, Sail answers with the same times as DuckDB, and with the same hours of the day."""
    pytest.importorskip("pysail", reason="needs the extra lake-test")
    write_session(tmp_path / "home", 1, text="hello")
    lake = Bucket(str(tmp_path / "lake"))
    push(lake, [tmp_path / "home"])
    build_lake(lake, jobs=1)
    words = [word.replace("LAKE", lake.uri) for word in command]
    answers = []
    for engine in ("local", "sail"):
        line = [sys.executable, "-m", "threadline", "lake", *words, "--engine", engine, "--json"]
        environment = {**os.environ, "PYTHONPATH": SOURCE, "TZ": "Asia/Tokyo"}
        answers.append(subprocess.run(line, env=environment, check=True, capture_output=True).stdout)  # noqa: S603 - ours
    assert answers[0]
    assert answers[0] == answers[1]


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_bucket_is_an_error_with_advice(s3: str) -> None:
    """A bucket that does not exist, and refused access, are sentences that say what to check."""
    del s3
    with pytest.raises(Unreadable, match="There is no such bucket"):
        create_lake(Bucket("s3://no-such-bucket/lake"), Policy.FULL)


@pytest.mark.skipif(scanner() is None, reason="kingfisher-bin is not installed")
@pytest.mark.parametrize("policy", [Policy.REDACTED, Policy.METRICS])
def test_another_scanner_finds_no_secret_in_any_object(tmp_path: Path, policy: Policy) -> None:
    """Kingfisher finds planted secrets in the home, and none in any object of a lake that forbids them."""
    secrets = ["ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j", "AKIA" + "QYLPMN5HFIQR7XYA"]
    home = tmp_path / "home"
    write_session(home, 1, text=f"the tokens are {' and '.join(secrets)}")
    lake = Bucket(str(tmp_path / "lake"))
    create_lake(lake, policy)
    assert push(lake, [home], accepted=policy).sessions == 1
    build_lake(lake, jobs=1)
    plain = tmp_path / "plain"
    plain.mkdir()
    for number, path in enumerate(sorted(lake.folder.rglob("*"))):
        if path.is_file():
            (plain / f"{number}.txt").write_bytes(_readable(path))
    assert not any(secret.encode() in path.read_bytes() for path in plain.iterdir() for secret in secrets)
    assert findings(home)
    assert findings(plain) == []


def _readable(path: Path) -> bytes:
    """The content of an object as text."""
    if path.suffix == ".zst":
        import zstandard  # noqa: PLC0415 - here only

        return zstandard.ZstdDecompressor().decompress(path.read_bytes())
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        return repr(parquet.read_table(path).to_pylist()).encode()
    return path.read_bytes()
