"""`threadline keep install` and `uninstall`: how to run `keep` automatically, and how to stop.

Both only print: the settings of Claude Code, systemd units and crontabs are other programs' files, which threadline
never edits.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.keep.group import keep_options, keep_path
from threadline.cli.options import CommandFunction, live_home_option, output_options
from threadline.cli.output import report_no_home, report_nothing
from threadline.cli.resolve import program_words
from threadline.find import homes as find_homes
from threadline.home_files import read_in_home
from threadline.json_values import to_json_value
from threadline.model.homes import Home
from threadline.render import plain

HOOK_EVENT = "SessionEnd"
"""When Claude Code runs the hook: the transcript is complete by then."""
MARKER = "# threadline keep install"
"""Ends the hook's command and starts the units, so that `uninstall` finds them again."""
UNIT = "threadline-keep"
_MAX_SETTINGS_SIZE = 16 << 20
_OLD_BACKUP = "settings.json.before-threadline-keep"
"""A copy of the settings that early versions made when they added the hook themselves."""
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:=@+-]+")
_AUTOMATIC_SOURCES = frozenset({"default", "xdg", "desktop"})
_INSTALL_EPILOG = """
\b
Examples:
  threadline keep install                   a hook and a timer
  threadline keep install --timer cron      a crontab line as the timer
  threadline keep install --json            the same as data, for a program

\b
Exit codes: 0 printed; 1 no Claude home was found; 2 an error.
"""
_UNINSTALL_EPILOG = """
\b
Examples:
  threadline keep uninstall                what to remove
  threadline keep uninstall --home DIR     for another home
  threadline keep uninstall --json         for a program

\b
Exit codes: 0 something is installed; 1 nothing is; 2 an error.
"""


class Instruction(Struct, frozen=True):
    """One thing to do: `text` belongs in the file `path`, or describes what to do there.

    `method` is `hook`, `systemd` or `cron`. `command` completes the step, if one is needed.
    """

    method: str
    path: str | None
    text: str
    command: str | None = None


def _reject_yes(_ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        raise click.UsageError(
            "--yes was removed: threadline does not edit the settings of other programs. Without it, this prints what"
            " to change."
        )


def _removed_yes_option(function: CommandFunction) -> CommandFunction:
    """`--yes`, which wrote the files in early versions: say what to do instead of "no such option"."""
    option: Callable[[CommandFunction], CommandFunction] = click.option(
        "--yes", is_flag=True, hidden=True, expose_value=False, callback=_reject_yes
    )
    return option(function)


@click.command(epilog=_INSTALL_EPILOG)
@click.option(
    "--timer",
    type=click.Choice(["auto", "systemd", "cron", "none"]),
    default="auto",
    help="Which timer to print beside the hook. auto: systemd if it is running, otherwise cron. Default: auto.",
)
@_removed_yes_option
@keep_options
@live_home_option
@output_options
def install(*, timer: str, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str) -> int:
    """Print how to run `keep` automatically: a hook for Claude Code, and an hourly timer.

    Nothing is changed. Add the hook to settings.json and set up the timer yourself; `keep uninstall` lists both again.
    """
    del key_file
    where = keep_path(folder)
    live = find_homes(*homes)
    if not live:
        report_no_home()
        return EXIT_NOTHING
    command = _keep_command(live, where if _is_keep_named(folder) else None)
    steps = [*_hook_steps(live, command), *_timer_steps(timer, command)]
    if output != "table":
        out.print_rows(map(to_json_value, steps), output)
    else:
        for line in _install_lines(steps):
            click.echo(plain(line))
    return EXIT_OK


@click.command(epilog=_UNINSTALL_EPILOG)
@_removed_yes_option
@keep_options
@live_home_option
@output_options
def uninstall(*, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str) -> int:
    """Print what to remove so that `keep` no longer runs automatically. The keep stays.

    Nothing is changed. This looks for the hook in settings.json and for the systemd units; it does not read crontabs.
    """
    del folder, key_file
    steps = [*_installed_hooks(find_homes(*homes)), *_installed_units()]
    if output != "table":
        out.print_rows(map(to_json_value, steps), output)
        return EXIT_OK if steps else EXIT_NOTHING
    cron = "If you added a line to your crontab, remove it with crontab -e; it contains `keep --quiet`."
    if not steps:
        return report_nothing(f"No hook and no systemd timer found. {cron}")
    for step in steps:
        click.echo(plain(step.text))
        if step.command:
            click.echo(f"    {plain(step.command)}")
    click.echo(cron)
    return EXIT_OK


def hook_settings(command: Sequence[str]) -> dict[str, Any]:
    """The part of settings.json that runs a command when a session ends.

    Claude Code waits only briefly for hooks when it exits, so the command runs in the background.
    """
    line = f"nohup {shlex.join(command)} >/dev/null 2>&1 & {MARKER}"
    return {"hooks": {HOOK_EVENT: [{"hooks": [{"type": "command", "command": line}]}]}}


def cron_line(command: Sequence[str]) -> str:
    """The crontab line that runs a command every hour."""
    return f"17 * * * * {shlex.join(command).replace('%', chr(92) + '%')} >/dev/null 2>&1"


def unit_texts(command: Sequence[str]) -> dict[str, str]:
    """The systemd units that run a command every hour, by file name."""
    words = " ".join(map(_quote_unit_word, command))
    return {
        f"{UNIT}.service": f"{MARKER}\n[Unit]\nDescription=Keep what Claude Code will delete\n\n"
        f"[Service]\nType=oneshot\nNice=10\nExecStart={words}\n",
        f"{UNIT}.timer": f"{MARKER}\n[Unit]\nDescription=Keep what Claude Code will delete, every hour\n\n"
        f"[Timer]\nOnCalendar=hourly\nPersistent=true\nRandomizedDelaySec=300\n\n[Install]\nWantedBy=timers.target\n",
    }


def _quote_unit_word(word: str) -> str:
    """Quote a word as systemd reads it."""
    if _PLAIN_WORD.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _hook_steps(homes: Sequence[Home], command: Sequence[str]) -> Iterator[Instruction]:
    text = json.dumps(hook_settings(command), indent=2, ensure_ascii=False)
    for home in homes:
        yield Instruction("hook", str(home.path / "settings.json"), text)


def _timer_steps(timer: str, command: Sequence[str]) -> Iterator[Instruction]:
    if timer == "auto":
        timer = "none" if os.name == "nt" else "systemd" if Path("/run/systemd/system").is_dir() else "cron"
    if timer == "systemd":
        enable = f"systemctl --user daemon-reload && systemctl --user enable --now {UNIT}.timer"
        for name, text in unit_texts(command).items():
            yield Instruction("systemd", str(_units_folder() / name), text, enable if name.endswith("timer") else None)
    elif timer == "cron":
        yield Instruction("cron", None, cron_line(command), "crontab -e")


def _install_lines(steps: Sequence[Instruction]) -> Iterator[str]:
    yield "Nothing was changed. To run `threadline keep` automatically:"
    hooks = [step for step in steps if step.method == "hook"]
    yield ""
    yield f"Hook: when a session ends. Merge this into {' and '.join(str(step.path) for step in hooks)}:"
    yield from (f"    {line}" for line in hooks[0].text.splitlines())
    for step in steps:
        if step.method == "hook":
            continue
        yield ""
        yield f"Timer: write this to {step.path}:" if step.path else "Timer: add this line to your crontab:"
        yield from (f"    {line}".rstrip() for line in step.text.splitlines())
        if step.command:
            yield f"Then run: {step.command}" if step.path else f"Edit it with: {step.command}"


def _installed_hooks(homes: Sequence[Home]) -> Iterator[Instruction]:
    for home in homes:
        settings, backup = home.path / "settings.json", home.path / _OLD_BACKUP
        try:
            has_hook = MARKER.encode() in read_in_home(settings, limit=_MAX_SETTINGS_SIZE, home=home.path)
        except OSError:
            has_hook = False
        if has_hook:
            text = f"In {settings}, under hooks.{HOOK_EVENT}, remove the entry whose command ends with {MARKER!r}."
            yield Instruction("hook", str(settings), text)
        if backup.exists():
            text = f"An early version left a copy of the settings in {backup}. Delete it if you do not need it."
            yield Instruction("hook", str(backup), text)


def _installed_units() -> Iterator[Instruction]:
    names = [name for name in (f"{UNIT}.timer", f"{UNIT}.service") if (_units_folder() / name).exists()]
    for name in names:
        path = _units_folder() / name
        disable = f"systemctl --user disable --now {name} && " if name.endswith("timer") else ""
        text = f"Remove {'the timer' if disable else 'its service'} {path}:"
        yield Instruction("systemd", str(path), text, f"{disable}rm {shlex.quote(str(path))}")


def _units_folder() -> Path:
    """Where systemd looks for a user's own units."""
    config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (config if config.is_absolute() else Path.home() / ".config") / "systemd" / "user"


def _is_keep_named(folder: Path | None) -> bool:
    """Whether the command must name the keep: hooks and timers do not have the variables of this shell."""
    return folder is not None or any(os.environ.get(name) for name in ("THREADLINE_KEEP", "XDG_DATA_HOME"))


def _keep_command(homes: Sequence[Home], keep: Path | None) -> list[str]:
    """The words of the command that a hook or timer runs."""
    words = [*program_words(), "keep", "--quiet"]
    if keep is not None:
        words += ["--keep", str(keep)]
    if any(home.source not in _AUTOMATIC_SOURCES for home in homes):
        for home in homes:
            words += ["--home", str(home.path)]
    return words
