"""The projects of a home, each with its true path where evidence of it is left."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from threadline.find.project_path import Evidence
from threadline.model.found import Project, SideFileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from threadline.model.found import Home, SideFile, Transcript
    from threadline.model.problem import Problem


def projects(
    home: Home, folders: Iterable[str], transcripts: Iterable[Transcript], side_files: Sequence[SideFile]
) -> tuple[list[Project], list[Problem]]:
    """Make a project of each folder, and tell what could not be read on the way."""
    by_folder: defaultdict[str, list[Transcript]] = defaultdict(list)
    for transcript in transcripts:
        by_folder[transcript.folder].append(transcript)
    indexes = {f.path.parent.name: f.path for f in side_files if f.kind is SideFileKind.SESSIONS_INDEX}
    history = next((f.path for f in side_files if f.kind is SideFileKind.HISTORY), None)
    evidence = Evidence(_configs(side_files), history)
    made = []
    for folder in sorted(folders):
        path, source = evidence.path_of(folder, by_folder[folder], indexes.get(folder))
        made.append(Project(home, folder, path, source))
    return made, evidence.problems


def _configs(side_files: Sequence[SideFile]) -> list[Path]:
    """Give the configuration files in force, in the order Claude Code reads them; not their backups."""
    listed = {
        f.path.name: f.path for f in side_files if f.kind is SideFileKind.CONFIG and f.path.parent.name != "backups"
    }
    return [listed[name] for name in (".config.json", ".claude.json") if name in listed]
