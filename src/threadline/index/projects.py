"""Projects: their true paths, as far as there is evidence of them now."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from threadline.find.folder_names import folder_matches
from threadline.index.found import found
from threadline.index.texts import stored
from threadline.model.found import Home, PathSource

_TRANSCRIPTS = "SELECT transcript_id, project_id FROM transcripts"
_KNOWN = "SELECT p.project_id, h.path, p.folder, p.path, p.path_source FROM projects p JOIN homes h USING(home_id)"
_RENEW = "UPDATE projects SET path = ?, path_source = ? WHERE project_id = ?"


def unsure(connection: sqlite3.Connection) -> set[int]:
    """The transcripts of projects whose true path may be another once they go on: none told one that fits so far."""
    projects = {
        number
        for number, _home, folder, path, source in connection.execute(_KNOWN)
        if source != str(PathSource.CWD) or not folder_matches(os.fsdecode(folder), os.fsdecode(path))
    }
    asked = connection.execute(_TRANSCRIPTS) if projects else ()
    return {number for number, project in asked if project in projects}


def unsettle(connection: sqlite3.Connection) -> None:
    """Note that the paths are to be renewed: by this refresh or, if it is killed, by the next."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES('unsettled', 'projects')")


def are_unsettled(connection: sqlite3.Connection) -> bool:
    """Whether that was noted."""
    return connection.execute("SELECT 1 FROM meta WHERE name = 'unsettled'").fetchone() is not None


def renew_projects(connection: sqlite3.Connection, homes: Sequence[Home]) -> None:
    """Write down the true paths as the transcripts tell them now, and forget projects and homes without any."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM projects WHERE project_id NOT IN (SELECT project_id FROM transcripts)")
    connection.execute("DELETE FROM homes WHERE home_id NOT IN (SELECT home_id FROM projects)")
    told = {
        (str(one.home.path), project.folder): project for one in found(connection, homes) for project in one.projects
    }
    for number, home, folder, path, source in connection.execute(_KNOWN).fetchall():
        project = told.get((os.fsdecode(home), os.fsdecode(folder)))
        if project is not None and (project.path, str(project.path_source)) != (path, source):
            now = stored(project.path) if project.path is not None else None
            connection.execute(_RENEW, (now, str(project.path_source), number))
    connection.execute("DELETE FROM meta WHERE name = 'unsettled'")
    connection.execute("COMMIT")
