"""The title and tag of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

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
from threadline.model.titles import (
    NO_LINKS,
    SummaryLinks,
    SummaryRef,
    Title,
    TitleSource,
    choose_summary,
    choose_title,
    is_fragment,
)
from threadline.thread.acts import find_acts

_PROMPT_KINDS = frozenset({ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING})
_BATCH = 200
"""How many entries are read at a time: the first prompt is usually among the first."""


def session_title(entries: Iterable[Entry], acts: Iterable[Act], links: SummaryLinks = NO_LINKS) -> Title:
    """Return the title: the last custom one, else a model's, else the summary, the first prompt, the last prompt.

    A summary titles the session that has the entry it names, in whatever transcript the summary is; `links` are those
    of other transcripts. If a transcript has no conversation, its own last summary is all there is. If nobody typed a
    prompt, the title is the heading of the plan that the session carries out.
    """
    entries = list(entries)
    titles, act_titles = _title_candidates(entries, acts)
    title = choose_title(titles, act_titles)
    if not can_summary_replace(title.source):
        return title
    spoken = [entry for entry in entries if isinstance(entry, ChainEntry) and not entry.is_agent]
    own = _own_summaries(entries)
    if spoken:
        positions: dict[str, int] = {entry.uuid: at for at, entry in enumerate(spoken) if entry.uuid is not None}
        text = choose_summary((*own, *links.summaries), positions, spoken[0].line.transcript)
    else:
        text = own[-1].text if own else None
    return choose_title({**titles, TitleSource.SUMMARY.value: text}, act_titles) if text else title


def title_from_parts(entries: Iterable[Entry], titles: Iterable[Entry]) -> Title:
    """Return the title of a transcript, reading as little of it as possible. Summaries that name an entry are ignored.

    `entries` are all its entries: they are read up to the first prompt. `titles` are those with titles, last prompts
    and summaries, found by their bytes.
    """
    rest = iter(entries)
    title_entries = list(titles)
    candidates: list[Entry] = []
    is_spoken = False
    while batch := list(islice(rest, _BATCH)):
        candidates += (entry for entry in batch if _can_give_title(entry))
        is_spoken = is_spoken or any(isinstance(entry, ChainEntry) and not entry.is_agent for entry in batch)
        entry_titles, act_titles = _title_candidates([*candidates, *title_entries], find_acts(candidates))
        title = choose_title(entry_titles, act_titles)
        if "prompt" in act_titles or not can_summary_replace(title.source):
            return title
    entry_titles, act_titles = _title_candidates([*candidates, *title_entries], find_acts(candidates))
    own = _own_summaries([*candidates, *title_entries])
    if own and not is_spoken:  # its summary is all there is
        entry_titles[TitleSource.SUMMARY.value] = own[-1].text
    return choose_title(entry_titles, act_titles)


def can_summary_replace(source: str) -> bool:
    """Whether a summary titles a session that would otherwise have a title of this source."""
    return source not in {TitleSource.CUSTOM, TitleSource.AI}


def _title_candidates(entries: list[Entry], acts: Iterable[Act]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the titles in entries by source, and the first texts of acts by rank."""
    act_titles: dict[str, str] = {}
    for act in acts:
        for rank, text in title_words(act):
            act_titles.setdefault(rank, text)
    return dict(filter(None, map(title_in_entry, entries))), act_titles


def _own_summaries(entries: list[Entry]) -> list[SummaryRef]:
    return [
        SummaryRef(entry.leaf_uuid or "", entry.summary, entry.line.transcript, entry.line.offset)
        for entry in entries
        if isinstance(entry, SummaryEntry) and entry.summary and entry.summary.strip()
    ]


def _can_give_title(entry: Entry) -> bool:
    """Whether a title can come from an entry: bookkeeping, and what a person typed in the main conversation."""
    if not isinstance(entry, ChainEntry):
        return True
    is_prompt = isinstance(entry, UserEntry) and entry.tool_use_result is None
    return not entry.is_agent and (is_prompt or isinstance(entry, AttachmentEntry))


def title_in_entry(entry: Entry) -> tuple[str, str] | None:
    """Return the source and text of the title in an entry. The last one of each source counts.

    A summary that names an entry titles the session that has the entry: see `session_title`.
    """
    match entry:
        case CustomTitleEntry(custom_title=str(text)) if text.strip():
            return TitleSource.CUSTOM.value, text
        case AiTitleEntry(ai_title=str(text)) if text.strip():
            return TitleSource.AI.value, text
        case LastPromptEntry(last_prompt=str(text)) if text.strip():
            return TitleSource.LAST_PROMPT.value, text
        case SummaryEntry(summary=str(text), leaf_uuid=None) if text.strip():
            return TitleSource.SUMMARY.value, text
        case _:
            return None


def title_words(act: Act) -> Iterator[tuple[str, str]]:
    """Yield the text that an act can give to a title, with its rank. The first act of each rank counts.

    A slash command with a task (`/review the login page`) is a prompt. A short prompt is a fragment.
    """
    if not act.text:
        return
    if act.kind is ActKind.PLAN:
        yield "plan", _plan_heading(act.text)
    elif act.kind in _PROMPT_KINDS:
        yield "fragment" if is_fragment(act.text) else "prompt", act.text
    elif act.kind is ActKind.COMMAND:
        task = act.text.partition(" ")[2].strip()
        yield "prompt" if " " in task and not is_fragment(task) else "command", act.text
    elif act.kind is ActKind.SHELL:
        yield "command", act.text


def _plan_heading(plan: str) -> str:
    """Return the first heading of a plan, or its first line."""
    lines = [line.strip() for line in plan.splitlines() if line.strip()]
    headings = (line.lstrip("#").strip() for line in lines if line.startswith("#"))
    return next(filter(None, headings), lines[0] if lines else "")


def session_tag(entries: Iterable[Entry]) -> str | None:
    """Return the tag that was set last. An empty one removes it."""
    tags = [entry.tag for entry in entries if isinstance(entry, TagEntry)]
    return tags[-1] or None if tags else None
