"""The cost of threading per entry, and whether it grows with the session.

A chain of turns, each with a prompt, calls with their results and a reply, is threaded at three sizes, each in its own
process; the best of several rounds counts. Then the largest session of a demo home is read from its files.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).parent / "out"
SIZES = (100_000, 300_000, 1_000_000)
ROUNDS = 3
MEGABYTES = 100


def rows(size: int) -> Iterator[str]:
    """A chain of `size` rows: turns of a prompt, two calls at once with their results, and a reply."""
    last = "null"
    for number in range(size):
        step, turn = number % 6, number // 6
        kind = "user" if step in (0, 3, 4) else "assistant"
        content = {
            0: f'"Sort shelf {turn}"',
            1: f'[{{"type":"tool_use","id":"t{turn}a","name":"Bash","input":{{"command":"ls"}}}}]',
            2: f'[{{"type":"tool_use","id":"t{turn}b","name":"Bash","input":{{"command":"ls"}}}}]',
            3: f'[{{"type":"tool_result","tool_use_id":"t{turn}a","content":"ok"}}]',
            4: f'[{{"type":"tool_result","tool_use_id":"t{turn}b","content":"ok"}}]',
            5: '[{"type":"text","text":"Sorted."}]',
        }[step]
        # The parent of the first call's result is that call, so the result is beside the path.
        parent = f'"n{number - 2}"' if step in (3, 4) else last
        message = f'"role":"{kind}","content":{content}'
        if kind == "assistant":
            message += f',"model":"m","id":"m{turn}{"c" if step == 5 else ""}"'  # noqa: PLR2004 - the last step's reply
        yield (
            f'{{"type":"{kind}","uuid":"n{number}","parentUuid":{parent},"sessionId":"s","version":"2.1.232",'
            f'"timestamp":"2026-01-05T09:00:00.000Z","message":{{{message}}}}}\n'
        )
        last = f'"n{number}"'


def thread(path: Path) -> dict[str, float]:
    """Thread a transcript whose entries are already in memory: the best round, in microseconds per entry."""
    from threadline.parse import entries
    from threadline.thread import build_history

    rows_read = list(entries(path))
    gc.freeze()  # garbage collection of what was read before is no part of threading
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        history = build_history(rows_read)
        best = min(best, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "entries": len(rows_read),
        "seconds": best,
        "each": best / len(rows_read) * 1e6,
        "conversation": len(history.conversation),
        "peak": peak,
    }


def read_session(path: Path) -> dict[str, float]:
    """Read a session and its agents from their files."""
    from threadline.load import read

    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        session = read(path)
        best = min(best, time.perf_counter() - start)
    size = sum(Path(name).stat().st_size for name in {entry.line.transcript for entry in session})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "entries": len(session),
        "seconds": best,
        "each": best / len(session) * 1e6,
        "agents": len(session.agents),
        "megabytes": size / 1e6,
        "peak": peak,
    }


def measure_in_process(what: str, path: Path) -> dict[str, float]:
    """Measure in a new process, so that no measurement affects the memory of another."""
    command = [sys.executable, __file__, "--measure", what, "--path", str(path)]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603 - this script
    return figures


def chain_transcript(size: int) -> Path:
    """A transcript with that many rows, generated once."""
    path = OUT / f"chain-{size}.jsonl"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("w") as file:
            file.writelines(rows(size))
        part.rename(path)
    return path


def largest_session() -> Path:
    """The largest main transcript of a demo home, generated once."""
    from tools.demo import write

    home = OUT / f"home-{MEGABYTES}"
    if not home.exists():
        write(home, megabytes=MEGABYTES)
    mains = (path for path in home.glob("projects/*/*.jsonl") if not path.name.startswith("agent-"))
    return max(mains, key=lambda path: path.stat().st_size)


def print_figures(name: str, figures: dict[str, float]) -> dict[str, float]:
    """Print and return the figures of one measurement."""
    print(
        f"{name:<28}{figures['entries']:>11,}{figures['seconds']:>9.2f}{figures['each']:>9.2f}{figures['peak']:>9,.0f}"
    )
    return figures


def main() -> None:
    """Measure, print, and write the figures to bench/out/thread.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", choices=["thread", "read"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps((thread if options.measure == "thread" else read_session)(options.path)))
        return
    print(f"{'':<28}{'entries':>11}{'seconds':>9}{'µs each':>9}{'peak MB':>9}")
    chains = [print_figures("chain, threaded", measure_in_process("thread", chain_transcript(size))) for size in SIZES]
    session = print_figures("demo session, read", measure_in_process("read", largest_session()))
    growth = chains[-1]["each"] / chains[0]["each"]
    print(f"\nWith ten times the entries, each costs {growth:.2f} times as much.")
    (OUT / "thread.json").write_text(json.dumps({"chains": chains, "session": session}, indent=1))


if __name__ == "__main__":
    main()
