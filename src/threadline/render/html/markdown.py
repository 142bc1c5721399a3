"""Render Markdown as HTML from an allow-list of elements, and link only to safe addresses.

HTML in the text is escaped, and nothing is fetched: an image becomes a link with its label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from threadline.render import shorten, visible
from threadline.render.html.code import highlight
from threadline.render.html.element import el, open_tag

_MAX_MARKDOWN = 100_000
"""A longer text is not parsed but shown as it was written."""
_PHONE_COLUMNS = 36
"""Longer lines of code scroll sideways on a phone."""
_MARKDOWN_SCHEMES = frozenset({"http", "https", "mailto"})
_HIGHEST_HEADING, _LOWEST_HEADING = 3, 6
"""The first heading level of replies, below the page's own heading and those of turns."""

_Rule = Callable[[Sequence[Token], int], str]


def markdown_to_html(text: str) -> Markup:
    """Render Markdown as HTML."""
    plain = visible(text)
    if len(plain) > _MAX_MARKDOWN:
        return el("pre", plain, class_="long")
    parser = _parser()
    tokens = parser.parse(plain)
    _lower_headings(tokens)
    html = parser.renderer.render(tokens, parser.options, {})
    return Markup(html)  # noqa: S704 - HTML in the text is off, every rule below escapes


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 30})
    parser.enable(["table", "strikethrough"])
    for name, rule in _RULES.items():
        parser.add_render_rule(name, _adapt_rule(rule))
    return parser


def _adapt_rule(rule: _Rule) -> Callable[..., str]:
    """Adapt a rule to markdown-it, which also passes the renderer, options and an environment."""
    return lambda _renderer, tokens, at, *_others: rule(tokens, at)


def _fence(tokens: Sequence[Token], at: int) -> str:
    token = tokens[at]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else None
    return el(
        "pre",
        el("code", highlight(token.content, language)),
        data_language=shorten(language or "", 24) or None,
        tabindex=_scroller_tabindex(token.content),
    )


def _code_block(tokens: Sequence[Token], at: int) -> str:
    text = tokens[at].content
    return el("pre", el("code", text), tabindex=_scroller_tabindex(text))


def _scroller_tabindex(code: str) -> int | None:
    """Code that may scroll sideways must be reachable without a mouse."""
    return 0 if any(len(line) > _PHONE_COLUMNS for line in code.splitlines()) else None


def _image(tokens: Sequence[Token], at: int) -> str:
    """The label of an image. Images are never fetched."""
    token = tokens[at]
    label = f"[{''.join(child.content for child in token.children or ()) or 'picture'}]"
    address = _token_attribute(token, "src")
    return (
        el("a", label, **_link_attributes(address)) if _is_safe_scheme(address) else el("span", label, class_="picture")
    )


def _link_open(tokens: Sequence[Token], at: int) -> str:
    """An external link, or plain text if the URL is not safe."""
    address = _token_attribute(tokens[at], "href")
    if _is_safe_scheme(address):
        return open_tag("a", **_link_attributes(address))
    return open_tag("span", class_="link", title=shorten(address, 300))


def _link_close(tokens: Sequence[Token], at: int) -> str:
    """The end of the last open link. Links do not nest."""
    link_open = next(tokens[before] for before in range(at - 1, -1, -1) if tokens[before].type == "link_open")
    return "</a>" if _is_safe_scheme(_token_attribute(link_open, "href")) else "</span>"


def _lower_headings(tokens: Sequence[Token]) -> None:
    """Shift the headings of a text below those of the page, without skipping a level."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    ranks = {tag: rank for rank, tag in enumerate(sorted({token.tag for token in headings}))}
    for token in headings:
        token.tag = f"h{min(_HIGHEST_HEADING + ranks[token.tag], _LOWEST_HEADING)}"


def _cell(tokens: Sequence[Token], at: int) -> str:
    """A table cell. Its alignment is a class, because inline styles are not allowed."""
    token = tokens[at]
    side = _token_attribute(token, "style").removeprefix("text-align:")
    return open_tag(token.tag, class_=side if side in ("right", "center") else None)


_RULES: dict[str, _Rule] = {
    "fence": _fence,
    "code_block": _code_block,
    "image": _image,
    "link_open": _link_open,
    "link_close": _link_close,
    "th_open": _cell,
    "td_open": _cell,
}


def _link_attributes(address: str) -> dict[str, Any]:
    return {"href": address, "target": "_blank", "rel": "noopener noreferrer nofollow"}


def _token_attribute(token: Token, name: str) -> str:
    return str(token.attrs.get(name, ""))


def _is_safe_scheme(address: str) -> bool:
    try:
        return urlsplit(address.strip()).scheme.lower() in _MARKDOWN_SCHEMES
    except ValueError:
        return False


_WEB_SCHEMES = frozenset({"http", "https"})
_MAX_URL = 2000


def is_safe_url(address: str) -> bool:
    """Whether a URL may be a link: http or https, and without hidden characters."""
    if not address.isprintable() or len(address) > _MAX_URL:
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme.lower() in _WEB_SCHEMES and bool(parts.netloc)


def external_link(address: str, label: str = "") -> Markup:
    """An external link, or only its text if the URL is not safe."""
    bare = address.strip()
    text = shorten(label or bare, 300)
    if not is_safe_url(bare):
        return el("span", text, class_="link", title=shorten(bare, 300) if label else None)
    return el("a", text, **_link_attributes(bare))
