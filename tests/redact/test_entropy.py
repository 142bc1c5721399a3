"""Finds random-looking values by their context, and keeps ids, hashes, names and encoded files."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable
from random import Random

import pytest
from tests.redact.credentials import seeded

from threadline.redact import Level, Redactor, SessionRedactor, Settings, find_spans_in_bytes
from threadline.redact.rules import provenance

ALNUM = string.ascii_letters + string.digits


def base62(random: Random, length: int = 32) -> str:
    """A random value of letters and digits."""
    return "".join(random.choices(ALNUM, k=length))


def base64_url(random: Random, size: int = 32) -> str:
    """Random bytes in base64 for URLs."""
    return base64.urlsafe_b64encode(random.randbytes(size)).decode().rstrip("=")


def hexadecimal(random: Random, size: int = 20) -> str:
    """Random bytes in hexadecimal, with at least one letter and one digit."""
    return f"a1{random.randbytes(size).hex()}"[: 2 * size]


VALUES: dict[str, Callable[[Random], str]] = {
    "letters and digits": base62,
    "base64 for URLs": base64_url,
    "base64": lambda random: "K" + base64.b64encode(random.randbytes(32)).decode()[1:],
    "unknown prefix": lambda random: f"qzt_{base62(random, 36)}",
}
CONTEXTS = {
    "alone": "{}",
    "alone on a line": "$ make-it\n{}\n$ ",
    "argument of a function": 'client = connect("{}", 5)',
    "argument of a command": "./deploy.sh '{}' now",
    "after a word": "use the token {} for it",
    "in a sentence": "it answered {}, so we went on",
    "in a list": "['a', '{}']",
    "variable": 'zz = "{}"',
    "header": "curl -H 'X-Acme: {}' h",
}


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("build", VALUES.values(), ids=VALUES)
def test_redacts_random_values_in_context(build: Callable[[Random], str], context: str) -> None:
    """At least nine of ten random values are redacted where secrets are."""
    values = [build(seeded(seed)) for seed in range(30)]
    kept = [value for value in values if value in Redactor().redact(context.format(value))]
    assert len(kept) <= 3, kept


@pytest.mark.parametrize("prefix", ["acme_live_", "zx-key-", "corp_sk_", "foo_pat_v2_", "my_service_token_"])
def test_redacts_random_values_with_a_prefix_that_means_key(prefix: str) -> None:
    """A prefix with a word for a key is enough, whatever the service and the context."""
    for seed in range(10):
        for value in (f"{prefix}{base62(seeded(seed))}", f"{prefix}{hexadecimal(seeded(seed))}"):
            assert value not in Redactor().redact(f"x({value})"), value


@pytest.mark.parametrize("words", ["use the token", "api key:", "my secret is", "the password was"])
def test_redacts_hexadecimal_values_after_a_word(words: str) -> None:
    """A hexadecimal value is only a secret after a word that says so."""
    value = hexadecimal(seeded(1))
    assert value not in Redactor().redact(f"{words} {value}")
    assert value in Redactor().redact(f"see {value} there")


HARMLESS: dict[str, Callable[[Random], str]] = {
    "commit": lambda random: f"commit {hexadecimal(random)}\n{hexadecimal(random)[:7]} Fix it",
    "lock file": lambda random: f'"integrity": "sha512-{base64.b64encode(random.randbytes(64)).decode()}",',
    "go.sum": lambda random: f"example.com/x v1.2.3 h1:{base64.b64encode(random.randbytes(32)).decode()}",
    "digest of an image": lambda random: f"alpine@sha256:{hexadecimal(random, 32)}",
    "checksum of a file": lambda random: f"{hexadecimal(random, 32)}  dist/threadline.tar.gz",
    "id of a tool call": lambda random: (
        f"toolu_01{base62(random, 22)}\nmsg_01{base62(random, 22)}\nreq_011{base62(random, 21)}"
    ),
    "id of a session": lambda random: (
        f"{hexadecimal(random, 4)}-{hexadecimal(random, 2)}-4a1b-8c2d-{hexadecimal(random, 6)}"
    ),
    "entity tag": lambda random: f'etag: W/"{base62(random, 27)}"',
    "image": lambda random: f"url(data:image/png;base64,{base64.b64encode(random.randbytes(60)).decode()})",
    "source map": lambda random: (
        f"//# sourceMappingURL=data:application/json;base64,{base64.b64encode(random.randbytes(99)).decode()}"
    ),
    "lines of base64": lambda random: "\n".join(base64.b64encode(random.randbytes(48)).decode() for _ in range(4)),
    "public key": lambda random: (
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{base64.b64encode(random.randbytes(32)).decode()[:43]} me"
    ),
    "fingerprint": lambda random: f"256 SHA256:{base64.b64encode(random.randbytes(32)).decode()[:43]} me (ED25519)",
    "file name": lambda random: f"assets/index-{base62(random, 8)}.js and chunk.{base62(random, 20)}.css",
    "path in a URL": lambda random: f"https://docs.example/d/{base62(random, 44)}/edit",
    "nix store": lambda random: (
        f"/nix/store/{''.join(random.choices('0123456789abcdfghijklmnpqrsvwxyz', k=32))}-hello-2.12"
    ),
    "mangled symbol": lambda _random: "_ZN4core3fmt9Formatter15debug_lower_hex17h3f2a9c1d4e5b6f7aE",
    "class of CSS": lambda random: f'<div class="Button_primary__{base62(random, 5)} css-1{base62(random, 6)}">',
    "names": lambda _random: (
        "MCC_SetSlowCompTauX20Enable SQLTextWaveTo2DBinaryWave getElementsByTagNameNS2 XXH3_hashLong_64b_withSecret"
    ),
    "id of an API": lambda random: f'"node_id": "PR_kwDO{base62(random, 14)}", "id": "{base62(random, 24)}"',
    "minified code": lambda _random: "function e4(t,n){return t3A(n,r2B)||a9Q[t](n)}var aB1cD2eF3gH4iJ5kL6mN7oP8=e4(1)",
}


@pytest.mark.parametrize("build", HARMLESS.values(), ids=HARMLESS)
def test_keeps_values_that_are_random_but_public(build: Callable[[Random], str]) -> None:
    """Hashes, ids, fingerprints, encoded files and names stay."""
    for seed in range(10):
        text = build(seeded(seed))
        assert [text[span.start : span.end] for span in find_spans_in_bytes(text.encode())] == [], text


def test_strict_removes_every_random_value() -> None:
    """The level `strict` needs no context, and removes hashes. Claude's ids and UUIDs stay, as they link entries."""
    for seed in range(20):
        random = seeded(seed)
        values = [base62(random, 16), base62(random, 40), hexadecimal(random), base64_url(random)]
        kept = [f"toolu_01{base62(random, 22)}", "0f8fad5b-d9cb-469f-a165-70867728950e", "getElementsByClassName"]
        text = " ".join(f"<{value}>" for value in values + kept)
        redacted = Redactor(Settings(level=Level.STRICT)).redact(text)
        assert not [value for value in values if value in redacted]
        assert not [value for value in kept if value not in redacted]


WORDS = "absorb zoo abandon above abstract about able access absent absurd abuse ability"


@pytest.mark.parametrize(
    "text",
    [
        f"wallet seed phrase: {WORDS}",
        f"MNEMONIC='{WORDS}'",
        f"recovery phrase is {WORDS} ok",
        "Recovery phrase:\n" + "\n".join(f"{at}. {word}" for at, word in enumerate(WORDS.split(), 1)),
        "mnemonic: [" + ", ".join(f'"{word}"' for word in WORDS.split()) + "]",
    ],
)
def test_redacts_seed_phrases_after_a_label(text: str) -> None:
    """All words of a seed phrase are redacted, in any layout."""
    redacted = Redactor().redact(text)
    assert not [word for word in WORDS.split() if word in redacted], redacted


@pytest.mark.parametrize(
    "text",
    [
        "the seed phrase: write down the words somewhere safe before you begin with this wallet app today",
        f"the list has {WORDS}",
        "seed: none, then more words follow here but these are not from that list of words",
    ],
)
def test_keeps_sentences_about_seed_phrases(text: str) -> None:
    """Without a label, or with words that no phrase contains, a sentence stays."""
    assert Redactor().redact(text) == text


def test_redacts_keys_of_wallets_as_lists_of_numbers() -> None:
    """A list of 64 bytes near a word for a wallet is a private key."""
    numbers = list(seeded(4).randbytes(64))
    assert Redactor().redact(f"solana-keygen keypair\n{numbers}") == "solana-keygen keypair\n<secret-1>"
    assert Redactor().redact(f"pixels {numbers}") == f"pixels {numbers}"


def test_redacts_lone_seed_phrases() -> None:
    """A phrase is redacted if it is alone after the word wallet, or in a file whose name says what it is."""
    assert WORDS not in Redactor().redact(f"please restore my test wallet: {WORDS}")
    numbered = "\n".join(f"{number}. {word}" for number, word in enumerate(WORDS.split(), 1))
    for content in (numbered, WORDS, "\n".join(f"     {n}\u2192{w}" for n, w in enumerate(WORDS.split(), 1))):
        assert provenance.find_in_secret_file("/home/ann/seed.txt", content), content
        assert provenance.find_printed_secrets("cat recovery-words.txt", content), content
        assert not provenance.find_in_secret_file("/home/ann/words.txt", content), content
    sentence = f"{WORDS} and then it goes on"
    for text in (f"the wallet: {sentence}", f"wallet {WORDS}x"):
        assert Redactor().redact(text) == text


def test_redacts_lone_wallet_bytes() -> None:
    """A list of 64 bytes is a key if it is the whole text, or follows a label."""
    numbers = seeded(2).sample(range(256), 64)
    array = str(numbers).replace(" ", "")
    assert Redactor().redact(array) == "<secret-1>"
    assert Redactor().redact(f"cat id.json\n{array}\nok") == "cat id.json\n<secret-1>\nok"
    for text in (f"weights of the layer after the first round of training:\n{array}\n", str(list(range(63)))):
        assert Redactor().redact(text) == text


def test_keeps_certificates() -> None:
    """The lines of a certificate are no secrets, also where they are joined by blanks, indented, quoted or numbered."""
    random = seeded(12)
    for label, first in (("CERTIFICATE", "MIIB"), ("CERTIFICATE REQUEST", "MIIC"), ("PGP PUBLIC KEY BLOCK", "mQIN")):
        body = first + base64.b64encode(random.randbytes(3 * 64)).decode()
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        text = "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])
        indented = text.replace("\n", "\n    ")
        assert Redactor().redact(text.replace("\n", "\n> ")) == text.replace("\n", "\n> ")
        numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), 1))
        for content in (text, f"is it valid?\n{text}", indented, numbered, text.replace("\n", "\n+ ")):
            record = {"type": "user", "message": {"role": "user", "content": content}}
            redactor = SessionRedactor()
            redactor.learn(record)
            assert redactor.redact(record) == record
