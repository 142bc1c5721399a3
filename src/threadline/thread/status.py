"""How an agent ended."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.model.agent import AgentStatus
from threadline.model.block import TextBlock
from threadline.model.call import Call, Outcome
from threadline.model.entries import AssistantEntry, Entry, FailedEntry, ResultEntry, UserEntry
from threadline.model.ids import AgentId
from threadline.model.results import AgentResult
from threadline.model.side import AgentMeta
from threadline.thread.evidence import Evidence
from threadline.thread.interrupts import INTERRUPTS

# The words of notifications and of results; a word that is not here says nothing.
_WORDS = {
    "completed": AgentStatus.DONE,
    "success": AgentStatus.DONE,
    "failed": AgentStatus.FAILED,
    "error": AgentStatus.FAILED,
    "killed": AgentStatus.INTERRUPTED,
    "stopped": AgentStatus.INTERRUPTED,
    "cancelled": AgentStatus.INTERRUPTED,
}
_OUTCOMES = {
    Outcome.OK: AgentStatus.DONE,
    Outcome.ERROR: AgentStatus.FAILED,
    Outcome.DENIED: AgentStatus.INTERRUPTED,
    Outcome.INTERRUPTED: AgentStatus.INTERRUPTED,
    Outcome.PENDING: AgentStatus.PENDING,
}
# Of these the result tells only that the agent began.
_BEGUN = frozenset({"async_launched", "teammate_spawned", "remote_launched"})


def journal_status(journal: Sequence[Entry]) -> dict[AgentId, AgentStatus]:
    """How the agents of workflows ended, as their journals tell."""
    ended: dict[AgentId, AgentStatus] = {}
    for entry in journal:
        if isinstance(entry, ResultEntry | FailedEntry) and entry.agent_id is not None:
            ended[entry.agent_id] = AgentStatus.DONE if isinstance(entry, ResultEntry) else AgentStatus.FAILED
    return ended


def status(
    id_: AgentId, entries: Sequence[Entry], meta: AgentMeta | None, call: Call | None, evidence: Evidence
) -> AgentStatus:
    """How an agent ended: by what was told of it since, by its call, by its own last words."""
    told = evidence.notifications.get(id_)
    if told is not None and told.status in _WORDS:
        return _WORDS[told.status]
    if (asked := evidence.task_status.get(id_)) in _WORDS:
        return _WORDS[asked]
    if meta is not None and meta.finished:
        return AgentStatus.DONE
    end = last_words(entries)
    if call is None or call.tool == "Workflow":
        return end
    result = call.result
    if isinstance(result, AgentResult) and result.status in _BEGUN:
        return end if end is AgentStatus.INTERRUPTED else AgentStatus.PENDING
    return _OUTCOMES.get(call.outcome, end)


def last_words(entries: Sequence[Entry]) -> AgentStatus:
    """What an agent's own transcript tells of its end."""
    last = next((one for one in reversed(entries) if isinstance(one, UserEntry | AssistantEntry)), None)
    if isinstance(last, UserEntry):
        return AgentStatus.INTERRUPTED if last.text.lstrip().startswith(INTERRUPTS) else AgentStatus.UNKNOWN
    if last is None or last.message is None:
        return AgentStatus.UNKNOWN
    if last.is_api_error_message:
        return AgentStatus.FAILED
    blocks = list(last.message.blocks)
    finished = last.message.stop_reason in (None, "end_turn", "stop_sequence")
    return AgentStatus.DONE if finished and blocks and isinstance(blocks[-1], TextBlock) else AgentStatus.UNKNOWN
