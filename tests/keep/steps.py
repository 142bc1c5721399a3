"""Intercepts each file operation of a process, to do something before it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from threadline import files


class Step(NamedTuple):
    """The operation that is about to be done, and its file. `to` is the target of a rename."""

    number: int
    name: str
    path: Path
    to: Path | None = None


StepCallback = Callable[[Step], object]


@contextmanager
def intercept_steps(callback: StepCallback) -> Iterator[None]:
    """Call something before each step: files are created, written (when half is written), synced, renamed, removed."""
    steps = _StepInterceptor(callback)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "close", "fsync", "replace", "unlink", "mkdir", "write"):
            patch.setattr(os, name, getattr(steps, name))
        patch.setattr(files, "write_all", steps.write_all)
        yield


class _StepInterceptor:
    def __init__(self, callback: StepCallback) -> None:
        self._callback = callback
        self._number = 0
        self._paths: dict[int, Path] = {}
        self._real = {name: getattr(os, name) for name in ("open", "close", "fsync", "replace", "unlink", "mkdir")}
        self._write = os.write
        self._write_all = files.write_all

    def _step(self, name: str, path: Path, to: Path | None = None) -> None:
        self._number += 1
        self._callback(Step(self._number, name, path, to))

    def open(self, path: Any, flags: int, *rest: Any, **others: Any) -> int:
        if flags & os.O_CREAT:
            self._step("begin", Path(path))
        descriptor: int = self._real["open"](path, flags, *rest, **others)
        self._paths[descriptor] = Path(path)
        return descriptor

    def close(self, descriptor: int) -> None:
        self._real["close"](descriptor)

    def fsync(self, descriptor: int) -> None:
        self._step("sync", self._paths[descriptor])
        self._real["fsync"](descriptor)

    def replace(self, path: Any, to: Any, **others: Any) -> None:
        self._step("rename", Path(path), Path(to))
        self._real["replace"](path, to, **others)

    def unlink(self, path: Any, **others: Any) -> None:
        if os.path.lexists(path):
            self._step("remove", Path(path))
        self._real["unlink"](path, **others)

    def mkdir(self, path: Any, *rest: Any, **others: Any) -> None:
        self._step("make", Path(path))
        self._real["mkdir"](path, *rest, **others)

    def write(self, descriptor: int, data: Any) -> int:
        if descriptor in self._paths:
            self._step("write", self._paths[descriptor])
        return self._write(descriptor, data)

    def write_all(self, file: Any, data: bytes) -> None:
        half = len(data) // 2
        self._write_all(file, data[:half])
        path = self._paths.get(file.fileno()) if hasattr(file, "mode") else None
        if path is not None:
            self._step("write", path)
        self._write_all(file, data[half:])


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do something in another process that is killed at that step. Returns whether it got that far."""
    child = os.fork()
    if not child:
        try:
            with intercept_steps(lambda step: _die() if step.number == number else None):
                work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
