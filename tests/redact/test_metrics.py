"""At the level `metrics`, texts keep what says what they are, and lose all other words."""

from __future__ import annotations

import re

import pytest

from threadline.redact import Level, SessionRedactor, Settings

_REFUSED = "The user doesn't want to proceed with this tool use."
_CLARIFY = "The user wants to clarify these questions."
_NOTE = "\n\nNote: The user's next message may contain a correction or preference."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \n ", ""),
        ("words", "#"),
        ("<system-reminder>a</system-reminder>\n", "<system-reminder>#</system-reminder>"),
        ("<system-reminder>a</system-reminder> b", "<system-reminder>#</system-reminder>#"),
        ("<system-reminder>a", "<system-reminder>#"),
        ("  [Request interrupted by user for tool use]", "[Request interrupted by user for tool use]"),
        ("PreToolUse:my-name hook error: a", "PreToolUse:Tool hook error:#"),
        ("Hook PreToolUse:my-name denied it", "Hook PreToolUse:Tool denied #"),
        ("name operation blocked by hook: a", "Tool operation blocked by hook#"),
        (f"{_REFUSED} So the user said:\na", f"{_REFUSED}#the user said:#"),
        (
            f"{_REFUSED} So the user said: {_CLARIFY} a",
            f"{_REFUSED}#the user said:{_CLARIFY}#",
        ),
        (
            f"{_REFUSED} So the user said:\n{_NOTE} a",
            f"{_REFUSED}#the user said:{_NOTE}#",
        ),
        ("He said: [Request interrupted by user]", "#"),
    ],
)
def test_only_words_are_replaced(text: str, expected: str) -> None:
    """Sentences and tags of Claude Code's own stay, and everything else is replaced, also names of tools in them."""
    record = {"type": "user", "message": {"role": "user", "content": text}}
    redacted = SessionRedactor(Settings(level=Level.METRICS)).redact(record)
    assert re.sub("<[0-9]+ characters>", "#", redacted["message"]["content"]) == expected
