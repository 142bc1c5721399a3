"""Homes written by the real Claude Code, offline, against the stand-in for its API in `../shared/client/api.py`.

Nothing that it writes is committed: a home is created when a test runs, and deleted afterwards.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

SHARED = Path(__file__).parents[3] / "shared"
API = SHARED / "client/api.py"
# Not a secret: the stand-in accepts any key, and the program requires one that looks like a key.
_KEY = "sk-ant-not-a-key"
_TOOLS = "Bash,Write,Edit,MultiEdit,Read,Grep,Glob,LS,TodoWrite,Task"

Block = dict[str, Any]


@dataclass
class Program:
    """A build of Claude Code: its version, and its command."""

    version: str
    command_words: list[str]

    @property
    def number(self) -> tuple[int, ...]:
        """The version as a tuple that can be compared."""
        return tuple(int(part) for part in self.version.split("."))


def newest() -> Program | None:
    """The build that comes with claude-agent-sdk, if that is installed."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled/claude"
    if not path.exists():
        return None
    result = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 - named by the tester
    return Program(result.stdout.split()[0], [str(path)])


def from_npm() -> list[Program]:
    """The builds below the directory `CLAUDE_NPM`, each installed with npm into a folder named by its version."""
    folder = Path(os.environ.get("CLAUDE_NPM", "/nonexistent"))
    programs = []
    for package in sorted(folder.glob("*/node_modules/@anthropic-ai/claude-code")):
        native = package / "bin/claude.exe"
        command_words = [str(native)] if native.exists() else ["node", str(package / "cli.js")]
        programs.append(Program(package.parents[2].name, command_words))
    return sorted(programs, key=lambda program: program.number)


@dataclass
class Client:
    """A program in its own home and working directory."""

    program: Program
    home: Path
    work: Path
    api: str
    sessions: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    timeout_seconds: float = 90
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def claude_home(self) -> Path:
        """The directory that Claude Code writes to."""
        return self.home / ".claude"

    def say(self, name: str, prompt: str, *options: str) -> str | None:
        """Run the program once, and return the id of the session that it reports. The report is in `results`."""
        command = [*self.program.command_words, *self._permissions(), *options, "-p", prompt, "--output-format", "json"]
        process = subprocess.Popen(  # noqa: S603 - named by the tester
            command,
            cwd=self.work,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=self.timeout_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
        finally:
            with suppress(ProcessLookupError):  # processes that it left in the background
                os.killpg(process.pid, signal.SIGKILL)
        result = _result(output)
        if process.returncode or result is None:
            self.failures[name] = f"{process.returncode}: {(errors or output)[-300:]}"
            return None
        session: str = result["session_id"]
        self.sessions[name], self.results[name] = session, result
        return session

    def run(self, *arguments: str) -> str:
        """Run another command of the program, and return what it prints."""
        command = [*self.program.command_words, *arguments]
        result = subprocess.run(  # noqa: S603 - named by the tester
            command, cwd=self.work, env=self._environment(), capture_output=True, text=True, check=True, timeout=60
        )
        return result.stdout

    def _permissions(self) -> list[str]:
        # Builds before 1.0.60 do not let root skip permissions.
        return ["--allowedTools", _TOOLS] if self.program.number < (1, 0, 60) else ["--dangerously-skip-permissions"]

    def _environment(self) -> dict[str, str]:
        quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": self.api,
            "ANTHROPIC_API_KEY": _KEY,
            "DISABLE_ERROR_REPORTING": "1",
            **dict.fromkeys(quiet, "1"),
            **self.variables,
        }


@contextmanager
def start_client(program: Program, folder: Path, api_command: Sequence[str] = (str(API),)) -> Iterator[Client]:
    """A client with its own API server."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    command = [sys.executable, "-B", *api_command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as api:  # noqa: S603 - the stand-in
        try:
            assert api.stdout is not None
            yield Client(program, home, work, api.stdout.readline().strip())
        finally:
            api.kill()


def _result(output: str) -> dict[str, Any] | None:
    """The report that the program printed at the end, with exact numbers."""
    for line in reversed(output.splitlines()):
        with suppress(ValueError):
            value = json.loads(line, parse_float=Decimal)
            value = value[-1] if isinstance(value, list) and value else value
            if isinstance(value, dict) and isinstance(value.get("session_id"), str):
                return value
    return None


def steps(*replies: list[Block]) -> str:
    """A prompt that scripts the model: a list of blocks per reply."""
    return "STEPS: " + json.dumps(list(replies))


def tool(name: str, /, **arguments: Any) -> Block:
    """A call of a tool."""
    return {"tool": name, "input": arguments}


def bash(command: str) -> Block:
    """A call of the shell."""
    return tool("Bash", command=command, description=f"run {command}")


def play(client: Client) -> None:
    """Parallel calls, edits, errors, a subagent, a retry, continue, fork, compact."""
    text: Block = {"text": "All done."}
    path = str(client.work / "made.py")
    edits = [
        [tool("Write", file_path=path, content="a = 1\nb = 2\n")],
        [tool("Edit", file_path=path, old_string="a = 1", new_string="a = 10")],
        [tool("Read", file_path=path), tool("Grep", pattern="b =", path=str(client.work))],
    ]
    thinking: Block = {"think": "I should look."}
    client.say("tools", steps([thinking, {"text": "I look."}, bash("echo one"), bash("echo two")], *edits, [text]))
    client.say(
        "errors", steps([bash("exit 3")], [tool("Read", file_path=f"{path}.none"), tool("NoSuchTool", x=1)], [text])
    )
    agent = "Agent" if client.program.number >= (2, 1, 63) else "Task"
    agent_prompt = steps([{"text": "I look."}, bash("echo sub")], [{"text": "sub done"}])
    agent_arguments = {"description": "look", "prompt": agent_prompt, "subagent_type": "general-purpose"}
    client.say(
        "agent",
        steps([{"text": "I delegate."}, tool(agent, **agent_arguments), tool(agent, **agent_arguments)], [text]),
    )
    client.say("retry", steps([{"status": 529}, {"text": "ok after all"}]))
    session = client.say("begin", steps([{"text": "A beginning."}, bash("echo begin")], [text]))
    client.say("continue", steps([bash("echo more")], [text]), "-c")
    if session is not None:
        client.say("fork", "fork it", "-r", client.sessions.get("continue", session), "--fork-session")
        client.say("compact", "/compact", "-r", client.sessions.get("continue", session))
        client.say("after", steps([bash("echo after")], [text]), "-c")
