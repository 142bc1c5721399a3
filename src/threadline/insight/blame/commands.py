"""What shell commands of sessions did to a file, as far as their text shows it.

A command proves that it wrote a line only if the line is in the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath

from threadline.insight.shell_effects import redirect_targets
from threadline.shell_syntax import program_name, split_commands
from threadline.thread import base_name, full_path

_HEREDOC = re.compile(
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<mark>[\w.]+)(?P=quote)(?P<rest>[^\n]*)\n(?P<body>.*?)^\t*(?P=mark)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_TEE = re.compile(r"\btee\b((?:[ \t]+[^\s;|&<>()]+)+)")
_LIST_OPERATOR = re.compile(r"&&|\|\||;")
_INTERPRETER = re.compile(
    r"python[\d.]*|node|deno|bun|ruby|perl|php|bash|sh|zsh|pwsh|tsx|osascript|Rscript|uv|poetry|npx"
)
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'", re.DOTALL)

_FOLDERS_AND_WORDS = re.compile(r"\bcd[ \t]+(?P<folder>\"[^\"]+\"|'[^']+'|[^\s;|&<>()]+)|[^\s\"'`;|&<>()={},]+")
_MOVING = re.compile(r"\b(?:mv|cp)\b")
_SOURCE_AND_TARGET = 2


def written_runs(command: str, path: str) -> Iterator[list[str]]:
    """Yield the lines that a command writes to a file according to its own text, in runs.

    These are here-documents and quoted texts of a command that sends its output to the file, and here-documents that
    are programs which name the file. `path` is absolute, or only a name.
    """
    if base_name(path) not in command:
        return
    heredocs = list(_HEREDOC.finditer(command))
    for heredoc in heredocs:
        lines = heredoc["body"].split("\n")[:-1]
        if lines and _writes_heredoc(command, heredoc, path):
            yield lines
    if heredocs or not any(_is_path(target, path) for target in write_targets(command)):
        return
    for double, single in _QUOTED.findall(command):
        text = single or re.sub(r"\\([\"$`\\])", r"\1", double)
        lines = text.replace("\\n", "\n").split("\n")
        if text and base_name(text) != base_name(path):
            yield lines if lines[-1] else lines[:-1]


def write_targets(command: str) -> list[str]:
    """The files that a command sends output to, with `>` or `tee`, as it spells them."""
    text = _HEREDOC.sub(" ", command)
    names = (name.strip("\"'") for match in _TEE.finditer(text) for name in match[1].split())
    return [*redirect_targets(text), *(name for name in names if not name.startswith("-"))]


def _writes_heredoc(command: str, heredoc: re.Match[str], path: str) -> bool:
    """Whether a here-document is written to a file, or is a program that names it."""
    before = _LIST_OPERATOR.split(command[command.rfind("\n", 0, heredoc.start()) + 1 : heredoc.start()])[-1]
    pipeline = f"{before} {_LIST_OPERATOR.split(heredoc['rest'])[0]}"
    if any(_is_path(target, path) for target in write_targets(pipeline)):
        return True
    if base_name(path) not in f"{pipeline}\n{heredoc['body']}":
        return False
    return any(_INTERPRETER.fullmatch(program_name(simple) or "") for simple in split_commands(pipeline))


def _is_path(target: str, path: str) -> bool:
    """Whether the target of a command may be a file. A relative target may be in any folder."""
    if base_name(target) != base_name(path):
        return False
    if "/" not in path or "$" in target or target.startswith("~"):
        return True
    if target.startswith("/"):
        return normpath(target) == path
    return path.endswith("/" + re.sub(r"^(?:\.\./)+", "", normpath(target)))


def names_path(command: str, path: str, cwd: str | None) -> bool:
    """Whether a word of a command is the path of a file, relative to where it was run or to a folder it changes to."""
    name = base_name(path)
    if name not in command:
        return False
    folder = cwd
    for match in _FOLDERS_AND_WORDS.finditer(command):
        if match["folder"]:
            folder = full_path(match["folder"].strip("\"'"), folder)
        elif base_name(match[0]) == name and full_path(match[0], folder) == path:
            return True
    return False


def moved_paths(command: str, cwd: str | None) -> Iterator[tuple[str, str]]:
    """Yield the files that a command moves or copies: from which path to which. `cwd` is where it was run."""
    if not _MOVING.search(command):
        return
    for simple in split_commands(command):
        words = simple.arguments
        if words[:1] == ["cd"] and len(words) > 1:
            cwd = full_path(words[1], cwd)
        if words[:2] == ["git", "mv"]:
            words = words[1:]
        names = [word for word in words[1:] if not word.startswith("-")]
        if words[:1] not in (["mv"], ["cp"]) or len(names) < _SOURCE_AND_TARGET:
            continue
        target = full_path(names[-1], cwd)
        for name in names[:-1]:
            source = full_path(name, cwd)
            yield source, target
            yield source, full_path(base_name(name), target)
