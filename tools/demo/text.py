"""Fill templates into pools of text once; everything written later is a slice of a pool.

Filling costs microseconds per line, slicing nanoseconds, so a gigabyte takes seconds. Pools contain no character
beyond U+FFFF, so Python stores them with two bytes per character; emoji are added to single messages instead.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from tools.demo import templates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from tools.demo.projects import Project

_PHRASES = (
    "the {noun} is {state} when a {other} is {then}",
    "the {state} {noun} is {then}",
    "a {noun} without {field} counts as {state}",
    "nothing may {verb} a {state} {noun} before its {other} is {then}",
    "{verb} the {noun} once, not once per {other}",
    "the {field} of a {state} {noun} must stay {then}",
    "only a {state} {noun} has a {field}",
    "it cannot {verb} a {noun} that is {state} or {then}",
)

_ARTICLE = re.compile(r"\ba (?=[aeiou])")
_SLOT = re.compile(r"~([A-Za-z]\d?)~")


# States for use after "a", with the same length: the pools of text, and all that is cut from them, stay the same.
_AFTER_ARTICLE = {
    "absent": "hidden",
    "aligned": "missing",
    "empty": "fresh",
    "equal": "plain",
    "expired": "pending",
    "idle": "busy",
    "inverted": "reversed",
    "old": "new",
    "open": "lost",
    "unknown": "private",
    "unsorted": "deferred",
    "untested": "complete",
    "unused": "locked",
}


def article(word: str) -> str:
    """The indefinite article of a word."""
    return "an" if word[:1] in "aeiou" else "a"


def sentence(text: str) -> str:
    """The text with a capital; `str.capitalize` would spoil the names in it."""
    return text[:1].upper() + text[1:]


class Words:
    """Fills templates for one project: the letter in a slot stands for a kind of word."""

    def __init__(self, project: Project, rng: Random) -> None:
        self._rng = rng
        self._project = project
        self._compiled: dict[str, list[str]] = {}
        pick = self.pick
        number = rng.randrange
        self._makers: dict[str, Callable[[], str]] = {
            "n": lambda: pick(project.nouns),
            "N": lambda: pick(project.nouns).capitalize(),
            "v": lambda: pick(project.verbs),
            "V": lambda: pick(project.verbs).capitalize(),
            "f": lambda: pick(project.fields),
            "F": lambda: pick(project.fields).upper(),
            "a": lambda: pick(templates.STATES),
            "w": lambda: pick(templates.COMMON),
            "W": lambda: pick(templates.COMMON).capitalize(),
            "c": lambda: pick(project.verbs) + pick(templates.COMMON).capitalize() + pick(project.nouns).capitalize(),
            "s": lambda: f"{pick(templates.COMMON)}_{pick(project.nouns)}_{pick(templates.COMMON)}",
            "d": self.phrase,
            "D": lambda: sentence(self.phrase()),
            "i": lambda: str(number(2, 99)),
            "I": lambda: str(number(100, 99_999)),
            "j": lambda: str(number(1, 4)),
            "h": lambda: f"{rng.getrandbits(28):07x}",
            "H": lambda: f"{rng.getrandbits(160):040x}",
            "t": lambda: f"{number(24):02}:{number(60):02}:{number(60):02}",
            "p": self.path,
            "u": lambda: pick(templates.FOREIGN),
            "l": lambda: project.language,
        }

    def pick(self, choices: Sequence[str]) -> str:
        """One of the choices; `Random.choice` takes three times as long."""
        return choices[int(self._rng.random() * len(choices))]

    def phrase(self) -> str:
        """A short clause of random words."""
        pick = self.pick
        project = self._project
        shape = _PHRASES[int(self._rng.random() * len(_PHRASES))]
        phrase = shape.format(
            noun=pick(project.nouns),
            other=pick(project.nouns),
            verb=pick(project.verbs),
            state=pick(templates.STATES),
            then=pick(templates.STATES),
            field=pick(project.fields),
        )
        return _ARTICLE.sub("an ", phrase)

    def path(self) -> str:
        """A file of the project, relative to it."""
        project = self._project
        name = f"{self.pick(project.nouns)}_{self.pick(project.verbs)}"
        return f"{self.pick(project.folders)}/{name}.{project.extension}"

    def fill(self, template: str) -> str:
        """The template with its slots filled; slots with a digit get the same word each time."""
        parts = self._compiled.get(template)
        if parts is None:
            parts = self._compiled[template] = _SLOT.split(template)
        memory: dict[str, str] = {}
        filled = parts[:]
        makers = self._makers
        for at in range(1, len(parts), 2):
            slot = parts[at]
            word = memory.get(slot)
            if word is None:
                word = makers[slot[0]]()
                if slot[0] == "a" and filled[at - 1].endswith(" a "):
                    word = _AFTER_ARTICLE.get(word, word)
                if len(slot) > 1:
                    memory[slot] = word
            filled[at] = word
        return "".join(filled)


class Pool:
    """A long text to take slices from, cut at `joint`."""

    def __init__(self, text: str, joint: str = "\n") -> None:
        self.text = text
        self._joint = joint

    def take(self, rng: Random, length: int, begin: str | None = None) -> str:
        """About so many characters, whole lines or paragraphs; may be as long as one likes.

        `begin` is what it starts after, if not after any joint.
        """
        text = self.text
        joint = self._joint
        if length * 2 > len(text):
            text = text * (length * 2 // len(text) + 1)
        begin = begin or joint
        start = text.find(begin, int(rng.random() * (len(text) - length))) + len(begin)
        end = text.rfind(joint, start, start + length)
        if end <= start:
            end = text.find(joint, start)
        return text[start:end] if end > start else text[: text.find(joint)]


class Pools:
    """The pools of one project."""

    def __init__(self, project: Project, rng: Random, size: int) -> None:
        self.words = Words(project, rng)
        self.code = self._pool(templates.BY_LANGUAGE[project.language], size)
        self.tests = self._pool((templates.TESTS[project.language],), size // 2)
        self.git = self._pool(templates.DIFF, size // 2)
        self.listing = self._pool(templates.LISTING, size // 4)
        self.search = self._pool(templates.SEARCH, size // 4)
        self.logs = self._pool(templates.LOGS, size // 2)
        self.web = self._pool(templates.WEB, size // 4)
        self.narration = self._pool(templates.NARRATION, size // 8, "\n\n")
        self.reply = self._pool(templates.REPLY, size // 2, "\n\n")
        self.thought = self._pool(templates.THOUGHT, size // 2, "\n\n")
        self.noise = base64.b64encode(rng.randbytes(size // 2)).decode()

    def _pool(self, templates: Sequence[str], size: int, joint: str = "\n") -> Pool:
        pieces = []
        length = 0
        while length < size:
            piece = self.words.fill(self.words.pick(templates))
            pieces.append(piece)
            length += len(piece)
        return Pool("".join(pieces), joint)

    def named(self, name: str) -> Pool:
        """The pool of that name."""
        pool: Pool = getattr(self, name)
        return pool

    def signature(self, rng: Random, length: int) -> str:
        """Base64, as signatures and pictures are."""
        noise = self.noise
        if length * 2 > len(noise):
            noise = noise * (length * 2 // len(noise) + 1)
        start = int(rng.random() * (len(noise) - length))
        return noise[start : start + length]
