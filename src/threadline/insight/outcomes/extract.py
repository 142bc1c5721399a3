"""Extract the outcomes of a call from its command and its output: commits, pushes, pull requests and test runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from threadline.insight.outcomes.git_output import commit_kind, find_commits, find_pushes, may_commit
from threadline.insight.outcomes.pull_requests import find_pull_requests, pull_request_of_tool
from threadline.insight.outcomes.test_runners import TEST_PROGRAMS, count_tests, may_report_tests, runner_of_command
from threadline.model.calls import Outcome
from threadline.model.entries import PrLinkEntry
from threadline.model.insight.outcomes import OutcomeKind, OutcomeRow
from threadline.shell_syntax import (
    SHELL_TOOLS,
    SimpleCommand,
    decides_exit_code,
    input_command,
    program_name,
    strip_terminal_escapes,
    word_set,
)

_MAY_REQUEST = re.compile(r"pull_?request|merge_?request|_[pm]r$", re.IGNORECASE)
_MAX_LABEL = 200
# Programs that print what others have written: a test report in their output is not a test run.
_READERS = word_set(
    "cat head tail less more grep egrep rg ag ack sed awk echo printf ls find wc jq git gh glab curl wget kubectl"
    " docker journalctl sort uniq cut tr diff tee true Get-Content Select-String Select-Object Write-Host"
    " Write-Output bat type fd tree stat file sleep rm mkdir cp mv touch chmod kill pkill xargs test [ [["
)


_HOSTING_PROGRAMS = frozenset(("git", "gh", "glab", "hub", "gt", "tea", "az"))


def may_have_outcome(tool: str) -> bool:
    """Whether calls of a tool may have outcomes."""
    return tool in SHELL_TOOLS or (tool.startswith("mcp__") and _MAY_REQUEST.search(tool) is not None)


def link_row(entry: PrLinkEntry) -> OutcomeRow | None:
    """The pull request that Claude Code linked to a session; None if the entry does not name it."""
    ref = entry.pr_url or (f"{entry.pr_repository or ''}#{entry.pr_number}" if entry.pr_number is not None else None)
    return OutcomeRow(OutcomeKind.PULL_REQUEST, "linked", "", ref, evidence="pr-link") if ref else None


def extract_outcomes(  # noqa: PLR0917 - the parts of a call
    tool: str,
    arguments: Any,
    commands: Sequence[SimpleCommand],
    read_output: Callable[[], str],
    result: Any,
    outcome: Outcome,
    exit_code: int | None,
) -> list[OutcomeRow]:
    """The outcomes of a call.

    `commands` are those of `parse_shell_call`, `read_output` returns what the call printed (most calls have no outcome,
    and need not be read), and `result` is the tool's own result.
    """
    if outcome not in (Outcome.OK, Outcome.ERROR):
        return []
    is_ok = outcome is Outcome.OK and not exit_code
    if tool not in SHELL_TOOLS:
        request = pull_request_of_tool(tool, arguments, read_output(), is_ok=is_ok) if may_have_outcome(tool) else None
        return [request] if request is not None else []
    has_operation = isinstance(result, dict) and result.get("gitOperation") is not None
    names = {program_name(simple) for simple in commands}
    uses_git = has_operation or not _HOSTING_PROGRAMS.isdisjoint(names)
    if not uses_git and any(name is not None and may_commit(name) for name in names):
        uses_git = any(commit_kind(simple) is not None for simple in commands)
    started = started_runners(commands) if may_run_tests(names, arguments) else []
    may_report = bool(started) or any(may_report_tests(simple.arguments) for simple in commands)
    if not uses_git and not may_report:
        return []
    text = strip_terminal_escapes(read_output())
    rows: list[OutcomeRow] = []
    if uses_git:
        rows += find_commits(commands, text, result, is_ok=is_ok)
        rows += find_pushes(commands, text, result)
        rows += find_pull_requests(commands, text, result, is_ok=is_ok)
    if may_report and not _is_background(result):
        rows += find_test_runs(commands, started, text, is_ok=is_ok)
    return rows


def may_run_tests(names: Collection[str | None], arguments: Any) -> bool:
    """Whether one of these programs, or a word of the command, may start tests."""
    command = input_command(arguments) or ""
    return "test" in command or "spec" in command or "e2e" in command or not TEST_PROGRAMS.isdisjoint(names)


def _is_background(result: Any) -> bool:
    return isinstance(result, dict) and bool(result.get("backgroundTaskId"))


def started_runners(commands: Sequence[SimpleCommand]) -> list[tuple[int, str]]:
    """The positions of the commands that start a test runner, and its name."""
    return [
        (at, runner)
        for at, simple in enumerate(commands)
        if program_name(simple) not in _READERS and (runner := runner_of_command(simple.arguments)) is not None
    ]


def find_test_runs(
    commands: Sequence[SimpleCommand], started: Sequence[tuple[int, str]], output: str, *, is_ok: bool
) -> list[OutcomeRow]:
    """The test runs of a command: with counts if a report is recognised, otherwise only whether they passed."""
    counts = count_tests(output, [runner for _, runner in started])
    if counts:
        return [
            OutcomeRow(
                OutcomeKind.TEST,
                count.runner,
                _describe(commands, started),
                passed=count.passed,
                failed=count.failed,
                skipped=count.skipped,
                is_ok=count.failed == 0
                and (is_ok or len(started) != 1 or not decides_exit_code(commands, started[0][0])),
                evidence="output" if count.unit == "tests" else "output: packages",
            )
            for count in counts
        ]
    return [
        OutcomeRow(
            OutcomeKind.TEST,
            runner,
            _describe(commands, [(at, runner)]),
            is_ok=is_ok if decides_exit_code(commands, at) else None,
            evidence="exit code" if decides_exit_code(commands, at) else "command only",
        )
        for at, runner in started
    ]


def _describe(commands: Sequence[SimpleCommand], started: Sequence[tuple[int, str]]) -> str:
    """The command that ran tests, in one line."""
    chosen = [commands[at] for at, _ in started] or [
        simple for simple in commands if (name := program_name(simple)) is not None and name not in _READERS
    ]
    texts = (" ".join(" ".join(simple.arguments).replace("\0", "…").split()) for simple in chosen[:3])
    text = "; ".join(texts)
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"
