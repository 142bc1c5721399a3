"""Forms: how else an English word may end, for a person who remembers the word and not its ending."""

from __future__ import annotations

_SHORTEST = 4
_STEM = 3
_VOWELS = frozenset("aeiou")
_ENDINGS = ("", "e", "s", "es", "ed", "ing")


def forms(word: str) -> tuple[str, ...]:
    """Other forms of a word; none where it is no plain word. Not all of them need be words.

    >>> "leaks" in forms("leak"), "crash" in forms("crashes"), "charge" in forms("charged"), forms("src/app.py")
    (True, True, True, ())
    """
    plain = word.lower()
    if len(plain) < _SHORTEST or not (plain.isascii() and plain.isalpha()):
        return ()
    made = {stem + ending for stem in _stems(plain) for ending in _ENDINGS}
    made |= {f"{stem[:-1]}{ending}" for stem in _stems(plain) if stem.endswith("y") for ending in ("ies", "ied")}
    return tuple(sorted(one for one in made - {plain} if len(one) >= _STEM))


def _stems(word: str) -> set[str]:
    """What is left without an ending; a letter that was doubled for it is single again, or doubled."""
    found = {word}
    if word.endswith(("ies", "ied")):
        found.add(f"{word[:-3]}y")
    for ending in ("ing", "ed", "es", "s", "e"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _STEM and not word.endswith("ss"):
            found.add(stem)
            if stem[-1] == stem[-2] and stem[-1] not in _VOWELS:
                found.add(stem[:-1])
    if word[-1] not in _VOWELS and word[-2] in _VOWELS and word[-3] not in _VOWELS:
        found.add(word + word[-1])
    return found
