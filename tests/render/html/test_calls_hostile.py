"""Text that means harm stays text, in whatever field of whatever tool it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.render.html.calling import SCENE, WHOLE, Page, made
from tests.render.html.tools import CASES, Case
from tests.subtests import for_each

from threadline.render.html import render_call

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=x></pre></textarea></details>"
    "[a](javascript:alert(3)) ![b](http://host.invalid/?q=1) <a href='javascript:x'>c</a> \x1b]8;;http://e\x07 \u202e"
)
ADDRESS = "javascript:alert(document.domain)"


def planted(value: Any, text: str) -> Iterator[Any]:
    """The value again and again, each time with another of its texts, or of its names, in another's place."""
    if isinstance(value, str):
        yield text
        yield value + text
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: other} for other in planted(inner, text))
        yield {**value, text: text}
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in planted(inner, text))


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [HOSTILE, ADDRESS], ids=["markup", "address"])
@for_each("case", CASES, ids=lambda case: f"{case.tool}-{case.outcome}")
def test_hostile_text_stays_text(case: Case, text: str) -> None:
    """No field of an input, an output or a result adds an element, an attribute or an address that was not there."""
    calls = [
        *(made(case.tool, given, case.output, case.own, case.outcome) for given in planted(case.given, text)),
        *(made(case.tool, case.given, case.output, own, case.outcome) for own in planted(case.own, text)),
        *(made(case.tool, case.given, output, None, case.outcome) for output in planted(case.output, text)),
        made(text, case.given, case.output, case.own, case.outcome),
    ]
    for call in calls:
        for scene in (SCENE, WHOLE):
            html = render_call(call, scene)
            assert Page(html).is_inert()
            assert "<script" not in html
            assert "\u202e" not in html
            assert 'href="javascript:' not in html
