"""Run other tools (claude-code-log, agentsview, ripgrep) on the same home.

Each is installed into its own environment in bench/out. If that fails, a message says that it is skipped. The tools see
only the given home, and their telemetry is turned off. Their figures are stored in a file such as
bench/out/peers-home-2000-grown.json; with `--peers-from`, they are read from there instead of being measured again.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import OUT, GrowingTranscript
from bench.processes import ProcessResult, run
from bench.queries import SearchQuery

FOLDER = OUT / "peers"
PAGE = 20
ROUNDS = 2
_OPTIONS = (  # Unicode makes its expressions slower, and none of ours needs it
    "--files-with-matches",
    "--ignore-case",
    "--no-unicode",
    "--no-ignore",
    "--hidden",
    "--glob=*.jsonl",
)
_SYNC_TIME = re.compile(r"synced in ([\d.]+)(m?s)|(\d+)m([\d.]+)s")


class AskFunction(Protocol):
    """Runs a query on a peer: returns seconds and the number of hits, or None if it has no such query."""

    def __call__(self, query: SearchQuery) -> tuple[float, int] | None: ...  # noqa: D102 - see the class


class Peer(Protocol):
    """A tool with an index."""

    name: str
    method: str

    def refresh(self, home: Path) -> ProcessResult:
        """Update its index, in a process of its own."""

    def reported_seconds(self, result: ProcessResult) -> float | None:
        """The time that the tool itself reports, without start-up."""

    def files(self) -> list[Path]:
        """The files of its index."""

    def counts(self) -> dict[str, int]:
        """How much it has indexed."""

    def open_search(self, home: Path) -> Any:
        """A context manager that gives an `AskFunction`."""


def environment(name: str, home: Path) -> dict[str, str]:
    """Variables that hide other homes, turn off telemetry, and give each measured home its own index."""
    folder = FOLDER / f"{name}-{home.name}"
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "DO_NOT_TRACK": "1",
        "AGENTSVIEW_TELEMETRY_ENABLED": "0",
        "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
        "AGENTSVIEW_NO_DAEMON": "1",
        "AGENTSVIEW_DATA_DIR": str(folder / "agentsview"),
    }


def install_package(package: str) -> Path | None:
    """Install a package into its own environment, unless it is there. Returns the folder of its programs."""
    programs = FOLDER / package / "bin"
    if any(programs.parent.glob(f"lib/*/site-packages/{package.replace('-', '_')}-*.dist-info")):
        return programs
    print(f"installing {package} …", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(programs.parent)], check=True)  # noqa: S603 - this Python
        subprocess.run(  # noqa: S603 - the peer, by its name
            [str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", package], check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Skipping {package}: it could not be installed ({error}).")
        return None
    return programs


class Agentsview:
    """A Go program that stores transcripts and a full-text index of messages in SQLite, behind a server."""

    name = "agentsview"
    method = (
        "`agentsview sync`, whole process, without its daemon; searched over its HTTP API on the same machine"
        " (search/content, one connection kept): words, phrases and prefixes in its full text, which has messages"
        " but no tool results, and pieces and expressions in everything, by its modes substring and regex"
    )

    def __init__(self, programs: Path, home: Path) -> None:
        self._program = str(programs / "agentsview")
        self._environment = environment(self.name, home)
        self._folder = Path(self._environment["AGENTSVIEW_DATA_DIR"])

    def _with(self, home: Path) -> dict[str, str]:
        return {**self._environment, "CLAUDE_PROJECTS_DIR": str(home / "projects")}

    def refresh(self, home: Path) -> ProcessResult:
        """Run its sync."""
        return run([self._program, "sync"], self._with(home))

    def reported_seconds(self, result: ProcessResult) -> float | None:
        """The time that it prints."""
        match = _SYNC_TIME.search(result.stdout + result.stderr)
        if match is None:
            return None
        if match[1]:
            return float(match[1]) / (1000 if match[2] == "ms" else 1)
        return int(match[3]) * 60 + float(match[4])

    def files(self) -> list[Path]:
        """The files of its database."""
        return list(self._folder.glob("sessions.db*"))

    def counts(self) -> dict[str, int]:
        """Sessions (it counts each transcript as one), and what they contain."""
        with closing(sqlite3.connect(f"{(self._folder / 'sessions.db').as_uri()}?mode=ro", uri=True)) as connection:
            tables = ("sessions", "messages", "tool_calls", "messages_fts")
            counts = {name: int(connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]) for name in tables}  # noqa: S608 - named above
            row = connection.execute("SELECT SUM(LENGTH(content)) FROM message_search_content").fetchone()
            return {**counts, "characters_in_full_text": int(row[0] or 0)}

    @contextmanager
    def serving(self, home: Path) -> Iterator[tuple[str, int]]:
        """Run its server; gives its address and process id."""
        command = [self._program, "serve", "--no-browser", "--no-sync", "--no-update-check", "--port", "0"]
        with _running(command, self._with(home)) as process:
            matches = (re.search(r"http://(127\.0\.0\.1:\d+)", line) for line in _stdout(process))
            yield next(match[1] for match in matches if match), process.pid

    @contextmanager
    def open_search(self, home: Path) -> Iterator[AskFunction]:
        """Run its server, and query it over one connection."""
        with (
            self.serving(home) as (address, _),
            closing(http.client.HTTPConnection(address, timeout=60)) as connection,
        ):
            yield lambda query: self._ask(connection, query)

    def _ask(self, connection: http.client.HTTPConnection, query: SearchQuery) -> tuple[float, int] | None:
        mode, pattern = {
            "phrase": ("fts", f'"{query.text}"'),
            "prefix": ("fts", f"{query.text}*"),
            "substring": ("substring", query.text),
            "regex": ("regex", f"(?i){query.text}"),
        }.get(query.kind, ("fts", query.text))
        everything = dict.fromkeys(("include_children", "include_automated", "include_one_shot"), "true")
        parameters = urlencode({"pattern": pattern, "mode": mode, "limit": PAGE, **everything})
        start = time.perf_counter()
        connection.request("GET", f"/api/v1/search/content?{parameters}")
        answer = json.loads(connection.getresponse().read())
        seconds = time.perf_counter() - start
        return (seconds, len(answer["matches"])) if "matches" in answer else None


class ClaudeCodeLog:
    """A Python program that writes pages, with a cache of all messages and a full-text index in SQLite."""

    name = "claude-code-log"
    method = (
        "the cache of every project and then full text, by its own functions in one process, without the pages that its"
        " command makes as well; searched by its own function inside the process, in all of its fields;"
        " it knows words, phrases and prefixes"
    )

    def __init__(self, programs: Path, home: Path) -> None:
        self._script = [str(programs / "python"), str(Path(__file__).parent / "peer_claude_code_log.py")]
        self._environment = environment(self.name, home)
        self._database = Path(self._environment["HOME"]) / "cache.db"

    def refresh(self, home: Path) -> ProcessResult:
        """Update its cache and its full-text index."""
        return run([*self._script, "index", str(self._database), str(home / "projects")], self._environment)

    def reported_seconds(self, result: ProcessResult) -> float | None:
        """The time without imports."""
        return float(json.loads(result.stdout.splitlines()[-1])["seconds"])

    def files(self) -> list[Path]:
        """The files of its database."""
        return list(self._database.parent.glob("cache.db*"))

    def counts(self) -> dict[str, int]:
        """What its cache contains, and how much of that its full-text index has."""
        with closing(sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True)) as connection:
            statements = {
                "transcripts": "SELECT COUNT(*) FROM cached_files",
                "sessions": "SELECT COUNT(*) FROM sessions",
                "messages": "SELECT COUNT(*) FROM messages",
                "message_fts": "SELECT COUNT(*) FROM search_indexed_rows",
            }
            return {name: int(connection.execute(statement).fetchone()[0]) for name, statement in statements.items()}

    @contextmanager
    def open_search(self, home: Path) -> Iterator[AskFunction]:  # noqa: ARG002 - its database is that of the home
        """Run its search function in a process that stays alive."""
        with _running([*self._script, "answer", str(self._database)], self._environment) as process:
            yield lambda query: self._ask(process, query)

    def _ask(self, process: subprocess.Popen[str], query: SearchQuery) -> tuple[float, int] | None:
        if query.kind in ("substring", "regex"):
            return None
        # It takes words as prefixes, unless they are in quotes.
        text = {"phrase": f'"{query.text}"', "prefix": f"{query.text}*"}.get(
            query.kind, " ".join(f'"{part}"' for part in query.parts)
        )
        print(json.dumps(text), file=process.stdin, flush=True)
        answer = json.loads(next(_stdout(process)))
        return answer["seconds"], answer["hits"]


class Ripgrep:
    """A program without an index: it reads every file each time."""

    name = "ripgrep"
    method = (
        "`rg --files-with-matches`, whole process, over the transcripts in the page cache; all but expressions as fixed"
        " strings, three words by three runs, each over the files that the one before found; it counts files"
    )

    def __init__(self, program: str) -> None:
        self._program = program

    @contextmanager
    def open_search(self, home: Path) -> Iterator[AskFunction]:
        """Run it once for each query, or three times for three words."""
        yield lambda query: self._ask(home, query)

    def _ask(self, home: Path, query: SearchQuery) -> tuple[float, int]:
        patterns = (
            [["--regexp", query.text]]
            if query.kind == "regex"
            else [["--fixed-strings", part] for part in _fixed_strings(query)]
        )
        paths = [str(home / "projects")]
        start = time.perf_counter()
        for pattern in patterns:
            command = [self._program, *_OPTIONS, *pattern, "--", *paths]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - rg
            paths = done.stdout.splitlines()
            if not paths:
                break
        return time.perf_counter() - start, len(paths)


def _fixed_strings(query: SearchQuery) -> tuple[str, ...]:
    """The strings to search for. In JSON a word may follow an escape, so word boundaries cannot be matched."""
    return query.parts if query.kind == "words" else (query.text,)


@contextmanager
def _running(command: list[str], variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(  # noqa: S603 - peers
        command,
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def _stdout(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        sys.exit("There is no pipe to read from.")
    return process.stdout


def indexing_peers(home: Path) -> list[Peer]:
    """The peers that have an index and can be installed, for this home."""
    installed: list[Peer] = []
    if programs := install_package("agentsview"):
        installed.append(Agentsview(programs, home))
    if programs := install_package("claude-code-log"):
        installed.append(ClaudeCodeLog(programs, home))
    return installed


def ripgrep() -> Ripgrep | None:
    """ripgrep, if it is installed: a benchmark does not change the system."""
    program = shutil.which("rg")
    if program is None:
        print("Skipping ripgrep: install it first (Debian: apt-get install ripgrep).")
    return Ripgrep(program) if program else None


def first_index(peer: Peer, home: Path) -> dict[str, Any]:
    """Build the peer's index from scratch."""
    for file in peer.files():
        file.unlink()
    result = peer.refresh(home)
    if result.exit_code:
        print(f"Skipping {peer.name}: it exited with {result.exit_code}: {result.stderr.strip()[-300:]}")
        return {}
    return {
        "measured": peer.method,
        "seconds": result.seconds,
        "cpu_seconds": result.cpu,
        "inside_seconds": peer.reported_seconds(result),
        "load": os.getloadavg()[0],
        "peaks": result.peaks,
        "index_megabytes": sum(file.stat().st_size for file in peer.files()) / 1e6,
        "counts": peer.counts(),
    }


def time_refreshes(peer: Peer, home: Path, growing: GrowingTranscript) -> dict[str, Any]:
    """The best times of refreshes: nothing changed, one new line, one new line and a fork beside the transcript."""
    figures = {"nothing_changed": _best(peer, home, None), "appended": _best(peer, home, growing)}
    fork = growing.fork()
    try:
        peer.refresh(home)
        figures["appended_beside_a_fork"] = _best(peer, home, growing)
    finally:
        fork.unlink()
        growing.truncate()
    return figures


def _best(peer: Peer, home: Path, growing: GrowingTranscript | None) -> dict[str, float | None]:
    runs = []
    for _round in range(ROUNDS):
        if growing is not None:
            growing.append_line()
        runs.append(peer.refresh(home))
    best = min(runs, key=lambda result: result.seconds)
    return {
        "seconds": best.seconds,
        "cpu_seconds": min(result.cpu for result in runs),
        "inside_seconds": peer.reported_seconds(best),
    }


def save_figures(part: str, home: Path, figures: dict[str, Any]) -> None:
    """Add figures of the peers to the file for `--peers-from`."""
    path = OUT / f"peers-{home.name}.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    stored.setdefault(part, {}).update(figures)
    path.write_text(json.dumps(stored, indent=1))


def load_figures(part: str, path: Path | None) -> dict[str, Any]:
    """The figures that an earlier run saved."""
    return json.loads(path.read_text()).get(part, {}) if path else {}
