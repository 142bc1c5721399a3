"""Compare this checkout with another one: time and modules executed, for the commands people run most.

    python bench/compare.py --base ../threadline-e7de355 --megabytes 200

Both run in turn on the same generated home, several rounds; the best round counts, because noise only adds. CPU seconds
include all worker processes. `--modules` prints how many modules of threadline run code for a command, import-time code
left out, on a small home.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import generated_home
from bench.processes import run

HERE = Path(__file__).parents[1]
_PROFILER = """
import sys, os, json, threading
root = sys.argv[1]; sys.argv[1:] = sys.argv[2:]
from threadline.cli import run
modules = set()
calls = 0
def profile(frame, event, argument):
    global calls
    if event != "call":
        return
    calls += 1
    code = frame.f_code
    if not code.co_filename.startswith(root) or code.co_filename in modules or code.co_flags & 2 == 0:
        return  # not ours, or the body of a module or class
    if threading.current_thread().name.startswith("threadline-"):
        return  # background work that happens to run meanwhile
    above = frame.f_back
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(root):
            return  # while a module is imported
        above = above.f_back
    modules.add(code.co_filename)
def report():
    print("MODULES", len(modules), file=sys.stderr, flush=True)
    os._exit(0)
def visit(session):
    import time, re, urllib.parse, urllib.request, http.cookiejar
    while not (match := re.search(r"http://[^ ]+", "".join(written).replace(chr(10), " "))):
        time.sleep(0.05)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    parts = urllib.parse.urlsplit(match.group())
    def fetch(path):
        # Python does not resolve names under .localhost like browsers.
        url = f"http://127.0.0.1:{parts.port}{path}"
        opener.open(urllib.request.Request(url, headers={"Host": parts.netloc})).read()
    fetch(f"{parts.path}?{parts.query}")
    before = None
    while before is None or calls - before > 200:  # work that the first page began
        before = calls
        time.sleep(0.5)
    fetch("/")  # compares the home with the index, if that is due
    modules.clear()
    fetch("/session/" + session)
    report()
written = []
if sys.argv[1] == "serve":
    class Output:
        encoding = "utf-8"
        def write(self, text): written.append(text if isinstance(text, str) else text.decode()); return len(text)
        def flush(self): pass
        def isatty(self): return False
    sys.stdout = Output()
    threading.Thread(target=visit, args=(sys.argv.pop(),), daemon=True).start()
    threading.setprofile(profile)
sys.setprofile(profile)
code = run(sys.argv[1:])
sys.setprofile(None)
report()
"""


class Measurement(NamedTuple):
    """Wall and CPU seconds."""

    wall: float
    cpu: float


class Contender:
    """A checkout of threadline with caches of its own."""

    def __init__(self, name: str, checkout: Path, home: Path, folder: Path) -> None:
        self.name = name
        self.source = checkout / "src"
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(self.source),
            "PYTHONDONTWRITEBYTECODE": "",
            "CLAUDE_CONFIG_DIR": str(home),
            "THREADLINE_CACHE": str(self.folder / "cache"),
            "THREADLINE_KEEP": "off",
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "TZ": "UTC",
        }

    def command(self, *arguments: str, **variables: str) -> Measurement:
        """Run a command once."""
        result = run([sys.executable, "-m", "threadline", *arguments], {**self.environment, **variables})
        if result.exit_code not in {0, 1}:
            sys.exit(f"{self.name}: threadline {' '.join(arguments)} failed: {result.stderr[-400:]}")
        return Measurement(result.seconds, result.cpu)

    def keep(self) -> Measurement:
        """A first run of `keep` into a new folder."""
        folder = Path(tempfile.mkdtemp(dir=self.folder)) / "kept"
        measurement = self.command("keep", "--keep", str(folder), "--quiet", THREADLINE_KEEP=str(folder))
        shutil.rmtree(folder)
        return measurement

    @contextmanager
    def serve(self) -> Iterator[Callable[[str], Measurement]]:
        """`threadline serve`; gives a function that fetches a path."""
        command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--port", "0"]
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - our own command
        try:
            line = ""
            while process.stdout is not None and not (match := re.search(r"http://\S+", line)):
                line = process.stdout.readline().decode()
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            url = match.group() if match else ""
            parts = urlsplit(url)

            def fetch(path: str) -> Measurement:
                # Python does not resolve names under .localhost like browsers.
                request = urllib.request.Request(f"http://127.0.0.1:{parts.port}{path}", headers={"Host": parts.netloc})
                start = time.perf_counter()
                opener.open(request).read()
                return Measurement(time.perf_counter() - start, 0)

            fetch(f"/?{parts.query}")

            yield fetch
        finally:
            process.terminate()
            process.wait()

    def largest_session(self) -> str:
        """The id of the session with the largest transcript."""
        command = [sys.executable, "-m", "threadline", "list", "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, check=True)  # noqa: S603 - our own command
        listing = json.loads(done.stdout)
        rows = listing["sessions"] if isinstance(listing, dict) else listing
        largest = max(rows, key=lambda row: int(row["size"]))
        return str(largest.get("session") or largest["id"])  # the base may have another key

    def modules(self, *arguments: str, **variables: str) -> int:
        """How many modules of threadline run code for a command."""
        command = [sys.executable, "-c", _PROFILER, str(self.source / "threadline"), *arguments]
        environment = {**self.environment, **variables}
        done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True, timeout=120)  # noqa: S603 - our own command
        match = re.search(r"MODULES (\d+)", done.stderr)
        if match is None:
            sys.exit(f"{self.name}: {done.stderr[-600:]}")
        return int(match.group(1))


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="a checkout to compare with")
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--modules", action="store_true", help="count modules executed instead of measuring time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = generated_home(2 if options.modules else options.megabytes)
        contenders = [Contender("base", options.base.resolve(), home, Path(folder))]
        contenders.append(Contender("here", HERE, home, Path(folder)))
        if options.modules:
            _print_modules(contenders)
        else:
            _print_times(contenders, home, options.rounds)
    return 0


def executed_modules(contender: Contender) -> dict[str, int]:
    """How many modules of threadline run code for each of the commands people run most."""
    modules = {"usage, cold": contender.modules("usage", THREADLINE_INDEX="off")}
    contender.command("index", "refresh")
    modules["usage, indexed"] = contender.modules("usage")
    modules["search"] = contender.modules("search", "parser")
    server = ("serve", "--no-open", "--port", "0", contender.largest_session())
    # The least of a few visits: a busy machine adds what the server does in the background.
    modules["session page"] = min(contender.modules(*server) for _ in range(3))
    kept = str(contender.folder / "kept-modules")
    modules["keep"] = contender.modules("keep", "--keep", kept, THREADLINE_KEEP=kept)
    return modules


def _print_modules(contenders: list[Contender]) -> None:
    base, here = map(executed_modules, contenders)
    print(f"{'modules executed':<24}{'base':>8}{'here':>8}")
    for name, count in base.items():
        print(f"{name:<24}{count:>8}{here[name]:>8}")


def _print_times(contenders: list[Contender], home: Path, rounds: int) -> None:
    off = {"THREADLINE_INDEX": "off"}
    cases: dict[str, Callable[[Contender], Measurement]] = {
        "first index": lambda contender: contender.command("index", "rebuild"),
        "--help": lambda contender: contender.command("--help"),
        "list": lambda contender: contender.command("list"),
        "usage, cold": lambda contender: contender.command("usage", **off),
        "usage, indexed": lambda contender: contender.command("usage"),
        "search": lambda contender: contender.command("search", "parser"),
        "keep, first run": lambda contender: contender.keep(),
    }
    print(f"{home.name}, best of {rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"{'':<24}{'base wall':>10}{'here wall':>10}{'ratio':>7}{'base cpu':>10}{'here cpu':>10}{'ratio':>7}")
    for name, measure in cases.items():
        best = [[measure(contender) for contender in contenders] for _ in range(rounds)]
        _print_row(name, best)
    path = f"/session/{contenders[1].largest_session()}"
    with contenders[0].serve() as base, contenders[1].serve() as here:
        _print_row("session page, first", [[base(path), here(path)]])
        _print_row("session page, again", [[base(path), here(path)] for _ in range(3 * rounds)])


def _print_row(name: str, rounds: list[list[Measurement]]) -> None:
    walls = [min(row[at].wall for row in rounds) for at in (0, 1)]
    cpus = [min(row[at].cpu for row in rounds) for at in (0, 1)]
    shares = [after / before if before else 0.0 for before, after in (walls, cpus)]
    print(
        f"{name:<24}{walls[0]:>10.3f}{walls[1]:>10.3f}{shares[0]:>7.2f}{cpus[0]:>10.3f}{cpus[1]:>10.3f}{shares[1]:>7.2f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
