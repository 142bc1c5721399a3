"""Rendering time grows linearly with the content, whatever it consists of."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.render.sessions import session
from tests.transcripts import chain, prompt, reply

from threadline.render import Span, build_outline, build_tree, plain, wrap
from threadline.render.terminal_markdown import markdown_lines
from threadline.render.text import wrap_hard

pytestmark = pytest.mark.slow

SMALL = 10_000


def seconds(work: Callable[[], Any]) -> float:
    """The best CPU time of three runs, because noise only adds. The garbage collector is off."""
    best = float("inf")
    for _ in range(3):
        gc.collect()
        gc.disable()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        gc.enable()
    return best


TEXTS: dict[str, Callable[[int], str]] = {
    "a long word beyond ASCII": lambda size: "é" * size,
    "a long wide word": lambda size: "日" * size,
    "marks": lambda size: "e" + "\u0301" * size,
    "selectors": lambda size: "❤" + "\ufe0f" * size,
    "a heading with spaces": lambda size: "# a" + " " * size + "b",
    "a heading with signs": lambda size: "# a" + " #" * size + "b",
    "one wide row and many narrow ones": lambda size: "|" + "a|" * (size // 4) + "\n|a|" * (size // 4),
    "almost a line of a table": lambda size: "|" + "-" * size + "a|",
    "code": lambda size: "```\n" + "é" * size,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_rendering_text_takes_linear_time(text: Callable[[int], str]) -> None:
    """Four times the text takes about four times as long, not sixteen times."""

    def render(size: int) -> None:
        content = text(size)
        list(markdown_lines(content, 80))
        list(wrap((Span(content),), 80))
        list(wrap_hard(content, 80))
        plain(content)

    small, large = (seconds(lambda size=size: render(size)) for size in (SMALL, 4 * SMALL))  # type: ignore[misc]
    assert large / small < 8


TAGS: dict[str, Callable[[int], str]] = {
    "messages": lambda size: "<command-name>x</command-name>" + "<command-message>" * size,
    "summaries": lambda size: "<task-notification>" + "<summary>" * size,
    "closed": lambda size: "<task-notification>" + "<summary></summary>" * size,
    "a name without an end": lambda size: "<" + "a" * size,
    "names without an end": lambda size: "<bash-stdout>" + "<a " * size,
}


@pytest.mark.parametrize("text", TAGS.values(), ids=TAGS.keys())
def test_unclosed_tags_take_linear_time(tmp_path: Path, text: Callable[[int], str]) -> None:
    """Tags that are never closed are searched for once."""

    def work(size: int) -> Callable[[], Any]:
        sample = session(tmp_path, prompt("go"), chain("system", subtype="local_command", content=text(size)))
        return lambda: list(build_outline(sample.main))

    small, large = (seconds(work(size)) for size in (4 * SMALL, 16 * SMALL))
    assert large / small < 8


def test_compactions_take_linear_time(tmp_path: Path) -> None:
    """Turns and compactions are matched once, not each with each."""

    def work(size: int) -> Callable[[], Any]:
        boundary = chain("system", subtype="compact_boundary", compactMetadata={"trigger": "manual"})
        sample = session(tmp_path, *([prompt("go"), reply("ok"), boundary] * size))
        assert len(sample.main.compactions) == size
        return lambda: build_tree(sample)

    small, large = (seconds(work(size)) for size in (500, 2000))
    assert large / small < 8
