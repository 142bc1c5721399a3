"""The Iceberg tables of a lake, and the commits that publish them.

A commit is an object, `silver/commits/000000001.json`, with the metadata of every table and the last batch of every
machine that the tables contain. It is written with a conditional put, so all tables change together, and of two builds
at the same time only one succeeds; the other starts again. This needs no server, and works alike in a folder and in a
bucket. Files that no commit refers to are orphans.

`register_tables` publishes the tables in a catalogue of pyiceberg as well (SQLite, Postgres, REST, Glue), for engines
that want one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from threadline import __version__
from threadline.errors import BadQuery, Unreadable
from threadline.lake.storage import Bucket
from threadline.lake.tables import TABLES, arrow_schema, table_columns
from threadline.model.tables import DECIMAL_DIGITS, DECIMAL_PLACES, import_library

SILVER, COMMITS = "silver", "silver/commits"
NAMESPACE = "threadline"
_COMMIT_VERSION = 1


class Commit(Struct, frozen=True):
    """A published state of the tables.

    `tables` has the URI of each table's metadata, `batches` the last batch of each machine that the tables contain.
    """

    version: int
    number: int
    parser_version: str
    built: str
    tables: dict[str, str]
    batches: dict[str, int]


_decode_commit = msgspec.json.Decoder(Commit).decode


def commit_path(number: int) -> str:
    """Where a commit is."""
    return f"{COMMITS}/{number:09d}.json"


def read_commit(bucket: Bucket) -> Commit | None:
    """The latest commit; None if nothing was built yet.

    Raises:
        Unreadable: it is damaged, or of a newer version.
    """
    paths = sorted(entry.path for entry in bucket.list(COMMITS))
    if not paths:
        return None
    try:
        commit = _decode_commit(bucket.get(paths[-1]))
    except msgspec.MsgspecError:
        raise Unreadable(
            f"{bucket.location(paths[-1])!r} is damaged. Delete it, then run `threadline lake build {bucket.uri}`."
        ) from None
    if commit.version > _COMMIT_VERSION:
        raise Unreadable(f"The tables of {bucket.uri!r} were built by a newer threadline. Update threadline.")
    return commit


class Catalogue:
    """The tables of a lake as of a commit. Changes are visible here at once, and to others once they are published."""

    def __init__(self, bucket: Bucket, commit: Commit | None) -> None:
        memory = import_library("pyiceberg.catalog.memory", "lake")
        self.bucket = bucket
        self._commit = commit
        self._catalog = memory.InMemoryCatalog("lake", warehouse=bucket.uri, **bucket.io_properties())
        self._catalog.create_namespace(NAMESPACE)
        self._tables: dict[str, Any] = {}

    def table(self, name: str) -> Any:
        """A table as a `pyiceberg.table.Table`. It is created if the lake does not have it yet."""
        if name not in self._tables:
            location = self._commit.tables.get(name) if self._commit is not None else None
            identifier = f"{NAMESPACE}.{name}"
            if location is not None:
                self._tables[name] = self._catalog.register_table(identifier, location)
            else:
                schema, spec = _iceberg_schema(name)
                self._tables[name] = self._catalog.create_table(
                    identifier,
                    schema,
                    location=self.bucket.location(f"{SILVER}/{name}"),
                    partition_spec=spec,
                    properties={"commit.manifest-merge.enabled": "true"},
                )
        return self._tables[name]

    def replace_rows(
        self, name: str, column: str, values: Sequence[Any], files: Sequence[str], properties: Mapping[str, str]
    ) -> None:
        """Remove the rows with these values in a column, and add files, in one transaction."""
        expressions = import_library("pyiceberg.expressions", "lake")
        table = self.table(name)
        with _quiet(), table.transaction() as transaction:
            if values and table.current_snapshot() is not None:
                transaction.delete(expressions.In(column, values), snapshot_properties=dict(properties))
            if files:
                locations = [self.bucket.location(path) for path in files]
                transaction.add_files(locations, snapshot_properties=dict(properties))

    def scan(self, name: str, columns: Sequence[str], row_filter: Any = None) -> Any:
        """Rows of a table as an Arrow table."""
        pa = import_library("pyarrow", "lake")
        table = self.table(name)
        if table.current_snapshot() is None:
            fields = [arrow_schema(name).field(column) for column in columns]
            return pa.schema(fields).empty_table()
        arguments = {"row_filter": row_filter} if row_filter is not None else {}
        with _quiet():
            return table.scan(selected_fields=tuple(columns), **arguments).to_arrow()

    def data_files(self, name: str) -> list[str]:
        """The paths of the files that a table consists of."""
        with _quiet():
            tasks = self.table(name).scan().plan_files() if self.table(name).current_snapshot() is not None else ()
            return sorted(filter(None, (self.bucket.path_of(task.file.file_path) for task in tasks)))

    def expire_snapshots(self) -> None:
        """Remove every state of the tables but the current one. The files of the others become orphans."""
        for name in TABLES:
            table = self.table(name)
            current = table.current_snapshot()
            old = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != current]
            if old:
                with _quiet():
                    table.maintenance.expire_snapshots().by_ids(old).commit()

    def publish(self, batches: Mapping[str, int], *, number: int | None = None) -> Commit | None:
        """Publish the tables as they are now; None if another build has published since.

        `number` is that of the commit, if it is not the next one.
        """
        number = number or (self._commit.number + 1 if self._commit is not None else 1)
        tables = {name: self.table(name).metadata_location for name in TABLES}
        built = datetime.now(UTC).isoformat(timespec="seconds")
        commit = Commit(_COMMIT_VERSION, number, __version__, built, tables, dict(batches))
        if not self.bucket.create(commit_path(number), msgspec.json.format(msgspec.json.encode(commit))):
            return None
        return commit


def referenced_files(catalogue: Catalogue) -> set[str]:
    """The paths of all files that the tables of a catalogue need: data, manifests and metadata."""
    paths: set[str | None] = set()
    bucket = catalogue.bucket
    for name in TABLES:
        table = catalogue.table(name)
        paths |= {bucket.path_of(table.metadata_location), *catalogue.data_files(name)}
        for snapshot in table.snapshots():
            paths.add(bucket.path_of(snapshot.manifest_list))
            paths |= {bucket.path_of(manifest.manifest_path) for manifest in snapshot.manifests(table.io)}
            paths |= {
                bucket.path_of(entry.data_file.file_path)
                for manifest in snapshot.manifests(table.io)
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            }
    return {path for path in paths if path is not None}


def register_tables(commit: Commit, name: str) -> list[str]:
    """Register the tables in a catalogue that pyiceberg is configured for; return their names.

    Raises:
        BadQuery: there is no such catalogue.
    """
    catalog_module = import_library("pyiceberg.catalog", "lake")
    errors = import_library("pyiceberg.exceptions", "lake")
    try:
        catalog = catalog_module.load_catalog(name)
    except (errors.RESTError, ValueError) as error:
        raise BadQuery(f"There is no catalogue {name!r}: {error}. Configure it in ~/.pyiceberg.yaml.") from None
    catalog.create_namespace_if_not_exists(NAMESPACE)
    registered = []
    for table, location in commit.tables.items():
        identifier = f"{NAMESPACE}.{table}"
        if catalog.table_exists(identifier):
            catalog.drop_table(identifier)
        catalog.register_table(identifier, location)
        registered.append(identifier)
    return registered


def _iceberg_schema(name: str) -> tuple[Any, Any]:
    """The Iceberg schema of a table, with comments, and its partition by day."""
    types = import_library("pyiceberg.types", "lake")
    partitioning = import_library("pyiceberg.partitioning", "lake")
    transforms = import_library("pyiceberg.transforms", "lake")
    schemas = import_library("pyiceberg.schema", "lake")
    iceberg_types = {
        "int64": types.LongType(),
        "float64": types.DoubleType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        "date32": types.DateType(),
        "timestamp": types.TimestamptzType(),
        "amount": types.DecimalType(DECIMAL_DIGITS, DECIMAL_PLACES),
    }
    columns = table_columns(name)
    fields = []
    for number, (column, kind, comment) in enumerate(columns, 1):
        type_ = (
            types.ListType(len(columns) + 1, types.StringType(), element_required=False)
            if kind == "keys"
            else iceberg_types[kind]
        )
        fields.append(types.NestedField(number, column, type_, required=False, doc=comment))
    day = next(field for field in fields if field.name == "day")
    spec = partitioning.PartitionSpec(
        partitioning.PartitionField(day.field_id, 1000, transforms.IdentityTransform(), "day")
    )
    return schemas.Schema(*fields), spec


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about deletes that match nothing and about settings of other libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def split_by_day(table: Any) -> Iterable[tuple[str, Any]]:
    """The rows of each day of an Arrow table."""
    compute = import_library("pyarrow.compute", "lake")
    for day in sorted(set(table.column("day").to_pylist())):
        yield day.isoformat(), table.filter(compute.equal(table.column("day"), day))
