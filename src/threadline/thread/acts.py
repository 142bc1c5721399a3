"""Find what a person did in a transcript: prompts, commands, shell lines, steering, feedback, interrupts.

Four in five entries of kind `user` are tool results, and most of the rest is text that Claude Code inserted. The rule
is a table of steps, applied in order. Each act names the step that decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from threadline.model.attachments import QueuedCommand
from threadline.model.blocks import DocumentBlock, ImageBlock, ToolResultBlock
from threadline.model.entries import AttachmentEntry, ChainEntry, Entry, QueueOperationEntry, UserEntry
from threadline.model.names import parse_version
from threadline.model.program_texts import (
    COMMAND_TAGS,
    INTERRUPT_MESSAGES,
    MACHINE_PREFIXES,
    MEMORY_TAG,
    PREFACE,
    SHELL_TAG,
)
from threadline.model.session import Act, ActKind
from threadline.model.text import extract_text
from threadline.thread.calls import feedback_in_results

_TYPED_SOURCES = frozenset({"typed", "queued", "suggestion_accepted", "clipboard"})
_MACHINE_SOURCES = frozenset({"system", "agent-started", "resumed", "agent"})
# From this version on, what was typed while the model worked is an attachment.
_QUEUED_AS_ATTACHMENT = (2, 1, 97)
_REPEATABLE_KINDS = frozenset({ActKind.STEERING, ActKind.FEEDBACK})


def find_acts(entries: Iterable[Entry], *, agent: bool = False) -> list[Act]:
    """Return all acts in one agent's entries, in file order, each once. `agent` says that they are a subagent's."""
    entries = list(entries)
    acts = [act for entry in entries if (act := act_of(entry, agent=agent)) is not None]
    acts += () if agent else _unrecorded_steering(entries, acts)
    position = {id(entry): at for at, entry in enumerate(entries)}
    acts.sort(key=lambda act: position[id(act.entry)])
    return _without_repeats(acts)


def act_of(entry: Entry, *, agent: bool = False) -> Act | None:
    """Return the act that an entry records, if any."""
    # Comparing types takes a sixth of the time of `isinstance`, and this is asked of every entry.
    if type(entry) is AttachmentEntry:
        return None if agent or entry.is_agent else _queued_act(entry)
    if type(entry) is not UserEntry or agent or _is_from_agent(entry):
        return None
    content = entry.message.content if entry.message is not None else None
    results = [block for block in content if type(block) is ToolResultBlock] if type(content) is list else []
    if results:
        words = feedback_in_results(entry, list(results))
        return Act(ActKind.FEEDBACK, words, entry, "tool result: the user said") if words else None
    if _is_machine_written(entry):
        return None
    return _plan_act(entry) if entry.plan_content else _typed_act(entry, content)


def _plan_act(entry: UserEntry) -> Act:
    """Step 4: an approved plan that Claude Code gives to the model to carry out."""
    return Act(ActKind.PLAN, (entry.plan_content or "").strip(), entry, "4 planContent")


def _typed_act(entry: UserEntry, content: Any) -> Act | None:
    """Steps 6 to 8: what the source of the prompt and the text itself say."""
    images = _count_images(content)
    text = strip_prefaces(extract_text(content))
    kind = _kind_of_text(text)
    source = entry.prompt_source
    if kind is None or source in _MACHINE_SOURCES or not (text or images):
        return None
    # The desktop app sends what a person typed through the SDK, and says so.
    is_human = entry.origin is not None and entry.origin.kind == "human"
    if source == "sdk" and kind is ActKind.PROMPT and not is_human:
        return Act(ActKind.PROGRAMMATIC, text, entry, "6 promptSource sdk", images)
    rule = f"6 promptSource {source}" if source in _TYPED_SOURCES else f"8 text ({kind})"
    if is_human:
        rule = "5 origin human"
    return Act(kind, act_text(text, kind), entry, rule, images)


def strip_prefaces(text: str) -> str:
    """Return the text without what Claude Code put before it."""
    at = 0
    while match := PREFACE.match(text, at):
        at = match.end()
    return text[at:].strip()


def act_text(text: str, kind: ActKind) -> str:
    """Return the text of an act: `/model opus` for a command, the line itself for a shell line."""
    if kind is ActKind.COMMAND:
        name = tag_text(text, "command-name") or tag_text(text, "command-message") or ""
        return f"{name if name.startswith('/') else '/' + name} {tag_text(text, 'command-args') or ''}".strip()
    tag = {ActKind.SHELL: "bash-input", ActKind.MEMORY: "user-memory-input"}.get(kind)
    inner = tag_text(text, tag) if tag is not None else None
    return text if inner is None else inner


def tag_text(text: str, tag: str) -> str | None:
    """Return the content of the first element of that name, if it is closed."""
    _, opened, rest = text.partition(f"<{tag}>")
    inner, closed, _ = rest.partition(f"</{tag}>")
    return inner.strip() if opened and closed else None


def _is_from_agent(entry: UserEntry) -> bool:
    """Step 2: rows of agents and of teams."""
    return bool(entry.is_agent or entry.author_agent_id or entry.team_name)


def _is_machine_written(entry: UserEntry) -> bool:
    """Steps 3 to 5: flags that say that no person wrote it."""
    if entry.tool_use_result is not None or entry.source_tool_assistant_uuid or entry.source_tool_use_id:
        return True
    if entry.is_compact_summary or entry.is_visible_in_transcript_only or entry.is_meta:
        return True
    kind = entry.origin.kind if entry.origin is not None else None
    return kind not in (None, "human", "unclassified")


def _kind_of_text(text: str) -> ActKind | None:
    """Step 8: the kind that the text itself shows; None for Claude Code's own text."""
    if text.startswith(INTERRUPT_MESSAGES):
        return ActKind.INTERRUPT
    if text.startswith(COMMAND_TAGS):
        return ActKind.COMMAND
    if text.startswith(SHELL_TAG):
        return ActKind.SHELL
    if text.startswith(MEMORY_TAG):
        return ActKind.MEMORY
    return None if text.startswith(MACHINE_PREFIXES) else ActKind.PROMPT


def _count_images(content: Any) -> int:
    blocks = content if isinstance(content, list) else ()
    return sum(isinstance(block, ImageBlock | DocumentBlock) for block in blocks)


def _queued_act(entry: AttachmentEntry) -> Act | None:
    """Step 9: what was typed while the model was working, as an attachment."""
    queued = entry.attachment
    if not isinstance(queued, QueuedCommand) or queued.command_mode not in (None, "prompt", "bash") or queued.is_meta:
        return None
    origin = queued.origin.get("kind") if isinstance(queued.origin, dict) else None
    text = strip_prefaces(extract_text(queued.prompt))
    if origin not in (None, "human", "unclassified") or not text or text.startswith(MACHINE_PREFIXES):
        return None
    kind = ActKind.SHELL if queued.command_mode == "bash" else ActKind.STEERING
    return Act(kind, text, entry, "9 queued_command")


def _unrecorded_steering(entries: list[Entry], acts: list[Act]) -> Iterator[Act]:
    """Step 10: prompts that were queued and taken up by the model, and that no other row records (before 2.1.97)."""
    if not can_miss_steering(_newest_version(entries)):
        return
    recorded = {normalise_spaces(act.text) for act in acts}
    waiting: deque[QueueOperationEntry] = deque()
    for entry in entries:
        if not isinstance(entry, QueueOperationEntry):
            continue
        if entry.operation == "enqueue":
            waiting.append(entry)
        elif entry.operation == "popAll":
            waiting.clear()
        elif entry.operation == "dequeue" and waiting:
            waiting.popleft()
        elif entry.operation == "remove" and waiting:
            removed = waiting.popleft()
            text = removed.text.strip()
            if (
                text
                and not text.startswith((*MACHINE_PREFIXES, '{"task_id"'))
                and normalise_spaces(text) not in recorded
            ):
                yield Act(ActKind.STEERING, text, removed, "10 queue-operation")


def _newest_version(entries: list[Entry]) -> tuple[int, ...]:
    versions = {entry.version for entry in entries if isinstance(entry, ChainEntry) and entry.version}
    return max(map(parse_version, versions), default=())


def can_miss_steering(newest: tuple[int, ...]) -> bool:
    """Whether, in that version, only queue operations may record what was typed while the model worked."""
    return newest < _QUEUED_AS_ATTACHMENT


def normalise_spaces(text: str) -> str:
    """Return a text with single spaces, by which a repeated one is recognised."""
    return " ".join(text.split())


def _without_repeats(acts: list[Act]) -> list[Act]:
    """Remove acts that are recorded twice in a row: queued and then sent, or refusals of parallel calls."""
    unique: list[Act] = []
    for act in acts:
        last = unique[-1] if unique else None
        if (
            last is None
            or not is_repeat(last.kind, act.kind)
            or normalise_spaces(last.text) != normalise_spaces(act.text)
        ):
            unique.append(act)
    return unique


def is_repeat(before: str, after: str) -> bool:
    """Whether successive acts of these kinds with the same text are one act that is recorded twice."""
    return not _REPEATABLE_KINDS.isdisjoint((before, after))
