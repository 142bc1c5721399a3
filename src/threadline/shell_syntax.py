"""Split a shell command into pipelines of simple commands, well enough to know what it runs and prints.

Quotes, substitutions, redirections, here-documents and continued lines are understood. Programs that run another
command (`sudo`, `ssh host`, `docker exec`, `bash -c`) are replaced by that command. Nothing is executed or expanded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

MAX_COMMAND = 16_384
"""Longer commands are cut: they are scripts that are written to a file."""
_MAX_NESTING = 6


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# `((…))`, which computes a number: it runs nothing, unless a command is substituted in it.
_ARITHMETIC = re.compile(
    r"\(\((?:[^()`$\n]++|\$(?!\()|\((?:[^()`$\n]++|\$(?!\()|\((?:[^()`$\n]++|\$(?!\())*+\))*+\))*+\)\)"
)
_STEP = re.compile(
    # Most steps are words of plain characters: the first alternative is what `plain` matches where no other can.
    r"(?P<word>[^\s'\"\\|&;<>()`$#0-9][^\s'\"\\|&;<>()`$]*)"
    r"|(?P<blank>(?:[ \t]|\\\r?\n)+)"
    r"|(?P<comment>(?<![^\s;&|(])#[^\n]*)"
    rf"|(?P<arithmetic>\$?{_ARITHMETIC.pattern})"
    r"|(?P<end>&&|\|\||;;?|\r?\n|&(?![>&])|[()](?!\())"
    r"|(?P<pipe>\|&?)"
    r"|(?P<heredoc><<-?[ \t]*(?P<mark>['\"]?[\w.]+['\"]?))"
    r"|(?P<redirect>(?:[0-9]|&)?>{1,2}\|?(?:&[0-9-])?|[0-9]?<(?!<)|<<<)"
    r"|(?P<single>\$?'[^']*'?)"
    r'|(?P<double>"(?:[^"\\$`]++|\\.|\$(?!\()|(?P<inner>\$\(|`))*+(?:"|(?=\Z)))'
    r"|(?P<escaped>\\.)"
    r"|(?P<open>\$\((?!\()|`)"
    r"|(?P<plain>[^\s'\"\\|&;<>()`$]+|\$|.)",
    re.DOTALL,
)
_DOUBLE_PART = re.compile(r'[^"\\$`]+|\\.|\$(?!\()|\$\(|`|"', re.DOTALL)
_PAREN = re.compile(r"[^'\"\\()]+|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[()]|['\"\\]", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{?#?([A-Za-z_]\w*)[^}\s\"]*\}?|\$env:(\w+)|%(\w+)%")


class Word(Struct):
    """A word without its quotes. `commands` are the commands whose output is part of it."""

    text: str = ""
    commands: list[str] = []

    @property
    def variables(self) -> list[str]:
        """The variables whose values are part of it."""
        return [next(filter(None, match.groups()), "") for match in _VARIABLE.finditer(self.text)]


class SimpleCommand(Struct):
    """One command: variables set before it, its words, files read from, and whether its output goes to a file.

    `end` is the operator after it: `|`, `&&`, `||`, `;`, `&` or a line ending; empty at the end of the text.
    """

    words: list[Word] = []
    assignments: dict[str, Word] = {}
    inputs: list[str] = []
    is_redirected: bool = False
    end: str = ""

    @property
    def arguments(self) -> list[str]:
        """The words as texts."""
        return [word.text for word in self.words]


SUBSTITUTED = "\x00"
"""Stands in a word for the output of a command."""


def parse_command(command: str) -> list[list[SimpleCommand]]:
    """The pipelines of a command, in order."""
    parser = _Parser(command[:MAX_COMMAND])
    parser.parse()
    return parser.pipelines


# Commands without substitutions, here-documents, comments and escapes: the words up to an operator are one match.
_USUAL_STEP = re.compile(
    r"(?P<words>(?:[^\s'\"\\<>`$()#|&;{}!]+|'[^']*'|\"[^\"\\$`]*\"|[ \t]+)+)"
    r"|(?P<end>&&|\|\|?|;|\r?\n)"
    r"|(?P<redirect>>{1,2}(?:&(?P<copy>[0-9])|[ \t]*(?P<target>[\w./~-]+))(?=[\s|&;]|$))"
)
_USUAL_WORD = re.compile(r"(?:[^\s'\"]+|'[^']*'|\"[^\"]*\")+")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_DESCRIPTOR = re.compile(r"(?:^|[ \t])([0-9])$")


def _split_usual_command(command: str) -> list[SimpleCommand] | None:
    """The simple commands of a command, as the parser gives them but faster; None if it needs the parser."""
    commands: list[SimpleCommand] = []
    simple = SimpleCommand()
    at, length = 0, len(command)
    is_error_redirected = False
    while at < length:
        match = _USUAL_STEP.match(command, at)
        if match is None or (is_error_redirected and match.lastgroup != "redirect"):
            return None
        at = match.end()
        if match.lastgroup == "words":
            descriptor = _DESCRIPTOR.search(match[0]) if command[at : at + 1] == ">" else None
            _add_words(simple, match[0][: descriptor.start(1)] if descriptor else match[0])
            is_error_redirected = descriptor is not None and descriptor[1] != "1"
        elif match.lastgroup == "end":
            simple.end = match[0]
            commands.append(simple)
            simple = SimpleCommand()
        else:
            is_output = not is_error_redirected and match["copy"] is None
            simple.is_redirected = simple.is_redirected or (is_output and match["target"] not in _TERMINALS)
            is_error_redirected = False
    return [simple for simple in (*commands, simple) if simple.words]


def _add_words(simple: SimpleCommand, text: str) -> None:
    has_quotes = "'" in text or '"' in text
    texts = _USUAL_WORD.findall(text) if has_quotes else text.split()
    for word in texts:
        plain_word = _QUOTED.sub(r"\1\2", word) if has_quotes else word
        if not simple.words and "=" in word and (match := _ASSIGNMENT.fullmatch(plain_word)):
            simple.assignments[match[1]] = Word(match[2])
        else:
            simple.words.append(Word(plain_word))


def split_commands(command: str, *, depth: int = 0) -> list[SimpleCommand]:
    """The simple commands of a command, in order, each without the programs that only run another command."""
    usual = _split_usual_command(command) if len(command) <= MAX_COMMAND else None
    if usual is None:
        usual = [simple for pipeline in parse_command(command) for simple in pipeline if simple.words]
    commands: list[SimpleCommand] = []
    for simple in usual:
        if _runs_itself(simple.words[0].text):
            commands.append(simple)
            continue
        inner = unwrap(simple)
        if isinstance(inner, SimpleCommand):
            # `mise run test -- -v`: what follows the dashes are options of the command before.
            is_command = bool(inner.words) and not inner.words[0].text.startswith("-")
            commands.append(inner if is_command else simple)
        elif depth < _MAX_NESTING:
            nested = split_commands(inner, depth=depth + 1)
            if nested:
                nested[-1].end = simple.end
            commands += nested
    return commands


_WORD_KINDS = frozenset(("word", "arithmetic", "single", "double", "escaped", "open", "plain"))
_OUTER_GROUPS = {"mark": "heredoc", "inner": "double"}
_TERMINALS = frozenset(("/dev/stdout", "/dev/stderr", "/dev/tty"))


class _Parser:
    """Reads a command step by step."""

    def __init__(self, command: str) -> None:
        self.pipelines: list[list[SimpleCommand]] = []
        self._command = command
        self._at = 0
        self._pipeline: list[SimpleCommand] = []
        self._simple = SimpleCommand()
        self._word: Word | None = None
        self._redirect = ""
        self._marks: list[str] = []

    def parse(self) -> None:
        while match := _STEP.match(self._command, self._at):
            group = match.lastgroup or ""
            kind = _OUTER_GROUPS.get(group, group)
            self._at = match.end()
            if kind in _WORD_KINDS:
                self._read_word(kind, match)
            elif kind == "blank":
                self._finish_word()
            elif kind == "end":
                self._finish_pipeline(match[0])
                if match[0].endswith("\n"):
                    self._at = _skip_heredocs(self._command, self._at, self._marks)
            elif kind == "pipe":
                self._finish_command(match[0])
            elif kind == "heredoc":
                self._finish_word()
                self._marks.append(match["mark"].strip("'\""))
            elif kind == "redirect":
                self._start_redirect(match[0])
        self._finish_pipeline()

    def _read_word(self, kind: str, match: re.Match[str]) -> None:
        self._word = self._word or Word()
        text = match[0]
        if kind == "single":
            self._word.text += text.lstrip("$").strip("'")
        elif kind == "double":
            self._at = _read_double(self._command, match.start() + 1, self._word)
        elif kind == "open":
            self._at = _read_substitution(self._command, match.start(), self._word)
        else:
            self._word.text += text[1] if kind == "escaped" else text

    def _start_redirect(self, text: str) -> None:
        if self._word is not None and self._word.text.isdigit():
            text = text if self._word.text == "1" else f"2{text}"
            self._word = None
        self._finish_word()
        is_duplicate = "&" in text[1:] and text[-1] in "0123456789-"
        self._redirect = "" if is_duplicate else text

    def _finish_word(self) -> None:
        word, redirect = self._word, self._redirect
        if word is None:
            return
        self._word, self._redirect = None, ""
        if redirect:
            if "<" in redirect:
                self._simple.inputs.append(word.text)
            elif redirect[0] not in "23456789" and word.text not in _TERMINALS:
                self._simple.is_redirected = True
        elif not self._simple.words and (match := _ASSIGNMENT.fullmatch(word.text)):
            self._simple.assignments[match[1]] = Word(match[2], word.commands)
        else:
            self._simple.words.append(word)

    def _finish_command(self, end: str = "") -> None:
        self._finish_word()
        simple = self._simple
        simple.end = end
        if simple.words or simple.assignments or simple.inputs:
            self._pipeline.append(simple)
        self._simple = SimpleCommand()

    def _finish_pipeline(self, end: str = "") -> None:
        self._finish_command(end)
        if self._pipeline:
            self.pipelines.append(self._pipeline)
        self._pipeline = []


def _skip_heredocs(command: str, at: int, marks: list[str]) -> int:
    for mark in marks:
        end = re.compile(rf"^\t*{re.escape(mark)}[ \t]*$", re.MULTILINE).search(command, at)
        at = end.end() if end else len(command)
    marks.clear()
    return at


def _read_double(command: str, at: int, word: Word) -> int:
    """Read the rest of a text in double quotes; return the position after it."""
    while match := _DOUBLE_PART.match(command, at):
        text = match[0]
        at = match.end()
        if text == '"':
            break
        if text in {"$(", "`"}:
            at = _read_substitution(command, match.start(), word)
        else:
            word.text += text[1:] if text[0] == "\\" and text[1:] in {'"', "\\", "$", "`"} else text
    return at


def _read_substitution(command: str, at: int, word: Word) -> int:
    """Read `$(…)` or backquotes; return the position after it."""
    if arithmetic := _ARITHMETIC.match(command, at + 1):
        word.text += f"${arithmetic[0]}"
        return arithmetic.end()
    if command[at] == "`":
        end = command.find("`", at + 1)
        end = len(command) if end < 0 else end
        inner, after = command[at + 1 : end], end + 1
    else:
        depth, after, start = 1, at + 2, at + 2
        while depth and (match := _PAREN.match(command, after)):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            after = match.end()
        inner = command[start : after - (depth == 0)]
    word.text += SUBSTITUTED
    word.commands.append(inner)
    return after


# Words before a command that change nothing about its output.
_KEYWORDS = word_set("if then else elif do while until time ! { } fi done command exec builtin nohup eval noglob")
_WRAPPERS: dict[str, re.Pattern[str]] = {
    # What a program's options with a value look like; the command follows the last option and the operands.
    "sudo": re.compile(r"-[ugpCrtTDRh]$|--(?:user|group|prompt|chdir|host)$"),
    "doas": re.compile(r"-[uC]$"),
    "env": re.compile(r"-[uCS]$|--(?:unset|chdir)$"),
    "nice": re.compile(r"-n$"),
    "ionice": re.compile(r"-[cnp]$"),
    "timeout": re.compile(r"-[ks]$"),
    "stdbuf": re.compile(r"-[ioe]$"),
    "watch": re.compile(r"-[nd]$"),
    "xargs": re.compile(r"-[IinLPsadE]$"),
    "setsid": re.compile(r"$^"),
    "unbuffer": re.compile(r"$^"),
    "caffeinate": re.compile(r"-[tw]$"),
    "chroot": re.compile(r"$^"),
    "proxychains": re.compile(r"$^"),
    "torsocks": re.compile(r"$^"),
    "firejail": re.compile(r"$^"),
    "wsl": re.compile(r"-[due]$"),
}
_OPERANDS = {"timeout": 1, "chroot": 1}
_SHELLS = word_set("bash sh zsh dash ash ksh fish powershell pwsh su script runuser")
_COMMAND_RUNNERS = word_set("nix-shell vagrant gcloud fly flyctl heroku")
_REMOTE = word_set("ssh autossh mosh tsh")
_SSH_VALUE = re.compile(r"-[bcDEeFIiJLlmOopQRSWw]$|--(?:user|cluster|proxy)$")
_EXEC_VALUE = re.compile(
    r"-[eunpwvclmhf]$|--(?:env|user|name|workdir|publish|volume|container|namespace|network|file|index|context|entrypoint"
    r"|platform|project-name|env-file|label|mount|hostname|kubeconfig|zone|project)$"
)
_CONTAINERS = word_set("docker podman nerdctl docker-compose podman-compose lxc incus finch")
_AFTER_DASHES = word_set(
    "kubectl oc k9s multipass lima limactl doppler op aws-vault chamber infisical teller summon envchain dotenv direnv"
    " vault-env saml2aws granted devbox mise asdf nix vagrant heroku fly flyctl railway aws gcloud okteto tilt npx pnpm"
    " microk8s k3s minikube crictl envdir with-env 1password"
)
_RUNNERS = re.compile(
    r"(?:(?:poetry|uv|pipenv|pdm|rye|hatch|conda|mamba|bundle|rvm|devbox) (?:run|exec)|npx|bunx|pnpm dlx) "
)
_COMMAND_OPTION = re.compile(r"-[a-z]*c$|--?command$|-Command$|-C$|--run$|--init-command$", re.IGNORECASE)


def unwrap(simple: SimpleCommand) -> SimpleCommand | str:
    """The command that a wrapper such as `sudo` or `ssh host` runs: as words, or as text that a shell parses."""
    words = simple.words
    for _level in range(_MAX_NESTING):
        texts = [word.text for word in words]
        if not texts:
            break
        program = texts[0].rsplit("/", 1)[-1].rsplit("\\", 1)[-1].removesuffix(".exe")
        start = _start_of_inner(program, texts)
        if start is None:
            break
        if isinstance(start, str):
            return start
        words = words[start:]
    inner = SimpleCommand(list(words), dict(simple.assignments), simple.inputs, simple.is_redirected, simple.end)
    while inner.words and (match := _ASSIGNMENT.fullmatch(inner.words[0].text)):
        inner.assignments[match[1]] = Word(match[2], inner.words.pop(0).commands)
    return inner


def _start_of_inner(program: str, texts: list[str]) -> int | str | None:
    """Where the inner command starts, or its text; None if there is no inner command."""
    start: int | str | None = None
    if program == "eval":
        start = " ".join(texts[1:])
    elif program in _KEYWORDS:
        start = 1
    elif program in _WRAPPERS:
        start = _skip_options(texts, 1, _WRAPPERS[program]) + _OPERANDS.get(program, 0)
        while program in {"env", "sudo"} and start < len(texts) and _ASSIGNMENT.fullmatch(texts[start]):
            start += 1
    elif program in _REMOTE:
        start = " ".join(texts[_skip_options(texts, 1 + (program == "tsh"), _SSH_VALUE) + 1 :])
    elif program in _CONTAINERS:
        start = _start_in_container(texts)
    else:
        start = _command_option(program, texts)
        if start is None and program in _AFTER_DASHES and "--" in texts[1:-1]:
            start = texts.index("--", 1) + 1
        elif start is None and (runner := _RUNNERS.match(" ".join(texts[:3]) + " ")):
            start = runner[0].count(" ")
    if isinstance(start, int):
        return start if start < len(texts) else None
    return start or None


_RUNNER_PROGRAMS = word_set("poetry uv pipenv pdm rye hatch conda mamba bundle rvm devbox npx bunx pnpm")
_WRAPPING_PROGRAMS = frozenset().union(
    *(_KEYWORDS, _WRAPPERS, _SHELLS, _COMMAND_RUNNERS, _REMOTE, _CONTAINERS, _AFTER_DASHES, _RUNNER_PROGRAMS)
)


@lru_cache(maxsize=4096)
def _runs_itself(word: str) -> bool:
    """Whether a program runs no other command that its arguments name."""
    program = word.rsplit("/", 1)[-1].rsplit("\\", 1)[-1].removesuffix(".exe")
    return program not in _WRAPPING_PROGRAMS and "=" not in word


def _command_option(program: str, texts: list[str]) -> str | None:
    """The text of the command that is passed to a shell with `-c`, or to another program in the same way."""
    if program not in _SHELLS and program not in _COMMAND_RUNNERS:
        return None
    for at, text in enumerate(texts[1:], 1):
        if text.startswith("--command="):
            return text.partition("=")[2]
        if _COMMAND_OPTION.fullmatch(text) and at + 1 < len(texts):
            return " ".join(texts[at + 1 :]) if program.startswith(("power", "pwsh")) else texts[at + 1]
    return None


def _start_in_container(texts: list[str]) -> int | None:
    """Where the command starts after `docker exec NAME`, `docker run IMAGE` or `docker compose exec SERVICE`."""
    at = next((at for at, text in enumerate(texts) if text in {"exec", "run"}), None)
    if at is None:
        return None
    at = _skip_options(texts, at + 1, _EXEC_VALUE) + 1
    if at < len(texts) and texts[at] == "--":
        at += 1
    return at if at < len(texts) else None


def _skip_options(texts: list[str], at: int, takes_value: re.Pattern[str]) -> int:
    while at < len(texts) and texts[at].startswith("-") and texts[at] != "-":
        if texts[at] == "--":
            return at + 1
        at += 2 if takes_value.match(texts[at]) else 1
    return at


SHELL_TOOLS = frozenset(("Bash", "PowerShell"))
"""The tools that run a shell command."""


def input_command(arguments: Any) -> str | None:
    """The command in the input of a call; None if there is none."""
    command = arguments.get("command") if isinstance(arguments, dict) else None
    return command if isinstance(command, str) else None


def parse_shell_call(tool: str, arguments: Any) -> list[SimpleCommand]:
    """The commands that a call of a shell tool runs; none for other tools."""
    command = input_command(arguments) if tool in SHELL_TOOLS else None
    return split_commands(command) if command is not None else []


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n)")


def strip_terminal_escapes(output: str) -> str:
    """Remove colours and cursor movements from the output of a command, and carriage returns at line ends."""
    return _ESCAPES.sub("", output) if "\x1b" in output or "\r" in output else output


_NAME = re.compile(r"[A-Za-z_][\w.+-]*(?:@[\w.^~-]+)?|:")
_POWERSHELL_ASSIGNMENT = re.compile(r"\$[\w:]+\+?=")
_EXTENSION = re.compile(r"\.(?:exe|cmd|bat|com)$", re.IGNORECASE)
# Parts of the shell's syntax, and commands that only prepare the next one.
_NOT_PROGRAMS = frozenset(
    (
        *("for", "do", "done", "while", "until", "if", "then", "else", "elif", "fi", "case", "esac", "in", "select"),
        *("function", "return", "break", "continue", "local", "declare", "readonly", "export", "unset", "set", "shift"),
        *("cd", "pushd", "popd", "Set-Location", "sl", "chdir", "env", "sudo", "time", "nohup", "command", "exec", ":"),
        *("foreach", "ForEach-Object", "Where-Object", "try", "catch", "finally", "param"),
    )
)
_GIT_VALUE_OPTIONS = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env", "-R")
)


def program_name(simple: SimpleCommand) -> str | None:
    """The name of the program, without folder and extension; None for a part of the shell's syntax."""
    is_field = len(simple.words) > 1 and simple.words[1].text == "="  # PowerShell: `@{ name = $value; size = 3 }`
    return _name_of_word(simple.words[0].text) if simple.words and not is_field else None


@lru_cache(maxsize=4096)
def _name_of_word(word: str) -> str | None:
    if _POWERSHELL_ASSIGNMENT.match(word):
        return None
    name = _EXTENSION.sub("", word.replace("\\", "/").rsplit("/", 1)[-1])
    return name if _NAME.fullmatch(name) and name not in _NOT_PROGRAMS else None


def program_names(commands: Sequence[SimpleCommand]) -> list[str]:
    """The names of the programs that commands run, each once."""
    return list(dict.fromkeys(name for simple in commands if (name := program_name(simple)) is not None))


def split_subcommand(simple: SimpleCommand) -> tuple[str, Sequence[str]]:
    """The subcommand of a program like git, and what follows it. Options before it, with their values, are skipped."""
    arguments = simple.arguments
    at = 1
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in _GIT_VALUE_OPTIONS else 1
    return (arguments[at], arguments[at + 1 :]) if at < len(arguments) else ("", ())


def decides_exit_code(commands: Sequence[SimpleCommand], at: int) -> bool:
    """Whether a whole command can only succeed if its command at that position did."""
    if commands[at].end == "|":  # the last command of a pipeline decides
        return False
    return all(simple.end in ("&&", "|") for simple in commands[at:-1]) and commands[-1].end in ("", "\n", "\r\n", ";")
