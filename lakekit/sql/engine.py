"""Runs SQL: Spark's own, and what lakekit adds to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakekit.errors import LakeError, QueryError
from lakekit.sql import call, create, ddl, dml, explain, merge, settings, show
from lakekit.sql.context import Context
from lakekit.sql.lexer import split, split_spans
from lakekit.sql.parse import Cursor, skip_constant
from lakekit.sql.rewrite import rewrite
from lakekit.sql.statement import DML, Statement
from lakekit.sql.text import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakekit.lake import Lake

__all__ = ["Result", "execute", "execute_script", "split"]

Handler = Callable[[Context, Statement], "DataFrame | None"]


@dataclass(frozen=True)
class Result:
    """What one statement of a script returned."""

    statement: str
    rows: DataFrame


def execute(lake: Lake, query: str, params: Mapping[str, Any]) -> DataFrame:
    """Runs the statements of a text and returns the rows of the last one.

    Args:
        lake: the lake.
        query: one or more statements with semicolons between them; ``:name`` stands for a parameter.
        params: values of the parameters, bound by Spark and never pasted into the text.

    Raises:
        LakeError: if a statement cannot be run; those before it have been.
    """
    return execute_script(lake, query, params)[-1].rows


def execute_script(lake: Lake, text: str, params: Mapping[str, Any]) -> list[Result]:
    """Runs the statements of a text; see `execute`."""
    spans = split_spans(text)
    if not spans:
        raise QueryError("There is no statement to run.", "Write one, for example SHOW TABLES.")
    return [Result(text[start:end], _run(lake, text, (start, end), params)) for start, end in spans]


def _run(lake: Lake, source: str, span: tuple[int, int], params: Mapping[str, Any]) -> DataFrame:
    context = Context(lake, params, source)
    statement = Statement(SqlText.user(source[slice(*span)], span[0]))
    with context.translated(statement.sql):
        for handler in _HANDLERS.get(statement.verb, ()):
            rows = handler(context, statement)
            if rows is not None:
                return rows
        return _pass_on(context, statement)


def _create(context: Context, statement: Statement) -> DataFrame | None:
    cursor = statement.cursor()
    replaces = cursor.accept("CREATE", "OR", "REPLACE") or cursor.accept("REPLACE")
    cursor.accept("CREATE")
    while cursor.peek().keyword in ("EXTERNAL", "TEMPORARY", "TEMP"):
        cursor.index += 1
    if not cursor.accept("TABLE"):
        return None
    if replaces and context.find(context.parts(cursor.name(), statement.text)) is not None:
        raise cursor.error("a table of the lake cannot be replaced; use DROP TABLE first")
    return create.create_like(context, statement) or create.create(context, statement)


_HANDLERS: Mapping[str, tuple[Handler, ...]] = {
    "INSERT": (dml.insert,),
    "DELETE": (dml.delete,),
    "UPDATE": (dml.update,),
    "MERGE": (merge.merge,),
    "TRUNCATE": (dml.truncate,),
    "CREATE": (ddl.create_database, _create),
    "REPLACE": (_create,),
    "DROP": (ddl.drop_database, ddl.drop_table),
    "ALTER": (ddl.alter_table,),
    "COMMENT": (ddl.comment_on,),
    "USE": (ddl.use,),
    "SHOW": (show.show,),
    "DESCRIBE": (show.describe,),
    "DESC": (show.describe,),
    "CALL": (call.call,),
    "EXPLAIN": (explain.run,),
    "SET": (settings.change,),
    "RESET": (settings.change,),
}


def _pass_on(context: Context, statement: Statement) -> DataFrame:
    """Hands a statement to Spark, with the tables of the lake that it reads replaced.

    Raises:
        QueryError: if it would write to a keyed table past lakekit, which could give a key two rows.
    """
    _refuse_writes(context, statement)
    if statement.is_query:
        return _query(context, statement.sql)
    if statement.cursor().at("EXECUTE", "IMMEDIATE"):
        _refuse_writes_in_text(context, statement)
    start = _query_start(statement)
    if start is None:
        _make_known(context, statement)
        return context.sql(statement.sql)
    return context.sql(rewrite(context, statement.sql, start))


def _query(context: Context, sql: SqlText) -> DataFrame:
    """Runs a query; tables of which it wants few rows are not read by Spark."""
    try:
        return context.sql(rewrite(context, sql, fetching=True))
    except LakeError:
        # Spark tells best what is wrong with a query that has all columns at hand.
        return context.sql(rewrite(context, sql))


def _query_start(statement: Statement) -> int | None:
    """Returns the token at which a query begins, None if the statement has none."""
    verb = statement.verb
    if statement.is_query or verb in ("", "INSERT", "BEGIN"):
        return 0 if verb != "INSERT" else statement.verb_index + 2
    cursor = statement.cursor()
    if verb == "EXPLAIN" or verb in ("DESC", "DESCRIBE"):
        cursor.index = 1
        while cursor.peek().keyword in ("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL", "QUERY"):
            cursor.index += 1
        # DESCRIBE TABLE t is about the table, DESCRIBE QUERY TABLE t about its rows.
        names_table = verb != "EXPLAIN" and cursor.index == 1 and cursor.at("TABLE")
        return cursor.index if cursor.at_query() and not names_table else None
    if verb in ("CREATE", "CACHE", "REPLACE", "ALTER"):
        cursor.skip_until(lambda c: c.at("AS") and Cursor(c.tokens, c.index + 1).at_query())
        return None if cursor.done else cursor.index + 1
    if verb in ("SET", "DECLARE"):
        cursor.skip_until(lambda c: c.at("("))
        return None if cursor.done else cursor.index
    if verb in ("DELETE", "UPDATE"):
        cursor.skip_until(lambda c: c.at("SET") or c.at("WHERE"))
        return cursor.index
    if verb == "MERGE":
        cursor.skip_until(lambda c: c.at("USING"))
        return cursor.index + 1
    return None


def _refuse_writes(context: Context, statement: Statement) -> None:
    """Refuses scripts and multi-inserts that write to keyed tables; Spark would not look at the keys."""
    if statement.verb in _HANDLERS and statement.verb != "INSERT":
        return
    cursor = statement.cursor()
    while not cursor.done:
        verb = cursor.peek().keyword
        for words in _WRITES:
            if cursor.accept(*words):
                cursor.accept("TABLE")
                if not cursor.peek().is_identifier:
                    break
                place = cursor.peek().start
                table = context.find(context.parts(cursor.name(), statement.text))
                if table is not None and table.primary_key:
                    raise QueryError(
                        f"{verb} on table {table.name} is not possible inside another statement or script"
                        f" (at '{statement.text[place : place + 40]}').",
                        "Run it as a statement of its own.",
                    )
                break
        else:
            cursor.index += 1


def _refuse_writes_in_text(context: Context, statement: Statement) -> None:
    """Looks into the text that EXECUTE IMMEDIATE runs, where that is known."""
    cursor = statement.cursor(2)
    place = cursor.index
    if not skip_constant(cursor) or cursor.peek().at("("):
        return
    text = context.value(str(statement.slice((place, cursor.index))))
    inner = Statement(SqlText.generated(str(text)))
    if inner.verb in DML:
        inner = Statement(SqlText.generated(f"EXECUTE {text}"))
    _refuse_writes(context, inner)


_WRITES = (
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("MERGE", "INTO"),
    ("DELETE", "FROM"),
    ("UPDATE",),
    ("COPY", "INTO"),
)

_BEFORE_NAME = {
    *(
        "TABLE",
        "OPTIMIZE",
        "VACUUM",
        "HISTORY",
        "DETAIL",
        "DESCRIBE",
        "DESC",
        "EXTENDED",
        "LIKE",
        "FROM",
        "IN",
        "ON",
    ),
    *("RESTORE", "LAZY", "REORG"),
}


def _make_known(context: Context, statement: Statement) -> None:
    """Makes Spark know the tables that a statement names, such as ANALYZE TABLE t or OPTIMIZE t."""
    cursor = statement.cursor()
    while not cursor.done:
        token = cursor.next()
        if token.keyword in _BEFORE_NAME and cursor.peek().is_identifier and not cursor.at("TABLE"):
            context.find(cursor.name().parts)
