"""Forms: how else an English word may end, for a person who remembers the word and not its ending."""

from __future__ import annotations

_SHORTEST = 4
_STEM = 3
_VOWELS = frozenset("aeiou")
_ENDINGS = ("", "e", "s", "es", "ed", "ing")


def forms(word: str) -> tuple[str, ...]:
    """Other forms of a word; none where it is no plain word. Not all of them need be words.

    >>> forms("crashes"), forms("src/app.py")
    (('crash', 'crashe', 'crashed', 'crashing', 'crashs'), ())
    """
    plain = word.lower()
    if len(plain) < _SHORTEST or not (plain.isascii() and plain.isalpha()):
        return ()
    stem = _stem(plain)
    made = {stem + ending for ending in _ENDINGS if len(stem + ending) >= _SHORTEST}
    if stem.endswith("y"):
        made |= {f"{stem[:-1]}ies", f"{stem[:-1]}ied"}
    if stem[-1] == stem[-2] not in _VOWELS:
        made |= {stem[:-1], f"{stem[:-1]}s"}
    elif stem[-1] not in _VOWELS and stem[-2] in _VOWELS:
        made |= {f"{stem}{stem[-1]}ed", f"{stem}{stem[-1]}ing"}
    return tuple(sorted(made - {plain}))


def _stem(word: str) -> str:
    """What is left of a word without its ending."""
    if word.endswith(("ies", "ied")) and len(word) > _STEM + 2:
        return f"{word[:-3]}y"
    for ending in ("ing", "es", "ed", "s", "e"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _STEM and not word.endswith("ss"):
            return stem
    return word
