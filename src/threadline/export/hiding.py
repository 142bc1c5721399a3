"""What is to be hidden: words and patterns that a person gave, and the names of this machine."""

from __future__ import annotations

import getpass
import os
import platform
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from threadline.errors import BadQuery, NotFound, Unreadable
from threadline.render.redaction import Settings
from threadline.render.redaction.homes import NOBODY

_LISTS = ("words", "keep", "users", "hosts")
_LEAST_HOST = 4
_LEAST_WORD = 2


def own_file() -> Path:
    """Where a person keeps what is to be hidden in every export."""
    config = os.environ.get("XDG_CONFIG_HOME") or ""
    base = Path(config) if Path(config).is_absolute() else Path.home() / ".config"
    return base / "threadline" / "redaction.toml"


def settings(words: Iterable[str] = (), lists: Iterable[Path] = (), files: Iterable[Path] = ()) -> Settings:
    """Everything together; what stands in the own file counts always.

    Raises:
        NotFound: a file that was named is not there.
        BadQuery: what it says cannot be understood.
    """
    own = own_file()
    told = [_read(path) for path in (*([own] if own.is_file() else []), *files)]
    listed = [line.strip() for path in lists for line in _text(path).splitlines() if line.strip()]
    hidden = [*words, *listed, *(word for one in told for word in one.words)]
    for word in hidden:
        if len(word.strip()) < _LEAST_WORD:
            raise BadQuery(f"The word {word!r} is too short to be hidden; give at least {_LEAST_WORD} characters.")
    made = Settings(
        patterns={name: pattern for one in told for name, pattern in one.patterns.items()},
        words=tuple(dict.fromkeys(hidden)),
        keep=tuple(word for one in told for word in one.keep),
        users=tuple(dict.fromkeys([*(name for one in told for name in one.users), *_users()])),
        hosts=tuple(dict.fromkeys([*(name for one in told for name in one.hosts), *_hosts()])),
    )
    made.compiled()  # so that what is wrong with a pattern is said first
    return made


def _read(path: Path) -> Settings:
    try:
        told = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BadQuery(f"{str(path)!r} is not TOML: {error}.") from None
    strange = sorted(set(told) - {*_LISTS, "patterns"})
    if strange:
        raise BadQuery(f"{str(path)!r} has {strange[0]!r}; it may have {', '.join(_LISTS)} and [patterns].")
    lists: dict[str, Any] = {name: tuple(_strings(told.get(name, []), path, name)) for name in _LISTS}
    patterns = told.get("patterns", {})
    if not isinstance(patterns, dict) or not all(isinstance(one, str) for one in patterns.values()):
        raise BadQuery(f"[patterns] in {str(path)!r} must be names and expressions: ticket = 'TICK-[0-9]+'.")
    return Settings(patterns=patterns, **lists)


def _strings(value: Any, path: Path, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadQuery(f"{name!r} in {str(path)!r} must be a list of texts.")
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"There is no file {str(path)!r}; check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise Unreadable(f"{str(path)!r} cannot be read: {why}.") from None


def _users() -> list[str]:
    """Whose machine this is."""
    try:
        names = [getpass.getuser(), Path.home().name]
    except (OSError, KeyError, RuntimeError):  # an account without a name
        return []
    return [name for name in names if name and name.lower() not in NOBODY]


def _hosts() -> list[str]:
    """What this machine is called, with and without its domain."""
    whole = platform.node()
    names = [whole, whole.partition(".")[0]]
    return [name for name in names if len(name) >= _LEAST_HOST and name.lower() not in NOBODY | {"localhost"}]
