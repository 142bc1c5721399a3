"""Secrets are found by their origin: the command that printed them, the file they were read from, the question."""

from __future__ import annotations

import time
from random import Random

import pytest
from tests.profiles import share
from tests.redact.planted import letters, password
from tests.subtests import for_each

from threadline.redact import SessionRedactor
from threadline.redact.rules.provenance import (
    analyze_command,
    asks_for_secret,
    classify_file,
    find_announced_passwords,
    find_answer,
    find_in_shell_sessions,
    find_printed_secrets,
)

_RANDOM = Random(16)  # noqa: S311 - made-up secrets
VALUE = password(_RANDOM)
TOKEN = letters(_RANDOM, 24)

# Commands that print the value and nothing else.
PRINTING = (
    "pass show web/db",
    "gopass show -o web/db",
    "op read op://vault/item/password",
    "op item get db --fields password",
    "bw get password db",
    "lpass show --password db",
    "keepassxc-cli show -a Password db.kdbx web",
    "security find-internet-password -s host -w",
    "secret-tool lookup app db",
    "keyring get system ann",
    "vault kv get -field=password kv/db",
    "vault read -field=value kv/db",
    "aws ecr get-login-password --region eu-west-1",
    "aws configure get aws_secret_access_key",
    "aws secretsmanager get-secret-value --secret-id a --query SecretString --output text",
    "gcloud auth print-access-token",
    "gcloud secrets versions access latest --secret db",
    "gh auth token",
    "heroku config:get DATABASE_PASSWORD",
    "doppler secrets get API --plain",
    "sops --decrypt token.enc",
    "gpg --decrypt db.gpg",
    "age -d -i key.txt db.age",
    "kubectl get secret db -o jsonpath={.data.pw} | base64 -d",
    "kubectl -n prod create token robot",
    "printenv DB_PASSWORD",
    "echo $STRIPE_SECRET_KEY",
    'printf "%s" "${GITHUB_TOKEN}"',
    "cat /run/secrets/db_password",
    "cat ~/.vault-token",
    "openssl rand -base64 32",
    "pwgen -s 24 1",
    "head -c 24 /dev/urandom | base64",
    "tr -dc 'a-zA-Z0-9' < /dev/urandom | head -c 24; echo",
    "python3 -c 'import secrets; print(secrets.token_urlsafe(18))'",
    'node -e \'console.log(require("crypto").randomBytes(18).toString("hex"))\'',
    "wg genkey",
    "wg genpsk",
    "terraform output -raw db_password",
    "pulumi config get dbPassword",
    "fly auth token",
    "npm config get //registry.npmjs.org/:_authToken",
    "grep ^DB_PASSWORD= .env | cut -d= -f2-",
    "jq -r .database.password config.json",
    "curl -s https://id.example/oauth/token | jq -r .access_token",
    "sudo cat /var/lib/jenkins/secrets/initialAdminPassword",
    "php artisan key:generate --show",
    "rails secret",
    "consul keygen",
    "echo $env:DB_PASSWORD",
    "TOKEN=$(gh auth token); echo $TOKEN",
    "read -s ANSWER; echo $ANSWER",
    "psql -Atc \"select v from options where k = 'mail_password'\"",
    "mysql -N -e \"SELECT option_value FROM options WHERE option_name='api_secret'\" shop",
    "sqlite3 app.db 'select password from users limit 1'",
    "redis-cli GET app:mail_password",
    "etcdctl get --print-value-only /app/db_password",
    "consul kv get app/db/password",
    "kubectl get cm app -o jsonpath='{.data.SMTP_PASSWORD}'",
)
# What may be around a command without changing its output.
WRAPPERS = (
    "{}",
    "cd /srv && {}",
    "sudo -u app {}",
    "FOO=1 env BAR=2 {}",
    "({})",
    "set -e; {}; true",
    "time {} 2>/dev/null",
    "ssh -p 2222 ann@web1 '{}'",
    "bash -lc '{}'",
    "docker exec -it web {}",
    "kubectl exec -n prod web-0 -c app -- {}",
    "if true; then {}; fi",
)
SIMPLE = ("pass show web/db", "printenv DB_PASSWORD", "cat /run/secrets/db_password", "openssl rand -hex 24")
# Commands whose output is no secret, with an output that looks like one.
HARMLESS = (
    "git rev-parse HEAD",
    "echo $HOME",
    "echo hello",
    "printenv PATH",
    "pass ls",
    "cat README.md",
    "cat id_rsa.pub",
    "cat src/token.py",
    "cat /etc/passwd",
    "cat .env.example",
    "wg pubkey < private",
    "pass show -c web/db",
    "pass show web/db | wc -c",
    "pass show web/db > file",
    "pass show web/db | docker login --password-stdin",
    "echo $DB_PASSWORD | sha256sum",
    "echo ${#DB_PASSWORD}",
    "openssl rand -out key.bin 32",
    "openssl version",
    "vault status",
    "aws s3 ls",
    "kubectl get pods",
    "sha256sum file",
    "npm config get registry",
    "jq -r .name package.json",
    "terraform output -raw vpc_id",
    "grep -rn password= app.conf",
    "grep -o 'token[a-z]*' a.txt",
    "sed 's/^password: //' app.yml",
    "python -c 'print(name)'",
    "cat secrets/README",
)
MESSAGES = (
    "Error: web/db is not in the password store.",
    "bash: pass: command not found",
    "cat: /run/secrets/db: No such file or directory",
    "gpg: decryption failed: No secret key",
    "[ERROR] 2026/10/01 10:00:00 You are not currently signed in.",
    "",
)


def printed(command: str, output: str) -> list[str]:
    """What is secret in the output of a command."""
    return [output[span.start : span.end] for span in find_printed_secrets(command, output)]


@for_each("command", PRINTING)
def test_output_of_a_printing_command_is_secret(command: str) -> None:
    """The whole line is the secret, whatever it looks like."""
    for value in (VALUE, TOKEN):
        assert printed(command, f"{value}\n") == [value]


@for_each("wrapper", WRAPPERS)
def test_wrappers_do_not_hide_the_command(wrapper: str) -> None:
    """Pipes, subshells, other hosts and containers print the same."""
    for command in SIMPLE:
        assert printed(wrapper.format(command), f"{VALUE}\n") == [VALUE], command


@for_each("command", HARMLESS)
def test_output_of_other_commands_is_kept(command: str) -> None:
    """Commands that print something else, or send the secret elsewhere."""
    assert printed(command, f"{TOKEN}\n") == []


@for_each("message", MESSAGES)
def test_messages_are_kept(message: str) -> None:
    """A message instead of the secret is not a secret."""
    for command in SIMPLE[:3]:
        assert printed(command, message + "\n") == []


def test_output_of_several_commands() -> None:
    """Only the line of the command that prints a secret is one."""
    assert printed('echo "--- db"; pass show db; echo done', f"--- db\n{VALUE}\ndone\n") == [VALUE]
    assert printed("git log --oneline -1; pass show db", f"a1b2c3d fix the login\n{VALUE}\n") == [VALUE]
    assert printed('echo "password: $(pass show db) (db)"', f"password: {VALUE} (db)\n") == [VALUE]


def test_named_values() -> None:
    """In structured output, names say which values are secret."""
    output = f'{{"AccessKey": {{"UserName": "ann", "Status": "Active", "SecretAccessKey": "{TOKEN}"}}}}'
    assert set(printed("aws iam create-access-key --user-name ann", output)) == {TOKEN}
    output = f"apiVersion: v1\ndata:\n  db: {TOKEN}\nkind: Secret\nmetadata:\n  name: db\n"
    assert printed("kubectl get secret db -o yaml", output) == [TOKEN]
    output = f"====== Data ======\nKey         Value\n---         -----\nanything    {VALUE}\n"
    assert printed("vault kv get kv/db", output) == [VALUE]
    output = f"ConnectionStrings:Main = {VALUE}\nLogLevel = debug\n"
    assert printed("dotnet user-secrets list", output) == [VALUE]


def test_secret_files() -> None:
    """Files are secret by their names, but not public keys, templates and sources."""
    for path in (
        "/run/secrets/db",
        "/home/ann/.netrc",
        "prod.env",
        "config/secrets.yaml",
        "~/.ssh/id_ed25519",
        "api_token",
    ):
        assert classify_file(path) is not None, path
    for path in ("README.md", "id_ed25519.pub", ".env.sample", "token.py", "package.json", "/etc/passwd", "keys.tsx"):
        assert classify_file(path) is None, path


def test_shell_sessions_in_texts() -> None:
    """A pasted session: a prompt, the command, and its output up to the next prompt."""
    for prompt in ("$ ", "ann@web1:~$ ", "# ", "% ", "PS C:\\app> ", "\u276f "):
        text = f"I did this:\n\n{prompt}pass show db\n{VALUE}\n{prompt}ls\nREADME.md\n\nand it worked"
        found = [text[span.start : span.end] for span in find_in_shell_sessions(text)]
        assert found == [VALUE], prompt
    assert find_in_shell_sessions("Run `pass show db` and then\n$ ls\nREADME.md\n") == []


def test_announced_passwords() -> None:
    """Programs announce a generated password in a sentence."""
    text = f"[Note] A temporary password is generated for root@localhost: {TOKEN}\n"
    assert [text[span.start : span.end] for span in find_announced_passwords(text)] == [TOKEN]
    assert find_announced_passwords("The temporary password for the user was changed.\n") == []


def test_questions_and_answers() -> None:
    """A single word is the answer to a question for a secret. Other questions and answers are kept."""
    for question in ("What is the database password?", "Please paste the API key here.", "Done. I need the token now:"):
        assert asks_for_secret(question), question
    for question in ("Should I rotate the token?", "The password form works now.", "Which file is it?"):
        assert not asks_for_secret(question), question
    assert find_answer(VALUE) is not None
    assert find_answer(f"it's {VALUE}") is not None
    assert find_answer(f"ok, here it is: {VALUE}") is not None
    for answer in ("yes", "no", "continue", "/help", "I do not know it, sorry"):
        assert find_answer(answer) is None, answer


def test_answer_is_removed_from_the_conversation() -> None:
    """The answer, and its repetition in another entry."""
    records = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "What is the admin password?"}]}},
        {"type": "user", "message": {"content": VALUE}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": f"Logging in with {VALUE} now."}]}},
    ]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    texts = str([redactor.redact(record) for record in records])
    assert VALUE not in texts
    assert "Logging in with <secret-1> now." in texts


def test_shell_commands_of_the_user() -> None:
    """What a command after `!` prints."""
    records = [
        {"type": "user", "message": {"content": "<bash-input>pass show db</bash-input>"}},
        {"type": "user", "message": {"content": f"<bash-stdout>{VALUE}\n</bash-stdout><bash-stderr></bash-stderr>"}},
    ]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    assert VALUE not in str([redactor.redact(record) for record in records])


@pytest.mark.parametrize("prompt", ["", "    ", "> ", "  > "])
def test_a_command_that_continues_on_other_lines(prompt: str) -> None:
    """The lines that a shell continues a command on may have a prompt of their own."""
    text = f"me@box:~$ pass \\\n{prompt}show \\\n{prompt}web/db\n{VALUE}\nme@box:~$ ls\n"
    assert [text[span.start : span.end] for span in find_in_shell_sessions(text)] == [VALUE]


def test_time_is_linear() -> None:
    """Hostile commands, outputs and texts take time in proportion to their length."""
    parts = (
        "echo $(",
        "'",
        '"',
        "`pass ",
        "|",
        "$X ",
        "a=b;",
        "pass show x\n",
        "<<E\n",
        "((",
        "\\\n",
        "$ pass show x\n",
        "$ pass show x \\\n",
    )
    for part in share(parts, 4):
        seconds = []
        for size in (20_000, 80_000):
            text = part * (size // len(part))
            started = time.process_time()
            analyze_command(text)
            find_printed_secrets("pass show x", text)
            find_in_shell_sessions(text)
            find_announced_passwords(f"new password {text}")
            asks_for_secret(text)
            seconds.append(time.process_time() - started)
        assert seconds[1] < 20 * max(seconds[0], 0.01), part
        assert seconds[1] < 5, part


@for_each("damaged", ({}, [], [{}], 5, None))
def test_accepts_blocks_of_any_shape(damaged: object) -> None:
    """The kind, name, id or input of a damaged block may be anything. The others are still understood."""
    printing = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pass show web/db"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": VALUE}
    reading = {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "/run/secrets/db"}}
    blocks = [block | {key: damaged} for block in (printing, reading, result) for key in block]
    records = [
        {"type": "assistant", "message": {"role": "assistant", "content": [*blocks, printing]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    assert VALUE not in str(redactor.redact(records[1]))


def test_remembers_calls_whose_results_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are too many calls to remember, the oldest are forgotten, not all."""
    monkeypatch.setattr("threadline.redact.session._MAX_COMMANDS", 3)
    calls = [
        {"type": "tool_use", "id": f"toolu_{at}", "name": "Bash", "input": {"command": "pass show web/db"}}
        for at in range(4)
    ]
    records = [
        {"type": "assistant", "message": {"role": "assistant", "content": calls}},
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "plum"}],
            },
        },
    ]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    assert "plum" not in str(redactor.redact(records[1]))
