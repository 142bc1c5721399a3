"""Properties of threading: for any parent graph, every entry once, a stable result, in linear time."""

from __future__ import annotations

import gc
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.model.entries import ChainEntry, Entry
from threadline.model.places import AgentId
from threadline.model.session import AgentKind
from threadline.parse import entries as parse
from threadline.thread import AgentFile, Graph, assemble_agents, build_history
from threadline.thread.graph import ParallelReplies
from threadline.thread.threads import AgentHistory

# Few names, so that they repeat: rows share ids, parents are missing, later, themselves, or in a circle.
_NAMES = st.sampled_from([f"n{number}" for number in range(12)])
_MAYBE = st.none() | _NAMES
_CALLS = st.sampled_from(["t1", "t2", "t3"])
_TEXTS = st.sampled_from(
    ["Sort the shelf", "[Request interrupted by user]", "<command-name>/clear</command-name>", "<tick>1</tick>", ""]
)
_TIMES = st.sampled_from(["2026-01-05T09:00:00.000Z", "2026-01-05T09:00:01.000Z", "never", ""])
_FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "isSidechain": st.booleans(),
        "isMeta": st.booleans(),
        "teamName": st.just("larder"),
        "agentId": st.sampled_from(["a1", "a2"]),
        "version": st.sampled_from(["1.0.35", "2.1.60", "2.1.232", "9" * 5000, "x"]),
        "promptSource": st.sampled_from(["typed", "sdk", "system", "never-seen"]),
        "sourceToolAssistantUUID": _NAMES,
        "forkedFrom": st.just({"sessionId": "s2", "messageUuid": "n1"}),
        "logicalParentUuid": _NAMES,
    },
)


def _content() -> st.SearchStrategy[Any]:
    text = st.builds(lambda text: {"type": "text", "text": text}, _TEXTS)
    use = st.builds(lambda id_: {"type": "tool_use", "id": id_, "name": "Task", "input": {"prompt": "x"}}, _CALLS)
    result = st.builds(lambda id_: {"type": "tool_result", "tool_use_id": id_, "content": "agentId: a1"}, _CALLS)
    return _TEXTS | st.lists(text | use | result, max_size=3)


def _user() -> st.SearchStrategy[dict[str, Any]]:
    content = _content().map(lambda content: {"message": {"role": "user", "content": content}})
    summary = st.sampled_from([{}, {}, {"isCompactSummary": True}, {"toolUseResult": {"agentId": "a1"}}])
    return st.builds(lambda message, summary: {"type": "user", **message, **summary}, content, summary)


def _assistant() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda content, id_, stop: {
            "type": "assistant",
            "message": {"role": "assistant", "model": "m", "content": content, "id": id_, "stop_reason": stop},
        },
        _content(),
        st.sampled_from(["m1", "m2", "m3", None]),
        st.sampled_from([None, "end_turn", "tool_use"]),
    )


def _other_chain() -> st.SearchStrategy[dict[str, Any]]:
    metadata = {"trigger": "auto", "preTokens": 9, "preservedSegment": {"headUuid": "n1", "tailUuid": "n2"}}
    return st.sampled_from(
        [
            {"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata},
            {"type": "system", "subtype": "microcompact_boundary", "microcompactMetadata": {"preTokens": 3}},
            {"type": "system", "subtype": "turn_duration", "durationMs": 1},
            {"type": "progress", "data": {"type": "agent_progress", "agentId": "a1"}, "parentToolUseID": "t1"},
            {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Sort", "commandMode": "prompt"}},
        ]
    )


def _bookkeeping() -> st.SearchStrategy[dict[str, Any]]:
    pointer = st.builds(
        lambda leaf, explicit: {"type": "last-prompt", "leafUuid": leaf, "explicit": explicit}, _MAYBE, st.booleans()
    )
    queue = st.builds(
        lambda operation: {"type": "queue-operation", "operation": operation, "content": "Sort"},
        st.sampled_from(["enqueue", "dequeue", "remove", "popAll"]),
    )
    return (
        pointer
        | queue
        | st.just({"type": "never-seen"})
        | st.just({"type": "summary", "leafUuid": "n1", "summary": "x"})
    )


def _chain() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda row, flags, uuid, parent, moment: {
            **flags,
            **row,
            "uuid": uuid,
            "parentUuid": parent,
            "timestamp": moment,
            "sessionId": "s1",
        },
        _user() | _assistant() | _other_chain(),
        _FLAGS,
        _NAMES,
        _MAYBE,
        _TIMES,
    )


ROWS = st.lists(_chain() | _bookkeeping(), max_size=30)


def _entries(folder: Path, rows: list[dict[str, Any]], name: str = "s1") -> list[Entry]:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(parse(path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to write transcripts to."""
    return tmp_path_factory.mktemp("laws")


def _check_entries_once(history: AgentHistory, entries: list[Entry]) -> None:
    assert list(history.entries) == entries
    assert [entry for turn in history.turns for entry in turn.entries] == entries


def _check_thread(history: AgentHistory, graph: Graph, parallel: ParallelReplies) -> None:
    uuids = [entry.uuid for entry in history.thread.entries]
    assert len(set(uuids)) == len(uuids)
    leaf = history.thread.leaf
    path = [entry.uuid for entry in graph.path_to_root(leaf)][::-1]
    assert [uuid for uuid in uuids if uuid in set(path)] == path
    messages = {parallel_id for entry in graph.path_to_root(leaf) if (parallel_id := _message(entry)) is not None}
    for entry in history.thread.entries:
        if entry.uuid not in path:  # restored: a block of a reply on the path, or a result
            assert _message(entry) in messages or entry.kind == "user"
    assert parallel.complete([]) == []


def _message(entry: ChainEntry) -> str | None:
    message = getattr(entry, "message", None)
    return message.id if entry.kind == "assistant" and message is not None else None


def _check_conversation_once(history: AgentHistory) -> None:
    conversation = [entry.uuid for entry in history.conversation]
    branch_ids = [entry.uuid for branch in history.branches for entry in branch.entries]
    assert max(Counter([*conversation, *branch_ids]).values(), default=1) == 1
    assert {entry.uuid for entry in history.thread.entries} <= set(conversation)


@given(rows=ROWS, agent=st.booleans())
def test_any_graph_is_threaded(folder: Path, rows: list[dict[str, Any]], agent: bool) -> None:
    """Each entry occurs once, the thread is a path, nothing is repeated, and the result is stable."""
    entries = _entries(folder, rows)
    history = build_history(entries, agent=agent)
    graph = Graph(entries)
    _check_entries_once(history, entries)
    _check_thread(history, graph, ParallelReplies(graph))
    _check_conversation_once(history)
    assert build_history(entries, agent=agent) == history


@given(rows=ROWS)
def test_graph_is_a_forest(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Every id is below exactly one root, each entry follows its parent, and every path upwards ends at a root."""
    graph = Graph(_entries(folder, rows))
    downwards = graph.topological_order()
    assert sorted(downwards) == sorted(graph.entries)
    at = {uuid: number for number, uuid in enumerate(downwards)}
    for uuid in graph.entries:
        parent = graph.parent(uuid)
        assert parent is None or (at[parent] < at[uuid] and uuid in graph.children[parent])
        assert [entry.uuid for entry in graph.path_to_root(uuid)][-1] in graph.roots
    assert all(graph.parent(root) is None for root in graph.roots)


@given(rows=ROWS, cuts=st.lists(st.sampled_from(["main", "a1", "a2", "acompact-1", "journal"]), max_size=30))
def test_any_interleaving_of_files_is_assembled(folder: Path, rows: list[dict[str, Any]], cuts: list[str]) -> None:
    """However rows are distributed over a session's transcripts, each is in exactly one agent."""
    rows_by_file: dict[str, list[dict[str, Any]]] = {"main": [], "journal": []}
    for number, row in enumerate(rows):
        rows_by_file.setdefault(cuts[number % len(cuts)] if cuts else "main", []).append(row)
    entries_by_file = {name: _entries(folder, file_rows, name) for name, file_rows in rows_by_file.items()}
    files = [
        AgentFile(folder / f"{name}.jsonl", AgentId(name), AgentKind.BELOW, entries=tuple(entries))
        for name, entries in entries_by_file.items()
        if name not in ("main", "journal")
    ]
    main, agents = assemble_agents(entries_by_file["main"], files, entries_by_file["journal"])
    expected = Counter(
        (entry.line.transcript, entry.line.offset) for entries in entries_by_file.values() for entry in entries
    )
    assert (
        Counter((entry.line.transcript, entry.line.offset) for agent in (main, *agents) for entry in agent.entries)
        == expected
    )
    ids = [agent.id for agent in agents]
    assert len(set(ids)) == len(ids)
    assert (main, agents) == assemble_agents(entries_by_file["main"], files, entries_by_file["journal"])


def _row(number: int, parent: int | None, kind: str = "user", **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": [{"type": "text", "text": f"said {number}"}]}
    if kind == "assistant":
        message |= {"id": f"m{number}", "model": "m", "stop_reason": "end_turn"}
    above = None if parent is None else f"n{parent}"
    return {"type": kind, "uuid": f"n{number}", "parentUuid": above, "sessionId": "s1", "message": message, **fields}


def _speaker(number: int) -> str:
    return "assistant" if number % 2 else "user"


def chain(size: int) -> list[dict[str, Any]]:
    """Return prompts and replies, one after another."""
    return [_row(number, number - 1 if number else None, _speaker(number)) for number in range(size)]


def star(size: int) -> list[dict[str, Any]]:
    """Return one row with all others as its children."""
    return [_row(number, 0 if number else None, "user") for number in range(size)]


def comb(size: int) -> list[dict[str, Any]]:
    """Return a chain with a prompt below every row: each was rewound once."""
    return [_row(number, max(number - 2 + number % 2, 0) if number else None, "user") for number in range(size)]


def abandoned_comb(size: int) -> list[dict[str, Any]]:
    """Return the same, all of it abandoned: forks inside a branch."""
    start = _row(size, None), _row(size + 1, size, "assistant")
    rest = comb(size)
    rest[0]["parentUuid"] = f"n{size + 1}"
    return [*start, *rest, _row(size + 2, size + 1), _row(size + 3, size + 2, "assistant")]


def roots(size: int) -> list[dict[str, Any]]:
    """Return prompts without parents, each with its reply."""
    return [_row(number, number - 1 if number % 2 else None, _speaker(number)) for number in range(size)]


def orphans(size: int) -> list[dict[str, Any]]:
    """Return prompts whose parents are missing, each with its reply."""
    return [_row(number, number - 1 if number % 2 else -1 - number, _speaker(number)) for number in range(size)]


def two_row_cycles(size: int) -> list[dict[str, Any]]:
    """Return pairs that are each other's parents."""
    return [_row(number, number ^ 1, _speaker(number)) for number in range(size)]


def one_cycle(size: int) -> list[dict[str, Any]]:
    """Return one cycle of all rows, written backwards."""
    return [_row(number, (number - 1) % size, _speaker(number)) for number in reversed(range(size))]


def calls(size: int) -> list[dict[str, Any]]:
    """Return a chain of calls and their results."""
    rows = chain(size)
    for number, row in enumerate(rows):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": "ok"}
        row["message"]["content"] = [use if number % 2 else result]
    return rows


def parallel_calls(size: int) -> list[dict[str, Any]]:
    """Return one reply with many calls, whose results are its siblings."""
    half = size // 2
    uses = [_row(number, number - 1 if number else None, "assistant") for number in range(half)]
    results = [_row(half + number, number) for number in range(half)]
    for number in range(half):
        uses[number]["message"] |= {"id": "m", "content": [{"type": "tool_use", "id": f"t{number}", "name": "Bash"}]}
        results[number]["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": ""}]
    return [*uses, *results]


def compacted(size: int) -> list[dict[str, Any]]:
    """Return a chain with a boundary after every reply."""
    rows = chain(size)
    for number in range(2, size, 4):
        boundary = {"type": "system", "subtype": "compact_boundary", "logicalParentUuid": f"n{number - 1}"}
        rows[number] = {**rows[number], **boundary, "parentUuid": None, "message": None}
    return rows


def queued(size: int) -> list[dict[str, Any]]:
    """Return a long queue that is filled and then emptied."""
    half = size // 2
    filled = [{"type": "queue-operation", "operation": "enqueue", "content": f"say {number}"} for number in range(half)]
    emptied = [{"type": "queue-operation", "operation": ("dequeue", "remove")[number % 2]} for number in range(half)]
    return [*filled, *emptied]


def inline_agents(size: int) -> list[dict[str, Any]]:
    """Return agents inside the main transcript, each with one prompt and one reply."""
    rows = [{**row, "isSidechain": True} for row in roots(size)]
    return [_row(size, None), *rows]


SHAPES: tuple[Callable[[int], list[dict[str, Any]]], ...] = (
    chain,
    star,
    comb,
    abandoned_comb,
    roots,
    orphans,
    two_row_cycles,
    one_cycle,
    calls,
    parallel_calls,
    compacted,
    queued,
    inline_agents,
)
SMALL = 5_000


def _seconds(entries: list[Entry]) -> float:
    """Return the processor time, the best of three.

    The garbage collector is off, because its work grows with everything.
    """
    best = float("inf")
    for _ in range(3):
        gc.collect()
        gc.disable()
        start = time.process_time()
        assemble_agents(entries, ())
        best = min(best, time.process_time() - start)
        gc.enable()
    return best


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_time_is_linear_in_the_entries(shape: Callable[[int], list[dict[str, Any]]], tmp_path: Path) -> None:
    """Four times the entries take about four times as long, not sixteen times, whatever the shape of the graph."""
    small, large = (_seconds(_entries(tmp_path, shape(size), str(size))) for size in (SMALL, 4 * SMALL))
    assert large / small < 8
