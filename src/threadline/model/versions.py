"""Compare versions of Claude Code."""

from __future__ import annotations

from functools import lru_cache

_TOO_MANY_DIGITS = 10


@lru_cache(maxsize=256)
def parse_version(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows a `-` or `+`; empty if it is not a version.

    >>> parse_version("2.1.9") < parse_version("2.1.10-beta")
    True
    >>> parse_version("2.1.x")
    ()
    """
    parts = version.partition("+")[0].partition("-")[0].split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < _TOO_MANY_DIGITS for part in parts):
        return ()
    return tuple(int(part) for part in parts)


def version_key(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Return a sort key: by numbers, and a pre-release before its release. Texts that are not versions come first.

    >>> sorted(["2.1.10", "2.1.9", "2.1.10-beta", "dev"], key=version_key)
    ['dev', '2.1.9', '2.1.10-beta', '2.1.10']
    """
    is_release = "-" not in version.partition("+")[0]
    return parse_version(version), is_release, version
