"""The home for browser tests: the demo, a very long session, one with pictures, one that grows."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

from tests.browser import long_session, reviewed_session
from tests.profiles import scale_examples
from tests.transcripts import Pen, Row, call, meta, prompt, reply, transcript, write
from tools import demo

PICTURES = "50000000-0000-4000-8000-000000000002"
GROWING = "50000000-0000-4000-8000-000000000003"
SHORT = "50000000-0000-4000-8000-000000000004"
WIDE = "50000000-0000-4000-8000-000000000006"
_FOLDER = "projects/-work-app"


def make(home: Path) -> None:
    """Write the whole home. Takes a few seconds."""
    make_without_long_session(home)
    long_session.write(home, shortened=True, entries=max(6_000, scale_examples(long_session.ENTRIES)))


def make_without_long_session(home: Path, megabytes: float = 2) -> None:
    """Write everything except the long session."""
    demo.write(home, megabytes=megabytes)
    write(home / _FOLDER / f"{PICTURES}.jsonl", *_with_pictures())
    write(home / _FOLDER / f"{GROWING}.jsonl", *_growing())
    write(home / _FOLDER / f"{SHORT}.jsonl", *_short())
    write(home / _FOLDER / f"{WIDE}.jsonl", *_wide())
    reviewed_session.make(home / _FOLDER)


def picture(width: int, height: int) -> str:
    """A grey PNG in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\x00" + b"\x99" * width) * height)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", rows) + chunk(b"IEND", b"")).decode()


def image_block(width: int, height: int) -> Row:
    """A block with such a picture."""
    source = {"type": "base64", "media_type": "image/png", "data": picture(width, height)}
    return {"type": "image", "source": source}


def _with_pictures() -> list[Row | bytes]:
    """Pictures in prompts and results, some of them tall, with text before and after."""
    turns = [
        part
        for number in range(1, 13)
        for part in (
            prompt([{"type": "text", "text": f"[Image #{number}] how is this?"}, image_block(900, 200 + 100 * number)]),
            call("Read", f"/work/app/{number}.png", result=[image_block(400, 300)]),
            reply(f"Picture {number} is grey.\n\n" + "It was looked at for a while. " * 30),
        )
    ]
    return transcript(meta("custom-title", customTitle="Pictures"), *turns, pen=Pen(PICTURES))


def _growing() -> list[Row | bytes]:
    turns = [
        part
        for number in range(1, 41)
        for part in (
            prompt(f"Question {number}"),
            call("Bash", f"echo {number}", result=f"{number}\n" * 5),
            reply(f"Answer {number}.\n\n" + "And what belongs to it. " * 20),
        )
    ]
    return transcript(meta("custom-title", customTitle="A session that grows"), *turns, pen=Pen(GROWING))


def _short() -> list[Row | bytes]:
    return transcript(
        meta("custom-title", customTitle="A short session"),
        prompt("Please list the files, and say which is *largest*."),
        reply({"type": "thinking", "thinking": "A look at the folder will do."}, message={"id": "msg_first"}),
        call(
            "Bash", {"command": "ls -S", "description": "List files"}, result="b.py\na.py", details={"stdout": "b.py"}
        ),
        call(
            "Grep", "def", result="a.py:1:def a(): ...", details={"mode": "content", "content": "a.py:1:def a(): ..."}
        ),
        reply(
            "The largest is `b.py`:\n\n```python\ndef b() -> int:\n    return 1\n```\n\n- it is *short*\n- and **new**"
        ),
        prompt("Thank you"),
        reply("You are welcome."),
        pen=Pen(SHORT),
    )


def _wide() -> list[Row | bytes]:
    """Blocks that are wider and higher than the window, with words to find at their start, middle and end."""
    line = "a line that is much wider than the window of any phone, and than the column of a desktop; "
    lines = [f"{number} {line}" for number in range(1, 27)]
    lines[20] += "needle two"
    lines[24] = f"needle three {line}"
    text = "\n".join(lines)
    return transcript(
        meta("custom-title", customTitle="Wide blocks"),
        prompt("Print it."),
        call("Bash", "cat wide.txt", result=text, details={"stdout": text, "stderr": ""}),
        *(reply(f"Paragraph {number}.\n\n" + "Some words. " * 60) for number in range(80)),
        prompt(f"{'Something longer. ' * 12} needle one"),
        reply("Found."),
        pen=Pen(WIDE),
    )
