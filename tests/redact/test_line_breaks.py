"""Redacts credentials of known formats that are split by line breaks, whatever prefix the lines have."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.profiles import share
from tests.redact.credentials import seeded, token_value
from tests.subtests import for_each

from threadline.redact import Redactor, find_spans_in_bytes, word_set
from threadline.redact.rules import tokens
from threadline.redact.rules.formats import FORMATS, TokenFormat

BREAKS: dict[str, Callable[[str, str], str]] = {
    "a line end": lambda head, tail: f"see {head}\n{tail} there",
    "a line end and nothing else": lambda head, tail: f"{head}\n{tail}",
    "CRLF": lambda head, tail: f"{head}\r\n{tail}\r\n",
    "indentation": lambda head, tail: f"    key {head}\n      {tail}\n    done",
    "a tab": lambda head, tail: f"\t{head}\n\t{tail}\n",
    "added lines": lambda head, tail: f"@@ -1,2 +1,2 @@\n+{head}\n+{tail}\n same",
    "taken lines": lambda head, tail: f"@@ -1,2 +1,2 @@\n-  {head}\n-  {tail}\n same",
    "a prompt": lambda head, tail: f"> {head}\n> {tail}\n",
    "numbers": lambda head, tail: f"    12\u2192{head}\n    13\u2192{tail}\n    14\u2192",
    "numbers and bars": lambda head, tail: f" 9 | {head}\n10 | {tail}\n11 | x",
    "JSON": lambda head, tail: json.dumps({"text": f"it is {head}\n  {tail}\nso"}),
    "JSON in JSON": lambda head, tail: json.dumps(json.dumps({"text": f"it is {head}\n{tail}\nso"})),
    "two strings": lambda head, tail: f'x = "{head}" +\n    "{tail}";',
    "two strings on one line": lambda head, tail: f"x = '{head}' + '{tail}'",
    "a backslash": lambda head, tail: f"run {head}\\\n{tail}",
}


# Formats that start with common letters or a number are recognised only by the longer piece, if at all.
LONGER_PIECE = word_set(
    "google-oauth-token scaleway-key alibaba-key-id flutterwave-secret gitlab-runner-registration"
    " vault-service-token vault-recovery-token vault-legacy-token twilio-key"
)
# No prefix that ends with `-` or `_`, or several words that are joined by other signs.
UNRECOGNISED = word_set(
    "asana-token braintree-token azure-storage-account-key azure-batch-key azure-cosmos-key azure-iot-key"
    " azure-service-bus-key azure-registry-key google-hmac-id alibaba-sts-key-id digitalocean-spaces-key backblaze-key"
    " exoscale-key kubeadm-token k3s-token rancher-token bitwarden-secrets-token keeper-one-time-token baseten-key"
    " brave-key fcm-server-key ripple-seed ripple-ed25519-seed circle-key salesforce-token near-private-key"
    " ghost-admin-key flagsmith-key"
)
RECOGNISED = [rule for rule in FORMATS if rule.kind not in UNRECOGNISED]


@for_each("number, rule", list(enumerate(RECOGNISED)), ids=lambda row: row[1].kind)
def test_redacts_a_credential_split_in_the_middle(number: int, rule: TokenFormat) -> None:
    """A credential split in the middle is redacted in every context, and nothing is left to find, joined or not."""
    value = token_value(rule, seeded(11))
    middle = max(len(rule.anchor), len(value) // 2)
    if rule.kind in LONGER_PIECE:
        middle = len(value) - tokens.MIN_RUN
    for name, context in share(BREAKS.items(), 2, number):
        text = context(value[:middle], value[middle:])
        redactor = Redactor()
        redacted = redactor.redact(text)
        assert value[middle:] not in redacted, (name, redacted)
        assert value[:middle] not in redacted, (name, redacted)
        assert redactor.check(redacted) == [], name
        assert redactor.redact(redacted) == redacted, name
        assert find_spans_in_bytes(text.encode()), name


@pytest.mark.parametrize("width", [40, 64, 76])
def test_redacts_every_line_of_a_wrapped_token(width: int) -> None:
    """All lines of a wrapped token are redacted, and the text around it stays."""
    (rule,) = (rule for rule in FORMATS if rule.kind == "jwt")
    value = token_value(rule, seeded(3)).split(".")[0] + "." + "eyJ" + "s3Ub7Iix" * 24 + "." + "k2_Xv-9Q" * 5
    lines = [value[at : at + width] for at in range(0, len(value), width)]
    for before in ("", "    ", "+", "> "):
        text = "\n".join(["it is", *(before + line for line in lines), "done", ""])
        assert Redactor().redact(text) == f"it is\n{before}<secret-1>\ndone\n", repr(before)


def test_keeps_the_line_after_a_complete_credential() -> None:
    """A credential that is complete at the end of its line does not take the next line with it."""
    following_lines = ("done", "Then it went on.", "2 files changed", "- a list", "README.md", "}")
    for number, rule in enumerate(FORMATS):
        value = token_value(rule, seeded(4))
        for following in share(following_lines, 1, number):
            redacted = Redactor().redact(f"{value}\n{following}\n")
            assert redacted.endswith(f"\n{following}\n"), (rule.kind, following, redacted)


@pytest.mark.parametrize(
    "text",
    [
        "a key begins with sk_test_\nconfiguration of it follows",
        "names: AKIA\nand ghp_\nwithout anything",
        "import abcdefghijklmnopqrstuvwx_test_\nfrom somewhere_else import name_of_it",
        "glpat-\n- first\n- second",
    ],
)
def test_keeps_prefixes_without_a_credential(text: str) -> None:
    """The prefix of a credential at the end of a line of prose is not redacted, nor is the next line."""
    assert Redactor().redact(text) == text
