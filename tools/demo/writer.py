"""Write one transcript: the chain of rows, the clock, the fields of its version, and the file."""

from __future__ import annotations

import os
import time
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import msgspec

from tools.demo.sent_messages import SentMessages

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tools.demo.versions import VersionFeatures

Row = dict[str, Any]

_BUFFER = 1 << 20
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"


def uuid(rng: Random) -> str:
    """A version 4 UUID from the generator, so that the same seed gives the same one everywhere."""
    text = f"{rng.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def identifier(rng: Random, prefix: str, length: int = 22) -> str:
    """An API identifier such as `msg_01…`."""
    return f"{prefix}_01{''.join(rng.choices(_LETTERS, k=length))}"


class Clock:
    """A clock in milliseconds that only advances."""

    def __init__(self, now: int) -> None:
        self.now = now
        self._second = -1
        self._text = ""

    def tick(self, milliseconds: int) -> None:
        """Advance the clock."""
        self.now += milliseconds

    def text(self) -> str:
        """The time as it is written in rows."""
        second, rest = divmod(self.now, 1000)
        if second != self._second:
            self._second = second
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._text}.{rest:03}Z"


class TranscriptWriter:
    """Writes the lines of one transcript; memory is bounded whatever its length."""

    def __init__(  # the facts that every row repeats
        self,
        path: Path,
        *,
        era: VersionFeatures,
        rng: Random,
        clock: Clock,
        session: str,
        cwd: str,
        branch: str,
        slug: str | None = None,
        agent: str | None = None,
        entrypoint: str = "cli",
    ) -> None:
        self.path = path
        self.era = era
        self.rng = rng
        self.clock = clock
        self.session = session
        self.agent = agent
        self.prompt_id = uuid(rng)
        self.parent: str | None = None
        self.size = 0
        self.lines = 0
        self.last: bytes = b""
        self.kept: list[bytes] | None = None
        """The lines so far, for transcripts that another one will copy."""
        self.sent = SentMessages() if era.writes("requests") else None
        self._encode = msgspec.json.Encoder().encode
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._suffix_order = era.writes("envelope last")
        envelope: Row = {"userType": "external"}
        if era.writes("entrypoint"):
            envelope["entrypoint"] = entrypoint
        envelope |= {"cwd": cwd, "sessionId": session, "version": era.version}
        if era.writes("gitBranch"):
            envelope["gitBranch"] = branch
        if agent and not self._suffix_order and era.writes("agentId"):
            envelope["agentId"] = agent
        if slug and era.writes("slug"):
            envelope["slug"] = slug
        self._envelope = envelope
        self._side = agent is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        self._file = os.fdopen(descriptor, "wb", buffering=0)

    def chain(
        self,
        body: Row,
        *,
        parent: str | EllipsisType | None = ...,
        side: bool | None = None,
        move: bool = True,
        prompt: bool = False,
        **first: Any,
    ) -> str:
        """Write a row of the conversation graph: with `parent`, or the previous row, as its parent; returns its uuid.

        `first` are fields that stand before `isSidechain`; `move=False` leaves the chain's tip where it is.
        """
        under = self.parent if isinstance(parent, EllipsisType) else parent
        row: Row = {"parentUuid": under, **first, "isSidechain": self._side if side is None else side}
        if self._suffix_order:
            if prompt:
                row["promptId"] = self.prompt_id
            if self.agent:
                row["agentId"] = self.agent
            row |= body
            row |= self._envelope
        else:
            row |= self._envelope
            row |= body
        self.write(row)
        identity: str = body["uuid"]
        if move:
            self.parent = identity
        return identity

    def stamp(self) -> Row:
        """A fresh `uuid` and the time, in the order that rows have them."""
        return {"uuid": uuid(self.rng), "timestamp": self.clock.text()}

    def write(self, row: Row) -> None:
        """Write any row."""
        if self.sent is not None and row.get("isSidechain") is self._side:
            if row.get("subtype") == "compact_boundary":
                self.sent = SentMessages()
            elif row["type"] in {"user", "assistant"}:
                self.sent.add(row["message"])
        self.raw(self._encode(row))

    def raw(self, line: bytes) -> None:
        """Write a line that is already encoded."""
        self.last = line
        self.lines += 1
        self.size += len(line) + 1
        self._pending.append(line)
        self._pending_size += len(line) + 1
        if self.kept is not None:
            self.kept.append(line)
        if self._pending_size > _BUFFER:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._file.write(b"\n".join(self._pending) + b"\n")
            self._pending.clear()
            self._pending_size = 0

    def close(self, *, torn: bool = False) -> None:
        """Finish the file. A torn one loses the end of its last line, as after a crash."""
        self._flush()
        if torn:
            lost = len(self.last) // 3 + 1
            self.size -= lost
            self._file.truncate(self.size)
        self._file.close()
        seconds = self.clock.now / 1000
        os.utime(self.path, (seconds, seconds))
