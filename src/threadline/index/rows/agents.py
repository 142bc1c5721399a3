"""Extract subagents, compactions and todo lists from a transcript, entry by entry, and write them.

The results are those of `threadline.thread.agents`, `threadline.thread.threads` and `threadline.thread.state.lists`
for a whole session. Agents inside a main transcript are separated by the rules of `threadline.thread.agents`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from threadline.files import blake2b
from threadline.index.rows.calls import AgentUse, AnsweredCall, EntryIds, LateResult
from threadline.index.store import storable_int, storable_text
from threadline.model.attachments import TaskReminder
from threadline.model.calls import Call, Outcome
from threadline.model.entries import (
    CHAIN_TYPES,
    AgentMetadataEntry,
    AgentProgress,
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    ForkContextRefEntry,
    ProgressEntry,
    SkillProgress,
    SystemEntry,
    UserEntry,
)
from threadline.model.homes import Transcript, TranscriptKind
from threadline.model.places import AgentId, CallId, Place
from threadline.model.results import Task
from threadline.model.session import CompactionKind, LinkEvidence
from threadline.model.state import TaskState
from threadline.model.times import format_sortable, sortable_time
from threadline.model.usage import parse_token_count
from threadline.parse import read_agent_meta
from threadline.thread import (
    AGENT_STARTING_TOOLS,
    TEAMMATE_TAG,
    ReplayEvent,
    SideAgentFold,
    TrackedLists,
    agent_id_in_result,
    find_notifications,
    result_blocks,
    teammate_name,
)

MAIN_AGENT = ""
"""The name of the main agent, in a transcript that contains others as well."""

# A message has several rows, with rows of other messages between them: how many messages are remembered.
_RECENT_MESSAGES = 16
_MAX_ROOTS = 5000
_NOTIFICATION_TAG = b"task-notification>"


class AgentState(Struct, array_like=True):
    """What was read of an agent so far. `recent` are the messages that were counted last."""

    entries: int = 0
    first: str | None = None
    last: str | None = None
    session: str | None = None
    type: str | None = None
    models: dict[str, int] = {}
    recent: list[str] = []
    side: SideAgentFold = msgspec.field(default_factory=SideAgentFold)
    prompt: bytes = b""
    meta_type: str | None = None
    forked_from: str | None = None
    is_teammate: bool = False
    name: str | None = None

    def add(self, entry: Entry, time: str | None) -> None:
        """Add an entry of the agent, with its `sortable_time`."""
        self.entries += 1
        if not self.side.is_decided:
            self.side.add(entry)
        if type(entry) is ForkContextRefEntry:
            self.forked_from = self.forked_from or storable_text(entry.parent_last_uuid)
        elif type(entry) in CHAIN_TYPES:
            if not self.prompt and type(entry) is UserEntry:
                self._add_prompt(entry)
            self.is_teammate = self.is_teammate or bool(entry.team_name)  # type: ignore[attr-defined]
            self.name = self.name or storable_text(entry.agent_name)  # type: ignore[attr-defined]
        if time is not None:
            if self.last is None or time > self.last:
                self.last = time
            if self.first is None or time < self.first:
                self.first = time
        if self.session is None:
            self.session = storable_text(entry.session_id)
        if type(entry) is AssistantEntry and entry.message is not None and not entry.is_synthetic:
            self._reply(entry, storable_text(entry.message.model), storable_text(entry.message.id))

    def _add_prompt(self, entry: UserEntry) -> None:
        """Add the agent's task, by the rule of `threadline.thread.agents`."""
        if not entry.is_meta and next(result_blocks(entry), None) is None:
            text = entry.text
            self.prompt = hash_prompt(text)
            self.is_teammate = self.is_teammate or text.lstrip().startswith(TEAMMATE_TAG)

    def _reply(self, entry: AssistantEntry, model: str | None, message: str | None) -> None:
        if entry.attribution_agent is not None and self.type is None:
            self.type = storable_text(entry.attribution_agent)
        if model and (message is None or message not in self.recent):
            self.models[model] = self.models.get(model, 0) + 1
            if message is not None:
                self.recent = [*self.recent[1 - _RECENT_MESSAGES :], message]

    def teammate(self, agent: str) -> str | None:
        """The name of an agent that is part of a team, by the rule of `threadline.thread.agents`."""
        return (self.name or teammate_name(agent)) if self.is_teammate else None

    @property
    def model(self) -> str | None:
        """The model that replied most often; of several, the first."""
        return max(self.models, key=lambda name: self.models[name], default=None)


def hash_prompt(prompt: object) -> bytes:
    """A hash by which the prompt of a call and that of an agent are compared; empty without a text."""
    text = prompt.strip() if isinstance(prompt, str) else ""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=12).digest() if text else b""


class AgentsState(Struct, array_like=True):
    """The agents of a transcript by id, and (inside a main one) which of them each entry's id belongs to."""

    agents: dict[str, AgentState] = {}
    roots: dict[str, str] = {}


class AgentStart(Struct, array_like=True, gc=False):
    """A call that started an agent, the evidence for it (`step`), and the type of agent that it requested.

    `tokens` is what the result says that the agent used.
    """

    agent: str
    call: str
    step: str
    type: str | None = None
    tokens: int | None = None


class AgentFold:
    """Collects agents while entries are added."""

    def __init__(self, state: AgentsState, transcript: Transcript) -> None:
        self.state = state
        agent = transcript.agent if transcript.kind is not TranscriptKind.MAIN else None
        self._transcript_agent = storable_text(agent)
        self._is_main = transcript.kind is TranscriptKind.MAIN
        self._changed: set[str] = set()
        self.starts: dict[tuple[str, str], AgentStart] = {}
        self._path = transcript.path

        self.inline_agents: dict[int, str] = {}
        """The agents inside a main transcript that have no id, by the offsets of their replies."""

        self.counts = self._transcript_agent is not None
        """Whether all entries belong to the transcript's own agent."""

    def own(self, entry: Entry, time: str | None) -> None:
        """Add an entry of the transcript's own agent, with its `sortable_time`."""
        self._change(self._transcript_agent or "").add(entry, time)

    def inside(self, entry: ChainEntry, time: str | None) -> str | None:
        """Add an entry that is marked as an agent's, with its time. Return the agent, unless it is the transcript's."""
        if not self._is_main:
            return None
        agent = self._find_agent(entry)
        self._change(agent).add(entry, time)
        if type(entry) is AssistantEntry and entry.agent_id is None:
            self.inline_agents[entry.line.offset] = agent
        return agent

    def main(self) -> None:
        """Note that there is an entry of the main agent."""
        if self._is_main and MAIN_AGENT not in self.state.agents:
            self._change(MAIN_AGENT).entries = 1

    def _change(self, agent: str) -> AgentState:
        """The state of an agent, which is about to change."""
        self._changed.add(agent)
        state = self.state.agents.get(agent)
        if state is None:
            state = self.state.agents[agent] = AgentState()
        return state

    def _find_agent(self, entry: ChainEntry) -> str:
        """The agent inside a main transcript that an entry belongs to, by the rules of `threadline.thread.agents`."""
        if entry.author_agent_id is not None:
            return storable_text(entry.author_agent_id) or ""
        uuid, parent = storable_text(entry.uuid), storable_text(entry.parent_uuid)
        roots = self.state.roots
        root = roots.get(uuid or "") or roots.get(parent or "") or uuid or parent or f"line{entry.line.number}"
        if uuid is not None and uuid not in roots:
            roots[uuid] = root
        return f"inline-{root[:8]}"

    def answered(self, answered_call: AnsweredCall) -> None:
        """Add the start of an agent, if the result of a call names one."""
        if answered_call.ending.started is None:
            return
        raw = answered_call.entry.tool_use_result if isinstance(answered_call.entry, UserEntry) else None
        step = LinkEvidence.RESULT if agent_id_in_result(answered_call.entry) is not None else LinkEvidence.RESULT_TEXT
        tool_input = answered_call.input if answered_call.tool in AGENT_STARTING_TOOLS else None
        kind = tool_input.get("subagent_type") if isinstance(tool_input, dict) else None
        kind = kind or (raw.get("agentType") if isinstance(raw, dict) else None)
        tokens = parse_token_count(raw.get("totalTokens")) if isinstance(raw, dict) else None
        self._start(answered_call.ending.started, answered_call.call, step, storable_text(kind), tokens)

    def progress(self, _at: int, entry: ProgressEntry, _agent: str | None) -> None:
        """Add the start of an agent, if the progress of a call names one."""
        match entry:
            case ProgressEntry(
                progress=AgentProgress(agent_id=str(agent)) | SkillProgress(agent_id=str(agent)),
                parent_tool_use_id=str(call),
            ):
                self._start(agent, call, LinkEvidence.PROGRESS, None)

    def notified(self, entry: Entry) -> None:
        """Add the start of an agent, if a notification names its call."""
        if _NOTIFICATION_TAG in entry.line.raw:
            for notification in find_notifications((entry,)):
                if notification.call is not None and notification.task:
                    self._start(notification.task, notification.call, LinkEvidence.NOTIFICATION, None)

    def metadata(self, entry: AgentMetadataEntry) -> None:
        """Add the start of an agent from its metadata. Other versions write those to a separate file."""
        if isinstance(entry.agent_id, str) and isinstance(entry.tool_use_id, str):
            self._start(entry.agent_id, entry.tool_use_id, LinkEvidence.META, storable_text(entry.agent_type))

    def _start(self, agent: str, call: str, step: LinkEvidence, kind: str | None, tokens: int | None = None) -> None:
        start = AgentStart(storable_text(agent) or "", storable_text(call) or "", str(step), kind, tokens)
        first = self.starts.setdefault((start.agent, start.step), start)
        if tokens is not None and (first.tokens is None or first.tokens < tokens):
            first.tokens = tokens

    def _add_side_file(self) -> None:
        """Add what the side file beside an agent's transcript says."""
        agent = self._transcript_agent
        meta = read_agent_meta(self._path.with_name(f"{self._path.stem}.meta.json")) if agent else None
        if agent and meta is not None:
            type_ = storable_text(meta.agent_type)
            state = self._change(agent)
            state.meta_type = type_
            state.name = state.name or storable_text(meta.name)
            if meta.tool_use_id:
                self._start(agent, meta.tool_use_id, LinkEvidence.META, type_)

    def done(self, uses: Iterable[AgentUse]) -> AgentRows:
        """The rows, when all entries have been added. `uses` are the calls that start agents."""
        if self._changed:
            self._add_side_file()
        roots = self.state.roots
        for uuid in list(roots)[:-_MAX_ROOTS]:
            del roots[uuid]
        agents = self.state.agents
        rows = [(name, agents[name]) for name in sorted(self._changed)]
        return AgentRows(
            [
                (
                    name,
                    agent.session,
                    agent.type,
                    agent.model,
                    agent.entries,
                    format_sortable(agent.first),
                    format_sortable(agent.last),
                    agent.side.kind(name, is_started=True),
                    agent.side.is_single_reply,
                    agent.prompt or None,
                    agent.meta_type,
                    agent.forked_from,
                    agent.teammate(name),
                )
                for name, agent in rows
            ],
            list(self.starts.values()),
            [row for use in uses if (row := _agent_call_row(use)) is not None],
        )


def _agent_call_row(use: AgentUse) -> tuple[Any, ...] | None:
    call, tool_input, entry = use
    kind = tool_input.get("subagent_type") if isinstance(tool_input, dict) else None
    if not isinstance(kind, str) or not kind:
        return None
    name = tool_input.get("name")
    return (
        call,
        storable_text(kind),
        hash_prompt(tool_input.get("prompt")) or None,
        format_sortable(sortable_time(entry.timestamp_text)),
        storable_text(entry.uuid),
        storable_text(entry.parent_uuid),
        storable_text(name) if isinstance(name, str) and name else None,
    )


# An agent that was resumed has several results; the first call started it.
_INSERT_START = """INSERT INTO start_rows VALUES(?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET tokens = MAX(COALESCE(tokens, excluded.tokens), excluded.tokens)
WHERE excluded.tokens IS NOT NULL"""


class AgentRows(Struct, array_like=True, gc=False):
    """The rows of agents whose entries were read, of agents that were started, and of calls that start agents."""

    agents: list[tuple[Any, ...]]
    starts: list[AgentStart]
    calls: list[tuple[Any, ...]] = []

    def write(self, connection: sqlite3.Connection, number: int) -> None:
        """Write them for the transcript of that number."""
        connection.executemany(
            f"INSERT OR REPLACE INTO agent_rows VALUES({', '.join('?' * 14)})",
            [(number, *row) for row in self.agents],
        )
        connection.executemany(
            _INSERT_START,
            [(number, start.agent, start.step, start.call, start.type, start.tokens) for start in self.starts],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO agent_calls VALUES(?, ?, ?, ?, ?, ?, ?, ?)", [(number, *row) for row in self.calls]
        )


# A boundary is the parent of its summary, which follows it. How many boundaries are remembered.
_MAX_BOUNDARIES = 200


class CompactionState(Struct, array_like=True):
    """The ids of boundaries so far, and the summaries whose parent is not a boundary, by the parent's id."""

    boundaries: list[str] = []
    summaries: dict[str, list[str]] = {}


class CompactionRow(Struct, array_like=True, gc=False):
    """The row of a compaction. Without a kind, it turned out not to be one."""

    uuid: str
    at: int = 0
    kind: str | None = None
    trigger: str | None = None
    before: int | None = None
    after: int | None = None
    agent: str | None = None


class CompactionFold:
    """Collects compactions while entries are added."""

    def __init__(self, state: CompactionState) -> None:
        self.state = state
        self._rows: dict[str, CompactionRow] = {}

    def system(self, at: int, entry: SystemEntry, agent: str | None) -> None:
        """Add a system entry."""
        uuid = storable_text(entry.uuid)
        if uuid is None:
            return
        if entry.subtype == "compact_boundary":
            tokens: tuple[int | None, int | None] = (None, None)
            trigger = None
            if (metadata := entry.compact_metadata) is not None:
                tokens = storable_int(metadata.pre_tokens), storable_int(metadata.post_tokens)
                trigger = metadata.trigger
            self._add(CompactionRow(uuid, at, CompactionKind.BOUNDARY, storable_text(trigger), *tokens, agent))
            self.state.boundaries = [*(boundary for boundary in self.state.boundaries if boundary != uuid), uuid][
                -_MAX_BOUNDARIES:
            ]
            for summary in self.state.summaries.pop(uuid, ()):
                self._add(CompactionRow(summary))
        elif entry.subtype == "microcompact_boundary":
            micro = entry.microcompact_metadata
            before = micro.pre_tokens if micro is not None else None
            after = before - (micro.tokens_saved or 0) if micro is not None and before is not None else None
            trigger = micro.trigger if micro is not None else None
            tokens = storable_int(before), storable_int(after)
            self._add(CompactionRow(uuid, at, CompactionKind.MICRO, storable_text(trigger), *tokens, agent))

    def summary(self, at: int, entry: UserEntry, agent: str | None) -> None:
        """Add a summary of the conversation so far: a compaction itself, unless it follows a boundary."""
        uuid, parent = storable_text(entry.uuid), storable_text(entry.parent_uuid)
        if uuid is None or parent in self.state.boundaries:
            return
        self._add(CompactionRow(uuid, at, CompactionKind.SUMMARY, agent=agent))
        if parent is not None:
            summaries = self.state.summaries.setdefault(parent, [])
            summaries += [uuid] if uuid not in summaries else []

    def _add(self, row: CompactionRow) -> None:
        self._rows[row.uuid] = row

    def done(self) -> list[CompactionRow]:
        """The rows, when all entries have been added."""
        for parent in list(self.state.summaries)[:-_MAX_BOUNDARIES]:
            del self.state.summaries[parent]
        return list(self._rows.values())


def write_compactions(
    connection: sqlite3.Connection, rows: list[CompactionRow], number: int, ids: EntryIds, *, is_whole: bool
) -> None:
    """Write them for the transcript of that number. If a compaction is repeated, the last row counts."""
    if not is_whole:
        connection.executemany(
            "DELETE FROM compaction_rows WHERE transcript_id = ?"
            " AND ? = (SELECT uuid FROM entries WHERE entries.entry_id = compaction_rows.entry_id)",
            [(number, row.uuid) for row in rows],
        )
    connection.executemany(
        "INSERT INTO compaction_rows VALUES(?, ?, ?, ?, ?, ?, ?)",
        [
            (number, ids.of(row.at), row.kind, row.trigger, row.before, row.after, row.agent)
            for row in rows
            if row.kind is not None
        ],
    )


_TODO_TOOL = "TodoWrite"
_TASK_PREFIX, _ALL_TASKS = "task ", "tasks"
_MAX_TASKS = 500


class TaskRecord(Struct, array_like=True, gc=False):
    """A task as the state stores it: the line of its last change, and what a list shows."""

    line: int
    id: str
    subject: str | None = None
    status: str | None = None
    owner: str | None = None
    blocked_by: list[str] | None = None


class TodoRow(Struct, array_like=True, gc=False):
    """An item of a list. `line` and `call` are the line and the call that last changed it."""

    list: str
    agent: str | None
    position: int
    item: str | None
    status: str | None
    content: str | None
    owner: str | None
    blocked_by: str | None
    line: int
    call: str | None = None


class TodoRows(Struct, array_like=True, gc=False):
    """The lists that were read, each complete. `todos` are the agents that own todo lists."""

    todos: list[str | None]
    has_tasks: bool
    rows: list[TodoRow]


class TodoState(Struct, array_like=True):
    """What a refresh remembers about lists: the tasks, and the time and call of the last change of each topic."""

    tasks: list[TaskRecord] = []
    times: dict[str, tuple[str, str]] = {}


class TodoFold:
    """Collects todo and task lists while entries are added."""

    def __init__(self, state: TodoState) -> None:
        self.state = state
        self._lists: TrackedLists | None = None
        self._calls: dict[int, str] = {}

    def answered(self, answered_call: AnsweredCall, agent: str | None) -> None:
        """Add the result of a call of a list tool."""
        if answered_call.ending.outcome is not Outcome.OK or not isinstance(answered_call.entry, UserEntry):
            return
        topic = _todo_topic(agent) if answered_call.tool == _TODO_TOOL else _task_topic(answered_call)
        if not self._is_news(topic, answered_call.entry, answered_call.call):
            return
        call = Call(
            id=CallId(answered_call.call),
            tool=answered_call.tool,
            input=answered_call.input,
            entry=None,  # type: ignore[arg-type] # a list needs only the input and the result
            outcome=Outcome.OK,
            evidence="",
            answer=answered_call.entry,
            block=answered_call.block,
        )
        self._calls[answered_call.entry.line.number] = answered_call.call
        self._apply(answered_call.entry, agent, call)

    def repeated(self, entry: UserEntry | AttachmentEntry, agent: str | None) -> None:
        """Add an entry that repeats a list."""
        is_tasks = isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, TaskReminder)
        if self._is_news(_ALL_TASKS if is_tasks else _todo_topic(agent), entry, ""):
            self._apply(entry, agent, None)

    def _is_news(self, topic: str, entry: Entry, call: str) -> bool:
        """Whether an entry is new for a topic: after a compaction, earlier rows may be written again."""
        change = storable_text(entry.timestamp_text) or "", call
        last = self.state.times.get(topic)
        if last is not None and (change == last or change[0] < last[0]):
            return False
        self.state.times[topic] = change
        if topic.startswith(_TASK_PREFIX) and change > self.state.times.get(_ALL_TASKS, ("", "")):
            self.state.times[_ALL_TASKS] = change
        return True

    def _apply(self, entry: Entry, agent: str | None, call: Call | None) -> None:
        if self._lists is None:
            self._lists = TrackedLists(_from_record(task) for task in self.state.tasks)
        self._lists.apply_event(ReplayEvent((0.0, 0, 0), entry, AgentId(agent) if agent is not None else None, call))

    def done(self) -> TodoRows | None:
        """The rows, when all entries have been added."""
        if self._lists is None:
            return None
        todos, tasks = self._lists.todos(), self._lists.tasks()
        # Ids that are not text become equal.
        records = list({record.id: record for record in map(_to_record, tasks)}.values())
        rows = [
            TodoRow(
                "todo",
                storable_text(todo_list.agent),
                position,
                storable_text(todo.id),
                storable_text(todo.status),
                storable_text(todo.content),
                None,
                None,
                todo_list.place.line,
                self._calls.get(todo_list.place.line),
            )
            for todo_list in todos
            for position, todo in enumerate(todo_list.todos, 1)
        ]
        has_tasks = records != self.state.tasks
        rows += (_task_row(position, record) for position, record in enumerate(records, 1) if has_tasks)
        self.state.tasks = records[-_MAX_TASKS:]
        for topic in list(self.state.times)[:-_MAX_TASKS]:
            del self.state.times[topic]
        return TodoRows([storable_text(todo.agent) for todo in todos], has_tasks, rows)


def write_todos(connection: sqlite3.Connection, lists: TodoRows, number: int, ids: EntryIds) -> None:
    """Write the lists of the transcript of that number. They replace earlier ones."""
    execute = connection.execute
    for agent in lists.todos:
        execute("DELETE FROM todo_rows WHERE transcript_id = ? AND list = 'todo' AND agent IS ?", (number, agent))
    if lists.has_tasks:
        execute("DELETE FROM todo_rows WHERE transcript_id = ? AND list = 'task'", (number,))
    connection.executemany(
        "INSERT INTO todo_rows VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(number, *_todo_values(row), ids.of(-row.line), row.call) for row in lists.rows],
    )


def write_late_todos(connection: sqlite3.Connection, late: LateResult, number: int, ids: EntryIds) -> None:
    """Write the todos of a late result, unless later ones are stored."""
    if late.answered.tool != _TODO_TOOL:
        return
    last = connection.execute(
        "SELECT MAX(e.timestamp) FROM todo_rows r JOIN entries e USING(entry_id)"
        " WHERE r.transcript_id = ? AND r.list = 'todo' AND r.agent IS ?",
        (number, late.agent),
    ).fetchone()
    fold = TodoFold(TodoState(times={_todo_topic(late.agent): (last[0] or "", "")}))
    fold.answered(late.answered, late.agent)
    if (lists := fold.done()) is not None:
        write_todos(connection, lists, number, ids)


def _todo_topic(agent: str | None) -> str:
    return f"todos {agent or ''}"


def _task_topic(answered_call: AnsweredCall) -> str:
    """The topic of a call: a task, or all tasks."""
    raw = answered_call.entry.tool_use_result if isinstance(answered_call.entry, UserEntry) else None
    result = raw if isinstance(raw, dict) else {}
    if answered_call.tool == "TaskUpdate":
        tool_input = answered_call.input
        name = result.get("taskId") or (tool_input.get("taskId") if isinstance(tool_input, dict) else None)
    else:
        task = result.get("task")
        name = task.get("id") if isinstance(task, dict) else None
    return f"{_TASK_PREFIX}{storable_text(name)}" if answered_call.tool != "TaskList" else _ALL_TASKS


def _todo_values(row: TodoRow) -> tuple[Any, ...]:
    item = (row.item, row.status, row.content, row.owner, row.blocked_by)
    return row.list, row.agent, row.position, *item


def _to_record(state: TaskState) -> TaskRecord:
    task = state.task
    blocked = [storable_text(name) or "" for name in task.blocked_by] if task.blocked_by else None
    texts = (storable_text(task.subject), storable_text(task.status), storable_text(task.owner))
    return TaskRecord(state.place.line, storable_text(task.id) or "", *texts, blocked)


def _from_record(task_record: TaskRecord) -> TaskState:
    task = Task(
        id=task_record.id,
        subject=task_record.subject,
        status=task_record.status,
        owner=task_record.owner,
        blocked_by=task_record.blocked_by,
    )
    return TaskState(task, Place("", task_record.line))


def _task_row(position: int, task_record: TaskRecord) -> TodoRow:
    blocked = msgspec.json.encode(task_record.blocked_by).decode() if task_record.blocked_by else None
    return TodoRow(
        "task",
        None,
        position,
        task_record.id,
        task_record.status,
        task_record.subject,
        task_record.owner,
        blocked,
        task_record.line,
    )
