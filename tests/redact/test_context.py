"""Redacts what its context identifies: passwords, headers, addresses, homes, names. Harmless text stays."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redact.credentials import password, seeded, token_value
from tests.subtests import for_each
from tools.demo import write

from threadline.redact import RecordScanner, Redactor
from threadline.redact.rules.formats import FORMATS
from threadline.redact.scanner import WINDOW

ROOT = Path(__file__).parents[2]
PASSWORDS = {
    "env": "DB_PASSWORD={}",
    "YAML": "password: {}\n",
    "code": 'password = "{}"',
    "TOML": 'client_secret = "{}"',
    "ini": "secret_key={}",
    "XML": "<password>{}</password>",
    "call": 'set("token", "{}")',
    "URL": "postgres://bob:{}@db.example.com/x",
    "option": "tool --password={} -x",
    "option, apart": "tool --api-key {} -x",
    "curl": "curl -u bob:{} http://x",
    "npmrc": "//registry.example/:_authToken={}",
    "netrc": "machine x login y password {}",
    "authorization": "Authorization: Bearer {}",
    "header": "X-Api-Key: {}\r\n",
    "header in curl": "curl -H 'X-Auth-Token: {}' x",
    "proxy": "Proxy-Authorization: Token {}",
    "cookie": "Cookie: sid={}; a=b",
    "set-cookie": "Set-Cookie: sid={}; Path=/",
    "JSON": '{{"apiKey": "{}"}}',
    "JSON in JSON": '{{\\"accessToken\\": \\"{}\\"}}',
    "diff": "-  token: old\n+  token: {}\n",
    "the key of keys": "SECRET_KEY_BASE={}",
    "a short name": "run pass={} now",
    "working directory's name": "pwd={}",
    "name and value, YAML": "- name: DB_PASSWORD\n  value: {}\n",
    "name and value, XML": '<property name="password" value="{}"/>',
    "name and value, code": "{{ name: 'password', value: '{}' }}",
    "Terraform": 'variable "db_password" {{\n  type = string\n  default = "{}"\n}}',
    "YAML block": "password: |\n  {}\n",
    "YAML block, folded": "api_key: >-\n  {}\n",
    "table": "| API_KEY | `{}` |",
    "bold name": "**API key**: `{}`",
    "bold name and colon": "- **Password:** `{}`",
    "sentence": "the token is `{}`, he said",
    "arrow": "API_KEY -> {}",
    "call of a name": "user.set_password('{}')",
    "SQL, role": "ALTER ROLE bob WITH PASSWORD '{}';",
    "SQL, user": "CREATE USER bob IDENTIFIED BY '{}';",
    "sshpass": "sshpass -p {} ssh a@b",
    "docker": "docker login -u bob -p {}",
    "mysql": "mysql -u root -p{} db",
    "redis": "redis-cli -h x -a {} ping",
    "openssl": "openssl rsa -passin pass:{} -in k",
    "PowerShell": 'ConvertTo-SecureString "{}" -AsPlainText',
    "PowerShell's option": 'Connect -Password "{}"',
    "sudo": "echo {} | sudo -S ls",
    "chpasswd": 'echo "root:{}" | chpasswd',
    "pgpass": "db.example.org:5432:app:bob:{}",
}
# Characters that would end the value in a shell, in a list or in SQL.
PLAIN = str.maketrans("@%!#*?=^~+", "abcdefghij")


@for_each("form", PASSWORDS)
def test_redacts_a_secret_after_its_name(form: str) -> None:
    """A value after such a name or mark is redacted, and from then on everywhere."""
    for seed in range(20):
        secret = password(seeded(seed)).translate(PLAIN)
        redactor = Redactor()
        text = redactor.redact(PASSWORDS[form].format(secret))
        assert secret not in text, seed
        assert redactor.check(text) == []
        if "cookie" not in form:
            assert redactor.redact(f"it was {secret} then") == "it was <secret-1> then"


@pytest.mark.parametrize(
    "text",
    ["bob:$apr1$abcdefgh${}", "bob:$6$saltsalt${}{}{}{}:19000:0", "$6$rounds=5000$saltsalt${}{}{}{}", "$2b$12${}{}{}"],
)
def test_redacts_password_hashes(text: str) -> None:
    """A password hash is redacted, because the password can be guessed from it."""
    part = "Zx9Qw8Er7Tqq/ab.CdEf12"
    assert part not in Redactor().redact(text.format(*[part] * 4))


def test_redacts_values_that_continue_on_the_next_line() -> None:
    """A continued shell line and a block of several lines are redacted to their end."""
    head, tail = "q7Zk2LwX9" * 4, "h3Vt8RbN5" * 3
    assert Redactor().redact(f"API_KEY={head}\\\n{tail}\nnext") == "API_KEY=<secret-1>\nnext"
    assert Redactor().redact(f"api_key: >-\n  {head}\n  {tail}\nnext: 1") == "api_key: >-\n  <secret-1>\nnext: 1"


@pytest.mark.parametrize(
    "name", ["access_token", "api_key", "sig", "X-Amz-Signature", "X-Amz-Credential", "token", "code"]
)
def test_redacts_secret_url_parameters(name: str) -> None:
    """Tokens and signatures in a URL's parameters are redacted. The URL and its other parameters stay."""
    value = "qZ8" + "x7Rk2" * 5
    assert (
        Redactor().redact(f"https://h.example/p?a=1&{name}={value}&b=2")
        == f"https://h.example/p?a=1&{name}=<secret-1>&b=2"
    )


def test_redacts_every_encoding_of_a_known_secret() -> None:
    """A known secret is redacted escaped, in a URL, in base64 at any offset, in hex, and inside other strings."""
    secret = 'p"9/x+ Zq7&k\\w'  # noqa: S105 - made up
    redactor = Redactor()
    redactor.learn_value({"password": secret})
    forms = [
        secret,
        json.dumps(secret),
        json.dumps(json.dumps({"a": secret})),
        quote(secret, safe=""),
        secret.encode().hex(),
        *(base64.b64encode(b"abc"[:shift] + secret.encode() + b"xyz").decode() for shift in range(3)),
        *(base64.urlsafe_b64encode(b"abc"[:shift] + secret.encode()).decode() for shift in range(3)),
    ]
    for form in forms:
        assert "<secret-1>" in redactor.redact(f"it is {form} so"), form


@pytest.mark.parametrize("text", ["{}", "k={}", "login {} now", "password: {}\n", "\u00e4 first\nTOKEN={}\nlast"])
def test_redacts_a_credential_that_appears_only_in_base64(text: str) -> None:
    """Base64 of a text that contains a credential is redacted, even if the credential appears nowhere in plain text."""
    value = token_value(next(rule for rule in FORMATS if rule.kind == "github-token"), seeded(9))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        form = encode(text.format(value).encode()).decode()
        redactor = Redactor()
        assert redactor.redact(f"see {form} there") == "see <secret-1> there"
        assert redactor.redact(f"see {value} there") == "see <secret-1> there"
        assert "<secret-1>" in Redactor().redact(json.dumps({"data": f"one\n{form}\n"}))


def test_keeps_base64_of_harmless_content() -> None:
    """Base64 of a sentence, of JSON or of random bytes stays."""
    for raw in (b"just a sentence, and a long one it is.", b'{"version":3,"sources":["a.ts"]}', bytes(range(256))):
        text = f"see {base64.b64encode(raw).decode()} there"
        assert Redactor().redact(text) == text


def test_equal_values_have_equal_placeholders() -> None:
    """Placeholders are numbered by family in order of appearance, and equal values have the same one."""
    redactor = Redactor()
    value = token_value(FORMATS[0], seeded(1))
    other = token_value(FORMATS[8], seeded(2))
    text = f"{value} ann@corp.io {other} {value} 10.1.2.3 ANN@corp.io bob@corp.io 10.1.2.3 10.1.2.4"
    assert redactor.redact(text) == (
        "<secret-1> <email-1> <secret-2> <secret-1> <ip-1> <email-1> <email-2> <ip-1> <ip-2>"
    )


def test_findings_never_contain_the_secret() -> None:
    """A finding has the kind, the place, the placeholder and a count, but never the secret."""
    redactor = Redactor()
    value = token_value(FORMATS[0], seeded(1))
    redactor.redact(f"{value} and {value}", "a.jsonl:3$.message")
    (finding,) = redactor.findings
    assert (finding.kind, finding.place) == (FORMATS[0].kind, "a.jsonl:3$.message")
    assert (finding.placeholder, finding.count) == ("<secret-1>", 2)
    assert value not in repr(finding)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("cd /home/ann/src", "cd <home>/src"),
        ("cd /Users/ann.lee/src", "cd <home>/src"),
        (r"cd C:\Users\Ann Lee\src", r"cd <home>\src"),
        (r"C:\\Users\\ann\\src", r"<home>\\src"),
        ("/mnt/c/Users/ann/x", "<home>/x"),
        ("projects/-home-ann-src and ann", "projects/-home-<user-1>-src and <user-1>"),
        ("ann@box7:~/src$ ls; ping box7", "<user-1>@<host-1>:~/src$ ls; ping <host-1>"),
        ("http://nas.local/x", "http://<host-1>/x"),
        ("psql db1.corp.internal", "psql <host-1>"),
        ("mongodb://u:q8Zk2pLw@mongo7.acme.io/x", "mongodb://u:<secret-1>@<host-1>/x"),
        ("from 10.20.30.40:80", "from <ip-1>:80"),
        ("fe80::1c2b:3d4e:5f60:7a8b it", "<ip-1> it"),
        ("Ann <ann.lee+x@corp.co.uk>", "<name-1> <<email-1>>"),
        ("Author: Jan de Vries <jan@corp.io>\nby Jan de Vries", "Author: <name-1> <<email-1>>\nby <name-1>"),
        ('"author": "Zoë Lee <zoe@corp.io>"', '"author": "<name-1> <<email-1>>"'),
        ("USER=annika\nHOSTNAME=bx7\nuse bx7, annika", "USER=<user-1>\nHOSTNAME=<host-1>\nuse <host-1>, <user-1>"),
        ("uid=1000(annika) gid=1000(annika)", "uid=1000(<user-1>) gid=1000(<user-1>)"),
        ("annika:x:1000:1000:,,,:/home/annika:/bin/sh", "<user-1>:x:1000:1000:,,,:<home>:/bin/sh"),
        ("drwxr-xr-x  2 annika staff  64 Jan 1 src", "drwxr-xr-x  2 <user-1> staff  64 Jan 1 src"),
        ("sudo -u annika ls; useradd -m annika", "sudo -u <user-1> ls; useradd -m <user-1>"),
        ("mailto:ann%40corp.io", "mailto:<email-1>"),
        (
            "Author: Rosa Lind <1234567+rosalind@users.noreply.github.com>\nby Rosa Lind",
            "Author: <name-1> <<email-1>>\nby <name-1>",
        ),
        ("Linux bx7.a 6.1.0-18-amd64 #1 SMP; bx7.a", "Linux <host-1> 6.1.0-18-amd64 #1 SMP; <host-1>"),
        ("git config user.name 'Rosa Lind'; Rosa Lind", "git config user.name '<name-1>'; <name-1>"),
        ("annika:x:1000:1000:Annika Lee,,,:/home/annika:", "<user-1>:x:1000:1000:<name-1>,,,:<home>:"),
        ("^a1b2c3d (Rosa Lind 2026-11-10 10:00:00 +0100 1) x", "^a1b2c3d (<name-1> 2026-11-10 10:00:00 +0100 1) x"),
        ("(Rosa  2026-11-10 10:00:00 -0800  12) x", "(Rosa  2026-11-10 10:00:00 -0800  12) x"),
        ('{"name": "Rosa Lind", "email": "r@corp.io"}', '{"name": "<name-1>", "email": "<email-1>"}'),
        ('{name = "Zoë Lind", email = "z@corp.io"}', '{name = "<name-1>", email = "<email-1>"}'),
        ('{"name": "Corp Inc", "email": "info@corp.io"}', '{"name": "Corp Inc", "email": "info@corp.io"}'),
        ("Rosa Lind <7654-rosalind@users.noreply.gitlab.com>", "<name-1> <<email-1>>"),
    ],
)
def test_redacts_people_and_machines(text: str, redacted: str) -> None:
    """Homes, users, hosts and addresses become placeholders, and the text around them stays."""
    redactor = Redactor()
    assert redactor.redact(text) == redacted
    assert redactor.redact(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "input_tokens: 123, max_tokens=4096, token: str, password: string;",
        "password = getpass()  # ask; token = os.environ['TOKEN']; api_key=${API_KEY}",
        'const token = await login(user); secret: process.env.SECRET; "apiKey": null',
        "commit 3f786850e387550fdab836ed7e6dc881de23001b and sha256:" + "0123456789abcdef" * 4,
        '"uuid":"123e4567-e89b-12d3-a456-426614174000","id":"toolu_01AbCdEfGhIjKlMnOpQrStUv"',
        "version 2.1.97.3, Chrome/120.0.0.0, 127.0.0.1, 0.0.0.0:80, ::1, 192.0.2.7, std::vec::Vec",
        "git@github.com:a/b.git, user@example.com, noreply@anthropic.com, react@18.2.0, icon@2x.png",
        "Copilot <1234+Copilot@users.noreply.github.com>, release <12+release-bot@users.noreply.github.com>",
        "dependabot[bot] <1234+dependabot[bot]@users.noreply.github.com>, <noreply@github.com>, no-reply@corp.io",
        "threading.local(), .env.local, settings.local.json, example.com/home/page, the src/home/x folder",
        "the password must be changed; a token is a word; the key to it: patience; basic things",
        '{"outcome":"pass","volume_ml":[1],"next": "token", "path":"x1"} {\\"a\\":\\"pass\\",\\"b7\\":1}',
        'values: ["have", "pass", "went"], ["secret", "password", "letter"]',
        "Authorization: see the docs; Cookie: none; pass: 3 of 4; PASS: test_it",
        "the token is expired; the password is required; token is `access_token`, was `user_id2`.",
        "| token | description |\n| api_key | required |\nmake token | sha256sum | x; what token? internationalise",
        "git config user.name 'Test User'; git config user.name \"Your Name\"",
        "mkdir -p src2/a1; docker run -p 8080:80 x1; ssh -p 2222 box; pass=3 of 4; set_password(value); cp -a dir1 x",
        "Unexpected token 'export'; argument 'password' of set_password('name'); default = 3; a password manager",
        '- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: x1\nvariable "db_password" {\n  type = string\n}',
        "mv scripts/tail.sh /home/U… && ls /home/Us…",
        "`reader.go:203-207`\nreq_011DkQm4Zt7Rw2Xc9Lb5VnHs\nsee `StartedAt`\ntoolu_017gWf2Jr8KpYd4Mq6TzBx3C",
        "backgrounds p:orange/p:blue/p:blue unchanged; src/p:main; pip://p/p:stable",
        "primary_key=id, keyboard: qwerty, monkey=1, foreign key: user_id, cache_key: f'{a}:{b}'",
    ],
)
def test_keeps_harmless_text(text: str) -> None:
    """Names, types, references, ids, digests, versions, examples and plain sentences stay."""
    assert Redactor().redact(text) == text


@given(st.text(max_size=300))
def test_redaction_is_idempotent(text: str) -> None:
    """Redacting any redacted text again changes nothing, and nothing is found in it."""
    redactor = Redactor()
    once = redactor.redact(text)
    assert redactor.redact(once) == once
    assert redactor.check(once) == []


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz ,.\n", max_size=2000))
def test_keeps_plain_words(text: str) -> None:
    """Lower-case words without digits are unchanged."""
    assert Redactor().redact(text) == text


def test_finds_credentials_across_window_boundaries() -> None:
    """A credential is found anywhere in a text of several windows, including across their boundaries."""
    value = token_value(FORMATS[0], seeded(3))
    for at in (0, WINDOW - len(value) // 2, WINDOW - 1, WINDOW, 2 * WINDOW - 3, 3 * WINDOW - len(value) - 1):
        text = " " * at + value + " " * (3 * WINDOW - at)
        assert Redactor().redact(text) == " " * at + "<secret-1>" + " " * (3 * WINDOW - at)


def test_redacts_values_by_key() -> None:
    """In a tree, a text is secret because of its key, however short. Keys are redacted too, and other values stay."""
    tree = {"user": "x", "password": "hunter2", "n": 3, "list": [{"apiKey": "Zx81kdP0"}], "/home/ann/a": None}
    assert Redactor().redact_value(tree) == {
        "user": "x",
        "password": "<secret-1>",
        "n": 3,
        "list": [{"apiKey": "<secret-2>"}],
        "<home>/a": None,
    }


def test_hides_the_owner_of_a_home_as_a_word() -> None:
    """The account name of a project's home is hidden everywhere. A page name below /home stays an ordinary word."""
    redactor = Redactor()
    tree = {"cwd": "/home/annika/src", "text": "ask Annika for /home/settings; the settings; root@ubuntu:~# on ubuntu"}
    assert redactor.redact_value(tree) == {
        "cwd": "<home>/src",
        "text": "ask <user-1> for <home-2>; the settings; <user-2>@<host-1>:~# on ubuntu",
    }


@pytest.mark.slow
def test_the_corpus_and_the_demo_contain_no_secrets(tmp_path: Path) -> None:
    """Nothing in the project's own data is taken for a credential, except what one case plants on purpose."""
    write(tmp_path / "home")
    paths = [*(tmp_path / "home").rglob("*.jsonl"), *(ROOT / "tests/corpus").rglob("*.jsonl")]
    findings = set()
    for path in paths:
        scanner = RecordScanner(personal=False)
        for line in path.read_bytes().splitlines():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            findings |= {(match.span.kind, path.parts[-3]) for match in scanner.find(value)}
    assert {finding for finding in findings if finding[1] != "secrets-stay-out-of-problems"} == set()


def test_account_names_that_are_words_stay_words() -> None:
    """The home of an account such as `mark` is redacted, but the word is not hidden in other texts."""
    for name in ("mark", "Grace", "hunter"):
        text = Redactor().redact(f"cd /home/{name}/src; echo {name} it; id: uid=1000({name})")
        assert text == f"cd <home>/src; echo {name} it; id: uid=1000(<user-1>)"
