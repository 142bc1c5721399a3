"""What a person said when refusing a call: the only words of theirs that stand in a tool's result."""

from __future__ import annotations

from threadline.model.call import Outcome, ResultBlock
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.model.results import typed_result
from threadline.model.text import extract_text
from threadline.thread.outcome import Answer, judge

_SAID = "the user said:"
# A button, not words: the program writes this for whoever chose to talk about the questions first.
_MACHINE_WORDS = "The user wants to clarify these questions."
_NOTE = "\n\nNote: The user's next message may contain a correction or preference."


def feedback(entry: UserEntry | AssistantEntry, text: str) -> str | None:
    """The person's own words in a result that is known to be a refusal. `text` is what the model saw of it."""
    _, said, words = text.partition(_SAID)
    words = "" if words.lstrip().startswith(_MACHINE_WORDS) else words.partition(_NOTE)[0].strip()
    noted = entry.user_feedback if isinstance(entry, UserEntry) else None
    return words if said and words else noted if isinstance(noted, str) and noted else None


def feedback_in(entry: UserEntry, blocks: list[ResultBlock]) -> str | None:
    """The person's own words in a row of results, if any of them is a refusal with words."""
    for block in blocks:
        text = extract_text(block.content)
        if _SAID in text or entry.user_feedback:
            # No tool gives a refusal a shape of its own, so that its name is not needed.
            answer = Answer("", entry, block, typed_result(entry.tool_use_result, ""), text)
            if judge(answer)[0] is Outcome.DENIED and (words := feedback(entry, text)):
                return words
    return None
