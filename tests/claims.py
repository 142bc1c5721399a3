"""Many claims in one test: every failure is collected and reported."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import pytest


class Claims:
    """Collects the claims that fail, so that one failure does not hide the others.

    A loop over hundreds of names costs far less than hundreds of parametrised cases:

        with Claims() as claims:
            for name in NAMES:
                with claims.about(name):
                    assert name.isascii()
    """

    def __init__(self) -> None:
        self._failures: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            if self._failures:
                error.add_note("\n\n".join(["Before that:", *self._failures]))
            return
        if self._failures:
            pytest.fail("\n\n".join([f"{len(self._failures)} claims failed:", *self._failures]), pytrace=False)

    def about(self, name: object) -> _Claim:
        """A claim; `name` says in the report which one it is."""
        return _Claim(name, self._failures)


class _Claim:
    def __init__(self, name: object, failures: list[str]) -> None:
        self._name = name
        self._failures = failures

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if not isinstance(error, (Exception, pytest.fail.Exception)):
            return False
        report = pytest.ExceptionInfo.from_exception(error).getrepr(style="short")
        self._failures.append(f"--- {self._name}\n{report}")
        return True
