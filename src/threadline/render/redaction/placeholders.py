"""Placeholders: what stands in place of a thing, the same wherever that thing stood."""

from __future__ import annotations

from collections import Counter

from threadline.render.redaction.finder import PERSONAL

HOME = "<home>"


class Placeholders:
    """Numbers things by family in the order in which they are first seen."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._last: Counter[str] = Counter()

    def of(self, family: str, value: str) -> str:
        """The placeholder of a value."""
        known = self._given.get((family, value))
        if known is not None:
            return known
        self._last[family] += 1
        number = self._last[family]
        made = HOME if family == "home" and number == 1 else f"<{family}-{number}>"
        self._given[family, value] = made
        return made

    def same(self, family: str, value: str, as_of: str) -> None:
        """Let a value have the placeholder of another one."""
        self._given.setdefault((family, value), self.of(family, as_of))


def family_of(kind: str) -> str:
    """What a kind is called in a placeholder: all that is secret is `secret`."""
    return kind if kind in PERSONAL or kind == "word" else "secret"
