"""Errors about files of the Delta log, built from facts."""

from __future__ import annotations

from lakekit.errors import CorruptLogError


def corrupt_file(root: str, path: str, why: str) -> CorruptLogError:
    """Builds the error for a file of a table that is there but cannot be read."""
    return CorruptLogError(
        f"File {path} of the table at {root} cannot be read: {why}.",
        "Restore the file from a backup; the table itself was not changed.",
    )


def missing_file(root: str, path: str) -> CorruptLogError:
    """Builds the error for a file that other files of the table refer to."""
    return CorruptLogError(
        f"File {path} of the table at {root} is missing, though other files of the table need it.",
        "Restore the file from a backup, or read an older version that does not need it.",
    )
