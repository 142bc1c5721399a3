"""Write sessions to files that can be shared: HTML, Markdown, JSON, JSONL, text, PDF, or a site of HTML pages.

Or to files for other programs: Harbor trajectories, Inspect logs, transcript databases, messages and data sets.

`export_sessions` redacts copies of the transcripts, renders them in an `ExportFormat`, and checks the finished files
for leaks. They are in a staging folder then; `put_in_place` copies them to destinations that `check_destinations` has
accepted. `load_settings` reads what the user wants hidden, and `write_report` records what was redacted.

`render_digest_file` does the same for a digest, and `redact_session` for the bytes of a session's files in memory.

`TraceReader` reads sessions as OpenTelemetry traces, `OtlpSender` sends them and `OtlpWriter` writes them; the package
`otlp` describes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.export.digest_file import DigestFormat, render_digest_file
    from threadline.export.exporter import (
        ExportOptions,
        ExportResult,
        count_passes,
        export_sessions,
        make_staging_folder,
        write_report,
    )
    from threadline.export.formats import ExportFormat, FileLayout
    from threadline.export.leak_check import UnsafeExport
    from threadline.export.otlp.encoding import OtlpWriter
    from threadline.export.otlp.follow import TraceFollower
    from threadline.export.otlp.reader import Trace, TraceOptions, TraceReader
    from threadline.export.otlp.sender import Endpoint, OtlpSender, SentTraces
    from threadline.export.otlp.spans import Span, SpanKind
    from threadline.export.output import check_destinations, protected_folders, put_in_place, safe_name, write_output
    from threadline.export.redacted_copies import list_session_files, total_transcript_size
    from threadline.export.redaction_settings import load_settings
    from threadline.export.session_redaction import RedactedSession, redact_session
    from threadline.export.splits import parse_splits

export_lazily(
    __name__,
    {
        "digest_file": ["DigestFormat", "render_digest_file"],
        "exporter": [
            "ExportOptions",
            "ExportResult",
            "count_passes",
            "export_sessions",
            "make_staging_folder",
            "write_report",
        ],
        "formats": ["ExportFormat", "FileLayout"],
        "leak_check": ["UnsafeExport"],
        "otlp.encoding": ["OtlpWriter"],
        "otlp.follow": ["TraceFollower"],
        "otlp.reader": ["Trace", "TraceOptions", "TraceReader"],
        "otlp.sender": ["Endpoint", "OtlpSender", "SentTraces"],
        "otlp.spans": ["Span", "SpanKind"],
        "output": ["check_destinations", "protected_folders", "put_in_place", "safe_name", "write_output"],
        "redacted_copies": ["list_session_files", "total_transcript_size"],
        "redaction_settings": ["load_settings"],
        "session_redaction": ["RedactedSession", "redact_session"],
        "splits": ["parse_splits"],
    },
)
