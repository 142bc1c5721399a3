"""Searches that share a character or a word with others find what each would find by itself."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator

import pytest
from tests.redact.credentials import seeded, token_value
from tests.redact.planted import cases

from threadline.redact import find_spans, find_spans_in_bytes
from threadline.redact.rules import prefilter, variables
from threadline.redact.rules.formats import FORMATS
from threadline.redact.rules.prefilter import MAX_SIGNS, match_at_places, match_at_sign
from threadline.redact.scanner import find_rare_marks

MARGINS = ("   ", "\n   ", "\\n    ", ";\n   ", "+\n\t ", "\n" + 40 * " ", "\\n\t  ")
PASSWORD = "q7" + "".join(seeded(3).choices(string.ascii_letters + string.digits, k=9))


def values_by_kind(text: str) -> dict[str, str]:
    """The text of each finding, by its kind."""
    view = text.encode()
    return {span.kind: view[span.start : span.end].decode() for span in find_spans_in_bytes(view)}


@pytest.mark.parametrize(("pattern", "back"), [(rb"~[a-c~]{2,4}", 0), (rb"[ab]~[a-c~]{2,4}", 1), (rb"~", 0)])
@pytest.mark.parametrize("length", [40, 40 * MAX_SIGNS])
def test_match_at_sign_agrees_with_finditer(pattern: bytes, back: int, length: int) -> None:
    """A search by a sign gives what `finditer` gives, both if the sign is rare and if it is everywhere."""
    for seed in range(20 if length < MAX_SIGNS else 1):
        view = bytes(seeded(seed).choices(b"abc~ ", k=length))
        regex = re.compile(pattern)
        expected = [match.span() for match in regex.finditer(view)]
        assert [match.span() for match in match_at_sign(regex, b"~", view, back)] == expected


def test_match_at_places_agrees_with_finditer() -> None:
    """A pattern tried at each place of its first letter gives what `finditer` gives, without overlapping matches."""
    regex = re.compile(rb"a[ab]{1,3}")
    for seed in range(50):
        view = bytes(seeded(seed).choices(b"abc", k=60))
        places = [at for at, byte in enumerate(view) if byte == b"a"[0]]
        assert [match.span() for match in match_at_places(regex, view, places)] == [
            match.span() for match in regex.finditer(view)
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
def test_finds_a_secret_after_many_of_its_signs(sign: str, text: str, kind: str) -> None:
    """A secret is found even after so many of its signs that the window is no longer searched by that sign."""
    for count in (0, MAX_SIGNS - 1, MAX_SIGNS, MAX_SIGNS + 1):
        assert kind in values_by_kind(f"{sign} " * count + text), count


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        # The name before the value contains the rare word.
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
def test_finds_rare_words_at_every_position(text: str, kind: str, value: str) -> None:
    """A word that enables a rarely needed search is noticed after a name, inside one, in capitals and at either end."""
    assert values_by_kind(text).get(kind) == value
    assert values_by_kind(f"words before {text}").get(kind) == value


def test_find_rare_marks_reports_a_dash_to_every_search() -> None:
    """A dash that may start an option and may also end the prefix of a token is reported for both."""
    marks = find_rare_marks(text := b"glpat--token \\n", text)
    assert marks.long_options == [5]
    assert marks.dashes == [5]


def texts_of(value: object) -> Iterator[str]:
    """All texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_of(item)


def test_gates_change_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """With RE2, which skips rules that a text cannot match, every planted secret is found as without it."""
    pytest.importorskip("re2")
    texts = sorted({text for case in cases() for text in texts_of(case.rows)})
    files = [json.dumps(case.rows).encode() for case in cases()]
    with_gates = [sorted(find_spans(text)) for text in texts], [sorted(find_spans_in_bytes(file)) for file in files]
    monkeypatch.setattr(prefilter, "_gate_matcher", lambda: None)
    without = [sorted(find_spans(text)) for text in texts], [sorted(find_spans_in_bytes(file)) for file in files]
    assert with_gates == without


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("/home/annika/app", "home"),
        ("C:\\Users\\annika\\app", "home"),
        ("-Users-annika-app", "user"),
        ("ann%40corp.io", "email"),
        ("10.20.30.40", "ip"),
        ("bx7.internal", "host"),
        ("fe80::1c2d:3e4f:5a6b", "ip"),
        ("2a01:4f8:c0c:1234::1", "ip"),
        ("SUDO_USER=annika", "user"),
        ("GIT_AUTHOR_NAME=annika", "user"),
        ("HOSTNAME=bx7", "host"),
        ("COMPUTERNAME=bx7", "host"),
        ("uid=1000(annika)", "user"),
        ("annika:x:1000:1000:", "user"),
        ("sudo -u annika", "user"),
        ("useradd -m annika", "user"),
        ("drwxr-xr-x  2 annika staff", "user"),
        ("Static hostname: bx7", "host"),
        ("Linux bx7 6.1.0-13-amd64 #1 SMP", "host"),
        ("-rwxr-xr-x@ 1 annika  staff", "user"),
        ("user.name 'Annika Berg'", "name"),
        ("annika:x:1000:1000:Annika Berg,,,:/", "name"),
        ("(Annika Berg 2026-03-01 10:11:12 +0100 12)", "name"),
        ("(Annika Berg 2026-03-01 10:11:12 -0700  120)", "name"),
        ("(Annika Berg 2026-03-01 10:11:12 +1030 3)", "name"),
        ("(Annika Berg 2026-03-01 10:11:12 -1000 3)", "name"),
        ("bx7.localdomain", "host"),
        ("bx7.lan.", "host"),
        ("bx7.corp-", "host"),
        ("Log in as annika / QuietHorse77", "password"),
        ("senha: Cavalo77Quieto", "password"),
    ],
)
def test_gates_open_for_everything_that_has_one(text: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With RE2, everything of people and machines is found as without it, alone and in a text."""
    pytest.importorskip("re2")
    texts = (text, f"words ({text}) words", f"words\n{text}\nwords", f'"{text}"')
    with_gates = [find_spans(part) for part in texts]
    monkeypatch.setattr(prefilter, "_gate_matcher", lambda: None)
    assert with_gates == [find_spans(part) for part in texts]
    assert kind in {span.kind for span in with_gates[2]}


@pytest.mark.parametrize("end", ['"', "'", ";", ",", " ", "\n", "\v", "\\n", '\\"', "(", "", ":"])
@pytest.mark.parametrize("length", [0, 1, 8])
def test_the_gate_of_joined_variables_opens_for_every_anchor(end: str, length: int) -> None:
    """With RE2, a variable whose value starts with any anchor is searched for its other half, unless it is a name."""
    pytest.importorskip("re2")
    for anchor in sorted(variables._ANCHORS):
        text = b"T=" + anchor + b"kR7x_pQ2"[:length] + end.encode() + b" T"
        is_value = any(not variables._PLAIN_NAME.fullmatch(match[1]) for match in variables._FIRST_HALF.finditer(text))
        assert not is_value or variables._GATE in prefilter.open_gates(text), text


@pytest.mark.parametrize("number", range(len(MARGINS)))
def test_finds_a_token_broken_before_a_margin_also_if_its_rest_was_seen(number: int) -> None:
    """What was remembered of a run by itself does not change what it is after the margin of a line."""
    for seed, rule in enumerate(FORMATS, 300_000 + number * len(FORMATS)):
        token = token_value(rule, seeded(seed))
        first, rest = token[:14], token[14:]
        text = f"value {first}{MARGINS[number]}{rest} end".encode()
        before = find_spans_in_bytes(text)
        find_spans_in_bytes(f"see {rest} there".encode())
        assert find_spans_in_bytes(text) == before, rule.kind


def test_all_gates_are_open_if_re2_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """If RE2 runs out of memory, it reports no match at all, not even of the pattern that always matches."""
    monkeypatch.setattr(prefilter, "_gate_matcher", lambda: lambda _view: None)
    everything = prefilter.open_gates(b"words")
    monkeypatch.undo()
    pytest.importorskip("re2")
    assert len(prefilter.open_gates(b"words")) == 1 < len(everything)
