"""Sessions with made-up secrets in the encodings, layouts and structures in which real ones leak.

Every value is generated, so this file contains no secret. Each case has the rows of a session and the `traces` of its
secret: texts that no export may contain.
"""

from __future__ import annotations

import base64
import json
import string
import textwrap
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

Rows = list[dict[str, Any]]
_ALNUM = string.ascii_letters + string.digits
_STARTED = "2026-10-01T10:00:{:02}.000Z"


class Case(NamedTuple):
    """A session with a secret. `name` is unique, `family` is the class of the hiding place."""

    name: str
    family: str
    rows: Rows
    traces: tuple[str, ...]


class Secret(NamedTuple):
    """A text that contains a secret, and what no export may contain."""

    text: str | Rows
    traces: tuple[str, ...]


Builder = Callable[[Random], Secret]


# Values


def letters(random: Random, length: int, alphabet: str = _ALNUM) -> str:
    """Random letters of an alphabet, with at least one digit and one letter if the alphabet has both."""
    while True:
        value = "".join(random.choices(alphabet, k=length))
        if any(map(str.isdigit, value)) and any(map(str.isalpha, value)):
            return value


def digits_of(random: Random, length: int) -> str:
    """Random digits."""
    return "".join(random.choices("123456789", k=length))


def password(random: Random) -> str:
    """A password such as people choose: words with a number, or random characters with signs."""
    words = ["Harbor", "violet", "Tractor", "maple", "Quartz", "lemon", "Falcon", "otter", "Pickle", "comet"]
    first, second = random.sample(words, 2)
    return random.choice(
        (
            f"{first}{second}{digits_of(random, 3)}!",
            f"{first}-{second}-{digits_of(random, 2)}",
            f"{first[0]}{letters(random, 9)}#{digits_of(random, 2)}",
            f"{letters(random, 6)}_{second}{digits_of(random, 4)}",
        )
    )


def github(random: Random) -> str:
    """A fine-grained token, whose checksum is not public."""
    return "github" + "_pat_" + letters(random, 22) + "_" + letters(random, 59)


def anthropic(random: Random) -> str:
    """An Anthropic API key."""
    return "sk-" + "ant-api03-" + letters(random, 93, _ALNUM + "_-") + "AA"


def gitlab(random: Random) -> str:
    """A GitLab personal access token."""
    return "glpat" + "-" + letters(random, 20)


def stripe(random: Random) -> str:
    """A Stripe secret key."""
    return "sk_" + "live_" + letters(random, 24)


def token(random: Random) -> str:
    """A token of a well-known format."""
    return random.choice((github, anthropic, gitlab, stripe))(random)


def short_token(random: Random) -> str:
    """A token of a well-known format that fits on a line in every encoding."""
    return random.choice((gitlab, stripe))(random)


def pem(random: Random, label: str = "PRIVATE KEY", count: int = 8) -> str:
    """A private key in PEM."""
    lines = ["".join(random.choices(_ALNUM + "+/", k=64)) for _ in range(count)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"]) + "\n"


def b64(text: str | bytes) -> str:
    """The text in base64."""
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def pieces(text: str, length: int) -> list[str]:
    """The text in pieces of a length."""
    return [text[at : at + length] for at in range(0, len(text), length)]


def whole(value: str) -> tuple[str, ...]:
    """The traces of a secret that must not be there as a whole."""
    return (value,)


# Rows


def prompt(text: str) -> Rows:
    """A prompt."""
    return [{"type": "user", "message": {"role": "user", "content": text}}]


def reply(text: str) -> Rows:
    """A reply of the assistant."""
    return [{"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}]


def call(name: str, tool_input: dict[str, Any], output: str, result: Any = None) -> Rows:
    """A tool call and its result. The client stores the output twice: for the model and for itself."""
    content = {"type": "tool_use", "id": "toolu_ID", "name": name, "input": tool_input}
    answer = {"type": "tool_result", "tool_use_id": "toolu_ID", "content": output}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [content]}},
        {"type": "user", "message": {"role": "user", "content": [answer]}, "toolUseResult": result or output},
    ]


def bash(command: str, output: str = "") -> Rows:
    """A shell command and its output."""
    result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    return call("Bash", {"command": command, "description": "Run it"}, output, result)


def read(path: str, content: str) -> Rows:
    """A file that was read."""
    lines = content.split("\n")
    numbered = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1))
    file = {"filePath": path, "content": content, "numLines": len(lines), "startLine": 1, "totalLines": len(lines)}
    return call("Read", {"file_path": path}, numbered, {"type": "text", "file": file})


def edit(path: str, old: str, new: str, context: tuple[str, ...] = ("# settings",)) -> Rows:
    """An edit of a file, with its patch."""
    lines = [f" {line}" for line in context]
    lines += [f"-{line}" for line in old.split("\n")] + [f"+{line}" for line in new.split("\n")]
    hunk = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": lines}
    result = {"filePath": path, "oldString": old, "newString": new, "structuredPatch": [hunk], "userModified": False}
    tool_input = {"file_path": path, "old_string": old, "new_string": new}
    return call("Edit", tool_input, f"The file {path} has been updated.", result)


# Encodings: the secret is a well-known token, encoded


def _encoded(encode: Callable[[str], str], value: Callable[[Random], str] = short_token) -> Builder:
    def build(random: Random) -> Secret:
        encoded = encode(value(random))
        return Secret(f"Here is what I copied: {encoded} and that is all.", whole(encoded))

    return build


def _utf16_base64(value: str) -> str:
    return b64(value.encode("utf-16-le"))


def _xxd(value: str) -> str:
    rows = []
    for at, part in enumerate(pieces(value, 16)):
        hexadecimal = part.encode().hex()
        rows.append(f"{at * 16:08x}: {' '.join(pieces(hexadecimal, 4)):<39}  {part}")
    return "\n".join(rows)


def _full_width(value: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) for letter in value)


ENCODINGS: dict[str, Builder] = {
    "hex": _encoded(lambda value: value.encode().hex()),
    "hex upper": _encoded(lambda value: value.encode().hex().upper()),
    "hex pairs": _encoded(lambda value: value.encode().hex(" ")),
    "hex colons": _encoded(lambda value: value.encode().hex(":")),
    "hex 0x": _encoded(lambda value: ", ".join(f"0x{byte:02x}" for byte in value.encode())),
    "xxd": lambda random: _traced(value := short_token(random), f"$ xxd token\n{_xxd(value)}\n", pieces(value, 16)[0]),
    "x escapes": _encoded(lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode())),
    "u escapes": _encoded(lambda value: "".join(f"\\u{byte:04x}" for byte in value.encode())),
    "u braces": _encoded(lambda value: "".join(f"\\u{{{byte:x}}}" for byte in value.encode())),
    "octal": _encoded(lambda value: "".join(f"\\{byte:03o}" for byte in value.encode())),
    "url": _encoded(lambda value: "".join(f"%{byte:02X}" for byte in value.encode())),
    "url lower": _encoded(lambda value: "".join(f"%{byte:02x}" for byte in value.encode())),
    "url twice": _encoded(lambda value: "".join(f"%25{byte:02X}" for byte in value.encode())),
    "entities": _encoded(lambda value: "".join(f"&#{byte};" for byte in value.encode())),
    "entities hex": _encoded(lambda value: "".join(f"&#x{byte:x};" for byte in value.encode())),
    "base64": _encoded(b64),
    "base64 with name": _encoded(lambda value: b64(f"export TOKEN={value}\n")),
    "base64 twice": _encoded(lambda value: b64(b64(f"token={value}"))),
    "base64 utf-16": _encoded(lambda value: "powershell -enc " + _utf16_base64(f"$t = '{value}'; Invoke-Thing $t")),
    "base64 wrapped": lambda random: _wrapped_base64(random, 76),
    "base64 wrapped short": lambda random: _wrapped_base64(random, 40),
    "base64url": _encoded(lambda value: base64.urlsafe_b64encode(f"??>{value}".encode()).decode().rstrip("=")),
    "base32": _encoded(lambda value: base64.b32encode(value.encode()).decode()),
    "full width": _encoded(_full_width),
    "character codes": _encoded(lambda value: f"[{', '.join(str(byte) for byte in value.encode())}]"),
    "chr": _encoded(lambda value: "+".join(f"chr({byte})" for byte in value.encode())),
    "fromCharCode": _encoded(lambda value: f"String.fromCharCode({','.join(str(byte) for byte in value.encode())})"),
    "character list": _encoded(lambda value: "[" + ", ".join(f"'{letter}'" for letter in value) + "]"),
    "zero width": _encoded("\u200b".join),
    "word joiner": _encoded("\u2060".join),
    "soft hyphen": _encoded("\u00ad".join),
    "variation selector": _encoded("\ufe0f".join),
    "nul": _encoded("\0".join),
    "pem base64": lambda random: _pem_in(random, lambda key: f"base64 -w0 key.pem\n{b64(key)}"),
    "pem kubeconfig": lambda random: _pem_in(
        random, lambda key: f"- name: me\n  user:\n    client-key-data: {b64(key)}"
    ),
    "pem tls.key": lambda random: _pem_in(random, lambda key: f"kind: Secret\ndata:\n  tls.key: {b64(key)}"),
    "pem json": lambda random: _pem_in(random, lambda key: json.dumps({"key": b64(key)})),
    "pem url": lambda random: _pem_in(random, lambda key: quote(key, safe=""), quote_body=True),
    "pem escaped": lambda random: _pem_in(random, lambda key: json.dumps({"k": key})),
    "pem one line": lambda random: _pem_in(random, lambda key: key.replace("\n", " ")),
}


def _traced(_value: str, text: str, *traces: str) -> Secret:
    return Secret(text, traces)


def _wrapped_base64(random: Random, width: int) -> Secret:
    encoded = textwrap.wrap(b64(f"user = deploy\ntoken = {github(random)}\n"), width)
    # What the first line encodes may be harmless.
    return Secret("cat deploy.b64\n" + "\n".join(encoded), tuple(encoded[1:-1]))


def _pem_in(random: Random, place: Callable[[str], str], *, quote_body: bool = False) -> Secret:
    key = pem(random)
    text = place(key)
    body = key.split("\n")[3]
    plain = quote(body, safe="") if quote_body else body
    return Secret(text, (plain,) if plain in text else (b64(key)[200:280],))


# Layouts: the secret is a well-known token, broken up


def _table(random: Random) -> Secret:
    first, second = _halves(token(random))
    return Secret(f"│ name  │ {first} │\n│       │ {second} │\n└───────┴──┘", (first, second))


def _ascii_table(random: Random) -> Secret:
    first, second = _halves(token(random))
    width = len(first)
    line = f"+-------+-{'-' * width}-+"
    return Secret(f"{line}\n| token | {first} |\n|       | {second:<{width}} |\n{line}", (first, second))


def _halves(value: str) -> tuple[str, str]:
    middle = len(value) // 2 + 1
    return value[:middle], value[middle:]


def _gutter(template: str) -> Builder:
    def build(random: Random) -> Secret:
        first, second = _halves(token(random))
        return Secret(
            template.format(n=12, text=f"key: {first}") + "\n" + template.format(n=13, text=second),
            (first[-12:], second),
        )

    return build


def _joined(template: str) -> Builder:
    def build(random: Random) -> Secret:
        first, second = _halves(token(random))
        return Secret(template.replace("FIRST", first).replace("SECOND", second), (first[-10:], second))

    return build


def _two_patch_lines(random: Random) -> Secret:
    first, second = _halves(token(random))
    return Secret(edit("/srv/app/a.txt", "nothing", f"{first}\n{second}"), (first[-12:], second))


def _two_blocks(random: Random) -> Secret:
    first, second = _halves(token(random))
    rows = prompt("")
    rows[0]["message"]["content"] = [{"type": "text", "text": first}, {"type": "text", "text": second}]
    return Secret(rows, (first[-12:], second))


LAYOUTS: dict[str, Builder] = {
    "box table": _table,
    "ascii table": _ascii_table,
    "gutter pipe": _gutter("{n:>4} | {text}"),
    "gutter colon": _gutter("{n}:{text}"),
    "gutter arrow": _gutter("{n:>5}→{text}"),
    "gutter file": _gutter("src/app.py:{n}:{text}"),
    "gutter box": _gutter("   {n} │ {text}"),
    "carriage return": _joined("downloading\rFIRST\rSECOND"),
    "carriage return lines": _joined("key FIRST\r\nSECOND\r\n"),
    "word diff": _joined("[-none-]{+FIRST+}{+SECOND+}"),
    "word diff split": _joined("token {+FIRST+}\n{+SECOND+}"),
    "plus": _joined('const k = "FIRST" + "SECOND";'),
    "plus lines": _joined('k = (\n    "FIRST"\n    "SECOND"\n)'),
    "dots": _joined('$k = "FIRST" . "SECOND";'),
    "concatenation lua": _joined('local k = "FIRST" .. "SECOND"'),
    "ampersand": _joined('k = "FIRST" & "SECOND"'),
    "join python": _joined('k = "".join(["FIRST", "SECOND"])'),
    "join script": _joined('const k = ["FIRST", "SECOND"].join("");'),
    "shell continuation": _joined("export K=FIRST\\\nSECOND"),
    "quoted mail": _joined("> FIRST\n> SECOND"),
    "comment lines": _joined("# FIRST\n# SECOND"),
    "terminal colours": _joined("\x1b[32mFIRST\x1b[0m\x1b[1mSECOND\x1b[0m"),
    "patch lines": _two_patch_lines,
    "text blocks": _two_blocks,
}


# Structures: the secret is a password or a value without a format, and its name gives it away


def _named(template: str, value: Callable[[Random], str] = password) -> Builder:
    def build(random: Random) -> Secret:
        secret = value(random)
        return Secret(template.replace("SECRET", secret), whole(secret))

    return build


def _with(prefix: str, suffix: str = "") -> Callable[[Random], str]:
    return lambda random: prefix + letters(random, 9) + suffix


def hex_value(random: Random) -> str:
    """A random number of 128 bits."""
    return letters(random, 32, "0123456789abcdef")


def uuid_value(random: Random) -> str:
    """A random UUID."""
    return str(UUID(int=random.getrandbits(128), version=4))


def aws_secret(random: Random) -> str:
    """An AWS secret access key."""
    return letters(random, 39, _ALNUM + "/+") + "q"


STRUCTURES: dict[str, Builder] = {
    "angle": _named(
        "DB_PASSWORD=SECRET", lambda random: f"{letters(random, 5)}<{letters(random, 4)}>{digits_of(random, 2)}"
    ),
    "angle json": _named('{"password": "SECRET"}', lambda random: f"{letters(random, 5)}>{letters(random, 5)}"),
    "my-": _named("DB_PASSWORD=SECRET", _with("my-")),
    "your": _named('password: "SECRET"', _with("your", "9")),
    "dollar": _named('password: "SECRET"', _with("$", "!7")),
    "braces": _named('password = "SECRET"', _with("{k9}", "#")),
    "xxxx": _named('password = "SECRET"', _with("xxxx")),
    "digits": _named('{"password": "SECRET"}', lambda random: digits_of(random, 8)),
    "digits yaml": _named("db:\n  host: db1\n  password: SECRET\n", lambda random: digits_of(random, 9)),
    "digits env": _named("ADMIN_PASSWORD=SECRET\n", lambda random: digits_of(random, 7)),
    "name value": _named('{"name":"DB_PASSWORD","value":"SECRET"}'),
    "name value spaced": _named('{\n  "name": "SMTP_PASS",\n  "value": "SECRET"\n}'),
    "value name": _named('{"value": "SECRET", "name": "API_TOKEN"}', lambda random: letters(random, 28)),
    "kubernetes env": _named("env:\n- name: PGPASSWORD\n  value: SECRET\n- name: PGHOST\n  value: db\n"),
    "parameter key": _named("ParameterKey=MasterPassword,ParameterValue=SECRET"),
    "openssl -k": _named("openssl enc -aes-256-cbc -in a -out b -k SECRET"),
    "password-stdin": _named("echo SECRET | docker login -u ann --password-stdin registry.local"),
    "password-stdin printf": _named("printf '%s' 'SECRET' | helm registry login -u ann --password-stdin reg"),
    "here string": _named("docker login -u ann --password-stdin <<< 'SECRET'"),
    "mongo": _named('db.createUser({user: "app", pwd: "SECRET", roles: []})'),
    "sql insert": _named("INSERT INTO users (name, email, password) VALUES ('ann', 'ann@x.test', 'SECRET');"),
    "sql insert rows": _named(
        "insert into accounts(login, passwd, role) values ('a','SECRET','admin'), ('b','none','x');"
    ),
    "sql update": _named("UPDATE users SET password = 'SECRET' WHERE id = 7;"),
    "sql role": _named("CREATE ROLE app WITH LOGIN PASSWORD 'SECRET';"),
    "sql identified": _named("ALTER USER 'root'@'%' IDENTIFIED WITH mysql_native_password BY 'SECRET';"),
    "yaml anchor": _named("defaults:\n  password: &pw SECRET\n"),
    "yaml tag": _named("password: !!str SECRET\n"),
    "yaml quoted tag": _named('db_password: !vault-plain "SECRET"\n'),
    "toml literal": _named("[db]\npassword = '''SECRET'''\n"),
    "toml multi": _named('[db]\npassword = """\nSECRET"""\n'),
    "json colon": _named('{\n  "password"\n    : "SECRET"\n}'),
    "json value line": _named('{\n  "password":\n    "SECRET"\n}'),
    "jwk": _named(
        '{"kty":"EC","crv":"P-256","x":"abc","d":"SECRET","use":"sig"}',
        lambda random: letters(random, 43, _ALNUM + "-_"),
    ),
    "aws next line": _named("AKIA" + "QWERTYUIOPASDFGH\nSECRET\n", aws_secret),
    "aws csv": _named("Access key ID,Secret access key\nAKIA" + "QWERTYUIOPASDFGH,SECRET\n", aws_secret),
    "csv column": _named("user,password,role\nann,SECRET,admin\n"),
    "markdown column": _named("| user | password |\n|---|---|\n| ann | SECRET |\n"),
    "psql column": _named(" id | login | password \n----+-------+----------\n  1 | ann   | SECRET\n(1 row)\n"),
    "aligned": _named("NAME          VALUE\nDB_HOST       db1\nDB_PASSWORD   SECRET\n"),
    "properties": _named("spring.datasource.username=app\nspring.datasource.password=SECRET\n"),
    "properties space": _named("db.user app\ndb.password SECRET\n"),
    "cloud-init": _named("#cloud-config\nchpasswd:\n  list: |\n    root:SECRET\n  expire: false\n"),
    "preseed": _named("d-i passwd/user-password password SECRET\nd-i passwd/user-password-again password SECRET\n"),
    "kickstart": _named("rootpw --plaintext SECRET\n"),
    "netrc": _named("machine git.corp login ann password SECRET\n"),
    "pgpass": _named("db1.corp:5432:app:ann:SECRET\n"),
    "cisco": _named("username admin privilege 15 password 0 SECRET\n"),
    "cisco secret": _named("enable secret 0 SECRET\n"),
    "wifi": _named('network={\n  ssid="home"\n  psk="SECRET"\n}\n'),
    "network manager": _named("[wifi-security]\nkey-mgmt=wpa-psk\npsk=SECRET\n"),
    "cookie jar": _named(
        ".corp.test\tTRUE\t/\tTRUE\t1999999999\tsessionid\tSECRET\n", lambda random: letters(random, 26).lower()
    ),
    "npmrc": _named("//registry.corp.test/:_authToken=SECRET\n", uuid_value),
    "maven": _named("<server><id>x</id><username>ann</username><password>SECRET</password></server>"),
    "connection string": _named("Server=db1;Database=app;User Id=app;Pwd=SECRET;Encrypt=true"),
    "jdbc": _named("jdbc:sqlserver://db1:1433;user=sa;password=SECRET;encrypt=true"),
    "odbc": _named("DRIVER={PostgreSQL};SERVER=db1;UID=app;PWD=SECRET;"),
    "ansible": _named("web1 ansible_host=web1 ansible_user=ann ansible_ssh_pass=SECRET\n"),
    "tfvars": _named('db_password = "SECRET"\n'),
    "terraform variable": _named('variable "admin_password" {\n  type    = string\n  default = "SECRET"\n}\n'),
    "dockerfile": _named("FROM x\nENV APP_TOKEN SECRET\n", lambda random: letters(random, 20)),
    "systemd": _named('[Service]\nEnvironment="API_TOKEN=SECRET"\n', lambda random: letters(random, 24)),
    "net user": _named("net user ann SECRET /add"),
    "setx": _named('setx DB_PASSWORD "SECRET"'),
    "powershell": _named("$env:DB_PASSWORD = 'SECRET'"),
    "securestring": _named("$p = ConvertTo-SecureString 'SECRET' -AsPlainText -Force"),
    "cmdkey": _named("cmdkey /add:srv1 /user:ann /pass:SECRET"),
    "passwort": _named("Passwort: SECRET"),
    "kennwort": _named('kennwort = "SECRET"'),
    "contraseña": _named("contraseña: SECRET"),
    "mot de passe": _named("mot de passe : SECRET"),
    "senha": _named("senha=SECRET"),
    "пароль": _named("пароль: SECRET"),
    "密码": _named("密码\uff1aSECRET"),
    "パスワード": _named("パスワード: SECRET"),
    "auth tuple": _named('requests.get(url, auth=("ann", "SECRET"))'),
    "basic auth": _named('session.auth = HTTPBasicAuth("ann", "SECRET")'),
    "login call": _named('server.login("ann@corp.test", "SECRET")'),
    "connect call": _named('conn = psycopg2.connect("db1", "app", "SECRET")'),
    "mysql call": _named('mysqli_connect("localhost", "root", "SECRET", "app");'),
    "mysql -p": _named("mysql -h db1 -u root -pSECRET app"),
    "mysqldump": _named("mysqldump --user=root --password=SECRET app > a.sql"),
    "sshpass": _named("sshpass -p 'SECRET' ssh ann@web1"),
    "redis-cli": _named("redis-cli -h cache1 -a SECRET ping"),
    "ldapsearch": _named("ldapsearch -x -D cn=admin,dc=corp -w SECRET -b dc=corp"),
    "smbclient": _named("smbclient //nas/share -U 'ann%SECRET'"),
    "curl user": _named("curl -u ann:SECRET srv1/api"),
    "wget": _named("wget --user=ann --password=SECRET srv1/file"),
    "htpasswd": _named("htpasswd -b -c .htpasswd ann SECRET"),
    "zip": _named("zip -P SECRET out.zip a b"),
    "7z": _named("7z x -pSECRET archive.7z"),
    "keytool": _named("keytool -list -keystore a.jks -storepass SECRET"),
    "gpg": _named("gpg --batch --passphrase SECRET -d a.gpg"),
    "sqlplus": _named("sqlplus system/SECRET@db1:1521/xe"),
    "rabbitmq": _named("rabbitmqctl add_user app SECRET"),
    "xfreerdp": _named("xfreerdp /v:win1 /u:ann /p:SECRET"),
    "ipmitool": _named("ipmitool -I lanplus -H bmc1 -U root -P SECRET power status"),
    "mongo -p": _named("mongosh --host db1 -u root -p SECRET admin"),
    "from literal": _named("kubectl create secret generic db --from-literal=password=SECRET"),
    "vault put": _named("vault kv put secret/db value=SECRET"),
    "heroku": _named("heroku config:set DATABASE_PASS=SECRET -a app"),
    "build arg": _named("docker build --build-arg NPM_TOKEN=SECRET .", lambda random: letters(random, 22)),
    "uuid token": _named("HEROKU_API_KEY=SECRET", uuid_value),
    "uuid header": _named("X-Auth-Token: SECRET", uuid_value),
    "uuid json": _named('{"access_token": "SECRET"}', uuid_value),
    "hex key": _named("SIGNING_KEY=SECRET", hex_value),
    "sentence": _named("The password for the staging box is SECRET, please log in with it."),
    "sentence use": _named("use SECRET as the password for ann"),
    "slash": _named("credentials: ann / SECRET"),
    "url": _named("postgres://app:SECRET@db1/app", lambda random: letters(random, 14)),
    "header list": _named('headers = [("X-Api-Key", "SECRET")]', lambda random: letters(random, 30)),
    "header json": _named('{"header": "X-Api-Key", "value": "SECRET"}', lambda random: letters(random, 30)),
    "xml attribute": _named('<add key="SmtpPassword" value="SECRET" />'),
    "xml attributes": _named('<user name="ann" password="SECRET" roles="admin"/>'),
}


def _two_fields(random: Random) -> Secret:
    secret = password(random)
    return Secret(call("mcp__vault__set", {"name": "DB_PASSWORD", "value": secret}, "stored"), whole(secret))


def _two_keys(random: Random) -> Secret:
    secret = letters(random, 24)
    tool_input = {"options": [{"key": "API_TOKEN", "value": secret}, {"key": "REGION", "value": "eu"}]}
    return Secret(call("mcp__app__configure", tool_input, "done"), whole(secret))


def _answer(random: Random) -> Secret:
    secret = password(random)
    return Secret([*reply("What is the password of the database?"), *prompt(secret)], whole(secret))


STRUCTURES |= {"input fields": _two_fields, "input options": _two_keys, "answer": _answer}


# Provenance: only the command says that its output is secret


def _printed(command: str, value: Callable[[Random], str] = password, output: str = "SECRET\n") -> Builder:
    def build(random: Random) -> Secret:
        secret = value(random)
        return Secret(bash(command, output.replace("SECRET", secret)), whole(secret))

    return build


def plain(random: Random) -> str:
    """Random lower-case letters and digits, which no other rule recognises."""
    return letters(random, 20, string.ascii_lowercase + string.digits)


def _pasted(random: Random) -> Secret:
    secret = password(random)
    return Secret(f"This is what I did:\n\n$ pass show db1\n{secret}\n$ psql -h db1\nConnected.\n", whole(secret))


PROVENANCE: dict[str, Builder] = {
    "pass": _printed("pass show servers/db1"),
    "op": _printed('op read "op://Private/db1/password"'),
    "bw": _printed("bw get password db1"),
    "security": _printed("security find-generic-password -s db1 -w"),
    "secret-tool": _printed("secret-tool lookup service db1"),
    "printenv": _printed("printenv X_SECRET", plain),
    "echo": _printed("echo $DB_PASSWORD"),
    "echo braces": _printed('echo "${API_KEY}"', plain),
    "echo label": _printed('echo "pw: $DB_PASSWORD"', output="pw: SECRET\n"),
    "openssl rand": _printed("openssl rand -hex 24", lambda random: letters(random, 48, "0123456789abcdef")),
    "openssl base64": _printed("openssl rand -base64 24", lambda random: letters(random, 32, _ALNUM + "+/")),
    "pwgen": _printed("pwgen -s 20 1", lambda random: letters(random, 20)),
    "wg": _printed("wg genkey", lambda random: letters(random, 43, _ALNUM + "+/") + "="),
    "python": _printed("python3 -c 'import secrets; print(secrets.token_hex(16))'", hex_value),
    "gh": _printed("gh auth token", plain),
    "gcloud": _printed("gcloud secrets versions access latest --secret=db", plain),
    "aws secret": _printed("aws secretsmanager get-secret-value --secret-id db --query SecretString --output text"),
    "aws ssm": _printed("aws ssm get-parameter --name /db/pw --with-decryption --query Parameter.Value --output text"),
    "aws create key": _printed(
        "aws iam create-access-key --user-name ann --output text",
        aws_secret,
        "ACCESSKEY\tAKIA" + "QWERTYUIOPASDFGH\t2026-10-01T10:00:00Z\tSECRET\tActive\tann\n",
    ),
    "az": _printed("az keyvault secret show --name db --vault-name kv --query value -o tsv", plain),
    "vault": _printed("vault kv get -field=password secret/db"),
    "kubectl jsonpath": _printed("kubectl get secret db -o jsonpath='{.data.password}' | base64 -d"),
    "kubectl token": _printed("kubectl create token admin", plain),
    "kubeadm": _printed(
        "kubeadm token create",
        lambda random: f"{letters(random, 6, 'abcdef0123456789')}.{letters(random, 16, 'abcdef0123456789')}",
    ),
    "sops": _printed("sops -d secret.txt"),
    "doppler": _printed("doppler secrets get STRIPE --plain", plain),
    "heroku": _printed("heroku auth:token", uuid_value),
    "jenkins": _printed("sudo cat /var/lib/jenkins/secrets/initialAdminPassword", hex_value),
    "argocd": _printed("argocd admin initial-password -n argocd", lambda random: letters(random, 16)),
    "docker exec": _printed("docker exec -it jenkins cat /var/jenkins_home/secrets/initialAdminPassword", hex_value),
    "run secrets": _printed("cat /run/secrets/db_password"),
    "ssh pass": _printed("ssh web1 'pass show db'"),
    "sudo pass": _printed("cd /srv && sudo -u app pass show db | head -1"),
    "terraform": _printed("terraform output -raw admin_password"),
    "grafana": _printed(
        "kubectl get secret -n mon grafana -o go-template='{{index .data \"admin-password\"}}' | base64 --decode; echo"
    ),
    "token file": lambda random: _read_secret(random, "/home/ann/.config/app/token", plain),
    "secret file": lambda random: _read_secret(random, "/srv/app/secrets/db_password.txt", password),
    "pasted shell": _pasted,
    "everywhere hex": lambda random: _known_elsewhere(random, lambda value: value.encode().hex()),
    "everywhere base64": lambda random: _known_elsewhere(random, lambda value: b64(f"a{value}")[4:]),
    "everywhere base32": lambda random: _known_elsewhere(
        random, lambda value: base64.b32encode(value.encode()).decode()
    ),
    "everywhere url": lambda random: _known_elsewhere(random, lambda value: "".join(f"%{ord(x):02X}" for x in value)),
    "everywhere escapes": lambda random: _known_elsewhere(
        random, lambda value: "".join(f"\\x{ord(x):02x}" for x in value)
    ),
    "everywhere plain": lambda random: _known_elsewhere(random, lambda value: value),
    "everywhere utf-16": lambda random: _known_elsewhere(random, _utf16_base64),
}


def _read_secret(random: Random, path: str, value: Callable[[Random], str]) -> Secret:
    secret = value(random)
    return Secret(read(path, secret), whole(secret))


def _known_elsewhere(random: Random, encode: Callable[[str], str]) -> Secret:
    secret = letters(random, 18)
    encoded = encode(secret)
    trace = encoded.rstrip("=")[:-2] if encoded != secret else secret
    return Secret([*prompt(f"DB_PASSWORD={secret}"), *bash("tail log", f"sent {encoded} to it")], (secret, trace))


# Formats: tokens of services, wallets and clusters


def _format(prefix: str, length: int, alphabet: str = _ALNUM) -> Builder:
    def build(random: Random) -> Secret:
        value = prefix + letters(random, length, alphabet)
        return Secret(f"it answered {value} to me", whole(value))

    return build


def _composed(template: str, *parts: str | tuple[int, str]) -> Builder:
    """A value of fixed texts and random letters of an alphabet."""

    def build(random: Random) -> Secret:
        value = "".join(
            part if isinstance(part, str) else "".join(random.choices(part[1], k=part[0])) for part in parts
        )
        return Secret(template.replace("SECRET", value), whole(value))

    return build


_HEX = "0123456789abcdef"
_LOWER = string.ascii_lowercase + string.digits
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_WORDS = [
    "abandon",
    "ability",
    "able",
    "about",
    "above",
    "absent",
    "absorb",
    "abstract",
    "absurd",
    "abuse",
    "access",
    "zoo",
]


def _seed_phrase(random: Random) -> Secret:
    phrase = " ".join(random.sample(_WORDS, 12))
    return Secret(f"wallet seed phrase: {phrase}", whole(phrase))


FORMATS: dict[str, Builder] = {
    "anthropic": lambda random: Secret(f"it is {(value := anthropic(random))}", whole(value)),
    "openai project": _format("sk-" + "proj-", 74 + 48, _ALNUM + "_-"),
    "openrouter": _format("sk-" + "or-v1-", 64, _HEX),
    "groq": _format("gsk" + "_", 52),
    "xai": _format("xai" + "-", 80),
    "perplexity": _format("pplx" + "-", 48),
    "replicate": _format("r8" + "_", 37),
    "hugging face": _format("hf" + "_", 34, string.ascii_letters + "123"),
    "pinecone": _format("pcsk" + "_", 69, _ALNUM + "_"),
    "langsmith": _format("lsv2" + "_pt_", 43, _HEX + "_"),
    "langfuse": lambda random: Secret(f"it is {(value := 'sk-' + 'lf-' + uuid_value(random))}", whole(value)),
    "tavily": _format("tvly" + "-dev-", 32),
    "nvidia": _format("nvapi" + "-", 64, _ALNUM + "_-"),
    "e2b": _format("e2b" + "_", 40, _HEX),
    "neon": _format("napi" + "_", 64),
    "supabase": _format("sbp" + "_", 40, _HEX),
    "planetscale": _format("pscale_" + "pw_", 43, _ALNUM + "_-"),
    "xata": _format("xau" + "_", 43),
    "upstash": _format("UPSTASH_REDIS_REST_TOKEN=AX", 54),
    "swarm": _composed("docker swarm join --token SECRET x", "SWMTKN-1-", (50, _LOWER), "-", (25, _LOWER)),
    "k3s": lambda random: Secret(
        f"K3S: {(value := f'K10{letters(random, 64, _HEX)}::server:{letters(random, 32, _HEX)}')}", whole(value)
    ),
    "kubeadm": lambda random: Secret(
        f"kubeadm join cp1:6443 --token {(value := f'{letters(random, 6, _LOWER)}.{letters(random, 16, _LOWER)}')}",
        whole(value),
    ),
    "vault": _format("hvs" + ".", 95, _ALNUM + "_-"),
    "tailscale": lambda random: Secret(
        f"up {(value := f'tskey-auth-{letters(random, 12)}CNTRL-{letters(random, 32)}')}", whole(value)
    ),
    "age": _format("AGE-SECRET-" + "KEY-1", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    "xprv": _format("xprv" + "9s21ZrQH143K", 95, _BASE58),
    "wif": lambda random: Secret(f"wallet private key {(value := '5' + letters(random, 50, _BASE58))}", whole(value)),
    "ethereum": lambda random: Secret(f"PRIVATE_KEY=0x{(value := letters(random, 64, _HEX))}", whole(value)),
    "seed phrase": _seed_phrase,
    "npm": lambda random: Secret(f"NPM_TOKEN={(value := 'npm' + '_' + letters(random, 36))}", whole(value)),
    "docker": _format("dckr_" + "pat_", 27, _ALNUM + "_-"),
    "sentry": _format("sntryu" + "_", 64, _HEX),
    "grafana": lambda random: Secret(
        f"it is {(value := 'glsa' + '_' + letters(random, 32) + '_' + letters(random, 8, _HEX))}", whole(value)
    ),
    "linear": _format("lin_" + "api_", 40),
    "notion": _format("ntn" + "_", 46),
    "figma": _format("figd" + "_", 40, _ALNUM + "_-"),
    "hubspot": lambda random: Secret(f"it is {(value := 'pat-' + 'na1-' + uuid_value(random))}", whole(value)),
    "posthog": _format("phx" + "_", 43),
    "shopify": _format("shpat" + "_", 32, _HEX),
    "sendgrid": lambda random: Secret(
        f"it is {(value := 'SG.' + letters(random, 22) + '.' + letters(random, 43))}", whole(value)
    ),
    "resend": _format("re" + "_", 32, _ALNUM),
    "postman": lambda random: Secret(
        f"it is {(value := 'PMAK-' + letters(random, 24, _HEX) + '-' + letters(random, 34, _HEX))}", whole(value)
    ),
    "1password": _format("ops_" + "eyJ", 250, _ALNUM + "_-"),
    "pulumi": _format("pul" + "-", 40, _HEX),
    "telegram": lambda random: Secret(
        f"bot {(value := digits_of(random, 10) + ':AA' + letters(random, 33, _ALNUM + '_-'))}", whole(value)
    ),
    "slack": _composed("it is SECRET", "xox" + "b-4", (11, "0123456789"), "-7", (12, "0123456789"), "-", (24, _ALNUM)),
    "fly": _format("FlyV1 fm2" + "_", 120, _ALNUM + "+/"),
    "databricks": _format("dapi", 32, _HEX),
    "pypi": _format("pypi-" + "AgEIcHlwaS5vcmc", 150, _ALNUM + "_-"),
}

FAMILIES = {
    "encoding": ENCODINGS,
    "layout": LAYOUTS,
    "structure": STRUCTURES,
    "provenance": PROVENANCE,
    "format": FORMATS,
}
_VARIANTS = 2
_FIRST_SEED = 16


def cases(variants: int = _VARIANTS, seed: int = _FIRST_SEED) -> list[Case]:
    """All cases, each in several variants: in a prompt and in the output of a command."""
    return [
        case
        for family, builders in FAMILIES.items()
        for name, build in builders.items()
        for case in _variants_of(family, name, build, variants, seed)
    ]


def _variants_of(family: str, name: str, build: Builder, variants: int, seed: int) -> Iterator[Case]:
    for variant in range(variants):
        random = Random(f"{family} {name} {variant} {seed}")  # noqa: S311 - made-up secrets
        secret = build(random)
        if isinstance(secret.text, str):
            # Every second one is the output of a command that does not reveal what it prints.
            rows = prompt(secret.text) if variant % 2 == 0 else bash("make show", secret.text)
        else:
            rows = secret.text
        yield Case(f"{family}: {name} {variant}", family, _complete(rows, random), secret.traces)


def _complete(rows: Rows, random: Random) -> Rows:
    """Add what every row has: ids, times, the session."""
    session = uuid_value(random)
    call_id = "toolu_01" + letters(random, 22)
    parent = None
    complete = []
    for number, row in enumerate([*prompt("Please look into it."), *rows, *reply("Done.")]):
        identifier = uuid_value(random)
        common: dict[str, Any] = {
            "parentUuid": parent,
            "isSidechain": False,
            "sessionId": session,
            "uuid": identifier,
            "timestamp": _STARTED.format(number),
            "cwd": "/srv/app",
            "version": "2.1.30",
            "userType": "external",
        }
        if row["type"] == "assistant":
            usage = {"input_tokens": 3, "output_tokens": 5}
            more = {"id": f"msg_{number:022}", "model": "claude-sonnet-4-5", "type": "message", "usage": usage}
            common["message"] = {**row["message"], **more}
        complete.append(json.loads(json.dumps({**row, **common}).replace("toolu_ID", call_id)))
        parent = identifier
    return complete
