"""Tests of traces: what spans a session becomes, and that nothing is counted twice or left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.export.otlp.decoding import DecodedSpan, check_traces, read_traces
from tests.interfaces import odd_homes
from tests.interfaces.cases import CORPORA, Case, cases
from tests.profiles import every, scale_examples
from tests.subtests import Subtests
from tests.transcripts import SESSION, Pen, Writer, call, prompt, reply, transcript, write

from threadline import archive as archives
from threadline.errors import BadQuery
from threadline.export import TraceOptions, TraceReader
from threadline.redact import Level, Settings

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def _spans_of_case(name: str, home: Path) -> list[DecodedSpan]:
    with archives.open([str(Case("sessions", CORPORA["sessions"] / name).write_home(home))]) as archive:
        return check_traces(archive)


def _session(home: Path, *parts: Writer, pen: Pen | None = None) -> Path:
    rows = transcript(*parts, pen=pen)
    return write(home / "projects" / "-work-app" / f"{(pen or Pen()).session}.jsonl", *rows)


def _read(home: Path, options: TraceOptions | None = None) -> list[DecodedSpan]:
    with archives.open([str(home)]) as archive:
        return [span for trace in read_traces(archive, options).values() for span in trace]


def _named(spans: list[DecodedSpan], start: str) -> list[DecodedSpan]:
    return [span for span in spans if span.name.startswith(start)]


def test_every_case_is_a_trace_without_loss(tmp_path: Path) -> None:
    """In every case home, ids are unique, parents cover children, every call is a span, and sums are the ledger's."""
    chosen = every(50, [case for corpus in CORPORA for case in cases(corpus)])
    with Subtests() as subtests:
        for case in chosen:
            with subtests.test(case.name):
                home = case.write_home(tmp_path / case.corpus / case.folder.name)
                with archives.open([str(home)]) as archive:
                    check_traces(archive)


def test_odd_homes_are_traces_without_loss(tmp_path: Path) -> None:
    """The same is true of homes with ids, names and copies that Claude Code does not write."""
    writers = dict(every(6, odd_homes.CASES.items()))
    seeds = range(scale_examples(20))
    with Subtests() as subtests:
        for name, write_home in writers.items():
            with subtests.test(name):
                (tmp_path / name).mkdir()
                with archives.open([str(home) for home in write_home(tmp_path / name)]) as archive:
                    check_traces(archive)
        for seed in seeds:
            with subtests.test(seed):
                (tmp_path / str(seed)).mkdir()
                with archives.open(
                    [str(home) for home in odd_homes.write_random(tmp_path / str(seed), seed)]
                ) as archive:
                    check_traces(archive)


def test_demo_home_is_a_backfill_without_loss(demo_home: Path) -> None:
    """The same is true of a home with everything a home can have, and reading it again gives the same spans."""
    with archives.open([str(demo_home)]) as archive:
        spans = check_traces(archive)
        assert [span for trace in read_traces(archive).values() for span in trace] == spans


def test_index_changes_nothing(small_home: Path) -> None:
    """Without an index, traces are the same."""
    with archives.open([str(small_home)]) as archive, archives.open([str(small_home)], index=False) as plain:
        archive.open_index()
        assert read_traces(archive) == read_traces(plain)


def test_nested_agents_are_nested_spans(tmp_path: Path) -> None:
    """An agent's span is a child of the call that started it, which is a child of the agent that made the call."""
    home = Case("sessions", CORPORA["sessions"] / "nested-agents").write_home(tmp_path / "home")
    for path in home.rglob("agent-*.jsonl"):  # each agent works while its call runs
        path.write_text(re.sub(r"09:0([12]):0([0-9])\.000Z", _during_the_call, path.read_text()))
    with archives.open([str(home)]) as archive:
        spans = check_traces(archive)
    by_id = {span.id: span for span in spans}
    depths = []
    for agent in _named(spans, "invoke_agent"):
        ancestry = [agent]
        while ancestry[-1].parent:
            ancestry.append(by_id[ancestry[-1].parent])
        operations = [span.name.split()[0] for span in ancestry]
        assert operations == (["invoke_agent", "execute_tool"] * len(ancestry))[: len(ancestry)]
        depths.append(len(ancestry))
    assert sorted(depths) == [1, 3, 5]


def _during_the_call(time: re.Match[str]) -> str:
    return f"09:00:02.{time[2]}00Z" if time[1] == "1" else f"09:00:02.2{time[2]}0Z"


def test_agent_that_outlived_its_call_is_linked_to_it(tmp_path: Path) -> None:
    """An agent in the background is a child of the agent that started it, and has a link to the call."""
    spans = _spans_of_case("async-agent-that-failed", tmp_path / "home")
    (agent,) = [span for span in _named(spans, "invoke_agent") if span.parent]
    by_id = {span.id: span for span in spans}
    assert by_id[agent.parent].name == "invoke_agent claude-code"
    ((trace, call_id, attributes),) = agent.links
    assert (trace, attributes) == (agent.trace, {"threadline.link": "call"})
    assert by_id[call_id].name.startswith("execute_tool")


@pytest.mark.parametrize("name", ["fork-session-copies-with-the-same-ids", "resume-copy-with-the-same-ids"])
def test_fork_is_linked_and_its_copies_are_left_out(name: str, tmp_path: Path) -> None:
    """A fork has a link to the session it continues, and no span for what it copied from it."""
    spans = _spans_of_case(name, tmp_path / "home")
    roots = {span.trace: span for span in spans if not span.parent}
    (fork,) = [span for span in roots.values() if span.links]
    ((trace, root, _attributes),) = fork.links
    assert roots[trace].id == root
    ids = [span.attributes["gen_ai.response.id"] for span in _named(spans, "chat")]
    assert len(ids) == len(set(ids))


def test_api_call_has_usage_and_cost(tmp_path: Path) -> None:
    """Input tokens include the cache; the amount is exact, and floats are under the names that consumers read."""
    _session(tmp_path, prompt("hi"), reply("ok", input=4, output=10, read=100, written=50))
    chat, root = _read(tmp_path)
    assert chat.name == f"chat {chat.attributes['gen_ai.response.model']}"
    assert (chat.kind, chat.parent, root.name) == (3, root.id, "invoke_agent claude-code")
    assert chat.attributes["gen_ai.usage.input_tokens"] == 154
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 100
    amount = float(chat.attributes["threadline.amount"])
    assert chat.attributes["gen_ai.usage.cost"] == chat.attributes["llm.cost.total"] == amount
    cost = chat.attributes["mlflow.llm.cost"]
    assert cost["total_cost"] == amount
    assert cost["input_cost"] + cost["output_cost"] == pytest.approx(amount)
    assert chat.attributes["session.id"] == chat.attributes["gen_ai.conversation.id"] == SESSION
    assert chat.attributes["threadline.place"] == f"{SESSION}.jsonl:2"


def test_message_without_usage_is_a_span_without_usage(tmp_path: Path) -> None:
    """A message that reports no usage has a span, and nothing is invented for it."""
    _session(tmp_path, prompt("hi"), reply("ok", message={"usage": None}))
    chat, _root = _read(tmp_path)
    assert chat.name.startswith("chat")
    assert not any(".usage." in name or "amount" in name for name in chat.attributes)


def test_failed_call_has_an_error(tmp_path: Path) -> None:
    """A call that failed has an error status and type; one that did not has none."""
    _session(tmp_path, prompt("hi"), call("Bash", "ls", "a"), call("Read", "/x", "No such file", error=True))
    good, bad = _named(_read(tmp_path), "execute_tool")
    assert (good.name, good.status, good.attributes.get("error.type")) == ("execute_tool Bash", 0, None)
    assert (bad.status, bad.message, bad.attributes["error.type"]) == (2, "error", "error")
    assert good.start < good.end


def test_content_is_absent_by_default(tmp_path: Path) -> None:
    """Without the option, no span contains what was said, called or returned."""
    _session(tmp_path, prompt("walrus one"), call("Bash", "walrus two", "walrus three"), reply("walrus four"))
    assert "walrus" not in repr(_read(tmp_path))


def test_content_has_the_form_of_the_conventions(tmp_path: Path) -> None:
    """With the option, spans have new input, replies, arguments and results; not the whole history."""
    _session(tmp_path, prompt("first"), call("Bash", "ls", "a.txt"), reply("done"))
    chats = _named(spans := _read(tmp_path, TraceOptions(content=True)), "chat")
    (tool,) = _named(spans, "execute_tool")
    inputs = [json.loads(chat.attributes["gen_ai.input.messages"]) for chat in chats]
    assert inputs[0] == [{"role": "user", "parts": [{"type": "text", "content": "first"}]}]
    assert [(message["role"], message["parts"][0]["response"]) for message in inputs[1]] == [("tool", "a.txt")]
    (output,) = json.loads(chats[0].attributes["gen_ai.output.messages"])
    assert (output["role"], output["parts"][0]["name"], output["finish_reason"]) == ("assistant", "Bash", "tool_use")
    assert json.loads(tool.attributes["gen_ai.tool.call.arguments"]) == {"command": "ls"}
    assert tool.attributes["gen_ai.tool.call.result"] == "a.txt"
    root = spans[-1]
    assert json.loads(root.attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == "done"


def test_content_is_redacted(tmp_path: Path) -> None:
    """A secret is in no span, wherever it was; the ids of spans do not depend on redaction."""
    _session(tmp_path, prompt(f"use {SECRET}"), call("Bash", f"curl -H {SECRET}", SECRET), reply(f"sent {SECRET}"))
    redacted = _read(tmp_path, TraceOptions(content=True))
    plain = _read(tmp_path, TraceOptions(content=True, settings=None))
    assert SECRET not in repr(redacted)
    assert repr(redacted).count("<secret-1>") == repr(plain).count(SECRET) > 4
    assert [span.id for span in redacted] == [span.id for span in plain]


def test_names_are_redacted_without_content(tmp_path: Path) -> None:
    """Names of tools and directories are redacted, and the level `metrics` leaves out directories."""
    pen = Pen(cwd="/home/walrus/app")
    _session(tmp_path, prompt("hi"), call("mcp__acme__ask", "x", "y"), pen=pen)
    assert "mcp__acme__ask" in repr(_read(tmp_path))
    hidden = repr(_read(tmp_path, TraceOptions(settings=Settings(words=("acme",)))))
    assert "acme" not in hidden
    assert "walrus" not in hidden
    metrics = _read(tmp_path, TraceOptions(settings=Settings(level=Level.METRICS)))
    assert "threadline.project" not in metrics[-1].attributes
    assert metrics[-1].attributes["session.id"] == SESSION


def test_turns_select_spans(tmp_path: Path) -> None:
    """Only the chosen turns are exported."""
    _session(tmp_path, prompt("one"), reply("a"), prompt("two"), call("Bash", "ls", "b"), prompt("three"), reply("c"))
    spans = _read(tmp_path, TraceOptions(first_turn=2, last_turn=2))
    assert [span.attributes.get("threadline.turn") for span in spans] == [2, 2, None]


def test_turns_select_content(tmp_path: Path) -> None:
    """No span contains what was said in other turns."""
    _session(tmp_path, prompt("walrus"), reply("walrus"), prompt("two"), reply("b"), prompt("walrus"), reply("walrus"))
    spans = _read(tmp_path, TraceOptions(content=True, settings=None, first_turn=2, last_turn=2))
    assert "two" in repr(spans[-1])
    assert "walrus" not in repr(spans)


def test_api_error_is_a_failed_api_call(tmp_path: Path) -> None:
    """An API error is a `chat` span with an error status; a text is never its type."""
    message = {"model": "<synthetic>", "usage": None}
    _session(
        tmp_path,
        prompt("hi"),
        reply("API Error", error="rate_limit", isApiErrorMessage=True, message=message),
        reply("API Error", error="walrus went away", isApiErrorMessage=True, message=message),
    )
    first, second, _root = _read(tmp_path)
    assert (first.name, first.status, first.attributes["error.type"]) == ("chat", 2, "rate_limit")
    assert second.attributes["error.type"] == "api_error"


def test_long_and_odd_content_can_be_encoded(tmp_path: Path) -> None:
    """Texts are cut at 32,768 characters; lone surrogates, NUL, huge numbers and deep nesting do no harm."""
    deep: object = 1
    for _ in range(200):
        deep = [deep]
    inputs = {"text": "x" * 40_000, "odd": "\ud800\0", "number": 2**70, "deep": deep}
    rows = [json.dumps(row).encode() + b"\n" for row in transcript(prompt("hi"), call("Bash", inputs, "ok"))]
    write(tmp_path / "projects" / "-work-app" / f"{SESSION}.jsonl", *rows)
    (tool,) = _named(_read(tmp_path, TraceOptions(content=True, settings=None)), "execute_tool")
    arguments = json.loads(tool.attributes["gen_ai.tool.call.arguments"])
    assert len(arguments["text"]) < 33_000
    assert arguments["number"] == str(2**70)


def test_agent_is_exported_with_its_session(tmp_path: Path) -> None:
    """An agent's transcript is not a trace of its own if its session exists."""
    home = Case("sessions", CORPORA["sessions"] / "nested-agents").write_home(tmp_path / "home")
    with archives.open([str(home)]) as archive:
        agent = next(path for path in home.rglob("agent-*.jsonl"))
        with pytest.raises(BadQuery, match="Export its session"):
            TraceReader(archive, TraceOptions()).read(agent)
