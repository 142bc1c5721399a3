"""Each tool's call is shown in a way that suits it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.render.html.calling import LONE, SCENE, WHOLE, Page, made
from tests.render.html.tools import CASES, DOT, PATCH, TOOLS, Case
from tests.render.reading import session
from tests.subtests import for_each
from tests.transcripts import call as makes
from tests.transcripts import prompt

from threadline.model.calls import Outcome
from threadline.model.results import TOOL_RESULTS
from threadline.render.html import Scene, render_call
from threadline.render.html.calls.view import render_tool_view

MOST_ELEMENTS = 150
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def page(case: Case, scene: Scene = SCENE) -> Page:
    """A case's view."""
    return Page(render_tool_view(case.call(), scene))


@for_each("case", CASES, ids=lambda case: f"{case.tool}-{case.outcome}")
def test_what_must_be_seen_is_seen(case: Case) -> None:
    """The view of each tool has the words that a reader looks for, folded as on a page and whole as in a file."""
    for scene in (SCENE, WHOLE, LONE):
        drawn = page(case, scene)
        text = drawn.text if scene is not LONE else drawn.text.replace("/work/app/", "")
        missing = [words for words in case.seen if words not in text and words not in drawn.text]
        assert not missing
        assert drawn.is_inert()


def test_every_tool_that_has_a_result_type_is_in_the_table() -> None:
    """A tool that threadline knows the result of has been looked at here, but for old twins of others."""
    twins = {
        "AgentOutputTool",
        "KillBash",
        "TeamCreate",
        "TeamDelete",
        "CronDelete",
        "ExitWorktree",
        "ReadMcpResourceTool",
    }
    assert set(TOOL_RESULTS) - set(TOOLS) == twins


def test_a_link_to_the_web_is_one_and_leads_out() -> None:
    """What a search found is linked, and the page tells nobody where the reader came from."""
    case = next(case for case in CASES if case.tool == "WebSearch")
    drawn = page(case)
    assert drawn.links == ["https://example.invalid/a"]
    assert ("rel", "noopener noreferrer nofollow") in drawn.attributes


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "java\nscript:x", "//host/x", "http:/x", "x"]
)
def test_what_is_no_address_of_the_web_is_no_link(address: str) -> None:
    """Whatever a result calls an address, only one of the web is a link."""
    hits = {"query": "q", "results": [{"content": [{"title": "t", "url": address}]}]}
    for one in (
        made("WebSearch", {}, "", hits),
        made("WebFetch", {"url": address}, "x"),
        made("Artifact", {}, "", {"url": address, "title": "t"}),
    ):
        assert [link for link in Page(render_tool_view(one, SCENE)).links if not link.startswith("/files")] == []


def test_the_line_opens_where_something_is_below() -> None:
    """A call with a view is a line that opens; edits and failures stand open; one without anything is a line alone."""
    assert "<details open>" in render_call(made("Edit", {}, "", {"filePath": "/x", "structuredPatch": PATCH}), SCENE)
    assert "<details open>" in render_call(made("Read", {}, "no", "no", Outcome.ERROR), SCENE)
    assert "<details>" in render_call(made("Bash", {"command": "ls"}, "a"), SCENE)
    assert "<details" not in render_call(made("mcp__a__b", {}, ""), SCENE)


def test_where_the_whole_output_lies_is_told() -> None:
    """An output that was put into a file names the file."""
    one = msgspec.structs.replace(made("Bash", {"command": "ls"}, "start"), persisted=Path("/tmp/out.txt"))  # noqa: S108
    assert "Full output: /tmp/out.txt" in Page(render_tool_view(one, SCENE)).text


def test_terminal_colours_are_dropped_and_other_controls_are_seen() -> None:
    """Colour codes are gone; what would steer a terminal or turn the reading direction is visible."""
    text = Page(
        render_tool_view(
            made("Bash", {"command": "x"}, "", {"stdout": "\x1b[31mred\x1b[0m \x1b]0;t\x07 \u202e"}), SCENE
        )
    ).text
    assert "red" in text
    assert r"\x1b]0;t\x07 \u202e" in text
    assert "\x1b" not in text


def test_pictures_of_a_result_are_shown(tmp_path: Path) -> None:
    """A picture that a tool gave is an element of its own size, at an address of the entry that holds it."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}
    whole = session(
        tmp_path,
        prompt("p"),
        makes("Read", "/x.png", result=[image], details={"type": "image", "file": {"type": "image/png"}}),
    )
    one = whole.calls[0]
    assert one.answer is not None
    drawn = Page(render_tool_view(one, SCENE))
    assert drawn.links[-1] == f"image/L{one.answer.line.number}/1"
    assert ("width", "1") in drawn.attributes


LONG = "\n".join(f"line {number} of a long text" for number in range(5000))
TABLE = "| a | b |\n|---|---|\n" + "\n".join(f"| `x{n}` | **y** |" for n in range(300))
CODE = "\n".join(f"def f{n}(a: int = {n}) -> str: return 'x' + str(a)  # {n}" for n in range(3000))
BIG_PATCH = [{"oldStart": 1, "newStart": 1, "lines": [f"{'+-'[n % 2]}value = call({n // 2})" for n in range(4000)]}]
BIG: tuple[Case, ...] = (
    Case("Bash", {"command": LONG}, "", {"stdout": LONG, "stderr": LONG}, ()),
    Case("Bash", {"command": CODE}, LONG, "no", (), Outcome.ERROR),
    Case(
        "Read",
        {"file_path": "/x.py"},
        "",
        {"type": "text", "file": {"filePath": "/x.py", "content": CODE, "numLines": 3000}},
        (),
    ),
    Case("Edit", {"file_path": "/x.py"}, "", {"filePath": "/x.py", "structuredPatch": BIG_PATCH}, ()),
    Case("Write", {"file_path": "/x.py"}, "", {"type": "create", "filePath": "/x.py", "content": CODE}, ()),
    Case(
        "Grep", {"pattern": "x"}, "", {"mode": "content", "content": "\n".join(f"f{n}.py:1:x" for n in range(999))}, ()
    ),
    Case("Glob", {"pattern": "x"}, "", {"filenames": [f"/f{n}" for n in range(999)]}, ()),
    Case("Task", {"prompt": TABLE}, TABLE, None, ()),
    Case("ExitPlanMode", {"plan": CODE}, "", {"plan": f"```python\n{CODE}\n```"}, ()),
    Case("mcp__a__b", {"a": LONG}, '{"k":[' + ",".join(map(str, range(3000))) + "]}", None, ()),
    Case("LS", {}, "x" * 1_000_000, "x", ()),
    Case("TodoWrite", {"todos": [{"content": f"todo {n}", "status": "x"} for n in range(900)]}, "", None, ()),
    Case("TaskList", {}, "", {"tasks": [{"id": str(n), "subject": "x", "blocks": ["1"]} for n in range(900)]}, ()),
    Case(
        "WebSearch",
        {},
        "",
        {"results": [{"content": [{"title": "a hit of many", "url": "https://x.invalid"}] * 900}, TABLE]},
        (),
    ),
    Case(
        "ReportFindings",
        {"findings": [{"file": "f", "summary": "a summary", "failure_scenario": "t"}] * 900},
        "",
        None,
        (),
    ),
    Case(
        "AskUserQuestion", {"questions": [{"question": "q" * 99, "options": [{"label": "l"}] * 5}] * 90}, "", None, ()
    ),
)


@pytest.mark.parametrize("case", BIG, ids=lambda case: f"{case.tool}-{case.outcome}")
def test_a_long_view_is_cut_and_leads_to_the_whole(case: Case) -> None:
    """However long an output is, a page shows few elements and characters of it, says so, and links to all of it."""
    drawn = page(case)
    assert len(drawn.tags) <= MOST_ELEMENTS
    assert len(drawn.text) < 30_000
    assert "call/toolu_1" in drawn.links
    assert "more" in drawn.text


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", BIG, ids=lambda case: f"{case.tool}-{case.outcome}")
def test_where_a_call_has_no_page_of_its_own_all_of_it_is_there(case: Case) -> None:
    """A lone file has nowhere to link to: the rest is folded below; a whole view has no fold and no link."""
    lone, whole = page(case, LONE), page(case, WHOLE)
    assert "call/toolu_1" not in [*lone.links, *whole.links]
    assert len(lone.text) >= 0.9 * len(whole.text) > 4_000


@pytest.mark.sample(9)
@pytest.mark.parametrize("tool", [*TOOLS, "mcp__any__thing"])
@settings(max_examples=scale_examples(20))
@given(data=st.data())
def test_any_json_is_drawn(tool: str, data: st.DataObject) -> None:
    """No input, output or result of any shape stops a page, or gets more out of it than words."""
    shapes = [case for case in CASES if case.tool == tool]
    shape = data.draw(st.sampled_from(shapes)) if shapes else CASES[0]
    known = {name: JSON for holder in (shape.given, shape.own) if isinstance(holder, dict) for name in holder}
    value = JSON | st.fixed_dictionaries({}, optional=known)
    outcome = data.draw(st.sampled_from(Outcome))
    one = made(tool, data.draw(value), data.draw(st.text()), data.draw(value), outcome)
    for scene in (SCENE, WHOLE):
        drawn = Page(render_call(one, scene))
        assert drawn.is_inert()
        assert scene.uncut or len(drawn.tags) <= MOST_ELEMENTS
