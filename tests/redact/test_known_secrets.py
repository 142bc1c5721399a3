"""Known secrets and words are found wherever they are, however many there are and however long the text is."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from tests.profiles import scale_examples
from tests.redact.credentials import seeded

from threadline.redact import Redactor, Span
from threadline.redact.known_secrets import KnownSecrets
from threadline.redact.views import TextView

VALUE = "q7" + "".join(seeded(5).choices("abcdefghijkmnpqrstuvwxyz23456789", k=20))


def test_many_secrets_are_found_as_the_longest_of_them() -> None:
    """With so many forms that one pattern of their beginnings is used, each place has the longest form that fits."""
    for seed in range(scale_examples(20)):
        random = seeded(seed)
        values = ["".join(random.choices("aB1-_/x", k=random.randrange(4, 60))) for _ in range(8)]
        values += [value[: random.randrange(4, 40)] + random.choice(("", "zz")) for value in values]
        known = KnownSecrets()
        for value in values:
            known.add(value)
        text = " ".join(random.choice(values)[: random.randrange(4, 80)] + random.choice("- \n") for _ in range(80))
        pattern = re.compile("|".join(sorted(map(re.escape, known._secrets), key=len, reverse=True)))
        expected, at = [], 0
        while match := pattern.search(text, at):
            is_counted = known._is_occurrence(text, match.start(), match[0])
            expected += [match.span()] if is_counted else []
            at = match.end() if is_counted else match.start() + 1
        assert [(start, end) for start, end, _secret in known.secrets_in(text)] == expected, seed


@pytest.mark.parametrize("others", [0, 3])
def test_a_secret_with_half_of_a_surrogate_pair(others: int) -> None:
    """JSON may contain half of a pair, also in a secret, which is replaced like any other."""
    secret = f"{VALUE}\ud83dx"
    redactor = Redactor()
    for number in range(others):
        redactor.learn(f"API_PASSWORD={VALUE[::-1]}{number}")
    redactor.learn(f"DB_PASSWORD={secret}")
    assert redactor.redact(f"it is {secret}.") == f"it is <secret-{others + 1}>."
    assert VALUE not in redactor.redact(json.dumps({"value": secret}))
    assert VALUE not in redactor.redact(f"/?p={quote(secret, errors='surrogatepass')}&x")


@pytest.mark.parametrize("before", [0, 1, 500, 511, 512, 513, 1023, 1024, 5000])
@pytest.mark.parametrize("filler", ["-", "a", "é", "- \n"])
def test_a_secret_with_signs_between_its_letters_is_located(before: int, filler: str) -> None:
    """The position of a broken secret is exact after any number of letters and signs."""
    known = KnownSecrets()
    known.add(VALUE)
    text = (filler * before)[:before] + "." + "-".join(VALUE) + "." + filler * 600
    ((start, end, secret),) = known.broken_secrets_in(text)
    assert (text[start:end], secret) == ("-".join(VALUE), VALUE)


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("Kim", "KIM, kim and Kimono", ["KIM", "kim"]),
        ("Kim", "KIM und Käse", ["KIM"]),
        ("Kim", "\u212aim und Käse", ["\u212aim"]),  # the sign of Kelvin is a `k` in lower case
        ("Kim", "KIM \u0130", ["KIM"]),  # which becomes two characters in lower case
        ("Ünal", "ÜNAL und ünal", ["ÜNAL", "ünal"]),
        ("a?b", "A?B and aéb", ["A?B"]),
    ],
)
def test_words_are_found_in_any_case(word: str, text: str, found: list[str]) -> None:
    """Words are found in any case, also in texts and with letters that are not ASCII."""
    known = KnownSecrets()
    known.add_word(word, "user", whole_word=True)
    assert [text[start:end] for start, end, _word, _kind in known.words_in(text)] == found


def test_a_long_text_is_searched_again_only_near_replacements(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second search of a whole long text is needed only if something is left near a replacement."""
    words = "some plain words of a text\n" * 20_000
    searched: list[int] = []
    find = Redactor.find_spans

    def find_spans(self: Redactor, text: str, views: list[TextView] | None = None) -> list[Span]:
        searched.append(len(text))
        return find(self, text, views)

    monkeypatch.setattr(Redactor, "find_spans", find_spans)
    text = f"{words}DB_PASSWORD={VALUE}\n{words}"
    assert Redactor().redact(text) == text.replace(VALUE, "<secret-1>")
    assert [size > len(words) for size in searched] == [True, False]
