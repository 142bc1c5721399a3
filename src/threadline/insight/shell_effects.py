"""What a shell command may change, as far as its text shows it: files of the project, and what git knows."""

from __future__ import annotations

import re

from threadline.shell_syntax import SimpleCommand, split_commands, split_subcommand, word_set
from threadline.thread import base_name

# Redirections, and quoted texts, in which `>` is not one.
_REDIRECT = re.compile(
    r"(?<![0-9&<>=-])(?:1|&)?>{1,2}\|?[ \t]*(?P<target>\"[^\"]+\"|'[^']+'|[^\s;|&<>()]+)|\"(?:[^\"\\]|\\.)*\"|'[^']*'"
)
# Programs that do not change the files of a project, whatever their options.
_READERS = word_set(
    """[ [[ : alias apropos awk base64 basename cal cat cd clear column comm cmp curl cut date df diff dirname du echo
    env exit export expr false fgrep egrep file fold free getconf gh grep groups head hexdump history host hostname id
    ifconfig ip jobs jq join kill killall less ll ls lsof man md5sum mkdir more mypy nc nl nslookup nproc od paste
    pgrep ping pkill popd printenv printf ps pushd pwd pyright pytest read readlink realpath rev rg seq set sha1sum
    sha256sum shasum sleep sort ss stat strings tac tail test time timeout top touch tr tree true tsc tty type ulimit
    umask uname unalias uniq unset uptime wait wc which who whoami xxd yes yq zcat zgrep"""
)
# Of these programs, only some subcommands do not.
_SUBCOMMANDS = {
    "git": word_set(
        """add annotate blame branch cat-file check-ignore commit config count-objects describe diff diff-tree fetch
        for-each-ref fsck gc grep init log ls-files ls-remote ls-tree merge-base name-rev notes push reflog remote
        rev-list rev-parse shortlog show show-ref status tag var version whatchanged"""
    ),
    "cargo": word_set("bench build check clippy doc metadata search test tree version"),
    "go": word_set("build doc env list test version vet"),
    "npm": word_set("audit list ls outdated t test view why"),
    "pnpm": word_set("audit list ls outdated t test view why"),
    "yarn": word_set("audit list outdated test why"),
    "pip": word_set("check download freeze install list show uninstall"),
    "ruff": word_set("check version"),
}
# Of these, none do with one of these options.
_OPTION_READERS = word_set("awk cargo diff jq mypy pytest rg ruff tree yq tsc")
_CHANGING_OPTIONS = word_set("--fix --write -w -i --in-place -o --output")
# These do with an option of their own, which may be joined with others or with its value: `curl -sSLo file`, `-O`.
_OUTPUT_OPTIONS = {
    "curl": re.compile(r"-[#0-9BGIJLNRSZafgijklnpqsv]*[oO].*|--output(?:-dir)?\b.*|--remote-name.*|--create-dirs"),
    "sort": re.compile(r"-[CMRVbcdfghimnrsuz]*o.*|--output\b.*"),
    "xxd": re.compile(r"-r(?:evert)?"),
}
_CHANGING_PREFIXES = ("-i", "--in-place", "-exec", "-delete", "-ok", "-fprint", "w")
_HARMLESS_MODULES = word_set("pytest mypy")
# These write no file of the project, and change what git prints.
_CHANGES_GIT = re.compile(r"\bgit\s+(?:-\S+\s+)*(?:add|branch|commit|config|fetch|init|notes|push|remote|tag)\b")


def may_write_files(command: str) -> bool:
    """Whether a command may change files of the project: unless all of its programs are known not to."""
    if "<<" in command and not re.fullmatch(r"git commit[^|;&]*<<.*", command.strip(), re.DOTALL):
        return True
    if not all(map(_is_discarded, redirect_targets(command))):
        return True
    return any(_may_write(simple) for simple in split_commands(command))


def may_change_git(command: str) -> bool:
    """Whether a command may change what git prints, other than by changing files."""
    return _CHANGES_GIT.search(command) is not None


def redirect_targets(command: str) -> list[str]:
    """The files that a command redirects output to, as it spells them."""
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
    if _has_output_option(program, arguments):
        return True
    if program in _SUBCOMMANDS:
        return split_subcommand(simple)[0] not in _SUBCOMMANDS[program]
    return bool(program) and program not in _READERS


def _has_output_option(program: str, arguments: list[str]) -> bool:
    if (pattern := _OUTPUT_OPTIONS.get(program)) is not None:
        return any(map(pattern.fullmatch, arguments))
    return program in _OPTION_READERS and not _CHANGING_OPTIONS.isdisjoint(arguments)
