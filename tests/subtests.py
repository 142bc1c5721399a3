"""Many checks in one test. Every failure is collected and reported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from types import TracebackType
from typing import Any, Self

import pytest


class Subtests:
    """Collects failures, so that one does not hide the others.

    A loop over hundreds of names costs far less than hundreds of parametrised cases:

        with Subtests() as subtests:
            for name in NAMES:
                with subtests.test(name):
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
            pytest.fail("\n\n".join([f"{len(self._failures)} checks failed:", *self._failures]), pytrace=False)

    def test(self, name: object) -> _Subtest:
        """Collect the failure of the block, if it fails, under `name`."""
        return _Subtest(name, self._failures)


class _Subtest:
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


def for_each(
    names: str, values: Iterable[Any], *, ids: Iterable[str] | Callable[[Any], str] = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but as a loop in one test. Use it for hundreds of values.

    Every value is tested and every failure is reported. Fixtures are set up once for all values.
    """
    rows = list(values)
    labels = list(map(ids, rows)) if callable(ids) else list(ids)
    keys = [name.strip() for name in names.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def loop(*args: Any, **fixtures: Any) -> None:
            with Subtests() as subtests:
                for label, row in zip(labels, rows, strict=True):
                    with subtests.test(label):
                        test(*args, **fixtures, **dict(zip(keys, row if len(keys) > 1 else [row], strict=True)))

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        loop.__dict__["__signature__"] = signature.replace(parameters=rest)
        return loop

    return decorate
