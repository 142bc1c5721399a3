"""Every interface gives the same answer to the same question, with an index or without, on every home.

What was decided where interfaces disagree, and which answer each question is held against (`RIGHT`):

- **agents** are those that do work the model gave away. Side agents are not counted: format.md says of one whose first
  prompt is `Warmup` "drop from counts, keep spend", docs/sessions.md that those with `side` set "are not counted as
  work", and an agent with one bare reply and no prompt is a warm-up of 2.0.60. `threadline.read` sees that.
- **started, ended, duration** are the first and the last time of the main transcript: an agent that goes on in the
  background does not make its session longer. Odd years are times like any other. The session's page is right.
- **calls**: a result may stand in another file of the session, so the outcome is `threadline.read`'s: `ok`, not `lost`.
- **files** are those that calls or attachments touched. One that only a snapshot names was not touched.
- **entries** are those that `threadline.entries` gives: a torn or blank last line is one, of kind `pending` or `blank`.
- **number of sessions, number of agents**: activity counts what the list lists. A session in which nobody spoke is
  none, one in two files is one, and side agents are none. Where an agent's session is gone, the number is not asked.
- **sessions, ledger, problems** are what reading the transcripts gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.golden import demo_home
from tests.interfaces import entry
from tests.interfaces.cases import CORPORA, cases
from tests.interfaces.interfaces import Answers, ask_all

KNOWN_DISAGREEMENTS: tuple[tuple[str, str, str], ...] = ()
"""A question, interfaces, and cases in which these answer it wrongly. To be emptied, never added to."""

LEDGER_KEYS = ("day", "session, model", "project, branch", "agent", "tool", "home, machine")
RIGHT = {
    "sessions": "library without index",
    "title": "read",
    "agents": "read",
    "started": "session page",
    "ended": "session page",
    "duration": "session page",
    "turns": "read",
    "entries": "read",
    "calls": "read",
    "files": "read",
    "number of sessions": "read",
    "number of agents": "read",
    "newest sessions": "command without index",
    "later sessions": "command without index",
    "overview": "library without index",
    "ledger": "library without index",
    "charges": "library without index",
    **{f"ledger by {keys}": "library without index" for keys in LEDGER_KEYS},
    "problems": "library without index",
}
"""The interface whose answer to a question is right, where interfaces disagree."""

_SESSION = "5e551011-0000-4000-8000-000000000001"
DECIDED: dict[tuple[str, str], Any] = {
    ("sessions/warm-up-is-a-side-agent", "agents"): [(_SESSION, 0)],
    ("account/agent-inside-its-session-is-told-apart", "agents"): [(_SESSION, 0)],
    ("account/agent-beside-the-sessions-names-its-session-inside", "agents"): [(_SESSION, 0)],
    ("account/progress-repeats-an-agents-message", "agents"): [(_SESSION, 0)],
    ("account/workflow-agents-belong-to-their-session", "agents"): [(_SESSION, 0)],
    ("sessions/agent-below-the-session", "duration"): [(_SESSION, 3.0)],
    ("sessions/result-in-another-file-of-the-session", "calls"): [("t1", "Agent", "ok"), ("u1", "Bash", "ok")],
    ("account/torn-last-line-is-not-counted", "entries"): [(_SESSION, 2)],
}
"""Right answers where interfaces were seen to disagree, written out."""

CASES = {case.name: case for corpus in CORPORA for case in cases(corpus)}
DEMO = "demo"


@pytest.fixture(scope="module", autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with entry.alone(tmp_path_factory.mktemp("agree"), frozen=False):
        yield


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (at % 3 > 0)) for at, name in enumerate(CASES)]
)
def test_every_case_has_one_answer(name: str, tmp_path: Path) -> None:
    """All interfaces answer all questions about a case alike, but for known disagreements, which are still there."""
    _agree(name, CASES[name].home(tmp_path / "home"))


def test_a_demo_home_has_one_answer(tmp_path: Path) -> None:
    """The same for a home with forks, agents, branches and compactions."""
    _agree(DEMO, demo_home.write(tmp_path / "home"))


def test_known_disagreements_are_of_known_cases() -> None:
    """No disagreement outlives its case."""
    assert {case for _, _, case in _known()} <= {*CASES, DEMO}
    assert {name for name, _ in DECIDED} <= CASES.keys()


def _agree(name: str, home: Path) -> None:
    given = ask_all(home)
    right = _right(given)
    for (case, question), decided in DECIDED.items():
        assert case != name or right[question] == decided, question
    wrong = {
        (question, interface): answer
        for interface, answers in given.items()
        for question, answer in answers.items()
        if question in right and answer != _expected(right, question, interface)
    }
    known = {(question, interface) for question, interface, case in _known() if case == name}
    new = [f"{key}: {answer}, not {right[key[0]]}" for key, answer in wrong.items() if key not in known]
    assert not new, "\n".join([f"{name}: interfaces disagree", *new])
    agreed = known - wrong.keys()
    assert not agreed, f"{name}: no disagreement any more, take it out of KNOWN_DISAGREEMENTS: {sorted(agreed)}"


def _known() -> Iterator[tuple[str, str, str]]:
    """Each known disagreement: question, interface, case."""
    for question, interfaces, named in KNOWN_DISAGREEMENTS:
        yield from product((question,), interfaces.split(", "), named.split())


def _right(given: dict[str, Answers]) -> Answers:
    """The right answers, but for what cannot be asked of this home."""
    return {
        question: given[interface][question] for question, interface in RIGHT.items() if question in given[interface]
    }


def _expected(right: Answers, question: str, interface: str) -> Any:
    """The right answer; of the ledger a session knows its own part."""
    if (question, interface) != ("ledger", "read"):
        return right[question]
    return [row for row in right["ledger"] if row[0] in right["sessions"]]
