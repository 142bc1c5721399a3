"""Noise for the relevance benchmark: long tool output, and prompts that mention the words of other sessions in passing.

Real homes are like that: a long log contains any three words somewhere, and most sessions are about something else.
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
_SPOKEN = frozenset("=><")
"""The kinds of script lines whose words are reused: titles, prompts and replies."""
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
    """Write sessions of noise next to the others, the same in each run."""
    all_scripts = list(scripts)
    texts = [text for script in all_scripts for kind, text in script.lines if kind in _SPOKEN]
    words = [word for text in texts for word in _WORD.findall(text.lower())]
    for number in range(sessions):
        rng = Random(number)
        project = rng.choice(all_scripts).project
        session = f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}"
        pen = Pen(session, start=_LAST - timedelta(days=rng.random() * _DAYS), cwd=project)
        parts = [part for _ in range(rng.randrange(4, 12)) for part in _turn(rng, texts, words)]
        folder = re.sub("[^A-Za-z0-9]", "-", project)
        title = meta("ai-title", aiTitle=f"Notes about {rng.choice(words)} and more")
        write(home / "projects" / folder / f"{session}.jsonl", *transcript(*parts, title, pen=pen))


def _turn(rng: Random, texts: list[str], words: list[str]) -> list[Part]:
    topics = rng.choices(words, k=2)
    output = "\n".join(_line(rng, texts, words) for _ in range(rng.randrange(5, 90)))
    return [
        prompt(rng.choice(_PROMPTS).format(*topics)),
        call("Bash", rng.choice(_COMMANDS), result=output),
        reply(rng.choice(_REPLIES).format(*topics)),
    ]


def _line(rng: Random, texts: list[str], words: list[str]) -> str:
    if rng.random() < 0.1:  # noqa: PLR2004 - a line in ten is a quotation
        return rng.choice(texts)
    return f"{rng.getrandbits(28):07x} {' '.join(rng.choices(words, k=rng.randrange(4, 12)))}"
