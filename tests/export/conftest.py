"""What tests of exports share: a made-up home, and a person who asks the command."""

from __future__ import annotations

from tests.cli.conftest import ask, demo_home

__all__ = ["ask", "demo_home"]
