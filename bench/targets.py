"""Targets of benchmarks, printed with the measured figures."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class Target(NamedTuple):
    """A figure and its bound. The figure is None if it could not be measured."""

    name: str
    relation: Literal["at least", "at most", "under"]
    bound: float
    figure: float | None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None if it was not measured."""
        if self.figure is None:
            return None
        if self.relation == "at least":
            return self.figure >= self.bound
        return self.figure < self.bound or (self.relation == "at most" and self.figure == self.bound)


def print_targets(targets: list[Target]) -> list[dict[str, Any]]:
    """Print targets, and return them as JSON values."""
    print()
    for target in targets:
        figure = f"{target.figure:>9.1f}" if target.figure is not None else f"{'-':>9}"
        met = {True: "met", False: "missed", None: "not measured"}[target.is_met]
        print(f"{target.name:<36}{figure}   {target.relation} {target.bound:g}: {met}")
    return [{**target._asdict(), "met": target.is_met} for target in targets]
