"""Machines with homes that overlap, and what they push to a lake."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from tests.transcripts import START, Pen, call, prompt, reply, transcript, write

from threadline.find import look
from threadline.keep import Machine
from threadline.lake import Policy, PushOptions, PushResult, create_lake, push_sessions
from threadline.storage import Bucket

FORK = "f0f0f0f0-0000-4000-8000-00000000000f"


def session_id(number: int) -> str:
    """The id of a session."""
    return f"5e551011-0000-4000-8000-{number:012d}"


def write_session(home: Path, number: int, *, turns: int = 2, project: str = "-work-app", text: str = "hello") -> Path:
    """Write a session with some turns and calls."""
    pen = Pen(session_id(number), START + timedelta(days=number), cwd="/" + project.strip("-").replace("-", "/"))
    parts = []
    for turn in range(turns):
        parts += [
            prompt(f"{text} {turn}"),
            reply("ok", output=10 + number, input=5, cache_read=1000 * (turn + 1)),
            call("Bash", "ls", result=f"file-{turn}"),
        ]
    path = home / "projects" / project / f"{session_id(number)}.jsonl"
    return write(path, *transcript(*parts, pen=pen))


def write_fork(home: Path, original: Path) -> Path:
    """Write a fork on another machine: the history of the original under a new session id, and a turn of its own."""
    lines = original.read_bytes().replace(original.stem.encode(), FORK.encode()).splitlines(keepends=True)
    own = transcript(
        prompt("another way"), reply("done", output=77, input=3), pen=Pen(FORK, START + timedelta(days=40))
    )
    path = home / "projects" / "-work-app" / f"{FORK}.jsonl"
    return write(path, *lines, *own)


def make_homes(folder: Path, demo_home: Path) -> list[Path]:
    """Five homes: overlaps, copies, a fork across two machines, and a home with everything a home can have."""
    homes = [folder / f"home-{number}" for number in range(1, 5)]
    originals = [write_session(homes[0], number, project=f"-work-app{number % 2}") for number in range(1, 4)]
    write_session(homes[1], 4)
    target = homes[1] / "projects" / "-work-app1" / originals[0].name
    target.parent.mkdir(parents=True)
    shutil.copy2(originals[0], target)  # a copy on a second machine
    write_fork(homes[2], originals[1])
    write_session(homes[2], 5, project="-work-other")
    # The first half of a session: the other machine has all of it.
    lines = originals[2].read_bytes().splitlines(keepends=True)
    write(homes[3] / "projects" / "-work-app1" / originals[2].name, *lines[: len(lines) // 2])
    return [*homes, demo_home]


def machine(number: int) -> Machine:
    """A machine by its number."""
    return Machine(f"laptop{number}_0000000{number}", f"laptop{number}")


def push(bucket: Bucket, homes: Sequence[Path], number: int = 1, **options: object) -> PushResult:
    """Push homes from a machine."""
    policy = create_lake(bucket, Policy.FULL).policy if "accepted" not in options else options.pop("accepted")
    chosen = PushOptions(person=f"person{number}", accepted=policy, **options)  # type: ignore[arg-type] # as given
    return push_sessions(bucket, [look(home) for home in homes], machine(number), chosen)
