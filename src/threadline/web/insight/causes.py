"""Cost by cause: a treemap, the groups, and the list of causes. A session's page and that of a period share it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from markupsafe import Markup
from msgspec import Struct

from threadline import insight
from threadline.model.insight.attribution import CauseKind, CostCause
from threadline.model.ledger import EXACT, NONE, sum_amounts
from threadline.model.text import count, format_amount, format_percent, format_tokens
from threadline.render import shorten
from threadline.render.html import (
    Child,
    Column,
    TableRow,
    Tile,
    draw_treemap,
    el,
    figures_row,
    join,
    number_element,
    render_table,
    share_bar,
)

MAX_GROUPS = 40
"""How many groups the table lists, unless all are asked for."""
_MIN_SHARE = Decimal("0.002")
"""The smallest share of a cause that gets its own rectangle. Smaller ones are added up."""
_MAX_TILES = 100
_MIN_INNER_GROUPS = 2
_MAX_GROUP_TILES = 24
_MAX_LABEL, _MAX_TITLE = 80, 160
_ONE = Decimal(1)
_TENTHS_BELOW = Decimal("0.0995")
_CALL_PREFIX = re.compile(r"(?:Result|Call) of \S+ ?")
_FILE_NAME = re.compile(r"[^/\\]+[/\\]*\Z")
_PATH_END = re.compile(r"(?:[/\\][^/\\]+){1,2}[/\\]*\Z")
KIND_LABELS: dict[str, str] = {
    CauseKind.SYSTEM: "System prompt and tools",
    CauseKind.SUMMARY: "Summaries",
    CauseKind.PROMPT: "Prompts",
    CauseKind.REPLY: "Replies of the model",
    CauseKind.THINKING: "Thinking",
    CauseKind.CALL: "Tool calls",
    CauseKind.RESULT: "Tool results",
    CauseKind.INJECTED: "Injected text",
    CauseKind.IMAGE: "Images",
    CauseKind.UNSEEN: "Not in the transcript",
    CauseKind.SEARCH: "Web search fees",
    CauseKind.AGENT: "Agents without a transcript",
    CauseKind.OTHER: "Other requests",
}
_VERBS = {CauseKind.RESULT: "Result of ", CauseKind.CALL: "Call of ", CauseKind.INJECTED: "Injected: "}
NONE_LABELS = {"tool": "no tool", "file": "no file", "server": "no MCP server", "turn": "no turn"}
_PATH_KEYS = frozenset(("file", "project"))
BY_LABELS = {"server": "MCP server", "command": "shell command"}
"""What pages call the keys of figures whose name says too little."""
_INNER_KEYS = {"kind": "name", "tool": "file", "file": "kind", "server": "tool", "turn": "kind", "agent": "kind"}
"""By which key the causes of a group are grouped again in the treemap."""


class GroupSum(Struct, frozen=True):
    """The causes with one value of a key, added up."""

    key: str
    causes: int
    tokens: int
    amount: Decimal


class InnerGroups(Struct, frozen=True):
    """Groups within groups: by which key, and those of each group, by its key."""

    by: str
    groups: Mapping[str, Sequence[GroupSum]]


class CauseLinks(Struct, frozen=True):
    """Where the causes and groups of a page lead: the entry of a cause, the page of one group.

    `name` may return the name of a group, and `tile` the label of a cause in the treemap.
    """

    cause: Callable[[CostCause], str | None]
    group: Callable[[str], str | None]
    name: Callable[[str, str], str | None] = lambda _by, _key: None
    tile: Callable[[CostCause], str | None] = lambda _cause: None

    def label(self, by: str, key: str) -> str:
        """The name of a group."""
        if (name := self.name(by, key)) is not None:
            return shorten(name, _MAX_LABEL)
        if by == "kind":
            return KIND_LABELS.get(key, key)
        if key == NONE:
            return NONE_LABELS.get(by, "none")
        if by == "turn":
            return f"Turn {key}"
        if by == "agent" and key == "main":
            return "Main agent"
        return path_end(key) if by in _PATH_KEYS else shorten(key, _MAX_LABEL)


def path_end(path: str) -> str:
    """The last parts of a path.

    >>> path_end("/work/app/src/a.py"), path_end("a.py")
    ('…/src/a.py', 'a.py')
    """
    match = _PATH_END.search(path)
    end = match[0] if match is not None else path
    return shorten(end if end == path else f"…{end}", _MAX_LABEL)


def sum_parts(causes: Iterable[CostCause]) -> tuple[Decimal, Decimal, Decimal]:
    """What causes cost to send, to carry, and to write."""
    rows = list(causes)
    return (
        sum_amounts(row.write for row in rows),
        sum_amounts(row.read for row in rows),
        sum_amounts(row.output for row in rows),
    )


def format_share(amount: Decimal, total: Decimal) -> str:
    """A share of the total: `43%`, below ten percent with one decimal; empty if there is no total."""
    if not total:
        return ""
    share = EXACT.divide(amount, total)
    return f"{share:.1%}" if 0 < share < _TENTHS_BELOW else format_percent(share)


def render_parts(total: Decimal, parts: tuple[Decimal, Decimal, Decimal], *more: tuple[str, Child]) -> Markup:
    """The amount, and what of it was paid for sending, carrying and writing."""
    names = (
        ("sent, for the first time or again", "The price of cache writes and of input that is not cached"),
        ("read again from the cache", "The price of reading the cache with every later request"),
        ("written by the model", "The price of the model's output"),
    )
    figures: list[tuple[Child, Child, str | None]] = [(format_amount(total), "total", None)]
    figures += [
        ([format_amount(part), " ", el("small", format_share(part, total))], name, title)
        for part, (name, title) in zip(parts, names, strict=True)
    ]
    figures += [(value, name, None) for name, value in more]
    return figures_row(figures)


def render_treemap(
    groups: Sequence[GroupSum],
    causes: Sequence[CostCause],
    by: str,
    links: CauseLinks,
    inner_groups: InnerGroups | None = None,
) -> Markup:
    """The treemap: groups, and their causes. `causes` may be only the largest; then `inner_groups` are known sums."""
    total = sum_amounts(group.amount for group in groups)
    tiles = list(_group_tiles(groups, causes, by, links, inner_groups))
    largest = f"; the largest is {tiles[0].label} with {tiles[0].text}" if tiles else ""
    description = f"{format_amount(total)} in {count(len(groups), 'group')}{largest}. The tables below list the same."
    return draw_treemap("causes", f"Cost by {BY_LABELS.get(by, by)}", description, tiles)


def _group_tiles(
    groups: Sequence[GroupSum],
    causes: Sequence[CostCause],
    by: str,
    links: CauseLinks,
    inner_groups: InnerGroups | None,
) -> Iterator[Tile]:
    total = sum_amounts(group.amount for group in groups)
    paid = [group for group in groups if group.amount > 0]
    shown = paid if len(paid) <= _MAX_GROUP_TILES else paid[: _MAX_GROUP_TILES - 1]
    key = key_function(by)
    by_amount = sorted(causes, key=lambda cause: -cause.amount)
    is_complete = len(by_amount) == sum(group.causes for group in groups)
    least = max(_MIN_SHARE * total, by_amount[_MAX_TILES].amount if len(by_amount) > _MAX_TILES else Decimal(0))
    for group in shown:
        own = [cause for cause in by_amount if key(cause) == group.key]
        scale = _Scale(links, total, least, links.group(group.key))
        inside = _Inside()
        inner = _INNER_KEYS.get(by) if group.key != NONE else "kind"
        if inner_groups is not None and len(inner_groups.groups.get(group.key, ())) > 1:
            _fill_inner_groups(inside, own, inner_groups.groups[group.key], inner_groups.by, scale)
        else:
            _fill_group(inside, own, inner if is_complete else None, scale)
        yield _group_tile(links.label(by, group.key), group.amount, group.causes, inside, scale)
    rest = paid[len(shown) :]
    if rest:
        amount = sum_amounts(group.amount for group in rest)
        yield _tile(f"{len(rest):,} more", amount, f"{len(rest):,} smaller groups", "#groups", total)


class _Scale(Struct, frozen=True):
    """What all tiles of a group share; `least` is the smallest amount with a tile of its own."""

    links: CauseLinks
    total: Decimal
    least: Decimal
    href: str | None


class _Inside(Struct):
    """The tiles inside a group, and how many causes and how much of the amount they are."""

    tiles: list[Tile] = []
    causes: int = 0
    amount: Decimal = Decimal(0)

    def add(self, tile: Tile, causes: int, amount: Decimal) -> None:
        self.tiles.append(tile)
        self.causes += causes
        self.amount = EXACT.add(self.amount, amount)


def _group_tile(label: str, amount: Decimal, causes: int, inside: _Inside, scale: _Scale) -> Tile:
    """The tile of a group. What the tiles inside leave of the amount is a last tile."""
    rest, smaller = EXACT.subtract(amount, inside.amount), causes - inside.causes
    tiles = inside.tiles if causes > 1 else []
    if tiles and rest > 0 and smaller > 0:
        what = f"{label}, {count(smaller, 'smaller cause')}"
        tiles = [*tiles, _tile(f"{smaller:,} smaller", rest, what, scale.href, scale.total)]
    share = format_share(amount, scale.total)
    description = f"{label}: {format_amount(amount)} ({share}), {count(causes, 'cause')}"
    tiles = sorted(tiles, key=lambda tile: -tile.value)
    return Tile(label, float(amount), format_amount(amount), description, scale.href, tiles)


def _fill_inner_groups(
    inside: _Inside, causes: Sequence[CostCause], groups: Sequence[GroupSum], by: str, scale: _Scale
) -> None:
    """Add tiles for groups whose sums are known, with those of their causes that are listed."""
    key = key_function(by)
    for group in groups:
        if group.amount >= scale.least:
            nested = _Inside()
            _fill_causes(nested, [cause for cause in causes if key(cause) == group.key], scale)
            label = scale.links.label(by, group.key)
            inside.add(_group_tile(label, group.amount, group.causes, nested, scale), group.causes, group.amount)


def _fill_group(inside: _Inside, causes: Sequence[CostCause], inner: str | None, scale: _Scale) -> None:
    """Add tiles for the causes of a group, or for groups of them."""
    groups = _group_by(causes, inner) if inner is not None else {}
    if inner is None or len(groups) < _MIN_INNER_GROUPS:
        _fill_causes(inside, causes, scale)
        return
    for key, group in groups.items():
        amount = sum_amounts(cause.amount for cause in group)
        if amount < scale.least:
            continue
        if len(group) == 1 or key == NONE:
            _fill_causes(inside, group, scale)
            continue
        nested = _Inside()
        _fill_causes(nested, group, scale)
        tile = _group_tile(scale.links.label(inner, key), amount, len(group), nested, scale)
        inside.add(tile, len(group), amount)


def _fill_causes(inside: _Inside, causes: Sequence[CostCause], scale: _Scale) -> None:
    for cause in causes:
        if cause.amount < scale.least or cause.amount <= 0:
            continue
        tile = Tile(
            shorten(scale.links.tile(cause) or short_label(cause), _MAX_LABEL),
            float(cause.amount),
            format_amount(cause.amount),
            describe_cause(cause, scale.total),
            scale.links.cause(cause),
        )
        inside.add(tile, 1, cause.amount)


def key_function(key: str) -> Callable[[CostCause], str]:
    """The function that returns a cause's group; `name` is the tool of a call, or the kind of an injected text."""
    return insight.GROUP_KEYS[key] if key != "name" else lambda cause: cause.name or NONE


def group_causes(causes: Sequence[CostCause], key: str) -> list[GroupSum]:
    """Add up causes by any key of `key_function`, largest amount first."""
    return [
        GroupSum(name, len(group), sum(cause.tokens for cause in group), sum_amounts(cause.amount for cause in group))
        for name, group in _group_by(causes, key).items()
    ]


def inner_key(causes: Sequence[CostCause], by: str) -> str:
    """By which key the causes of one group are grouped: the first that tells them apart."""
    keys = (_INNER_KEYS.get(by, "kind"), "turn", "kind")
    return next((key for key in keys if len(_group_by(causes, key)) > 1), "kind")


def _group_by(causes: Sequence[CostCause], key: str) -> dict[str, list[CostCause]]:
    groups: dict[str, list[CostCause]] = {}
    function = key_function(key)
    for cause in causes:
        groups.setdefault(function(cause), []).append(cause)
    return dict(sorted(groups.items(), key=lambda item: (-sum_amounts(cause.amount for cause in item[1]), item[0])))


def _tile(label: str, amount: Decimal, what: str, href: str | None, total: Decimal) -> Tile:
    description = f"{what}: {format_amount(amount)} ({format_share(amount, total)})"
    return Tile(label, float(amount), format_amount(amount), description, href)


def short_label(cause: CostCause) -> str:
    """What a cause is within its group: the end of a path, a command, or its label."""
    if cause.file and (match := _FILE_NAME.search(cause.file)):
        return shorten(match[0], _MAX_LABEL)
    label = cause.label.removeprefix("Injected: ")
    if cause.kind in (CauseKind.CALL, CauseKind.RESULT):
        label = _CALL_PREFIX.sub("", label, count=1) or label
    if label in (cause.name, cause.kind.capitalize()) and cause.turn is not None:
        return f"turn {cause.turn}"  # the group already says the rest
    return shorten(label, _MAX_LABEL)


def full_label(cause: CostCause) -> str:
    """What a cause is, with the end of its path: labels are cut at their end, where a path says most."""
    if not cause.file or not cause.label.endswith("…"):
        return shorten(cause.label, _MAX_TITLE)
    verb = _VERBS.get(cause.kind)
    return shorten(f"{verb}{cause.name or ''} {path_end(cause.file)}" if verb else cause.label, _MAX_TITLE)


def describe_cause(cause: CostCause, total: Decimal) -> str:
    """A cause in a sentence: what it is, what it cost, its size, and how many requests carried it."""
    noun = "token" if cause.tokens == 1 else "tokens"
    size = f"{'about ' if cause.estimated else ''}{format_tokens(cause.tokens)} {noun}"
    carried = f", carried by {count(cause.requests, 'request')}" if cause.requests else ""
    turn = f", turn {cause.turn}" if cause.turn is not None else ""
    amount = f"{format_amount(cause.amount)} ({format_share(cause.amount, total)})"
    return f"{full_label(cause)}: {amount}, {size}{carried}{turn}"


def render_groups(
    groups: Sequence[GroupSum], by: str, links: CauseLinks, total: Decimal, *, more_url: str | None = None
) -> Markup:
    """The table of groups; `more_url` shows all of them."""
    shown = groups if more_url is None else groups[:MAX_GROUPS]
    rows = [
        TableRow(
            [
                _link(links.group(group.key), links.label(by, group.key), group.key if by in _PATH_KEYS else None),
                format_amount(group.amount),
                [share_bar(EXACT.divide(group.amount, total) if total else _ONE), format_share(group.amount, total)],
                number_element(group.tokens),
                f"{group.causes:,}",
            ],
            item=True,
        )
        for group in shown
    ]
    columns = (
        Column(BY_LABELS.get(by, by).capitalize() if by != "server" else "MCP server", "title"),
        Column("Amount", "number"),
        Column("Share", "share"),
        Column("Tokens", "number", "the size of the causes when they were added"),
        Column("Causes", "number minor"),
    )
    caption = f"By {BY_LABELS.get(by, by)}"
    table = render_table(caption, columns, rows, kind="list", hidden_caption=True)
    left = len(groups) - len(shown)
    note = el("p", el("a", f"Show {left:,} more", href=more_url), class_="note") if left > 0 and more_url else None
    return el("section", el("h2", caption), join((table, note)), class_="block", id="groups")


def render_causes(
    causes: Sequence[CostCause],
    links: CauseLinks,
    total: Decimal,
    *,
    title: str,
    session: Callable[[CostCause], Child] | None = None,
) -> Markup:
    """The table of causes. Pages of several sessions add the session of each."""
    columns = [
        Column("Cause", "title"),
        *([Column("Session", "title minor")] if session is not None else []),
        Column("Amount", "number"),
        Column("Share", "number"),
        Column("Sent", "number minor", "what it cost to send it: for the first time, and again after each cache break"),
        Column("Carried", "number minor", "what it cost to read it from the cache with every later request"),
        Column("Written", "number minor", "what it cost to write it, if the model did"),
        Column("Tokens", "number minor", "its size; ~ marks an estimate"),
        Column("Requests", "number minor", "how many requests carried it"),
        Column("Turn", "number minor"),
    ]
    rows = [TableRow(_cause_cells(cause, links, total, session), item=True) for cause in causes]
    table = render_table(title, columns, rows, kind="list causes", hidden_caption=True)
    return el("section", el("h2", title), table, class_="block")


def _cause_cells(
    cause: CostCause, links: CauseLinks, total: Decimal, session: Callable[[CostCause], Child] | None
) -> list[Child]:
    agent = el("span", "agent", class_="agent-mark", title=shorten(cause.agent, 40)) if cause.agent else None
    size = format_tokens(cause.tokens)
    return [
        [_link(links.cause(cause), full_label(cause), cause.file), agent],
        *([session(cause)] if session is not None else []),
        format_amount(cause.amount),
        format_share(cause.amount, total),
        format_amount(cause.write) if cause.write else "",
        format_amount(cause.read) if cause.read else "",
        format_amount(cause.output) if cause.output else "",
        el("span", f"~{size}" if cause.estimated else size, title=f"{cause.tokens:,}"),
        f"{cause.requests:,}" if cause.requests else "",
        str(cause.turn) if cause.turn is not None else "",
    ]


def _link(href: str | None, label: str, full: str | None = None) -> Child:
    """A label, as a link if it leads somewhere. Its tooltip is the full name, if the label is only a part of it."""
    title = shorten(full, 400) if full and full != label else None
    if href is not None:
        return el("a", label, href=href, title=title)
    return el("span", label, title=title) if title else label


def explain_method(error: float | None, unpriced: int, *, has_estimates: bool) -> Markup:
    """How the figures were computed, and how exact they are."""
    method = (
        "Each piece of the context pays for being sent, for every later request that carried it, and for being sent "
        "again after a cache break. Replies also pay for being written. The amounts add up exactly."
    )
    sentences = [method]
    if has_estimates and error is not None:
        sentences.append(
            "Sizes marked ~ are estimates, scaled to the measured window. They differ from measured sizes by "
            f"{format_percent(error)} on average."
        )
    if unpriced:
        sentences.append(f"{count(unpriced, 'request')} without a known price not included.")
    return el("p", " ".join(sentences), class_="note method")
