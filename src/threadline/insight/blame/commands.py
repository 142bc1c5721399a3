"""What shell commands of sessions did to a file, as far as their text shows it.

A command proves that it wrote a line only if the line is in the command. A command that may have written any file
makes it impossible to say that no session wrote a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from threadline.shell_syntax import SimpleCommand, split_commands
from threadline.thread import base_name, full_path

_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)([\w.]+)\1([^\n]*)\n(.*?)^\t*\2[ \t]*$", re.DOTALL | re.MULTILINE)
# Redirections, and quoted texts, in which `>` is not one.
_REDIRECT = re.compile(
    r"(?<![0-9&<>=-])(?:1|&)?>{1,2}\|?[ \t]*(?P<target>\"[^\"]+\"|'[^']+'|[^\s;|&<>()]+)|\"(?:[^\"\\]|\\.)*\"|'[^']*'"
)
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'", re.DOTALL)

_FOLDERS_AND_WORDS = re.compile(r"\bcd[ \t]+(?P<folder>\"[^\"]+\"|'[^']+'|[^\s;|&<>()]+)|[^\s\"'`;|&<>()={},]+")
_MOVING = re.compile(r"\b(?:mv|cp)\b")
_SOURCE_AND_TARGET = 2


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Programs that do not change the files of a project, whatever their options.
_READERS = _word_set(
    """[ [[ : alias apropos awk base64 basename cal cat cd clear column comm cmp curl cut date df diff dirname du echo
    env exit export expr false fgrep egrep file fold free getconf gh grep groups head hexdump history host hostname id
    ifconfig ip jobs jq join kill killall less ll ls lsof man md5sum mkdir more mypy nc nl nslookup nproc od paste
    pgrep ping pkill popd printenv printf ps pushd pwd pyright pytest read readlink realpath rev rg seq set sha1sum
    sha256sum shasum sleep sort ss stat strings tac tail test time timeout top touch tr tree true tsc tty type ulimit
    umask uname unalias uniq unset uptime wait wc which who whoami xxd yes yq zcat zgrep"""
)
# Of these programs, only some subcommands do not.
_SUBCOMMANDS = {
    "git": _word_set(
        """add annotate blame branch cat-file check-ignore commit config count-objects describe diff diff-tree fetch
        for-each-ref fsck gc grep init log ls-files ls-remote ls-tree merge-base name-rev notes push reflog remote
        rev-list rev-parse shortlog show show-ref status tag var version whatchanged"""
    ),
    "cargo": _word_set("bench build check clippy doc metadata search test tree version"),
    "go": _word_set("build doc env list test version vet"),
    "npm": _word_set("audit list ls outdated t test view why"),
    "pnpm": _word_set("audit list ls outdated t test view why"),
    "yarn": _word_set("audit list outdated test why"),
    "pip": _word_set("check download freeze install list show uninstall"),
    "ruff": _word_set("check version"),
}
# Of these, none do with one of these options.
_OPTION_READERS = _word_set("awk cargo curl diff jq mypy pytest rg ruff sort tree yq tsc")
_CHANGING_OPTIONS = _word_set("--fix --write -w -i --in-place -o --output")
_CHANGING_PREFIXES = ("-i", "--in-place", "-exec", "-delete", "-ok", "-fprint", "w")
_HARMLESS_MODULES = _word_set("pytest mypy")


def written_runs(command: str, path: str) -> Iterator[list[str]]:
    """Yield the lines that a command writes to a file according to its own text, in runs.

    These are here-documents and quoted texts of a command that redirects its output to the file, and here-documents
    of any command that names it.
    """
    name = base_name(path)
    if name not in command:
        return
    targets = _targets(_HEREDOC.sub(" ", command))
    heredocs = list(_HEREDOC.finditer(command))
    for heredoc in heredocs:
        lines = heredoc[4].split("\n")[:-1]
        if lines:
            yield lines
    is_target = any(base_name(target) == name for target in targets)
    if is_target and not heredocs:
        for double, single in _QUOTED.findall(command):
            text = single or re.sub(r"\\([\"$`\\])", r"\1", double)
            lines = text.replace("\\n", "\n").split("\n")
            if text and base_name(text) != name:
                yield lines if lines[-1] else lines[:-1]


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


def may_write_files(command: str) -> bool:
    """Whether a command may change files of the project: unless all of its programs are known not to."""
    if "<<" in command and not re.fullmatch(r"git commit[^|;&]*<<.*", command.strip(), re.DOTALL):
        return True
    if not all(map(_is_discarded, _targets(command))):
        return True
    return any(_may_write(simple) for simple in split_commands(command))


def _targets(command: str) -> list[str]:
    """The files that a command redirects output to."""
    return [match["target"].strip("\"'") for match in _REDIRECT.finditer(command) if match["target"]]


def _is_discarded(target: str) -> bool:
    return target.startswith(("/dev/", "&"))


def _may_write(simple: SimpleCommand) -> bool:
    words = simple.arguments
    if any(may_write_files(command) for word in simple.words for command in word.commands):
        return True
    program, arguments = (base_name(words[0]), words[1:]) if words else ("", [])
    if program in ("python", "python3"):
        return not (arguments[:1] == ["-m"] and _HARMLESS_MODULES.issuperset(arguments[1:2]))
    if program in ("sed", "find"):
        return any(word.startswith(_CHANGING_PREFIXES) for word in arguments)
    if program in _OPTION_READERS and _CHANGING_OPTIONS.intersection(arguments):
        return True
    if program in _SUBCOMMANDS:
        values = {at + 1 for at, word in enumerate(arguments) if word in ("-c", "-C")}
        names = (word for at, word in enumerate(arguments) if at not in values and not word.startswith("-"))
        return next(names, "") not in _SUBCOMMANDS[program]
    return bool(program) and program not in _READERS
