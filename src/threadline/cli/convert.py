"""`threadline convert`: convert other formats to transcripts that Claude Code reads."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import output_options
from threadline.convert import Conversion, ConvertedSession, convert_files, target_paths, write_conversion
from threadline.json_values import to_json_value
from threadline.model.text import count
from threadline.render import plain

_EPILOG = """
\b
Examples:
  claude -p "fix the test" --output-format stream-json --verbose > run.jsonl
  threadline convert run.jsonl                     report only
  threadline convert run.jsonl --out sessions      write sessions/ID.jsonl
  threadline convert run.jsonl --prompt "fix the test" --out ~/.claude
  threadline convert old.jsonl --json              the report for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the transcripts to this folder; in a Claude home, to the project's folder. Default: write nothing.",
)
@click.option("--cwd", metavar="DIR", help="Working directory of sessions that name none. Default: the current one.")
@click.option("--prompt", metavar="TEXT", help="First prompt of a session that lacks it. Default: a note that says so.")
@output_options
def convert(inputs: tuple[Path, ...], *, folder: Path | None, cwd: str | None, prompt: str | None, output: str) -> int:
    """Convert other formats to transcripts that Claude Code reads.

    INPUT is output of `claude -p --output-format stream-json`, messages of claude-agent-sdk as JSON, or a transcript
    that lacks fields or has tool calls as rows of their own. Documents may be one per line or pretty-printed. Reports
    everything that was invented, changed or left out. Existing files are never replaced, and the same input always
    gives the same ids.
    """
    conversion = convert_files(inputs, cwd=str(Path(cwd).absolute() if cwd else Path.cwd()), prompt=prompt)
    paths = write_conversion(conversion, folder) if folder is not None else []
    findings = [to_json_value(finding) for finding in conversion.all_findings]
    if output == "json":
        folders = target_paths(conversion, folder) if folder is not None else {}
        out.print_json(
            {"sessions": [_session_row(session, folders) for session in conversion.sessions], "findings": findings}
        )
    elif output != "table":
        out.print_rows(findings, output)
    elif conversion.sessions:
        _print_report(conversion, paths)
    if not conversion.sessions:
        return out.report_nothing("No messages to convert. INPUT must contain user or assistant messages as JSON.")
    return EXIT_OK


def _session_row(session: ConvertedSession, folders: dict[str, Path]) -> dict[str, Any]:
    path = folders[session.session] / f"{session.session}.jsonl" if folders else None
    return {
        "session": session.session,
        "path": to_json_value(path),
        "sources": list(session.sources),
        "cwd": session.cwd,
        "rows": session.rows,
        "agents": session.agents,
    }


def _print_report(conversion: Conversion, paths: list[Path]) -> None:
    for number, session in enumerate(conversion.sessions):
        agents = f" and {count(session.agents, 'agent')}" if session.agents else ""
        where = plain(str(paths[number])) if paths else "not written: use --out DIR"
        line = f"Session {session.session}: {count(session.rows, 'row')}{agents}, {where}"
        click.echo(out.wrap_text(line, indent="  "))
    cells = [
        (finding.what, plain(finding.field), f"{finding.count:,}", plain(finding.example), plain(finding.reason))
        for finding in conversion.all_findings
    ]
    if cells:
        headings = ("what", "field", "count", "for example", "why")
        click.echo(f"\n{out.format_table(headings, cells, right=(2,), shrink=(1, 3, 4))}")
    if paths:
        click.echo(f"\nNext: threadline show {plain(quote(str(paths[0])))}")
        if paths[0].parent.parent.name == "projects":
            first = conversion.sessions[0]
            click.echo(f"Resume: cd {plain(quote(first.cwd))} && claude --resume {first.session}")
