"""A session drawn: every item once, in sections that joined are the whole, each with its anchor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.render.html.calling import Page, Paths
from tests.render.reading import session
from tests.subtests import for_each
from tests.transcripts import Part, call, prompt, reply, transcript, write

from threadline.load import read
from threadline.model.entries import AssistantEntry
from threadline.model.places import MessageId
from threadline.model.session import Session
from threadline.render import AgentDetail, Detail, View, agent_slug, anchor_of, parse_anchor
from threadline.render.html import ConversationRenderer, MessageStats, Scene
from threadline.render.html.sections import MAX_ELEMENTS, MAX_ITEMS, split_into_sections

_ID = re.compile(r'<article class="item [^"]*" id="([^"]*)"')
_SESSIONS = Path(__file__).parents[2] / "sessions"
_PART = st.sampled_from(
    [
        prompt("do it"),
        reply("**done**"),
        reply("a\n\nb\n" * 40),
        reply({"type": "thinking", "thinking": "hm"}),
        call("Bash", "ls", result="a\nb"),
        call("Read", "/work/app/x.py", result="1\tx"),
    ]
)


def drawing(whole: Session, view: View | None = None, **options: Any) -> ConversationRenderer:
    """The main agent, drawn."""
    return ConversationRenderer(whole, whole.main, Scene(view or View(), Paths(), cwd="/work/app"), **options)


def whole_of(renderer: ConversationRenderer) -> str:
    """All sections, joined."""
    return "".join(renderer.section(section.number) for section in renderer.sections)


@settings(max_examples=scale_examples(30))
@given(parts=st.lists(_PART, max_size=60))
def test_sections_joined_are_the_whole(tmp_path_factory: pytest.TempPathFactory, parts: list[Part]) -> None:
    """Every item stands in exactly one section, in order, and no anchor is used twice."""
    main = write(tmp_path_factory.mktemp("drawn") / "a.jsonl", *transcript(*parts))
    one = drawing(read(main, continued=False))
    assert [(part.start, part.stop) for part in one.sections] == [
        (before, part.stop) for before, part in zip([0, *(p.stop for p in one.sections)], one.sections, strict=False)
    ]
    anchors = _ID.findall(whole_of(one))
    assert anchors == [item.anchor for item in one.items]
    assert len(set(anchors)) == len(anchors)


def test_sections_stay_small(tmp_path: Path) -> None:
    """No more items and, but for a single large one, no more elements than a section may have."""
    many = [part for n in range(300) for part in (prompt(f"p{n}"), call("Bash", "ls", result="x"), reply("y\n" * 30))]
    one = drawing(session(tmp_path, *many))
    assert len(one.sections) > 3
    for part in one.sections:
        assert part.stop - part.start <= MAX_ITEMS
        assert part.elements <= MAX_ELEMENTS
        drawn = Page(one.section(part.number))
        assert len(drawn.tags) <= 2 * MAX_ELEMENTS


def test_a_mark_changes_when_a_call_gets_its_result(tmp_path: Path) -> None:
    """What a page has already is fetched again only where it is not the same any more."""
    rows = transcript(prompt("a"), call("Bash", "ls", result="x"))
    before = split_into_sections(drawing(read(write(tmp_path / "a.jsonl", *rows[:-1]), continued=False)).items)
    after = split_into_sections(drawing(read(write(tmp_path / "b.jsonl", *rows), continued=False)).items)
    assert [part.first for part in before] == [part.first for part in after]
    assert before[0].mark != after[0].mark
    again = split_into_sections(drawing(read(write(tmp_path / "c.jsonl", *rows), continued=False)).items)
    assert again[0].mark == after[0].mark


@for_each("case", sorted(path.name for path in _SESSIONS.iterdir() if (path / "in").is_dir()))
def test_every_case_is_drawn(case: str) -> None:
    """Whatever a session is like, it is drawn inertly, folded and with everything, by itself and each agent alone."""
    mains = sorted((_SESSIONS / case / "in").rglob("*.jsonl"))
    for path in mains:
        whole = read(path, continued=False)
        for view in (View(), View(everything=True, agents=AgentDetail.FULL, thinking=Detail.FULL, calls=Detail.FULL)):
            for agent in (whole.main, *whole.agents):
                one = ConversationRenderer(whole, agent, Scene(view, Paths()), inline=None)
                page = Page(whole_of(one) + one.unlinked_agents())
                assert "script" not in page.tags
                assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]


def test_a_view_shows_what_it_wants(tmp_path: Path) -> None:
    """Kinds, tools, failures and turns choose; what a view leaves out is not drawn."""
    whole = session(
        tmp_path,
        prompt("first"),
        call("Bash", "ls", result="x"),
        call("Read", "/x", result="no", error=True),
        reply("answer"),
        prompt("second"),
        reply("other"),
    )

    def kinds(view: View) -> list[str]:
        return [item.kind for item in drawing(whole, view).items]

    assert kinds(View()) == ["prompt", "call", "call", "reply", "prompt", "reply"]
    assert kinds(View(kinds=("prompt",))) == ["prompt", "prompt"]
    assert kinds(View(tools=("Bash",))) == ["call"]
    assert kinds(View(errors=True)) == ["call"]
    assert kinds(View(calls=Detail.NONE)) == ["prompt", "reply", "prompt", "reply"]
    assert kinds(View(from_turn=2)) == ["prompt", "reply"]
    assert kinds(View(to_turn=1)) == ["prompt", "call", "call", "reply"]


def test_figures_stand_once_a_message(tmp_path: Path) -> None:
    """A message of several items has its figures under the last of them."""
    whole = session(tmp_path, prompt("a"), reply({"type": "thinking", "thinking": "b"}, "c"))
    (message,) = {e.message.id for e in whole.main.entries if isinstance(e, AssistantEntry) and e.message is not None}
    told = {MessageId(str(message)): MessageStats("claude-opus-4", 1234, 56, None)}
    html = whole_of(drawing(whole, stats=told))
    assert html.count("1,234 in context") == 1


def test_anchors_are_read_back(tmp_path: Path) -> None:
    """An anchor names its agent and its line, whatever the agent's id holds."""
    entry = session(tmp_path, prompt("a")).main.entries[0]
    assert anchor_of(entry) == "L1"
    assert parse_anchor("L120") == (None, 120)
    assert parse_anchor(anchor_of(entry, "a/b c")) == (agent_slug("a/b c"), 1)
    assert parse_anchor("L") is None
    assert parse_anchor("../L1") is None
