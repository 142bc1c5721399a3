"""`threadline export`: sessions as files, redacted, the same bytes each time, never over what is there."""

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
from tests.transcripts import Part, Pen, lines, prompt, reply, transcript

from threadline import files
from threadline.export import formats
from threadline.export.redacted_copies import LineRedactor
from threadline.redact.tokens import FORMATS

FORMS = ("html", "md", "json", "jsonl", "txt")
TOKEN = token_value(next(rule for rule in FORMATS if rule.kind == "github-token"), seeded(1))
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2).decode()
SESSION = "5e551011-0000-4000-8000-000000000001"


def write_session(folder: Path, *parts: Part, name: str = SESSION) -> Path:
    """A home with one session of these parts; its transcript."""
    place = folder / "home/projects/-home-annika-src"
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.jsonl"
    path.write_bytes(lines(*transcript(*parts, pen=Pen(name, cwd="/home/annika/src"))))
    return path


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session that tells a token, a name and a home, in two turns."""
    return write_session(
        tmp_path,
        prompt(f"ask Annika; use {TOKEN} in /home/annika/src/x.py"),
        reply("I will use it for **acme**."),
        prompt("and now?"),
        reply("Done with <b>it</b>."),
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written_redacted(form: str, session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """A session is written in this form without its secrets and names, twice with the same bytes, and that is said."""
    first, second = tmp_path / f"a.{form}", tmp_path / f"b.{form}"
    for place in (first, second):
        result = cli("export", str(session), "--format", form, "--out", str(place), "--hide", "acme")
        assert (result.code, result.err) == (0, "")
        assert "Redacted " in result.out
        assert "github-token 1" in result.out
    text = first.read_text()
    assert first.read_bytes() == second.read_bytes()
    assert not re.search(f"{TOKEN}|annika|acme", text, re.IGNORECASE)
    assert all(re.search(rf"(?:<|&lt;){what}(?:>|&gt;)", text) for what in ("secret-1", "user-1", "word-1", "home"))
    assert "and now?" in text


def test_the_raw_transcript_is_lossless(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """`--format jsonl --no-redact` gives the transcript byte for byte, and says that nothing was redacted."""
    result = cli("export", str(session), "--format", "jsonl", "--no-redact", "--out", str(tmp_path / "x.jsonl"))
    assert (tmp_path / "x.jsonl").read_bytes() == session.read_bytes()
    assert "Nothing was redacted" in result.out


def test_redacted_lines_are_a_transcript(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """Redacted lines are as many, each JSON of the same kind, ids and parents, whatever word is hidden."""
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
    assert [(one["type"], one["uuid"], one["parentUuid"], one["timestamp"]) for one in before] == [
        (one["type"], one["uuid"], one["parentUuid"], one["timestamp"]) for one in after
    ]


def test_the_default_place_is_the_current_folder(session: Path, cli: CliRunner) -> None:
    """Without --out the file has the session's name and lies here; a second time it is not written over."""
    assert cli("export", str(session)).code == 0
    assert Path(f"{SESSION}.html").read_text().startswith("<!doctype html>")
    result = cli("export", str(session))
    assert result.code == 2
    assert "already exists" in result.err
    assert cli("export", str(session), "--force").code == 0


def test_standard_output_has_the_file_alone(session: Path, cli: CliRunner) -> None:
    """With `--out -` standard output is the file, and what was done is said beside it."""
    result = cli("export", str(session), "--format", "md", "--out", "-")
    assert result.out.startswith("# ")
    assert "Redacted " in result.err


def test_nothing_is_written_into_a_home(session: Path, cli: CliRunner) -> None:
    """A place inside a Claude home is refused, through a link, too."""
    home = session.parents[2]
    Path("link").symlink_to(home)
    for place in (home / "x.html", Path("link/x.html"), session):
        result = cli("export", SESSION, "--home", str(home), "--out", str(place), "--force")
        assert result.code == 2
        assert "Claude home" in result.err


def test_nothing_is_written_into_any_other_home(
    session: Path, cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual home, the one of the environment and the one of a named transcript are refused whatever is read."""
    home, other = session.parents[2], tmp_path / "other"
    (other / "projects").mkdir(parents=True)
    (tmp_path / "me/.claude/projects").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    for place in (other / "projects/x.html", tmp_path / "me/.claude/x.html"):
        for option in ("--out", "--report"):
            result = cli("export", SESSION, "--home", str(home), option, str(place), "--force")
            assert (result.code, "is inside a Claude home" in result.err) == (2, True), place
            assert not place.exists()
    result = cli("export", str(session), "--out", str(session.with_name("own.html")), "--force")
    assert (result.code, "is inside a Claude home" in result.err) == (2, True)
    assert not session.with_name("own.html").exists()


def test_a_pipe_or_a_device_is_left_alone(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """What is no file is not replaced by one, though it is asked for by force; nor by way of a link."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place in (pipe, link):
        for option in ("--out", "--report"):
            result = cli("export", str(session), option, str(place), "--force")
            assert (result.code, "is a device or a pipe" in result.err) == (2, True)
        assert place.is_fifo()


def test_the_report_does_not_replace_the_export(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """A report at the export's own place, or at that of a site's page, is refused."""
    place, site = tmp_path / "a.html", tmp_path / "site"
    result = cli("export", str(session), "--out", str(place), "--report", str(place))
    assert (result.code, "name the same file" in result.err) == (2, True)
    result = cli("export", str(session), "--site", str(site), "--report", str(site / "index.html"))
    assert (result.code, "a file of the export itself" in result.err) == (2, True)
    assert not place.exists()


@pytest.mark.parametrize("form", ["html", "json", "jsonl"])
def test_what_would_be_left_is_refused(
    form: str, session: Path, cli: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the second look finds something, nothing is written, and kinds and counts are told, never the thing."""
    monkeypatch.setattr("threadline.export.redacted_copies.LineRedactor.redact", lambda _self, raw, _place: raw)
    result = cli("export", str(session), "--format", form, "--out", "x", "--report", "r.json")
    assert result.code == 2
    assert "Nothing was written" in result.err
    assert re.search(r"\bgithub-token [0-9]+\b", result.err)
    assert TOKEN not in result.err
    assert not Path("x").exists()
    assert not Path("r.json").exists()


def test_the_report_tells_what_where_and_not_what_it_was(session: Path, cli: CliRunner) -> None:
    """--report lists kind, place, placeholder and count of all that was taken out."""
    cli("export", str(session), "--out", "x.html", "--report", "hidden.json")
    text = Path("hidden.json").read_text()
    told = json.loads(text)
    (token,) = [one for one in told["findings"] if one["kind"] == "github-token"]
    assert token == {
        "kind": "github-token",
        "place": f"{SESSION}.jsonl:1$.message.content",
        "placeholder": "<secret-1>",
        "count": 1,
    }
    assert TOKEN not in text
    assert "annika" not in text.lower()


def test_own_patterns_and_words_come_from_files(session: Path, cli: CliRunner) -> None:
    """Patterns of a TOML file, words of a list and the own file of the person are taken out."""
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
    ("text", "said"),
    [
        ("x = [", "is not TOML"),
        ("words = 'x'", "must be a list of strings"),
        ("[patterns]\nx = 3", "must be names and regular expressions"),
        ("wrods = []", "Unknown key 'wrods'"),
        ("[patterns]\nx = '(a+)+b'", "nested repeat"),
        ("words = ['x']", "too short"),
    ],
)
def test_a_bad_file_of_patterns_is_a_sentence(text: str, said: str, session: Path, cli: CliRunner) -> None:
    """What is wrong with a file of patterns is told, and nothing is written."""
    Path("own.toml").write_text(text)
    result = cli("export", str(session), "--out", "x.html", "--patterns", "own.toml")
    assert result.code == 2
    assert said in result.err
    assert not Path("x.html").exists()


@pytest.mark.parametrize("form", ["html", "md", "json", "txt"])
def test_a_part_of_the_turns(form: str, session: Path, cli: CliRunner) -> None:
    """--from and --to give the turns between them."""
    second = cli("export", str(session), "--format", form, "--from", "2", "--out", "-").out
    first = cli("export", str(session), "--format", form, "--to", "1", "--out", "-").out
    assert "and now?" in second
    assert "I will use it" not in second
    assert "I will use it" in first
    assert "Done with" not in first


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "9"), "there is no turn 9"),
        (("--branch", "3"), "there is no branch 3"),
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
def test_contradictions_are_refused_in_a_sentence(
    options: tuple[str, ...], said: str, session: Path, cli: CliRunner
) -> None:
    """What cannot be done is said before anything is written."""
    result = cli("export", str(session), *options)
    assert result.code == 2
    assert said in result.err
    assert [path for path in Path().iterdir() if path.is_file()] == []


def test_pictures_go_unless_asked_for(tmp_path: Path, cli: CliRunner) -> None:
    """The bytes of a picture are in no export but with --images, and then in HTML as data alone."""
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    row = {
        "type": "user", "uuid": "a", "parentUuid": None, "sessionId": SESSION, "timestamp": "2026-01-05T09:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}]},
    }  # fmt: skip
    path = write_session(tmp_path, row)
    for form in FORMS:
        assert PIXEL not in cli("export", str(path), "--format", form, "--out", "-").out, form
    assert f'src="data:image/png;base64,{PIXEL}"' in cli("export", str(path), "--images", "--out", "-").out
    assert PIXEL in cli("export", str(path), "--images", "--format", "jsonl", "--out", "-").out


def test_several_sessions_are_a_site(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """Several sessions as HTML are a folder with a list, a search and a page of each, with the same placeholders."""
    other = write_session(tmp_path, prompt(f"again {TOKEN}"), reply("yes"), name=SESSION.replace("1", "2"))
    for place in ("one", "two"):
        result = cli("export", str(session), str(other), "--out", place, "--json")
        assert result.code == 0
        assert sorted(str(path.relative_to(place)) for path in Path(place).rglob("*.html")) == sorted(
            ["index.html", "search.html", f"sessions/{session.stem}.html", f"sessions/{other.stem}.html"]
        )
        assert result.json["redacted"] is True
    for path in Path("one").rglob("*.html"):
        assert path.read_bytes() == (Path("two") / path.relative_to("one")).read_bytes()
        assert TOKEN not in path.read_text()
    pages = [path.read_text() for path in sorted(Path("one/sessions").iterdir())]
    assert all("&lt;secret-1&gt;" in page for page in pages)
    assert cli("export", str(session), str(other), "--out", "one").code == 2


def test_several_sessions_in_another_form_are_files(session: Path, cli: CliRunner, tmp_path: Path) -> None:
    """Several sessions as Markdown are a file each in a folder."""
    other = write_session(tmp_path, prompt("x"), reply("yes"), name=SESSION.replace("1", "2"))
    assert cli("export", str(session), str(other), "--format", "md").code == 0
    assert sorted(path.name for path in Path("threadline-export").iterdir()) == sorted(
        [f"{session.stem}.md", f"{other.stem}.md"]
    )


def test_sessions_are_chosen_by_project(demo_home: Path, cli: CliRunner) -> None:
    """--project exports all sessions of the projects whose path holds the text."""
    result = cli("export", "--home", str(demo_home), "--project", "kettle", "--format", "txt", "--json")
    assert result.code == 0
    assert len(result.json["files"]) >= 2
    assert cli("export", "--home", str(demo_home), "--project", "no such thing").code == 2
    assert cli("export", "--home", str(demo_home)).code == 2


@pytest.mark.slow
def test_a_pdf_is_printed_where_there_is_a_browser(session: Path, cli: CliRunner) -> None:
    """A PDF is the same each time; without Chromium the sentence names the package."""
    if formats.find_browser() is None:
        result = cli("export", str(session), "--format", "pdf")
        assert result.code == 2
        assert "`chromium`" in result.err
        return
    for name in ("a.pdf", "b.pdf"):
        assert cli("export", str(session), "--out", name).code == 0
    assert Path("a.pdf").read_bytes().startswith(b"%PDF")
    assert Path("a.pdf").read_bytes() == Path("b.pdf").read_bytes()


def test_without_a_browser_the_package_is_named(session: Path, cli: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no Chromium, a sentence says what to install."""
    monkeypatch.setenv("THREADLINE_CHROMIUM", "/no/such/browser")
    result = cli("export", str(session), "--format", "pdf")
    assert result.code == 2
    assert "`chromium`" in result.err


def test_the_transcript_is_left_as_it_is(session: Path, cli: CliRunner) -> None:
    """Exporting reads and never writes below the home."""
    before = {path: path.read_bytes() for path in session.parents[2].rglob("*") if path.is_file()}
    cli("export", str(session), "--out", "x.html")
    assert {path: path.read_bytes() for path in session.parents[2].rglob("*") if path.is_file()} == before


def test_an_ending_that_no_form_has_is_refused(session: Path, cli: CliRunner) -> None:
    """A file whose ending no form has would not hold what it says: the forms are named; with `--to` any name goes."""
    result = cli("export", str(session), "--out", "talk.docx")
    assert (result.code, ".html, .md, .json, .jsonl, .txt, .pdf" in result.err) == (2, True), result.err
    assert not Path("talk.docx").exists()
    assert cli("export", str(session), "--out", "talk.v2", "--format", "md").code == 0
    assert Path("talk.v2").read_text().startswith("# ")


def test_a_name_that_ends_as_folders_do_is_one(session: Path, cli: CliRunner) -> None:
    """`--out new/` is a folder to be made, not a file of that name."""
    assert cli("export", str(session), "--format", "txt", "--out", "new/").code == 0
    assert [path.name for path in Path("new").iterdir()] == [f"{SESSION}.txt"]


def test_a_home_that_is_not_there_yet_is_left_alone(
    session: Path, cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the environment names as a home is one before Claude Code has made it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "later"))
    place = tmp_path / "later/projects/-x/talk.html"
    result = cli("export", str(session), "--out", str(place))
    assert (result.code, "is inside a Claude home" in result.err) == (2, True)
    assert not place.exists()


def test_the_place_that_is_full_is_named(
    session: Path, cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no room, the sentence names the place that has none, and not a file that stands in for it."""

    def full(_file: object, place: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", full)
        result = cli("export", str(session), "--out", "talk.html")
    assert (result.code, result.err) == (2, "threadline: 'talk.html' cannot be written: No space left on device.\n")
    monkeypatch.setattr(LineRedactor, "redact", lambda *_given: full(Path(), tmp_path / "work/copy"))
    result = cli("export", str(session), "--out", "talk.html")
    assert (result.code, "Free some space, or set TMPDIR to another folder" in result.err) == (2, True)
    assert not Path("talk.html").exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_word_that_looks_like_an_anchor_can_be_hidden(form: str, tmp_path: Path, cli: CliRunner) -> None:
    """What somebody said goes; the names that we give to places stay, and are not taken for something left over."""
    session = write_session(
        tmp_path, prompt("the lock L1 and L12"), reply("I see L1."), prompt("open L1"), reply("No.")
    )
    result = cli("export", str(session), "--format", form, "--hide", "L1", "--out", "x")
    assert (result.code, result.err) == (0, "")
    text = Path("x").read_text()
    assert re.search(r"the lock (?:\\?<|&lt;)word-1(?:>|&gt;) and ", text)
    assert not re.search(r"(?:lock|see|open) L1", text)
