"""Targets: what was to be reached, beside what was."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class Target(NamedTuple):
    """A figure and its bound; no figure where it could not be measured."""

    name: str
    how: Literal["at least", "at most", "under"]
    bound: float
    figure: float | None

    @property
    def is_met(self) -> bool | None:
        """Whether it is reached."""
        if self.figure is None:
            return None
        if self.how == "at least":
            return self.figure >= self.bound
        return self.figure < self.bound or (self.how == "at most" and self.figure == self.bound)


def print_targets(targets: list[Target]) -> list[dict[str, Any]]:
    """Print them, and give them for JSON."""
    print()
    for target in targets:
        figure = f"{target.figure:>9.1f}" if target.figure is not None else f"{'-':>9}"
        met = {True: "met", False: "missed", None: "not measured"}[target.is_met]
        print(f"{target.name:<36}{figure}   {target.how} {target.bound:g}: {met}")
    return [{**target._asdict(), "met": target.is_met} for target in targets]
