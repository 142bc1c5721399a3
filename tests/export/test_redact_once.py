"""A session is redacted once for every format: all agree on what is a secret, and so does `scan`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.redact.planted import digits_of, github, letters, password, stripe
from tests.subtests import for_each
from tests.transcripts import SESSION, Part, Pen, call, chain, lines, prompt, reply, transcript

from threadline.archive import Archive
from threadline.export import ExportFormat, ExportOptions, export_sessions, make_staging_folder
from threadline.export.leak_check import UnsafeExport
from threadline.find import homes
from threadline.redact import Level, SessionRedactor, Settings
from threadline.reports import SecretFilter

FORMATS = ("md", "html", "json", "jsonl", "txt")
_RANDOM = Random(4)  # noqa: S311 - made-up secrets
TOKEN = github(_RANDOM)
KEY = stripe(_RANDOM)
PASSWORD = password(_RANDOM)
PLAIN = letters(_RANDOM, 20).lower()
NUMBER = digits_of(_RANDOM, 9)
KEY_ID = "AKIA" + "Q7WERTY5IOPASDFG"
AWS_SECRET = letters(_RANDOM, 40)


def blocks(*texts: str) -> list[dict[str, str]]:
    """Text blocks of a prompt."""
    return [{"type": "text", "text": text} for text in texts]


def edit(*patch: str) -> Part:
    """An edit whose result has these lines of a patch."""
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 2, "lines": list(patch)}
    result = {"filePath": "/work/app/x.txt", "oldString": "a", "newString": "b", "structuredPatch": [hunk]}
    inputs = {"file_path": "/work/app/x.txt", "old_string": "a", "new_string": "b"}
    return call("Edit", inputs, result="The file was updated", details=result)


def bash(command: str, stdout: str) -> Part:
    """A command and its output, which is in the result twice."""
    result = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False}
    return call("Bash", command, result=stdout, details=result)


# Each is what only the structure of a session reveals, and the texts that no file may contain.
CASES: dict[str, tuple[tuple[Part, ...], tuple[str, ...]]] = {
    "id and secret in a prompt": ((prompt(f"{KEY_ID}\n{AWS_SECRET}"),), (AWS_SECRET,)),
    "id and secret in two blocks": ((prompt(blocks(KEY_ID, AWS_SECRET)),), (AWS_SECRET,)),
    "token in two blocks": ((prompt(blocks(f"use {TOKEN[:30]}", f"{TOKEN[30:]} now")),), (TOKEN[:30], TOKEN[30:])),
    "token in two prompts": ((prompt(f"use {TOKEN[:30]}"), prompt(f"{TOKEN[30:]} now")), (TOKEN[:30], TOKEN[30:])),
    "password that is a number": (
        (prompt("go"), call("Connect", {"user": "ann", "password": int(NUMBER)}, result="ok")),
        (NUMBER,),
    ),
    "password that is a fraction, and one that another field names": (
        (
            prompt("go"),
            call("Connect", {"password": float(NUMBER + ".5")}, result="ok"),
            call("Set", {"name": "DB_PASSWORD", "value": int(NUMBER)}, result="ok"),
        ),
        (NUMBER,),
    ),
    "object of secrets": ((prompt("go"), call("Set", {"secrets": {"mail": PASSWORD}}, result="ok")), (PASSWORD,)),
    "token in a reply and a command": (
        (prompt("go"), reply(f"use {TOKEN[:30]}"), bash(f"{TOKEN[30:]} now", "ok")),
        (TOKEN[:30], TOKEN[30:]),
    ),
    "token in a command and its output": (
        (prompt("go"), bash(f"echo {TOKEN[:30]}", f"{TOKEN[30:]}\n")),
        (TOKEN[:30], TOKEN[30:]),
    ),
    "answer to what it should be": (
        (prompt("go"), reply("Which password should the new database have?"), prompt(PASSWORD)),
        (PASSWORD,),
    ),
    "token in two lines of a patch": (
        (prompt("go"), edit("-a", f"+{TOKEN[:30]}", f"+{TOKEN[30:]}")),
        (TOKEN[:30], TOKEN[30:]),
    ),
    "key in three lines of a patch": (
        (prompt("go"), edit(" a", f"+KEY = '{KEY[:12]}' \\", f"+  '{KEY[12:]}'")),
        (KEY[12:],),
    ),
    "name and value in two fields": (
        (prompt("go"), call("Set", {"name": "DB_PASSWORD", "value": PASSWORD}, result="ok")),
        (PASSWORD,),
    ),
    "output of a command": ((prompt("go"), bash("pass show db", f"{PASSWORD}\n")), (PASSWORD,)),
    "output, elsewhere in hex": (
        (prompt("go"), bash("openssl rand -hex 10", f"{PLAIN}\n"), reply(f"It is {PLAIN.encode().hex()} in hex.")),
        (PLAIN, PLAIN.encode().hex()),
    ),
    "output, elsewhere wrapped": (
        (prompt("go"), bash("gh auth token", f"{PLAIN}\n"), reply(f"It is {PLAIN[:9]}\n  {PLAIN[9:]}, I think.")),
        (PLAIN, PLAIN[9:]),
    ),
    "secret file": (
        (prompt("go"), call("Read", "/srv/db_password.txt", result=f"     1\u2192{PASSWORD}")),
        (PASSWORD,),
    ),
    "answer": ((prompt("go"), reply("What is the database password?"), prompt(PASSWORD)), (PASSWORD,)),
    "argument of a program, not in the first line": ((prompt(f"cd x\n7z x -p{PASSWORD} a.7z\nls"),), (PASSWORD,)),
    "pasted shell session": ((prompt(f"$ op read op://a/b\n{PASSWORD}\n$ ls"),), (PASSWORD,)),
}


def write(folder: Path, *parts: Part) -> Path:
    """A home with one session. Returns its transcript."""
    path = folder / "home/projects/-work-app" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(*transcript(*parts, reply("Done."), pen=Pen(SESSION))))
    return path


def export(main: Path, form: str, folder: Path, settings: Settings | None = None) -> str:
    """The exported text; `refused` if it was refused."""
    try:
        result = export_sessions([main], ExportOptions(ExportFormat(form), settings=settings or Settings()), folder)
    except UnsafeExport:
        return "refused"
    return result.files[0].path.read_text()


@pytest.mark.slow
@for_each("case", CASES)
def test_formats_agree(case: str, tmp_path: Path) -> None:
    """No format refuses, and none contains any of it."""
    parts, traces = CASES[case]
    main = write(tmp_path / case, *parts)
    for form in FORMATS:
        text = export(main, form, tmp_path / case / form)
        assert text != "refused", form
        assert not [trace for trace in traces if trace in text], form


@for_each("case", CASES)
def test_scan_finds_what_export_removes(case: str, tmp_path: Path) -> None:
    """Both use the same rules, also those that need the structure of a session."""
    main = write(tmp_path / case, *CASES[case][0])
    results = Archive(homes(tmp_path / case / "home"), index=False).scan(SecretFilter())
    kinds = {exposure.kind for result in results for exposure in result.exposures}
    exported = export_sessions([main], ExportOptions(ExportFormat.JSONL), tmp_path / case / "out")
    assert kinds
    assert {finding.kind for finding in exported.findings} - {"known-secret"} >= kinds - {"known-secret"}


def test_scan_and_export_find_nothing_in_the_same_session(tmp_path: Path) -> None:
    """Ordinary work has no findings in either."""
    commit = "3f2a91c0de4b5a6978c1d2e3f40516273849a0b1"
    parts = (
        prompt("Which commit is it? The password form is broken."),
        bash("git rev-parse HEAD", f"{commit}\n"),
        edit("-old = 1", "+token_count = 2", "+name = 'x'"),
        call("Read", "/work/app/package.json", result='     1\u2192{"name": "app"}'),
        reply("Should I fix the token parser?"),
        prompt("yes"),
    )
    main = write(tmp_path, *parts)
    results = Archive(homes(tmp_path / "home"), index=False).scan(SecretFilter())
    assert [exposure for result in results for exposure in result.exposures] == []
    for form in FORMATS:
        assert "<secret-" not in export(main, form, tmp_path / form)


def texts_of(value: Any) -> Iterator[str]:
    """All texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


def test_metrics_has_no_text_and_the_same_usage(cli: CliRunner, tmp_path: Path) -> None:
    """Every word of the conversation is gone; times, models, tools and tokens are the same."""
    words = "zebra"
    parts = (
        prompt(f"{words} prompt"),
        bash(f"echo {words}", f"{words}\n"),
        edit(f"+{words}"),
        call("mcp__x__y", {words: words, "pin": 4711}, result=words, details={words: [words], "pin": 4711}),
        reply(f"{words} reply", output=77, input=5),
    )
    main = write(tmp_path, *parts)
    text = export(main, "jsonl", tmp_path / "jsonl", Settings(level=Level.METRICS))
    assert words not in text
    assert "4711" not in text
    copy = tmp_path / "copy/projects/-work-app" / main.name
    copy.parent.mkdir(parents=True)
    copy.write_text(text)
    usage, same = (cli("usage", "--home", tmp_path / name, "--json").json["total"] for name in ("home", "copy"))
    assert usage == same
    rows = [json.loads(line) for line in text.splitlines()]
    assert {"Bash", "Edit", "mcp__x__y"} <= set(texts_of(rows))
    for form in ("md", "html", "json", "txt"):
        assert words not in export(main, form, tmp_path / form, Settings(level=Level.METRICS))


def test_metrics_has_the_same_turns_and_outcomes(cli: CliRunner, tmp_path: Path) -> None:
    """What an entry is follows from sentences and tags of Claude Code's own. They stay, and a person's words go."""
    words = "zebra"
    refusal = f"The user doesn't want to proceed with this tool use. Then the user said:\nno {words}"
    queued = {"type": "queued_command", "prompt": f"also {words}", "commandMode": "prompt", "origin": {"kind": "human"}}
    parts = (
        prompt(f"<system-reminder>{words}</system-reminder>{words}"),
        prompt(f"<command-name>/{words}</command-name>\n<command-args>{words}</command-args>"),
        prompt(f"<local-command-stdout>{words}</local-command-stdout>"),
        prompt(f"<bash-input>{words}</bash-input>"),
        prompt(f"Base directory for this skill: /{words}"),
        bash(words, words),
        chain("attachment", attachment=queued),
        call("Bash", words, refusal, details=f"Error: {refusal}", error=True),
        call("Bash", words, f"<tool_use_error>{words}</tool_use_error>", error=True),
        call("Bash", words),
        prompt("[Request interrupted by user for tool use]"),
        prompt(words),
    )
    main = write(tmp_path, *parts)
    text = export(main, "jsonl", tmp_path / "jsonl", Settings(level=Level.METRICS))
    assert words not in text
    copy = tmp_path / "copy/projects/-work-app" / main.name
    copy.parent.mkdir(parents=True)
    copy.write_text(text)
    queries = ("SELECT line, kind, turn FROM prompts ORDER BY line", "SELECT line, outcome FROM calls ORDER BY line")
    for query in queries:
        rows, same = (cli("sql", query, "--home", tmp_path / name, "--csv").out for name in ("home", "copy"))
        assert rows == same
    assert [row.rpartition(",")[2] for row in rows.split()[1:]] == ["ok", "denied", "error", "interrupted"]


def test_strict_removes_more_than_standard(tmp_path: Path) -> None:
    """Paths, URLs and addresses of examples stay in standard."""
    main = write(tmp_path, prompt("see /work/app/notes.txt and https://docs.example.com/guide, 8.8.8.8"))
    standard = export(main, "md", tmp_path / "standard")
    strict = export(main, "md", tmp_path / "strict", Settings(level=Level.STRICT))
    for value in ("/work/app/notes.txt", "docs.example.com", "8.8.8.8"):
        assert value in standard
        assert value not in strict


def test_level_on_the_command_line(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--level` and the key `level` of the settings select it; the report and `--json` name it."""
    main = write(tmp_path, prompt("the zebra"))
    out, report = tmp_path / "out.jsonl", tmp_path / "report.json"
    result = cli("export", main, "--level", "metrics", "--out", out, "--report", report, "--json")
    assert (result.code, result.json["level"], json.loads(report.read_text())["level"]) == (0, "metrics", "metrics")
    assert "zebra" not in out.read_text()
    (tmp_path / "threadline").mkdir()
    (tmp_path / "threadline/redaction.toml").write_text('level = "metrics"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert cli("export", main, "--out", tmp_path / "second.md", "--json").json["level"] == "metrics"
    assert (
        cli("export", main, "--level", "standard", "--out", tmp_path / "third.md", "--json").json["level"] == "standard"
    )
    (tmp_path / "threadline/redaction.toml").write_text('level = "most"\n')
    assert "Unknown level 'most'" in cli("export", main, "--out", tmp_path / "fourth.md").err
    assert cli("export", main, "--level", "strict", "--no-redact", "--out", tmp_path / "x.md").code == 2


def test_scan_level(cli: CliRunner, tmp_path: Path) -> None:
    """`scan --level strict` reports what `export --level strict` removes."""
    main = write(tmp_path, prompt("see https://docs.example.com/guide"))
    assert cli("scan", main, "--json").code == 1
    assert "url" in {row["kind"] for row in cli("scan", main, "--level", "strict", "--json").json}


def test_session_redactor_is_a_public_interface() -> None:
    """Records in, redacted records out; nothing is left to find."""
    records = [
        {"type": "user", "message": {"role": "user", "content": blocks(TOKEN[:30], TOKEN[30:])}},
        {"type": "user", "message": {"role": "user", "content": f"DB_PASSWORD={PASSWORD}"}},
    ]
    redactor = SessionRedactor()
    for record in records:
        redactor.learn(record)
    redacted = [redactor.redact(record, "x") for record in records]
    assert TOKEN[30:] not in str(redacted)
    assert PASSWORD not in str(redacted)
    assert redacted[1]["message"]["content"].startswith("DB_PASSWORD=<secret-")
    assert not any(redactor.check(record) for record in redacted)
    assert {finding.place.partition(".")[0] for finding in redactor.findings} == {"x"}


def test_staging_folders_of_killed_exports_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next export removes what a killed one left in the temporary folder, but not that of a running one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        pass
    killed, running = tmp_path / f"threadline-export-{process.pid}-a", tmp_path / f"threadline-export-{os.getppid()}-b"
    for folder in (killed, running):
        (folder / "copies").mkdir(parents=True)
    with make_staging_folder() as own:
        assert not killed.exists()
        assert running.exists()
        assert Path(own).name.startswith(f"threadline-export-{os.getpid()}-")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="no files without names")
def test_killed_copy_leaves_nothing(tmp_path: Path) -> None:
    """A process that is killed while it copies a file to its target leaves no temporary file."""
    source = tmp_path / "source"
    source.write_bytes(bytes(1 << 20))
    target = tmp_path / "out/target"
    target.parent.mkdir()
    code = (
        "import os, signal, sys; from pathlib import Path; from threadline import files\n"
        "files._sync_data = None\n"
        "os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"files.copy_file(Path({str(source)!r}), Path({str(target)!r}), overwrite=True)"
    )
    process = subprocess.run([sys.executable, "-c", code], check=False)  # noqa: S603 - our own code
    assert process.returncode == -signal.SIGKILL
    assert list(target.parent.iterdir()) == []
