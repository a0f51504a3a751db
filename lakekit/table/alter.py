"""Changes of a table's properties, comments and columns.

Each is one commit with new metadata, written as every commit of lakekit is: so it is the same for local and
remote sessions, keeps what it does not know, steps over commits of rows, and is worked out again if the
metadata changed. Spark's ALTER TABLE would need a cluster's answer for each, and turns a wider type into a
table feature that delta-rs cannot read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, StructField, StructType

from lakekit import properties as props
from lakekit.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    ConcurrentWriteError,
    InvalidOptionError,
    PrimaryKeyError,
    SchemaMismatchError,
)
from lakekit.filestore.commit import Proposal
from lakekit.filestore.conflicts import Footprint, Isolation, Verdict
from lakekit.logstore.emitted import set_emitted
from lakekit.options import PREFIX
from lakekit.schema import check_columns, declared_type, parse_type, struct_of, type_text
from lakekit.schema.columns import can_widen, find_columns, required_features, stored_field, with_columns
from lakekit.storage.actions import Action, Metadata, Protocol
from lakekit.storage.protocol import check_writable
from lakekit.table.rewrite import rewrite_files

if TYPE_CHECKING:
    from lakekit.schema.columns import Columns
    from lakekit.storage.snapshot import Snapshot
    from lakekit.table.table import Table

MAX_ATTEMPTS = 20
"""How often a change is worked out again when others change the metadata first."""


@dataclass(frozen=True)
class _Change:
    """A change of metadata, and of the protocol if the metadata needs it."""

    metadata: Metadata
    protocol: Protocol | None = None


def set_properties(table: Table, properties: Mapping[str, object]) -> int:
    """Sets properties of a table.

    Args:
        table: the table.
        properties: see `create_table`; those fixed at creation cannot be changed.

    Returns:
        The version of the table that has them.

    Raises:
        InvalidOptionError: for an unknown option, a bad value, or options that do not fit together.
    """

    def change(snapshot: Snapshot) -> _Change:
        given = props.normalise(properties, snapshot.configuration)
        return _Change(replace(snapshot.metadata, configuration={**snapshot.configuration, **given}))

    before = table.options
    version = _commit(
        table, change, "SET TBLPROPERTIES", {"properties": json.dumps(dict(properties), default=str)}
    )
    after = table.options
    if after.log_store_enabled and not (
        before.log_store_enabled and before.log_store_topic == after.log_store_topic
    ):
        # The log begins here: what the table holds already is not among the newest changes.
        table.lake.runner.run(set_emitted, table.root, str(after.log_store_topic), version)
    return version


def unset_properties(table: Table, names: Iterable[str], *, if_exists: bool = False) -> int:
    """Removes properties of a table, so that their defaults hold again.

    Returns:
        The version of the table that does not have them.

    Raises:
        InvalidOptionError: for an unknown option, one that cannot be removed, or one that is not set, unless
            `if_exists`.
    """
    listed = list(names)

    def change(snapshot: Snapshot) -> _Change:
        stored = props.check_removal(listed, snapshot.configuration)
        absent = sorted(name for name in stored if name not in snapshot.configuration)
        if absent and not if_exists:
            raise InvalidOptionError(
                f"Option '{absent[0].removeprefix(PREFIX)}' is not set on table {table.name}.",
                "Leave it out, or use IF EXISTS.",
            )
        kept = {k: v for k, v in snapshot.configuration.items() if k not in stored}
        return _Change(replace(snapshot.metadata, configuration=kept))

    return _commit(table, change, "UNSET TBLPROPERTIES", {"properties": json.dumps(listed)})


def set_comment(table: Table, comment: str | None) -> int:
    """Sets or, with None, removes the text about a table; returns the version that has it."""
    if comment is not None and not isinstance(comment, str):
        raise InvalidOptionError.bad_value("comment", comment, "a text, or None")
    return _commit(
        table,
        lambda snapshot: _Change(replace(snapshot.metadata, description=comment)),
        "SET COMMENT",
        {"comment": comment or ""},
    )


def set_column_comment(table: Table, column: str, comment: str | None) -> int:
    """Sets or, with None, removes the comment of a column; returns the version that has it.

    Raises:
        ColumnNotFoundError: if there is no such column.
    """

    def change(snapshot: Snapshot) -> _Change:
        def commented(field: dict[str, Any]) -> None:
            metadata = {k: v for k, v in field.get("metadata", {}).items() if k != "comment"}
            field["metadata"] = {**metadata, "comment": comment} if comment else metadata

        return _Change(_with_column(table, snapshot, column, commented))

    return _commit(table, change, "CHANGE COLUMN", {"column": column, "comment": comment or ""})


def add_columns(table: Table, columns: Columns) -> int:
    """Adds columns after those that people see; the rows there are hold null in them.

    Args:
        table: the table.
        columns: see `create_table`; they must be nullable.

    Returns:
        The version of the table that has them.

    Raises:
        AlreadyExistsError: if there is a column of that name.
        SchemaMismatchError: for a type that cannot be stored, or a column that is NOT NULL.
        InvalidNameError: for a name that no column can have.
    """
    new = struct_of(columns)
    check_columns(str(table.name), new)
    required = [f.name for f in new if not f.nullable]
    if required:
        raise SchemaMismatchError(
            f"Column {', '.join(required)} cannot be added to table {table.name} as NOT NULL: "
            "the rows there are would have no value in it.",
            "Leave NOT NULL out.",
        )

    def change(snapshot: Snapshot) -> _Change:
        known = {name.lower(): name for name in snapshot.user_columns}
        taken = [known[f.name.lower()] for f in new if f.name.lower() in known]
        if taken:
            raise AlreadyExistsError(
                f"Table {table.name} has a column '{taken[0]}' already.", "Choose another name."
            )
        stored = StructType([stored_field(f, nullable=True) for f in new])
        return _Change(with_columns(snapshot, stored.fields), _extended(snapshot.protocol, stored))

    return _commit(table, change, "ADD COLUMNS", {"columns": new.simpleString()})


def widen_column(table: Table, column: str, new_type: DataType | str) -> int:
    """Gives a column a type that holds every value of its present one, such as BIGINT instead of INT.

    The files are rewritten, unless only the length of a varchar changes.

    Args:
        table: the table.
        column: the column; not one of the key, because its hash decides where a row is.
        new_type: the new type.

    Returns:
        The version of the table that has it.

    Raises:
        ColumnNotFoundError: if there is no such column.
        PrimaryKeyError: for a column of the key.
        SchemaMismatchError: if the new type does not hold every value of the present one.
    """
    target = parse_type(new_type) if isinstance(new_type, str) else new_type

    def widened(snapshot: Snapshot) -> Metadata:
        field = _widening(table, snapshot, column, target)

        def retyped(stored: dict[str, Any]) -> None:
            kept = {k: v for k, v in stored.get("metadata", {}).items() if not k.startswith("__")}
            stored.update(field.jsonValue())
            stored["metadata"] = {**kept, **field.metadata}

        return _with_column(table, snapshot, field.name, retyped)

    snapshot = table.snapshot()
    field = _widening(table, snapshot, column, target)
    if declared_type(field) == declared_type(
        find_columns(str(table.name), table.schema_of(snapshot), [column])[0]
    ):
        return snapshot.version
    stays = field.dataType == table.schema_of(snapshot)[field.name].dataType
    operation, parameters = "CHANGE COLUMN", {"column": field.name, "type": type_text(target)}
    if stays or not snapshot.files:
        # A file with the old type must not come in between.
        isolation = Isolation.KEYS if stays else Isolation.TABLE
        return _commit(
            table,
            lambda s: _Change(widened(s), _extended(s.protocol, StructType([field]))),
            operation,
            parameters,
            isolation,
        )
    return rewrite_files(table, widened, operation).version


def _widening(table: Table, snapshot: Snapshot, column: str, target: DataType) -> StructField:
    """Returns the widened column as it is stored.

    Raises:
        LakeError: if it cannot be widened so.
    """
    schema = table.schema_of(snapshot)
    field = find_columns(str(table.name), schema, [column])[0]
    check_columns(str(table.name), StructType([StructField(field.name, target)]))
    present = declared_type(field)
    if field.name in snapshot.primary_key:
        raise PrimaryKeyError(
            f"Column '{field.name}' of table {table.name} is part of the key, so its type cannot change.",
            "Create a new table with the other type and copy the rows: CREATE TABLE ... AS SELECT.",
        )
    if field.name in snapshot.partition_columns:
        raise SchemaMismatchError(
            f"Table {table.name} is partitioned by column '{field.name}', so its type cannot change.",
            "Create a new table with the other type and copy the rows: CREATE TABLE ... AS SELECT.",
        )
    if present != target and not can_widen(present, target):
        raise SchemaMismatchError(
            f"Column '{field.name}' of table {table.name} is {type_text(present)}, and {type_text(target)} "
            "does not hold all values of that type.",
            "Integers widen to longer ones, to DECIMAL and DOUBLE, FLOAT to DOUBLE, DECIMAL to more digits, "
            "DATE to TIMESTAMP_NTZ, VARCHAR to a longer one or STRING.",
        )
    return stored_field(StructField(field.name, target), nullable=field.nullable)


def _with_column(
    table: Table, snapshot: Snapshot, column: str, change: Callable[[dict[str, Any]], None]
) -> Metadata:
    """Returns metadata with one column changed; all else in its schema text is kept, known here or not."""
    schema = json.loads(snapshot.metadata.schema_string)
    names = snapshot.user_columns
    field = next(
        (f for f in schema["fields"] if f["name"].lower() == column.lower() and f["name"] in names), None
    )
    if field is None:
        raise ColumnNotFoundError.of(str(table.name), column, names)
    change(field)
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return replace(snapshot.metadata, schema_string=text)


def _extended(protocol: Protocol, columns: StructType) -> Protocol | None:
    """Returns a protocol that allows the types of some columns, or None if the present one does."""
    needed = required_features(columns)
    if needed <= set(protocol.writer_features or ()):
        return None
    # A table of an older protocol names no features; all of those it implies must be named then.
    implied = () if protocol.writer_features is not None else _IMPLIED[: protocol.min_writer_version]
    writer = {*(protocol.writer_features or ()), *(f for group in implied for f in group), *needed}
    reader = {*(protocol.reader_features or ()), *needed}
    return Protocol(3, 7, tuple(sorted(reader)), tuple(sorted(writer)))


_IMPLIED: Sequence[tuple[str, ...]] = (
    (),
    ("appendOnly", "invariants"),
    ("checkConstraints",),
    ("changeDataFeed", "generatedColumns"),
)
"""Features that each writer version from 1 to 4 adds (Delta protocol, "Valid Feature Names")."""


def _commit(
    table: Table,
    change: Callable[[Snapshot], _Change],
    operation: str,
    parameters: Mapping[str, str],
    isolation: Isolation = Isolation.KEYS,
) -> int:
    """Commits changed metadata, and works it out again while others change the metadata first."""
    for _ in range(MAX_ATTEMPTS):
        snapshot = table.snapshot()
        check_writable(snapshot.protocol, snapshot.configuration, str(table.name))
        changed = change(snapshot)
        if changed.metadata == snapshot.metadata:
            return snapshot.version
        actions: list[Action] = [changed.metadata]
        if changed.protocol is not None:
            actions.insert(0, changed.protocol)
        footprint = Footprint(isolation, frozenset(), frozenset())
        outcome = table.commit(Proposal(snapshot.version, actions, footprint, operation, parameters, {}))
        if outcome.verdict is Verdict.GO_ON:
            return outcome.version
    raise ConcurrentWriteError(
        f"{operation} of table {table.name} met newer changes of its metadata {MAX_ATTEMPTS} times.",
        "The table is unchanged; try again.",
    )
