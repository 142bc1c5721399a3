"""How a call ended, and what says so: a table of evidence, best first.

The word "error" in an output proves nothing. What counts is what the program itself wrote for the purpose: flags on the
row, the shape of the tool's own result, and the fixed sentences it gives in place of a result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from threadline.model.call import Outcome, ResultBlock
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.model.results import TOOL_RESULTS, ResultValue
from threadline.thread.interrupts import INTERRUPTS

Verdict = tuple[Outcome, str]

# Sentences that stand where a result would, by how they begin.
_REFUSED = (
    "The user doesn't want to proceed with this tool use.",
    "User rejected tool use",
    "Claude requested permissions to ",
    "Permission to use ",
    "Permission to read ",
    "Permission to edit ",
    "Permission to write ",
    "Permission for this ",
    "Permission denied by hook",
)
_REFUSED_BY_HOOK = re.compile(r"(PreToolUse:\S+ hook error:|Hook PreToolUse:\S+ denied |\w+ operation blocked by hook)")
_STOPPED = (
    *INTERRUPTS,
    "[Tool call interrupted",
    "The user doesn't want to take this action right now.",
)
# Tools whose own result is a string when all is well; of the others that are known, a string is an error.
_STRING_IS_NORMAL = frozenset({"LS", "LSTool", "NotebookRead", "TodoRead", "ExitPlanMode", "exit_plan_mode"})
_DENIAL_THAT_IS_NONE = "interrupted"


class Answer(Struct, frozen=True):
    """A result as it is judged: its row and block, the tool's own result, and what the model saw of it."""

    tool: str
    entry: UserEntry | AssistantEntry
    block: ResultBlock
    value: ResultValue
    text: str

    @property
    def is_error(self) -> bool | None:
        """What the block itself says."""
        said: bool | None = getattr(self.block, "is_error", None)
        return said

    @property
    def sentence(self) -> str:
        """What stands in place of a result; empty where there is a real one."""
        return "" if self.is_error is False or isinstance(self.value, Struct) else self.text.lstrip()


def judge(answer: Answer) -> Verdict:
    """How a call with a result ended."""
    return next((verdict for rule in _RULES if (verdict := rule(answer)) is not None), (Outcome.OK, "a result"))


def _denial_kind(answer: Answer) -> Verdict | None:
    kind = answer.entry.tool_denial_kind if isinstance(answer.entry, UserEntry) else None
    if not kind:
        return None
    outcome = Outcome.INTERRUPTED if kind == _DENIAL_THAT_IS_NONE else Outcome.DENIED
    return outcome, f"toolDenialKind: {kind}"


def _permission_decision(answer: Answer) -> Verdict | None:
    decision: Any = answer.entry.permission_decision if isinstance(answer.entry, UserEntry) else None
    refused = isinstance(decision, dict) and decision.get("decision") == "reject"
    return (Outcome.DENIED, "permissionDecision: reject") if refused else None


def _sentence(answer: Answer) -> Verdict | None:
    sentence = answer.sentence
    if sentence.startswith(_STOPPED):
        return Outcome.INTERRUPTED, f"text: {_first_words(sentence)}"
    if sentence.startswith(_REFUSED) or _REFUSED_BY_HOOK.match(sentence):
        return Outcome.DENIED, f"text: {_first_words(sentence)}"
    return None


def _interrupted(answer: Answer) -> Verdict | None:
    if getattr(answer.value, "timed_out_after_ms", None):
        return Outcome.INTERRUPTED, "timedOutAfterMs in its result"
    if getattr(answer.value, "interrupted", None) is True:
        return Outcome.INTERRUPTED, "interrupted in its result"
    if getattr(answer.value, "was_interrupted", None) is True:
        return Outcome.INTERRUPTED, "wasInterrupted in its result"
    return None


def _is_error(answer: Answer) -> Verdict | None:
    return (Outcome.ERROR, "is_error") if answer.is_error else None


def _error_element(answer: Answer) -> Verdict | None:
    return (Outcome.ERROR, "<tool_use_error>") if answer.sentence.startswith("<tool_use_error>") else None


def _string(answer: Answer) -> Verdict | None:
    odd = isinstance(answer.value, str) and answer.tool in TOOL_RESULTS and answer.tool not in _STRING_IS_NORMAL
    return (Outcome.ERROR, "a string in place of its result") if odd and answer.is_error is None else None


def _no_success(answer: Answer) -> Verdict | None:
    return (Outcome.ERROR, "success is false in its result") if getattr(answer.value, "success", 0) is False else None


def _server_error(answer: Answer) -> Verdict | None:
    """What the API's own tools give for an error: an object with a code."""
    content = answer.block.content
    code = content.get("error_code") if isinstance(content, dict) else None
    return (Outcome.ERROR, f"error_code: {code}") if code else None


def _first_words(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 60 else line[:59] + "…"  # noqa: PLR2004 - as much as reads well in a table


_RULES: tuple[Callable[[Answer], Verdict | None], ...] = (
    _denial_kind,
    _permission_decision,
    _sentence,
    _interrupted,
    _is_error,
    _error_element,
    _string,
    _no_success,
    _server_error,
)
