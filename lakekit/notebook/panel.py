"""What the side panel of JupyterLab shows, as plain JSON.

The panel asks by evaluating ``answer(…)`` in an idle kernel that has loaded ``%load_ext lakekit``. Nothing is opened,
no Spark job is started, and however many tables there are, an answer takes little more than `BUDGET_S`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakekit.errors import LakeError
from lakekit.names import TableName, split_name
from lakekit.notebook import listing

if TYPE_CHECKING:
    from lakekit.lake import Lake

BUDGET_S = 0.25
"""How long details are read of tables that nobody has opened in the panel; names of tables always come all."""

Json = dict[str, Any]


class Answer:
    """JSON that a notebook front end receives as such."""

    def __init__(self, value: Json) -> None:
        """Wraps plain JSON."""
        self.value = value

    def _repr_json_(self) -> Json:
        return self.value

    def __repr__(self) -> str:
        return "Answer of lakekit's side panel"


def answer(opened: Sequence[str] = (), *, fresh: bool = False) -> Answer:
    """Returns what the panel shows.

    Args:
        opened: tables that are unfolded in the panel, as ``database.table``; their columns are always read.
        fresh: whether a person asked for it. Tables of a remote session are only then read again.
    """
    lake = listing.current_lake()
    return Answer(contents(lake, opened, fresh=fresh) if lake is not None else {"lake": None})


def contents(lake: Lake, opened: Sequence[str], *, fresh: bool = False) -> Json:
    """Returns the lake, its databases and their tables; what cannot be read says so in its ``error``."""
    wanted = {TableName(*parts) for parts in map(split_name, opened) if len(parts) == 2}
    deadline = time.monotonic() + BUDGET_S
    found = []
    for database in listing.databases(lake):
        entry: Json = {"name": database, "tables": []}
        found.append(entry)
        try:
            names = listing.tables(lake, database)
        except Exception as error:
            entry["error"] = _in_words(error)
            continue
        entry["tables"] = [
            _table(lake, TableName(database, table), wanted, deadline, fresh=fresh) for table in names
        ]
    return {
        "lake": {
            "warehouse": lake.warehouse,
            "remote": lake.remote,
            "database": lake.current_database,
            "variable": _variable(lake),
        },
        "databases": found,
    }


def _table(lake: Lake, name: TableName, wanted: set[TableName], deadline: float, *, fresh: bool) -> Json:
    about: Json = {"name": name.table, "full_name": str(name), "details": None}
    try:
        if lake.runner.is_local:
            if name in wanted or time.monotonic() < deadline:
                about["details"] = listing.details(lake, name)
        else:
            about["details"] = listing.known(lake, name)
            if name in wanted and (fresh or about["details"] is None):
                about["details"] = listing.details(lake, name)
    except Exception as error:
        about["error"] = _in_words(error)
    return about


def _variable(lake: Lake) -> str | None:
    """Returns the notebook's name for the lake, `lake` if that is one of them."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return None
    names = [n for n, v in shell.user_ns.items() if v is lake and n.isidentifier() and n[0] != "_"]
    return "lake" if "lake" in names else next(iter(names), None)


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, LakeError) else f"{type(error).__name__}: {str(error)[:300]}"
