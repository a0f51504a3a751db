"""What was wrong with a statement, in a few lines, at its place in what the user wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from lakekit.errors import (
    DatabaseNotFoundError,
    LakeError,
    QueryError,
    TableNotFoundError,
    did_you_mean,
)
from lakekit.names import BUCKET_COLUMN
from lakekit.sql.text import SqlText

_LINE = re.compile(r"\(?line (\d+), pos (\d+)\)?|; line (\d+) pos (\d+)")
_NOISE = re.compile(
    r"\s*(?:SQLSTATE: \w+|\(line \d+, pos \d+\)|; line \d+ pos \d+.*|== SQL.*|JVM stacktrace:.*|\n\s*at [\w.$]+\(.*"
    r"|;\s*\n'?[A-Z]\w+.*)",
    re.DOTALL,
)
_CALLING = re.compile(r"An error occurred while calling \S+\s*:\s*(?:[\w.$]+:)?\s*")
_GONE = re.compile(
    r"FAILED_READ_FILE\.FILE_NOT_EXIST\].*? file (?P<path>\S+?)\.?\s+File does not exist", re.DOTALL
)
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
_HIDDEN = re.compile(rf",? ?(?:`[^`\]]*`\.)?`(?:{BUCKET_COLUMN}|__lake_[^`]*)`")
_SHOWN = 700


class StatementError(QueryError):
    """An error shown with lines of the statement; the hint stands on a line of its own."""

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}".rstrip()


class SyntaxAt(QueryError):  # noqa: N818 - reads as `raise SyntaxAt(position, …)`
    """A syntax error at a position of the text that was read; the engine shows the line."""

    def __init__(self, position: int, message: str, hint: str = "") -> None:
        """Keeps the position, counted in the text that was read."""
        super().__init__(message, hint)
        self.position = position

    def __reduce__(self) -> Any:
        return QueryError, (self.message, self.hint)


def place(source: str, start: int, length: int = 1) -> str:
    """Returns the line of `source` around a position, with its number and marks below the place."""
    line_start = source.rfind("\n", 0, start) + 1
    line_end = source.find("\n", start)
    line = source[line_start : len(source) if line_end < 0 else line_end]
    number = source.count("\n", 0, start) + 1
    column = start - line_start
    marks = "^" * max(1, min(length, len(line) - column))
    shift = max(0, column - 100)
    shown, blanks = line[shift : shift + 160], re.sub(r"[^\t]", " ", line[shift:column])
    return f"At line {number}, column {column + 1}:\n    {shown}\n    {blanks}{marks[:60]}"


def syntax_error(error: SyntaxAt, sql: SqlText, source: str) -> StatementError:
    """Returns a syntax error with its line."""
    origin = sql.origin(error.position)
    shown = f"{error.message}\n{place(source, origin)}" if origin is not None else error.message
    return StatementError(shown, error.hint)


def translate(
    error: BaseException,
    sql: SqlText,
    source: str,
    *,
    params: Sequence[str] = (),
    tables: Callable[[str | None], Sequence[str]] = lambda _database: (),
    databases: Callable[[], Sequence[str]] = lambda: (),
) -> LakeError:
    """Returns the error to show for one that Spark raised.

    Args:
        error: what was raised while `sql` was analysed or run.
        sql: what Spark got.
        source: what the user wrote.
        params: names of the given parameters.
        tables: returns the tables of a database, of the current one for None.
        databases: returns the names of the databases.
    """
    if isinstance(error, SyntaxAt):
        return syntax_error(error, sql, source)
    if isinstance(error, LakeError):
        return error
    if gone := _GONE.search(str(error)):
        return StatementError(
            f"The file {gone['path'].rpartition('/')[2]} is not there any more.",
            "A vacuum deletes files that only old versions need. Read a newer version.",
        )
    condition = _ask(error, "getCondition") or _ask(error, "getErrorClass") or ""
    details = _ask(error, "getMessageParameters") or {}
    if condition == "UNBOUND_SQL_PARAMETER":
        return _unbound(str(details.get("name", "")), params)
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        return _missing_table(_parts(str(details.get("relationName", ""))), tables, databases)
    if condition == "SCHEMA_NOT_FOUND":
        return DatabaseNotFoundError.of(_parts(str(details.get("schemaName", "")))[-1], databases())
    where = _where(error, sql, source)
    message = "\n".join(part for part in (_message(error), where) if part)
    return StatementError(message, _hint(condition, details))


def _missing_table(
    parts: list[str],
    tables: Callable[[str | None], Sequence[str]],
    databases: Callable[[], Sequence[str]],
) -> LakeError:
    parts = parts[1:] if len(parts) == 3 and parts[0] == "spark_catalog" else parts
    if len(parts) == 2 and parts[0].lower() not in databases():
        return DatabaseNotFoundError.of(parts[0], databases())
    name, known = parts[-1], tables(parts[-2] if len(parts) > 1 else None)
    error = TableNotFoundError.of(name, known)
    return TableNotFoundError(f"Table '{'.'.join(parts)}' does not exist.", error.hint)


def _ask(error: BaseException, method: str) -> Any:
    try:
        return getattr(error, method)()
    except Exception:
        # Not every error of Spark has every answer.
        return None


def _message(error: BaseException) -> str:
    text = _ask(error, "getMessage") or str(error)
    clean = _HIDDEN.sub("", _NOISE.sub("", _CALLING.sub("", text))).strip().replace("[, ", "[")
    lines = [line.strip() for line in clean.splitlines() if line.strip()]
    shown = " ".join(lines) or type(error).__name__
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _unbound(name: str, params: Sequence[str]) -> LakeError:
    name = name.strip("`") or "?"
    given = ", ".join(f":{p}" for p in sorted(params)) or "none"
    hint = did_you_mean(name, params) or f"Give it as {name}=…; there are values for: {given}."
    return QueryError(f"The statement uses the parameter :{name}, which has no value.", hint)


def _hint(condition: str, details: dict[str, str]) -> str:
    if not condition.startswith("UNRESOLVED_COLUMN"):
        return ""
    wanted = _parts(details.get("objectName", ""))[-1:]
    known = [_parts(p)[-1] for p in details.get("proposal", "").split(", ") if p]
    known = [k for k in known if k != BUCKET_COLUMN and not k.startswith("__lake_")]
    return did_you_mean(wanted[0], known) if wanted and known else ""


def _parts(name: str) -> list[str]:
    return [p.replace("``", "`") for p in _QUOTED.findall(name)] or [name]


def _where(error: BaseException, sql: SqlText, source: str) -> str:
    """Returns the place in the user's text that Spark points at, if there is one."""
    for context in _ask(error, "getQueryContext") or ():
        start, stop = _ask(context, "startIndex"), _ask(context, "stopIndex")
        fragment = _ask(context, "fragment") or ""
        if isinstance(start, int) and isinstance(stop, int) and str(sql)[start : stop + 1] == fragment:
            # A fragment as long as a statement says nothing.
            origin = sql.origin(start)
            if origin is not None and len(fragment) < max(60, len(sql) // 2):
                return place(source, origin, stop - start + 1)
    found = _LINE.search(str(error))
    if found is None:
        return ""
    line, column = int(found[1] or found[3]), int(found[2] or found[4])
    lines = str(sql).split("\n")
    if line > len(lines):
        return ""
    origin = sql.origin(sum(len(text) + 1 for text in lines[: line - 1]) + column)
    return place(source, origin) if origin is not None else ""
