"""Searches that share a sign or a word with others find what each would find by itself."""

from __future__ import annotations

import re
import string

import pytest
from tests.redact.credentials import seeded

from threadline.redact import find_spans_in_bytes
from threadline.redact.prefilter import MAX_SIGNS, match_at_places, match_at_sign
from threadline.redact.scanner import find_rare_marks

PASSWORD = "q7" + "".join(seeded(3).choices(string.ascii_letters + string.digits, k=9))


def kinds(text: str) -> dict[str, str]:
    """What was found, by its kind."""
    view = text.encode()
    return {span.kind: view[span.start : span.end].decode() for span in find_spans_in_bytes(view)}


@pytest.mark.parametrize(("pattern", "back"), [(rb"~[a-c~]{2,4}", 0), (rb"[ab]~[a-c~]{2,4}", 1), (rb"~", 0)])
@pytest.mark.parametrize("length", [40, 40 * MAX_SIGNS])
def test_a_sign_finds_what_the_pattern_finds(pattern: bytes, back: int, length: int) -> None:
    """A search by a sign gives what `finditer` gives, where the sign is rare and where it is everywhere."""
    for seed in range(20 if length < MAX_SIGNS else 1):
        view = bytes(seeded(seed).choices(b"abc~ ", k=length))
        whole = re.compile(pattern)
        expected = [found.span() for found in whole.finditer(view)]
        assert [found.span() for found in match_at_sign(whole, b"~", view, back)] == expected


def test_places_find_what_the_pattern_finds() -> None:
    """Tried at the places of its first letter, a pattern gives what `finditer` gives: none within another."""
    whole = re.compile(rb"a[ab]{1,3}")
    for seed in range(50):
        view = bytes(seeded(seed).choices(b"abc", k=60))
        places = [at for at, byte in enumerate(view) if byte == b"a"[0]]
        assert [place.span() for place in match_at_places(whole, view, places)] == [
            one.span() for one in whole.finditer(view)
        ]


@pytest.mark.parametrize(
    ("sign", "text", "kind"),
    [
        ("@", f"postgres://app:{PASSWORD}@db/main", "url-password"),
        ("&", f"/callback?x=1&code={PASSWORD}", "url-parameter"),
        ("?", f"/callback?code={PASSWORD}", "url-parameter"),
        ("~", f"abc8Q~{PASSWORD * 3}", "azure-client-secret"),
    ],
)
def test_behind_many_of_its_signs_a_secret_is_found(sign: str, text: str, kind: str) -> None:
    """Where a window has so many of a sign that it is not searched by it any more, what stands behind is found."""
    for many in (0, MAX_SIGNS - 1, MAX_SIGNS, MAX_SIGNS + 1):
        assert kind in kinds(f"{sign} " * many + text), many


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        # A name that takes the rare word with it, on its way to the value.
        (f"key_cookie: sid={PASSWORD}", "cookie", f"sid={PASSWORD}"),
        (f"key-hooks = x\nhttps://hooks.zapier.com/hooks/catch/{PASSWORD}", "webhook", PASSWORD),
        (f"machine h login me password {PASSWORD}", "password", PASSWORD),
        (f"machine h login me\\npassword {PASSWORD}", "password", PASSWORD),
        (f"echo me:{PASSWORD} | chpasswd", "password", PASSWORD),
        (f"echo me:{PASSWORD} | chpasswd: done", "password", PASSWORD),
        (f"echo {PASSWORD} | sudo -S ls", "password", PASSWORD),
        (f"ConvertTo-SecureString -String '{PASSWORD}'", "password", PASSWORD),
        (f"db:5432:main:me:{PASSWORD}", "password", PASSWORD),
        (f"curl --proxy-user me:{PASSWORD} x", "curl-password", PASSWORD),
        (f"mysql -p{PASSWORD} --api-key {PASSWORD}8", "assigned-secret", f"{PASSWORD}8"),
        ("Private-Lines: 2\nAAAA\nBBBB\n", "private-key", "Private-Lines: 2\nAAAA\nBBBB"),
    ],
)
def test_a_rare_word_is_seen_wherever_it_stands(text: str, kind: str, value: str) -> None:
    """What tells of a search that is seldom needed is seen: behind a name, in one, in capitals, at either end."""
    assert kinds(text).get(kind) == value
    assert kinds(f"words before {text}").get(kind) == value


def test_a_glance_sees_each_dash_for_all_that_ask() -> None:
    """A dash that may begin an option and may end the beginning of a form is told to both."""
    seen = find_rare_marks(b"glpat--token \\n")
    assert seen.options == [5]
    assert seen.dashes == [5]
