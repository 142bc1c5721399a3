"""The peers: what claude-code-log, agentsview and ripgrep take to index and search the same home.

Each is fetched where it is missing, into an environment of its own under bench/out, and left out with a line that says
so where that fails. They see no home but the one given, and are told to call nobody. Their figures are kept in a file
such as bench/out/peers-home-2000-grown.json; given by `--peers-from`, they are not measured again.
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
from bench.homes import OUT, Growing
from bench.processes import Ran, run
from bench.queries import Asked

FOLDER = OUT / "peers"
PAGE = 20
TURNS = 2
_OPTIONS = (  # Unicode makes its expressions slower, and none of ours needs it
    "--files-with-matches",
    "--ignore-case",
    "--no-unicode",
    "--no-ignore",
    "--hidden",
    "--glob=*.jsonl",
)
_TOOK = re.compile(r"synced in ([\d.]+)(m?s)|(\d+)m([\d.]+)s")


class Asking(Protocol):
    """How a peer is asked: seconds, and how many hits; nothing where it knows no such query."""

    def __call__(self, asked: Asked) -> tuple[float, int] | None: ...  # noqa: D102 - the class says it


class Peer(Protocol):
    """One of the peers, ready to run."""

    name: str
    measured: str

    def refresh(self, home: Path) -> Ran:
        """Bring its index up to date, as a process of its own."""

    def inside(self, ran: Ran) -> float | None:
        """How long it says that took, without start-up."""

    def files(self) -> list[Path]:
        """What its index lies in."""

    def counts(self) -> dict[str, int]:
        """How much it has indexed."""

    def asking(self, home: Path) -> Any:
        """A context in which it can be asked."""


def environment(name: str, measured: Path) -> dict[str, str]:
    """No home but the one given, and no calls home; each home that is measured has an index of its own."""
    home = FOLDER / f"{name}-{measured.name}"
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "DO_NOT_TRACK": "1",
        "AGENTSVIEW_TELEMETRY_ENABLED": "0",
        "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
        "AGENTSVIEW_NO_DAEMON": "1",
        "AGENTSVIEW_DATA_DIR": str(home / "agentsview"),
    }


def fetched(package: str) -> Path | None:
    """The folder of programs of an environment that has the package."""
    programs = FOLDER / package / "bin"
    if any(programs.parent.glob(f"lib/*/site-packages/{package.replace('-', '_')}-*.dist-info")):
        return programs
    print(f"fetching {package} …", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(programs.parent)], check=True)  # noqa: S603 - ourselves
        subprocess.run(  # noqa: S603 - the peer, by its name
            [str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", package], check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{package} is left out: it could not be fetched ({error}).")
        return None
    return programs


class Agentsview:
    """A Go program that keeps transcripts' content and full text of messages in SQLite, behind a server."""

    name = "agentsview"
    measured = (
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

    def refresh(self, home: Path) -> Ran:
        """Its sync."""
        return run([self._program, "sync"], self._with(home))

    def inside(self, ran: Ran) -> float | None:
        """The time that it tells."""
        told = _TOOK.search(ran.said + ran.complaint)
        if told is None:
            return None
        if told[1]:
            return float(told[1]) / (1000 if told[2] == "ms" else 1)
        return int(told[3]) * 60 + float(told[4])

    def files(self) -> list[Path]:
        """Its database."""
        return list(self._folder.glob("sessions.db*"))

    def counts(self) -> dict[str, int]:
        """Sessions, which are transcripts to it, and what is in them."""
        with closing(sqlite3.connect(f"{(self._folder / 'sessions.db').as_uri()}?mode=ro", uri=True)) as connection:
            tables = ("sessions", "messages", "tool_calls", "messages_fts")
            told = {name: int(connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]) for name in tables}  # noqa: S608 - named above
            row = connection.execute("SELECT SUM(LENGTH(content)) FROM message_search_content").fetchone()
            return {**told, "characters_in_full_text": int(row[0] or 0)}

    @contextmanager
    def serving(self, home: Path) -> Iterator[tuple[str, int]]:
        """Its server: where it listens, and its process."""
        command = [self._program, "serve", "--no-browser", "--no-sync", "--no-update-check", "--port", "0"]
        with _started(command, self._with(home)) as process:
            found = (re.search(r"http://(127\.0\.0\.1:\d+)", line) for line in _out(process))
            yield next(told[1] for told in found if told), process.pid

    @contextmanager
    def asking(self, home: Path) -> Iterator[Asking]:
        """Its server, asked over one connection."""
        with (
            self.serving(home) as (address, _),
            closing(http.client.HTTPConnection(address, timeout=60)) as connection,
        ):
            yield lambda asked: self._ask(connection, asked)

    def _ask(self, connection: http.client.HTTPConnection, asked: Asked) -> tuple[float, int] | None:
        mode, pattern = {
            "phrase": ("fts", f'"{asked.text}"'),
            "prefix": ("fts", f"{asked.text}*"),
            "substring": ("substring", asked.text),
            "regex": ("regex", f"(?i){asked.text}"),
        }.get(asked.kind, ("fts", asked.text))
        everything = dict.fromkeys(("include_children", "include_automated", "include_one_shot"), "true")
        words = urlencode({"pattern": pattern, "mode": mode, "limit": PAGE, **everything})
        start = time.perf_counter()
        connection.request("GET", f"/api/v1/search/content?{words}")
        answer = json.loads(connection.getresponse().read())
        seconds = time.perf_counter() - start
        return (seconds, len(answer["matches"])) if "matches" in answer else None


class ClaudeCodeLog:
    """A Python program that makes pages, with a cache of all messages and full text in SQLite."""

    name = "claude-code-log"
    measured = (
        "the cache of every project and then full text, by its own functions in one process, without the pages that its"
        " command makes as well; searched by its own function inside the process, in all of its fields;"
        " it knows words, phrases and prefixes"
    )

    def __init__(self, programs: Path, home: Path) -> None:
        self._script = [str(programs / "python"), str(Path(__file__).parent / "peer_claude_code_log.py")]
        self._environment = environment(self.name, home)
        self._database = Path(self._environment["HOME"]) / "cache.db"

    def refresh(self, home: Path) -> Ran:
        """Its cache and its full text."""
        return run([*self._script, "index", str(self._database), str(home / "projects")], self._environment)

    def inside(self, ran: Ran) -> float | None:
        """The time without imports."""
        return float(json.loads(ran.said.splitlines()[-1])["seconds"])

    def files(self) -> list[Path]:
        """Its database."""
        return list(self._database.parent.glob("cache.db*"))

    def counts(self) -> dict[str, int]:
        """What is in its cache, and how much of that in its full text."""
        with closing(sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True)) as connection:
            told = {
                "transcripts": "SELECT COUNT(*) FROM cached_files",
                "sessions": "SELECT COUNT(*) FROM sessions",
                "messages": "SELECT COUNT(*) FROM messages",
                "message_fts": "SELECT COUNT(*) FROM search_indexed_rows",
            }
            return {name: int(connection.execute(question).fetchone()[0]) for name, question in told.items()}

    @contextmanager
    def asking(self, home: Path) -> Iterator[Asking]:  # noqa: ARG002 - its database knows the home
        """Its search, in a process that stays."""
        with _started([*self._script, "answer", str(self._database)], self._environment) as process:
            yield lambda asked: self._ask(process, asked)

    def _ask(self, process: subprocess.Popen[str], asked: Asked) -> tuple[float, int] | None:
        if asked.kind in ("substring", "regex"):
            return None
        # Its words are prefixes unless they are in quotes.
        query = {"phrase": f'"{asked.text}"', "prefix": f"{asked.text}*"}.get(
            asked.kind, " ".join(f'"{part}"' for part in asked.parts)
        )
        print(json.dumps(query), file=process.stdin, flush=True)
        answer = json.loads(next(_out(process)))
        return answer["seconds"], answer["hits"]


class Ripgrep:
    """No index: every file is read, each time."""

    name = "ripgrep"
    measured = (
        "`rg --files-with-matches`, whole process, over the transcripts in the page cache; all but expressions as fixed"
        " strings, three words by three runs, each over the files that the one before found; it counts files"
    )

    def __init__(self, program: str) -> None:
        self._program = program

    @contextmanager
    def asking(self, home: Path) -> Iterator[Asking]:
        """A run for each query, or three for three words."""
        yield lambda asked: self._ask(home, asked)

    def _ask(self, home: Path, asked: Asked) -> tuple[float, int]:
        each = (
            [["--regexp", asked.text]]
            if asked.kind == "regex"
            else [["--fixed-strings", part] for part in _scanned(asked)]
        )
        found = [str(home / "projects")]
        start = time.perf_counter()
        for pattern in each:
            command = [self._program, *_OPTIONS, *pattern, "--", *found]
            said = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - rg
            found = said.stdout.splitlines()
            if not found:
                break
        return time.perf_counter() - start, len(found)


def _scanned(asked: Asked) -> tuple[str, ...]:
    """What is looked for as it stands: in JSON a word may follow an escape, so that its edges cannot be asked for."""
    return asked.parts if asked.kind == "words" else (asked.text,)


@contextmanager
def _started(command: list[str], variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
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


def _out(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        sys.exit("There is no pipe to read from.")
    return process.stdout


def indexing(home: Path) -> list[Peer]:
    """The peers that have an index, as far as they can be had, for this home."""
    made: list[Peer] = []
    if programs := fetched("agentsview"):
        made.append(Agentsview(programs, home))
    if programs := fetched("claude-code-log"):
        made.append(ClaudeCodeLog(programs, home))
    return made


def ripgrep() -> Ripgrep | None:
    """Debian's program, where it is installed: a bench changes nothing of the system."""
    program = shutil.which("rg")
    if program is None:
        print("ripgrep is left out: there is no rg here; install it (Debian: apt-get install ripgrep).")
    return Ripgrep(program) if program else None


def first_index(peer: Peer, home: Path) -> dict[str, Any]:
    """The peer's index made from nothing."""
    for file in peer.files():
        file.unlink()
    ran = peer.refresh(home)
    if ran.code:
        print(f"{peer.name} is left out: it ended with {ran.code}: {ran.complaint.strip()[-300:]}")
        return {}
    return {
        "measured": peer.measured,
        "seconds": ran.seconds,
        "cpu_seconds": ran.cpu,
        "inside_seconds": peer.inside(ran),
        "load": os.getloadavg()[0],
        "peaks": ran.peaks,
        "index_megabytes": sum(file.stat().st_size for file in peer.files()) / 1e6,
        "counts": peer.counts(),
    }


def refreshes(peer: Peer, home: Path, growing: Growing) -> dict[str, Any]:
    """The best of a few refreshes: nothing changed, a line more, and a line more with a fork beside it."""
    told = {"nothing_changed": _best(peer, home, None), "appended": _best(peer, home, growing)}
    fork = growing.fork()
    try:
        peer.refresh(home)
        told["appended_beside_a_fork"] = _best(peer, home, growing)
    finally:
        fork.unlink()
        growing.cut_back()
    return told


def _best(peer: Peer, home: Path, growing: Growing | None) -> dict[str, float | None]:
    runs = []
    for _turn in range(TURNS):
        if growing is not None:
            growing.grow()
        runs.append(peer.refresh(home))
    best = min(runs, key=lambda ran: ran.seconds)
    return {"seconds": best.seconds, "cpu_seconds": min(ran.cpu for ran in runs), "inside_seconds": peer.inside(best)}


def keep(part: str, home: Path, told: dict[str, Any]) -> None:
    """Put figures of the peers where `--peers-from` finds them, beside what is there."""
    kept = OUT / f"peers-{home.name}.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    known.setdefault(part, {}).update(told)
    kept.write_text(json.dumps(known, indent=1))


def known(part: str, given: Path | None) -> dict[str, Any]:
    """The figures in such a file."""
    return json.loads(given.read_text()).get(part, {}) if given else {}
