"""Query a lake: usage across machines, and its tables as Parquet files for DuckDB.

`teams.toml` in the lake maps people to teams::

    [teams]
    search = ["alice", "bob"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from threadline.account import KEY_DESCRIPTIONS, Ledger, Rates, shipped_rates
from threadline.errors import BadQuery, NotFound
from threadline.lake.accounting import SIGHTING_COLUMNS, LakeLedger
from threadline.lake.catalogue import Catalogue, Commit, read_commit
from threadline.lake.storage import Bucket
from threadline.lake.tables import SIGHTINGS, arrow_schema
from threadline.model.ledger import NONE, Charge
from threadline.model.tables import import_library

TEAMS_FILE = "teams.toml"
LAKE_KEYS = {"person": "who pushed the transcript", "team": "the team of that person"}
"""Keys of `lake usage --by` that a lake adds."""


class LakeUsage(Struct, frozen=True):
    """The ledger of a lake, and the functions for its own keys, to pass to `Ledger.by`."""

    ledger: Ledger
    keys: Mapping[str, Callable[[Charge], str]]


def require_commit(bucket: Bucket) -> Commit:
    """The latest commit.

    Raises:
        NotFound: nothing was built yet.
    """
    commit = read_commit(bucket)
    if commit is None:
        raise NotFound(f"The tables of {bucket.uri!r} are not built yet. Run: threadline lake build {bucket.uri}")
    return commit


def read_usage(bucket: Bucket, rates: Rates | None = None) -> LakeUsage:
    """Read the ledger of all machines: every message counted once.

    Raises:
        NotFound: nothing was built yet.
        Unreadable: the storage refuses.
    """
    catalogue = Catalogue(bucket, require_commit(bucket))
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
    choices = (*LAKE_KEYS, *KEY_DESCRIPTIONS)
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
        raise BadQuery(f"The file of teams is not TOML: {error}.") from None
    if not isinstance(teams, dict) or not all(isinstance(people, list) for people in teams.values()):
        raise BadQuery('The file of teams has no teams. Write [teams], then lines such as search = ["alice", "bob"].')
    of_person: dict[str, str] = {}
    for team, people in teams.items():
        for person in people:
            if of_person.setdefault(str(person), team) != team:
                raise BadQuery(f"{person!r} is in two teams, {of_person[str(person)]!r} and {team!r}. Choose one.")
    return of_person


def table_files(bucket: Bucket, names: Iterable[str], folder: Path) -> dict[str, list[Path]]:
    """The Parquet files of tables, on this machine: those of a bucket are downloaded to a folder.

    Raises:
        NotFound: nothing was built yet.
    """
    parquet = import_library("pyarrow.parquet", "lake")
    catalogue = Catalogue(bucket, require_commit(bucket))
    files: dict[str, list[Path]] = {}
    for name in names:
        paths = []
        for number, path in enumerate(catalogue.data_files(name)):
            if bucket.is_local:
                paths.append(bucket.folder / path)
                continue
            copy = folder / f"{name}-{number}.parquet"
            copy.write_bytes(bucket.get(path))
            paths.append(copy)
        if not paths:
            empty = folder / f"{name}.parquet"
            parquet.write_table(arrow_schema(name).empty_table(), empty)
            paths = [empty]
        files[name] = paths
    return files


def search_query(
    words: Iterable[str], *, person: str | None, project: str | None, limit: int
) -> tuple[str, list[object]]:
    """The SELECT that finds the texts with all of these words, newest first, and its parameters."""
    parameters: list[object] = [word.lower() for word in words]
    conditions = ["contains(lower(text), ?)"] * len(parameters)
    if person is not None:
        conditions.append("person = ?")
        parameters.append(person)
    if project is not None:
        conditions.append("contains(lower(project), ?)")
        parameters.append(project.lower())
    query = (
        "SELECT timestamp, person, project, session, transcript, line, field, text FROM texts"  # noqa: S608 - the conditions are constants, all values are parameters
        f" WHERE {' AND '.join(conditions)} ORDER BY timestamp DESC NULLS LAST, transcript, line LIMIT ?"
    )
    return query, [*parameters, limit]
