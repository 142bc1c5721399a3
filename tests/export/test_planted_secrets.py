"""Secrets in encodings, layouts and structures are removed from every export, and the formats agree on each."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.redact.planted import Case, cases

from threadline.export import ExportFormat, ExportOptions, export_sessions
from threadline.export.leak_check import UnsafeExport
from threadline.redact import Settings
from threadline.render import Detail, View

FULL_VIEW = View(thinking=Detail.FULL, calls=Detail.FULL, agents=Detail.FULL, images=False, everything=True)
FORMATS = ("md", "html", "json", "jsonl", "txt")
MIN_REMOVED = 0.95
_TAG = re.compile(r"<[^>]*>")

pytestmark = pytest.mark.slow  # exports more than five hundred sessions in five formats


def verdicts(planted: Iterable[Case], folder: Path) -> dict[str, dict[str, str]]:
    """Per case and format: `removed`, `leaves` or `refused`."""
    return {
        case.name: {form: _export(case, form, folder / str(number) / form) for form in FORMATS}
        for number, case in enumerate(planted)
    }


def _export(case: Case, form: str, folder: Path) -> str:
    main = folder / "projects" / "-srv-app" / f"{case.rows[0]['sessionId']}.jsonl"
    main.parent.mkdir(parents=True)
    main.write_text("".join(json.dumps(row) + "\n" for row in case.rows), encoding="utf-8")
    options = ExportOptions(ExportFormat(form), FULL_VIEW, Settings())
    try:
        result = export_sessions([main], options, folder / "staging")
    except UnsafeExport:
        return "refused"
    text = result.files[0].path.read_text(encoding="utf-8")
    views = [_without_blanks(view) for view in _views(form, text)]
    traces = [_without_blanks(trace) for trace in case.traces]
    return "leaves" if any(trace in view for view in views for trace in traces) else "removed"


def _without_blanks(text: str) -> str:
    """The text without blanks and line ends, because plain text is wrapped."""
    return "".join(text.split())


def _views(form: str, text: str) -> Iterator[str]:
    """What a reader of the file can see: the raw text, and the text without its markup or JSON escapes."""
    yield text
    if form == "html":
        yield html.unescape(text)
        yield html.unescape(_TAG.sub("", text))
    elif form == "md":
        yield html.unescape(text).replace("\\", "")
    elif form in {"json", "jsonl"}:
        for line in text.splitlines() if form == "jsonl" else [text]:
            yield from _texts(json.loads(line))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list):
        yield "\n".join(item for item in value if isinstance(item, str))
        for item in value:
            yield from _texts(item)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The verdicts for all cases."""
    return verdicts(cases(), tmp_path_factory.mktemp("planted"))


def test_there_are_enough_secrets(results: dict[str, dict[str, str]]) -> None:
    """At least five hundred."""
    assert len(results) >= 500


def test_the_harness_sees_every_secret_without_redaction() -> None:
    """Every trace is in the session itself; otherwise its absence in an export would mean nothing."""
    for case in cases():
        texts = list(_texts(case.rows))
        missing = [trace for trace in case.traces if not any(trace in text for text in texts)]
        assert not missing, case.name


def test_nearly_all_secrets_are_removed(results: dict[str, dict[str, str]]) -> None:
    """At least 95 % are removed from every format. A refused export removes nothing."""
    kept = [name for name, by_format in results.items() if set(by_format.values()) != {"removed"}]
    assert len(kept) <= len(results) * (1 - MIN_REMOVED), summary(results)


def test_formats_agree(results: dict[str, dict[str, str]]) -> None:
    """Every case has the same verdict in all formats."""
    different = {name: by_format for name, by_format in results.items() if len(set(by_format.values())) > 1}
    assert not different


def summary(results: dict[str, dict[str, str]]) -> str:
    """How many cases of each family are removed, and which are not."""
    lines = []
    families = Counter(name.partition(":")[0] for name in results)
    for family, total in families.items():
        failing = [
            f"{name} {sorted(set(by_format.values()))}"
            for name, by_format in results.items()
            if name.startswith(family) and set(by_format.values()) != {"removed"}
        ]
        lines += [f"{family}: {total - len(failing)} of {total} removed", *(f"    {name}" for name in failing)]
    return "\n".join(lines)
