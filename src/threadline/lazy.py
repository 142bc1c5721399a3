"""Package interfaces whose names are imported on first use.

A package's `__init__` lists what the package offers, but importing the package loads none of its modules, so a command
pays only for what it uses.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any


def export_lazily(package: str, modules: Mapping[str, Sequence[str]]) -> None:
    """Let `package` import names on first use.

    `modules` maps each module, relative to the package, to the names that it provides; `"load_rates as rates"` exports
    a name under another one. The package itself defines no `__getattr__`: with one, a type checker would accept any
    name.
    """
    sources = {}
    for module, names in modules.items():
        for name in names:
            original, _, public = name.partition(" as ")
            sources[public or original] = module, original

    def import_name(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = sources[name]
        value = getattr(import_module(f"{package}.{module}"), original)
        setattr(sys.modules[package], name, value)
        return value

    sys.modules[package].__getattr__ = import_name  # type: ignore[method-assign] # a module may define it
