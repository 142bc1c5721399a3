"""Trajectories, evaluation logs, messages and data sets: valid, redacted, and with the ledger's totals."""

from __future__ import annotations

import json
import sys
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.runner import CliRunner
from tests.redact.credentials import seeded, token_value
from tests.subtests import Subtests
from tests.transcripts import START, Pen, Row, call, chain, prompt, reply, transcript, write

import threadline
from threadline.export import ExportFormat, ExportOptions, export_sessions, parse_splits
from threadline.load import read
from threadline.model.ledger import Sum
from threadline.redact.rules.formats import FORMATS
from threadline.render import Detail, View

pq = pytest.importorskip("pyarrow.parquet")
SESSION = "5e551011-0000-4000-8000-000000000001"
AGENT = "a1b2c3d4"
TOKEN = token_value(next(rule for rule in FORMATS if rule.kind == "github-token"), seeded(1))
DATA_FORMATS = {"atif": "", "inspect": "log.eval", "scout": "", "messages": "all.jsonl", "hf": ""}


def _thinking(text: str) -> Row:
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def _write_home(home: Path) -> Path:
    """A home with a session that has an agent, an abandoned branch and an open call. Returns its transcript."""
    folder = home / "projects/-home-annika-app"
    pen = Pen(SESSION, cwd="/home/annika/app")
    rows = transcript(prompt(f"ask Annika; use {TOKEN} in /home/annika/app"), pen=pen)
    fork = pen.parent
    rows += transcript(prompt("abandoned"), reply("never mind", output=7, written=100), pen=pen)
    pen.parent = fork
    rows += transcript(
        reply(_thinking("which files?"), "I will look at the files.", output=20, read=50),
        call("Bash", "ls", result="a.py\nb.py", output=5),
        call("Agent", "count lines", result="12 lines", details={"agentId": AGENT, "content": "12 lines"}),
        call("Read", "/home/annika/app/a.py"),
        prompt("and now?"),
        chain("user", isMeta=True, message={"role": "user", "content": "a note of Claude Code"}),
        reply("Done.", message={"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}),
        reply("All done.", output=9),
        pen=pen,
    )
    agent = Pen(f"5e551011-0000-4000-8000-0000{AGENT}", sessionId=SESSION, agentId=AGENT, isSidechain=True)
    write(
        folder / SESSION / f"subagents/agent-{AGENT}.jsonl",
        *transcript(prompt("count lines"), call("Bash", "wc -l a.py", result="12"), reply("12", output=3), pen=agent),
    )
    return write(folder / f"{SESSION}.jsonl", *rows)


def _export(cli: CliRunner, folder: Path, form: str, *arguments: str) -> Path:
    target = folder / form / DATA_FORMATS[form]
    out = str(target) if target.suffix else f"{target}/"
    (target.parent if target.suffix else target).mkdir(parents=True, exist_ok=True)
    result = cli("export", "--format", form, "--out", out, *arguments)
    assert (result.code, result.err) == (0, ""), form
    return target


def _texts(path: Path) -> str:
    """Everything that a reader of the exported files can see."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    texts = []
    for file in files:
        if file.suffix == ".eval":
            with zipfile.ZipFile(file) as archive:
                texts += [archive.read(name).decode() for name in archive.namelist()]
        elif file.suffix == ".parquet":
            texts += [json.dumps(row, default=str) for row in pq.read_table(file).to_pylist()]
        else:
            texts.append(file.read_text())
    return "\n".join(texts)


@pytest.mark.parametrize("form", DATA_FORMATS)
def test_names_of_models_are_redacted(form: str, cli: CliRunner, tmp_path: Path) -> None:
    """A gateway's name of a model may tell who uses it: `--hide` and the rules for secrets apply to totals, too."""
    path = tmp_path / "home/projects/-a" / f"{SESSION}.jsonl"
    write(path, *transcript(prompt("go"), reply("ok", message={"model": f"quillworks/{TOKEN}"}, output=3)))
    text = _texts(_export(cli, tmp_path / "out", form, "--hide", "quillworks", str(path)))
    assert TOKEN not in text
    assert "quillworks" not in text


@pytest.mark.parametrize("form", DATA_FORMATS)
def test_every_format_is_redacted(form: str, cli: CliRunner, tmp_path: Path) -> None:
    """No secret and no name is in any file, what was said is, and two exports are equal byte for byte."""
    session = _write_home(tmp_path / "home")
    first = _export(cli, tmp_path / "first", form, str(session))
    second = _export(cli, tmp_path / "second", form, str(session))
    text = _texts(first)
    assert TOKEN not in text
    assert "annika" not in text.lower()
    assert "<secret-1>" in text
    for said in ("I will look at the files.", "a.py", "wc -l", "and now?"):
        assert said in text
    files = [path.relative_to(first) for path in first.rglob("*")] if first.is_dir() else [Path()]
    for name in files:
        if (first / name).is_file():
            assert (first / name).read_bytes() == (second / name).read_bytes()


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", DATA_FORMATS)
def test_metrics_have_no_text(form: str, cli: CliRunner, tmp_path: Path) -> None:
    """With the level `metrics`, the files have no text of the session, and the same usage."""
    session = _write_home(tmp_path / "home")
    target = _export(cli, tmp_path, form, str(session), "--level", "metrics")
    text = _texts(target)
    assert not any(said in text for said in ("I will look at the files.", "a.py", "count lines", "annika"))
    if form == "atif":
        document = json.loads(next(target.iterdir()).read_text())
        total = read(session).ledger.total
        assert document["final_metrics"]["total_completion_tokens"] == total.output


def _check_rows(rows: list[dict[str, Any]], total: Sum) -> None:
    """Check that the rows of a session add up to its total, to the last digit."""
    for kind in ("input", "output", "cache_write", "cache_read"):
        assert sum(row[f"{kind}_tokens"] for row in rows) == getattr(total, kind), kind
    assert sum(row["amount_usd"] or 0 for row in rows) == (total.amount or 0)


def test_totals_are_those_of_the_ledger(demo_home: Path, cli: CliRunner, tmp_path: Path) -> None:
    """In every format, the usage of each session is what the archive says, and steps and what is outside add up."""
    arguments = ("--home", str(demo_home), "--since", "2000-01-01", "--no-redact", "--all")
    paths = {form: _export(cli, tmp_path, form, *arguments) for form in DATA_FORMATS}
    with threadline.open(demo_home, keep=False) as archive:
        spending = archive.spending()
        totals = {str(session.id): spending.of(session.path) for session in archive.sessions()}
    documents = [json.loads(path.read_text()) for path in paths["atif"].iterdir()]
    assert {document["session_id"] for document in documents} == totals.keys()
    rows = pq.read_table(paths["hf"] / "data/train.parquet").to_pylist()
    with Subtests() as subtests:
        for document in documents:
            with subtests.test(f"atif {document['session_id']}"):
                _check_trajectory(document, totals[document["session_id"]])
        for id_, total in totals.items():
            with subtests.test(f"hf {id_}"):
                _check_rows([row for row in rows if row["session_id"] == id_], total)
    with zipfile.ZipFile(paths["inspect"]) as log:
        stats = json.loads(log.read("header.json"))["stats"]["model_usage"]
        samples = [json.loads(log.read(name)) for name in log.namelist() if name.startswith("samples/")]
    expected = sum(total.tokens for total in totals.values())
    assert sum(usage["total_tokens"] for usage in stats.values()) == expected
    assert sum(usage["total_tokens"] for sample in samples for usage in sample["model_usage"].values()) == expected
    scout = pq.read_table(paths["scout"] / "transcripts.parquet").to_pylist()
    assert sum(row["total_tokens"] for row in scout) == expected
    assert [json.loads(row["messages"]) for row in scout] == [sample["messages"] for sample in samples]


def _check_trajectory(document: dict[str, Any], total: Sum) -> None:
    """Check the rules of the format, as far as they concern several fields, and the totals."""
    metrics = document["final_metrics"]
    assert metrics["total_prompt_tokens"] == total.tokens - total.output
    assert metrics["total_completion_tokens"] == total.output
    assert metrics["total_cached_tokens"] == total.cache_read
    assert metrics.get("total_cost_usd") == (float(total.amount) if total.amount is not None else None)
    parts = [document, *document.get("subagent_trajectories", [])]
    ids = [part["trajectory_id"] for part in parts]
    assert len(set(ids)) == len(ids)
    prompt_tokens = 0
    for part in parts:
        assert [step["step_id"] for step in part["steps"]] == list(range(1, len(part["steps"]) + 1))
        outside = part["final_metrics"]["extra"].get("outside_steps", {})
        prompt_tokens += outside.get("prompt_tokens", 0)
        for step in part["steps"]:
            prompt_tokens += step.get("metrics", {}).get("prompt_tokens", 0)
            calls = {call["tool_call_id"] for call in step.get("tool_calls", ())}
            for result in step.get("observation", {"results": []})["results"]:
                assert result["source_call_id"] in calls
                assert all(ref["trajectory_id"] in ids for ref in result.get("subagent_trajectory_ref", ()))
            if step["source"] != "agent":
                assert step.keys() <= {"step_id", "timestamp", "source", "message", "is_copied_context"}
    assert prompt_tokens == metrics["total_prompt_tokens"]


def test_trajectory_of_a_session_with_an_agent(cli: CliRunner, tmp_path: Path) -> None:
    """A call's result refers to its agent, a branch's cost is outside of the steps, synthetic replies have none."""
    session = _write_home(tmp_path / "home")
    document = json.loads((_export(cli, tmp_path, "atif", str(session)) / f"{SESSION}.atif.json").read_text())
    assert document["schema_version"] == "ATIF-v1.8"
    (agent,) = document["subagent_trajectories"]
    assert agent["extra"]["parent"] == document["trajectory_id"]
    references = [
        reference
        for step in document["steps"]
        for result in step.get("observation", {}).get("results", [])
        for reference in result.get("subagent_trajectory_ref", [])
    ]
    assert [reference["trajectory_id"] for reference in references] == [agent["trajectory_id"]]
    assert document["final_metrics"]["extra"]["outside_steps"]["completion_tokens"] == 7
    assert "notes" in document
    assert [step["source"] for step in document["steps"]].count("system") == 1
    (synthetic,) = [step for step in document["steps"] if step.get("llm_call_count") == 0]
    assert synthetic["message"] == "Done."
    assert "metrics" not in synthetic
    assert [step["reasoning_content"] for step in document["steps"] if "reasoning_content" in step] == ["which files?"]


def test_repeated_messages_are_copied_context(cli: CliRunner, tmp_path: Path) -> None:
    """Messages that a resumed session repeats are marked, and have no metrics: the original has them."""
    session = _write_home(tmp_path / "home")
    other = "5e551011-0000-4000-8000-000000000002"
    pen = Pen(other, START + timedelta(days=1))
    copied = [{**json.loads(line), "sessionId": other} for line in session.read_text().splitlines()]
    pen.parent = copied[-1]["uuid"]
    write(session.with_name(f"{other}.jsonl"), *copied, *transcript(prompt("more"), reply("yes", output=4), pen=pen))
    target = _export(cli, tmp_path, "atif", "--home", str(tmp_path / "home"), "--since", "2000-01-01")
    document = json.loads((target / f"{other}.atif.json").read_text())
    flags = [step.get("is_copied_context", False) for step in document["steps"]]
    assert flags[-2:] == [False, False]
    assert all(flags[:-2])
    assert document["final_metrics"]["total_completion_tokens"] == 4


def test_messages_of_both_shapes(cli: CliRunner, tmp_path: Path) -> None:
    """Both shapes have the calls, their results and the tools; thinking only on request."""
    session = _write_home(tmp_path / "home")
    for shape, thinking in (("openai", "reasoning_content"), ("anthropic", "signature")):
        target = tmp_path / f"{shape}.jsonl"
        arguments = ("export", str(session), "--format", "messages", "--shape", shape, "--out", str(target), "--force")
        assert cli(*arguments).code == 0
        main, agent = map(json.loads, target.read_text().splitlines())
        assert thinking not in target.read_text()
        assert main["metadata"]["session_id"] == agent["metadata"]["session_id"] == SESSION
        names = [tool["function"]["name"] if shape == "openai" else tool["name"] for tool in main["tools"]]
        assert names == ["Agent", "Bash", "Read"]
        assert "(no result)" in json.dumps(main["messages"])
        assert cli(*arguments, "--thinking", "full").code == 0
        assert thinking in target.read_text()


_LOST = {"type": "tool_result", "tool_use_id": "lost", "content": "x"}
_PARTS = st.sampled_from(
    [
        prompt("do it"),
        reply("text"),
        reply(_thinking("hm")),
        reply("one", "two"),
        reply("\n\n"),
        prompt(" "),
        call("Bash", "ls", result="a"),
        call("Bash", "ls"),
        call("Bash", "ls", result="no", error=True),
        call("Read", {"file_path": "a", "limit": 3}, result=[{"type": "text", "text": "x"}]),
        chain("user", isMeta=True, message={"role": "user", "content": "note"}),
        chain(
            "user",
            message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": "x"}]},
        ),
        chain("assistant", message={"role": "assistant", "content": []}),
        reply("Error", message={"model": "<synthetic>"}),
    ]
)


@given(st.lists(_PARTS, max_size=12))
def test_messages_are_what_an_api_accepts(tmp_path_factory: pytest.TempPathFactory, parts: list[Any]) -> None:
    """Roles alternate, the first is the user's, each call has one result, directly after it, and no text is blank."""
    folder = tmp_path_factory.mktemp("messages")
    path = write(folder / f"{SESSION}.jsonl", *transcript(*parts))
    openai, anthropic = (
        [
            message
            for file in export_sessions([path], options, folder / options.shape).files
            for line in file.path.read_text().splitlines()
            for message in json.loads(line)["messages"]
        ]
        for options in (
            ExportOptions(ExportFormat.MESSAGES, settings=None, shape="openai"),
            ExportOptions(ExportFormat.MESSAGES, View(thinking=Detail.FULL), settings=None, shape="anthropic"),
        )
    )
    _check_openai(openai)
    _check_anthropic(anthropic)


def _check_openai(messages: list[dict[str, Any]]) -> None:
    assert not messages or messages[0]["role"] == "user"
    open_calls: list[str] = []
    for before, message in zip([None, *messages], messages, strict=False):
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            continue
        assert not open_calls
        assert before is None or before["role"] != message["role"]
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        assert all(json.loads(call["function"]["arguments"]) is not None for call in message.get("tool_calls", ()))
    assert not open_calls


def _check_anthropic(messages: list[dict[str, Any]]) -> None:
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    for message, following in zip(messages, [*messages[1:], {"content": []}], strict=False):
        assert message["content"]
        assert all(block["text"].strip() for block in message["content"] if block["type"] == "text")
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in following["content"] if block["type"] == "tool_result"]
        assert calls == results
        kinds = [block["type"] == "tool_use" for block in message["content"]]
        assert kinds == sorted(kinds)


def test_data_set_is_a_home(cli: CliRunner, tmp_path: Path) -> None:
    """The transcripts of a data set are a home with the same usage, agents included, and the card names its files."""
    session = _write_home(tmp_path / "home")
    target = _export(cli, tmp_path, "hf", str(session))
    with threadline.open(target, keep=False) as archive:
        (copy,) = archive.sessions()
        assert str(copy.id) == SESSION
        assert copy.agents == 1
        assert archive.ledger().total == read(session).ledger.total
    card = (target / "README.md").read_text()
    assert "path: data/train.parquet" in card
    assert all(f"| `{name}` |" in card for name in pq.read_schema(target / "data/train.parquet").names)


def _copies_of(session: Path) -> list[Path]:
    """A fork with the same entry ids, a copy with new ids of all kinds, and a session of its own."""
    rows = [json.loads(line) for line in session.read_text().splitlines()]
    fork = session.with_name("5e551011-0000-4000-8000-00000000000f.jsonl")
    write(fork, *[{**row, "sessionId": fork.stem} for row in rows[:4]])
    renamed = session.with_name("5e551011-0000-4000-8000-00000000000c.jsonl")
    text = (
        session.read_text()
        .replace("000000000001", "000000000c0c")
        .replace('"msg_01', '"msg_0c')
        .replace("req_01", "req_0c")
    )
    renamed.write_text(text)
    alone = session.with_name("5e551011-0000-4000-8000-00000000000a.jsonl")
    write(alone, *transcript(prompt("hello there"), reply("a reply of another session"), pen=Pen(alone.stem)))
    return [fork, renamed, alone]


def test_copies_of_a_conversation_are_in_one_split(cli: CliRunner, tmp_path: Path) -> None:
    """A session, its fork and a copy with other ids are one group, in one split; another session is another group."""
    session = _write_home(tmp_path / "home")
    fork, renamed, alone = _copies_of(session)
    options = ("--home", str(tmp_path / "home"), "--since", "2000-01-01", "--split", "test=40", "--split", "dev=30")
    target = _export(cli, tmp_path, "hf", *options)
    rows = [(row, path.stem) for path in (target / "data").iterdir() for row in pq.read_table(path).to_pylist()]
    groups = {row["session_id"]: (row["group"], split) for row, split in rows}
    assert groups[session.stem] == groups[fork.stem] == groups[renamed.stem]
    assert groups[session.stem][0] != groups[alone.stem][0]
    again = _export(cli, tmp_path / "again", "hf", *map(str, (alone, renamed, session)), "--split", "test=40")
    paths = (again / "data").iterdir()
    assert all(
        row["group"] == groups[row["session_id"]][0] for path in paths for row in pq.read_table(path).to_pylist()
    )


@pytest.mark.parametrize("value", ["test", "test=0", "test=100", "train=10", "a b=10", "test=x", "=5"])
def test_bad_splits(value: str) -> None:
    """A split needs a name and a percentage, and something must be left for `train`."""
    with pytest.raises(threadline.BadQuery, match="--split test=10"):
        parse_splits([value])
    with pytest.raises(threadline.BadQuery, match="less than 100"):
        parse_splits(["test=60", "dev=40"])


def test_sessions_are_selected_by_outcome_and_length(cli: CliRunner, tmp_path: Path) -> None:
    """`--outcome` keeps sessions that achieved it, `--min-turns` and `--max-turns` those of this length."""
    folder = tmp_path / "home/projects/-app"
    output = "[main 1a2b3c4] Fix it\n 1 file changed, 1 insertion(+)"
    long, short = (Pen(f"5e551011-0000-4000-8000-00000000000{number}") for number in (1, 2))
    commit = call("Bash", "git commit -m 'Fix it'", result=output, details={"stdout": output})
    write(folder / f"{long.session}.jsonl", *transcript(prompt("a"), commit, prompt("b"), reply("ok"), pen=long))
    write(folder / f"{short.session}.jsonl", *transcript(prompt("c"), reply("ok"), pen=short))
    home = ("--home", str(tmp_path / "home"))
    for number, (options, expected) in enumerate(
        [
            (("--outcome", "commit"), {long.session}),
            (("--min-turns", "2"), {long.session}),
            (("--max-turns", "1"), {short.session}),
            (("--min-turns", "1"), {long.session, short.session}),
        ]
    ):
        target = _export(cli, tmp_path / str(number), "messages", *home, *options)
        lines = map(json.loads, target.read_text().splitlines())
        assert {line["metadata"]["session_id"] for line in lines} == expected, options
    assert cli("export", *home, "--outcome", "push").code == 1
    named = cli("export", *home, long.session, "--min-turns", "2")
    assert (named.code, "--min-turns, not both" in named.err) == (2, True)


def test_several_sessions_to_standard_output(demo_home: Path, cli: CliRunner) -> None:
    """Formats that are one file can be piped, whatever the number of sessions; folders cannot."""
    arguments = ("export", "--home", str(demo_home), "--since", "2000-01-01", "--no-redact", "--out", "-")
    result = cli(*arguments, "--format", "messages")
    assert result.code == 0
    assert all("messages" in json.loads(line) for line in result.out.splitlines())
    refused = cli(*arguments, "--format", "hf")
    assert (refused.code, "Name a folder with --out" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "atif", "--from", "2"), "atif exports complete transcripts"),
        (("--format", "atif", "--shape", "openai"), "--shape is an option of --format messages"),
        (("--format", "messages", "--split", "test=10"), "--split is an option of --format hf"),
    ],
)
def test_options_of_other_formats_are_refused(
    options: tuple[str, ...], message: str, cli: CliRunner, tmp_path: Path
) -> None:
    """An option that has no effect is an error that says where it belongs."""
    result = cli("export", str(_write_home(tmp_path / "home")), *options)
    assert (result.code, message in result.err) == (2, True)


@pytest.mark.parametrize("form", ["scout", "hf"])
def test_missing_library_is_named(form: str, cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow, Parquet formats say how to install it, and nothing is written."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    target = tmp_path / "out"
    result = cli("export", str(_write_home(tmp_path / "home")), "--format", form, "--out", str(target))
    assert result.code == 2
    assert "pyarrow is not installed" in result.err
    assert "[frames]" in result.err
    assert not target.exists()


@pytest.mark.parametrize("form", ["messages", "otlp"])
def test_all_sessions(form: str, demo_home: Path, cli: CliRunner, tmp_path: Path) -> None:
    """`all` exports every session that is listed, as a filter that fits all of them does."""
    names = ["all.jsonl", "since.jsonl"]
    for name, words in zip(names, (["all"], ["--since", "2000-01-01"]), strict=True):
        result = cli("export", *words, "--home", demo_home, "--format", form, "--out", tmp_path / name)
        assert result.code == 0
    lines = [(tmp_path / name).read_bytes().splitlines() for name in names]
    assert set(lines[0]) >= set(lines[1]) != set()
    assert cli("export", "all", "--since", "7d", "--home", demo_home).code == 2
