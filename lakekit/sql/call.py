"""CALL lake.compact('shop.orders') and the other procedures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakekit.errors import InvalidOptionError, QueryError, did_you_mean
from lakekit.sql import frames
from lakekit.sql.context import Context
from lakekit.sql.failures import SyntaxAt
from lakekit.sql.parse import Cursor
from lakekit.sql.statement import Statement
from lakekit.storage.log import open_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.table.table import Table

NAMESPACES = frozenset({"lake", "arctic", "lakekit"})
"""What may stand before the name of a procedure."""


@dataclass(frozen=True)
class Procedure:
    """Something to call.

    Attributes:
        parameters: names and types of its parameters behind the table.
        run: does it, given the table and the parameters by name.
    """

    parameters: Mapping[str, type]
    run: Callable[..., DataFrame]


def _compact(context: Context, table: Table) -> DataFrame:
    return frames.commit(context, table.compact())


def _vacuum(_context: Context, table: Table, **given: Any) -> DataFrame:
    return table.vacuum(**given)


def _checkpoint(context: Context, table: Table) -> DataFrame:
    version = context.lake.runner.run(_write_checkpoint, table.root)
    return frames.status(context, f"Wrote a checkpoint of version {version} of table {table.name}.")


def _write_checkpoint(root: str) -> int:
    log = open_log(root)
    version = log.latest_version()
    log.checkpoint(version)
    return version


PROCEDURES: Mapping[str, Procedure] = {
    "compact": Procedure({}, _compact),
    "vacuum": Procedure({"retain_hours": float, "dry_run": bool, "force": bool}, _vacuum),
    "checkpoint": Procedure({}, _checkpoint),
}
"""The procedures by name; the first parameter of each is the table."""


def call(context: Context, statement: Statement) -> DataFrame | None:
    """Runs CALL; None for procedures of others.

    Raises:
        QueryError: for an unknown procedure or argument, or one that is missing.
    """
    cursor = statement.cursor()
    cursor.expect("CALL")
    parts = [p.lower() for p in cursor.name().parts]
    if len(parts) < 2 or parts[0] not in NAMESPACES:
        return None
    name = parts[-1]
    if name not in PROCEDURES:
        hint = did_you_mean(name, PROCEDURES) or f"There are {', '.join(f'lake.{p}' for p in PROCEDURES)}."
        raise QueryError(f"There is no procedure lake.{name}.", hint)
    procedure = PROCEDURES[name]
    given = _arguments(context, cursor, statement, name, ["table", *procedure.parameters])
    if not cursor.done:
        raise cursor.error("not expected behind the arguments")
    table_name = given.pop("table", None)
    if not isinstance(table_name, str):
        raise QueryError(
            f"lake.{name} needs the name of a table.", f"Write CALL lake.{name}('database.table')."
        )
    table = context.lake.table(table_name)
    typed = {k: _typed(name, k, v, procedure.parameters[k]) for k, v in given.items()}
    return procedure.run(context, table, **typed)


def _arguments(
    context: Context, cursor: Cursor, statement: Statement, procedure: str, parameters: list[str]
) -> dict[str, Any]:
    """Reads ``('shop.orders', dry_run => true)``."""
    cursor.expect("(")
    found: dict[str, Any] = {}
    while not cursor.at(")"):
        place = cursor.peek().start
        if cursor.peek().is_identifier and cursor.peek(1).at("=>"):
            name = cursor.next().name.lower()
            cursor.index += 1
        elif len(found) < len(parameters):
            name = parameters[len(found)]
        else:
            raise SyntaxAt(
                place, f"lake.{procedure} has {len(parameters)} parameters: {', '.join(parameters)}."
            )
        if name not in parameters:
            hint = did_you_mean(name, parameters) or f"It has {', '.join(parameters)}."
            raise SyntaxAt(place, f"lake.{procedure} has no parameter '{name}'.", hint)
        if name in found:
            raise SyntaxAt(place, f"The parameter '{name}' is given twice.")
        start = cursor.index
        cursor.skip_until(lambda c: c.at(","))
        found[name] = context.value(str(statement.slice((start, cursor.index))))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def _typed(procedure: str, name: str, value: Any, wanted: type) -> Any:
    if wanted is bool and isinstance(value, bool):
        return value
    try:
        if wanted is float and not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError):
        pass
    allowed = "true or false" if wanted is bool else "a number"
    raise InvalidOptionError.bad_value(f"{name} of lake.{procedure}", value, allowed)
