"""Names of people and machines in the output of commands that print them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.subtests import for_each

from threadline.redact import RecordScanner, SessionRedactor, find_spans

USER, HOST, NAME = "henrika", "pebblebox7", "Henrika Lindqvist"
PRINTED = {
    "whoami": (USER, "user"),
    "id -un": (USER, "user"),
    "logname": (USER, "user"),
    "ssh h1 whoami": (USER, "user"),
    "bash -c 'whoami'": (USER, "user"),
    "cd /srv && whoami": (USER, "user"),
    "whoami | head -1": (USER, "user"),
    "hostname": (HOST, "host"),
    "hostname -s": (HOST, "host"),
    "uname -n": (HOST, "host"),
    "scutil --get ComputerName": (HOST, "host"),
    "git config user.name": (NAME, "name"),
    "git config --global --get user.name": (NAME, "name"),
    "git log -1 --format=%an": (NAME, "name"),
    "git -C /srv log --pretty=format:'%aN' | sort | uniq": (NAME, "name"),
}


def _names(command: str, output: str) -> list[tuple[str, str]]:
    """What is found in the result of a call."""
    scanner = RecordScanner()
    records = _session(command, output)[:2]
    found = [match for record in records for match in scanner.find(record) if record["type"] == "user"]
    return list(dict.fromkeys((match.value, match.span.kind) for match in found))


@for_each("command", list(PRINTED))
def test_output_of_a_naming_command_is_a_name(command: str) -> None:
    """Login names in the output of `whoami` and the like survived an export."""
    value, kind = PRINTED[command]
    assert _names(command, f"{value}\n") == [(value, kind)]


def test_output_of_several_commands() -> None:
    """Each line is the output of one command, if each command prints one line."""
    assert _names("whoami; hostname; pwd", f"{USER}\n{HOST}\n/srv\n") == [(USER, "user"), (HOST, "host")]
    assert _names("whoami; hostname; pwd", f"{USER}\n{HOST}\n") == []
    assert _names("git log --format=%an -2", f"{NAME}\nPiotr Okonkwo\n") == [(NAME, "name"), ("Piotr Okonkwo", "name")]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("whoami", "root"),
        ("whoami", "whoami: command not found"),
        ("echo whoami", USER),
        ("whoami > file; ls", USER),
        ("whoami | wc -c", "8"),
        ("hostname", "localhost"),
        ("./whoami.sh", USER),
        ("make; whoami", f"built\n{USER}"),
        ("git config user.name", "bot"),
    ],
)
def test_other_output_is_kept(command: str, output: str) -> None:
    """Common accounts, messages, and output that may come from another command."""
    assert _names(command, output) == []


def _session(command: str, output: str) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}, "toolUseResult": {"stdout": output}},
        {"type": "user", "message": {"role": "user", "content": f"I am {output}."}},
    ]


@pytest.mark.parametrize(("command", "value"), [("whoami", USER), ("hostname", HOST), ("git config user.name", NAME)])
def test_name_is_removed_from_the_session(command: str, value: str) -> None:
    """Also where nothing shows that it is a name."""
    records = _session(command, value)
    redactor = SessionRedactor()
    redactor.learn_all(records)
    assert value not in str([redactor.redact(record) for record in records])


def test_names_are_personal() -> None:
    """A scan without `--personal` does not report them."""
    for personal in (True, False):
        scanner = RecordScanner(personal=personal)
        found = [match for record in _session("whoami", USER) for match in scanner.find(record)]
        assert bool(found) is personal


def test_names_that_the_user_printed() -> None:
    """After `!`, too."""
    redactor = SessionRedactor()
    records = [
        {"type": "user", "message": {"role": "user", "content": "<bash-input>whoami</bash-input>"}},
        {"type": "user", "message": {"role": "user", "content": f"<bash-stdout>{USER}</bash-stdout>"}},
    ]
    redactor.learn_all(records)
    assert USER not in str([redactor.redact(record) for record in records])


def test_names_in_a_long_log() -> None:
    """However many lines a log has, each name in it counts."""
    names = [f"Ann{chr(97 + number // 26)}{chr(97 + number % 26)} Okonkwo" for number in range(600)]
    assert _names("git log --format=%an", "\n".join(names)) == [(name, "name") for name in names]


@pytest.mark.parametrize("offset", ["+0000", "+0545", "-0330", "-1000", "+1000", "+1345"])
def test_authors_of_lines_in_every_time_zone(offset: str) -> None:
    """`git blame` shows the author of each line, and when it was written."""
    line = f"1a2b3c4d ({NAME} 2025-11-18 09:15:00 {offset}  12) value = 1\n"
    assert [(span.kind, line[span.start : span.end]) for span in find_spans(line)] == [("name", NAME)]
