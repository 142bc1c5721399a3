"""Redacts every kind of credential that is recognised by its format or its name, in any context."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import every, scale_examples, share
from tests.redact.credentials import private_key, seeded, service_value, token_value
from tests.subtests import for_each

from threadline.redact import KINDS, Redactor, find_spans_in_bytes
from threadline.redact.rules.checksums import CHECKSUMS, has_checksum
from threadline.redact.rules.formats import FORMATS, SERVICES, Service, TokenFormat


def coloured(value: str) -> str:
    """A value split in two by colour codes."""
    middle = len(value) // 2
    return f"\x1b[31m{value[:middle]}\x1b[0m{value[middle:]}\x1b[m"


CONTEXTS: dict[str, Callable[[str], str]] = {
    "plain": lambda value: f"see {value} there",
    "alone": lambda value: value,
    "at the end of a sentence": lambda value: f"it is {value}.",
    "quoted": lambda value: f"x = '{value}'",
    "in brackets": lambda value: f"({value}),",
    "in code": lambda value: f"`{value}`",
    "in JSON": lambda value: json.dumps({"text": f"line\n{value}\nmore"}),
    "in JSON in JSON": lambda value: json.dumps(json.dumps({"a": f"x\t{value}"})),
    "in a URL's query": lambda value: f"https://h.example/p?x={value}&y=1",
    "in a URL's path": lambda value: f"https://h.example/{value}/z",
    "behind a percent code": lambda value: f"q=a%3D{value}",
    "in a diff": lambda value: f"--- a\n+++ b\n-old\n+k: {value}\n",
    "in a numbered line": lambda value: f"    12\u2192{value}",
    "behind an escape": lambda value: f"12\\u2192{value}",
    "in XML": lambda value: f"<a>{value}</a>",
    "in colours": coloured,
    "in colours in JSON": lambda value: json.dumps(coloured(value)),
    "with a space that takes no room": lambda value: f"{value[:9]}\u200b{value[9:]}",
}
ASSIGNED: dict[str, Callable[[str, str], str]] = {
    "env": lambda name, value: f"{name}={value}",
    "export": lambda name, value: f'export {name}="{value}"',
    "JSON": lambda name, value: json.dumps({name: value}),
    "JSON in JSON": lambda name, value: json.dumps(json.dumps({name: value})),
    "YAML": lambda name, value: f"{name}: {value}\n",
    "code": lambda name, value: f'{name} = "{value}"',
    "script": lambda name, value: f"const {name} = '{value}';",
    "diff": lambda name, value: f"+  {name}={value}\n",
    "XML": lambda name, value: f"<{name}>{value}</{name}>",
}


PRIVATE_KEYS = ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "EC PRIVATE KEY")


def survives(value: str, text: str) -> bool:
    """Whether a value, or both of its halves, are in a text."""
    middle = len(value) // 2
    return value in text or (value[:middle] in text and value[middle:] in text)


@for_each("number, rule", list(enumerate(FORMATS)), ids=lambda row: row[1].kind)
def test_redacts_every_format_in_every_context(number: int, rule: TokenFormat) -> None:
    """A credential of each format is redacted in every context, and nothing is left to find."""
    for seed in range(scale_examples(1)):
        value = token_value(rule, seeded(seed))
        for name, context in share(CONTEXTS.items(), 3, number):
            # Without a prefix or a long word, only a complete word is recognised.
            if name == "in a URL's path" and not rule.anchors and rule.word is None and "==" not in value:
                continue
            redactor = Redactor()
            text = redactor.redact(context(value))
            assert not survives(value, text), name
            assert redactor.check(text) == [], name


@for_each("rule", every(3, FORMATS), ids=lambda rule: rule.kind)
def test_findings_have_the_kind_of_the_format(rule: TokenFormat) -> None:
    """If a credential is recognised only by its format, the finding has that kind, or a kind with the same prefix."""
    redactor = Redactor()
    redactor.redact(f"see {token_value(rule, seeded(5))} there")
    (finding,) = redactor.findings
    kinds = {other.kind for other in FORMATS if other.anchor == rule.anchor or rule.anchor.startswith(other.anchor)}
    assert finding.kind in kinds
    assert finding.placeholder == "<secret-1>"


@for_each("number, service", list(enumerate(SERVICES)), ids=lambda row: row[1].kind)
def test_redacts_values_assigned_to_a_service_name(number: int, service: Service) -> None:
    """A service's credential is redacted wherever it is assigned to a name that mentions the service."""
    for seed in range(scale_examples(1)):
        value = service_value(service, seeded(seed))
        word = service.names[0]
        names = (f"{word.upper()}_API_KEY", f"{word}_token", f"{word}Secret", word)
        for name, (form, assign) in share(product(names, ASSIGNED.items()), 5, number):
            assert value not in Redactor().redact(assign(name, value)), (name, form)


@pytest.mark.parametrize(("number", "label"), list(enumerate(PRIVATE_KEYS)))
def test_redacts_private_keys(number: int, label: str) -> None:
    """A private key is redacted complete or cut off, escaped, numbered, quoted or in a diff. The rest stays."""
    key = private_key(seeded(7), label=label)
    lines = key.split("\n")
    shapes = {
        "whole": key,
        "CRLF": key.replace("\n", "\r\n"),
        "JSON": json.dumps({"k": key}),
        "JSON in JSON": json.dumps(json.dumps({"k": key})),
        "diff": "\n".join(f"+{line}" for line in lines),
        "numbered": "\n".join(f"{at:6}\u2192{line}" for at, line in enumerate(lines)),
        "quoted": "\n".join(f"> {line}" for line in lines),
        "indented": "\n".join(f"    {line}" for line in lines),
        "no end": "\n".join(lines[:7]),
        "no end, in a line": "\n".join(lines[:7]) + "\n" + lines[7][:30],
        "no beginning": "\n".join(lines[5:]),
        "no beginning, in a line": lines[4][20:] + "\n" + "\n".join(lines[5:]),
        "no end, in JSON": json.dumps("\n".join(lines[:7])),
        "no beginning, in a diff": "\n".join(f"-{line}" for line in lines[6:]),
        "coloured": "\n".join(f"\x1b[32m+{line}\x1b[m" for line in lines),
    }
    for name, shape in share(shapes.items(), 1, 4 * number):
        redactor = Redactor()
        text = redactor.redact(f"before it\n{shape}\nafter it")
        assert not [line for line in lines[1:-1] if line[:40] in text or line[-40:] in text], name
        assert text.startswith("before it\n"), name
        assert text.endswith("\nafter it"), name
        assert redactor.check(text) == [], name


def test_redacts_single_lines_of_a_known_private_key() -> None:
    """A line of a known private key is also redacted by itself."""
    redactor = Redactor()
    key = private_key(seeded(8))
    redactor.learn(key)
    assert redactor.redact(f"x {key.splitlines()[4]} y") == "x <secret-1> y"


def test_keeps_prose_between_the_markers_of_a_key() -> None:
    """Text that names both markers of a key, with sentences in between, loses only the markers."""
    dashes = "-" * 5
    begin, end = (f"{dashes}{word} PRIVATE KEY{dashes}" for word in ("BEGIN", "END"))
    text = Redactor().redact(f"It begins {begin}\nand some words that tell of it,\nwhere it ends {end} so")
    assert text == "It begins <secret-1>\nand some words that tell of it,\nwhere it ends <secret-2> so"


@given(st.data())
def test_redacts_any_credential_in_nested_contexts(data: st.DataObject) -> None:
    """Whatever the kind, value and contexts: a planted credential is redacted, and nothing is left to find."""
    rule = data.draw(st.sampled_from(FORMATS))
    value = token_value(rule, seeded(data.draw(st.integers(0, 2**32))))
    outer, inner = (CONTEXTS[data.draw(st.sampled_from(sorted(CONTEXTS)))] for _ in range(2))
    around = data.draw(st.text(alphabet=" \nabcXYZ09.,:;-_/\"'{}[]\\é→", max_size=40))
    redactor = Redactor()
    text = redactor.redact(f"{around} {outer(inner(value))} {around}")
    assert value not in text
    assert redactor.redact(text) == text
    assert redactor.check(text) == []


def test_has_more_than_120_distinct_kinds() -> None:
    """There are more than 120 kinds of credentials, each with its own name and a description."""
    kinds = [rule.kind for rule in FORMATS] + [service.kind for service in SERVICES]
    assert len(kinds) == len(set(kinds)) > 120
    assert all(KINDS.values())


def test_every_row_of_the_tables_is_complete() -> None:
    """Every format has a description, a token that can be parsed, a known checksum and a source without an address."""
    for rule in FORMATS:
        assert rule.what, rule.kind
        assert rule.source, rule.kind
        assert "://" not in rule.source, rule.kind
        assert rule.length[1] >= rule.length[0] >= 18, rule.kind
        assert rule.checksum.rstrip("!") in {"", "random", *CHECKSUMS}, rule.kind
    for service in SERVICES:
        assert service.source, service.kind
        assert all(name == name.lower() and name.isalnum() for name in service.names), service.kind


@for_each("rule", [rule for rule in FORMATS if rule.checksum.rstrip("!") in CHECKSUMS], ids=lambda rule: rule.kind)
def test_checksums_tell_tokens_from_other_text(rule: TokenFormat) -> None:
    """A generated token has a right checksum. One with another character has not, and may not be of this kind."""
    name = rule.checksum.rstrip("!")
    for seed in range(5):
        value = token_value(rule, seeded(seed))
        if name == "gitlab-routable" and "." not in value:
            continue
        assert has_checksum(name, value), value
        if name in {"macaroon", "discord", "bootstrap"}:  # a structure, not a checksum
            continue
        wrong = f"{value[:-2]}{value[-1]}{value[-2]}" if value[-1] != value[-2] else f"{value[:-1]}3"
        assert not has_checksum(name, wrong), wrong
        if rule.checksum.endswith("!"):
            # It may still be removed as a random value.
            assert rule.kind not in {span.kind for span in find_spans_in_bytes(f"see {wrong} there".encode())}


@pytest.mark.parametrize(
    "text",
    [
        "ghp_" + "x" * 36,
        "sk-ant-api03-" + "X" * 40,
        "AKIA" + "0" * 16,
        "func TestFormatSessionInfo_ShowsMessageAndFilesWhenNoInteractions(t *testing.T)",
        "return s.addTrailerForAgentCommit(logCtx)",
        "class sk-folding-cube-with-many-colours",
        "npm_config_user_agent_of_the_package_manager_in_use",
        "key_of_the_row_that_was_selected_by_the_user",
    ],
)
def test_keeps_fillers_and_names_with_a_prefix(text: str) -> None:
    """A prefix followed by one repeated letter, or by words of a name, is not a credential."""
    assert Redactor().redact(text) == text


def test_redacts_tokens_of_letters() -> None:
    """A token may be only letters by chance, or by its alphabet; then its capitals tell it from a name."""
    for seed in range(20):
        letters = "".join(seeded(seed).choices("abdefghkmnpqrtuvwxyzABDEFGHKMNPQRTUVWXYZ", k=34))
        assert letters not in Redactor().redact(f"huggingface-cli login, then hf_{letters} is used")
    name = "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"
    assert Redactor().redact(name) == name


@pytest.mark.parametrize("form", ["snyk auth {}", 'snykTest("{}")'])
def test_redacts_arguments_of_services(form: str) -> None:
    """A value in the format of a service is a secret as an argument of its program or function, not elsewhere."""
    value = str(UUID(int=seeded(5).getrandbits(128), version=4))
    assert value not in Redactor().redact(form.format(value))
    other = form.replace("snyk", "open").format(value)
    assert Redactor().redact(other) == other


def test_digits_before_a_joining_sign_count() -> None:
    """A token whose only digits come before a sign such as `|` is found."""
    random = seeded(1)
    number = "".join(random.choices("123456789", k=16))
    half = "-".join("".join(random.choices("hTkQmZxWpRvbLd", k=length)) for length in (14, 12))
    assert Redactor().redact(f"see {number}|{half}x there") == "see <secret-1> there"


@pytest.mark.parametrize("prefix", ["sk-proj-", "gldt-", "GOCSPX-", "AVNS_"])
def test_tokens_without_a_digit_may_have_dashes(prefix: str) -> None:
    """Letters of mixed case after a prefix of its own are a token, also with a dash or an underscore among them."""
    random = seeded(2)
    for sign in "-_":
        half, rest = ("".join(random.choices("hTkQmZxWpRvbLdsF", k=length)) for length in (9, 18))
        value = f"{prefix}{half}{sign}{rest}"[: len(prefix) + (20 if prefix == "AVNS_" else 28)]
        assert value not in Redactor().redact(f"see {value} there")
