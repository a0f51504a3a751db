"""Creates tables, by writing the first version of their Delta log.

Everything is checked before that one file is written, and it is written only if it is absent: a create
either happens or leaves nothing behind, also when two sessions create the same table at the same time. It
needs neither Delta's builder nor its jar for Spark Connect, so that it is the same for local and remote
sessions.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import IntegerType, StructField, StructType

from lakekit import properties as props
from lakekit.catalog.folders import is_occupied, same_place
from lakekit.errors import AlreadyExistsError, InvalidOptionError, PrimaryKeyError, SchemaMismatchError
from lakekit.names import BUCKET_COLUMN, TableName, quote
from lakekit.options import PREFIX
from lakekit.schema import check_columns, check_key, check_partitions, struct_of
from lakekit.schema.columns import as_nullable, find_columns, required_features, stored_field
from lakekit.storage.actions import Action, CommitInfo, Metadata, Protocol
from lakekit.storage.log import open_log
from lakekit.table.buckets import MOST_DEFAULT_BUCKETS, default_buckets, suggested_buckets

if TYPE_CHECKING:
    from lakekit.lake import Lake
    from lakekit.schema.columns import Columns
    from lakekit.table.rows import Rows
    from lakekit.table.table import Table

_READER_FEATURES = ("deletionVectors",)
_WRITER_FEATURES = ("appendOnly", "changeDataFeed", "invariants")


@dataclass(frozen=True)
class Definition:
    """A table that was checked and can be created.

    Attributes:
        columns: the columns that people see; those of the key are NOT NULL.
        primary_key: the key columns; empty for an append table.
        partition_by: the columns that the table is partitioned by.
        configuration: the table's properties as they are stored.
        comment: a text about the table.
    """

    columns: StructType
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    configuration: Mapping[str, str]
    comment: str | None = None

    @property
    def buckets(self) -> int | None:
        """The number of buckets in each partition; None for an append table."""
        text = self.configuration.get(props.BUCKET)
        return int(text) if text else None

    def stored_schema(self) -> StructType:
        """Returns the columns of the Delta table, with `_bucket` as the last of a keyed table."""
        if not self.primary_key:
            return self.columns
        keys = ", ".join(quote(column) for column in self.primary_key)
        formula = f"pmod(hash({keys}), {self.buckets})"
        bucket = StructField(BUCKET_COLUMN, IntegerType(), True, {"delta.generationExpression": formula})
        return StructType([*self.columns.fields, bucket])

    def protocol(self) -> Protocol:
        """Returns what readers and writers of the table must know."""
        needed = required_features(self.columns)
        computed = {"generatedColumns"} if self.primary_key else set()
        return Protocol(
            3,
            7,
            tuple(sorted({*_READER_FEATURES, *needed})),
            tuple(sorted({*_READER_FEATURES, *_WRITER_FEATURES, *needed, *computed})),
        )

    def actions(self) -> list[Action]:
        """Returns the actions of version 0."""
        now = int(time.time() * 1000)
        stored = (*self.partition_by, BUCKET_COLUMN) if self.primary_key else self.partition_by
        parameters = {
            "partitionBy": json.dumps(stored),
            "clusterBy": "[]",
            "isManaged": "false",
            "properties": json.dumps(dict(self.configuration)),
        }
        if self.comment is not None:
            parameters["description"] = self.comment
        from lakekit import __version__

        info = {
            "timestamp": now,
            "operation": "CREATE TABLE",
            "operationParameters": parameters,
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "operationMetrics": {},
            "engineInfo": f"lakekit/{__version__}",
        }
        metadata = Metadata(
            id=str(uuid.uuid4()),
            name=None,
            description=self.comment,
            schema_string=self.stored_schema().json(),
            partition_columns=stored,
            configuration=self.configuration,
            created_time=now,
        )
        return [CommitInfo(info), self.protocol(), metadata]


def define(
    table: str,
    columns: Columns,
    *,
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    buckets: object = None,
    properties: Mapping[str, object] | None = None,
    comment: str | None = None,
    default_buckets: int = MOST_DEFAULT_BUCKETS,
) -> Definition:
    """Checks everything about a new table that can be checked without looking at the warehouse.

    Args:
        table: its name, for messages.
        columns: see `create_table`.
        primary_key: see `create_table`.
        partition_by: see `create_table`.
        buckets: number of buckets in each partition; the option ``bucket`` says the same.
        properties: see `create_table`.
        comment: see `create_table`.
        default_buckets: the number if neither `buckets` nor the option is given.

    Raises:
        LakeError: for the first thing that is wrong.
    """
    schema = struct_of(columns)
    check_columns(table, schema)
    key = check_key(table, schema, _names("primary_key", primary_key))
    partitions = check_partitions(table, schema, _names("partition_by", partition_by), key)
    configuration = _configuration(table, schema, key, buckets, properties or {}, default_buckets)
    if comment is not None and not isinstance(comment, str):
        raise InvalidOptionError.bad_value("comment", comment, "a text")
    stored = [stored_field(f, nullable=f.nullable and f.name not in key) for f in schema]
    return Definition(StructType(stored), key, partitions, configuration, comment)


def _names(option: str, names: Sequence[str]) -> list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in listed):
        raise InvalidOptionError.bad_value(option, names, "names of columns")
    return listed


def _configuration(
    table: str,
    schema: StructType,
    key: tuple[str, ...],
    buckets: object,
    properties: Mapping[str, object],
    default_buckets: int,
) -> dict[str, str]:
    given = dict(properties)
    if buckets is not None:
        given = {**given, "bucket": props.parse_bucket(buckets)} if "bucket" not in given else given
        if props.parse_bucket(given["bucket"]) != props.parse_bucket(buckets):
            raise InvalidOptionError(
                f"Table {table} is given {buckets} buckets and the option bucket = {given['bucket']}.",
                "Give one.",
            )
    base = {
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        # All columns have statistics; by default Spark would use those of the first 32 only.
        "delta.dataSkippingNumIndexedCols": "-1",
        props.FORMAT_VERSION: str(props.SUPPORTED_FORMAT),
    }
    if key:
        base |= {props.PRIMARY_KEY: json.dumps(key, ensure_ascii=False), props.BUCKET: str(default_buckets)}
    chosen = props.normalise(given, defaults=base)
    for stored in (props.BUCKET, props.EXPECTED_ROWS, props.SEQUENCE_FIELD):
        if stored in chosen and not key:
            raise PrimaryKeyError(
                f"Table {table} has the option '{stored.removeprefix(PREFIX)}', but no primary key.",
                "Add a primary key, or leave the option out.",
            )
    if props.EXPECTED_ROWS in chosen and props.BUCKET not in chosen:
        suggested = suggested_buckets(schema, int(chosen[props.EXPECTED_ROWS]), default_buckets)
        chosen[props.BUCKET] = str(suggested)
    if props.SEQUENCE_FIELD in chosen:
        chosen[props.SEQUENCE_FIELD] = _sequence_field(table, schema, chosen[props.SEQUENCE_FIELD])
    return {**base, **chosen}


def _sequence_field(table: str, schema: StructType, name: str) -> str:
    field = find_columns(table, schema, [name])[0]
    try:
        return check_key(table, schema, [name])[0]
    except PrimaryKeyError:
        raise InvalidOptionError.bad_value(
            "sequence.field",
            f"{field.name} ({field.dataType.simpleString()})",
            "a column whose values have an order",
        ) from None


def create_table(
    lake: Lake,
    name: str,
    columns: Columns | None = None,
    *,
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    buckets: int | None = None,
    properties: Mapping[str, object] | None = None,
    comment: str | None = None,
    if_not_exists: bool = False,
    location: str | None = None,
    as_: Rows | None = None,
) -> Table:
    """Creates a table, and fills it if rows are given.

    Args:
        lake: the lake that gets it.
        name: ``table`` or ``database.table``.
        columns: SQL text (``id BIGINT NOT NULL, name STRING``), a dict of names and types, a Spark schema or
            an Arrow schema; left out with `as_`, whose columns the table gets then.
        primary_key: columns that identify a row; without them the table is an append table.
        partition_by: columns by whose values files are kept apart; they must be part of the key.
        buckets: number of buckets in each partition. Left out, the property ``expected-rows`` chooses it; without
            that there are as many as the local session has cores, at most `MOST_DEFAULT_BUCKETS`.
        properties: table options, see `lakekit.options`.
        comment: a text about the table.
        if_not_exists: return the table that exists instead of raising.
        location: accepted only if it is the folder that the table gets anyway.
        as_: rows to fill the table with; if that fails, there is no table.

    Raises:
        AlreadyExistsError: if the table exists, unless `if_not_exists`.
        LakeError: if anything else is wrong; then nothing was created.
    """
    from lakekit.table.table import Table

    target = lake.catalog.resolve(name)
    root = lake.catalog.new_location(target)
    if location is not None and not same_place(location, root):
        raise InvalidOptionError.bad_value(
            "location", location, f"the table's folder in the warehouse, {root}"
        )
    if lake.catalog.exists(target):
        if if_not_exists:
            return Table(lake, target)
        raise _exists(target)
    rows = _as_dataframe(lake, as_, columns)
    definition = define(
        str(target),
        StructType([_open(f) for f in rows.schema]) if rows is not None else _required(target, columns),
        primary_key=primary_key,
        partition_by=partition_by,
        buckets=buckets,
        properties=properties,
        comment=comment,
        default_buckets=default_buckets(lake),
    )
    actions = definition.actions()
    if not lake.runner.run(write_first_version, root, str(target), actions):
        if if_not_exists:
            return Table(lake, target)
        raise _exists(target)
    try:
        lake.catalog.ensure_registered(target)
        table = Table(lake, target)
        if rows is not None:
            table.upsert(rows)
    except BaseException:
        # What went wrong matters more than a failure to clean up after it.
        with contextlib.suppress(Exception):
            if lake.runner.run(_is_untouched, root, actions):
                lake.catalog.drop(target, if_exists=True)
        raise
    return table


def _exists(name: TableName) -> AlreadyExistsError:
    return AlreadyExistsError(f"Table '{name}' exists already.", "Choose another name, or use IF NOT EXISTS.")


def _required(name: TableName, columns: Columns | None) -> Columns:
    if columns is None:
        raise SchemaMismatchError(f"Table {name} has no columns.", "Give columns, or rows to take them from.")
    return columns


def _as_dataframe(lake: Lake, rows: Rows | None, columns: Columns | None) -> Any:
    if rows is None:
        return None
    if columns is not None:
        raise SchemaMismatchError(
            "Both columns and rows were given for a new table.", "Leave the columns out: the rows tell them."
        )
    from lakekit.table.rows import to_dataframe

    dataframe = to_dataframe(lake.spark, rows, StructType([]))
    return dataframe.drop(BUCKET_COLUMN)


def _open(field: StructField) -> StructField:
    """Returns a column of a query as a table gets it: nullable throughout, with its comment."""
    kept = {k: v for k, v in (field.metadata or {}).items() if k == "comment"}
    return StructField(field.name, as_nullable(field.dataType), True, kept)


# Run where the storage can be reached, on the cluster for a remote session.


def write_first_version(root: str, table: str, actions: list[Action]) -> bool:
    """Writes version 0 of a table's log; returns False if there is one already.

    Raises:
        AlreadyExistsError: if there are other files in the folder.
    """
    if is_occupied(root):
        raise AlreadyExistsError(
            f"Table {table} cannot be created: its folder {root} holds other files.",
            "Move them away, or choose another name.",
        )
    return open_log(root).write(0, actions, str(uuid.uuid4()))


def _is_untouched(root: str, actions: list[Action]) -> bool:
    """Tells whether the table is the one that these actions created, and nobody wrote to it."""
    log = open_log(root)
    if not log.exists():
        return False
    snapshot = log.snapshot()
    return snapshot.version == 0 and snapshot.metadata in actions
