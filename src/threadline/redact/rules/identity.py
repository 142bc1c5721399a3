"""Find names of people and machines in the output of commands that print them: `whoami`, `hostname`, `git log`.

A name alone on a line looks like any word. The command tells what it is.
"""

from __future__ import annotations

from functools import lru_cache

from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import word_set
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.rules.personal import GENERIC_USER_NAMES
from threadline.shell_syntax import SimpleCommand, parse_command, unwrap

_MAX_COMMANDS = 16
_MAX_NESTING = 4
# What the whole of a simple command must be, and the kind of the name that it prints.
_PRINTERS = (
    ("user", compile_lazily(r"whoami|logname|id -(?:un|nu)(?: \S+)?|id -u -n")),
    (
        "host",
        compile_lazily(r"hostname(?: -[sfA]| --(?:short|fqdn|long))?|uname -n|hostnamectl (?:--static )?hostname"),
    ),
    ("host", compile_lazily(r"scutil --get (?:ComputerName|HostName|LocalHostName)")),
    ("name", compile_lazily(r"git config (?:--(?:global|local|system) )?(?:--get )?user\.name")),
    (
        "names",
        compile_lazily(
            r"git (?:-\S+ (?:\S+ )?)?(?:log|show)(?: \S+)* --(?:pretty|format)=(?:format:)?%[ac][nN](?: \S+)*"
        ),
    ),
)
# Commands that print one line, beside those above.
_ONE_LINE = compile_lazily(r"pwd|date(?: .*)?|uname(?: .*)?|id(?: .*)?|echo(?: .*)?|nproc|arch|node (?:-v|--version)")
_FILTERS = word_set("head tail sort uniq tee cat")
_SILENT = compile_lazily(r"cd(?: .*)?|true|export .*|set .*")
_SHAPES = {
    "user": compile_lazily(r"(?:[A-Za-z0-9-]{1,32}\\)?([A-Za-z_][A-Za-z0-9_.-]{1,63})"),
    "host": compile_lazily(r"([A-Za-z0-9][A-Za-z0-9.-]{1,200})"),
    "name": compile_lazily(r"([^\W\d_][\w'.-]{0,40}(?: [\w'.-]{1,40}){1,5})"),
}
_TRIGGER = compile_lazily(r"whoami|logname|\bid -|hostname|uname -n|scutil|user\.name|%[ac][nN]")
_NOT_HOSTS = frozenset(("localhost", "localhost.localdomain"))


@lru_cache(maxsize=1024)
def analyze_printers(command: str) -> tuple[str, ...]:
    """What each line of the output is: `user`, `host`, `name`, or empty; `names` for all lines. Empty if unknown."""
    kinds = _list_kinds(command, 0) if _TRIGGER.search(command) else []
    if not any(kinds) or ("names" in kinds and len(kinds) > 1):
        return ()
    return tuple(kinds)


def _list_kinds(command: str, depth: int) -> list[str]:
    kinds: list[str] = []
    for pipeline in parse_command(command)[:_MAX_COMMANDS]:
        first, *filters = [unwrap(simple) for simple in pipeline]
        if any(simple.is_redirected for simple in pipeline) or not all(map(_is_filter, filters)):
            return []
        if isinstance(first, str):
            inner = _list_kinds(first, depth + 1) if depth < _MAX_NESTING else []
            if not inner:
                return []
            kinds += inner
            continue
        text = " ".join(first.arguments)
        kind = next((kind for kind, pattern in _PRINTERS if pattern.fullmatch(text)), "")
        if kind or (_ONE_LINE.fullmatch(text) and not filters):
            kinds.append(kind)
        elif not _SILENT.fullmatch(text):
            return []
    return kinds


def _is_filter(simple: SimpleCommand | str) -> bool:
    return not isinstance(simple, str) and simple.arguments[:1] != [] and simple.arguments[0] in _FILTERS


def find_printed_names(command: str, output: str) -> list[Span]:
    """The names of people and machines in the output of a command."""
    kinds = analyze_printers(command) if output else ()
    if not kinds:
        return []
    lines: list[tuple[int, str]] = []
    at = 0
    for raw in output.split("\n"):
        text = raw.strip()
        if text:
            lines.append((at + raw.index(text), text))
        at += len(raw) + 1
    if kinds == ("names",):
        kinds = ("name",) * len(lines)
    if len(lines) != len(kinds):
        return []
    return [
        Span(start + match.start(1), start + match.end(1), kind)
        for kind, (start, text) in zip(kinds, lines, strict=True)
        if kind and (match := _SHAPES[kind].fullmatch(text)) and not _is_generic(kind, match[1])
    ]


def _is_generic(kind: str, name: str) -> bool:
    """Whether many machines have this name, or accounts of this name."""
    lowered = name.lower()
    return lowered in (GENERIC_USER_NAMES if kind == "user" else _NOT_HOSTS)
