"""Building blocks of tool views: cut text, code, prose, facts, file links, lists, and how a call failed.

A page that is not whole shows the first part of a long text and links to the call's own page for the rest. In a file,
which has no such page, the rest is folded below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from markupsafe import Markup
from msgspec import Struct

from threadline.model.calls import Call, Outcome
from threadline.model.text import count
from threadline.render import shorten, visible
from threadline.render.html.code import highlight_within
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.markdown import markdown_to_html
from threadline.render.html.scene import Scene

CallRenderer = Callable[[Call, Scene], Markup]
"""Draws a call, or a part of it."""


class ToolView(Struct, frozen=True):
    """`came` draws a call that has a result of its own, `tried` what one was to do that has none."""

    finished: CallRenderer
    unfinished: CallRenderer | None = None


T = TypeVar("T")

_MAX_ROWS = 30
_MAX_ELEMENTS = 110
"""A text in Markdown that is not whole has no more; a table or code of many colours is cut earlier than its lines."""


def output_block(text: str, made: Call, scene: Scene, class_: str = "output") -> Markup:
    """What was printed, as it was; nothing where it is blank."""
    if not text.strip():
        return EMPTY
    return cut_text(text.strip("\n"), made, scene, lambda part: el("pre", visible(part), class_=class_))


def code_block(text: str, language: str | None, made: Call, scene: Scene, class_: str = "code") -> Markup:
    """Code in colours; nothing where it is blank."""
    if not text.strip():
        return EMPTY
    bound = {} if not scene.whole else {"most": None}
    return cut_text(
        text.strip("\n"), made, scene, lambda part: el("pre", highlight_within(part, language, **bound), class_=class_)
    )


def prose_block(text: str, made: Call, scene: Scene, most: int = _MAX_ELEMENTS) -> Markup:
    """Markdown with at most so many elements where the page is not whole; nothing where it is blank."""
    if not text.strip():
        return EMPTY
    if scene.whole:
        return el("div", markdown_to_html(text), class_="prose")
    for lines in (MAX_LINES, MAX_LINES // 2, MAX_LINES // 4):
        first, rest = split_head(text, lines)
        drawn = markdown_to_html(first)
        if drawn.count("</") <= most:
            return join((el("div", drawn, class_="prose"), link_to_more(rest, made, scene, _prose_div)))
    return output_block(text, made, scene)


def _prose_div(text: str) -> Markup:
    return el("div", markdown_to_html(text), class_="prose")


def facts_line(*said: str | None) -> Markup:
    """What is known in a few words each, on one line."""
    words = [shorten(word, 300) for word in said if word]
    return el("p", " · ".join(words), class_="facts") if words else EMPTY


def file_link(path: str, scene: Scene) -> Markup:
    """A file as seen from where the session worked, which leads to its page."""
    if not path:
        return EMPTY
    label = shorten(scene.near(path), 300)
    there = scene.links.file(path)
    return el("a", label, href=there, class_="path") if there is not None else el("span", label, class_="path")


def folded_block(label: str, *children: Child) -> Markup:
    """Something that is not wanted at first; nothing where there is nothing."""
    inside = join(children)
    return el("details", el("summary", label), inside, class_="asked") if inside else EMPTY


def bullet_list(rows: Iterable[Markup], class_: str) -> Markup:
    """A list; nothing where it is empty."""
    drawn = join(rows)
    return el("ul", drawn, class_=class_) if drawn else EMPTY


def bounded_list(items: Sequence[T], draw: Callable[[T], Markup], class_: str, made: Call, scene: Scene) -> Markup:
    """A list of what `draw` makes of each item, as far as the page has room, and a way to the rest."""
    if scene.whole or len(items) <= _MAX_ROWS:
        return bullet_list(map(draw, items), class_)
    rest = items[_MAX_ROWS:]
    more_ = link_to_rest(f"{len(rest):,} more", made, scene, lambda: bullet_list(map(draw, rest), class_))
    return join((bullet_list(map(draw, items[:_MAX_ROWS]), class_), more_))


MAX_LINES, MAX_CHARACTERS = 40, 6000
"""What a page that is not whole shows of a text."""
_SPARE_LINES = 4
"""So few lines over the bound are shown too: a link would take as much room."""

TextRenderer = Callable[[str], Markup]
"""Draws a piece of a text."""


def split_head(text: str, most: int = MAX_LINES, characters: int = MAX_CHARACTERS) -> tuple[str, str]:
    r"""The first lines of a text, and the rest.

    >>> head("1\n2\n3\n4\n5\n6\n7", 2)
    ('1\n2', '3\n4\n5\n6\n7')
    >>> head("1\n2\n3", 2)
    ('1\n2\n3', '')
    """
    at = _line_end(text, most)
    if at is not None and _line_end(text, most + _SPARE_LINES) is None and len(text) <= characters:
        return text, ""
    end = len(text) if at is None else at
    if end > characters:
        newline = text.rfind("\n", characters // 2, characters)
        if newline < 0:
            return text[:characters], text[characters:]
        end = newline
    return text[:end], text[end + 1 :]


def _line_end(text: str, lines: int) -> int | None:
    """Where so many lines end; None where there are not more."""
    at = -1
    for _ in range(lines):
        at = text.find("\n", at + 1)
        if at < 0:
            return None
    return at if at + 1 < len(text) else None


def cut_text(text: str, made: Call, scene: Scene, draw: TextRenderer, most: int = MAX_LINES) -> Markup:
    """A text drawn as far as the page has room, and where the rest is: on the call's own page, or folded below."""
    if scene.whole:
        return draw(text)
    first, rest = split_head(text, most)
    return draw(first) + link_to_more(rest, made, scene, draw)


def link_to_more(rest: str, made: Call, scene: Scene, draw: TextRenderer) -> Markup:
    """What of a text was not shown."""
    if not rest:
        return EMPTY
    lines = rest.count("\n") + 1
    said = f"{count(lines, 'more line')}" if lines > 1 else f"{count(len(rest), 'more character')}"
    return link_to_rest(said, made, scene, lambda: draw(rest))


def link_to_rest(said: str, made: Call, scene: Scene, rest: Callable[[], Markup]) -> Markup:
    """A link to the call's own page; where there is none, the rest itself, folded."""
    there = scene.links.call(made.id)
    if there is not None:
        return el("a", said, href=there, class_="more")
    return el("details", el("summary", said), rest(), class_="rest")


_PROGRAM_TAGS = re.compile(r"</?(?:tool_use_error|error|persisted-output)>")
_REFUSAL = "The user doesn't want to proceed with this tool use."
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (-?\d{1,10})\s*")
_OUTCOME_SENTENCES = {
    Outcome.DENIED: "It was refused, and not done.",
    Outcome.INTERRUPTED: "It was interrupted.",
    Outcome.PENDING: "It has no result yet.",
    Outcome.LOST: "Its result was not kept: the conversation went on without it.",
}


def render_failure(made: Call, scene: Scene) -> Markup:
    """How it ended, and the words of the error."""
    return join((outcome_sentence(made), _error_output(made, scene)))


def outcome_sentence(made: Call) -> Markup:
    """How it ended, in a sentence; an error says it itself."""
    said = _OUTCOME_SENTENCES.get(made.outcome, "")
    return el("p", said, class_=f"ended {made.outcome}", title=shorten(made.evidence, 200)) if said else EMPTY


def _error_output(made: Call, scene: Scene) -> Markup:
    text = strip_program_tags(made.output)
    if made.outcome is Outcome.DENIED and (text.startswith(_REFUSAL) or made.feedback):
        return EMPTY  # what the program tells the model; the person's own words stand below
    code = _EXIT_CODE.match(text)
    if code is None:
        return output_block(text, made, scene, class_="output error")
    status = el("p", f"exit code {code[1]}", class_="facts exit")
    return join((status, output_block(text[code.end() :], made, scene, class_="output error")))


def strip_program_tags(text: str) -> str:
    """What the model saw, without the tags that the program puts around it."""
    return _PROGRAM_TAGS.sub("", text).strip("\n")
