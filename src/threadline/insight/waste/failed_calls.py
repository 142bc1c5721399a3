"""Calls that led to nothing: failed, refused or interrupted ones, with what sending and carrying them cost.

Failed calls of one tool that follow each other are one finding: an attempt and its retries. Commands whose exit code is
an answer do not count: tests, linters, type checkers and builds that report what is wrong, also as hooks of git;
searches and comparisons that find nothing or a difference; and merges with conflicts.

Refused calls are those that a person, a rule or a hook denied: edits above all, whose text was written for nothing. A
plan that a person sends back and a question that a person leaves open do not count: they belong to the conversation.

Interrupted calls include those whose result never came because the session ended or was killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from msgspec.structs import replace

from threadline.insight.outcomes.extract import started_runners
from threadline.insight.outcomes.test_runners import runner_of_command
from threadline.insight.waste.detector import Detector, Finding, WasteContext, call_label
from threadline.model.calls import Call, Outcome
from threadline.model.insight.waste import WasteLimits
from threadline.model.text import fold_line
from threadline.shell_syntax import SimpleCommand, input_command, split_commands, split_subcommand, word_set
from threadline.thread import exit_code

_MAX_ERROR = 60
_DIALOGUES = frozenset(("AskUserQuestion", "ExitPlanMode"))
_UNAVAILABLE = "automode-unavailable"
_UNAVAILABLE_ADVICE = "Auto mode could not reach the model that checks calls. Wait, or use another permission mode."
_EDITORS = frozenset(("Edit", "MultiEdit", "NotebookEdit", "Write"))
_EDIT_ADVICE = "Let the assistant read a file before it edits it, and again after you or a formatter changed it."
_ANSWERS = word_set("[ cmp diff egrep fgrep grep pgrep rg test which")
# Programs that only check or build, in addition to those that run tests.
_CHECKERS = word_set(
    """bazel bazelisk biome black brakeman cargo-nextest clang-tidy cmake cppcheck dialyzer dialyxir eslint flake8
    golangci-lint gofmt govulncheck gradle gradlew hadolint isort ktlint lefthook make mvn mvnw mypy ninja nyc phpcs
    phpstan pre-commit prettier psalm pylint pyright rubocop ruff rustfmt shellcheck standard stylelint swiftlint
    tflint tsc tsd turbo ty vet vite xcodebuild yamllint"""
)
# Words in the arguments of other programs that say the same: `npm run lint:fix`, `go vet`, `mix test`, `dotnet build`.
_CHECK_WORDS = word_set(
    """bench build check checks ci clippy compile coverage credo dialyzer e2e fmt format integration lint linter mypy
    pytest spec specs test tests tsc typecheck typescript unittest validate verify vet"""
)
_RUNNERS = word_set(
    """bun bundle bunx cargo composer deno dotnet docker flutter go hatch invoke just lein mise mix moon nix node npm
    npx nx pdm php pipenv pnpm poe poetry python python3 py rails rake rush sbt stack swift task uv uvx yarn zig"""
)
_EXIT_LINE = re.compile(r"\s*(?:Error: )?Exit code -?\d+\b")
_CONFLICT = re.compile(r"^CONFLICT\b|error: could not apply [0-9a-f]{6,}", re.MULTILINE)
_HOOK = re.compile(r"\b(?:pre-?(?:commit|push|merge)|commit-msg|lefthook|husky|lint-staged|hook id:)", re.IGNORECASE)
_HOOKED = word_set("cherry-pick commit merge push rebase")
# Subcommands of git whose exit code is the answer.
_GIT_ANSWERS = word_set("check-ignore config diff grep merge-base show-ref")
_NO_MATCH = 1
_NOT_RUN = frozenset((124, 126, 127, 137, 143))  # timed out, not executable, not found, killed
# The same where the output has no exit code, as in versions before 2.
_NOT_RUN_TEXT = re.compile(r"\s*<tool_use_error>|\bcommand not found\b|\btimed out\b")
_ERROR_TAG = re.compile(r"</?tool_use_error>")
_PARTS = re.compile(r"[:./_=\\-]+")


def _detect_failed(context: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each run of failed calls of one tool."""
    for agent in context.agents:
        for (tool, failed), run in groupby(agent.calls, key=lambda call: (call.tool, _is_failure(call))):
            if failed:
                calls = list(run)
                evidence = f"{len(calls)} failed calls in a row" if len(calls) > 1 else "a failed call"
                finding = context.calls_finding(calls, label=f"{tool}: {_error_of(calls[0])}", evidence=evidence)
                yield replace(finding, advice=_EDIT_ADVICE) if tool in _EDITORS else finding


FAILED_CALLS = Detector(
    "failed-call", "Write down in CLAUDE.md how this is done here, so that the first attempt works.", _detect_failed
)


def _error_of(call: Call) -> str:
    """The error in one line, without its exit code if it says more."""
    text = _ERROR_TAG.sub("", call.output).strip()
    return fold_line(_EXIT_LINE.sub("", text, count=1).strip() or text or "failed", _MAX_ERROR)


def _is_failure(call: Call) -> bool:
    if call.outcome is not Outcome.ERROR:
        return False
    command = input_command(call.input)
    return command is None or not _is_answer(command, call.output, exit_code(call))


def _is_answer(command: str, output: str, code: int | None) -> bool:
    """Whether a failure is what a command was run for."""
    if _CONFLICT.search(output) is not None:
        return True
    if code in _NOT_RUN or (code is None and _NOT_RUN_TEXT.search(output) is not None):
        return False
    commands = [simple for simple in split_commands(command) if simple.words]
    if started_runners(commands) or any(_is_check(simple.arguments) for simple in commands):
        return True
    if _HOOK.search(output) is not None and any(_git_subcommand(simple) in _HOOKED for simple in commands):
        return True
    searches = [
        _program(simple.arguments) in _ANSWERS or _git_subcommand(simple) in _GIT_ANSWERS for simple in commands
    ]
    is_silent = not _EXIT_LINE.sub("", output, count=1).strip()
    return code == _NO_MATCH and (any(searches) if is_silent else bool(searches) and searches[-1])


def _is_check(arguments: list[str]) -> bool:
    program = _program(arguments)
    if program in _CHECKERS:
        return True
    if program not in _RUNNERS:
        return False
    if any(runner_of_command(arguments[at:]) is not None for at in (1, 2, 3)):
        return True
    words = (word for text in arguments[1:4] if not text.startswith("-") for word in _PARTS.split(text.lower()))
    return any(word in _CHECK_WORDS or word in _CHECKERS for word in words)


def _git_subcommand(simple: SimpleCommand) -> str | None:
    return split_subcommand(simple)[0] if _program(simple.arguments) == "git" else None


def _program(arguments: list[str]) -> str:
    name = re.split(r"[/\\]", arguments[0])[-1].lower()
    return re.sub(r"\.(?:exe|cmd|bat|ps1|sh)$", "", name)


def _detect_refused(context: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each refused call, with the output that the model wrote for it."""
    for call in context.calls:
        if call.outcome is Outcome.DENIED and call.tool not in _DIALOGUES:
            reason = call.evidence.partition(": ")[2] or call.evidence
            finding = context.calls_finding([call], label=call_label(call), evidence=f"refused: {reason}")
            yield replace(finding, advice=_UNAVAILABLE_ADVICE) if reason == _UNAVAILABLE else finding


REFUSED_CALLS = Detector(
    "refused-call",
    "Say beforehand what must not be done (CLAUDE.md, permission rules), or use plan mode for larger changes.",
    _detect_refused,
)


def _detect_interrupted(context: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each interrupted call."""
    for call in context.calls:
        if call.outcome in {Outcome.INTERRUPTED, Outcome.LOST}:
            yield context.calls_finding([call], label=call_label(call), evidence=call.evidence)


INTERRUPTED_CALLS = Detector(
    "interrupted-call",
    "Interrupt early: everything sent before the interruption is paid for and stays in the window.",
    _detect_interrupted,
)
