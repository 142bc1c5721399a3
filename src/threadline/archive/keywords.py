"""Check the keywords of the archive's questions, and say what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from threadline.errors import BadQuery, did_you_mean
from threadline.model.text import join_some

P = ParamSpec("P")
Result = TypeVar("Result")
Names = str | Sequence[str]
"""One name, or several."""


def named_keywords(method: Callable[P, Result]) -> Callable[P, Result]:
    """Make a method name its keywords in the TypeError for an unknown one."""
    keywords = tuple(method.__kwdefaults__ or ())

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Result:
        for name in kwargs:
            if name not in keywords and name not in method.__code__.co_varnames[: method.__code__.co_argcount]:
                match = did_you_mean(name, keywords)
                suggestion = f" Did you mean {match!r}?" if match is not None else ""
                raise TypeError(
                    f"{method.__name__}() has no keyword {name!r}.{suggestion} Keywords: {', '.join(keywords)}."
                )
        return method(*args, **kwargs)

    return checked


def check_texts(**values: str | None) -> None:
    """Check that each value is text or None.

    Raises:
        BadQuery: one is neither.
    """
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise BadQuery(f"{name}={value!r} is not text. Use a string.")


def check_limit(limit: Any) -> int | None:
    """Return a limit, which is None for all rows.

    Raises:
        BadQuery: it is not a whole number, or negative.
    """
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return limit
    raise BadQuery(f"limit={limit!r} is not a number of rows. Use a whole number, or None for all.")


def parse_names(name: str, value: Names, choices: Collection[str] = ()) -> tuple[str, ...]:
    """Return one or more names as a tuple.

    Raises:
        BadQuery: one is not text, or not among the choices.
    """
    names: tuple[Any, ...] = (value,) if isinstance(value, str) else tuple(value)
    for part in names:
        if not isinstance(part, str):
            raise BadQuery(f"{name}={value!r} is not a list of names. Use one string, or several.")
        if choices and part not in choices:
            raise BadQuery(f"Unknown value {part!r} for {name}. Choose from {join_some(choices, len(choices))}.")
    return names
