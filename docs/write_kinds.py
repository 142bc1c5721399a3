"""Write the lists of kinds in `redaction.md` from the program's tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from threadline.redact.rules.formats import FORMATS, SERVICES
from threadline.redact.scanner import CONTEXT_KINDS, PERSONAL_KIND_DESCRIPTIONS

PAGE = Path(__file__).with_name("redaction.md")
HEADING = "## The kinds\n"


def write_kinds() -> str:
    """The lists of all kinds, as Markdown."""
    tables = {
        "By format": {rule.kind: rule.what for rule in FORMATS},
        "By the service's name": {service.kind: service.what for service in SERVICES},
        "By context": CONTEXT_KINDS,
        "Personal data": PERSONAL_KIND_DESCRIPTIONS,
    }
    return HEADING + "".join(f"\n### {title}\n\n{_table(kinds)}" for title, kinds in tables.items())


def _table(kinds: Mapping[str, str]) -> str:
    return "| kind | what |\n|---|---|\n" + "".join(f"| `{kind}` | {what} |\n" for kind, what in kinds.items())


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().split(HEADING)[0] + write_kinds())
