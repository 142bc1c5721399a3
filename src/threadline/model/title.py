"""Title: what a session is called, in the official order of where that comes from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

_LONGEST = 200


class TitleSource(StrEnum):
    """Where a session's title comes from, best first: the official order, and then the plan that began it."""

    CUSTOM = "custom-title"
    AI = "ai-title"
    LAST_PROMPT = "last-prompt"
    SUMMARY = "summary"
    FIRST_PROMPT = "first-prompt"
    PLAN = "plan"
    NONE = "none"


class Title(Struct, frozen=True):
    """What a session is called, and why."""

    text: str = ""
    source: TitleSource = TitleSource.NONE

    def __str__(self) -> str:
        return self.text


# The first prompt; where there is none, the first plan, and where there is no plan either, the first command.
_RANKS = {"prompt": TitleSource.FIRST_PROMPT, "plan": TitleSource.PLAN, "command": TitleSource.FIRST_PROMPT}


def named(given: Mapping[str, str], words: Mapping[str, str]) -> Title:
    """The title, of those that entries give by source, and of the first words that acts do by rank."""
    titles = dict(given)
    for rank, source in _RANKS.items():
        if rank in words:
            titles[source.value] = words[rank]
            break
    source = next((source for source in TitleSource if source.value in titles), TitleSource.NONE)
    return Title(short(titles.get(source.value, "")), source)


def short(text: str) -> str:
    """A text as a title: in one line, and not too long."""
    folded = " ".join(text.split())
    return folded if len(folded) <= _LONGEST else folded[: _LONGEST - 1] + "…"
