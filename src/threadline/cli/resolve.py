"""Turn what a command line names into objects: archives, sessions, transcripts, agents, places and price files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from threadline import archive as archives
from threadline.archive import Archive
from threadline.cli import NoHome
from threadline.cli import output as out
from threadline.cli.options import NO_KEEP
from threadline.errors import Ambiguous, BadQuery, IndexBusy, NotFound
from threadline.files import find_escaped
from threadline.find import PROJECTS
from threadline.model.homes import Found, Home
from threadline.model.places import Place, ProblemKind, match_ids

if TYPE_CHECKING:
    from threadline.account import Rates
    from threadline.load import Session
    from threadline.model.session import Agent
    from threadline.model.session import Session as SessionData

_MAX_MESSAGES = 3
_DESKTOP_APP_FOLDER = "local-agent-mode-sessions"
_OFF_WORDS = frozenset({"0", "off", "no", "false"})


def open_archive(
    homes: Sequence[str],
    jobs: int | None = None,
    *,
    found: Iterable[Home] | None = None,
    refresh_bytes: int = archives.AUTO_REFRESH_BYTES,
    index: bool = True,
    quiet_bytes: int = out.QUIET_BYTES,
    require_home: bool = False,
) -> Archive:
    """Open the archive that a command asks for.

    Args:
        homes: The homes that `--home` names; if there are none, the default ones.
        jobs: Worker processes.
        found: Homes that were already looked up; `homes` is then ignored.
        refresh_bytes: How many bytes may be read to bring the index up to date.
        index: Whether to use the index. `THREADLINE_INDEX=off` also disables it; all is then read from transcripts.
        quiet_bytes: Indexing up to this many bytes shows no progress bar.
        require_home: Whether to raise `NoHome` if there is no home.

    Raises:
        NotFound: a home that `--home` names is neither on disk nor in the keep.
        NoHome: there is none, and `require_home` is set.
    """
    uses = index and uses_index()
    keep = uses_keep()
    progress = partial(out.archive_progress, quiet_bytes=quiet_bytes)
    if found is not None:
        return Archive(
            tuple(found),
            index=uses,
            jobs=jobs,
            progress=progress,
            max_refresh_bytes=refresh_bytes,
            without_keep=archives.is_keep_ignored(keep),
        )
    archive = archives.open(homes, index=uses, jobs=jobs, progress=progress, max_refresh_bytes=refresh_bytes, keep=keep)
    _print_keep_problems(archive.keep_problems)
    _print_missing_homes(archive.missing_homes)
    if require_home and not archive.homes:
        raise NoHome(out.no_home_message())
    return archive


def uses_keep() -> bool:
    """Whether to read sessions that exist only in the keep: unless `--no-keep` was given."""
    context = click.get_current_context(silent=True)
    return context is None or not context.meta.get(NO_KEEP)


def uses_index() -> bool:
    """Whether the index may be used."""
    return os.environ.get("THREADLINE_INDEX", "").strip().lower() not in _OFF_WORDS


def _print_keep_problems(problems: Sequence[str]) -> None:
    for problem in problems[:_MAX_MESSAGES]:
        out.print_message(problem)
    if len(problems) > _MAX_MESSAGES:
        out.print_message(f"{len(problems) - _MAX_MESSAGES:,} more problems: run `threadline keep verify`.")


def _print_missing_homes(homes: Sequence[str]) -> None:
    # The desktop app deletes a home together with the session it was created for.
    missing = [home for home in homes if _DESKTOP_APP_FOLDER not in home]
    if not missing:
        return
    more = f" and {len(missing) - _MAX_MESSAGES:,} more" if len(missing) > _MAX_MESSAGES else ""
    names = ", ".join(repr(home) for home in missing[:_MAX_MESSAGES]) + more
    subject = f"Home {names} no longer exists" if len(missing) == 1 else f"Homes {names} no longer exist"
    out.print_message(f"{subject}. Reading the copy in the keep.")


def ensure_index(archive: Archive, *, refresh: bool) -> bool:
    """Whether there is an index to query. It is refreshed first, unless another process is doing that."""
    path = archive.index
    if not refresh:
        if not path.exists():
            out.report_nothing(
                f"There is no index at {str(path)!r} yet. Run `threadline index refresh`, or omit --no-refresh."
            )
            return False
        archive.use_stale_index()
        return True
    try:
        archive.open_index()
    except IndexBusy as error:
        if not path.exists():
            raise
        out.print_message(f"{error} Using the index as it is.")
        archive.use_stale_index()
    return True


def program_words() -> list[str]:
    """The words that start this program from anywhere: its absolute path, or Python with the module."""
    import shutil  # noqa: PLC0415 - slow to import, and only instructions need it

    program = Path(sys.argv[0])
    if program.stem == "threadline" and program.is_file():
        return [str(program.absolute())]
    installed = shutil.which("threadline")
    return [installed] if installed is not None else [sys.executable, "-m", "threadline"]


def expand_path(text: str) -> Path:
    """A path, with `~` expanded, and bytes that are not text as `--json` writes them."""
    return find_escaped(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises if there is no such user


def is_file(path: str | Path) -> bool:
    """Whether there is such a file; False if that cannot be determined."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises if a parent folder cannot be entered


def is_folder(path: str | Path) -> bool:
    """Whether there is such a folder; False if that cannot be determined."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises if a parent folder cannot be entered


def find_at_path(path: str) -> Found:
    """Everything at a path: a transcript, a folder or a home.

    Raises:
        NotFound: there is nothing at that path.
        BadQuery: it is empty, or a file of a home that is not a transcript.
    """
    if not path:  # an unset shell variable, which must not mean the current folder
        raise BadQuery("The path is empty. Name a transcript, a folder or a home.")
    return open_archive((), found=()).at(path)  # a path needs no home


def find_by_name(name: str, homes: Sequence[str], *, whole_session: bool = False) -> tuple[Found, bool]:
    """Everything at a path, or the transcript of a session or agent by the start of its id, or of the `last` session.

    With `whole_session`, the id of a session also includes its agents' transcripts and its side files. The flag says
    whether the name was an id rather than a path.
    """
    try:
        return find_at_path(name), False
    except NotFound:
        archive = open_archive(homes, index=name == "last")
        if name == "last":
            found = find_at_path(str(archive.path(name)))
        else:
            transcript = archive.transcript(name)
            found = Found(transcript.home, (), (transcript,), (), ())
        return _add_session_files(found, archive) if whole_session else found, True


def _add_session_files(found: Found, archive: Archive) -> Found:
    """Add the agents' transcripts and the side files of a session to its main transcript."""
    main = found.transcripts[0]
    if not main.is_main:
        return found
    agents = archive.at(main.path, session=True).transcripts[1:]
    side_files = [file for home in archive.look() for file in home.side_files if file.session == main.session]
    return replace(found, transcripts=(main, *agents), side_files=tuple(side_files))


def transcript_path(name: str) -> Path | None:
    """The path that a session was named by; None if the name is an id or `last`.

    Raises:
        BadQuery: the file is not a transcript, or is a folder.
    """
    path = expand_path(name)
    if is_file(path):
        _check_is_transcript(path)
        return path
    if name.startswith(("/", "~", ".")) and is_folder(path):
        raise BadQuery(f"{name!r} is a folder. Name a transcript, the start of a session id, or `last`.")
    return path if path.suffix == ".jsonl" else None


def _check_is_transcript(path: Path) -> None:
    """Reject a file that has lines, of which none is a JSON object.

    Raises:
        BadQuery: it is not a transcript.
    """
    from threadline.parse import entries  # noqa: PLC0415 - loads the reader, which an id does not need

    has_lines = False
    for entry in entries(path):
        if entry.kind != "blank":
            has_lines = True
            is_unfinished_object = entry.kind == "pending" and entry.line.raw.lstrip().startswith(b"{")
            if is_unfinished_object or entry.kind not in {"damaged", "pending"}:
                return
    if has_lines:
        raise BadQuery(f"{str(path)!r} is not a transcript: no line is a JSON object.")


def session_path(name: str, homes: Sequence[str] = ()) -> Path:
    """The main transcript of a session, named by the start of its id, its path, or `last` (the first of `list`).

    Raises:
        NotFound: there is no such session.
        Ambiguous: several ids start like this; the message lists them.
    """
    path = transcript_path(name)
    if path is not None:
        return path
    with open_archive(homes) as archive:
        return archive.path(name)


def session_id(name: str | None, archive: Archive) -> str | None:
    """The id of a session of the archive, named as for `session_path`; None without a name.

    Raises:
        NotFound: there is no such session.
        Ambiguous: several ids start like this; the message lists them.
        BadQuery: the name is too short, or a transcript that is not in the archive.
    """
    if name is None or name == "last":
        return name
    path = transcript_path(name)
    if path is None:
        return archive.transcript(name).session or name
    if not archive.has_path(path):
        raise BadQuery(f"{str(path)!r} is in none of the homes. Add its home with --home.")
    transcripts = archive.at(path).transcripts
    return (transcripts[0].session if transcripts else None) or path.stem


def read_session(name: str, homes: Sequence[str] = ()) -> Session:
    """Read the session that `session_path` finds. In an archive, some of its files may exist only in the keep."""
    with open_session(name, homes) as (session, _archive):
        return session


@contextmanager
def open_session(name: str, homes: Sequence[str] = ()) -> Iterator[tuple[Session, Archive]]:
    """Read the session that `session_path` finds, and open the archive that it is in.

    The archive of a transcript that is in none of the homes is empty.
    """
    from threadline.load import read  # noqa: PLC0415 - loads the reader, which `list` and `usage` do without

    path = transcript_path(name)
    is_outside = path is not None and PROJECTS not in path.absolute().parts
    with open_archive(homes, found=() if is_outside else None, index=not is_outside) as archive:
        if path is None:
            session = archive.session(name)
        else:  # others may share messages with it
            session = archive.session_at(path) if archive.has_path(path) else read(path)
        _print_skipped(session)
        yield session, archive


def _print_skipped(session: SessionData) -> None:
    """Say which files of a session were not read because they are links or special files."""
    skipped = [problem for problem in session.file_problems if problem.kind is ProblemKind.SKIPPED]
    for problem in skipped[:_MAX_MESSAGES]:
        out.print_message(f"Not read: {problem.place.transcript!r} is {problem.message}.")
    if len(skipped) > _MAX_MESSAGES:
        out.print_message(f"Not read: {len(skipped) - _MAX_MESSAGES:,} more. `threadline doctor` lists them.")


def find_agent(session: SessionData, prefix: str) -> Agent:
    """An agent of a session by the start of its id; `main` is the main one.

    Raises:
        NotFound: there is no such agent.
        Ambiguous: several ids start like this.
    """
    if prefix == "main":
        return session.main
    names = match_ids(prefix.removeprefix("agent-"), (agent.id for agent in session.agents))
    matches = [agent for agent in session.agents if agent.id in names]
    if not matches:
        raise NotFound(f"The session has no agent {prefix!r}. `threadline tree SESSION` lists its agents.")
    if len(names) > 1:
        ids = ", ".join(str(agent.id) for agent in matches)
        raise Ambiguous(f"{len(matches)} agent ids start with {prefix!r}. Use more characters: {ids}.")
    return matches[0]


def parse_place(session: SessionData, text: str | None) -> Place | None:
    """The place that `FILE:LINE`, or a line number of the main transcript, means.

    Raises:
        BadQuery: the text is not a place.
    """
    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return Place(str(session.path or ""), int(text[:18]))
    place = Place.parse(text)
    if not place.line:
        raise BadQuery(f"{text!r} is not a place. Use FILE:LINE or LINE, for example session.jsonl:12 or 12.")
    return place


def read_rates(price_files: Sequence[str]) -> Rates | None:
    """Read the files of `--prices`; None without any, for the built-in prices."""
    if not price_files:
        return None
    from threadline.account import load_rates  # noqa: PLC0415 - the index has amounts at the built-in prices

    return load_rates(*price_files)
