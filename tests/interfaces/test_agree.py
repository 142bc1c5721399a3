"""Every interface gives the same answer to the same question, with an index or without, on every home.

The meaning of each answer, and the interface that others are compared with (`RIGHT`):

- **agents** are those that worked for the session. Side agents are not counted: format.md says of one whose first
  prompt is `Warmup` "drop from counts, keep spend", docs/sessions.md that those with `side` set are not counted, and an
  agent with a single reply, no prompt and no call that started it is a warm-up of 2.0.60.
- **started, ended, duration** are the first and the last time of the main conversation: an agent that continues in the
  background does not make its session longer. Odd years are times like any other.
- **calls**: a result may be in another file of the session, so the outcome is `threadline.read`'s: `ok`, not `lost`.
  Transcripts that are not named after a session have calls, too.
- **files** are those that calls or attachments touched. One that only a snapshot names was not touched.
- **entries** are those that `threadline.entries` yields: a torn or blank last line is one, of kind `pending` or
  `blank`.
- **number of sessions, number of agents**: activity counts what the list lists. A session in which nobody spoke is not
  counted, one in two files counts once, and side agents are not counted. If an agent's session is gone, the number is
  not compared.
- **sessions, ledger, problems** are what reading the transcripts gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden import demo_home
from tests.interfaces import entry
from tests.interfaces.cases import CORPORA, cases
from tests.interfaces.interfaces import Answers, ask_all

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
"""The interface that the others are compared with, for each question."""

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
"""Right answers, written out, where interfaces disagreed once."""

CASES = {case.name: case for corpus in CORPORA for case in cases(corpus)}
DISPUTED = {name for name, _ in DECIDED}
DEMO = "demo"


@pytest.fixture(scope="module", autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with entry.alone(tmp_path_factory.mktemp("agree"), frozen=False):
        yield


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.smoke] * (name in DISPUTED)) for name in CASES])
def test_every_case_has_one_answer(name: str, tmp_path: Path) -> None:
    """All interfaces answer all questions about a case alike."""
    _agree(name, CASES[name].home(tmp_path / "home"))


def test_a_demo_home_has_one_answer(tmp_path: Path) -> None:
    """The same for a home with forks, agents, branches and compactions."""
    _agree(DEMO, demo_home.write(tmp_path / "home"))


def test_decided_answers_are_of_known_cases() -> None:
    """No decided answer outlives its case."""
    assert CASES.keys() >= DISPUTED


def _agree(name: str, home: Path) -> None:
    given = ask_all(home)
    right = _right(given)
    for (case, question), decided in DECIDED.items():
        assert case != name or right[question] == decided, question
    wrong = [
        f"{question}, {interface}: {answer}, not {right[question]}"
        for interface, answers in given.items()
        for question, answer in answers.items()
        if question in right and answer != _expected(right, question, interface)
    ]
    assert not wrong, "\n".join([f"{name}: interfaces disagree", *wrong])


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
