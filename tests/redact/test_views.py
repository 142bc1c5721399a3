"""Encodings and layouts hide nothing: every rule also sees the decoded and rejoined text."""

from __future__ import annotations

import base64
import binascii
import codecs
import gzip
import html
import json
import quopri
import zlib
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import is_long_run
from tests.redact.credentials import password, private_key, seeded, token_value
from tests.subtests import for_each

from threadline.redact import Redactor, SessionRedactor
from threadline.redact.rejoining import find_carriage_returns
from threadline.redact.rules.formats import FORMATS
from threadline.redact.views import text_views


def _token(kind: str) -> str:
    (rule,) = (rule for rule in FORMATS if rule.kind == kind)
    return token_value(rule, seeded(21))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _wrap(text: str, width: int, end: str = "\n") -> str:
    return end.join(text[at : at + width] for at in range(0, len(text), width))


def _dump(text: str, row: Callable[[int, bytes], str]) -> str:
    data = text.encode()
    return "\n".join(row(at, data[at : at + 16]) for at in range(0, len(data), 16))


def _words(data: bytes, order: str) -> str:
    data += bytes(len(data) % 2)
    return " ".join((data[at : at + 2][:: 1 if order == "big" else -1]).hex() for at in range(0, len(data), 2))


def _shown(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)


def _math(text: str) -> str:
    bold = {c: chr(0x1D400 + i) for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")}
    return "".join(bold.get(c, c) for c in text)


INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u17b4\u180e\u200b\u200d\u2060\u2064\u2067\u3164\ufe0f\ufeff\uffa0"
    "\U000e0041\U000e0101\U0001d173"
)
ESCAPES: dict[str, Callable[[str], str]] = {
    "\\x": lambda text: "".join(f"\\x{ord(c):02x}" for c in text),
    "\\x in JSON": lambda text: json.dumps("".join(f"\\x{ord(c):02X}" for c in text)),
    "\\x{}": lambda text: "".join(f"\\x{{{ord(c):02x}}}" for c in text),
    "\\u": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "\\u twice": lambda text: json.dumps(json.dumps("".join(f"\\u{ord(c):04x}" for c in text))),
    "\\u{}": lambda text: "".join(f"\\u{{{ord(c):x}}}" for c in text),
    "\\U": lambda text: "".join(f"\\U{ord(c):08x}" for c in text),
    "octal": lambda text: "".join(f"\\{ord(c):03o}" for c in text),
    "octal with a zero": lambda text: "".join(f"\\0{ord(c):03o}" for c in text),
    "percent": lambda text: "".join(f"%{ord(c):02X}" for c in text),
    "percent in lower case": lambda text: "".join(f"%{ord(c):02x}" for c in text),
    "percent twice": lambda text: quote("".join(f"%{ord(c):02X}" for c in text), safe=""),
    "percent and u": lambda text: "".join(f"%u{ord(c):04x}" for c in text),
    "struck through": "\u0336".join,
    "decimal entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "hex entities": lambda text: "".join(f"&#x{ord(c):X};" for c in text),
    "padded entities": lambda text: "".join(f"&#{ord(c):07d};" for c in text),
    "entities twice": lambda text: html.escape("".join(f"&#{ord(c)};" for c in text)),
    "quoted-printable": lambda text: "".join(f"={ord(c):02X}" for c in text),
    "full-width": lambda text: "".join(chr(ord(c) + 0xFEE0) if 0x20 < ord(c) < 0x7F else c for c in text),
    "full-width in JSON": lambda text: json.dumps(
        "".join(chr(ord(c) + 0xFEE0) if 0x20 < ord(c) < 0x7F else c for c in text)
    ),
    "bold letters": _math,
    "every second letter": lambda text: "".join(f"\\x{ord(c):02x}" if i % 2 else c for i, c in enumerate(text)),
    "overstruck": lambda text: "".join(f"{c}\b{c}" for c in text),
    "NUL between letters": "\0".join,
    "escaped NUL between letters": "\\u0000".join,
    "^@ between letters": "^@".join,
    **{f"U+{ord(sign):04X} between letters": sign.join for sign in INVISIBLE},
}
CODES: dict[str, Callable[[str], str]] = {
    "hex": lambda text: text.encode().hex(),
    "hex in capitals": lambda text: text.encode().hex().upper(),
    "hex with a prefix": lambda text: "0x" + text.encode().hex(),
    "bytea": lambda text: "\\x" + text.encode().hex(),
    "SQL hex": lambda text: f"X'{text.encode().hex()}'",
    "hex pairs": lambda text: text.encode().hex(" "),
    "hex pairs with colons": lambda text: text.encode().hex(":"),
    "hex codes": lambda text: ", ".join(f"0x{ord(c):02x}" for c in text),
    "hex codes without blanks": lambda text: "{" + ",".join(f"0x{ord(c):02X}" for c in text) + "}",
    "hex codes over lines": lambda text: "[\n" + "".join(f"  0x{ord(c):02x},\n" for c in text) + "]",
    "plain hex in lines": lambda text: _wrap(text.encode().hex(), 60),
    "UTF-16 in hex": lambda text: text.encode("utf-16-le").hex(),
    "octal codes": lambda text: " ".join(f"{ord(c):03o}" for c in text),
    "octal codes of Python": lambda text: str([f"0o{ord(c):o}" for c in text]).replace("'", ""),
    "binary": lambda text: " ".join(f"{ord(c):08b}" for c in text),
    "binary of Python": lambda text: ", ".join(f"0b{ord(c):08b}" for c in text),
    "a letter a line": "\n".join,
    "decimal codes": lambda text: str(list(text.encode())),
    "decimal codes of JSON": lambda text: json.dumps({"type": "Buffer", "data": list(text.encode())}, indent=2),
    "decimal codes by index": lambda text: json.dumps({str(i): ord(c) for i, c in enumerate(text)}),
    "decimal codes and blanks": lambda text: " ".join(str(ord(c)) for c in text),
    "String.fromCharCode": lambda text: f"String.fromCharCode({','.join(str(ord(c)) for c in text)})",
    "chr": lambda text: " + ".join(f"chr({ord(c)})" for c in text),
    "Chr of Basic": lambda text: " & ".join(f"Chr({ord(c)})" for c in text),
    "CHR of SQL": lambda text: "||".join(f"CHR({ord(c)})" for c in text),
    "PowerShell": lambda text: "+".join(f"[char]{ord(c)}" for c in text),
    "hex chr": lambda text: ".".join(f"chr(0x{ord(c):02x})" for c in text),
    "letters": lambda text: str(list(text)),
    "letters of JSON": lambda text: json.dumps(list(text)),
    "letters over lines": lambda text: json.dumps(list(text), indent=2),
    "letters of C": lambda text: "{" + ",".join(f"'{c}'" for c in text) + "}",
    "letters added": lambda text: " + ".join(f"'{c}'" for c in text),
    "xxd": lambda text: _dump(text, lambda at, data: f"{at:08x}: {_words(data, 'big'):39}  {_shown(data)}"),
    "hexdump": lambda text: _dump(text, lambda at, data: f"{at:07x} {_words(data, 'little')}"),
    "hexdump -C": lambda text: _dump(
        text, lambda at, data: f"{at:08x}  {data[:8].hex(' '):23}  {data[8:].hex(' '):23}  |{_shown(data)}|"
    ),
    "od -b": lambda text: _dump(text, lambda at, data: f"{at:07o} {' '.join(f'{byte:03o}' for byte in data)}"),
    "od -c": lambda text: _dump(text, lambda at, data: f"{at:07o}{''.join(f'{chr(byte):>4}' for byte in data)}"),
    "od -tx1": lambda text: _dump(text, lambda at, data: f"{at:07o} {data.hex(' ')}"),
    "od -An -tx1": lambda text: _dump(text, lambda _at, data: f" {data.hex(' ')}"),
    "base64": _base64,
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in 64 columns": lambda text: _wrap(_base64(text), 64),
    "base64 in 76 columns": lambda text: codecs.encode(text.encode(), "base64").decode(),
    "base64 in JSON": lambda text: json.dumps({"body": _wrap(_base64(text), 64)}),
    "base64 twice": lambda text: _base64(_base64(text)),
    "base64 of more": lambda text: _base64(f"first line\nsecond\n{text}\nand a last one\n"),
    "base64 of JSON": lambda text: _base64(json.dumps({"auths": {"r": {"x": text}}})),
    "base64 of UTF-16": lambda text: "powershell -enc " + base64.b64encode(f"'{text}'".encode("utf-16-le")).decode(),
    "base64 of gzip": lambda text: base64.b64encode(gzip.compress(text.encode())).decode(),
    "hex of gzip": lambda text: gzip.compress(text.encode()).hex(),
    "hex of zlib": lambda text: zlib.compress(text.encode()).hex().upper(),
    "no-break blanks": "\u00a0".join,
    "thin blanks": "\u2009".join,
    "data URL": lambda text: f"data:text/plain;base64,{_base64('it is ' + text)}",
    "base64 in a diff": lambda text: "@@ -1 +1,3 @@\n+" + _wrap(_base64(f"{text} {text}"), 64, "\n+") + "\n same",
    "base64 with line numbers": lambda text: "".join(
        f"{at:6}\u2192{line}\n" for at, line in enumerate(_wrap(_base64(f"{text} {text}"), 64).split("\n"), 9)
    ),
    "base64 in strings": lambda text: 'x = "' + _wrap(_base64(f"{text} {text}"), 60, '"\n    "') + '"',
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "hex of base64": lambda text: _base64(text).encode().hex(),
    "percent of base64": lambda text: quote(_base64(text), safe=""),
}
AROUND = {
    "alone": "{}",
    "in lines": "first line of it\n{}\nlast line of it\n",
    "in a sentence": "the value is {} as far as we know",
    "quoted": 'x = "{}"\n',
}
TOKENS = ("github-token", "openai-key", "aws-access-key-id", "gitlab-token", "slack-bot-token")


def leaks(value: str, encoded: str, redacted: str) -> bool:
    """Whether enough of an encoded value is left to read it."""
    half = len(encoded) // 2
    return value in redacted or encoded[half - 6 : half + 6] in redacted


@for_each("encoding", {**ESCAPES, **CODES})
def test_redacts_encoded_tokens(encoding: str) -> None:
    """A token is redacted in every encoding, the text around it stays, and nothing is left to find."""
    for kind in TOKENS if is_long_run() else TOKENS[1:3]:
        value = _token(kind)
        encoded = {**ESCAPES, **CODES}[encoding](value)
        for name, around in AROUND.items():
            if "\n" in encoded and name in {"in a sentence", "quoted"}:
                continue
            redactor = Redactor()
            redacted = redactor.redact(around.replace("{}", encoded))
            assert "<secret-" in redacted, (name, kind, redacted)
            assert not leaks(value, encoded, redacted), (name, kind, redacted)
            assert redactor.check(redacted) == [], (name, kind, redacted)
            before, _, after = around.partition("{}")
            assert redacted.startswith(before), (name, kind, redacted)
            assert redacted.endswith(after), (name, kind, redacted)


@for_each(
    "encoding", ["\\x", "\\u", "percent", "decimal entities", "full-width", "hex", "base64", "U+200B between letters"]
)
def test_redacts_encoded_values_of_names(encoding: str) -> None:
    """A password is found by its name if the password, the name or the whole assignment is encoded."""
    encode = {**ESCAPES, **CODES}[encoding]
    secret = password(seeded(8)).replace("=", "a").replace("%", "b").replace("~", "c")
    for text in (
        f'DB_PASSWORD="{encode(secret)}"',
        encode(f'export DB_PASSWORD="{secret}" # for the main database'),
        encode(json.dumps({"db": {"password": secret, "port": 5432}})),
    ):
        redactor = Redactor()
        redacted = redactor.redact(f"before\n{text}\nafter")
        assert "<secret-" in redacted, text
        assert encode(secret) not in redacted, text
        if encoding not in {"hex", "base64"}:
            assert secret not in redactor.redact(f"it was {secret} then"), text


KEYS: dict[str, Callable[[str], str]] = {
    "kubeconfig": lambda key: f"users:\n- name: admin\n  user:\n    client-key-data: {_base64(key)}\n",
    "a Kubernetes secret": lambda key: (
        f"kind: Secret\ndata:\n  tls.crt: {_base64('x' * 40)}\n  tls.key: {_base64(key)}\n"
    ),
    "base64 -w0": lambda key: f"$ base64 -w0 key.pem\n{_base64(key)}\n$ ",
    "base64": lambda key: f"$ base64 key.pem\n{_wrap(_base64(key), 76)}\n$ ",
    "JSON": lambda key: json.dumps({"key": _base64(key)}),
    "base64 twice": lambda key: json.dumps({"key": _base64(_base64(key))}),
    "a data URL": lambda key: f"data:application/x-pem-file;base64,{_base64(key)}",
    "a URL": lambda key: f"https://h.example/?key={quote(key, safe='')}&x=1",
    "a URL twice": lambda key: f"https://h.example/?key={quote(quote(key, safe=''))}&x=1",
    "hex": lambda key: key.encode().hex(),
    "xxd": CODES["xxd"],
    "\\x": ESCAPES["\\x"],
    "gzip": CODES["base64 of gzip"],
    "quoted-printable": lambda key: quopri.encodestring(f"Grüße = here\n{key}\n".encode()).decode(),
    "UTF-16": "\0".join,
    "a list of codes": CODES["decimal codes"],
}


@for_each("form", KEYS)
@for_each("label", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY"] if is_long_run() else ["PRIVATE KEY"])
def test_redacts_encoded_private_keys(form: str, label: str) -> None:
    """A private key is redacted in every encoding that carries one: kubeconfig, Kubernetes secrets, URLs, dumps."""
    key = private_key(seeded(9), label=label, lines=6)
    text = KEYS[form](key + "\n")
    redactor = Redactor()
    redacted = redactor.redact(text)
    assert "<secret-1>" in redacted
    assert len(redacted) < len(text) / 3 + 60, redacted
    assert redactor.check(redacted) == []


@for_each("after", ["type", "/srv/app", "project/main", "user"])
def test_keeps_lines_after_encoded_keys(after: str) -> None:
    """A line of letters and slashes after an encoded key is not a part of it."""
    body = private_key(seeded(9), lines=6)
    key = base64.b64encode((body + "\n" * (3 - len(body) % 3)).encode()).decode()
    assert not key.endswith("=")
    assert Redactor().redact(f"{key}\n{after}\nend") == f"<secret-1>\n{after}\nend"


def test_redacts_static_keys_of_openvpn() -> None:
    """A static key is hex between its own marks."""
    random = seeded(3)
    lines = [f"{random.getrandbits(128):032x}" for _ in range(16)]
    mark = "-----{} OpenVPN Static key V1-----"
    redacted = Redactor().redact("\n".join(["#", mark.format("BEGIN"), *lines, mark.format("END"), "x"]))
    assert redacted == "#\n<secret-1>\nx"


def test_redacts_compressed_tokens_whatever_they_start_with() -> None:
    """The third letter of the base64 depends on the first compressed byte."""
    token = "glpat-" + "aZ3kP9xQ2rT7vB1nM4cd"
    encoded = {base64.b64encode(zlib.compress(f"{start}{token}".encode())).decode() for start in ("", *"aAzZ09 x{[~:")}
    assert len({text[:3] for text in encoded}) > 1
    for text in encoded:
        assert text not in Redactor().redact(f"zlib: {text}"), text[:4]


def test_redacts_hex_before_another_word() -> None:
    """A line after hex that is not hex is not part of it."""
    for following in ("VGhpcyBpcyBub3QgaGV4", "nothing-of-it", "zz" * 30):
        encoded = _token("github-token").encode().hex()
        assert Redactor().redact(f"see\n{encoded}\n{following}\n") == f"see\n<secret-1>\n{following}\n"


@given(st.text(alphabet="0123456789abcdefxXuU\\%&#;=+/-_'\", \n\r|()[]{}\u200b\u2502\uff41", max_size=300))
def test_any_text_has_views(text: str) -> None:
    """No text is too odd to decode, and every view maps into the text."""
    for view in text_views(text * 3):
        if not view.text:  # everything was removed, so there is nothing to map
            continue
        start, end = view.where(0, len(view.text))
        assert 0 <= start <= end <= 3 * len(text)


def test_views_of_ordinary_text_are_few() -> None:
    """Hashes, ids, paths, numbers and prose have no views, so they are scanned once."""
    text = "".join(
        f"{at} commit {seeded(at).getrandbits(160):040x} by {at} of /srv/app/module_{at}/file-{at}.py, 12, 34, 56\n"
        "A sentence (of some words), which is [not encoded] - and 100 % plain: a = b + c; x -> y.\n"
        for at in range(200)
    )
    assert list(text_views(text)) == []


def _box(rows: list[tuple[str, ...]], widths: tuple[int, ...], bar: str = "\u2502") -> str:
    lines = [bar + bar.join(f" {cell:{width}} " for cell, width in zip(row, widths, strict=True)) + bar for row in rows]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    return "\n".join([rule, *lines, rule])


LAYOUTS: dict[str, Callable[[str, str], str]] = {
    "a box": lambda a, b: _box([(a,), (b,)], (len(a),)),
    "a box of three lines": lambda a, b: _box([(line,) for line in _wrap(a + b, 9).split("\n")], (9,), "\u2503"),
    "a table with two columns": lambda a, b: _box([("name", a), ("", b), ("other", "plain")], (8, len(a))),
    "a table with a column after it": lambda a, b: _box([("x", a, "note"), ("", b, "")], (4, len(a) + 1, 12), "|"),
    "a table with blanks in it": lambda a, b: _box([("1", f"see {a}", "ok"), ("", b, "")], (3, len(a) + 4, 4)),
    "cat -n": lambda a, b: f"     7\t{a}\n     8\t{b}\n     9\tend\n",
    "line numbers and a bar": lambda a, b: f"  7 | {a}\n  8 | {b}\n",
    "line numbers and an arrow": lambda a, b: f"     7\u2192{a}\n     8\u2192{b}\n",
    "bat": lambda a, b: f"   7   \u2502 {a}\n   8   \u2502 {b}\n",
    "grep -n": lambda a, b: f"7:{a}\n8:{b}\n",
    "rg": lambda a, b: f"src/a.py:7:{a}\nsrc/a.py:8:{b}\n",
    "rg with columns": lambda a, b: f"src/a.py:7:1:{a}\nsrc/a.py:8:1:{b}\n",
    "less -N": lambda a, b: f"      7 {a}\n      8 {b}\n",
    "git blame": lambda a, b: (
        f"^1f3a9bc (Ann 2026-01-02 10:11:12 +0100 7) {a}\n^1f3a9bc (Ann 2026-01-02 10:11:12 +0100 8) {b}\n"
    ),
    "docker logs": lambda a, b: f"web-1  | {a}\nweb-1  | {b}\n",
    "a comment": lambda a, b: f"# {a}\n# {b}\n",
    "a comment of C": lambda a, b: f"/**\n * {a}\n * {b}\n */",
    "a comment of SQL": lambda a, b: f"-- {a}\n-- {b}\n",
    "coloured HTML": lambda a, b: f'<pre>{a}</span><span class="hljs-number">{b}</span></pre>',
    "a carriage return": lambda a, b: f"{a}\r{b}",
    "a carriage return after a word": lambda a, b: f"loading\r{a}\r{b}\r\n",
    "a line that is overwritten": lambda a, b: f"{'.' * len(a)}{b}\r{a}\n",
    "a word diff": lambda a, b: f"key [-none-]{{+{a}+}}{{+{b}+}} end",
    "a word diff inside": lambda a, b: f"key {a}[-9old-]{{+{b}+}} end",
    "the old text of a word diff": lambda a, b: f"key {a}[-{b}-]{{+9+}} end",
    "a diff of words in colours": lambda a, b: f"key {a}\x1b[31mxyz\x1b[m\x1b[32m{b}\x1b[m end",
    "a diff": lambda a, b: f"@@ -1,2 +1,2 @@\n+{a}\n+{b}\n same",
    "a sum of strings": lambda a, b: f'k = "{a}" + "{b}"',
    "a sum over lines": lambda a, b: f"k = '{a}'\n  + '{b}'",
    "strings of C": lambda a, b: f'char *k = "{a}" "{b}";',
    "strings of a shell": lambda a, b: f"""export K="{a}"'{b}'""",
    "strings of C over lines": lambda a, b: f'char *k = "{a}"\n    "{b}";',
    "strings of Lua": lambda a, b: f'k = "{a}" .. "{b}"',
    "strings of Basic": lambda a, b: f'k = "{a}" & "{b}"',
    "strings of Basic over lines": lambda a, b: f'k = "{a}" & _\n    "{b}"',
    "strings of SQL": lambda a, b: f"SELECT '{a}' || '{b}'",
    "strings of Haskell": lambda a, b: f'k = "{a}" ++ "{b}"',
    "strings of Python over lines": lambda a, b: f"k = '{a}' \\\n    '{b}'",
    "formatted strings": lambda a, b: f'k = f"{a}" f"{b}"',
    "join": lambda a, b: f'k = "".join(["{a}", "{b}"])',
    "join of JavaScript": lambda a, b: f"const k = ['{a}', '{b}'].join('')",
    "join over lines": lambda a, b: f'k = [\n  "{a}",\n  "{b}",\n].join("")',
    "Join of Go": lambda a, b: f'k := strings.Join([]string{{"{a}", "{b}"}}, "")',
    "implode": lambda a, b: f"$k = implode('', ['{a}', '{b}']);",
    "CONCAT": lambda a, b: f"SELECT CONCAT('{a}', '{b}')",
    "a continued line": lambda a, b: f"export K={a}\\\n{b}\n",
    "a continued line of PowerShell": lambda a, b: f"$k = {a}`\n{b}\n",
    "a mail": lambda a, b: f"> {a}\n> {b}\n",
    "a mail of a mail": lambda a, b: f">> {a}\n>> {b}\n",
}


@for_each("layout", LAYOUTS)
def test_redacts_tokens_broken_by_layout(layout: str) -> None:
    """A token in two pieces is redacted in every layout, and the text around it stays."""
    for kind in ("github-token", "openai-key", "gitlab-token", "slack-bot-token"):
        value = _token(kind)
        middle = len(value) // 2 + 2
        text = LAYOUTS[layout](value[:middle], value[middle:])
        for before, after in (("", ""), ("the first line\n", "\nthe last line\n")):
            redactor = Redactor()
            redacted = redactor.redact(before + text + after)
            assert value[:middle] not in redacted, redacted
            assert value[middle:] not in redacted, redacted
            assert redacted.startswith(before), redacted
            assert redacted.endswith(after), redacted
            assert redactor.check(redacted) == []


@for_each("layout", ["a sum of strings", "strings of C", "join", "a continued line", "a word diff inside", "cat -n"])
def test_redacts_named_values_broken_by_layout(layout: str) -> None:
    """A password in two pieces is found by its name."""
    secret = "q7Vn2xLp" + password(seeded(4))[:6].replace("=", "a")
    text = LAYOUTS[layout](secret[:7], secret[7:])
    text = (
        text.replace("k = ", "db_password = ")
        .replace("*k = ", "*db_password = ")
        .replace("export K=", "export DB_PASSWORD=")
        .replace("key ", "password: ")
    )
    if layout == "cat -n":
        text = f"     7\tdb_password: |\n     8\t  {secret}\n     9\thost: db\n"
    redacted = Redactor().redact(text)
    assert secret[:7] not in redacted
    assert secret[7:] not in redacted


@for_each("margin", ["# ", "// ", " * ", "src/a.py:7:", "web-1  | ", "-- ", "\u2502 "])
def test_redacts_private_keys_in_margins(margin: str) -> None:
    """A private key is redacted with any margin before its lines."""
    lines = private_key(seeded(5), lines=5).split("\n")
    redactor = Redactor()
    end = " \u2502" if margin == "\u2502 " else ""
    redacted = redactor.redact("".join(f"{margin}{line:64}{end}\n" for line in ["before", *lines, "after"]))
    assert all(line not in redacted for line in lines[1:-1])
    assert "before" in redacted
    assert "after" in redacted


def test_redacts_ssh2_keys() -> None:
    """A private key in the format of SSH2 is redacted, also in base64, and a public one stays."""
    body = private_key(seeded(6), lines=4).split("\n")[1:-1]
    lines = ["Subject: ann", 'Comment: "2048-bit rsa"', *body]
    key = "\n".join(["---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----", *lines, "---- END SSH2 ENCRYPTED PRIVATE KEY ----"])
    for text in (f"see\n{key}\nend", f"see\n{_base64(key)}\nend", f"see\n{quote(key)}\nend"):
        redactor = Redactor()
        assert redactor.redact(text) == "see\n<secret-1>\nend"
    public = key.replace("ENCRYPTED PRIVATE", "PUBLIC")
    assert body[1] in Redactor().redact(public)


@for_each(
    "start", ["MHcCAQEEI", "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0w", "MC4CAQAwBQYDK2VwBCIEI", "MIIEvQIBADANBgkq"]
)
def test_redacts_bodies_of_private_keys(start: str) -> None:
    """The body of a private key is recognised by its first bytes, without its armour."""
    body = start + "".join(seeded(3).choices("ABCDEFGHabcdefgh01234567+/", k=64 - len(start)))
    redacted = Redactor().redact(f"it is\n{body}\nend")
    assert redacted == "it is\n<secret-1>\nend"


def _uuencode(text: str) -> str:
    data = text.encode()
    lines = [binascii.b2a_uu(data[at : at + 45]).decode().rstrip("\n") for at in range(0, len(data), 45)]
    return "\n".join(["begin 644 key.txt", *lines, "`", "end"])


@for_each("padding", ["", "the first line is longer than one line of the encoding can be\n"])
def test_redacts_uuencoded_tokens(padding: str) -> None:
    """A token in a block of uuencode is redacted, also if it starts on one line and ends on the next."""
    encoded = _uuencode(padding + _token("github-token"))
    redacted = Redactor().redact(f"see\n{encoded}\nend of it")
    assert encoded.split("\n")[-3] not in redacted
    assert redacted.startswith("see\nbegin 644 key.txt\n")
    harmless = _uuencode("nothing but a few words of text in here")
    assert Redactor().redact(harmless) == harmless


@for_each("tag", ["b", "i", "code", "td"])
def test_redacts_entities_in_tags(tag: str) -> None:
    """A token of entities is redacted inside an element."""
    for form in ("&#{};", "&#x{:x};"):
        encoded = "".join(form.format(ord(c)) for c in _token("github-token"))
        assert encoded[:40] not in Redactor().redact(f"<p>Use <{tag}>{encoded}</{tag}></p>")


def test_redacts_values_after_carriage_returns() -> None:
    """A value is redacted if a padded label and a carriage return precede it."""
    secret = password(seeded(9))
    assert secret not in Redactor().redact(f"working\rRoot password:{' ' * 20}\r{secret}\r\nready")


@given(st.text("ab \r", max_size=30))
def test_what_a_terminal_shows_of_overwritten_texts(line: str) -> None:
    """Each text is written over those before it. The line is shown if the last text does not hide them."""
    shown = last = ""
    for last in line.rstrip("\r").split("\r"):
        before, shown = shown, last + shown[len(last) :]
        is_mixture = len(last) < len(before.rstrip())
    views = list(find_carriage_returns(line))
    assert [part.text for part in views[-1]] == ([shown] if is_mixture else []) if views else "\r" not in line


JOINED_IN_CODE = {
    "adjacent": 'KEY = ("{a}"\n       "{b}")\n',
    "adjacent, numbered": '     3\u2192KEY = ("{a}"\n     4\u2192       "{b}")\n',
    "plus, numbered": "    11\u2192let k = '{a}' +\n    12\u2192  '{b}';\n",
    "PowerShell": '$key = "{a}" + `\n    "{b}"\n',
    "append": 'new StringBuilder().append("{a}").append("{b}")',
    "append in two statements": 'out.append("{a}");\n  out.append("{b}");\n',
    "stream": 'out << "{a}" << "{b}";',
    "concat": "const k = '{a}'.concat('{b}')",
    "strcat": 'strcpy(key, "{a}");\nstrcat(key, "{b}");\n',
    "appended in a shell": "K={a}\nK+={b}\n",
    "appended in Python": 'key = "{a}"\nprint(1)\nkey += "{b}"\n',
    "in itself": 'K="{a}"\nK="${{K}}{b}"\n',
    "sum with itself": "k = '{a}'\nk = k + '{b}'\n",
    "f-string": 'p = "{a}"\nq = "{b}"\nKEY = f"{{p}}{{q}}"\n',
    "template": "const p = '{a}';\nconst q = '{b}';\nuse(`${{p}}${{q}}`)\n",
    "sum of variables": 'q = "{b}"\np = "{a}"\nKEY = p + q\n',
    "shell variables": 'P={a}\nQ={b}\ncurl -H "K: $P$Q" host\n',
}


@for_each("layout", JOINED_IN_CODE)
def test_redacts_both_halves_of_joined_strings(layout: str) -> None:
    """Both halves of a token that a program joins are redacted, also if it has only letters."""
    letters = "hf_" + "".join(seeded(3).choices("abcdefghkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", k=34))
    for token in (_token("github-token"), _token("gitlab-token"), letters):
        a, b = token[:15], token[15:]
        redacted = Redactor().redact(JOINED_IN_CODE[layout].format(a=a, b=b))
        assert a not in redacted
        assert b not in redacted


def test_keeps_joined_variables_that_are_no_token() -> None:
    """Values of variables stay if they are no token together."""
    for text in (
        'prefix = "ghp_"\nname = "some_name"\nKEY = f"{prefix}{name}"\n',
        "K=glpat-\nK+=documentation\n",
        'a = "hf_hub"\nb = "download"\nc = a + b\n',
    ):
        assert Redactor().redact(text) == text


def test_redacts_tokens_that_psql_wraps() -> None:
    """Both halves of a token are redacted in a wrapped cell of psql, in the last column and before it."""
    token = _token("github-token")
    a, b = token[:18], token[18:]
    for text in (
        f" id |  value\n----+-----\n  3 | {a}.\n    |.{b}\n",
        f"  value | id\n-----+----\n| {a}.| 3\n|.{b} |\n",
        f" id |  value\n----+-----\n  3 | {a}+\n    | {b}\n",
    ):
        redacted = Redactor().redact(text)
        assert a not in redacted
        assert b not in redacted


@for_each("side", ["left", "right"])
def test_redacts_tokens_in_panes(side: str) -> None:
    """Both halves of a token are redacted if one of two panes wraps it."""
    token = _token("github-token")
    a, b = token[:20], f"{token[20:]:20}"
    rows = [("$ show key", "PID CMD"), (a, " 7 init"), (b, " 8 node")]
    width = 20 if side == "left" else 8
    text = "\n".join(
        f"{(first if side == 'left' else second):{width}}\u2502{second if side == 'left' else first}"
        for first, second in rows
    )
    redacted = Redactor().redact(text)
    assert a not in redacted
    assert b.strip() not in redacted


def test_redacts_known_secrets_reversed_and_in_base32() -> None:
    """A known secret is redacted reversed and in base32, also if it is short."""
    secret = "".join(seeded(8).choices("abcdefghkmnp23456789", k=12))
    redactor = Redactor()
    redactor.learn(f"DB_PASSWORD={secret}")
    for form in (
        secret[::-1],
        base64.b32encode(secret.encode()).decode(),
        base64.b32encode(f"{secret}\n".encode()).decode(),
    ):
        assert form[:16].rstrip("=") not in redactor.redact(f"it prints {form} here")


def test_joined_lines_end_with_a_whole_word() -> None:
    """The beginning of a text is also searched as one line. A path that is cut there would be another one."""
    for length in range(380, 400):
        content = "a\n" + "x " * (length // 2) + "/home/runner/work /home/runner"
        record = {"type": "user", "message": {"role": "user", "content": content}}
        redactor = SessionRedactor()
        redactor.learn(record)
        assert redactor.redact(record) == record


def test_part_of_a_known_secret_is_not_found_in_another_word() -> None:
    """A known secret is found without a letter or two at its ends, but not in a word that only resembles it."""
    secret = "harbour/" + "41c07de-8"
    redactor = Redactor()
    redactor.redact(f"password={secret}")
    for other in ("harbour/41c07de-9", "xarbour/41c07de-8", "harbour/41c07dea"):
        assert redactor.redact(f"see {other} there") == f"see {other} there"
    for cut in (secret, secret[1:], secret[:-1], secret[2:-2]):
        assert "rbour" not in redactor.redact(f"see {cut} there")
