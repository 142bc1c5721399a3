"""The title and tag of a session, by the same precedence as Claude Code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadline.model.entries import (
    AiTitleEntry,
    AttachmentEntry,
    ChainEntry,
    CustomTitleEntry,
    Entry,
    LastPromptEntry,
    SummaryEntry,
    TagEntry,
    UserEntry,
)
from threadline.model.session import Act, ActKind
from threadline.model.text import Title, TitleSource, choose_title
from threadline.thread.acts import find_acts

_KINDS_BY_RANK = {
    "prompt": (ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING),
    "plan": (ActKind.PLAN,),
    "command": (ActKind.COMMAND, ActKind.SHELL),
}


def session_title(entries: Iterable[Entry], acts: Iterable[Act]) -> Title:
    """Return the title: the last custom one, else a model's, else the last prompt, the summary, the first prompt.

    If nobody typed a prompt, it is the heading of the plan that the session carries out.
    """
    titles = dict(filter(None, map(title_in_entry, entries)))
    prompt_titles: dict[str, str] = {}
    for act in acts:
        for rank, text in title_words(act):
            prompt_titles.setdefault(rank, text)
    return choose_title(titles, prompt_titles)


def title_from_parts(head: Iterable[Entry], titles: Iterable[Entry]) -> Title:
    """Return the title of a transcript that was read only in part.

    `head` are its first entries, in which the first prompt is found. `titles` are the entries with titles, last prompts
    and summaries, which may be anywhere in the file.
    """
    candidates = [entry for entry in head if can_give_title(entry)]
    return session_title([*candidates, *titles], find_acts(candidates))


def can_give_title(entry: Entry) -> bool:
    """Whether a title can come from an entry: bookkeeping, and what a person typed in the main conversation."""
    if not isinstance(entry, ChainEntry):
        return True
    is_prompt = isinstance(entry, UserEntry) and entry.tool_use_result is None
    return not entry.is_agent and (is_prompt or isinstance(entry, AttachmentEntry))


def title_in_entry(entry: Entry) -> tuple[str, str] | None:
    """Return the source and text of the title in an entry. The last one of each source counts."""
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


def title_words(act: Act) -> Iterator[tuple[str, str]]:
    """Yield the texts that an act can give to a title, by rank. The first act of each rank counts."""
    for rank, kinds in _KINDS_BY_RANK.items():
        if act.kind in kinds and act.text:
            yield rank, _plan_heading(act.text) if rank == "plan" else act.text


def _plan_heading(plan: str) -> str:
    """Return the first heading of a plan, or its first line."""
    lines = [line.strip() for line in plan.splitlines() if line.strip()]
    headings = (line.lstrip("#").strip() for line in lines if line.startswith("#"))
    return next(filter(None, headings), lines[0] if lines else "")


def session_tag(entries: Iterable[Entry]) -> str | None:
    """Return the tag that was set last. An empty one removes it."""
    tags = [entry.tag for entry in entries if isinstance(entry, TagEntry)]
    return tags[-1] or None if tags else None
