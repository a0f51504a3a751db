"""The folders of a warehouse: what is in them, and how they are made, moved and deleted.

These functions run where the warehouse can be reached, in this process or in a Spark task. A table of
database ``shop`` is the folder ``shop.db/orders``; one of the database ``default`` lies directly in the
warehouse.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from typing import TYPE_CHECKING

from lakekit.catalog.base import DEFAULT_DATABASE, plain_names
from lakekit.errors import AlreadyExistsError, InvalidNameError, UnsupportedTableError
from lakekit.storage.listing import LOG_FOLDER
from lakekit.storage.log import commit_path
from lakekit.storage.store import Store, local_root

if TYPE_CHECKING:
    from lakekit.names import TableName

_SUFFIX = ".db"
_MARKER = "_lakekit_database.json"
_TRASH = ".dropped-"


def database_folder(database: str) -> str:
    """Returns the folder of a database relative to the warehouse; empty for the default one."""
    return "" if database == DEFAULT_DATABASE else database + _SUFFIX


def table_folder(name: TableName) -> str:
    """Returns the folder of a table relative to the warehouse."""
    return _join(database_folder(name.database), name.table)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def same_place(one: str, other: str) -> bool:
    """Tells whether two paths or URIs name the same folder."""
    left, right = local_root(one), local_root(other)
    if left is not None or right is not None:
        return left == right
    return one.rstrip("/").partition("://")[2] == other.rstrip("/").partition("://")[2]


def list_databases(warehouse: str) -> list[str]:
    """Returns the names of the databases, sorted, `default` included."""
    folders = Store(warehouse).list_folders()
    names = [folder.removesuffix(_SUFFIX) for folder in folders if folder.endswith(_SUFFIX)]
    return sorted({DEFAULT_DATABASE, *plain_names("database", names)})


def database_exists(warehouse: str, database: str) -> bool:
    """Tells whether a database exists."""
    if database == DEFAULT_DATABASE:
        return True
    store = Store(warehouse)
    if store.is_local:
        return os.path.isdir(store.local_path(database_folder(database)))
    return store.exists(_marker(database)) or database_folder(database) in store.list_folders()


def create_database(warehouse: str, database: str, comment: str | None) -> bool:
    """Makes the folder of a database and notes its comment; returns False if there is one already."""
    if database_exists(warehouse, database):
        return False
    return Store(warehouse).put_if_absent(_marker(database), _marker_content(comment))


def read_comment(warehouse: str, database: str) -> str | None:
    """Returns the comment of a database, or None."""
    try:
        content = json.loads(Store(warehouse).read(_marker(database)))
    except (FileNotFoundError, ValueError):
        return None
    comment = content.get("comment") if isinstance(content, dict) else None
    return comment if isinstance(comment, str) else None


def write_comment(warehouse: str, database: str, comment: str | None) -> None:
    """Sets the comment of a database."""
    Store(warehouse).put(_marker(database), _marker_content(comment))


def _marker(database: str) -> str:
    return _join(database_folder(database), _MARKER)


def _marker_content(comment: str | None) -> bytes:
    return json.dumps({"comment": comment}, ensure_ascii=False).encode()


def list_tables(warehouse: str, database: str) -> list[str]:
    """Returns the names of the Delta tables of a database, sorted."""
    store, folder = Store(warehouse), database_folder(database)
    return [
        name
        for name in plain_names("table", store.list_folders(folder))
        if _is_table(store, _join(folder, name))
    ]


def is_table(warehouse: str, folder: str) -> bool:
    """Tells whether a folder of the warehouse holds a Delta table."""
    return _is_table(Store(warehouse), folder)


def _is_table(store: Store, folder: str) -> bool:
    log = _join(folder, LOG_FOLDER)
    if store.exists(_join(folder, commit_path(0))) or store.exists(f"{log}/_last_checkpoint"):
        return True
    # The first version may have been cleaned up.
    names = (file.path.rpartition("/")[2] for file in store.list(log))
    return any(name[:1].isdigit() and name.endswith((".json", ".parquet")) for name in names)


def is_occupied(root: str) -> bool:
    """Tells whether a folder holds files other than a Delta log, so that no new table can be made there."""
    store = Store(root)
    if store.is_local:
        folder = store.local_path("")
        if os.path.islink(folder):
            return True
        return os.path.exists(folder) and any(name != LOG_FOLDER for name in os.listdir(folder))
    return any(not file.path.startswith(f"{LOG_FOLDER}/") for file in store.list(""))


def drop_database(warehouse: str, database: str, cascade: bool) -> list[str]:
    """Deletes the folder of a database.

    Returns:
        What is still in it, if that is more than its comment and `cascade` is False; then nothing was
        deleted.
    """
    store, folder = Store(warehouse), database_folder(database)
    if store.is_local:
        path = store.local_path(folder)
        left = (
            [] if cascade else [name for name in os.listdir(path) if name != _MARKER and not _is_trash(name)]
        )
        if not left:
            _delete_local(store, folder)
        return sorted(left)
    files = store.list(folder)
    left = [] if cascade else [file.path for file in files if file.path != _marker(database)]
    if not left:
        store.delete([file.path for file in files])
    return left


def delete_table(warehouse: str, folder: str) -> None:
    """Deletes the folder of a table; links in it are removed and not followed.

    Raises:
        InvalidNameError: if the folder is not inside the warehouse.
    """
    store = Store(warehouse)
    if store.is_local:
        _delete_local(store, folder)
        return
    # Without its log a table is gone, so a reader meets a whole table or none.
    log = [file.path for file in store.list(f"{folder}/_delta_log")]
    store.delete(log)
    store.delete([file.path for file in store.list(folder)])


def _delete_local(store: Store, folder: str) -> None:
    path = _inside(store, folder)
    if os.path.islink(path):
        os.unlink(path)
        return
    # The move takes the table away at once; deleting its files takes longer.
    parent = os.path.dirname(path)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, os.path.join(parent, f"{_TRASH}{uuid.uuid4().hex}"))
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(parent):
            if _is_trash(name):
                # Another process may be deleting the same, or have died while it did.
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def _is_trash(name: str) -> bool:
    return name.startswith(_TRASH)


def _inside(store: Store, folder: str) -> str:
    path = store.local_path(folder)
    warehouse = os.path.realpath(store.local_path(""))
    parent = os.path.realpath(os.path.dirname(path))
    if not folder or os.path.commonpath([warehouse, parent]) != warehouse:
        raise InvalidNameError(
            f"The folder {path} is not inside the warehouse {warehouse}; nothing was deleted or moved.",
            "Remove the link that leads out of the warehouse.",
        )
    return path


def move_table(warehouse: str, old: str, new: str) -> None:
    """Moves the folder of a table within the warehouse, at once.

    Raises:
        UnsupportedTableError: if the warehouse is in an object store, which cannot move a folder at once.
        AlreadyExistsError: if there is something at the new place.
    """
    store = Store(warehouse)
    if not store.is_local:
        raise UnsupportedTableError(
            f"A table in the object store {warehouse} cannot be renamed: its files cannot be moved at once.",
            "Create a table of the new name with CREATE TABLE ... AS SELECT, then drop the old one.",
        )
    source, target = _inside(store, old), _inside(store, new)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(target) or os.path.isfile(target):
        raise _occupied(target)
    try:
        # The system replaces an empty folder and refuses one that is not.
        os.rename(source, target)
    except OSError as error:
        if os.path.exists(source) and os.path.exists(target):
            raise _occupied(target) from error
        raise


def _occupied(path: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"The folder {path} exists already.", "Choose another name, or remove the folder."
    )
