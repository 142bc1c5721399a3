"""Each tool has a suitable view of its calls."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.render.html.calls_and_pages import FILE_SCENE, SCENE, UNCUT_SCENE, Page, make_call
from tests.render.html.tool_cases import CASES, DOT, PATCH, TOOLS, Case
from tests.render.sessions import session
from tests.subtests import for_each
from tests.transcripts import call as call_part
from tests.transcripts import prompt

from threadline.model.calls import Outcome
from threadline.model.results import TOOL_RESULTS
from threadline.render.html import Scene, render_call
from threadline.render.html.calls.view import render_tool_view

MAX_ELEMENTS = 150
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def page(case: Case, scene: Scene = SCENE) -> Page:
    """The view of a case."""
    return Page(render_tool_view(case.call(), scene))


@for_each("case", CASES, ids=lambda case: f"{case.tool}-{case.outcome}")
def test_views_contain_the_important_words(case: Case) -> None:
    """The view of each tool contains the words that a reader looks for, folded on a page and complete in a file."""
    for scene in (SCENE, UNCUT_SCENE, FILE_SCENE):
        view = page(case, scene)
        text = view.text if scene is not FILE_SCENE else view.text.replace("/work/app/", "")
        missing = [words for words in case.words if words not in text and words not in view.text]
        assert not missing
        assert view.is_inert()


def test_every_known_tool_has_a_case() -> None:
    """Every tool with a known result type has a case here, except old aliases of others."""
    aliases = {
        "AgentOutputTool",
        "KillBash",
        "TeamCreate",
        "TeamDelete",
        "CronDelete",
        "ExitWorktree",
        "ReadMcpResourceTool",
    }
    assert set(TOOL_RESULTS) - set(TOOLS) == aliases


def test_links_to_the_web_send_no_referrer() -> None:
    """Search results are linked, without telling the site where the reader came from."""
    case = next(case for case in CASES if case.tool == "WebSearch")
    view = page(case)
    assert view.links == ["https://example.invalid/a"]
    assert ("rel", "noopener noreferrer nofollow") in view.attributes


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "java\nscript:x", "//host/x", "http:/x", "x"]
)
def test_only_web_addresses_are_links(address: str) -> None:
    """Whatever a result calls an address, only web addresses become links."""
    hits = {"query": "q", "results": [{"content": [{"title": "t", "url": address}]}]}
    for call in (
        make_call("WebSearch", {}, "", hits),
        make_call("WebFetch", {"url": address}, "x"),
        make_call("Artifact", {}, "", {"url": address, "title": "t"}),
    ):
        assert [link for link in Page(render_tool_view(call, SCENE)).links if not link.startswith("/files")] == []


def test_calls_with_a_view_can_be_opened() -> None:
    """A call with a view can be opened, edits and failures are open, and one without a view is just a line."""
    assert "<details open>" in render_call(
        make_call("Edit", {}, "", {"filePath": "/x", "structuredPatch": PATCH}), SCENE
    )
    assert "<details open>" in render_call(make_call("Read", {}, "no", "no", Outcome.ERROR), SCENE)
    assert "<details>" in render_call(make_call("Bash", {"command": "ls"}, "a"), SCENE)
    assert "<details" not in render_call(make_call("mcp__a__b", {}, ""), SCENE)


def test_names_the_file_of_the_full_output() -> None:
    """An output that was saved to a file names the file."""
    call = msgspec.structs.replace(make_call("Bash", {"command": "ls"}, "start"), persisted=Path("/tmp/out.txt"))  # noqa: S108
    assert "Full output: /tmp/out.txt" in Page(render_tool_view(call, SCENE)).text


def test_removes_colours_and_shows_other_control_characters() -> None:
    """Colour codes are removed. Other control characters and reading direction marks are shown."""
    text = Page(
        render_tool_view(
            make_call("Bash", {"command": "x"}, "", {"stdout": "\x1b[31mred\x1b[0m \x1b]0;t\x07 \u202e"}), SCENE
        )
    ).text
    assert "red" in text
    assert r"\x1b]0;t\x07 \u202e" in text
    assert "\x1b" not in text


def test_shows_images_of_a_result(tmp_path: Path) -> None:
    """An image in a result is an element with its size, at a URL of its entry."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}
    sample = session(
        tmp_path,
        prompt("p"),
        call_part("Read", "/x.png", result=[image], details={"type": "image", "file": {"type": "image/png"}}),
    )
    call = sample.calls[0]
    assert call.answer is not None
    view = Page(render_tool_view(call, SCENE))
    assert view.links[-1] == f"image/L{call.answer.line.number}/1"
    assert ("width", "1") in view.attributes


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
def test_truncates_a_long_view_with_a_link(case: Case) -> None:
    """However long an output, a page shows few elements and characters of it, and links to all of it."""
    view = page(case)
    assert len(view.tags) <= MAX_ELEMENTS
    assert len(view.text) < 30_000
    assert "call/toolu_1" in view.links
    assert "more" in view.text


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", BIG, ids=lambda case: f"{case.tool}-{case.outcome}")
def test_views_without_a_link_are_complete(case: Case) -> None:
    """An exported file folds the rest below. An uncut view has no fold and no link."""
    exported, uncut = page(case, FILE_SCENE), page(case, UNCUT_SCENE)
    assert "call/toolu_1" not in [*exported.links, *uncut.links]
    assert len(exported.text) >= 0.9 * len(uncut.text) > 4_000


@pytest.mark.sample(9)
@pytest.mark.parametrize("tool", [*TOOLS, "mcp__any__thing"])
@settings(max_examples=scale_examples(20))
@given(data=st.data())
def test_renders_any_json(tool: str, data: st.DataObject) -> None:
    """No input, output or result of any shape breaks a page or becomes more than text."""
    shapes = [case for case in CASES if case.tool == tool]
    shape = data.draw(st.sampled_from(shapes)) if shapes else CASES[0]
    fields = {name: JSON for holder in (shape.arguments, shape.details) if isinstance(holder, dict) for name in holder}
    value = JSON | st.fixed_dictionaries({}, optional=fields)
    outcome = data.draw(st.sampled_from(Outcome))
    call = make_call(tool, data.draw(value), data.draw(st.text()), data.draw(value), outcome)
    for scene in (SCENE, UNCUT_SCENE):
        view = Page(render_call(call, scene))
        assert view.is_inert()
        assert scene.uncut or len(view.tags) <= MAX_ELEMENTS
