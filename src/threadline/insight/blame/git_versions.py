"""Read the versions of a file from the history of a git repository, renames included.

Only plumbing commands are used, which print objects as they are stored: no filter, text conversion, external diff or
signature check is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from threadline.errors import Error, Unreadable
from threadline.insight.git import Repository
from threadline.model.text import format_size

_MAX_COMMITS = 3_000
_MAX_BYTES = 256 << 20
_MAX_RENAMES = 20
# What Claude Code adds to the messages of its commits.
_CLAUDE_MARK = re.compile(
    r"Co-Authored-By: Claude\b|Generated with \[?Claude Code|noreply@anthropic\.com", re.IGNORECASE
)
_HEADER = re.compile(rb"[0-9a-f]{40,64} (?P<kind>[a-z]+) (?P<size>[0-9]+)")


class CommittedVersion(Struct, frozen=True):
    """A file at a commit that changed it. `parents` are the ids of the versions before. `text` is None if it is gone.

    `time` is when it was committed, in seconds since 1970. `is_cut` says that there are versions before that were not
    read: the clone is shallow, or the history too long. `is_by_claude` says that its message names Claude as an author.
    """

    id: str
    commit: str
    time: float
    author: str
    parents: tuple[str, ...]
    path: str
    text: str | None
    is_cut: bool = False
    is_by_claude: bool = False


class GitVersions(Struct, frozen=True):
    """All versions of a file, parents first. `head` is the id of the current one. `paths` are all names it had."""

    head: str | None
    versions: list[CommittedVersion]
    paths: list[str]
    revision: str | None = None


def read_versions(repository: Repository, path: str) -> GitVersions:
    """Read the history of a file, by its path from the root of the repository.

    Raises:
        Error: git failed or took too long.
    """
    revision = repository.head
    if revision is None:
        return GitVersions(None, [], [path])
    commits: list[tuple[str, tuple[str, ...], str]] = []
    paths = [path]
    todo = [(revision, path)]
    seen: set[tuple[str, str]] = set()
    heads: dict[tuple[str, str], str | None] = {}
    roots: dict[str, str] = {}
    while todo and len(paths) <= _MAX_RENAMES:
        start, name = todo.pop()
        rows = _list_commits(repository, start, name)
        heads[start, name] = _key(rows[0][0], name) if rows else None
        for commit, parents in rows:
            if (commit, name) in seen:
                continue
            seen.add((commit, name))
            commits.append((commit, parents, name))
            if not parents and (source := _renamed_from(repository, commit, name)) is not None:
                old_name, parent = source
                if old_name not in paths:
                    paths.append(old_name)
                roots[_key(commit, name)] = f"{parent}\0{old_name}"
                todo.append((parent, old_name))
    texts = _read_texts(repository, [(commit, name) for commit, _, name in commits])
    facts = _read_facts(repository, {commit for commit, _, _ in commits})
    first = {commit for commit, parents, name in commits if not parents and _key(commit, name) not in roots}
    cut = _missing_parents(repository, {commit: facts[commit].parents for commit in first if commit in facts})
    if len(commits) >= _MAX_COMMITS:
        cut |= first
    versions = []
    for commit, parents, name in commits:
        key = _key(commit, name)
        before = [_key(parent, name) for parent in parents]
        if key in roots:
            parent, _, old_name = roots[key].partition("\0")
            source_key = heads.get((parent, old_name))
            before = [source_key] if source_key is not None else []
        fact = facts.get(commit, _CommitFacts())
        is_cut = commit in cut and not before
        text = texts.get((commit, name))
        versions.append(
            CommittedVersion(
                id=key,
                commit=commit,
                time=fact.time,
                author=fact.author,
                parents=tuple(before),
                path=name,
                text=text,
                is_cut=is_cut,
                is_by_claude=fact.is_by_claude,
            )
        )
    return GitVersions(heads[revision, path], _parents_first(versions), paths, revision)


def worktrees(repository: Repository) -> list[Path]:
    """The roots of all working trees of the repository."""
    try:
        lines = repository.lines("worktree", "list", "--porcelain")
    except Error:
        return [repository.root]
    roots = [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")]
    return list(dict.fromkeys([repository.root, *roots]))


def _key(commit: str, path: str) -> str:
    return f"{commit}:{path}"


def _list_commits(repository: Repository, start: str, path: str) -> list[tuple[str, tuple[str, ...]]]:
    """The commits that changed a path, newest first, with the ones before."""
    lines = repository.lines(
        "rev-list", "--topo-order", "--parents", f"--max-count={_MAX_COMMITS}", "--end-of-options", start, "--", path
    )
    rows = [line.split() for line in lines]
    commits = {row[0] for row in rows}
    return [(row[0], tuple(parent for parent in row[1:] if parent in commits)) for row in rows]


def _renamed_from(repository: Repository, commit: str, path: str) -> tuple[str, str] | None:
    """The name that a file had before a commit that adds it, with the commit before."""
    row = repository.lines("rev-list", "--parents", "--max-count=1", "--end-of-options", commit)
    parents = row[0].split()[1:] if row else []
    for parent in parents:
        data = repository.run("diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--end-of-options", parent, commit)
        fields = data.decode(errors="surrogateescape").split("\0")
        for at in range(0, len(fields) - 2, 3):
            if fields[at + 2] == path:
                return fields[at + 1], parent
    return None


def _read_texts(repository: Repository, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The texts of a file at commits, as they are stored. Those with zero bytes are left out."""
    names = {place: _key(*place).encode(errors="surrogateescape") for place in places}
    if not names:
        return {}
    # Only names with line breaks need `-z`, which git has since 2.38.
    has_breaks = any(b"\n" in name for name in names.values())
    options = ("-z",) if has_breaks else ()
    data = b"".join(name + (b"\0" if has_breaks else b"\n") for name in names.values())
    sizes = repository.run("cat-file", *options, "--batch-check=%(objectsize)", data=data).split(b"\n")
    total = sum(int(size) for size in sizes if size.isdigit())
    if total > _MAX_BYTES:
        path = next(iter(names))[1]
        raise Unreadable(f"The versions of {path!r} in git are {format_size(total)}, too large to compare.")
    output = repository.run("cat-file", *options, "--batch", data=data)
    texts: dict[tuple[str, str], str] = {}
    at = 0
    for place, name in names.items():
        missing = name + b" missing\n"
        if output.startswith(missing, at):
            at += len(missing)
            continue
        end = output.find(b"\n", at)
        header = _HEADER.fullmatch(output[at:end])
        at = end + 1
        if header is not None:
            content = output[at : at + int(header["size"])]
            at += int(header["size"]) + 1
            if header["kind"] == b"blob" and b"\0" not in content:
                texts[place] = content.decode(errors="surrogateescape")
    return texts


class _CommitFacts(Struct):
    time: float = 0.0
    author: str = ""
    parents: list[str] = []
    is_by_claude: bool = False


def _read_facts(repository: Repository, commits: Iterable[str]) -> dict[str, _CommitFacts]:
    """When each commit was made, the name of its author, and its parents."""
    ids = list(commits)
    data = "".join(f"{commit}\n" for commit in ids).encode()
    output = repository.run("cat-file", "--batch", data=data) if ids else b""
    facts: dict[str, _CommitFacts] = {}
    at = 0
    for commit in ids:
        end = output.find(b"\n", at)
        size = int(output[at:end].rpartition(b" ")[2] or 0)
        headers, _, message = os.fsdecode(output[end + 1 : end + 1 + size]).partition("\n\n")
        at = end + size + 2
        fact = facts[commit] = _CommitFacts(is_by_claude=_CLAUDE_MARK.search(message) is not None)
        for line in headers.split("\n"):
            name, _, value = line.partition(" ")
            if name == "author":
                fact.author = value.partition(" <")[0]
            elif name == "parent":
                fact.parents.append(value)
            elif name == "committer":
                seconds = value.rpartition("> ")[2].split(" ")[0]
                fact.time = float(seconds) if seconds.isdigit() else 0.0
    return facts


def _missing_parents(repository: Repository, parents: dict[str, list[str]]) -> set[str]:
    """The commits whose parents the clone does not contain."""
    exists = repository.full_ids(parent for before in parents.values() for parent in before)
    return {commit for commit, before in parents.items() if any(exists[parent] is None for parent in before)}


def _parents_first(versions: list[CommittedVersion]) -> list[CommittedVersion]:
    """Sort versions so that each follows those before it, and otherwise by time."""
    by_id = {version.id: version for version in versions}
    done: set[str] = set()
    ordered: list[CommittedVersion] = []
    for version in sorted(versions, key=lambda version: version.time):
        stack = [version.id]
        while stack:
            id_ = stack[-1]
            waiting = [parent for parent in by_id[id_].parents if parent in by_id and parent not in done]
            if id_ in done or not waiting:
                stack.pop()
                if id_ not in done:
                    done.add(id_)
                    ordered.append(by_id[id_])
            else:
                stack += waiting
    return ordered
