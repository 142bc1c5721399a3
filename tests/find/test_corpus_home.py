"""Tests of listing the home in `../shared/corpus`, if it is present."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from threadline.find import folder_matches, homes, look
from threadline.model.homes import TranscriptKind

HOME = Path(__file__).parents[3] / "shared" / "corpus" / "home"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there"),
]


def test_all_transcripts_are_found() -> None:
    """There are 90 transcripts: 78 directly in the folders and 12 in `subagents`."""
    (home,) = homes(HOME)
    listing = look(home)
    print(Counter(transcript.kind.value for transcript in listing.transcripts))  # noqa: T201 - figures are wanted here
    print(Counter(file.kind.value for file in listing.side_files))  # noqa: T201 - the same
    direct = [transcript for transcript in listing.transcripts if transcript.path.parent.name == transcript.folder]
    nested = [transcript for transcript in listing.transcripts if transcript.path.parent.name == "subagents"]
    assert (len(listing.transcripts), len(direct), len(nested)) == (90, 78, 12)
    assert not [transcript for transcript in listing.transcripts if transcript.kind is TranscriptKind.OTHER]
    assert listing.problems == ()


def test_every_project_path_matches_its_folder() -> None:
    """Every project's path comes from a cwd and fits the folder's name."""
    (home,) = homes(HOME)
    listing = look(home)
    print(Counter(project.path_source.value for project in listing.projects))  # noqa: T201 - figures are wanted
    assert all(folder_matches(project.folder, project.path or "") for project in listing.projects)
