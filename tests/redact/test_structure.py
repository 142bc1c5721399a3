"""Redacts values by the structure around them, and keeps references, placeholders and code."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.redact.credentials import seeded
from tests.redact.structures import STRUCTURES
from tests.subtests import for_each

from threadline.redact import Redactor, SessionRedactor, find_spans_in_bytes

PLAIN = "abcdefghijkmnpqrstuvwxyz"
FULL_WIDTH_COLON = "\uff1a"


def _secret(seed: int) -> str:
    """A password of letters and digits, such as every structure can contain."""
    random = seeded(seed)
    return "q7" + "".join(random.choices(PLAIN + PLAIN.upper(), k=7)) + str(random.randint(1000, 9999))


@for_each("structure", STRUCTURES)
def test_redacts_a_value_by_its_structure(structure: str) -> None:
    """A value is found by its name wherever both may be: fields, columns, lines, options, arguments, sentences."""
    secret = _secret(len(structure))
    text = structure.replace("{}", secret)
    assert secret not in Redactor().redact(text)
    assert secret not in Redactor().redact(f"set -eu\n{text}\nls\n")


@pytest.mark.parametrize(
    "password",
    [
        "pa<ss>w0rd77",
        "<a8Kd93>kq",
        "my-dog-Rex-2019",
        "myself-Kx83",
        "yourselfX93k",
        "$uperS3cret!9",
        "$w0rdf1sh77",
        "{abc}Xy77zq",
        "{M7G8aSITA}iuH",
        "xxxxR3alPass!",
        "x9>k2<q7ww",
        "replace8Kd2",
        "20431977",
        "471182",
        "insert-coin-88x",
    ],
)
@pytest.mark.parametrize("form", ["DB_PASSWORD={}", 'password: "{}"', '{{"password": "{}"}}', "password = '{}'"])
def test_redacts_passwords_with_signs_and_words_of_placeholders(form: str, password: str) -> None:
    """Whether a value is a placeholder is decided by its whole form: a password may contain the same signs."""
    assert password not in Redactor().redact(form.format(password))


@pytest.mark.parametrize(
    "value",
    [
        "<your-password>",
        "<password>",
        "$DB_PASSWORD",
        "$dbPassword1",
        "${DB_PASSWORD}",
        "${{ secrets.DB_PASSWORD }}",
        "{{ vault_password }}",
        "{password}",
        "%DB_PASSWORD%",
        "@DB_PASSWORD@",
        "$(cat /run/secret)",
        "xxxxxxxx",
        "xxxx-xxxx-1234",
        "********",
        "your-password-here",
        "YOUR_PASSWORD",
        "my-secret-password",
        "changeme",
        "change-me-please",
        "example-password",
        "process.env.DB_PASSWORD",
        "settings.SECRET_KEY",
        "vault:secret/data/db#password",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db",
    ],
)
@pytest.mark.parametrize("form", ["DB_PASSWORD={}", 'password: "{}"', '{{"name": "DB_PASSWORD", "value": "{}"}}'])
def test_keeps_references_and_placeholders(form: str, value: str) -> None:
    """A reference to a variable, a template or a store, and a text that says what belongs there, stay."""
    assert value in Redactor().redact(form.format(value))


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password(); token: str; secret_key=settings.SECRET_KEY; tool --password PASSWORD",
        "max_tokens: 1234, password_length: 1234, password_timeout=3600, pass: 1234, if len(password) > 3:",
        "def connect(host, user, password): pass  # pass timeout=3 to it; pass `check=True`",
        "the password for the account is required; reset the password to continue; enter the password again",
        "| name | password |\n|---|---|\n| required | string |\n",
        "INSERT INTO users (name, password) VALUES (?, ?), (%s, %s), (:name, :password), ($1, $2);",
        "names = [\n    'password',\n    'username',\n    'token2_name',\n]\n",
        '{"name": "password", "type": "password", "label": "Password", "required": true}',
        '{"key": "password", "value": "Passwort"}, {"key": "password", "value": "Enter the password"}',
        "echo $PASSWORD | docker login --password-stdin; docker login --password-stdin <<< $TOKEN",
        "mysql -u root -p; ssh -p 2222 host; mkdir -p a/b1; docker run -p 8080:80 x; cp -a x1 y; tar -P a.tgz",
        "curl -u $USER:$PASS https://h.example; smtp.login(user, password); requests.get(url, auth=(user, token))",
        'client.connect("localhost", 8080); log("a", "b2"); login("ann", password); page.fill("#name", "ann")',
        'password: !secret db_password\npassword: !vault "x"\npassword: !Ref DbPassword\n',
        'Password\n\n## 2. Next\n"minipass": "^7.0.3", "compass": "4.11", AttributeOID.PASSWORD: "challengePassword"',
        "#  define  XXH3_withSecret  XXH3_128bits_withSecret\n#  define  XXH3_64bits_reset  XXH_NAME2\n",
        "password.encode('utf-8'); hashed by sha256; password hash argon2id; key 7 of 9; token v1.2.3",
        "env:\n- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: x\n- name: LEVEL\n  value: verbose\n",
        "- name: DB_PASSWORD valueFrom: secretKeyRef: key: password - name: LEVEL value: verbose",
        "DB_PASSWORD: ${DB_PASSWORD:?must be set}\nA=${DB_PASSWORD:+given99}; B=${API_TOKEN?no token7}",
        'export DB_PASSWORD="${DB_PASSWORD:-not set yet}"',
        '{"login.password": "Kennwort eingeben", "reset.password": "Erneuern", "password": "Mot de passe"}',
        '{"login.token": "Best\u00e4tigungswort", "token": "Zugangsschl\u00fcssel", "password": "Contrase\u00f1a"}',
        "- password\n- last_seen2\n",
        "* name\n* hash_password\n* feature/8d7c6b5-3\n",
        "1. password\n- last_seen2\n\npassword\n- last_seen3\n- password:\n- last_seen4\n",
        "Parameters:\n  DbPassword:\n    Type: String\n  Level:\n    Default: verbose77\n",
        '"password": {"type": "string", "default": "none"}, "level": {"default": "verbose77"}',
        '{"type": "token", "value": "verbose77"}; the password is 8 characters; password=getUserPwFromDb',
        'secret_key_base: "test-only-secret-base-that-is-at-least-64-bytes-long-so-that-phoenix-accepts-it-now"',
        "`hash_password`\n- `entire/05500ab-2` is next; Pwd: `<home-8>\\Documents\\project7`,",
        'expect("password").toBe("x")\nsend(page7)\n',
        "OAuth 2.0 RFC6749; a community of 1200x; an item identified by `key2`; expect 3x of it; net user time",
    ],
)
def test_keeps_code_and_prose_about_passwords(text: str) -> None:
    """Calls, types, counters, versions, labels, placeholders of SQL and sentences stay."""
    assert [text[span.start : span.end] for span in find_spans_in_bytes(text.encode())] == []


@pytest.mark.parametrize(
    ("form", "alphabet", "length"),
    [
        ("lftp -u ann,{} ftp.example.net", "hTkQmZxWpRv", 12),
        ("curl -d 'user=ann&password={}' https://h.example", "hTkQmZxWpRv", 14),
        ("the password is {} now", "23456789", 8),
        ("define('AUTH_SALT', '{}');", "aK7|x ^T3}p [Q9#", 64),
    ],
)
def test_redacts_values_of_few_kinds_of_characters(form: str, alphabet: str, length: int) -> None:
    """Letters of mixed case, digits alone, and the salts of WordPress, which contain blanks, are values too."""
    secret = "".join(seeded(length).choices(alphabet, k=length)).strip()
    assert secret not in Redactor().redact(form.format(secret))


@pytest.mark.parametrize(
    "name", ["contraseña", "Пароль", "hasło", "şifre", "密码", "パスワード", "비밀번호", "סיסמה", "lösenord", "κωδικός"]
)
def test_redacts_after_names_in_other_languages(name: str) -> None:
    """The word for password is known in other languages, also with their own colon."""
    secret = _secret(len(name))
    for form in (f"{name}: {secret}", f'"{name}": "{secret}"', f"{name}{FULL_WIDTH_COLON}{secret}"):
        assert secret not in Redactor().redact(form)


@pytest.mark.parametrize(
    "form",
    [
        '<wsse:Password Type="http://acme.example/profile#PasswordText">{}</wsse:Password>',
        "<secret><![CDATA[{}]]></secret>",
        '<db:password encrypted="false">\n  <![CDATA[{}]]>\n</db:password>',
        'user, password = "app", "{}"',
        'SecretString::new("{}".into())',
        "SELECT crypt('{}', gen_salt('bf'));",
        "DB_PASSWORD={{{}}}",
        "vault operator unseal {}",
        "vault operator unseal -address=https://vault.acme.example {}",
        "LABEL=admin:$$apr1$$abcdefgh$${}",
    ],
)
def test_redacts_in_elements_tuples_and_calls(form: str) -> None:
    """The name is that of an element with attributes, of one of two variables, or of the call itself."""
    secret = _secret(len(form)) + "Q7x"
    assert secret not in Redactor().redact(form.format(secret))


@pytest.mark.parametrize(
    "command",
    [
        "echo {} | sudo -S apt update",
        "echo {} | docker login --password-stdin -u ann acme.example",
        "sudo -S id <<< {}",
    ],
)
def test_redacts_what_can_only_be_a_password(command: str) -> None:
    """What these options read is a password even if it looks like the name of a variable."""
    secret = "".join(seeded(len(command)).choices(PLAIN, k=6)) + "_QRsTUvWxY"
    assert secret not in Redactor().redact(command.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "echo building_all_targets | sudo -s",
        "echo my_object_name | git hash-object --stdin",
        "echo $SUDO_WORD | sudo -S apt update",
        '<password type="string"><![CDATA[${DB_PASSWORD}]]></password>',
        'names = ["user","password","group"]\n',
        '"user","password","group"\n"required","required","optional"\n',
        'user, password = "app", os.environ["DB_PASSWORD"]',
        "user, password = read(), ask()",
        "SecretString::new(value.into())",
        "DB_PASSWORD={db_password}",
        "DB_PASSWORD={password1}",
        "vault operator unseal -status",
        "echo $$1$$2$$3",
    ],
)
def test_keeps_what_only_resembles_these_elements_tuples_and_calls(text: str) -> None:
    """References, words for people and other calls stay."""
    assert Redactor().redact(text) == text


def test_redacts_every_row_of_a_column() -> None:
    """All cells below a name are secret, in every layout, and the other cells stay."""
    secrets = [_secret(seed) for seed in range(3)]
    rows = [("ann", secrets[0], "x1"), ("bob", secrets[1], "x2"), ("eve", secrets[2], "x3")]
    layouts = {
        "CSV": ("user,password,group\n", "{},{},{}\n"),
        "CSV with quotes": ('"user","password","group"\n', '"{}","{}","{}"\n'),
        "psql": (" user | password | group \n------+----------+------\n", " {} | {} | {} \n"),
        "Markdown": ("| user | password | group |\n|---|---|---|\n", "| {} | `{}` | {} |\n"),
        "TSV": ("user\tpassword\tgroup\n", "{}\t{}\t{}\n"),
        "SQL": ("INSERT INTO t (`user`, `password`, `group`) VALUES ", "('{}', '{}', '{}'),\n"),
        "COPY": ("COPY t (user, password, group) FROM stdin;\n", "{}\t{}\t{}\n"),
    }
    for layout, (head, line) in layouts.items():
        text = Redactor().redact(head + "".join(line.format(*row) for row in rows))
        assert not [secret for secret in secrets if secret in text], layout
        assert all(user in text and group in text for user, _secret, group in rows), layout


def test_redacts_the_secret_next_to_an_aws_key_id() -> None:
    """The secret has no mark of its own. It is found on the line of its id and on the next one; a git hash stays."""
    random = seeded(4)
    key_id = "AKIA" + "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16))
    secret = "".join(random.choices(PLAIN + PLAIN.upper() + "0123456789/+", k=37)) + "9aB"
    for form in (
        f"{key_id}\n{secret}\n",
        f"{key_id} {secret}",
        f"{key_id},{secret}",
        f"id: {key_id}\nthe other: {secret}",
    ):
        assert secret not in Redactor().redact(form)
    commit = "3f786850e387550fdab836ed7e6dc881de23001b"
    assert commit in Redactor().redact(f"{key_id} in {commit}")


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", "value"), ("Key", "Value"), ("ParameterKey", "ParameterValue"), ("label", "value"), ("header", "val")],
)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_redacts_a_value_that_another_field_names(name: str, value: str, is_reversed: bool) -> None:
    """In a tool's input, the name and the secret may be in two fields, in any order."""
    secret = _secret(7)
    fields = {name: "DB_PASSWORD", "type": "string", value: secret}
    arguments = dict(reversed(fields.items())) if is_reversed else fields
    block = {"type": "tool_use", "id": "toolu_1", "name": "set", "input": {"items": [arguments]}}
    record = {"type": "assistant", "message": {"role": "assistant", "content": [block]}}
    redactor = SessionRedactor()
    redactor.learn_all([record])
    assert secret not in str(redactor.redact(record))


def test_redacts_every_value_of_a_list() -> None:
    """The values of a list after a name are all secret."""
    secrets = [_secret(seed) for seed in range(3)]
    text = Redactor().redact(f'passwords: ["{secrets[0]}", "{secrets[1]}", "{secrets[2]}"], other: ["harmless12"]')
    assert text == 'passwords: ["<secret-1>", "<secret-2>", "<secret-3>"], other: ["harmless12"]'


@pytest.mark.parametrize(
    "form",
    [
        "radius server office\n key {}\n",
        "set psksecret {}\n",
        "secret={}\n",
        "Server=s;Uid=sa;Pwd={};Encrypt=true",
        "AUTH_TOKEN={}",
    ],
)
def test_redacts_words_with_a_number_in_configuration(form: str) -> None:
    """Words with dots between them and a number at the end are no reference; names of programs and types are."""
    for words in ("walnut.river.stone" + "47", "Walnut.river.Stone" + "48"):
        assert words not in Redactor().redact(form.format(words))
    for reference in ("config.settings.SECRET_KEY", "module.sub.value", "package.module.int32"):
        assert form.startswith("radius") or reference in Redactor().redact(form.format(reference))


@pytest.mark.parametrize(
    "form",
    [
        "\u6570\u636e\u5e93\u5bc6\u7801\u662f{}\uff0c\u8c22\u8c22",
        "\u5bc6\u7801\u4e3a{}\u3002",
        "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f{}\u3067\u3059",
        "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f\u300c{}\u300d\u3067\u3059",
    ],
)
def test_redacts_in_languages_without_blanks(form: str) -> None:
    """The value directly follows the word for `is`."""
    secret = _secret(5)
    assert secret not in Redactor().redact(form.format(secret))


def test_redacts_encoded_values_of_sql_and_of_the_registry() -> None:
    """The bytes of a value are listed, and its name comes before or after it."""
    secret = _secret(9)
    digits = secret.encode().hex().upper()
    statement = "UPDATE options SET v = 0x{} WHERE k = 'mail_password'"
    assert digits not in Redactor().redact(statement.format(digits))
    numbers = ",".join(f"{byte:02x}" for byte in secret.encode("utf-16-le"))
    broken = f"{numbers[:29]},\\\n  {numbers[30:]}"
    for listed in (numbers, broken):
        assert numbers[30:] not in Redactor().redact(f'"DefaultPassword"=hex(2):{listed},00,00\n')


def test_redacts_app_passwords_of_calls_that_log_in() -> None:
    """Four groups of letters, as Google shows them."""
    secret = "vddo-onnm-hkvm-dvfw".replace("-", " ")
    for call in ('smtp.login("ann@acme.io", "{}")', "server.login(user, '{}')"):
        assert secret not in Redactor().redact(call.format(secret))
    kept = 'form.login("ann", "open the main page")'
    assert Redactor().redact(kept) == kept


def test_redacts_app_passwords_and_recovery_codes() -> None:
    """Four groups of letters after `app password`, and lists of codes below a heading."""
    groups = "qwzx ncmr" + " plok tyhg"
    for form in ("mail app password: {}", "The app password is {}."):
        assert groups not in Redactor().redact(form.format(groups))
    random = seeded(3)
    halves = ["".join(random.choices("0123456789abcdef", k=4)) + "7" for _ in range(8)]
    numbers = [str(random.randint(10_000_000, 99_999_999)) for _ in range(4)]
    for codes in (["-".join(pair) for pair in pairwise(halves)], numbers):
        for form in ("Recovery codes:\n{}\n", "## Backup codes\n\n- {}\n", "my recovery codes: {}"):
            text = Redactor().redact(form.format("\n".join(codes)))
            assert not [code for code in codes if code in text]


@pytest.mark.parametrize(
    "text",
    [
        "The backup codes are stored in the table. Recovery codes\nare shown once in 20240101.",
        '{"title": "Reset password", "body": "Click below"}, {"label": "Forgot password", "text": "forgot"}',
        "git clone git@example.com:team/repo1; [link] ann@example.com: hello12",
        '{:password, "required"}, {:error, "password1 is wrong"}, {password, Value}',
        "app password: must have four words or more; clave_primaria = 'id_cliente7'; senha_incorreta: 'texto1'",
        "UPDATE t SET v = NULL WHERE k = 'password'; UPDATE t SET v = ? WHERE k = 'password'",
        "Token\nsome_function_name1\n\nAPI key\nrequired1\n",
        "-----BEGIN PUBLIC KEY-----\\nMIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEA\\n-----END PUBLIC KEY-----\\n",
        '{"type": "random_password", "result": null}, {"result": "harmless12"}',
    ],
)
def test_keeps_texts_that_resemble_these_structures(text: str) -> None:
    """Sentences, labels, messages, references and names stay."""
    assert [text[span.start : span.end] for span in find_spans_in_bytes(text.encode())] == []


@pytest.mark.parametrize(
    ("name", "value"), [("title", "body"), ("label", "content"), ("subject", "text"), ("element", "text")]
)
def test_learns_a_value_that_a_title_names(name: str, value: str) -> None:
    """A value below a title is learned, so that every format of an export removes it, also in other records."""
    secret = _secret(11)
    block = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {name: "VPN password", value: secret}}
    record = {"type": "assistant", "message": {"role": "assistant", "content": [block]}}
    other = {"type": "user", "message": {"role": "user", "content": f"it was {secret} yesterday"}}
    redactor = SessionRedactor()
    redactor.learn_all([record, other])
    assert secret not in str(redactor.redact(other))
    assert secret not in str(redactor.redactor.redact_record(record))


def test_redacts_values_that_resemble_texts_for_people() -> None:
    """A phrase, a property of a program, a default of a variable and a list below a heading may be secret."""
    secret = _secret(3)
    for form in ("Password:\n- {}\n", "DB_PASSWORD=${{DB_PASSWORD:-{}}}", '"login.password": "{}"'):
        assert secret not in Redactor().redact(form.format(secret))
    for text in ('"password": "quiet horse battery"', '"spring.datasource.password": "Quiethorse"'):
        assert "horse" not in Redactor().redact(text)


WORDS = ("walnut", "lantern", "copper", "heron", "saddle", "thimble", "orchard", "pebble", "marmot", "trellis")


@pytest.mark.parametrize(
    "name", ["JWT_SECRET", "SECRET", "API_KEY", "SESSION_SECRET", "STRIPE_SECRET_KEY", "AUTH_TOKEN"]
)
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("form", ["{}={}", 'export {}="{}"', "{}: '{}'", '{{"name": "{}", "value": "{}"}}'])
def test_redacts_secrets_of_plain_words(name: str, sign: str, form: str) -> None:
    """Words without a digit are secret after a name that can denote nothing else, quoted or as a line of settings."""
    secret = sign.join(seeded(len(name + form)).sample(WORDS, 3))
    assert secret not in Redactor().redact(form.format(name, secret))


@pytest.mark.parametrize(
    "form", ["DB_PASSWORD={}", "PORT=1\nexport DB_PASSWORD={}\n", "passphrase: {}", "db:\n  password: {}\n  port: 1"]
)
@pytest.mark.parametrize(("sign", "number"), [(" ", ""), (" ", " 77"), ("-", "")])
def test_redacts_passphrases_without_quotes(form: str, sign: str, number: str) -> None:
    """The words up to the end of a line of settings are one value."""
    words = seeded(len(form)).sample(WORDS, 4)
    redacted = Redactor().redact(form.format(sign.join(words) + number))
    assert redacted == form.format("<secret-1>")


def test_redacts_app_specific_passwords_of_apple() -> None:
    """Four groups of four letters after an option for a password."""
    secret = "-".join("".join(seeded(number).choices(PLAIN, k=4)) for number in range(4))
    command = "xcrun notarytool submit a.zip --apple-id ann@example.com --password {} --team-id T"
    assert secret not in Redactor().redact(command.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=your-key-here\nSECRET=undefined\nJWT_SECRET=environment\nAPI_KEY=configuration\nSECRET: development",
        'SECRET_KEY = "my-app-secret"\nAPI_KEY = "api-key"\nAUTH_TOKEN: "auth-token"\nCLIENT_SECRET="supersecretvalue"',
        "api_key=os.environ['KEY']; secret = None; client_secret=load_secret; secret: readonly",
        "secretName: walnut-lantern\nsecretKeyRef: walnut-lantern-copper\nSESSION_KEY = 'theme-preference'\n",
        "jwt_secret: string; the secret is walnut-lantern; SECRET walnut-lantern; API_KEY | walnut-lantern",
        "password: enter the password again\npassphrase: must be at least eight characters\nPassword: New York Times",
        "PGPASSWORD=postgres psql postgres postgres\nDB_PASSWORD=postgres docker compose up\n",
        "password: the words of a sentence\nuse password: walnut lantern copper heron\n",
    ],
)
def test_keeps_words_that_are_not_secret(text: str) -> None:
    """Examples, references, types, states, commands and sentences stay."""
    assert [text[span.start : span.end] for span in find_spans_in_bytes(text.encode())] == []
