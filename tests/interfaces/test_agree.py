"""Every interface gives the same answer to the same question, with an index or without, on every home.

The meaning of each answer, and the interface that others are compared with (`REFERENCE`):

- **agents** are those that worked for the session. Side agents are not counted: format.md says of one whose first
  prompt is `Warmup` "drop from counts, keep spend", docs/sessions.md that those with `side` set are not counted, and an
  agent with a single reply, no prompt and no call that started it is a warm-up of 2.0.60.
- **agents with or without a transcript** also counts those that results of calls name and whose transcripts are gone.
- **started, ended, duration** are the first and the last time of the main conversation: an agent that continues in the
  background does not make its session longer. Odd years are times like any other.
- **calls**: a result may be in another file of the session, so the outcome is `threadline.read`'s: `ok`, not `lost`.
  Transcripts that are not named after a session have calls, too.
- **files** are those that calls or attachments touched. One that only a snapshot names was not touched.
- **edits** of some files are asked one file at a time, of all sessions. One that a fork copied is one edit.
- **lists** are the todos and tasks at the end of each listed session, from transcripts and side files.
- **entries** are those that `threadline.entries` yields: a torn or blank last line is one, of kind `pending` or
  `blank`.
- **number of sessions, number of agents**: activity counts what the list lists. A session in which nobody spoke is not
  counted, one in two files counts once, and side agents are not counted. An agent whose session is gone counts, too;
  `threadline.read` cannot read such an agent, so only the other interfaces are compared then.
- **summarized sessions** are the pairs of sessions of which one begins with a summary of the other, as both of them
  say. A summary is also the title of the session that it names, and of no other.
- **number of calls**: a call that a fork copied counts once.
- **prompts** are what people did in main transcripts, of any kind. The index has their first 2,000 characters.
- **tokens of rows**: every charge is in exactly one row of the list: of the session whose transcripts own the message,
  or of a transcript without a listed session. So the rows add up to the ledger. `docs/odd-homes.md` describes the cases
  in `odd_homes.CASES`.
- **sessions, ledger, problems** are what reading the transcripts gives.
- **field problems** are required fields that are missing and timestamps that are not times. The index has them, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden import demo_home
from tests.interfaces import entry_points, odd_homes
from tests.interfaces.cases import CORPORA, cases
from tests.interfaces.interfaces import Answers, ask_all
from tests.profiles import is_quick_run

LEDGER_KEYS = (
    *("day", "session, model", "project, branch", "agent", "agent-type", "tool"),
    *("service-tier", "home, machine"),
)
REFERENCE = {
    "sessions": "library without index",
    "tokens of rows": "library without index",
    "tokens of sessions": "read",
    "title": "read",
    "agents": "read",
    "agents with or without a transcript": "library without index",
    "started": "session page",
    "ended": "session page",
    "duration": "session page",
    "turns": "read",
    "summarized sessions": "read",
    "entries": "read",
    "calls": "read",
    "files": "read",
    "edits": "read",
    "lists": "read",
    "number of sessions": "read",
    "number of agents": "library without index",
    "number of calls": "library with index",
    "newest sessions": "command without index",
    "later sessions": "command without index",
    "overview": "library without index",
    "ledger": "library without index",
    "charges": "library without index",
    **{f"ledger by {keys}": "library without index" for keys in LEDGER_KEYS},
    "prompts": "read",
    "spent by session": "library without index",
    "problems": "library without index",
    "field problems": "library without index",
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
    ("sessions/snapshots-count-for-start-and-end", "duration"): [(_SESSION, 2400.0)],
    ("sessions/snapshots-alone-have-a-start-and-no-conversation", "sessions"): [],
    ("sessions/snapshots-alone-have-a-start-and-no-conversation", "number of sessions"): 0,
    ("sessions/summary-alone-is-not-a-conversation", "sessions"): [],
    ("sessions/summary-alone-is-not-a-conversation", "number of sessions"): 0,
    ("sessions/result-in-another-file-of-the-session", "calls"): [("t1", "Agent", "ok"), ("u1", "Bash", "ok")],
    ("account/torn-last-line-is-not-counted", "entries"): [(_SESSION, 2)],
}
"""Right answers, written out, where interfaces disagreed once."""

CASES = {case.name: case for corpus in CORPORA for case in cases(corpus)}
DECIDED_CASES = {name for name, _ in DECIDED}
DEMO = "demo"


@pytest.fixture(scope="module", autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with entry_points.isolated(tmp_path_factory.mktemp("agree"), frozen=False):
        yield


@pytest.mark.sample(100)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.smoke] * (name in DECIDED_CASES)) for name in CASES]
)
def test_interfaces_agree_about_every_case(name: str, tmp_path: Path) -> None:
    """All interfaces give the same answers to all questions about a case."""
    _check_answers(name, CASES[name].write_home(tmp_path / "home"))


def test_interfaces_agree_about_the_demo_home(tmp_path: Path) -> None:
    """It has forks, agents, branches and compactions."""
    home = tmp_path / "home"
    if is_quick_run():
        entry_points.write_demo(home, megabytes=0.2)
    else:
        demo_home.write(home)
    _check_answers(DEMO, home)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", list(odd_homes.CASES))
def test_interfaces_agree_about_odd_homes(name: str, tmp_path: Path) -> None:
    """Copies, links, foreign ids, names that are no UUID, twins, impossible times."""
    _check_answers(name, *odd_homes.CASES[name](tmp_path / "home"))


def test_decided_answers_belong_to_existing_cases() -> None:
    """A decided answer is removed with its case."""
    assert CASES.keys() >= DECIDED_CASES


def _check_answers(name: str, *homes: Path) -> None:
    answers_by_interface = ask_all(*homes)
    reference = _reference_answers(answers_by_interface)
    for (case, question), decided in DECIDED.items():
        assert case != name or reference[question] == decided, question
    wrong = [
        f"{question}, {interface}: {answer}, not {reference[question]}"
        for interface, answers in answers_by_interface.items()
        for question, answer in answers.items()
        if question in reference and answer != _expected(reference, question, interface)
    ]
    assert not wrong, "\n".join([f"{name}: interfaces disagree", *wrong])


def _reference_answers(answers_by_interface: dict[str, Answers]) -> Answers:
    """Return the reference answers, except for questions that this home has no answer to."""
    return {
        question: answers_by_interface[interface][question]
        for question, interface in REFERENCE.items()
        if question in answers_by_interface[interface]
    }


def _expected(reference: Answers, question: str, interface: str) -> Any:
    """Return the reference answer. For the ledger, a session only has its own part."""
    if (question, interface) != ("ledger", "read"):
        return reference[question]
    return [row for row in reference["ledger"] if row[0] in reference["sessions"]]
