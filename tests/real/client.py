"""Homes written by the real Claude Code, offline, against the stand-in for its API in `../shared/client/api.py`.

What it writes is never committed: it is made when a test runs, and thrown away.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

SHARED = Path(__file__).parents[3] / "shared"
API = SHARED / "client/api.py"
# No secret: the stand-in takes any key, and the program wants one that looks like a key.
_KEY = "sk-ant-not-a-key"
_TOOLS = "Bash,Write,Edit,MultiEdit,Read,Grep,Glob,LS,TodoWrite,Task"

Block = dict[str, Any]


@dataclass
class Program:
    """One build of Claude Code: its version, and the words that start it."""

    version: str
    words: list[str]

    @property
    def number(self) -> tuple[int, ...]:
        """The version, to be compared."""
        return tuple(int(part) for part in self.version.split("."))


def newest() -> Program | None:
    """The build that the installed claude-agent-sdk brings along, if it is installed."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled/claude"
    if not path.exists():
        return None
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 - named by the tester
    return Program(done.stdout.split()[0], [str(path)])


def from_npm() -> list[Program]:
    """The builds below the directory `CLAUDE_NPM`, each installed with npm into a folder named by its version."""
    folder = Path(os.environ.get("CLAUDE_NPM", "/nonexistent"))
    found = []
    for package in sorted(folder.glob("*/node_modules/@anthropic-ai/claude-code")):
        native = package / "bin/claude.exe"
        words = [str(native)] if native.exists() else ["node", str(package / "cli.js")]
        found.append(Program(package.parents[2].name, words))
    return sorted(found, key=lambda program: program.number)


@dataclass
class Client:
    """A program in a home and a working directory of its own."""

    program: Program
    home: Path
    work: Path
    api: str
    sessions: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    patience: float = 90

    @property
    def claude_home(self) -> Path:
        """The directory that Claude Code writes to."""
        return self.home / ".claude"

    def say(self, name: str, prompt: str, *options: str) -> str | None:
        """Run it once; give the id of the session that it reports. All that it reports is in `results`."""
        command = [*self.program.words, *self._permissions(), *options, "-p", prompt, "--output-format", "json"]
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
            said, moaned = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, moaned = process.communicate()
        finally:
            with suppress(ProcessLookupError):  # what it left running in the background
                os.killpg(process.pid, signal.SIGKILL)
        result = _result(said)
        if process.returncode or result is None:
            self.failed[name] = f"{process.returncode}: {(moaned or said)[-300:]}"
            return None
        session: str = result["session_id"]
        self.sessions[name], self.results[name] = session, result
        return session

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
        }


@contextmanager
def client(program: Program, folder: Path) -> Iterator[Client]:
    """A client with an API of its own, for as long as it is needed."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    command = [sys.executable, "-B", str(API)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as api:  # noqa: S603 - the stand-in
        try:
            assert api.stdout is not None
            yield Client(program, home, work, api.stdout.readline().strip())
        finally:
            api.kill()


def _result(said: str) -> dict[str, Any] | None:
    """What it printed at the end; numbers are kept to the last digit."""
    for line in reversed(said.splitlines()):
        with suppress(ValueError):
            value = json.loads(line, parse_float=Decimal)
            value = value[-1] if isinstance(value, list) and value else value
            if isinstance(value, dict) and isinstance(value.get("session_id"), str):
                return value
    return None


def steps(*replies: list[Block]) -> str:
    """A prompt that scripts what the model says: a list of blocks a reply."""
    return "STEPS: " + json.dumps(list(replies))


def tool(name: str, /, **given: Any) -> Block:
    """A call of a tool."""
    return {"tool": name, "input": given}


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
    thought: Block = {"think": "I should look."}
    client.say("tools", steps([thought, {"text": "I look."}, bash("echo one"), bash("echo two")], *edits, [text]))
    client.say(
        "errors", steps([bash("exit 3")], [tool("Read", file_path=f"{path}.none"), tool("NoSuchTool", x=1)], [text])
    )
    agent = "Agent" if client.program.number >= (2, 1, 63) else "Task"
    errand = steps([{"text": "I look."}, bash("echo sub")], [{"text": "sub done"}])
    told = {"description": "look", "prompt": errand, "subagent_type": "general-purpose"}
    client.say("agent", steps([{"text": "I delegate."}, tool(agent, **told), tool(agent, **told)], [text]))
    client.say("retry", steps([{"status": 529}, {"text": "ok after all"}]))
    begun = client.say("begin", steps([{"text": "A beginning."}, bash("echo begin")], [text]))
    client.say("continue", steps([bash("echo more")], [text]), "-c")
    if begun is not None:
        client.say("fork", "fork it", "-r", client.sessions.get("continue", begun), "--fork-session")
        client.say("compact", "/compact", "-r", client.sessions.get("continue", begun))
        client.say("after", steps([bash("echo after")], [text]), "-c")
