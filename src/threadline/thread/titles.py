"""What a session is called, in the official order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from threadline.model.act import Act, ActKind
from threadline.model.entries import AiTitleEntry, CustomTitleEntry, Entry, LastPromptEntry, SummaryEntry, TagEntry
from threadline.model.session import Title, TitleSource

_LONGEST = 200
_WORDS = {
    "prompt": (TitleSource.FIRST_PROMPT, (ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING)),
    "plan": (TitleSource.PLAN, (ActKind.PLAN,)),
    "command": (TitleSource.FIRST_PROMPT, (ActKind.COMMAND, ActKind.SHELL)),
}


def title(entries: Iterable[Entry], acts: Iterable[Act]) -> Title:
    """The title: the last that a person gave, else a model, else the last prompt, the summary, the first prompt.

    Where nobody typed a prompt, it is the heading of the plan that the session carries out.
    """
    given = dict(filter(None, map(given_title, entries)))
    words: dict[str, str] = {}
    for act in acts:
        for rank, text in first_words(act):
            words.setdefault(rank, text)
    return named(given, words)


def given_title(entry: Entry) -> tuple[str, str] | None:
    """The title that an entry gives, and its source; the last of each source counts."""
    match entry:
        case CustomTitleEntry(custom_title=str(text)) if text.strip():
            return TitleSource.CUSTOM.value, text
        case AiTitleEntry(ai_title=str(text)) if text.strip():
            return TitleSource.AI.value, text
        case LastPromptEntry(last_prompt=str(text)) if text.strip():
            return TitleSource.LAST_PROMPT.value, text
        case SummaryEntry(summary=str(text)) if text.strip():
            return TitleSource.SUMMARY.value, text
        case _:
            return None


def first_words(act: Act) -> Iterator[tuple[str, str]]:
    """The words that an act can give to a title, by their rank; the first act of each rank counts."""
    for rank, (source, kinds) in _WORDS.items():
        if act.kind in kinds and act.text:
            yield rank, _heading(act.text) if source is TitleSource.PLAN else act.text


def named(given: Mapping[str, str], words: Mapping[str, str]) -> Title:
    """The title, of those that entries give by source, and of the first words that acts do by rank."""
    titles = dict(given)
    # The first prompt; where there is none, the first plan, and where there is no plan either, the first command.
    for rank, (source, _kinds) in _WORDS.items():
        if rank in words:
            titles[source.value] = words[rank]
            break
    source = next((source for source in TitleSource if source.value in titles), TitleSource.NONE)
    return Title(short(titles.get(source.value, "")), source)


def _heading(plan: str) -> str:
    """The first heading of a plan; without one, its first line."""
    lines = [line.strip() for line in plan.splitlines() if line.strip()]
    headings = (line.lstrip("#").strip() for line in lines if line.startswith("#"))
    return next(filter(None, headings), lines[0] if lines else "")


def tag(entries: Iterable[Entry]) -> str | None:
    """The tag that was set last; an empty one takes it away."""
    tags = [entry.tag for entry in entries if isinstance(entry, TagEntry)]
    return tags[-1] or None if tags else None


def short(text: str) -> str:
    """A text as a title: in one line, and not too long."""
    folded = " ".join(text.split())
    return folded if len(folded) <= _LONGEST else folded[: _LONGEST - 1] + "…"
