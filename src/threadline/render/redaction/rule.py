"""A rule: how credentials of one kind can be told from other text."""

from __future__ import annotations

from msgspec import Struct


class Rule(Struct, frozen=True):
    """One kind of credential that its form gives away.

    `pattern` is the whole form, as a regular expression. `anchor` is how a word of it begins: at its start, or up to
    `before` characters behind that. `alone` asks that no letter or digit stand before it: for anchors that are common
    in words. Where no anchor is given, `runs` is how long its longest run of letters, digits, `_` and `-` is.
    """

    kind: str
    what: str
    anchor: str
    pattern: str
    before: int = 0
    alone: bool = False
    runs: tuple[int, int] | None = None


class Service(Struct, frozen=True):
    """A service whose credentials have no form of their own, but are named after it where they are set.

    `names` are how the service is written in a key, in lower case, without what stands between its words; `pattern`
    is the whole value.
    """

    kind: str
    what: str
    names: tuple[str, ...]
    pattern: str
