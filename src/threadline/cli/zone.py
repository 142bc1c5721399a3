"""Time zones as people name them on a command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorated = Callable[..., Any]


def zone_option(function: Decorated) -> Decorated:
    """`--tz`: where days begin and end."""
    return click.option(
        "--tz",
        metavar="ZONE",
        help="Days and hours of this time zone: Europe/Berlin, UTC, local; by default this machine's.",
    )(function)
