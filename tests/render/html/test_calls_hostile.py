"""Hostile text stays text in every field of every tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.profiles import every
from tests.render.html.calls_and_pages import SCENE, UNCUT_SCENE, Page, make_call
from tests.render.html.tool_cases import CASES, Case
from tests.subtests import for_each

from threadline.render.html import render_call

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=x></pre></textarea></details>"
    "[a](javascript:alert(3)) ![b](http://host.invalid/?q=1) <a href='javascript:x'>c</a> \x1b]8;;http://e\x07 \u202e"
)
ADDRESS = "javascript:alert(document.domain)"


def variants(value: Any, text: str) -> Iterator[Any]:
    """Copies of the value, each with the text in place of another of its strings or as a key."""
    if isinstance(value, str):
        yield text
        yield value + text
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: other} for other in variants(inner, text))
        yield {**value, text: text}
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in variants(inner, text))


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [HOSTILE, ADDRESS], ids=["markup", "address"])
@for_each("case", every(3, CASES), ids=lambda case: f"{case.tool}-{case.outcome}")
def test_hostile_text_stays_text(case: Case, text: str) -> None:
    """No field of an input, an output or a result adds an element, an attribute or an address."""
    calls = [
        *(
            make_call(case.tool, arguments, case.output, case.details, case.outcome)
            for arguments in variants(case.arguments, text)
        ),
        *(
            make_call(case.tool, case.arguments, case.output, details, case.outcome)
            for details in variants(case.details, text)
        ),
        *(make_call(case.tool, case.arguments, output, None, case.outcome) for output in variants(case.output, text)),
        make_call(text, case.arguments, case.output, case.details, case.outcome),
    ]
    for call in calls:
        for scene in (SCENE, UNCUT_SCENE):
            html = render_call(call, scene)
            assert Page(html).is_inert()
            assert "<script" not in html
            assert "\u202e" not in html
            assert 'href="javascript:' not in html
