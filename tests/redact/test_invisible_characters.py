"""What stands unseen within a credential does not hide it: colours, colours within colours, spaces without room."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redact.credentials import formed_value, password, seeded
from tests.redact.test_formats import CONTEXTS
from tests.subtests import for_each

from threadline.redact import Redactor, Settings
from threadline.redact.layers import text_layers
from threadline.redact.redactor import leftovers
from threadline.redact.tokens import FORMATS

SEAMS = (
    *("\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b[38;5;196m", "\x1b[38:2::1:2:3m", "\x1b[?25l", "\x1b[2 q", "\x1b[3~"),
    *("\x1b]8;;x\x07", "\x1b(B", "\x9b1m", "\\u001b[1m", "\\x1b[0m", "\\033[0m", "\u200b", "\ufeff", "\\u200b"),
    *("\x08", "\0"),
)
UNSEEN = re.compile("|".join(map(re.escape, sorted(SEAMS, key=len, reverse=True))))


def bare(text: str) -> str:
    """A text without all seams that the tests put into it."""
    while (less := UNSEEN.sub("", text)) != text:
        text = less
    return text


@given(st.data())
def test_seams_within_seams_hide_nothing(data: st.DataObject) -> None:
    """Sequences put at any places of a credential, within one another too, are taken out with it."""
    value = formed_value(data.draw(st.sampled_from(FORMATS)), seeded(data.draw(st.integers(0, 2**32))))
    text = value
    drawn = data.draw(st.lists(st.sampled_from(SEAMS), min_size=1, max_size=12))
    # Escaped ones first, and none behind a backslash: the backslash of one would be taken for the end of another.
    for seam in sorted(drawn, key=lambda seam: not seam.startswith("\\")):
        at = data.draw(st.integers(0, len(text)))
        at -= text[at - 1 : at] == "\\"
        text = text[:at] + seam + text[at:]
    redactor = Redactor()
    redacted = redactor.redact(f"see {text} there")
    assert value not in bare(redacted)
    assert "<secret-" in redacted
    assert leftovers(redactor, redacted) == []
    assert leftovers(redactor, bare(redacted)) == []


@pytest.mark.sample(9)
@pytest.mark.parametrize("outer", CONTEXTS)
@pytest.mark.parametrize("inner", ["in colours", "in colours in JSON", "with a space that takes no room"])
def test_colours_within_any_surroundings(outer: str, inner: str) -> None:
    """A coloured credential in any surroundings, colours among them, is taken out."""
    for at, rule in enumerate(FORMATS[::9]):
        value = formed_value(rule, seeded(at))
        redactor = Redactor()
        redacted = redactor.redact(CONTEXTS[outer](CONTEXTS[inner](value)))
        assert value not in bare(redacted), rule.kind
        assert leftovers(redactor, bare(redacted)) == [], rule.kind


def test_what_is_known_is_found_in_colours() -> None:
    """A password that was told elsewhere, a word and an own pattern are found where colours part them."""
    secret = password(seeded(3))
    redactor = Redactor(Settings(words=("Heron",), patterns={"ticket": "TICK-[0-9]{3}"}))
    redactor.learn_value({"password": secret})
    text = f"it was {secret[:3]}\x1b[1m{secret[3:]}; He\x1b\x1b[0m[31mron; TI\u200bCK-1\x1b[0m23"
    assert redactor.redact(text) == "it was <secret-1>; <word-1>; <ticket-1>"


def test_the_same_secret_in_colours_has_the_same_placeholder() -> None:
    """What is met in colours first is known without them, too, and by the same number."""
    redactor = Redactor()
    assert redactor.redact("DB_PASSWORD=kV7\x1b[1mq9Zt2w") == "DB_PASSWORD=<secret-1>"
    assert redactor.redact("it was kV7q9Zt2w then") == "it was <secret-1> then"


@given(st.text(alphabet="ab\x1b[]0;m\x07\\u1x3e\u200b", max_size=80))
def test_places_are_those_of_the_text(text: str) -> None:
    """Each character of a text without seams is the one that stands where it is said to."""
    for without in text_layers(text):
        for at, letter in enumerate(without.text):
            start, end = without.where(at, at + 1)
            assert text[start:end] == letter


MARKS: dict[str, Callable[[str, str], str]] = {
    "an escape": lambda head, tail: f"{head[:-1]}\\{head[-1]}{tail}" if head[-1] in "_-" else f"{head}\\{tail}",
    "an escape in JSON": lambda head, tail: f"{head[:-1]}\\\\{head[-1]}{tail}",
    "a number": lambda head, tail: f"{head[:-1]}&#{ord(head[-1])};{tail}",
    "a number in hex": lambda head, tail: f"{head[:-1]}&#x{ord(head[-1]):x};{tail}",
    "strong half": lambda head, tail: f"**{head}{tail[:4]}**{tail[4:]}",
    "an emphasised half": lambda head, tail: f"{head}*{tail}*",
    "code": lambda head, tail: f"`{head}`{tail}",
    "an element": lambda head, tail: f"<b>{head}</b>{tail}",
}


@for_each("mark", MARKS)
@for_each("kind", ["github-token", "gitlab-token", "stripe-live-key", "npm-token"])
def test_marks_of_markdown_hide_nothing(kind: str, mark: str) -> None:
    """Escapes, entities and emphasis within a credential hide it neither in a line of its own nor in a long one."""
    (rule,) = (rule for rule in FORMATS if rule.kind == kind)
    value = formed_value(rule, seeded(2))
    head, tail = value[: len(rule.anchor)], value[len(rule.anchor) :]
    for around in ("a line\n{}\nmore *of* it\n", "it is {}, he said", "word " * 3000 + "{} " + "word " * 3000):
        redactor = Redactor()
        redacted = redactor.redact(around.format(MARKS[mark](head, tail)))
        assert "<secret-" in redacted
        assert tail[-8:] not in redacted
        assert leftovers(redactor, redacted) == []


def test_names_in_marks_tell() -> None:
    """A known word and a user are found where marks part them, and what is around them stays."""
    redactor = Redactor(Settings(words=("Heron",)))
    assert (
        redactor.redact("one\nthe Her**onry** and\nHer&#111;n x\nlast") == "one\nthe <word-1>ry** and\n<word-1> x\nlast"
    )
