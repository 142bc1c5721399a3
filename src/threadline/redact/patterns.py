"""Regular expressions that are compiled when they are first used.

The rules have hundreds of patterns, and compiling them takes longer than scanning a short transcript. Most texts need
few of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_ATTRIBUTES = ("match", "fullmatch", "search", "finditer", "findall", "sub", "split", "groups", "groupindex")


class _LazyPattern:
    """Compiles its pattern at the first use of one of its methods, and then has the methods of the compiled one."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        self.__dict__.update((attribute, getattr(compiled, attribute)) for attribute in _ATTRIBUTES)
        return self.__dict__[name]


def compile_lazily(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, at the first use. An invalid pattern is reported only then.

    >>> compile_lazily("[0-9]+").findall("1, 22")
    ['1', '22']
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
