"""Query a lake: usage across machines, and its tables as Parquet files for DuckDB.

`teams.toml` in the lake maps people to teams::

    [teams]
    search = ["alice", "bob"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.account import KEY_DESCRIPTIONS, Ledger, Rates, shipped_rates
from threadline.errors import BadQuery, NotFound
from threadline.index import unique_names
from threadline.lake.accounting import SIGHTING_COLUMNS, LakeLedger
from threadline.lake.bronze import read_lake
from threadline.lake.iceberg import Catalogue, Commit, read_commit, reports_storage_errors
from threadline.lake.tables import SIGHTINGS, TABLES, TEXTS, arrow_schema
from threadline.model.ledger import NONE, Charge
from threadline.model.tables import import_library
from threadline.model.text import is_utf8
from threadline.storage import Bucket

TEAMS_FILE = "teams.toml"
_TOKEN = re.compile(r"(?<![^\x00-\x7f])(?<![a-z0-9])[a-z0-9]+(?![a-z0-9])(?![^\x00-\x7f])")
_WORDS = re.compile(r'"([^"]+)"|(\S+)')
# The first word of a statement of Spark SQL, and those that only read.
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*|/\*.*?\*/)*(\w*)", re.DOTALL)
_READING_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "EXPLAIN", "DESCRIBE", "DESC", "SHOW"})
# `WITH` and `FROM` can also begin a statement that inserts. What is quoted or a comment is not a part of the statement.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_INSERT = re.compile(r"\bINSERT\s+(?:INTO|OVERWRITE)\b", re.IGNORECASE)
_NO_WORD = r"[^a-z0-9\x{80}-\x{10FFFF}]"
_LAKE_KEYS = {"person": "who pushed the transcript", "team": "the team of that person"}
"""Keys of `lake usage --by` that a lake adds."""


class LakeUsage(Struct, frozen=True):
    """The ledger of a lake, and the functions for its own keys, to pass to `Ledger.by`."""

    ledger: Ledger
    keys: Mapping[str, Callable[[Charge], str]]


def require_commit(bucket: Bucket) -> Commit:
    """The latest commit.

    Raises:
        NotFound: there is no lake, or nothing was built yet.
    """
    read_lake(bucket)
    commit = read_commit(bucket)
    if commit is None:
        raise NotFound(f"The tables of {bucket.name!r} are not built yet. Run: threadline lake build {bucket.name}")
    return commit


@reports_storage_errors
def read_usage(bucket: Bucket, rates: Rates | None = None, *, commit: Commit | None = None) -> LakeUsage:
    """Read the ledger of all machines, as of a commit or the latest one: every message counted once.

    Raises:
        NotFound: nothing was built yet.
        Unreadable: the storage refuses.
    """
    catalogue = Catalogue(bucket, commit or require_commit(bucket))
    lake = LakeLedger(catalogue.scan(SIGHTINGS, SIGHTING_COLUMNS).to_pylist(), rates or shipped_rates())
    teams = read_teams(bucket)
    keys: dict[str, Callable[[Charge], str]] = {
        "person": lambda charge: str(lake.row_of(charge)["person"]),
        "team": lambda charge: teams.get(lake.row_of(charge)["person"], NONE),
        "transcript": lambda charge: str(lake.row_of(charge)["transcript"]),
    }
    return LakeUsage(lake.ledger, keys)


def check_keys(names: Iterable[str]) -> None:
    """Check the keys of a report.

    Raises:
        BadQuery: one is unknown.
    """
    choices = (*_LAKE_KEYS, *KEY_DESCRIPTIONS)
    for name in names:
        if name not in choices:
            raise BadQuery(f"Unknown key {name!r}. Group by {', '.join(choices)}.")


def read_teams(bucket: Bucket) -> dict[str, str]:
    """The team of each person; empty if the lake has no teams.

    Raises:
        BadQuery: the file is invalid.
    """
    try:
        return parse_teams(bucket.get(TEAMS_FILE))
    except NotFound:
        return {}


def write_teams(bucket: Bucket, data: bytes) -> dict[str, str]:
    """Store the teams in the lake, and return them.

    Raises:
        BadQuery: the file is invalid.
    """
    teams = parse_teams(data)
    bucket.put(TEAMS_FILE, data)
    return teams


def parse_teams(data: bytes) -> dict[str, str]:
    r"""The team of each person.

    >>> parse_teams(b'[teams]\nsearch = ["alice", "bob"]')
    {'alice': 'search', 'bob': 'search'}

    Raises:
        BadQuery: it is not TOML, or a person is in two teams.
    """
    try:
        teams = tomllib.loads(data.decode()).get("teams")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadQuery(f"The file is not valid TOML: {error}.") from None
    if not isinstance(teams, dict) or not all(isinstance(people, list) for people in teams.values()):
        raise BadQuery('The file has no teams. Write [teams], then lines such as search = ["alice", "bob"].')
    of_person: dict[str, str] = {}
    for team, people in teams.items():
        for person in people:
            if of_person.setdefault(str(person), team) != team:
                raise BadQuery(f"{person!r} is in two teams, {of_person[str(person)]!r} and {team!r}. Choose one.")
    return of_person


@reports_storage_errors
def table_files(
    bucket: Bucket, names: Iterable[str], folder: Path, commit: Commit | None = None
) -> dict[str, list[Path]]:
    """The Parquet files of tables, as of a commit or the latest one: those of a bucket are downloaded to a folder.

    Raises:
        NotFound: nothing was built yet.
    """
    parquet = import_library("pyarrow.parquet", "lake")
    catalogue = Catalogue(bucket, commit or require_commit(bucket))
    files: dict[str, list[Path]] = {}
    for name in names:
        stored = catalogue.data_paths(name)
        if not stored:
            files[name] = [folder / f"{name}.parquet"]
            parquet.write_table(arrow_schema(name).empty_table(), files[name][0])
        elif bucket.is_local:
            files[name] = [bucket.folder / path for path in stored]
        else:
            copies = {path: folder / f"{name}-{number}.parquet" for number, path in enumerate(stored)}
            for _ in bucket.map(lambda pair: pair[1].write_bytes(bucket.get(pair[0])), copies.items()):
                pass
            files[name] = list(copies.values())
    return files


@reports_storage_errors
def query_on_engine(
    bucket: Bucket, query: str, engine: str, parameters: Sequence[object] = ()
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run Spark SQL on an engine, over the tables that the query names; return the columns and the rows.

    Raises:
        BadQuery: there is no such engine, or the statement does not only read.
        NotFound: nothing was built yet.
        Unreadable: the engine cannot be reached, or cannot read the lake.
    """
    from threadline.lake.spark import query_on_spark  # noqa: PLC0415 - an optional engine

    first = _FIRST_WORD.match(query)
    word = first[1].upper() if first is not None else ""
    if _INSERT.search(_QUOTED.sub(" ", query)):
        word = "INSERT"
    if word not in _READING_WORDS:
        raise BadQuery(f"The lake is read-only ({word or 'no statement'}). Only SELECT statements are allowed.")
    catalogue = Catalogue(bucket, require_commit(bucket))
    names = [name for name in TABLES if name in set(re.findall(r"\w+", query.lower()))]
    files = {name: [bucket.location(path) for path in catalogue.data_paths(name)] for name in names}
    empty = [name for name, paths in files.items() if not paths]
    if empty:
        raise NotFound(f"The table {empty[0]!r} is empty.")
    columns, rows = query_on_spark(engine, files, query, parameters)
    return unique_names(columns), rows


class TextSearch(Struct, frozen=True):
    """What to search for: texts that contain all `words`.

    A word matches whole words in any case: `rate` matches `Rate-limit`, but not `separate`. A word with other signs in
    it, such as `parse_timestamp` or `rate limit`, has to occur like this. Scripts without spaces match anywhere.
    `people` are those who pushed it; None is anybody. `project` is a part of the project's path.
    """

    words: tuple[str, ...]
    people: tuple[str, ...] | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 20

    def __post_init__(self) -> None:
        """Check the words.

        Raises:
            BadQuery: they are not UTF-8.
        """
        check_encoding(*self.words, *(self.people or ()), self.project or "")

    @property
    def phrases(self) -> list[str]:
        """The words in lower case."""
        return [word.lower() for word in self.words]

    @property
    def tokens(self) -> list[str]:
        """The whole words that a text has to contain: runs of ASCII letters and digits that touch no other letters."""
        return list(dict.fromkeys(token for phrase in self.phrases for token in _TOKEN.findall(phrase)))

    def snippet(self, text: str, length: int) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The part of a text around the first match, on one line, and the start and end of each match in it."""
        patterns = [
            *(rf"(?<![^\W_]){re.escape(token)}(?![^\W_])" for token in self.tokens),
            *(re.escape(phrase) for phrase in self.phrases if not phrase.isascii()),
        ]
        pattern = re.compile("|".join(patterns) or r"\b\B", re.IGNORECASE)
        first = pattern.search(text)
        start = max(0, (first.start() if first is not None else 0) - length // 3)
        line = ("…" if start else "") + " ".join(text[start : start + 2 * length].split())
        line = line if len(line) <= length else f"{line[: length - 1]}…"
        return line, tuple(match.span() for match in pattern.finditer(line))


def check_encoding(*texts: str) -> None:
    """Check the texts of a query.

    Raises:
        BadQuery: an argument was not UTF-8.
    """
    if not all(map(is_utf8, texts)):
        raise BadQuery("The query is not valid UTF-8.")


def parse_words(query: str) -> tuple[str, ...]:
    """The words of a query; a phrase in double quotes is one.

    >>> parse_words('retry "rate limit"')
    ('retry', 'rate limit')
    """
    return tuple(filter(None, ((quoted or word).strip(' "') for quoted, word in _WORDS.findall(query))))


def search_query(search: TextSearch, matches: str = "regexp_matches") -> tuple[str, list[object]]:
    """The SELECT that finds the texts of a search, newest first, and its parameters.

    `matches` is the function that matches a regular expression: this one in DuckDB, `regexp_like` in Spark.
    """
    conditions = ["contains(lower(text), ?)"] * len(search.phrases)
    parameters: list[object] = list(search.phrases)
    for token in search.tokens:
        conditions.append(f"{matches}(lower(text), ?)")
        parameters.append(f"(^|{_NO_WORD}){token}($|{_NO_WORD})")
    if search.people is not None:
        marks = ", ".join("?" * len(search.people)) or "NULL"
        conditions.append(f"person IN ({marks})")
        parameters += search.people
    for condition, value in (
        ("contains(lower(project), ?)", search.project.lower() if search.project is not None else None),
        ("timestamp >= ?", search.since),
        ("timestamp <= ?", search.until),
    ):
        if value is not None:
            conditions.append(condition)
            parameters.append(value)
    return f"{select_texts(TEXTS, ' AND '.join(conditions))} LIMIT ?", [*parameters, search.limit]


def select_texts(table: str, conditions: str) -> str:
    """The SELECT that finds texts by conditions, newest first, in the SQL of DuckDB, Spark and ClickHouse.

    Of an entry and its copies, there is one: the original, or else the first by path and machine.
    """
    columns = "timestamp, person, project, session, transcript, line, field, text"
    return (
        f"SELECT {columns} FROM (SELECT {columns}, row_number() OVER (PARTITION BY"  # noqa: S608 - our own words
        " coalesce(uuid, CAST(entry_id AS String)), field ORDER BY is_copy, transcript, machine) AS number"
        f" FROM {table} WHERE {conditions}) AS matches WHERE number = 1"
        " ORDER BY timestamp DESC NULLS LAST, transcript, line, field"
    )
