"""`threadline export --format otlp`: write sessions as OpenTelemetry traces, or send them to an endpoint."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import click
from msgspec import Struct

from threadline.archive import Archive
from threadline.cli import EXIT_FAILED, EXIT_OK
from threadline.cli import output as out
from threadline.cli.export.redaction import parse_redaction
from threadline.cli.options import CommandFunction, Number
from threadline.cli.resolve import uses_index
from threadline.errors import BadQuery, Error, IndexBusy, Unreadable
from threadline.export import (
    Endpoint,
    OtlpSender,
    OtlpWriter,
    SentTraces,
    TraceFollower,
    TraceOptions,
    TraceReader,
    UnsafeExport,
    check_destinations,
    list_session_files,
    make_staging_folder,
    protected_folders,
    put_in_place,
    safe_name,
    total_transcript_size,
)
from threadline.model.text import count, format_size
from threadline.redact import Level
from threadline.render import plain

if TYPE_CHECKING:
    from threadline.export import Span, Trace

OTLP = "otlp"
_DEFAULT_IDLE = 600.0
_POLL_SECONDS = 1.0
_DEFAULT_NAME = "threadline-traces"
_SUFFIX = ".otlp.jsonl"
_OTLP_OPTIONS = ("endpoint", "send", "header", "content", "rate", "resume", "follow", "idle")
_OTHER_OPTIONS = {
    "site": "site",
    "report": "report",
    "branch": "branch",
    "everything": "all",
    "images": "images",
    "tools": "tools",
    "agents": "agents",
    "shape": "shape",
    "splits": "split",
}


def otlp_options(function: CommandFunction) -> CommandFunction:
    """Add the options of `--format otlp`."""
    for option in reversed(
        (
            click.option("--endpoint", metavar="URL", help="otlp: send traces to this OTLP/HTTP address."),
            click.option("--send", is_flag=True, help="otlp: send traces to OTEL_EXPORTER_OTLP_ENDPOINT."),
            click.option(
                "--header",
                multiple=True,
                metavar="NAME=VALUE",
                help="otlp: add a header to those in OTEL_EXPORTER_OTLP_HEADERS. Repeatable.",
            ),
            click.option(
                "--content",
                is_flag=True,
                help="otlp: include messages, arguments and results. Default: leave them out.",
            ),
            click.option("--rate", type=Number(0.1), metavar="N", help="otlp: send at most N spans per second."),
            click.option(
                "--resume",
                type=click.Path(dir_okay=False, path_type=Path),
                metavar="FILE",
                help="otlp: remember in FILE what was sent, and send only what is new.",
            ),
            click.option("--follow", is_flag=True, help="otlp: export running sessions as their spans finish."),
            click.option(
                "--idle",
                type=Number(1),
                default=_DEFAULT_IDLE,
                metavar="SECONDS",
                help="otlp: with --follow, a session counts as ended after SECONDS without an entry."
                f" Default: {_DEFAULT_IDLE:g}.",
            ),
        )
    ):
        function = option(function)
    return function


def reject_otlp_options() -> None:
    """Refuse the options of `--format otlp` for another format.

    Raises:
        BadQuery: one was given.
    """
    for name in _OTLP_OPTIONS:
        if _is_given(name):
            raise BadQuery(f"--{name} needs --format otlp.")


def _is_given(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.COMMANDLINE


class _Sink(Protocol):
    """Where spans go: a sender or a writer."""

    spans: int

    def send(self, spans: Sequence[Span]) -> None:
        """Write or send spans."""


class _Counts(Struct):
    """What an export did."""

    traces: int = 0
    unchanged: int = 0
    failed: list[str] = []


def export_traces(
    archive: Archive,
    mains: Sequence[Path] | None,
    *,
    names: Sequence[str],
    target: str | None,
    force: bool,
    as_json: bool,
    details: dict[str, Any],
) -> int:
    """Export sessions as traces: those of the main transcripts, or all of the archive. `names` are those to follow.

    Raises:
        BadQuery: the options contradict each other.
    """
    options = _build_options(details)
    details = {**details, "names": names}
    if uses_index():
        with suppress(IndexBusy, Unreadable):  # without an index, transcripts are read
            archive.open_index()
    endpoint = _parse_endpoint(details, target)
    if endpoint is None:
        return _export_to_file(archive, mains, options, target, force=force, as_json=as_json, details=details)
    sender = OtlpSender(endpoint, rate=details["rate"], report=out.print_message)
    resume = details["resume"]
    sent = None
    if resume is not None:
        check_destinations([resume], protected_folders((), (home.path for home in archive.homes)), force=True)
        sent = SentTraces(resume, endpoint)
    if details["follow"]:
        return _follow(archive, sender, options, details)
    reader = TraceReader(archive, options)
    counts = _export_all(reader, archive, mains, sender, sent)
    _print_sent(sender, counts, as_json=as_json)
    return EXIT_FAILED if counts.failed or sender.rejected else EXIT_OK


def _build_options(details: dict[str, Any]) -> TraceOptions:
    for name, option in _OTHER_OPTIONS.items():
        if _is_given(name):
            raise BadQuery(f"--{option} does not apply to --format otlp.")
    settings = parse_redaction(details)
    if settings is not None and details["content"] and settings.level is Level.METRICS:
        raise BadQuery("The level metrics removes all text. Omit --content, or choose another --level.")
    return TraceOptions(
        content=details["content"],
        thinking=details["thinking"] != "none",
        settings=settings,
        first_turn=details["first"],
        last_turn=details["last"],
    )


def _parse_endpoint(details: dict[str, Any], target: str | None) -> Endpoint | None:
    if details["endpoint"] is None and not details["send"]:
        for name in ("header", "rate", "resume"):
            if _is_given(name):
                raise BadQuery(f"--{name} is for sending. Name the address with --endpoint, or use --send.")
        if details["follow"] and target != "-":
            raise BadQuery("--follow needs --endpoint, --send or --out -.")
        return None
    if target is not None:
        raise BadQuery("Use --out or --endpoint, not both.")
    if details["endpoint"] is not None:
        return Endpoint.parse(details["endpoint"], details["header"])
    return Endpoint.from_environment(details["header"])


def _export_to_file(
    archive: Archive,
    mains: Sequence[Path] | None,
    options: TraceOptions,
    target: str | None,
    *,
    force: bool,
    as_json: bool,
    details: dict[str, Any],
) -> int:
    if target == "-":
        writer = OtlpWriter(_standard_output())
        if details["follow"]:
            return _follow(archive, writer, options, details)
        # A progress bar would be between the traces.
        counts = _export_all(
            TraceReader(archive, options), archive, mains, writer, None, has_bar=not sys.stdout.isatty()
        )
        return EXIT_FAILED if counts.failed else EXIT_OK
    name = safe_name(mains[0].stem) if mains is not None and len(mains) == 1 else _DEFAULT_NAME
    path = Path(target or f"{name}{_SUFFIX}")
    if path.is_dir():
        path /= f"{name}{_SUFFIX}"
    check_destinations([path], protected_folders(mains or (), (home.path for home in archive.homes)), force=force)
    with make_staging_folder() as folder:
        staged = Path(folder) / "traces.jsonl"
        with report_full_disk(folder), staged.open("wb") as file:
            writer = OtlpWriter(file)
            counts = _export_all(TraceReader(archive, options), archive, mains, writer, None)
        size = staged.stat().st_size
        out.report_new_folder(path)
        put_in_place(staged, path)
    if as_json:
        click.echo(out.json_text({"path": str(path), "size": size, **_count_fields(writer, counts)}, indent=2))
    else:
        traces = f"{count(counts.traces, 'trace')}, {count(writer.spans, 'span')}, {format_size(size)}"
        click.echo(f"Wrote {plain(str(path))} ({traces}).")
    return EXIT_FAILED if counts.failed else EXIT_OK


@contextmanager
def report_full_disk(folder: str) -> Iterator[None]:
    """Name the temporary folder if its disk is full.

    Raises:
        Error: it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        where = str(Path(folder).parent)
        raise Error(
            f"The temporary folder {where!r} is full. Free some space, or set TMPDIR to another folder."
        ) from None


def _standard_output() -> BinaryIO:
    if sys.__stdout__ is None:
        raise BadQuery("Standard output is closed. Name a file with --out.")
    sys.stdout.flush()
    return sys.stdout.buffer


def _export_all(
    reader: TraceReader,
    archive: Archive,
    mains: Sequence[Path] | None,
    sink: _Sink,
    sent: SentTraces | None,
    *,
    has_bar: bool = True,
) -> _Counts:
    """Export one session after another, so that only one is in memory."""
    counts = _Counts()
    paths = list(mains) if mains is not None else reader.list_all()
    with _progress(paths, archive, is_shown=has_bar and sys.stderr.isatty()) as advance:
        for path in dict.fromkeys(paths):
            try:
                _export_trace(reader.read(path), sink, sent, counts)
            except UnsafeExport as error:
                counts.failed.append(str(path))
                out.print_message(f"{plain(path.name)}: {error}")
            advance(path)
    return counts


def _export_trace(trace: Trace, sink: _Sink, sent: SentTraces | None, counts: _Counts) -> None:
    if sent is not None and sent.contains(trace.spans):
        counts.unchanged += 1
        return
    sink.send(trace.spans)
    if sent is not None:
        sent.add(trace.spans)
    counts.traces += 1


@contextmanager
def _progress(paths: Sequence[Path], archive: Archive, *, is_shown: bool) -> Iterator[Callable[[Path], None]]:
    if not is_shown:  # the sizes of many files take time
        yield lambda _path: None
        return
    sizes = {path: total_transcript_size(list_session_files(path, archive.homes)) for path in paths if path.is_file()}
    with out.progress_bar("Exporting", sum(sizes.values()), rate=True) as advance:
        yield lambda path: advance(sizes.get(path, 0))


def _print_sent(sender: OtlpSender, counts: _Counts, *, as_json: bool) -> None:
    if as_json:
        summary = {
            "endpoint": sender.endpoint.url,
            **_count_fields(sender, counts),
            "requests": sender.requests,
            "retries": sender.retries,
            "rejected": sender.rejected,
        }
        click.echo(out.json_text(summary, indent=2))
        return
    retries = f", {count(sender.retries, 'retry', 'retries')}" if sender.retries else ""
    unchanged = f" {count(counts.unchanged, 'trace')} had been sent before." if counts.unchanged else ""
    click.echo(
        f"Sent {count(counts.traces, 'trace')}, {count(sender.spans, 'span')} to {plain(sender.endpoint.url)}"
        f" ({count(sender.requests, 'request')}{retries}).{unchanged}"
    )
    if sender.rejected:
        out.print_message(f"The server rejected {count(sender.rejected, 'span')}: {plain(sender.rejection)}")


def _count_fields(sink: _Sink, counts: _Counts) -> dict[str, Any]:
    return {"traces": counts.traces, "spans": sink.spans, "unchanged": counts.unchanged, "failed": counts.failed}


def _follow(archive: Archive, sink: _Sink, options: TraceOptions, details: dict[str, Any]) -> int:
    """Export spans as they finish, until Ctrl-C; then export what is left."""
    names = details["names"]
    if len(names) > 1 or details["project"] is not None or details["until"] is not None:
        raise BadQuery("--follow exports one session or all. Omit --project, --until, and other sessions.")
    follower = archive.watch(names[0] if names else None, since=details["since"])
    traces = TraceFollower(archive, follower, options, idle=details["idle"])
    if sys.stderr.isatty():
        click.echo(f"Following {count(follower.transcripts, 'transcript')}. Press Ctrl-C to stop.", err=True)
    try:
        while True:
            _send_finished(traces.poll(), sink)
            if not follower.is_behind:
                time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        _send_finished(traces.finish(), sink)
        return EXIT_OK
    except SystemExit:  # SIGTERM
        _send_finished(traces.finish(), sink)
        raise


def _send_finished(traces: Iterator[Trace], sink: _Sink) -> None:
    for trace in traces:
        sink.send(trace.spans)
    if isinstance(sink, OtlpWriter):
        sys.stdout.flush()
