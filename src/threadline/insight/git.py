"""Read git repositories without running anything that a repository or its configuration names.

A repository may come from anybody. Hooks, pagers, external diffs, filters, fsmonitor, credential helpers and signature
checks are switched off, no lock is taken, no network protocol is allowed, and every command has a time limit.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from threadline.errors import NotFound, Unreadable

SECONDS = 30.0
"""How long one git command may take."""
_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.pager=cat"),
    *("-c", "core.quotePath=false"),
    *("-c", "diff.external="),
    *("-c", "log.showSignature=false"),
    *("-c", "log.mailmap=false"),  # it may be a file that blocks, and nobody needs it
    *("-c", f"core.attributesFile={os.devnull}"),
    *("-c", f"core.excludesFile={os.devnull}"),
    *("-c", "protocol.allow=never"),
    *("-c", "credential.helper="),
    *("-c", "color.ui=false"),
    *("-c", "safe.directory=*"),  # nothing of the repository is run, so its owner does not matter
)
_COMMIT_ID = re.compile(r"[0-9a-fA-F]{7,64}")
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
}


class Repository:
    """A git repository, by the root of its working tree."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, path: str | Path) -> Repository:
        """The repository that contains a path.

        Raises:
            NotFound: there is no such path, or it is in no repository.
            Unreadable: git is not installed, or refuses to read it.
        """
        folder = Path(path).expanduser().absolute()
        if not folder.exists():
            raise NotFound(f"There is no folder {str(folder)!r}.")
        start = folder if folder.is_dir() else folder.parent
        try:
            root = Repository(start).run("rev-parse", "--show-toplevel")
        except Unreadable as error:
            if "not a git repository" in str(error):
                raise NotFound(f"{str(folder)!r} is not in a git repository.") from error
            raise
        return cls(Path(os.fsdecode(root.rstrip(b"\n"))))

    def run(self, *arguments: str, data: bytes | None = None, seconds: float = SECONDS) -> bytes:
        """Run a git command that only reads, and return what it prints. `data` is its input.

        Raises:
            Unreadable: it failed, or took too long.
        """
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            done = subprocess.run(  # noqa: S603 - a list of arguments, no shell
                ["git", *_OPTIONS, *arguments],  # noqa: S607 - the git that the user has
                cwd=self.root,
                env=environment | _ENVIRONMENT,
                input=data if data is not None else b"",
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except FileNotFoundError as error:
            raise Unreadable("git is not installed.") from error
        except subprocess.TimeoutExpired as error:
            raise Unreadable(f"`git {arguments[0]}` took longer than {seconds:.0f}s in {str(self.root)!r}.") from error
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise Unreadable(f"`git {arguments[0]}` failed in {str(self.root)!r}: {message or done.returncode}")
        return done.stdout

    def lines(self, *arguments: str, data: bytes | None = None) -> list[str]:
        """Run a git command and return the lines that it prints."""
        text = self.run(*arguments, data=data).decode(errors="replace")
        return text.removesuffix("\n").split("\n") if text else []

    @cached_property
    def files(self) -> frozenset[str]:
        """The paths of all tracked files, from the root."""
        names = self.run("ls-files", "-z").decode(errors="surrogateescape").split("\0")
        return frozenset(name for name in names if name)

    def full_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """The full id of each commit, by the id that was asked for; None if there is no such commit, or several.

        Ids are at least seven hexadecimal digits. Anything else, such as the name of a branch, is not a commit.
        """
        names = dict.fromkeys(ids)
        valid = [id_ for id_ in names if _COMMIT_ID.fullmatch(id_)]
        return names | {
            id_: commit
            for id_, commit in zip(valid, self._resolve(valid), strict=True)
            if commit is not None and commit.startswith(id_.lower())  # not a branch with such a name
        }

    @cached_property
    def head(self) -> str | None:
        """The id of the commit that is checked out; None if there are no commits."""
        return self._resolve(["HEAD"])[0]

    def _resolve(self, names: Sequence[str]) -> list[str | None]:
        """The id of the commit that each name means. Names contain no white space."""
        if not names:
            return []
        data = "".join(f"{name}^{{commit}}\n" for name in names).encode()
        answers = self.lines("cat-file", "--batch-check=%(objectname) %(objecttype)", data=data)
        return [answer.split()[0] if answer.endswith(" commit") else None for answer in answers]

    def contained(self, commits: Sequence[str]) -> frozenset[str]:
        """Those of these commits that a branch, a tag or HEAD contains."""
        if not commits:
            return frozenset()
        data = "".join(f"{commit}\n" for commit in commits).encode()
        # HEAD may be detached, and then no branch contains it.
        head = "HEAD" if self.head is not None else "--tags"
        unreachable = self.lines("rev-list", "--stdin", "--not", "--all", head, data=data)
        return frozenset(commits) - frozenset(unreachable)
