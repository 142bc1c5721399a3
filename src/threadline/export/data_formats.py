"""The formats for other programs, and what their writers have in common.

A writer gets the folder for its files and a checker for its records. Sessions are added one after the other, so that
only one is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from threadline.export.atif import AtifWriter
from threadline.export.conversations import ExportedSession
from threadline.export.formats import ExportFormat
from threadline.export.hf_dataset import HfWriter
from threadline.export.inspect_log import InspectWriter, ScoutWriter
from threadline.export.leak_check import RecordChecker
from threadline.export.messages import MessageShape, MessagesWriter
from threadline.export.output import StagedFile
from threadline.export.redacted_copies import SessionCopy
from threadline.export.splits import group_sessions
from threadline.model.titles import NO_LINKS, SummaryLinks
from threadline.render import Detail

if TYPE_CHECKING:
    from threadline.export.exporter import ExportOptions


class SessionWriter(Protocol):
    """Writes sessions to one or more files."""

    def add(self, exported: ExportedSession) -> None:
        """Write a session."""

    def finish(self) -> list[StagedFile]:
        """Complete the files, and return them."""


def open_writer(
    options: ExportOptions,
    folder: Path,
    checker: RecordChecker,
    copies: Iterable[SessionCopy],
    links: SummaryLinks | None,
) -> SessionWriter:
    """The writer for a format. `copies` are all sessions that will be added, and `links` the summaries of their homes.

    Raises:
        Missing: the format needs a library that is not installed.
    """
    name = f"sessions.{options.form.suffix}"
    level = str(options.settings.level) if options.settings is not None else None

    def open_data_set() -> HfWriter:
        return HfWriter(
            folder,
            checker,
            groups=group_sessions([copy.source for copy in copies], links or NO_LINKS),
            shares=options.splits,
            level=level,
            thinking=options.view.thinking is not Detail.NONE,
        )

    writers: dict[ExportFormat, Callable[[], SessionWriter]] = {
        ExportFormat.ATIF: lambda: AtifWriter(folder, checker),
        ExportFormat.INSPECT: lambda: InspectWriter(folder, checker, name),
        ExportFormat.SCOUT: lambda: ScoutWriter(folder, checker),
        # OpenAI refuses messages with other keys than its own, so thinking is only written on request.
        ExportFormat.MESSAGES: lambda: MessagesWriter(
            folder, checker, name, MessageShape(options.shape), thinking=options.view.thinking is Detail.FULL
        ),
        ExportFormat.HF: open_data_set,
    }
    return writers[options.form]()
