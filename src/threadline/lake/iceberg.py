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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import wraps
from itertools import compress, count
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from threadline import __version__
from threadline.errors import BadQuery, Unreadable
from threadline.lake.bronze import make_id
from threadline.lake.tables import (
    SILVER,
    STATISTICS_COLUMNS,
    TABLES,
    Removal,
    arrow_schema,
    column_names,
    encode_rows,
    sort_rows,
    table_columns,
)
from threadline.model.tables import DECIMAL_DIGITS, DECIMAL_PLACES, import_library
from threadline.storage import Bucket

COMMITS = f"{SILVER}/commits"
NAMESPACE = "threadline"
_COMMIT_VERSION = 1
_MAX_ERROR = 300
_EPOCH = date(1970, 1, 1)
_MAX_ATTEMPTS = 20
_KEPT_SNAPSHOTS = 20
_MAX_MANIFESTS = 20
_SMALL_BYTES = 8 * 1024 * 1024
_MAX_SMALL_FILES = 8
"""The number of small files of a day from which on they are merged."""
_P = ParamSpec("_P")
_R = TypeVar("_R")


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


def _latest_commit_path(bucket: Bucket) -> str | None:
    """Where the latest commit is; None if nothing was built yet."""
    return max((entry.path for entry in bucket.list(COMMITS)), default=None)


def read_commit(bucket: Bucket) -> Commit | None:
    """The latest commit; None if nothing was built yet.

    Raises:
        Unreadable: it is damaged, or of a newer version.
    """
    path = _latest_commit_path(bucket)
    if path is None:
        return None
    try:
        commit = _decode_commit(bucket.get(path))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Unreadable(
            f"{bucket.location(path)!r} is damaged. Delete it, then run `threadline lake build {bucket.name}`."
        ) from None
    if commit.version > _COMMIT_VERSION:
        raise Unreadable(f"The tables of {bucket.name!r} were built by a newer threadline. Update threadline.")
    return commit


def reports_storage_errors(function: Callable[Concatenate[Bucket, _P], _R]) -> Callable[Concatenate[Bucket, _P], _R]:
    """Decorate a function of a bucket: errors of the storage in pyiceberg and pyarrow become sentences."""

    @wraps(function)
    def report(bucket: Bucket, /, *args: _P.args, **options: _P.kwargs) -> _R:
        try:
            return function(bucket, *args, **options)
        except FileNotFoundError as error:
            if error.filename is not None:
                raise
            reason = " ".join(str(error).split())[:_MAX_ERROR].rstrip(".")
            raise Unreadable(
                f"A file of the tables is missing: {reason}. If `lake forget` is running, try again. Otherwise, run:"
                f" threadline lake build {bucket.name} --rebuild"
            ) from None
        except OSError as error:
            # Not of the storage: an error about another file, or a reader that closed the pipe.
            if error.filename is not None or isinstance(error, BrokenPipeError):
                raise
            raise bucket.refusal(error) from None

    return report


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
                    properties=_table_properties(name, schema),
                )
        return self._tables[name]

    def replace_rows(
        self, name: str, files: Sequence[str], properties: Mapping[str, str], removal: Removal | None = None
    ) -> None:
        """Remove rows, and add files, in one transaction. Files without rows to remove stay as they are."""
        replaced: list[Any] = []
        remaining: list[str] = []
        if removal is not None and removal.values:
            replaced = self._files_with(name, removal)
            paths = [self._write_remaining(name, data_file, removal) for data_file in replaced]
            remaining = [path for path in paths if path is not None]
        self._replace_files(name, replaced, remaining, files, properties)

    def _files_with(self, name: str, removal: Removal) -> list[Any]:
        """The files that have rows to remove."""
        compute = import_library("pyarrow.compute", "lake")
        pa = import_library("pyarrow", "lake")
        values = pa.array(removal.values, arrow_schema(name).field(removal.column).type)

        def has_rows(data_file: Any) -> bool:
            column = self._read_file(name, data_file.file_path, [removal.column]).column(0)
            return bool(compute.any(compute.is_in(column, values)).as_py())

        data_files = self.data_files(name, removal.days)
        return list(compress(data_files, self.bucket.map(has_rows, data_files)))

    def _write_remaining(self, name: str, data_file: Any, removal: Removal) -> str | None:
        """Write the rows of a file that are not removed to another file; return its path, or None without rows."""
        compute = import_library("pyarrow.compute", "lake")
        pa = import_library("pyarrow", "lake")
        rows = self._read_file(name, data_file.file_path)
        values = pa.array(removal.values, rows.schema.field(removal.column).type)
        remaining = rows.filter(compute.invert(compute.is_in(rows.column(removal.column), values)))
        if not remaining.num_rows:
            return None
        return self._write_file(name, remaining, make_id(data_file.file_path, *map(str, removal.values)))

    def _write_file(self, name: str, rows: Any, id_: str) -> str:
        day = rows.column("day")[0].as_py()
        path = f"{SILVER}/{name}/data/day={day}/{id_}.parquet"
        self.bucket.put(path, encode_rows(name, rows))
        return path

    def _read_file(self, name: str, location: str, columns: Sequence[str] | None = None) -> Any:
        """The rows of a file, or some columns of it."""
        pa = import_library("pyarrow", "lake")
        parquet = import_library("pyarrow.parquet", "lake")
        names = columns if columns is not None else arrow_schema(name).names
        schema = pa.schema([arrow_schema(name).field(column) for column in names])
        with self.table(name).io.new_input(location).open() as stream:
            return parquet.ParquetFile(stream).read(columns=names).select(names).cast(schema)

    def _replace_files(
        self,
        name: str,
        replaced: Sequence[Any],
        replacements: Sequence[str],
        added: Sequence[str],
        properties: Mapping[str, str],
    ) -> None:
        """Replace files by others with the same rows, or some of them, and add files."""
        if not replaced and not added:
            return
        errors = import_library("pyiceberg.exceptions", "lake")
        for attempt in count(1):
            try:
                self._commit_files(name, replaced, replacements, added, properties)
            except errors.ValidationException:
                # pyiceberg evaluates manifests in threads that share a variable, and then may miss a file to delete.
                # It notices that before anything is changed.
                if attempt == _MAX_ATTEMPTS:
                    raise
            else:
                return

    def _commit_files(
        self,
        name: str,
        replaced: Sequence[Any],
        replacements: Sequence[str],
        added: Sequence[str],
        properties: Mapping[str, str],
    ) -> None:
        with _quiet(), self.table(name).transaction() as transaction:
            if replaced:
                with transaction.update_snapshot(snapshot_properties=dict(properties)).overwrite() as snapshot:
                    for data_file in replaced:
                        snapshot.delete_data_file(data_file)
                    for data_file in self._describe_files(name, replacements):
                        snapshot.append_data_file(data_file)
            if added:
                with transaction.update_snapshot(snapshot_properties=dict(properties)).merge_append() as snapshot:
                    for data_file in self._describe_files(name, added):
                        snapshot.append_data_file(data_file)

    def _describe_files(self, name: str, paths: Sequence[str]) -> Iterator[Any]:
        """New files of a table as `pyiceberg.manifest.DataFile`.

        `Transaction.add_files` does the same. It also compares the schema of every file with the table's, which takes
        longer than all the rest: these files have the schema that they were written with.
        """
        io = import_library("pyiceberg.io.pyarrow", "lake")
        parquet = import_library("pyarrow.parquet", "lake")
        manifest = import_library("pyiceberg.manifest", "lake")
        table = self.table(name)
        schema = table.schema()
        plan = io.compute_statistics_plan(schema, table.properties)
        columns = io.parquet_path_to_id_mapping(schema)

        def read_footer(path: str) -> tuple[int, Any]:
            with table.io.new_input(self.bucket.location(path)).open() as stream:
                return stream.size(), parquet.read_metadata(stream)

        for path, (size, footer) in zip(paths, self.bucket.map(read_footer, paths), strict=True):
            statistics = io.data_file_statistics_from_parquet_metadata(footer, plan, columns)
            yield manifest.DataFile.from_args(
                content=manifest.DataFileContent.DATA,
                file_path=self.bucket.location(path),
                file_format=manifest.FileFormat.PARQUET,
                partition=statistics.partition(table.spec(), schema),
                file_size_in_bytes=size,
                sort_order_id=None,
                spec_id=table.metadata.default_spec_id,
                equality_ids=None,
                key_metadata=None,
                **statistics.to_serialized_dict(),
            )

    def compact(self, name: str, days: Collection[date] | None = None) -> list[str]:
        """Merge the small files of days that have many, of all days by default; return the paths of the new files."""
        small: dict[int, list[Any]] = {}
        for data_file in self.data_files(name, days):
            if data_file.file_size_in_bytes < _SMALL_BYTES:
                small.setdefault(data_file.partition[0], []).append(data_file)
        groups = [
            sorted(files, key=lambda file: str(file.file_path))
            for files in small.values()
            if len(files) >= _MAX_SMALL_FILES
        ]
        merged = []
        for files in groups:  # one after the other: each may take much memory
            rows = sort_rows(self.read_files(name, [file.file_path for file in files], column_names(name)))
            merged.append(self._write_file(name, rows, make_id(*(file.file_path for file in files))))
        replaced = [file for files in groups for file in files]
        self._replace_files(name, replaced, merged, [], {"threadline.compacted": str(len(replaced))})
        return merged

    def scan(self, name: str, columns: Sequence[str], days: Collection[date] | None = None) -> Any:
        """The rows of a table, or those of some days, as an Arrow table."""
        return self.read_files(name, [file.file_path for file in self.data_files(name, days)], columns)

    def find_rows(
        self,
        name: str,
        columns: Sequence[str],
        column: str,
        values: Collection[Any],
        days: Collection[date] | None = None,
    ) -> list[dict[str, Any]]:
        """The rows with one of these values in a column, of all days or some. Only they are in memory together."""
        if not values:
            return []
        compute = import_library("pyarrow.compute", "lake")
        pa = import_library("pyarrow", "lake")
        allowed = pa.array(list(values), arrow_schema(name).field(column).type)

        def find(data_file: Any) -> list[dict[str, Any]]:
            rows = self._read_file(name, data_file.file_path, columns)
            return list(rows.filter(compute.is_in(rows.column(column), allowed)).to_pylist())

        return [row for rows in self.bucket.map(find, self.data_files(name, days)) for row in rows]

    def read_files(self, name: str, locations: Sequence[str], columns: Sequence[str]) -> Any:
        """The rows of some files of a table as an Arrow table."""
        pa = import_library("pyarrow", "lake")
        schema = pa.schema([arrow_schema(name).field(column) for column in columns])
        parts = self.bucket.map(lambda location: self._read_file(name, location, columns), locations)
        return pa.concat_tables([schema.empty_table(), *parts])

    def data_files(self, name: str, days: Collection[date] | None = None) -> list[Any]:
        """The files of a table, or of some days, as `pyiceberg.manifest.DataFile`.

        Not by a scan with a filter: that takes a hundred times longer for many days.
        """
        table = self.table(name)
        snapshot = table.current_snapshot()
        numbers = {(day - _EPOCH).days for day in days} if days is not None else None
        if snapshot is None or (numbers is not None and not numbers):
            return []
        return [
            entry.data_file
            for manifest in snapshot.manifests(table.io)
            if numbers is None or _may_contain(manifest, numbers)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            if numbers is None or entry.data_file.partition[0] in numbers
        ]

    def data_paths(self, name: str) -> list[str]:
        """The paths of all files of a table, sorted."""
        return sorted(filter(None, (self.bucket.path_of(file.file_path) for file in self.data_files(name))))

    def expire_snapshots(self) -> None:
        """Remove every state of the tables but the current one. The files of the others become orphans."""
        for name in TABLES:
            table = self.table(name)
            if table.current_snapshot() is None:
                continue
            with _quiet():
                # Manifests list deleted files, with the least and greatest value of each column. The next state of a
                # table does without them.
                table.append(arrow_schema(name).empty_table())
                current = table.current_snapshot()
                old = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != current]
                table.maintenance.expire_snapshots().by_ids(old).commit()

    def has_deleted_files(self, name: str) -> bool:
        """Whether the metadata of a table still describes files that were deleted from it."""
        table = self.table(name)
        return any(
            entry.status == entry.status.DELETED
            for snapshot in table.snapshots()
            for manifest in snapshot.manifests(table.io)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        )

    def check_version(self) -> None:
        """Check that this version of threadline can add rows to the tables.

        Raises:
            Unreadable: another version has built them.
        """
        if self._commit is None:
            return
        columns = {name: column_names(name) for name in self._commit.tables if name in TABLES}
        stored = {name: [field.name for field in self.table(name).schema().fields] for name in columns}
        if self._commit.parser_version != __version__ or len(columns) < len(TABLES) or stored != columns:
            raise Unreadable(
                f"The tables of {self.bucket.name!r} were built by another version of threadline"
                f" ({self._commit.parser_version}; this is {__version__}). They can still be queried. To change them,"
                f" build everything again: threadline lake build {self.bucket.name} --rebuild"
            )

    def limit_snapshots(self) -> None:
        """Expire snapshots if there are many: each commit writes the list of all of them again."""
        for name in TABLES:
            table = self.table(name)
            snapshots = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
            if len(snapshots) > 2 * _KEPT_SNAPSHOTS:
                old = [snapshot.snapshot_id for snapshot in snapshots[:-_KEPT_SNAPSHOTS]]
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
        # `forget` deletes earlier commits. If two ran meanwhile, the one with this number was free again.
        if _latest_commit_path(self.bucket) != commit_path(number):
            self.bucket.delete([commit_path(number)])
            return None
        return commit


def referenced_files(catalogue: Catalogue) -> set[str]:
    """The paths of all files that the tables of a catalogue need: data, manifests and metadata."""
    locations: set[str] = set()
    for name in TABLES:
        table = catalogue.table(name)
        locations.add(table.metadata_location)
        for snapshot in table.snapshots():
            locations.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                if manifest.manifest_path not in locations:
                    locations.add(manifest.manifest_path)
                    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                    locations |= {entry.data_file.file_path for entry in entries}
    return {path for path in map(catalogue.bucket.path_of, locations) if path is not None}


def register_tables(commit: Commit, name: str) -> list[str]:
    """Register the tables in a catalogue that pyiceberg is configured for; return their names.

    Raises:
        BadQuery: there is no such catalogue.
        Unreadable: it cannot be reached, or refuses.
    """
    catalog_module = import_library("pyiceberg.catalog", "lake")
    errors = import_library("pyiceberg.exceptions", "lake")
    database_errors = import_library("sqlalchemy.exc", "lake")
    try:
        return _register_tables(commit, catalog_module.load_catalog(name))
    except (errors.RESTError, errors.NotInstalledError, ImportError, OSError, database_errors.SQLAlchemyError) as error:
        reason = " ".join(str(error).split())[:_MAX_ERROR].rstrip(".")
        raise Unreadable(
            f"The catalogue {name!r} cannot be used: {reason}. The lake itself is built; run the command again to"
            " register its tables."
        ) from None
    except ValueError as error:
        raise BadQuery(f"There is no catalogue {name!r}: {error}. Configure it in ~/.pyiceberg.yaml.") from None


def _register_tables(commit: Commit, catalog: Any) -> list[str]:
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
    element_types = {"keys": types.StringType(), "days": types.DateType()}
    columns = table_columns(name)
    numbers = count(len(columns) + 1)
    fields = []
    for number, (column, kind, comment) in enumerate(columns, 1):
        type_ = iceberg_types.get(kind)
        if type_ is None:
            type_ = types.ListType(next(numbers), element_types[kind], element_required=False)
        fields.append(types.NestedField(number, column, type_, required=False, doc=comment))
    day = next(field for field in fields if field.name == "day")
    spec = partitioning.PartitionSpec(
        partitioning.PartitionField(day.field_id, 1000, transforms.IdentityTransform(), "day")
    )
    return schemas.Schema(*fields), spec


def _may_contain(manifest: Any, days: Collection[int]) -> bool:
    """Whether a manifest may list files of these days, which are numbers since 1970."""
    (day,) = manifest.partitions or (None,)
    if day is None or day.lower_bound is None or day.upper_bound is None:
        return True
    first, last = (int.from_bytes(bound, "little", signed=True) for bound in (day.lower_bound, day.upper_bound))
    return any(first <= number <= last for number in days)


def _table_properties(name: str, schema: Any) -> dict[str, str]:
    columns = STATISTICS_COLUMNS & set(arrow_schema(name).names)
    return {
        "write.metadata.metrics.default": "none",
        **{f"write.metadata.metrics.column.{column}": "truncate(16)" for column in sorted(columns)},
        # Columns of files are found by their names.
        "schema.name-mapping.default": schema.name_mapping.model_dump_json(),
        "commit.manifest-merge.enabled": "true",
        "commit.manifest.min-count-to-merge": str(_MAX_MANIFESTS),
        "write.metadata.previous-versions-max": str(_KEPT_SNAPSHOTS),
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about deletes that match nothing and about settings of other libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
