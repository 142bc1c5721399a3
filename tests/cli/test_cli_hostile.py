"""Text that tries to control the terminal, the spreadsheet or the reader (hostile.md rows 8, 23, 33, 34)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner, control_characters, run_in_subprocess
from tests.transcripts import Pen, Row, call, chain, line, meta, prompt, reply, transcript, write

HOSTILE_TEXTS = {
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
EVERYTHING = "".join(HOSTILE_TEXTS.values())
TEXTS = [
    pytest.param(EVERYTHING, id="everything"),
    *(pytest.param(text, id=name, marks=pytest.mark.slow) for name, text in HOSTILE_TEXTS.items()),
]
"""All of them in one text, and each by itself to show which one fails."""
# A file name contains no slash, NUL or lone surrogate, except for undecodable bytes.
IN_NAMES = EVERYTHING.replace("/", "|").encode(errors="ignore").decode()[:60] + "\udcff"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the start of a formula; the last four are full-width signs."""
TABLES: tuple[list[str], ...] = ([], ["doctor"], ["doctor", "--check"], ["entries"])


def ascii_json(row: Row) -> bytes:
    """A row with everything beyond ASCII escaped, as JavaScript writes lone surrogates."""
    return json.dumps(row).encode() + b"\n"


def hostile_rows(text: str) -> list[bytes]:
    """Rows with the text in every field: texts, names, kinds, versions, models, ids, unknown fields."""
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
    return [ascii_json(row) for row in rows if isinstance(row, dict)]


def hostile_home(home: Path, text: str, *, names: bool = True) -> Path:
    """A home with the text in its transcripts, and optionally in the names of its folders and files."""
    rows = hostile_rows(text)
    damage = [b"\x1b[31m not JSON \x9b\xc2\x9b\n", b'{"type":"user","message":{"role":"user","content":"\x1b[31m"']
    folder = f"-a{IN_NAMES}" if names else "-a"
    main = "5e551011-0000-4000-8000-000000000001.jsonl"
    write(home / "projects" / folder / main, *rows, *damage)
    write(home / "projects" / folder / "5e551011-0000-4000-8000-000000000002.jsonl", *rows)
    if names:
        write(home / "projects" / folder / f"agent-{IN_NAMES}.jsonl", *rows)
        (home / "projects" / folder / f"loop{IN_NAMES}.jsonl").symlink_to(f"loop{IN_NAMES}.jsonl")
        write(home / "todos" / f"{IN_NAMES}.json", b"[")
    write(home / "history.jsonl", line({"display": "x", "project": "/x"}))
    return home


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("command", TABLES, ids=lambda words: " ".join(words) or "overview")
def test_tables_escape_hostile_text(cli: CliRunner, tmp_path: Path, command: list[str], text: str) -> None:
    """Control sequences, C1, bidi, zero-width, tags and similar characters are escaped in every table."""
    home = hostile_home(tmp_path / "home", text, names=False)
    where = [str(home)] if command[:1] == ["entries"] else ["--home", str(home)]
    result = cli(*command, *where)
    assert result.code == 0
    assert control_characters(result.out + result.err) == set()
    assert b"\x1b" not in result.raw + result.raw_err


@pytest.mark.parametrize("command", TABLES, ids=lambda words: " ".join(words) or "overview")
def test_tables_escape_hostile_file_names(cli: CliRunner, tmp_path: Path, command: list[str]) -> None:
    """Hostile names of folders, transcripts and side files are escaped."""
    home = hostile_home(tmp_path / "home", EVERYTHING)
    where = [str(home)] if command[:1] == ["entries"] else ["--home", str(home)]
    result = cli(*command, *where)
    assert result.code == 0
    assert control_characters(result.out + result.err) == set()
    assert "\\x1b[31m" in result.out


def test_errors_escape_hostile_text(cli: CliRunner, tmp_path: Path) -> None:
    """Errors that name a file, an id prefix, an option or a word escape them."""
    home = hostile_home(tmp_path / "home", EVERYTHING)
    missing = f"nowhere{IN_NAMES}"
    occupied = tmp_path / f"busy{IN_NAMES}"
    write(occupied / "x", b"x")
    commands: list[list[str | Path]] = [
        ["entries", "5e551011", "--home", home],
        ["entries", missing],
        ["doctor", missing],
        ["--home", missing],
        ["demo", occupied],
        ["entries", home, "--since", EVERYTHING.replace("\ud800", "")],
        [f"--{IN_NAMES}"],
        [IN_NAMES],
        ["entries", home, "--limit", IN_NAMES],
    ]
    for command in commands:
        result = cli(*command)
        assert (result.code, result.out) == (2, "")
        assert control_characters(result.err) == set()
    assert cli(*commands[0]).err.count("\\x1b[31m") >= 2


def test_demo_escapes_hostile_directory_name(cli: CliRunner, tmp_path: Path) -> None:
    """`demo` escapes the name of the new directory."""
    result = cli("demo", tmp_path / f"new{IN_NAMES}")
    assert result.code == 0
    assert control_characters(result.out) == set()


@pytest.mark.parametrize("start", FORMULA_STARTS)
def test_no_csv_cell_is_a_formula(cli: CliRunner, tmp_path: Path, start: str) -> None:
    """A CSV cell that starts like a formula is quoted in every command. JSON has the text unchanged."""
    text = start + 'HYPERLINK("http://example.invalid","x")'
    pen = Pen(sessionId=text, version=text, cwd=text)
    rows = transcript(prompt(text), chain("user", agentId=text), meta(text), chain("system", subtype=text), pen=pen)
    path = write(tmp_path / "projects/-a/5e551011-0000-4000-8000-000000000001.jsonl", *rows)
    results = [cli("entries", path, "--csv"), cli("--home", tmp_path, "--csv"), cli("doctor", path, "--csv")]
    for result in results:
        cells = [cell for row in result.csv for cell in row.values()]
        assert not [cell for cell in cells if cell.startswith(FORMULA_STARTS)]
        assert f"'{text}" in cells
    assert cli("entries", path, "--jsonl", "--limit", "1").jsonl[0]["text"] == text


@pytest.mark.parametrize("start", [*FORMULA_STARTS, "'", ""])
def test_csv_only_adds_a_quote_to_formulas(cli: CliRunner, tmp_path: Path, start: str) -> None:
    """A CSV reader gets the text of the JSON, except for the quote before a formula."""
    text = start + "SUM(A1)"
    path = write(tmp_path / "a.jsonl", *transcript(prompt(text), prompt("after")))
    first = f"'{text}" if start and start != "'" else text
    assert [row["text"] for row in cli("entries", path, "--csv").csv] == [first, "after"]


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
def test_json_escapes_hostile_text_and_round_trips(cli: CliRunner, tmp_path: Path, text: str) -> None:
    """JSON escapes control characters, and a JSON reader gets the text back."""
    path = write(tmp_path / "a.jsonl", ascii_json({"type": "user", "message": {"role": "user", "content": text}}))
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for output in ("--json", "--jsonl"):
        result = cli("entries", path, "--data", output)
        assert control_characters(result.out) == set()
        (row,) = result.json if output == "--json" else result.jsonl
        assert row["text"] == row["data"]["message"]["content"] == expected


def test_csv_escapes_control_characters(cli: CliRunner, tmp_path: Path) -> None:
    """Control and hidden characters in CSV cells are escaped as in a table. Tabs and line ends are kept."""
    text = "a\x1b]52;c;eA==\x07\x9b31m\x00\x7f\tb\u200d\u202ec\u2066d\u2069\n\u200fe\U000e0041 f\xe9"
    path = tmp_path / "x.jsonl"
    path.write_bytes(json.dumps({"type": "user", "message": {"content": text}}).encode() + b"\n")
    assert cli("entries", path, "--csv").csv[0]["text"] == (
        "a\\x1b]52;c;eA==\\x07\\x9b31m\\x00\\x7f\tb\\u200d\\u202ec\\u2066d\\u2069\n\\u200fe\\U000e0041 f\xe9"
    )


def test_csv_quotes_commas_quotes_and_newlines(cli: CliRunner, tmp_path: Path) -> None:
    """A CSV reader gets commas, quotes and newlines back unchanged."""
    text = "a,\"b\"\n\r\nc;'d'\ttab"
    path = write(tmp_path / "a.jsonl", *transcript(prompt(text), prompt("after")))
    assert [row["text"] for row in cli("entries", path, "--csv").csv] == [text, "after"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "output", ["--json", "", *(pytest.param(output, marks=pytest.mark.slow) for output in ("--jsonl", "--csv"))]
)
def test_lone_surrogates_give_valid_utf8(cli: CliRunner, tmp_path: Path, output: str) -> None:
    """Lone surrogates are printed as valid UTF-8 in every format and command."""
    home = hostile_home(tmp_path / "home", HOSTILE_TEXTS["surrogate"])
    data = ["--data"] if output else []
    commands: list[list[str | Path]] = [["--home", home], ["doctor", "--home", home], ["entries", home, *data]]
    for command in commands:
        result = cli(*command, *output.split())
        assert result.code == 0
        assert result.err == ""
        assert result.out
        if output in {"--json", "--jsonl"}:
            assert result.json if output == "--json" else result.jsonl


def test_surrogate_pairs_are_characters(cli: CliRunner, tmp_path: Path) -> None:
    """A pair of surrogate escapes is one character. Text next to a lone surrogate is kept."""
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
def test_lists_odd_folder_names(cli: CliRunner, tmp_path: Path, name: str) -> None:
    """Folder names with newlines, dashes, dots, right-to-left letters, emoji and quotes are listed on one line."""
    home = tmp_path / "home"
    path = write(home / "projects" / name / "5e551011-0000-4000-8000-000000000001.jsonl", *transcript(prompt("hi")))
    overview = cli("--home", home, "--json").json
    assert overview["projects"][0]["folder"] == name
    assert cli("doctor", "--home", home, "--check", "--json").json["round_trip"] is True
    assert cli("entries", path, "--jsonl").jsonl[0]["place"] == f"{path}:1"
    commands: list[list[str | Path]] = [["--home", home], ["doctor", "--home", home], ["entries", home]]
    for command in commands:
        assert not control_characters(cli(*command).out)


def test_long_text_takes_one_short_line(cli: CliRunner, tmp_path: Path) -> None:
    """A text of megabytes, and one of only combining marks, take one line of a table."""
    path = write(tmp_path / "a.jsonl", *transcript(prompt("word \u202e" * 1_000_000), prompt("e" + "\u0301" * 100_000)))
    lines = cli("entries", path).out.split("\n")
    assert len(lines) == 4
    assert max(map(len, lines)) < 1000


@pytest.mark.slow
def test_starts_no_pager_editor_or_browser(tmp_path: Path, demo_home: Path) -> None:
    """`PAGER`, `EDITOR`, `BROWSER` and similar variables start nothing."""
    trap = tmp_path / "trap"
    variables = dict.fromkeys(("PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "SHELL"), f"touch {trap}")
    home = str(demo_home)
    for command in (["--home", home], ["doctor", home], ["entries", home], ["--help"]):
        assert run_in_subprocess(*command, **variables).code == 0
    assert not trap.exists()
