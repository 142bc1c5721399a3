"""Every kind of problem and every domain term is documented."""

from __future__ import annotations

from tests.docs.pages import DOCS, sections

from threadline.model.places import ProblemKind

GLOSSARY = [
    "home",
    "project",
    "transcript",
    "line",
    "place",
    "entry",
    "message",
    "block",
    "prompt",
    "reply",
    "call",
    "turn",
    "thread",
    "branch",
    "agent",
    "compaction",
    "session",
    "act",
    "side agent",
    "side file",
    "usage",
    "sighting",
    "origin",
    "charge",
    "amount",
    "ledger",
    "rate",
    "receipt",
    "problem",
    "hit",
    "index",
    "keep",
    "kept",
    "kept home",
    "fold",
    "archive",
]


def test_every_problem_has_a_heading() -> None:
    """Each kind of problem has a heading, and there are no others."""
    titles = {section.title for section in sections(DOCS / "problems.md").values() if section.level == 2}
    assert titles == {kind.value for kind in ProblemKind}


def test_every_problem_says_what_to_do() -> None:
    """Each problem has a cause, what threadline does, and what to do."""
    for kind in ProblemKind:
        text = sections(DOCS / "problems.md")[kind.value].text
        assert all(f"\n{start}: " in text for start in ("Cause", "What threadline does", "What to do")), kind


def test_every_term_has_a_row() -> None:
    """The glossary has each domain term once, in order, with a meaning."""
    rows = sections(DOCS / "glossary.md")["Glossary"].table
    assert [row["term"] for row in rows] == GLOSSARY
    assert all(row["meaning"] and "instead of" in row for row in rows)
