"""`threadline show --turn` of a turn that an edit or a rewind abandoned."""

from __future__ import annotations

from tests.cli.runner import CliRunner
from tests.thread.session_cases import main_transcripts

(TRANSCRIPT,) = main_transcripts("rewind-leaves-a-branch")


def test_turn_on_a_branch_is_shown_with_its_branch(cli: CliRunner) -> None:
    """The text has the prompt and the reply, and says on which branch they are."""
    result = cli("show", TRANSCRIPT, "--turn", "2")
    assert result.code == 0
    assert "turn 2 is on the abandoned branch 1" in result.out
    assert "── turn 2" in result.out
    branch = cli("show", TRANSCRIPT, "--branch", "1", "--turn", "2").out
    assert [line for line in result.out.splitlines() if "abandoned branch" not in line] == branch.splitlines()


def test_rows_of_a_turn_on_a_branch_are_printed(cli: CliRunner) -> None:
    """`--jsonl` prints the entries of the turn."""
    rows = cli("show", TRANSCRIPT, "--turn", "2", "--jsonl").jsonl
    assert {row["turn"] for row in rows} == {2}


def test_turn_of_the_conversation_names_no_branch(cli: CliRunner) -> None:
    """A turn that was kept is shown as before."""
    assert "branch" not in cli("show", TRANSCRIPT, "--turn", "1").out.splitlines()[2]
