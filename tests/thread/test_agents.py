"""Agents: every entry in exactly one, and each linked to the call that started it, or told why not."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thread.rows import read, result, told, use
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


def file(
    *parts: Part,
    id_: str = ID,
    late: int = 60,
    meta_: AgentMeta | None = None,
    run: str | None = None,
    **defaults: Any,
) -> AgentFile:
    """An agent's own transcript; it begins `late` seconds after the session."""
    pen = Pen(f"{id_:->36}", START + timedelta(seconds=late), isSidechain=True, agentId=id_, **defaults)
    kind = AgentKind.WORKFLOW if run else AgentKind.BELOW
    return AgentFile(
        Path(f"agent-{id_}.jsonl"), AgentId(id_), kind, run, meta_, tuple(read(*transcript(*parts, pen=pen)))
    )


def task(words: str = "look", id_: str = "toolu_1", tool: str = "Agent", **given_: Any) -> Part:
    """A call that starts an agent, without its result."""
    return reply(use(tool, {"prompt": words, **given_}, id_))


def answered(own: Any = None, text: str = "done", id_: str = "toolu_1") -> Part:
    """The result of such a call."""
    return prompt([result(text, id_)], **({} if own is None else {"toolUseResult": own}))


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
            [task("other")],
            file(*WORK, meta_=AgentMeta(tool_use_id=CallId("toolu_1"))),
            LinkEvidence.META,
            Confidence.CERTAIN,
        ),
        (
            [task("other"), meta("agent_metadata", agentId=ID, toolUseId="toolu_1")],
            file(*WORK),
            LinkEvidence.META,
            Confidence.CERTAIN,
        ),
        ([task("other"), answered({"agentId": ID})], file(*WORK), LinkEvidence.RESULT, Confidence.CERTAIN),
        (
            [reply(use("Workflow")), answered({"runId": "wf_1", "status": "async_launched"})],
            file(*WORK, run="wf_1"),
            LinkEvidence.WORKFLOW,
            Confidence.CERTAIN,
        ),
        ([task("other"), PROGRESS], file(*WORK), LinkEvidence.PROGRESS, Confidence.CERTAIN),
        (
            [task("other"), answered(None, f"ok\nagentId: {ID} (…)")],
            file(*WORK),
            LinkEvidence.RESULT_TEXT,
            Confidence.LIKELY,
        ),
        ([task("other"), prompt(NOTICE % "completed")], file(*WORK), LinkEvidence.NOTIFICATION, Confidence.CERTAIN),
        ([task("look")], file(*WORK), LinkEvidence.PROMPT, Confidence.LIKELY),
        ([task(" look\n")], file(*WORK), LinkEvidence.PROMPT, Confidence.LIKELY),
        ([task("other"), answered(TEAM)], file(MESSAGE, reply("done"), id_="a1"), LinkEvidence.TEAM, Confidence.LIKELY),
    ],
)
def test_each_step_links(main: list[Part], agent: AgentFile, step: LinkEvidence, sureness: Confidence) -> None:
    """Every kind of evidence alone leads from the agent to the call that started it."""
    _, (made,) = assemble_agents(told(*main), [agent])
    assert (made.link.call, made.link.step, made.link.sureness) == ("toolu_1", step, sureness)
    assert (made.link.agent, made.depth) == (None, 1)


def test_better_evidence_goes_first_and_takes_its_call() -> None:
    """An agent that is named takes its call; one with the same prompt is left the other."""
    main = told(task(id_="one"), task(id_="two"), answered({"agentId": "a2"}, id_="one"))
    _, agents = assemble_agents(main, [file(*WORK, id_="a1"), file(*WORK, id_="a2")])
    assert {agent.id: agent.link.call for agent in agents} == {"a1": "two", "a2": "one"}


def test_the_same_prompt_is_paired_in_order_of_time() -> None:
    """Where several calls have the prompt of several agents, the first started is the first called: a guess."""
    main = told(task(id_="one"), task(id_="two"))
    _, agents = assemble_agents(main, [file(*WORK, id_="late", late=90), file(*WORK, id_="early", late=30)])
    assert [(agent.id, agent.link.call) for agent in agents] == [("early", "one"), ("late", "two")]
    assert {agent.link.sureness for agent in agents} == {Confidence.GUESS}
    _, (before, after) = assemble_agents(main, [file(*WORK, id_="before", late=-9), file(*WORK, id_="after", late=90)])
    assert (before.link.call, after.link.call) == (None, "one")


def test_agents_start_agents() -> None:
    """A call is looked for in every agent's transcript; the depth is the distance from the main one."""
    outer = file(prompt("outer"), task("inner", "toolu_2"), answered(None, "agentId: a2", "toolu_2"), id_="a1")
    inner = file(prompt("inner"), reply("deep"), id_="a2", late=90)
    _, agents = assemble_agents(told(task("outer")), [inner, outer])
    assert [(agent.id, agent.link.agent, agent.depth) for agent in agents] == [("a1", None, 1), ("a2", "a1", 2)]


def test_no_agent_starts_itself() -> None:
    """A call that an agent made with its own prompt did not start it; agents that name each other end somewhere."""
    _, (made,) = assemble_agents([], [file(*WORK, task())])
    assert made.link.call is None
    round_ = [
        file(prompt("x"), task("y", "t1"), answered({"agentId": "a2"}, id_="t1"), id_="a1"),
        file(prompt("y"), task("x", "t2"), answered({"agentId": "a1"}, id_="t2"), id_="a2"),
    ]
    _, agents = assemble_agents([], round_)
    assert {agent.link.agent for agent in agents} == {"a1", "a2"}
    assert all(agent.depth in (1, 2) for agent in agents)


def test_a_result_may_stand_in_another_transcript_of_the_session() -> None:
    """A call without a result in its own transcript has the one that another of the session's holds."""
    main, (made,) = assemble_agents(
        told(reply(use("Bash", id_="b"))), [file(prompt("x"), answered(id_="b"), answered(id_="c"))]
    )
    assert [(call.outcome, call.output) for call in main.calls] == [(Outcome.OK, "done")]
    assert made.calls == ()


def test_forks_are_linked_at_the_entry_they_part_from() -> None:
    """A fork goes on from the row that made the call, or the one before; without a call it says where it parted."""
    main = told(reply("hm"), task("look"))
    at = [entry.uuid for entry in main]
    for uuid in at[1:]:
        ref = meta("fork-context-ref", agentId=ID, parentSessionId="x", parentLastUuid=uuid, contextLength=2)
        _, (made,) = assemble_agents(main, [file(ref, prompt("<fork-boilerplate>look"))])
        assert (made.link.call, made.link.step) == ("toolu_1", LinkEvidence.FORK)
    ref = meta("fork-context-ref", agentId=ID, parentSessionId="x", parentLastUuid=at[0], contextLength=2)
    _, (made,) = assemble_agents(main, [file(ref, prompt("aside"))])
    assert (made.link.call, made.link.step, bool(made.link.why)) == (None, LinkEvidence.FORK, True)


@pytest.mark.parametrize(
    ("main", "agent", "words"),
    [
        ([], file(*WORK), "is missing"),
        (told(task("other")), file(*WORK), "has its prompt"),
        (told(task("other")), file(reply("a"), reply("b")), "contains no prompt"),
        (told(task("other")), file(*WORK, run="wf_9"), "started the run wf_9"),
        (told(task("other")), file(MESSAGE), "teammate of that name"),
        (told(task("other")), file(*WORK, id_="acompact-12ab"), "side agent (compact)"),
        (told(task("other")), file(*BARE), "a warm-up"),
    ],
)
def test_an_agent_without_a_call_says_why(main: list[Entry], agent: AgentFile, words: str) -> None:
    """The reason is a sentence."""
    _, (made,) = assemble_agents(main, [agent])
    assert (made.link.call, made.link.step) == (None, None)
    assert words in made.link.why


def test_a_named_call_that_is_gone_is_still_the_link() -> None:
    """The side file names a call that no transcript holds: it is kept, and said."""
    _, (made,) = assemble_agents(told(), [file(*WORK, meta_=AgentMeta(tool_use_id=CallId("gone")))])
    assert (made.link.call, made.link.step) == ("gone", LinkEvidence.META)
    assert "in no available transcript" in made.link.why


@pytest.mark.parametrize(
    ("agent", "side"),
    [
        (file(*WORK), None),
        (file(*WORK, id_="acompact-fffbd0"), SideAgentKind.COMPACT),
        (file(*WORK, id_="aprompt_suggestion-1"), SideAgentKind.SUGGESTION),
        (file(*WORK, id_="aside_question-1"), SideAgentKind.QUESTION),
        (file(*WORK, id_="asession_memory-1"), SideAgentKind.MEMORY),
        (file(*WORK, id_="aextract_memories-1"), SideAgentKind.MEMORY),
        (file(prompt("Warmup"), reply("hi")), SideAgentKind.WARM_UP),
        (file(prompt("Warmup the car"), reply("hi")), None),
        (file(*BARE), SideAgentKind.WARM_UP),
    ],
)
def test_side_agents_are_marked(agent: AgentFile, side: SideAgentKind | None) -> None:
    """What the program runs for itself is told by its id, by its first words, or by having none."""
    _, (made,) = assemble_agents([], [agent])
    assert made.side is side


def test_a_bare_agent_that_a_call_names_is_no_warm_up() -> None:
    """2.0.60 writes no prompt for agents at all: the call gives it."""
    _, (made,) = assemble_agents(told(task("look"), answered({"agentId": ID})), [file(*BARE)])
    assert (made.side, made.prompt, made.link.step) == (None, "look", LinkEvidence.RESULT)


def test_what_a_side_agent_repeats_is_not_its_own() -> None:
    """A compaction's transcript repeats the conversation's calls: the main agent made them."""
    main = told(task("look"))
    copy = AgentFile(Path("x"), AgentId("acompact-1"), AgentKind.BELOW, entries=tuple(main))
    _, agents = assemble_agents(main, [copy, file(*WORK)])
    assert {agent.id: agent.link.agent for agent in agents if agent.link.call} == {ID: None}


def inline(root: str, words: str, parent: str | None = None, **fields: Any) -> list[Row]:
    """The rows of an agent inside the main transcript: its prompt and its reply."""
    said = {"isSidechain": True, "sessionId": "s", "timestamp": "2026-01-05T09:01:00Z", **fields}
    first = {"type": "user", "uuid": root, "parentUuid": parent, "message": {"role": "user", "content": words}}
    then = {"type": "assistant", "uuid": root + "-2", "parentUuid": root, "message": {"id": root, "content": "ok"}}
    return [{**said, **first}, {**said, **then}]


def test_agents_inside_the_main_transcript_are_taken_out() -> None:
    """Interleaved trees are agents of their own, linked by prompt; the main agent keeps the rest."""
    one, two = inline("11111111-a", "look"), inline("22222222-b", "think")
    rows = transcript(prompt("go"), task("look", "t1", "Task"), task("think", "t2", "Task"))
    main, agents = assemble_agents(read(*rows, one[0], two[0], one[1], two[1]), [])
    assert [(agent.id, agent.link.call, agent.link.step) for agent in agents] == [
        ("inline-11111111", "t1", LinkEvidence.INLINE),
        ("inline-22222222", "t2", LinkEvidence.INLINE),
    ]
    assert [entry.uuid for entry in agents[0].entries] == ["11111111-a", "11111111-a-2"]
    assert len(main.entries) == len(rows)
    assert {agent.kind for agent in agents} == {AgentKind.INLINE}


def test_ids_of_inline_agents_are_their_own() -> None:
    """Ids that would be the same are told apart; an id that a file has is not given again."""
    rows = transcript(prompt("go"))
    same = [*inline("11111111-a", "x"), *inline("11111111-b", "y")]
    _, agents = assemble_agents(read(*rows, *same), [file(*WORK, id_="inline-11111111")])
    assert len({agent.id for agent in agents}) == 3
    _, agents = assemble_agents(read(*rows, *inline("u", "x", agentId=ID), *inline("v", "again", agentId=ID)), [])
    assert [(agent.id, len(agent.entries)) for agent in agents] == [(ID, 4)]
    _, agents = assemble_agents(read(*rows, *inline("u", "x", agentId=ID)), [file(*WORK)])
    assert len({agent.id for agent in agents}) == 2


def test_an_agents_transcript_read_as_a_session_stays_whole() -> None:
    """Where every row is marked, nothing is taken out."""
    main, agents = assemble_agents(file(*WORK).entries, [])
    assert (len(main.entries), len(main.thread.visible), agents) == (2, 2, ())


def test_an_agents_thread_is_visible_and_none_of_it_is_a_persons() -> None:
    """Every row of an agent's transcript is marked as such: that hides nothing in its own thread."""
    _, (made,) = assemble_agents([], [file(*WORK, prompt("a note", isMeta=True))])
    assert [entry.uuid for entry in made.thread.visible] == [entry.uuid for entry in made.entries[:2]]
    assert (made.acts, len(made.turns)) == ((), 1)
    _, (mate,) = assemble_agents([], [file(MESSAGE, reply("done", teamName="crew"))])
    assert (len(mate.thread.visible), mate.team) == (2, "crew")


def test_an_agent_taken_up_again_has_one_conversation() -> None:
    """A second root goes on from where the first had come to; the thread is what would be resumed."""
    first = file(*WORK).entries
    again = read(*transcript(prompt("more"), reply("x"), pen=Pen("2" * 36, isSidechain=True)))
    _, (made,) = assemble_agents([], [AgentFile(Path("x"), AgentId(ID), AgentKind.BELOW, entries=(*first, *again))])
    assert [entry.uuid for entry in made.conversation] == [entry.uuid for entry in made.entries]
    assert [entry.uuid for entry in made.thread.entries] == [entry.uuid for entry in again]


@pytest.mark.parametrize(
    ("main", "agent", "status"),
    [
        ([task(), answered({"status": "completed", "agentId": ID})], file(*WORK), AgentStatus.DONE),
        ([task(), answered(LAUNCHED)], file(*WORK), AgentStatus.PENDING),
        ([task(), answered(LAUNCHED), prompt(NOTICE % "completed")], file(*WORK), AgentStatus.DONE),
        ([task(), answered(LAUNCHED), prompt(NOTICE % "failed")], file(*WORK), AgentStatus.FAILED),
        ([task(), answered(LAUNCHED), prompt(NOTICE % "killed")], file(*WORK), AgentStatus.INTERRUPTED),
        (
            [
                task(),
                answered(LAUNCHED),
                reply(use("TaskOutput", id_="t2")),
                answered({"retrieval_status": "success", "task": {"task_id": ID, "status": "completed"}}, id_="t2"),
            ],
            file(*WORK),
            AgentStatus.DONE,
        ),
        ([task(), answered(LAUNCHED)], file(*WORK, meta_=AgentMeta(finished=True)), AgentStatus.DONE),
        ([task()], file(*WORK), AgentStatus.PENDING),
        ([task(), prompt("[Request interrupted by user for tool use]")], file(*WORK), AgentStatus.INTERRUPTED),
        ([], file(prompt("other"), prompt("[Request interrupted by user]")), AgentStatus.INTERRUPTED),
        ([], file(prompt("other"), reply("API Error", isApiErrorMessage=True)), AgentStatus.FAILED),
        ([], file(prompt("other"), reply("so")), AgentStatus.DONE),
        ([], file(prompt("other"), task()), AgentStatus.UNKNOWN),
    ],
)
def test_how_an_agent_ended(main: list[Part], agent: AgentFile, status: AgentStatus) -> None:
    """By what was told of it since, by its call, by its own last words."""
    _, (made,) = assemble_agents(told(*main), [agent])
    assert made.status is status


def test_a_workflows_journal_tells_how_its_agents_ended() -> None:
    """Its rows are no agent's own: they stand after the main one's, once each."""
    rows: list[Row] = [{"type": "launched"}, {"type": "failed", "key": "k", "agentId": ID, "error": "no"}]
    main, (made,) = assemble_agents(told(), [file(*WORK, run="wf_1")], read(*rows))
    assert made.status is AgentStatus.FAILED
    assert [entry.kind for entry in main.entries] == ["user", "launched", "failed"]


def test_what_is_known_of_an_agent() -> None:
    """Type and description come from the side file, else from the call; prompt and model from its own rows."""
    main = told(task("look", subagent_type="Explore", description="have a look"))
    _, (made,) = assemble_agents(main, [file(*WORK)])
    assert (made.type, made.description, made.prompt) == ("Explore", "have a look", "look")
    assert made.model == "claude-sonnet-4-5-20250929"
    _, (made,) = assemble_agents(main, [file(*WORK, meta_=AgentMeta(agent_type="Plan", description="d"))])
    assert (made.type, made.description) == ("Plan", "d")


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
    st.sampled_from([{"type": "text", "text": "look"}, use("Task", {"prompt": "look"}), result("agentId: a1")]),
)
FILES = st.lists(st.tuples(st.sampled_from(["a1", "a2", "acompact-1"]), st.lists(ROWS, max_size=8)), max_size=3)


def _story(main: Agent, agents: tuple[Agent, ...]) -> list[Any]:
    return [(agent.id, agent.kind, agent.link, agent.depth, len(agent.entries)) for agent in (main, *agents)]


@given(st.lists(ROWS, max_size=14), FILES, st.lists(ROWS, max_size=2))
def test_every_entry_stands_in_exactly_one_agent(
    rows: list[Row], files: list[tuple[str, list[Row]]], extra: list[Row]
) -> None:
    """Whatever the graph, nothing is lost and nothing comes twice; and the same comes each time."""
    main, journal = read(*rows), read(*extra)
    given_ = [AgentFile(Path(id_), AgentId(id_), AgentKind.BELOW, entries=tuple(read(*own))) for id_, own in files]
    first, others = assemble_agents(main, given_, journal)
    there = Counter(id(entry) for agent in (first, *others) for entry in agent.entries)
    assert there == Counter(
        id(entry) for entry in [*main, *journal, *(entry for own in given_ for entry in own.entries)]
    )
    assert _story(first, others) == _story(*assemble_agents(main, given_, journal))
    assert all(agent.depth >= 1 and (agent.link.call or agent.link.why or agent.link.step) for agent in others)


def sessions(home: Path) -> list[tuple[list[Entry], list[AgentFile]]]:
    """The sessions of a home: the main transcript's entries, where it is there, and the agents' transcripts."""
    mains: dict[Any, list[Entry]] = {}
    agents: dict[Any, list[AgentFile]] = defaultdict(list)
    for path in sorted(home.glob("projects/*/**/*.jsonl")):
        folder, *below = path.relative_to(home / "projects").parts
        name = parse_transcript_name(below)
        if name.kind is TranscriptKind.MAIN:
            mains[folder, name.session] = list(parse(path))
        elif name.agent is not None:
            own = tuple(parse(path))
            session = name.session or next((entry.session_id for entry in own if entry.session_id), None)
            agents[folder, session].append(AgentFile(path, name.agent, AgentKind.BELOW, name.run, None, own))
    return [(mains.get(key, []), agents[key]) for key in {**mains, **agents}]


@pytest.mark.real
@pytest.mark.skipif(not HOME.exists(), reason="the real home is not there")
def test_real_agents_are_linked_or_say_why(capsys: pytest.CaptureFixture[str]) -> None:
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
