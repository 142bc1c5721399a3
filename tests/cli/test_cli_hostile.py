"""Text that wants to steer the terminal, the spreadsheet or the reader (hostile.md rows 8, 23, 33, 34)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, control_characters, run_in_subprocess
from tests.transcripts import Pen, Row, call, chain, line, meta, prompt, reply, transcript, write

STEER = {
    "csi": "\x1b[31m\x1b[2J\x1b[1;1H",
    "osc-title": "\x1b]0;title\x07",
    "osc-link": "\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\",
    "osc-link-unclosed": "\x1b]8;;http://example.invalid\x07never closed",
    "osc-clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "dcs": "\x1bP$q\x1b\\",
    "c1": "\x9b31m\x90q\x9c\x9d52;c;eA==\x9c\x85",
    "backspaces": "good\b\b\b\bevil\r\x7f\v\f",
    "bidi": "\u202eevil\u202c\u2066x\u2069\u200f\u061c",
    "zero-width": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00ad",
    "tags": "".join(chr(0xE0000 + ord(letter)) for letter in "ignore") + "\U000e007f",
    "lines": "one\u2028two\u2029three",
    "private": "\ue000\U0010fffd",
    "surrogate": "\ud800 \udfff \udc9b",
}
EVERYTHING = "".join(STEER.values())
TEXTS = [
    pytest.param(EVERYTHING, id="everything"),
    *(pytest.param(text, id=name, marks=pytest.mark.slow) for name, text in STEER.items()),
]
"""All of them in one, and each by itself to tell which it was."""
# A file's name holds neither a slash nor a NUL, and no half surrogate pair; undecodable bytes come as such.
IN_NAMES = EVERYTHING.replace("/", "|").encode(errors="ignore").decode()[:60] + "\udcff"
TABLES: tuple[list[str], ...] = ([], ["doctor"], ["doctor", "--check"], ["entries"])


def escaped(row: Row) -> bytes:
    """A row with everything beyond ASCII escaped, as JavaScript writes half surrogate pairs."""
    return json.dumps(row).encode() + b"\n"


def hostile_rows(text: str) -> list[bytes]:
    """Rows that have the text wherever one can stand: texts, names, kinds, versions, models, ids, unknown fields."""
    everywhere: Row = {"cwd": f"/{text}", "gitBranch": text, "version": text, "slug": text, text: text}
    pen = Pen(sessionId=text, **everywhere)
    rows = transcript(
        prompt(text),
        reply(text, {"type": "thinking", "thinking": text}, {"type": text, text: text}, message={"model": text}),
        call(text, {"command": text}, result=text, details={text: text}, error=True),
        chain("system", subtype=text, content=text),
        chain("attachment", attachment={"type": text, "content": text}),
        chain("user", message={"role": text, "content": {text: text}}, agentId=text, isSidechain=True),
        chain("user", message=text, toolUseResult=text),
        meta(text, value=text),
        meta("summary", summary=text, leafUuid=text),
        meta("custom-title", customTitle=text),
        meta("pr-link", prUrl=text, prNumber=text),
        {text: text},
        pen=pen,
    )
    return [escaped(row) for row in rows if isinstance(row, dict)]


def hostile_home(home: Path, text: str, *, names: bool = True) -> Path:
    """A home whose transcripts, and where asked the names of its folders and files, hold the text."""
    inside = hostile_rows(text)
    damage = [b"\x1b[31m not JSON \x9b\xc2\x9b\n", b'{"type":"user","message":{"role":"user","content":"\x1b[31m"']
    folder = f"-a{IN_NAMES}" if names else "-a"
    main = "5e551011-0000-4000-8000-000000000001.jsonl"
    write(home / "projects" / folder / main, *inside, *damage)
    write(home / "projects" / folder / "5e551011-0000-4000-8000-000000000002.jsonl", *inside)
    if names:
        write(home / "projects" / folder / f"agent-{IN_NAMES}.jsonl", *inside)
        (home / "projects" / folder / f"loop{IN_NAMES}.jsonl").symlink_to(f"loop{IN_NAMES}.jsonl")
        write(home / "todos" / f"{IN_NAMES}.json", b"[")
    write(home / "history.jsonl", line({"display": "x", "project": "/x"}))
    return home


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("command", TABLES, ids=lambda words: " ".join(words) or "overview")
def test_nothing_in_a_transcript_steers_the_terminal(
    cli: CliRunner, tmp_path: Path, command: list[str], text: str
) -> None:
    """Control sequences, C1, bidi, zero-width, tags and the like, wherever they stand, reach no table raw."""
    home = hostile_home(tmp_path / "home", text, names=False)
    where = [str(home)] if command[:1] == ["entries"] else ["--home", str(home)]
    result = cli(*command, *where)
    assert result.code == 0
    assert control_characters(result.out + result.err) == set()
    assert b"\x1b" not in result.raw + result.raw_err


@pytest.mark.parametrize("command", TABLES, ids=lambda words: " ".join(words) or "overview")
def test_no_name_of_a_file_steers_the_terminal(cli: CliRunner, tmp_path: Path, command: list[str]) -> None:
    """The same in names of project folders, transcripts, side files and in places; each shows as an escape."""
    home = hostile_home(tmp_path / "home", EVERYTHING)
    where = [str(home)] if command[:1] == ["entries"] else ["--home", str(home)]
    result = cli(*command, *where)
    assert result.code == 0
    assert control_characters(result.out + result.err) == set()
    assert "\\x1b[31m" in result.out


def test_no_sentence_of_an_error_steers_the_terminal(cli: CliRunner, tmp_path: Path) -> None:
    """Errors that name a file, a start of an id, an option or a word show them as escapes, too."""
    home = hostile_home(tmp_path / "home", EVERYTHING)
    nowhere = f"nowhere{IN_NAMES}"
    busy = tmp_path / f"busy{IN_NAMES}"
    write(busy / "x", b"x")
    questions: list[list[str | Path]] = [
        ["entries", "5e551011", "--home", home],
        ["entries", nowhere],
        ["doctor", nowhere],
        ["--home", nowhere],
        ["demo", busy],
        ["entries", home, "--since", EVERYTHING.replace("\ud800", "")],
        [f"--{IN_NAMES}"],
        [IN_NAMES],
        ["entries", home, "--limit", IN_NAMES],
    ]
    for question in questions:
        result = cli(*question)
        assert (result.code, result.out) == (2, "")
        assert control_characters(result.err) == set()
    assert cli(*questions[0]).err.count("\\x1b[31m") >= 2


def test_what_the_demo_says_does_not_steer(cli: CliRunner, tmp_path: Path) -> None:
    """A directory with a hostile name, freshly made, is named with escapes."""
    result = cli("demo", tmp_path / f"new{IN_NAMES}")
    assert result.code == 0
    assert control_characters(result.out) == set()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_csv_cell_is_a_formula(cli: CliRunner, tmp_path: Path, start: str) -> None:
    """A cell that starts as a formula does is quoted, in entries, projects and findings; JSON has it as it is."""
    text = start + 'HYPERLINK("http://example.invalid","x")'
    pen = Pen(sessionId=text, version=text, cwd=text)
    rows = transcript(prompt(text), chain("user", agentId=text), meta(text), chain("system", subtype=text), pen=pen)
    path = write(tmp_path / "projects/-a/5e551011-0000-4000-8000-000000000001.jsonl", *rows)
    asked = [cli("entries", path, "--csv"), cli("--home", tmp_path, "--csv"), cli("doctor", path, "--csv")]
    for result in asked:
        cells = [cell for row in result.csv for cell in row.values()]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert f"'{text}" in cells
    assert cli("entries", path, "--jsonl", "--limit", "1").jsonl[0]["text"] == text


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "'", ""])
def test_csv_changes_a_formula_only_by_its_quote(cli: CliRunner, tmp_path: Path, start: str) -> None:
    """A CSV reader gets what JSON has, but for the quote before a cell that would be a formula."""
    text = start + "SUM(A1)"
    path = write(tmp_path / "a.jsonl", *transcript(prompt(text), prompt("after")))
    first = f"'{text}" if start and start != "'" else text
    assert [row["text"] for row in cli("entries", path, "--csv").csv] == [first, "after"]


@pytest.mark.parametrize("text", STEER.values(), ids=STEER.keys())
def test_json_steers_no_terminal_and_comes_back_as_it_was(cli: CliRunner, tmp_path: Path, text: str) -> None:
    """JSON escapes what could steer a terminal, and a JSON reader gives the text back."""
    path = write(tmp_path / "a.jsonl", escaped({"type": "user", "message": {"role": "user", "content": text}}))
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for output in ("--json", "--jsonl"):
        result = cli("entries", path, "--data", output)
        assert control_characters(result.out) == set()
        (row,) = result.json if output == "--json" else result.jsonl
        assert row["text"] == row["data"]["message"]["content"] == whole


def test_no_csv_cell_rings_or_paints(cli: CliRunner, tmp_path: Path) -> None:
    """Control characters in CSV cells are escaped; tabs and other characters stay."""
    text = "a\x1b]52;c;eA==\x07\x9b31m\x00\x7f\tb\u200d"
    path = tmp_path / "x.jsonl"
    path.write_bytes(json.dumps({"type": "user", "message": {"content": text}}).encode() + b"\n")
    assert cli("entries", path, "--csv").csv[0]["text"] == "a\\x1b]52;c;eA==\\x07\\x9b31m\\x00\\x7f\tb\u200d"


def test_csv_survives_quotes_and_newlines(cli: CliRunner, tmp_path: Path) -> None:
    """Commas, quotes and newlines inside a cell come back from a CSV reader as they were."""
    text = "a,\"b\"\n\r\nc;'d'\ttab"
    path = write(tmp_path / "a.jsonl", *transcript(prompt(text), prompt("after")))
    assert [row["text"] for row in cli("entries", path, "--csv").csv] == [text, "after"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "output", ["--json", "", *(pytest.param(output, marks=pytest.mark.slow) for output in ("--jsonl", "--csv"))]
)
def test_half_surrogate_pairs_give_valid_utf8(tmp_path: Path, output: str) -> None:
    """Lone surrogates in texts, kinds, versions and names come out as valid UTF-8 in every format and command."""
    home = hostile_home(tmp_path / "home", STEER["surrogate"])
    data = ["--data"] if output else []
    commands: list[list[str | Path]] = [["--home", home], ["doctor", "--home", home], ["entries", home, *data]]
    for command in commands:
        result = run_in_subprocess(*command, *output.split())
        assert result.code == 0
        assert result.err == ""
        assert result.out
        if output in {"--json", "--jsonl"}:
            assert result.json if output == "--json" else result.jsonl


def test_whole_surrogate_pairs_are_characters(cli: CliRunner, tmp_path: Path) -> None:
    """A pair of escapes that makes a character is that character; other text beside a half one is kept."""
    path = write(
        tmp_path / "a.jsonl",
        b'{"type":"user","message":{"role":"user","content":"\\ud83d\\ude00 \\ud83d! \xc3\xa9"}}\n',
    )
    (row,) = cli("entries", path, "--jsonl").jsonl
    assert row["text"] == "\U0001f600 \ufffd! é"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "name",
    [
        "new\nline",
        "..x",
        "-rf",
        "%00",
        "x" * 200,
        "\u05d0\u05d1",
        "e\u0301",
        "\u00e9",
        "\U0001f600",
        "CON",
        "a b'c\"d`$(x)",
    ],
)
def test_odd_names_are_listed(cli: CliRunner, tmp_path: Path, name: str) -> None:
    """Folders with newlines, dashes, dots, right-to-left letters, emoji, quotes are listed, on one line each."""
    home = tmp_path / "home"
    path = write(home / "projects" / name / "5e551011-0000-4000-8000-000000000001.jsonl", *transcript(prompt("hi")))
    seen = cli("--home", home, "--json").json
    assert seen["projects"][0]["folder"] == name
    assert cli("doctor", "--home", home, "--check", "--json").json["round_trip"] is True
    assert cli("entries", path, "--jsonl").jsonl[0]["place"] == f"{path}:1"
    commands: list[list[str | Path]] = [["--home", home], ["doctor", "--home", home], ["entries", home]]
    for command in commands:
        assert not control_characters(cli(*command).out)


def test_a_long_text_takes_one_short_line(cli: CliRunner, tmp_path: Path) -> None:
    """A text of megabytes, and one of nothing but combining marks, take one line of a table, soon."""
    path = write(tmp_path / "a.jsonl", *transcript(prompt("word \u202e" * 1_000_000), prompt("e" + "\u0301" * 100_000)))
    lines = cli("entries", path).out.split("\n")
    assert len(lines) == 4
    assert max(map(len, lines)) < 1000


def test_no_pager_editor_or_browser_is_started(tmp_path: Path, demo_home: Path) -> None:
    """`PAGER`, `EDITOR`, `BROWSER` and the like, set by somebody else, start nothing."""
    trap = tmp_path / "trap"
    planted = dict.fromkeys(("PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "SHELL"), f"touch {trap}")
    home = str(demo_home)
    for command in (["--home", home], ["doctor", home], ["entries", home], ["--help"]):
        assert run_in_subprocess(*command, **planted).code == 0
    assert not trap.exists()
