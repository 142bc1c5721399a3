"""Extracted fields: every searchable text is in the field where people would look for it, and only once."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each
from tools.demo import write

import threadline
from threadline.index import FIELDS, extract_fields, normalize_text, tokenize
from threadline.index.text import BASE64_RUN, MAX_FIELD_CHARS, strip_base64
from threadline.model.call_summary import summarize_input
from threadline.model.entries import KINDS, ProgressEntry
from threadline.model.session import Session
from threadline.render import (
    BranchItem,
    CallItem,
    CompactionItem,
    FailureItem,
    Item,
    NoticeItem,
    OutputItem,
    PromptItem,
    ReplyItem,
    TaskItem,
    TaskUpdateItem,
    ThinkingItem,
    build_outline,
    entry_key,
)
from threadline.render.call_text import call_body
from threadline.thread import find_notifications

Extract = Callable[[Any], dict[str, str]]
_IMAGE = base64.b64encode(Random(1).randbytes(3000)).decode()  # noqa: S311 - noise


@pytest.fixture
def extract(tmp_path: Path) -> Extract:
    """Extracts the fields of one row: an object, or a line of bytes."""

    def extract_row(row: Any) -> dict[str, str]:
        path = tmp_path / "one.jsonl"
        path.write_bytes(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n")
        entry, *_ = threadline.entries(path)
        return extract_fields(entry)

    return extract_row


def _user(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": content}, **more}


def _assistant(*blocks: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "model": "claude-opus-5-5", "content": list(blocks)}
    return {"type": "assistant", "uuid": "a", "sessionId": "s", "message": message, **more}


def _use(tool: str, **arguments: Any) -> dict[str, Any]:
    return _assistant({"type": "tool_use", "id": "t", "name": tool, "input": arguments})


def _result(content: Any, details: Any = None, **more: Any) -> dict[str, Any]:
    return _user([{"type": "tool_result", "tool_use_id": "t", "content": content, **more}], toolUseResult=details)


def _attached(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "attachment", "uuid": "x", "sessionId": "s", "attachment": {"type": kind, **more}}


_REMINDER = "<system-reminder>\nmind the gap\n</system-reminder>"

CASES: dict[str, tuple[Any, dict[str, str]]] = {
    # text typed by a person
    "a prompt": (_user("fix the parser"), {"prompt": "fix the parser"}),
    "a prompt in blocks": (
        _user([{"type": "text", "text": "fix"}, {"type": "text", "text": "it"}]),
        {"prompt": "fix\nit"},
    ),
    "a prompt behind a reminder": (
        _user(f"{_REMINDER}\nfix the parser"),
        {"injected": f"{_REMINDER}\n", "prompt": "fix the parser"},
    ),
    "a prompt behind an open file": (
        _user([{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}, {"type": "text", "text": "why?"}]),
        {"injected": "<ide_opened_file>a.py</ide_opened_file>\n", "prompt": "why?"},
    ),
    "a slash command": (
        _user("<command-name>/review</command-name><command-args>the diff</command-args>"),
        {"prompt": "/review the diff"},
    ),
    "an old slash command with its body": (
        _user("<command-name>/go</command-name><command-contents>run it</command-contents>"),
        {"prompt": "/go", "injected": "run it</command-contents>"},
    ),
    "a shell line": (_user("<bash-input>make test</bash-input>"), {"command": "make test"}),
    "what a shell line printed": (
        _user("<bash-stdout>ok</bash-stdout><bash-stderr></bash-stderr>"),
        {"result": "<bash-stdout>ok</bash-stdout><bash-stderr></bash-stderr>"},
    ),
    "a memory": (_user("<user-memory-input>use tabs</user-memory-input>"), {"prompt": "use tabs"}),
    "a prompt by a program": (_user("list files", promptSource="sdk"), {"prompt": "list files"}),
    "a queued prompt": (_attached("queued_command", prompt="and docs", commandMode="prompt"), {"prompt": "and docs"}),
    "a queued shell line": (_attached("queued_command", prompt="ls", commandMode="bash"), {"command": "ls"}),
    "a prompt in the queue": (
        {"type": "queue-operation", "operation": "enqueue", "content": "also this"},
        {"prompt": "also this"},
    ),
    "words of refusal": (
        _result(
            "The user doesn't want to proceed with this tool use. "
            "To tell you how to proceed, the user said:\nuse git mv",
            "User rejected tool use",
            is_error=True,
        ),
        {
            "prompt": "use git mv",
            "result": "User rejected tool use\nThe user doesn't want to proceed with this tool use. "
            "To tell you how to proceed, the user said:\nuse git mv",
        },
    ),
    "an answer to a question": (
        _result(
            '"Which?"="the blue one"', {"questions": [{"question": "Which?"}], "answers": {"Which?": "the blue one"}}
        ),
        {"prompt": "the blue one", "result": '"Which?"="the blue one"'},
    ),
    "instructions to a compaction": (
        {
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Done",
            "compactMetadata": {"userContext": "keep it"},
        },
        {"prompt": "keep it", "injected": "Done"},
    ),
    "an exported prompt": ({"type": "human", "text": "hello"}, {"prompt": "hello"}),
    # text that the program inserted as the user
    "a meta row": (_user("Continue.", isMeta=True), {"injected": "Continue."}),
    "a summary": (_user("We did much", isCompactSummary=True), {"injected": "We did much"}),
    "an agent's task": (_user("find it", isSidechain=True, agentId="a1"), {"injected": "find it"}),
    "an interrupt": (_user("[Request interrupted by user]"), {"injected": "[Request interrupted by user]"}),
    "a plan": (_user("Implement: build it", planContent="build it"), {"injected": "Implement: build it"}),
    "a task that ended": (
        _user("<task-notification><result>found it</result></task-notification>"),
        {"result": "<task-notification><result>found it</result></task-notification>"},
    ),
    "a local command": (
        {"type": "system", "subtype": "local_command", "content": "<command-name>/cost</command-name>"},
        {"prompt": "/cost"},
    ),
    "what a local command printed": (
        {"type": "system", "subtype": "local_command", "content": "<local-command-stdout>$1</local-command-stdout>"},
        {"result": "<local-command-stdout>$1</local-command-stdout>"},
    ),
    "an error of the API": (
        {"type": "system", "subtype": "api_error", "error": {"status": 529, "error": {"message": "Overloaded"}}},
        {"injected": "529\nOverloaded"},
    ),
    "hooks at the end": (
        {
            "type": "system",
            "subtype": "stop_hook_summary",
            "hookInfos": [{"command": "lint.sh"}],
            "hookErrors": ["bad"],
        },
        {"injected": "lint.sh\nbad"},
    ),
    "the end of a turn": ({"type": "system", "subtype": "turn_duration", "durationMs": 5, "content": None}, {}),
    "a hook's output, told twice": (
        _attached("hook_success", hookName="Stop", content="checked", stdout="checked\n", command="check.sh"),
        {"injected": "Stop\nchecked\ncheck.sh"},
    ),
    "a file that was named": (
        _attached(
            "file", filename="/a/b.py", content={"type": "text", "file": {"content": "x = 1"}}, displayPath="b.py"
        ),
        {"path": "/a/b.py", "injected": "x = 1"},
    ),
    "a reminder as the model got it": (
        {**_attached("date_change", newDate="2026-01-02"), "rendered": [{"content": "Today is 2026-01-02."}]},
        {"injected": "Today is 2026-01-02."},
    ),
    "an unknown attachment": (_attached("new_thing", note={"deep": ["words"]}), {"injected": "words"}),
    "a hook that is running": (
        {"type": "progress", "data": {"type": "hook_progress", "hookName": "Stop", "command": "lint.sh"}},
        {"injected": "Stop\nlint.sh"},
    ),
    # text of the model
    "a reply": (_assistant({"type": "text", "text": "Done."}), {"reply": "Done."}),
    "a reply that is a bare string": (_assistant("Done."), {"reply": "Done."}),
    "thinking": (_assistant({"type": "thinking", "thinking": "hm", "signature": "c2ln"}), {"thinking": "hm"}),
    "thinking of which only the signature is kept": (
        _assistant({"type": "thinking", "thinking": "", "signature": "c2l"}),
        {},
    ),
    "redacted thinking": (_assistant({"type": "redacted_thinking", "data": "ZGF0YQ=="}), {}),
    "an error in place of a reply": (
        _assistant({"type": "text", "text": "API Error: 500"}, isApiErrorMessage=True),
        {"injected": "API Error: 500"},
    ),
    "an unknown block": (_assistant({"type": "hologram", "caption": "a hat"}), {"injected": "a hat"}),
    "what a gateway sent": (
        {"type": "assistant", "message": {"0": "<html>", "1": "Bad Gateway"}},
        {"injected": "<html>\nBad Gateway"},
    ),
    "an exported reply": ({"type": "ai", "content": [{"type": "text", "text": "hi"}]}, {"reply": "hi"}),
    # calls
    "Bash": (_use("Bash", command="ls -la", description="List"), {"command": "ls -la", "input": "List"}),
    "PowerShell": (_use("PowerShell", command="dir", timeout=5), {"command": "dir"}),
    "Read": (_use("Read", file_path="/a.py", offset=10), {"path": "/a.py"}),
    "Edit": (_use("Edit", file_path="/a.py", old_string="x", new_string="y"), {"path": "/a.py", "input": "x\ny"}),
    "MultiEdit": (
        _use("MultiEdit", file_path="/a.py", edits=[{"old_string": "x", "new_string": "y"}]),
        {"path": "/a.py", "input": "x\ny"},
    ),
    "Write": (_use("Write", file_path="/a.py", content="print()"), {"path": "/a.py", "input": "print()"}),
    "NotebookEdit": (
        _use("NotebookEdit", notebook_path="/n.ipynb", new_source="1"),
        {"path": "/n.ipynb", "input": "1"},
    ),
    "Glob": (_use("Glob", pattern="**/*.rs", path="/src"), {"path": "**/*.rs\n/src"}),
    "Grep": (_use("Grep", pattern="def \\w+", glob="*.py", path="/src"), {"input": "def \\w+", "path": "*.py\n/src"}),
    "Agent": (
        _use("Agent", description="Find", prompt="find it", subagent_type="Explore"),
        {"input": "Find\nfind it\nExplore"},
    ),
    "TodoWrite": (_use("TodoWrite", todos=[{"content": "test", "status": "pending"}]), {"input": "test\npending"}),
    "WebFetch": (_use("WebFetch", url="https://a.test", prompt="what"), {"input": "https://a.test\nwhat"}),
    "ExitPlanMode": (_use("ExitPlanMode", plan="# Do it"), {"input": "# Do it"}),
    "AskUserQuestion": (_use("AskUserQuestion", questions=[{"question": "Which?"}]), {"input": "Which?"}),
    "a tool of a server": (
        _use("mcp__tracker__get_issue", number=4711, type="bug"),
        {"input": "mcp__tracker__get_issue\n4711\nbug"},
    ),
    "a tool with broken input": (
        _assistant({"type": "tool_use", "id": "t", "name": "Bash", "input": "not an object"}),
        {"input": "not an object"},
    ),
    "a call as a line": ({"type": "tool_use", "tool": {"name": "Bash", "input": {"command": "ls"}}}, {"command": "ls"}),
    "a tool that the API runs": (
        _assistant({"type": "server_tool_use", "name": "web_search", "input": {"query": "fts5"}}),
        {"input": "fts5"},
    ),
    "what the API's search found": (
        _assistant(
            {
                "type": "web_search_tool_result",
                "content": [{"type": "web_search_result", "title": "FTS5", "encrypted_content": "abc"}],
            }
        ),
        {"result": "FTS5"},
    ),
    # results
    "output, told twice": (
        _result("ok\n3 passed", {"stdout": "ok\n3 passed\n", "stderr": ""}),
        {"result": "ok\n3 passed"},
    ),
    "output and errors": (_result("out\nerr", {"stdout": "out", "stderr": "err"}), {"result": "out\nerr"}),
    "output of which the model saw less": (
        _result("first … [cut]", {"stdout": "first and last", "stderr": ""}),
        {"result": "first and last\nfirst … [cut]"},
    ),
    "a result without more": (_result("as it is"), {"result": "as it is"}),
    "a result in blocks": (
        _result([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], [{"type": "text", "text": "a"}]),
        {"result": "a\nb"},
    ),
    "a result with a word beside it": (
        _user([{"type": "tool_result", "content": "a"}, {"type": "text", "text": _REMINDER}]),
        {"result": "a", "injected": _REMINDER},
    ),
    "an error": (
        _result("<tool_use_error>No such file</tool_use_error>", "Error: No such file"),
        {"result": "<tool_use_error>No such file</tool_use_error>"},
    ),
    "a file that was read": (
        _result("     1→import os\n     2→", {"type": "text", "file": {"filePath": "/a.py", "content": "import os\n"}}),
        {"path": "/a.py", "result": "import os\n"},
    ),
    "a file with a reminder behind it": (
        _result(
            f"1\timport os\n\n{_REMINDER}", {"type": "text", "file": {"filePath": "/a.py", "content": "import os"}}
        ),
        {"path": "/a.py", "result": "import os", "injected": _REMINDER},
    ),
    "a file of which only the model's text is kept": (_result("     1→import os"), {"result": "     1→import os"}),
    "a picture that was read": (
        _result(
            [{"type": "image", "source": {"type": "base64", "data": _IMAGE, "media_type": "image/png"}}],
            {"type": "image", "file": {"base64": _IMAGE, "type": "image/png"}},
        ),
        {},
    ),
    "a change": (
        _result(
            "The file /a.py has been updated.",
            {
                "filePath": "/a.py",
                "oldString": "one",
                "newString": "two",
                "originalFile": "secret one",
                "structuredPatch": [{"lines": [" before", "-one", "+two", " after"]}],
            },
        ),
        {"path": "/a.py", "result": "before\nafter\nThe file /a.py has been updated."},
    ),
    "a file that was written": (
        _result("Created.", {"type": "create", "filePath": "/a.py", "content": "all of it", "structuredPatch": []}),
        {"path": "/a.py", "result": "Created."},
    ),
    "names that were found": (
        _result("Found 2 files\n/a.py\n/b.py", {"filenames": ["/a.py", "/b.py"], "numFiles": 2}),
        {"path": "/a.py\n/b.py", "result": "Found 2 files\n"},
    ),
    "names in their own words": (
        _result("Found 2 files\na.py\nb.py", {"filenames": ["/w/a.py", "/w/b.py"], "numFiles": 2}),
        {"path": "/w/a.py\n/w/b.py", "result": "Found 2 files\na.py\nb.py"},
    ),
    "lines that were found": (
        _result("/a.py:1:x", {"mode": "content", "filenames": [], "content": "/a.py:1:x", "numLines": 1}),
        {"result": "/a.py:1:x"},
    ),
    "an agent's answer": (
        _result(
            [{"type": "text", "text": "It is in a.py"}],
            {
                "status": "completed",
                "prompt": "find it",
                "content": [{"type": "text", "text": "It is in a.py"}],
                "usage": {},
            },
        ),
        {"result": "It is in a.py"},
    ),
    "todos": (
        _result("Todos modified", {"oldTodos": [], "newTodos": [{"content": "test"}]}),
        {"result": "Todos modified"},
    ),
    "a page": (
        _result("It says so", {"url": "https://a.test", "result": "It says so"}),
        {"result": "https://a.test\nIt says so"},
    ),
    "an unknown result": (_result(None, {"mystery": {"deep": "words"}}), {"result": "words"}),
    "a tool that became available": (
        _result([{"type": "tool_reference", "tool_name": "WebFetch"}]),
        {"result": "WebFetch"},
    ),
    "a document": (
        _user([{"type": "document", "title": "Spec", "source": {"type": "base64", "data": "JVBERi0="}}], isMeta=True),
        {"injected": "Spec"},
    ),
    "a workflow's answer": ({"type": "result", "key": "k", "result": "all good"}, {"result": "all good"}),
    # titles
    "a title by a person": ({"type": "custom-title", "customTitle": "Parser"}, {"title": "Parser"}),
    "a title by a model": ({"type": "ai-title", "aiTitle": "Fix parser"}, {"title": "Fix parser"}),
    "an old title": ({"type": "summary", "summary": "Parser fixed", "leafUuid": "x"}, {"title": "Parser fixed"}),
    "the last prompt": ({"type": "last-prompt", "lastPrompt": "go on"}, {"title": "go on"}),
    "a tag": ({"type": "tag", "tag": "later"}, {"title": "later"}),
    "something published": (
        {"type": "frame-link", "title": "Chart", "path": "/c.html", "frameUrl": "https://a.test/c"},
        {"title": "Chart", "path": "/c.html", "injected": "https://a.test/c"},
    ),
    "a pull request": (
        {"type": "pr-link", "prNumber": 7, "prUrl": "https://a.test/pull/7", "prRepository": "a/b"},
        {"injected": "https://a.test/pull/7\na/b"},
    ),
    "a worktree": (
        {"type": "worktree-state", "worktreeSession": {"worktreePath": "/w/x", "worktreeBranch": "x"}},
        {"path": "/w/x", "injected": "x"},
    ),
    # repetitions of other entries, and values without text
    "output so far": (
        {"type": "progress", "data": {"type": "bash_progress", "output": "half", "fullOutput": "half"}},
        {},
    ),
    "an agent's entry once more": (
        {"type": "progress", "data": {"type": "agent_progress", "message": _assistant("half"), "prompt": "find"}},
        {},
    ),
    "a snapshot": (
        {"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {"a.py": {"backupFileName": "x@v1"}}}},
        {},
    ),
    "a request": ({"type": "api-request", "params": {"model": "opus"}}, {}),
    "a message of a request": ({"type": "api-request-blob", "message": {"role": "user", "content": "hidden"}}, {}),
    "the shape of a request": ({"type": "api-request-shape", "shape": {"system": "you are"}}, {}),
    "a system prompt": (_attached("prompt_snapshot", systemPrompt=["you are"]), {}),
    "money": ({"type": "cost-state", "totalCostUSD": 1.5, "modelUsage": {"opus": {"costUSD": 1.5}}}, {}),
    # unknown kinds
    "an unknown kind": (
        {"type": "news", "uuid": "u", "sessionId": "s", "cwd": "/w", "note": "words", "list": [{"deep": "down"}]},
        {"injected": "words\ndown"},
    ),
    "a kind of which only the name is known": ({"type": "goal", "text": "win"}, {"injected": "win"}),
    "a row without a kind": ({"note": "words"}, {"injected": "words"}),
    "a message of the wrong type": ({"type": "user", "message": "just words"}, {"injected": "just words"}),
    "a line that is no JSON": (b"some words that are no JSON\n", {"injected": "some words that are no JSON\n"}),
    "an empty line": (b"\n", {}),
    "nothing": ({"type": "user"}, {}),
}


@for_each("name", CASES)
def test_extracts_each_kind_of_row(name: str, extract: Extract) -> None:
    """Every kind of entry, call and result gives its text once, in the field where people would look for it."""
    row, expected = CASES[name]
    assert extract(row) == expected


def test_leaves_out_base64_and_keeps_the_text_around_it(extract: Extract) -> None:
    """Base64 inside a text is left out, but not the text before and after it."""
    fields = extract(_result(f"before data:image/png;base64,{_IMAGE} after"))
    assert fields["result"] == "before data:image/png;base64,  after"


def test_leaves_out_the_body_of_a_certificate() -> None:
    """Base64 in lines of equal width is left out, but not the text below it."""
    lines = [_IMAGE[at : at + 64] for at in range(0, 3200, 64)]
    text = "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", "done"])
    stripped = strip_base64(text)
    assert len(stripped) < 500
    assert stripped.startswith("-----BEGIN CERTIFICATE-----\n")
    assert stripped.endswith("-----END CERTIFICATE-----\ndone")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"src/some_module/part_{at}" for at in range(200)),
        "/".join(f"folder{at}" for at in range(100)),
        "-" * 2000,
        "a_b-" * 300,
        "def f(x):\n    return x + 1\n" * 100,
        ",".join(map(str, range(1000))),
        "\n".join(f"{at:040x}" for at in range(100)),
        "データ" * 400,
    ],
)
def test_keeps_paths_rulers_code_and_lists(text: str) -> None:
    """Text that resembles base64 is not changed."""
    assert strip_base64(text) is text


@given(st.lists(st.one_of(st.text("ab/ \n.", max_size=400), st.just("Ab1" * BASE64_RUN), st.just(_IMAGE)), max_size=8))
def test_leaves_out_only_long_runs_of_base64(parts: list[str]) -> None:
    """Whatever surrounds it, a long run is left out and everything else stays, in its order."""
    text = strip_base64(" ".join(parts))
    assert "Ab1" not in text
    assert _IMAGE not in text
    expected = " ".join(part for part in parts if part not in ("Ab1" * BASE64_RUN, _IMAGE))
    assert text.split() == expected.split()


def test_truncates_a_long_field_at_a_word(extract: Extract) -> None:
    """A very long text is truncated, but not in the middle of a word."""
    text = extract(_result("words " * 400_000))["result"]
    assert MAX_FIELD_CHARS - 10 < len(text) <= MAX_FIELD_CHARS
    assert text.endswith("words")


def test_truncates_a_long_field_without_spaces(extract: Extract) -> None:
    """If no word ends there, the text is truncated at the limit."""
    assert len(extract(_result("文字" * 800_000))["result"]) == MAX_FIELD_CHARS


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_accepts_deeply_nested_values(opening: str, extract: Extract) -> None:
    """A value that is nested too deeply to decode is an entry like any other."""
    closing = ("]" if opening == "[" else "}") * 100_000
    line = f'{{"type":"user","message":{{"role":"user","content":"hello"}},"x":{opening * 100_000}"deep"{closing}}}\n'
    assert "hello" in "".join(extract(line.encode()).values())


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["type", "content", "text", "file", "stdout", "filenames", "name"]), inner, max_size=4
        ),
    ),
    max_leaves=12,
)
_KEYS = st.sampled_from(
    ["message", "content", "attachment", "data", "toolUseResult", "summary", "error", "tool", "result", "rendered"]
)


@given(st.sampled_from([*KINDS, "unheard-of"]), st.dictionaries(_KEYS, _JSON, max_size=5))
def test_any_values_give_valid_fields(extract: Extract, kind: str, values: dict[str, Any]) -> None:
    """Whatever the values, fields have known names, text that is not blank, and what SQLite accepts."""
    for name, text in extract({**values, "type": kind}).items():
        assert name in FIELDS
        assert text.strip()
        normalize_text(text).encode()


def test_many_small_strings_are_fast(extract: Extract) -> None:
    """Many small strings beside a long text are not searched for one by one."""
    fields = extract(_result("x " * 50_000, {"results": [f"name{at}" for at in range(10_000)]}))
    assert fields["result"].count("name") == 10_000


# Words that `threadline show` adds to calls.
_ADDED_WORDS = frozenset(
    {
        "line",
        "lines",
        "of",
        "from",
        "started",
        "in",
        "the",
        "background",
        "joined",
        "team",
        "image",
        "document",
        "full",
        "output",
    }
)


def _displayed_words(session: Session) -> Iterator[tuple[str, set[str]]]:
    """The words of a session that are displayed, by the kind of item."""
    notifications = {entry_key(notification.entry): [notification] for notification in find_notifications(session)}
    for agent in (session.main, *session.agents):
        for item in build_outline(agent, notifications=notifications):
            keys = _keys(item.call.input) if isinstance(item, CallItem) else set()
            for text in _texts(item):
                yield type(item).__name__, set(tokenize(normalize_text(text))) - keys
            if isinstance(item, CallItem):
                lines = call_body(item.call, 10**6, uncut=True)
                words = tokenize(normalize_text("\n".join("".join(span.text for span in line) for line in lines)))
                yield "body", {word for word in words if not word.isdigit()} - _ADDED_WORDS


def _keys(arguments: Any) -> set[str]:
    """If no argument is distinctive, the first ones are shown with their names."""
    return set(tokenize(normalize_text(" ".join(arguments)))) if isinstance(arguments, dict) else set()


def _texts(item: Item) -> list[str]:  # noqa: PLR0911 - a line an item
    match item:
        case PromptItem():
            return [item.act.text]
        case FailureItem():
            return [item.text.partition(" · attempt")[0]]
        case TaskItem() | ReplyItem() | ThinkingItem() | OutputItem() | BranchItem() | NoticeItem():
            return [] if isinstance(item.entry, ProgressEntry) else [item.text]
        case CallItem():
            return [summarize_input(item.call.tool, item.call.input), item.call.feedback or ""]
        case TaskUpdateItem():
            return [item.notification.summary or "", item.notification.result or ""]
        case CompactionItem() if item.compaction.summary is not None:
            return [item.compaction.summary.text]
    return []


def _indexed_words(session: Session) -> set[str]:
    entries = [entry for agent in (session.main, *session.agents) for entry in agent.entries]
    return {
        word for entry in entries for text in extract_fields(entry).values() for word in tokenize(normalize_text(text))
    }


def _check(paths: list[Path]) -> None:
    count = 0
    for path in paths:
        session = threadline.read(path)
        indexed = _indexed_words(session)
        for kind, words in _displayed_words(session):
            count += len(words)
            assert sorted(words - indexed) == [], (path, kind)
    assert count > len(paths)


@pytest.mark.slow
def test_every_displayed_word_of_the_demo_home_is_in_a_field(tmp_path: Path) -> None:
    """Everything that `threadline show` displays of the demo home can be found."""
    write(tmp_path / "home")
    _check(sorted((tmp_path / "home" / "projects").glob("*/*.jsonl")))


def test_every_displayed_word_of_the_case_sessions_is_in_a_field() -> None:
    """Everything that `threadline show` displays of the case folders can be found."""
    _check(sorted((Path(__file__).parent.parent / "sessions").glob("*/in/*.jsonl")))
