"""`threadline export`: sessions as redacted files, reproducible, never overwriting."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.redact.credentials import seeded, token_value
from tests.transcripts import Part, Pen, call, lines, prompt, reply, transcript, write

from threadline import files
from threadline.export import formats
from threadline.export.redacted_copies import LineRedactor
from threadline.redact.rules.formats import FORMATS

EXPORT_FORMATS = ("html", "md", "json", "jsonl", "txt")
TOKEN = token_value(next(rule for rule in FORMATS if rule.kind == "github-token"), seeded(1))
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2).decode()
SESSION = "5e551011-0000-4000-8000-000000000001"


def write_session(folder: Path, *parts: Part, name: str = SESSION) -> Path:
    """A home with one session of these parts. Returns its transcript."""
    project = folder / "home/projects/-home-annika-src"
    project.mkdir(parents=True, exist_ok=True)
    path = project / f"{name}.jsonl"
    path.write_bytes(lines(*transcript(*parts, pen=Pen(name, cwd="/home/annika/src"))))
    return path


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session that contains a token, a name and a home directory, in two turns."""
    return write_session(
        tmp_path,
        prompt(f"ask Annika; use {TOKEN} in /home/annika/src/x.py"),
        reply("I will use it for **acme**."),
        prompt("and now?"),
        reply("Done with <b>it</b>."),
    )


@pytest.mark.parametrize("export_format", EXPORT_FORMATS)
def test_every_format_is_redacted(export_format: str, session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """No secret or name is in the file, two exports are equal, and the summary says so."""
    first, second = tmp_path / f"a.{export_format}", tmp_path / f"b.{export_format}"
    for target in (first, second):
        result = cli("export", str(session), "--format", export_format, "--out", str(target), "--hide", "acme")
        assert (result.code, result.err) == (0, "")
        assert "Redacted " in result.out
        assert "github-token 1" in result.out
    text = first.read_text()
    assert first.read_bytes() == second.read_bytes()
    assert not re.search(f"{TOKEN}|annika|acme", text, re.IGNORECASE)
    assert all(
        re.search(rf"(?:<|&lt;){placeholder}(?:>|&gt;)", text)
        for placeholder in ("secret-1", "user-1", "word-1", "home")
    )
    assert "and now?" in text


def test_jsonl_without_redaction_is_lossless(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """`--format jsonl --no-redact` reproduces the transcript byte for byte, and says that nothing was redacted."""
    result = cli("export", str(session), "--format", "jsonl", "--no-redact", "--out", str(tmp_path / "x.jsonl"))
    assert (tmp_path / "x.jsonl").read_bytes() == session.read_bytes()
    assert "Nothing was redacted" in result.out


def test_redacted_jsonl_is_a_valid_transcript(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """Redacted lines have the same number, kinds, ids and parents, whatever word is hidden."""
    cli(
        "export",
        str(session),
        "--format",
        "jsonl",
        "--out",
        str(tmp_path / "x.jsonl"),
        "--hide",
        "user",
        "--hide",
        "message",
    )
    before, after = (
        [json.loads(line) for line in path.read_text().splitlines()] for path in (session, tmp_path / "x.jsonl")
    )
    assert [(row["type"], row["uuid"], row["parentUuid"], row["timestamp"]) for row in before] == [
        (row["type"], row["uuid"], row["parentUuid"], row["timestamp"]) for row in after
    ]


def test_default_target_is_the_current_folder(session: Path, cli: CliRunner) -> None:
    """Without --out, the file is named after the session. It is not overwritten a second time."""
    assert cli("export", str(session)).code == 0
    assert Path(f"{SESSION}.html").read_text().startswith("<!doctype html>")
    result = cli("export", str(session))
    assert result.code == 2
    assert "already exists" in result.err
    assert cli("export", str(session), "--force").code == 0


def test_standard_output_contains_only_the_file(session: Path, cli: CliRunner) -> None:
    """With `--out -`, the summary goes to standard error."""
    result = cli("export", str(session), "--format", "md", "--out", "-")
    assert result.out.startswith("# ")
    assert "Redacted " in result.err


def test_refuses_to_write_into_a_home(session: Path, cli: CliRunner) -> None:
    """A target inside a Claude home is refused, also through a link."""
    home = session.parents[2]
    Path("link").symlink_to(home)
    for target in (home / "x.html", Path("link/x.html"), session):
        result = cli("export", SESSION, "--home", str(home), "--out", str(target), "--force")
        assert result.code == 2
        assert "Claude home" in result.err


def test_refuses_to_write_into_any_home(
    session: Path, cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default home, the one of the environment and the one of a given transcript are refused, whatever is read."""
    home, other = session.parents[2], tmp_path / "other"
    (other / "projects").mkdir(parents=True)
    (tmp_path / "me/.claude/projects").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    for target in (other / "projects/x.html", tmp_path / "me/.claude/x.html"):
        for option in ("--out", "--report"):
            result = cli("export", SESSION, "--home", str(home), option, str(target), "--force")
            assert (result.code, "is inside a Claude home" in result.err) == (2, True), target
            assert not target.exists()
    result = cli("export", str(session), "--out", str(session.with_name("own.html")), "--force")
    assert (result.code, "is inside a Claude home" in result.err) == (2, True)
    assert not session.with_name("own.html").exists()


def test_refuses_to_replace_a_pipe_or_device(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """Even with --force, and also through a link."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link):
        for option in ("--out", "--report"):
            result = cli("export", str(session), option, str(target), "--force")
            assert (result.code, "is a device or a pipe" in result.err) == (2, True)
        assert target.is_fifo()


def test_report_does_not_replace_the_export(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """A report with the name of the export, or of a page of the site, is refused."""
    target, site = tmp_path / "a.html", tmp_path / "site"
    result = cli("export", str(session), "--out", str(target), "--report", str(target))
    assert (result.code, "name the same file" in result.err) == (2, True)
    result = cli("export", str(session), "--site", str(site), "--report", str(site / "index.html"))
    assert (result.code, "a file of the export itself" in result.err) == (2, True)
    assert not target.exists()


@pytest.mark.parametrize("export_format", ["html", "json", "jsonl"])
def test_leak_check_refuses_leftovers(
    export_format: str, session: Path, cli: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the check finds something, nothing is written. The message has kinds and counts, never the value."""
    monkeypatch.setattr("threadline.export.redacted_copies.LineRedactor.redact", lambda _self, raw, _place: raw)
    result = cli("export", str(session), "--format", export_format, "--out", "x", "--report", "r.json")
    assert result.code == 2
    assert "Nothing was written" in result.err
    assert re.search(r"\bgithub-token [0-9]+\b", result.err)
    assert TOKEN not in result.err
    assert not Path("x").exists()
    assert not Path("r.json").exists()


def test_report_lists_findings_without_values(session: Path, cli: CliRunner) -> None:
    """--report lists the kind, place, placeholder and count of everything redacted."""
    cli("export", str(session), "--out", "x.html", "--report", "hidden.json")
    text = Path("hidden.json").read_text()
    report = json.loads(text)
    (token,) = [finding for finding in report["findings"] if finding["kind"] == "github-token"]
    assert token == {
        "kind": "github-token",
        "place": f"{SESSION}.jsonl:1$.message.content",
        "placeholder": "<secret-1>",
        "count": 1,
    }
    assert TOKEN not in text
    assert "annika" not in text.lower()


def test_patterns_and_words_from_files(session: Path, cli: CliRunner) -> None:
    """Patterns of a TOML file, words of a list, and the user's configuration file are redacted."""
    Path("own.toml").write_text("[patterns]\nstar = '\\*\\*[a-z]{1,9}\\*\\*'\n")
    Path("words.txt").write_text("now\n\n")
    Path(".config/threadline").mkdir(parents=True)
    Path(".config/threadline/redaction.toml").write_text("words = ['Done']\n")
    result = cli(
        "export", str(session), "--format", "md", "--out", "-", "--patterns", "own.toml", "--hide-from", "words.txt"
    )
    assert "<star-1>" in result.out
    assert not re.search("Done|now", result.out)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = [", "is not TOML"),
        ("words = 'x'", "must be a list of strings"),
        ("[patterns]\nx = 3", "must be names and regular expressions"),
        ("wrods = []", "Unknown key 'wrods'"),
        ("[patterns]\nx = '(a+)+b'", "nested repeat"),
        ("words = ['x']", "too short"),
    ],
)
def test_invalid_patterns_file_is_an_error(text: str, sentence: str, session: Path, cli: CliRunner) -> None:
    """The message says what is wrong, and nothing is written."""
    Path("own.toml").write_text(text)
    result = cli("export", str(session), "--out", "x.html", "--patterns", "own.toml")
    assert result.code == 2
    assert sentence in result.err
    assert not Path("x.html").exists()


@pytest.mark.parametrize("export_format", ["html", "md", "json", "txt"])
def test_from_and_to_select_turns(export_format: str, session: Path, cli: CliRunner) -> None:
    """--from and --to select the turns between them."""
    second = cli("export", str(session), "--format", export_format, "--from", "2", "--out", "-").out
    first = cli("export", str(session), "--format", export_format, "--to", "1", "--out", "-").out
    assert "and now?" in second
    assert "I will use it" not in second
    assert "I will use it" in first
    assert "Done with" not in first


@pytest.mark.parametrize("export_format", ["html", "md", "json", "txt"])
def test_a_range_of_turns_has_only_its_own_agents(export_format: str, tmp_path: Path, cli: CliRunner) -> None:
    """Agents that another turn started, or that no call is known to have started, are left out, and not reported."""
    parts: list[Part] = []
    for number in (1, 2):
        details = {"agentId": f"a{number}", "status": "completed", "content": []}
        parts += [prompt(f"go {number}"), call("Agent", f"task {number}", result="done", details=details)]
    session = write_session(tmp_path, *parts)
    for number in (1, 2, 3):
        pen = Pen(SESSION, cwd="/work", isSidechain=True, agentId=f"a{number}")
        rows = transcript(prompt(f"task {number}"), reply(f"answer-{number} a{number}@tide-works.de"), pen=pen)
        write(session.with_suffix("") / f"subagents/agent-a{number}.jsonl", *rows)
    options = ("--format", export_format, "--agents", "full", "--out", "x", "--force", "--json")
    for number in (1, 2):
        result = cli("export", str(session), *options, "--from", f"{number}", "--to", f"{number}")
        assert re.findall(r"answer-\d", Path("x").read_text()) == [f"answer-{number}"]
        assert result.json["hidden"]["email"] == 1


def test_a_range_of_turns_reports_its_own_removals(tmp_path: Path, cli: CliRunner) -> None:
    """The summary and the report list what was redacted in the exported turns, not in the whole session."""
    session = write_session(
        tmp_path,
        prompt(f"use {TOKEN}"),
        reply("first"),
        prompt("write to someone@tide-works.de"),
        reply("second"),
        prompt(f"and again {TOKEN}"),
        reply("third"),
    )

    def hidden(*options: str) -> dict[str, int]:
        arguments = ("--format", "md", "--out", "x.md", "--force", "--json")
        result = cli("export", str(session), *arguments, "--report", "report.json", *options)
        removed: dict[str, int] = result.json["hidden"]
        findings = json.loads(Path("report.json").read_text())["findings"]
        assert sum(finding["count"] for finding in findings) == sum(removed.values())
        return removed

    everything = hidden()
    (token,) = set(everything) - {"email", "home"}
    assert everything == {"home": 6, token: 2, "email": 1}  # each row has the working directory
    assert hidden("--from", "2", "--to", "2") == {"home": 2, "email": 1}
    assert hidden("--to", "1") == {"home": 2, token: 1}
    assert hidden("--from", "2") == {"home": 4, "email": 1, token: 1}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--from", "9"), "No turn 9: the session has"),
        (("--branch", "3"), "No branch 3: the session has"),
        (("--from", "2", "--to", "1"), "--from 2 is after --to 1"),
        (("--format", "docx"), "Unknown format 'docx'"),
        (("--to", "md"), "To select the format, use --format md"),
        (("--to", "three"), "must be the number of a turn"),
        (("--format", "jsonl", "--from", "2"), "jsonl exports complete transcripts"),
        (("--no-redact", "--hide", "word"), "cannot be combined with --no-redact"),
        (("--site", "s", "--format", "md"), "--site writes HTML"),
        (("--project", "x"), "not both"),
        (("--hide-from", "none.txt"), "There is no file"),
    ],
)
def test_contradicting_options_are_errors(
    options: tuple[str, ...], sentence: str, session: Path, cli: CliRunner
) -> None:
    """They are reported before anything is written."""
    result = cli("export", str(session), *options)
    assert result.code == 2
    assert sentence in result.err
    assert [path for path in Path().iterdir() if path.is_file()] == []


def test_images_are_removed_by_default(tmp_path: Path, cli: CliRunner) -> None:
    """Images are exported only with --images, and in HTML only as data."""
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    row = {
        "type": "user", "uuid": "a", "parentUuid": None, "sessionId": SESSION, "timestamp": "2026-01-05T09:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}]},
    }  # fmt: skip
    path = write_session(tmp_path, row)
    for export_format in EXPORT_FORMATS:
        assert PIXEL not in cli("export", str(path), "--format", export_format, "--out", "-").out, export_format
    assert f'src="data:image/png;base64,{PIXEL}"' in cli("export", str(path), "--images", "--out", "-").out
    assert PIXEL in cli("export", str(path), "--images", "--format", "jsonl", "--out", "-").out


def test_several_sessions_become_a_site(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """As HTML, they are a folder with a list, a search and a page each, with the same placeholders."""
    other = write_session(tmp_path, prompt(f"again {TOKEN}"), reply("yes"), name=SESSION.replace("1", "2"))
    for folder in ("one", "two"):
        result = cli("export", str(session), str(other), "--out", folder, "--json")
        assert result.code == 0
        assert sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.html")) == sorted(
            ["index.html", "search.html", f"sessions/{session.stem}.html", f"sessions/{other.stem}.html"]
        )
        assert result.json["redacted"] is True
    for path in Path("one").rglob("*.html"):
        assert path.read_bytes() == (Path("two") / path.relative_to("one")).read_bytes()
        assert TOKEN not in path.read_text()
    pages = [path.read_text() for path in sorted(Path("one/sessions").iterdir())]
    assert all("&lt;secret-1&gt;" in page for page in pages)
    assert cli("export", str(session), str(other), "--out", "one").code == 2


def test_several_sessions_become_files(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """As Markdown, they are a file each in a folder."""
    other = write_session(tmp_path, prompt("x"), reply("yes"), name=SESSION.replace("1", "2"))
    assert cli("export", str(session), str(other), "--format", "md").code == 0
    assert sorted(path.name for path in Path("threadline-export").iterdir()) == sorted(
        [f"{session.stem}.md", f"{other.stem}.md"]
    )


def test_selects_sessions_by_project(demo_home: Path, cli: CliRunner) -> None:
    """--project exports all sessions of the projects whose path contains the text."""
    result = cli("export", "--home", str(demo_home), "--project", "kettle", "--format", "txt", "--json")
    assert result.code == 0
    assert len(result.json["files"]) >= 2
    assert cli("export", "--home", str(demo_home), "--project", "no such thing").code == 1
    assert cli("export", "--home", str(demo_home)).code == 2


@pytest.mark.slow
def test_pdf_with_chromium(session: Path, cli: CliRunner) -> None:
    """A PDF is the same each time. Without Chromium the message names the package."""
    if formats.find_browser() is None:
        result = cli("export", str(session), "--format", "pdf")
        assert result.code == 2
        assert "`chromium`" in result.err
        return
    for name in ("a.pdf", "b.pdf"):
        assert cli("export", str(session), "--out", name).code == 0
    assert Path("a.pdf").read_bytes().startswith(b"%PDF")
    assert Path("a.pdf").read_bytes() == Path("b.pdf").read_bytes()


def test_pdf_without_chromium_names_the_package(session: Path, cli: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setenv("THREADLINE_CHROMIUM", "/no/such/browser")
    result = cli("export", str(session), "--format", "pdf")
    assert result.code == 2
    assert "`chromium`" in result.err


def test_does_not_change_the_home(session: Path, cli: CliRunner) -> None:
    """Exporting never writes below the home."""
    before = {path: path.read_bytes() for path in session.parents[2].rglob("*") if path.is_file()}
    cli("export", str(session), "--out", "x.html")
    assert {path: path.read_bytes() for path in session.parents[2].rglob("*") if path.is_file()} == before


def test_unknown_suffix_is_refused(session: Path, cli: CliRunner) -> None:
    """The message lists the formats. With `--format` any name is allowed."""
    result = cli("export", str(session), "--out", "talk.docx")
    assert (result.code, ".html, .md, .json, .jsonl, .txt, .pdf" in result.err) == (2, True), result.err
    assert not Path("talk.docx").exists()
    assert cli("export", str(session), "--out", "talk.v2", "--format", "md").code == 0
    assert Path("talk.v2").read_text().startswith("# ")


def test_new_folder_of_a_file_is_reported(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """One line on standard error names a folder that is created; the summary names the file."""
    target = tmp_path / "new" / "folder" / "session.md"
    result = cli("export", str(session), "--out", str(target))
    assert (result.code, result.err) == (0, f"threadline: Creating the folder {str(target.parent)!r}.\n")
    assert f"Wrote {target} (" in result.out
    again = cli("export", str(session), "--out", str(target), "--force")
    assert (again.code, again.err) == (0, "")


def test_trailing_slash_means_a_folder(session: Path, cli: CliRunner) -> None:
    """`--out new/` creates a folder."""
    assert cli("export", str(session), "--format", "txt", "--out", "new/").code == 0
    assert [path.name for path in Path("new").iterdir()] == [f"{SESSION}.txt"]


def test_refuses_to_write_into_a_future_home(
    session: Path, cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home named by the environment counts before Claude Code has created it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "later"))
    target = tmp_path / "later/projects/-x/talk.html"
    result = cli("export", str(session), "--out", str(target))
    assert (result.code, "is inside a Claude home" in result.err) == (2, True)
    assert not target.exists()


def test_full_disk_names_the_target(
    session: Path, cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the target or the temporary folder, not a temporary file."""

    def raise_disk_full(_file: object, place: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", raise_disk_full)
        result = cli("export", str(session), "--out", "talk.html")
    assert (result.code, result.err) == (2, "threadline: 'talk.html' cannot be written: No space left on device.\n")
    monkeypatch.setattr(LineRedactor, "redact", lambda *_given: raise_disk_full(Path(), tmp_path / "work/copy"))
    result = cli("export", str(session), "--out", "talk.html")
    assert (result.code, "Free some space, or set TMPDIR to another folder" in result.err) == (2, True)
    assert not Path("talk.html").exists()


def test_names_a_hidden_word_that_does_not_occur(tmp_path: Path, cli: CliRunner) -> None:
    """A misspelt word would stay in the export, so the command says that it hid nothing."""
    session = write_session(tmp_path, prompt("the Kettle project"), reply("I see."))
    result = cli("export", str(session), "--format", "md", "--hide", "Teapot", "--hide", "kettle", "--out", "x")
    assert (result.code, result.err) == (
        0,
        "threadline: The sessions do not contain 'Teapot'. Check the spelling of --hide.\n",
    )
    assert "Kettle" not in Path("x").read_text()


@pytest.mark.parametrize("export_format", EXPORT_FORMATS)
def test_hides_words_that_look_like_anchors(export_format: str, tmp_path: Path, cli: CliRunner) -> None:
    """The text is redacted. Our own anchors stay, and the leak check ignores them."""
    session = write_session(
        tmp_path, prompt("the lock L1 and L12"), reply("I see L1."), prompt("open L1"), reply("No.")
    )
    result = cli("export", str(session), "--format", export_format, "--hide", "L1", "--out", "x")
    assert (result.code, result.err) == (0, "")
    text = Path("x").read_text()
    assert re.search(r"the lock (?:\\?<|&lt;)word-1(?:>|&gt;) and ", text)
    assert not re.search(r"(?:lock|see|open) L1", text)
