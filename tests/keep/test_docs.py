"""The examples in docs/keep.md work."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
from tests.cli.runner import run_in_subprocess
from tests.doc_commands import ROOT, run_shell_lines
from tests.transcripts import SESSION, lines, prompt, reply, transcript
from tools.demo import write

PAGE = ROOT / "docs/keep.md"


@pytest.mark.slow
def test_every_command_works(tmp_path: Path) -> None:
    """Every line of the shell blocks succeeds, in order, and creates the files it names."""
    home = tmp_path / "home"
    write(home)
    count = 0
    for line, process in run_shell_lines(PAGE, tmp_path, home):
        assert (process.returncode, process.stderr) == (0, b""), line
        assert process.stdout or ">" in line, line
        count += 1
    assert count >= 20
    work = tmp_path / "work"
    assert (work / ".local/share/threadline/keep/keep.json").is_file()
    assert {"copy-of-all", "status.json", "another-home", "as-it-was", "everything", "sealed"} <= {
        path.name for path in work.iterdir()
    }
    assert not (work / ".config").exists()  # `install` only prints


@pytest.mark.slow
def test_cache_of_an_encrypted_keep_is_private_and_documented(tmp_path: Path) -> None:
    """What is read from an encrypted keep is plain text in the cache, for the owner only.

    The section about encryption says so, with the folder. With `--no-keep`, which it recommends, nothing is there.
    """
    pytest.importorskip("pyrage")
    words = "the words of an encrypted session"
    home, cache = tmp_path / "home", tmp_path / "cache"
    path = home / f"projects/-work/{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(*transcript(prompt(words), reply("ok"))))
    settings = {"KEEP": "sealed", "KEEP_KEY_FILE": "key", "CACHE": "cache"}
    environment = {f"THREADLINE_{name}": str(tmp_path / value) for name, value in settings.items()}
    run = partial(run_in_subprocess, "--home", home, **environment)
    assert run("keep", "--encrypt", "--key-file", tmp_path / "key").code == 0
    path.unlink()
    assert words in run("show", SESSION).out

    def plain_files() -> list[Path]:
        return [file for file in cache.rglob("*") if file.is_file() and words.encode() in file.read_bytes()]

    assert plain_files()
    assert {file.stat().st_mode & 0o077 for file in [cache, *cache.rglob("*")]} == {0}
    section = PAGE.read_text().split("## Encryption\n")[1].split("\n## ")[0]
    assert "plain text in the cache folder" in section
    assert all(name in section for name in ("THREADLINE_CACHE", "kept/", "index", "--no-keep"))
    shutil.rmtree(cache)
    run("--no-keep", "list")
    assert not plain_files()
