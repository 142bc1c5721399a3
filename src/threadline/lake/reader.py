"""Read a lake for its pages: usage, the list of sessions and search from its tables, sessions from bronze.

A reader has a private folder, which it deletes when it is closed. Sessions are downloaded into it when somebody opens
them, as homes that an `Archive` reads like any other. With a session come the sessions that share messages with it, so
that every message is counted where the whole lake counts it, and those with summaries of it, so that it has the same
title as in the list.

**What is valid for how long.** Everything is of one commit. Whether there is a new one is checked at most every
`CHECK_SECONDS`; then the folder is emptied, so that nothing is shown that was forgotten.
"""

# ruff: noqa: S608 - statements are built from our own names, all values are parameters

from __future__ import annotations

import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic
from typing import Any, Self, TypeVar, cast

from msgspec import Struct

from threadline.errors import NotFound, Unreadable
from threadline.files import AtomicFile, escape_path
from threadline.lake.bronze import (
    LakeInfo,
    MachineStatus,
    Policy,
    SegmentReader,
    Source,
    entry_ids,
    group_sources,
    list_batches,
    read_batches,
    read_lake,
    read_machines,
    resolve_session,
)
from threadline.lake.clickhouse import CHDB, ChdbStore
from threadline.lake.iceberg import Commit
from threadline.lake.queries import (
    LakeUsage,
    TextSearch,
    query_on_engine,
    read_teams,
    read_usage,
    require_commit,
    search_query,
    table_files,
)
from threadline.lake.tables import SIGHTINGS, TEXTS
from threadline.lake.titles import decode_summaries
from threadline.model.homes import LAKE_SOURCE, Home
from threadline.model.tables import import_library
from threadline.storage import Bucket

CHECK_SECONDS = 5.0
"""How often the lake is asked for a new commit."""
_TABLES = ("sessions", "charges", TEXTS, SIGHTINGS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORD = re.compile(r"\w+")
_MAX_FIGURES = 64
_POLICY_NOTES = {Policy.METRICS: "pushed without text: only lengths are known", Policy.REDACTED: "redacted"}
_Figure = TypeVar("_Figure")
_MAX_SHARING = 200
"""How many sessions are downloaded for one at most, because they share messages."""


class LakeSessionFilter(Struct, frozen=True):
    """Selects sessions of a lake. All that is given has to match; `text` is a part of a title or the start of an id.

    `people` are those who pushed it; None is anybody. `sort` is a key of `SESSION_ORDERS`.
    """

    text: str | None = None
    people: tuple[str, ...] | None = None
    project: str | None = None
    model: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    sort: str = "time"


class LakeSession(Struct, frozen=True):
    """A session of a lake, as its most complete copy has it. `people` pushed it. `amount` is what it owns."""

    session: str
    title: str
    people: tuple[str, ...]
    copies: int
    project: str
    first: datetime | None
    last: datetime | None
    model: str | None
    turns: int
    agents: int
    amount: Decimal | None
    unpriced: int
    tokens: int


class LakeOrigin(Struct, frozen=True):
    """Where a session of a lake comes from: who pushed it, the name of the machine, and by which policy."""

    person: str
    machine: str
    policy: Policy

    @property
    def note(self) -> str:
        """What a reader of the session should know about its policy."""
        return _POLICY_NOTES.get(self.policy, "")


class LakeHit(Struct, frozen=True):
    """A text that a search found: where it is, who pushed it, and the text. `title` is that of its session."""

    timestamp: datetime | None
    person: str
    project: str
    session: str
    transcript: str
    line: int
    field: str
    text: str
    title: str | None = None

    @property
    def agent(self) -> str | None:
        """The agent whose transcript it is in; None for the main transcript."""
        name = self.transcript.rpartition("/")[2].removesuffix(".jsonl")
        return name.removeprefix("agent-") if name.startswith("agent-") else None


SESSION_ORDERS = {
    "time": "last DESC NULLS LAST, session",
    "amount": "amount DESC NULLS LAST, tokens DESC, session",
    "turns": "turns DESC, session",
    "agents": "agents DESC, session",
    "duration": "last - first DESC NULLS LAST, session",
    "title": "lower(title), session",
    "project": "lower(project), session",
}
"""What a list of sessions can be sorted by."""

# The most complete copy of each session, with who pushed any, and with what the session owns.
_SESSIONS = """
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY session ORDER BY entries DESC, last DESC NULLS LAST, source) AS rank
    FROM sessions WHERE session IS NOT NULL
),
pushed AS (
    SELECT session, list(DISTINCT person ORDER BY person) AS people, count(*) AS copies FROM sessions GROUP BY session
),
spent AS (
    SELECT session, sum(amount) AS amount, count(*) FILTER (amount IS NULL) AS unpriced,
        sum(input + output + cache_write_5m + cache_write_1h + cache_read)::BIGINT AS tokens,
        list(DISTINCT lower(model)) AS models
    FROM charges GROUP BY session
),
listed AS (
    SELECT session, coalesce(title, '') AS title, people, copies, coalesce(project, '') AS project, first, last, model,
        coalesce(turns, 0) AS turns, coalesce(agents, 0) AS agents, amount, coalesce(unpriced, 0) AS unpriced,
        coalesce(tokens, 0) AS tokens, coalesce(models, []) AS models
    FROM ranked JOIN pushed USING (session) LEFT JOIN spent USING (session) WHERE rank = 1
)
"""
_SESSION_COLUMNS = (
    "session, title, people, copies, project, epoch_us(first), epoch_us(last), model, turns, agents, amount, unpriced,"
    " tokens"
)


class LakeReader:
    """Reads a lake. Close it when done, or use it in a `with` statement. Threads may share it."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self._lock = threading.Lock()
        try:
            self.folder = Path(mkdtemp(prefix="threadline-lake-"))  # private, whatever the umask is
        except OSError as error:
            raise Unreadable(f"Cannot create a temporary folder ({error.strerror or error}).") from None
        self._state: LakeState | None = None
        self._checked_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete everything that was downloaded."""
        with self._lock:
            if self._state is not None:
                self._state.close()
                self._state = None
            rmtree(self.folder, ignore_errors=True)

    @property
    def state(self) -> LakeState:
        """The lake as of its latest commit.

        Raises:
            NotFound: there is no lake, or nothing was built yet.
            Unreadable: the storage refuses.
        """
        with self._lock:
            if self._state is None or self._checked_at < monotonic() - CHECK_SECONDS:
                commit = require_commit(self.bucket)
                if self._state is None or self._state.commit != commit:
                    # Threads that still use the previous state keep it. The last one closes it.
                    self._state = LakeState(self.bucket, commit, self.folder)
                self._checked_at = monotonic()
            return self._state

    def homes(self) -> tuple[Home, ...]:
        """The homes with the sessions that have been downloaded, in the order in which a lake counts messages."""
        state = self._state
        return state.homes if state is not None else ()

    def fetch(self, name: str) -> str:
        """Download a session by its id, the start of its id, or the name that this method returned.

        Returns its name for an `Archive`: the id, or the path of its transcript if several machines pushed a session
        with this id; then it is that of the most complete copy, and among equal ones, of the one that is counted.

        Raises:
            NotFound: the lake has no such session.
            Ambiguous: it has several whose ids start like this.
            Unreadable: an object is missing or damaged.
        """
        while True:
            state = self.state
            fetched = state.fetch(name)
            if self._state in {state, None}:  # else, the folder was emptied meanwhile
                return fetched

    def origin(self, transcript: Path) -> LakeOrigin | None:
        """Where a downloaded transcript comes from."""
        state = self._state
        return state.origins.get(transcript) if state is not None else None


def search_lake(bucket: Bucket, search: TextSearch, engine: str = "local") -> list[LakeHit]:
    """The texts of a lake that match, newest first.

    `engine` is `local` (DuckDB), `sail`, `sc://HOST:PORT`, or `chdb:FOLDER` with the tables that `ChdbStore` loaded.

    Raises:
        BadQuery: there is no such engine, or nothing was loaded.
        NotFound: nothing was built yet.
        Unreadable: the storage refuses, or the engine fails.
    """
    if engine.startswith(CHDB):
        with ChdbStore(Path(engine.removeprefix(CHDB))) as store:
            return [LakeHit(**row) for row in store.search(search)]
    if engine != "local":
        query, values = search_query(search, matches="regexp_like")
        _, rows = query_on_engine(bucket, query, engine, values)
        return [LakeHit(row[0].astimezone(UTC) if row[0] is not None else None, *row[1:]) for row in rows]
    with LakeReader(bucket) as reader:
        return reader.state.search(search)


class LakeState:
    """A lake as of one commit, with what was downloaded of it."""

    def __init__(self, bucket: Bucket, commit: Commit, folder: Path) -> None:
        self.commit = commit
        self.info: LakeInfo = read_lake(bucket)
        self.teams: dict[str, str] = read_teams(bucket)
        self._bucket = bucket
        self._lock = threading.Lock()
        self._folder = Path(mkdtemp(prefix=f"commit-{commit.number}-", dir=folder))
        self._tables = self._folder / "tables"
        self._tables.mkdir()
        self._connection = _connect(self._folder)
        self.close = weakref.finalize(self, _close, self._connection, self._folder)
        """Forget everything. Otherwise, that is done when nobody uses the state any more."""
        self._loaded: set[str] = set()
        self._usage: LakeUsage | None = None
        self._machines: list[MachineStatus] | None = None
        self._figures: OrderedDict[Hashable, Any] = OrderedDict()
        self.homes: tuple[Home, ...] = ()
        """The homes of what was downloaded."""
        self._downloads: dict[str, threading.Lock] = {}
        """A lock for each session, held while it is downloaded. Others can be read or downloaded meanwhile."""
        self._names: dict[str, str] = {}
        """The names of the sessions that were downloaded, by their ids and by these names."""
        self._sources: dict[str, dict[str, Source]] = {}
        self._homes: dict[tuple[str, str], Home] = {}
        self._downloaded: set[str] = set()
        self._policies: dict[tuple[str, int], Policy] = {}
        self._summaries: dict[str, dict[str, str]] | None = None
        """The sources with summaries of each entry, and their machines."""
        self._home_ranks: dict[tuple[str, str], int] | None = None
        self.origins: dict[Path, LakeOrigin] = {}
        """Where each downloaded file comes from."""

    @property
    def usage(self) -> LakeUsage:
        """The ledger of all machines."""
        with self._lock:
            if self._usage is None:
                self._usage = read_usage(self._bucket, commit=self.commit)
            return self._usage

    @property
    def machines(self) -> list[MachineStatus]:
        """What each person has pushed from each machine."""
        with self._lock:
            if self._machines is None:
                self._machines = read_machines(self._bucket, self.commit.batches)
            return self._machines

    def cached(self, compute: Callable[[], _Figure], *key: Hashable) -> _Figure:
        """Return a figure, computed once for each key."""
        with self._lock:
            if key in self._figures:
                return cast("_Figure", self._figures[key])
        figure = compute()
        with self._lock:
            self._figures[key] = figure
            if len(self._figures) > _MAX_FIGURES:
                self._figures.popitem(last=False)
        return figure

    def people_of(self, team: str) -> tuple[str, ...]:
        """The people of a team."""
        return tuple(person for person, name in self.teams.items() if name == team)

    def sessions(self, selection: LakeSessionFilter, *, after: int = 0, limit: int) -> tuple[list[LakeSession], int]:
        """The sessions that match, and how many there are in total."""
        where, values = _session_conditions(selection)
        (total,) = self._rows(f"{_SESSIONS} SELECT count(*) FROM listed {where}", values)[0]
        order = SESSION_ORDERS[selection.sort]
        rows = self._rows(
            f"{_SESSIONS} SELECT {_SESSION_COLUMNS} FROM listed {where} ORDER BY {order} LIMIT ? OFFSET ?",
            [*values, limit, after],
        )
        return [_lake_session(row) for row in rows], total

    def values(self, column: str, limit: int) -> list[tuple[str, int]]:
        """The values of a column of sessions, and how many sessions have each, most first."""
        rows = self._rows(
            f"SELECT {column}, count(DISTINCT session) AS number FROM sessions WHERE {column} IS NOT NULL"
            f" GROUP BY {column} ORDER BY number DESC, {column} LIMIT ?",
            [limit],
        )
        return [(str(value), number) for value, number in rows]

    def titles(self, sessions: Collection[str]) -> dict[str, str]:
        """The titles of sessions that have one."""
        return {
            session: title
            for session, title in self._rows(
                "SELECT session, arg_max(title, entries) FROM sessions WHERE list_contains(?, session)"
                " GROUP BY session",
                [list(sessions)],
            )
            if title
        }

    def known_sessions(self, sessions: Collection[str]) -> frozenset[str]:
        """Those of these sessions that the lake can show."""
        rows = self._rows(f"SELECT DISTINCT session FROM {SIGHTINGS} WHERE list_contains(?, session)", [list(sessions)])
        return frozenset(session for (session,) in rows)

    def search(self, search: TextSearch) -> list[LakeHit]:
        """The texts that match, newest first."""
        query, values = search_query(search)
        rows = self._rows(query.replace("SELECT timestamp", "SELECT epoch_us(timestamp)", 1), values)
        titles = self.titles({row[3] for row in rows})
        return [
            LakeHit(_moment(when), person, project, session, transcript, line, field, text, titles.get(session))
            for when, person, project, session, transcript, line, field, text in rows
        ]

    def fetch(self, name: str) -> str:
        """Download a session; see `LakeReader.fetch`."""
        if name not in self._names:
            rows = self._rows(
                f"SELECT DISTINCT session FROM {SIGHTINGS} WHERE starts_with(lower(session), lower(?))", [name]
            )
            session = resolve_session(name, (session for (session,) in rows))
            with self._downloads.setdefault(session, threading.Lock()):
                if session not in self._names:
                    fetched = self._download_session(session)
                    with self._lock:
                        self.homes = tuple(self._homes[key] for key in sorted(self._homes))
                    self._names |= {session: fetched, fetched: fetched}
            name = session
        return self._names[name]

    def _download_session(self, session: str) -> str:
        """Download a session, with the sessions that share messages with it; return its name for an `Archive`."""
        rows = self._rows(f"SELECT DISTINCT source, machine FROM {SIGHTINGS} WHERE session = ?", [session])
        own = [self._source(machine, source) for source, machine in rows]
        own_ids = [source.id for source in own]
        counted = dict(
            self._rows("SELECT source, count(*) FROM charges WHERE list_contains(?, source) GROUP BY source", [own_ids])
        )
        best = max(own, key=lambda source: (source.size, counted.get(source.id, 0), source.id))
        self._download([*own, *self._sharing(own)])
        self._download(self._summarizing(own))
        mains = {source.id: self._main_of(source) for source in own}
        paths = list(filter(None, mains.values()))
        main = mains[best.id]
        return session if len(paths) <= 1 or main is None else escape_path(main)

    def _source(self, machine: str, id_: str) -> Source:
        if machine not in self._sources:
            numbers = list_batches(self._bucket, machine).get(machine, [])
            batches = read_batches(self._bucket, machine, numbers)
            self._policies |= {(machine, batch.number): batch.policy for batch in batches}
            self._sources[machine] = group_sources(batches)
        source = self._sources[machine].get(id_)
        if source is None:
            raise NotFound("This session is no longer in the lake. Run `threadline lake build` to update the tables.")
        return source

    def _sharing(self, own: Sequence[Source]) -> list[Source]:
        """The other sessions that share messages with these, directly or through others."""
        known = {source.id: source.machine for source in own}
        new = list(known)
        while new and len(known) < _MAX_SHARING:
            rows = self._rows(
                f"SELECT DISTINCT source, machine FROM {SIGHTINGS} WHERE list_has_any(keys, (SELECT list(DISTINCT key)"
                f" FROM (SELECT unnest(keys) AS key FROM {SIGHTINGS} WHERE list_contains(?, source))))",
                [new],
            )
            new = [source for source, _ in rows if source not in known]
            known |= dict(rows)
        others = [id_ for id_ in known if all(id_ != source.id for source in own)]
        return [self._source(known[id_], id_) for id_ in others[:_MAX_SHARING]]

    def _summarizing(self, own: Sequence[Source]) -> list[Source]:
        """The sessions whose summaries name entries of these downloaded ones."""
        if self._summaries is None:
            named: dict[str, dict[str, str]] = {}
            for source, machine, packed in self._rows(
                f"SELECT source, machine, summaries FROM {SIGHTINGS} WHERE summaries IS NOT NULL", []
            ):
                for summary in decode_summaries(packed):
                    named.setdefault(summary.leaf, {})[source] = machine
            self._summaries = named
        if not self._summaries:
            return []
        entries = {
            id_
            for source in own
            for file in source.files
            for id_ in entry_ids(file.path_below(self._homes[file.home, source.machine].path).read_bytes())
        }
        sources = {
            id_: machine for leaf in entries & self._summaries.keys() for id_, machine in self._summaries[leaf].items()
        }
        return [self._source(sources[id_], id_) for id_ in sorted(sources)[:_MAX_SHARING]]

    def _download(self, sources: Iterable[Source]) -> None:
        """Download sources, several at a time."""
        for _ in self._bucket.map(self._download_source, sources):
            pass

    def _download_source(self, source: Source) -> None:
        """Write the files of a source where Claude Code would have, unless it was downloaded with another session.

        Threads may do this at the same time, also for one source: files are replaced by equal ones.
        """
        if source.id in self._downloaded:
            return
        for file, data in SegmentReader(self._bucket).read(source):
            key = file.home, source.machine
            if key not in self._homes:
                # Among summaries of the same entry, the last one by path counts.
                folder = self._folder / "homes" / f"{self._rank_of(key):06d}"
                folder.mkdir(parents=True, exist_ok=True)
                self._homes[key] = Home(folder.resolve(), LAKE_SOURCE)
            path = file.path_below(self._homes[key].path)
            policy = self._policies[source.machine, source.batch]
            self.origins[path] = LakeOrigin(source.person, source.label, policy)
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with AtomicFile(path.parent, owner=".download", durable=False) as copy:
                copy.write(data)
                copy.commit(path.name, mtime_ns=file.mtime_ns)
        self._downloaded.add(source.id)

    def _rank_of(self, home: tuple[str, str]) -> int:
        """The position of a home of a machine among all of the lake."""
        if self._home_ranks is None:
            rows = self._rows(f"SELECT DISTINCT home, machine FROM {SIGHTINGS} ORDER BY home, machine", [])
            self._home_ranks = {(name, machine): rank for rank, (name, machine) in enumerate(rows)}
        return self._home_ranks[home]

    def _main_of(self, source: Source) -> Path | None:
        """The main transcript of a downloaded source."""
        for file in source.files:
            path = file.path_below(self._homes[file.home, source.machine].path)
            if path.stem == source.session and path.suffix == ".jsonl":
                return path
        return None

    def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            self._load_tables(set(_WORD.findall(query)))
            with self._connection.cursor() as cursor:
                rows: list[tuple[Any, ...]] = cursor.execute(query, list(values)).fetchall()
        except import_library("duckdb", "lake").Error as error:
            reason = str(error).partition("\n")[0].rstrip(".!")
            raise Unreadable(
                f"The tables of {self._bucket.uri!r} cannot be read: {reason}. They may have changed meanwhile: try"
                f" again. If that does not help, run: threadline lake build {self._bucket.uri} --rebuild"
            ) from None
        return rows

    def _load_tables(self, names: Collection[str]) -> None:
        """Make tables available to queries; those of a bucket are downloaded."""
        with self._lock:
            missing = [name for name in _TABLES if name in names and name not in self._loaded]
            if not missing:
                return
            for name, paths in table_files(self._bucket, missing, self._tables, self.commit).items():
                files = [str(path) for path in paths]
                self._connection.read_parquet(files, hive_partitioning=False).create_view(name)
                self._loaded.add(name)


def _close(connection: Any, folder: Path) -> None:
    connection.close()
    rmtree(folder, ignore_errors=True)


def _connect(folder: Path) -> Any:
    duckdb = import_library("duckdb", "lake")
    settings = {"autoinstall_known_extensions": "false", "temp_directory": str(folder / "spilled")}
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def _session_conditions(selection: LakeSessionFilter) -> tuple[str, list[Any]]:
    conditions: dict[str, list[Any]] = {}
    if selection.text is not None:
        text = selection.text.lower()
        conditions["(contains(lower(title), ?) OR starts_with(lower(session), ?))"] = [text, text]
    if selection.people is not None:
        conditions["list_has_any(people, ?::VARCHAR[])"] = [list(selection.people)]
    if selection.project is not None:
        conditions["contains(lower(project), ?)"] = [selection.project.lower()]
    if selection.model is not None:
        conditions["len(list_filter(models, lambda model: contains(model, ?))) > 0"] = [selection.model.lower()]
    if selection.since is not None:
        conditions["last >= ?"] = [selection.since]
    if selection.until is not None:
        conditions["coalesce(first, last) <= ?"] = [selection.until]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return where, [value for values in conditions.values() for value in values]


def _lake_session(row: Sequence[Any]) -> LakeSession:
    values = dict(zip(LakeSession.__struct_fields__, row, strict=True))
    values |= {"people": tuple(values["people"]), "first": _moment(values["first"]), "last": _moment(values["last"])}
    return LakeSession(**values | {"amount": _without_zeros(values["amount"])})


def _without_zeros(amount: Decimal | None) -> Decimal | None:
    """An amount without the zeros that its column has at the end."""
    return Decimal(f"{amount.normalize():f}") if amount is not None else None


def _moment(microseconds: int | None) -> datetime | None:
    return _EPOCH + timedelta(microseconds=microseconds) if microseconds is not None else None
