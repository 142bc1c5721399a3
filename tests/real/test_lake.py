"""Five machines with real transcripts push to S3 on loopback; every engine builds the tables that one machine has."""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import SOURCE
from tests.lake.machines import write_fork
from tests.lake.spark_cluster import spark_cluster, spark_home
from tests.lake.test_build import snapshot
from tests.lake.test_copies import assert_rows_of_one_machine
from tests.loopback_s3 import loopback_s3
from tests.real.client import SHARED, newest, play, start_client

from threadline.account import KEY_DESCRIPTIONS

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.storage import Bucket

CORPUS = SHARED / "corpus/home"
NESTS = ("project,model", "day,session,agent", "month,tool", "home,transcript")
pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.filterwarnings("ignore")  # of moto and boto
@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus is not there")
def test_five_homes_have_the_figures_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overlaps, copies, a fork across machines and a real client's home: usage by every key equals that of one machine.

    With `local`, with Sail, and with Spark standalone with two workers; also every row of every table.
    """
    home = spark_home()
    if home is None:
        pytest.skip("needs Java, and SPARK_HOME with the folder of pyspark (see tests/lake/spark_cluster.py)")
    pytest.importorskip("pysail", reason="needs the extra lake-test")
    if newest() is None:
        pytest.skip("needs claude-agent-sdk, which contains Claude Code")
    faulthandler.cancel_dump_traceback_later()  # takes longer than other tests may
    homes = _make_homes(tmp_path / "homes")
    uri = "s3://team-bucket/lake"
    with loopback_s3(monkeypatch, "team-bucket"), spark_cluster(home, tmp_path / "spark") as cluster:
        _run("lake", "init", uri, "--policy", "full")
        for number, machine_home in enumerate(homes, 1):
            words = ("--accept", "full", "--person", f"person{number}", "--home", str(machine_home))
            _run("lake", "push", uri, *words, data=tmp_path / f"data-{number}")
        expected = {by: _usage(["usage", *_home_words(homes)], by) for by in (*KEY_DESCRIPTIONS, *NESTS)}
        assert expected["day"]["total"]["charges"] > 5277  # those of the corpus, and those of the client
        snapshots = []
        for engine in ("local", "sail", cluster.url):
            _run("lake", "build", uri, "--engine", engine, "--rebuild")
            for by, report in expected.items():
                assert _usage(["lake", "usage", uri], by) == report, f"{engine}: {by}"
            snapshots.append(snapshot(Bucket(uri)))
        assert snapshots[0] == snapshots[1] == snapshots[2]
        assert_rows_of_one_machine(Bucket(uri), homes, tmp_path / "index.sqlite")


def _make_homes(folder: Path) -> list[Path]:
    """Parts of the corpus that overlap, a copy and half of a session, a fork of another machine's, a client's home."""
    projects = sorted(path for path in (CORPUS / "projects").iterdir() if path.is_dir())
    third = len(projects) // 3
    parts = [projects[: third * 2], projects[third:], projects[: third // 2] + projects[-third:]]
    homes = [folder / f"home-{number}" for number in range(1, 5)]
    for home, part in zip(homes, parts, strict=False):
        for project in part:
            shutil.copytree(project, home / "projects" / project.name)
    mains = sorted((homes[0] / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    half = homes[1] / "projects" / "-half" / mains[-1].name
    half.parent.mkdir()
    half.write_bytes(b"".join(mains[-1].read_bytes().splitlines(keepends=True)[:50]))
    copy = homes[2] / "projects" / "-copied-elsewhere" / mains[-2].name
    copy.parent.mkdir()
    shutil.copy2(mains[-2], copy)
    write_fork(homes[3], mains[len(mains) // 2])
    program = newest()
    assert program is not None
    (folder / "client").mkdir()
    with start_client(program, folder / "client") as client:
        play(client)
        assert not client.failures
    return [*homes, client.claude_home]


def _home_words(homes: Sequence[Path]) -> list[str]:
    return [word for home in homes for word in ("--home", str(home))]


def _usage(words: Sequence[str], by: str) -> Any:
    report = json.loads(_run(*words, "--by", by, "--tz", "UTC", "--json"), parse_float=Decimal)
    return {"rows": report["rows"], "total": report["total"]}


def _run(*words: str, data: Path | None = None) -> bytes:
    environment = {**os.environ, "PYTHONPATH": SOURCE, **({"XDG_DATA_HOME": str(data)} if data is not None else {})}
    command = [sys.executable, "-m", "threadline", *words]
    result = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - ours
    assert result.returncode == 0, f"{words}: {result.stderr.decode()}"
    return result.stdout
