"""Recalled: what was worked out of the index, kept until the index tells something else."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from threadline.archive import Archive

_T = TypeVar("_T")
_MOST = 32
_LOCK = threading.Lock()
_KEPT: OrderedDict[Hashable, Any] = OrderedDict()


def recalled(archive: Archive, name: str, make: Callable[[], _T], *given: Hashable) -> _T:
    """What `make` gives for these values; the same again as long as nothing in the homes has changed.

    It must not hold the archive or its connection, which are another's by then.
    """
    key = _key(archive, name, given)
    with _LOCK:
        if key in _KEPT:
            _KEPT.move_to_end(key)
            return cast("_T", _KEPT[key])
    made = make()
    with _LOCK:
        _KEPT[key] = made
        while len(_KEPT) > _MOST:
            _KEPT.popitem(last=False)
    return made


def _key(archive: Archive, name: str, given: Hashable) -> Hashable:
    return (str(archive.index), archive.generation, name, given)
