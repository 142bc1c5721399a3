"""What a session is called, in the official order."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.model.act import Act, ActKind
from threadline.model.entries import AiTitleEntry, CustomTitleEntry, Entry, LastPromptEntry, SummaryEntry, TagEntry
from threadline.model.session import Title, TitleSource

_LONGEST = 200
_WORDS = (
    (TitleSource.FIRST_PROMPT, (ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING)),
    (TitleSource.PLAN, (ActKind.PLAN,)),
    (TitleSource.FIRST_PROMPT, (ActKind.COMMAND, ActKind.SHELL)),
)


def title(entries: Iterable[Entry], acts: Iterable[Act]) -> Title:
    """The title: the last that a person gave, else a model, else the last prompt, the summary, the first prompt.

    Where nobody typed a prompt, it is the heading of the plan that the session carries out.
    """
    last: dict[TitleSource, str] = {}
    for entry in entries:
        match entry:
            case CustomTitleEntry(custom_title=str(text)) if text.strip():
                last[TitleSource.CUSTOM] = text
            case AiTitleEntry(ai_title=str(text)) if text.strip():
                last[TitleSource.AI] = text
            case LastPromptEntry(last_prompt=str(text)) if text.strip():
                last[TitleSource.LAST_PROMPT] = text
            case SummaryEntry(summary=str(text)) if text.strip():
                last[TitleSource.SUMMARY] = text
    last |= _first_words(list(acts))
    source = next((source for source in TitleSource if source in last), TitleSource.NONE)
    return Title(_short(last.get(source, "")), source)


def _first_words(acts: list[Act]) -> dict[TitleSource, str]:
    """The first prompt; where there is none, the first plan, and where there is no plan either, the first command."""
    for source, kinds in _WORDS:
        text = next((act.text for act in acts if act.kind in kinds and act.text), None)
        if text is not None:
            return {source: _heading(text) if source is TitleSource.PLAN else text}
    return {}


def _heading(plan: str) -> str:
    """The first heading of a plan; without one, its first line."""
    lines = [line.strip() for line in plan.splitlines() if line.strip()]
    headings = (line.lstrip("#").strip() for line in lines if line.startswith("#"))
    return next(filter(None, headings), lines[0] if lines else "")


def tag(entries: Iterable[Entry]) -> str | None:
    """The tag that was set last; an empty one takes it away."""
    tags = [entry.tag for entry in entries if isinstance(entry, TagEntry)]
    return tags[-1] or None if tags else None


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= _LONGEST else folded[: _LONGEST - 1] + "…"
