"""Replays a changelog, and is strict about it."""

from __future__ import annotations


class IllegalChangeError(AssertionError):
    """A change that does not fit to those before it."""


class Replay:
    """The rows by key that a changelog leads to.

    A row may be inserted only if there is none of its key; what is deleted or replaced must be the row that is there;
    and a +U comes right after the -U of its key, with no other change of that key between them. If it is not strict,
    only the order counts.
    """

    def __init__(self, rows=(), key="id", strict=True):
        """Starts with rows that are there already."""
        self._strict = strict
        self._key = key
        self.rows = {row[key]: row for row in rows}
        self._half = {}  # keys whose -U came, and not yet their +U, with where it was
        self.changes = 0

    def feed(self, kind, row, where=None):
        key = row[self._key]
        there = self.rows.get(key)
        self.changes += 1
        if kind == "+I":
            self._demand(there is None and key not in self._half, kind, row, there, where)
            self.rows[key] = row
        elif kind == "+U":
            self._demand(key in self._half, kind, row, there, where)
            self._half.pop(key, None)
            self.rows[key] = row
        elif kind in ("-U", "-D"):
            self._demand(there == row, kind, row, there, where)
            self.rows.pop(key, None)
            if kind == "-U":
                self._half[key] = where
        else:
            self._demand(False, kind, row, there, where)

    def ended(self):
        """Returns the rows; nothing may be half done."""
        if self._half:
            raise IllegalChangeError(f"-U without +U: {self._half}")
        return self.rows

    def _demand(self, fine, kind, row, there, where):
        if self._strict and not fine:
            half = ", whose -U has come" if row[self._key] in self._half else ""
            raise IllegalChangeError(f"{kind} {row} at {where}, where the row is {there}{half}")
