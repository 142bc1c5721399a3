"""Fields: what full text sees of one entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadline.index.base64 import RUN, without_base64
from threadline.index.message_text import assistant, attachment, queue, system, user
from threadline.index.strings import strings
from threadline.index.tool_text import Texts, add, call
from threadline.model.entries import (
    AgentNameEntry,
    AgentProgress,
    AiEntry,
    AiTitleEntry,
    ApiRequestBlobEntry,
    ApiRequestEntry,
    ApiRequestShapeEntry,
    AssistantEntry,
    AttachmentEntry,
    AttributionSnapshotEntry,
    BashProgress,
    ChainEntry,
    ContentReplacementEntry,
    CostStateEntry,
    CustomTitleEntry,
    Entry,
    FailedEntry,
    FileHistoryDeltaEntry,
    FileHistorySnapshotEntry,
    FrameLinkEntry,
    HumanEntry,
    InternalEntry,
    LastPromptEntry,
    McpProgress,
    ModeEntry,
    OtherEntry,
    PermissionModeEntry,
    PowershellProgress,
    ProgressEntry,
    QueueOperationEntry,
    RelocatedEntry,
    ReplToolCall,
    ResultEntry,
    SearchResultsReceived,
    SkillProgress,
    SpeculationAcceptEntry,
    SummaryEntry,
    SystemEntry,
    TagEntry,
    TaskProgress,
    TaskSummaryEntry,
    ToolProgressEntry,
    ToolResultEntry,
    ToolsUsedEntry,
    ToolUseEntry,
    UserEntry,
    WorktreeStateEntry,
)

FIELDS = ("title", "prompt", "reply", "thinking", "command", "path", "input", "result", "injected")
"""The fields of full text: what a session is called, what a person typed, what the model said and thought, the
commands that ran, files, what tools were given and what they gave back, and what the program put in."""

LONGEST = 1_000_000
"""How many characters of a field are seen: what is longer is cut at a word."""

_ENVELOPE = frozenset(
    {
        *("type", "uuid", "parentUuid", "sessionId", "session_id", "timestamp", "version", "cwd", "gitBranch"),
        *("userType", "slug", "entrypoint", "requestId", "agentId"),
    }
)
_OF_ALL = frozenset((*ChainEntry.__struct_fields__, "key"))
_WORD_ENDS = 1000


def fields(entry: Entry) -> dict[str, str]:
    """The text of an entry by field, as it stands; only fields that say something.

    Each thing an entry says is there once: what a tool printed stands in its result in two shapes, and a file that was
    read, too. Left out is what is no text (base64, signatures, token counts) and what other entries say: output so far
    of running commands, an agent's entries told once more, requests as they were sent, copies of files, system prompts.
    Of entries and blocks that are not known, all strings are `injected`. A field ends after `LONGEST` characters.
    """
    texts: Texts = {}
    _KINDS.get(type(entry), _own)(entry, texts)
    said = {field: text for field, parts in texts.items() if (text := _joined(parts))}
    if not said and entry.line.problems:
        _anything(entry, texts)
        said = {field: text for field, parts in texts.items() if (text := _joined(parts))}
    return said


def _joined(parts: list[str]) -> str:
    text = parts[0] if len(parts) == 1 else "\n".join(filter(None, parts))
    if len(text) >= RUN:
        text = without_base64(text)
        if len(text) > LONGEST:
            text = _cut(text)
    return "" if text.isspace() else text


def _cut(text: str) -> str:
    """The beginning of a text, to the end of a word where there is one."""
    end = max(text.rfind(space, LONGEST - _WORD_ENDS, LONGEST + 1) for space in " \n")
    return text[: end if end > 0 else LONGEST]


def _nothing(_entry: Entry, _texts: Texts) -> None:
    pass


def _own(entry: Entry, texts: Texts) -> None:
    """All that a kind has beside what all kinds have."""
    add(texts, "injected", strings([getattr(entry, name) for name in entry.__struct_fields__ if name not in _OF_ALL]))


def _anything(entry: Entry, texts: Texts) -> None:
    """All strings of a line, or where it is not JSON, its bytes."""
    if entry.kind == "blank":
        return
    data = entry.data
    said = strings(data, mute=_ENVELOPE) if data is not None else [entry.raw[:LONGEST].decode(errors="ignore")]
    add(texts, "injected", said)


def _titled(name: str) -> Callable[[Any, Texts], None]:
    def title(entry: Any, texts: Texts) -> None:
        add(texts, "title", strings(getattr(entry, name)))

    return title


def _progress(entry: ProgressEntry, texts: Texts) -> None:
    """What was going on: not what is said again when it is done."""
    kind = type(entry.progress)
    if kind in (TaskProgress, ReplToolCall):
        _anything(entry, texts)
    elif kind not in _REPEATED:
        add(texts, "injected", strings(entry.progress))


_REPEATED = (BashProgress, PowershellProgress, AgentProgress, SkillProgress, McpProgress, SearchResultsReceived)


def _tool_use(entry: ToolUseEntry, texts: Texts) -> None:
    if entry.tool is not None:
        call(entry.tool.name or "", entry.tool.input, texts)


def _tool_result(entry: ToolResultEntry, texts: Texts) -> None:
    add(texts, "result", strings(entry.result))


def _ended(entry: ResultEntry, texts: Texts) -> None:
    add(texts, "result", strings([entry.result, entry.structured_output, entry.errors]))


def _failed(entry: FailedEntry, texts: Texts) -> None:
    add(texts, "result", strings(entry.error))


def _human(entry: HumanEntry, texts: Texts) -> None:
    add(texts, "prompt", _exported(entry))


def _ai(entry: AiEntry, texts: Texts) -> None:
    add(texts, "reply", _exported(entry))


def _exported(entry: HumanEntry | AiEntry) -> list[str]:
    return strings([entry.text, entry.content, entry.message])


def _worktree(entry: WorktreeStateEntry, texts: Texts) -> None:
    if (one := entry.worktree_session) is not None:
        add(texts, "path", strings([one.worktree_path, one.original_cwd]))
        add(texts, "injected", strings([one.worktree_name, one.worktree_branch, one.original_branch]))


def _relocated(entry: RelocatedEntry, texts: Texts) -> None:
    add(texts, "path", strings(entry.relocated_cwd))


def _frame(entry: FrameLinkEntry, texts: Texts) -> None:
    add(texts, "title", strings(entry.title))
    add(texts, "path", strings(entry.path))
    add(texts, "injected", strings(entry.frame_url))


_KINDS: dict[type[Entry], Callable[[Any, Texts], None]] = {
    UserEntry: user,
    AssistantEntry: assistant,
    AttachmentEntry: attachment,
    SystemEntry: system,
    ProgressEntry: _progress,
    QueueOperationEntry: queue,
    SummaryEntry: _titled("summary"),
    AiTitleEntry: _titled("ai_title"),
    CustomTitleEntry: _titled("custom_title"),
    TaskSummaryEntry: _titled("summary"),
    AgentNameEntry: _titled("agent_name"),
    TagEntry: _titled("tag"),
    LastPromptEntry: _titled("last_prompt"),
    FrameLinkEntry: _frame,
    WorktreeStateEntry: _worktree,
    RelocatedEntry: _relocated,
    ToolUseEntry: _tool_use,
    ToolResultEntry: _tool_result,
    ResultEntry: _ended,
    FailedEntry: _failed,
    HumanEntry: _human,
    AiEntry: _ai,
    OtherEntry: _anything,
    **dict.fromkeys(
        (
            FileHistorySnapshotEntry,
            FileHistoryDeltaEntry,
            ContentReplacementEntry,
            AttributionSnapshotEntry,
            ApiRequestEntry,
            ApiRequestShapeEntry,
            ApiRequestBlobEntry,
            CostStateEntry,
            ModeEntry,
            PermissionModeEntry,
            ToolsUsedEntry,
            ToolProgressEntry,
            SpeculationAcceptEntry,
        ),
        _nothing,
    ),
}
_KINDS |= {kind: _anything for kind in InternalEntry.__subclasses__() if kind not in _KINDS}
