"""Compare with the official SDK: listing all sessions, and reading the thread of the largest one.

    python bench/sdk.py --megabytes 200

Both sides run as processes of their own, in turn, several rounds; the best round counts. The SDK is installed into
`bench/out/peers` if it is missing. threadline reads more (agents, branches, turns, calls); the SDK returns the
messages of the main thread.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import OUT, generated_home
from bench.peers import install_package
from bench.processes import ProcessResult, run

HERE = Path(__file__).parents[1]
_LIST = {
    "threadline": "import threadline; print(len(threadline.open().sessions().sessions))",
    "sdk": "import claude_agent_sdk as sdk; print(len(sdk.list_sessions()))",
}
_LIST_FILES = {**_LIST, "threadline": "import threadline; print(len(threadline.open(index=False).sessions().sessions))"}
_READ = {
    "threadline": "import sys, threadline; print(len(threadline.read(sys.argv[2]).main.thread.entries))",
    "sdk": "import sys, claude_agent_sdk as sdk; print(len(sdk.get_session_messages(sys.argv[1])))",
}


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    home = generated_home(options.megabytes)
    mains = (path for path in (home / "projects").glob("*/*.jsonl") if not path.name.startswith("agent-"))
    largest = max(mains, key=lambda path: path.stat().st_size)
    programs = install_package("claude-agent-sdk")
    if programs is None:
        return 1
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE / "src"),
        "PYTHONDONTWRITEBYTECODE": "",
        "CLAUDE_CONFIG_DIR": str(home),
        "THREADLINE_CACHE": str(OUT / "sdk-cache"),
        "THREADLINE_KEEP": "off",
    }
    pythons = {"threadline": sys.executable, "sdk": str(programs / "python")}
    print(f"{home.name}, best of {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"{'':<28}{'threadline':>12}{'sdk':>12}{'ratio':>8}   results")
    arguments = [largest.stem, str(largest)]
    _run(sys.executable, "import threadline; threadline.open().refresh()", [], environment)
    for name, codes in (
        ("list sessions, no index", _LIST_FILES),
        ("list sessions, indexed", _LIST),
        (f"read {largest.stat().st_size / 1e6:.1f} MB", _READ),
    ):
        rounds = [
            {who: _run(pythons[who], code, arguments, environment) for who, code in codes.items()}
            for _ in range(options.rounds)
        ]
        best = {who: min(result[who].seconds for result in rounds) for who in codes}
        results = ", ".join(f"{who} {rounds[0][who].stdout.strip()}" for who in codes)
        ratio = best["sdk"] / best["threadline"]
        print(f"{name:<28}{best['threadline']:>11.3f}s{best['sdk']:>11.3f}s{ratio:>8.1f}   {results}", flush=True)
    return 0


def _run(python: str, code: str, arguments: list[str], environment: dict[str, str]) -> ProcessResult:
    result = run([python, "-c", code, *arguments], environment)
    if result.exit_code:
        sys.exit(f"{code} failed: {result.stderr[-400:]}")
    return result


if __name__ == "__main__":
    sys.exit(main())
