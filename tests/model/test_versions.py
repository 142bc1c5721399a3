"""Versions of Claude Code are compared by their numbers, everywhere in the same way."""

from __future__ import annotations

import pytest

from threadline.model.names import parse_version, version_key
from threadline.thread import can_miss_steering


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("2.1.10", (2, 1, 10)),
        ("2.1.10-beta", (2, 1, 10)),
        ("2.1.10-beta.2", (2, 1, 10)),
        ("2.1.10+build.5", (2, 1, 10)),
        ("2.1.x", ()),
        ("2.1.99999999999999", ()),
        ("\u0662.1.0", ()),
        ("", ()),
    ],
)
def test_numbers_of_a_version(version: str, numbers: tuple[int, ...]) -> None:
    """A pre-release has the numbers of its release; what is not a version has none."""
    assert parse_version(version) == numbers


def test_versions_are_sorted_by_number() -> None:
    """2.1.9 comes before 2.1.10, and a pre-release before its release."""
    versions = ["2.1.10", "dev", "2.1.11-rc.1", "2.1.10-beta", "2.1.9", "1.0.128"]
    expected = ["dev", "1.0.128", "2.1.9", "2.1.10-beta", "2.1.10", "2.1.11-rc.1"]
    assert sorted(versions, key=version_key) == expected


def test_pre_releases_behave_like_their_release() -> None:
    """The version decides where typed text is recorded: `-beta` does not make a version older."""
    for version in ("0.2.126", "1.0.85", "2.1.232"):
        assert can_miss_steering(parse_version(f"{version}-beta")) == can_miss_steering(parse_version(version))
