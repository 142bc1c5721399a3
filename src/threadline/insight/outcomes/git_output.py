"""Recognise commits and pushes in what git printed.

A commit counts if git says so: by the line `[branch abc1234] subject`, or by `gitOperation` in the tool's own result. A
quiet commit counts if its subject follows an id in the output (as `git log --oneline` prints it), or if the command
could not have succeeded without it. The line alone proves nothing: a log file may contain it, so the command has to run
git, or a program that commits with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from threadline.model.insight.outcomes import OutcomeKind, OutcomeRow
from threadline.shell_syntax import (
    SUBSTITUTED,
    SimpleCommand,
    decides_exit_code,
    program_name,
    split_subcommand,
    word_set,
)

_MIN_ID, _MAX_ID = 7, 64
_ID = f"[0-9a-f]{{{_MIN_ID},{_MAX_ID}}}"
_COMMIT_ID = re.compile(_ID)
# [main abc1234] subject, [main (root-commit) abc1234] …, [detached HEAD abc1234] …. Words may be translated.
_COMMIT_LINE = re.compile(
    rf"^[^\S\n]*\[(?P<branch>[^\s\]]+(?: [^\s\]()]+)?)(?: \([^)\n]*\))? (?P<id>{_ID})\] ?(?P<subject>[^\n]*)$",
    re.MULTILINE,
)
_CHANGES = re.compile(
    r"^ (?P<files>\d+) files? changed(?:, (?P<added>\d+) insertions?\(\+\))?(?:, (?P<removed>\d+) deletions?\(-\))?",
    re.MULTILINE,
)
_LOG_LINE = re.compile(
    rf"^[^\S\n]*(?:\* )?(?:commit )?(?P<id>{_ID}) (?:\([^)\n]*\) )?(?P<subject>[^\n]+)$", re.MULTILINE
)
_MERGE_MADE = re.compile(r"^Merge made by the '[^'\n]+' strategy\.?", re.MULTILINE)
_APPLIED = re.compile(r"^Applying: (?P<subject>[^\n]+)$", re.MULTILINE)
_REBASED = re.compile(r"Successfully rebased and updated (?:refs/heads/)?(?P<branch>[^\n]*?)\.?$", re.MULTILINE)
_PATCH_FAILED = re.compile(r"^Patch failed at \d+ (?P<subject>[^\n]+)$", re.MULTILINE)
_PUSHED = re.compile(
    r"^ ?(?P<flag>[ +*=!-])? ?(?:(?P<range>[0-9a-f]{4,64}\.\.\.?(?P<id>[0-9a-f]{4,64}))|\[new (?P<new>[a-z ]+)\])"
    r"[^\S\n]+(?P<source>[^\s>]+)[^\S\n]+->[^\S\n]+(?P<branch>[^\s>]+)(?P<note>[^\n]*)$",
    re.MULTILINE,
)
_REMOTE_LINE = re.compile(r"^(?P<direction>To|From) (?P<remote>\S+)$", re.MULTILINE)
_HEREDOC_BODY = re.compile(r"<<-?[ \t]*['\"]?(?P<mark>[\w.]+)['\"]?[^\n]*\n(?P<body>.*?)\n[ \t]*(?P=mark)\b", re.DOTALL)

AUTOSQUASHED = "autosquashed"
"""The action of a row that says that a rebase folded fixups into other commits. It is not a commit itself."""
FIXUP_PREFIXES = ("fixup! ", "squash! ", "amend! ")
"""What the subjects of commits begin with that a rebase with `--autosquash` folds into others."""
COMMITTING = {
    "commit": "committed",
    "ci": "committed",
    "cherry-pick": "cherry-picked",
    "revert": "reverted",
    "merge": "merged",
    "pull": "merged",
    "rebase": "rebased",
    "am": "applied",
}
"""What each subcommand of git does that makes commits. Any other word that git does not know is an alias."""
_OTHER_SUBCOMMANDS = word_set(
    "add annotate apply archive bisect blame branch bundle cat-file check-ignore checkout cherry clean clone"
    " config count-objects describe diff diff-tree difftool fast-export fetch for-each-ref format-patch fsck gc"
    " grep hash-object help init log ls-files ls-remote ls-tree maintenance merge-base merge-tree mv name-rev"
    " notes prune push range-diff read-tree reflog remote repack rerere reset restore rev-list rev-parse rm"
    " shortlog show show-ref sparse-checkout stash status submodule switch symbolic-ref tag update-index"
    " update-ref var verify-commit version whatchanged worktree write-tree lfs"
)
# Programs that run git to commit, and runners of scripts that may.
_COMMIT_PROGRAMS = re.compile(
    r".*commit.*|git-.*|cz|gt|oco|gitmoji|release-it|standard-version|semantic-release|lerna|tig"
)
_SCRIPT_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun", "make", "just", "mise", "task", "npx", "uv", "poetry"))


def find_commits(commands: Sequence[SimpleCommand], output: str, result: Any, *, is_ok: bool) -> list[OutcomeRow]:
    """The commits that a command made, in the order of the output."""
    kinds = [(at, kind) for at, simple in enumerate(commands) if (kind := commit_kind(simple)) is not None]
    recorded = _recorded_commit(result)
    if not kinds and recorded is None:
        return []
    rows = list(_printed_commits(output, [kind for _, kind in kinds], recorded))
    rows += _applied_patches(output) if any(kind == "applied" for _, kind in kinds) else ()
    if not rows and any(kind == "merged" for _, kind in kinds):
        rows = [_merge_row(commands, kinds, match.start(), output) for match in _MERGE_MADE.finditer(output)]
    if not rows and recorded is not None:
        at = next((at for at, _ in kinds), None)
        subject = message_subject(commands[at]) if at is not None else None
        rows = [OutcomeRow(OutcomeKind.COMMIT, recorded[1], subject or "", recorded[0], evidence="gitOperation")]
    rows = rows or _quiet_commits(commands, kinds, output, is_ok=is_ok)
    rows += _autosquashes(commands, kinds, output, is_ok=is_ok)
    return rows


def commit_kind(simple: SimpleCommand) -> str | None:
    """What a command does if it makes commits: committed, amended, merged and so on; None if it makes none."""
    program = program_name(simple)
    if program is None:
        return None
    if program not in ("git", "hub"):
        words = simple.arguments[1:3] if program in _SCRIPT_RUNNERS else (program,)
        return "committed" if any(map(_is_commit_program, words)) else None
    subcommand, arguments = split_subcommand(simple)
    if not subcommand or subcommand in _OTHER_SUBCOMMANDS:
        return None
    kind = COMMITTING.get(subcommand, "committed")
    if kind == "committed" and "--dry-run" in arguments:
        return None
    return "amended" if kind == "committed" and "--amend" in arguments else kind


@lru_cache(maxsize=1024)
def may_commit(program: str) -> bool:
    """Whether a program, or a script that it runs, may commit."""
    return program in _SCRIPT_RUNNERS or _is_commit_program(program)


@lru_cache(maxsize=1024)
def _is_commit_program(word: str) -> bool:
    return _COMMIT_PROGRAMS.fullmatch(word) is not None


def _recorded_commit(result: Any) -> tuple[str, str] | None:
    """The id and the kind of the commit that the tool's own result records."""
    operation = result.get("gitOperation") if isinstance(result, dict) else None
    commit = operation.get("commit") if isinstance(operation, dict) else None
    id_ = commit.get("sha") if isinstance(commit, dict) else None
    if not isinstance(id_, str) or not _COMMIT_ID.fullmatch(id_):
        return None
    kind = commit.get("kind") if isinstance(commit, dict) else None
    return id_, kind if isinstance(kind, str) and kind else "committed"


def _printed_commits(output: str, kinds: Sequence[str], recorded: tuple[str, str] | None) -> Iterator[OutcomeRow]:
    matches = list(_COMMIT_LINE.finditer(output))
    for number, match in enumerate(matches):
        end = matches[number + 1].start() if number + 1 < len(matches) else len(output)
        changes = _CHANGES.search(output, match.end(), min(end, match.end() + 2000))
        is_recorded = recorded is not None and match["id"].startswith(recorded[0][:_MIN_ID])
        kind = (
            recorded[1] if recorded is not None and is_recorded else _kind_of_line(match, number, len(matches), kinds)
        )
        yield OutcomeRow(
            OutcomeKind.COMMIT,
            kind,
            match["subject"].strip(),
            match["id"],
            match["branch"],
            files=int(changes["files"]) if changes else None,
            added=int(changes["added"] or 0) if changes else None,
            removed=int(changes["removed"] or 0) if changes else None,
            evidence="gitOperation" if is_recorded else "git output",
        )


def _kind_of_line(match: re.Match[str], number: int, lines: int, kinds: Sequence[str]) -> str:
    """What the command did that printed a line, if several commands that make commits were run at once."""
    if len(set(kinds)) <= 1:
        return kinds[0] if kinds else "committed"
    if len(kinds) == lines:
        return kinds[number]
    subject = match["subject"]
    hints = {"reverted": subject.startswith('Revert "'), "merged": subject.startswith("Merge ")}
    hinted = next((kind for kind, is_hinted in hints.items() if is_hinted and kind in kinds), None)
    return hinted or ("committed" if "committed" in kinds else kinds[0])


def _merge_row(commands: Sequence[SimpleCommand], kinds: Sequence[tuple[int, str]], at: int, output: str) -> OutcomeRow:
    """A merge that made a commit, whose id git does not print."""
    simple = next(commands[at] for at, kind in kinds if kind == "merged")
    changes = _CHANGES.search(output, at)
    return OutcomeRow(
        OutcomeKind.COMMIT,
        "merged",
        " ".join(simple.arguments[1:]).replace(SUBSTITUTED, "…"),
        files=int(changes["files"]) if changes else None,
        added=int(changes["added"] or 0) if changes else None,
        removed=int(changes["removed"] or 0) if changes else None,
        evidence="git output",
    )


def _applied_patches(output: str) -> Iterator[OutcomeRow]:
    failed = {match["subject"] for match in _PATCH_FAILED.finditer(output)}
    for match in _APPLIED.finditer(output):
        if match["subject"] not in failed:
            yield OutcomeRow(OutcomeKind.COMMIT, "applied", match["subject"], evidence="git output")


def _autosquashes(
    commands: Sequence[SimpleCommand], kinds: Sequence[tuple[int, str]], output: str, *, is_ok: bool
) -> Iterator[OutcomeRow]:
    """Rebases that folded the fixups of a branch into the commits that they fix."""
    for at, kind in kinds:
        simple = commands[at]
        if kind != "rebased" or not _squashes_fixups(simple):
            continue
        match = _REBASED.search(output)
        if match is not None:
            yield OutcomeRow(OutcomeKind.COMMIT, AUTOSQUASHED, "", None, match["branch"], evidence="git output")
        elif is_ok and decides_exit_code(commands, at):
            yield OutcomeRow(OutcomeKind.COMMIT, AUTOSQUASHED, "", evidence="exit code")


def _squashes_fixups(simple: SimpleCommand) -> bool:
    arguments = [argument.lower() for argument in simple.arguments]
    if "--no-autosquash" in arguments:
        return False
    return any(argument in ("--autosquash", "rebase.autosquash=true", "rebase.autosquash") for argument in arguments)


def _quiet_commits(
    commands: Sequence[SimpleCommand], kinds: Sequence[tuple[int, str]], output: str, *, is_ok: bool
) -> list[OutcomeRow]:
    """Commits whose line was not printed: with `-q`, in a pipe, or redirected."""
    rows: list[OutcomeRow] = []
    logged = [(match["id"], match["subject"].strip()) for match in _LOG_LINE.finditer(output)]
    last = max((at for at, simple in enumerate(commands) if _is_log(simple)), default=-1)
    for at, kind in reversed(kinds):
        if kind not in ("committed", "amended") or program_name(commands[at]) not in ("git", "hub"):
            continue
        simple = commands[at]
        subject = message_subject(simple)
        match = next((pair for pair in logged if is_same_subject(simple, subject, pair[1])), None)
        if match is None and kind == "amended" and subject is None and is_ok and at < last and _is_quiet(simple):
            match = logged[0] if logged else None  # the newest commit, which was just amended
        if match is not None:
            logged.remove(match)
            rows.append(OutcomeRow(OutcomeKind.COMMIT, kind, match[1], match[0], evidence="git log output"))
        elif is_ok and _is_quiet(simple) and decides_exit_code(commands, at):
            subject = subject or _fixup_subject(simple) or _shown_subject(commands, at, output)
            rows.append(OutcomeRow(OutcomeKind.COMMIT, kind, subject or "", evidence="exit code"))
    return rows[::-1]


def _fixup_subject(simple: SimpleCommand) -> str | None:
    """What the subject of a fixup begins with, and the commit that it fixes as the command names it."""
    words = simple.arguments
    for at, word in enumerate(words):
        name, has_value, value = word.partition("=")
        if name in ("--fixup", "--squash"):
            value = value if has_value else next(iter(words[at + 1 :]), "")
            return f"{name.removeprefix('--')}! {value.replace(SUBSTITUTED, '…')}"
    return None


def _shown_subject(commands: Sequence[SimpleCommand], at: int, output: str) -> str | None:
    """The subject of a quiet commit that the next command prints, as `git log -1 --format=%s` does."""
    following = commands[at + 1] if at + 1 < len(commands) else None
    is_first = all(simple.arguments[:1] == ["cd"] or _is_add(simple) for simple in commands[:at])
    if following is None or not is_first or not _is_log(following):
        return None
    arguments = split_subcommand(following)[1]
    if not any(re.fullmatch(r"-1|-n1|--max-count=1", argument) for argument in arguments):
        return None
    if not any(re.fullmatch(r"--(?:format|pretty)=(?:t?format:)?%[Bs]", argument) for argument in arguments):
        return None
    lines = (line.strip() for line in output.splitlines())
    return next((line for line in lines if line and not line.startswith(("warning:", "hint:"))), None)


def _is_add(simple: SimpleCommand) -> bool:
    return program_name(simple) == "git" and split_subcommand(simple)[0] == "add"


def is_same_subject(simple: SimpleCommand, subject: str | None, logged: str) -> bool:
    """Whether a line of the log has the subject that the command gave to its commit."""
    if any(argument.startswith(("--fixup", "--squash")) for argument in simple.arguments):
        return logged.startswith(FIXUP_PREFIXES)
    return subject is not None and subject == logged


def _is_log(simple: SimpleCommand) -> bool:
    return program_name(simple) == "git" and split_subcommand(simple)[0] == "log"


def _is_quiet(simple: SimpleCommand) -> bool:
    arguments = simple.arguments[1:]
    short = any(re.fullmatch(r"-[a-zA-Z]*q[a-zA-Z]*", argument) for argument in arguments)
    return simple.is_redirected or short or "--quiet" in arguments


def message_subject(simple: SimpleCommand) -> str | None:
    """The first line of a commit's message, as the command gives it; None if it does not."""
    words = simple.words
    for at, word in enumerate(words[1:], 1):
        text = word.text
        if re.fullmatch(r"-[a-zA-Z]*m|--message", text) and at + 1 < len(words):
            value = words[at + 1]
            message, inner = value.text, value.commands
        elif text.startswith("--message="):
            message, inner = text.partition("=")[2], word.commands
        else:
            continue
        if SUBSTITUTED in message:
            body = _HEREDOC_BODY.search(inner[0]) if inner else None
            message = body["body"] if body else ""
        message = message.strip().removeprefix("@").strip()
        return message.partition("\n")[0].strip() or None
    return None


def find_pushes(commands: Sequence[SimpleCommand], output: str, result: Any) -> list[OutcomeRow]:
    """The branches and tags that a command pushed."""
    runs_push = any(_is_push(simple) for simple in commands)
    operation = result.get("gitOperation") if isinstance(result, dict) else None
    recorded = operation.get("push") if isinstance(operation, dict) else None
    branch = recorded.get("branch") if isinstance(recorded, dict) else None
    if not runs_push and not isinstance(branch, str):
        return []
    rows: list[OutcomeRow] = []
    headers = list(_REMOTE_LINE.finditer(output))
    for number, header in enumerate(headers):
        if header["direction"] == "From":
            continue
        end = headers[number + 1].start() if number + 1 < len(headers) else len(output)
        for match in _PUSHED.finditer(output, header.end(), end):
            if match["flag"] in ("!", "=", "-") or "rejected" in match["note"]:
                continue
            action = "forced" if match["flag"] == "+" else f"new {match['new']}" if match["new"] else "pushed"
            rows.append(
                OutcomeRow(
                    OutcomeKind.PUSH, action, _strip_user(header["remote"]), match["id"], match["branch"],
                    evidence="git output",
                )
            )  # fmt: skip
    if not rows and isinstance(branch, str) and branch:
        rows.append(OutcomeRow(OutcomeKind.PUSH, "pushed", "", None, branch, evidence="gitOperation"))
    return rows


def _is_push(simple: SimpleCommand) -> bool:
    program = program_name(simple)
    if program in ("gt", "gh", "glab"):
        return True
    return program in ("git", "hub") and (
        (subcommand := split_subcommand(simple)[0]) == "push"
        or (subcommand not in _OTHER_SUBCOMMANDS and subcommand not in COMMITTING)
    )


def _strip_user(remote: str) -> str:
    """A remote's address without a user's name or token."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", remote)
