"""`threadline lake init`, `push` and `status`: what is in a lake's storage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import click
from msgspec.structs import asdict, replace

from threadline import lake as lakes
from threadline.cli import EXIT_FAILED, EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import home_option, output_options, timezone_option
from threadline.cli.resolve import open_archive
from threadline.keep import this_machine
from threadline.model.homes import Found
from threadline.model.text import count, format_size, format_time
from threadline.model.times import parse_timestamp, zone_name
from threadline.render import plain
from threadline.storage import Bucket

_INIT_EPILOG = """
\b
Examples:
  threadline lake init /srv/lake                    policy redacted
  threadline lake init s3://team-bucket/lake --policy metrics
  threadline lake init /srv/lake --policy full --change-policy
"""
_PUSH_EPILOG = """
\b
Examples:
  threadline lake push /srv/lake                  shows the policy, then asks
  threadline lake push /srv/lake --accept redacted --person alice
  threadline lake push s3://team-bucket/lake --exclude-project private
"""
_STATUS_EPILOG = """
\b
Examples:
  threadline lake status /srv/lake
  threadline lake status /srv/lake --tz UTC
  threadline lake status s3://team-bucket/lake --json
"""
_POLICIES = click.Choice(["full", "redacted", "metrics"])


@click.command(epilog=_INIT_EPILOG)
@click.argument("uri")
@click.option(
    "--policy",
    type=_POLICIES,
    default="redacted",
    help="What machines may push: complete transcripts, redacted ones, or no text. Default: redacted.",
)
@click.option("--change-policy", is_flag=True, help="Change the policy of an existing lake, for future pushes.")
@output_options
def init(uri: str, *, policy: str, change_policy: bool, output: str) -> int:
    """Create a lake in a folder or bucket, and set its policy.

    Every machine enforces the policy before it uploads anything. `redacted` removes what `threadline export` removes,
    and a session with anything left is not pushed. `metrics` removes all text.
    """
    bucket = Bucket(uri)
    set_policy = lakes.change_policy if change_policy else lakes.create_lake
    info = set_policy(bucket, lakes.Policy(policy))
    if output != "table":
        out.print_record({"uri": bucket.uri, **asdict(info)}, output)
        return EXIT_OK
    click.echo(out.wrap_text(f"Lake {plain(bucket.name)} with policy {info.policy}: {lakes.POLICIES[info.policy]}."))
    return EXIT_OK


@click.command(epilog=_PUSH_EPILOG)
@click.argument("uri")
@click.option("--person", metavar="NAME", help="Who pushes. Default: THREADLINE_PERSON, or your user name.")
@click.option(
    "--exclude-project", "projects", multiple=True, metavar="TEXT", help="Leave out projects whose path contains TEXT."
)
@click.option(
    "--exclude-session", "sessions", multiple=True, metavar="ID", help="Leave out sessions whose id starts with ID."
)
@click.option("--accept", type=_POLICIES, help="Accept the lake's policy, before the first push or after a change.")
@click.option("--repair", is_flag=True, help="Read everything back, and push sessions with damaged objects again.")
@home_option
@output_options
def push(
    uri: str,
    *,
    person: str | None,
    projects: tuple[str, ...],
    sessions: tuple[str, ...],
    accept: str | None,
    repair: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Upload what is new in this machine's homes and keep.

    The first push shows the lake's policy and asks you to accept it. Only new bytes are uploaded, then read back and
    compared. An interrupted push continues where it stopped.
    """
    bucket = Bucket(uri)
    with open_archive(homes, index=False, require_home=True) as archive:
        found = archive.look()
        options = lakes.PushOptions(
            person or lakes.default_person(), projects, sessions, lakes.Policy(accept) if accept else None, repair
        )
        try:
            result = _push(bucket, found, options)
        except lakes.PolicyNotAccepted as question:
            if not out.can_ask() or not click.confirm(f"{question} Push now?", err=True):
                raise
            result = _push(bucket, found, replace(options, accepted=question.policy))
    code = _report_push(result, output)
    # Sessions that cannot be read from the keep were not pushed; a message said so.
    return EXIT_FAILED if archive.keep_problems else code


def _push(bucket: Bucket, found: Sequence[Found], options: lakes.PushOptions) -> lakes.PushResult:
    total = sum(transcript.size for home in found for transcript in home.transcripts)
    with out.progress_bar("Pushing", total, rate=True) as advance:
        return lakes.push_sessions(bucket, found, this_machine(), options, advance)


def _report_push(result: lakes.PushResult, output: str) -> int:
    for problem in result.problems:
        out.print_message(problem)
    for session, reason in result.refused:
        out.print_message(
            f"Session {session} was not pushed: {reason}. `threadline export --help` says how to hide it."
        )
    if output != "table":
        record = asdict(result)
        record["refused"] = [{"session": session, "reason": reason} for session, reason in result.refused]
        out.print_record(record, output)
    else:
        parts = [f"{count(result.sessions, 'session')} pushed ({format_size(result.stored_bytes)} uploaded, verified)"]
        parts += [f"{count(result.unchanged, 'session')} unchanged"] if result.unchanged else []
        parts += [f"{count(result.excluded, 'session')} excluded"] if result.excluded else []
        parts += [f"{count(result.forgotten, 'session')} forgotten in the lake"] if result.forgotten else []
        pusher = f"{result.person} on {result.machine}, policy {result.policy}."
        click.echo(out.wrap_text(plain(f"{'; '.join(parts)}. {pusher}")))
    return EXIT_FAILED if result.refused or result.problems else EXIT_OK


@click.command(epilog=_STATUS_EPILOG)
@click.argument("uri")
@timezone_option
@output_options
def status(uri: str, *, zone: tzinfo, output: str) -> int:
    """Show the machines that pushed to a lake, and what is not built yet."""
    bucket = Bucket(uri)
    info = lakes.read_lake(bucket)
    commit = lakes.read_commit(bucket)
    rows = lakes.read_machines(bucket, commit.batches if commit is not None else {})
    records = [asdict(row) for row in rows]
    if output == "json":
        record = asdict(commit) if commit is not None else None
        out.print_json({"uri": bucket.uri, **asdict(info), "commit": record, "machines": records})
    elif output != "table":
        out.print_rows(records, output)
    else:
        tables = (
            "not built yet"
            if commit is None
            else f"commit {commit.number}, built {_time(commit.built, zone)} ({zone_name(zone)})"
        )
        for label, text in (
            ("lake", bucket.name),
            ("policy", f"{info.policy}: {lakes.POLICIES[info.policy]}"),
            ("tables", tables),
        ):
            click.echo(out.wrap_text(plain(text), f"  {label:<6}  "))
        click.echo()
        if rows:
            headings = ("person", "machine", "sessions", "size", "batches", "built", f"last push ({zone_name(zone)})")
            cells = [
                (
                    row.person,
                    row.machine,
                    f"{row.sessions:,}",
                    format_size(row.bytes),
                    f"{row.batches:,}",
                    f"{row.built:,}",
                    _time(row.pushed, zone),
                )
                for row in rows
            ]
            click.echo(out.format_table(headings, cells, right=(2, 3, 4, 5)))
            if any(row.batches > row.built for row in rows):
                out.print_message(f"Something is not built yet. Run: threadline lake build {bucket.name}")
    if rows:
        return EXIT_OK
    out.print_message(f"Nothing has been pushed yet. Run: threadline lake push {bucket.name}")
    return EXIT_NOTHING


def _time(timestamp: str, zone: tzinfo) -> str:
    return format_time(parse_timestamp(timestamp), zone)
