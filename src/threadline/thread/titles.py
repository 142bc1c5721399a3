"""What a session is called, in the official order."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.model.act import Act, ActKind
from threadline.model.entries import AiTitleEntry, CustomTitleEntry, Entry, LastPromptEntry, SummaryEntry, TagEntry
from threadline.model.session import Title, TitleSource

_LONGEST = 200


def title(entries: Iterable[Entry], acts: Iterable[Act]) -> Title:
    """The title: the last that a person gave, else a model, else the last prompt, the summary, the first prompt."""
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
    first = first_prompt(acts)
    if first:
        last[TitleSource.FIRST_PROMPT] = first
    source = next((source for source in TitleSource if source in last), TitleSource.NONE)
    return Title(_short(last.get(source, "")), source)


def first_prompt(acts: Iterable[Act]) -> str:
    """The first prompt; where there is none, the first command."""
    listed = list(acts)
    prompts = (act.text for act in listed if act.kind in (ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING))
    commands = (act.text for act in listed if act.kind in (ActKind.COMMAND, ActKind.SHELL))
    return next(prompts, None) or next(commands, "")


def tag(entries: Iterable[Entry]) -> str | None:
    """The tag that was set last; an empty one takes it away."""
    tags = [entry.tag for entry in entries if isinstance(entry, TagEntry)]
    return tags[-1] or None if tags else None


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= _LONGEST else folded[: _LONGEST - 1] + "…"
