"""Building blocks of tool views: cut text, code, prose, facts, file links, lists, and how a call failed.

Unless the scene is uncut, a view shows the first part of a long text and links to the call's own page for the rest. In
an exported file, which has no such page, the rest is folded below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from markupsafe import Markup
from msgspec import Struct

from threadline.model.call_summary import strip_program_tags
from threadline.model.calls import Call, Outcome, is_refusal_note
from threadline.model.text import count
from threadline.render import shorten, visible
from threadline.render.html.code import highlight_within
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.markdown import markdown_to_html
from threadline.render.html.sections import Scene

CallRenderer = Callable[[Call, Scene], Markup]
"""Renders a call, or a part of it."""


class ToolView(Struct, frozen=True):
    """How to render calls of a tool. `finished` renders a call with a result, `unfinished` the input of one without."""

    finished: CallRenderer
    unfinished: CallRenderer | None = None


T = TypeVar("T")

_MAX_ROWS = 30
_MAX_ELEMENTS = 110
"""The maximum number of elements of a Markdown text, unless the scene is uncut. Tables and highlighted code reach it
before they reach the maximum number of lines."""


def output_block(text: str, call: Call, scene: Scene, class_: str = "output") -> Markup:
    """Output as it was printed; empty if it is blank."""
    if not text.strip():
        return EMPTY
    # A block that scrolls sideways must be reachable by keyboard.
    return cut_text(text.strip("\n"), call, scene, lambda part: el("pre", visible(part), class_=class_, tabindex=0))


def plain_output(call: Call, scene: Scene) -> Markup:
    """The output of a call for the model, without the tags that Claude Code adds."""
    return output_block(strip_program_tags(call.output), call, scene)


def code_block(text: str, language: str | None, call: Call, scene: Scene, class_: str = "code") -> Markup:
    """Highlighted code; empty if it is blank."""
    if not text.strip():
        return EMPTY
    bound = {"most": None} if scene.uncut else {}
    return cut_text(
        text.strip("\n"), call, scene, lambda part: el("pre", highlight_within(part, language, **bound), class_=class_)
    )


def prose_block(text: str, call: Call, scene: Scene, limit: int = _MAX_ELEMENTS) -> Markup:
    """Markdown; empty if it is blank. At most `limit` elements, unless the scene is uncut."""
    if not text.strip():
        return EMPTY
    if scene.uncut:
        return el("div", markdown_to_html(text), class_="prose")
    for lines in (MAX_LINES, MAX_LINES // 2, MAX_LINES // 4):
        first, rest = split_head(text, lines)
        html = markdown_to_html(first)
        if html.count("</") <= limit:
            return join((el("div", html, class_="prose"), link_to_more(rest, call, scene, _prose_div)))
    return output_block(text, call, scene)


def _prose_div(text: str) -> Markup:
    return el("div", markdown_to_html(text), class_="prose")


def facts_line(*facts: str | None) -> Markup:
    """Short facts on one line. Empty ones are left out."""
    shortened = [shorten(fact, 300) for fact in facts if fact]
    return el("p", " · ".join(shortened), class_="facts") if shortened else EMPTY


def file_link(path: str, scene: Scene) -> Markup:
    """A path relative to the session's working directory, as a link to the file's page if there is one."""
    if not path:
        return EMPTY
    label = shorten(scene.relative_path(path), 300)
    address = scene.links.file(path)
    return el("a", label, href=address, class_="path") if address is not None else el("span", label, class_="path")


def file_heading(path: str, scene: Scene) -> Markup:
    """The path of a file above what is shown of it; empty without a path."""
    return el("p", file_link(path, scene), class_="file") if path else EMPTY


def folded_block(label: str, *children: Child) -> Markup:
    """A folded block; empty if it has no content."""
    inside = join(children)
    return el("details", el("summary", label), inside, class_="folded") if inside else EMPTY


def bullet_list(rows: Iterable[Markup], class_: str) -> Markup:
    """A list; empty markup if it has no rows."""
    html = join(rows)
    return el("ul", html, class_=class_) if html else EMPTY


def bounded_list(items: Sequence[T], draw: Callable[[T], Markup], class_: str, call: Call, scene: Scene) -> Markup:
    """A list of items, each rendered by `draw`. A long list is cut and links to the rest."""
    if scene.uncut or len(items) <= _MAX_ROWS:
        return bullet_list(map(draw, items), class_)
    rest = items[_MAX_ROWS:]
    more = link_to_rest(f"{len(rest):,} more", call, scene, lambda: bullet_list(map(draw, rest), class_))
    return join((bullet_list(map(draw, items[:_MAX_ROWS]), class_), more))


MAX_LINES, MAX_CHARACTERS = 40, 6000
"""The maximum length of a text, unless the scene is uncut."""
_SPARE_LINES = 4
"""This many lines over the limit are still shown, because a link would take as much space."""

TextRenderer = Callable[[str], Markup]
"""Renders a part of a text."""


def split_head(text: str, limit: int = MAX_LINES, characters: int = MAX_CHARACTERS) -> tuple[str, str]:
    r"""Split a text into its first lines and the rest.

    >>> split_head("1\n2\n3\n4\n5\n6\n7", 2)
    ('1\n2', '3\n4\n5\n6\n7')
    >>> split_head("1\n2\n3", 2)
    ('1\n2\n3', '')
    """
    at = _line_end(text, limit)
    if at is not None and _line_end(text, limit + _SPARE_LINES) is None and len(text) <= characters:
        return text, ""
    end = len(text) if at is None else at
    if end > characters:
        newline = text.rfind("\n", characters // 2, characters)
        if newline < 0:
            return text[:characters], text[characters:]
        end = newline
    return text[:end], text[end + 1 :]


def _line_end(text: str, lines: int) -> int | None:
    """The offset where the given number of lines ends; None if nothing follows."""
    at = -1
    for _ in range(lines):
        at = text.find("\n", at + 1)
        if at < 0:
            return None
    return at if at + 1 < len(text) else None


def cut_text(text: str, call: Call, scene: Scene, draw: TextRenderer) -> Markup:
    """Render the start of a text. The rest is on the call's own page, or folded below."""
    if scene.uncut:
        return draw(text)
    first, rest = split_head(text, MAX_LINES)
    return draw(first) + link_to_more(rest, call, scene, draw)


def link_to_more(rest: str, call: Call, scene: Scene, draw: TextRenderer) -> Markup:
    """A link to the rest of a text, labelled with its length."""
    if not rest:
        return EMPTY
    lines = rest.count("\n") + 1
    label = f"{count(lines, 'more line')}" if lines > 1 else f"{count(len(rest), 'more character')}"
    return link_to_rest(label, call, scene, lambda: draw(rest))


def link_to_rest(label: str, call: Call, scene: Scene, rest: Callable[[], Markup]) -> Markup:
    """A link to the call's own page. If there is none, the rest itself, folded."""
    address = scene.links.call(call.id)
    if address is not None:
        return el("a", label, href=address, class_="more")
    return el("details", el("summary", label), rest(), class_="rest")


_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (-?\d{1,10})\s*")
_OUTCOME_SENTENCES = {
    Outcome.DENIED: "The call was denied and did not run.",
    Outcome.INTERRUPTED: "The call was interrupted.",
    Outcome.PENDING: "The call has no result yet.",
    Outcome.LOST: "The transcript has no result: the conversation continued without it.",
}


def render_failure(call: Call, scene: Scene) -> Markup:
    """The outcome of a failed call, and the error message."""
    return join((outcome_sentence(call), _error_output(call, scene)))


def outcome_sentence(call: Call) -> Markup:
    """The outcome as a sentence; empty for an error, whose message is shown instead."""
    sentence = _OUTCOME_SENTENCES.get(call.outcome, "")
    return el("p", sentence, class_=f"ended {call.outcome}", title=shorten(call.evidence, 200)) if sentence else EMPTY


def _error_output(call: Call, scene: Scene) -> Markup:
    if is_refusal_note(call):
        return EMPTY  # the person's feedback is shown below
    text = strip_program_tags(call.output)
    code = _EXIT_CODE.match(text)
    if code is None:
        return output_block(text, call, scene, class_="output error")
    status = el("p", f"exit code {code[1]}", class_="facts exit")
    return join((status, output_block(text[code.end() :], call, scene, class_="output error")))
