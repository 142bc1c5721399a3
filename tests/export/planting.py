"""A made-up home with credentials planted in every field of every kind of entry."""

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
from threadline.redact.formats import SERVICES
from threadline.redact.tokens import FORMATS

CORPUS = Path(__file__).parents[1] / "corpus"
# What holds the transcript together: nothing can be planted there without making another transcript of it.
HOLDS = word_set(
    "type subtype role uuid parentUuid logicalParentUuid leafUuid sessionId session_id id tool_use_id toolUseID"
    " parentToolUseID sourceToolUseID sourceToolAssistantUUID messageId requestId agentId timestamp isoTimestamp"
    " promptId taskId task_id attributionSkill media_type data"
)
WAYS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: f"see {text} there",
    "JSON": lambda text: json.dumps({"text": f"first\n{text}\nlast"}),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"a": [f"x\t{text}"]})),
    "across lines": lambda text: f"first\n  {text}\n\nlast",
    "in a diff": lambda text: f"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+{text}\n",
    "numbered": lambda text: f"    12\u2192{text}\n    13\u2192",
}


class Planted:
    """A planted credential: its kind, its value, and the text that gives it away."""

    def __init__(self, kind: str, value: str, text: str) -> None:
        self.kind = kind
        self.value = value
        self.text = text
        self.times = 0

    @property
    def lines(self) -> list[str]:
        """What must be nowhere: the value; of a private key, each line of its body."""
        return self.value.split("\n")[1:-1] if "\n" in self.value else [self.value]


def credentials() -> list[Planted]:
    """More than 150 of more than 40 kinds."""
    made = [Planted(rule.kind, value := token_value(rule, seeded(at)), value) for at, rule in enumerate(FORMATS)]
    for at, service in enumerate(SERVICES):
        value = service_value(service, seeded(1000 + at))
        made.append(Planted(service.kind, value, f"{service.names[0].upper()}_API_KEY={value}"))
    for seed in range(12):
        value = password(seeded(2000 + seed)).replace("@", "a").replace("%", "b").replace("\\", "c")
        made.append(Planted("password", value, f'"password": "{value}"'))
        made.append(Planted("url-password", f"{value}x9", f"postgres://u:{value}x9@db.acme.io/x"))
    made += [Planted("private-key", key := private_key(seeded(3000 + seed)), key) for seed in range(4)]
    return made


def plant(home: Path, *, with_demo: bool) -> list[Planted]:
    """Write the rows of the corpus, beside a demo home or not, plant credentials, and return them.

    Each file of the corpus is a project. In one folder, each would be read to see whether it continues the others.
    """
    if with_demo:
        write(home)
    for at, path in enumerate(sorted(CORPUS.rglob("in/**/*.jsonl"))):
        if path.stat().st_size < 200_000:  # one of them is a single line of megabytes
            folder = home / f"projects/-work-corpus-{at}"
            folder.mkdir(parents=True)
            (folder / f"c0ffee00-0000-4000-8000-{at:012}.jsonl").write_bytes(path.read_bytes())
    every = credentials()
    planter = Planter(every)
    for path in sorted((home / "projects").rglob("*.jsonl")):
        path.write_bytes(b"\n".join(map(planter.line, path.read_bytes().split(b"\n"))))
    return every


class Planter:
    """Plants credentials one after the other, in one way after the other."""

    def __init__(self, every: list[Planted]) -> None:
        self._following = cycle(every)
        self._ways = cycle(WAYS.values())
        self.seen = Counter[str]()

    def line(self, raw: bytes) -> bytes:
        """A line with a credential in the first few texts of each path that its kind has."""
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return raw
        if not isinstance(value, dict):
            return raw
        kind = f"{value.get('type')}/{value.get('subtype') or _attached(value)}"
        try:
            return json.dumps(self._planted(value, kind), ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            return raw

    def _planted(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {key: one if key in HOLDS else self._planted(one, f"{path}.{key}") for key, one in value.items()}
        if isinstance(value, list):
            return [self._planted(one, f"{path}[]") for one in value]
        if not isinstance(value, str) or self.seen[path] >= 3:
            return value
        self.seen[path] += 1
        secret = next(self._following)
        secret.times += 1
        return f"{value} {next(self._ways)(secret.text)}"


def _attached(value: dict[str, Any]) -> str:
    attachment = value.get("attachment")
    return str(attachment.get("type")) if isinstance(attachment, dict) else ""
