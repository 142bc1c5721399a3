"""Fixtures for tests of exports."""

from __future__ import annotations

from tests.cli.conftest import ask

__all__ = ["ask"]
