"""Tests of the detectors of waste: what each finds, and what it must not claim."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.thread.context_rows import cached_reply, usage
from tests.transcripts import SESSION, Part, Row, chain, lines, meta, prompt, transcript
from tests.transcripts import call as any_call

from threadline import read
from threadline.errors import BadQuery
from threadline.insight import DETECTORS, WasteContext, find_waste
from threadline.model.context import BreakCause
from threadline.model.insight.waste import Waste, WasteLimits

ALL = WasteLimits(large_output=300, min_amount=Decimal(0))
TEXT = "line of text\n" * 300
READ = Decimal("0.3") / 1_000_000
WRITE = Decimal("3.75") / 1_000_000
OUTPUT = Decimal(15) / 1_000_000
INPUT = Decimal(3) / 1_000_000


def waste(detector: str, *parts: Part, agents: dict[str, list[Part]] | None = None) -> list[Waste]:
    """What a detector finds in a session of these parts."""
    with TemporaryDirectory() as folder:
        main = Path(folder) / f"{SESSION}.jsonl"
        main.write_bytes(lines(*transcript(prompt("go"), *parts)))
        for name, agent_parts in (agents or {}).items():
            path = main.with_suffix("") / "subagents" / f"agent-{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = [row for row in transcript(*agent_parts) if isinstance(row, dict)]
            path.write_bytes(lines(*({**row, "agentId": name, "isSidechain": True} for row in rows)))
        session = read(main, continued=False)
        facts = WasteContext(session, session.ledger)
        found = find_waste(facts, ALL, [detector])
        assert all(finding.amount <= facts.attribution.amount for finding in found)
        return found


def call(read_: int, written: int, tool: str, tool_input: Any, result: str, **fields: Any) -> Part:
    """A call whose request read and wrote this much cache."""
    return any_call(tool, tool_input, result, message={"usage": usage(read_, written, output=60)}, **fields)


def carried(tokens: int, *requests: Decimal) -> Decimal:
    """What tokens cost that were sent at these prices."""
    return sum((tokens * price for price in requests), Decimal(0))


def test_idle_time_breaks_the_cache() -> None:
    """The window is written again instead of read; the difference counts."""
    (found,) = waste(
        "cache-break", cached_reply(0, 20_000, input_=0, after=1), cached_reply(0, 20_000, input_=0, after=30)
    )
    assert found.cause is BreakCause.IDLE
    assert found.amount == 20_000 * (WRITE - READ)
    assert "29 minutes" in found.evidence


def test_window_that_is_read_is_no_break() -> None:
    """Nothing was sent again."""
    assert not waste("cache-break", cached_reply(0, 20_000, input_=0), cached_reply(20_000, 100, input_=0))


@pytest.mark.parametrize(("kept", "causes"), [(9_000, []), (19_000, [BreakCause.COMPACTION])])
def test_compaction_that_keeps_less_than_it_removes_is_no_waste(kept: int, causes: list[BreakCause]) -> None:
    """The rewritten window is smaller than what the compaction took out of it."""
    found = waste(
        "cache-break",
        cached_reply(0, 20_000, input_=0),
        chain("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9}),
        prompt("summary", isCompactSummary=True),
        cached_reply(0, kept, input_=0),
    )
    assert [finding.cause for finding in found] == causes


def test_file_read_again_unchanged() -> None:
    """The second result is the waste."""
    file = {"file_path": "/a/x.py"}
    (found,) = waste(
        "unchanged-file",
        call(0, 20_000, "Read", file, TEXT),
        call(20_000, 900, "Read", file, TEXT),
        cached_reply(20_900, 900, input_=0),
    )
    assert (found.label, len(found.places)) == ("/a/x.py read 2 times, unchanged", 1)
    assert (found.tokens, found.amount) == (838, carried(838, WRITE))


@pytest.mark.parametrize(
    ("second_input", "second_text"),
    [
        ({"file_path": "/a/x.py"}, TEXT + "more"),
        ({"file_path": "/a/y.py"}, TEXT),
        ({"file_path": "/a/x.py", "offset": 9}, TEXT),
    ],
)
def test_other_content_file_or_range_is_no_waste(second_input: Row, second_text: str) -> None:
    """Only the same result of the same read counts."""
    assert not waste(
        "unchanged-file",
        call(0, 20_000, "Read", {"file_path": "/a/x.py"}, TEXT),
        call(20_000, 900, "Read", second_input, second_text),
        cached_reply(20_900, 900, input_=0),
    )


def test_file_read_again_after_a_compaction_is_no_waste() -> None:
    """It had left the window."""
    file = {"file_path": "/a/x.py"}
    assert not waste(
        "unchanged-file",
        call(0, 20_000, "Read", file, TEXT),
        chain("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9}),
        prompt("summary", isCompactSummary=True),
        call(0, 9_000, "Read", file, TEXT),
        cached_reply(9_000, 900, input_=0),
    )


def test_repeated_command() -> None:
    """The description of a command does not matter, its output does."""
    (found,) = waste(
        "repeated-command",
        call(0, 20_000, "Bash", {"command": "make", "description": "Build"}, TEXT),
        call(20_000, 900, "Bash", {"command": "make", "description": "Build again"}, TEXT),
        cached_reply(20_900, 900, input_=0),
    )
    assert found.label == "Bash make: run 2 times"
    # The call was generated and sent, the result was sent.
    assert found.amount == 60 * OUTPUT + carried(900 - 2, WRITE)
    assert not waste(
        "repeated-command",
        call(0, 20_000, "Bash", {"command": "make"}, TEXT),
        call(20_000, 900, "Bash", {"command": "make"}, TEXT + "1 failed"),
        cached_reply(20_900, 900, input_=0),
    )


@pytest.mark.parametrize(
    "between",
    [
        ("Edit", {"file_path": "/a", "old_string": "a", "new_string": "b"}),
        ("Bash", {"command": "sed -i s/a/b/ x"}),
        ("Bash", {"command": "git commit -m x"}),
        ("mcp__browser__click", {}),
    ],
)
def test_command_after_a_change_is_no_repetition(between: tuple[str, Row]) -> None:
    """Whether it changed something is not known, so nothing is claimed."""
    command = {"command": "make"}
    assert not waste(
        "repeated-command",
        call(0, 20_000, "Bash", command, TEXT),
        call(20_000, 900, *between, "done"),
        call(20_900, 100, "Bash", command, TEXT),
        cached_reply(21_000, 900, input_=0),
    )
    harmless = call(20_000, 900, "Bash", {"command": "ls -l"}, "done")
    again = call(20_900, 100, "Bash", command, TEXT)
    first = call(0, 20_000, "Bash", command, TEXT)
    assert len(waste("repeated-command", first, harmless, again, cached_reply(21_000, 900, input_=0))) == 1
    assert not waste("repeated-command", first, prompt("again"), again, cached_reply(21_000, 900, input_=0))


def test_large_output_without_a_later_reference() -> None:
    """None of its words occurs again."""
    words = " ".join(f"identifier{number}" for number in range(400))
    first = call(0, 20_000, "Bash", {"command": "dump"}, words)
    (found,) = waste("large-output", first, cached_reply(20_000, 2_000, "Everything works.", input_=0))
    assert found.amount == carried(found.tokens, WRITE)
    assert found.tokens >= 1_800
    numbered = call(0, 20_000, "Bash", {"command": "dump"}, f"{words} 1234 rows")
    assert not waste("large-output", numbered, cached_reply(20_000, 2_000, "There are 1234.", input_=0))
    assert not waste("large-output", first, cached_reply(20_000, 2_000, "I see identifier7 there.", input_=0))
    assert not waste("large-output", call(0, 20_000, "Bash", {"command": "dump"}, "short"), cached_reply(20_000, 90))


def test_failed_calls_in_a_row_are_one_finding() -> None:
    """An attempt and its retry."""
    (found,) = waste(
        "failed-call",
        call(0, 20_000, "Bash", {"command": "a"}, "Exit code 1", error=True),
        call(20_000, 90, "Bash", {"command": "b"}, "Exit code 1", error=True),
        call(20_090, 90, "Bash", {"command": "c"}, "fine"),
        cached_reply(20_180, 90, input_=0),
    )
    assert (found.evidence, len(found.places)) == ("2 failed calls in a row", 2)
    assert found.label == "Bash: Exit code 1"
    # Each call and its result are 90 tokens: sent, with the last two uncached, written there next time, then read.
    assert found.amount == 120 * OUTPUT + 180 * WRITE + 4 * INPUT + (88 + 90 + 88) * READ


def test_successful_calls_are_no_failures() -> None:
    """Whatever their output says."""
    assert not waste(
        "failed-call", call(0, 20_000, "Bash", {"command": "a"}, "error: 0"), cached_reply(20_000, 90, input_=0)
    )


@pytest.mark.parametrize(
    ("command", "result", "is_failure"),
    [
        ("npm run lint:all", "Exit code 1\n3 problems", False),
        ("cd app && go test ./...", "Exit code 1\nFAIL", False),
        ("./gradlew check", "Exit code 1\n", False),
        ("python3 -m pytest -q", "Exit code 1\n1 failed", False),
        ("cargo nextest run", "Exit code 100\nFAIL", False),
        ("bats test/", "Exit code 1\nnot ok 1", False),
        ("prove -l t", "Exit code 1\nFAILED", False),
        ("vendor/bin/pest", "Exit code 2\nFAILED", False),
        ("flutter test", "Exit code 1\nSome tests failed.", False),
        ("bazelisk build //...", "Exit code 1\nERROR", False),
        ("poe lint", "Exit code 1\nfound 3 errors", False),
        ("node node_modules/.bin/jest", "Exit code 1\n1 failed", False),
        ("docker compose exec -T web pytest", "Exit code 1\n1 failed", False),
        ("busted", "Error: Exit code 1\n1 failure", False),
        ("ls | grep x", "Error: Exit code 1", False),
        ("test -f a && cat b", "Exit code 1\ncat: b: No such file or directory", True),
        ("ls | grep x && cat y", "Exit code 1", False),
        ("git rebase main", "Exit code 1\nCONFLICT (content): Merge conflict in a", False),
        ("git rebase main", "Exit code 1\nCONFLICT group 4 at 6a1922c7", False),
        ("git commit -m x", "Exit code 1\nhusky - pre-commit hook exited with code 1", False),
        ("git -C app push", "error: failed to push some refs\nlefthook v1.12.3  hook: pre-push", False),
        ("git commit -m 'pre-commit'", "Exit code 1\nnothing to commit", True),
        ("git push", "Exit code 128\nfatal: no upstream branch", True),
        ("git -C app config gc.auto; echo ---; git config gc.log", "Exit code 1\n---", False),
        ("git diff missing", "Exit code 128\nfatal: ambiguous argument", True),
        ("npm run typecheck", "src/a.ts(1,9): error TS2322", False),
        ("npm run typecheck", "npm: command not found", True),
        ("npm run build", "Command timed out after 2m 0.0s", True),
        ("pytest", "Exit code 127\npytest: command not found", True),
        ("grep x missing", "Exit code 2\ngrep: missing: No such file or directory", True),
        ("python3 -c 'x", "Exit code 1\nSyntaxError", True),
        ("cat missing", "Exit code 1\ncat: missing: No such file or directory", True),
    ],
)
def test_exit_code_that_is_an_answer_is_no_failure(command: str, result: str, *, is_failure: bool) -> None:
    """Tests, linters and builds report what is wrong, and a search may find nothing."""
    found = waste(
        "failed-call",
        call(0, 20_000, "Bash", {"command": command}, result, error=True),
        cached_reply(20_000, 90, input_=0),
    )
    assert bool(found) is is_failure


def test_agent_whose_call_failed_is_unused() -> None:
    """All that it spent counts; an agent that reported does not."""
    spent: list[Part] = [prompt("p"), cached_reply(0, 3_000, input_=0)]
    details = {"agentId": "a1"}
    (found,) = waste(
        "unused-agent",
        call(0, 9_000, "Agent", {"prompt": "p"}, "Aborted", error=True, details=details),
        agents={"a1": spent},
    )
    assert found.amount == 3_000 * WRITE + 10 * OUTPUT
    assert not waste(
        "unused-agent", call(0, 9_000, "Agent", {"prompt": "p"}, "done", details=details), agents={"a1": spent}
    )


def test_refused_call() -> None:
    """The text of an edit that a person refused."""
    edit = {"file_path": "/a", "old_string": "a", "new_string": "b" * 400}
    (found,) = waste(
        "refused-call",
        call(0, 9_000, "Edit", edit, "The user doesn't want to proceed with this tool use.", error=True),
        cached_reply(9_000, 90, input_=0),
    )
    assert "Edit" in found.label
    assert found.amount == 60 * OUTPUT + carried(88, WRITE)
    assert found.evidence.startswith("refused: The user")
    assert not waste("refused-call", call(0, 9_000, "Edit", edit, "updated"), cached_reply(9_000, 90, input_=0))


@pytest.mark.parametrize("tool", ["ExitPlanMode", "AskUserQuestion"])
def test_answer_to_a_plan_or_a_question_is_no_refusal(tool: str) -> None:
    """A person who sends a plan back asks for a better one."""
    answer = "The user doesn't want to proceed with this tool use."
    rejected = call(0, 9_000, tool, {"plan": "p" * 400}, answer, error=True)
    assert not waste("refused-call", rejected, cached_reply(9_000, 90, input_=0))


def test_failed_edit_has_its_own_label_and_advice() -> None:
    """Its tags are left out, and the advice is about files."""
    edit = {"file_path": "/a", "old_string": "a", "new_string": "b"}
    error = "<tool_use_error>File has not been read yet.</tool_use_error>"
    (found,) = waste("failed-call", call(0, 9_000, "Edit", edit, error, error=True), cached_reply(9_000, 90, input_=0))
    assert (found.label, found.evidence) == ("Edit: File has not been read yet.", "a failed call")
    assert "read a file before" in found.advice


def test_interrupted_call() -> None:
    """It was paid for, and has no result."""
    stopped = "[Request interrupted by user for tool use]"
    (found,) = waste(
        "interrupted-call",
        call(0, 9_000, "Bash", {"command": "sleep 9"}, stopped, error=True),
        cached_reply(9_000, 90, input_=0),
    )
    assert found.label == "Bash sleep 9"
    assert found.amount == 60 * OUTPUT + carried(88, WRITE)
    assert not waste(
        "interrupted-call", call(0, 9_000, "Bash", {"command": "sleep 9"}, "ok"), cached_reply(9_000, 90, input_=0)
    )


def test_unused_tools_need_the_tools_as_they_were_sent() -> None:
    """A server without a call counts, one with a call does not."""
    tools = [{"name": f"mcp__{server}__get", "description": "d" * 4_000} for server in ("idle", "busy")]
    shape = meta("api-request-shape", shapeHash="h", shape={"system": [{"text": "s" * 400}], "tools": tools})
    found = waste(
        "unused-tools",
        shape,
        call(0, 9_000, "mcp__busy__get", {"x": 1}, "done"),
        cached_reply(9_000, 90, input_=0),
    )
    assert [finding.label for finding in found] == ["MCP server idle"]
    assert found[0].amount == carried(found[0].tokens, WRITE, READ)
    assert found[0].tokens > 3_000
    assert not waste("unused-tools", call(0, 9_000, "Read", {"file_path": "/a"}, "x"), cached_reply(9_000, 90))


def test_abandoned_branch() -> None:
    """What its requests cost."""
    parts = (
        cached_reply(0, 20_000, input_=0, uuid="r1"),
        prompt("first", parentUuid="r1"),
        cached_reply(20_000, 20, input_=0),
        prompt("second", parentUuid="r1"),
        cached_reply(20_000, 20, input_=0),
    )
    (found,) = waste("abandoned-branch", *parts)
    assert found.label == "Branch with 1 request"
    assert found.amount == 20_000 * READ + 20 * WRITE + 10 * OUTPUT
    assert not waste("abandoned-branch", *parts[:3])


def test_unknown_detector_is_an_error() -> None:
    """The message lists the names."""
    with pytest.raises(BadQuery, match="cache-break"):
        waste("cache-breaks", cached_reply(0, 100))


def test_every_detector_is_documented() -> None:
    """docs/waste.md has a row for each."""
    page = (Path(__file__).parents[2] / "docs" / "waste.md").read_text()
    assert [name for name in DETECTORS if f"| `{name}` |" not in page] == []


def test_loaded_tools_break_the_cache() -> None:
    """A tool search adds definitions, which come before everything else in the window."""
    loaded: Any = [{"type": "tool_reference", "tool_name": "WebFetch"}]
    (found,) = waste(
        "cache-break",
        call(0, 20_000, "ToolSearch", {"query": "select:WebFetch"}, loaded),
        cached_reply(0, 21_000, input_=0),
    )
    assert found.label == "Tools changed: 20.0k tokens sent again"
    assert "WebFetch" in found.evidence
    assert found.amount == 20_000 * (WRITE - READ)
