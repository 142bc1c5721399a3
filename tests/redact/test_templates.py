"""Redacts secrets in hundreds of sentences, commands, files and outputs."""

from __future__ import annotations

import base64
import string
from random import Random
from uuid import UUID

from tests.redact.credentials import seeded
from tests.redact.planted import letters, password
from tests.redact.templates import COMMANDS, FILES, OUTPUTS, SENTENCES
from tests.subtests import for_each

from threadline.redact import Redactor, SessionRedactor

_ALPHANUMERIC = string.ascii_letters + string.digits
_ALPHABETS = {
    "alphanumeric": _ALPHANUMERIC,
    "hex": "0123456789abcdef",
    "upper": string.ascii_uppercase + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "url-safe": _ALPHANUMERIC + "-_",
    "base64 digits": _ALPHANUMERIC + "+/",
    "letters": string.ascii_lowercase,
    "digits": string.digits,
    "base32": string.ascii_uppercase + "234567",
    "base58": "".join(sorted({*_ALPHANUMERIC} - {*"0OIl"})),
}


def value_of(kind: str, random: Random) -> str:
    """A value of a kind: `password`, `signs`, `uuid`, `base64 BYTES`, or an alphabet and a length."""
    if kind == "password":
        return password(random)
    if kind == "signs":
        return "".join(random.choices(_ALPHANUMERIC, k=12)) + random.choice("!#%*+") + random.choice(_ALPHANUMERIC)
    if kind == "uuid":
        return str(UUID(int=random.getrandbits(128), version=4))
    alphabet, _, length = kind.rpartition(" ")
    if alphabet == "base64":
        return base64.b64encode(random.randbytes(int(length))).decode()
    if alphabet in {"letters", "digits"}:
        return "".join(random.choices(_ALPHABETS[alphabet], k=int(length)))
    return letters(random, int(length), _ALPHABETS[alphabet])


def _leaks(name: str, arguments: dict[str, str], output: str, secret: str) -> bool:
    """Whether the secret is in the redacted call of a tool or in its redacted result."""
    call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output}
    records = [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    return any(secret in str(redactor.redact(record)) for record in records)


@for_each("text, kind", SENTENCES)
def test_redacts_in_sentences(text: str, kind: str) -> None:
    """A secret in a prompt is removed."""
    secret = value_of(kind, seeded(len(text)))
    record = {"type": "user", "message": {"role": "user", "content": text.replace("{}", secret)}}
    redactor = SessionRedactor()
    redactor.learn_all([record])
    assert secret not in str(redactor.redact(record))


@for_each("text, kind", COMMANDS)
def test_redacts_in_commands(text: str, kind: str) -> None:
    """A secret in a shell command is removed."""
    secret = value_of(kind, seeded(len(text)))
    assert not _leaks("Bash", {"command": text.replace("{}", secret)}, "ok", secret)


@for_each("path, text, kind", FILES)
def test_redacts_in_files(path: str, text: str, kind: str) -> None:
    """A secret in a file is removed."""
    secret = value_of(kind, seeded(len(text)))
    content = text.replace("{}", secret)
    assert not _leaks("Write", {"file_path": path, "content": content}, "File created", secret)


@for_each("command, output, kind", OUTPUTS)
def test_redacts_in_outputs(command: str, output: str, kind: str) -> None:
    """A secret in the output of a command is removed."""
    secret = value_of(kind, seeded(len(command + output)))
    assert not _leaks("Bash", {"command": command}, output.replace("{}", secret), secret)


@for_each(
    "text",
    (
        "<bash-input>mysql -uroot -p{}</bash-input>",
        "<bash-input>redis-cli -a {} ping</bash-input>",
        "foo &mysql -uroot -p{} shop",
    ),
)
def test_redacts_in_commands_that_follow_a_tag_or_a_sign(text: str) -> None:
    """A command that was typed after `!` is wrapped in a tag, which stays."""
    secret = value_of("alphanumeric 14", seeded(len(text)))
    assert Redactor().redact(text.format(secret)) == text.format("<secret-1>")


@for_each(
    "text",
    (
        "kind: ConfigMap\ndata:\n  mode: fast2slow3\n",
        "kind: SecretStore\ndata:\n  mode: fast2slow3\n",
        "kind: Secret\nmetadata:\n  name: db2main3\nstringData:\n  conn: {{ .Values.conn }}\n  port: '5432'\n",
        "kind: Secret\nmetadata:\n  name: a\n---\nkind: ConfigMap\ndata:\n  mode: fast2slow3\n",
        "aws ssm put-parameter --name /app/mode --type String --value fast2slow3",
        "jwt.decode(token, key, algorithms=['HS256'])",
        "jwt.sign(payload, process.env.JWT_KEY, {expiresIn: '12h'})",
    ),
)
def test_keeps_what_only_resembles_a_stored_secret(text: str) -> None:
    """Other kinds of manifests, templates in place of values, and keys that are variables stay."""
    record = {"type": "user", "message": {"role": "user", "content": text}}
    redactor = SessionRedactor()
    redactor.learn_all([record])
    assert redactor.redact(record) == record


@for_each("text", ("The TOTP setup key is {} - add it", "Authenticator key: `{}`"))
def test_redacts_keys_of_second_factors(text: str) -> None:
    """A key in groups of four characters is removed."""
    random = seeded(len(text))
    secret = " ".join(letters(random, 4, "abcdefghijklmnopqrstuvwxyz234567") for _ in range(8))
    redacted = Redactor().redact(text.replace("{}", secret))
    assert redacted == text.replace("{}", "<secret-1>")


@for_each(
    "text",
    (
        "the totp code that they send with this mail",
        "login / logout / register1",
        "cat /etc/passwd | grep x",
        'user.setPassword("Enter your password");',
        "SERVER_AUTH = '1.3.6.1.5.5.7.3.1'",
    ),
)
def test_keeps_what_only_resembles_a_login(text: str) -> None:
    """Sentences, routes, labels and object identifiers stay."""
    assert Redactor().redact(text) == text
