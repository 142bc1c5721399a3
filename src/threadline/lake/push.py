"""Push this machine's sessions to a lake: what is new since the last push, filtered by the lake's policy.

A push compares each file with its version in the lake. If the file grew, only the new part is uploaded. Uploads are
collected into batches; a batch counts once its list is written, so an interrupted push continues where it stopped. The
list has the next number and is written with a conditional put: of two pushes of one machine at the same time, one
finds the number taken, reads what the other pushed, and continues with the rest.

What the policy forbids never leaves the machine: sessions are redacted before anything is uploaded, and a session that
cannot be redacted cleanly is not pushed.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from unicodedata import category

from msgspec import Struct
from msgspec.structs import replace

from threadline import __version__
from threadline.errors import BadQuery, Unreadable
from threadline.export import UnsafeExport, load_settings, redact_session
from threadline.files import escape_path
from threadline.find import SessionOwners, drop_shared_transcripts
from threadline.home_files import open_transcript
from threadline.keep import Machine
from threadline.lake.bronze import (
    DATA,
    LAKE_VERSION,
    POLICIES,
    Batch,
    FileVersion,
    Policy,
    Segment,
    SegmentReader,
    compress,
    decompress,
    encode_batch,
    forgotten_sessions,
    group_sources,
    keep_files,
    latest_versions,
    list_batches,
    make_id,
    read_batches,
    read_lake,
)
from threadline.model.homes import Found, ProjectNames, Transcript
from threadline.model.text import is_utf8
from threadline.parse import named_session
from threadline.redact import Level, Settings
from threadline.storage import Bucket

BATCH_BYTES = 64 * 1024 * 1024
"""A batch ends with the session that exceeds this."""
PERSON_VARIABLE = "THREADLINE_PERSON"
_PSEUDONYM_LENGTH = 8
_PART = re.compile(r"\A(agent-)?(.*?)(\.jsonl|\.meta\.json)?\Z", re.DOTALL)


class PolicyNotAccepted(BadQuery):
    """The user has not accepted the lake's policy yet."""

    def __init__(self, message: str, policy: Policy) -> None:
        super().__init__(message)
        self.policy = policy


class PushOptions(Struct, frozen=True):
    """What to push as whom.

    `projects` are parts of project paths and `sessions` starts of session ids to leave out. `accepted` is the policy
    that the user has accepted. With `repair`, sessions whose objects are missing or damaged are pushed again.
    """

    person: str
    projects: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    accepted: Policy | None = None
    repair: bool = False
    batch_bytes: int = BATCH_BYTES


class PushResult(Struct):
    """What a push did. `refused` are sessions that could not be redacted, with the reason; `problems` unread files."""

    machine: str
    person: str
    policy: Policy
    sessions: int = 0
    files: int = 0
    read_bytes: int = 0
    stored_bytes: int = 0
    batches: int = 0
    unchanged: int = 0
    excluded: int = 0
    forgotten: int = 0
    verified: int = 0
    refused: list[tuple[str, str]] = []
    problems: list[str] = []


class _LocalFile(Struct, frozen=True):
    r"""A file to push: where it is, and how the lake will call it. Bytes of names that are not text become `\xff`."""

    path: Path
    id: str
    home: str
    folder: str
    below: tuple[str, ...]
    project: str
    stamp: tuple[int, int]

    @property
    def relative(self) -> str:
        """Its path below the home."""
        return "/".join(("projects", self.folder, *self.below))


class _LocalSession(Struct, frozen=True):
    """The files of a session on this machine."""

    source: str
    session: str
    project: str
    files: tuple[_LocalFile, ...]


def default_person() -> str:
    """Who pushes unless another name is given: `THREADLINE_PERSON`, or the name of the user's account."""
    try:
        return os.environ.get(PERSON_VARIABLE, "").strip() or getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return "unknown"


def push_sessions(
    bucket: Bucket,
    found: Iterable[Found],
    machine: Machine,
    options: PushOptions,
    progress: Callable[[int], None] = lambda _done: None,
) -> PushResult:
    """Push what these homes contain and the lake lacks, then read back and compare what was uploaded.

    `progress` is called with the size of the original files of each session.

    Raises:
        NotFound: there is no lake.
        BadQuery: the name of the person is not text.
        PolicyNotAccepted: the lake has a policy that was not accepted yet.
        Unreadable: the storage refuses, or an uploaded object does not match.
    """
    push = _Push(bucket, machine, options)
    sessions = _local_sessions(found, machine, push.result.problems)
    push.run(sessions, progress)
    return push.result


class _Push:
    """One push: what the lake has from this machine, and the batch that is being collected."""

    def __init__(self, bucket: Bucket, machine: Machine, options: PushOptions) -> None:
        _check_person(options.person)
        self._bucket = bucket
        self._info = read_lake(bucket)
        self._machine = machine
        self._machine_id = _machine_id_in(bucket, machine, self._info.policy)
        self._options = options
        self._forgotten = forgotten_sessions(bucket)
        self._redaction = _redaction_settings(self._info.policy)
        self._batches: list[Batch] = []
        self._damaged: set[str] = set()
        """Objects that are damaged, or others of whose session are. What is pushed again replaces them."""
        self._pending: list[FileVersion] = []
        self._pending_objects: dict[str, bytes] = {}
        self._pending_bytes = 0
        self._uploaded: set[str] = set()
        self.result = PushResult(self._machine_id, options.person, self._info.policy)
        self._read_batches()
        self._check_policy()
        if options.repair:
            self._find_damaged()

    def run(self, sessions: Iterable[_LocalSession], progress: Callable[[int], None]) -> None:
        """Push the sessions."""
        waiting = list(sessions)
        while waiting:
            conflicts: list[_LocalSession] = []
            collected: list[_LocalSession] = []
            for session in waiting:
                if self._add(session):
                    collected.append(session)
                progress(sum(file.stamp[0] for file in session.files))
                if self._pending_bytes >= self._options.batch_bytes:
                    conflicts += self._finish_batch(collected)
                    collected = []
            conflicts += self._finish_batch(collected)
            waiting, progress = conflicts, lambda _done: None
        self._verify()
        self._delete_superseded()

    def _read_batches(self) -> None:
        numbers = list_batches(self._bucket, self._machine_id).get(self._machine_id, [])
        known = {batch.number for batch in self._batches}
        new = [number for number in numbers if number not in known]
        self._batches += read_batches(self._bucket, self._machine_id, new)
        self._batches.sort(key=lambda batch: batch.number)
        self._latest = {
            id_: file
            for id_, (_, file) in latest_versions(self._batches).items()
            if not any(segment.object in self._damaged for segment in file.segments)
        }

    def _find_damaged(self) -> None:
        """Find the sessions that cannot be read, so that they are pushed again.

        Nothing is deleted yet: this machine may no longer have a session, or the storage may have refused.
        """
        for source in group_sources(self._batches).values():
            try:
                for _file in SegmentReader(self._bucket).read(source):
                    pass
            except Unreadable:
                self._damaged |= {segment.object for file in source.files for segment in file.segments}
        self._read_batches()

    def _check_policy(self) -> None:
        policy = self._info.policy
        last = self._batches[-1].policy if self._batches else None
        if policy in {self._options.accepted, last}:
            return
        change = f"has changed its policy from {last} to {policy}" if last is not None else f"has the policy {policy}"
        raise PolicyNotAccepted(
            f"The lake {self._bucket.name!r} {change}: {POLICIES[policy]}. To push by it, use --accept {policy}.",
            policy,
        )

    def _add(self, session: _LocalSession) -> bool:
        """Add what is new of a session to the batch; return whether anything is."""
        if self._is_excluded(session):
            self.result.excluded += 1
            return False
        if make_id(session.session) in self._forgotten:
            self.result.forgotten += 1
            return False
        if not self._has_changed(session):
            self.result.unchanged += 1
            return False
        try:
            versions = self._transform(session)
        except (Unreadable, OSError) as error:
            self.result.problems.append(f"Session {session.session} was not pushed: {error}")
            return False
        except UnsafeExport:
            reason = "something that must not be shared would remain after redaction"
            self.result.refused.append((session.session, reason))
            return False
        return self._collect(session, versions)

    def _is_excluded(self, session: _LocalSession) -> bool:
        project = session.project.casefold()
        return any(text.casefold() in project for text in self._options.projects) or any(
            session.session.startswith(start) for start in self._options.sessions
        )

    def _has_changed(self, session: _LocalSession) -> bool:
        known = [self._latest.get(file.id) for file in session.files]
        return any(
            version is None or version.stamp != file.stamp for version, file in zip(known, session.files, strict=True)
        )

    def _transform(self, session: _LocalSession) -> list[tuple[FileVersion, bytes]]:
        """The files of a session with the bytes that the policy allows."""
        contents = [_read_original(file.path) for file in session.files]
        self.result.read_bytes += sum(map(len, contents))
        redact: Callable[[str], str] = str
        rename = redact
        if self._info.policy is not Policy.FULL:
            originals = [(file.relative, data) for file, data in zip(session.files, contents, strict=True)]
            redacted = redact_session(originals, self._redaction)
            contents = list(redacted.files)
            redact = redacted.redact_name
            if redact(session.session) != session.session:
                raise UnsafeExport("The session's id contains something that must not be shared.")
            rename = redact if self._info.policy is Policy.REDACTED else self._pseudonym
        return [
            (
                FileVersion(
                    id=file.id,
                    source=session.source,
                    session=session.session,
                    home=rename(file.home),
                    path="/".join(
                        ("projects", rename(file.folder), *(_redact_part(part, redact) for part in file.below))
                    ),
                    project=rename(file.project),
                    size=len(data),
                    digest=sha256(data).hexdigest(),
                    mtime_ns=file.stamp[1],
                    stamp=file.stamp,
                    segments=(),
                ),
                data,
            )
            for file, data in zip(session.files, contents, strict=True)
        ]

    def _pseudonym(self, name: str) -> str:
        """The same pseudonym for the same path, on every machine of this lake."""
        return f"path-{make_id(self._info.id, name)[:_PSEUDONYM_LENGTH]}"

    def _collect(self, session: _LocalSession, files: Sequence[tuple[FileVersion, bytes]]) -> bool:
        """Add the new bytes of a session to the batch as one object; return whether there are any."""
        parts: list[bytes] = []
        offset = 0
        pending: list[tuple[FileVersion, int, int]] = []
        for version, data in files:
            known = self._latest.get(version.id)
            if known is not None and known.stamp == version.stamp and known.digest == version.digest:
                continue
            start = known.size if known is not None and _is_prefix(known, data) else 0
            earlier = known.segments if known is not None and start else ()
            pending.append((replace(version, segments=earlier), offset, len(data) - start))
            parts.append(data[start:])
            offset += len(data) - start
        if not pending:
            return False
        content = b"".join(parts)
        path = f"{DATA}/{self._machine_id}/{session.source}/{sha256(content).hexdigest()}.zst"
        if content:
            self._pending_objects[path] = content
        for version, at, length in pending:
            segments = (*version.segments, Segment(path, at, length)) if length else version.segments
            self._pending.append(replace(version, segments=segments))
        self._pending_bytes += offset
        return True

    def _finish_batch(self, sessions: list[_LocalSession]) -> list[_LocalSession]:
        """Upload the batch, then its list; return the sessions to push again because another push came first."""
        if not self._pending:
            return []
        self._upload_objects()
        files = tuple(self._pending)
        self._pending, self._pending_bytes = [], 0
        number = self._batches[-1].number + 1 if self._batches else 1
        batch = Batch(
            LAKE_VERSION,
            self._info.id,
            self._machine_id,
            self._machine.label if self._info.policy is Policy.FULL else make_id(self._machine.id),
            self._options.person,
            number,
            self._info.policy,
            __version__,
            datetime.now(UTC).isoformat(timespec="seconds"),
            files,
        )
        if not self._bucket.create(batch.path, encode_batch(batch)):
            self._read_batches()
            return sessions
        batch = self._withdraw_forgotten(batch)
        files = batch.files
        self._batches.append(batch)
        self._latest |= {file.id: file for file in files}
        self.result.batches += 1
        self.result.files += len(files)
        self.result.sessions += len({file.source for file in files})
        return []

    def _upload_objects(self) -> None:
        def upload(path: str) -> int:
            packed = compress(self._pending_objects[path])
            if path in self._damaged:
                self._bucket.put(path, packed)
            else:
                self._bucket.create(path, packed)
            return len(packed)

        self.result.stored_bytes += sum(self._bucket.map(upload, self._pending_objects))
        self._uploaded |= self._pending_objects.keys()
        self._damaged -= self._pending_objects.keys()
        self._pending_objects = {}

    def _withdraw_forgotten(self, batch: Batch) -> Batch:
        """Remove the sessions from a batch that were forgotten during this push.

        `lake forget` marks a session before it reads the batches, and a push writes a batch before it reads the marks:
        one of them sees what the other did.
        """
        self._forgotten = forgotten_sessions(self._bucket)
        withdrawn = [file for file in batch.files if make_id(file.session) in self._forgotten]
        if not withdrawn:
            return batch
        batch = keep_files(batch, (file for file in batch.files if file not in withdrawn))
        self._bucket.put(batch.path, encode_batch(batch))
        objects = {segment.object for file in withdrawn for segment in file.segments}
        self._bucket.delete(sorted(objects))
        self._uploaded -= objects
        self.result.forgotten += len({file.source for file in withdrawn})
        return batch

    def _verify(self) -> None:
        """Read back what was uploaded."""

        def verify(path: str) -> None:
            data = decompress(self._bucket.get(path), path)
            if not path.endswith(f"/{sha256(data).hexdigest()}.zst"):
                self._bucket.delete([path])
                raise Unreadable(
                    f"The object {self._bucket.location(path)!r} was stored damaged. Run: threadline lake push"
                    f" {self._bucket.name} --repair"
                )

        self.result.verified += len(list(self._bucket.map(verify, sorted(self._uploaded))))

    def _delete_superseded(self) -> None:
        """Delete the objects of replaced versions.

        A redacted file is replaced when a secret becomes known later, and its old bytes must not stay.
        """
        referenced = {segment.object for batch in self._batches for file in batch.files for segment in file.segments}
        latest = (file for _, file in latest_versions(self._batches).values())
        needed = {segment.object for file in latest for segment in file.segments}
        self._bucket.delete(sorted(referenced - needed))


def _check_person(person: str) -> None:
    """Check the name of a person, which is stored with every row and printed in terminals."""
    if not is_utf8(person):
        raise BadQuery(f"The name '{escape_path(person)}' is not valid UTF-8. Use another: --person NAME.")
    if any(category(character) == "Cc" for character in person):
        raise BadQuery(f"The name {person!r} contains control characters. Use another: --person NAME.")


def _machine_id_in(bucket: Bucket, machine: Machine, policy: Policy) -> str:
    """The id of this machine in a lake. Its own contains the host name, so unless the policy is `full`, it is a hash.

    What was pushed before stays as it is, so a machine keeps its id if the policy changes.
    """
    ids = [machine.id, make_id(machine.id)]
    if policy is not Policy.FULL:
        ids.reverse()
    return next((id_ for id_ in ids if id_ in list_batches(bucket, id_)), ids[0])


def _redact_part(part: str, redact: Callable[[str], str]) -> str:
    """Redact a part of a path below a project. What says what the file is, stays: `agent-` and the suffix."""
    start, name, suffix = _PART.findall(part)[0]
    return f"{start}{redact(name)}{suffix}"


def _redaction_settings(policy: Policy) -> Settings:
    return load_settings(level=Level.METRICS if policy is Policy.METRICS else None)


def _is_prefix(known: FileVersion, data: bytes) -> bool:
    return len(data) >= known.size and sha256(data[: known.size]).hexdigest() == known.digest


def _read_original(path: Path) -> bytes:
    with os.fdopen(open_transcript(path), "rb") as file:
        return file.read()


def _local_sessions(found: Iterable[Found], machine: Machine, problems: list[str]) -> Iterator[_LocalSession]:
    """The sessions of homes, each with all its files, sorted."""
    homes = list(drop_shared_transcripts(found))
    problems += [f"{problem.place}: {problem.message}" for home in homes for problem in home.problems]
    transcripts = [transcript for home in homes for transcript in home.transcripts]
    projects = ProjectNames(homes)
    owners = SessionOwners(transcripts, lambda agent: named_session(agent.path))
    groups: dict[tuple[str, str, str], list[Transcript]] = {}
    for transcript in transcripts:
        main = owners.main_of(transcript) or transcript
        session = main.session or named_session(main.path) or main.path.stem
        group = groups.setdefault((main.home.name, main.folder, str(session)), [])
        group.insert(0 if transcript.is_main else len(group), transcript)
    for (home, folder, session), members in sorted(groups.items()):
        source = make_id(machine.id, home, folder, session)
        project = projects.of(members[0])
        files = [file for transcript in members for file in _files_of(transcript, source, project)]
        yield _LocalSession(source, escape_path(session), escape_path(project), tuple(files))


def _files_of(transcript: Transcript, source: str, project: str) -> Iterator[_LocalFile]:
    """A transcript, and the side file that describes its agent."""
    parts = transcript.path.parts
    at = len(parts) - parts[::-1].index(transcript.folder) if transcript.folder in parts else len(parts) - 1
    paths = [transcript.path, *([transcript.meta] if transcript.meta is not None else [])]
    for path in paths:
        below = (*parts[at:-1], path.name)
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # Claude Code deleted it since it was found
        yield _LocalFile(
            path,
            make_id(source, transcript.folder, *below),
            escape_path(transcript.home.name),
            escape_path(transcript.folder),
            tuple(map(escape_path, below)),
            escape_path(project),
            (status.st_size, status.st_mtime_ns),
        )
