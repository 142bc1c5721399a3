"""Tests of agents: every entry is in exactly one, and each is linked to its call or says why not."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thread.rows import decode_rows, entries_of, tool_result, tool_use
from tests.transcripts import START, Part, Pen, Row, chain, meta, prompt, reply, transcript

from threadline.find import parse_transcript_name
from threadline.model.calls import Outcome
from threadline.model.entries import Entry
from threadline.model.homes import SideAgentKind, TranscriptKind
from threadline.model.places import AgentId, CallId
from threadline.model.session import Agent, AgentKind, AgentStatus, Confidence, LinkEvidence
from threadline.model.side_files import AgentMeta
from threadline.parse import entries as parse
from threadline.thread import AgentFile, assemble_agents

ID = "a0123456789abcdef"
HOME = Path(__file__).parents[3] / "shared" / "corpus" / "home"


def agent_file(
    *parts: Part,
    id_: str = ID,
    late: int = 60,
    meta_: AgentMeta | None = None,
    run: str | None = None,
    **defaults: Any,
) -> AgentFile:
    """Return an agent's own transcript, which begins `late` seconds after the session."""
    pen = Pen(f"{id_:->36}", START + timedelta(seconds=late), isSidechain=True, agentId=id_, **defaults)
    kind = AgentKind.WORKFLOW if run else AgentKind.BELOW
    return AgentFile(
        Path(f"agent-{id_}.jsonl"), AgentId(id_), kind, run, meta_, tuple(decode_rows(*transcript(*parts, pen=pen)))
    )


def start_agent(words: str = "look", id_: str = "toolu_1", tool: str = "Agent", **given_: Any) -> Part:
    """Write a call that starts an agent, without its result."""
    return reply(tool_use(tool, {"prompt": words, **given_}, id_))


def answer(details: Any = None, text: str = "done", id_: str = "toolu_1") -> Part:
    """Write the result of such a call."""
    return prompt([tool_result(text, id_)], **({} if details is None else {"toolUseResult": details}))


WORK = (prompt("look"), reply("done"))
BARE = (reply("Done."),)
LAUNCHED = {"status": "async_launched", "agentId": ID}
NOTICE = (
    f"<task-notification><task-id>{ID}</task-id><tool-use-id>toolu_1</tool-use-id>"
    "<status>%s</status></task-notification>"
)
PROGRESS = chain("progress", data={"type": "agent_progress", "agentId": ID}, parentToolUseID="toolu_1", toolUseID="x")
TEAM = {"status": "teammate_spawned", "agent_id": "ann@crew", "name": "ann", "team_name": "crew"}
MESSAGE = prompt('<teammate-message teammate_id="team-lead">look</teammate-message>', teamName="crew", agentName="ann")


@pytest.mark.parametrize(
    ("main", "agent", "step", "sureness"),
    [
        (
            [start_agent("other")],
            agent_file(*WORK, meta_=AgentMeta(tool_use_id=CallId("toolu_1"))),
            LinkEvidence.META,
            Confidence.CERTAIN,
        ),
        (
            [start_agent("other"), meta("agent_metadata", agentId=ID, toolUseId="toolu_1")],
            agent_file(*WORK),
            LinkEvidence.META,
            Confidence.CERTAIN,
        ),
        ([start_agent("other"), answer({"agentId": ID})], agent_file(*WORK), LinkEvidence.RESULT, Confidence.CERTAIN),
        (
            [reply(tool_use("Workflow")), answer({"runId": "wf_1", "status": "async_launched"})],
            agent_file(*WORK, run="wf_1"),
            LinkEvidence.WORKFLOW,
            Confidence.CERTAIN,
        ),
        ([start_agent("other"), PROGRESS], agent_file(*WORK), LinkEvidence.PROGRESS, Confidence.CERTAIN),
        (
            [start_agent("other"), answer(None, f"ok\nagentId: {ID} (…)")],
            agent_file(*WORK),
            LinkEvidence.RESULT_TEXT,
            Confidence.LIKELY,
        ),
        (
            [start_agent("other"), prompt(NOTICE % "completed")],
            agent_file(*WORK),
            LinkEvidence.NOTIFICATION,
            Confidence.CERTAIN,
        ),
        ([start_agent("look")], agent_file(*WORK), LinkEvidence.PROMPT, Confidence.LIKELY),
        ([start_agent(" look\n")], agent_file(*WORK), LinkEvidence.PROMPT, Confidence.LIKELY),
        (
            [start_agent("other"), answer(TEAM)],
            agent_file(MESSAGE, reply("done"), id_="a1"),
            LinkEvidence.TEAM,
            Confidence.LIKELY,
        ),
    ],
)
def test_each_kind_of_evidence_links_an_agent(
    main: list[Part], agent: AgentFile, step: LinkEvidence, sureness: Confidence
) -> None:
    """Each kind alone leads from the agent to the call that started it."""
    _, (linked,) = assemble_agents(entries_of(*main), [agent])
    assert (linked.link.call, linked.link.step, linked.link.sureness) == ("toolu_1", step, sureness)
    assert (linked.link.agent, linked.depth) == (None, 1)


def test_better_evidence_is_used_first() -> None:
    """An agent that is named gets its call. One with the same prompt gets the other call."""
    main = entries_of(start_agent(id_="one"), start_agent(id_="two"), answer({"agentId": "a2"}, id_="one"))
    _, agents = assemble_agents(main, [agent_file(*WORK, id_="a1"), agent_file(*WORK, id_="a2")])
    assert {agent.id: agent.link.call for agent in agents} == {"a1": "two", "a2": "one"}


def test_equal_prompts_are_paired_by_time() -> None:
    """If several calls have the prompt of several agents, pairing them in order is a guess."""
    main = entries_of(start_agent(id_="one"), start_agent(id_="two"))
    _, agents = assemble_agents(main, [agent_file(*WORK, id_="late", late=90), agent_file(*WORK, id_="early", late=30)])
    assert [(agent.id, agent.link.call) for agent in agents] == [("early", "one"), ("late", "two")]
    assert {agent.link.sureness for agent in agents} == {Confidence.GUESS}
    _, (before, after) = assemble_agents(
        main, [agent_file(*WORK, id_="before", late=-9), agent_file(*WORK, id_="after", late=90)]
    )
    assert (before.link.call, after.link.call) == (None, "one")


def test_agents_can_start_agents() -> None:
    """Calls are searched in every agent's transcript. The depth is the distance from the main one."""
    outer = agent_file(
        prompt("outer"), start_agent("inner", "toolu_2"), answer(None, "agentId: a2", "toolu_2"), id_="a1"
    )
    inner = agent_file(prompt("inner"), reply("deep"), id_="a2", late=90)
    _, agents = assemble_agents(entries_of(start_agent("outer")), [inner, outer])
    assert [(agent.id, agent.link.agent, agent.depth) for agent in agents] == [("a1", None, 1), ("a2", "a1", 2)]


def test_no_agent_starts_itself() -> None:
    """A call that an agent made with its own prompt did not start it.

    Agents that name each other have a finite depth.
    """
    _, (linked,) = assemble_agents([], [agent_file(*WORK, start_agent())])
    assert linked.link.call is None
    cycle = [
        agent_file(prompt("x"), start_agent("y", "t1"), answer({"agentId": "a2"}, id_="t1"), id_="a1"),
        agent_file(prompt("y"), start_agent("x", "t2"), answer({"agentId": "a1"}, id_="t2"), id_="a2"),
    ]
    _, agents = assemble_agents([], cycle)
    assert {agent.link.agent for agent in agents} == {"a1", "a2"}
    assert all(agent.depth in (1, 2) for agent in agents)


def test_result_may_be_in_another_transcript_of_the_session() -> None:
    """A call without a result in its own transcript gets the one from another."""
    main, (other_agent,) = assemble_agents(
        entries_of(reply(tool_use("Bash", id_="b"))), [agent_file(prompt("x"), answer(id_="b"), answer(id_="c"))]
    )
    assert [(call.outcome, call.output) for call in main.calls] == [(Outcome.OK, "done")]
    assert other_agent.calls == ()


def test_forks_are_linked_at_the_entry_they_continue() -> None:
    """A fork continues the row that made the call or the one before. Without a call, it says where it began."""
    main = entries_of(reply("hm"), start_agent("look"))
    uuids = [entry.uuid for entry in main]
    for uuid in uuids[1:]:
        ref = meta("fork-context-ref", agentId=ID, parentSessionId="x", parentLastUuid=uuid, contextLength=2)
        _, (fork,) = assemble_agents(main, [agent_file(ref, prompt("<fork-boilerplate>look"))])
        assert (fork.link.call, fork.link.step) == ("toolu_1", LinkEvidence.FORK)
    ref = meta("fork-context-ref", agentId=ID, parentSessionId="x", parentLastUuid=uuids[0], contextLength=2)
    _, (fork,) = assemble_agents(main, [agent_file(ref, prompt("aside"))])
    assert (fork.link.call, fork.link.step, bool(fork.link.why)) == (None, LinkEvidence.FORK, True)


def test_forks_of_one_entry_are_linked_to_different_calls() -> None:
    """A call starts one fork. A call without a prompt does not count as one with the fork's prompt."""
    main = entries_of(start_agent("look", "one"), start_agent("look", "two"))
    ref = meta("fork-context-ref", parentSessionId="x", parentLastUuid=main[1].uuid, contextLength=2)
    _, forks = assemble_agents(main, [agent_file(ref, prompt("look"), id_=id_) for id_ in ("a1", "a2")])
    assert {fork.link.call for fork in forks} == {"one", "two"}
    main = entries_of(start_agent("", "one"), start_agent("look", "two"))
    ref = meta("fork-context-ref", parentSessionId="x", parentLastUuid=main[1].uuid, contextLength=2)
    _, (fork,) = assemble_agents(main, [agent_file(ref, prompt("look here"))])
    assert (fork.link.call, fork.link.sureness) == ("two", Confidence.LIKELY)


def test_message_that_resumed_an_agent_did_not_start_it() -> None:
    """A notification may name the call of a message to an agent that already exists."""
    message = reply(tool_use("SendMessage", {"to": ID}, "toolu_2"))
    notice = prompt((NOTICE % "completed").replace("toolu_1", "toolu_2"))
    _, (agent,) = assemble_agents(entries_of(start_agent(), message, notice), [agent_file(*WORK)])
    assert (agent.link.call, agent.link.step) == ("toolu_1", LinkEvidence.PROMPT)


@pytest.mark.parametrize(
    ("main", "agent", "words"),
    [
        ([], agent_file(*WORK), "is missing"),
        (entries_of(start_agent("other")), agent_file(*WORK), "has its prompt"),
        (entries_of(start_agent("other")), agent_file(reply("a"), reply("b")), "contains no prompt"),
        (entries_of(start_agent("other")), agent_file(*WORK, run="wf_9"), "started the run wf_9"),
        (entries_of(start_agent("other")), agent_file(MESSAGE), "teammate of that name"),
        (entries_of(start_agent("other")), agent_file(*WORK, id_="acompact-12ab"), "side agent (compact)"),
        (entries_of(start_agent("other")), agent_file(*BARE), "a warm-up"),
    ],
)
def test_unlinked_agent_has_a_reason(main: list[Entry], agent: AgentFile, words: str) -> None:
    """The reason is a sentence."""
    _, (unlinked,) = assemble_agents(main, [agent])
    assert (unlinked.link.call, unlinked.link.step) == (None, None)
    assert words in unlinked.link.why


def test_link_to_a_missing_call_is_kept() -> None:
    """The side file names a call that no transcript has. The reason says so."""
    _, (linked,) = assemble_agents(entries_of(), [agent_file(*WORK, meta_=AgentMeta(tool_use_id=CallId("gone")))])
    assert (linked.link.call, linked.link.step) == ("gone", LinkEvidence.META)
    assert "in no available transcript" in linked.link.why


@pytest.mark.parametrize(
    ("agent", "side"),
    [
        (agent_file(*WORK), None),
        (agent_file(*WORK, id_="acompact-fffbd0"), SideAgentKind.COMPACT),
        (agent_file(*WORK, id_="aprompt_suggestion-1"), SideAgentKind.SUGGESTION),
        (agent_file(*WORK, id_="aside_question-1"), SideAgentKind.QUESTION),
        (agent_file(*WORK, id_="asession_memory-1"), SideAgentKind.MEMORY),
        (agent_file(*WORK, id_="aextract_memories-1"), SideAgentKind.MEMORY),
        (agent_file(prompt("Warmup"), reply("hi")), SideAgentKind.WARM_UP),
        (agent_file(prompt("Warmup the car"), reply("hi")), None),
        (agent_file(*BARE), SideAgentKind.WARM_UP),
    ],
)
def test_side_agents_are_marked(agent: AgentFile, side: SideAgentKind | None) -> None:
    """Agents that the program runs for itself are recognised by id, first prompt, or having no prompt."""
    _, (marked,) = assemble_agents([], [agent])
    assert marked.side is side


def test_agent_without_a_prompt_that_a_call_names_is_not_a_warm_up() -> None:
    """2.0.60 writes no prompt for agents. The call has it."""
    _, (linked,) = assemble_agents(entries_of(start_agent("look"), answer({"agentId": ID})), [agent_file(*BARE)])
    assert (linked.side, linked.prompt, linked.link.step) == (None, "look", LinkEvidence.RESULT)


def test_calls_repeated_by_a_side_agent_belong_to_the_main_agent() -> None:
    """A compaction's transcript repeats the conversation's calls."""
    main = entries_of(start_agent("look"))
    copy = AgentFile(Path("x"), AgentId("acompact-1"), AgentKind.BELOW, entries=tuple(main))
    _, agents = assemble_agents(main, [copy, agent_file(*WORK)])
    assert {agent.id: agent.link.agent for agent in agents if agent.link.call} == {ID: None}


def inline_rows(root: str, words: str, parent: str | None = None, **fields: Any) -> list[Row]:
    """Return the rows of an agent inside the main transcript: its prompt and its reply."""
    common = {"isSidechain": True, "sessionId": "s", "timestamp": "2026-01-05T09:01:00Z", **fields}
    first = {"type": "user", "uuid": root, "parentUuid": parent, "message": {"role": "user", "content": words}}
    second = {"type": "assistant", "uuid": root + "-2", "parentUuid": root, "message": {"id": root, "content": "ok"}}
    return [{**common, **first}, {**common, **second}]


def test_inline_agents_are_separated() -> None:
    """Interleaved trees are separate agents, linked by prompt. The main agent keeps the rest."""
    first, second = inline_rows("11111111-a", "look"), inline_rows("22222222-b", "think")
    rows = transcript(prompt("go"), start_agent("look", "t1", "Task"), start_agent("think", "t2", "Task"))
    main, agents = assemble_agents(decode_rows(*rows, first[0], second[0], first[1], second[1]), [])
    assert [(agent.id, agent.link.call, agent.link.step) for agent in agents] == [
        ("inline-11111111", "t1", LinkEvidence.INLINE),
        ("inline-22222222", "t2", LinkEvidence.INLINE),
    ]
    assert [entry.uuid for entry in agents[0].entries] == ["11111111-a", "11111111-a-2"]
    assert len(main.entries) == len(rows)
    assert {agent.kind for agent in agents} == {AgentKind.INLINE}


def test_inline_agents_have_unique_ids() -> None:
    """Equal ids are made distinct, and the id of a file is not used again."""
    rows = transcript(prompt("go"))
    same = [*inline_rows("11111111-a", "x"), *inline_rows("11111111-b", "y")]
    _, agents = assemble_agents(decode_rows(*rows, *same), [agent_file(*WORK, id_="inline-11111111")])
    assert len({agent.id for agent in agents}) == 3
    _, agents = assemble_agents(
        decode_rows(*rows, *inline_rows("u", "x", agentId=ID), *inline_rows("v", "again", agentId=ID)), []
    )
    assert [(agent.id, len(agent.entries)) for agent in agents] == [(ID, 4)]
    _, agents = assemble_agents(decode_rows(*rows, *inline_rows("u", "x", agentId=ID)), [agent_file(*WORK)])
    assert len({agent.id for agent in agents}) == 2


def test_agent_transcript_read_as_a_session_stays_whole() -> None:
    """If every row is marked as a side chain, none is separated."""
    main, agents = assemble_agents(agent_file(*WORK).entries, [])
    assert (len(main.entries), len(main.thread.visible), agents) == (2, 2, ())


def test_agents_thread_is_visible_and_has_no_acts() -> None:
    """Every row of an agent's transcript is marked as a side chain. That hides nothing in its own thread."""
    _, (agent,) = assemble_agents([], [agent_file(*WORK, prompt("a note", isMeta=True))])
    assert [entry.uuid for entry in agent.thread.visible] == [entry.uuid for entry in agent.entries[:2]]
    assert (agent.acts, len(agent.turns)) == ((), 1)
    _, (teammate,) = assemble_agents([], [agent_file(MESSAGE, reply("done", teamName="crew"))])
    assert (len(teammate.thread.visible), teammate.team) == (2, "crew")


def test_resumed_agent_has_one_conversation() -> None:
    """A second root continues the first. The thread is what would be resumed."""
    first = agent_file(*WORK).entries
    resumed = decode_rows(*transcript(prompt("more"), reply("x"), pen=Pen("2" * 36, isSidechain=True)))
    _, (agent,) = assemble_agents([], [AgentFile(Path("x"), AgentId(ID), AgentKind.BELOW, entries=(*first, *resumed))])
    assert [entry.uuid for entry in agent.conversation] == [entry.uuid for entry in agent.entries]
    assert [entry.uuid for entry in agent.thread.entries] == [entry.uuid for entry in resumed]


@pytest.mark.parametrize(
    ("main", "agent", "status"),
    [
        ([start_agent(), answer({"status": "completed", "agentId": ID})], agent_file(*WORK), AgentStatus.DONE),
        ([start_agent(), answer(LAUNCHED)], agent_file(*WORK), AgentStatus.PENDING),
        ([start_agent(), answer(LAUNCHED), prompt(NOTICE % "completed")], agent_file(*WORK), AgentStatus.DONE),
        ([start_agent(), answer(LAUNCHED), prompt(NOTICE % "failed")], agent_file(*WORK), AgentStatus.FAILED),
        ([start_agent(), answer(LAUNCHED), prompt(NOTICE % "killed")], agent_file(*WORK), AgentStatus.INTERRUPTED),
        (
            [
                start_agent(),
                answer(LAUNCHED),
                reply(tool_use("TaskOutput", id_="t2")),
                answer({"retrieval_status": "success", "task": {"task_id": ID, "status": "completed"}}, id_="t2"),
            ],
            agent_file(*WORK),
            AgentStatus.DONE,
        ),
        ([start_agent(), answer(LAUNCHED)], agent_file(*WORK, meta_=AgentMeta(finished=True)), AgentStatus.DONE),
        ([start_agent()], agent_file(*WORK), AgentStatus.PENDING),
        (
            [start_agent(), prompt("[Request interrupted by user for tool use]")],
            agent_file(*WORK),
            AgentStatus.INTERRUPTED,
        ),
        ([], agent_file(prompt("other"), prompt("[Request interrupted by user]")), AgentStatus.INTERRUPTED),
        ([], agent_file(prompt("other"), reply("API Error", isApiErrorMessage=True)), AgentStatus.FAILED),
        ([], agent_file(prompt("other"), reply("so")), AgentStatus.DONE),
        ([], agent_file(prompt("other"), start_agent()), AgentStatus.UNKNOWN),
    ],
)
def test_agent_status(main: list[Part], agent: AgentFile, status: AgentStatus) -> None:
    """The status comes from notifications, from its call, or from its own last entry."""
    _, (assembled,) = assemble_agents(entries_of(*main), [agent])
    assert assembled.status is status


def test_workflow_journal_has_the_status_of_its_agents() -> None:
    """Its rows belong to no agent. They follow the main agent's rows, once each."""
    rows: list[Row] = [{"type": "launched"}, {"type": "failed", "key": "k", "agentId": ID, "error": "no"}]
    main, (agent,) = assemble_agents(entries_of(), [agent_file(*WORK, run="wf_1")], decode_rows(*rows))
    assert agent.status is AgentStatus.FAILED
    assert [entry.kind for entry in main.entries] == ["user", "launched", "failed"]


def test_agent_details() -> None:
    """Type and description come from the side file or the call, prompt and model from its own rows."""
    main = entries_of(start_agent("look", subagent_type="Explore", description="have a look"))
    _, (agent,) = assemble_agents(main, [agent_file(*WORK)])
    assert (agent.type, agent.description, agent.prompt) == ("Explore", "have a look", "look")
    assert agent.model == "claude-sonnet-4-5-20250929"
    _, (agent,) = assemble_agents(main, [agent_file(*WORK, meta_=AgentMeta(agent_type="Plan", description="d"))])
    assert (agent.type, agent.description) == ("Plan", "d")


IDS = st.sampled_from([None, *"abcdef"])
ROWS = st.builds(
    lambda kind, uuid, parent, side, agent, block: {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": side,
        "agentId": agent,
        "timestamp": f"2026-01-05T09:00:0{len(uuid or '')}Z",
        "message": {"id": parent, "content": [block]},
    },
    st.sampled_from(["user", "assistant", "progress", "summary", "nonsense", "system"]),
    IDS,
    IDS,
    st.booleans(),
    st.sampled_from([None, None, "a1", "a2"]),
    st.sampled_from(
        [{"type": "text", "text": "look"}, tool_use("Task", {"prompt": "look"}), tool_result("agentId: a1")]
    ),
)
FILES = st.lists(st.tuples(st.sampled_from(["a1", "a2", "acompact-1"]), st.lists(ROWS, max_size=8)), max_size=3)


def _summary(main: Agent, agents: tuple[Agent, ...]) -> list[Any]:
    return [(agent.id, agent.kind, agent.link, agent.depth, len(agent.entries)) for agent in (main, *agents)]


@given(st.lists(ROWS, max_size=14), FILES, st.lists(ROWS, max_size=2))
def test_every_entry_is_in_exactly_one_agent(
    rows: list[Row], files: list[tuple[str, list[Row]]], extra: list[Row]
) -> None:
    """For any graph, nothing is lost or repeated, and the result is the same each time."""
    main, journal = decode_rows(*rows), decode_rows(*extra)
    agent_files = [
        AgentFile(Path(id_), AgentId(id_), AgentKind.BELOW, entries=tuple(decode_rows(*file_))) for id_, file_ in files
    ]
    first, others = assemble_agents(main, agent_files, journal)
    places = Counter(id(entry) for agent in (first, *others) for entry in agent.entries)
    assert places == Counter(
        id(entry) for entry in [*main, *journal, *(entry for file_ in agent_files for entry in file_.entries)]
    )
    assert _summary(first, others) == _summary(*assemble_agents(main, agent_files, journal))
    assert all(agent.depth >= 1 and (agent.link.call or agent.link.why or agent.link.step) for agent in others)


def sessions(home: Path) -> list[tuple[list[Entry], list[AgentFile]]]:
    """Return the sessions of a home: the entries of the main transcript, if it exists, and the agents' transcripts."""
    mains: dict[Any, list[Entry]] = {}
    agents: dict[Any, list[AgentFile]] = defaultdict(list)
    for path in sorted(home.glob("projects/*/**/*.jsonl")):
        folder, *below = path.relative_to(home / "projects").parts
        name = parse_transcript_name(below)
        if name.kind is TranscriptKind.MAIN:
            mains[folder, name.session] = list(parse(path))
        elif name.agent is not None:
            entries = tuple(parse(path))
            session = name.session or next((entry.session_id for entry in entries if entry.session_id), None)
            agents[folder, session].append(AgentFile(path, name.agent, AgentKind.BELOW, name.run, None, entries))
    return [(mains.get(key, []), agents[key]) for key in {**mains, **agents}]


@pytest.mark.real
@pytest.mark.skipif(not HOME.exists(), reason="the real home is not there")
def test_real_agents_are_linked_or_have_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Every agent of the real home is linked to a call, is a side agent, or says why it is neither."""
    steps: Counter[str] = Counter()
    for main, files in sessions(HOME):
        _, agents = assemble_agents(main, files)
        for agent in agents:
            steps[str(agent.link.step or agent.side or agent.link.why)] += 1
            assert agent.link.call is not None or agent.link.why
            assert agent.conversation
    assert steps[LinkEvidence.RESULT] >= 1
    with capsys.disabled():
        print(*(f"{count:6} {step}" for step, count in steps.most_common()), sep="\n")  # noqa: T201 - figures to look at


def test_queue_in_an_agents_transcript_records_no_act() -> None:
    """In a session's own transcript, a prompt that was queued and taken up is steering. No person steers an agent."""
    queue = [
        meta("queue-operation", operation="enqueue", content="faster"),
        meta("queue-operation", operation="remove"),
    ]
    entries = entries_of(*queue, pen=Pen(version="2.0.60"))
    main, (agent,) = assemble_agents(entries, [agent_file(prompt("Sort it"), *queue, version="2.0.60")])
    assert [str(act.kind) for act in main.acts] == ["prompt", "steering"]
    assert agent.acts == ()
