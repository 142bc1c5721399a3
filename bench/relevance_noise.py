"""Noise around the written sessions: long tool outputs of their words, and prompts that mention a few of them.

A real home has such noise: a long log contains any three words somewhere, and most sessions are about something else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.relevance_sessions import Script
from tests.transcripts import Part, Pen, call, meta, prompt, reply, transcript, write

SESSIONS = 80
_LAST = datetime(2026, 11, 14, 18, tzinfo=UTC)
_DAYS = 340
_TEXT_MARKS = frozenset("=><")
_WORD = re.compile("[a-z]{3,}")
_PROMPTS = (
    "run it again and show me all of it",
    "what else is in there?",
    "go on",
    "show me the log of today",
    "look through the notes for {} and {}, I may have missed something",
    "later we have to talk about {}, not now",
    "list everything that has to do with {} and leave out {}",
)
_REPLIES = (
    "Nothing stands out in it.",
    "The output is long; the part about {} looks as before.",
    "I looked at all of it. {} and {} come up a few times, and nothing is wrong with them.",
    "Done. There is one line about {} that I would read again.",
)
_COMMANDS = ("cat notes/all.txt", "git log -p", "journalctl --no-pager", "tail -n 400 build.log", "make report")


def write_noise(home: Path, scripts: Iterable[Script], sessions: int = SESSIONS) -> None:
    """Write that many sessions of noise beside the others. Each run writes the same ones."""
    listed = list(scripts)
    texts = [text for script in listed for what, text in script.lines if what in _TEXT_MARKS]
    words = [word for text in texts for word in _WORD.findall(text.lower())]
    for number in range(sessions):
        rng = Random(number)
        project = rng.choice(listed).project
        session = f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}"
        pen = Pen(session, start=_LAST - timedelta(days=rng.random() * _DAYS), cwd=project)
        parts = [part for _ in range(rng.randrange(4, 12)) for part in _turn(rng, texts, words)]
        folder = re.sub("[^A-Za-z0-9]", "-", project)
        titled = meta("ai-title", aiTitle=f"Notes about {rng.choice(words)} and more")
        write(home / "projects" / folder / f"{session}.jsonl", *transcript(*parts, titled, pen=pen))


def _turn(rng: Random, texts: list[str], words: list[str]) -> list[Part]:
    few = rng.choices(words, k=2)
    printed = "\n".join(_line(rng, texts, words) for _ in range(rng.randrange(5, 90)))
    return [
        prompt(rng.choice(_PROMPTS).format(*few)),
        call("Bash", rng.choice(_COMMANDS), result=printed),
        reply(rng.choice(_REPLIES).format(*few)),
    ]


def _line(rng: Random, texts: list[str], words: list[str]) -> str:
    if rng.random() < 0.1:  # noqa: PLR2004 - a line in ten is a quotation
        return rng.choice(texts)
    return f"{rng.getrandbits(28):07x} {' '.join(rng.choices(words, k=rng.randrange(4, 12)))}"
