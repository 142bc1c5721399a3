"""`threadline schema`: the generated schema accepts every case, and the types compile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.runner import CliRunner
from tests.cli.schema_validation import SchemaValidator, check_all
from tests.corpus_cases import CASES, CORPUS, expected, transcripts
from tests.doc_commands import run_shell_lines
from tests.profiles import every
from tests.transcripts import call, prompt, reply, transcript, write

from threadline.model.entries import KINDS, REQUIRED
from threadline.model.homes import Home, SideFile, SideFileKind
from threadline.model.results import TOOL_RESULTS
from threadline.parse import SIDE_SHAPES
from threadline.schema import schema_kinds

PAGE = Path(__file__).parents[2] / "docs/schema.md"
_OPTIONS = ("--strict", "--target", "es2022", "--lib", "es2022", "--module", "es2022", "--moduleResolution", "bundler")
PROGRAM = """
import { readFileSync } from "node:fs";
import type { ContentBlock, Entry, ToolResults, UserEntry } from "./claude-code";

function describe(block: ContentBlock | string): string {
  if (typeof block === "string") return block;
  switch (block.type) {
    case "text":
      return block.text ?? "";
    case "tool_use":
      return block.name ?? "?";
    case "tool_result":
      return `${block.tool_use_id} ${block.is_error ?? false}`;
    default:
      return block.type;
  }
}

let tokens = 0;
const prompts: UserEntry[] = [];
const texts: string[] = [];
for (const line of readFileSync(process.argv[2] ?? "", "utf8").split("\\n")) {
  if (line === "") continue;
  const entry = JSON.parse(line) as Entry;
  if (entry.type === "assistant") {
    tokens += entry.message.usage.output_tokens ?? 0;
    const content = entry.message.content;
    if (typeof content !== "string") texts.push(...content.map(describe));
  } else if (entry.type === "user") {
    prompts.push(entry);
    const result = entry.toolUseResult as ToolResults["Bash"] | undefined;
    if (result?.stdout) texts.push(result.stdout);
  }
}
console.log(JSON.stringify({ tokens, prompts: prompts.length, texts, session: prompts[0]?.sessionId }));
"""


@pytest.fixture(scope="module")
def validator() -> SchemaValidator:
    """A validator for all tests: to compile the schema takes long."""
    return SchemaValidator()


@pytest.mark.slow
def test_the_schema_is_valid(validator: SchemaValidator) -> None:
    """It is a schema of its draft."""
    validator.check_schema()


def test_every_case_validates(validator: SchemaValidator) -> None:
    """Every line and side file of every case that is read without problems validates against the schema of its kind."""
    cases = every(5, CASES)
    side_files = [
        SideFile(path, Home(path.parent, "option"), SideFileKind(item["side"]), path.stat().st_size)
        for case in cases
        for item in expected(case)
        if "side" in item
        for path in [CORPUS / case / "in" / item["file"]]
    ]
    check_all(validator, [path for case in cases for path in transcripts(case)], side_files)
    assert sum(validator.counts.values()) > len(cases)
    if cases == CASES:
        assert {"UserEntry", "SystemEntry", "ShellResult", "TodosFile"} <= validator.counts.keys()


@pytest.mark.parametrize(
    ("row", "is_valid"),
    [
        ({"type": "user"}, False),
        ({"type": "novelty", "anything": 1}, True),
        ({"type": "novelty", "uuid": 1}, False),
        ({"no": "type"}, False),
        ({"type": "summary", "summary": "A title", "leafUuid": "u1", "novelty": True}, True),
        ({"type": "summary", "summary": None, "leafUuid": "u1"}, False),
        ({"type": "summary", "summary": 3, "leafUuid": "u1"}, False),
    ],
)
def test_lines_are_valid_or_not(validator: SchemaValidator, row: dict[str, object], is_valid: bool) -> None:
    """Required fields must be present and of their type; unknown fields and kinds are allowed."""
    assert validator.check_any_line(row) is is_valid


def test_system_entries_need_what_their_subtype_needs(validator: SchemaValidator) -> None:
    """A `turn_duration` without `durationMs` is not valid."""
    (row,) = transcript(lambda pen: iter([pen.chain("system", subtype="turn_duration", durationMs=5)]))
    assert isinstance(row, dict)
    assert validator.check_any_line(row)
    assert not validator.check_any_line({key: value for key, value in row.items() if key != "durationMs"})


def test_every_kind_has_a_schema(cli: CliRunner) -> None:
    """All entries, blocks, results and side files are listed, and each has a schema and a TypeScript type by name."""
    rows = cli("schema", "--list", "--json").json
    names = {row["kind"] for row in rows}
    assert names >= {
        *KINDS,
        *(f"result/{tool}" for tool in TOOL_RESULTS),
        *(f"side-file/{side}" for side in SIDE_SHAPES),
    }
    assert {"block/text", "attachment/file", "progress/bash_progress", "side-file/history"} <= names
    assert all(row["description"].endswith(".") for row in rows)
    everything = cli("schema", "--format", "typescript").out
    for row in rows:
        assert f" {row['definition']} " in everything, row
    assert "result/Bash" in cli("schema", "--list").out


@pytest.mark.parametrize("name", ["user", "block/tool_use", "result/Edit", "ShellResult", "side-file/todos"])
def test_one_kind_has_only_the_definitions_it_uses(cli: CliRunner, name: str) -> None:
    """With `--kind`, the schema is closed: every reference has a definition, and every definition is referenced."""
    text = cli("schema", "--kind", name).out
    schema = json.loads(text)
    for definition in schema["$defs"]:
        assert f'"#/$defs/{definition}"' in text
    assert text.count("$ref") == sum(text.count(f'"#/$defs/{definition}"') for definition in schema["$defs"])
    assert cli("schema", "--kind", name, "--format", "typescript").out.startswith("// Claude Code's files.")


@pytest.mark.parametrize("option", ["--kind", "--out"])
def test_list_refuses_what_it_would_ignore(cli: CliRunner, tmp_path: Path, option: str) -> None:
    """The list has all kinds, and goes to standard output."""
    refused = cli("schema", "--list", option, tmp_path / "user")
    assert (refused.code, refused.out) == (2, "")
    assert option in refused.err


def test_unknown_kind_suggests_one(cli: CliRunner) -> None:
    """A typo is answered with the kind that was meant."""
    result = cli("schema", "--kind", "result/Bsh")
    assert (result.code, result.out) == (2, "")
    assert "Did you mean result/Bash?" in result.err


def test_output_is_a_file(cli: CliRunner, tmp_path: Path) -> None:
    """`--output` writes what would be printed, and a second time the same."""
    path = tmp_path / "claude-code.ts"
    for _ in range(2):
        result = cli("schema", "--format", "typescript", "--output", path)
        assert (result.code, result.out, result.err) == (0, "", "")
    assert path.read_text() == cli("schema", "--format", "typescript").out
    assert cli("schema", "--json").code == 2


def test_output_does_not_replace_a_pipe_or_a_link(cli: CliRunner, tmp_path: Path) -> None:
    """A pipe, a device and a link are refused."""
    os.mkfifo(tmp_path / "pipe")
    result = cli("schema", "--kind", "user", "--output", tmp_path / "pipe")
    assert (result.code, "not a regular file" in result.err) == (2, True)
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert cli("schema", "--kind", "user", "--output", tmp_path / "link").code == 2
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "target").exists()


def test_required_fields_are_those_of_every_version(validator: SchemaValidator) -> None:
    """The schema requires what `doctor` requires, except fields of some versions only."""
    definitions = {kind.name: kind.definition for kind in schema_kinds()}
    schema = validator.definitions
    for rule in REQUIRED:
        if not (rule.since or rule.until or rule.only or "." in rule.field):
            assert rule.field in schema[definitions[rule.kind]]["required"], rule


@pytest.mark.slow
def test_examples_of_the_page_work(demo_home: Path, tmp_path: Path) -> None:
    """Every command of `docs/schema.md` prints or writes something, and its Python validates the demo home."""
    pytest.importorskip("jsonschema", reason="jsonschema, of the extra `test`, is not installed")
    for line, result in run_shell_lines(PAGE, tmp_path, demo_home):
        assert (result.returncode, result.stderr) == (0, b""), line
        assert result.stdout or ">" in line or "--out" in line, line
    work = tmp_path / "work"
    assert json.loads((work / "transcript.schema.json").read_bytes())["$ref"] == "#/$defs/Entry"
    (work / "demo-home").symlink_to(demo_home)
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    printed = subprocess.run(  # noqa: S603 - our own example
        [sys.executable, "-W", "error", "-c", code],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(PAGE.parents[1] / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.splitlines()
    assert len(printed) == len(list(demo_home.glob("projects/*/*.jsonl")))
    assert all(re.search(r" 0 of \d+ lines are not valid$", line) for line in printed), printed


def test_types_compile_and_a_program_uses_them(cli: CliRunner, tmp_path: Path) -> None:
    """`tsc --strict` accepts the types and a program that narrows unions by `type`; the program reads a transcript."""
    node, tsc = shutil.which("node"), os.environ.get("THREADLINE_TSC") or shutil.which("tsc")
    if node is None or tsc is None:
        pytest.skip("node or tsc is not installed (THREADLINE_TSC may name tsc)")
    assert cli("schema", "--format", "typescript", "--output", tmp_path / "claude-code.ts").code == 0
    (tmp_path / "program.ts").write_text(PROGRAM)
    (tmp_path / "node.d.ts").write_text(
        'declare module "node:fs" { export function readFileSync(path: string, encoding: "utf8"): string; }\n'
        "declare const process: { argv: string[] };\n"
        "declare const console: { log(...values: unknown[]): void };\n"
    )
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (example,) = re.findall(r"^```ts\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "example.ts").write_text(example)
    compiled = subprocess.run(  # noqa: S603 - the compiler that the tester names
        [tsc, *_OPTIONS, "program.ts", "example.ts", "node.d.ts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (compiled.returncode, compiled.stdout) == (0, "")
    path = write(
        tmp_path / "session.jsonl",
        *transcript(prompt("hi"), reply("ok", output=3), call("Bash", "ls", result="a", details={"stdout": "out"})),
    )
    printed = subprocess.run(  # noqa: S603 - the program above
        [node, "program.js", str(path)], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    answer = json.loads(printed.stdout)
    assert answer["session"] == "5e551011-0000-4000-8000-000000000001"
    assert answer["prompts"] == 2
    assert "ok" in answer["texts"]
    assert {"Bash", "out"} <= set(answer["texts"])
