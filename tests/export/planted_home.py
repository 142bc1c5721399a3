"""A generated home with credentials planted in every field of every kind of entry."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from tests.redact.credentials import password, private_key, seeded, service_value, token_value
from tools.demo import write

from threadline.redact import word_set
from threadline.redact.rules.formats import FORMATS, SERVICES

CORPUS = Path(__file__).parents[1] / "corpus"
# Fields that structure a transcript. Planting text in them would change the transcript.
STRUCTURAL_FIELDS = word_set(
    "type subtype role uuid parentUuid logicalParentUuid leafUuid sessionId session_id id tool_use_id toolUseID"
    " parentToolUseID sourceToolUseID sourceToolAssistantUUID messageId requestId agentId timestamp isoTimestamp"
    " promptId taskId task_id attributionSkill media_type data"
)
FORMS_OF_TEXT: dict[str, Callable[[str], str]] = {
    "plain": lambda text: f"see {text} there",
    "JSON": lambda text: json.dumps({"text": f"first\n{text}\nlast"}),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"a": [f"x\t{text}"]})),
    "across lines": lambda text: f"first\n  {text}\n\nlast",
    "in a diff": lambda text: f"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+{text}\n",
    "numbered": lambda text: f"    12\u2192{text}\n    13\u2192",
}


class Planted:
    """A planted credential: its kind, its value, and the text around it."""

    def __init__(self, kind: str, value: str, text: str) -> None:
        self.kind = kind
        self.value = value
        self.text = text
        self.times = 0

    @property
    def lines(self) -> list[str]:
        """The texts that must not be exported: the value, or each line of a private key's body."""
        return self.value.split("\n")[1:-1] if "\n" in self.value else [self.value]


def credentials() -> list[Planted]:
    """More than 150 credentials of more than 40 kinds."""
    planted = [
        Planted(rule.kind, value := token_value(rule, seeded(number)), value) for number, rule in enumerate(FORMATS)
    ]
    for number, service in enumerate(SERVICES):
        value = service_value(service, seeded(1000 + number))
        planted.append(Planted(service.kind, value, f"{service.names[0].upper()}_API_KEY={value}"))
    for seed in range(12):
        value = password(seeded(2000 + seed)).replace("@", "a").replace("%", "b").replace("\\", "c")
        planted.append(Planted("password", value, f'"password": "{value}"'))
        planted.append(Planted("url-password", f"{value}x9", f"postgres://u:{value}x9@db.acme.io/x"))
    planted += [Planted("private-key", key := private_key(seeded(3000 + seed)), key) for seed in range(4)]
    return planted


def plant(home: Path, *, with_demo: bool) -> list[Planted]:
    """Write the rows of the corpus, optionally with a demo home, plant credentials, and return them.

    Each file of the corpus is a project. In one folder, each would be read to see whether it continues the others.
    """
    if with_demo:
        write(home)
    for number, path in enumerate(sorted(CORPUS.rglob("in/**/*.jsonl"))):
        if path.stat().st_size < 200_000:  # one of them is a single line of megabytes
            folder = home / f"projects/-work-corpus-{number}"
            folder.mkdir(parents=True)
            (folder / f"c0ffee00-0000-4000-8000-{number:012}.jsonl").write_bytes(path.read_bytes())
    planted = credentials()
    planter = Planter(planted)
    for path in sorted((home / "projects").rglob("*.jsonl")):
        path.write_bytes(b"\n".join(map(planter.line, path.read_bytes().split(b"\n"))))
    _plant_rest(home, planted)
    return planted


MIN_TIMES = 2
_ROWS_PER_SESSION = 40


def _plant_rest(home: Path, planted: list[Planted]) -> None:
    """Plant the credentials for which the rows have too few fields, in prompts of further sessions."""
    ways = cycle(FORMS_OF_TEXT.values())
    texts = []
    for secret in planted:
        while secret.times < MIN_TIMES:
            secret.times += 1
            texts.append(next(ways)(secret.text))
    for number, start in enumerate(range(0, len(texts), _ROWS_PER_SESSION)):
        session = f"c0ffee01-0000-4000-8000-{number:012}"
        rows = [
            {
                "type": "user",
                "uuid": f"c0ffee02-0000-4000-8000-{start + at:012}",
                "parentUuid": f"c0ffee02-0000-4000-8000-{start + at - 1:012}" if at else None,
                "sessionId": session,
                "timestamp": f"2026-03-01T10:{at:02}:00.000Z",
                "cwd": "/work/rest",
                "message": {"role": "user", "content": text},
            }
            for at, text in enumerate(texts[start : start + _ROWS_PER_SESSION])
        ]
        path = home / f"projects/-work-rest-{number}/{session}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


class Planter:
    """Plants credentials in turn, in each form in turn."""

    def __init__(self, credentials: list[Planted]) -> None:
        self._credentials = cycle(credentials)
        self._ways = cycle(FORMS_OF_TEXT.values())
        self.counts = Counter[str]()

    def line(self, raw: bytes) -> bytes:
        """A line with a credential in the first few texts at each JSON path of its kind."""
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return raw
        if not isinstance(value, dict):
            return raw
        kind = f"{value.get('type')}/{value.get('subtype') or _attachment_type(value)}"
        try:
            return json.dumps(self._plant(value, kind), ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            return raw

    def _plant(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {
                key: item if key in STRUCTURAL_FIELDS else self._plant(item, f"{path}.{key}")
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._plant(item, f"{path}[]") for item in value]
        if not isinstance(value, str) or self.counts[path] >= 3:
            return value
        self.counts[path] += 1
        secret = next(self._credentials)
        secret.times += 1
        return f"{value} {next(self._ways)(secret.text)}"


def _attachment_type(value: dict[str, Any]) -> str:
    attachment = value.get("attachment")
    return str(attachment.get("type")) if isinstance(attachment, dict) else ""
