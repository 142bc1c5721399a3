"""The table of commands, groups that import a command when it is used, and errors as one-line messages."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

try:
    import click
except ModuleNotFoundError as error:
    if error.name != "click":
        raise
    from threadline.extras import adapt_install_command

    command = adapt_install_command("pip install 'threadline[all]'")
    sys.stderr.write(f"threadline: click is not installed. Run: {command}\n")
    raise SystemExit(2) from None

from threadline import __version__
from threadline.cli import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_NOTHING, EXIT_OK, NoHome, is_sqlite_error
from threadline.cli.options import TIMEZONE_HELP, format_parameter, home_option, jobs_option, output_options
from threadline.errors import Error, did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

CommandTable = Mapping[str, tuple[str, str]]
"""Commands by name, in the order of the help: `module:function` in `threadline.cli`, and the one-line help."""
COMMAND_SECTIONS = {
    "Sessions": {
        "list": "List sessions, newest first.",
        "search": "Search all sessions.",
        "show": "Print a session as a conversation.",
        "tree": "Show a session's turns, branches, compactions and agents.",
        "history": "List the prompts you typed, newest first.",
        "watch": "Follow all sessions live.",
        "serve": "Browse all sessions in a local web page.",
    },
    "Inside a session": {
        "calls": "List tool calls with input, outcome and duration.",
        "errors": "List failed, refused, interrupted or lost calls.",
        "files": "Show the files a session touched, at any point in time.",
        "todos": "Show todo and task lists, at any point in time.",
        "context": "Show how full the context window was, and why.",
        "request": "Show what the model was sent.",
        "entries": "Print the entries of a transcript.",
    },
    "Usage and cost": {
        "usage": "Report tokens and cost by day, project, model, session and more.",
        "explain": "Show how an amount was computed, line by line.",
        "blocks": "List the five-hour windows that usage limits apply to.",
        "budget": "Set budgets, and show what is left of them.",
        "prices": "List model prices and their sources.",
        "statusline": "Print one line for Claude Code's status line.",
    },
    "Insight": {
        "why": "Show what made a session expensive.",
        "waste": "Show avoidable costs in a session.",
        "outcomes": "Show what sessions produced, and what that cost.",
        "tools": "Show how reliable, quick and expensive tools are.",
        "blame": "Show who wrote each line of a file.",
        "digest": "Show what was done in a week, and what it cost.",
    },
    "Keep and share": {
        "keep": "Store sessions permanently, before Claude Code deletes them.",
        "export": "Write sessions to files, with secrets redacted.",
        "lake": "Share sessions of many machines in a lake, and query them.",
        "scan": "Report secrets found in transcripts.",
        "convert": "Convert other formats to transcripts that Claude Code reads.",
    },
    "Queries and agents": {
        "sql": "Query the index with SQL.",
        "index": "Show, refresh or rebuild the index.",
        "mcp": "Let agents search and read earlier sessions.",
    },
    "Other": {
        "doctor": "Check every transcript for damage and unknown fields.",
        "schema": "Print JSON Schema or TypeScript types of Claude Code's files.",
        "demo": "Write a small example Claude home to try things on.",
    },
}
"""The one-line help of every command, by section. The module with the command's name defines it."""
COMMANDS = {name: text for section in COMMAND_SECTIONS.values() for name, text in section.items()}
_SECTION_FOLDERS = {"Inside a session": "session.", "Usage and cost": "cost.", "Insight": "insight."}
"""The folders of the sections that have one. The modules of other commands are in this package."""
_CCUSAGE_REPORTS = {"daily": "day", "weekly": "week", "monthly": "month", "session": "session"}
_KEEP_COMMANDS = frozenset({"restore", "verify", "merge", "forget", "pack", "install", "status", "diff", "repair"})
# What people try first, and what to write after `threadline` instead.
_SYNONYMS = {
    "help": "--help",
    "version": "--version",
    "agent": "tree SESSION` or `threadline usage --by agent",
    "agents": "tree SESSION` or `threadline usage --by agent",
    "subagents": "tree SESSION` or `threadline usage --by agent",
    "backup": "keep",
    "cat": "show",
    "cost": "usage",
    "costs": "usage",
    "find": "search",
    "grep": "search",
    "models": "usage --by model",
    "projects": "usage --by project",
    "prompts": "history",
    "query": "sql",
    "redact": "export",
    "secrets": "scan",
    "sessions": "list",
    "stats": "usage",
    "tail": "watch",
    "view": "show",
    "web": "serve",
    **{report: f"usage --by {key}" for report, key in _CCUSAGE_REPORTS.items()},
}
_COMPLETION_VARIABLE = "_THREADLINE_COMPLETE"


def run_and_exit(arguments: list[str]) -> NoReturn:
    """Run the command with these arguments, and exit with its code."""
    _prepare_streams()
    code = run(arguments)
    with suppress(OSError):  # a failed write has been reported
        _flush_streams(code)
    # Not `sys.exit`: everything is written, and destroying objects one by one would only take time.
    os._exit(code)


def _flush_streams(code: int) -> int:
    """Flush both streams; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return code


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; return its exit code."""
    try:
        return _flush_streams(run_command_line(arguments))
    except Error as error:
        _print_error(str(error))
        return EXIT_NOTHING if isinstance(error, NoHome) else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except click.Abort:  # Ctrl-C or Ctrl-D instead of an answer: the question did not end its line
        sys.stderr.write("\n")
        return EXIT_INTERRUPTED
    except OSError as error:
        return _report_os_error(error)
    except Exception as error:
        if not is_sqlite_error(error):
            raise
        return _print_error(f"The index is damaged ({error}). Run `threadline index rebuild`.")


def _prepare_streams() -> None:
    """Make writing safe: characters that an encoding lacks are escaped.

    If standard error is closed, messages are discarded. If standard output is closed, writing to it is an error.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")
            continue
        # Opened even for standard output, so that no other file gets its number.
        devnull = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - open until the end
        if name == "stdout":
            closed = io.BufferedWriter(_ClosedOutput(devnull))
            setattr(sys, name, io.TextIOWrapper(closed, encoding="utf-8", errors="backslashreplace"))
        else:
            setattr(sys, name, devnull)


class _ClosedOutput(io.RawIOBase):
    """A standard output that was closed before the program started."""

    def __init__(self, placeholder: io.TextIOWrapper) -> None:
        super().__init__()
        self._placeholder = placeholder

    def writable(self) -> bool:
        """Return True: writing is tried, and fails."""
        return True

    def write(self, data: object) -> int:
        """Raise the error of a closed stream."""
        del data
        raise OSError(errno.EBADF, "it is closed")


def _report_os_error(error: OSError) -> int:
    """Report a system error, about a file or about standard output."""
    if error.filename is not None:
        return _print_error(f"{error.strerror or error}: {error.filename!r}.")
    sys.stdout = None  # nothing more may be written, not even by the interpreter as it exits
    if isinstance(error, BrokenPipeError):
        return EXIT_OK  # the reader closed the pipe
    return _print_error(f"Cannot write to standard output: {error.strerror or error}.")


def _print_error(text: str) -> int:
    return _print_lines(f"threadline: {text}")


def _print_lines(text: str) -> int:
    """Print an error, which may quote a file name or other text that could control a terminal."""
    from threadline.cli.output import wrap_message  # noqa: PLC0415 - only errors need it
    from threadline.render import plain  # noqa: PLC0415 - likewise

    lines = "\n".join(wrap_message(plain(line)) for line in text.split("\n"))
    sys.stderr.write(f"{lines}\n")
    return EXIT_FAILED


class LazyGroup(click.Group):
    """A group that lists, completes and suggests its commands from a table, and imports only the one that runs.

    `sections` maps the headings of the help to commands. `noun` is what messages call a command.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, CommandTable], noun: str = "action", **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.sections = sections
        self.noun = noun
        self.table = {name: entry for section in sections.values() for name, entry in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the help."""
        del ctx
        return list(self.table)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, without importing them."""
        del ctx
        width = max(map(len, self.table))
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, without importing any."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell's completion needs it

        return [
            CompletionItem(name, help=text) for name, (_, text) in self.table.items() if name.startswith(incomplete)
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in self.table:
            return None
        module, _, function = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"threadline.cli.{module}"), function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names, or an error that suggests one."""
        word = args[0]
        if word not in self.table and not word.startswith("-") and not ctx.resilient_parsing:
            suggestion = self.suggest(word)
            hint = (
                f"Did you mean `threadline {suggestion}`?"
                if suggestion
                else f"{self.noun.capitalize()}s: {', '.join(self.table)}."
            )
            raise click.UsageError(f"Unknown {self.noun} {word!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def suggest(self, word: str) -> str | None:
        """What to write after `threadline` instead of an unknown command; None if nothing is similar."""
        match = did_you_mean(word, self.table)
        return f"{self.name} {match}" if match else None


class CommandGroup(LazyGroup):
    """The commands of `threadline`."""

    def suggest(self, word: str) -> str | None:
        """What to write after `threadline` instead of an unknown command, which may be a path or another tool's."""
        from shlex import quote  # noqa: PLC0415 - only a mistake needs it

        from threadline.cli.resolve import expand_path, is_file, is_folder  # noqa: PLC0415 - only a mistake needs it

        path = expand_path(word)
        if is_folder(path):
            return f"--home {quote(word)}"
        if is_file(path):
            return f"entries {quote(word)}"
        if word in _SYNONYMS:
            return _SYNONYMS[word]
        return f"keep {word}" if word in _KEEP_COMMANDS else did_you_mean(word, COMMANDS)


def run_command_line(arguments: list[str]) -> int:
    """Run the command line; return the exit code. `threadline.cli.run` turns exceptions into messages."""
    if _COMPLETION_VARIABLE in os.environ:
        threadline.main(arguments, prog_name="threadline")  # answers the shell and exits
    # Not `main`, which treats a closed pipe as a failure and swallows Ctrl-C.
    try:
        with threadline.make_context("threadline", list(arguments)) as context:
            result: Any = threadline.invoke(context)
    except click.exceptions.Exit as finished:
        return finished.exit_code
    except click.ClickException as error:
        return _print_click_error(error)
    return result if isinstance(result, int) else EXIT_OK


def _print_click_error(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its lines are those of the help, not a message
        click.echo(error.format_message(), err=True)
        return EXIT_FAILED
    message = io.StringIO()
    error.show(message)
    text = message.getvalue().rstrip("\n")
    if isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "session":
        text += " Use the start of a session id, or `last` for the newest session."
    return _print_lines(text)


_EPILOG = """
\b
Examples:
  threadline                        overview of all homes
  threadline --home ~/old/.claude   overview of another home
  threadline list                   newest sessions
  threadline show last              newest session as a conversation
  threadline search rate limit      search all sessions
  threadline usage                  tokens and cost by day
  threadline serve                  browse everything in a web page
  threadline demo demo-home         write an example home to try things on
"""


@click.group(
    cls=CommandGroup,
    sections={
        title: {name: (f"{_SECTION_FOLDERS.get(title, '')}{name}:{name}", text) for name, text in commands.items()}
        for title, commands in COMMAND_SECTIONS.items()
    },
    noun="command",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=_EPILOG,
)
@home_option
@jobs_option
@click.option("--tz", "zone", metavar="ZONE", help=TIMEZONE_HELP)
@output_options
@click.version_option(__version__, "-V", "--version", prog_name="threadline")
@click.pass_context
def threadline(ctx: click.Context, homes: tuple[str, ...], jobs: int | None, zone: str | None, output: str) -> int:
    """Read everything Claude Code leaves on disk, without losing a byte.

    Without a command, prints an overview of all homes. Exit codes: 0 success; 1 nothing found; 2 an error.
    """
    if ctx.invoked_subcommand is None:
        from threadline.cli.overview import print_overview  # noqa: PLC0415 - `--help` and other commands do without
        from threadline.model.times import parse_zone  # noqa: PLC0415 - likewise

        return print_overview(homes, jobs, output, parse_zone(zone))
    options = {"homes": homes, "jobs": jobs, "zone": zone, format_parameter(output): output != "table"}
    forward_options(ctx, threadline, options, "threadline", {"homes": "home", "zone": "tz"})
    return EXIT_OK


def forward_options(
    ctx: click.Context, group: click.Group, options: Mapping[str, Any], program: str, names: Mapping[str, str]
) -> None:
    """Pass options that precede a command on to it.

    `names` maps parameters to options that are called differently.

    Raises:
        UsageError: the command has no such option.
    """
    name = ctx.invoked_subcommand or ""
    command = group.get_command(ctx, name)
    accepted = {param.name for param in command.params} if command is not None else set()
    used = {parameter: value for parameter, value in options.items() if value}
    for parameter in used:
        if parameter not in accepted:
            option = names.get(parameter, parameter.removeprefix("as_").replace("_", "-"))
            raise click.UsageError(
                f"--{option} does not apply to `{program} {name}`. `{program} {name} --help` lists its options."
            )
    ctx.default_map = {name: used}
