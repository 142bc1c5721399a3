"""Another scanner finds nothing in redacted text, and the real home has few findings."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.profiles import is_long_run
from tests.redact.credentials import password, private_key, seeded, service_value, token_value
from tests.redact.test_context import PASSWORDS
from tests.redact.test_formats import ASSIGNED, CONTEXTS

from threadline.redact import PERSONAL_KINDS, RecordScanner, Redactor
from threadline.redact.rules.formats import FORMATS, SERVICES

HOME = Path(__file__).parents[3] / "shared/corpus/home"


def scanner() -> Path | None:
    """The path of kingfisher's program, or None if it is not installed."""
    package = find_spec("kingfisher")
    bundled = Path(package.origin).parent / "bin/kingfisher" if package and package.origin else None
    on_path = shutil.which("kingfisher")
    return bundled if bundled and bundled.exists() else Path(on_path) if on_path else None


def findings(folder: Path) -> list[str]:
    """The rule ids of everything that kingfisher finds below a folder, at the lowest confidence."""
    program = scanner()
    assert program is not None
    options = ("--no-validate", "--no-update-check", "--confidence", "low", "--format", "json")
    result = subprocess.run(  # noqa: S603 - the path of an installed program
        [program, "scan", *options, folder], capture_output=True, check=False, text=True, timeout=120
    )
    answer, _end = json.JSONDecoder().raw_decode(result.stdout)
    return [finding["rule"]["id"] for finding in answer["findings"]]


def texts_with_credentials() -> list[str]:
    """Texts with credentials of every kind in every context."""
    texts = [context(token_value(rule, seeded(at))) for at, rule in enumerate(FORMATS) for context in CONTEXTS.values()]
    for at, service in enumerate(SERVICES):
        value = service_value(service, seeded(at))
        texts += [assign(f"{service.names[0].upper()}_API_KEY", value) for assign in ASSIGNED.values()]
    for seed in range(5):
        secret = password(seeded(seed)).replace("@", "a").replace("%", "b")
        texts += [form.format(secret) for form in PASSWORDS.values()]
        texts.append(private_key(seeded(seed)))
    return texts


@pytest.mark.slow
@pytest.mark.skipif(scanner() is None, reason="kingfisher-bin is not installed")
def test_another_scanner_finds_nothing_after_redaction(tmp_path: Path) -> None:
    """Kingfisher finds many of the planted credentials, and none in the redacted texts."""
    texts = texts_with_credentials()
    redactor = Redactor()
    for text in texts:
        redactor.learn(text)
    for name, contents in {"before": texts, "after": [redactor.redact(text) for text in texts]}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "texts.txt").write_text("\n\n".join(contents))
    assert len(findings(tmp_path / "before")) > 100
    assert findings(tmp_path / "after") == []


@pytest.mark.real
@pytest.mark.skipif(not HOME.exists(), reason="the real home is not here")
def test_the_real_home_has_few_findings() -> None:
    """Fewer than two texts per megabyte of the real home are taken for credentials. The counts by kind are printed."""
    counts: Counter[str] = Counter()
    size = 0
    # Every eighth line, or all of them in a long run.
    step = 1 if is_long_run() else 8
    for path in sorted(HOME.rglob("*.jsonl")):
        records = RecordScanner()
        for line in path.read_bytes().splitlines()[::step]:
            size += len(line)
            try:
                counts.update(match.span.kind for match in records.find(json.loads(line)))
            except ValueError:
                continue
    print(dict(counts.most_common()), f"in {size / 1e6:.0f} MB")  # noqa: T201 - figures for a person to judge
    assert sum(count for kind, count in counts.items() if kind not in PERSONAL_KINDS) < 2 * size / 1e6
