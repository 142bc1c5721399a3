"""Plan and apply the changes that run `keep` automatically: a Claude Code hook, and systemd units.

To be replaced by printed instructions: threadline must not edit other programs' files.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline import atomic
from threadline.errors import Unreadable
from threadline.keep.settings_text import hooks_of, with_hook, without_hook

EVENT = "SessionEnd"
"""When Claude Code runs the hook: the transcript is whole then."""
BEFORE = ".before-threadline-keep"
"""What is added to the name of the copy of a settings.json as it was."""
UNIT = "threadline-keep"
_SIGN = "# threadline keep install"
_BOM = "\ufeff"
_PLAIN = re.compile(r"[A-Za-z0-9_./:=@+-]+")


class Write(Struct, frozen=True):
    """A file to be written: what it holds now and what it will hold (None: it is not there), or where it will lead.

    `wrong` is why it cannot be: it is left alone then.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    link: str | None = None
    wrong: str | None = None


def hook_of(command: Sequence[str]) -> dict[str, Any]:
    """The hook that runs a command. Claude Code waits for hooks when it ends, and not for long: it goes on behind."""
    line = f"nohup {shlex.join(command)} >/dev/null 2>&1 & {_SIGN}"
    return {"hooks": [{"type": "command", "command": line}]}


def is_ours(hook: Any) -> bool:
    """Whether a hook was put there by `installing`."""
    inside = hook.get("hooks") if isinstance(hook, dict) else None
    return isinstance(inside, list) and any(
        isinstance(one, dict) and str(one.get("command", "")).endswith(_SIGN) for one in inside
    )


def installing(homes: Sequence[Path], command: Sequence[str], units: Path | None) -> list[Write]:
    """What has to be written: a hook in each home's settings, and a timer of systemd's in a folder, if one is named."""
    writes = [write for home in homes for write in _hooked(home, command)]
    if units is not None:
        writes += _units(units, command)
    return [
        write for write in writes if write.before != write.after or write.link is not None or write.wrong is not None
    ]


def uninstalling(homes: Sequence[Path], units: Path) -> list[Write]:
    """What has to be written so that it is as it was before."""
    writes = [write for home in homes for write in _unhooked(home)]
    writes += _no_units(units)
    return writes


def apply(writes: Sequence[Write]) -> None:
    """Write it, each file whole or not at all; what changed since it was looked at is left alone.

    Raises:
        Unreadable: a file changed meanwhile, or cannot be written.
    """
    for write in writes:
        if write.wrong is not None:
            continue
        try:
            _apply(write)
        except OSError as error:
            raise Unreadable(f"{str(write.path)!r} cannot be written: {error.strerror or error}.") from None


def cron_line(command: Sequence[str]) -> str:
    """The line of a crontab that runs a command each hour."""
    return f"17 * * * * {shlex.join(command).replace('%', chr(92) + '%')} >/dev/null 2>&1"


def units_folder() -> Path:
    """Where systemd looks for a person's own units."""
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".config") / "systemd" / "user"


def _hooked(home: Path, command: Sequence[str]) -> Iterator[Write]:
    path = _real(home / "settings.json")
    try:
        before = _read(path)
        text = _text(before)
        if any(map(is_ours, hooks_of(text.removeprefix(_BOM), EVENT))):
            return
        after = _changed(text or "{}\n", lambda told: with_hook(told, EVENT, hook_of(command)))
    except (Unreadable, OSError) as error:
        yield Write(path, None, None, wrong=f"{path} was left alone: {_reason(error)}; put the hook there by hand.")
        return
    if before is not None:
        # The copy comes first: there is no moment without the old settings.
        copy = path.with_name(path.name + BEFORE)
        yield Write(copy, _read(copy), before)
    yield Write(path, before, after)


def _unhooked(home: Path) -> Iterator[Write]:
    path = _real(home / "settings.json")
    copy = path.with_name(path.name + BEFORE)
    try:
        now, old = _read(path), _read(copy)
        text = _text(now).removeprefix(_BOM)
        if now is None or not any(map(is_ours, hooks_of(text, EVENT))):
            return
        after = _undone(now, old)
    except (Unreadable, OSError) as error:
        yield Write(path, None, None, wrong=f"{path} was left alone: {_reason(error)}; take the hook out by hand.")
        return
    yield Write(path, now, after)
    if old is not None:
        yield Write(copy, old, None)


def _undone(now: bytes, old: bytes | None) -> bytes | None:
    """The settings as they were; where they changed since, as they are without the hook."""
    ours = next(one for one in hooks_of(_text(now).removeprefix(_BOM), EVENT) if is_ours(one))
    was = old if old is not None else b"{}\n"
    if _changed(_text(was) or "{}\n", lambda told: with_hook(told, EVENT, ours)) == now:
        return old
    return _changed(_text(now), lambda told: without_hook(told, EVENT, is_ours))


def _changed(text: str, change: Any) -> bytes:
    mark = _BOM if text.startswith(_BOM) else ""
    made: str = change(text.removeprefix(_BOM))
    return (mark + made).encode()


def _units(folder: Path, command: Sequence[str]) -> Iterator[Write]:
    for name, text in _unit_texts(command).items():
        path = folder / name
        yield Write(path, _read(path), text.encode())
    wanted = folder / "timers.target.wants" / f"{UNIT}.timer"
    if not os.path.lexists(wanted):
        yield Write(wanted, None, None, link=f"../{UNIT}.timer")


def _no_units(folder: Path) -> Iterator[Write]:
    wanted = folder / "timers.target.wants" / f"{UNIT}.timer"
    if wanted.is_symlink():
        yield Write(wanted, None, None, link="")
    for name in (f"{UNIT}.timer", f"{UNIT}.service"):
        path = folder / name
        now = _read(path)
        if now is None:
            continue
        if _SIGN.encode() in now:
            yield Write(path, now, None)
        else:
            yield Write(path, None, None, wrong=f"{path} was left alone: it is not the one that was installed.")


def _unit_texts(command: Sequence[str]) -> dict[str, str]:
    runs = " ".join(map(_unit_word, command))
    return {
        f"{UNIT}.service": f"{_SIGN}\n[Unit]\nDescription=Keep what Claude Code will delete\n\n"
        f"[Service]\nType=oneshot\nNice=10\nExecStart={runs}\n",
        f"{UNIT}.timer": f"{_SIGN}\n[Unit]\nDescription=Keep what Claude Code will delete, every hour\n\n"
        f"[Timer]\nOnCalendar=hourly\nPersistent=true\nRandomizedDelaySec=300\n\n[Install]\nWantedBy=timers.target\n",
    }


def _unit_word(word: str) -> str:
    """A word as systemd reads it."""
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _apply(write: Write) -> None:
    folder = write.path.parent
    if write.link is not None:
        if write.link:
            folder.mkdir(parents=True, exist_ok=True)
            write.path.symlink_to(write.link)
        else:
            write.path.unlink()
            _leave(folder)
        return
    if _read(write.path) != write.before:
        raise Unreadable(f"{str(write.path)!r} changed just now and was left alone; try again.")
    if write.after is None:
        write.path.unlink()
        _leave(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    mode = write.path.stat().st_mode & 0o7777 if write.before is not None else 0o600
    # Beside it first, then in its place: whoever reads it meanwhile reads it whole.
    temporary = atomic.write_file(folder, "threadline", f".{write.path.name}{atomic.TEMPORARY_SUFFIX}", write.after)
    temporary.chmod(mode)
    temporary.replace(write.path)


def _leave(folder: Path) -> None:
    """Take away folders of systemd's that nothing is in any more."""
    with suppress(OSError):
        while folder.name in ("timers.target.wants", "user", "systemd"):
            folder.rmdir()
            folder = folder.parent


def _real(path: Path) -> Path:
    """Where it really lies: people link their settings from elsewhere, and the link is to stay."""
    return Path(os.path.realpath(path))


def _read(path: Path) -> bytes | None:
    try:
        with atomic.open_regular_file(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _text(data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        raise Unreadable("it is not UTF-8") from None


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
