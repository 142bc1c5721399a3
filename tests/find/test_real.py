"""The corpus of real transcripts, where it is at hand."""

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
    """All 90 transcripts are found: 78 right in the folders and 12 below `subagents`."""
    (home,) = homes(HOME)
    found = look(home)
    print(Counter(transcript.kind.value for transcript in found.transcripts))  # noqa: T201 - figures are wanted here
    print(Counter(file.kind.value for file in found.side_files))  # noqa: T201 - the same
    beside = [transcript for transcript in found.transcripts if transcript.path.parent.name == transcript.folder]
    below = [transcript for transcript in found.transcripts if transcript.path.parent.name == "subagents"]
    assert (len(found.transcripts), len(beside), len(below)) == (90, 78, 12)
    assert not [transcript for transcript in found.transcripts if transcript.kind is TranscriptKind.OTHER]
    assert found.problems == ()


def test_every_projects_path_is_known_and_fits() -> None:
    """Every project's path is known by a cwd, and fits the folder's name."""
    (home,) = homes(HOME)
    found = look(home)
    print(Counter(project.path_source.value for project in found.projects))  # noqa: T201 - figures are wanted
    assert all(folder_matches(project.folder, project.path or "") for project in found.projects)
