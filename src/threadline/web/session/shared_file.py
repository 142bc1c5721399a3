"""The file of a session, some turns or an entry that is shared: exported, redacted, checked for leaks, and cached.

A file is cached for the state of everything that it depends on: the session's transcripts, those with the same
messages, the summaries of the archive, and the user's settings of redaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import BadQuery
from threadline.export import (
    ExportFormat,
    ExportOptions,
    UnsafeExport,
    export_sessions,
    list_session_files,
    load_settings,
    make_staging_folder,
    safe_name,
)
from threadline.json_values import encode_json
from threadline.model.homes import Homes
from threadline.model.times import zone_name
from threadline.model.titles import SummaryLinks
from threadline.redact import Level, Settings
from threadline.render import View
from threadline.web.session_cache import file_state

if TYPE_CHECKING:
    from threadline.web.archive_pool import ArchivePool, ReservedFigure
    from threadline.web.request import PageRequest

_FIGURE = "share"
_MAX_FILES = 2
"""How many files are cached: one that is previewed, and one that is prepared. They may be large."""


class ShareChoice(Struct, frozen=True):
    """What to share, and how."""

    form: ExportFormat
    level: Level
    view: View
    entry: str | None = None
    hide: tuple[str, ...] = ()


class SharedFile(Struct, frozen=True):
    """An exported file: its name and bytes, and how many values of each kind were redacted."""

    name: str
    content: bytes
    hidden: dict[str, int]
    unseen_words: tuple[str, ...]

    @property
    def hash(self) -> str:
        """The hash that the URL of a download contains."""
        return hashlib.sha256(self.content).hexdigest()[:32]


class RefusedFile(BadQuery):
    """The file would still contain something that must not be shared."""


class SharePlan(Struct, frozen=True):
    """All that an export needs, without an archive, so that another process can do it.

    `state` identifies what the file depends on. `sharing` are the transcripts with the same messages, if it is known.
    """

    choice: ShareChoice
    settings: Settings
    path: Path
    name: str
    homes: Homes
    links: SummaryLinks
    sharing: tuple[str, ...] | None
    state: Hashable

    @classmethod
    def of(cls, request: PageRequest, choice: ShareChoice) -> SharePlan:
        """Plan what a request chooses.

        Raises:
            NotFound: the archive has no such session.
        """
        session, archive = request.session(), request.archive
        settings, links = load_settings(choice.hide, level=choice.level), archive.links()
        files = list_session_files(session.path, archive.homes)
        sharing = archive.transcripts_sharing([str(file.path) for file in files if file.is_lines])
        # A cached session may be older than its files, so its version is not enough.
        paths = (*(file.path for file in files), *map(Path, sharing or ()))
        states = tuple(map(file_state, paths)), tuple(links.summaries), tuple(links.owners.items())
        name = f"{safe_name(str(session.session.id or session.path.stem))}.{choice.form}"
        state = (states, encode_json(settings))
        return cls(choice, settings, session.path, name, archive.homes, links, sharing, state)

    def export(self) -> SharedFile:
        """Export the file, with redaction and the final check.

        Raises:
            RefusedFile: it would still contain something that must not be shared.
            NotFound: there are no such turns, or no such entry.
            Missing: the format needs something that is not installed.
        """
        options = ExportOptions(self.choice.form, self.choice.view, self.settings, entry=self.choice.entry)
        with make_staging_folder() as folder:
            try:
                result = export_sessions(
                    [self.path],
                    options,
                    Path(folder),
                    homes=self.homes,
                    links=self.links,
                    sharing=lambda _transcripts: self.sharing,
                )
            except UnsafeExport as error:
                raise RefusedFile(
                    f"{error.reason} Hide more words, share fewer turns, or use another format."
                ) from None
            content = result.files[0].path.read_bytes()
        return SharedFile(self.name, content, result.hidden, result.unseen_words)

    def reserve(self, pool: ArchivePool) -> ReservedFigure[SharedFile] | None:
        """Reserve the file in the cache; None if it is there, or is being exported."""
        return pool.reserve(_FIGURE, *self._key, state=self.state, most=_MAX_FILES)

    def cached(self, request: PageRequest) -> SharedFile:
        """The file from the cache; if it is not there, it is exported.

        Raises:
            RefusedFile, NotFound, Missing: as `export`.
        """
        return request.pool.cached(request.archive, _FIGURE, self.export, *self._key, state=self.state, most=_MAX_FILES)

    @property
    def _key(self) -> tuple[Hashable, ...]:
        """What was chosen. Two objects for the machine's zone are not equal, their names are."""
        view = self.choice.view
        return self.path, replace(self.choice, view=replace(view, zone=UTC)), zone_name(view.zone)


def export_choice(request: PageRequest, choice: ShareChoice) -> SharedFile:
    """Export what was chosen, unless it is cached.

    Raises:
        RefusedFile: it would still contain something that must not be shared.
        NotFound: there are no such turns, or no such entry.
        Missing: the format needs something that is not installed.
    """
    return SharePlan.of(request, choice).cached(request)
