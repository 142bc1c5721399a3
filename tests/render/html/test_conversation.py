"""A rendered session: every item once, in sections that cover all items, each with its anchor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import every, scale_examples
from tests.render.html.calls_and_pages import Page, Paths
from tests.render.sessions import session
from tests.subtests import for_each
from tests.transcripts import Part, call, prompt, reply, transcript, write

from threadline.load import read
from threadline.model.entries import AssistantEntry
from threadline.model.places import MessageId
from threadline.model.session import Session
from threadline.render import Detail, View, agent_slug, anchor_of, parse_anchor
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


def render(sample: Session, view: View | None = None, **options: Any) -> ConversationRenderer:
    """Render the main agent."""
    return ConversationRenderer(sample, sample.main, Scene(view or View(), Paths(), cwd="/work/app"), **options)


def joined_sections(renderer: ConversationRenderer) -> str:
    """All sections, joined."""
    return "".join(renderer.section(section.number) for section in renderer.sections)


@settings(max_examples=scale_examples(30))
@given(parts=st.lists(_PART, max_size=60))
def test_sections_contain_every_item_once(tmp_path_factory: pytest.TempPathFactory, parts: list[Part]) -> None:
    """Every item is in exactly one section, in order, and no anchor is used twice."""
    main = write(tmp_path_factory.mktemp("drawn") / "a.jsonl", *transcript(*parts))
    renderer = render(read(main, continued=False))
    assert [(section.start, section.stop) for section in renderer.sections] == [
        (before, section.stop)
        for before, section in zip(
            [0, *(section.stop for section in renderer.sections)], renderer.sections, strict=False
        )
    ]
    anchors = _ID.findall(joined_sections(renderer))
    assert anchors == [item.anchor for item in renderer.items]
    assert len(set(anchors)) == len(anchors)


@pytest.mark.slow
def test_sections_stay_small(tmp_path: Path) -> None:
    """A section has limited items and, except for a single large item, limited elements."""
    many = [
        section for n in range(300) for section in (prompt(f"p{n}"), call("Bash", "ls", result="x"), reply("y\n" * 30))
    ]
    renderer = render(session(tmp_path, *many))
    assert len(renderer.sections) > 3
    for section in renderer.sections:
        assert section.stop - section.start <= MAX_ITEMS
        assert section.elements <= MAX_ELEMENTS
        page = Page(renderer.section(section.number))
        assert len(page.tags) <= 2 * MAX_ELEMENTS


def test_a_mark_changes_when_a_call_gets_its_result(tmp_path: Path) -> None:
    """A page fetches a section again only if its mark has changed."""
    rows = transcript(prompt("a"), call("Bash", "ls", result="x"))
    before = split_into_sections(render(read(write(tmp_path / "a.jsonl", *rows[:-1]), continued=False)).items)
    after = split_into_sections(render(read(write(tmp_path / "b.jsonl", *rows), continued=False)).items)
    assert [part.first for part in before] == [part.first for part in after]
    assert before[0].mark != after[0].mark
    again = split_into_sections(render(read(write(tmp_path / "c.jsonl", *rows), continued=False)).items)
    assert again[0].mark == after[0].mark


@for_each("case", every(3, sorted(path.name for path in _SESSIONS.iterdir() if (path / "in").is_dir())))
def test_renders_every_case(case: str) -> None:
    """Every case session is rendered inertly, folded and with everything, the main agent and each other agent."""
    mains = sorted((_SESSIONS / case / "in").rglob("*.jsonl"))
    for path in mains:
        sample = read(path, continued=False)
        for view in (View(), View(everything=True, agents=Detail.FULL, thinking=Detail.FULL, calls=Detail.FULL)):
            for agent in (sample.main, *sample.agents):
                renderer = ConversationRenderer(sample, agent, Scene(view, Paths()), inline=None)
                page = Page(joined_sections(renderer) + renderer.unlinked_agents())
                assert "script" not in page.tags
                assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]


def test_views_filter_items(tmp_path: Path) -> None:
    """By kind, tool, failure and turn. Other items are not rendered."""
    sample = session(
        tmp_path,
        prompt("first"),
        call("Bash", "ls", result="x"),
        call("Read", "/x", result="no", error=True),
        reply("answer"),
        prompt("second"),
        reply("other"),
    )

    def kinds(view: View) -> list[str]:
        return [item.kind for item in render(sample, view).items]

    assert kinds(View()) == ["prompt", "call", "call", "reply", "prompt", "reply"]
    assert kinds(View(kinds=("prompt",))) == ["prompt", "prompt"]
    assert kinds(View(tools=("Bash",))) == ["call"]
    assert kinds(View(errors=True)) == ["call"]
    assert kinds(View(calls=Detail.NONE)) == ["prompt", "reply", "prompt", "reply"]
    assert kinds(View(from_turn=2)) == ["prompt", "reply"]
    assert kinds(View(to_turn=1)) == ["prompt", "call", "call", "reply"]


def test_figures_are_shown_once_per_message(tmp_path: Path) -> None:
    """A message of several items has its figures under the last of them."""
    sample = session(tmp_path, prompt("a"), reply({"type": "thinking", "thinking": "b"}, "c"))
    (message,) = {e.message.id for e in sample.main.entries if isinstance(e, AssistantEntry) and e.message is not None}
    stats = {MessageId(str(message)): MessageStats("claude-opus-4", 1234, 56, None)}
    html = joined_sections(render(sample, stats=stats))
    assert html.count("1,234 in context") == 1


def test_anchors_survive_parsing(tmp_path: Path) -> None:
    """An anchor names its agent and its line, whatever the agent's id contains."""
    entry = session(tmp_path, prompt("a")).main.entries[0]
    assert anchor_of(entry) == "L1"
    assert parse_anchor("L120") == (None, 120)
    assert parse_anchor(anchor_of(entry, "a/b c")) == (agent_slug("a/b c"), 1)
    assert parse_anchor("L") is None
    assert parse_anchor("../L1") is None
