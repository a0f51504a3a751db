"""Reading a table's log; these functions run where the storage can be reached, on the cluster for a remote session."""

from __future__ import annotations

from lakekit.errors import TableNotFoundError, VersionNotFoundError
from lakekit.storage.log import open_log
from lakekit.storage.snapshot import Snapshot


def newest(root: str, name: str, known: tuple[int, str] | None) -> Snapshot | None:
    """Returns the newest snapshot, or None if it is the caller's, known by its version and the table's id."""
    log = open_log(root)
    if not log.exists():
        raise TableNotFoundError(
            f"Table {name} does not exist any more.", "Another session may have dropped it."
        )
    snapshot = log.snapshot()
    return None if known == (snapshot.version, snapshot.metadata.id) else snapshot


def snapshot_at(root: str, name: str, version: int) -> Snapshot:
    """Returns the snapshot of a version, or raises VersionNotFoundError with the range."""
    log = open_log(root)
    earliest, latest = log.earliest_version(), log.latest_version()
    if not earliest <= version <= latest:
        raise VersionNotFoundError.of_version(name, version, earliest, latest)
    return log.snapshot(version)


def held_versions(root: str) -> tuple[int, int]:
    """Returns the first and the last version that can be read."""
    log = open_log(root)
    return log.earliest_version(), log.latest_version()


def version_at(root: str, name: str, millis: int) -> int:
    """Returns the version at a time in ms since 1970, or raises VersionNotFoundError with the range."""
    try:
        return open_log(root).version_at(millis)
    except VersionNotFoundError as error:
        raise type(error)(error.message.replace("The table", f"Table {name}", 1), error.hint) from None
