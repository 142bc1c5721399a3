"""Invisible text inside a credential does not hide it: colour codes, nested colour codes, zero-width spaces, markup."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redact.credentials import password, seeded, token_value
from tests.redact.test_formats import CONTEXTS
from tests.subtests import for_each

from threadline.redact import Redactor, Settings
from threadline.redact.rules.formats import FORMATS
from threadline.redact.views import text_views

INVISIBLE = (
    *("\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b[38;5;196m", "\x1b[38:2::1:2:3m", "\x1b[?25l", "\x1b[2 q", "\x1b[3~"),
    *("\x1b]8;;x\x07", "\x1b(B", "\x9b1m", "\\u001b[1m", "\\x1b[0m", "\\033[0m", "\u200b", "\ufeff", "\\u200b"),
    *("\x08", "\0"),
)
_INVISIBLE_TEXT = re.compile("|".join(map(re.escape, sorted(INVISIBLE, key=len, reverse=True))))


def visible(text: str) -> str:
    """A text without the invisible sequences that the tests insert."""
    while (stripped := _INVISIBLE_TEXT.sub("", text)) != text:
        text = stripped
    return text


@given(st.data())
def test_nested_invisible_sequences_hide_nothing(data: st.DataObject) -> None:
    """Sequences inserted anywhere in a credential, even inside one another, are redacted with it.

    Formats whose values must look random are left out, because not every generated value does.
    """
    rule = data.draw(st.sampled_from([rule for rule in FORMATS if rule.anchor and rule.checksum != "random"]))
    value = token_value(rule, seeded(data.draw(st.integers(0, 2**32))))
    text = value
    sequences = data.draw(st.lists(st.sampled_from(INVISIBLE), min_size=1, max_size=12))
    # Escaped ones first, and none after a backslash: the backslash of one would be taken for the end of another.
    for sequence in sorted(sequences, key=lambda sequence: not sequence.startswith("\\")):
        at = data.draw(st.integers(0, len(text)))
        at -= text[at - 1 : at] == "\\"
        text = text[:at] + sequence + text[at:]
    redactor = Redactor()
    redacted = redactor.redact(f"see {text} there")
    assert value not in visible(redacted)
    assert "<secret-" in redacted
    assert redactor.check(redacted) == []
    assert redactor.check(visible(redacted)) == []


@pytest.mark.sample(9)
@pytest.mark.parametrize("outer", CONTEXTS)
@pytest.mark.parametrize("inner", ["in colours", "in colours in JSON", "with a space that takes no room"])
def test_redacts_coloured_credentials_in_any_context(outer: str, inner: str) -> None:
    """A coloured credential is redacted in any context, including a coloured one."""
    for at, rule in enumerate(FORMATS[::9]):
        value = token_value(rule, seeded(at))
        redactor = Redactor()
        redacted = redactor.redact(CONTEXTS[outer](CONTEXTS[inner](value)))
        assert value not in visible(redacted), rule.kind
        assert redactor.check(visible(redacted)) == [], rule.kind


def test_redacts_known_words_split_by_colours() -> None:
    """A known password, a word and a custom pattern are found even if colours split them."""
    secret = password(seeded(3))
    redactor = Redactor(Settings(words=("Heron",), patterns={"ticket": "TICK-[0-9]{3}"}))
    redactor.learn_value({"password": secret})
    text = f"it was {secret[:3]}\x1b[1m{secret[3:]}; He\x1b\x1b[0m[31mron; TI\u200bCK-1\x1b[0m23"
    assert redactor.redact(text) == "it was <secret-1>; <word-1>; <ticket-1>"


def test_a_coloured_secret_has_the_same_placeholder() -> None:
    """A secret that is first seen in colours is known without them, with the same number."""
    redactor = Redactor()
    assert redactor.redact("DB_PASSWORD=kV7\x1b[1mq9Zt2w") == "DB_PASSWORD=<secret-1>"
    assert redactor.redact("it was kV7q9Zt2w then") == "it was <secret-1> then"


@given(st.text(alphabet="ab\x1b[]0;m\x07\\u1x3e\u200b", max_size=80))
def test_views_map_positions_back_to_the_text(text: str) -> None:
    """Each character of a view maps to the same character in the original text."""
    for view in text_views(text):
        for at, letter in enumerate(view.text):
            start, end = view.where(at, at + 1)
            assert text[start:end] == letter


MARKUP: dict[str, Callable[[str, str], str]] = {
    "an escape": lambda head, tail: f"{head[:-1]}\\{head[-1]}{tail}" if head[-1] in "_-" else f"{head}\\{tail}",
    "an escape in JSON": lambda head, tail: f"{head[:-1]}\\\\{head[-1]}{tail}",
    "a number": lambda head, tail: f"{head[:-1]}&#{ord(head[-1])};{tail}",
    "a number in hex": lambda head, tail: f"{head[:-1]}&#x{ord(head[-1]):x};{tail}",
    "strong half": lambda head, tail: f"**{head}{tail[:4]}**{tail[4:]}",
    "an emphasised half": lambda head, tail: f"{head}*{tail}*",
    "code": lambda head, tail: f"`{head}`{tail}",
    "an element": lambda head, tail: f"<b>{head}</b>{tail}",
}


@for_each("markup", MARKUP)
@for_each("kind", ["github-token", "gitlab-token", "stripe-live-key", "npm-token"])
def test_markup_hides_nothing(kind: str, markup: str) -> None:
    """Escapes, entities and emphasis inside a credential do not hide it, neither on a short line nor on a long one."""
    (rule,) = (rule for rule in FORMATS if rule.kind == kind)
    value = token_value(rule, seeded(2))
    head, tail = value[: len(rule.anchor)], value[len(rule.anchor) :]
    for around in ("a line\n{}\nmore *of* it\n", "it is {}, he said", "word " * 3000 + "{} " + "word " * 3000):
        redactor = Redactor()
        redacted = redactor.redact(around.format(MARKUP[markup](head, tail)))
        assert "<secret-" in redacted
        assert tail[-8:] not in redacted
        assert redactor.check(redacted) == []


def test_redacts_words_split_by_markup() -> None:
    """A known word is found even if markup splits it, and the text around it stays."""
    redactor = Redactor(Settings(words=("Heron",)))
    assert (
        redactor.redact("one\nthe Her**onry** and\nHer&#111;n x\nlast") == "one\nthe <word-1>ry** and\n<word-1> x\nlast"
    )
