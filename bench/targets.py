"""Targets of benchmarks, printed beside the figures that were measured."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class Target(NamedTuple):
    """A figure and its bound. The figure is None if it could not be measured."""

    name: str
    how: Literal["at least", "at most", "under"]
    bound: float
    figure: float | None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met."""
        if self.figure is None:
            return None
        if self.how == "at least":
            return self.figure >= self.bound
        return self.figure < self.bound or (self.how == "at most" and self.figure == self.bound)


def print_targets(targets: list[Target]) -> list[dict[str, Any]]:
    """Print targets, and return them for JSON."""
    print()
    for target in targets:
        figure = f"{target.figure:>9.1f}" if target.figure is not None else f"{'-':>9}"
        outcome = {True: "met", False: "missed", None: "not measured"}[target.is_met]
        print(f"{target.name:<36}{figure}   {target.how} {target.bound:g}: {outcome}")
    return [{**target._asdict(), "met": target.is_met} for target in targets]
